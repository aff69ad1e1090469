/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * webhook_address_test.c - proves webhook/address.c: what is not public is known as such, at both
 * ends of its network, whichever way it is written.
 * Owns:  the table of addresses.
 * Never: connects to any of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "webhook/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

#define PUBLIC        PAWLI_ADDRESS_PUBLIC
#define UNSPECIFIED   PAWLI_ADDRESS_UNSPECIFIED
#define LOOPBACK      PAWLI_ADDRESS_LOOPBACK
#define PRIVATE       PAWLI_ADDRESS_PRIVATE
#define LINK_LOCAL    PAWLI_ADDRESS_LINK_LOCAL
#define SHARED        PAWLI_ADDRESS_SHARED
#define MULTICAST     PAWLI_ADDRESS_MULTICAST
#define BROADCAST     PAWLI_ADDRESS_BROADCAST
#define DOCUMENTATION PAWLI_ADDRESS_DOCUMENTATION
#define BENCHMARKING  PAWLI_ADDRESS_BENCHMARKING
#define RESERVED      PAWLI_ADDRESS_RESERVED

struct row {
    const char *text;
    enum pawli_address_kind kind;
};

static const struct row v4_rows[] = {
    {"0.0.0.0", UNSPECIFIED},
    {"0.0.0.1", UNSPECIFIED},
    {"0.255.255.255", UNSPECIFIED},
    {"1.0.0.0", PUBLIC},
    {"1.1.1.1", PUBLIC},
    {"8.8.8.8", PUBLIC},
    {"9.255.255.255", PUBLIC},
    {"10.0.0.0", PRIVATE},
    {"10.255.255.255", PRIVATE},
    {"11.0.0.0", PUBLIC},
    {"100.63.255.255", PUBLIC},
    {"100.64.0.0", SHARED},
    {"100.100.100.200", SHARED}, /* Alibaba's metadata */
    {"100.127.255.255", SHARED},
    {"100.128.0.0", PUBLIC},
    {"126.255.255.255", PUBLIC},
    {"127.0.0.0", LOOPBACK},
    {"127.0.0.1", LOOPBACK},
    {"127.255.255.255", LOOPBACK},
    {"128.0.0.0", PUBLIC},
    {"168.63.129.15", PUBLIC},
    {"168.63.129.16", RESERVED},
    {"168.63.129.17", PUBLIC},
    {"169.253.255.255", PUBLIC},
    {"169.254.0.0", LINK_LOCAL},
    {"169.254.169.254", LINK_LOCAL},
    {"169.254.170.2", LINK_LOCAL},
    {"169.254.255.255", LINK_LOCAL},
    {"169.255.0.0", PUBLIC},
    {"172.15.255.255", PUBLIC},
    {"172.16.0.0", PRIVATE},
    {"172.31.255.255", PRIVATE},
    {"172.32.0.0", PUBLIC},
    {"191.255.255.255", PUBLIC},
    {"192.0.0.0", RESERVED},
    {"192.0.0.192", RESERVED}, /* Oracle's metadata */
    {"192.0.0.255", RESERVED},
    {"192.0.1.0", PUBLIC},
    {"192.0.2.0", DOCUMENTATION},
    {"192.0.2.255", DOCUMENTATION},
    {"192.0.3.0", PUBLIC},
    {"192.88.98.255", PUBLIC},
    {"192.88.99.0", RESERVED},
    {"192.88.99.255", RESERVED},
    {"192.88.100.0", PUBLIC},
    {"192.167.255.255", PUBLIC},
    {"192.168.0.0", PRIVATE},
    {"192.168.255.255", PRIVATE},
    {"192.169.0.0", PUBLIC},
    {"198.17.255.255", PUBLIC},
    {"198.18.0.0", BENCHMARKING},
    {"198.19.255.255", BENCHMARKING},
    {"198.20.0.0", PUBLIC},
    {"198.51.99.255", PUBLIC},
    {"198.51.100.0", DOCUMENTATION},
    {"198.51.100.255", DOCUMENTATION},
    {"198.51.101.0", PUBLIC},
    {"203.0.112.255", PUBLIC},
    {"203.0.113.0", DOCUMENTATION},
    {"203.0.113.255", DOCUMENTATION},
    {"203.0.114.0", PUBLIC},
    {"223.255.255.255", PUBLIC},
    {"224.0.0.0", MULTICAST},
    {"239.255.255.255", MULTICAST},
    {"240.0.0.0", RESERVED},
    {"255.255.255.254", RESERVED},
    {"255.255.255.255", BROADCAST},
};

static const struct row v6_rows[] = {
    {"::", UNSPECIFIED},
    {"::1", LOOPBACK},
    {"::2", RESERVED},
    {"::7f00:1", RESERVED}, /* ::127.0.0.1, as IPv4 was once put into IPv6 */
    {"::8.8.8.8", RESERVED},
    {"::127.0.0.1", RESERVED},
    {"::ffff:0:127.0.0.1", RESERVED},
    {"::fffe:8.8.8.8", RESERVED},
    {"64:ff9b::8.8.8.8", PUBLIC},
    {"64:ff9b::a9fe:a9fe", LINK_LOCAL},
    {"64:ff9b::127.0.0.1", LOOPBACK},
    {"64:ff9b::10.0.0.1", PRIVATE},
    {"64:ff9b::100.64.0.1", SHARED},
    {"64:ff9b::1:8.8.8.8", RESERVED},
    {"64:ff9b:1::8.8.8.8", RESERVED},
    {"64:ff9b:1:ffff::", RESERVED},
    {"64:ff9b:2::8.8.8.8", RESERVED},
    {"100::1", RESERVED},
    {"1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", RESERVED},
    {"2000::", PUBLIC},
    {"2001:0:808:808:0:0:f7f7:f7f7", PUBLIC},     /* Teredo: 8.8.8.8 behind 8.8.8.8 */
    {"2001:0:808:808:0:0:80ff:fffe", LOOPBACK},   /* 127.0.0.1 behind it */
    {"2001:0:808:808:0:0:5601:5601", LINK_LOCAL}, /* 169.254.169.254 behind it */
    {"2001:0:a00:1:0:0:f7f7:f7f7", PRIVATE},      /* behind 10.0.0.1 */
    {"2001::1", RESERVED},                        /* 255.255.255.254 behind 0.0.0.0 */
    {"2001:1::1", RESERVED},
    {"2001:2::1", BENCHMARKING},
    {"2001:2:0:ffff::", BENCHMARKING},
    {"2001:2:1::", RESERVED},
    {"2001:10::1", RESERVED},
    {"2001:20::1", RESERVED},
    {"2001:1ff:ffff::", RESERVED},
    {"2001:200::", PUBLIC},
    {"2001:db7:ffff::", PUBLIC},
    {"2001:db8::", DOCUMENTATION},
    {"2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", DOCUMENTATION},
    {"2001:db9::", PUBLIC},
    {"2001:4860:4860::8888", PUBLIC},
    {"2002:808:808::1", PUBLIC},
    {"2002:7f00:1::1", LOOPBACK},
    {"2002:a9fe:a9fe::", LINK_LOCAL},
    {"2002:c0a8:1::1", PRIVATE},
    {"2002:e000:1::", MULTICAST},
    {"2003::1", PUBLIC},
    {"2606:4700:4700::1111", PUBLIC},
    {"3ffe:ffff::", PUBLIC},
    {"3fff::", DOCUMENTATION},
    {"3fff:fff:ffff::", DOCUMENTATION},
    {"3fff:1000::", PUBLIC},
    {"3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", PUBLIC},
    {"4000::", RESERVED},
    {"5f00::1", RESERVED},
    {"fbff:ffff::", RESERVED},
    {"fc00::", PRIVATE},
    {"fd00:ec2::254", PRIVATE}, /* Amazon's metadata */
    {"fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", PRIVATE},
    {"fe00::", RESERVED},
    {"fe7f:ffff::", RESERVED},
    {"fe80::", LINK_LOCAL},
    {"fe80::1", LINK_LOCAL},
    {"febf:ffff::", LINK_LOCAL},
    {"fec0::1", PRIVATE},
    {"feff:ffff::", PRIVATE},
    {"ff00::", MULTICAST},
    {"ff02::1", MULTICAST},
    {"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", MULTICAST},
};

static void expect(const char *text, enum pawli_address_kind kind)
{
    struct pawli_address address;
    if (!pawli_address_parse(text, &address))
        fail_msg("%s must be an address", text);
    enum pawli_address_kind found = pawli_address_kind(&address);
    if (found != kind)
        fail_msg("%s is %s, not %s", text, pawli_address_kind_name(kind),
                 pawli_address_kind_name(found));
}

static void each_network_is_known_from_end_to_end(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(v4_rows) / sizeof(v4_rows[0]); i++)
        expect(v4_rows[i].text, v4_rows[i].kind);
    for (size_t i = 0; i < sizeof(v6_rows) / sizeof(v6_rows[0]); i++)
        expect(v6_rows[i].text, v6_rows[i].kind);
}

/* A router, or the kernel, would bring us to what is carried. */
static void what_is_carried_counts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(v4_rows) / sizeof(v4_rows[0]); i++) {
        static const char *const before[] = {"::ffff:", "0:0:0:0:0:FFFF:", "64:ff9b::"};
        char text[64];
        for (size_t k = 0; k < sizeof(before) / sizeof(before[0]); k++) {
            (void)snprintf(text, sizeof(text), "%s%s", before[k], v4_rows[i].text);
            expect(text, v4_rows[i].kind);
        }
        struct in_addr in;
        assert_int_equal(inet_pton(AF_INET, v4_rows[i].text, &in), 1);
        uint32_t number = ntohl(in.s_addr);
        (void)snprintf(text, sizeof(text), "2002:%x:%x::1", number >> 16, number & 0xffff);
        expect(text, v4_rows[i].kind);
        (void)snprintf(text, sizeof(text), "2001:0:808:808:0:0:%x:%x", ~number >> 16,
                       ~number & 0xffff);
        expect(text, v4_rows[i].kind);
        (void)snprintf(text, sizeof(text), "2001:0:%x:%x:0:0:f7f7:f7f7", number >> 16,
                       number & 0xffff);
        expect(text, v4_rows[i].kind);
    }
}

static void sockets_addresses_are_the_same(void **state)
{
    (void)state;
    struct pawli_address address;
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr = {htonl(0x7f000001)}};
    assert_true(pawli_address_from((const struct sockaddr *)&in, sizeof(in), &address));
    assert_true(address.is_v4);
    assert_int_equal(pawli_address_kind(&address), LOOPBACK);
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_scope_id = 1};
    assert_int_equal(inet_pton(AF_INET6, "fe80::1", &in6.sin6_addr), 1);
    assert_true(pawli_address_from((const struct sockaddr *)&in6, sizeof(in6), &address));
    assert_false(address.is_v4);
    assert_int_equal(pawli_address_kind(&address), LINK_LOCAL);
    assert_int_equal(inet_pton(AF_INET6, "::ffff:10.0.0.1", &in6.sin6_addr), 1);
    assert_true(pawli_address_from((const struct sockaddr *)&in6, sizeof(in6), &address));
    assert_true(address.is_v4); /* that is what gets connected */
    assert_int_equal(pawli_address_kind(&address), PRIVATE);

    assert_false(pawli_address_from((const struct sockaddr *)&in, sizeof(in) - 1, &address));
    assert_false(pawli_address_from((const struct sockaddr *)&in6, sizeof(in6) - 1, &address));
    assert_false(pawli_address_from((const struct sockaddr *)&in, 1, &address));
    struct sockaddr_un un = {.sun_family = AF_UNIX, .sun_path = "/run/docker.sock"};
    assert_false(pawli_address_from((const struct sockaddr *)&un, sizeof(un), &address));
}

static void only_usual_spellings_are_read(void **state)
{
    (void)state;
    static const char *const refused[] = {
        "",           "127.1",      "127.0.1",    "2130706433",   "0x7f000001", "0177.0.0.1",
        "127.0.0.1.", "127.0.0.01", "127.0.0.1 ", " 127.0.0.1",   "256.0.0.1",  "1.2.3.4.5",
        "[::1]",      "::1%lo",     "fe80::1%1",  "::ffff:127.1", "1::2::3",    "localhost",
        "::g",        "12345::",    "0x7f.0.0.1", "127.0.0.1/8",
    };
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        struct pawli_address address;
        if (pawli_address_parse(refused[i], &address))
            fail_msg("\"%s\" must be refused", refused[i]);
    }
}

static void kinds_have_names(void **state)
{
    (void)state;
    for (int kind = 0; kind < PAWLI_ADDRESS_KINDS; kind++) {
        assert_non_null(pawli_address_kind_name((enum pawli_address_kind)kind));
        for (int other = 0; other < kind; other++)
            assert_string_not_equal(pawli_address_kind_name((enum pawli_address_kind)kind),
                                    pawli_address_kind_name((enum pawli_address_kind)other));
    }
    assert_string_equal(pawli_address_kind_name(PAWLI_ADDRESS_KINDS), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_network_is_known_from_end_to_end),
        cmocka_unit_test(what_is_carried_counts),
        cmocka_unit_test(sockets_addresses_are_the_same),
        cmocka_unit_test(only_usual_spellings_are_read),
        cmocka_unit_test(kinds_have_names),
    };
    return cmocka_run_group_tests_name("webhook_address", tests, NULL, NULL);
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * address.c - what an internet address leads to.
 * Owns:  the tables of networks that are not public.
 * Never: resolves a name; guesses: of IPv6 only what is given out for public use is public.
 */
#include "webhook/address.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <string.h>

struct network {
    uint8_t bytes[16];
    unsigned bits;
    enum pawli_address_kind kind;
};

/* The first network that has the address decides. IANA's registry of special addresses, and what a
 * cloud puts on an address that looks public. */
static const struct network v4_networks[] = {
    {{0}, 8, PAWLI_ADDRESS_UNSPECIFIED},
    {{10}, 8, PAWLI_ADDRESS_PRIVATE},
    {{100, 64}, 10, PAWLI_ADDRESS_SHARED},
    {{127}, 8, PAWLI_ADDRESS_LOOPBACK},
    {{168, 63, 129, 16}, 32, PAWLI_ADDRESS_RESERVED}, /* Azure's host, seen from its guests */
    {{169, 254}, 16, PAWLI_ADDRESS_LINK_LOCAL},
    {{172, 16}, 12, PAWLI_ADDRESS_PRIVATE},
    {{192, 0, 0}, 24, PAWLI_ADDRESS_RESERVED}, /* protocols; Oracle's metadata is in here */
    {{192, 0, 2}, 24, PAWLI_ADDRESS_DOCUMENTATION},
    {{192, 88, 99}, 24, PAWLI_ADDRESS_RESERVED}, /* relays of 6to4, given up */
    {{192, 168}, 16, PAWLI_ADDRESS_PRIVATE},
    {{198, 18}, 15, PAWLI_ADDRESS_BENCHMARKING},
    {{198, 51, 100}, 24, PAWLI_ADDRESS_DOCUMENTATION},
    {{203, 0, 113}, 24, PAWLI_ADDRESS_DOCUMENTATION},
    {{224}, 4, PAWLI_ADDRESS_MULTICAST},
    {{255, 255, 255, 255}, 32, PAWLI_ADDRESS_BROADCAST},
    {{240}, 4, PAWLI_ADDRESS_RESERVED},
    {{0}, 0, PAWLI_ADDRESS_PUBLIC},
};

static const struct network v6_networks[] = {
    {{0}, 128, PAWLI_ADDRESS_UNSPECIFIED},
    {{[15] = 1}, 128, PAWLI_ADDRESS_LOOPBACK},
    {{0x20, 0x01, 0x00, 0x02, 0, 0}, 48, PAWLI_ADDRESS_BENCHMARKING},
    {{0x20, 0x01, 0x0d, 0xb8}, 32, PAWLI_ADDRESS_DOCUMENTATION},
    {{0x3f, 0xff, 0x00}, 20, PAWLI_ADDRESS_DOCUMENTATION},
    {{0x20, 0x01, 0x00}, 23, PAWLI_ADDRESS_RESERVED}, /* protocols; ORCHID is in here */
    {{0x20}, 3, PAWLI_ADDRESS_PUBLIC},                /* all that is given out */
    {{0xfc}, 7, PAWLI_ADDRESS_PRIVATE},
    {{0xfe, 0x80}, 10, PAWLI_ADDRESS_LINK_LOCAL},
    {{0xfe, 0xc0}, 10, PAWLI_ADDRESS_PRIVATE}, /* of a site: given up, and still routed */
    {{0xff}, 8, PAWLI_ADDRESS_MULTICAST},
    {{0}, 0, PAWLI_ADDRESS_RESERVED}, /* ::a.b.c.d and the local prefix of NAT64 among them */
};

static const uint8_t mapped_prefix[12] = {[10] = 0xff, [11] = 0xff};
static const uint8_t nat64_prefix[12] = {0x00, 0x64, 0xff, 0x9b};
static const uint8_t teredo_prefix[4] = {0x20, 0x01, 0x00, 0x00};
static const uint8_t six_to_four_prefix[2] = {0x20, 0x02};

static bool is_within(const uint8_t *bytes, const struct network *network)
{
    size_t whole = network->bits / 8;
    unsigned rest = network->bits % 8;
    if (memcmp(bytes, network->bytes, whole) != 0)
        return false;
    return rest == 0 || (bytes[whole] ^ network->bytes[whole]) >> (8 - rest) == 0;
}

static enum pawli_address_kind look_up(const uint8_t *bytes, const struct network *networks)
{
    while (!is_within(bytes, networks)) /* the last one has every address */
        networks++;
    return networks->kind;
}

static enum pawli_address_kind kind_inside(const uint8_t bytes[4])
{
    return look_up(bytes, v4_networks);
}

/* The server's address, and the client's, which is written with every bit turned. */
static enum pawli_address_kind kind_of_teredo(const uint8_t bytes[16])
{
    uint8_t client[4];
    for (size_t i = 0; i < sizeof(client); i++)
        client[i] = (uint8_t)~bytes[12 + i];
    enum pawli_address_kind kind = kind_inside(client);
    return kind != PAWLI_ADDRESS_PUBLIC ? kind : kind_inside(bytes + 4);
}

enum pawli_address_kind pawli_address_kind(const struct pawli_address *address)
{
    assert(address != NULL);

    const uint8_t *bytes = address->bytes;
    if (address->is_v4)
        return look_up(bytes, v4_networks);
    if (memcmp(bytes, nat64_prefix, sizeof(nat64_prefix)) == 0)
        return kind_inside(bytes + sizeof(nat64_prefix));
    if (memcmp(bytes, six_to_four_prefix, sizeof(six_to_four_prefix)) == 0)
        return kind_inside(bytes + sizeof(six_to_four_prefix));
    if (memcmp(bytes, teredo_prefix, sizeof(teredo_prefix)) == 0)
        return kind_of_teredo(bytes);
    return look_up(bytes, v6_networks);
}

static struct pawli_address address_of_v4(const void *bytes)
{
    struct pawli_address address = {.is_v4 = true};
    memcpy(address.bytes, bytes, 4);
    return address;
}

static struct pawli_address address_of_v6(const void *bytes)
{
    struct pawli_address address = {.is_v4 = false};
    memcpy(address.bytes, bytes, sizeof(address.bytes));
    if (memcmp(bytes, mapped_prefix, sizeof(mapped_prefix)) == 0)
        return address_of_v4(address.bytes + sizeof(mapped_prefix));
    return address;
}

bool pawli_address_from(const struct sockaddr *from, size_t from_len,
                        struct pawli_address *ret_address)
{
    assert(from != NULL && ret_address != NULL);

    if (from_len < offsetof(struct sockaddr, sa_data))
        return false;
    if (from->sa_family == AF_INET && from_len >= sizeof(struct sockaddr_in)) {
        struct sockaddr_in in;
        memcpy(&in, from, sizeof(in));
        *ret_address = address_of_v4(&in.sin_addr);
        return true;
    }
    if (from->sa_family == AF_INET6 && from_len >= sizeof(struct sockaddr_in6)) {
        struct sockaddr_in6 in6;
        memcpy(&in6, from, sizeof(in6));
        *ret_address = address_of_v6(&in6.sin6_addr);
        return true;
    }
    return false;
}

bool pawli_address_parse(const char *text, struct pawli_address *ret_address)
{
    assert(text != NULL && ret_address != NULL);

    struct in_addr in;
    struct in6_addr in6;
    if (inet_pton(AF_INET, text, &in) == 1)
        *ret_address = address_of_v4(&in);
    else if (inet_pton(AF_INET6, text, &in6) == 1)
        *ret_address = address_of_v6(&in6);
    else
        return false;
    return true;
}

const char *pawli_address_kind_name(enum pawli_address_kind kind)
{
    static const char *const names[PAWLI_ADDRESS_KINDS] = {
        [PAWLI_ADDRESS_PUBLIC] = "public",
        [PAWLI_ADDRESS_UNSPECIFIED] = "unspecified",
        [PAWLI_ADDRESS_LOOPBACK] = "loopback",
        [PAWLI_ADDRESS_PRIVATE] = "private",
        [PAWLI_ADDRESS_LINK_LOCAL] = "link-local",
        [PAWLI_ADDRESS_SHARED] = "shared",
        [PAWLI_ADDRESS_MULTICAST] = "multicast",
        [PAWLI_ADDRESS_BROADCAST] = "broadcast",
        [PAWLI_ADDRESS_DOCUMENTATION] = "documentation",
        [PAWLI_ADDRESS_BENCHMARKING] = "benchmarking",
        [PAWLI_ADDRESS_RESERVED] = "reserved",
    };
    return kind < PAWLI_ADDRESS_KINDS ? names[kind] : "?";
}

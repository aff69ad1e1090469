/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * webhook_allow_test.c - proves webhook/allow.c: only public addresses may be called, and what the
 * operator allows, and nothing beside it.
 * Owns:  the fixed corpus on which every compiler runs the fuzz target.
 * Never: connects to anything.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"
#include "fuzz/allow_fuzz.h"
#include "webhook/allow.h"

static bool may_call(const struct pawli_allow *allow, const char *host, const char *text)
{
    struct pawli_address address;
    enum pawli_address_kind kind = PAWLI_ADDRESS_KINDS;
    assert_true(pawli_address_parse(text, &address));
    bool may = pawli_allow_address(allow, host, &address, &kind);
    assert_int_equal(kind, pawli_address_kind(&address));
    return may;
}

static void add(struct pawli_allow *allow, const char *text)
{
    pawl_err err = {.text = ""};
    if (pawli_allow_add(allow, text, &err) != PAWL_OK)
        fail_msg("%s: %s", text, err.text);
}

static void only_public_addresses_are_allowed_by_default(void **state)
{
    (void)state;
    static const struct pawli_allow empty;
    const struct pawli_allow *const lists[] = {NULL, &empty};
    for (size_t i = 0; i < 2; i++) {
        assert_true(may_call(lists[i], NULL, "8.8.8.8"));
        assert_true(may_call(lists[i], "example.com", "2606:4700::1"));
        assert_false(may_call(lists[i], NULL, "127.0.0.1"));
        assert_false(may_call(lists[i], "example.com", "169.254.169.254"));
        assert_false(may_call(lists[i], "localhost", "::1"));
    }
}

static void networks_are_allowed_from_end_to_end(void **state)
{
    (void)state;
    struct pawli_allow allow = {.networks_count = 0};
    add(&allow, "10.1.0.0/17");
    add(&allow, "fd00:1234::/31");
    add(&allow, "192.168.7.7");
    add(&allow, "::1");
    static const struct {
        const char *text;
        bool is_allowed;
    } rows[] = {
        {"10.1.0.0", true},
        {"10.1.127.255", true},
        {"10.1.128.0", false},
        {"10.0.255.255", false},
        {"::ffff:10.1.2.3", true},
        {"64:ff9b::10.1.2.3", false},
        {"fd00:1234::", true},
        {"fd00:1235:ffff:ffff:ffff:ffff:ffff:ffff", true},
        {"fd00:1236::", false},
        {"fd00:1233:ffff::", false},
        {"192.168.7.7", true},
        {"192.168.7.6", false},
        {"::ffff:192.168.7.7", true},
        {"::1", true},
        {"::2", false},
        {"127.0.0.1", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (may_call(&allow, "any.example", rows[i].text) != rows[i].is_allowed)
            fail_msg("%s", rows[i].text);
}

/* IPv4 is not a part of IPv6, however it is written. */
static void all_of_one_family_is_not_the_other(void **state)
{
    (void)state;
    struct pawli_allow v6 = {.networks_count = 0};
    struct pawli_allow v4 = {.networks_count = 0};
    struct pawli_allow mapped = {.networks_count = 0};
    add(&v6, "::/0");
    add(&v4, "0.0.0.0/0");
    add(&mapped, "::ffff:10.0.0.0/104");
    assert_true(may_call(&v6, NULL, "::1"));
    assert_false(may_call(&v6, NULL, "127.0.0.1"));
    assert_false(may_call(&v6, NULL, "::ffff:127.0.0.1"));
    assert_true(may_call(&v4, NULL, "127.0.0.1"));
    assert_true(may_call(&v4, NULL, "::ffff:127.0.0.1"));
    assert_false(may_call(&v4, NULL, "::1"));
    assert_true(may_call(&mapped, NULL, "10.255.0.1"));
    assert_false(may_call(&mapped, NULL, "172.16.0.1"));
}

static void hosts_are_allowed_with_whatever_address(void **state)
{
    (void)state;
    struct pawli_allow allow = {.networks_count = 0};
    add(&allow, "Hooks.Internal");
    assert_true(may_call(&allow, "hooks.internal", "10.0.0.1"));
    assert_true(may_call(&allow, "HOOKS.internal", "127.0.0.1"));
    static const char *const others[] = {"hooks.internal.example.com",
                                         "xhooks.internal",
                                         "hooks.interna",
                                         "internal",
                                         "hooks.internal.",
                                         ""};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_false(may_call(&allow, others[i], "10.0.0.1"));
    assert_false(may_call(&allow, NULL, "10.0.0.1"));
    assert_true(pawli_allow_has_host(&allow, "hooks.INTERNAL"));
    assert_false(pawli_allow_has_host(NULL, "hooks.internal"));
    assert_false(pawli_allow_has_host(&allow, NULL));
}

static const struct {
    const char *text;
    const char *named;
} refused[] = {
    {"", "is empty"},
    {"10.0.0.0/", "no number"},
    {"10.0.0.0/x", "no number"},
    {"10.0.0.0/-1", "no number"},
    {"10.0.0.0/08", "no number"},
    {"10.0.0.0/8 ", "no number"},
    {"10.0.0.0/33", "more bits"},
    {"10.0.0.0/4294967304", "more bits"},
    {"::/129", "more bits"},
    {"/8", "no address"},
    {"10/8", "no address"},
    {"10.0.0/8", "no address"},
    {"0x0a.0.0.0/8", "no address"},
    {"[::1]/128", "no address"},
    {"localhost/8", "no address"},
    {"10.0.0.1/8", "bits set behind"},
    {"10.0.0.0/6", "bits set behind"},
    {"fd00::1/64", "bits set behind"},
    {"fd00::/7", "bits set behind"},
    {"::ffff:10.0.0.0/95", "IPv4 and more"},
    {"::ffff:10.0.0.1/104", "bits set behind"},
    {"[::1]", "no letter"},
    {"*.example.com", "no letter"},
    {"ex ample.com", "no letter"},
    {"example.com:443", "no letter"},
    {"b\xc3\xbc"
     "cher.example",
     "no letter"},
    {"-a.example", "hyphen"},
    {"a-.example", "hyphen"},
    {"a..example", "empty label"},
    {".example", "empty label"},
    {"example.", "empty label"},
    {"127.1", "ends in a number"},
    {"2130706433", "ends in a number"},
    {"0x7f000001", "ends in a number"},
    {"a.0x", "ends in a number"},
    {"a.0Xff", "ends in a number"},
    {"1.2.3.4.5", "ends in a number"},
    {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.example", "63 bytes"},
};

static const char *const accepted[] = {
    "10.0.0.0/8",
    "0.0.0.0/0",
    "255.255.255.255/32",
    "::/0",
    "fe80::/10",
    "::1",
    "a",
    "a.b",
    "xn--bcher-kva.example",
    "a_b.c",
    "1a.2b",
    "0xfg.0xg",
    "3com.com",
    "a.1b",
    "127.0.0.1",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.example",
};

static void entries_are_read_strictly(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(accepted) / sizeof(accepted[0]); i++)
        if (!allow_fuzz_one(accepted[i]))
            fail_msg("\"%s\" must be accepted", accepted[i]);
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        struct pawli_allow allow = {.networks_count = 0};
        pawl_err err = {.text = ""};
        assert_false(allow_fuzz_one(refused[i].text));
        assert_int_equal(pawli_allow_add(&allow, refused[i].text, &err), PAWL_INVALID);
        if (strstr(err.text, refused[i].named) == NULL)
            fail_msg("\"%s\" must say \"%s\"", err.text, refused[i].named);
        assert_non_null(strstr(err.text, "; allowed: a network"));
    }
    struct pawli_allow allow = {.networks_count = 0};
    pawl_err err;
    assert_int_equal(pawli_allow_add(&allow, NULL, &err), PAWL_INVALID);
    assert_non_null(strstr(err.text, "missing"));
}

static void names_and_lists_are_bounded(void **state)
{
    (void)state;
    char name[PAWLI_HOST_NAME_MAX + 2];
    for (size_t i = 0; i < sizeof(name); i++)
        name[i] = i % 50 == 49 ? '.' : 'n';
    name[PAWLI_HOST_NAME_MAX + 1] = '\0';
    assert_false(allow_fuzz_one(name));
    name[PAWLI_HOST_NAME_MAX] = '\0';
    assert_true(allow_fuzz_one(name));

    struct pawli_allow allow = {.networks_count = 0};
    pawl_err err;
    for (int i = 0; i < PAWLI_ALLOW_MAX; i++) {
        add(&allow, "10.0.0.0/8");
        add(&allow, "a.example");
    }
    assert_int_equal(pawli_allow_add(&allow, "10.0.0.0/8", &err), PAWL_FULL);
    assert_non_null(strstr(err.text, "64"));
    assert_int_equal(pawli_allow_add(&allow, "a.example", &err), PAWL_FULL);
    assert_int_equal(allow.networks_count, PAWLI_ALLOW_MAX);
    assert_int_equal(allow.hosts_count, PAWLI_ALLOW_MAX);
}

static void the_property_holds_on_the_corpus(void **state)
{
    (void)state;
    struct pawli_seeded seeded = {20260304};
    pawl_random random = pawli_seeded_as_random(&seeded);
    size_t good = 0;
    for (int i = 0; i < 20000; i++) {
        char text[80] = {0};
        size_t kind = (size_t)pawli_random_below(&random, sizeof(accepted) / sizeof(accepted[0]));
        (void)snprintf(text, sizeof(text), "%s", accepted[kind]);
        static const char likely[] = "0123456789abcdefx.:/-_";
        for (uint64_t changes = pawli_random_below(&random, 3); changes > 0; changes--)
            text[pawli_random_below(&random, strlen(text) + 1)] =
                likely[pawli_random_below(&random, sizeof(likely))];
        assert_int_equal(LLVMFuzzerTestOneInput((const uint8_t *)text, strlen(text)), 0);
        good += allow_fuzz_one(text);
    }
    assert_in_range(good, 2000, 18000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_public_addresses_are_allowed_by_default),
        cmocka_unit_test(networks_are_allowed_from_end_to_end),
        cmocka_unit_test(all_of_one_family_is_not_the_other),
        cmocka_unit_test(hosts_are_allowed_with_whatever_address),
        cmocka_unit_test(entries_are_read_strictly),
        cmocka_unit_test(names_and_lists_are_bounded),
        cmocka_unit_test(the_property_holds_on_the_corpus),
    };
    return cmocka_run_group_tests_name("webhook_allow", tests, NULL, NULL);
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * core_topic_test.c - proves core/topic.c: what a type and a pattern are, and when they match.
 * Owns:  the fixed corpus on which every compiler runs the fuzz target.
 * Never: knows an endpoint.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"
#include "core/topic.h"
#include "fuzz/topic_fuzz.h"

static const struct {
    const char *type;
    const char *named; /* what the error must say; NULL: it is good */
} types[] = {
    {"a", NULL},
    {"order.created", NULL},
    {"Order_2.item-x.created", NULL},
    {"1.2.3", NULL},
    {"", "is empty"},
    {".", "empty word"},
    {".a", "empty word"},
    {"a.", "empty word"},
    {"a..b", "empty word"},
    {"a b", "not allowed"},
    {"a,b", "not allowed"},
    {"a/b", "not allowed"},
    {"a\n", "not allowed"},
    {"\xc3\xa4", "not allowed"},
    {"*", "has a *"},
    {"a.*", "has a *"},
};

static void types_are_checked_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        pawl_err err = {.text = ""};
        pawl_code rc = pawli_topic_check(types[i].type, &err);
        if (rc != (types[i].named == NULL ? PAWL_OK : PAWL_INVALID))
            fail_msg("\"%s\": %s", types[i].type, err.text);
        if (types[i].named != NULL && (strstr(err.text, types[i].named) == NULL ||
                                       strstr(err.text, "allowed: up to 128") == NULL ||
                                       strncmp(err.text, "event_type \"", 12) != 0))
            fail_msg("\"%s\" must say \"%s\"", err.text, types[i].named);
    }
    char longest[PAWLI_TOPIC_MAX + 2];
    memset(longest, 'x', sizeof(longest));
    longest[PAWLI_TOPIC_MAX + 1] = '\0';
    pawl_err err;
    assert_int_equal(pawli_topic_check(longest, &err), PAWL_INVALID);
    assert_non_null(strstr(err.text, "too long"));
    longest[PAWLI_TOPIC_MAX] = '\0';
    assert_int_equal(pawli_topic_check(longest, &err), PAWL_OK);
    assert_int_equal(pawli_topic_check(NULL, &err), PAWL_INVALID);
}

static const struct {
    const char *list;
    const char *named;
} lists[] = {
    {"a", NULL},
    {"*", NULL},
    {"a.*", NULL},
    {"a.b.*,c,*", NULL},
    {"a,a.*", NULL},
    {"a,b,aa,ab", NULL},
    {"aa,a,ab.c,ab", NULL},
    {"", "is empty"},
    {",", "is empty"},
    {"a,", "is empty"},
    {",a", "is empty"},
    {"a,,b", "is empty"},
    {"a, b", "not allowed"},
    {"a;b", "not allowed"},
    {"a*", "has a *"},
    {"a.b*", "has a *"},
    {"a.*.b", "has a *"},
    {"*.a", "has a *"},
    {"**", "has a *"},
    {"a.**", "has a *"},
    {".*", "has an empty word"},
    {"a..*", "has an empty word"},
    {".a.*", "has an empty word"},
    {"a,a", "stands there twice"},
    {"a.*,b,a.*", "stands there twice"},
    {"*,*", "stands there twice"},
};

static void lists_are_checked_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        pawl_err err = {.text = ""};
        if (topic_fuzz_one(lists[i].list) != (lists[i].named == NULL))
            fail_msg("\"%s\"", lists[i].list);
        pawl_code rc = pawli_topics_check(lists[i].list, &err);
        if (rc != PAWL_OK && (strstr(err.text, lists[i].named) == NULL ||
                              strstr(err.text, "the last one may be *") == NULL))
            fail_msg("\"%s\" must say \"%s\"", err.text, lists[i].named);
    }
    assert_int_equal(pawli_topics_check(NULL, NULL), PAWL_INVALID);
}

static void lists_are_bounded(void **state)
{
    (void)state;
    char list[PAWLI_TOPICS_LENGTH_MAX + 2];
    pawl_err err;
    size_t len = 0;
    for (int i = 0; i < PAWLI_TOPICS_MAX; i++)
        len += (size_t)snprintf(list + len, sizeof(list) - len, "%st%d", i > 0 ? "," : "", i);
    assert_int_equal(pawli_topics_check(list, &err), PAWL_OK);
    assert_true(pawli_topics_match(list, "t99"));
    assert_false(pawli_topics_match(list, "t100"));
    (void)snprintf(list + len, sizeof(list) - len, ",more");
    assert_int_equal(pawli_topics_check(list, &err), PAWL_INVALID);
    assert_string_equal(err.text, "topics: 101 of them; allowed: 1 to 100");
    /* By length: patterns of 127 bytes and a comma, and a last one that fills it. */
    for (size_t i = 0; i < sizeof(list); i++)
        list[i] = i % 128 == 127 ? ',' : (char)('a' + i / 128 % 26);
    for (size_t i = 0; i < 32; i++)
        list[128 * i] = (char)('0' + i % 10), list[128 * i + 1] = (char)('0' + i / 10);
    list[PAWLI_TOPICS_LENGTH_MAX + 1] = '\0';
    assert_int_equal(pawli_topics_check(list, &err), PAWL_INVALID);
    assert_string_equal(err.text, "topics: too long; allowed: up to 4096 bytes");
    list[PAWLI_TOPICS_LENGTH_MAX - 1] = 'z';
    list[PAWLI_TOPICS_LENGTH_MAX] = '\0';
    assert_int_equal(pawli_topics_check(list, &err), PAWL_OK);
}

static void patterns_match_exactly_what_they_say(void **state)
{
    (void)state;
    static const struct {
        const char *list;
        const char *type;
        bool is_match;
    } rows[] = {
        {"order.created", "order.created", true},
        {"order.created", "order.create", false},
        {"order.created", "order.created.late", false},
        {"order.created", "order.createdx", false},
        {"order.created", "Order.created", false},
        {"order.*", "order.created", true},
        {"order.*", "order.item.created", true},
        {"order.*", "order", false},
        {"order.*", "orders.created", false},
        {"order.*", "order-x.created", false},
        {"order.*", "an.order.created", false},
        {"order.item.*", "order.item.created", true},
        {"order.item.*", "order.created", false},
        {"*", "a", true},
        {"*", "a.b.c", true},
        {"invoice.*,order.created", "order.created", true},
        {"invoice.*,order.created", "invoice.paid", true},
        {"invoice.*,order.created", "order.paid", false},
        {"a,b", "b", true},
        {"a,b", "a", true},
        {"ab,c", "a", false},
        {"a,bc", "c", false},
        {"a.b,c", "b", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_true(topic_fuzz_one(rows[i].list));
        if (pawli_topics_match(rows[i].list, rows[i].type) != rows[i].is_match)
            fail_msg("%s and %s", rows[i].list, rows[i].type);
    }
}

static void the_property_holds_on_the_corpus(void **state)
{
    (void)state;
    struct pawli_seeded seeded = {20260309};
    pawl_random random = pawli_seeded_as_random(&seeded);
    size_t good = 0;
    for (int i = 0; i < 50000; i++) {
        char list[24];
        size_t len = (size_t)pawli_random_below(&random, sizeof(list) - 1);
        static const char likely[] = "abcdefgh.,..*_-x";
        for (size_t k = 0; k < len; k++)
            list[k] = likely[pawli_random_below(&random, sizeof(likely) - 1)];
        if (len > 2 && pawli_random_below(&random, 3) == 0)
            memcpy(list + len - 2, ".*", 2);
        list[len] = '\0';
        assert_int_equal(LLVMFuzzerTestOneInput((const uint8_t *)list, len), 0);
        good += topic_fuzz_one(list);
    }
    assert_in_range(good, 5000, 45000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_are_checked_by_name),
        cmocka_unit_test(lists_are_checked_by_name),
        cmocka_unit_test(lists_are_bounded),
        cmocka_unit_test(patterns_match_exactly_what_they_say),
        cmocka_unit_test(the_property_holds_on_the_corpus),
    };
    return cmocka_run_group_tests_name("core_topic", tests, NULL, NULL);
}

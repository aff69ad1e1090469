/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * store_adopt_test.c - what a mapping may say, as far as that can be told without a database.
 * OL-ADOPT.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "store/adopt.h"

#include <string.h>

#define ENTRIES_MAX 16

struct fixture {
    pawl_adopt_entry entries[ENTRIES_MAX];
    pawl_adopt_options options;
};

static void fill(struct fixture *fixture)
{
    static const pawl_adopt_entry entries[] = {
        {"queue", "q"},           {"stale_after", "2m"},   {"pending.schema", "public"},
        {"pending.table", "p"},   {"pending.id", "i"},     {"pending.payload", "b"},
        {"attempts.schema", "s"}, {"attempts.table", "a"}, {"attempts.id", "i"},
        {"attempts.number", "n"}, {"attempts.state", "s"}, {"attempts.at", "t"},
    };
    pawl_adopt_options_init(&fixture->options);
    memcpy(fixture->entries, entries, sizeof(entries));
    fixture->options.mapping = fixture->entries;
    fixture->options.mapping_count = sizeof(entries) / sizeof(entries[0]);
}

static void add(struct fixture *fixture, const char *key, const char *value)
{
    fixture->entries[fixture->options.mapping_count++] = (pawl_adopt_entry){key, value};
}

static void assert_told(const struct fixture *fixture, const char *told)
{
    pawl_err err;
    int64_t ms = -1;
    assert_int_equal(pawli_adopt_check(&fixture->options, &ms, &err), PAWL_INVALID);
    if (strstr(err.text, told) == NULL)
        fail_msg("%s: %s", told, err.text);
    assert_int_equal(ms, -1);
    /* The public function refuses it before it looks for a server. */
    pawl_adopt_report report;
    assert_int_equal(pawl_adopt(&fixture->options, &report, &err), PAWL_INVALID);
}

static void a_good_mapping_passes(void **state)
{
    (void)state;
    struct fixture fixture;
    int64_t ms = 0;
    fill(&fixture);
    assert_int_equal(pawli_adopt_check(&fixture.options, &ms, NULL), PAWL_OK);
    assert_int_equal(ms, 120000);
    add(&fixture, "claimed_payload.payload", "b");
    add(&fixture, "failed_without_payload", "discard");
    assert_int_equal(pawli_adopt_check(&fixture.options, &ms, NULL), PAWL_OK);
}

static void every_needed_key_is_missed(void **state)
{
    (void)state;
    struct fixture fixture;
    fill(&fixture);
    for (size_t i = 0; i < fixture.options.mapping_count; i++) {
        struct fixture less;
        fill(&less);
        const char *key = less.entries[i].key;
        less.entries[i] = less.entries[--less.options.mapping_count];
        assert_told(&less, key);
    }
}

static void what_is_wrong_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        const char *value;
        const char *told;
    } cases[] = {
        {"queu", "x", "queu is not a key"},
        {"queue", "x", "queue stands in the mapping twice"},
        {"pending.due_at", "", "pending.due_at is empty"},
        {"pending.due_at", "a\nb", "control characters"},
        {"pending.due_at", "\xff", "pending.due_at is not UTF-8"},
        {"failed_without_payload", "keep", "refuse or discard"},
        {"claimed_payload.key", "k", "claimed_payload.schema is missing"},
        {"claimed_payload.match", "k", "claimed_payload.schema is missing"},
        {NULL, "x", "mapping[12]"},
        {"pending.due_at", NULL, "mapping[12]"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct fixture fixture;
        fill(&fixture);
        add(&fixture, cases[i].key, cases[i].value);
        assert_told(&fixture, cases[i].told);
    }
}

static void bad_options_are_refused(void **state)
{
    (void)state;
    struct fixture fixture;
    pawl_adopt_report report;
    assert_int_equal(pawl_adopt(NULL, &report, NULL), PAWL_INVALID);
    fill(&fixture);
    assert_int_equal(pawl_adopt(&fixture.options, NULL, NULL), PAWL_INVALID);
    fixture.options.lock_timeout_ms = 0;
    assert_told(&fixture, "lock_timeout_ms");
    fill(&fixture);
    fixture.options.timeout_ms = -1;
    assert_told(&fixture, "timeout_ms");
    fill(&fixture);
    fixture.options.mapping = NULL;
    assert_told(&fixture, "mapping is missing");
    fill(&fixture);
    fixture.entries[0].value = "a b";
    assert_told(&fixture, "queue");
    fill(&fixture);
    fixture.entries[1].value = "soon";
    assert_told(&fixture, "stale_after");
    pawl_adopt_options_init(NULL);
    pawl_adopt_report_clear(NULL);
    assert_non_null(pawl_adopt_keys(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_mapping_passes),
        cmocka_unit_test(every_needed_key_is_missed),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(bad_options_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

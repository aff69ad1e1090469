/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * cli_mapping_test.c - reading a mapping file: what it gives, what it refuses, and where it says
 * that the mistake is. OL-ADOPT.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"
#include "cli/mapping.h"
#include "fuzz/mapping_fuzz.h"
#include "support/alloc_fail.h"

#include <stdlib.h>
#include <string.h>

#define MUTATIONS 20000

static const char good[] = "{\"queue\": \"q\", \"stale_after\": \"2m\",\n"
                           " \"pending\": {\"schema\": \"s\", \"table\": \"t\", \"id\": \"i\",\n"
                           "  \"payload\": \"p\"},\n"
                           " \"attempts\": {\"schema\": \"s\", \"table\": \"a\", \"id\": \"i\",\n"
                           "  \"number\": \"n\", \"state\": \"x\\u00e9\\\"\", \"at\": \"c\"}}";

static const char *value_of(const struct pawli_mapping *mapping, const char *key)
{
    for (size_t i = 0; i < mapping->count; i++)
        if (strcmp(mapping->entries[i].key, key) == 0)
            return mapping->entries[i].value;
    return NULL;
}

static void a_mapping_is_read(void **state)
{
    (void)state;
    struct pawli_mapping mapping;
    pawl_err err;
    assert_true(pawli_mapping_read(good, strlen(good), &mapping, &err));
    assert_int_equal(mapping.count, 12);
    assert_string_equal(value_of(&mapping, "queue"), "q");
    assert_string_equal(value_of(&mapping, "pending.table"), "t");
    assert_string_equal(value_of(&mapping, "attempts.table"), "a");
    assert_string_equal(value_of(&mapping, "attempts.state"), "x\xc3\xa9\"");
    pawli_mapping_clear(&mapping);
    pawli_mapping_clear(&mapping);
    pawli_mapping_clear(NULL);
}

static void mistakes_are_told_with_their_line(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        const char *told;
    } cases[] = {
        {"{", "line 1"},
        {"{\"queue\": \"a\",\n\"queue\": \"b\"}", "line 2"},
        {"{\"x\": [\"queeu\"],\n\"queeu\": \"b\"}", "line 1: x is not"},
        {"{\"queue\": \"queeu\",\n\n\"queeu\" : \"b\"}", "line 3: queeu is not"},
        {"{\"queue\": \"\\\"}\", \"pending\": {\n\"state\": \"b\"}}",
         "line 2: pending.state is not"},
        {"{\"attempts\": {\"due_at\": \"b\"}}", "line 1: attempts.due_at is not"},
        {"{\"attempts\": []}", "line 1: attempts must be an object"},
        {"{\"pending\": {\"id\":\n1}}", "line 1: pending.id must be a text"},
        {"{\"queue\": \"q\"}", "stale_after is missing"},
        {"{\"\": \"q\"}", " is not a key"},
        {"{\"pending\": {\"\": \"q\"}}", "pending. is not a key"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct pawli_mapping mapping;
        pawl_err err;
        assert_false(pawli_mapping_read(cases[i].json, strlen(cases[i].json), &mapping, &err));
        if (strstr(err.text, cases[i].told) == NULL)
            fail_msg("%s: %s", cases[i].json, err.text);
    }
}

static void running_out_of_memory_leaves_nothing(void **state)
{
    (void)state;
    for (uint64_t nth = 1;; nth++) {
        struct pawli_mapping mapping;
        pawl_err err;
        alloc_fail_nth(nth);
        bool is_good = pawli_mapping_read(good, strlen(good), &mapping, &err);
        bool has_failed = alloc_fail_end();
        pawli_mapping_clear(&mapping);
        if (!has_failed)
            break;
        assert_false(is_good);
        assert_int_equal(err.code, PAWL_NO_MEMORY);
    }
}

/* The fuzz target on files that are nearly right. */
static void whatever_the_file_holds_the_property_holds(void **state)
{
    (void)state;
    struct pawli_seeded seeded = {.state = 7};
    pawl_random random = pawli_seeded_as_random(&seeded);
    size_t accepted = 0;
    for (int round = 0; round < MUTATIONS; round++) {
        uint8_t bytes[sizeof(good)];
        size_t length = sizeof(good) - 1;
        memcpy(bytes, good, length);
        for (uint64_t i = pawli_random_below(&random, 4); i > 0; i--)
            bytes[pawli_random_below(&random, length)] = (uint8_t)pawli_random_below(&random, 256);
        if (pawli_random_below(&random, 4) == 0)
            length = pawli_random_below(&random, length + 1);
        char *exact = malloc(length + 1);
        assert_non_null(exact);
        memcpy(exact, bytes, length);
        accepted += mapping_fuzz_one(exact, length);
        free(exact);
    }
    assert_true(accepted > 0 && accepted < MUTATIONS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mapping_is_read),
        cmocka_unit_test(mistakes_are_told_with_their_line),
        cmocka_unit_test(running_out_of_memory_leaves_nothing),
        cmocka_unit_test(whatever_the_file_holds_the_property_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * webhook_json_check_test.c - proves webhook/json_check.c: what is JSON and what is not.
 * Owns:  the fixed corpus on which every compiler runs the fuzz target.
 * Never: cares what a value means.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"
#include "fuzz/json_check_fuzz.h"
#include "webhook/json_check.h"

static const char *const good[] = {
    "0",
    "-0",
    "12",
    "-1.50",
    "1e5",
    "1E+5",
    "0.0e-0",
    "123456789012345678901234567890123456789012345678901234567890",
    "1e999",
    "true",
    "false",
    "null",
    " \t\r\n1 \t\r\n",
    "\"\"",
    "\"a/b\"",
    "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e4\\uD83D\\uDE00\\u0000\"",
    "\"\x7f\"",
    "\"\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\"",
    "\"\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\"",
    "[]",
    "[ ]",
    "{}",
    "{ }",
    "[1]",
    "[1,2 , 3]",
    "[[],[[]],{}]",
    "{\"a\":1}",
    "{\"a\" : 1 , \"a\":[{\"b\":null}]}",
    "{\"\":{}}",
    "[{},[],\"\",0,true]",
};

static const char *const bad[] = {
    "",
    " ",
    "tru",
    "truE",
    "nul",
    "True",
    "truetrue",
    "true false",
    "-",
    "+1",
    "01",
    "-01",
    "1.",
    ".5",
    "1.e5",
    "1e",
    "1e+",
    "0x1",
    "1 2",
    "NaN",
    "Infinity",
    "'a'",
    "\"",
    "\"a",
    "\"\\\"",
    "\"\\x\"",
    "\"\\u12\"",
    "\"\\u12g4\"",
    "\"\\ud800\"",
    "\"\\ud800\\u0041\"",
    "\"\\ud800x\"",
    "\"\\udc00\"",
    "\"\\ud800\\ud800\"",
    "\"a\nb\"",
    "\"a\tb\"",
    "\"\x01\"",
    "\"\x1f\"",
    "\"\x80\"",
    "\"\xc0\x80\"",
    "\"\xc1\xbf\"",
    "\"\xc2\"",
    "\"\xc2\x41\"",
    "\"\xe0\x9f\xbf\"",
    "\"\xed\xa0\x80\"",
    "\"\xf0\x8f\xbf\xbf\"",
    "\"\xf4\x90\x80\x80\"",
    "\"\xf5\x80\x80\x80\"",
    "\"\xe2\x82\"",
    "\"\xe2\x82",
    "\"\xf0\x90\x80",
    "[",
    "]",
    "[1",
    "[1,",
    "[1,]",
    "[,1]",
    "[1 2]",
    "[1]]",
    "[1}",
    "{",
    "}",
    "{]",
    "{\"a\"}",
    "{\"a\":}",
    "{\"a\":1,}",
    "{,}",
    "{a:1}",
    "{1:1}",
    "{\"a\":1 \"b\":2}",
    "{\"a\":1]",
    "{\"a\",1}",
    "[\"a\":1]",
    "[]{}",
    "{}x",
    "\xef\xbb\xbf{}",
    "[1,\n",
    "/**/1",
    "\"a\"\"b\"",
};

static void bytes_are_told_apart(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        if (!json_check_fuzz_one((const uint8_t *)good[i], strlen(good[i])))
            fail_msg("%s is good", good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (json_check_fuzz_one((const uint8_t *)bad[i], strlen(bad[i])))
            fail_msg("%s is bad", bad[i]);
    /* A NUL is a byte like any other, and never good. */
    assert_false(json_check_fuzz_one((const uint8_t *)"1\0", 2));
    assert_false(json_check_fuzz_one((const uint8_t *)"\0"
                                                      "1",
                                     2));
    assert_false(json_check_fuzz_one((const uint8_t *)"\"a\0b\"", 5));
    assert_false(json_check_fuzz_one((const uint8_t *)"\"\\\0\"", 4));
    assert_false(json_check_fuzz_one((const uint8_t *)"[1\0]", 4));
    assert_false(pawli_json_is_good(NULL, 0));
}

static void depth_is_bounded(void **state)
{
    (void)state;
    static char text[4 * PAWLI_JSON_DEPTH_MAX + 16];
    for (int kind = 0; kind < 3; kind++) {
        for (size_t depth = PAWLI_JSON_DEPTH_MAX; depth <= PAWLI_JSON_DEPTH_MAX + 1; depth++) {
            size_t len = 0;
            /* Arrays; empty arrays within arrays; arrays and objects by turns. */
            for (size_t i = 0; i < depth; i++) {
                text[len++] = kind == 2 && i % 2 == 1 ? '{' : '[';
                if (kind == 2 && i % 2 == 1) {
                    memcpy(text + len, "\"\":", 3);
                    len += 3;
                }
            }
            if (kind != 1)
                text[len++] = '0';
            for (size_t i = depth; i > 0; i--)
                text[len++] = kind == 2 && (i - 1) % 2 == 1 ? '}' : ']';
            assert_int_equal(json_check_fuzz_one((const uint8_t *)text, len),
                             depth == PAWLI_JSON_DEPTH_MAX);
        }
    }
}

/* Random bytes from a small alphabet, grown from what is good. */
static void the_property_holds_on_the_corpus(void **state)
{
    (void)state;
    struct pawli_seeded seeded = {20260311};
    pawl_random random = pawli_seeded_as_random(&seeded);
    size_t accepted = 0;
    for (int i = 0; i < 200000; i++) {
        char text[128] = {0};
        (void)snprintf(text, sizeof(text) - 1, "%s",
                       good[pawli_random_below(&random, sizeof(good) / sizeof(good[0]))]);
        size_t len = strlen(text);
        static const char likely[] = "[]{}:,\"\"\\u0019.eE+-tn \t\xc2\x80\xed\xf4";
        for (uint64_t changes = pawli_random_below(&random, 4); changes > 0; changes--)
            text[pawli_random_below(&random, len)] =
                likely[pawli_random_below(&random, sizeof(likely))];
        assert_int_equal(LLVMFuzzerTestOneInput((const uint8_t *)text, len), 0);
        accepted += json_check_fuzz_one((const uint8_t *)text, len);
    }
    assert_in_range(accepted, 20000, 180000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_told_apart),
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(the_property_holds_on_the_corpus),
    };
    return cmocka_run_group_tests_name("webhook_json_check", tests, NULL, NULL);
}

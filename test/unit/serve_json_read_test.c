/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * serve_json_read_test.c - proves serve/json_read.c: strict, bounded, and texts as they were meant.
 * Owns:  the fixed corpus on which every compiler runs the fuzz target.
 * Never: accepts what RFC 8259 does not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"
#include "fuzz/json_read_fuzz.h"
#include "serve/json_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void values_are_taken_or_refused(void **state)
{
    (void)state;
    static const char *const good[] = {
        "0",
        "-0",
        "1.5e-7",
        "123456789012345678901234567890",
        "\"\"",
        "\"\\ud83d\\ude00\"",
        " [ ] ",
        "{}",
        "[1,[2,{\"a\":[]}]]",
        "{\"a\":1,\"a\":2}",
        "true",
        "false",
        "null",
        "\"\xf0\x9f\x98\x80\"",
        "\"\\u0000\"",
        "\t\r\n1 ",
    };
    static const char *const bad[] = {
        "",
        " ",
        "01",
        "-",
        "1.",
        ".5",
        "1e",
        "+1",
        "0x1",
        "NaN",
        "'a'",
        "\"",
        "\"\\x\"",
        "\"\\ud800\"",
        "\"\\udc00\"",
        "\"\\ud800\\u0041\"",
        "\"\x01\"",
        "\"\n\"",
        "\"\xff\"",
        "\"\xc0\x80\"",
        "\"\xed\xa0\x80\"",
        "\"\xf4\x90\x80\x80\"",
        "\"\xe2\x82\"",
        "[",
        "[1",
        "[1,",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{",
        "{\"a\"",
        "{\"a\":",
        "{\"a\":1",
        "{\"a\":1,}",
        "{a:1}",
        "{1:2}",
        "]",
        "}",
        "1 2",
        "tru",
        "nul",
        "truex",
        "[1}",
        "{\"a\":1]",
        ("\xef\xbb\xbf"
         "1"),
        "{\"a\" 1}",
        "{,}",
        "\"\\u12g4\"",
    };
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        if (!json_read_fuzz_one(good[i], strlen(good[i])))
            fail_msg("refused: %s", good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (json_read_fuzz_one(bad[i], strlen(bad[i])))
            fail_msg("taken: %s", bad[i]);
    assert_false(json_read_fuzz_one("1\0", 2));
}

static void depth_is_bounded(void **state)
{
    (void)state;
    char text[2 * PAWLI_READER_DEPTH_MAX + 2];
    size_t most = PAWLI_READER_DEPTH_MAX;
    memset(text, '[', most);
    memset(text + most, ']', most);
    assert_true(json_read_fuzz_one(text, 2 * most));
    memset(text, '[', most + 1);
    memset(text + most + 1, ']', most + 1);
    assert_false(json_read_fuzz_one(text, 2 * most + 2));
}

static bool read_number(const char *text, int64_t *ret_number)
{
    char bytes[64];
    struct pawli_reader reader;
    size_t len = strlen(text);
    memcpy(bytes, text, len);
    pawli_reader_init(&reader, bytes, len);
    return pawli_reader_number(&reader, ret_number) && pawli_reader_end(&reader);
}

static void numbers_have_64_bits(void **state)
{
    (void)state;
    int64_t number = 7;
    assert_true(read_number("9223372036854775807", &number));
    assert_true(number == INT64_MAX);
    assert_true(read_number("-9223372036854775808", &number));
    assert_true(number == INT64_MIN);
    assert_true(read_number("0", &number));
    assert_int_equal(number, 0);
    number = 7;
    assert_false(read_number("9223372036854775808", &number));
    assert_false(read_number("-9223372036854775809", &number));
    assert_false(read_number("99999999999999999999999", &number));
    assert_false(read_number("1.0", &number));
    assert_false(read_number("1e3", &number));
    assert_int_equal(number, 7);
}

static void texts_are_decoded_where_they_stand(void **state)
{
    (void)state;
    char bytes[] = "\"a\\n\\u00e9\\ud83d\\ude00\\\\z\" \"x\\u0000y\"";
    struct pawli_reader reader;
    const char *text;
    size_t len;
    pawli_reader_init(&reader, bytes, strlen(bytes));
    assert_true(pawli_reader_text(&reader, &text, &len));
    assert_string_equal(text, "a\n\xc3\xa9\xf0\x9f\x98\x80\\z");
    assert_int_equal(len, strlen(text));
    assert_true(pawli_reader_text(&reader, &text, &len));
    assert_int_equal(len, 3);
    assert_memory_equal(text, "x\0y", 4);
    assert_true(pawli_reader_end(&reader));
}

static void what_is_wrong_is_told_with_its_place(void **state)
{
    (void)state;
    char bytes[] = "[1, secret]";
    struct pawli_reader reader;
    const char *text;
    size_t len;
    pawli_reader_init(&reader, bytes, strlen(bytes));
    assert_false(pawli_reader_value(&reader, &text, &len));
    assert_non_null(strstr(reader.why, "byte 5"));
    assert_null(strstr(reader.why, "secret"));
}

/* Documents that are nearly JSON: each differs from a good one in a few bytes. */
static void nearly_json_is_read_alike_in_both_ways(void **state)
{
    (void)state;
    static const char seed[] =
        "{\"jobs\":[{\"queue\":\"a\\u00e9\",\"n\":-1.5e3,\"x\":[true,null,{\"y\":\"\\\\\"}]}]}";
    struct pawli_seeded seeded = {11};
    pawl_random random = pawli_seeded_as_random(&seeded);
    int taken = 0;
    for (int i = 0; i < 20000; i++) {
        char text[sizeof(seed)];
        memcpy(text, seed, sizeof(seed));
        size_t len = sizeof(seed) - 1 - pawli_random_below(&random, 3);
        uint64_t changes = pawli_random_below(&random, 4);
        for (uint64_t change = 0; change < changes; change++)
            text[pawli_random_below(&random, len)] =
                seed[pawli_random_below(&random, sizeof(seed) - 1)];
        taken += json_read_fuzz_one(text, len);
    }
    assert_true(taken > 100 && taken < 19000); /* both answers are met */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_taken_or_refused),
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(numbers_have_64_bits),
        cmocka_unit_test(texts_are_decoded_where_they_stand),
        cmocka_unit_test(what_is_wrong_is_told_with_its_place),
        cmocka_unit_test(nearly_json_is_read_alike_in_both_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * cli_json_test.c - the JSON writer: structure, numbers, and every kind of byte in a text.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "cli/json.h"

/* What the document { "a": text } is written as. */
static char *written(const char *text)
{
    char *bytes = NULL;
    size_t bytes_len = 0;
    FILE *out = open_memstream(&bytes, &bytes_len);
    assert_non_null(out);
    struct pawli_json json;
    pawli_json_init(&json, out);
    pawli_json_open_object(&json, NULL);
    pawli_json_text(&json, "a", text);
    pawli_json_close(&json);
    assert_int_equal(fclose(out), 0);
    return bytes;
}

static void assert_written(const char *text, const char *string)
{
    char expected[128];
    assert_in_range(snprintf(expected, sizeof(expected), "{\n  \"a\": \"%s\"\n}\n", string), 1,
                    127);
    char *bytes = written(text);
    assert_string_equal(bytes, expected);
    free(bytes);
}

static void plain_text_stays(void **state)
{
    (void)state;
    assert_written("", "");
    assert_written("plain / text 'x'", "plain / text 'x'");
}

static void quotes_and_controls_are_escaped(void **state)
{
    (void)state;
    assert_written("a\"b\\c", "a\\\"b\\\\c");
    assert_written("\n\t\x01\x1f\x7f", "\\u000a\\u0009\\u0001\\u001f\\u007f");
}

static void utf8_stays(void **state)
{
    (void)state;
    /* The first and the last character of each length, and both neighbours of the surrogates. */
    const char *texts[] = {"\xc2\x80",         "\xdf\xbf",         "\xe0\xa0\x80", "\xef\xbf\xbf",
                           "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "\xed\x9f\xbf", "\xee\x80\x80"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_written(texts[i], texts[i]);
}

static void what_is_not_utf8_is_replaced(void **state)
{
    (void)state;
    assert_written("\x80", "\\ufffd");            /* a continuation without a beginning */
    assert_written("\xc3", "\\ufffd");            /* cut off by the end */
    assert_written("\xe2\x82", "\\ufffd\\ufffd"); /* likewise, later */
    assert_written("\xf0\x9f\x98", "\\ufffd\\ufffd\\ufffd");
    assert_written("\xc3(", "\\ufffd(");                     /* cut off by another character */
    assert_written("\xc1\xbf", "\\ufffd\\ufffd");            /* overlong in two bytes */
    assert_written("\xe0\x9f\xbf", "\\ufffd\\ufffd\\ufffd"); /* in three */
    assert_written("\xf0\x8f\xbf\xbf", "\\ufffd\\ufffd\\ufffd\\ufffd"); /* in four */
    assert_written("\xed\xa0\x80", "\\ufffd\\ufffd\\ufffd");            /* a surrogate */
    assert_written("\xf4\x90\x80\x80", "\\ufffd\\ufffd\\ufffd\\ufffd"); /* above U+10FFFF */
    assert_written("\xff", "\\ufffd");
}

static void structure_is_nested_and_separated(void **state)
{
    (void)state;
    char *bytes = NULL;
    size_t bytes_len = 0;
    FILE *out = open_memstream(&bytes, &bytes_len);
    assert_non_null(out);
    struct pawli_json json;
    pawli_json_init(&json, out);
    pawli_json_open_object(&json, NULL);
    pawli_json_open_array(&json, "list");
    pawli_json_number(&json, NULL, INT64_MIN);
    pawli_json_open_object(&json, NULL);
    pawli_json_close(&json);
    pawli_json_number(&json, NULL, INT64_MAX);
    pawli_json_close(&json);
    pawli_json_open_array(&json, "none");
    pawli_json_close(&json);
    pawli_json_number(&json, "k\"", 0);
    pawli_json_close(&json);
    assert_int_equal(fclose(out), 0);
    assert_string_equal(bytes, "{\n"
                               "  \"list\": [\n"
                               "    -9223372036854775808,\n"
                               "    {},\n"
                               "    9223372036854775807\n"
                               "  ],\n"
                               "  \"none\": [],\n"
                               "  \"k\\\"\": 0\n"
                               "}\n");
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_text_stays),
        cmocka_unit_test(quotes_and_controls_are_escaped),
        cmocka_unit_test(utf8_stays),
        cmocka_unit_test(what_is_not_utf8_is_replaced),
        cmocka_unit_test(structure_is_nested_and_separated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

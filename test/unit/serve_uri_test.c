/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * serve_uri_test.c - proves serve/uri.c: targets are taken apart as they were meant, and what is
 * malformed is refused.
 * Owns:  examples of both.
 * Never: resolves what a client wrote.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "serve/uri.h"

#include <stdio.h>
#include <string.h>

static char text[8192];
static struct pawli_uri uri;
static pawl_err err;

static pawl_code parse(const char *target)
{
    (void)snprintf(text, sizeof(text), "%s", target);
    return pawli_uri_parse(text, &uri, &err);
}

static void paths_are_taken_apart(void **state)
{
    (void)state;
    assert_int_equal(parse("/v1/queues/a%2Fb%20%C3%A9/jobs"), PAWL_OK);
    assert_int_equal(uri.segments_count, 4);
    assert_string_equal(uri.segments[0], "v1");
    assert_string_equal(uri.segments[2], "a/b \xc3\xa9");
    assert_string_equal(uri.segments[3], "jobs");
    assert_int_equal(parse("/"), PAWL_OK);
    assert_int_equal(uri.segments_count, 1);
    assert_int_equal(parse("//a/"), PAWL_OK); /* which fits no route */
    assert_int_equal(uri.segments_count, 3);
    assert_int_equal(parse("/1/2/3/4/5/6/7/8/9/10"), PAWL_OK);
    assert_int_equal(uri.segments_count, PAWLI_SEGMENTS_MAX + 1);
    assert_int_equal(parse("/a+b"), PAWL_OK);
    assert_string_equal(uri.segments[0], "a+b"); /* a blank in the query only */
}

static void queries_are_taken_apart(void **state)
{
    (void)state;
    assert_int_equal(parse("/x?a=1&b=c+d%2B%3D%26&&e&f="), PAWL_OK);
    assert_int_equal(uri.params_count, 4);
    assert_string_equal(pawli_uri_param(&uri, "a"), "1");
    assert_string_equal(pawli_uri_param(&uri, "b"), "c d+=&");
    assert_string_equal(pawli_uri_param(&uri, "e"), "");
    assert_string_equal(pawli_uri_param(&uri, "f"), "");
    assert_null(pawli_uri_param(&uri, "g"));
    assert_int_equal(parse("/x?a=1=2?3"), PAWL_OK);
    assert_string_equal(pawli_uri_param(&uri, "a"), "1=2?3");
}

static void what_is_malformed_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *target;
        const char *said;
    } cases[] = {
        {"", "slash"},
        {"v1", "slash"},
        {"*", "slash"},
        {"http://a/b", "slash"},
        {"/%", "two hexadecimal"},
        {"/%4", "two hexadecimal"},
        {"/%zz", "two hexadecimal"},
        {"/%00", "NUL"},
        {"/x?a=%00", "NUL"},
        {"/x?%00=a", "NUL"},
        {"/%ff", "UTF-8"},
        {"/%c0%80", "UTF-8"},
        {"/x?a=%ed%a0%80", "UTF-8"},
        {"/%0a", "control"},
        {"/%7f", "control"},
        {"/a b", "percent-encoded"},
        {"/a#b", "percent-encoded"},
        {"/\xc3\xa9", "percent-encoded"},
        {"/a\\b", "percent-encoded"},
        {"/a\x01", "percent-encoded"},
        {"/x?a=1&a=2", "a is there twice"},
        {"/x?a=1&%61=2", "a is there twice"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        err = (pawl_err){.text = ""};
        if (parse(cases[i].target) != PAWL_INVALID || strstr(err.text, cases[i].said) == NULL)
            fail_msg("%s: %s", cases[i].target, err.text);
    }
    char many[1024] = "/x?";
    for (int i = 0; i <= PAWLI_PARAMS_MAX; i++)
        (void)snprintf(many + strlen(many), sizeof(many) - strlen(many), "p%d=1&", i);
    assert_int_equal(parse(many), PAWL_INVALID);
    assert_non_null(strstr(err.text, "more than"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_are_taken_apart),
        cmocka_unit_test(queries_are_taken_apart),
        cmocka_unit_test(what_is_malformed_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * core_headers_test.c - proves core/headers.c: the form of headers, their bounds, reading and
 * adding them.
 * Owns:  the fixed corpus on which every compiler runs the fuzz target.
 * Never: accepts a text because HTTP would.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"
#include "core/headers.h"
#include "fuzz/headers_fuzz.h"

#include <stdio.h>
#include <string.h>

#define SECRET "swordfish"

static const char *const accepted[] = {
    "",
    "a: 1\n",
    "A: 1\na-: 2\n",
    "empty: \n",
    "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\n",
    "!#$%&'*+-.^_`|~09azAZ: x\n",
    "colons: a: b: c\n",
    "utf-8: \xc3\xa4\xe2\x82\xac\xf0\x9f\x94\xa9\n",
    "inner: two  blanks\n",
    "nbsp: \xc2\xa0x\xc2\xa0\n", /* no blank: a character like others */
};

/* NFR-003: what is wrong is told by name or place, and nothing of a value. */
static const struct {
    const char *text;
    const char *named;
} refused[] = {
    {SECRET, "header 1"},
    {SECRET "\n", "header 1"},
    {": " SECRET "\n", "header 1"},
    {"a: 1\n\nb: 2\n", "header 2"},
    {"\n", "header 1"},
    {"a: " SECRET, "header 1"},
    {"a:" SECRET "\n", "header 1"},
    {"a : " SECRET "\n", "header 1"},
    {" a: " SECRET "\n", "header 1"},
    {"a b: " SECRET "\n", "header 1"},
    {"a\xc3\xa4: " SECRET "\n", "header 1"},
    {"a(: " SECRET "\n", "header 1"},
    {"a:  " SECRET "\n", "\"a\""},
    {"a: " SECRET " \n", "\"a\""},
    {"a:  \n", "\"a\""},
    {"a: " SECRET "\r\n", "\"a\""},
    {"a: " SECRET "\tx\n", "\"a\""},
    {"a: " SECRET "\x7f\n", "\"a\""},
    {"a: " SECRET "\xc2\x85\n", "\"a\""},
    {"a: " SECRET "\xe4\n", "\"a\""},
    {"a: 1\nb: " SECRET "\nA: " SECRET "\n", "\"A\" is there twice"},
};

static void right_texts_are_accepted(void **state)
{
    (void)state;
    assert_int_equal(pawli_headers_check(NULL, NULL), PAWL_OK);
    for (size_t i = 0; i < sizeof(accepted) / sizeof(accepted[0]); i++)
        if (!headers_fuzz_one(accepted[i]))
            fail_msg("refused: %s", accepted[i]);
}

static void wrong_texts_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        pawl_err err = {.text = ""};
        assert_false(headers_fuzz_one(refused[i].text));
        assert_int_equal(pawli_headers_check(refused[i].text, &err), PAWL_INVALID);
        if (strstr(err.text, refused[i].named) == NULL || strstr(err.text, SECRET) != NULL)
            fail_msg("of %s: %s", refused[i].text, err.text);
    }
}

/* ---- bounds */

static char text[PAWL_HEADERS_LEN_MAX + 8192];
static char name[PAWL_HEADER_NAME_MAX + 2];
static char value[PAWL_HEADER_VALUE_MAX + 2];

static const char *filled(char *to, size_t size, char with, size_t len)
{
    memset(to, 0, size);
    memset(to, with, len);
    return to;
}

static pawl_code check_one(size_t name_len, size_t value_len, pawl_err *err)
{
    (void)snprintf(text, sizeof(text), "%s: %s\n", filled(name, sizeof(name), 'n', name_len),
                   filled(value, sizeof(value), 'v', value_len));
    (void)headers_fuzz_one(text);
    return pawli_headers_check(text, err);
}

static void bounds_are_exact(void **state)
{
    (void)state;
    pawl_err err;
    assert_int_equal(check_one(1, 0, &err), PAWL_OK);
    assert_int_equal(check_one(PAWL_HEADER_NAME_MAX, PAWL_HEADER_VALUE_MAX, &err), PAWL_OK);
    assert_int_equal(check_one(PAWL_HEADER_NAME_MAX + 1, 1, &err), PAWL_INVALID);
    assert_non_null(strstr(err.text, "128"));
    assert_int_equal(check_one(1, PAWL_HEADER_VALUE_MAX + 1, &err), PAWL_INVALID);
    assert_non_null(strstr(err.text, "4096"));
}

static void there_are_64_at_most(void **state)
{
    (void)state;
    pawl_err err;
    text[0] = '\0';
    size_t len = 0;
    for (int i = 0; i < PAWL_HEADERS_MAX; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "n%d: v\n", i);
    assert_int_equal(pawli_headers_check(text, &err), PAWL_OK);
    assert_int_equal(pawl_headers_add(text, sizeof(text), "more", "v", &err), PAWL_INVALID);
    assert_non_null(strstr(err.text, "64"));
    (void)snprintf(text + len, sizeof(text) - len, "more: v\n");
    assert_int_equal(pawli_headers_check(text, &err), PAWL_INVALID);
    assert_non_null(strstr(err.text, "64"));
}

static void all_of_them_have_16_kib_at_most(void **state)
{
    (void)state;
    pawl_err err;
    text[0] = '\0';
    for (char n = 'a'; n < 'd'; n++)
        assert_int_equal(pawl_headers_add(text, sizeof(text), (char[]){n, '\0'},
                                          filled(value, sizeof(value), 'v', PAWL_HEADER_VALUE_MAX),
                                          NULL),
                         PAWL_OK);
    size_t left = PAWL_HEADERS_LEN_MAX - strlen(text) - strlen("d: \n");
    assert_int_equal(pawl_headers_add(text, sizeof(text), "d",
                                      filled(value, sizeof(value), 'v', left + 1), &err),
                     PAWL_INVALID);
    assert_non_null(strstr(err.text, "16384"));
    assert_int_equal(
        pawl_headers_add(text, sizeof(text), "d", filled(value, sizeof(value), 'v', left), &err),
        PAWL_OK);
    assert_int_equal(strlen(text), PAWL_HEADERS_LEN_MAX);
    assert_int_equal(pawli_headers_check(text, &err), PAWL_OK);
    assert_true(headers_fuzz_one(text));
    memmove(text + 4, text + 3, strlen(text) - 2); /* one byte more in the first value */
    text[3] = 'v';
    assert_int_equal(pawli_headers_check(text, &err), PAWL_INVALID);
    assert_non_null(strstr(err.text, "16384"));
}

/* ---- reading and adding */

static void values_are_found_by_any_case(void **state)
{
    (void)state;
    static const char headers[] = "Tenant: 17\nx-tenant: 18\nempty: \n";
    size_t len = 99;
    assert_ptr_equal(pawl_headers_find(headers, "tENANT", &len), headers + 8);
    assert_int_equal(len, 2);
    assert_ptr_equal(pawl_headers_find(headers, "X-Tenant", &len), headers + 21);
    assert_non_null(pawl_headers_find(headers, "empty", &len));
    assert_int_equal(len, 0);
    assert_null(pawl_headers_find(headers, "tenan", &len));
    assert_null(pawl_headers_find(headers, "tenants", &len));
    assert_null(pawl_headers_find(headers, "", &len));
    assert_null(pawl_headers_find(NULL, "tenant", &len));
    assert_null(pawl_headers_find(headers, NULL, &len));
    assert_null(pawl_headers_find(headers, "tenant", NULL));
}

static void going_through_them_ends(void **state)
{
    (void)state;
    pawl_header header;
    const char *at = "a: 1\nb: 2\nbroken";
    assert_true(pawl_headers_next(&at, &header));
    assert_memory_equal(header.name, "a", header.name_len);
    assert_true(pawl_headers_next(&at, &header));
    assert_memory_equal(header.value, "2", header.value_len);
    assert_false(pawl_headers_next(&at, &header));
    assert_string_equal(at, "broken");
    at = ": nameless\n";
    assert_false(pawl_headers_next(&at, &header));
    at = NULL;
    assert_false(pawl_headers_next(&at, &header));
    assert_false(pawl_headers_next(NULL, &header));
}

/* A value from elsewhere cannot bring further headers with it. */
static void nothing_is_smuggled_in(void **state)
{
    (void)state;
    char headers[64] = "a: 1\n";
    pawl_err err;
    assert_int_equal(pawl_headers_add(headers, sizeof(headers), "b", "2\nadmin: yes", &err),
                     PAWL_INVALID);
    assert_non_null(strstr(err.text, "\"b\""));
    assert_int_equal(pawl_headers_add(headers, sizeof(headers), "b: 2\nadmin", "yes", &err),
                     PAWL_INVALID);
    assert_int_equal(pawl_headers_add(headers, sizeof(headers), "A", "2", &err), PAWL_INVALID);
    assert_int_equal(pawl_headers_add(headers, sizeof(headers), "", "2", &err), PAWL_INVALID);
    assert_int_equal(pawl_headers_add(NULL, 5, "b", "2", &err), PAWL_INVALID);
    assert_int_equal(pawl_headers_add(headers, sizeof(headers), NULL, "2", &err), PAWL_INVALID);
    assert_int_equal(pawl_headers_add(headers, sizeof(headers), "b", NULL, &err), PAWL_INVALID);
    assert_int_equal(pawl_headers_add(headers, 5, "b", "2", &err), PAWL_INVALID);
    assert_string_equal(headers, "a: 1\n");
}

static void room_is_not_exceeded(void **state)
{
    (void)state;
    char headers[11] = "a: 1\n";
    pawl_err err;
    assert_int_equal(pawl_headers_add(headers, 10, "b", "2", &err), PAWL_FULL);
    assert_string_equal(headers, "a: 1\n");
    assert_int_equal(pawl_headers_add(headers, 11, "b", "2", &err), PAWL_OK);
    assert_string_equal(headers, "a: 1\nb: 2\n");
}

/* ---- the fuzz target's property on a corpus of every compiler's */

static void random_texts_hold_the_property(void **state)
{
    (void)state;
    static const char *const pieces[] = {"a",  "B",    "x-", ": ", ":",     " ",    "\n",
                                         "\n", "1",    "v",  "b",  "\xc3",  "\xa4", "\t",
                                         ": ", "name", ": ", "\n", "A: 1\n"};
    struct pawli_seeded seeded = {17};
    pawl_random random = pawli_seeded_as_random(&seeded);
    size_t good = 0;
    for (int i = 0; i < 20000; i++) {
        char drawn[128] = "";
        size_t count = (size_t)pawli_random_below(&random, 14);
        for (size_t k = 0; k < count; k++)
            (void)strncat(drawn,
                          pieces[pawli_random_below(&random, sizeof(pieces) / sizeof(pieces[0]))],
                          sizeof(drawn) - strlen(drawn) - 1);
        good += headers_fuzz_one(drawn);
    }
    assert_true(good > 1000 && good < 19000); /* both answers were met */
    static const uint8_t cut[] = {'a', ':', ' ', 0, '\n'};
    assert_int_equal(LLVMFuzzerTestOneInput(cut, sizeof(cut)), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_texts_are_accepted),
        cmocka_unit_test(wrong_texts_are_refused),
        cmocka_unit_test(bounds_are_exact),
        cmocka_unit_test(there_are_64_at_most),
        cmocka_unit_test(all_of_them_have_16_kib_at_most),
        cmocka_unit_test(values_are_found_by_any_case),
        cmocka_unit_test(going_through_them_ends),
        cmocka_unit_test(nothing_is_smuggled_in),
        cmocka_unit_test(room_is_not_exceeded),
        cmocka_unit_test(random_texts_hold_the_property),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

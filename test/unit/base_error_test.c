/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * base_error_test.c - proves base/error.c: every code has a name and a text, and errors are made
 * whole.
 * Owns:  a second list of the codes and their numbers, which are part of the ABI.
 * Never: tests what any other module says in an error.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/error.h"

static const struct {
    int number;
    const char *name;
} codes[] = {
    {0, "OK"},
    {1, "INVALID"},
    {2, "NO_MEMORY"},
    {3, "DOWN"},
    {4, "UNKNOWN"},
    {5, "FULL"},
    {6, "BROKEN"},
    {20, "STALE"},
    {21, "GONE"},
    {22, "EXISTS"},
    {23, "DUPLICATE"},
    {24, "CANCELLED"},
    {25, "TIMEOUT"},
    {40, "NOT_DUE"},
    {41, "MISSED"},
    {42, "LEASED"},
    {43, "NOT_LEASED"},
    {44, "NOT_EXPIRED"},
    {45, "ALREADY_SUCCEEDED"},
    {46, "ALREADY_FAILED"},
    {47, "NOT_FAILED"},
    {48, "NOT_MISSED"},
    {60, "WL_ORDER"},
    {61, "WL_NO_LEASE"},
    {62, "WL_TOKEN"},
    {63, "WL_BACKLOG_FULL"},
    {64, "WL_EXPIRED"},
    {80, "HAS_JOBS"},
};
#define CODES_COUNT (sizeof(codes) / sizeof(codes[0]))

/* RES-9: each hard bug is its own code, with a name and a text of its own. */
static void every_code_has_its_name_and_text(void **state)
{
    (void)state;
    for (size_t i = 0; i < CODES_COUNT; i++) {
        pawl_code code = (pawl_code)codes[i].number;
        assert_string_equal(pawl_code_name(code), codes[i].name);
        assert_string_not_equal(pawl_code_text(code), "unknown code");
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(pawl_code_text(code),
                                    pawl_code_text((pawl_code)codes[j].number));
    }
}

static void no_other_number_is_a_code(void **state)
{
    (void)state;
    for (int number = -3; number < 300; number++) {
        bool is_code = false;
        for (size_t i = 0; i < CODES_COUNT; i++)
            is_code = is_code || codes[i].number == number;
        assert_int_equal(strcmp(pawl_code_name((pawl_code)number), "?") != 0, is_code);
        assert_int_equal(strcmp(pawl_code_text((pawl_code)number), "unknown code") != 0, is_code);
    }
}

static void an_error_carries_code_and_text(void **state)
{
    (void)state;
    pawl_err err;
    memset(&err, 'x', sizeof(err));
    assert_int_equal(pawli_fail(&err, PAWL_INVALID, "%s is %d", "lease_ms", 7), PAWL_INVALID);
    assert_int_equal(err.code, PAWL_INVALID);
    assert_string_equal(err.text, "lease_ms is 7");

    assert_int_equal(pawli_fail_plain(&err, PAWL_STALE), PAWL_STALE);
    assert_int_equal(err.code, PAWL_STALE);
    assert_string_equal(err.text, pawl_code_text(PAWL_STALE));
}

static void nobody_needs_to_listen(void **state)
{
    (void)state;
    assert_int_equal(pawli_fail(NULL, PAWL_DOWN, "%s", "away"), PAWL_DOWN);
    assert_int_equal(pawli_fail_plain(NULL, PAWL_GONE), PAWL_GONE);
}

static void a_long_text_is_cut_and_terminated(void **state)
{
    (void)state;
    struct {
        pawl_err err;
        char behind[8];
    } box;
    memset(&box, 'x', sizeof(box));
    char text[2 * PAWL_ERR_TEXT_MAX];
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    assert_int_equal(pawli_fail(&box.err, PAWL_FULL, "%s", text), PAWL_FULL);
    assert_int_equal(strlen(box.err.text), PAWL_ERR_TEXT_MAX - 1);
    assert_memory_equal(box.behind, "xxxxxxxx", sizeof(box.behind));
}

static void the_version_is_the_project_s(void **state)
{
    (void)state;
    assert_string_equal(pawl_version(), PAWL_VERSION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_has_its_name_and_text),
        cmocka_unit_test(no_other_number_is_a_code),
        cmocka_unit_test(an_error_carries_code_and_text),
        cmocka_unit_test(nobody_needs_to_listen),
        cmocka_unit_test(a_long_text_is_cut_and_terminated),
        cmocka_unit_test(the_version_is_the_project_s),
    };
    return cmocka_run_group_tests_name("base_error", tests, NULL, NULL);
}

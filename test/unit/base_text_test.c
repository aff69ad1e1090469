/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * base_text_test.c - proves base/text.c: copies are cut, terminated, and never read too far.
 * Owns:  nothing.
 * Never: tests any text of the domain.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/text.h"

static void copies_are_cut_and_terminated(void **state)
{
    (void)state;
    static const struct {
        size_t size;
        const char *from;
        const char *to;
        bool is_whole;
    } cases[] = {
        {8, "lease", "lease", true}, {6, "lease", "lease", true}, {5, "lease", "leas", false},
        {1, "lease", "", false},     {1, "", "", true},           {4, NULL, "", true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char to[9];
        memset(to, 'x', sizeof(to));
        assert_int_equal(pawli_text_copy(to, cases[i].size, cases[i].from), cases[i].is_whole);
        assert_string_equal(to, cases[i].to);
        for (size_t j = cases[i].size; j < sizeof(to); j++)
            assert_int_equal(to[j], 'x');
    }
}

/* Neither needs a NUL where it has seen enough: one byte beyond the bound is the last it reads. */
static void nothing_is_read_beyond_the_bound(void **state)
{
    (void)state;
    char *text = malloc(4); /* a block of its own, so that a sanitizer sees a read behind it */
    assert_non_null(text);
    memcpy(text, "abcd", 4);
    assert_int_equal(pawli_text_length(text, 3), 4);
    char to[4];
    assert_false(pawli_text_copy(to, sizeof(to), text));
    assert_string_equal(to, "abc");
    free(text);
}

static void lengths_stop_above_the_bound(void **state)
{
    (void)state;
    assert_int_equal(pawli_text_length("", 0), 0);
    assert_int_equal(pawli_text_length("a", 0), 1);
    assert_int_equal(pawli_text_length("abc", 0), 1);
    assert_int_equal(pawli_text_length("abc", 2), 3);
    assert_int_equal(pawli_text_length("abc", 3), 3);
    assert_int_equal(pawli_text_length("abc", 4), 3);
    assert_int_equal(pawli_text_length("abc", SIZE_MAX - 1), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_are_cut_and_terminated),
        cmocka_unit_test(nothing_is_read_beyond_the_bound),
        cmocka_unit_test(lengths_stop_above_the_bound),
    };
    return cmocka_run_group_tests_name("base_text", tests, NULL, NULL);
}

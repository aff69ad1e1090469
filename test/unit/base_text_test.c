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

/* Whether exactly the first `good` bytes are good, nothing being allowed but characters. */
static void assert_good(const char *text, size_t good)
{
    assert_int_equal(pawli_text_good(text, ""), good);
}

static void characters_are_known_at_their_edges(void **state)
{
    (void)state;
    assert_good("", 0);
    assert_good(" ~", 2);
    assert_good("\xc2\xa0\xdf\xbf", 4);                                  /* U+00A0, U+07FF */
    assert_good("\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf", 12); /* U+0800 to U+FFFF */
    assert_good("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", 8);                  /* U+10000, U+10FFFF */
    assert_good("Stra\xc3\x9f"
                "e \xe2\x82\xac \xf0\x9f\x98\x80",
                16);
}

static void what_is_no_character_is_bad(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "\x80",
        "\xbf", /* goes on, without a beginning */
        "\xc0\x80",
        "\xc1\xbf", /* overlong, of two */
        "\xe0\x80\x80",
        "\xe0\x9f\xbf", /* of three */
        "\xf0\x80\x80\x80",
        "\xf0\x8f\xbf\xbf", /* of four */
        "\xed\xa0\x80",
        "\xed\xaf\xbf",
        "\xed\xbf\xbf", /* surrogates */
        "\xf4\x90\x80\x80",
        "\xf7\xbf\xbf\xbf", /* above U+10FFFF */
        "\xf8\x88\x80\x80\x80",
        "\xfc\x84\x80\x80\x80\x80",
        "\xfe",
        "\xff",
        "\xc2",
        "\xe2\x82",
        "\xf0\x9f\x98",
        "\xf0", /* cut by the end */
        "\xc2"
        "a",
        "\xe2\x82"
        "a",
        "\xf0\x9f\x98"
        "a", /* cut by another */
        "\xe2\xc2\xa0",
        "\xc2\xc2",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char text[16];
        assert_good(bad[i], 0);
        assert_true(pawli_text_copy(text, sizeof(text), "\xc3\xa4z"));
        assert_true(pawli_text_copy(text + 3, sizeof(text) - 3, bad[i]));
        assert_good(text, 3);
    }
}

static void control_characters_are_bad_unless_allowed(void **state)
{
    (void)state;
    for (int c = 1; c < 0x20; c++) {
        char text[] = {'a', (char)c, 'b', '\0'};
        bool is_allowed = c == '\t' || c == '\n';
        assert_int_equal(pawli_text_good(text, ""), 1);
        assert_int_equal(pawli_text_good(text, "\t\n"), is_allowed ? 3 : 1);
    }
    assert_good("a\x7f", 1);
    assert_good("\xc2\x80", 0);
    assert_good("\xc2\x85", 0);
    assert_good("\xc2\x9f", 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_are_cut_and_terminated),
        cmocka_unit_test(nothing_is_read_beyond_the_bound),
        cmocka_unit_test(lengths_stop_above_the_bound),
        cmocka_unit_test(characters_are_known_at_their_edges),
        cmocka_unit_test(what_is_no_character_is_bad),
        cmocka_unit_test(control_characters_are_bad_unless_allowed),
    };
    return cmocka_run_group_tests_name("base_text", tests, NULL, NULL);
}

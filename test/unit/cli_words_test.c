/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * cli_words_test.c - guessing what a misspelt word was meant to be. The texts on
 * standard error are checked by e2e/cli_test.py.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "cli/words.h"

static const char *const names[] = {"demo", "help", "version"};

static const char *nearest(const char *word)
{
    return pawli_cli_nearest(word, names, sizeof(names) / sizeof(names[0]));
}

static void near_words_are_guessed(void **state)
{
    (void)state;
    assert_string_equal(nearest("demo"), "demo");
    assert_string_equal(nearest("dem"), "demo");
    assert_string_equal(nearest("ver"), "version"); /* cut short: nearer than it looks */
    assert_string_equal(nearest("demos"), "demo");
    assert_string_equal(nearest("dmeo"), "demo");
    assert_string_equal(nearest("Help"), "help");
    assert_string_equal(nearest("verzion"), "version");
}

static void far_words_are_not(void **state)
{
    (void)state;
    assert_null(nearest(""));
    assert_null(nearest("serve"));
    assert_null(nearest("xxxx"));
    assert_null(nearest("a word that is longer than every word we know"));
    assert_null(pawli_cli_nearest("demo", NULL, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(near_words_are_guessed),
        cmocka_unit_test(far_words_are_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

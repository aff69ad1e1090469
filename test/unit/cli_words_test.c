/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * cli_words_test.c - reading flags, and guessing what a misspelt word was meant to be. The texts on
 * standard error are checked by e2e/cli_test.py.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "cli/command.h"

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

static void flags_are_set(void **state)
{
    (void)state;
    bool is_json = false, is_quiet = false;
    const struct pawli_cli_flag flags[] = {{"--json", &is_json}, {"--quiet", &is_quiet}};
    char json[] = "--json", *none[] = {NULL}, *one[] = {json, NULL}, *twice[] = {json, json, NULL};
    assert_true(pawli_cli_read_flags("demo", none, flags, 2));
    assert_false(is_json);
    assert_true(pawli_cli_read_flags("demo", one, flags, 2));
    assert_true(is_json);
    assert_false(is_quiet);
    assert_true(pawli_cli_read_flags("demo", twice, flags, 2));
    assert_true(is_json);
}

static void other_words_are_refused(void **state)
{
    (void)state;
    bool is_json = false;
    const struct pawli_cli_flag flags[] = {{"--json", &is_json}};
    char longer[] = "--jsonx", shorter[] = "--jso", plain[] = "json", empty[] = "";
    char *words[] = {longer, shorter, plain, empty};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        char *line[] = {words[i], NULL};
        assert_false(pawli_cli_read_flags("demo", line, flags, 1));
    }
    assert_false(is_json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(near_words_are_guessed),
        cmocka_unit_test(far_words_are_not),
        cmocka_unit_test(flags_are_set),
        cmocka_unit_test(other_words_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

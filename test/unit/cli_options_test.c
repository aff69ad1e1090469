/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * cli_options_test.c - reading words by a command's table: what is taken, and what is refused.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "cli/options.h"

#include "pawl/pawl.h"

#include <string.h>

#define WORDS_MAX 8

static int run_nothing(const struct pawli_line *line)
{
    (void)line; /* it is only read */
    return 0;
}

static const char *const colours[] = {"red", "green", "blue", NULL};
static const struct pawli_option options[] = {
    {"--json", PAWLI_FLAG, NULL, "about", 0, 0, NULL},
    {"--name", PAWLI_TEXT, "NAME", "about", 0, 0, NULL},
    {"--count", PAWLI_NUMBER, "N", "about", 2, 9, NULL},
    {"--delay", PAWLI_DURATION, "D", "about", 0, 0, NULL},
    {"--colour", PAWLI_CHOICE, "C", "about", 0, 0, colours},
    {"--colours", PAWLI_CHOICES, "C,...", "about", 0, 0, colours},
    {"--quiet", PAWLI_FLAG | PAWLI_SETTING, NULL, "about", 0, 0, NULL},
    {0},
};
static const struct pawli_command paint = {
    .name = "paint",
    .arguments = "WALL [ROOM]",
    .arguments_min = 1,
    .arguments_max = 2,
    .options = options,
    .run = run_nothing,
};
static const struct pawli_command program = {
    .name = "program",
    .arguments = "QUEUE...",
    .arguments_max = 5,
    .is_program_taken = true,
    .options = options,
    .run = run_nothing,
};
static const struct pawli_command bare = {.name = "bare", .run = run_nothing};
static const struct pawli_command *const actions[] = {&paint, &bare, NULL};
static const struct pawli_command house = {.name = "house", .actions = actions, .usual = &paint};
static const struct pawli_command shed = {.name = "shed", .actions = actions};

const struct pawli_command *const pawli_commands[] = {&bare, &house, &paint, NULL};

/* The words of a case, as main has them: they can be moved, and end with NULL. */
struct words {
    char *list[WORDS_MAX + 1];
};

static struct words split(const char *const *given)
{
    struct words words = {{NULL}};
    for (size_t i = 0; given[i] != NULL; i++)
        words.list[i] = (char *)(uintptr_t)given[i]; /* moved, never written to */
    return words;
}

static bool read_by(const struct pawli_command *command, const char *const *given,
                    struct words *words, struct pawli_line *line)
{
    *words = split(given);
    return pawli_line_read(command, words->list, line);
}

#define GIVEN(...) ((const char *const[]){__VA_ARGS__, NULL})

static void options_stand_anywhere(void **state)
{
    (void)state;
    struct pawli_line line;
    struct words words;
    assert_true(read_by(&paint, GIVEN("--name", "x", "east", "--json", "kitchen", "--count=3"),
                        &words, &line));
    assert_int_equal(line.arguments_count, 2);
    assert_string_equal(line.arguments[0], "east");
    assert_string_equal(line.arguments[1], "kitchen");
    assert_true(pawli_line_has(&line, "--json"));
    assert_string_equal(pawli_line_text(&line, "--name"), "x");
    assert_int_equal(pawli_line_number(&line, "--count", 7), 3);
    assert_int_equal(pawli_line_number(&line, "--delay", 7), 7);
    assert_null(pawli_line_text(&line, "--colour"));
    assert_true(read_by(&paint, GIVEN("--json", "east", "--json"), &words, &line));
}

static void values_are_read_by_their_kind(void **state)
{
    (void)state;
    struct pawli_line line;
    struct words words;
    assert_true(read_by(&paint, GIVEN("e", "--delay", "5m", "--colour", "green"), &words, &line));
    assert_int_equal(pawli_line_number(&line, "--delay", 0), 300000);
    assert_int_equal(pawli_line_number(&line, "--colour", 0), 1 << 1);
    assert_true(read_by(&paint, GIVEN("e", "--colours", "blue,red"), &words, &line));
    assert_int_equal(pawli_line_number(&line, "--colours", 0), 1 << 2 | 1 << 0);
    assert_true(read_by(&paint, GIVEN("e", "--name=--json", "--count", "9"), &words, &line));
    assert_string_equal(pawli_line_text(&line, "--name"), "--json");
    assert_true(read_by(&paint, GIVEN("-", "--name", "-", "--name2"), &words, &line) == false);
    assert_true(read_by(&paint, GIVEN("-", "--name", "-"), &words, &line));
    assert_string_equal(line.arguments[0], "-");
    assert_string_equal(pawli_line_text(&line, "--name"), "-");
}

/* Off is not the same as not said: nobody else is asked then. */
static void settings_can_be_switched_off(void **state)
{
    (void)state;
    struct pawli_line line;
    struct words words;
    size_t quiet = 6;
    assert_true(read_by(&paint, GIVEN("e", "--quiet=no"), &words, &line));
    assert_false(pawli_line_has(&line, "--quiet"));
    assert_int_equal(line.origins[quiet], PAWLI_FROM_LINE);
    assert_true(read_by(&paint, GIVEN("e", "--quiet=yes"), &words, &line));
    assert_true(pawli_line_has(&line, "--quiet"));
    assert_true(read_by(&paint, GIVEN("e"), &words, &line));
    assert_int_equal(line.origins[quiet], PAWLI_FROM_NOBODY);
    assert_false(read_by(&paint, GIVEN("e", "--quiet=maybe"), &words, &line));
    assert_false(read_by(&paint, GIVEN("e", "--quiet="), &words, &line));
    assert_false(read_by(&paint, GIVEN("e", "--quiet", "--quiet=no"), &words, &line));
}

static void two_dashes_end_the_options(void **state)
{
    (void)state;
    struct pawli_line line;
    struct words words;
    assert_true(read_by(&paint, GIVEN("--", "--json", "--"), &words, &line));
    assert_int_equal(line.arguments_count, 2);
    assert_string_equal(line.arguments[0], "--json");
    assert_string_equal(line.arguments[1], "--");
    assert_false(pawli_line_has(&line, "--json"));
    assert_null(line.program);

    assert_true(read_by(&program, GIVEN("q", "--json", "--", "ls", "--all"), &words, &line));
    assert_int_equal(line.arguments_count, 1);
    assert_string_equal(line.program[0], "ls");
    assert_string_equal(line.program[1], "--all");
    assert_null(line.program[2]);
    assert_true(read_by(&program, GIVEN("q", "--"), &words, &line));
    assert_null(line.program);
}

static void other_words_are_refused(void **state)
{
    (void)state;
    struct pawli_line line;
    struct words words;
    assert_false(read_by(&paint, GIVEN("e", "--jso"), &words, &line));
    assert_false(read_by(&paint, GIVEN("e", "--jsonx"), &words, &line));
    assert_false(read_by(&paint, GIVEN("e", "--json=1"), &words, &line));
    assert_false(read_by(&paint, GIVEN("e", "-j"), &words, &line));
    assert_false(read_by(&paint, GIVEN("e", "--name"), &words, &line));
    assert_false(read_by(&paint, GIVEN("e", "--name", "--json"), &words, &line));
    assert_false(read_by(&paint, GIVEN("e", "--name", "a", "--name", "b"), &words, &line));
    assert_false(read_by(&paint, GIVEN("a", "b", "c"), &words, &line));
    assert_false(read_by(&paint, GIVEN("--json"), &words, &line));
    assert_false(read_by(&bare, GIVEN("x"), &words, &line));
    assert_false(read_by(&bare, GIVEN("--json"), &words, &line));
    assert_false(read_by(&bare, GIVEN(""), &words, &line));
    static const char *const numbers[] = {"1",  "10", "",   "x",   "3x",
                                          "-3", "+3", " 3", "3.0", "99999999999999999999"};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        assert_false(read_by(&paint, GIVEN("e", "--count", numbers[i]), &words, &line));
    static const char *const choices[] = {"", "re", "reds", "red,", ",red", "red,pink", "RED"};
    for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++) {
        assert_false(read_by(&paint, GIVEN("e", "--colours", choices[i]), &words, &line));
        assert_false(read_by(&paint, GIVEN("e", "--colour", choices[i]), &words, &line));
    }
    assert_false(read_by(&paint, GIVEN("e", "--colour", "red,blue"), &words, &line));
    assert_false(read_by(&paint, GIVEN("e", "--delay", "5"), &words, &line));
}

static void actions_are_found(void **state)
{
    (void)state;
    char **rest;
    struct words words = split(GIVEN("bare", "x"));
    assert_ptr_equal(pawli_command_action(&house, words.list, &rest), &bare);
    assert_string_equal(rest[0], "x");
    words = split(GIVEN("--json"));
    assert_ptr_equal(pawli_command_action(&house, words.list, &rest), &paint);
    assert_string_equal(rest[0], "--json");
    assert_null(pawli_command_action(&shed, words.list, &rest));
    words = split(GIVEN("brae"));
    assert_null(pawli_command_action(&house, words.list, &rest));
    assert_ptr_equal(pawli_command_action(&bare, words.list, &rest), &bare);
    assert_string_equal(rest[0], "brae");
    assert_ptr_equal(pawli_command_find("paint"), &paint);
    assert_null(pawli_command_find("pain"));
}

static void ids_are_read(void **state)
{
    (void)state;
    struct pawli_line line = {.command = &bare};
    pawl_id id;
    assert_true(pawli_line_id(&line, "0190a000-0000-7000-8000-000000000001", &id));
    assert_int_equal(id.bytes[15], 1);
    assert_false(pawli_line_id(&line, "0190a000", &id));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_stand_anywhere),
        cmocka_unit_test(values_are_read_by_their_kind),
        cmocka_unit_test(settings_can_be_switched_off),
        cmocka_unit_test(two_dashes_end_the_options),
        cmocka_unit_test(other_words_are_refused),
        cmocka_unit_test(actions_are_found),
        cmocka_unit_test(ids_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * options.c - reads the words of a command line by the table of its command.
 * Owns:  the texts about words that are wrong.
 * Never: exits; writes to standard output; shows a value that may be a secret.
 */
#include "cli/options.h"

#include "cli/words.h"
#include "core/policy.h"
#include "pawl/pawl.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#define NAMES_MAX 64

/* ---- the table */

const char *pawli_command_word(const struct pawli_command *command)
{
    const char *blank = strrchr(command->name, ' ');
    return blank != NULL ? blank + 1 : command->name;
}

const struct pawli_command *pawli_command_find(const char *name)
{
    for (size_t i = 0; pawli_commands[i] != NULL; i++)
        if (strcmp(pawli_commands[i]->name, name) == 0)
            return pawli_commands[i];
    return NULL;
}

static void see_help(const struct pawli_command *command)
{
    (void)fprintf(stderr, "See: pawl %s --help\n", command->name);
}

static const struct pawli_command *refuse_action(const struct pawli_command *command,
                                                 const char *word)
{
    const char *names[NAMES_MAX];
    size_t count = 0;
    (void)fprintf(stderr, "pawl %s: say ", command->name);
    for (; command->actions[count] != NULL; count++) {
        bool is_last = command->actions[count + 1] == NULL;
        names[count] = pawli_command_word(command->actions[count]);
        (void)fprintf(stderr, "%s%s", count == 0 ? "" : is_last ? " or " : ", ", names[count]);
    }
    const char *nearest = word != NULL ? pawli_cli_nearest(word, names, count) : NULL;
    if (nearest != NULL)
        (void)fprintf(stderr, "; did you mean %s?", nearest);
    (void)fputc('\n', stderr);
    see_help(command);
    return NULL;
}

const struct pawli_command *pawli_command_action(const struct pawli_command *command, char **words,
                                                 char ***ret_words)
{
    *ret_words = words;
    if (command->actions == NULL)
        return command;
    if (words[0] == NULL || words[0][0] == '-')
        return command->usual != NULL ? command->usual : refuse_action(command, NULL);
    *ret_words = words + 1;
    for (size_t i = 0; command->actions[i] != NULL; i++)
        if (strcmp(pawli_command_word(command->actions[i]), words[0]) == 0)
            return command->actions[i];
    return refuse_action(command, words[0]);
}

/* The place of an option in its table; PAWLI_OPTIONS_MAX where there is none of that name. */
static size_t find_option(const struct pawli_command *command, const char *name, size_t name_len)
{
    for (size_t i = 0; command->options != NULL && command->options[i].name != NULL; i++) {
        assert(i < PAWLI_OPTIONS_MAX);
        if (strncmp(command->options[i].name, name, name_len) == 0 &&
            command->options[i].name[name_len] == '\0')
            return i;
    }
    return PAWLI_OPTIONS_MAX;
}

/* ---- complaints */

int pawli_line_refuse(const struct pawli_line *line, const char *format, ...)
{
    va_list args;
    (void)fprintf(stderr, "pawl %s: ", line->command->name);
    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    va_end(args);
    (void)fputc('\n', stderr);
    see_help(line->command);
    return EX_USAGE;
}

/* How much of a word may be shown: what follows `=` or `://` may hold a password. */
static int shown_length(const char *word)
{
    const char *secret = strstr(word, "://");
    size_t shown = strcspn(word, "=");
    if (secret != NULL && (size_t)(secret - word) < shown)
        shown = (size_t)(secret - word);
    return (int)shown;
}

static bool refuse_word(const struct pawli_line *line, const char *word)
{
    const struct pawli_option *options = line->command->options;
    const char *names[NAMES_MAX];
    size_t count = 0;
    for (; options != NULL && options[count].name != NULL; count++)
        names[count] = options[count].name;
    const char *nearest = pawli_cli_nearest(word, names, count);
    bool is_option = word[0] == '-' && word[1] != '\0';
    (void)pawli_line_refuse(line, "unknown %s \"%.*s\"%s%s%s", is_option ? "option" : "argument",
                            shown_length(word), word, nearest != NULL ? "; did you mean " : "",
                            nearest != NULL ? nearest : "", nearest != NULL ? "?" : "");
    return false;
}

/* ---- values */

static bool refuse_value(const char *value, const char *allowed, char why[PAWLI_WHY_MAX])
{
    (void)snprintf(why, PAWLI_WHY_MAX, " is \"%.60s\"; it must be %s", value, allowed); /* fits */
    return false;
}

static bool read_number(const struct pawli_option *option, const char *value, int64_t *ret_number,
                        char why[PAWLI_WHY_MAX])
{
    char allowed[96];
    char *end;
    errno = 0;
    long long number = strtoll(value, &end, 10);
    bool is_number = value[0] >= '0' && value[0] <= '9' && *end == '\0' && errno == 0;
    *ret_number = number;
    if (is_number && number >= option->min && number <= option->max)
        return true;
    if (option->max == INT64_MAX)
        (void)snprintf(allowed, sizeof(allowed), "a whole number from %lld on", /* it fits */
                       (long long)option->min);
    else
        (void)snprintf(allowed, sizeof(allowed), "a whole number from %lld to %lld", /* likewise */
                       (long long)option->min, (long long)option->max);
    return refuse_value(value, allowed, why);
}

static bool refuse_choice(const struct pawli_option *option, const char *value,
                          char why[PAWLI_WHY_MAX])
{
    char allowed[256];
    size_t length = 0;
    for (size_t i = 0; option->choices[i] != NULL && length < sizeof(allowed); i++) {
        bool is_last = option->choices[i + 1] == NULL;
        int more = snprintf(allowed + length, sizeof(allowed) - length, "%s%s",
                            i == 0    ? ""
                            : is_last ? " or "
                                      : ", ",
                            option->choices[i]);
        length += more > 0 ? (size_t)more : 0;
    }
    return refuse_value(value, allowed, why);
}

/* One of the choices, or several with commas between, as bits by their places. */
static bool read_choices(const struct pawli_option *option, const char *value, int64_t *ret_bits,
                         char why[PAWLI_WHY_MAX])
{
    const char *at = value;
    bool is_list = pawli_option_kind(option) == PAWLI_CHOICES;
    *ret_bits = 0;
    for (;;) {
        size_t length = is_list ? strcspn(at, ",") : strlen(at);
        size_t i = 0;
        while (option->choices[i] != NULL &&
               (strncmp(option->choices[i], at, length) != 0 || option->choices[i][length] != '\0'))
            i++;
        if (option->choices[i] == NULL)
            return refuse_choice(option, value, why);
        *ret_bits |= INT64_C(1) << i;
        if (at[length] == '\0')
            return true;
        at += length + 1;
    }
}

static bool read_flag(const struct pawli_option *option, const char *value, const char **ret_text,
                      char why[PAWLI_WHY_MAX])
{
    bool is_on = strcmp(value, "yes") == 0 || strcmp(value, "true") == 0;
    bool is_off = strcmp(value, "no") == 0 || strcmp(value, "false") == 0;
    *ret_text = is_on ? "" : NULL;
    if (!pawli_option_is_setting(option)) {
        (void)snprintf(why, PAWLI_WHY_MAX, " takes no value"); /* it fits */
        return false;
    }
    return is_on || is_off || refuse_value(value, "yes or no", why);
}

bool pawli_option_read(const struct pawli_option *option, const char *value, const char **ret_text,
                       int64_t *ret_number, char why[PAWLI_WHY_MAX])
{
    pawl_err err;
    *ret_text = value;
    *ret_number = 0;
    switch (pawli_option_kind(option)) {
    case PAWLI_FLAG:
        return read_flag(option, value, ret_text, why);
    case PAWLI_NUMBER:
        return read_number(option, value, ret_number, why);
    case PAWLI_DURATION:
        if (pawl_duration_parse(value, ret_number, &err) == PAWL_OK)
            return true;
        (void)snprintf(why, PAWLI_WHY_MAX, ": %s", err.text); /* it fits */
        return false;
    case PAWLI_NAME:
        if (pawli_check_name("name", value, &err) == PAWL_OK)
            return true;
        (void)snprintf(why, PAWLI_WHY_MAX, ": %s", err.text); /* it fits */
        return false;
    case PAWLI_CHOICE:
    case PAWLI_CHOICES:
        return read_choices(option, value, ret_number, why);
    default:
        return true;
    }
}

static bool take_value(struct pawli_line *line, size_t place, const char *value)
{
    const struct pawli_option *option = &line->command->options[place];
    char why[PAWLI_WHY_MAX];
    bool is_repeated = (option->kind & PAWLI_REPEATED) != 0;
    if (line->origins[place] != PAWLI_FROM_NOBODY && !is_repeated) {
        (void)pawli_line_refuse(line, "%s is given twice", option->name);
        return false;
    }
    if (is_repeated && line->repeats_count == PAWLI_REPEATS_MAX) {
        (void)pawli_line_refuse(line, "%s is given more than %d times", option->name,
                                PAWLI_REPEATS_MAX);
        return false;
    }
    if (is_repeated)
        line->repeats[line->repeats_count++] = value;
    line->origins[place] = PAWLI_FROM_LINE;
    if (pawli_option_read(option, value, &line->values[place], &line->numbers[place], why))
        return true;
    (void)pawli_line_refuse(line, "%s%s", option->name, why);
    return false;
}

/* Read the option at *words, which moves on to its last word. */
static bool take_option(struct pawli_line *line, char ***words)
{
    const char *word = **words;
    size_t name_len = strcspn(word, "=");
    size_t place = find_option(line->command, word, name_len);
    if (place == PAWLI_OPTIONS_MAX)
        return refuse_word(line, word);
    const struct pawli_option *option = &line->command->options[place];
    if (word[name_len] == '=')
        return take_value(line, place, word + name_len + 1);
    if (pawli_option_kind(option) == PAWLI_FLAG) { /* saying it twice is no harm */
        line->values[place] = "";
        line->origins[place] = PAWLI_FROM_LINE;
        return true;
    }
    const char *next = (*words)[1];
    if (next == NULL || (next[0] == '-' && next[1] == '-')) {
        (void)pawli_line_refuse(line, "%s needs a value: %s", option->name, option->value);
        return false;
    }
    (*words)++;
    return take_value(line, place, next);
}

/* ---- the line */

static bool check_names(const struct pawli_line *line)
{
    pawl_err err;
    for (size_t i = 0; i < line->command->names_max && i < line->arguments_count; i++) {
        if (pawli_check_name("queue", line->arguments[i], &err) != PAWL_OK) {
            (void)pawli_line_refuse(line, "%s", err.text);
            return false;
        }
        for (size_t before = 0; before < i; before++)
            if (strcmp(line->arguments[before], line->arguments[i]) == 0) {
                (void)pawli_line_refuse(line, "queue \"%s\" is given twice", line->arguments[i]);
                return false;
            }
    }
    return true;
}

static bool check_count(const struct pawli_line *line)
{
    const struct pawli_command *command = line->command;
    if (line->arguments_count > command->arguments_max)
        return refuse_word(line, line->arguments[command->arguments_max]);
    if (line->arguments_count < command->arguments_min) {
        (void)pawli_line_refuse(line, "say %s", command->arguments);
        return false;
    }
    return true;
}

bool pawli_line_read(const struct pawli_command *command, char **words, struct pawli_line *ret_line)
{
    assert(command->run != NULL);
    *ret_line = (struct pawli_line){.command = command, .arguments = words};
    bool is_options_over = false;
    for (char **at = words; *at != NULL; at++) {
        if (is_options_over || (*at)[0] != '-' || (*at)[1] == '\0') {
            words[ret_line->arguments_count++] = *at; /* never before the word that is read */
        } else if (strcmp(*at, "--") != 0) {
            if (!take_option(ret_line, &at))
                return false;
        } else if (command->is_program_taken) {
            ret_line->program = at[1] != NULL ? at + 1 : NULL;
            break;
        } else {
            is_options_over = true;
        }
    }
    return check_count(ret_line) && check_names(ret_line);
}

static size_t place_of(const struct pawli_line *line, const char *name)
{
    size_t place = find_option(line->command, name, strlen(name));
    assert(place < PAWLI_OPTIONS_MAX);
    return place;
}

bool pawli_line_has(const struct pawli_line *line, const char *name)
{
    return line->values[place_of(line, name)] != NULL;
}

const char *pawli_line_text(const struct pawli_line *line, const char *name)
{
    return line->values[place_of(line, name)];
}

int64_t pawli_line_number(const struct pawli_line *line, const char *name, int64_t otherwise)
{
    size_t place = place_of(line, name);
    return line->values[place] != NULL ? line->numbers[place] : otherwise;
}

bool pawli_line_id(const struct pawli_line *line, const char *word, pawl_id *ret_id)
{
    pawl_err err;
    if (pawl_id_parse(word, ret_id, &err) == PAWL_OK)
        return true;
    (void)pawli_line_refuse(line, "%s", err.text);
    return false;
}

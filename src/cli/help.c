/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * help.c - help on commands, from their tables.
 * Owns:  the form of help on a terminal, 80 columns wide.
 * Never: knows a command by itself.
 */
#include "cli/help.h"

#include <string.h>

#define WIDTH       80
#define INDENT      2
#define NAME_ROOM   22 /* of an option and its value */
#define USAGE_WIDTH 60 /* longer ones say [OPTION]... */

/* Put words after what stands on the line already, `column` wide, going on at `indent`. */
static void wrap(FILE *out, const char *text, size_t column, size_t indent)
{
    while (*text != '\0') {
        size_t length = strcspn(text, " ");
        if (column + 1 + length > WIDTH && column > indent) {
            (void)fprintf(out, "\n%*s", (int)indent, ""); /* here and below: main asks for errors */
            column = indent;
        } else if (column > indent) {
            (void)fputc(' ', out);
            column++;
        }
        (void)fwrite(text, 1, length, out);
        column += length;
        text += length;
        text += strspn(text, " ");
    }
    (void)fputc('\n', out);
}

static size_t option_length(const struct pawli_option *option)
{
    return strlen(option->name) + (option->value != NULL ? 1 + strlen(option->value) : 0);
}

const char *pawli_usage(const struct pawli_command *command, char text[PAWLI_USAGE_MAX])
{
    size_t length = 0;
    const struct pawli_option *option = command->options;
    text[0] = '\0';
    for (; option != NULL && option->name != NULL && length < USAGE_WIDTH; option++) {
        int more = snprintf(text + length, PAWLI_USAGE_MAX - length, " [%s%s%s]", option->name,
                            option->value != NULL ? " " : "",
                            option->value != NULL ? option->value : "");
        length += more > 0 ? (size_t)more : 0;
    }
    if (length >= USAGE_WIDTH)
        length = (size_t)snprintf(text, PAWLI_USAGE_MAX, " [OPTION]..."); /* it fits */
    (void)snprintf(text + length, PAWLI_USAGE_MAX - length, "%s%s%s",     /* likewise */
                   command->arguments != NULL ? " " : "",
                   command->arguments != NULL ? command->arguments : "",
                   command->is_program_taken ? " -- PROGRAM [ARGUMENT]..." : "");
    return text;
}

void pawli_help_list(FILE *out)
{
    (void)fputs("Pawl, a lease-based durable work engine.\n\nusage: pawl COMMAND [OPTION]...\n\n",
                out);
    for (size_t i = 0; pawli_commands[i] != NULL; i++)
        (void)fprintf(out, "  %-10s %s\n", pawli_commands[i]->name, pawli_commands[i]->about);
    (void)fputs("\nSee also: pawl COMMAND --help\n", out);
}

static void print_options(const struct pawli_command *command, FILE *out)
{
    (void)fputs("\noptions:\n", out);
    for (const struct pawli_option *option = command->options; option->name != NULL; option++) {
        size_t length = option_length(option);
        (void)fprintf(out, "%*s%s%s%s", INDENT, "", option->name, option->value != NULL ? " " : "",
                      option->value != NULL ? option->value : "");
        if (length < NAME_ROOM)
            (void)fprintf(out, "%*s", (int)(NAME_ROOM - length), "");
        else
            (void)fprintf(out, "\n%*s", INDENT + NAME_ROOM, "");
        wrap(out, option->about, INDENT + NAME_ROOM, INDENT + NAME_ROOM);
    }
}

static void print_lines(const char *lines, FILE *out)
{
    while (*lines != '\0') {
        size_t length = strcspn(lines, "\n");
        (void)fprintf(out, "%*s%.*s\n", INDENT, "", (int)length, lines);
        lines += length + (lines[length] == '\n');
    }
}

/* Paragraphs, with a blank line between them. */
static void print_details(const char *details, FILE *out)
{
    char paragraph[1024];
    while (*details != '\0') {
        size_t length = strcspn(details, "\n");
        (void)snprintf(paragraph, sizeof(paragraph), "%.*s", (int)length, details); /* ours: fits */
        (void)fputc('\n', out);
        wrap(out, paragraph, 0, 0);
        details += length + (details[length] == '\n');
    }
}

void pawli_help_command(const struct pawli_command *command, FILE *out)
{
    char usage[PAWLI_USAGE_MAX];
    if (command->actions == NULL)
        (void)fprintf(out, "usage: pawl %s%s\n", command->name, pawli_usage(command, usage));
    for (size_t i = 0; command->actions != NULL && command->actions[i] != NULL; i++)
        (void)fprintf(out, "%s pawl %s%s\n", i == 0 ? "usage:" : "      ",
                      command->actions[i]->name, pawli_usage(command->actions[i], usage));
    (void)fprintf(out, "\n%s.\n", command->about);
    if (command->details != NULL)
        print_details(command->details, out);
    for (size_t i = 0; command->actions != NULL && command->actions[i] != NULL; i++)
        (void)fprintf(out, "%s  %-*s%s\n", i == 0 ? "\n" : "", NAME_ROOM,
                      pawli_command_word(command->actions[i]), command->actions[i]->about);
    if (command->options != NULL)
        print_options(command, out);
    if (command->examples != NULL) {
        (void)fputs("\nexamples:\n", out);
        print_lines(command->examples, out);
    }
    if (command->actions != NULL)
        (void)fprintf(out, "\nSee also: pawl %s ACTION --help\n", command->name);
}

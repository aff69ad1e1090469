/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * reference.c - all commands in Markdown, from their tables: the second half of docs/commands.md.
 * Owns:  the form of it.
 * Never: knows a command by itself.
 */
#include "cli/help.h"
#include "cli/settings.h"

#include <string.h>

/* Text in which nothing means anything to Markdown, not even in a table. */
static void put_text(const char *text, FILE *out)
{
    for (; *text != '\0'; text++) {
        if (strchr("\\*_<>[]#|`", *text) != NULL)
            (void)fputc('\\', out); /* here and below: main asks for errors */
        (void)fputc(*text, out);
    }
}

static void put_sentence(const char *about, FILE *out)
{
    (void)fputc(about[0] >= 'a' && about[0] <= 'z' ? about[0] - 'a' + 'A' : about[0], out);
    put_text(about + 1, out);
    (void)fputs(".\n\n", out);
}

/* What nearly every command has is told once, before the reference. */
static bool is_common(const struct pawli_option *option)
{
    return strcmp(option->name, "--config") == 0 || strcmp(option->name, "--store") == 0;
}

static void put_common(const struct pawli_command *command, FILE *out)
{
    const char *separator = "";
    for (const struct pawli_option *option = command->options; option->name != NULL; option++)
        if (is_common(option)) {
            (void)fprintf(out, "%s`%s %s`", separator, option->name, option->value);
            separator = ", ";
        }
    if (separator[0] != '\0')
        (void)fputs(": see [settings](#settings).\n\n", out);
}

static void put_options(const struct pawli_command *command, FILE *out)
{
    char variable[PAWLI_SETTING_NAME_MAX];
    size_t own = 0;
    for (const struct pawli_option *option = command->options; option->name != NULL; option++)
        own += !is_common(option);
    if (own > 0)
        (void)fputs("| option | | setting |\n|---|---|---|\n", out);
    for (const struct pawli_option *option = command->options; option->name != NULL; option++) {
        if (is_common(option))
            continue;
        (void)fprintf(out, "| `%s%s%s` | ", option->name, option->value != NULL ? " " : "",
                      option->value != NULL ? option->value : "");
        put_text(option->about, out);
        if (pawli_option_kind(option) == PAWLI_CHOICE ||
            pawli_option_kind(option) == PAWLI_CHOICES) {
            (void)fputs(":", out);
            for (size_t i = 0; option->choices[i] != NULL; i++)
                (void)fprintf(out, "%s `%s`", i > 0 ? "," : "", option->choices[i]);
        }
        if (pawli_option_is_setting(option)) {
            pawli_setting_variable(option, variable);
            (void)fprintf(out, " | `%s` |\n", variable);
        } else {
            (void)fputs(" | |\n", out);
        }
    }
    if (own > 0)
        (void)fputc('\n', out);
    put_common(command, out);
}

/* A command without actions, or an action. */
static void put_command(const struct pawli_command *command, const char *heading, FILE *out)
{
    char usage[PAWLI_USAGE_MAX];
    (void)fprintf(out, "%s pawl %s\n\n", heading, command->name);
    put_sentence(command->about, out);
    if (command->actions == NULL)
        (void)fprintf(out, "    pawl %s%s\n\n", command->name, pawli_usage(command, usage));
    for (const char *at = command->details; at != NULL && *at != '\0';) {
        size_t length = strcspn(at, "\n");
        for (size_t i = 0; i < length; i++)
            put_text((const char[]){at[i], '\0'}, out);
        (void)fputs("\n\n", out);
        at += length + (at[length] == '\n');
    }
    if (command->options != NULL)
        put_options(command, out);
    if (command->examples != NULL)
        (void)fprintf(out, "```sh\n%s```\n\n", command->examples);
}

void pawli_reference(FILE *out)
{
    for (size_t i = 0; pawli_commands[i] != NULL; i++) {
        const struct pawli_command *const *action = pawli_commands[i]->actions;
        put_command(pawli_commands[i], "###", out);
        for (; action != NULL && *action != NULL; action++)
            put_command(*action, "####", out);
    }
}

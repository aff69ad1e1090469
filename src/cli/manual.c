/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * manual.c - manual pages in the form of scdoc, from the tables of commands.
 * Owns:  the parts of a page.
 * Never: knows a command by itself.
 */
#include "cli/help.h"
#include "cli/settings.h"

#include <string.h>

/* Text in which nothing means anything to scdoc. */
static void put_text(const char *text, FILE *out)
{
    for (; *text != '\0'; text++) {
        if (strchr("\\*_<>[]#|+~`-.", *text) != NULL)
            (void)fputc('\\', out); /* here and below: main asks for errors */
        (void)fputc(*text, out);
    }
}

/* The name of a page: blanks are dashes. */
static void put_name(const struct pawli_command *command, FILE *out)
{
    (void)fputs("pawl-", out);
    for (const char *at = command->name; *at != '\0'; at++)
        (void)fputc(*at == ' ' ? '-' : *at, out);
}

static void put_synopsis(const struct pawli_command *command, FILE *out)
{
    char usage[PAWLI_USAGE_MAX];
    (void)fprintf(out, "*pawl %s*", command->name);
    put_text(pawli_usage(command, usage), out);
    (void)fputs("\n\n", out);
}

static void put_choices(const struct pawli_option *option, FILE *out)
{
    for (size_t i = 0; option->choices != NULL && option->choices[i] != NULL; i++) {
        (void)fputs(i == 0 ? ": " : ", ", out);
        put_text(option->choices[i], out);
    }
}

static void put_options(const struct pawli_command *command, FILE *out)
{
    char variable[PAWLI_SETTING_NAME_MAX];
    (void)fputs("# OPTIONS\n\n", out);
    for (const struct pawli_option *option = command->options; option->name != NULL; option++) {
        (void)fputc('*', out);
        put_text(option->name, out);
        (void)fputc('*', out);
        if (option->value != NULL)
            (void)fprintf(out, " _%s_", option->value);
        (void)fputs("\n\t", out);
        put_text(option->about, out);
        put_choices(option, out);
        if (pawli_option_is_setting(option)) {
            pawli_setting_variable(option, variable);
            (void)fputs("\\. Setting: *", out);
            put_text(variable, out);
            (void)fputc('*', out);
        }
        (void)fputs("\n\n", out);
    }
}

static void put_details(const char *details, FILE *out)
{
    for (; *details != '\0'; details++) {
        if (*details == '\n')
            (void)fputs("\n\n", out);
        else
            put_text((const char[]){*details, '\0'}, out);
    }
    (void)fputs("\n\n", out);
}

static void put_body(const struct pawli_command *command, FILE *out)
{
    (void)fputs("# DESCRIPTION\n\n", out);
    put_text(command->about, out);
    (void)fputs("\\.\n\n", out);
    if (command->details != NULL)
        put_details(command->details, out);
    for (size_t i = 0; command->actions != NULL && command->actions[i] != NULL; i++) {
        const struct pawli_command *action = command->actions[i];
        (void)fprintf(out, "# PAWL %s\n\n", action->name);
        put_text(action->about, out);
        (void)fputs("\\.\n\n", out);
        if (action->details != NULL)
            put_details(action->details, out);
        if (action->options != NULL)
            put_options(action, out);
    }
    if (command->options != NULL)
        put_options(command, out);
    if (command->examples != NULL)
        (void)fprintf(out, "# EXAMPLES\n\n```\n%s```\n\n", command->examples);
}

static void put_program(FILE *out)
{
    (void)fputs("pawl(1)\n\n# NAME\n\npawl - a lease\\-based durable work engine\n\n# SYNOPSIS\n\n"
                "*pawl* _COMMAND_ [_OPTION_]...\n\n# COMMANDS\n\n",
                out);
    for (size_t i = 0; pawli_commands[i] != NULL; i++) {
        (void)fprintf(out, "*%s*\n\t", pawli_commands[i]->name);
        put_text(pawli_commands[i]->about, out);
        (void)fputs("\\. See ", out);
        put_text("", out);
        (void)fputc('*', out);
        put_name(pawli_commands[i], out);
        (void)fputs("*(1)\\.\n\n", out);
    }
}

static void put_end(FILE *out)
{
    (void)fputs(
        "# ENVIRONMENT\n\n*PAWL\\_CONFIG*\n\tThe configuration file, where \\-\\-config does not "
        "name one\\.\n\n"
        "*PAWL\\_STORE*, *DATABASE\\_URL*\n\tThe store, where \\-\\-store does not name one\\.\n\n"
        "*PGHOST*, *PGPORT*, *PGDATABASE*, *PGUSER* ...\n\tAs libpq takes them, where neither of "
        "these is set\\.\n\n"
        "*PAWL\\_...*\n\tOther settings, each where its option is not given: see the options, and "
        "*pawl-config*(1)\\.\n\n"
        "# FILES\n\n_$XDG\\_CONFIG\\_HOME/pawl/pawl\\.conf_, "
        "_\\~/\\.config/pawl/pawl\\.conf_, _/etc/pawl/pawl\\.conf_\n\tSettings, a line each: "
        "name = value\\. The first of them that is there is read, where neither \\-\\-config nor "
        "PAWL\\_CONFIG names another\\.\n\n"
        "_$XDG\\_STATE\\_HOME/pawl/pawl\\.db_, _\\~/\\.local/state/pawl/pawl\\.db_\n\tThe store, "
        "where nothing names one\\.\n\n"
        "# EXIT STATUS\n\nThose of sysexits\\.h: 0 done, 64 wrong words, 65 wrong or refused data, "
        "66 no such input, 69 the store cannot be reached, 71 no memory, 74 the output could not "
        "be "
        "written, 75 the answer was lost or it was told to stop: try again, 78 wrong settings\\.\n",
        out);
}

void pawli_manual(const struct pawli_command *command, FILE *out)
{
    if (command == NULL) {
        put_program(out);
        put_end(out);
        return;
    }
    put_name(command, out);
    (void)fputs("(1)\n\n# NAME\n\n", out);
    put_name(command, out);
    (void)fputs(" - ", out);
    put_text(command->about, out);
    (void)fputs("\n\n# SYNOPSIS\n\n", out);
    if (command->actions == NULL)
        put_synopsis(command, out);
    for (size_t i = 0; command->actions != NULL && command->actions[i] != NULL; i++)
        put_synopsis(command->actions[i], out);
    put_body(command, out);
    put_end(out);
}

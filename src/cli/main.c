/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * main.c - the program `pawl`: finds the command that was asked for and runs it.
 * Owns:  the table of commands, their help, the exit code.
 * Never: does a command's work; ends well when the output could not be written.
 */
#include "cli/command.h"
#include "pawl/pawl.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

struct command {
    const char *name;
    int (*run)(char **words);
    const char *usage; /* what may follow the name */
    const char *about;
    const char *details; /* for --help; NULL: `about` says it all */
};

static int run_help(char **words);
static int run_version(char **words);

static const struct command commands[] = {
    {"demo", pawli_cli_demo, " [--json]", "tell the story of three jobs on a store in memory",
     "One job succeeds; one fails and is retried until it is dead; one loses its worker, is\n"
     "recovered, and the late completion of the first worker is refused. The clock is turned by\n"
     "hand and the random numbers are seeded: every run tells the same.\n"
     "\n"
     "  --json  as one JSON document\n"},
    {"help", run_help, "", "show this list", NULL},
    {"version", run_version, "", "show the version", NULL},
};
#define COMMANDS_COUNT (sizeof(commands) / sizeof(commands[0]))

static void print_commands(FILE *out)
{
    (void)fputs("Pawl, a lease-based durable work engine.\n\nusage: pawl COMMAND [OPTION]...\n\n",
                out); /* here and below: end_output() asks the stream for its errors */
    for (size_t i = 0; i < COMMANDS_COUNT; i++)
        (void)fprintf(out, "  %-8s %s\n", commands[i].name, commands[i].about);
    (void)fputs("\nSee also: pawl COMMAND --help\n", out);
}

static int run_help(char **words)
{
    if (!pawli_cli_read_flags("help", words, NULL, 0))
        return EX_USAGE;
    print_commands(stdout);
    return EX_OK;
}

static int run_version(char **words)
{
    if (!pawli_cli_read_flags("version", words, NULL, 0))
        return EX_USAGE;
    (void)printf("pawl %s\n", pawl_version());
    return EX_OK;
}

static void print_help_of(const struct command *command)
{
    (void)printf("usage: pawl %s%s\n\n%s\n", command->name, command->usage, command->about);
    if (command->details != NULL)
        (void)printf("\n%s", command->details);
}

static bool has_word(char **words, const char *wanted)
{
    while (*words != NULL)
        if (strcmp(*words++, wanted) == 0)
            return true;
    return false;
}

static int refuse_command(const char *word)
{
    const char *names[COMMANDS_COUNT];
    for (size_t i = 0; i < COMMANDS_COUNT; i++)
        names[i] = commands[i].name;
    const char *nearest = pawli_cli_nearest(word, names, COMMANDS_COUNT);

    (void)fprintf(stderr, "pawl: unknown %s \"%s\"", word[0] == '-' ? "option" : "command", word);
    if (nearest != NULL)
        (void)fprintf(stderr, "; did you mean %s?", nearest);
    (void)fputs("\nSee: pawl help\n", stderr);
    return EX_USAGE;
}

static int run(char **words)
{
    if (words[0] == NULL) {
        print_commands(stderr);
        return EX_USAGE;
    }
    const char *name = words[0];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        name = "help";
    if (strcmp(name, "--version") == 0)
        name = "version";
    for (size_t i = 0; i < COMMANDS_COUNT; i++) {
        if (strcmp(name, commands[i].name) != 0)
            continue;
        if (has_word(words + 1, "--help") || has_word(words + 1, "-h")) {
            print_help_of(&commands[i]);
            return EX_OK;
        }
        return commands[i].run(words + 1);
    }
    return refuse_command(words[0]);
}

/* Whoever reads our output must learn from the exit code that it is not whole. */
static int end_output(int exit_code)
{
    bool is_bad = ferror(stdout) != 0; /* an earlier failure: errno is long gone */
    int reason = 0;
    if (fclose(stdout) != 0) {
        is_bad = true;
        reason = errno;
    }
    if (!is_bad)
        return exit_code;
    (void)fprintf(stderr, "pawl: cannot write the output%s%s\n", reason != 0 ? ": " : "",
                  reason != 0 ? strerror(reason) : "");
    return exit_code == EX_OK ? EX_IOERR : exit_code;
}

int main(int argc, char **argv)
{
    /* A reader that went away is a write error like any other, not a silent death. */
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    (void)sigaction(SIGPIPE, &ignore, NULL); /* cannot fail: the signal exists */
    return end_output(run(argv + (argc > 0)));
}

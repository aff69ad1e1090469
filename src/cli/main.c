/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * main.c - the program `pawl`: finds the command that was asked for and runs it.
 * Owns:  the exit code.
 * Never: does a command's work; ends well when the output could not be written.
 */
#include "cli/help.h"
#include "cli/options.h"
#include "cli/settings.h"
#include "cli/words.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#define NAMES_MAX 64

/* Before a `--`: what follows belongs to somebody else. */
static bool is_help_asked(char **words)
{
    for (; *words != NULL && strcmp(*words, "--") != 0; words++)
        if (strcmp(*words, "--help") == 0 || strcmp(*words, "-h") == 0)
            return true;
    return false;
}

static int refuse_command(const char *word)
{
    const char *names[NAMES_MAX];
    size_t count = 0;
    for (; pawli_commands[count] != NULL; count++)
        names[count] = pawli_commands[count]->name;
    const char *nearest = pawli_cli_nearest(word, names, count);

    (void)fprintf(stderr, "pawl: unknown %s \"%s\"", word[0] == '-' ? "option" : "command", word);
    if (nearest != NULL)
        (void)fprintf(stderr, "; did you mean %s?", nearest);
    (void)fputs("\nSee: pawl help\n", stderr);
    return EX_USAGE;
}

/* `pawl queues set --help` is about the action, where one is named. */
static int show_help(const struct pawli_command *command, char **words)
{
    for (size_t i = 0; command->actions != NULL && command->actions[i] != NULL; i++)
        if (strcmp(words[0], pawli_command_word(command->actions[i])) == 0) {
            command = command->actions[i];
            break;
        }
    pawli_help_command(command, stdout);
    return EX_OK;
}

static int run(char **words)
{
    if (words[0] == NULL) {
        pawli_help_list(stderr);
        return EX_USAGE;
    }
    const char *name = words[0];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        name = "help";
    if (strcmp(name, "--version") == 0)
        name = "version";
    const struct pawli_command *command = pawli_command_find(name);
    if (command == NULL)
        return refuse_command(words[0]);
    if (is_help_asked(words + 1))
        return show_help(command, words + 1);
    struct pawli_line line;
    struct pawli_settings settings;
    command = pawli_command_action(command, words + 1, &words);
    if (command == NULL || !pawli_line_read(command, words, &line))
        return EX_USAGE;
    int exit_code = pawli_settings_add(&line, &settings);
    if (exit_code == EX_OK)
        exit_code = command->run(&line);
    else
        (void)fprintf(stderr, "pawl %s: %s\n", command->name, settings.why);
    pawli_settings_clear(&settings);
    return exit_code;
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

/*
 * Whoever starts us may have closed these: then the next file that is opened would get the number,
 * a store's file perhaps, and with it what is meant for standard error. Opened the wrong way round,
 * so that using them fails as it would have.
 */
static void keep_standard_files(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY); /* the lowest: fd */
}

int main(int argc, char **argv)
{
    keep_standard_files();
    /* A reader that went away is a write error like any other, not a silent death. */
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    (void)sigaction(SIGPIPE, &ignore, NULL); /* cannot fail: the signal exists */
    return end_output(run(argv + (argc > 0)));
}

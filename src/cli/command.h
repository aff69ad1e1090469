/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * command.h - what the commands of the program share: how each is called, and how it reads its
 * words. A command returns the program's exit code, one of <sysexits.h> or 0, and has said on
 * standard error what went wrong. Whether its output could be written is main's to find out.
 */
#ifndef PAWLI_CLI_COMMAND_H
#define PAWLI_CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

/* The commands. `words` are what follows the command's name, ended by NULL. */
int pawli_cli_demo(char **words);

/* A flag that a command knows, such as "--json". */
struct pawli_cli_flag {
    const char *name;
    bool *ret_is_set; /* set to true where it is given, and left alone where it is not */
};

/*
 * Read `words`, each of which must be one of the flags. False where one is not: standard error then
 * names it, and the flag that comes nearest.
 */
bool pawli_cli_read_flags(const char *command, char **words, const struct pawli_cli_flag *flags,
                          size_t flags_count);

/* Of `names`, the one that `word` is most likely meant to be; NULL where none comes near. */
const char *pawli_cli_nearest(const char *word, const char *const *names, size_t names_count);

#endif

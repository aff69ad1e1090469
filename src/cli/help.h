/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * help.h - what the tables of commands come to for people: help, manual pages, and the completion
 * of shells.
 */
#ifndef PAWLI_CLI_HELP_H
#define PAWLI_CLI_HELP_H

#include "cli/options.h"

#include <stdio.h>

/* The list of all commands. */
void pawli_help_list(FILE *out);

/* All about one command, or action, or command with actions. */
void pawli_help_command(const struct pawli_command *command, FILE *out);

/* A manual page in the form of scdoc; of the whole program where `command` is NULL. */
void pawli_manual(const struct pawli_command *command, FILE *out);

/* All commands in Markdown: the second half of docs/commands.md. */
void pawli_reference(FILE *out);

/* What makes a shell complete the words of the program: "bash", "zsh" or "fish". */
void pawli_completion_bash(FILE *out);
void pawli_completion_zsh(FILE *out);
void pawli_completion_fish(FILE *out);

/* "QUEUE [--delay D] ...", as it follows the name in a usage line; [OPTION]... where it is long. */
#define PAWLI_USAGE_MAX 512
const char *pawli_usage(const struct pawli_command *command, char text[PAWLI_USAGE_MAX]);

#endif

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * commands.c - the list of all commands, and those that are about the program itself.
 * Owns:  help, version and completion.
 * Never: opens a store.
 */
#include "cli/command.h"
#include "cli/help.h"
#include "cli/json.h"
#include "pawl/pawl.h"

#include <string.h>
#include <sysexits.h>

static int run_help(const struct pawli_line *line)
{
    const struct pawli_command *command = NULL;
    if (line->arguments_count > 0) {
        command = pawli_command_find(line->arguments[0]);
        if (command == NULL)
            return pawli_line_refuse(line, "unknown command \"%s\"", line->arguments[0]);
    }
    if (pawli_line_has(line, "--markdown"))
        pawli_reference(stdout);
    else if (pawli_line_has(line, "--scdoc"))
        pawli_manual(command, stdout);
    else if (command != NULL)
        pawli_help_command(command, stdout);
    else
        pawli_help_list(stdout);
    return EX_OK;
}

static const struct pawli_option help_options[] = {
    {"--markdown", PAWLI_FLAG, NULL, "all commands in Markdown, as docs/commands.md has them", 0, 0,
     NULL},
    {"--scdoc", PAWLI_FLAG, NULL, "as a manual page, in the form that scdoc reads", 0, 0, NULL},
    {0},
};
static const struct pawli_command help = {
    .name = "help",
    .about = "show the list of commands, or all about one",
    .arguments = "[COMMAND]",
    .arguments_max = 1,
    .options = help_options,
    .examples = "pawl help enqueue\n",
    .run = run_help,
};

static int run_version(const struct pawli_line *line)
{
    if (!pawli_line_has(line, "--json")) {
        (void)printf("pawl %s\n", pawl_version()); /* main asks for errors */
        return EX_OK;
    }
    struct pawli_json json;
    pawli_json_init(&json, stdout);
    pawli_json_open_object(&json, NULL);
    pawli_json_text(&json, "version", pawl_version());
    pawli_json_close(&json);
    return EX_OK;
}

static const struct pawli_option version_options[] = {PAWLI_OPTION_JSON, {0}};
static const struct pawli_command version = {
    .name = "version",
    .about = "show the version",
    .options = version_options,
    .examples = "pawl version --json\n",
    .run = run_version,
};

static int run_completion(const struct pawli_line *line)
{
    static const struct {
        const char *name;
        void (*put)(FILE *out);
    } shells[] = {{"bash", pawli_completion_bash},
                  {"fish", pawli_completion_fish},
                  {"zsh", pawli_completion_zsh}};
    for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++)
        if (strcmp(line->arguments[0], shells[i].name) == 0) {
            shells[i].put(stdout);
            return EX_OK;
        }
    return pawli_line_refuse(line, "SHELL is \"%.40s\"; it must be bash, fish or zsh",
                             line->arguments[0]);
}

static const struct pawli_command completion = {
    .name = "completion",
    .about = "print what makes a shell complete the words of pawl",
    .arguments = "SHELL",
    .arguments_min = 1,
    .arguments_max = 1,
    .details = "SHELL is bash, fish or zsh.",
    .examples = "source <(pawl completion bash)\n"
                "pawl completion fish > ~/.config/fish/completions/pawl.fish\n",
    .run = run_completion,
};

const struct pawli_command *const pawli_commands[] = {
    &pawli_command_adopt,
    &pawli_command_attempts,
    &pawli_command_bench,
    &pawli_command_cancel,
    &completion,
    &pawli_command_config,
    &pawli_command_deliver,
    &pawli_command_demo,
    &pawli_command_discard,
    &pawli_command_doctor,
    &pawli_command_endpoint,
    &pawli_command_enqueue,
    &help,
    &pawli_command_jobs,
    &pawli_command_leases,
    &pawli_command_migrate,
    &pawli_command_prune,
    &pawli_command_publish,
    &pawli_command_queues,
    &pawli_command_reap,
    &pawli_command_redrive,
    &pawli_command_serve,
    &pawli_command_token,
    &pawli_command_top,
    &pawli_command_verify,
    &version,
    &pawli_command_work,
    &pawli_command_workers,
    &pawli_command_worklease,
    NULL,
};

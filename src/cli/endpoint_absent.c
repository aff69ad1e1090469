/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * endpoint_absent.c - `pawl endpoint`, `pawl deliver` and what `pawl serve` has of endpoints, of a
 *                     program that was built without webhooks.
 * Owns:  saying so.
 * Never: opens a store.
 */
#include "cli/command.h"
#include "cli/serve_webhooks.h"

#include <stdio.h>
#include <sysexits.h>

int pawli_serve_webhooks_new(const struct pawli_line *line,
                             struct pawli_serve_webhooks **ret_webhooks)
{
    (void)line;
    *ret_webhooks = NULL;
    return EX_OK;
}

void pawli_serve_webhooks_free(struct pawli_serve_webhooks *webhooks)
{
    (void)webhooks; /* there is none */
}

const struct pawli_webhooks *pawli_serve_webhooks_calls(struct pawli_serve_webhooks *webhooks)
{
    (void)webhooks;
    return NULL;
}

pawl_code pawli_serve_webhooks_deliver(struct pawli_serve_webhooks *webhooks,
                                       const pawl_worker_options *worker, pawl_runner **ret_runner,
                                       pawl_err *err)
{
    (void)webhooks;
    (void)worker;
    (void)ret_runner;
    *err = (pawl_err){PAWL_INVALID, "--deliver: this program was built without webhooks"};
    return PAWL_INVALID;
}

static int run_absent(const struct pawli_line *line)
{
    (void)fprintf(stderr, "pawl %s: this program was built without webhooks\n",
                  line->command->name); /* whatever else it says */
    return EX_UNAVAILABLE;
}

static const struct pawli_option options[] = {PAWLI_OPTION_JSON, {0}};

const struct pawli_command pawli_command_endpoint = {
    .name = "endpoint",
    .about = "endpoints of webhooks: not in this program",
    .arguments = "[WORD...]",
    .arguments_max = 64,
    .options = options,
    .examples = "pawl endpoint --help\n",
    .run = run_absent,
};

const struct pawli_command pawli_command_deliver = {
    .name = "deliver",
    .about = "deliver events: not in this program",
    .arguments = "[WORD...]",
    .arguments_max = 64,
    .options = options,
    .examples = "pawl deliver --help\n",
    .run = run_absent,
};

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * command.h - the commands of the program, each a table in a file of its own. See options.h.
 */
#ifndef PAWLI_CLI_COMMAND_H
#define PAWLI_CLI_COMMAND_H

#include "cli/options.h"

extern const struct pawli_command pawli_command_adopt;
extern const struct pawli_command pawli_command_attempts;
extern const struct pawli_command pawli_command_bench;
extern const struct pawli_command pawli_command_cancel;
extern const struct pawli_command pawli_command_config;
extern const struct pawli_command pawli_command_deliver;
extern const struct pawli_command pawli_command_demo;
extern const struct pawli_command pawli_command_discard;
extern const struct pawli_command pawli_command_doctor;
extern const struct pawli_command pawli_command_endpoint;
extern const struct pawli_command pawli_command_enqueue;
extern const struct pawli_command pawli_command_jobs;
extern const struct pawli_command pawli_command_leases;
extern const struct pawli_command pawli_command_migrate;
extern const struct pawli_command pawli_command_prune;
extern const struct pawli_command pawli_command_publish;
extern const struct pawli_command pawli_command_queues;
extern const struct pawli_command pawli_command_reap;
extern const struct pawli_command pawli_command_redrive;
extern const struct pawli_command pawli_command_serve;
extern const struct pawli_command pawli_command_token;
extern const struct pawli_command pawli_command_top;
extern const struct pawli_command pawli_command_verify;
extern const struct pawli_command pawli_command_work;
extern const struct pawli_command pawli_command_workers;
extern const struct pawli_command pawli_command_worklease;

#endif

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * serve_workers.c - the workers that `pawl serve` brings along.
 * Owns:  what the words of the command say of them; that they end together.
 * Never: decides what happens to a job.
 */
#include "cli/serve_workers.h"

#include <stdlib.h>

static pawl_code start_work(struct pawli_serve_workers *workers,
                            const struct pawli_serve_workers_args *args,
                            pawl_worker_options *options, pawl_err *err)
{
    const struct pawli_line *line = args->line;
    const pawl_command_options run = {.argv = line->program, .is_process_ours = true};
    workers->queues = calloc(line->arguments_count, sizeof(*workers->queues));
    if (workers->queues == NULL) {
        *err = (pawl_err){PAWL_NO_MEMORY, "memory ran out"};
        return PAWL_NO_MEMORY;
    }
    for (size_t i = 0; i < line->arguments_count; i++)
        workers->queues[i] = (pawl_worker_queue){
            .queue = line->arguments[i],
            .jobs_max = PAWL_DEFAULT,
            .lease_ms = pawli_line_number(line, "--lease", PAWL_DEFAULT),
        };
    pawl_code code = pawl_command_new(&run, &workers->command, err);
    options->queues = workers->queues;
    options->queues_count = line->arguments_count;
    options->settings.parallel_max = pawli_line_number(line, "--parallel",
                                                       options->settings.parallel_max);
    options->settings.settle_linger_ms = PAWL_COMMAND_LINGER_MS;
    options->handler = pawl_command_handler;
    options->user = workers->command;
    return code == PAWL_OK ? pawl_worker_start(options, &workers->runners[workers->count], err)
                           : code;
}

pawl_code pawli_serve_workers_start(struct pawli_serve_workers *workers,
                                    const struct pawli_serve_workers_args *args, pawl_err *err)
{
    pawl_worker_options options;
    pawl_code code = PAWL_OK;
    pawl_worker_options_init(&options);
    options.opener = args->opener;
    options.watch = args->watch;
    options.metrics = args->metrics;
    options.is_reaper_off = true; /* the server has one, unless it was told otherwise */
    if (args->line->arguments_count > 0) {
        code = start_work(workers, args, &options, err);
        workers->count += code == PAWL_OK;
    }
    if (code == PAWL_OK && pawli_line_has(args->line, "--deliver")) {
        code = pawli_serve_webhooks_deliver(args->webhooks, &options,
                                            &workers->runners[workers->count], err);
        workers->count += code == PAWL_OK;
    }
    return code;
}

void pawli_serve_workers_stop(struct pawli_serve_workers *workers, int64_t timeout_ms)
{
    for (size_t i = 0; i < workers->count; i++)
        pawl_worker_stop(workers->runners[i], timeout_ms);
}

void pawli_serve_workers_abort(struct pawli_serve_workers *workers)
{
    for (size_t i = 0; i < workers->count; i++)
        pawl_worker_abort(workers->runners[i]);
}

bool pawli_serve_workers_have_stopped(struct pawli_serve_workers *workers)
{
    bool have_all = true;
    for (size_t i = 0; i < workers->count; i++) {
        pawl_worker_counts counts;
        pawl_worker_count(workers->runners[i], &counts);
        have_all = have_all && counts.is_stopped;
    }
    return have_all;
}

size_t pawli_serve_workers_free(struct pawli_serve_workers *workers)
{
    size_t left = 0;
    for (size_t i = 0; i < workers->count; i++)
        left += pawl_worker_free(workers->runners[i]);
    workers->count = 0;
    if (left > 0)
        return left; /* they may still look at the rest */
    pawl_command_free(workers->command);
    free(workers->queues);
    return 0;
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * serve_workers.h - the workers that `pawl serve` brings along where it is asked to: one that runs
 * a program for each job of some queues, and one that delivers webhooks.
 */
#ifndef PAWLI_CLI_SERVE_WORKERS_H
#define PAWLI_CLI_SERVE_WORKERS_H

#include "cli/options.h"
#include "cli/serve_webhooks.h"
#include "pawl/worker.h"

#define PAWLI_SERVE_WORKERS_MAX 2

/* Zeroed: none. */
struct pawli_serve_workers {
    pawl_runner *runners[PAWLI_SERVE_WORKERS_MAX];
    size_t count;
    pawl_command *command;
    pawl_worker_queue *queues;
};

/* What they share with the server: borrowed as long as they run. */
struct pawli_serve_workers_args {
    const struct pawli_line *line;
    struct pawli_serve_webhooks *webhooks;
    pawl_opener opener;
    pawl_watch watch;
    pawl_metrics *metrics;
};

/* Start those that the line asks for. Where it fails, pawli_serve_workers_free() ends the rest. */
PAWL_MUST_USE pawl_code pawli_serve_workers_start(struct pawli_serve_workers *workers,
                                                  const struct pawli_serve_workers_args *args,
                                                  pawl_err *err);

/* Claim nothing more, and finish within that time. Returns at once. */
void pawli_serve_workers_stop(struct pawli_serve_workers *workers, int64_t timeout_ms);
void pawli_serve_workers_abort(struct pawli_serve_workers *workers);
bool pawli_serve_workers_have_stopped(struct pawli_serve_workers *workers);

/* End and free them. The number of threads that have not come back: nothing may be freed then. */
size_t pawli_serve_workers_free(struct pawli_serve_workers *workers);

#endif

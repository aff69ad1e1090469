/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * command_run.h - one program at work on one job: its pipes, its environment, and watching over it.
 */
#ifndef PAWLI_RUNTIME_COMMAND_RUN_H
#define PAWLI_RUNTIME_COMMAND_RUN_H

#include "pawl/worker.h"
#include "runtime/run_env.h"
#include "runtime/tail.h"
#include "runtime/warden.h"

struct pawli_run {
    int child_stdin;  /* the program's end; closed once it has started; -1: not open */
    int child_stderr; /* likewise */
    int stdin_fd;     /* ours; -1 once all is written, or nobody reads */
    int stderr_fd;    /* ours; -1 once nobody can write */
    const char *payload;
    size_t payload_left;
    struct pawli_run_env env;
    struct pawli_tail tail;
};

/* Make pipes and environment. False: errno says why; pawli_run_clear() is due all the same. */
bool pawli_run_init(struct pawli_run *run, pawl_job_ctx *ctx);
void pawli_run_clear(struct pawli_run *run);

/*
 * Feed the program and read what it complains of, until it has ended, and all that it has started.
 * Tells it to stop when its job must, and kills it before the job would be given up. False: its
 * warden was killed, and the program with it.
 */
bool pawli_run_watch(struct pawli_run *run, pawl_job_ctx *ctx, struct pawli_warden *warden,
                     struct pawli_program_end *ret_end);

/* Read what is left in the pipe, without waiting for more. */
void pawli_run_drain(struct pawli_run *run);

#endif

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * bench_turn.h - one turn of `pawl bench`: jobs are enqueued, drained and timed.
 */
#ifndef PAWLI_CLI_BENCH_TURN_H
#define PAWLI_CLI_BENCH_TURN_H

#include "pawl/worker.h"

/* What a turn measures. */
enum pawli_bench_figure {
    PAWLI_BENCH_ENQUEUE = 0, /* jobs per second, in batches */
    PAWLI_BENCH_SINGLES,     /* jobs per second, one by one on one handle */
    PAWLI_BENCH_DRAIN,       /* jobs per second, by one worker */
    PAWLI_BENCH_START,       /* microseconds from enqueue to the handler's start: half are below */
    PAWLI_BENCH_START_SLOW,  /* the same: 99 % are below */
    PAWLI_BENCH_FIGURES
};

struct pawli_bench {
    const char *url; /* of the place */
    int64_t jobs;
    int64_t payload; /* bytes of each */
    int64_t batch;
    int64_t parallel;
};

/*
 * Take one turn. Blocks until it is done, or one of the stop signals comes, which must be held:
 * then *ret_is_stopped, and the figures say nothing.
 */
pawl_code pawli_bench_turn(const struct pawli_bench *bench, double figures[PAWLI_BENCH_FIGURES],
                           bool *ret_is_stopped, pawl_err *err);

#endif

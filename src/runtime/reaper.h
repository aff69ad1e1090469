/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * reaper.h - the reaper as a part of a worker: the same that pawl_reaper_start() runs alone.
 */
#ifndef PAWLI_RUNTIME_REAPER_H
#define PAWLI_RUNTIME_REAPER_H

#include "runtime/watch.h"

struct pawli_reaper_config {
    const pawl_opener *opener;       /* borrowed */
    const char *name;                /* of the reaper's presence row; NULL: does not reap; copied */
    const char *worker;              /* of the worker's presence row; NULL: it has none; copied */
    const pawl_worker_queue *queues; /* that the worker serves; their names are copied */
    size_t queues_count;
    int64_t interval_ms;
    int64_t batch_max;
    int64_t presence_ms;
    struct pawli_watch *watch; /* borrowed */
    const pawl_clock *clock;
    const pawl_random *random;
};

struct pawli_reaping;

struct pawli_reaping *pawli_reaping_new(const struct pawli_reaper_config *config); /* or NULL */
void pawli_reaping_free(struct pawli_reaping *reaping); /* accepts NULL; its thread has ended */

/* The thread: until it is told to end. Then it takes its presence rows away. */
void pawli_reaping_run(void *reaping);
void pawli_reaping_end(struct pawli_reaping *reaping);
/* Another interval from now on; the next run comes no later than that. From every thread. */
void pawli_reaping_set_interval(struct pawli_reaping *reaping, int64_t interval_ms);
int64_t pawli_reaping_runs(struct pawli_reaping *reaping);

/* Put an event in line behind the reaper's own; `at` and `worker` are filled in here. */
void pawli_reaper_tell(pawl_reaper *reaper, const pawl_event *event);

#endif

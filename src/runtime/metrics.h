/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * metrics.h - what workers and reapers tell the figures. From every thread; nothing here blocks.
 */
#ifndef PAWLI_RUNTIME_METRICS_H
#define PAWLI_RUNTIME_METRICS_H

#include "pawl/worker.h"

/* So many queues are told by their names; what is beyond counts as "other". */
#define PAWLI_METRICS_QUEUES_MAX 50
#define PAWLI_METRICS_OTHER      "other"

/* So many workers and reapers of a process are told by their names. */
#define PAWLI_METRICS_MEMBERS_MAX 16

/* An event happened, `at` that time: all that is counted comes from events. */
void pawli_metrics_count(pawl_metrics *metrics, const pawl_event *event, pawl_wall at);

/* A worker will work on this queue. */
void pawli_metrics_serve(pawl_metrics *metrics, const char *queue);

/* A worker or reaper is there; is there no more. */
void pawli_metrics_join(pawl_metrics *metrics, const char *name, pawl_worker_kind kind);
void pawli_metrics_leave(pawl_metrics *metrics, const char *name);

/* What one worker has of each now. */
struct pawli_gauges {
    int64_t slots;
    int64_t running;
    int64_t buffered;
    int64_t settling;
    int64_t releasing;
};
/* It has changed from what was told to what is; *told is brought up to date. One thread at a time
 * for each worker. */
void pawli_metrics_gauge(pawl_metrics *metrics, struct pawli_gauges *told,
                         const struct pawli_gauges *now);

/* ---- the depth of queues: see depths.h */

int64_t pawli_metrics_look_ms(const pawl_metrics *metrics);

/* The i-th queue that workers of this process serve, of those that are told by name. False: there
 * are no more. */
bool pawli_metrics_served(const pawl_metrics *metrics, size_t i, char ret_name[PAWL_NAME_MAX + 1]);

/* Depths as the store told them. `is_all`: what is not among the rows has nothing that lives. */
void pawli_metrics_depths(pawl_metrics *metrics, const pawl_stats *rows, size_t rows_count,
                          bool is_all);
void pawli_metrics_looked(pawl_metrics *metrics, pawl_wall at);

#endif

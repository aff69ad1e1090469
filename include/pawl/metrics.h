/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * metrics.h - figures for monitoring: what workers and reapers of this process have done, how deep
 * their queues are, in the text format that Prometheus reads. docs/metrics.md has every figure.
 * The words, the codes and the rules are those of pawl.h.
 */
#ifndef PAWL_METRICS_H
#define PAWL_METRICS_H

#include "pawl/pawl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- how deep a queue is */

/* Which queues: one, which gives a row in any case, or all that have live jobs or settings, by name
 * above `after`; others may be among them. Zeroed: all of them, from the beginning. */
typedef struct pawl_depth_args {
    const char *queue; /* NULL: all */
    const char *after; /* NULL: from the beginning; not with a queue */
} pawl_depth_args;

/*
 * pawl_queue_stats() without what has ended: succeeded and failed are not counted, and are 0. Costs
 * what is live in the queues that are asked for, and does not grow with their history: for those
 * who ask again and again. `args` may be NULL: zeroed.
 */
PAWL_API PAWL_MUST_USE pawl_code pawl_queue_depths(pawl_store *store, const pawl_depth_args *args,
                                                   pawl_stats *ret_rows, size_t rows_max,
                                                   size_t *ret_count, pawl_err *err);

/* ---- the figures of a process */

/*
 * What the workers and reapers count that were started with it, together: one of them is enough for
 * a process. Counting takes no lock that anybody could hold for long, and is never in the way of a
 * renewal.
 */
typedef struct pawl_metrics pawl_metrics;

typedef struct pawl_metrics_options {
    int64_t look_ms;     /* how often the store is asked for the depth of queues: default 15 s; less
                        often where the answers take long: 2 % of the time at most */
    bool is_process_off; /* leave out the figures of the process as a whole, process_... */
} pawl_metrics_options;

/* Everything as by default: call it first, then set what should differ. */
PAWL_API void pawl_metrics_options_init(pawl_metrics_options *options);

/* `options` may be NULL. PAWL_INVALID, PAWL_NO_MEMORY. */
PAWL_API PAWL_MUST_USE pawl_code pawl_metrics_new(const pawl_metrics_options *options,
                                                  pawl_metrics **ret_metrics, pawl_err *err);

/* No worker or reaper may use it any more, nor a thread that one of them left behind. Accepts
 * NULL. */
PAWL_API void pawl_metrics_free(pawl_metrics *metrics);

/*
 * The figures as they are now, in the text format 0.0.4. Asks no store, and does not block but for
 * a look at the process's own files. From any thread. The text is terminated; *ret_len may be NULL;
 * free() the text. PAWL_INVALID, PAWL_NO_MEMORY.
 */
PAWL_API PAWL_MUST_USE pawl_code pawl_metrics_text(pawl_metrics *metrics, char **ret_text,
                                                   size_t *ret_len, pawl_err *err);

/* Whoever writes a log counts here the lines that it could not write. NULL is ignored. */
PAWL_API void pawl_metrics_log_dropped(pawl_metrics *metrics, int64_t lines);

#ifdef __cplusplus
}
#endif

#endif

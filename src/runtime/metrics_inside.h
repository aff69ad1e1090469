/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * metrics_inside.h - the figures themselves. Private to metrics*.c.
 */
#ifndef PAWLI_RUNTIME_METRICS_INSIDE_H
#define PAWLI_RUNTIME_METRICS_INSIDE_H

#include "base/buffer.h"
#include "runtime/metrics.h"

#include <pthread.h>
#include <stdatomic.h>

/* A figure: added to and read without order. Each is right by itself; two of them may be of moments
 * that differ a little. */
typedef _Atomic int64_t figure;

static inline void pawli_add(figure *to, int64_t amount)
{
    atomic_fetch_add_explicit(to, amount, memory_order_relaxed);
}

static inline void pawli_put(figure *to, int64_t value)
{
    atomic_store_explicit(to, value, memory_order_relaxed);
}

static inline int64_t pawli_read(const figure *from)
{
    return atomic_load_explicit(from, memory_order_relaxed);
}

#define BUCKETS_MAX 14

/* The bounds of a histogram, in microseconds, rising; what is above the last counts as +Inf. */
struct bounds {
    size_t count;
    int64_t us[BUCKETS_MAX];
};
extern const struct bounds pawli_bounds_jobs;
extern const struct bounds pawli_bounds_calls;
extern const struct bounds pawli_bounds_stale;

struct histogram {
    figure buckets[BUCKETS_MAX + 1];
    figure sum_us;
};

/* Lists that labels are taken from: the place in a list is the place of its figure. */
enum {
    OUTCOMES = 8, /* of a job */
    ABORTS = 6,   /* why a handler was told to stop */
    RESULTS = 6,  /* of a renewal */
    FENCED = 3,   /* verbs of writes that were refused */
    EXPIRIES = 3, /* what became of an expired lease */
    VERBS = 11,   /* of store calls */
    FAILURES = 6, /* codes of store calls that failed */
    ANSWERS = 16  /* of endpoints, to deliveries */
};
extern const char *const pawli_outcomes[OUTCOMES];
extern const char *const pawli_aborts[ABORTS];
extern const char *const pawli_results[RESULTS];
extern const char *const pawli_fenced[FENCED];
extern const char *const pawli_expiries[EXPIRIES];
extern const char *const pawli_verbs[VERBS];
extern const char *const pawli_answers[ANSWERS];
extern const pawl_code pawli_failures[FAILURES];

/* The figures of one queue. */
struct queue_figures {
    char name[PAWL_NAME_MAX + 1]; /* written once, before the queue is counted in */
    figure is_served;             /* a worker of this process works on it */
    figure is_looked;             /* its depth is known */
    figure outcomes[OUTCOMES];
    figure expired[EXPIRIES];
    struct histogram wait;
    struct histogram run;
    figure ready;
    figure delayed;
    figure in_flight;
    figure leases_expired;
    figure oldest_us;
    figure is_paused;
};

struct member {
    char name[PAWL_NAME_MAX + 1]; /* empty: nobody */
    pawl_worker_kind kind;
};

struct pawl_metrics {
    pawl_metrics_options options;
    pthread_mutex_t mutex;                            /* held for a copy of names, never longer */
    struct member members[PAWLI_METRICS_MEMBERS_MAX]; /* mutex */

    /* Queues are added under the mutex and never go; the last place is that of all others. */
    struct queue_figures queues[PAWLI_METRICS_QUEUES_MAX + 1];
    atomic_size_t queues_count; /* of those with a name */

    figure slots;
    figure running;
    figure buffered;
    figure settling;
    figure releasing;
    figure stuck;
    figure aborts[ABORTS];
    figure renewals[RESULTS];
    figure fenced[FENCED];
    figure call_failures[VERBS][FAILURES];
    figure calls_overdue[VERBS];
    struct histogram calls[VERBS];
    figure reaper_runs;
    figure reaper_recovered;
    figure reaper_recovered_last;
    figure reaper_last_run_us;
    struct histogram reaper_stale;
    figure pruned;
    figure answers[ANSWERS];
    figure sends;
    struct histogram delivery;
    figure openings;
    figure disabled;
    figure deaths;
    figure looked_us;
    figure dropped;
};

/* metrics_process.c: the figures of the process as a whole. */
struct process_figures {
    int64_t cpu_us;
    int64_t resident_bytes;
    int64_t virtual_bytes;
    int64_t started_us; /* since 1970 */
    int64_t threads;
    int64_t open_fds;
    int64_t max_fds; /* INT64_MAX: no bound */
};
/* False: the system does not tell. */
bool pawli_process_figures(struct process_figures *ret_figures);

#endif

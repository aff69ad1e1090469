/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * stage.h - a store, in memory, on SQLite or on PostgreSQL, and what a test of the runtime needs
 * around it: an opener whose handles a gate can hold up, the events that workers told, and looks at
 * jobs. Each of these functions fails the test where it cannot be done.
 */
#ifndef PAWLT_RUNTIME_STAGE_H
#define PAWLT_RUNTIME_STAGE_H

#include "pawl/worker.h"
#include "support/fault_gate.h"
#include "support/scratch.h"

#include <stdatomic.h>

#define STAGE_WAIT_MS     60000 /* the longest that anything is waited for */
#define STAGE_EVENTS_MAX  20000
#define STAGE_RUNNERS_MAX 8
#define STAGE_QUEUE       "work"

/* The queue's lease: short enough to see leases end, long enough for a busy machine. Stores that
 * wait for a disk have more. */
int64_t stage_lease_ms(void);

struct stage {
    pawl_memory *memory;    /* NULL: it is on another store */
    pawl_sqlite *sqlite;    /* likewise */
    struct scratch scratch; /* of SQLite */
    pawl_store *store;      /* the test's own handle; no gate before it */
    struct fault_gate gate;
    pawl_stats before;                       /* what earlier stages left in the database */
    atomic_int opened;                       /* handles, ever */
    pawl_runner *runners[STAGE_RUNNERS_MAX]; /* started and not stopped */
    pthread_mutex_t mutex;
    pawl_event *events; /* in order: mutex */
    size_t events_count;
};

/* The stages that come are in memory, unless one of these was called. A database is emptied by each
 * of them. */
void stage_use(const char *conninfo);
void stage_use_sqlite(void);

/* Open a handle without a gate. Safe from every thread. */
pawl_code stage_open(struct stage *stage, pawl_store **ret_store, pawl_err *err);

struct stage *stage_new(void);
void stage_free(struct stage *stage); /* all workers must have ended */

/* A worker's options for it: one queue, its lease, quick polls, the gate, the events. */
void stage_options(struct stage *stage, pawl_worker_options *options);
extern const pawl_worker_queue stage_queue;

/* Start a worker, and free one that was started so. Those that a test leaves are freed with the
 * stage. Options must come from stage_options(). */
pawl_runner *stage_start(const pawl_worker_options *options);
size_t stage_drop(struct stage *stage, pawl_runner *runner);

/* Stop it in order; it must end in time, with nothing left. */
void stage_stop(struct stage *stage, pawl_runner *runner);

/* Put a job into the queue; its payload is `text`. */
pawl_id stage_enqueue(struct stage *stage, const char *text);
void stage_enqueue_many(struct stage *stage, size_t count);

/* The job as it is now, without payload. */
pawl_job stage_job(struct stage *stage, const pawl_id *id);
pawl_attempt stage_attempt(struct stage *stage, const pawl_id *id, int64_t attempt_no);
pawl_stats stage_stats(struct stage *stage);

/* How many events of a kind were told; `reason` NULL: for any. */
size_t stage_told(struct stage *stage, pawl_event_kind kind, const char *reason);

/* The same, of those about one subject. */
size_t stage_told_about(struct stage *stage, pawl_event_kind kind, const char *subject);

/* Wait until it holds; the test fails where it does not in time. */
#define AWAIT(condition)                                        \
    do {                                                        \
        int64_t await_until = stage_now_ms() + STAGE_WAIT_MS;   \
        while (!(condition)) {                                  \
            if (stage_now_ms() > await_until)                   \
                fail_msg("waited in vain for: %s", #condition); \
            stage_breathe();                                    \
        }                                                       \
    } while (0)
int64_t stage_now_ms(void);
void stage_breathe(void); /* let the others work for a moment */

#endif

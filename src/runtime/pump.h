/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * pump.h - one keeper under one lock, and the threads that make its store calls: claimer, settler
 * and renewer, each with a handle of its own, so that no call of one waits for another's. A store
 * that hangs, a slow claim or a full settle queue delays no renewal.
 *
 * Whoever owns the pump runs the jobs: the pool of handlers, or a dispatcher with a thread of its
 * own for I/O. The owner's one thread takes signals with pawli_pump_take() until there are none,
 * then waits, with pawli_pump_wait() or in its own way until config.wake() calls it, but no longer
 * than the deadline it was given. It never blocks on anything else: nobody else looks at the clock
 * while nothing happens.
 */
#ifndef PAWLI_RUNTIME_PUMP_H
#define PAWLI_RUNTIME_PUMP_H

#include "core/keeper.h"
#include "runtime/crew.h"
#include "runtime/watch.h"
#include "store/trace.h"

struct pawli_pump;

struct pawli_pump_config {
    const pawl_opener *opener;      /* borrowed, as all below but the lines and the name */
    const char *worker;             /* copied */
    const pawl_worker_queue *lines; /* copied; no two of one queue */
    size_t lines_count;
    size_t lines_max; /* with those that pawli_pump_line_put() adds; 0: it adds none */
    const pawl_worker_settings *settings; /* copied; checked */
    const pawl_clock *clock;
    const pawl_random *random;
    struct pawli_watch *watch;
    struct pawli_trace_writer *notes; /* what it does goes here, under its lock; NULL: nowhere */
    void (*wake)(void *user); /* there are signals; short, never blocks; NULL: pawli_pump_wait() */
    void *user;
};

#define PAWLI_PUMP_THREADS 3

/* Gives a pump whose threads have not started; PAWL_INVALID, PAWL_NO_MEMORY. */
pawl_code pawli_pump_new(const struct pawli_pump_config *config, struct pawli_pump **ret_pump,
                         pawl_err *err);
void pawli_pump_free(struct pawli_pump *pump); /* accepts NULL; no thread may use it */

pawl_code pawli_pump_start(struct pawli_pump *pump, struct pawli_crew *crew);

/* Let its threads end: after STOPPED, or where starting failed. */
void pawli_pump_end(struct pawli_pump *pump);

/* ---------------------------------------------------------------- the owner's thread */

/* START, ABORT, GIVE_UP, OVER or STOPPED, as in keeper.h. */
struct pawli_signal {
    enum pawli_action_kind kind;
    enum pawli_why why;
    struct pawli_slot slot;
    size_t left; /* STOPPED */
};

/* Look at the clock, and give the next signal. False: none for now; *ret_deadline says when to ask
 * again at the latest (PAWLI_MONO_NEVER: when called). */
bool pawli_pump_take(struct pawli_pump *pump, struct pawli_signal *ret_signal,
                     pawl_mono *ret_deadline);

/* Wait until there may be a signal, `deadline` has come, or a little while has passed (what
 * suspends the machine does not count in a wait, and does for the clock). */
void pawli_pump_wait(struct pawli_pump *pump, pawl_mono deadline);

/* ---------------------------------------------------------------- running a job: any thread */

/*
 * The job of a slot is about to begin: *ret_job is the caller's from here on. False: it must not
 * (its lease is at risk, it was told to stop); pawli_pump_ended() is due all the same.
 */
bool pawli_pump_begin(struct pawli_pump *pump, struct pawli_slot slot, pawl_job *ret_job);

struct pawli_pump_end {
    struct pawli_ended ended;
    const char *error_code; /* NULL: none; good as pawl_settle_row needs it */
    const char *error_text; /* likewise */
    bool is_delivery;       /* wire_sends counts */
    int64_t wire_sends;     /* see pawl_attempt */
};
/* Its handler has ended. A slot that has moved on is ignored. */
void pawli_pump_ended(struct pawli_pump *pump, struct pawli_slot slot,
                      const struct pawli_pump_end *end);

/* The same. True: the keeper has started another job, *ret_next, which is now the caller's to run;
 * its signal goes to nobody else. */
bool pawli_pump_ended_next(struct pawli_pump *pump, struct pawli_slot slot,
                           const struct pawli_pump_end *end, struct pawli_slot *ret_next);

/* Why it must stop; PAWLI_WHY_NONE: it may go on, and send. Looks at the clock. *ret_kill_by (may
 * be NULL) is when it will be given up, where it must. */
enum pawli_why pawli_pump_stop_why(struct pawli_pump *pump, struct pawli_slot slot,
                                   pawl_mono *ret_kill_by);

/* When its execution timeout ends it; the time now where the slot has moved on. */
pawl_mono pawli_pump_run_until(struct pawli_pump *pump, struct pawli_slot slot);

/* Tell the watcher something about the job of a slot: id, queue, attempt and version are filled in
 * here. */
void pawli_pump_tell(struct pawli_pump *pump, struct pawli_slot slot, pawl_event *event);

/* ---------------------------------------------------------------- steering: any thread */

void pawli_pump_shutdown(struct pawli_pump *pump, int64_t timeout_ms);
void pawli_pump_abort_all(struct pawli_pump *pump);
void pawli_pump_pause(struct pawli_pump *pump, size_t line, bool is_paused);

/* Checked settings. PAWL_FULL where the table is too small for them; nothing changed then. */
pawl_code pawli_pump_set(struct pawli_pump *pump, const pawl_worker_settings *settings,
                         pawl_err *err);

/* Ask for this lease from now on, for all lines. */
void pawli_pump_set_lease(struct pawli_pump *pump, int64_t lease_ms);

struct pawli_keeper_counts pawli_pump_count(struct pawli_pump *pump);
size_t pawli_pump_slots(const struct pawli_pump *pump);

/* The line of a queue; PAWLI_LINE_ALL where it is none of them. */
size_t pawli_pump_line(struct pawli_pump *pump, const char *queue);

/*
 * Serve a queue from now on, or serve it otherwise: jobs_max as in pawl_worker_queue, or 0, nothing
 * for now. Where there is no place left, one of a queue that was dropped is taken. Gives its line,
 * which stays until it is dropped; PAWLI_LINE_ALL: there are lines_max of them.
 */
size_t pawli_pump_line_put(struct pawli_pump *pump, const pawl_worker_queue *queue);

/* Another bound for a line, the rest as it is. */
void pawli_pump_line_bound(struct pawli_pump *pump, size_t line, int64_t jobs_max);

/* Claim nothing more of it; its place is free for another once nothing of it is held. */
void pawli_pump_line_drop(struct pawli_pump *pump, size_t line);

#endif

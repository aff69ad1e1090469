/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * pump_inside.h - what the files of the pump share. Private to pump*.c.
 */
#ifndef PAWLI_RUNTIME_PUMP_INSIDE_H
#define PAWLI_RUNTIME_PUMP_INSIDE_H

#include "runtime/pump.h"
#include "base/buffer.h"
#include "runtime/metrics.h"
#include "runtime/link.h"

#define CLAIM_BYTES_MAX (INT64_C(16) << 20) /* of payloads in one claim */

/* What is kept beside each of the keeper's slots. */
struct held {
    bool is_used;
    uint32_t generation;
    size_t line;
    pawl_lease lease;
    int64_t attempt;
    pawl_wall due_at;
    bool has_job; /* `job` is here: its handler has not begun */
    pawl_job job;
    enum pawli_why abort_why; /* NONE: it was not told to stop */
    pawl_mono kill_by;
    pawl_mono run_until;
    pawl_mono started_at;
    char *error_code; /* owned; NULL: none */
    char *error_text;
    int64_t wire_sends;     /* once it has ended; see pawl_attempt */
    int64_t retries_left;   /* when it was claimed */
    bool is_renewal_failed; /* the last renewal of it was not answered, which has been told */
};

/* A call that the keeper asked for. */
struct order {
    enum pawli_action_kind kind;
    uint64_t request;
    pawl_mono sent_at; /* when the keeper gave it out: leases count from here */
    pawl_mono deadline;
    int64_t jobs_max;
    struct pawli_action_line *lines;
    size_t lines_count;
    struct pawli_action_item *items;
    size_t items_count;
};

/* Calls of one kind: at most one that waits to be made, and one that is being made. */
struct lane {
    struct order next;
    struct order out;
    bool has_next;
    bool is_out;
    bool is_overdue; /* the keeper has been told that `out` got no answer */
};

enum {
    LANE_CLAIM = 0, /* and mine */
    LANE_RENEW,
    LANE_SETTLE,
    LANE_RELEASE,
    LANES
};

/* A thread that makes calls. Its buffers are its own while it does. */
struct caller {
    struct pawli_pump *pump;
    const char *thread_name;
    unsigned lanes; /* bits 1u << LANE_... */
    pthread_cond_t ordered;
    struct pawli_link link;
    pawl_store *waiting; /* the claimer waits for a hint on it, and may be woken; else NULL */
    struct pawli_verdict *verdicts;
    pawl_job *jobs;
    size_t jobs_count; /* that the last call brought */
    struct pawli_grant *grants;
    struct pawli_slot *slots;
    pawl_claim_line *claim_lines;
    char (*claim_names)[PAWL_NAME_MAX + 1]; /* of these: a line may change its name meanwhile */
    void *rows;                             /* of any verb */
    void *results;                          /* likewise */
    struct pawli_buffer texts;              /* errors on their way to the store */
    bool has_left_watch;                    /* it hangs, and nobody waits for what it has to tell */
};

/* Everything below is under the mutex but what is set once, in pawli_pump_new(). */
struct pawli_pump {
    pthread_mutex_t mutex;
    pthread_cond_t signalled;
    struct pawli_keeper *keeper;
    char worker[PAWL_NAME_MAX + 1];
    const pawl_clock *clock;
    struct pawli_watch *watch;
    struct pawli_trace_writer *notes;
    void (*wake)(void *user);
    void *user;
    int64_t table; /* parallel_max + buffer_max at the start */

    pawl_worker_queue *lines; /* the keeper's, place by place */
    char (*line_names)[PAWL_NAME_MAX + 1];
    bool *are_dropped;  /* which of them are served no more */
    size_t *lines_sort; /* their places in the order of their names */
    size_t lines_count;
    size_t lines_max;

    struct held *held;
    size_t slots;
    size_t jobs_max; /* the most that a claim or a page can bring */
    struct lane lanes[LANES];
    struct caller callers[PAWLI_PUMP_THREADS];

    struct pawli_signal *signals; /* a ring */
    size_t signals_max;
    size_t signals_first;
    size_t signals_count;
    pawl_mono owner_until;      /* the owner will look again by then */
    int64_t grace_ms;           /* as it is set now */
    struct pawli_gauges gauges; /* as the figures have them */
    int64_t parallel_max;       /* as it is set now */
    bool is_stopped;
    bool is_ending;
};

/* pump.c: all under the lock */
pawl_mono pawli_pump_now(const struct pawli_pump *pump);
void pawli_pump_drive(struct pawli_pump *pump); /* after each event: let the keeper act */
struct held *pawli_pump_find(struct pawli_pump *pump, struct pawli_slot slot);
void pawli_pump_note(struct pawli_pump *pump, struct pawli_trace_note note);
void pawli_pump_note_job(struct pawli_pump *pump, enum pawli_trace_note_kind kind,
                         const struct held *held, int64_t a);
/* The same of something that was decided at `now`: a process may be held up between its look at the
 * clock and the note. */
void pawli_pump_note_act(struct pawli_pump *pump, enum pawli_trace_note_kind kind,
                         const struct held *held, int64_t a, pawl_mono now);
void pawli_pump_gauge(struct pawli_pump *pump, const struct pawli_gauges *gauges);
void pawli_pump_fill(const struct pawli_pump *pump, const struct held *held, pawl_event *event);

/* pump_calls.c: the threads' work; pump_answers.c: what the keeper is told of it */
void pawli_caller_run(void *caller);
void pawli_answer_order(struct caller *caller, struct lane *lane, pawl_code code);
void pawli_answer_mine(struct caller *caller, struct lane *lane, bool is_last);
void pawli_pump_tell_unrenewed(struct pawli_pump *pump, const struct order *order, pawl_code code);
const char *pawli_pump_verb(enum pawli_action_kind kind);
const pawl_worker_queue *pawli_pump_line_at(const struct pawli_pump *pump, size_t line);
size_t pawli_pump_find_line(const struct pawli_pump *pump, const char *queue);
pawl_code pawli_pump_lines_new(struct pawli_pump *pump, const struct pawli_pump_config *config,
                               pawl_err *err);
void pawli_pump_lines_free(struct pawli_pump *pump);

#endif

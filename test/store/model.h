/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * model.h - a small and naive store: what the requirements say, in a few arrays, with no thought of
 * speed. It is told every call and every answer, says what is wrong with the answer, and takes over
 * what is right. What the requirements leave to the store (the length of a backoff, which of two
 * jobs comes first, whether a claim recovers more than it takes) it learns from the answer and
 * checks against the bounds.
 *
 * Instants are story time in microseconds. While an answer's instant is not told, it is known as a
 * range; a call happens within a span of time. Where a range and a span meet, both verdicts are
 * right, and the answer decides. On an exact clock they never meet by more than a point.
 */
#ifndef PAWLT_STORE_MODEL_H
#define PAWLT_STORE_MODEL_H

#include "pawl/pawl.h"

#define MODEL_JOBS_MAX   24
#define MODEL_QUEUES_MAX 4
#define MODEL_SHARDS_MAX 8
#define MODEL_ROWS_MAX   512  /* ledger rows of one job */
#define MODEL_TOKENS_MAX 8192 /* tokens ever seen */

/* The call took place between these two. */
struct model_span {
    int64_t from_us;
    int64_t to_us;
};

/* An instant, as far as it is known; 0 and 0: none. */
struct model_instant {
    int64_t low_us;
    int64_t high_us;
};

struct model_row {
    pawl_outcome outcome;
    pawl_reason reason;
    pawl_ended_by ended_by;
    int64_t lease_version;
    char worker[PAWL_NAME_MAX + 1];
    bool is_settle; /* written by a settle, with this action, under this token */
    pawl_settle_action action;
    pawl_token token;
};

/* Where a Ready job waits: the order of a queue is priority, then this, then arrival. */
enum model_place {
    MODEL_CAME_BACK = 0,
    MODEL_TIME_HAS_COME = 1,
    MODEL_ARRIVED = 2,
    MODEL_ANY_PLACE = 3 /* the requirements do not say: never compared */
};

struct model_job {
    bool is_known; /* the store has a memory of it */
    pawl_id id;
    size_t queue; /* an index */
    int priority;
    const char *dedupe_key;   /* NULL: none */
    const char *ordering_key; /* NULL: none; within one, `arrival` is the order */
    int64_t max_retries;
    int64_t timeout_ms;     /* PAWL_DEFAULT: the queue's */
    int64_t run_timeout_ms; /* in force for its last lease */

    pawl_state state;
    int64_t retries;
    int64_t lost_leases;
    int64_t lost_in_a_row;
    int64_t lease_version;
    struct model_instant due;
    struct model_instant start_by;
    struct model_instant finished;
    bool is_discarded;
    enum model_place place;
    int64_t arrival;

    /* while InFlight */
    pawl_token token;
    char worker[PAWL_NAME_MAX + 1];
    struct model_instant claimed;
    struct model_instant expires;
    struct model_instant run_until;
    struct model_instant unstarted_until;
    bool is_started; /* a renewal said so */
    bool is_cancel_asked;
    int64_t fence;

    /* what the next look at it may find, or must */
    bool may_be_recovered; /* its lease is over, or its deadline missed */
    bool may_be_pruned;
    bool must_be_pruned;
    struct model_span when; /* the call that left it so */

    struct model_row rows[MODEL_ROWS_MAX];
    size_t rows_count;
};

struct model_queue {
    const char *name;
    pawl_queue_settings settings;
    bool is_paused;
};

struct model {
    int64_t shards;   /* with one, order is checked */
    int64_t shift_us; /* what makes story time of the store's instants now */
    struct model_queue queues[MODEL_QUEUES_MAX];
    size_t queues_count;
    struct model_job jobs[MODEL_JOBS_MAX];
    size_t jobs_count; /* slots in use; a job keeps its slot */
    int64_t arrivals;
    int64_t last_fence;   /* the highest that any claim was given */
    int64_t fence_before; /* the same, before the claim that is looked at */
    pawl_token tokens[MODEL_TOKENS_MAX];
    size_t tokens_count;
    char complaint[256];
};

/* The job with this id, or NULL. Also one that is no longer known. */
struct model_job *model_find(struct model *model, const pawl_id *id);

bool model_is_terminal(const struct model_job *job);

/*
 * Each of these is told one call and its answer. It gives NULL where the answer is right, and takes
 * it over; otherwise a text that says what is wrong with it (which lives in the model).
 */
const char *model_enqueued(struct model *model, struct model_span span, const pawl_enqueue_row *row,
                           const pawl_enqueued *answer);

struct model_claim {
    const pawl_claim_args *args;
    size_t jobs_max;
    const pawl_job *jobs; /* the answer */
    size_t jobs_count;
};
const char *model_claimed(struct model *model, struct model_span span,
                          const struct model_claim *claim);

const char *model_renewed(struct model *model, struct model_span span, const char *worker,
                          const pawl_renew_row *row, const pawl_renewed *answer);
const char *model_settled(struct model *model, struct model_span span, const char *worker,
                          const pawl_settle_row *row, const pawl_settled *answer);
const char *model_released(struct model *model, struct model_span span, const char *worker,
                           const pawl_lease *lease, pawl_code answer);
const char *model_reaped(struct model *model, struct model_span span, size_t rows_max,
                         const pawl_reaped *rows, size_t rows_count);
const char *model_cancelled(struct model *model, struct model_span span, const pawl_id *id,
                            const pawl_changed *answer);
const char *model_redriven(struct model *model, struct model_span span, const pawl_id *id,
                           const pawl_changed *answer);
const char *model_discarded(struct model *model, const pawl_id *id, const pawl_changed *answer);
const char *model_pruned(struct model *model, struct model_span span, size_t count);

/* What reading verbs told. `job` NULL: PAWL_GONE. */
const char *model_seen(struct model *model, const pawl_id *id, const pawl_job *job);
const char *model_ledger(struct model *model, const pawl_id *id, const pawl_attempt *rows,
                         size_t rows_count);
const char *model_mine(struct model *model, struct model_span span, const char *worker,
                       const pawl_job *jobs, size_t jobs_count);
const char *model_listed(struct model *model, const pawl_filter *filter, const pawl_job *jobs,
                         size_t jobs_count);
const char *model_counted(struct model *model, struct model_span span, const pawl_stats *stats);

#endif

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * tale.h - histories made by hand, for tests of the checker. A tale keeps a small store in its
 * head, just enough to fill in what each answer must say; a test bends one answer, or leaves one
 * out, to break one promise.
 *
 * Time stands still unless it is told to pass. Leases are of TALE_LEASE_MS, so a heartbeat falls
 * due every TALE_BEAT_MS and has failed after twice that.
 */
#ifndef PAWLI_TEST_TALE_H
#define PAWLI_TEST_TALE_H

#include "core/keeper.h"
#include "sim/check.h"
#include "store/trace.h"

#define TALE_JOBS       6
#define TALE_ROWS       16
#define TALE_LEASE_MS   10000
#define TALE_BEAT_MS    2500
#define TALE_TIMEOUT_MS 30000
#define TALE_POLL_MS    1000
#define TALE_QUEUE      "queue"

struct tale_job {
    pawl_id id;
    pawl_state state;
    pawl_reason reason;
    int64_t version, retries, lost, attempts, max_retries;
    int64_t delay_ms; /* of the enqueue */
    const char *key;  /* its ordering key; NULL: none */
    int64_t fence;    /* of its last lease */
    pawl_wall due_at;
    const char *holder;
    uint64_t digest;
    pawl_wall claimed_at, expires_at;
    struct pawli_trace_row rows[TALE_ROWS]; /* its ledger */
    size_t rows_count;
    bool is_hidden; /* left out of the final list */
};

struct tale {
    struct pawli_trace_writer *writer;
    int64_t now_us;
    bool is_loose;       /* the store's clock is not told */
    bool is_open_ended;  /* nobody lists the jobs at the end */
    bool is_unaudited;   /* nobody reads the ledgers at the end */
    int64_t takes_us;    /* how long calls take: for loose ones */
    pawl_code call_code; /* of the next call as a whole, then OK again */
    pawl_code row_code;  /* of the next row, then OK again; anything but OK changes nothing */
    pawl_reason reason;  /* asked for by the next settle, then NONE again */
    uint64_t digests;    /* tokens given out */
    int64_t fences;      /* likewise */
    struct tale_job jobs[TALE_JOBS];

    /* Called with the next row before it is written, and then forgotten. */
    void (*bend)(struct pawli_trace_record *call, struct pawli_trace_row *row);
};

void tale_init(struct tale *tale);
void tale_clear(struct tale *tale);

void tale_pass(struct tale *tale, int64_t ms);
void tale_pass_us(struct tale *tale, int64_t us);

/* What the store's clock shows. */
pawl_wall tale_wall(const struct tale *tale);

/* ---- calls; jobs are numbers from 0, workers names */
void tale_enqueue(struct tale *tale, int job);
void tale_claim(struct tale *tale, const char *worker, int job);
void tale_mine(struct tale *tale, const char *worker, int job);
void tale_renew(struct tale *tale, const char *worker, int job);
/* delay_ms: PAWL_DEFAULT is computed, and comes out as 7 ms. */
void tale_settle(struct tale *tale, const char *worker, int job, pawl_settle_action action,
                 int64_t delay_ms);
/* The same settle once more, answered from the ledger. */
void tale_settle_again(struct tale *tale, const char *worker, int job, pawl_settle_action action);
void tale_release(struct tale *tale, const char *worker, int job);
void tale_reap(struct tale *tale, int job, pawl_reason reason);
void tale_cancel(struct tale *tale, int job);
void tale_redrive(struct tale *tale, int job);
void tale_prune(struct tale *tale, int64_t count);
void tale_queue_pause(struct tale *tale, bool is_paused);
void tale_queue_set(struct tale *tale, int64_t max_lost_leases);
void tale_queue_bound(struct tale *tale, int64_t max_in_flight);

/* The list of all jobs, and all ledgers. */
void tale_end(struct tale *tale);

/* A row of any call, for what the calls above do not do. */
void tale_call(struct tale *tale, enum pawli_trace_verb verb, const char *subject,
               struct pawli_trace_row row);

/* What stands in a row about this job's current lease. */
struct pawli_trace_row tale_lease_row(const struct tale *tale, int job);

/* An expiry that a claim finds on its way: it leaves its row, and is told by nobody. */
void tale_expire_unseen(struct tale *tale, int job);

/* ---- notes */
void tale_up(struct tale *tale, const char *worker);
void tale_note(struct tale *tale, enum pawli_trace_note_kind kind, const char *actor, int64_t a);
void tale_job_note(struct tale *tale, enum pawli_trace_note_kind kind, const char *actor, int job,
                   int64_t a);
/* The worker was told that it holds the job: asked for just now. */
void tale_confirm(struct tale *tale, const char *worker, int job);

/* ---- several at once */
void tale_work(struct tale *tale, const char *worker, int job); /* claim, confirm, start */
void tale_done(struct tale *tale, const char *worker, int job); /* it ends, is settled, over */

#endif

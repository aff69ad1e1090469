/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * check_model.h - one job as the store must see it, record by record. Private to check_store.c,
 * check_holders.c, check_model.c and check_ledger.c; for exact histories only.
 */
#ifndef SIM_CHECK_MODEL_H
#define SIM_CHECK_MODEL_H

#include "sim/check_book.h"

/* A ledger row that the calls imply. */
struct check_row {
    int64_t version;
    pawl_outcome outcome;
    pawl_reason reason;
    pawl_ended_by ended_by;
    const struct check_worker *worker;
    int64_t started_us;
    int64_t finished_us; /* 0: not known */
    const struct check_event *cause;
};

struct check_model {
    struct check_book *book;
    struct check_job *job;
    bool is_enqueued;
    pawl_state state;
    struct check_lease *lease; /* while InFlight */
    int64_t version;
    int64_t retries, lost, lost_in_a_row, attempts;
    int64_t due_us;      /* INT64_MIN: not known */
    int64_t start_by_us; /* 0: none */
    pawl_reason reason;
    bool is_discarded;
    int64_t max_retries, base_ms, max_ms; /* the job's own; PAWL_DEFAULT: the queue's */
    uint32_t since_seq;                   /* the record before which it was not yet in this state */
    const struct check_event *event;      /* at which the walk is */

    /* Changes by filter that may have meant it: the last of each, 0 for none. */
    uint32_t cancel_seq, redrive_seq, discard_seq;
    bool has_guessed; /* without a ledger such a change leaves the counters uncertain */
    const struct check_where *where; /* the next one to come */

    struct check_row *rows; /* as many as the job can have */
    size_t rows_count, rows_size;
};

/* The limits in force at a record; negative where they are not known. */
struct check_settings check_limits(const struct check_model *model, uint32_t seq);

/* Whether the current lease may have expired unseen before `event`. */
bool check_can_expire(const struct check_model *model, const struct check_event *event);

/* Whether the lease that an event shows is the current one, and valid. */
bool check_is_valid(const struct check_model *model, const struct check_event *event);

/* The current lease has expired. `reaped` is the row that says so; NULL: it was found on the way to
 * `event`. */
void check_expire(struct check_model *model, const struct check_event *event,
                  const struct check_event *reaped);

/* The start-by deadline has passed; likewise. */
void check_miss(struct check_model *model, const struct check_event *event,
                const struct check_event *reaped);

/* It is in this state from here on, since the record `seq` at the earliest. */
void check_enter(struct check_model *model, pawl_state state, pawl_reason reason, uint32_t seq);

/* It is live from here on: `joined` says where it stands among those of its ordering key; NULL:
 * nothing tells. */
void check_join(struct check_model *model, const struct check_event *joined);

/* Whether the store's clock may have shown `us` or more between two records. */
bool check_has_been(const struct check_book *book, int64_t us, uint32_t after_seq,
                    const struct check_event *event);

/* Cancelled while it was Ready, at `finished_us` by the store's clock; 0: not known. */
void check_cancel_ready(struct check_model *model, const struct check_event *event,
                        int64_t finished_us);
void check_redrive(struct check_model *model, int64_t due_us, uint32_t seq);

/* The row that the next change must write, where the final ledger is known; else NULL. */
const struct check_event *check_next_row(const struct check_model *model);

/* Write down a row that the ledger must have. */
void check_add_row(struct check_model *model, struct check_row row);

/*
 * Let the job come into a state by what may have happened unseen before `event`: expiries, missed
 * deadlines, changes by filter. False where nothing explains it. `attempts` is how many ledger rows
 * it has by then; negative: not known.
 */
bool check_become(struct check_model *model, const struct check_event *event, pawl_state state,
                  int64_t attempts);

/* Whether the final ledger says that the job was cancelled at this time while it was Ready: its
 * next row does, or the one behind an expiry that was not seen. */
bool check_is_cancelled_at(const struct check_model *model, int64_t store_us);

/* Changes by filter and prunes up to a record. */
void check_wheres(struct check_model *model, uint32_t seq);

/* Whether a prune may have forgotten the job before a record. */
bool check_may_be_pruned(const struct check_book *book, uint32_t terminal_seq, uint32_t seq);

/* What the model says cannot be: report it, and nothing more of this job. */
void check_wrong(struct check_model *model, enum check_rule rule, const struct check_event *event,
                 const char *format, ...) __attribute__((format(printf, 4, 5)));

/* ---- check_holders.c: what holders of leases said and were answered */
void check_renewed(struct check_model *model, const struct check_event *event);
void check_settled(struct check_model *model, const struct check_event *event);
void check_released(struct check_model *model, const struct check_event *event);

/* The lease, as a grant or a renewal has set its end. */
void check_extend(const struct check_book *book, struct check_lease *lease,
                  const struct check_event *event, int64_t expires_us);

/* Answered GONE: whether the store may have forgotten the job; where not, it is reported. */
bool check_is_gone(struct check_model *model, const struct check_event *event);

/* ---- check_ledger.c: hold the ledger against the rows that were written down */
void check_ledger(struct check_model *model);

#endif

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * check_book.h - what the checker's files share: the history sorted by job, by worker and by queue.
 * check_load.c fills it, the other check_*.c read it, each for its own rules. Private to check*.c.
 */
#ifndef SIM_CHECK_BOOK_H
#define SIM_CHECK_BOOK_H

#include "core/keeper.h"
#include "sim/check.h"
#include "store/trace.h"

#define CHECK_NEVER_US INT64_MAX

/* ---------------------------------------------------------------- time: saturating, as garbage may
 * hold any number */

static inline int64_t plus(int64_t a, int64_t b)
{
    int64_t sum;
    if (!__builtin_add_overflow(a, b, &sum))
        return sum;
    return b > 0 ? INT64_MAX : INT64_MIN;
}

static inline int64_t minus(int64_t a, int64_t b)
{
    int64_t difference;
    if (!__builtin_sub_overflow(a, b, &difference))
        return difference;
    return b < 0 ? INT64_MAX : INT64_MIN;
}

static inline int64_t ms_to_us(int64_t ms)
{
    int64_t us;
    if (!__builtin_mul_overflow(ms, 1000, &us))
        return us;
    return ms > 0 ? INT64_MAX : INT64_MIN;
}

static inline int64_t later_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline int64_t earlier_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---------------------------------------------------------------- the history, sorted */

struct check_job;
struct check_lease;
struct check_worker;
struct check_queue;
struct check_key;

/* A stretch of time; a point where both ends are the same. */
struct check_span {
    int64_t from_us;
    int64_t to_us;
    int64_t what; /* faults: the verb; jumps: by how much; peaks: what the store's clock showed */
    uint32_t seq;
};

struct check_spans {
    struct check_span *items;
    size_t count;
    size_t size;
};

/* One row of a call, or one note about a job. */
struct check_event {
    struct check_event *next;      /* of the same job; of a ledger, the next row */
    struct check_event *next_call; /* of the same job, notes left out */
    struct check_event *next_by;   /* by the same worker: notes, and leases granted to it */
    struct check_job *job;         /* NULL for notes that name none */
    struct check_worker *by;       /* whose lease it speaks of, or who acts; NULL: nobody */
    struct check_lease *lease;     /* that it names; NULL: none */
    uint32_t seq;                  /* its place in the history, from 1 */
    uint32_t row;                  /* its place in its call */
    uint8_t verb;                  /* enum pawli_trace_verb; 0 for a note */
    uint8_t note;                  /* enum pawli_trace_note_kind; 0 for a call */
    uint8_t code;
    uint8_t action, state, reason, outcome, ended_by;
    bool is_unstarted;
    int64_t version;
    int64_t at_us;
    int64_t until_us;
    int64_t store_us;
    uint64_t digest;
    union {
        struct {
            int64_t claimed_us, expires_us, run_until_us, due_us, start_by_us;
            int64_t lease_ms, timeout_ms, retries, lost, attempts, max_retries, fence;
        } grant; /* CLAIM, MINE; LIST has most of it */
        struct {
            int64_t expires_us, lease_ms;
        } renew;
        struct {
            int64_t due_us, delay_ms, attempt_no;
        } settle;
        struct {
            int64_t due_us, overdue_ms;
        } reap;
        struct {
            int64_t delay_ms, start_within_ms, max_retries, base_ms, max_ms;
        } enqueue;
        struct {
            int64_t number, started_us, finished_us;
        } attempt;
        struct {
            int64_t a, b, c; /* CONFIRMED: sent, lease_ms, and in c the heartbeat interval in ms */
        } told;
    } u;
};

enum check_end {
    CHECK_OPEN = 0,
    CHECK_SETTLED,
    CHECK_RELEASED,
    CHECK_EXPIRED
};

/* One lease: a job under one version. Filled by load (what was asked and answered), by the walk
 * over the store's answers, and by the walk over the worker's notes. */
struct check_lease {
    struct check_lease *next; /* of the same job, the one before */
    struct check_job *job;
    int64_t version;
    const struct check_event *grant; /* CLAIM, else MINE; NULL: never seen */
    struct check_worker *holder;     /* of the grant; NULL: not known */
    uint8_t unknown_settles;         /* bits 1u << action: such a settle ended in UNKNOWN */
    bool is_unknown_release;
    uint32_t claims; /* rows that granted it */

    /* The store's side. */
    int64_t expires_us;           /* by the store's clock, as it stood at the end */
    int64_t expires_at_us;        /* the same in the history's time, as far as that is known */
    int64_t expires_at_latest_us; /* the same, with all the drift there may be */
    uint32_t extended_seq;        /* of the claim or renewal that set it */
    int64_t run_until_us;
    int64_t unstarted_until_us;        /* renewals as unstarted are refused from here on */
    bool is_started;                   /* a renewal as started was accepted */
    const struct check_event *renewed; /* loose: the last renewal that was accepted */
    bool is_expiry_known;              /* loose: no renewal went without an answer */
    bool is_in_ledger;                 /* loose: its row was found */
    enum check_end end;
    const struct check_event *ended_by; /* what ended it; for an expiry what showed it */
    int64_t expired_store_us;           /* when it was found to have expired; 0: not known */
    pawl_settle_action settled_as;
    int64_t settled_no;      /* the ledger row */
    bool is_ended_cancelled; /* its end failed the job as cancelled */
    bool is_cancel_asked;
    bool is_cancel_possible; /* a change by filter, or one that was not answered, may have marked it
                              */

    /* The worker's side, as far as its notes have been read. */
    uint32_t confirms;
    int64_t sent_us, sent_before_us; /* of the last confirmed request, and of the one before */
    int64_t interval_ms, interval_before_ms; /* the heartbeat's; 0: not known */
    int64_t lease_ms;
    int64_t confirmed_us; /* when the last one was told */
    int64_t first_sent_us;
    int64_t extended_at_us; /* when the store last extended it, and until when at the latest */
    int64_t valid_until_us;
    int64_t started_us, ended_us, abort_us, over_us; /* CHECK_NEVER_US: it has not */
    int64_t result;                                  /* enum pawli_result */
    int64_t abort_why;                               /* enum pawli_why */
    bool is_given_up;
    bool is_refused;      /* a renewal was answered STALE or GONE */
    bool is_cancel_told;  /* a renewal was answered CANCELLED */
    bool is_timeout_told; /* a renewal was answered TIMEOUT */
    bool is_settle_ok, is_settle_stale, is_release_ok, is_release_stale; /* answers so far */
    bool is_release_sent;
    bool is_wrong; /* it was run twice: what follows from that is not reported */

    /* check_pauses.c reads the same notes by worker: what it knows so far. */
    struct {
        int64_t sent_us, interval_ms;
        bool is_owed; /* its abort must come next */
    } step;
};

/* A time in which a job was live, and so had a place among those of its ordering key. */
struct check_stay {
    struct check_stay *next; /* of the same job, the one before */
    const struct check_event *joined;
    uint32_t left_seq;     /* the record before which it had not left; UINT32_MAX: it has not */
    int64_t left_until_us; /* when it is known to have left */
    bool is_vague;         /* it joined unseen: nobody knows behind whom */
};

struct check_job {
    struct check_job *next_in_bucket;
    struct check_job *next;   /* in the order of appearance */
    struct check_job *before; /* its earlier life: pruned, and then enqueued again */
    pawl_id id;
    struct check_queue *queue; /* NULL: not known */
    struct check_key *key;     /* NULL: none, or not known */
    struct check_job *next_of_key;
    struct check_job *next_of_queue;
    struct check_stay *stays; /* exact: the latest first */
    struct check_event *first, *last;
    struct check_event *first_call, *last_call; /* notes left out */
    struct check_lease *leases;                 /* the latest first */
    const struct check_event *listed;           /* its row of a list; final where that list is */
    struct check_event *ledger_first, *ledger_last; /* its ledger's rows, by `next` */
    uint32_t ledger_seq; /* when the ledger was read, from its beginning; 0: never */
    bool is_ledger_whole;
    bool has_ledger;    /* the ledger is the final one, and whole */
    bool is_superseded; /* it has a later life */
    bool is_acked;
    size_t calls_count;
    bool is_wrong; /* a violation was found: what follows from it is not reported */
    uint32_t enqueued_ok, enqueued_unknown;

    /* What the walk over the store's answers found. */
    bool is_terminal;
    bool is_open; /* InFlight at the end */
    uint32_t terminal_seq;
    struct check_spans ready; /* C14: when it was Ready and due, once the faults were off */
};

struct check_worker {
    struct check_worker *next_in_bucket;
    struct check_worker *next;
    const char *name;
    bool is_told; /* it has said WORKER_UP: its notes are in the history */
    int64_t heartbeat_ms;
    int64_t poll_ms; /* the longest that it had */
    int64_t up_us;
    struct check_event *first, *last; /* by next_by */
    struct check_spans pauses, downs, faults, shutdowns;
    struct check_spans idle; /* C14 */
    uint64_t serves[4];      /* bits: numbers of queues that it has claimed from, modulo 256 */
};

/* What a queue's settings were from a record on. Negative: not known. */
struct check_settings {
    int64_t max_retries, max_lost_leases, base_ms, max_ms, max_in_flight;
};

struct check_setting {
    struct check_setting *next; /* the one before */
    uint32_t seq;
    struct check_settings settings;
};

struct check_queue {
    struct check_queue *next_in_bucket;
    const char *name;
    uint32_t number;
    struct check_setting *settings; /* the latest first */
    struct check_spans pauses;      /* `what`: the record that resumed it */
    bool is_pause_unknown;
    struct check_queue *next;
    struct check_job *jobs; /* by next_of_queue */
};

/* An ordering key of a queue. */
struct check_key {
    struct check_key *next_in_bucket;
    struct check_key *next;
    const struct check_queue *queue;
    const char *name;
    struct check_job *jobs; /* by next_of_key */
};

/* A change by filter, or a prune: it names no jobs. */
struct check_where {
    struct check_where *next;
    uint8_t verb;
    const struct check_queue *queue; /* NULL: any */
    uint32_t seq;
    int64_t at_us;
    int64_t store_us;
};

struct check_arena;

/* Delays that were drawn. That all are 0 is less likely than one in 2^bits. */
struct check_delays {
    size_t count, zeros, bits;
};

struct check_book {
    const struct check_options *options;
    struct check_report *report;
    struct check_arena *arena;
    bool is_out_of_memory;

    struct check_job **job_buckets;
    size_t job_buckets_count;
    struct check_job *jobs, *jobs_last;
    size_t jobs_count;
    struct check_worker *worker_buckets[256];
    struct check_worker *workers, *workers_last;
    struct check_worker *worker_cached; /* the last one looked up */
    struct check_queue *queue_buckets[64];
    uint32_t queues_count;
    struct check_queue *queues;
    struct check_key *key_buckets[1024];
    struct check_key *keys;
    uint32_t row; /* of the call that is being read */
    struct check_where *wheres, *wheres_last;

    struct pawli_trace_reader **readers; /* names live in them */
    size_t readers_count;

    uint32_t seq;
    struct check_spans store_downs;
    struct check_spans reap_faults;
    struct check_spans jumps;
    struct check_spans peaks; /* before each jump back: what the clock may have shown */
    int64_t last_at_us;
    int64_t last_store_us, last_store_at_us;
    int64_t faults_off_us; /* CHECK_NEVER_US: they were never switched off */
    size_t prunes;
    int64_t pruned;
    bool is_prune_unknown;
    int64_t enqueued_ok, enqueued_unknown;
    uint32_t unknown_claims;
    struct check_delays retry_delays, loss_delays; /* C18: computed ones */
    uint64_t *digests;
    size_t digests_count, digests_size;

    /* The last listing of everything. */
    uint32_t list_seq;        /* of its first page; 0: none */
    bool is_list_whole;       /* a page that was not full ended it */
    uint32_t last_change_seq; /* the last call that may have changed a job */
    size_t listed_count;
};

/* ---- check.c: memory and reporting */

void *check_alloc(struct check_book *book, size_t size); /* zeroed; NULL: no memory */
bool check_spans_add(struct check_book *book, struct check_spans *spans, struct check_span span);

/* Report a violation. `event` says when and about which job; it may be NULL. */
void check_fail(struct check_book *book, enum check_rule rule, const struct check_event *event,
                const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The same about a job as a whole. */
void check_fail_job(struct check_book *book, enum check_rule rule, const struct check_job *job,
                    const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Whether any span overlaps [from, to]. */
bool check_overlaps(const struct check_spans *spans, int64_t from_us, int64_t to_us);

/* More than the true length: by as much as two clocks may differ, and a millisecond for rounding.
 */
int64_t check_stretched(const struct check_book *book, int64_t us);
/* Less than it. */
int64_t check_shrunk(const struct check_book *book, int64_t us);

/* A delay was drawn from 0 to most_ms. */
void check_delays_add(struct check_delays *delays, int64_t delay_us, int64_t most_ms);

struct check_lease *check_lease_of(struct check_job *job, int64_t version);

/* The settings of a job's queue before the record `seq`. */
struct check_settings check_settings_at(const struct check_queue *queue, uint32_t seq);

const char *check_worker_name(const struct check_worker *worker);

/* ---- check_load.c: fill the book */
pawl_code check_load(struct check_book *book, const struct check_part *parts, size_t parts_count,
                     pawl_err *err);

/* ---- the rules; false: no memory */
bool check_store(struct check_book *book);   /* check_store.c, check_holders.c, check_ledger.c, for
                                                exact histories: C2-C9, C18, C22-C24, C27 */
bool check_loose(struct check_book *book);   /* check_loose.c: what of these a loose one can show */
bool check_workers(struct check_book *book); /* check_workers.c: C10, C11, C13, C17, C19-C21 */
bool check_pauses(struct check_book *book);  /* check_pauses.c: C12 */
bool check_stops(struct check_book *book);   /* check_stops.c: C28 */
bool check_keys(struct check_book *book);    /* check_keys.c, check_keys_loose.c: C29 to C32; before
                                                check_waiting(), which it tells who had to wait */
bool check_waiting(struct check_book *book); /* check_waiting.c: C14, C15 */
bool check_totals(struct check_book *book);  /* check_totals.c: C1, C16, C25, C26 */

#endif

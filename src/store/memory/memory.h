/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * memory.h - the records of the memory store and what its files share. Private to this folder (and
 * to the tests that look behind the verbs).
 *
 * What holds whenever the lock is free (cited by number in the .c files; tests check all of them):
 *  M1  A job is in `jobs`, and on its shelf in `shelves` and in its queue's `shelves`, from enqueue
 *      to prune.
 *  M2  A Ready job is in its queue's `due`, and in its line's `ready` exactly where its due time is
 *      not after the queue's `due_until` and no job of its ordering key stands before it.
 *  M3  An InFlight job is in its line's `leases` and in its holder's `held`.
 *  M4  A terminal job is in its queue's `finished`, by its state.
 *  M5  `deadlines` holds each InFlight job by its expiry and each Ready job that has a start-by
 *      deadline by that.
 *  M6  A queue's `dedupes` holds each live job that has a dedupe key, and no two with the same.
 *  M7  A queue's counters count what its trees hold.
 *  M8  A ledger has as many rows as the job says attempts; a holder is kept as long as a job or a
 *      row names it.
 *  M9  A queue is kept as long as it has jobs or settings; an ordering key as long as it has jobs,
 *      terminal ones too, so that none has to be made for a redrive.
 *  M10 The live jobs of an ordering key are in its `jobs`, in the order in which they came, and
 *      none but the first is InFlight.
 *
 * A verb first gathers all the memory that it may need, without a change that anybody could see,
 * and then changes jobs without a step that can fail.
 */
#ifndef PAWLI_STORE_MEMORY_MEMORY_H
#define PAWLI_STORE_MEMORY_MEMORY_H

#include "core/event.h"
#include "core/job.h"
#include "pawl/endpoint.h"
#include "store/memory/tailed.h"
#include "store/store.h"

#include <pthread.h>
#include <sys/queue.h>

#define STATES_COUNT  (PAWL_FAILED + 1)
#define REASONS_COUNT (PAWL_REASON_START_BY + 1)

/*
 * A shelf keeps, by id, the jobs that no filter of the port tells apart: of one state, of one last
 * reason, and either marked (InFlight: cancellation asked; Failed: discarded) or not.
 */
#define SHELVES_COUNT (STATES_COUNT * 2 * REASONS_COUNT)

/* Where a Ready job stands among those of its priority. */
enum rank {
    RANK_RETURNED = 0, /* released or recovered, in the order of their return */
    RANK_TIMED = 1,    /* it waited for a due time: by that time */
    RANK_ARRIVAL = 2   /* in the order in which they came; redriven ones come again */
};

/* One attempt as it is kept; pawl_attempt is what is given out. Row i has the number i + 1. */
struct ledger_row {
    int64_t job_version; /* the job's lease version then, also where no lease ended: never falls */
    pawl_wall started_at;
    pawl_wall finished_at;
    struct holder *holder;    /* NULL: no lease ended here */
    struct error_note *error; /* NULL: none; owned */
    uint64_t token_digest;    /* of the lease that its holder ended; otherwise 0 */
    int32_t wire_sends;       /* or PAWL_SENDS_UNKNOWN */
    uint8_t outcome;
    uint8_t reason;
    uint8_t ended_by;
};

/* What a worker said about a failed attempt. */
struct error_note {
    size_t text_at; /* where the text begins in `chars`; the code begins at 0; both terminated */
    char chars[];
};

/* A job. All fields are under the memory's lock. */
struct entry {
    pawl_id id;
    struct pawli_job job;
    struct queue *queue;
    struct line *line;
    struct ordering_key *ordering_key; /* NULL: none; this is a use of it */
    struct holder *holder;             /* while InFlight */
    pawl_wall created_at;
    int64_t max_retries; /* this and the next three: PAWL_DEFAULT for the queue's */
    int64_t timeout_ms;
    int64_t backoff_base_ms;
    int64_t backoff_max_ms;
    void *payload;             /* owned; NULL where it is empty or no longer kept */
    size_t payload_len;        /* stays when the payload goes */
    char *headers;             /* owned; NULL where there are none, and where the payload is gone */
    struct ledger_row *ledger; /* job.attempts rows; owned, unless it is ledger_first */
    size_t ledger_room;
    struct ledger_row ledger_first[1]; /* most jobs have one attempt */

    /* Keys of the trees: changed only while the job is in none that uses them. */
    int priority;
    enum rank rank;
    int64_t timed_us; /* RANK_TIMED: the due time; otherwise 0 */
    int64_t position; /* drawn from the memory's `position`: no two are equal */
    int shelf;
    pawl_wall deadline; /* 0: not in `deadlines` */

    bool is_claimable;   /* in its line's `ready` */
    bool is_dedupe_held; /* in its queue's `dedupes` */
    bool is_in_order;    /* in its ordering key's `jobs` */
    struct entry *next;  /* a list that one verb makes and forgets before it lets go of the lock */
#ifdef PAWL_TEST_POINTS
    struct pawli_job *ghost; /* owned; see mutant.c */
#endif

    RB_ENTRY(entry) in_jobs;
    RB_ENTRY(entry) in_shelves;
    RB_ENTRY(entry) in_queue_shelves;
    RB_ENTRY(entry) in_line;  /* Ready: `ready`; InFlight: `leases` */
    RB_ENTRY(entry) in_group; /* Ready: `due`; InFlight: `held`; terminal: `finished` */
    RB_ENTRY(entry) in_deadlines;
    RB_ENTRY(entry) in_dedupes;
    TAILQ_ENTRY(entry) in_order;

    char dedupe_key[]; /* empty: none */
};

TAILED_HEAD(pawli_job_tree, entry);   /* by id */
TAILED_HEAD(pawli_shelf_tree, entry); /* of one shelf, by id */
TAILED_HEAD(pawli_queue_shelf_tree, entry);
TAILED_HEAD(pawli_ready_tree, entry);    /* in the order of claims */
TAILED_HEAD(pawli_lease_tree, entry);    /* by expiry */
TAILED_HEAD(pawli_due_tree, entry);      /* by due time */
TAILED_HEAD(pawli_held_tree, entry);     /* by id */
TAILED_HEAD(pawli_finished_tree, entry); /* by the time it became terminal */
TAILED_HEAD(pawli_deadline_tree, entry); /* by deadline */
RB_HEAD(pawli_dedupe_tree, entry);       /* by ordering key, then dedupe key */

/* The live jobs of one ordering key of a queue. The first one holds the key: RES-7. */
TAILQ_HEAD(pawli_order, entry);
struct ordering_key {
    RB_ENTRY(ordering_key) in_keys;
    struct queue *queue;
    int64_t uses; /* by jobs of all states */
    struct pawli_order jobs;
    char name[];
};
RB_HEAD(pawli_ordering_tree, ordering_key); /* by name */

/* A worker's name, shared by the jobs it holds and the rows it left. */
struct holder {
    RB_ENTRY(holder) in_holders;
    int64_t uses;
    int64_t held_count;
    struct pawli_held_tree held;
    char name[];
};
RB_HEAD(pawli_holder_tree, holder);

/* One shard of a queue: what is in order here is in order for good. */
struct line {
    struct pawli_ready_tree ready;
    struct pawli_lease_tree leases;
    int64_t in_flight;         /* the size of `leases` */
    struct claim_visit *visit; /* of the claim that is under way; see claim.c */
};

struct queue {
    RB_ENTRY(queue) in_queues;
    char name[PAWL_NAME_MAX + 1];
    pawl_queue_settings settings;
    bool is_set; /* somebody set or paused it: kept without jobs */
    int64_t counts[STATES_COUNT];
    int64_t delayed; /* Ready, and not in a line's `ready` */
    int64_t expired; /* InFlight, and the expiry not after the memory's `expired_until` */
    struct pawli_queue_shelf_tree shelves[SHELVES_COUNT];
    struct pawli_due_tree due;
    pawl_wall due_until; /* see pawli_memory_turn_due() */
    struct pawli_finished_tree succeeded;
    struct pawli_finished_tree failed;
    struct pawli_dedupe_tree dedupes;
    struct pawli_ordering_tree ordering_keys;
    size_t next_line;    /* where the next claim begins */
    struct line lines[]; /* one for each shard */
};
RB_HEAD(pawli_queue_tree, queue);

/* A worker or reaper that has shown itself. */
struct presence {
    RB_ENTRY(presence) in_presences;
    pawl_worker row; /* `leases` is filled when it is given out */
};
RB_HEAD(pawli_presence_tree, presence);

/* An endpoint, with what a delivery needs. */
struct endpoint {
    RB_ENTRY(endpoint) in_endpoints;
    pawl_endpoint row; /* queue_settings and secrets_count are filled when it is given out */
    pawl_endpoint_credentials credentials;
};
RB_HEAD(pawli_endpoint_tree, endpoint);

/* An event that can be replayed. All but the places in trees stay as they are. */
struct kept_event {
    RB_ENTRY(kept_event) in_events;
    RB_ENTRY(kept_event) by_id;
    RB_ENTRY(kept_event) by_keep;
    pawl_replay_place place; /* no two have the same seq */
    pawl_wall keep_until;
    char id[PAWL_EVENT_ID_MAX + 1];
    char type[PAWL_ENDPOINT_TOPIC_MAX + 1];
    bool is_minted;
    void *payload; /* this and the next two: owned */
    size_t payload_len;
    char *headers;
    char *ordering_key; /* NULL: none */
};
RB_HEAD(pawli_event_tree, kept_event);
RB_HEAD(pawli_event_id_tree, kept_event);
RB_HEAD(pawli_event_keep_tree, kept_event);
/* Keys of requests: see once.c. */
#define PAWLI_MEMORY_ONCE_BUCKETS 4096
TAILQ_HEAD(pawli_once_list, once);
LIST_HEAD(pawli_once_bucket, once);

struct pawl_memory {
    pthread_mutex_t mutex;
    pthread_cond_t hinted; /* a hint or a wake has come */

    /* Set once, by pawl_memory_new(). */
    const pawl_clock *clock;
    const pawl_random *random; /* drawn from under the mutex only */
    pawl_random minter_random; /* the same for the minter: takes the mutex */
    struct pawli_minter *minter;
    int64_t shards;
    int64_t payload_max;
    int64_t jobs_max;
    struct domains *domains; /* owned; of work leases: see worklease.c */

    /* Under the mutex from here on. */
    struct pawli_job_tree jobs;
    int64_t jobs_count;
    struct pawli_shelf_tree shelves[SHELVES_COUNT];
    struct pawli_deadline_tree deadlines;
    pawl_wall expired_until; /* see pawli_memory_turn_expired() */
    struct pawli_queue_tree queues;
    struct pawli_holder_tree holders;
    struct pawli_presence_tree presences;
    struct pawli_endpoint_tree endpoints;
    int64_t endpoints_count;
    struct pawli_event_tree events; /* by their places; the same in the next two */
    struct pawli_event_id_tree events_by_id;
    struct pawli_event_keep_tree events_by_keep;
    struct pawli_once_list onces;
    struct pawli_once_bucket once_buckets[PAWLI_MEMORY_ONCE_BUCKETS]; /* the same, by key */
    int64_t position;                                                 /* the last one drawn */
    int64_t fence;                                                    /* likewise */
    uint64_t hints; /* rises whenever a job may have become claimable */
    size_t waiters; /* calls of pawl_wait() under way */
    size_t handles;
};

/* Tokens drawn in advance, so that work leases seldom meet at the memory's mutex. */
#define TOKEN_STOCK 32
struct token_stock {
    pawl_token tokens[TOKEN_STOCK];
    size_t count;
};

/* A handle: what pawl_store points to. */
struct handle {
    pawl_store store; /* first: the port's head */
    pawl_memory *memory;
    uint64_t hints_seen; /* this and the next under the memory's mutex */
    bool is_woken;
    struct token_stock tokens; /* of the thread that uses the handle */
};

/* ---- trees.c: the orders */

TAILED_PROTOTYPE(pawli_job_tree, entry, in_jobs, job_order)
TAILED_PROTOTYPE(pawli_shelf_tree, entry, in_shelves, job_order)
TAILED_PROTOTYPE(pawli_queue_shelf_tree, entry, in_queue_shelves, job_order)
TAILED_PROTOTYPE(pawli_ready_tree, entry, in_line, ready_order)
TAILED_PROTOTYPE(pawli_lease_tree, entry, in_line, lease_order)
TAILED_PROTOTYPE(pawli_due_tree, entry, in_group, due_order)
TAILED_PROTOTYPE(pawli_held_tree, entry, in_group, job_order)
TAILED_PROTOTYPE(pawli_finished_tree, entry, in_group, finished_order)
TAILED_PROTOTYPE(pawli_deadline_tree, entry, in_deadlines, deadline_order)
RB_PROTOTYPE(pawli_dedupe_tree, entry, in_dedupes, dedupe_order)
RB_PROTOTYPE(pawli_ordering_tree, ordering_key, in_keys, ordering_key_order)
RB_PROTOTYPE(pawli_holder_tree, holder, in_holders, holder_order)
RB_PROTOTYPE(pawli_queue_tree, queue, in_queues, queue_order)
RB_PROTOTYPE(pawli_presence_tree, presence, in_presences, presence_order)
RB_PROTOTYPE(pawli_endpoint_tree, endpoint, in_endpoints, endpoint_order)
RB_PROTOTYPE(pawli_event_tree, kept_event, in_events, event_order)
RB_PROTOTYPE(pawli_event_id_tree, kept_event, by_id, event_id_order)
RB_PROTOTYPE(pawli_event_keep_tree, kept_event, by_keep, event_keep_order)

/* ---- memory.c: life, lock, hints */

/* Take the lock for a verb that changes something, or that only looks; and read the clock, once.
 * NULL, without the lock and with `err` filled: the clock is wrong; the verb gives PAWL_DOWN. */
pawl_memory *pawli_memory_enter(pawl_store *store, pawl_wall *ret_now, pawl_err *err);
pawl_memory *pawli_memory_look(pawl_store *store, pawl_wall *ret_now, pawl_err *err);
void pawli_memory_leave(pawl_memory *memory);

/* Say that a job may have become claimable. Under the lock. */
void pawli_memory_hint(pawl_memory *memory);

/* ---- index.c: jobs in the trees */

struct entry *pawli_memory_find(pawl_memory *memory, const pawl_id *id);

/* Put a job into, or take it out of, all trees that its state calls for, but `jobs` (M1 to M7). */
void pawli_memory_link(pawl_memory *memory, struct entry *entry);
void pawli_memory_unlink(pawl_memory *memory, struct entry *entry);

/* Forget a job that is in no tree any more, and its ledger. */
void pawli_memory_free_entry(pawl_memory *memory, struct entry *entry);

/* Bring a queue's `ready` trees to what is due at `now`, the clock having gone either way. */
void pawli_memory_turn_due(struct queue *queue, pawl_wall now);

/* Bring the queues' counts of expired leases to `now` likewise. */
void pawli_memory_turn_expired(pawl_memory *memory, pawl_wall now);

/* Which jobs a walk meets: queue, worker and key as in pawl_filter, and a set of shelves. */
struct walk_range {
    struct queue *queue;               /* NULL: any */
    struct holder *holder;             /* NULL: any */
    struct ordering_key *ordering_key; /* NULL: any */
    bool shelves[SHELVES_COUNT];
};

int pawli_memory_shelf(pawl_state state, bool is_marked, pawl_reason reason);

/* A range of the filter's queue, worker and key, without shelves. False: no job can be in it. */
bool pawli_memory_range(pawl_memory *memory, const pawl_filter *filter,
                        struct walk_range *ret_range);

/* Put on `range` the shelves of a filter's states and reason, of jobs that are marked or not. */
void pawli_memory_range_states(struct walk_range *range, const pawl_filter *filter, unsigned states,
                               bool is_marked);

/*
 * Goes through the jobs of a range in the order of their ids, at O(log n) each; where the range has
 * a holder, also past those of its jobs that are in other queues, and where it has an ordering key,
 * past all jobs of other keys. The job given last may be changed
 * or taken away, but none may be put onto a shelf of the range.
 */
struct walk {
    struct walk_range range;
    struct entry *heads[SHELVES_COUNT]; /* the next job of each shelf that has one */
    size_t heads_count;
};
void pawli_memory_walk(struct walk *walk, pawl_memory *memory, const struct walk_range *range,
                       const pawl_id *after);
struct entry *pawli_memory_walk_next(struct walk *walk);

/* ---- order.c: ordering keys */

struct ordering_key *pawli_memory_key_find(struct queue *queue, const char *name);
struct ordering_key *pawli_memory_key_need(struct queue *queue, const char *name); /* adds a use */
void pawli_memory_key_drop(struct ordering_key *key); /* takes a use; accepts NULL */

/* Put a job behind all others of its key, or take it out from among them. No-ops where it is, or is
 * not, among them; and where it has no key. */
void pawli_memory_order_join(struct entry *entry);
void pawli_memory_order_leave(struct entry *entry);

/* Whether no other job of its key stands before it. */
bool pawli_memory_order_is_first(const struct entry *entry);

/* Make the first job of a key claimable where it is due and was not. Accepts NULL. */
void pawli_memory_order_move_up(pawl_memory *memory, struct ordering_key *key);

/* The fence of a claim: 0 without a key. */
int64_t pawli_memory_draw_fence(pawl_memory *memory, const struct entry *entry);

/* ---- registry.c: queues and holders */

struct queue *pawli_memory_queue_find(pawl_memory *memory, const char *name);
struct queue *pawli_memory_queue_need(pawl_memory *memory, const char *name); /* NULL: no memory */
void pawli_memory_queue_drop(pawl_memory *memory, struct queue *queue);       /* unless used: M9 */

struct holder *pawli_memory_holder_find(pawl_memory *memory, const char *name);
struct holder *pawli_memory_holder_need(pawl_memory *memory, const char *name); /* adds a use */
void pawli_memory_holder_drop(pawl_memory *memory, struct holder *holder); /* takes a use; NULL */

/* Forget who has not shown itself for long and holds nothing. */
void pawli_memory_presence_prune(pawl_memory *memory, pawl_wall now);

/* ---- enqueue.c */

struct memory_put {
    const pawl_enqueue_row *rows;
    size_t rows_count;
    pawl_enqueued *results; /* written on PAWL_OK only */
};

/* Enqueue under the lock: all or nothing. */
pawl_code pawli_memory_put(pawl_memory *memory, pawl_wall now, const struct memory_put *put,
                           pawl_err *err);

/* ---- change.c: the way of every change, and the ledger */

/* Make room for the job's next row. False: no memory. */
bool pawli_memory_reserve(struct entry *entry);

/* Give a copy of what a settle says, NULL in *ret_note where it says nothing. False: no memory. */
bool pawli_memory_error_note(const char *code, const char *text, struct error_note **ret_note);

struct pawli_job_rules pawli_memory_rules(const struct entry *entry);

/* What pawli_memory_change() needs beside the change itself. */
struct change_extra {
    const pawl_random *random;        /* NULL: the memory's */
    struct holder *holder;            /* CLAIM: the new one; its use is added here */
    struct error_note *error;         /* taken on PAWL_OK where a row is written */
    const int64_t *wire_sends;        /* NULL: nobody said */
    struct pawli_ledger_row *ret_row; /* NULL: not asked for */
};

/*
 * Change one job by the rules of core/job.h, with its row, and put it where it belongs. Cannot run
 * out of memory where pawli_memory_reserve() was called since the last row. `extra` may be NULL.
 */
pawl_code pawli_memory_change(pawl_memory *memory, struct entry *entry,
                              const struct pawli_change *change, const struct change_extra *extra);

/* A row as the rules know it. */
struct pawli_ledger_row pawli_memory_row(const struct entry *entry, int64_t attempt_no);

/* The number of the row that the lease of this version left, 0 where there is none. */
int64_t pawli_memory_row_of_lease(const struct entry *entry, int64_t lease_version);

/* Whether the holder of a lease ended it with this row, and its token was this one. */
bool pawli_memory_row_is_by(const struct entry *entry, int64_t attempt_no, const pawl_token *token);

/* ---- look.c */

/* Give a job out, without payload and token. */
void pawli_memory_give(const struct entry *entry, pawl_job *ret_job);

/* What a job owns of what it is given out with: copies of payload and headers, NULL where they are
 * empty or gone. */
struct cargo {
    void *payload;
    char *headers;
};

/* False: no memory, and nothing was made. */
bool pawli_memory_load(const struct entry *entry, struct cargo *ret_cargo);

/* Give it to a job; and where it was not given away, free it. Both leave it empty. */
void pawli_memory_unload(struct cargo *cargo, pawl_job *job);
void pawli_memory_drop(struct cargo *cargo);

/* ---- recover.c */

/* A reap between picking and recovering. */
struct reap {
    pawl_wall now;
    size_t rows_max;
    struct entry *first; /* those picked, by `next` */
    size_t count;
};

/* ---- the verbs, each in the file of its subject */

pawl_code pawli_memory_enqueue(pawl_store *store, const pawl_enqueue_row *rows, size_t rows_count,
                               pawl_enqueued *ret_results, pawl_err *err);
pawl_code pawli_memory_claim(pawl_store *store, const pawl_claim_args *args, pawl_job *ret_jobs,
                             size_t jobs_max, size_t *ret_count, pawl_err *err);
pawl_code pawli_memory_mine(pawl_store *store, const char *worker, const pawl_id *after,
                            pawl_job *ret_jobs, size_t jobs_max, size_t *ret_count, pawl_err *err);
pawl_code pawli_memory_renew(pawl_store *store, const char *worker, const pawl_renew_row *rows,
                             size_t rows_count, pawl_renewed *ret_results, pawl_err *err);
pawl_code pawli_memory_settle(pawl_store *store, const char *worker, const pawl_settle_row *rows,
                              size_t rows_count, pawl_settled *ret_results, pawl_err *err);
pawl_code pawli_memory_release(pawl_store *store, const char *worker, const pawl_lease *leases,
                               size_t leases_count, pawl_code *ret_codes, pawl_err *err);
pawl_code pawli_memory_reap(pawl_store *store, pawl_reaped *ret_rows, size_t rows_max,
                            size_t *ret_count, pawl_err *err);
pawl_code pawli_memory_prune(pawl_store *store, size_t jobs_max, size_t *ret_count, pawl_err *err);
pawl_code pawli_memory_get(pawl_store *store, const pawl_id *id, pawl_job *ret_job, pawl_err *err);
pawl_code pawli_memory_list(pawl_store *store, const pawl_filter *filter, const pawl_id *after,
                            pawl_job *ret_jobs, size_t jobs_max, size_t *ret_count, pawl_err *err);
pawl_code pawli_memory_attempts(pawl_store *store, const pawl_id *id, int64_t after_no,
                                pawl_attempt *ret_rows, size_t rows_max, size_t *ret_count,
                                pawl_err *err);
pawl_code pawli_memory_leases(pawl_store *store, const pawl_filter *filter, const pawl_id *after,
                              pawl_lease_info *ret_rows, size_t rows_max, size_t *ret_count,
                              pawl_err *err);
pawl_code pawli_memory_worker_seen(pawl_store *store, const pawl_worker_seen *args, pawl_err *err);
pawl_code pawli_memory_worker_ended(pawl_store *store, const char *name, pawl_err *err);
pawl_code pawli_memory_workers(pawl_store *store, const char *after, pawl_worker *ret_rows,
                               size_t rows_max, size_t *ret_count, pawl_err *err);
pawl_code pawli_memory_queue_stats(pawl_store *store, const char *after, pawl_stats *ret_rows,
                                   size_t rows_max, size_t *ret_count, pawl_err *err);
pawl_code pawli_memory_queue_get(pawl_store *store, const char *queue,
                                 pawl_queue_settings *ret_settings, pawl_err *err);
pawl_code pawli_memory_queue_set(pawl_store *store, const char *queue,
                                 const pawl_queue_settings *settings, pawl_err *err);
pawl_code pawli_memory_queue_pause(pawl_store *store, const char *queue, bool is_paused,
                                   pawl_err *err);
pawl_code pawli_memory_cancel(pawl_store *store, const pawl_id *ids, size_t ids_count,
                              pawl_changed *ret_results, pawl_err *err);
pawl_code pawli_memory_redrive(pawl_store *store, const pawl_id *ids, size_t ids_count,
                               pawl_changed *ret_results, pawl_err *err);
pawl_code pawli_memory_discard(pawl_store *store, const pawl_id *ids, size_t ids_count,
                               pawl_changed *ret_results, pawl_err *err);
pawl_code pawli_memory_cancel_where(pawl_store *store, const pawl_filter *filter, size_t jobs_max,
                                    size_t *ret_count, pawl_err *err);
pawl_code pawli_memory_redrive_where(pawl_store *store, const pawl_filter *filter, size_t jobs_max,
                                     size_t *ret_count, pawl_err *err);
pawl_code pawli_memory_discard_where(pawl_store *store, const pawl_filter *filter, size_t jobs_max,
                                     size_t *ret_count, pawl_err *err);

/* ---- worklease.c: work leases, which have locks of their own */

extern const struct pawli_worklease_ops pawli_memory_worklease_ops;

struct domains *pawli_memory_domains_new(void); /* NULL: no memory */
void pawli_memory_domains_free(struct domains *domains);

/* ---- once.c */

extern const struct pawli_once_ops pawli_memory_once_ops;

void pawli_memory_once_free(pawl_memory *memory);
void pawli_memory_once_prune(pawl_memory *memory, size_t keys_max, pawl_wall now);

/* ---- endpoint.c */

extern const struct pawli_endpoint_ops pawli_memory_endpoint_ops;

void pawli_memory_endpoints_free(pawl_memory *memory);
struct endpoint *pawli_memory_endpoint_find(pawl_memory *memory, const char *name);

/* ---- event.c: all of it but the copies under the lock */

/* Copies of events, NULL for those that are not to be kept. NULL: no memory. */
struct kept_event **pawli_memory_events_copy(const struct pawli_publish_event *events,
                                             size_t events_count, pawl_wall now);

/* Take copies; those that are left in the array, because they were there, are the caller's. */
void pawli_memory_events_keep(pawl_memory *memory, struct kept_event **events, size_t events_count);

/* Free copies, and their array. Accepts NULL. */
void pawli_memory_events_drop(struct kept_event **events, size_t events_count);

/* Forget up to so many that need not be kept any more. Gives how many. */
size_t pawli_memory_events_prune(pawl_memory *memory, size_t events_max, pawl_wall now);
void pawli_memory_events_free(pawl_memory *memory);

pawl_code pawli_memory_replay(pawl_store *store, const pawl_replay_args *args,
                              pawl_replayed *ret_replayed, pawl_err *err);

#ifdef PAWL_TEST_POINTS
/* ---- mutant.c: deliberate bugs, for tests only; see core/mutant.h */

/* A token that says nothing but whose it is. */
void pawli_memory_mutant_token(const char *worker, pawl_token *ret_token);

/* Make the job Ready and due, whatever it is. */
void pawli_memory_mutant_ready(pawl_memory *memory, struct entry *entry, pawl_wall now);

/* Pick candidates without a look at their expiry, or let go of the lock before clearing them. */
void pawli_memory_mutant_pick(pawl_memory *memory, pawl_store *store, struct reap *reap);

/* Remember a job as it was before it succeeded; and put it back like that. */
void pawli_memory_mutant_haunt(pawl_memory *memory, struct entry *entry,
                               const struct pawli_job *before);
void pawli_memory_mutant_revive(pawl_memory *memory, struct entry *entry);

/* Write a row once more. Gives its number. */
int64_t pawli_memory_mutant_second_row(struct entry *entry, int64_t attempt_no);
#endif

#endif

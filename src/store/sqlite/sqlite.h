/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * sqlite.h - the records of the SQLite store and what its files share. Private to this folder (and
 * to the tests that look behind the verbs).
 *
 * What holds (cited by number in the .c files):
 *  S1  All writes of a process go through its one writer connection, which belongs to the leader:
 *      the thread that found `is_led` false and set it. Everything that says "leader" below is
 *      touched by that thread only, without the mutex.
 *  S2  The clock of a write is read after the file's write lock was got, once for each call.
 *  S3  A call is answered PAWL_OK only after the COMMIT of its transaction has returned; PAWL_DOWN
 *      only where it is certain that nothing of it will ever be seen.
 *  S4  Nobody checkpoints but under the write lock and the lock of the file beside it: see
 *      checkpoint.c.
 *  S5  What a job becomes is decided by core/job.c alone. SQL only stores it.
 *  S6  A key with live jobs has exactly one that does not wait: the one that came first. It changes
 *      in the transaction in which that one ends, and in no other.
 */
#ifndef PAWLI_STORE_SQLITE_SQLITE_H
#define PAWLI_STORE_SQLITE_SQLITE_H

#include "core/job.h"
#include "pawl/endpoint.h"
#include "store/store.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>

#define STATES_ALL ((1u << (PAWL_FAILED + 1)) - 1)

/* How many calls, and how many bytes of them, are committed together at most. */
#define GROUP_CALLS_MAX 128
#define GROUP_BYTES_MAX (INT64_C(16) << 20)

/* How many rounds of calls can wait without one being woken for another's answers. */
#define ROUNDS_COUNT 16

/* The write-ahead log is brought into the file once it has grown by so many pages. */
#define CHECKPOINT_PAGES 1000

/* ---- connections */

/* Every statement; the texts are in statements.c. */
enum statement {
    S_BEGIN,
    S_BEGIN_WRITE,
    S_COMMIT,
    S_ROLLBACK,
    S_SAVE,
    S_SAVE_BACK,
    S_SAVE_END,
    S_DATA_VERSION,
    S_DRAWN,
    S_DRAWN_SET,
    S_MEND,
    S_PRUNING,
    /* jobs */
    S_EXISTS,
    S_DEDUPE_HOLDER,
    S_DEDUPE_HOLDER_ORDERED,
    S_DEDUPE_TAKEN,
    S_DEDUPE_TAKEN_ORDERED,
    S_INSERT_JOB,
    S_INSERT_PAYLOAD,
    S_INSERT_JOBS,
    S_INSERT_PAYLOADS,
    S_PAYLOAD,
    S_DELETE_PAYLOAD,
    S_LIVE,
    S_ENDED,
    S_UPDATE_LIVE,
    S_RENEW_LIVE,
    S_DELETE_LIVE,
    S_END,
    S_DELETE_ENDED,
    S_REVIVE,
    S_DISCARD,
    /* ordering keys */
    S_KEY_HELD,
    S_KEY_NEXT,
    S_MOVE_UP,
    /* the ledger */
    S_INSERT_ATTEMPT,
    S_ATTEMPT,
    S_ATTEMPTS,
    S_DELETE_ATTEMPTS,
    /* claim and recovery */
    S_NEXT_RANK,
    S_READY,
    S_EXPIRED,
    S_OVERDUE,
    S_OLD,
    /* looking */
    S_MINE,
    S_LIST_LIVE,
    S_LIST_QUEUE,
    S_LIST_KEY,
    S_LIST_HELD,
    S_LIST_IN_FLIGHT,
    S_LIST_ENDED,
    S_LIST_FAILED,
    S_LIST_FAILED_QUEUE,
    /* queues and workers */
    S_QUEUE_BY_NAME,
    S_QUEUE_BY_ID,
    S_QUEUE_AFTER,
    S_QUEUE_INSERT,
    S_QUEUE_SET,
    S_QUEUE_PAUSE,
    S_QUEUE_DROP,
    S_COUNT_READY,
    S_COUNT_WAITING,
    S_COUNT_LEASES,
    S_COUNT_ENDED,
    S_WORKER_SEEN,
    S_WORKER_ENDED,
    S_WORKERS,
    S_WORKERS_PRUNE,
    /* work leases */
    S_WL_DOMAIN,
    S_WL_DOMAINS,
    S_WL_MAKE,
    S_WL_WRITE,
    S_WL_WAITS,
    S_WL_PUSH,
    S_WL_POP,
    S_WL_BACKLOG,
    S_WL_BELOW,
    S_WL_ADD,
    S_WL_STRETCH,
    S_WL_REMOVE,
    S_WL_TERMINAL,
    /* endpoints */
    S_EP_GET,
    S_EP_LIST,
    S_EP_COUNT,
    S_EP_ADD,
    S_EP_SET,
    S_EP_TOUCH,
    S_EP_TURN,
    S_EP_MARK,
    S_EP_REMOVE,
    S_EP_SECRETS,
    S_EP_SECRETS_CLEAR,
    S_EP_SECRET_ADD,
    S_EP_TOPICS_CLEAR,
    S_EP_TOPIC_ADD,
    S_EP_JOBS,
    S_EP_QUEUE_UNSET,
    S_EP_WANTING,
    S_EV_KEEP,
    S_EV_GET,
    S_EV_RANGE,
    S_EV_PRUNE,
    S_EV_PRUNED,
    /* keys of requests */
    S_ONCE_PRUNE,
    S_ONCE_GET,
    S_ONCE_ADD,
    S_ONCE_HOLD,
    S_ONCE_KEEP,
    S_ONCE_DROP,
    /* what has changed lately */
    S_RECENT_ADDED,
    S_RECENT_ENDED,
    STATEMENTS_COUNT
};

extern const char *const pawli_sqlite_texts[STATEMENTS_COUNT];

/* An open file. Used by one thread at a time. */
struct connection {
    sqlite3 *db; /* NULL: not open */
    sqlite3_stmt *statements[STATEMENTS_COUNT];
    pawl_mono busy_until; /* how long to wait for others' locks */
    bool is_spoiled;      /* something went wrong that another connection may not meet */
};

/* ---- records */

/* Where a Ready job stands among those of its priority: as in the memory store. */
enum rank {
    RANK_RETURNED = 0,
    RANK_TIMED = 1,
    RANK_ARRIVAL = 2
};

struct queue {
    int64_t queue_id;
    char name[PAWL_NAME_MAX + 1];
    pawl_queue_settings settings;
    bool is_set;
};

struct record {
    int64_t number;
    pawl_id id;
    int64_t queue_id;
    struct pawli_job job;
    int priority;
    enum rank rank;
    int64_t timed_us;
    int64_t position;
    pawl_wall created_at;
    int64_t max_retries; /* this and the next three: PAWL_DEFAULT for the queue's */
    int64_t timeout_ms;
    int64_t backoff_base_ms;
    int64_t backoff_max_ms;
    size_t payload_len;
    char ordering_key[PAWL_ORDERING_KEY_MAX + 1]; /* empty: none */
};

/* How many new jobs are written by one statement. */
#define ARRIVALS_MAX 8

/* A new job that has its place, and is still to be written. */
struct arrival {
    const pawl_enqueue_row *row; /* borrowed until it is written */
    int64_t number;
    int64_t queue_id;
    pawl_wall now;
    const char *ordering_key; /* NULL: none */
    bool is_waiting;
};

/* One call while it runs on a connection. */
struct pass {
    pawl_sqlite *sqlite;
    struct connection *connection;
    pawl_wall now;
    int rc;         /* the first failure, a code of SQLite; SQLITE_OK: none so far */
    pawl_code code; /* a verdict on the call as a whole, where rc is SQLITE_OK */
    bool has_queue; /* `queue` was read by this call */
    struct queue queue;
    bool is_next_alike; /* the next call does the same: what arrives may be written with its jobs */
    size_t arrivals_count;
    struct arrival arrivals[ARRIVALS_MAX];
};

/* What a call does, between the beginning and the end of a transaction. False: pass->rc or
 * pass->code tells why, and nothing of it is kept. It must not write what belongs to the caller. */
typedef bool pass_run(struct pass *pass, void *args);

/* ---- the store */

/* Numbers that rise and are drawn once. */
enum sequence {
    SEQUENCE_POSITION,
    SEQUENCE_FENCE,
    SEQUENCES_COUNT
};

/* One of them, within a transaction. */
struct drawn {
    int64_t last; /* once it is loaded */
    bool is_loaded;
    bool is_changed;
};

/* What the thread of a call is told. */
enum call_state {
    CALL_WAITS,
    CALL_LEADS, /* S1: is_led was set for it */
    CALL_DONE
};

/* A write on its way; see group.c. On the stack of the thread that waits for it, which goes on as
 * soon as it is told. */
struct call {
    _Atomic uint32_t state; /* enum call_state */
    _Atomic uint32_t *word; /* what its thread waits on: its state, or the word of its round */
    uint32_t round;         /* it is taken with the others of its round */
    struct call *next;      /* this and the next two under the mutex, until it is taken */
    bool is_taken;          /* into a group: from then on its end must be waited for */
    bool is_leading;        /* it leads, or is about to be told so */
    pass_run *run;
    void *args;
    bool is_repeatable;
    int64_t bytes;
    pawl_mono until;
    pawl_code code; /* this and the next: the leader's, once it is taken */
    pawl_err err;
};

struct pawl_sqlite {
    pthread_mutex_t mutex;
    pthread_cond_t hinted; /* a hint or a wake has come */

    /* Set once, by pawl_sqlite_new(). */
    const pawl_clock *clock;
    const pawl_random *source; /* drawn from under `random_mutex` */
    pawl_random random;        /* the same, safe to share */
    pthread_mutex_t random_mutex;
    struct pawli_minter *minter;
    int64_t payload_max;
    int64_t call_timeout_ms;
    bool is_only_opened;
    char *path;
    int checkpoint_fd; /* of the file that is locked while somebody checkpoints; -1: none yet */

    /* Under the mutex. */
    bool is_led;        /* S1; while it is not, no call waits */
    struct call *first; /* calls that wait, oldest first */
    struct call *last;
    uint32_t round;      /* that new calls belong to */
    int round_calls;     /* in it so far */
    int64_t round_bytes; /* of these */
    uint64_t hints;      /* rises whenever a job may have become claimable */
    pawl_mono looked_at; /* when somebody last looked for what other processes did */
    size_t handles;

    /* One for each round, which may be told while others gather: rises when its calls are told. */
    _Atomic uint32_t words[ROUNDS_COUNT];

    /* The leader's: S1. */
    struct connection writer;
    struct connection checkpointer; /* opened when it is first needed */
    struct drawn drawn[SEQUENCES_COUNT];
    bool is_hinting;       /* this transaction makes jobs claimable */
    int64_t position_seen; /* what is known of all processes */
    int64_t data_version_seen;
    int wal_pages;       /* in the log, after the last commit */
    int wal_pages_done;  /* of these, in the file */
    int wal_pages_tried; /* in the log, when a checkpoint was last tried */
};

/* A handle: what pawl_store points to. */
struct handle {
    pawl_store store; /* first: the port's head */
    pawl_sqlite *sqlite;
    struct connection reader;
    int64_t limit_ms; /* how long a call may wait: call_timeout_ms, or less by pawl_store_limit() */
    uint64_t hints_seen; /* this and the next under the mutex */
    bool is_woken;
};

static inline struct handle *pawli_sqlite_handle(pawl_store *store)
{
    return (struct handle *)store;
}

/* ---- sqlite.c */

void pawli_sqlite_lock(pawl_sqlite *sqlite);
void pawli_sqlite_unlock(pawl_sqlite *sqlite);

/* ---- path.c */

/* Give a copy of the path to use. Where the file is made when it is missing, its folder is made
 * where it is the default one; else a file that is missing is PAWL_DOWN. */
pawl_code pawli_sqlite_path(const char *path, bool is_made, char **ret_path, pawl_err *err);

/* ---- connection.c: opening and closing */

/* Open the file. Gives a code of SQLite. */
int pawli_sqlite_connect(pawl_sqlite *sqlite, struct connection *connection, int flags);
void pawli_sqlite_disconnect(struct connection *connection);

/* Open it again where it was spoiled, or was never open. */
int pawli_sqlite_reconnect(pawl_sqlite *sqlite, struct connection *connection);

/* Run one of the statements that neither take nor give anything. */
int pawli_sqlite_simple(struct connection *connection, enum statement statement);

/* The prepared statement; NULL: *ret_rc tells why. */
sqlite3_stmt *pawli_sqlite_statement(struct connection *connection, enum statement statement,
                                     int *ret_rc);

/* Real time, whatever the store's clock says. */
pawl_mono pawli_sqlite_mono(void);

/* ---- query.c: statements that take and give values, in order */

struct query {
    struct pass *pass;
    sqlite3_stmt *stmt; /* NULL: it has failed; every function below then does nothing */
    int bound;
    int column;
};

struct query pawli_sqlite_query(struct pass *pass, enum statement statement);
void pawli_sqlite_put_int(struct query *query, int64_t value);
void pawli_sqlite_put_optional(struct query *query, int64_t value, int64_t none); /* none: NULL */
void pawli_sqlite_put_text(struct query *query, const char *text);                /* NULL too */
void pawli_sqlite_put_bytes(struct query *query, const void *bytes, size_t bytes_len);
void pawli_sqlite_put_id(struct query *query, const pawl_id *id); /* NULL: before all ids */

/* Go to the next row. False: there is none, or it failed. */
bool pawli_sqlite_row(struct query *query);
bool pawli_sqlite_is_null(const struct query *query); /* the next value */
int64_t pawli_sqlite_int(struct query *query);
int64_t pawli_sqlite_optional(struct query *query, int64_t none);
bool pawli_sqlite_text(struct query *query, char *to, size_t to_size); /* false: does not fit */
bool pawli_sqlite_bytes(struct query *query, void *to, size_t size);   /* false: another size */
const void *pawli_sqlite_blob(struct query *query, size_t *ret_len);   /* until the next row */

/* Be done with it. False: it failed. */
bool pawli_sqlite_end(struct query *query);

/* Run it to its end; it must change as many rows as `changes`, unless that is negative. */
bool pawli_sqlite_change_rows(struct query *query, int changes);

/* Let the call fail. Gives false. */
bool pawli_sqlite_spoil(struct pass *pass, int rc);

/* ---- fault.c: what a failure of SQLite means to a caller */

pawl_code pawli_sqlite_fail(const pawl_sqlite *sqlite, int rc, pawl_err *err);

/* The same while the file is opened first: one that is no database is a wrong argument. */
pawl_code pawli_sqlite_fail_new(const pawl_sqlite *sqlite, int rc, pawl_err *err);

/* The outcome of a commit is not known. */
pawl_code pawli_sqlite_fail_unknown(const pawl_sqlite *sqlite, int rc, pawl_err *err);

/* Another connection may fare better. */
bool pawli_sqlite_is_spoiling(int rc);

/* ---- schema.c */

/* Look whether the file is one of ours, and make it one where it is new. */
pawl_code pawli_sqlite_prepare(pawl_sqlite *sqlite, pawl_err *err);

/* ---- group.c: transactions */

/* Run a call with the calls of other threads in one transaction, and wait for its commit. */
struct write {
    pass_run *run;
    void *args;
    size_t rows_count;
    size_t payload_bytes;
    /* It may be run once more when what it did was undone, and changes nothing of a queue that is
     * there. Then it needs no savepoint of its own. */
    bool is_repeatable;
};
pawl_code pawli_sqlite_write(pawl_store *store, const struct write *write, pawl_err *err);

/* Stop leading, and let the call lead that waits longest. Takes the mutex. */
void pawli_sqlite_hand_over(pawl_sqlite *sqlite);

/* Run a call on the handle's own connection, on one state of the file. */
pawl_code pawli_sqlite_read(pawl_store *store, pass_run *run, void *args, pawl_err *err);

/* Draw the next position, or fence. False: it failed. */
bool pawli_sqlite_draw_position(struct pass *pass, int64_t *ret_position);
bool pawli_sqlite_draw_fence(struct pass *pass, int64_t *ret_fence);

/* The last position drawn, by whomever. */
bool pawli_sqlite_last_position(struct pass *pass, int64_t *ret_position);

/* ---- checkpoint.c */

/* Bring the log into the file where it has grown enough, or in any case. The leader's. */
void pawli_sqlite_checkpoint_if_due(pawl_sqlite *sqlite);
void pawli_sqlite_checkpoint(pawl_sqlite *sqlite);

/* ---- wait.c: hints */

/* See whether other processes have made jobs claimable. The leader's; outside of a transaction, or
 * at its beginning. */
bool pawli_sqlite_look_abroad(pawl_sqlite *sqlite);

/* Tell those who wait. Under the mutex. */
void pawli_sqlite_hint(pawl_sqlite *sqlite);

/* ---- row.c: jobs as rows */

/* Read a row of the columns that statements.c calls a job. False: it failed. */
bool pawli_sqlite_read_record(struct query *query, struct record *ret_record);

/* A job by its id, live or not. *ret_found false: there is no memory of it. */
bool pawli_sqlite_load(struct pass *pass, const pawl_id *id, struct record *ret_record,
                       bool *ret_found);

/* Write what has changed; `before` is the state that the row is in, `event` what was done. */
bool pawli_sqlite_save(struct pass *pass, const struct record *record, pawl_state before,
                       enum pawli_event event);

/* Give a job out, without payload and token. */
bool pawli_sqlite_give(struct pass *pass, const struct record *record, pawl_job *ret_job);

/* Give it payload and headers, too; NULL where they are empty or no longer kept. False: neither. */
bool pawli_sqlite_give_payload(struct pass *pass, const struct record *record, pawl_job *job);

/* ---- change.c: the way of every change */

struct change_extra {
    const char *error_code;
    const char *error_text;
    const int64_t *wire_sends;        /* NULL: nobody said */
    struct pawli_ledger_row *ret_row; /* NULL: not asked for */
};

/* Change a job by the rules of core/job.h, with its row in the ledger. False: it failed; otherwise
 * *ret_code is the verdict. `extra` may be NULL. */
bool pawli_sqlite_change(struct pass *pass, struct record *record,
                         const struct pawli_change *change, const struct change_extra *extra,
                         pawl_code *ret_code);

/* ---- claim.c */

/* Whether there is anything that a claim could take of a queue, due or not. */
bool pawli_sqlite_is_any_claimable(struct pass *pass, int64_t queue_id, bool *ret_any);

/* ---- order.c: ordering keys */

/* Whether a key has live jobs: one that joins has to wait. */
bool pawli_sqlite_order_is_held(struct pass *pass, int64_t queue_id, const char *ordering_key,
                                bool *ret_held);

/* A job has left its key, from the state `before`: let the next one through, where it was the
 * first. */
bool pawli_sqlite_order_move_up(struct pass *pass, const struct record *left, pawl_state before);

/* ---- look.c: walks by id */

struct walk_range {
    const pawl_filter *filter;
    unsigned states;  /* of the filter's, only these */
    bool is_unmarked; /* without those that are marked for cancellation, or discarded */
    const pawl_id *after;
    size_t jobs_max;
};

/* Called for each job, in the order of ids. False: it failed. */
typedef bool walk_visit(struct pass *pass, const struct record *record, void *args);
bool pawli_sqlite_walk(struct pass *pass, const struct walk_range *range, walk_visit *visit,
                       void *args);

/* ---- registry.c: queues */

/* Read a queue into pass->queue. *ret_found false: there is none. */
bool pawli_sqlite_queue_find(struct pass *pass, const char *name, bool *ret_found);
bool pawli_sqlite_queue_need(struct pass *pass, const char *name); /* makes it */
bool pawli_sqlite_queue_of(struct pass *pass, int64_t queue_id);   /* it must be there */

/* Write the settings of the queue in pass->queue, which is read anew when it is needed again. */
bool pawli_sqlite_queue_write(struct pass *pass, const pawl_queue_settings *settings);

/* The next queue by name; *ret_found false: there is none. */
bool pawli_sqlite_queue_after(struct pass *pass, const char *name, bool *ret_found);

/* ---- worklease.c */

extern const struct pawli_worklease_ops pawli_sqlite_worklease_ops;

/* ---- once.c */

extern const struct pawli_once_ops pawli_sqlite_once_ops;

/* Clear away up to so many keys that have expired. False: it failed. */
bool pawli_sqlite_once_prune(struct pass *pass, size_t keys_max);

/* ---- recent.c */

pawl_code pawli_sqlite_recent(pawl_store *store, const struct pawli_recent_args *args,
                              struct pawli_recent *ret_rows, size_t rows_max, size_t *ret_count,
                              pawl_err *err);

/* ---- endpoint.c, publish.c */

extern const struct pawli_endpoint_ops pawli_sqlite_endpoint_ops;

/* *ret_found false: there is no such endpoint. False: it failed. `headers` may be NULL. */
bool pawli_sqlite_endpoint_find(struct pass *pass, const char *name, pawl_endpoint *ret_row,
                                char *headers, bool *ret_found);

/* ---- event.c */

struct pawli_publish_event;
bool pawli_sqlite_event_keep(struct pass *pass, const struct pawli_publish_event *event);

/* Forget up to so many that need not be kept any more, and count them. */
bool pawli_sqlite_events_prune(struct pass *pass, size_t events_max, size_t *count);

pawl_code pawli_sqlite_replay(pawl_store *store, const pawl_replay_args *args,
                              pawl_replayed *ret_replayed, pawl_err *err);

struct pawli_publish_event;
pawl_code pawli_sqlite_publish(pawl_store *store, const struct pawli_publish_event *events,
                               size_t events_count, pawl_published *ret_results, pawl_err *err);

/* ---- enqueue.c */

/* Enqueue one job, or refuse it. False: it failed. */
bool pawli_sqlite_put(struct pass *pass, const pawl_enqueue_row *row, pawl_enqueued *ret_result);

/* ---- the verbs, each in the file of its subject */

pawl_code pawli_sqlite_enqueue(pawl_store *store, const pawl_enqueue_row *rows, size_t rows_count,
                               pawl_enqueued *ret_results, pawl_err *err);
pawl_code pawli_sqlite_claim(pawl_store *store, const pawl_claim_args *args, pawl_job *ret_jobs,
                             size_t jobs_max, size_t *ret_count, pawl_err *err);
pawl_code pawli_sqlite_mine(pawl_store *store, const char *worker, const pawl_id *after,
                            pawl_job *ret_jobs, size_t jobs_max, size_t *ret_count, pawl_err *err);
pawl_code pawli_sqlite_renew(pawl_store *store, const char *worker, const pawl_renew_row *rows,
                             size_t rows_count, pawl_renewed *ret_results, pawl_err *err);
pawl_code pawli_sqlite_settle(pawl_store *store, const char *worker, const pawl_settle_row *rows,
                              size_t rows_count, pawl_settled *ret_results, pawl_err *err);
pawl_code pawli_sqlite_release(pawl_store *store, const char *worker, const pawl_lease *leases,
                               size_t leases_count, pawl_code *ret_codes, pawl_err *err);
pawl_code pawli_sqlite_reap(pawl_store *store, pawl_reaped *ret_rows, size_t rows_max,
                            size_t *ret_count, pawl_err *err);
pawl_code pawli_sqlite_prune(pawl_store *store, size_t jobs_max, size_t *ret_count, pawl_err *err);
pawl_code pawli_sqlite_get(pawl_store *store, const pawl_id *id, pawl_job *ret_job, pawl_err *err);
pawl_code pawli_sqlite_list(pawl_store *store, const pawl_filter *filter, const pawl_id *after,
                            pawl_job *ret_jobs, size_t jobs_max, size_t *ret_count, pawl_err *err);
pawl_code pawli_sqlite_attempts(pawl_store *store, const pawl_id *id, int64_t after_no,
                                pawl_attempt *ret_rows, size_t rows_max, size_t *ret_count,
                                pawl_err *err);
pawl_code pawli_sqlite_leases(pawl_store *store, const pawl_filter *filter, const pawl_id *after,
                              pawl_lease_info *ret_rows, size_t rows_max, size_t *ret_count,
                              pawl_err *err);
pawl_code pawli_sqlite_worker_seen(pawl_store *store, const pawl_worker_seen *args, pawl_err *err);
pawl_code pawli_sqlite_worker_ended(pawl_store *store, const char *name, pawl_err *err);
pawl_code pawli_sqlite_workers(pawl_store *store, const char *after, pawl_worker *ret_rows,
                               size_t rows_max, size_t *ret_count, pawl_err *err);
pawl_code pawli_sqlite_queue_stats(pawl_store *store, const char *after, pawl_stats *ret_rows,
                                   size_t rows_max, size_t *ret_count, pawl_err *err);
pawl_code pawli_sqlite_queue_depths(pawl_store *store, const pawl_depth_args *args,
                                    pawl_stats *ret_rows, size_t rows_max, size_t *ret_count,
                                    pawl_err *err);
pawl_code pawli_sqlite_queue_get(pawl_store *store, const char *queue,
                                 pawl_queue_settings *ret_settings, pawl_err *err);
pawl_code pawli_sqlite_queue_set(pawl_store *store, const char *queue,
                                 const pawl_queue_settings *settings, pawl_err *err);
pawl_code pawli_sqlite_queue_pause(pawl_store *store, const char *queue, bool is_paused,
                                   pawl_err *err);
pawl_code pawli_sqlite_cancel(pawl_store *store, const pawl_id *ids, size_t ids_count,
                              pawl_changed *ret_results, pawl_err *err);
pawl_code pawli_sqlite_redrive(pawl_store *store, const pawl_id *ids, size_t ids_count,
                               pawl_changed *ret_results, pawl_err *err);
pawl_code pawli_sqlite_discard(pawl_store *store, const pawl_id *ids, size_t ids_count,
                               pawl_changed *ret_results, pawl_err *err);
pawl_code pawli_sqlite_cancel_where(pawl_store *store, const pawl_filter *filter, size_t jobs_max,
                                    size_t *ret_count, pawl_err *err);
pawl_code pawli_sqlite_redrive_where(pawl_store *store, const pawl_filter *filter, size_t jobs_max,
                                     size_t *ret_count, pawl_err *err);
pawl_code pawli_sqlite_discard_where(pawl_store *store, const pawl_filter *filter, size_t jobs_max,
                                     size_t *ret_count, pawl_err *err);
pawl_code pawli_sqlite_now(pawl_store *store, pawl_wall *ret_now, pawl_err *err);
pawl_code pawli_sqlite_wait(pawl_store *store, int64_t timeout_ms, bool *ret_hint, pawl_err *err);
void pawli_sqlite_wake(pawl_store *store);
pawl_code pawli_sqlite_health(pawl_store *store, const struct pawli_health *health, pawl_err *err);

#endif

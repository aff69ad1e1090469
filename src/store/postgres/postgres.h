/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * postgres.h - the records of the PostgreSQL store and what its files share. Private to this folder
 * (and to the tests that look behind the verbs).
 *
 * What a job may become is decided by the SQL functions in sql/ alone. This folder carries
 * arguments there and answers back, and it knows at every moment whether the server can have done
 * what was asked:
 *  P1  A call is one or more statements and one Sync, sent as one pipeline. Before the last byte of
 *      the Sync has left, the server cannot have committed: a fault until then is PAWL_DOWN.
 *  P2  An error that the server reports before the last statement has ended has rolled everything
 *      back: PAWL_DOWN, or another try. Faults of the connection itself (class 08, as a pooler in
 *      between reports them) are no word of the server's.
 *  P3  Everything else that is not a complete answer is PAWL_UNKNOWN, except of a call that only
 *      reads: that is PAWL_DOWN.
 *  P4  The server gives a call up by itself before its time here is up, and says so: P2 then. So a
 *      call that waits for a lock is DOWN, not UNKNOWN, and nothing runs on for nobody. (A
 *      cancellation would do this too, but libpq 15 can only send one by blocking.)
 *  P5  No state is kept in the server's session between two calls: a pooler may give each call
 *      another session. But for the limit of P4, which is not sent again with each call where the
 *      session is known to be ours alone: a pooler makes up the process ids that it tells.
 *  P6  No text of libpq or of the server reaches a caller; see fault.c. (What our own functions say
 *      does, where it is known to tell no secret: see adopt.c.)
 *  P7  What follows a call (a hint that there is work) is sent behind the call's Sync, as a
 *      transaction of its own. Nobody waits for its answer, or cares what it is: it is read before
 *      the next call.
 */
#ifndef PAWLI_STORE_POSTGRES_POSTGRES_H
#define PAWLI_STORE_POSTGRES_POSTGRES_H

#include "base/buffer.h"
#include "store/store.h"
#include "store/stream.h"

#include <libpq-fe.h>
#include <time.h>

/* ---- values.c: arguments and answers in the binary format */

#define PAWLI_PG_ARGS_MAX 16

/* The arguments of one statement. Zeroed: none. Where memory runs out, `is_failed` stays set. */
struct pawli_pg_args {
    struct pawli_buffer bytes;
    struct {
        Oid type;
        size_t at;  /* in `bytes` */
        size_t len; /* meaningless for NULL */
        bool is_null;
    } list[PAWLI_PG_ARGS_MAX];
    int count;
    bool is_failed;
};

void pawli_pg_args_clear(struct pawli_pg_args *args);

/* One argument each. NULL where there is no text, and for PAWL_DEFAULT and PAWL_FOREVER in a
 * number that may be left out. */
void pawli_pg_arg_int4(struct pawli_pg_args *args, int64_t value);
void pawli_pg_arg_int8(struct pawli_pg_args *args, int64_t value);
void pawli_pg_arg_optional(struct pawli_pg_args *args, int64_t value); /* int8 */
void pawli_pg_arg_optional_int4(struct pawli_pg_args *args, int64_t value);
void pawli_pg_arg_wall(struct pawli_pg_args *args, pawl_wall wall); /* 0 is NULL */
void pawli_pg_arg_bool(struct pawli_pg_args *args, bool value);
void pawli_pg_arg_text(struct pawli_pg_args *args, const char *text);
void pawli_pg_arg_id(struct pawli_pg_args *args, const pawl_id *id); /* NULL is NULL */
void pawli_pg_arg_bytes(struct pawli_pg_args *args, const void *bytes, size_t bytes_len);

/* An array as one argument: begin it, put as many items as it was begun for, end it. */
enum pawli_pg_item {
    PAWLI_PG_BOOL = 16,
    PAWLI_PG_BYTES = 17,
    PAWLI_PG_INT8 = 20,
    PAWLI_PG_INT2 = 21,
    PAWLI_PG_INT4 = 23,
    PAWLI_PG_TEXT = 25,
    PAWLI_PG_PLACE = 27, /* of a row: tid */
    PAWLI_PG_UUID = 2950
};
void pawli_pg_arg_array_null(struct pawli_pg_args *args, enum pawli_pg_item item);
void pawli_pg_array_begin(struct pawli_pg_args *args, enum pawli_pg_item item, size_t items_count);
void pawli_pg_array_end(struct pawli_pg_args *args);
void pawli_pg_item_bool(struct pawli_pg_args *args, bool value);
void pawli_pg_item_int2(struct pawli_pg_args *args, int64_t value);
void pawli_pg_item_int4(struct pawli_pg_args *args, int64_t value);
void pawli_pg_item_optional(struct pawli_pg_args *args, int64_t value);      /* int8 */
void pawli_pg_item_optional_int4(struct pawli_pg_args *args, int64_t value); /* int4 */
void pawli_pg_item_uuid(struct pawli_pg_args *args, const uint8_t bytes[16]);
void pawli_pg_item_place(struct pawli_pg_args *args, int64_t place);
void pawli_pg_item_bytes(struct pawli_pg_args *args, const void *bytes, size_t bytes_len);
void pawli_pg_item_text(struct pawli_pg_args *args, const char *text); /* NULL is NULL */

/* One cell of an answer. */
struct pawli_pg_cell {
    const PGresult *result;
    int row;
    int column;
};

/*
 * Whether the answer's columns are what `shape` says, a letter for each: i a whole number, t an
 * instant, s a text, u a UUID, b a truth value, y bytes, p the place of a row. Empty: it has none,
 * and is no query.
 * Cells are read only of an answer that is.
 */
bool pawli_pg_is_shaped(const PGresult *result, const char *shape);

bool pawli_pg_is_null(struct pawli_pg_cell cell);
int64_t pawli_pg_int(struct pawli_pg_cell cell); /* NULL: 0 */
bool pawli_pg_bool(struct pawli_pg_cell cell);   /* NULL: false */
pawl_wall pawli_pg_wall(struct pawli_pg_cell cell);
void pawli_pg_text(struct pawli_pg_cell cell, char *to, size_t to_size); /* NULL: empty */
void pawli_pg_uuid(struct pawli_pg_cell cell, uint8_t to[16]);           /* NULL: zeros */
size_t pawli_pg_len(struct pawli_pg_cell cell);
const void *pawli_pg_bytes(struct pawli_pg_cell cell);

/* The code of a verdict's name; false where there is none of that name. */
bool pawli_pg_verdict(struct pawli_pg_cell cell, pawl_code *ret_code);

/* ---- fault.c: what a fault means, and how it is told */

#define PAWLI_PG_SQLSTATE_MAX 6
#define PAWLI_PG_OWN_MAX      PAWL_ERR_TEXT_MAX

enum pawli_pg_fate {
    PAWLI_PG_DONE,
    PAWLI_PG_NOT_DONE, /* P1, P2 */
    PAWLI_PG_MAYBE     /* P3 */
};

/* How an exchange with the server ended. */
struct pawli_pg_fault {
    enum pawli_pg_fate fate;
    char sqlstate[PAWLI_PG_SQLSTATE_MAX]; /* empty: the server said nothing */
    const char *text;                     /* where the server said nothing: ours, constant */
    bool is_setup;                        /* the schema is not the one that this library needs */
    char own[PAWLI_PG_OWN_MAX]; /* what a function of ours said (class P7), for callers that know
                                   that it tells no secret; empty otherwise */
};

/* Whether the same call may be tried again: nothing was done, and others were in the way. */
bool pawli_pg_is_again(const char *sqlstate);

/* Whether what the server reports is no word of its own about the call (P2). */
bool pawli_pg_is_link_fault(const char *sqlstate);

/* The code and text for the caller of a verb. `is_read`: P3. */
pawl_code pawli_pg_fail(const struct pawli_pg_fault *fault, bool is_read, pawl_err *err);

/* The SQLSTATE in a text of libpq under PQERRORS_SQLSTATE; false where there is none. */
bool pawli_pg_find_sqlstate(const char *text, char ret_sqlstate[PAWLI_PG_SQLSTATE_MAX]);

/* Our own words for a connection that could not be made: a constant. */
const char *pawli_pg_tell_refusal(const char *text);

/* ---- link.c: one connection, without blocking */

/* Statements that the server knows by name, in the order in which it was told: see prepared.c. */
#define PAWLI_PG_PREPARED_MAX 64
#define PAWLI_PG_NAME_SIZE    24

struct pawli_pg_prepared {
    const char
        *list[PAWLI_PG_PREPARED_MAX]; /* constant texts: the same one is the same statement */
    char names[PAWLI_PG_PREPARED_MAX][PAWLI_PG_NAME_SIZE];
    size_t count;
    size_t known; /* of them: the server has answered */
};

struct pawli_pg_link {
    PGconn *conn;     /* NULL: none */
    int wake_fd;      /* a wait ends when this file can be read; -1: none */
    bool is_ending;   /* the server has said that it ends the connection */
    bool is_owing;    /* the answer to what followed a call is still to be read: P7 */
    bool is_direct;   /* no pooler is in between: set by whoever has asked */
    int64_t limit_ms; /* what the session gives each statement (P4); 0: not known */
    struct pawli_pg_prepared prepared;
    struct timespec sure_until; /* it has just answered: until then nobody asks whether it lives */
};

enum pawli_pg_waited {
    PAWLI_PG_READY, /* the socket can be read, or written where that was asked for */
    PAWLI_PG_LATE,  /* the time is up */
    PAWLI_PG_WOKEN  /* by wake_fd */
};

struct timespec pawli_pg_sooner(struct timespec a, struct timespec b);
int64_t pawli_pg_left_ms(struct timespec until); /* never negative */

/* Wait until the connection can be read, or also written. */
enum pawli_pg_waited pawli_pg_await(const struct pawli_pg_link *link, bool is_writing,
                                    struct timespec until);

/* Wait a random part of `most_ms`, but not beyond `until`. */
void pawli_pg_pause(const pawl_random *random, int64_t most_ms, struct timespec until);

/* Connect. On false `ret_fault` tells why, nothing was done, and the link has no connection. */
bool pawli_pg_connect(struct pawli_pg_link *link, const char *conninfo, int64_t call_timeout_ms,
                      struct timespec until, struct pawli_pg_fault *ret_fault);

/* Give the connection up. Accepts a link that has none. */
void pawli_pg_disconnect(struct pawli_pg_link *link);

/* Whether an idle connection still stands, as far as one can tell without asking the server. */
bool pawli_pg_is_alive(const struct pawli_pg_link *link);

/* Read what is still to be read (P7). On false the connection is of no more use. */
bool pawli_pg_clear_link(struct pawli_pg_link *link, struct timespec until);

/* One statement of an exchange. `sql` is constant text: arguments are never put into it. Where the
 * link is direct, it stays as it is for as long as the link lasts. */
struct pawli_pg_statement {
    const char *sql;
    struct pawli_pg_args args;
};

/* ---- prepared.c: what a session need not read twice */

/* Tell the server of the statement, unless it knows. *told is one more where that has an answer. */
bool pawli_pg_prepare(struct pawli_pg_link *link, const struct pawli_pg_statement *statement,
                      size_t *told);

/* The server has answered to the first that it did not know. */
void pawli_pg_prepared_one(struct pawli_pg_link *link);

/* The exchange has ended: what the server has not answered to, it does not know. */
void pawli_pg_prepared_end(struct pawli_pg_link *link);

/* Send it, by its name where it has one. */
bool pawli_pg_send(struct pawli_pg_link *link, const struct pawli_pg_statement *statement);

/*
 * Send statements as one pipeline, which is one transaction, and gather the answers. On DONE
 * ret_answers[0 .. statements_count) belong to the caller; otherwise none. After a fault the link
 * may have no connection.
 */
struct pawli_pg_exchange {
    const struct pawli_pg_statement *statements;
    size_t statements_count;
    PGresult **ret_answers;
    int64_t limit_ms; /* of the call: the server stops each statement in time (P4); 0: it does not
                       */
    const struct pawli_pg_statement *after; /* P7; NULL: nothing follows */
};
struct pawli_pg_fault pawli_pg_exchange(struct pawli_pg_link *link,
                                        const struct pawli_pg_exchange *exchange,
                                        struct timespec until);

/* Send what follows a call that is done (P7). The link owes nothing. */
void pawli_pg_follow(struct pawli_pg_link *link, const struct pawli_pg_statement *statement);

/* ---- postgres.c: the handle */

#define PAWLI_PG_KNOWN_MAX 8

/* The line of a queue, as the server told it. */
struct pawli_pg_known {
    char queue[PAWL_NAME_MAX + 1]; /* empty: none */
    int64_t line;
    struct timespec until; /* then it is asked for again */
};

/* A function that does the usual at less cost, and else nothing: then the call goes as others do,
 * and the next ones do not try it, more of them each time. */
struct pawli_pg_shortcut {
    unsigned refusals; /* one after the other */
    unsigned pause;    /* calls that do not try it */
};

struct pawli_pg_handle {
    pawl_store store; /* first: the port's head */
    char *conninfo;   /* owned; may hold a password: never told */
    const pawl_random *random;
    int64_t call_timeout_ms;
    int64_t limit_ms; /* a call takes no longer than this either: see pawl_store_limit() */
    int64_t shards;
    bool is_notifying; /* whether hints are sent, as of the last connection */
    int64_t home;      /* the table of jobs, likewise: another one since has other lines */
    struct pawli_pg_known known[PAWLI_PG_KNOWN_MAX]; /* since the last connection */
    size_t known_next;                               /* where the next is put */
    struct pawli_stream stream;   /* of its hints, unless it shares one: see store.stream */
    size_t next_shard;            /* where the next claim begins */
    size_t claimed_last;          /* jobs that the last claim gave: what to expect of the next */
    struct pawli_pg_shortcut few; /* pawl.claim_few() */
    struct pawli_pg_shortcut succeed_all; /* pawl.succeed_all() */

    struct pawli_pg_link link;
    int64_t reconnects;           /* failed in a row */
    struct timespec reconnect_at; /* not before */

    struct pawli_pg_link listener;
    struct timespec listen_at; /* not before */
    bool is_deaf;              /* notifications do not arrive */
    bool has_echo;             /* it was told that more may come: S1 of stream.h */
    struct timespec echo_at;   /* when it looks again then */
    int wake_fd;               /* readable once somebody has called pawl_wake() */
};

/* Whether libpq can read a connection string (NULL: the environment's). PAWL_INVALID, unquoted. */
pawl_code pawli_pg_check_conninfo(const char *conninfo, pawl_err *err);

static inline struct pawli_pg_handle *pawli_pg_handle_of(pawl_store *store)
{
    return (struct pawli_pg_handle *)store;
}

/* ---- call.c: a call as a verb makes it */

/* A call under way. Zeroed but for `handle`: nothing in it. */
struct pawli_pg_call {
    struct pawli_pg_handle *handle;
    bool is_read; /* it changes nothing: P3 */
    struct pawli_pg_statement *statements;
    PGresult **answers;
    size_t count; /* of statements, and of answers where the call is done */
    size_t room;
    struct pawli_pg_statement first; /* most calls have one */
    PGresult *first_answer;          /* likewise */
    bool is_failed;                  /* memory ran out while it was put together */
    struct pawli_pg_args spare;      /* what is filled in vain then */
    struct pawli_pg_statement after; /* P7; without text: nothing follows */
    enum pawli_hint hint;            /* which hint that is */
    pawl_mono put_at;                /* when it was decided */
};

/* Add a statement; gives its arguments, to be filled before the next is added. Never NULL. */
struct pawli_pg_args *pawli_pg_call_add(struct pawli_pg_call *call, const char *sql);

/*
 * Make the call: connect where there is no connection, send, gather, and try again where the server
 * says that the same call may be repeated. PAWL_OK: the answers are there, each of its shape.
 */
pawl_code pawli_pg_call_run(struct pawli_pg_call *call, const char *shape, pawl_err *err);

/* Free all of it. */
void pawli_pg_call_clear(struct pawli_pg_call *call);

/* What to say where the answer of a call that is done cannot be used: nobody can take it back. */
pawl_code pawli_pg_call_spoilt(const struct pawli_pg_call *call, pawl_err *err);

/* A random seed for tokens and backoffs, as the last argument of a statement. */
void pawli_pg_arg_seed(struct pawli_pg_call *call, struct pawli_pg_args *args);

/* Connect the handle's link, within the bounds of its backoff. */
bool pawli_pg_call_connect(struct pawli_pg_handle *handle, struct timespec until,
                           struct pawli_pg_fault *ret_fault);

/* Whether a call tries the shortcut; and how that went, where it did. */
bool pawli_pg_shortcut_try(struct pawli_pg_shortcut *shortcut);
void pawli_pg_shortcut_note(struct pawli_pg_shortcut *shortcut, bool is_done);

/* The time that is left until then for a call, which has some however late it is. */
int64_t pawli_pg_left_of(struct timespec until);

/*
 * The rows of a batch by shard: those of shard g are rows[starts[g] .. starts[g + 1]), in the order
 * given. Statements are sent in the order of the shards, so that calls which lock the rows of
 * several shards lock them in one order.
 */
struct pawli_pg_groups {
    size_t *rows;
    size_t *starts;
    size_t count; /* of shards; some may have no rows */
};

/* Group by the shards that ids name; `stride` bytes lie between two ids. False: no memory. */
bool pawli_pg_group(const struct pawli_pg_handle *handle, const pawl_id *first, size_t stride,
                    size_t rows_count, struct pawli_pg_groups *ret_groups);
void pawli_pg_groups_clear(struct pawli_pg_groups *groups);

/* ---- hint.c */

pawl_code pawli_pg_wait(pawl_store *store, int64_t timeout_ms, bool *ret_hint, pawl_err *err);
void pawli_pg_wake(pawl_store *store);

/* ---- worklease.c */

extern const struct pawli_worklease_ops pawli_pg_worklease_ops;

/* ---- once.c */

extern const struct pawli_once_ops pawli_pg_once_ops;

/* ---- recent.c */

pawl_code pawli_pg_recent(pawl_store *store, const struct pawli_recent_args *args,
                          struct pawli_recent *ret_rows, size_t rows_max, size_t *ret_count,
                          pawl_err *err);

/* ---- endpoint.c */

extern const struct pawli_endpoint_ops pawli_pg_endpoint_ops;

/* ---- the verbs, each in the file of its subject */

/* few.c: claims that pawl.claim_few() may do. */

/* How many jobs such a claim is for; 0: it is none. */
size_t pawli_pg_few_of(struct pawli_pg_handle *handle, const pawl_claim_args *args,
                       size_t jobs_max);

/* *ret_is_done: that was the claim; else nothing was claimed, and it goes as others do. */
pawl_code pawli_pg_claim_few(struct pawli_pg_handle *handle, const pawl_claim_args *args,
                             pawl_job *ret_jobs, size_t jobs_max, size_t *ret_count,
                             bool *ret_is_done, pawl_err *err);

/* The most bytes of payloads that a claim gives, by default or as it asks. */
int64_t pawli_pg_bytes_max(const pawl_claim_args *claim);

pawl_code pawli_pg_enqueue(pawl_store *store, const pawl_enqueue_row *rows, size_t rows_count,
                           pawl_enqueued *ret_results, pawl_err *err);
pawl_code pawli_pg_claim(pawl_store *store, const pawl_claim_args *args, pawl_job *ret_jobs,
                         size_t jobs_max, size_t *ret_count, pawl_err *err);
pawl_code pawli_pg_mine(pawl_store *store, const char *worker, const pawl_id *after,
                        pawl_job *ret_jobs, size_t jobs_max, size_t *ret_count, pawl_err *err);
pawl_code pawli_pg_renew(pawl_store *store, const char *worker, const pawl_renew_row *rows,
                         size_t rows_count, pawl_renewed *ret_results, pawl_err *err);
pawl_code pawli_pg_settle(pawl_store *store, const char *worker, const pawl_settle_row *rows,
                          size_t rows_count, pawl_settled *ret_results, pawl_err *err);
pawl_code pawli_pg_release(pawl_store *store, const char *worker, const pawl_lease *leases,
                           size_t leases_count, pawl_code *ret_codes, pawl_err *err);
pawl_code pawli_pg_reap(pawl_store *store, pawl_reaped *ret_rows, size_t rows_max,
                        size_t *ret_count, pawl_err *err);
pawl_code pawli_pg_prune(pawl_store *store, size_t jobs_max, size_t *ret_count, pawl_err *err);
pawl_code pawli_pg_get(pawl_store *store, const pawl_id *id, pawl_job *ret_job, pawl_err *err);
pawl_code pawli_pg_list(pawl_store *store, const pawl_filter *filter, const pawl_id *after,
                        pawl_job *ret_jobs, size_t jobs_max, size_t *ret_count, pawl_err *err);
pawl_code pawli_pg_attempts(pawl_store *store, const pawl_id *id, int64_t after_no,
                            pawl_attempt *ret_rows, size_t rows_max, size_t *ret_count,
                            pawl_err *err);
pawl_code pawli_pg_leases(pawl_store *store, const pawl_filter *filter, const pawl_id *after,
                          pawl_lease_info *ret_rows, size_t rows_max, size_t *ret_count,
                          pawl_err *err);
pawl_code pawli_pg_worker_seen(pawl_store *store, const pawl_worker_seen *args, pawl_err *err);
pawl_code pawli_pg_worker_ended(pawl_store *store, const char *name, pawl_err *err);
pawl_code pawli_pg_workers(pawl_store *store, const char *after, pawl_worker *ret_rows,
                           size_t rows_max, size_t *ret_count, pawl_err *err);
pawl_code pawli_pg_presences(pawl_store *store, const char *after, pawl_worker *ret_rows,
                             size_t rows_max, size_t *ret_count, pawl_err *err);
pawl_code pawli_pg_queue_stats(pawl_store *store, const char *after, pawl_stats *ret_rows,
                               size_t rows_max, size_t *ret_count, pawl_err *err);
pawl_code pawli_pg_queue_depths(pawl_store *store, const pawl_depth_args *args,
                                pawl_stats *ret_rows, size_t rows_max, size_t *ret_count,
                                pawl_err *err);
pawl_code pawli_pg_queue_get(pawl_store *store, const char *queue,
                             pawl_queue_settings *ret_settings, pawl_err *err);
pawl_code pawli_pg_queue_set(pawl_store *store, const char *queue,
                             const pawl_queue_settings *settings, pawl_err *err);
pawl_code pawli_pg_queue_pause(pawl_store *store, const char *queue, bool is_paused, pawl_err *err);
pawl_code pawli_pg_cancel(pawl_store *store, const pawl_id *ids, size_t ids_count,
                          pawl_changed *ret_results, pawl_err *err);
pawl_code pawli_pg_redrive(pawl_store *store, const pawl_id *ids, size_t ids_count,
                           pawl_changed *ret_results, pawl_err *err);
pawl_code pawli_pg_discard(pawl_store *store, const pawl_id *ids, size_t ids_count,
                           pawl_changed *ret_results, pawl_err *err);
pawl_code pawli_pg_cancel_where(pawl_store *store, const pawl_filter *filter, size_t jobs_max,
                                size_t *ret_count, pawl_err *err);
pawl_code pawli_pg_redrive_where(pawl_store *store, const pawl_filter *filter, size_t jobs_max,
                                 size_t *ret_count, pawl_err *err);
pawl_code pawli_pg_discard_where(pawl_store *store, const pawl_filter *filter, size_t jobs_max,
                                 size_t *ret_count, pawl_err *err);
pawl_code pawli_pg_now(pawl_store *store, pawl_wall *ret_now, pawl_err *err);

pawl_code pawli_pg_health(pawl_store *store, const struct pawli_health *health, pawl_err *err);

#endif

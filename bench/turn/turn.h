/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * turn.h - one turn of a candidate of the bench: what it is told, and what it answers.
 *
 * bench/run decides what is compared with what, makes each turn a fresh database or file, and runs
 * the candidates in turns. This program runs a single one: it fills a queue, does one thing as fast
 * as it can, checks that all of it was done, and prints one line of JSON.
 */
#ifndef PAWLB_TURN_H
#define PAWLB_TURN_H

#include "pawl/worker.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QUEUE             "bench"
#define WORKER            "bench"
#define CALL_TIMEOUT_MS   300000 /* however busy the machine is */
#define WAIT_MOST_MS      1800000
#define LEASE_LONG_MS     3600000
#define SAMPLES_MAX       100000
#define PAYLOAD_BYTES_MAX 65536

/* What a turn is told, by words NAME=VALUE. */
struct turn {
    const char *verb;
    const char *store;      /* a URL as of pawl_source_options; to bare candidates too */
    const char *statistics; /* of the planner, PostgreSQL: auto, full, never, stale, empty */
    const char *program;    /* of handlers that are commands */
    int64_t jobs;
    int64_t payload;         /* bytes of each */
    int64_t fill_batch;      /* jobs in a call that fills, and is not measured */
    int64_t batch;           /* of a claim, a settle, an enqueue that is measured */
    int64_t keys;            /* 0: none; otherwise so many ordering keys, one after the other */
    int64_t processes;       /* workers that drain */
    int64_t parallel;        /* handlers at once, of each */
    int64_t buffer;          /* jobs held but not started, of each */
    int64_t connections;     /* that enqueue */
    int64_t held;            /* leases that a worker keeps alive while it drains */
    int64_t lease_ms;        /* of those; 0: the queue's */
    int64_t delayed;         /* jobs that are in the queue and wait for their time */
    int64_t stuck;           /* jobs behind the first of one key, which runs */
    int64_t elsewhere;       /* jobs that another worker holds */
    int64_t rate;            /* jobs per second, where not as fast as can be */
    int64_t seconds;         /* to be idle */
    int64_t old_transaction; /* 1: one is open since before the jobs were enqueued */
    int64_t cursor;          /* 1: the bare claim remembers where it was */
    int64_t warm;            /* 1: all workers have connections and plans before it begins */
};

/* What a turn answers; what is below 0 is not told. */
struct turn_result {
    double seconds; /* for `jobs` */
    double fill_seconds;
    double wal_bytes_per_job;
    double p50_us;
    double p99_us;
    double resident_kib;    /* the most, of a worker */
    double cpu_share;       /* of a core, of each process */
    double renewed;         /* leases, while it drained */
    double statements_rate; /* per second, of each process */
};

/* ---- main.c */

/* Tell standard error; gives false. */
bool turn_fail(const char *what, const char *why);
int64_t turn_now_us(void);

typedef bool (*turn_run)(const struct turn *turn, struct turn_result *result);

/* ---- fill.c */

pawl_source *turn_open_source(const struct turn *turn);
/* A source and a handle; both closed by turn_close(). False: it has said why. */
bool turn_open(const struct turn *turn, pawl_source **ret_source, pawl_store **ret_store);
void turn_close(pawl_source *source, pawl_store *store);

/* So many rows of the turn's queue, payload and keys. NULL: no memory. */
pawl_enqueue_row *turn_rows(const struct turn *turn, size_t count);
void turn_rows_free(pawl_enqueue_row *rows);
/* Gives the rows the keys of the jobs from `first` on. */
void turn_rows_key(const struct turn *turn, pawl_enqueue_row *rows, size_t count, int64_t first);

/* Enqueue the turn's jobs [from, to). */
bool turn_fill(const struct turn *turn, pawl_store *store, int64_t from, int64_t to);
/* All of them, into a handle of its own, timed; the planner's statistics as asked. */
bool turn_fill_all(const struct turn *turn, struct turn_result *result);
/* What else is in the queue: delayed, stuck, elsewhere. */
bool turn_prepare(const struct turn *turn, struct turn_result *result);
/* Whether so many jobs have succeeded; says what is wrong. */
bool turn_check(const struct turn *turn, pawl_store *store, int64_t wanted);
bool turn_check_all(const struct turn *turn);

/* ---- work.c: the worker of the runtime */

bool turn_drain(const struct turn *turn, struct turn_result *result);
bool turn_hold(const struct turn *turn, struct turn_result *result);
bool turn_idle(const struct turn *turn, struct turn_result *result);
bool turn_latency(const struct turn *turn, struct turn_result *result);

/* Fills p50_us and p99_us; sorts the samples. */
void turn_percentiles(int64_t *samples, size_t count, struct turn_result *result);
void turn_wait_until(int64_t due_us);

/* ---- calls.c: the store's own verbs */

bool turn_batches(const struct turn *turn, struct turn_result *result);
bool turn_enqueue(const struct turn *turn, struct turn_result *result);
bool turn_singles(const struct turn *turn, struct turn_result *result);
bool turn_joined(const struct turn *turn, struct turn_result *result);

/* ---- command.c: programs as handlers */

bool turn_command(const struct turn *turn, struct turn_result *result);
bool turn_spawn(const struct turn *turn, struct turn_result *result);

/* ---- bare_*.c: what they are compared with */

/* Of pgmq too, where the verb is one of its. */
bool turn_bare_drain(const struct turn *turn, struct turn_result *result);
bool turn_bare_batches(const struct turn *turn, struct turn_result *result);
bool turn_bare_copy(const struct turn *turn, struct turn_result *result);
bool turn_bare_singles(const struct turn *turn, struct turn_result *result);
bool turn_bare_latency(const struct turn *turn, struct turn_result *result);
bool turn_bare_notify(const struct turn *turn, struct turn_result *result);
bool turn_bare_notify_trip(const struct turn *turn, struct turn_result *result);
bool turn_bare_sqlite_drain(const struct turn *turn, struct turn_result *result);
bool turn_bare_sqlite_enqueue(const struct turn *turn, struct turn_result *result);

/* ---- keeper.c */

bool turn_keeper(const struct turn *turn, struct turn_result *result);

/* ---- beanstalkd.c */

bool turn_beanstalkd(const struct turn *turn, struct turn_result *result);

/* ---- server.c: what only the server knows; nothing where the store is no PostgreSQL */

/* Where the write-ahead log is, in bytes; below 0: there is none. */
double turn_wal(const struct turn *turn);
bool turn_sql(const struct turn *turn, const char *sql);
bool turn_is_postgres(const struct turn *turn);
/* How many statements there were, from clients; below 0: it does not count them. */
double turn_statements(const struct turn *turn);
/* A transaction that stays open until turn_end_transaction(). NULL: none is wanted; *ret_ok. */
void *turn_old_transaction(const struct turn *turn, bool *ret_ok);
void turn_end_transaction(void *transaction);

#endif

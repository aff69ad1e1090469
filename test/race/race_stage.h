/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * race_stage.h - several real sessions on one PostgreSQL store: programs that know SQL only, each a
 * connection that may keep its transaction open, and C clients, whose calls run in a thread of
 * their own where they have to wait. The functions read a clock that the story turns: a lease ends
 * exactly when the story says so, also while a row is locked.
 *
 * Each of these functions fails the test where it cannot be done.
 */
#ifndef PAWLT_RACE_STAGE_H
#define PAWLT_RACE_STAGE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pawl/pawl.h"

#include <libpq-fe.h>
#include <pthread.h>

#define RACE_QUEUE    "q"
#define RACE_LEASE_MS 30000
#define RACE_TEXT_MAX 128
#define RACE_ROWS     3

struct race {
    struct place *place;
    pawl_store *c;    /* a C client */
    pawl_store *c2;   /* another one */
    PGconn *sql;      /* a program that knows SQL only */
    PGconn *sql2;     /* another one */
    PGconn *watching; /* sees who waits */
};

/* Once per program, and once per test. */
int race_begin(void **state);
int race_end(void **state);
int race_set_up(void **state);
int race_tear_down(void **state);

/* Let time pass, for everybody. */
void race_age(struct race *race, int64_t ms);

/* ---- SQL */

/* What a session is told: the first value, "" for none; or the SQLSTATE of a refusal. */
struct race_text {
    char text[RACE_TEXT_MAX];
};
struct race_text race_ask(PGconn *session, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The same in two steps, where it has to wait in between. */
void race_send(PGconn *session, const char *format, ...) __attribute__((format(printf, 2, 3)));
struct race_text race_answer(PGconn *session);

/* Until somebody waits for a lock. */
void race_await_waiting(struct race *race);

#define expect_told(told, wanted) assert_string_equal((told).text, (wanted))

/* ---- jobs */

pawl_id race_put(pawl_store *store);
pawl_lease race_take(pawl_store *store, const char *worker);
size_t race_take_count(pawl_store *store, const char *worker);

/* By claim_outbox_batch: what an SQL client holds. */
pawl_lease race_take_sql(PGconn *session, const char *worker);

/* Complete as an SQL client; gives the row's number, or the SQLSTATE. */
struct race_text race_done_sql(PGconn *session, const char *worker, const pawl_lease *lease,
                               const char *state);

struct race_text race_id(const pawl_id *id);
pawl_state race_state(struct race *race, const pawl_id *id);

/* The ledger as "1 DISPATCHED none, 2 ...". */
struct race_text race_ledger(struct race *race, const pawl_id *id);

/* ---- calls of a C client that wait */

enum race_verb {
    RACE_SETTLE,
    RACE_RENEW,
    RACE_RELEASE,
    RACE_CANCEL,
    RACE_REDRIVE,
    RACE_ENQUEUE
};

struct race_call {
    pawl_store *store;
    enum race_verb verb;
    const char *worker;
    pawl_lease leases[RACE_ROWS]; /* of cancel, redrive and enqueue only the job counts */
    size_t count;
    pawl_settle_action action;
    const char *dedupe_key;

    pawl_code code;
    pawl_code verdicts[RACE_ROWS];
    pawl_state states[RACE_ROWS];
    pthread_t thread;
};

/* Begin the call, and wait until it waits for a lock. */
void race_call(struct race *race, struct race_call *call);

/* Wait until it has ended. The call as a whole must be OK; gives the verdict of its first row. */
pawl_code race_join(struct race_call *call);

/* The call without a thread: it must not have to wait. */
pawl_code race_make(struct race_call *call);

size_t race_reap(pawl_store *store);
size_t race_prune(pawl_store *store);

#endif

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * race_stage.c - several real sessions on one PostgreSQL store.
 * Owns:  the sessions of a story, and the threads of the calls that wait.
 * Never: decides who comes first: the story does, step by step.
 */
#include "race/race_stage.h"

#include "store/postgres_kind.h"
#include "support/pg_server.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SQL_MAX     2048
#define AWAIT_TRIES 12000
#define AWAIT_MS    5
#define ROWS_MAX    100
#define LEDGER_MAX  8

/* ---------------------------------------------------------------- life */

int race_begin(void **state)
{
    (void)state; /* the server is the program's */
    return postgres_kind_begin(false) ? 0 : -1;
}

int race_end(void **state)
{
    (void)state; /* likewise */
    postgres_kind_end();
    return 0;
}

static PGconn *connect_sql(const struct place *place)
{
    char conninfo[PG_PATH_MAX];
    PGconn *session = PQconnectdb(postgres_kind_conninfo(place, conninfo));
    if (PQstatus(session) != CONNECTION_OK)
        fail_msg("%s", PQerrorMessage(session));
    return session;
}

int race_set_up(void **state)
{
    struct race *race = calloc(1, sizeof(*race));
    assert_non_null(race);
    race->place = exact_postgres_kind.make(1);
    assert_non_null(race->place);
    race->c = exact_postgres_kind.open(race->place);
    race->c2 = exact_postgres_kind.open(race->place);
    assert_true(race->c != NULL && race->c2 != NULL);
    race->sql = connect_sql(race->place);
    race->sql2 = connect_sql(race->place);
    race->watching = connect_sql(race->place);
    *state = race;
    return 0;
}

int race_tear_down(void **state)
{
    struct race *race = *state;
    PQfinish(race->sql);
    PQfinish(race->sql2);
    PQfinish(race->watching);
    pawl_store_close(race->c);
    pawl_store_close(race->c2);
    exact_postgres_kind.drop(race->place);
    free(race);
    return 0;
}

void race_age(struct race *race, int64_t ms)
{
    exact_postgres_kind.age(race->place, ms);
}

/* ---------------------------------------------------------------- SQL */

static struct race_text text_of(const PGresult *result)
{
    struct race_text told = {""};
    ExecStatusType status = PQresultStatus(result);
    const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    if (status == PGRES_TUPLES_OK && PQntuples(result) > 0)
        (void)snprintf(told.text, sizeof(told.text), "%s", PQgetvalue(result, 0, 0));
    else if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
        (void)snprintf(told.text, sizeof(told.text), "%s", sqlstate != NULL ? sqlstate : "?");
    return told;
}

struct race_text race_ask(PGconn *session, const char *format, ...)
{
    char sql[SQL_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(sql, sizeof(sql), format, args); /* ours, and short */
    va_end(args);
    PGresult *result = PQexec(session, sql);
    struct race_text told = text_of(result);
    PQclear(result);
    return told;
}

void race_send(PGconn *session, const char *format, ...)
{
    char sql[SQL_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(sql, sizeof(sql), format, args); /* ours, and short */
    va_end(args);
    if (PQsendQuery(session, sql) != 1)
        fail_msg("%s", PQerrorMessage(session));
}

struct race_text race_answer(PGconn *session)
{
    struct race_text told = {"no answer"};
    PGresult *result;
    while ((result = PQgetResult(session)) != NULL) {
        told = text_of(result);
        PQclear(result);
    }
    return told;
}

void race_await_waiting(struct race *race)
{
    for (int i = 0; i < AWAIT_TRIES; i++) {
        struct race_text waiting = race_ask(
            race->watching, "select count(*) from pg_stat_activity where wait_event_type = 'Lock' "
                            "and datname = current_database()");
        if (strcmp(waiting.text, "0") != 0)
            return;
        (void)poll(NULL, 0, AWAIT_MS); /* another process: nothing tells us */
    }
    fail_msg("nobody waits");
}

/* ---------------------------------------------------------------- jobs */

struct race_text race_id(const pawl_id *id)
{
    struct race_text text;
    char buffer[PAWL_ID_TEXT_MAX];
    (void)snprintf(text.text, sizeof(text.text), "%s", pawl_id_format(id, buffer));
    return text;
}

pawl_id race_put(pawl_store *store)
{
    pawl_enqueue_row row;
    pawl_enqueued result;
    pawl_enqueue_init(&row);
    row.queue = RACE_QUEUE;
    assert_int_equal(pawl_enqueue(store, &row, 1, &result, NULL), PAWL_OK);
    assert_int_equal(result.code, PAWL_OK);
    return result.id;
}

static size_t take_up_to(pawl_store *store, const char *worker, pawl_lease *leases, size_t most)
{
    pawl_claim_line line = {RACE_QUEUE, (int64_t)most, RACE_LEASE_MS};
    pawl_claim_args args = {worker, &line, 1, PAWL_DEFAULT};
    pawl_job jobs[ROWS_MAX];
    size_t count = 0;
    assert_int_equal(pawl_claim(store, &args, jobs, most, &count, NULL), PAWL_OK);
    for (size_t i = 0; i < count; i++) {
        leases[i] = (pawl_lease){jobs[i].id, jobs[i].token, jobs[i].lease_version, jobs[i].place};
        pawl_job_clear(&jobs[i]);
    }
    return count;
}

pawl_lease race_take(pawl_store *store, const char *worker)
{
    pawl_lease lease;
    assert_int_equal(take_up_to(store, worker, &lease, 1), 1);
    return lease;
}

size_t race_take_count(pawl_store *store, const char *worker)
{
    pawl_lease leases[ROWS_MAX];
    return take_up_to(store, worker, leases, ROWS_MAX);
}

pawl_lease race_take_sql(PGconn *session, const char *worker)
{
    char sql[SQL_MAX];
    pawl_lease lease = {.place = 0};
    pawl_id token;
    (void)snprintf(sql, sizeof(sql),
                   "select outbox_id, lease_token, lease_version from "
                   "pawl.claim_outbox_batch(1, '%s', %d, '%s')",
                   worker, RACE_LEASE_MS / 1000, RACE_QUEUE);
    PGresult *result = PQexec(session, sql);
    if (PQresultStatus(result) != PGRES_TUPLES_OK || PQntuples(result) != 1)
        fail_msg("%s: %d rows; %s", sql, PQntuples(result), PQerrorMessage(session));
    assert_int_equal(pawl_id_parse(PQgetvalue(result, 0, 0), &lease.job, NULL), PAWL_OK);
    assert_int_equal(pawl_id_parse(PQgetvalue(result, 0, 1), &token, NULL), PAWL_OK);
    memcpy(lease.token.bytes, token.bytes, sizeof(lease.token.bytes));
    lease.version = strtoll(PQgetvalue(result, 0, 2), NULL, 10);
    PQclear(result);
    return lease;
}

struct race_text race_done_sql(PGconn *session, const char *worker, const pawl_lease *lease,
                               const char *state)
{
    pawl_id token;
    memcpy(token.bytes, lease->token.bytes, sizeof(token.bytes));
    return race_ask(session, "select pawl.complete_outbox_attempt('%s', '%s', '%s', '%s')",
                    race_id(&lease->job).text, race_id(&token).text, worker, state);
}

pawl_state race_state(struct race *race, const pawl_id *id)
{
    pawl_job job;
    assert_int_equal(pawl_get(race->c, id, &job, NULL), PAWL_OK);
    pawl_state state = job.state;
    pawl_job_clear(&job);
    return state;
}

struct race_text race_ledger(struct race *race, const pawl_id *id)
{
    struct race_text told = {""};
    pawl_attempt rows[LEDGER_MAX];
    size_t count = 0;
    size_t at = 0;
    assert_int_equal(pawl_attempts(race->c, id, 0, rows, LEDGER_MAX, &count, NULL), PAWL_OK);
    for (size_t i = 0; i < count && at < sizeof(told.text); i++)
        at += (size_t)snprintf(told.text + at, sizeof(told.text) - at, "%s%d %s %s",
                               i > 0 ? ", " : "", (int)rows[i].attempt_no,
                               pawl_outcome_name(rows[i].outcome),
                               pawl_reason_name(rows[i].reason));
    return told;
}

size_t race_reap(pawl_store *store)
{
    pawl_reaped rows[ROWS_MAX];
    size_t count = 0;
    assert_int_equal(pawl_reap(store, rows, ROWS_MAX, &count, NULL), PAWL_OK);
    return count;
}

size_t race_prune(pawl_store *store)
{
    size_t count = 0;
    assert_int_equal(pawl_prune(store, ROWS_MAX, &count, NULL), PAWL_OK);
    return count;
}

/* ---------------------------------------------------------------- calls of a C client */

static void settle(struct race_call *call)
{
    pawl_settle_row rows[RACE_ROWS];
    pawl_settled results[RACE_ROWS] = {0};
    for (size_t i = 0; i < call->count; i++) {
        pawl_settle_init(&rows[i]);
        rows[i].lease = call->leases[i];
        rows[i].action = call->action;
        rows[i].delay_ms = 0;
    }
    call->code = pawl_settle(call->store, call->worker, rows, call->count, results, NULL);
    for (size_t i = 0; i < call->count; i++) {
        call->verdicts[i] = results[i].code;
        call->states[i] = results[i].state;
    }
}

static void renew(struct race_call *call)
{
    pawl_renew_row rows[RACE_ROWS];
    pawl_renewed results[RACE_ROWS] = {0};
    for (size_t i = 0; i < call->count; i++)
        rows[i] = (pawl_renew_row){.lease = call->leases[i], .lease_ms = RACE_LEASE_MS};
    call->code = pawl_renew(call->store, call->worker, rows, call->count, results, NULL);
    for (size_t i = 0; i < call->count; i++)
        call->verdicts[i] = results[i].code;
}

static void change(struct race_call *call)
{
    pawl_changed results[RACE_ROWS] = {0};
    pawl_id ids[RACE_ROWS];
    for (size_t i = 0; i < call->count; i++)
        ids[i] = call->leases[i].job;
    call->code = call->verb == RACE_CANCEL
                     ? pawl_cancel(call->store, ids, call->count, results, NULL)
                     : pawl_redrive(call->store, ids, call->count, results, NULL);
    for (size_t i = 0; i < call->count; i++) {
        call->verdicts[i] = results[i].code;
        call->states[i] = results[i].state;
    }
}

static void enqueue(struct race_call *call)
{
    pawl_enqueue_row row;
    pawl_enqueued result = {0};
    pawl_enqueue_init(&row);
    row.queue = RACE_QUEUE;
    row.id = call->leases[0].job;
    row.dedupe_key = call->dedupe_key;
    call->code = pawl_enqueue(call->store, &row, 1, &result, NULL);
    call->verdicts[0] = result.code;
}

static void *run(void *user)
{
    struct race_call *call = user;
    call->count = call->count == 0 ? 1 : call->count;
    switch (call->verb) {
    case RACE_SETTLE:
        settle(call);
        break;
    case RACE_RENEW:
        renew(call);
        break;
    case RACE_RELEASE:
        call->code = pawl_release(call->store, call->worker, call->leases, call->count,
                                  call->verdicts, NULL);
        break;
    case RACE_CANCEL:
    case RACE_REDRIVE:
        change(call);
        break;
    case RACE_ENQUEUE:
        enqueue(call);
        break;
    }
    return NULL;
}

void race_call(struct race *race, struct race_call *call)
{
    assert_int_equal(pthread_create(&call->thread, NULL, run, call), 0);
    race_await_waiting(race);
}

pawl_code race_join(struct race_call *call)
{
    assert_int_equal(pthread_join(call->thread, NULL), 0);
    assert_int_equal(call->code, PAWL_OK);
    return call->verdicts[0];
}

pawl_code race_make(struct race_call *call)
{
    (void)run(call);
    assert_int_equal(call->code, PAWL_OK);
    return call->verdicts[0];
}

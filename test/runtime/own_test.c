/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * own_test.c - handlers that complete their jobs in transactions of their own, together with what
 * they do: then each job has its effect exactly once, whatever happens to leases.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/kinds.h"
#include "runtime/stage.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOBS 20

struct own {
    struct stage *stage;
    atomic_int late;    /* handlers that wait until their lease is gone: so many more */
    atomic_int refused; /* transactions that were */
    atomic_bool is_gone;
};

static bool run(PGconn *conn, const char *sql)
{
    PGresult *result = PQexec(conn, sql);
    bool is_done = PQresultStatus(result) == PGRES_COMMAND_OK ||
                   PQresultStatus(result) == PGRES_TUPLES_OK;
    PQclear(result);
    return is_done;
}

/* The effect and the completion: both or none. */
static bool complete(PGconn *conn, const pawl_job *job, const char *worker)
{
    char id[PAWL_ID_TEXT_MAX];
    char token[PAWL_ID_TEXT_MAX];
    char sql[512];
    pawl_id token_as_id;
    memcpy(&token_as_id, &job->token, sizeof(token_as_id));
    pawl_id_format(&job->id, id);
    snprintf(sql, sizeof(sql), "insert into effect values ('%s')", id);
    if (!run(conn, "begin") || !run(conn, sql))
        return false;
    snprintf(sql, sizeof(sql),
             "select pawl.complete_outbox_attempt('%s', '%s', '%s', 'DISPATCHED')", id,
             pawl_id_format(&token_as_id, token), worker);
    bool is_done = run(conn, sql);
    return run(conn, is_done ? "commit" : "rollback") && is_done;
}

static int handle(pawl_job_ctx *ctx, void *user)
{
    struct own *own = user;
    PGconn *conn = PQconnectdb(getenv("DATABASE_URL"));
    if (atomic_fetch_sub(&own->late, 1) > 0) {
        while (!atomic_load(&own->is_gone)) /* deaf: it does not ask whether it must stop */
            stage_breathe();
    }
    bool is_done = PQstatus(conn) == CONNECTION_OK &&
                   complete(conn, pawl_job_of(ctx), pawl_job_worker(ctx));
    PQfinish(conn);
    atomic_fetch_add(&own->refused, !is_done);
    return is_done ? PAWL_SETTLED_BY_ME : PAWL_RETRY;
}

static int64_t ask(const char *sql)
{
    PGconn *conn = PQconnectdb(getenv("DATABASE_URL"));
    PGresult *result = PQexec(conn, sql);
    assert_int_equal(PQresultStatus(result), PGRES_TUPLES_OK);
    int64_t number = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    PQfinish(conn);
    return number;
}

static void prepare(void)
{
    PGconn *conn = PQconnectdb(getenv("DATABASE_URL"));
    assert_true(run(conn, "drop table if exists effect"));
    assert_true(run(conn, "create table effect (job uuid not null)"));
    PQfinish(conn);
}

static void each_job_has_its_effect_once(void **state)
{
    struct own own = {.stage = *state};
    pawl_worker_options options;
    prepare();
    stage_options(own.stage, &options);
    options.handler = handle;
    options.user = &own;
    stage_enqueue_many(own.stage, JOBS);
    pawl_runner *runner = stage_start(&options);
    AWAIT(stage_stats(own.stage).succeeded == JOBS);
    AWAIT(stage_told(own.stage, PAWL_EVENT_JOB_OVER, "settled_by_handler") == JOBS);
    stage_stop(own.stage, runner);
    assert_int_equal(ask("select count(*) from effect"), JOBS);
    assert_int_equal(ask("select count(distinct job) from effect"), JOBS);
    assert_int_equal(atomic_load(&own.refused), 0);
}

/* One whose lease was lost, and whose job was done by another meanwhile, leaves nothing. */
static void a_lost_lease_leaves_no_effect(void **state)
{
    struct own own = {.stage = *state, .late = 1};
    pawl_worker_options options;
    prepare();
    stage_options(own.stage, &options);
    options.handler = handle;
    options.user = &own;
    pawl_runner *runner = stage_start(&options);
    pawl_id id = stage_enqueue(own.stage, "");
    AWAIT(atomic_load(&own.late) == 0);
    fault_gate_set(&own.stage->gate, FAULT_RENEW, FAULT_DOWN);
    AWAIT(stage_told(own.stage, PAWL_EVENT_JOB_ABORT, "beat_failed") == 1);
    fault_gate_open(&own.stage->gate, FAULT_RENEW);
    AWAIT(stage_job(own.stage, &id).state == PAWL_SUCCEEDED); /* in the second run of it */
    atomic_store(&own.is_gone, true);
    AWAIT(atomic_load(&own.refused) == 1);
    stage_stop(own.stage, runner);
    assert_int_equal(ask("select count(*) from effect"), 1);
    assert_int_equal(stage_attempt(own.stage, &id, 1).outcome, PAWL_ZOMBIE_REQUEUE);
    assert_int_equal(stage_job(own.stage, &id).retries, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CASE(each_job_has_its_effect_once),
        CASE(a_lost_lease_leaves_no_effect),
    };
    return kinds_run(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * store_postgres_call_test.c - calls of the PostgreSQL store when others hold locks, when the
 * server ends a connection, is killed, is away or was never set up; and that no text that a caller
 * gets holds a password. Q-STORE-DOWN, NFR-003.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "store/postgres/postgres.h"
#include "support/pg_bouncer.h"
#include "support/pg_world.h"

#include <libpq-fe.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT_MS 20000
#define CANARY     "canary-7f3a9c"

static struct {
    struct pg_server server;
    pawl_store *store;
} world;

static int begin(void **state)
{
    (void)state;
    if (!pg_world_begin(&world.server, true, 1)) /* it is killed: nothing may be lost */
        return -1;
    world.store = pg_world_open(&world.server, NULL, TIMEOUT_MS);
    return 0;
}

static int end(void **state)
{
    (void)state;
    pawl_store_close(world.store);
    pg_server_remove(&world.server);
    return 0;
}

/* ---- a job in flight, and a settle of it in another thread */

static pawl_lease take_one(void)
{
    pawl_enqueue_row row;
    pawl_enqueued result;
    pawl_job job;
    size_t count = 0;
    pawl_claim_line line = {.queue = "mail", .jobs_max = 1, .lease_ms = 600000};
    pawl_claim_args args = {"w1", &line, 1, PAWL_DEFAULT};
    pawl_enqueue_init(&row);
    row.queue = "mail";
    assert_int_equal(pawl_enqueue(world.store, &row, 1, &result, NULL), PAWL_OK);
    assert_int_equal(pawl_claim(world.store, &args, &job, 1, &count, NULL), PAWL_OK);
    assert_int_equal(count, 1);
    pawl_lease lease = {job.id, job.token, job.lease_version, job.place};
    pawl_job_clear(&job);
    return lease;
}

struct settling {
    pawl_store *store;
    pawl_lease lease;
    pawl_code code;
    pawl_settled settled;
    pawl_err err;
};

static void *settle(void *user)
{
    struct settling *settling = user;
    pawl_settle_row row;
    pawl_settle_init(&row);
    row.lease = settling->lease;
    settling->code = pawl_settle(settling->store, "w1", &row, 1, &settling->settled,
                                 &settling->err);
    return NULL;
}

static const char lock_all_sql[] = "select count(*) from (select from pawl.job for update) j";

/* The process that waits for a lock, once there is one. */
static int64_t waiting_backend(void)
{
    return pg_world_await(&world.server, "select coalesce(max(pid), 0) from pg_stat_activity where "
                                         "wait_event_type = 'Lock'");
}

static pawl_state state_of(const pawl_lease *lease)
{
    pawl_job job;
    pawl_code code = PAWL_DOWN;
    for (int i = 0; i < 100 && code == PAWL_DOWN; i++) /* the store waits between the tries */
        code = pawl_get(world.store, &lease->job, &job, NULL);
    assert_int_equal(code, PAWL_OK);
    pawl_state state = job.state;
    pawl_job_clear(&job);
    return state;
}

/* Settle while others hold the row, do something to the server, and tell how it ended. */
static struct settling settle_under(void (*trouble)(int64_t backend))
{
    struct settling settling = {.store = world.store, .lease = take_one()};
    pthread_t thread;
    void *session = pg_world_hold(&world.server, lock_all_sql);
    assert_int_equal(pthread_create(&thread, NULL, settle, &settling), 0);
    int64_t backend = waiting_backend();
    assert_true(backend != 0);
    trouble(backend);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pg_world_let_go(session);
    return settling;
}

/* It was not done (the row was held); repeated, it is. */
static void expect_repeatable(struct settling *settling)
{
    assert_int_equal(state_of(&settling->lease), PAWL_IN_FLIGHT);
    (void)settle(settling);
    assert_int_equal(settling->code, PAWL_OK);
    assert_int_equal(settling->settled.code, PAWL_OK);
    assert_int_equal(state_of(&settling->lease), PAWL_SUCCEEDED);
}

static void terminate(int64_t backend)
{
    char sql[128];
    (void)snprintf(sql, sizeof(sql), "select pg_terminate_backend(%d)::int", (int)backend);
    assert_int_equal(pg_world_number(&world.server, sql), 1);
}

/* The server says that it ends the connection, before the statement has ended: not done. */
static void a_terminated_call_is_down(void **state)
{
    (void)state;
    struct settling settling = settle_under(terminate);
    assert_int_equal(settling.code, PAWL_DOWN);
    assert_non_null(strstr(settling.err.text, "57P01"));
    expect_repeatable(&settling);
}

static void kill_backend(int64_t backend)
{
    assert_int_equal(kill((pid_t)backend, SIGKILL), 0);
}

static void a_killed_backend_is_unknown(void **state)
{
    (void)state;
    struct settling settling = settle_under(kill_backend);
    assert_int_equal(settling.code, PAWL_UNKNOWN);
    expect_repeatable(&settling);
}

static void kill_server(int64_t backend)
{
    (void)backend; /* all of them */
    pg_server_kill(&world.server);
}

/* Q-DURABLE: what was acknowledged before is there afterwards. */
static void a_killed_server_is_unknown_then_down_then_back(void **state)
{
    (void)state;
    pawl_wall now;
    struct settling settling = settle_under(kill_server);
    assert_int_equal(settling.code, PAWL_UNKNOWN);
    assert_int_equal(pawl_now(world.store, &now, &settling.err), PAWL_DOWN);
    struct settling again = {.store = world.store, .lease = settling.lease};
    (void)settle(&again);
    assert_int_equal(again.code, PAWL_DOWN); /* there was nobody to send it to */
    assert_true(pg_server_restart(&world.server));
    expect_repeatable(&settling);
}

/* A connection that was ended while it was idle is found out before anything is sent. */
static void an_ended_idle_connection_costs_nothing(void **state)
{
    (void)state;
    pawl_wall now;
    struct settling settling = {.store = world.store, .lease = take_one()};
    assert_true(pg_world_number(&world.server,
                                "select count(pg_terminate_backend(pid)) from pg_stat_activity "
                                "where application_name = 'pawl'") > 0);
    (void)pg_world_await(&world.server, "select (count(*) = 0)::int from pg_stat_activity where "
                                        "application_name = 'pawl'");
    (void)settle(&settling);
    assert_int_equal(settling.code, PAWL_OK);
    assert_int_equal(pawl_now(world.store, &now, NULL), PAWL_OK);
}

/* ---- locks and time */

/* P4: the server itself ends what waits too long, so that the caller knows that it was not done. */
static void a_lock_held_too_long_is_down(void **state)
{
    (void)state;
    struct settling settling = {.lease = take_one()};
    settling.store = pg_world_open(&world.server, NULL, 1000);
    void *session = pg_world_hold(&world.server, lock_all_sql);
    for (int i = 0; i < 2; i++) { /* what was said of the limit was rolled back with the first */
        (void)settle(&settling);
        assert_int_equal(settling.code, PAWL_DOWN);
        assert_non_null(strstr(settling.err.text, "57014"));
    }
    /* Nothing of it is left behind in the server. */
    assert_int_equal(pg_world_number(&world.server, "select count(*) from pg_stat_activity where "
                                                    "wait_event_type = 'Lock'"),
                     0);
    pg_world_let_go(session);
    pawl_store_close(settling.store);
    settling.store = world.store;
    expect_repeatable(&settling);
}

/* RES-10: a handle that may wait for a minute is told to wait for a second, and then no more. */
static void a_limit_holds_until_it_is_lifted(void **state)
{
    (void)state;
    const pawl_clock *clock = pawl_clock_system();
    struct settling settling = {.lease = take_one()};
    settling.store = pg_world_open(&world.server, NULL, 60000);
    void *session = pg_world_hold(&world.server, lock_all_sql);
    pawl_store_limit(settling.store, 1000);
    pawl_mono began = clock->mono(clock->user);
    (void)settle(&settling);
    int64_t took_us = clock->mono(clock->user).us - began.us;
    assert_int_equal(settling.code, PAWL_DOWN);
    assert_true(took_us < 40 * INT64_C(1000000)); /* by the server after 0.9 s, not after 54 */
    pg_world_let_go(session);
    pawl_store_limit(settling.store, PAWL_DEFAULT);
    expect_repeatable(&settling);
    pawl_store_close(settling.store);
}

static int64_t limit_after_a_call(pawl_store *store)
{
    pawl_wall now;
    assert_int_equal(pawl_now(store, &now, NULL), PAWL_OK);
    return pawli_pg_handle_of(store)->link.limit_ms;
}

/* A call that did not have all of its time, on a machine that stood still, leaves none. */
static void expect_limit(pawl_store *store, int64_t limit_ms)
{
    for (int i = 0; i < 100 && limit_after_a_call(store) != limit_ms; i++)
        continue;
    assert_int_equal(limit_ms, pawli_pg_handle_of(store)->link.limit_ms);
}

/* P4, P5: in a session of our own the limit is sent where it is another, and stays. */
static void a_limit_stays_in_a_session_of_our_own(void **state)
{
    (void)state;
    pawl_store *store = pg_world_open(&world.server, NULL, 60000);
    expect_limit(store, 54000);
    pawl_store_limit(store, 30000);
    expect_limit(store, 27000);
    pawl_store_limit(store, PAWL_DEFAULT);
    expect_limit(store, 54000);
    pawl_store_close(store);
}

/* P5: behind a pooler nothing is left in a session, which may be another's next, and each call has
 * its limit all the same. */
static void a_limit_behind_a_pooler_is_the_calls_own(void **state)
{
    (void)state;
    char conninfo[PG_PATH_MAX];
    struct pg_bouncer bouncer = {.pid = 0};
    assert_true(pg_bouncer_start(&bouncer, &world.server));
    (void)pg_bouncer_conninfo(&bouncer, PG_WORLD_DATABASE, conninfo);
    struct settling settling = {.lease = take_one(),
                                .store = pg_world_open(&world.server, conninfo, 1000)};
    assert_int_equal(0, limit_after_a_call(settling.store));
    void *session = pg_world_hold(&world.server, lock_all_sql);
    (void)settle(&settling);
    assert_int_equal(settling.code, PAWL_DOWN);
    assert_non_null(strstr(settling.err.text, "57014"));
    pg_world_let_go(session);
    PGconn *other = PQconnectdb(conninfo); /* gets the same session */
    PGresult *told = PQexec(other, "show statement_timeout");
    assert_int_equal(PGRES_TUPLES_OK, PQresultStatus(told));
    assert_string_equal("0", PQgetvalue(told, 0, 0));
    PQclear(told);
    PQfinish(other);
    expect_repeatable(&settling);
    pawl_store_close(settling.store);
    pg_bouncer_stop(&bouncer);
}

/* Class 40 and lock timeouts: the same call again, for as long as there is time. */
static void a_lock_timeout_is_tried_again(void **state)
{
    (void)state;
    assert_true(pg_server_run(&world.server, PG_WORLD_DATABASE,
                              "alter database " PG_WORLD_DATABASE " set lock_timeout = 20"));
    struct settling settling = {.lease = take_one()};
    settling.store = pg_world_open(&world.server, NULL, TIMEOUT_MS);
    pthread_t thread;
    void *session = pg_world_hold(&world.server, lock_all_sql);
    assert_int_equal(pthread_create(&thread, NULL, settle, &settling), 0);
    assert_true(waiting_backend() != 0);
    /* Wait until it has given up once: its transaction then began after the first wait was seen. */
    assert_true(pg_world_await(&world.server,
                               "select (count(*) = 0)::int from pg_stat_activity where "
                               "wait_event_type = 'Lock'") != 0);
    pg_world_let_go(session);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(settling.code, PAWL_OK);
    assert_int_equal(settling.settled.code, PAWL_OK);
    pawl_store_close(settling.store);
    assert_true(pg_server_run(&world.server, PG_WORLD_DATABASE,
                              "alter database " PG_WORLD_DATABASE " reset lock_timeout"));
}

/* Tries have an end: others held it all the time, and nothing was done. */
static void tries_have_an_end(void **state)
{
    (void)state;
    assert_true(pg_server_run(&world.server, PG_WORLD_DATABASE,
                              "alter database " PG_WORLD_DATABASE " set lock_timeout = 1"));
    struct settling settling = {.lease = take_one()};
    settling.store = pg_world_open(&world.server, NULL, TIMEOUT_MS);
    void *session = pg_world_hold(&world.server, lock_all_sql);
    (void)settle(&settling);
    assert_int_equal(settling.code, PAWL_DOWN);
    assert_non_null(strstr(settling.err.text, "55P03"));
    pg_world_let_go(session);
    pawl_store_close(settling.store);
    assert_true(pg_server_run(&world.server, PG_WORLD_DATABASE,
                              "alter database " PG_WORLD_DATABASE " reset lock_timeout"));
    settling.store = world.store;
    expect_repeatable(&settling);
}

/* ---- a server that takes no writes */

static void a_read_only_server_is_down(void **state)
{
    (void)state;
    struct settling settling = {.lease = take_one()};
    char conninfo[PG_PATH_MAX];
    char read_only[PG_PATH_MAX + 64];
    (void)snprintf(read_only, sizeof(read_only), "%s options='-c default_transaction_read_only=on'",
                   pg_server_conninfo(&world.server, PG_WORLD_DATABASE, conninfo));
    settling.store = pg_world_open(&world.server, read_only, TIMEOUT_MS);
    (void)settle(&settling);
    assert_int_equal(settling.code, PAWL_DOWN);
    assert_non_null(strstr(settling.err.text, "25006"));
    pawl_store_close(settling.store);
    settling.store = world.store;
    expect_repeatable(&settling);
}

/* ---- opening, and what is told */

static pawl_code try_open(const char *conninfo, pawl_err *err)
{
    pawl_postgres_options options;
    pawl_store *store = NULL;
    pawl_postgres_options_init(&options);
    options.conninfo = conninfo;
    options.call_timeout_ms = 2000;
    pawl_code code = pawl_postgres_open(&options, &store, err);
    if (code == PAWL_OK)
        pawl_store_close(store);
    else
        assert_null(strstr(err->text, CANARY)); /* NFR-003 */
    return code;
}

/* Each way in which a connection can fail: the right code, and never the password. */
static void refusals_tell_no_secret(void **state)
{
    (void)state;
    pawl_err err;
    char conninfo[PG_PATH_MAX];
    const char *folder = world.server.folder;
    assert_int_equal(try_open("postgresql://u:" CANARY "@localhost:1/pawl", &err), PAWL_DOWN);
    assert_non_null(strstr(err.text, "refused"));
    assert_int_equal(try_open("host=/nonexistent password=" CANARY, &err), PAWL_DOWN);
    assert_int_equal(try_open("password=" CANARY " port=no-number", &err), PAWL_DOWN);
    assert_int_equal(try_open("password=" CANARY " nonsense", &err), PAWL_INVALID);
    assert_int_equal(try_open("password='" CANARY, &err), PAWL_INVALID);
    assert_int_equal(try_open("postgresql://u:" CANARY "@[::1/pawl", &err), PAWL_INVALID);
    assert_int_equal(try_open("host=no-such-host.invalid password=" CANARY, &err), PAWL_DOWN);
    (void)snprintf(conninfo, sizeof(conninfo),
                   "host=%s port=%d user=postgres password=%s dbname=%s", folder, PG_PORT, CANARY,
                   "absent");
    assert_int_equal(try_open(conninfo, &err), PAWL_DOWN);
    assert_non_null(strstr(err.text, "3D000"));
    (void)snprintf(conninfo, sizeof(conninfo), "host=%s port=%d user=%s password=%s dbname=%s",
                   folder, PG_PORT, "nobody_" CANARY, CANARY, PG_WORLD_DATABASE);
    assert_int_equal(try_open(conninfo, &err), PAWL_DOWN);
    assert_non_null(strstr(err.text, "28000"));
}

/* A role that may log in and nothing else. */
static void a_role_without_grants_is_told_so(void **state)
{
    (void)state;
    pawl_err err;
    char conninfo[PG_PATH_MAX];
    assert_true(pg_server_run(&world.server, PG_WORLD_DATABASE, "create role stranger login"));
    (void)snprintf(conninfo, sizeof(conninfo), "host=%s port=%d user=stranger dbname=%s",
                   world.server.folder, PG_PORT, PG_WORLD_DATABASE);
    assert_int_equal(try_open(conninfo, &err), PAWL_INVALID);
    assert_non_null(strstr(err.text, "42501"));
}

/* The payload of a row that the server refuses is told to nobody. */
static void a_refused_row_is_not_quoted(void **state)
{
    (void)state;
    pawl_enqueue_row row;
    pawl_enqueued result;
    pawl_err err;
    pawl_enqueue_init(&row);
    row.queue = "mail";
    row.payload = CANARY;
    row.payload_len = strlen(CANARY);
    row.dedupe_key = "\xff" CANARY; /* no text in UTF-8 */
    assert_int_equal(pawl_enqueue(world.store, &row, 1, &result, &err), PAWL_INVALID);
    assert_null(strstr(err.text, CANARY));
}

/* A worker's last words are kept as they are; what is no text is refused, and the lease stays. */
static void error_texts_are_kept_or_refused(void **state)
{
    (void)state;
    pawl_settle_row row;
    pawl_settled settled;
    pawl_attempt attempt;
    size_t count = 0;
    pawl_settle_init(&row);
    row.lease = take_one();
    row.action = PAWL_FAIL;
    row.error_code = "caf\xc3\xa9";
    row.error_text = "a\xff\xe2\x82z";
    assert_int_equal(pawl_settle(world.store, "w1", &row, 1, &settled, NULL), PAWL_INVALID);
    assert_int_equal(state_of(&row.lease), PAWL_IN_FLIGHT);
    row.error_text = "a\tz\n\xf0\x9f\x98\x80";
    assert_int_equal(pawl_settle(world.store, "w1", &row, 1, &settled, NULL), PAWL_OK);
    assert_int_equal(settled.code, PAWL_OK);
    assert_int_equal(pawl_attempts(world.store, &row.lease.job, 0, &attempt, 1, &count, NULL),
                     PAWL_OK);
    assert_string_equal(attempt.error_code, "caf\xc3\xa9");
    assert_string_equal(attempt.error_text, "a\tz\n\xf0\x9f\x98\x80");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_terminated_call_is_down),
        cmocka_unit_test(a_killed_backend_is_unknown),
        cmocka_unit_test(a_killed_server_is_unknown_then_down_then_back),
        cmocka_unit_test(an_ended_idle_connection_costs_nothing),
        cmocka_unit_test(a_lock_held_too_long_is_down),
        cmocka_unit_test(a_limit_holds_until_it_is_lifted),
        cmocka_unit_test(a_limit_stays_in_a_session_of_our_own),
        cmocka_unit_test(a_limit_behind_a_pooler_is_the_calls_own),
        cmocka_unit_test(a_lock_timeout_is_tried_again),
        cmocka_unit_test(tries_have_an_end),
        cmocka_unit_test(a_read_only_server_is_down),
        cmocka_unit_test(refusals_tell_no_secret),
        cmocka_unit_test(a_role_without_grants_is_told_so),
        cmocka_unit_test(a_refused_row_is_not_quoted),
        cmocka_unit_test(error_texts_are_kept_or_refused),
    };
    return cmocka_run_group_tests(tests, begin, end);
}

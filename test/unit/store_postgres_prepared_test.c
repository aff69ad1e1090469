/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * store_postgres_prepared_test.c - statements that a session is told once: what a call sends then,
 * what happens when the server forgets them or never took them, and that none has a name behind a
 * pooler.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "pawl/worklease.h"
#include "store/postgres/postgres.h"
#include "support/pg_bouncer.h"
#include "support/pg_proxy.h"
#include "support/pg_world.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#define TIMEOUT_MS 20000
#define SQL_BYTES  200 /* about what the text of a claim takes; its arguments take less */

static struct {
    struct pg_server server;
    pawl_store *store;
} world;

static int begin(void **state)
{
    (void)state;
    if (!pg_world_begin(&world.server, false, 1))
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

static const struct pawli_pg_link *link_of(pawl_store *store)
{
    return &pawli_pg_handle_of(store)->link;
}

static pawl_code enqueue(pawl_store *store)
{
    pawl_enqueue_row row;
    pawl_enqueued result;
    pawl_enqueue_init(&row);
    row.queue = "mail";
    pawl_code rc = pawl_enqueue(store, &row, 1, &result, NULL);
    return rc == PAWL_OK ? result.code : rc;
}

/* Claim one, which is settled elsewhere or never. From two queues: such a claim is the same
 * statement each time. */
static pawl_code claim(pawl_store *store, size_t *ret_count)
{
    pawl_job job;
    pawl_claim_line lines[] = {{.queue = "mail", .jobs_max = 1, .lease_ms = 600000},
                               {.queue = "none", .jobs_max = 1, .lease_ms = 600000}};
    pawl_claim_args args = {"w1", lines, 2, PAWL_DEFAULT};
    pawl_code rc = pawl_claim(store, &args, &job, 1, ret_count, NULL);
    if (rc == PAWL_OK && *ret_count == 1)
        pawl_job_clear(&job);
    return rc;
}

static void run(const char *sql)
{
    assert_true(pg_server_run(&world.server, PG_WORLD_DATABASE, sql));
}

/* Something by hand, in the session of the store. */
static void say_in_session(pawl_store *store, const char *sql)
{
    PGconn *conn = link_of(store)->conn;
    struct timespec until = {.tv_sec = INT32_MAX};
    assert_true(pawli_pg_clear_link(&pawli_pg_handle_of(store)->link, until));
    assert_int_equal(PQsendQueryParams(conn, sql, 0, NULL, NULL, NULL, NULL, 1), 1);
    assert_int_equal(PQpipelineSync(conn), 1);
    bool is_synced = false;
    while (!is_synced) {
        struct pollfd fd = {.fd = PQsocket(conn), .events = POLLIN};
        assert_true(PQflush(conn) >= 0);
        while (PQisBusy(conn) == 1) {
            assert_int_equal(poll(&fd, 1, TIMEOUT_MS), 1);
            assert_int_equal(PQconsumeInput(conn), 1);
        }
        PGresult *answer = PQgetResult(conn);
        is_synced = PQresultStatus(answer) == PGRES_PIPELINE_SYNC;
        PQclear(answer);
    }
}

/* ---- what goes over the wire */

static void a_statement_is_told_once(void **state)
{
    (void)state;
    char conninfo[PG_PATH_MAX];
    size_t count;
    size_t bytes[3];
    struct pg_proxy *proxy = pg_proxy_start(&world.server);
    assert_non_null(proxy);
    pawl_store *store = pg_world_open(
        &world.server, pg_proxy_conninfo(proxy, PG_WORLD_DATABASE, conninfo), TIMEOUT_MS);
    for (size_t i = 0; i < 3; i++) {
        pg_proxy_heal(proxy); /* counts from here */
        assert_int_equal(claim(store, &count), PAWL_OK);
        bytes[i] = pg_proxy_count(proxy, PG_REQUEST);
    }
    assert_true(bytes[0] > bytes[1] + SQL_BYTES);
    assert_int_equal(bytes[1], bytes[2]);
    pawl_store_close(store);
    pg_proxy_stop(proxy);
}

static void behind_a_pooler_none_has_a_name(void **state)
{
    (void)state;
    struct pg_bouncer bouncer = {.pid = 0};
    char conninfo[PG_PATH_MAX];
    size_t count;
    assert_true(pg_bouncer_start(&bouncer, &world.server));
    pawl_store *store = pg_world_open(
        &world.server, pg_bouncer_conninfo(&bouncer, PG_WORLD_DATABASE, conninfo), TIMEOUT_MS);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(enqueue(store), PAWL_OK);
        assert_int_equal(claim(store, &count), PAWL_OK);
    }
    assert_false(link_of(store)->is_direct);
    assert_int_equal(link_of(store)->prepared.count, 0);
    pawl_store_close(store);
    pg_bouncer_stop(&bouncer);
}

/* ---- when it goes wrong */

static void one_that_the_server_has_forgotten_is_told_anew(void **state)
{
    (void)state;
    size_t count;
    assert_int_equal(enqueue(world.store), PAWL_OK);
    assert_int_equal(claim(world.store, &count), PAWL_OK);
    assert_true(link_of(world.store)->prepared.known >= 2);
    say_in_session(world.store, "deallocate all");
    assert_int_equal(enqueue(world.store), PAWL_OK); /* in another session */
    assert_int_equal(claim(world.store, &count), PAWL_OK);
    assert_int_equal(count, 1);
}

static void one_that_the_server_does_not_take_is_not_counted_on(void **state)
{
    (void)state;
    size_t count;
    size_t known = link_of(world.store)->prepared.known;
    run("alter function pawl.store_now() rename to store_then");
    pawl_wall now;
    assert_int_equal(pawl_now(world.store, &now, NULL), PAWL_DOWN);
    assert_int_equal(link_of(world.store)->prepared.known, known);
    assert_int_equal(link_of(world.store)->prepared.count, known);
    run("alter function pawl.store_then() rename to store_now");
    assert_int_equal(pawl_now(world.store, &now, NULL), PAWL_OK);
    assert_int_equal(link_of(world.store)->prepared.known, known + 1);
    assert_int_equal(claim(world.store, &count), PAWL_OK);
}

/* It is told before all that is done, and stays, whatever becomes of that. */
static void one_that_fails_is_known_all_the_same(void **state)
{
    (void)state;
    pawl_token token = {.bytes = {7}};
    pawl_worklease_hold hold = {.domain = "nobody", .owner = "w1", .token = token};
    pawl_worklease_ended ended;
    size_t known = link_of(world.store)->prepared.known;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pawl_worklease_succeed(world.store, &hold, &ended, NULL),
                         PAWL_WL_NO_LEASE);
        assert_int_equal(link_of(world.store)->prepared.known, known + 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_statement_is_told_once),
        cmocka_unit_test(behind_a_pooler_none_has_a_name),
        cmocka_unit_test(one_that_the_server_has_forgotten_is_told_anew),
        cmocka_unit_test(one_that_the_server_does_not_take_is_not_counted_on),
        cmocka_unit_test(one_that_fails_is_known_all_the_same),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, begin, end);
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * store_postgres_hint_test.c - waiting for work on the PostgreSQL store: hints arrive, a wake ends
 * a wait, and where notifications do not pass (PgBouncer in transaction mode) the self-test says so
 * and waits go on by their time. RULE-020-042.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/pg_bouncer.h"
#include "support/pg_world.h"

#include "base/clock.h"

#include <pthread.h>

#define TIMEOUT_MS   20000
#define LONG_WAIT_MS 60000

static struct {
    struct pg_server server;
    struct pg_bouncer bouncer;
    pawl_store *store;  /* straight */
    pawl_store *pooled; /* behind the pooler */
} world;

static int begin(void **state)
{
    (void)state;
    char conninfo[PG_PATH_MAX];
    if (!pg_world_begin(&world.server, false, 1) ||
        !pg_bouncer_start(&world.bouncer, &world.server))
        return -1;
    world.store = pg_world_open(&world.server, NULL, TIMEOUT_MS);
    (void)pg_bouncer_conninfo(&world.bouncer, PG_WORLD_DATABASE, conninfo);
    world.pooled = pg_world_open(&world.server, conninfo, TIMEOUT_MS);
    return 0;
}

static int end(void **state)
{
    (void)state;
    pawl_store_close(world.store);
    pawl_store_close(world.pooled);
    pg_bouncer_stop(&world.bouncer);
    pg_server_remove(&world.server);
    return 0;
}

static void put_one(pawl_store *store)
{
    pawl_enqueue_row row;
    pawl_enqueued result;
    pawl_enqueue_init(&row);
    row.queue = "mail";
    assert_int_equal(pawl_enqueue(store, &row, 1, &result, NULL), PAWL_OK);
}

static int64_t now_ms(void)
{
    const pawl_clock *clock = pawl_clock_system();
    return clock->mono(clock->user).us / 1000;
}

static bool is_hinted(pawl_store *store, int64_t timeout_ms)
{
    bool has_hint = false;
    assert_int_equal(pawl_wait(store, timeout_ms, &has_hint, NULL), PAWL_OK);
    return has_hint;
}

static void notifications_arrive_straight(void **state)
{
    (void)state;
    bool hears = false;
    assert_int_equal(pawl_postgres_hears(world.store, &hears, NULL), PAWL_OK);
    assert_true(hears);
}

static void the_self_test_finds_a_pooler(void **state)
{
    (void)state;
    bool hears = true;
    assert_int_equal(pawl_postgres_hears(world.pooled, &hears, NULL), PAWL_OK);
    assert_false(hears);
}

static void other_stores_are_refused(void **state)
{
    (void)state;
    bool hears;
    pawl_memory *memory = NULL;
    pawl_store *store = NULL;
    assert_int_equal(pawl_memory_new(NULL, &memory, NULL), PAWL_OK);
    assert_int_equal(pawl_memory_open(memory, &store, NULL), PAWL_OK);
    assert_int_equal(pawl_postgres_hears(store, &hears, NULL), PAWL_INVALID);
    assert_int_equal(pawl_postgres_hears(NULL, &hears, NULL), PAWL_INVALID);
    assert_int_equal(pawl_postgres_hears(world.store, NULL, NULL), PAWL_INVALID);
    pawl_store_close(store);
    pawl_memory_free(memory);
}

/* A job that is enqueued elsewhere ends the wait long before its time. */
static void an_enqueue_is_heard(void **state)
{
    (void)state;
    while (is_hinted(world.store, 50)) /* a new listener gives one false hint */
        continue;
    put_one(world.pooled);
    int64_t before_ms = now_ms();
    assert_true(is_hinted(world.store, LONG_WAIT_MS));
    assert_true(now_ms() - before_ms < LONG_WAIT_MS / 2);
}

/* The answer to the hint of an enqueue is still to be read when its handle begins to listen. */
static void who_has_enqueued_may_wait(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        bool hears = false;
        pawl_store *store = pg_world_open(&world.server, NULL, TIMEOUT_MS);
        put_one(store);
        if (i == 0)
            (void)is_hinted(store, 50);
        assert_int_equal(pawl_postgres_hears(store, &hears, NULL), PAWL_OK);
        assert_true(hears);
        put_one(store);
        pawl_store_close(store);
    }
}

/* Nothing has happened: the time ends it. */
static void without_work_the_time_ends_a_wait(void **state)
{
    (void)state;
    while (is_hinted(world.store, 50))
        continue;
    int64_t before_ms = now_ms();
    assert_false(is_hinted(world.store, 200));
    assert_true(now_ms() - before_ms >= 199);
}

static void without_notifications_the_time_ends_a_wait(void **state)
{
    (void)state;
    put_one(world.store);
    int64_t before_ms = now_ms();
    assert_false(is_hinted(world.pooled, 200));
    assert_true(now_ms() - before_ms >= 199);
}

static void *wait_long(void *user)
{
    bool *has_hint = user;
    if (pawl_wait(world.pooled, LONG_WAIT_MS, has_hint, NULL) != PAWL_OK)
        *has_hint = false;
    return NULL;
}

static void a_wake_ends_a_wait(void **state)
{
    (void)state;
    bool has_hint = false;
    pthread_t thread;
    int64_t before_ms = now_ms();
    assert_int_equal(pthread_create(&thread, NULL, wait_long, &has_hint), 0);
    pawl_wake(world.pooled); /* the wait under way, or the next one */
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(has_hint);
    assert_true(now_ms() - before_ms < LONG_WAIT_MS / 2);
}

/* A server that is away makes no wait fail, and none endless. */
static void a_wait_outlives_the_server(void **state)
{
    (void)state;
    pg_server_stop(&world.server);
    (void)is_hinted(world.store, 50);
    assert_false(is_hinted(world.store, 50));
    assert_true(pg_server_restart(&world.server));
    pawl_wall now;
    pawl_code code = PAWL_DOWN;
    for (int i = 0; i < 100 && code == PAWL_DOWN; i++) /* the store waits between the tries */
        code = pawl_now(world.store, &now, NULL);
    assert_int_equal(code, PAWL_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(notifications_arrive_straight),
        cmocka_unit_test(the_self_test_finds_a_pooler),
        cmocka_unit_test(other_stores_are_refused),
        cmocka_unit_test(an_enqueue_is_heard),
        cmocka_unit_test(who_has_enqueued_may_wait),
        cmocka_unit_test(without_work_the_time_ends_a_wait),
        cmocka_unit_test(without_notifications_the_time_ends_a_wait),
        cmocka_unit_test(a_wake_ends_a_wait),
        cmocka_unit_test(a_wait_outlives_the_server),
    };
    return cmocka_run_group_tests(tests, begin, end);
}

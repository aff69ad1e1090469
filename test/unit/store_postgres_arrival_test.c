/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * store_postgres_arrival_test.c - single jobs, whose line the library knows after the first, and
 * the hints that a stream of them leaves out.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "store/postgres/postgres.h"
#include "support/pg_world.h"

#include <pthread.h>
#include <stdio.h>

#define TIMEOUT_MS   20000
#define LONG_WAIT_MS 60000
#define CALM_MS      50

static struct {
    struct pg_server server;
    pawl_store *store;
    pawl_store *waiting;
} world;

static int begin(void **state)
{
    (void)state;
    return pg_world_begin(&world.server, false, 1) ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    pg_server_remove(&world.server);
    return 0;
}

static int open_stores(void **state)
{
    (void)state;
    world.store = pg_world_open(&world.server, NULL, TIMEOUT_MS);
    world.waiting = pg_world_open(&world.server, NULL, TIMEOUT_MS);
    return world.store != NULL && world.waiting != NULL ? 0 : -1;
}

static int close_stores(void **state)
{
    (void)state;
    pawl_store_close(world.store);
    pawl_store_close(world.waiting);
    return 0;
}

static struct pawli_pg_handle *handle(void)
{
    return pawli_pg_handle_of(world.store);
}

static void run(const char *sql)
{
    assert_true(pg_server_run(&world.server, PG_WORLD_DATABASE, sql));
}

static void put(const char *queue)
{
    pawl_enqueue_row row;
    pawl_enqueued result;
    pawl_err err = {.code = PAWL_OK};
    pawl_enqueue_init(&row);
    row.queue = queue;
    if (pawl_enqueue(world.store, &row, 1, &result, &err) != PAWL_OK)
        fail_msg("enqueue: %s", err.text);
    assert_int_equal(result.code, PAWL_OK);
}

static int64_t jobs_of(const char *queue)
{
    char sql[256];
    (void)snprintf(sql, sizeof(sql),
                   "select count(*) from pawl.job j join pawl.queue q on q.queue_id * 4096 = "
                   "j.line_id where q.name = '%s'",
                   queue);
    return pg_world_number(&world.server, sql);
}

/* ---- lines that are known */

/* While a function has another name, whoever calls it fails. */
#define HIDE "alter function pawl.enqueue_one rename to enqueue_one_hidden"
#define SHOW "alter function pawl.enqueue_one_hidden rename to enqueue_one"

static void know_for(int64_t ms)
{
    for (size_t i = 0; i < PAWLI_PG_KNOWN_MAX; i++)
        handle()->known[i].until = pawli_wait_until(ms);
}

static void a_line_that_is_known_is_not_asked_for(void **state)
{
    (void)state;
    put("plain"); /* is new */
    put("plain"); /* tells the line */
    know_for(LONG_WAIT_MS);
    run(HIDE);
    put("plain");
    run(SHOW);
    assert_int_equal(jobs_of("plain"), 3);
}

static void after_a_while_it_is_asked_for_again(void **state)
{
    (void)state;
    put("old");
    put("old");
    know_for(0);
    run("alter view pawl.arrival rename to arrival_hidden");
    put("old");
    run("alter view pawl.arrival_hidden rename to arrival");
    assert_int_equal(jobs_of("old"), 3);
}

/* More of them than are remembered: each job is in its queue all the same. */
static void many_queues_are_not_mixed_up(void **state)
{
    (void)state;
    char queue[16];
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < PAWLI_PG_KNOWN_MAX + 3; i++) {
            (void)snprintf(queue, sizeof(queue), "many%d", i);
            put(queue);
            put(queue);
        }
    for (int i = 0; i < PAWLI_PG_KNOWN_MAX + 3; i++) {
        (void)snprintf(queue, sizeof(queue), "many%d", i);
        assert_int_equal(jobs_of(queue), 6);
    }
}

/* Where the schema was made anew under a connection, lines are others than they were. */
static void a_line_of_another_table_is_not_used(void **state)
{
    (void)state;
    put("moved");
    put("moved");
    know_for(LONG_WAIT_MS);
    for (size_t i = 0; i < PAWLI_PG_KNOWN_MAX; i++)
        handle()->known[i].line = 4096 * 500000; /* of no queue */
    handle()->home++;
    put("moved");
    assert_int_equal(jobs_of("moved"), 3);
    assert_int_equal(pg_world_number(&world.server, "select count(*) from pawl.job j where "
                                                    "j.line_id = 4096 * 500000"),
                     0);
}

static void a_new_connection_knows_nothing(void **state)
{
    (void)state;
    put("again");
    put("again");
    know_for(LONG_WAIT_MS);
    handle()->known[0].line = handle()->known[0].line + 4096 * 1000;
    pawli_pg_disconnect(&handle()->link);
    pawl_wall now;
    assert_int_equal(pawl_now(world.store, &now, NULL), PAWL_OK);
    for (size_t i = 0; i < PAWLI_PG_KNOWN_MAX; i++)
        assert_string_equal(handle()->known[i].queue, "");
}

/* The connection is found to be lost by the very call that was put together for it. */
static void a_line_of_another_session_is_not_used(void **state)
{
    (void)state;
    put("lost");
    put("lost");
    know_for(LONG_WAIT_MS);
    for (size_t i = 0; i < PAWLI_PG_KNOWN_MAX; i++)
        handle()->known[i].line = 4096 * 500001; /* of no queue */
    pawli_pg_disconnect(&handle()->link);
    put("lost");
    put("lost");
    assert_int_equal(jobs_of("lost"), 4);
}

/* ---- hints that are left out */

static bool is_hinted(int64_t timeout_ms)
{
    bool has_hint = false;
    assert_int_equal(pawl_wait(world.waiting, timeout_ms, &has_hint, NULL), PAWL_OK);
    return has_hint;
}

/* Of a queue the last hint is set to have said "more" just now, or long ago. */
static void set_stream(const char *queue, int64_t ago_us, bool is_sent)
{
    struct timespec now = pawli_wait_until(0);
    int64_t us = now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000 - ago_us;
    pawli_stream_clear(world.store->stream);
    pawli_stream_init(world.store->stream);
    (void)pawli_stream_hint(world.store->stream, queue, (pawl_mono){us});
    (void)pawli_stream_hint(world.store->stream, queue, (pawl_mono){us});
    if (is_sent)
        pawli_stream_sent(world.store->stream, queue, (pawl_mono){us});
}

static void be_calm(void)
{
    while (is_hinted(CALM_MS)) /* a new listener gives one false hint */
        continue;
}

/* As if the stream had begun in ten years: the gap does not end while the test runs. */
#define TEN_YEARS_US (INT64_C(-10) * 365 * 86400 * 1000000)

static void a_hint_for_which_another_stands_is_left_out(void **state)
{
    (void)state;
    put("left");
    be_calm();
    set_stream("left", TEN_YEARS_US, true);
    put("left");
    put("left");
    assert_false(is_hinted(CALM_MS));
    put("other"); /* has its own */
    assert_true(is_hinted(LONG_WAIT_MS));
}

/* S2, S3: the hint that was to stand for it belongs to a call that is not done. */
static void a_hint_is_not_left_to_one_that_is_not_sent(void **state)
{
    (void)state;
    put("held");
    be_calm();
    set_stream("held", TEN_YEARS_US, false);
    put("held");
    assert_true(is_hinted(LONG_WAIT_MS));
}

static void *put_slowly(void *user)
{
    put(user);
    return NULL;
}

/* S2: the call took longer than the hint before it stands for others. */
static void a_hint_that_was_left_out_too_early_is_made_up_for(void **state)
{
    (void)state;
    char queue[] = "slow";
    pthread_t thread;
    put(queue);
    be_calm();
    set_stream(queue, TEN_YEARS_US, true);
    void *session = pg_world_hold(&world.server, "lock table pawl.job in share mode");
    assert_int_equal(pthread_create(&thread, NULL, put_slowly, queue), 0);
    assert_int_equal(pg_world_await(&world.server, "select count(*) from pg_locks l where "
                                                   "l.relation = 'pawl.job'::regclass and "
                                                   "not l.granted"),
                     1);
    set_stream(queue, LONG_WAIT_MS * INT64_C(1000), true);
    pg_world_let_go(session);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(is_hinted(LONG_WAIT_MS));
}

/* S1: who hears that more may come looks again, and once. */
static void a_hint_that_says_more_gives_a_second_look(void **state)
{
    (void)state;
    put("more");
    be_calm();
    set_stream("more", TEN_YEARS_US, false);
    /* The first of a pair: the next enqueue sends one that says "more". */
    for (size_t i = 0; i < PAWLI_STREAM_SLOTS; i++)
        world.store->stream->slots[i].is_more = false;
    assert_false(pawli_stream_stands(world.store->stream, "more", (pawl_mono){0}));
    put("more");
    assert_true(pawli_stream_stands(world.store->stream, "more", (pawl_mono){0})); /* S2 */
    assert_true(is_hinted(LONG_WAIT_MS));
    assert_true(is_hinted(LONG_WAIT_MS));
    assert_false(is_hinted(CALM_MS));
}

static void a_hint_that_says_nothing_gives_none(void **state)
{
    (void)state;
    put("once");
    be_calm();
    set_stream("once", LONG_WAIT_MS * INT64_C(1000), true);
    put("once");
    assert_true(is_hinted(LONG_WAIT_MS));
    assert_false(is_hinted(CALM_MS));
}

/* The handles of one source share what was sent; others do not. */
static void a_source_has_one_stream(void **state)
{
    (void)state;
    char conninfo[PG_PATH_MAX];
    pawl_source_options options;
    pawl_source *source = NULL;
    pawl_store *stores[2] = {NULL};
    pawl_source_options_init(&options);
    options.url = pg_server_conninfo(&world.server, PG_WORLD_DATABASE, conninfo);
    assert_int_equal(pawl_source_new(&options, &source, NULL), PAWL_OK);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pawl_source_open(source, &stores[i], NULL), PAWL_OK);
    assert_ptr_equal(stores[0]->stream, stores[1]->stream);
    assert_ptr_not_equal(stores[0]->stream, world.store->stream);
    assert_ptr_not_equal(world.store->stream, world.waiting->stream);
    for (size_t i = 0; i < 2; i++)
        pawl_store_close(stores[i]);
    pawl_source_free(source);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_stores, close_stores)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_line_that_is_known_is_not_asked_for),
        TEST(after_a_while_it_is_asked_for_again),
        TEST(many_queues_are_not_mixed_up),
        TEST(a_line_of_another_table_is_not_used),
        TEST(a_new_connection_knows_nothing),
        TEST(a_line_of_another_session_is_not_used),
        TEST(a_hint_for_which_another_stands_is_left_out),
        TEST(a_hint_is_not_left_to_one_that_is_not_sent),
        TEST(a_hint_that_was_left_out_too_early_is_made_up_for),
        TEST(a_hint_that_says_more_gives_a_second_look),
        TEST(a_hint_that_says_nothing_gives_none),
        TEST(a_source_has_one_stream),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("store_postgres_arrival", tests, begin, end);
}

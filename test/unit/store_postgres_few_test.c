/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * store_postgres_few_test.c - which claims go to pawl.claim_few(), which to pawl.claim_lines(), and
 * how long the first is left alone where it would not.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "store/postgres/postgres.h"
#include "support/pg_world.h"

#define TIMEOUT_MS 20000
#define JOBS_MAX   101 /* one more than claim_few() gives */
#define CLAIMS     300

static struct {
    struct pg_server server;
    pawl_store *store;
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

static int open_store(void **state)
{
    (void)state;
    world.store = pg_world_open(&world.server, NULL, TIMEOUT_MS);
    return world.store != NULL ? 0 : -1;
}

static int close_store(void **state)
{
    (void)state;
    pawl_store_close(world.store);
    return 0;
}

static const struct pawli_pg_handle *handle(void)
{
    return pawli_pg_handle_of(world.store);
}

static void run(const char *sql)
{
    assert_true(pg_server_run(&world.server, PG_WORLD_DATABASE, sql));
}

/* While a function has another name, whoever calls it fails. */
#define HIDE_FEW   "alter function pawl.claim_few rename to claim_few_hidden"
#define SHOW_FEW   "alter function pawl.claim_few_hidden rename to claim_few"
#define HIDE_LINES "alter function pawl.claim_lines rename to claim_lines_hidden"
#define SHOW_LINES "alter function pawl.claim_lines_hidden rename to claim_lines"

static void put(const char *queue, const char *ordering_key, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        pawl_enqueue_row row;
        pawl_enqueued result;
        pawl_enqueue_init(&row);
        row.queue = queue;
        row.ordering_key = ordering_key;
        assert_int_equal(pawl_enqueue(world.store, &row, 1, &result, NULL), PAWL_OK);
        assert_int_equal(result.code, PAWL_OK);
    }
}

/* Claim from a queue, or from two, and settle what is given; gives how many. */
static size_t take(const char *queue, const char *other, size_t jobs_max)
{
    static pawl_job jobs[JOBS_MAX];
    pawl_claim_line lines[] = {
        {.queue = queue, .jobs_max = (int64_t)jobs_max, .lease_ms = PAWL_DEFAULT},
        {.queue = other, .jobs_max = (int64_t)jobs_max, .lease_ms = PAWL_DEFAULT}};
    pawl_claim_args args = {"w1", lines, other != NULL ? 2 : 1, PAWL_DEFAULT};
    size_t count = 0;
    pawl_err err = {.code = PAWL_OK};
    if (pawl_claim(world.store, &args, jobs, jobs_max, &count, &err) != PAWL_OK)
        fail_msg("claim: %s", err.text);
    assert_int_equal(handle()->limit_ms, TIMEOUT_MS);
    for (size_t i = 0; i < count; i++) {
        pawl_settle_row row;
        pawl_settled result;
        pawl_settle_init(&row);
        row.action = PAWL_SUCCEED;
        row.lease = (pawl_lease){jobs[i].id, jobs[i].token, jobs[i].lease_version};
        assert_string_equal(jobs[i].worker, "w1");
        assert_int_equal(pawl_settle(world.store, "w1", &row, 1, &result, NULL), PAWL_OK);
        assert_int_equal(result.code, PAWL_OK);
        pawl_job_clear(&jobs[i]);
    }
    return count;
}

static void one_that_is_refused_is_made_all_the_same(void **state)
{
    (void)state;
    put("new", NULL, 3);
    assert_int_equal(take("new", NULL, 1), 1); /* has no marks: refused */
    assert_int_equal(handle()->few.refusals, 1);
    assert_int_equal(handle()->few.pause, 1);
    assert_int_equal(take("new", NULL, 1), 1); /* is not asked */
    assert_int_equal(handle()->few.pause, 0);
    run(HIDE_LINES);
    assert_int_equal(take("new", NULL, 1), 1); /* is asked, and does */
    assert_int_equal(take("new", NULL, 1), 0);
    put("new", NULL, JOBS_MAX);
    assert_int_equal(take("new", NULL, JOBS_MAX - 1), JOBS_MAX - 1);
    run(SHOW_LINES);
    assert_int_equal(handle()->few.refusals, 0);
}

static void others_go_as_before(void **state)
{
    (void)state;
    run(HIDE_FEW);
    put("many", NULL, JOBS_MAX);
    put("second", NULL, 1);
    assert_int_equal(take("many", NULL, JOBS_MAX), JOBS_MAX);
    put("many", NULL, 2);
    assert_int_equal(take("many", "second", JOBS_MAX - 1), 3);
    run(SHOW_FEW);
}

static void where_it_would_not_it_is_left_alone_ever_longer(void **state)
{
    (void)state;
    size_t asked = 0;
    put("keyed", "k", 1);
    for (size_t i = 0; i < CLAIMS; i++) {
        unsigned pause = handle()->few.pause;
        put("keyed", "k", 1);
        assert_int_equal(take("keyed", NULL, 1), 1);
        asked += handle()->few.pause > pause;
    }
    /* At 0, 2, 5, 10, 19, 36, 69, 134, 199 and 264. */
    assert_int_equal(asked, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_that_is_refused_is_made_all_the_same, open_store,
                                        close_store),
        cmocka_unit_test_setup_teardown(others_go_as_before, open_store, close_store),
        cmocka_unit_test_setup_teardown(where_it_would_not_it_is_left_alone_ever_longer, open_store,
                                        close_store),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("store_postgres_few", tests, begin, end);
}

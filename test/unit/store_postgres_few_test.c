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
        row.lease = (pawl_lease){jobs[i].id, jobs[i].token, jobs[i].lease_version, jobs[i].place};
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

/* ---- what is given */

static void expect_same(const pawl_job *job, const pawl_job *mine)
{
    assert_memory_equal(&job->id, &mine->id, sizeof(job->id));
    assert_memory_equal(&job->token, &mine->token, sizeof(job->token));
    assert_string_equal(job->queue, mine->queue);
    assert_string_equal(job->ordering_key, mine->ordering_key);
    assert_string_equal(job->worker, mine->worker);
    assert_int_equal(job->state, mine->state);
    assert_int_equal(job->priority, mine->priority);
    assert_int_equal(job->retries, mine->retries);
    assert_int_equal(job->lost_leases, mine->lost_leases);
    assert_int_equal(job->attempts, mine->attempts);
    assert_int_equal(job->lease_version, mine->lease_version);
    assert_int_equal(job->max_retries, mine->max_retries);
    assert_int_equal(job->created_at.us, mine->created_at.us);
    assert_int_equal(job->due_at.us, mine->due_at.us);
    assert_int_equal(job->start_by.us, mine->start_by.us);
    assert_int_equal(job->reason, mine->reason);
    assert_int_equal(job->fence, mine->fence);
    assert_int_equal(job->claimed_at.us, mine->claimed_at.us);
    assert_int_equal(job->expires_at.us, mine->expires_at.us);
    assert_int_equal(job->run_until.us, mine->run_until.us);
    assert_int_equal(job->lease_ms, mine->lease_ms);
    assert_int_equal(job->timeout_ms, mine->timeout_ms);
    assert_int_equal(job->payload_len, mine->payload_len);
    assert_memory_equal(job->payload, mine->payload, job->payload_len);
    assert_string_equal(job->headers != NULL ? job->headers : "",
                        mine->headers != NULL ? mine->headers : "");
}

/* Each is the job with the id that has its number, and says what the store knows of it. */
static void expect_in_order(const pawl_job *jobs, const pawl_id *ids, size_t count)
{
    static pawl_job mine[JOBS_MAX];
    size_t mine_count = 0;
    assert_int_equal(pawl_mine(world.store, "w1", NULL, mine, JOBS_MAX, &mine_count, NULL),
                     PAWL_OK);
    assert_int_equal(mine_count, count);
    for (size_t i = 0; i < count; i++) {
        size_t at = 0;
        assert_memory_equal(&jobs[i].id, &ids[i], sizeof(ids[i]));
        while (at < count && pawl_id_compare(&mine[at].id, &ids[i]) != 0)
            at++;
        assert_true(at < count);
        expect_same(&jobs[i], &mine[at]);
    }
    for (size_t i = 0; i < count; i++)
        pawl_job_clear(&mine[i]);
}

/* Q-FIFO: wherever the rows lie, jobs come in the order in which they were put. */
static void jobs_come_in_order_and_whole(void **state)
{
    (void)state;
    static pawl_job jobs[JOBS_MAX];
    pawl_id ids[JOBS_MAX];
    pawl_claim_line line = {.queue = "order", .jobs_max = JOBS_MAX - 1, .lease_ms = PAWL_DEFAULT};
    pawl_claim_args args = {"w1", &line, 1, PAWL_DEFAULT};
    size_t count = 0;
    put("order", NULL, 1);
    assert_int_equal(take("order", NULL, 1), 1); /* makes the marks; the next is not asked */
    assert_int_equal(take("order", NULL, 1), 0);
    for (size_t i = 0; i < JOBS_MAX - 1; i++) {
        pawl_enqueue_row row;
        pawl_enqueued result;
        pawl_enqueue_init(&row);
        row.queue = "order";
        row.payload = &i;
        row.payload_len = i % (sizeof(i) + 1); /* none, too */
        row.max_retries = i % 3 == 0 ? (int64_t)i : PAWL_DEFAULT;
        row.headers = i % 5 == 0 ? "name: value\n" : NULL;
        assert_int_equal(pawl_enqueue(world.store, &row, 1, &result, NULL), PAWL_OK);
        ids[i] = result.id;
    }
    run("update pawl.job set priority = priority where seq % 3 = 0"); /* these lie elsewhere now */
    run(HIDE_LINES);
    assert_int_equal(pawl_claim(world.store, &args, jobs, JOBS_MAX - 1, &count, NULL), PAWL_OK);
    run(SHOW_LINES);
    assert_int_equal(count, JOBS_MAX - 1);
    expect_in_order(jobs, ids, count);
    for (size_t i = 0; i < count; i++)
        pawl_job_clear(&jobs[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_that_is_refused_is_made_all_the_same, open_store,
                                        close_store),
        cmocka_unit_test_setup_teardown(jobs_come_in_order_and_whole, open_store, close_store),
        cmocka_unit_test_setup_teardown(others_go_as_before, open_store, close_store),
        cmocka_unit_test_setup_teardown(where_it_would_not_it_is_left_alone_ever_longer, open_store,
                                        close_store),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("store_postgres_few", tests, begin, end);
}

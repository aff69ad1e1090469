/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * store_postgres_call_alloc_test.c - each allocation of a call on the PostgreSQL store fails once:
 * NO_MEMORY means that nothing was done; once the server has done it, the answer is UNKNOWN.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/alloc_fail.h"
#include "support/pg_world.h"

#define TIMEOUT_MS 20000
#define JOBS       3

static struct {
    struct pg_server server;
    pawl_store *store;
} world;

static int begin(void **state)
{
    (void)state;
    if (!pg_world_begin(&world.server, false, 2))
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

static int64_t count_jobs(const char *where)
{
    char sql[128];
    (void)snprintf(sql, sizeof(sql), "select count(*) from pawl.job where %s", where);
    return pg_world_number(&world.server, sql);
}

static void fill_rows(pawl_enqueue_row rows[JOBS])
{
    for (size_t i = 0; i < JOBS; i++) {
        pawl_enqueue_init(&rows[i]);
        rows[i].queue = "mail";
        rows[i].payload = "work";
        rows[i].payload_len = 4;
        rows[i].headers = "header: one\n";
        assert_int_equal(pawl_id_new(world.store, &rows[i], &rows[i].id, NULL), PAWL_OK);
    }
}

static void an_enqueue_without_memory_does_nothing(void **state)
{
    (void)state;
    pawl_enqueue_row rows[JOBS];
    pawl_enqueued results[JOBS];
    uint64_t nth = 1;
    for (;; nth++) {
        fill_rows(rows);
        int64_t before = count_jobs("true");
        alloc_fail_nth(nth);
        pawl_code code = pawl_enqueue(world.store, rows, JOBS, results, NULL);
        if (!alloc_fail_end()) {
            assert_int_equal(code, PAWL_OK);
            break;
        }
        assert_int_equal(code, PAWL_NO_MEMORY);
        assert_int_equal(count_jobs("true"), before);
    }
    assert_true(nth > 5);
}

static pawl_code claim(pawl_job *jobs, size_t *ret_count)
{
    pawl_claim_line line = {.queue = "mail", .jobs_max = JOBS, .lease_ms = 600000};
    pawl_claim_args args = {"w1", &line, 1, PAWL_DEFAULT};
    return pawl_claim(world.store, &args, jobs, JOBS, ret_count, NULL);
}

/* What was claimed and could not be given out is the worker's all the same: mine() tells it. */
static void a_claim_without_memory_is_found_again(void **state)
{
    (void)state;
    bool is_unknown_seen = false;
    for (uint64_t nth = 1;; nth++) {
        pawl_enqueue_row rows[JOBS];
        pawl_enqueued results[JOBS];
        pawl_job jobs[JOBS];
        size_t count = 0;
        fill_rows(rows);
        assert_int_equal(pawl_enqueue(world.store, rows, JOBS, results, NULL), PAWL_OK);
        int64_t before = count_jobs("state = 1");
        alloc_fail_nth(nth);
        pawl_code code = claim(jobs, &count);
        bool is_failed = alloc_fail_end();
        int64_t after = count_jobs("state = 1");
        if (!is_failed) {
            assert_int_equal(code, PAWL_OK);
            for (size_t i = 0; i < count; i++)
                pawl_job_clear(&jobs[i]);
            break;
        }
        assert_true(code == PAWL_NO_MEMORY || code == PAWL_UNKNOWN);
        assert_int_equal(after - before, code == PAWL_NO_MEMORY ? 0 : JOBS);
        is_unknown_seen = is_unknown_seen || code == PAWL_UNKNOWN;
    }
    assert_true(is_unknown_seen);
}

static void a_read_without_memory_gives_nothing(void **state)
{
    (void)state;
    for (uint64_t nth = 1;; nth++) {
        pawl_job jobs[JOBS];
        size_t count = 0;
        alloc_fail_nth(nth);
        pawl_code code = pawl_mine(world.store, "w1", NULL, jobs, JOBS, &count, NULL);
        if (!alloc_fail_end()) {
            assert_int_equal(code, PAWL_OK);
            assert_int_equal(count, JOBS);
            for (size_t i = 0; i < count; i++)
                pawl_job_clear(&jobs[i]);
            break;
        }
        assert_int_equal(code, PAWL_NO_MEMORY);
    }
}

static void a_settle_without_memory_does_nothing(void **state)
{
    (void)state;
    pawl_job job;
    size_t count = 0;
    assert_int_equal(pawl_mine(world.store, "w1", NULL, &job, 1, &count, NULL), PAWL_OK);
    assert_int_equal(count, 1);
    pawl_settle_row row;
    pawl_settled settled;
    pawl_settle_init(&row);
    row.lease = (pawl_lease){job.id, job.token, job.lease_version, job.place};
    pawl_job_clear(&job);
    int64_t before = count_jobs("state = 1");
    for (uint64_t nth = 1;; nth++) {
        alloc_fail_nth(nth);
        pawl_code code = pawl_settle(world.store, "w1", &row, 1, &settled, NULL);
        if (!alloc_fail_end()) {
            assert_int_equal(code, PAWL_OK);
            break;
        }
        assert_int_equal(code, PAWL_NO_MEMORY);
        assert_int_equal(count_jobs("state = 1"), before);
    }
    assert_int_equal(settled.code, PAWL_OK);
    assert_int_equal(count_jobs("state = 1"), before - 1);
}

static void a_handle_without_memory_is_not_opened(void **state)
{
    (void)state;
    char conninfo[PG_PATH_MAX];
    pawl_postgres_options options;
    pawl_postgres_options_init(&options);
    options.conninfo = pg_server_conninfo(&world.server, PG_WORLD_DATABASE, conninfo);
    for (uint64_t nth = 1;; nth++) {
        pawl_store *store = NULL;
        alloc_fail_nth(nth);
        pawl_code code = pawl_postgres_open(&options, &store, NULL);
        if (!alloc_fail_end()) {
            assert_int_equal(code, PAWL_OK);
            pawl_store_close(store);
            break;
        }
        assert_int_equal(code, PAWL_NO_MEMORY);
        assert_null(store);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_enqueue_without_memory_does_nothing),
        cmocka_unit_test(a_claim_without_memory_is_found_again),
        cmocka_unit_test(a_read_without_memory_gives_nothing),
        cmocka_unit_test(a_settle_without_memory_does_nothing),
        cmocka_unit_test(a_handle_without_memory_is_not_opened),
    };
    return cmocka_run_group_tests(tests, begin, end);
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * store_postgres_adopt_test.c - adopting through the library, on 8 shards: the report, the
 * progress, memory that runs out, and that the verbs work on what was adopted. What becomes of
 * which row is proved by test/e2e/adopt_test.py. OL-ADOPT.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "pawl/adopt.h"
#include "support/alloc_fail.h"
#include "support/pg_server.h"
#include "support/pg_world.h"

#include <stdio.h>
#include <string.h>

#define PENDING    40
#define STEPS_MAX  32
#define TIMEOUT_MS 10000

static struct pg_server server;

static const char tables[] =
    "drop table if exists pending, attempts;"
    "create table pending (id int8, body text, at timestamptz default now());"
    "create table attempts (id int8, no int4, state text, at timestamptz, body text);"
    "insert into pending select n, 'p' || n from generate_series(1, 40) n;"
    "insert into attempts values (41, 1, 'DISPATCHING', '2026-01-01', 'p41'),"
    " (42, 1, 'DISPATCHING', '2026-01-01', null), (42, 2, 'DISPATCHED', '2026-01-01', null);";

static int begin(void **state)
{
    (void)state;
    return pg_world_begin(&server, false, 8) ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    pg_server_remove(&server);
    return 0;
}

static int make_tables(void **state)
{
    (void)state;
    return pg_server_run(&server, PG_WORLD_DATABASE, "truncate pawl.job, pawl.adopted") &&
                   pg_server_run(&server, PG_WORLD_DATABASE,
                                 "set session_replication_role = replica; truncate pawl.attempt") &&
                   pg_server_run(&server, PG_WORLD_DATABASE, tables)
               ? 0
               : -1;
}

static pawl_adopt_options usual_options(char conninfo[PG_PATH_MAX])
{
    static const pawl_adopt_entry entries[] = {
        {"queue", "q"},
        {"stale_after", "2m"},
        {"pending.schema", "public"},
        {"pending.table", "pending"},
        {"pending.id", "id"},
        {"pending.payload", "body"},
        {"attempts.schema", "public"},
        {"attempts.table", "attempts"},
        {"attempts.id", "id"},
        {"attempts.number", "no"},
        {"attempts.state", "state"},
        {"attempts.at", "at"},
        {"claimed_payload.payload", "body"},
    };
    pawl_adopt_options options;
    pawl_adopt_options_init(&options);
    options.conninfo = pg_server_conninfo(&server, PG_WORLD_DATABASE, conninfo);
    options.mapping = entries;
    options.mapping_count = sizeof(entries) / sizeof(entries[0]);
    return options;
}

static const pawl_adopt_class *find(const pawl_adopt_report *report, const char *name)
{
    for (size_t i = 0; i < report->classes_count; i++)
        if (strcmp(report->classes[i].name, name) == 0)
            return &report->classes[i];
    fail_msg("no class %s", name);
    return NULL;
}

struct steps {
    size_t count;
    char last[64];
};

static void on_step(void *user, const char *step)
{
    struct steps *steps = user;
    steps->count++;
    (void)snprintf(steps->last, sizeof(steps->last), "%s", step);
}

static void adopted_jobs_are_jobs(void **state)
{
    (void)state;
    char conninfo[PG_PATH_MAX];
    pawl_adopt_options options = usual_options(conninfo);
    pawl_adopt_report report;
    struct steps steps = {0};
    pawl_err err;
    options.progress = on_step;
    options.user = &steps;
    if (pawl_adopt(&options, &report, &err) != PAWL_OK)
        fail_msg("%s", err.text);
    assert_true(report.is_done);
    assert_false(report.is_retired);
    assert_int_equal(report.problems_count, 0);
    assert_int_equal(find(&report, "pending_due")->count, PENDING);
    assert_int_equal(find(&report, "pending_due")->ids_count, 5);
    assert_string_equal(find(&report, "pending_due")->ids[0].text, "1");
    assert_string_equal(find(&report, "dispatching_expired")->ids[0].text, "41");
    assert_int_equal(find(&report, "dispatched")->count, 1);
    pawl_adopt_report_clear(&report);
    assert_true(steps.count >= 5);
    assert_string_equal(steps.last, "remembering what was adopted");

    pawl_store *store = pg_world_open(&server, NULL, TIMEOUT_MS);
    pawl_claim_line line = {.queue = "q", .jobs_max = 100, .lease_ms = PAWL_DEFAULT};
    pawl_claim_args args = {"w1", &line, 1, PAWL_DEFAULT};
    pawl_job jobs[100];
    size_t jobs_count = 0;
    assert_int_equal(pawl_claim(store, &args, jobs, 100, &jobs_count, &err), PAWL_OK);
    assert_int_equal(jobs_count, PENDING + 1);
    for (size_t i = 0; i < jobs_count; i++) {
        /* Its id has the right shard bits, and can never be enqueued again: Q-ENQUEUE. */
        pawl_enqueue_row row;
        pawl_enqueued enqueued;
        pawl_settle_row settle;
        pawl_settled settled;
        pawl_enqueue_init(&row);
        row.id = jobs[i].id;
        row.queue = "q";
        assert_int_equal(pawl_enqueue(store, &row, 1, &enqueued, &err), PAWL_OK);
        assert_int_equal(enqueued.code, PAWL_EXISTS);
        pawl_settle_init(&settle);
        settle.lease = (pawl_lease){jobs[i].id, jobs[i].token, jobs[i].lease_version,
                                    jobs[i].place};
        settle.action = PAWL_SUCCEED;
        assert_int_equal(pawl_settle(store, "w1", &settle, 1, &settled, &err), PAWL_OK);
        assert_int_equal(settled.code, PAWL_OK);
        assert_int_equal(settled.attempt_no, jobs[i].attempts + 1);
        assert_int_equal(pawl_enqueue(store, &row, 1, &enqueued, &err), PAWL_OK);
        assert_int_equal(enqueued.code, PAWL_EXISTS);
        pawl_job_clear(&jobs[i]);
    }
    pawl_store_close(store);
    assert_int_equal(pg_world_number(&server, "select count(distinct shard) from pawl.attempt"), 8);
}

static void problems_are_reported_and_nothing_is_done(void **state)
{
    (void)state;
    char conninfo[PG_PATH_MAX];
    pawl_adopt_options options = usual_options(conninfo);
    pawl_adopt_report report;
    pawl_err err;
    assert_true(pg_server_run(&server, PG_WORLD_DATABASE, "update attempts set body = null"));
    assert_int_equal(pawl_adopt(&options, &report, &err), PAWL_OK);
    assert_false(report.is_done);
    assert_int_equal(report.problems_count, 1);
    assert_string_equal(find(&report, "its payload is not in the attempts")->ids[0].text, "41");
    pawl_adopt_report_clear(&report);
    assert_int_equal(pg_world_number(&server, "select count(*) from pawl.job"), 0);
}

/* Whenever memory runs out: it says so, and a repeated call ends well. */
static void running_out_of_memory_is_survived(void **state)
{
    (void)state;
    char conninfo[PG_PATH_MAX];
    pawl_adopt_options options = usual_options(conninfo);
    for (uint64_t nth = 1;; nth++) {
        pawl_adopt_report report = {0};
        alloc_fail_nth(nth);
        pawl_code code = pawl_adopt(&options, &report, NULL);
        bool has_failed = alloc_fail_end();
        pawl_adopt_report_clear(&report);
        if (!has_failed)
            break;
        assert_true(code == PAWL_NO_MEMORY || code == PAWL_UNKNOWN);
    }
    assert_int_equal(pg_world_number(&server, "select count(*) from pawl.job"), PENDING + 1);
}

static void a_server_that_is_away_is_down(void **state)
{
    (void)state;
    char conninfo[PG_PATH_MAX];
    pawl_adopt_options options = usual_options(conninfo);
    pawl_adopt_report report;
    options.conninfo = "host=/none/such user=x password=canary";
    pawl_err err;
    assert_int_equal(pawl_adopt(&options, &report, &err), PAWL_DOWN);
    assert_null(strstr(err.text, "canary"));
    options.conninfo = "nonsense";
    assert_int_equal(pawl_adopt(&options, &report, &err), PAWL_INVALID);
}

#define CASE(function) cmocka_unit_test_setup(function, make_tables)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(adopted_jobs_are_jobs),
        CASE(problems_are_reported_and_nothing_is_done),
        CASE(running_out_of_memory_is_survived),
        CASE(a_server_that_is_away_is_down),
    };
    return cmocka_run_group_tests(tests, begin, end);
}

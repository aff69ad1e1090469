/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * store_sqlite_statements_test.c - how SQLite runs the store's statements: by an index that leads
 * to what is asked for, whatever statistics it has; so that a verb costs what it gives, and not
 * what it skips.
 * Owns:  the list of statements that may go through a whole table, and why.
 * Never: measures time.
 */
#include "support/sqlite_world.h"

#include "store/sqlite/sqlite.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PLAN_SQL_MAX 4096
#define MANY         3000
#define FEW          10
#define STUCK        100000 /* behind one job that runs */
#define STUCK_BATCH  10000

/* ---- plans */

/* These read all of a small set, and say so in statements.c, or write no rows. */
static bool may_go_through_all(enum statement statement, const char *detail)
{
    switch (statement) {
    case S_LIST_IN_FLIGHT: /* all leases, by the index that has only them, put in order */
        return strstr(detail, "pawl_job_held") != NULL || strstr(detail, "TEMP B-TREE") != NULL;
    case S_LIST_KEY: /* all jobs of one key, put in order */
        return strstr(detail, "TEMP B-TREE") != NULL;
    case S_WORKERS_PRUNE: /* workers are few */
        return strstr(detail, "pawl_worker") != NULL;
    case S_RECENT_ADDED: /* left where it meets a job that is too old */
        return strstr(detail, "pawl_job") != NULL;
    case S_EP_COUNT: /* asked where one is added */
        return strstr(detail, "pawl_endpoint") != NULL;
    case S_EP_WANTING: /* the few patterns that match a type, and whom it goes to, put in order */
        return strcmp(detail, "SCAN c") == 0 || strcmp(detail, "SCAN dot") == 0 ||
               strstr(detail, "TEMP B-TREE") != NULL;
    case S_INSERT_JOBS: /* the rows that it is given */
    case S_INSERT_PAYLOADS:
        return strstr(detail, "CONSTANT ROWS") != NULL;
    default:
        return false;
    }
}

static void check_plan(sqlite3 *db, enum statement statement)
{
    char sql[PLAN_SQL_MAX];
    sqlite3_stmt *stmt;
    int length = snprintf(sql, sizeof(sql), "EXPLAIN QUERY PLAN %s", pawli_sqlite_texts[statement]);
    assert_true(length < (int)sizeof(sql));
    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    while (sqlite3_step(stmt) == SQLITE_ROW) {
        const char *detail = (const char *)sqlite3_column_text(stmt, 3);
        bool is_bad = strncmp(detail, "SCAN", 4) == 0 || strstr(detail, "TEMP B-TREE") != NULL;
        if (is_bad && strcmp(detail, "SCAN CONSTANT ROW") != 0 &&
            !may_go_through_all(statement, detail))
            fail_msg("%s: %s", pawli_sqlite_texts[statement], detail);
    }
    assert_int_equal(sqlite3_finalize(stmt), SQLITE_OK);
}

/* From the first that looks at a table on. */
static void check_plans(struct lite_world *world)
{
    sqlite3 *db = lite_connect(world);
    for (int i = S_DRAWN; i < STATEMENTS_COUNT; i++)
        check_plan(db, (enum statement)i);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* ---- a store with many of everything */

static void put_many(struct lite_world *world, const pawl_enqueue_row *row, size_t count)
{
    pawl_enqueue_row *rows = calloc(count, sizeof(*rows));
    pawl_enqueued *results = calloc(count, sizeof(*results));
    assert_true(rows != NULL && results != NULL);
    for (size_t i = 0; i < count; i++)
        rows[i] = *row;
    assert_int_equal(pawl_enqueue(world->store, rows, count, results, NULL), PAWL_OK);
    free(rows);
    free(results);
}

/* Claim all that is there, with leases that last. */
static void take_many(struct lite_world *world, const char *queue, size_t count,
                      pawl_settle_action *action)
{
    pawl_job *jobs = calloc(count, sizeof(*jobs));
    pawl_settle_row *rows = calloc(count, sizeof(*rows));
    pawl_settled *results = calloc(count, sizeof(*results));
    assert_true(jobs != NULL && rows != NULL && results != NULL);
    assert_int_equal(lite_take(world, queue, jobs, count), count);
    for (size_t i = 0; i < count; i++) {
        pawl_settle_init(&rows[i]);
        rows[i].lease = (pawl_lease){jobs[i].id, jobs[i].token, jobs[i].lease_version,
                                     jobs[i].place};
        rows[i].action = action != NULL ? *action : PAWL_SUCCEED;
    }
    if (action != NULL)
        assert_int_equal(pawl_settle(world->store, LITE_WORKER, rows, count, results, NULL),
                         PAWL_OK);
    free(jobs);
    free(rows);
    free(results);
}

/* `count` jobs that are in flight, succeeded, failed, delayed, or in another queue; and some to
 * take. */
static void fill(struct lite_world *world, size_t count)
{
    pawl_settle_action succeed = PAWL_SUCCEED;
    pawl_settle_action fail = PAWL_FAIL;
    pawl_enqueue_row row;
    pawl_enqueue_init(&row);
    row.queue = "mail";
    put_many(world, &row, count);
    take_many(world, "mail", count, &succeed);
    put_many(world, &row, count);
    take_many(world, "mail", count, &fail);
    put_many(world, &row, count);
    take_many(world, "mail", count, NULL);
    row.delay_ms = 3600000;
    for (row.priority = 0; row.priority < 10; row.priority++)
        put_many(world, &row, count / 10);
    row.delay_ms = 0;
    row.queue = "other";
    row.priority = 0;
    put_many(world, &row, count);
    row.queue = "mail";
    row.priority = 7; /* behind the delayed ones of higher priorities */
    put_many(world, &row, FEW);
}

/* One job of a key that runs, and `count` of it behind. */
static void fill_stuck(struct lite_world *world, size_t count, pawl_job *ret_held)
{
    pawl_enqueue_row row;
    pawl_enqueue_init(&row);
    row.queue = "mail";
    row.ordering_key = "stuck";
    row.priority = 0; /* before all others, were they not behind it */
    put_many(world, &row, 1);
    *ret_held = lite_take_one(world, "mail");
    for (size_t left = count; left > 0;) {
        size_t some = left < STUCK_BATCH ? left : STUCK_BATCH;
        put_many(world, &row, some);
        left -= some;
    }
}

static void plans_use_indexes_whatever_is_known(void **state)
{
    (void)state; /* none */
    struct lite_world world;
    lite_world_make(&world);
    lite_world_open(&world);
    check_plans(&world); /* an empty file */
    (void)lite_ask(&world, "ANALYZE");
    check_plans(&world);
    pawl_job held;
    fill(&world, 200);
    fill_stuck(&world, 200, &held);
    check_plans(&world); /* full, with what was learned when it was empty */
    (void)lite_ask(&world, "ANALYZE");
    check_plans(&world);
    lite_world_end(&world);
}

/* ---- costs */

/* What the writer's statements did since the last time it was asked. */
static int64_t steps_taken(struct lite_world *world)
{
    int64_t steps = 0;
    for (int i = 0; i < STATEMENTS_COUNT; i++) {
        sqlite3_stmt *stmt = world->sqlite->writer.statements[i];
        if (stmt != NULL)
            steps += sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_VM_STEP, 1);
    }
    return steps;
}

struct costs {
    int64_t claim, empty_claim, renew, settle, reap, enqueue, cancel_where, redrive_where;
    int64_t cancel_key;
};

static struct costs costs_with(size_t count)
{
    struct lite_world world;
    struct costs costs;
    pawl_job jobs[FEW];
    pawl_reaped reaped[FEW];
    pawl_renewed renewed;
    size_t reaped_count;
    lite_world_make(&world);
    lite_world_open(&world);
    fill(&world, count);
    (void)steps_taken(&world);
    assert_int_equal(lite_take(&world, "mail", jobs, FEW), FEW);
    costs.claim = steps_taken(&world);
    pawl_job none;
    assert_int_equal(lite_take(&world, "mail", &none, 1), 0);
    costs.empty_claim = steps_taken(&world);
    pawl_renew_row row = {
        .lease = {jobs[0].id, jobs[0].token, jobs[0].lease_version, jobs[0].place},
        .lease_ms = PAWL_DEFAULT};
    assert_int_equal(pawl_renew(world.store, LITE_WORKER, &row, 1, &renewed, NULL), PAWL_OK);
    assert_int_equal(renewed.code, PAWL_OK);
    costs.renew = steps_taken(&world);
    assert_int_equal(lite_settle(&world, &jobs[0], PAWL_SUCCEED).code, PAWL_OK);
    costs.settle = steps_taken(&world);
    assert_int_equal(pawl_reap(world.store, reaped, FEW, &reaped_count, NULL), PAWL_OK);
    assert_int_equal(reaped_count, 0);
    costs.reap = steps_taken(&world);
    lite_put(&world, "mail");
    costs.enqueue = steps_taken(&world);
    lite_put(&world, "lone");
    (void)steps_taken(&world);
    pawl_filter lone = {.queue = "lone"};
    size_t changed;
    assert_int_equal(pawl_cancel_where(world.store, &lone, FEW, &changed, NULL), PAWL_OK);
    assert_int_equal(changed, 1);
    costs.cancel_where = steps_taken(&world);
    assert_int_equal(pawl_redrive_where(world.store, &lone, FEW, &changed, NULL), PAWL_OK);
    assert_int_equal(changed, 1);
    costs.redrive_where = steps_taken(&world);
    pawl_enqueue_row keyed;
    pawl_enqueue_init(&keyed);
    keyed.queue = "mail";
    keyed.ordering_key = "lone";
    put_many(&world, &keyed, 2);
    (void)steps_taken(&world);
    pawl_filter key = {.queue = "mail", .ordering_key = "lone"};
    assert_int_equal(pawl_cancel_where(world.store, &key, FEW, &changed, NULL), PAWL_OK);
    assert_int_equal(changed, 2);
    costs.cancel_key = steps_taken(&world);
    lite_world_end(&world);
    return costs;
}

static void check_cost(const char *what, int64_t few, int64_t many)
{
    if (many > few + few / 4 + 20)
        fail_msg("%s: %lld steps with few other jobs, %lld with many", what, (long long)few,
                 (long long)many);
}

/* A million delayed, in-flight or finished jobs are not gone through. */
static void verbs_cost_what_they_give(void **state)
{
    (void)state; /* none */
    struct costs few = costs_with(10);
    struct costs many = costs_with(MANY);
    check_cost("claim", few.claim, many.claim);
    check_cost("claim of nothing", few.empty_claim, many.empty_claim);
    check_cost("renew", few.renew, many.renew);
    check_cost("settle", few.settle, many.settle);
    check_cost("reap", few.reap, many.reap);
    check_cost("enqueue", few.enqueue, many.enqueue);
    check_cost("cancel_where", few.cancel_where, many.cancel_where);
    check_cost("redrive_where", few.redrive_where, many.redrive_where);
    check_cost("cancel_where of a key", few.cancel_key, many.cancel_key);
}

/* ---- keys */

struct key_costs {
    int64_t claim, empty_claim, enqueue, enqueue_behind, renew, retry, reap, cancel, settle;
};

static int64_t rows_scanned(struct lite_world *world)
{
    int64_t rows = 0;
    for (int i = 0; i < STATEMENTS_COUNT; i++) {
        sqlite3_stmt *stmt = world->sqlite->writer.statements[i];
        if (stmt != NULL)
            rows += sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_FULLSCAN_STEP, 0);
    }
    return rows;
}

static struct key_costs key_costs_with(size_t count)
{
    struct lite_world world;
    struct key_costs costs;
    pawl_job held, jobs[FEW + 1];
    pawl_enqueue_row row;
    pawl_reaped reaped;
    size_t number;
    lite_world_make(&world);
    lite_world_open(&world);
    fill_stuck(&world, count, &held);
    pawl_enqueue_init(&row);
    row.queue = "mail";
    put_many(&world, &row, FEW);
    (void)steps_taken(&world);
    assert_int_equal(lite_take(&world, "mail", jobs, FEW + 1), FEW);
    costs.claim = steps_taken(&world);
    assert_int_equal(lite_take(&world, "mail", jobs, 1), 0);
    costs.empty_claim = steps_taken(&world);
    row.ordering_key = "free";
    put_many(&world, &row, 1);
    costs.enqueue = steps_taken(&world);
    row.ordering_key = "stuck";
    put_many(&world, &row, 1);
    costs.enqueue_behind = steps_taken(&world);
    pawl_renew_row renew = {.lease = {held.id, held.token, held.lease_version, held.place},
                            .lease_ms = PAWL_DEFAULT};
    assert_int_equal(pawl_renew(world.store, LITE_WORKER, &renew, 1, &(pawl_renewed){0}, NULL),
                     PAWL_OK);
    costs.renew = steps_taken(&world);
    assert_int_equal(lite_settle(&world, &held, PAWL_RETRY).code, PAWL_OK);
    costs.retry = steps_taken(&world);
    held = lite_take_one(&world, "mail");
    (void)steps_taken(&world);
    assert_int_equal(pawl_reap(world.store, &reaped, 1, &number, NULL), PAWL_OK);
    costs.reap = steps_taken(&world);
    pawl_filter waiting = {.queue = "mail", .ordering_key = "stuck", .states = 1u << PAWL_READY};
    assert_int_equal(pawl_list(world.store, &waiting, NULL, jobs, 1, &number, NULL), PAWL_OK);
    assert_int_equal(number, 1);
    assert_int_equal(pawl_cancel(world.store, &jobs[0].id, 1, &(pawl_changed){0}, NULL), PAWL_OK);
    costs.cancel = steps_taken(&world);
    assert_int_equal(lite_settle(&world, &held, PAWL_SUCCEED).code, PAWL_OK);
    costs.settle = steps_taken(&world); /* it lets the next one through */
    assert_int_equal(lite_take(&world, "mail", jobs, FEW), 2);
    assert_int_equal(rows_scanned(&world), 0);
    lite_world_end(&world);
    return costs;
}

/* However many wait behind a job that runs, nobody steps over them. */
static void a_stuck_key_costs_nobody_anything(void **state)
{
    (void)state; /* none */
    struct key_costs few = key_costs_with(FEW);
    struct key_costs many = key_costs_with(STUCK);
    check_cost("claim", few.claim, many.claim);
    check_cost("claim of nothing", few.empty_claim, many.empty_claim);
    check_cost("enqueue of another key", few.enqueue, many.enqueue);
    check_cost("enqueue behind them", few.enqueue_behind, many.enqueue_behind);
    check_cost("renew", few.renew, many.renew);
    check_cost("retry of the first", few.retry, many.retry);
    check_cost("reap", few.reap, many.reap);
    check_cost("cancel of one of them", few.cancel, many.cancel);
    check_cost("settle of the first", few.settle, many.settle);
}

/* What a job without a key costs is what it cost before there were keys. */
static void jobs_without_a_key_pay_nothing(void **state)
{
    (void)state; /* none */
    static const enum statement of_keys[] = {S_KEY_HELD, S_KEY_NEXT, S_MOVE_UP,
                                             S_DEDUPE_HOLDER_ORDERED, S_DEDUPE_TAKEN_ORDERED};
    struct lite_world world;
    lite_world_make(&world);
    lite_world_open(&world);
    (void)lite_put(&world, "mail");
    pawl_job job = lite_take_one(&world, "mail");
    assert_int_equal(lite_settle(&world, &job, PAWL_FAIL).code, PAWL_OK);
    assert_int_equal(pawl_redrive(world.store, &job.id, 1, &(pawl_changed){0}, NULL), PAWL_OK);
    job = lite_take_one(&world, "mail");
    assert_int_equal(lite_settle(&world, &job, PAWL_SUCCEED).code, PAWL_OK);
    for (size_t i = 0; i < sizeof(of_keys) / sizeof(of_keys[0]); i++)
        assert_null(world.sqlite->writer.statements[of_keys[i]]); /* it was never needed */
    assert_int_equal(lite_ask(&world, "SELECT value FROM pawl_meta WHERE name = 'fence'"), 0);
    lite_world_end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_use_indexes_whatever_is_known),
        cmocka_unit_test(verbs_cost_what_they_give),
        cmocka_unit_test(a_stuck_key_costs_nobody_anything),
        cmocka_unit_test(jobs_without_a_key_pay_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * store_sqlite_odd_test.c - rows of jobs that somebody has changed by hand: every column, to values
 * that are odd, past what the table refuses. Whatever they say, a call ends with an answer, nobody
 * gets a job that somebody else holds, and no job is completed twice.
 * Owns:  the edits. Q-ONE-LEASE, Q-NEVER-AGAIN
 * Never: sleeps; expects an edit to be repaired: the file is told to be damaged.
 */
#include "support/sqlite_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COLUMNS_MAX 64
#define NAME_MAX_   64
#define SQL_MAX     1024
#define HOUR_MS     (INT64_C(3600) * 1000)
#define LEASE_MS    30000

static const char *const odd_values[] = {
    "NULL",
    "-1",
    "0",
    "1",
    "3",
    "9223372036854775807",
    "(-9223372036854775807 - 1)",
    "''",
    "'x'",
    "x'00'",
    "zeroblob(16)",
    "printf('%0300d', 1)",
};

enum base {
    BASE_READY,
    BASE_HELD,
    BASE_MARKED, /* held, and to be cancelled */
    BASE_EXPIRED,
    BASE_FIRST,  /* held, of a key, with another behind it */
    BASE_BEHIND, /* that other one */
    BASES
};

/* Which jobs an edit is made on. */
static const char *const targets[BASES] = {
    [BASE_READY] = "true",           [BASE_HELD] = "true",
    [BASE_MARKED] = "true",          [BASE_EXPIRED] = "true",
    [BASE_FIRST] = "is_waiting = 0", [BASE_BEHIND] = "is_waiting = 1",
};

/* One job, and what its holders know. */
struct odd {
    struct lite_world world;
    sqlite3 *db; /* of whoever makes the edits */
    const char *column;
    const char *value;
    pawl_lease leases[8];
    char workers[8][4];
    size_t leases_count;
    size_t jobs_count;
    size_t completions;
    size_t edits;
    size_t refused; /* by the table, although it was told to let everything pass */
};

/* ---- what must hold */

/* A call is done, or the file is told to be damaged. */
static bool is_done(const struct odd *odd, const char *verb, pawl_code code, const pawl_err *err)
{
    if (code == PAWL_OK || code == PAWL_GONE)
        return true;
    if (code == PAWL_INVALID && strcmp(odd->column, "id") == 0)
        return false; /* the id of zeros cannot be asked for */
    if (code != PAWL_DOWN || strstr(err->text, "is damaged") == NULL)
        fail_msg("%s = %s: %s: %s: %s", odd->column, odd->value, verb, pawl_code_name(code),
                 err->text);
    return false;
}

static int64_t held_by_row(const struct odd *odd)
{
    char sql[SQL_MAX];
    (void)snprintf(sql, sizeof(sql), /* fits */
                   "SELECT count(*) FROM pawl_job WHERE state = 1 AND lease_expires_at > %lld",
                   (long long)odd->world.clock.wall(odd->world.clock.user).us);
    return lite_run(odd->db, sql);
}

/* ---- verbs */

static void claim(struct odd *odd, const char *worker)
{
    pawl_claim_line line = {"odd", 4, LEASE_MS};
    pawl_claim_args args = {worker, &line, 1, PAWL_DEFAULT};
    pawl_job jobs[4];
    size_t count = 0;
    pawl_err err = {0};
    bool is_held = held_by_row(odd) > 0;
    if (!is_done(odd, "claim", pawl_claim(odd->world.store, &args, jobs, 4, &count, &err), &err))
        return;
    if (is_held && count > 0)
        fail_msg("%s = %s: was given out while it was held", odd->column, odd->value);
    for (size_t i = 0; i < count; i++) {
        assert_true(odd->leases_count < 8);
        odd->leases[odd->leases_count] = (pawl_lease){jobs[i].id, jobs[i].token,
                                                      jobs[i].lease_version, jobs[i].place};
        (void)snprintf(odd->workers[odd->leases_count++], 4, "%s", worker); /* fits */
        pawl_job_clear(&jobs[i]);
    }
}

static void renew_all(struct odd *odd)
{
    pawl_renewed renewed;
    pawl_err err = {0};
    for (size_t i = 0; i < odd->leases_count; i++) {
        pawl_renew_row row = {
            .lease = odd->leases[i], .lease_ms = PAWL_DEFAULT, .is_unstarted = i % 2 == 0};
        (void)is_done(odd, "renew",
                      pawl_renew(odd->world.store, odd->workers[i], &row, 1, &renewed, &err), &err);
    }
}

static void settle_all(struct odd *odd, pawl_settle_action action)
{
    pawl_settled settled;
    pawl_err err = {0};
    for (size_t i = 0; i < odd->leases_count; i++) {
        pawl_settle_row row;
        pawl_settle_init(&row);
        row.lease = odd->leases[i];
        row.action = action;
        row.delay_ms = action == PAWL_SNOOZE ? 0 : PAWL_DEFAULT;
        pawl_code code = pawl_settle(odd->world.store, odd->workers[i], &row, 1, &settled, &err);
        if (is_done(odd, "settle", code, &err) && action == PAWL_SUCCEED && settled.code == PAWL_OK)
            odd->completions++;
    }
}

static void look(struct odd *odd)
{
    pawl_job jobs[4];
    pawl_lease_info leases[4];
    pawl_stats stats[4];
    pawl_attempt attempts[4];
    size_t count = 0;
    pawl_err err = {0};
    pawl_store *store = odd->world.store;
    if (is_done(odd, "list", pawl_list(store, NULL, NULL, jobs, 4, &count, &err), &err))
        for (size_t i = 0; i < count; i++) {
            pawl_job one = {0};
            pawl_id id = jobs[i].id;
            (void)is_done(odd, "get", pawl_get(store, &id, &one, &err), &err);
            pawl_job_clear(&one);
            (void)is_done(odd, "attempts",
                          pawl_attempts(store, &id, 0, attempts, 4, &(size_t){0}, &err), &err);
        }
    (void)is_done(odd, "leases", pawl_leases(store, NULL, NULL, leases, 4, &count, &err), &err);
    (void)is_done(odd, "stats", pawl_queue_stats(store, NULL, stats, 4, &count, &err), &err);
    count = 0;
    if (is_done(odd, "mine", pawl_mine(store, "w1", NULL, jobs, 4, &count, &err), &err))
        for (size_t i = 0; i < count; i++)
            pawl_job_clear(&jobs[i]);
}

static void reap(struct odd *odd)
{
    pawl_reaped rows[4];
    size_t count = 0;
    pawl_err err = {0};
    (void)is_done(odd, "reap", pawl_reap(odd->world.store, rows, 4, &count, &err), &err);
}

static void operate(struct odd *odd)
{
    static const pawl_filter all = {0};
    size_t count = 0;
    pawl_err err = {0};
    pawl_store *store = odd->world.store;
    (void)is_done(odd, "cancel_where", pawl_cancel_where(store, &all, 4, &count, &err), &err);
    (void)is_done(odd, "redrive_where", pawl_redrive_where(store, &all, 4, &count, &err), &err);
    claim(odd, "w4");
    settle_all(odd, PAWL_FAIL);
    (void)is_done(odd, "discard_where", pawl_discard_where(store, &all, 4, &count, &err), &err);
}

/* ---- a job, an edit, and its life afterwards */

static void put(struct odd *odd, const char *key)
{
    pawl_enqueue_row row;
    pawl_enqueued enqueued;
    pawl_enqueue_init(&row);
    row.queue = "odd";
    row.payload = "payload";
    row.payload_len = 7;
    row.ordering_key = key;
    assert_int_equal(pawl_enqueue(odd->world.store, &row, 1, &enqueued, NULL), PAWL_OK);
}

static void make_job(struct odd *odd, enum base base)
{
    bool is_keyed = base == BASE_FIRST || base == BASE_BEHIND;
    odd->jobs_count = is_keyed ? 2 : 1;
    for (size_t i = 0; i < odd->jobs_count; i++)
        put(odd, is_keyed ? "key" : NULL);
    odd->leases_count = 0;
    odd->completions = 0;
    if (base == BASE_READY)
        return;
    claim(odd, "w1");
    assert_int_equal(odd->leases_count, 1);
    pawl_changed changed;
    if (base == BASE_MARKED)
        assert_int_equal(pawl_cancel(odd->world.store, &odd->leases[0].job, 1, &changed, NULL),
                         PAWL_OK);
    if (base == BASE_EXPIRED)
        pawli_manual_clock_turn_ms(&odd->world.manual, LEASE_MS);
}

static bool edit(struct odd *odd, enum base base)
{
    char sql[SQL_MAX];
    (void)snprintf(sql, sizeof(sql), "UPDATE pawl_job SET %s = %s WHERE %s", odd->column,
                   odd->value, targets[base]); /* fits */
    odd->edits++;
    bool is_made = sqlite3_exec(odd->db, sql, NULL, NULL, NULL) == SQLITE_OK;
    odd->refused += !is_made;
    return is_made;
}

static void live(struct odd *odd)
{
    look(odd);
    claim(odd, "w2");
    renew_all(odd);
    settle_all(odd, PAWL_RETRY);
    pawli_manual_clock_turn_ms(&odd->world.manual, LEASE_MS + 1);
    reap(odd);
    pawli_manual_clock_turn_ms(&odd->world.manual, HOUR_MS);
    claim(odd, "w3");
    settle_all(odd, PAWL_SUCCEED);
    assert_true(odd->completions <= odd->jobs_count);
    reap(odd);
    operate(odd);
    look(odd);
}

/* Without the row all is well again. */
static void clean_up(struct odd *odd)
{
    (void)lite_run(odd->db,
                   "DELETE FROM pawl_job; DELETE FROM pawl_payload; DELETE FROM pawl_ended");
    (void)lite_put(&odd->world, "odd");
    pawl_job job = lite_take_one(&odd->world, "odd");
    assert_int_equal(lite_settle(&odd->world, &job, PAWL_SUCCEED).code, PAWL_OK);
    pawl_job_clear(&job);
}

static size_t read_columns(sqlite3 *db, char columns[COLUMNS_MAX][NAME_MAX_])
{
    sqlite3_stmt *stmt = NULL;
    size_t count = 0;
    assert_int_equal(
        sqlite3_prepare_v2(db, "SELECT name FROM pragma_table_info('pawl_job')", -1, &stmt, NULL),
        SQLITE_OK);
    while (sqlite3_step(stmt) == SQLITE_ROW) {
        assert_true(count < COLUMNS_MAX);
        (void)snprintf(columns[count++], NAME_MAX_, "%s",
                       (const char *)sqlite3_column_text(stmt, 0)); /* fits */
    }
    assert_int_equal(sqlite3_finalize(stmt), SQLITE_OK);
    return count;
}

/* FR-004 */
static void whatever_a_row_says_it_is_not_worked_on_twice(void **state)
{
    (void)state; /* none */
    static struct odd odd;
    static char columns[COLUMNS_MAX][NAME_MAX_];
    memset(&odd, 0, sizeof(odd));
    lite_world_make(&odd.world);
    lite_world_open(&odd.world);
    odd.db = lite_connect(&odd.world);
    /* The edits need not outlive the machine. */
    (void)lite_run(odd.db, "PRAGMA ignore_check_constraints = ON; PRAGMA synchronous = OFF");
    size_t columns_count = read_columns(odd.db, columns);
    assert_true(columns_count > 30);
    for (enum base base = BASE_READY; base < BASES; base++) {
        for (size_t i = 0; i < columns_count; i++) {
            for (size_t k = 0; k < sizeof(odd_values) / sizeof(odd_values[0]); k++) {
                odd.column = columns[i];
                odd.value = odd_values[k];
                make_job(&odd, base);
                if (edit(&odd, base))
                    live(&odd);
                clean_up(&odd);
            }
        }
    }
    assert_true(odd.edits - odd.refused > 500); /* otherwise nothing was tried */
    assert_int_equal(sqlite3_close(odd.db), SQLITE_OK);
    lite_world_end(&odd.world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_a_row_says_it_is_not_worked_on_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * store_sqlite_schema_test.c - a file that an older Pawl has made: it becomes one of this version
 * when it is opened, its jobs go on where they were, and nobody who does not know the new version
 * works on it any more.
 * Owns:  what is known of the jobs in support/sqlite_v1.sql.
 * Never: looks at files that are nobody's or newer: store_sqlite_test.c does.
 */
#include "support/sqlite_world.h"

#include "base/text.h"
#include "store/sqlite/sqlite.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define OPENERS 4

/* The job with this number in the old file. */
static pawl_id id_of(int number)
{
    pawl_id id;
    memset(id.bytes, number, sizeof(id.bytes));
    return id;
}

static void expect_job(struct lite_world *world, int number, pawl_state state, int64_t attempts)
{
    pawl_id id = id_of(number);
    pawl_job job;
    char payload[16];
    assert_int_equal(pawl_get(world->store, &id, &job, NULL), PAWL_OK);
    assert_int_equal(job.state, state);
    assert_int_equal(job.attempts, attempts);
    assert_string_equal(job.queue, "mail");
    assert_string_equal(job.ordering_key, "");
    assert_int_equal(job.fence, 0);
    assert_int_equal(job.payload_len, 5);
    if (state != PAWL_SUCCEEDED) {
        (void)snprintf(payload, sizeof(payload), "job %d", number); /* fits */
        assert_memory_equal(job.payload, payload, 5);
    }
    pawl_job_clear(&job);
}

static void finish_next(struct lite_world *world, int number)
{
    pawl_id id = id_of(number);
    pawl_job job = lite_take_one(world, "mail");
    assert_int_equal(pawl_id_compare(&job.id, &id), 0);
    assert_int_equal(lite_settle(world, &job, PAWL_SUCCEED).code, PAWL_OK);
}

/* Q-DURABLE: whoever had a job has it still, and all are claimed in the order that they had. */
static void jobs_of_an_older_file_go_on(void **state)
{
    static const pawl_token token = {{0xa5, 0x3c, 0x36, 0xd7, 0x6c, 0xec, 0x99, 0xe0, 0x75, 0x85,
                                      0x27, 0x12, 0x0f, 0xbb, 0xe7, 0x85}};
    (void)state; /* none */
    struct lite_world world;
    pawl_queue_settings settings;
    lite_world_make(&world);
    lite_world_make_old(&world);
    lite_world_open(&world);
    lite_check(&world);
    expect_job(&world, 1, PAWL_SUCCEEDED, 1);
    expect_job(&world, 2, PAWL_FAILED, 1);
    expect_job(&world, 3, PAWL_IN_FLIGHT, 1);
    for (int i = 4; i <= 8; i++)
        expect_job(&world, i, PAWL_READY, 0);
    assert_int_equal(pawl_queue_get(world.store, "mail", &settings, NULL), PAWL_OK);
    assert_int_equal(settings.max_retries, 5);
    assert_int_equal(settings.max_in_flight, 0);

    pawl_job held = {.id = id_of(3), .token = token, .lease_version = 2};
    assert_int_equal(lite_settle(&world, &held, PAWL_SUCCEED).code, PAWL_OK);
    finish_next(&world, 7); /* the urgent one */
    finish_next(&world, 4);
    finish_next(&world, 6);
    finish_next(&world, 8);
    pawli_manual_clock_turn_ms(&world.manual, 60000);
    finish_next(&world, 5); /* its delay is over */
    pawl_id failed = id_of(2);
    pawl_changed changed;
    assert_int_equal(pawl_redrive(world.store, &failed, 1, &changed, NULL), PAWL_OK);
    finish_next(&world, 2);
    lite_check(&world);
    lite_world_end(&world);
}

/* Everything that the new version has works on it, by the library and by SQL. */
static void an_older_file_gets_keys_fences_and_bounds(void **state)
{
    (void)state; /* none */
    struct lite_world world;
    pawl_queue_settings settings;
    lite_world_make(&world);
    lite_world_make_old(&world);
    lite_world_open(&world);
    /* What SQL puts is due by the system's clock. */
    world.manual.wall = pawl_clock_system()->wall(pawl_clock_system()->user);
    pawli_manual_clock_turn_ms(&world.manual, 60000);
    sqlite3 *db = lite_connect(&world);
    (void)lite_run(db, "INSERT INTO pawl_enqueue (queue, ordering_key) VALUES ('keyed', 'k')");
    (void)lite_run(db, "INSERT INTO pawl_enqueue (queue, ordering_key) VALUES ('keyed', 'k')");
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    pawl_job jobs[4];
    assert_int_equal(lite_take(&world, "keyed", jobs, 4), 1);
    assert_int_equal(jobs[0].fence, 1);
    assert_int_equal(lite_settle(&world, &jobs[0], PAWL_SUCCEED).code, PAWL_OK);
    assert_int_equal(lite_take(&world, "keyed", jobs, 4), 1);
    assert_int_equal(jobs[0].fence, 2);
    pawl_queue_settings_init(&settings);
    settings.max_in_flight = 2;
    assert_int_equal(pawl_queue_set(world.store, "mail", &settings, NULL), PAWL_OK);
    assert_int_equal(lite_take(&world, "mail", jobs, 4), 2);
    lite_check(&world);
    lite_world_end(&world);
}

/* Columns and texts of all that a file has, but for its rows. */
static const char *const shapes[] = {
    ("SELECT group_concat(s.name || ' ' || c.name || ' ' || c.type || ' ' || c.\"notnull\" || ' ' "
     "|| ifnull(c.dflt_value, '-') || ' ' || c.pk, '; ') FROM (SELECT * FROM sqlite_schema ORDER "
     "BY name) AS s, pragma_table_xinfo(s.name) AS c WHERE s.type IN ('table', 'view')"),
    ("SELECT group_concat(name || ' ' || ifnull(sql, '-'), '; ') FROM (SELECT * FROM sqlite_schema "
     "WHERE type <> 'table' ORDER BY name)"),
    "SELECT group_concat(name, '; ') FROM (SELECT name FROM pawl_meta ORDER BY name)",
};

struct shape {
    char text[64 * 1024];
};

static int keep_text(void *user, int columns, char **values, char **names)
{
    (void)columns, (void)names; /* the first one is asked for */
    struct shape *shape = user;
    assert_non_null(values[0]);
    assert_true(pawli_text_copy(shape->text, sizeof(shape->text), values[0]));
    return 0;
}

static void read_shape(const struct lite_world *world, const char *sql, struct shape *ret_shape)
{
    char *message = NULL;
    sqlite3 *db = lite_connect(world);
    if (sqlite3_exec(db, sql, keep_text, ret_shape, &message) != SQLITE_OK)
        fail_msg("%s: %s", sql, message);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* What was brought up to date is what would have been made. Again, it changes no more. */
static void an_older_file_becomes_like_a_new_one(void **state)
{
    (void)state; /* none */
    static struct shape older, newer;
    struct lite_world old, new;
    lite_world_make(&old);
    lite_world_make_old(&old);
    lite_world_make(&new);
    lite_world_open(&new);
    for (int turn = 0; turn < 2; turn++) {
        lite_world_open(&old);
        for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
            read_shape(&old, shapes[i], &older);
            read_shape(&new, shapes[i], &newer);
            assert_string_equal(older.text, newer.text);
        }
        lite_world_close(&old);
    }
    assert_int_equal(lite_ask(&old, "SELECT value FROM pawl_meta WHERE name = 'version'"), 2);
    lite_world_end(&old);
    lite_world_end(&new);
}

/* What claims and recovers, as a program of version 1 has it prepared. */
static const char *const old_texts[] = {
    ("SELECT priority, rank FROM pawl_job INDEXED BY pawl_job_ready WHERE state = 0 AND "
     "queue_id = 1 AND (priority, rank) >= (0, 0) ORDER BY priority, rank LIMIT 1"),
    ("SELECT number FROM pawl_job INDEXED BY pawl_job_deadline "
     "WHERE deadline IS NOT NULL AND deadline <= 1 ORDER BY deadline, id LIMIT 1"),
};

/* A program of version 1 that still has the file open can claim and recover no more: it would end
 * jobs, and let nobody through that waits for them. */
static void a_program_of_the_older_version_is_refused(void **state)
{
    (void)state; /* none */
    sqlite3_stmt *stmts[sizeof(old_texts) / sizeof(old_texts[0])];
    struct lite_world world;
    lite_world_make(&world);
    lite_world_make_old(&world);
    sqlite3 *old = lite_connect(&world);
    for (size_t i = 0; i < sizeof(stmts) / sizeof(stmts[0]); i++) {
        assert_int_equal(sqlite3_prepare_v2(old, old_texts[i], -1, &stmts[i], NULL), SQLITE_OK);
        int rc = sqlite3_step(stmts[i]);
        assert_true(rc == SQLITE_ROW || rc == SQLITE_DONE);
        assert_int_equal(sqlite3_reset(stmts[i]), SQLITE_OK);
    }
    lite_world_open(&world);
    for (size_t i = 0; i < sizeof(stmts) / sizeof(stmts[0]); i++) {
        assert_int_equal(sqlite3_step(stmts[i]), SQLITE_ERROR);
        (void)sqlite3_finalize(stmts[i]); /* tells once more what step told */
    }
    assert_int_equal(sqlite3_close(old), SQLITE_OK);
    lite_world_end(&world);
}

static void open_in_process(struct lite_world *world, int gate)
{
    char byte;
    pawl_err err = {0};
    while (read(gate, &byte, 1) > 0) {
    } /* until all are there */
    world->options.call_timeout_ms = 30000;
    pawl_code code = lite_world_try_open(world, &err);
    if (code != PAWL_OK)
        (void)fprintf(stderr, "# %s\n", err.text);
    lite_world_close(world);
    _exit(code == PAWL_OK ? 0 : 1);
}

/* Several processes open it at once: one of them brings it up to date. */
static void an_older_file_is_brought_up_to_date_once(void **state)
{
    (void)state; /* none */
    struct lite_world world;
    int gate[2];
    pid_t openers[OPENERS];
    lite_world_make(&world);
    lite_world_make_old(&world);
    assert_int_equal(pipe(gate), 0);
    for (int i = 0; i < OPENERS; i++) {
        openers[i] = fork();
        if (openers[i] == 0) {
            (void)close(gate[1]);
            open_in_process(&world, gate[0]);
        }
    }
    assert_int_equal(close(gate[1]), 0); /* go */
    for (int i = 0; i < OPENERS; i++) {
        int status = 1;
        assert_int_equal(waitpid(openers[i], &status, 0), openers[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(close(gate[0]), 0);
    lite_check(&world);
    lite_world_open(&world);
    finish_next(&world, 7);
    lite_world_end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_of_an_older_file_go_on),
        cmocka_unit_test(an_older_file_gets_keys_fences_and_bounds),
        cmocka_unit_test(an_older_file_becomes_like_a_new_one),
        cmocka_unit_test(a_program_of_the_older_version_is_refused),
        cmocka_unit_test(an_older_file_is_brought_up_to_date_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

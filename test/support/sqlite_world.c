/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * sqlite_world.c - SQLite stores for tests.
 * Owns:  the file, the clock and the random source of each; what must hold between its tables.
 * Never: changes the file behind the store's back, but where a test asks for it.
 */
#include "support/sqlite_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define STORY_BEGINS_US INT64_C(1700000000000000)
#define OLD_SQL_MAX     100000

void lite_world_make(struct lite_world *world)
{
    memset(world, 0, sizeof(*world));
    assert_true(scratch_make(&world->scratch));
    world->manual.wall = (pawl_wall){STORY_BEGINS_US};
    world->manual.mono = (pawl_mono){1};
    world->clock = pawli_manual_clock_as_clock(&world->manual);
    world->seeded.state = 1;
    world->random = pawli_seeded_as_random(&world->seeded);
    pawl_sqlite_options_init(&world->options);
    world->options.path = world->scratch.path;
    world->options.clock = &world->clock;
    world->options.random = &world->random;
}

void lite_world_make_old(const struct lite_world *world)
{
    static char sql[OLD_SQL_MAX];
    FILE *file = fopen(LITE_OLD_SQL, "r");
    assert_non_null(file);
    size_t len = fread(sql, 1, sizeof(sql), file);
    assert_int_equal(fclose(file), 0);
    assert_true(len > 0 && len < sizeof(sql));
    sql[len] = '\0';
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(world->scratch.path, &db), SQLITE_OK);
    (void)lite_run(db, sql);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

pawl_code lite_world_try_open(struct lite_world *world, pawl_err *err)
{
    pawl_code code = pawl_sqlite_new(&world->options, &world->sqlite, err);
    if (code == PAWL_OK)
        code = pawl_sqlite_open(world->sqlite, &world->store, err);
    if (code != PAWL_OK)
        lite_world_close(world);
    return code;
}

void lite_world_open(struct lite_world *world)
{
    pawl_err err;
    if (lite_world_try_open(world, &err) != PAWL_OK)
        fail_msg("%s", err.text);
}

void lite_world_close(struct lite_world *world)
{
    pawl_store_close(world->store);
    pawl_sqlite_free(world->sqlite);
    world->store = NULL;
    world->sqlite = NULL;
}

void lite_world_end(struct lite_world *world)
{
    lite_world_close(world);
    scratch_remove(&world->scratch);
}

pawl_store *lite_world_handle(struct lite_world *world)
{
    pawl_store *store = NULL;
    assert_int_equal(pawl_sqlite_open(world->sqlite, &store, NULL), PAWL_OK);
    return store;
}

sqlite3 *lite_connect(const struct lite_world *world)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(world->scratch.path, &db), SQLITE_OK);
    /* Not to checkpoint beside the store: see the store's checkpoint.c. */
    assert_int_equal(sqlite3_wal_autocheckpoint(db, 0), SQLITE_OK);
    assert_int_equal(sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *)NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_busy_timeout(db, 10000), SQLITE_OK);
    return db;
}

static int keep_number(void *user, int columns, char **values, char **names)
{
    (void)columns, (void)names; /* the first one is asked for */
    if (values[0] != NULL)
        *(int64_t *)user = strtoll(values[0], NULL, 10);
    return 0;
}

int64_t lite_run(sqlite3 *db, const char *sql)
{
    int64_t number = 0;
    char *message = NULL;
    if (sqlite3_exec(db, sql, keep_number, &number, &message) != SQLITE_OK)
        fail_msg("%s: %s", sql, message);
    return number;
}

int64_t lite_ask(const struct lite_world *world, const char *sql)
{
    sqlite3 *db = lite_connect(world);
    int64_t number = lite_run(db, sql);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return number;
}

/* Each counts what must not be. */
static const char *const wrongs[] = {
    "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'",
    /* Q-ONE-STATE: no job is live and ended */
    "SELECT count(*) FROM pawl_job JOIN pawl_ended USING (id)",
    /* a ledger without gaps, and none of unknown jobs */
    "SELECT count(*) FROM (SELECT id, attempts FROM pawl_job UNION ALL SELECT id, attempts FROM "
    "pawl_ended) AS j WHERE attempts <> (SELECT count(*) FROM pawl_attempt AS a WHERE a.id = j.id) "
    "OR attempts <> (SELECT coalesce(max(attempt_no), 0) FROM pawl_attempt AS a WHERE a.id = j.id)",
    "SELECT count(*) FROM pawl_attempt WHERE id NOT IN (SELECT id FROM pawl_job) AND id NOT IN "
    "(SELECT id FROM pawl_ended)",
    /* payloads: of live and failed jobs, and no others */
    "SELECT count(*) FROM pawl_payload WHERE number NOT IN (SELECT number FROM pawl_job) AND "
    "number "
    "NOT IN (SELECT number FROM pawl_ended WHERE state = 3 AND is_discarded = 0)",
    "SELECT count(*) FROM (SELECT number, payload_len FROM pawl_job UNION ALL SELECT number, "
    "payload_len FROM pawl_ended WHERE state = 3 AND is_discarded = 0) AS j WHERE payload_len > 0 "
    "AND NOT EXISTS (SELECT 1 FROM pawl_payload AS p WHERE p.number = j.number AND "
    "length(p.bytes) = j.payload_len)",
    "SELECT count(*) FROM pawl_payload WHERE length(bytes) = 0 AND headers IS NULL",
    /* queues are there, positions were drawn, nothing is left behind */
    "SELECT count(*) FROM pawl_job WHERE queue_id NOT IN (SELECT queue_id FROM pawl_queue)",
    "SELECT count(*) FROM pawl_ended WHERE queue_id NOT IN (SELECT queue_id FROM pawl_queue)",
    "SELECT count(*) FROM pawl_job WHERE max(number, position) > (SELECT value FROM pawl_meta "
    "WHERE name = 'position')",
    /* a key with live jobs has one first job, which came before all that wait; and nobody waits
     * for no key (S6) */
    "SELECT count(*) FROM pawl_job WHERE ordering_key IS NOT NULL GROUP BY queue_id, ordering_key "
    "HAVING count(*) FILTER (WHERE is_waiting = 0) <> 1 OR min(key_seq) <> "
    "min(key_seq) FILTER (WHERE is_waiting = 0) LIMIT 1",
    "SELECT count(*) FROM pawl_job WHERE (ordering_key IS NULL) <> (key_seq IS NULL) OR "
    "(is_waiting = 1 AND (state <> 0 OR ordering_key IS NULL)) OR "
    "(fence IS NOT NULL) <> (state = 1 AND ordering_key IS NOT NULL)",
    "SELECT count(*) FROM pawl_job WHERE key_seq > (SELECT value FROM pawl_meta "
    "WHERE name = 'position')",
    "SELECT count(*) FROM pawl_job WHERE fence > (SELECT value FROM pawl_meta "
    "WHERE name = 'fence')",
    "SELECT count(*) FROM pawl_meta WHERE name = 'pruning' AND value <> 0",
    "SELECT count(*) FROM pawl_draft",
};

void lite_check(const struct lite_world *world)
{
    sqlite3 *db = lite_connect(world);
    for (size_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++)
        if (lite_run(db, wrongs[i]) != 0)
            fail_msg("this finds something: %s", wrongs[i]);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* ---- short verbs */

pawl_id lite_put(struct lite_world *world, const char *queue)
{
    pawl_enqueue_row row;
    pawl_enqueued enqueued;
    pawl_err err = {0};
    pawl_enqueue_init(&row);
    row.queue = queue;
    row.payload = "payload";
    row.payload_len = 7;
    if (pawl_enqueue(world->store, &row, 1, &enqueued, &err) != PAWL_OK)
        fail_msg("%s", err.text);
    assert_int_equal(enqueued.code, PAWL_OK);
    return enqueued.id;
}

size_t lite_take(struct lite_world *world, const char *queue, pawl_job *ret_jobs, size_t jobs_max)
{
    pawl_claim_line line = {
        .queue = queue, .jobs_max = (int64_t)jobs_max, .lease_ms = PAWL_DEFAULT};
    pawl_claim_args args = {
        .worker = LITE_WORKER, .lines = &line, .lines_count = 1, .bytes_max = PAWL_DEFAULT};
    size_t count = 0;
    pawl_err err = {0};
    if (pawl_claim(world->store, &args, ret_jobs, jobs_max, &count, &err) != PAWL_OK)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < count; i++) {
        pawl_job kept = ret_jobs[i];
        kept.payload = NULL;
        pawl_job_clear(&ret_jobs[i]);
        ret_jobs[i] = kept;
    }
    return count;
}

pawl_job lite_take_one(struct lite_world *world, const char *queue)
{
    pawl_job job;
    assert_int_equal(lite_take(world, queue, &job, 1), 1);
    return job;
}

pawl_settled lite_settle(struct lite_world *world, const pawl_job *job, pawl_settle_action action)
{
    pawl_settle_row row;
    pawl_settled settled;
    pawl_err err = {0};
    pawl_settle_init(&row);
    row.lease = (pawl_lease){job->id, job->token, job->lease_version, job->place};
    row.action = action;
    row.delay_ms = 0;
    if (pawl_settle(world->store, LITE_WORKER, &row, 1, &settled, &err) != PAWL_OK)
        fail_msg("%s", err.text);
    return settled;
}

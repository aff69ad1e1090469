/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * store_sqlite_test.c - the SQLite store's file: where it is, whose it is, what is told when it
 * cannot be used, and what other programs see in it.
 * Owns:  the cases about files, options, locks of others, hints, and the ledger's guards.
 * Never: looks at what the verbs do to jobs: the suite does.
 */
#include "support/sqlite_world.h"

#include "base/text.h"
#include "store/sqlite/sqlite.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define NOBODY 65534

static void expect_refused(struct lite_world *world, pawl_code code, const char *part)
{
    pawl_err err = {0};
    assert_int_equal(lite_world_try_open(world, &err), code);
    if (strstr(err.text, part) == NULL || strstr(err.text, "pawl.db") == NULL)
        fail_msg("\"%s\" does not tell the file and \"%s\"", err.text, part);
}

static void make_file(const struct lite_world *world, const char *sql)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open(world->scratch.path, &db), SQLITE_OK);
    (void)lite_run(db, sql);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* ---- what is left in it */

/* Headers may be secrets: they go with the payload, also where that is empty. */
static void headers_of_jobs_that_are_done_go(void **state)
{
    (void)state; /* none */
    struct lite_world world;
    static const char *const payloads[] = {"", "bytes"};
    lite_world_make(&world);
    lite_world_open(&world);
    for (size_t i = 0; i < 4; i++) {
        pawl_enqueue_row row;
        pawl_enqueued result;
        pawl_changed changed;
        pawl_enqueue_init(&row);
        row.queue = "mail";
        row.payload = payloads[i % 2];
        row.payload_len = strlen(payloads[i % 2]);
        row.headers = "secret: swordfish\n";
        assert_int_equal(pawl_enqueue(world.store, &row, 1, &result, NULL), PAWL_OK);
        assert_int_equal(lite_ask(&world, "SELECT count(headers) FROM pawl_payload"), 1);
        pawl_job job = lite_take_one(&world, "mail");
        assert_int_equal(lite_settle(&world, &job, i < 2 ? PAWL_SUCCEED : PAWL_FAIL).code, PAWL_OK);
        assert_int_equal(lite_ask(&world, "SELECT count(*) FROM pawl_payload"), i < 2 ? 0 : 1);
        if (i >= 2)
            assert_int_equal(pawl_discard(world.store, &result.id, 1, &changed, NULL), PAWL_OK);
        assert_int_equal(lite_ask(&world, "SELECT count(*) FROM pawl_payload"), 0);
    }
    lite_check(&world);
    lite_world_end(&world);
}

/* ---- whose file it is */

static void a_file_of_a_newer_pawl_is_left_alone(void **state)
{
    (void)state; /* none */
    struct lite_world world;
    lite_world_make(&world);
    lite_world_open(&world);
    pawl_id id = lite_put(&world, "mail");
    lite_world_close(&world);
    (void)lite_ask(&world, "UPDATE pawl_meta SET value = 3 WHERE name = 'version'");
    expect_refused(&world, PAWL_INVALID, "newer Pawl (schema 3");
    (void)lite_ask(&world, "UPDATE pawl_meta SET value = 2 WHERE name = 'version'");
    lite_world_open(&world);
    pawl_job job = lite_take_one(&world, "mail");
    assert_int_equal(pawl_id_compare(&job.id, &id), 0);
    lite_world_end(&world);
}

static void a_file_that_is_no_database_is_left_alone(void **state)
{
    (void)state; /* none */
    struct lite_world world;
    char text[64] = {0};
    lite_world_make(&world);
    FILE *file = fopen(world.scratch.path, "w");
    assert_non_null(file);
    (void)fprintf(file, "These are the accounts of my bakery, 2019.\n");
    assert_int_equal(fclose(file), 0);
    expect_refused(&world, PAWL_INVALID, "is not a SQLite database");
    file = fopen(world.scratch.path, "r");
    assert_non_null(fgets(text, sizeof(text), file));
    assert_string_equal(text, "These are the accounts of my bakery, 2019.\n");
    assert_int_equal(fclose(file), 0);
    lite_world_end(&world);
}

static void tables_of_our_names_that_are_not_ours_are_left_alone(void **state)
{
    (void)state; /* none */
    static const char *const others[] = {
        "CREATE TABLE pawl_job (foot TEXT); INSERT INTO pawl_job VALUES ('left')",
        "CREATE TABLE pawl_meta (paws INTEGER); INSERT INTO pawl_meta VALUES (4)",
        "CREATE TABLE pawl_meta (name TEXT, value INTEGER)",
        "CREATE TABLE pawl_meta (name, value); INSERT INTO pawl_meta VALUES ('version', 'x')",
        "CREATE VIEW pawl_meta AS SELECT 'version' AS name, 'x' AS value",
    };
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        struct lite_world world;
        lite_world_make(&world);
        make_file(&world, others[i]);
        expect_refused(&world, PAWL_INVALID, "not Pawl's");
        assert_int_equal(lite_ask(&world, "SELECT count(*) FROM sqlite_schema"), 1);
        lite_world_end(&world);
    }
}

/* An application's own file stays its own: tables, application_id and user_version. */
static void an_application_shares_its_file(void **state)
{
    (void)state; /* none */
    struct lite_world world;
    lite_world_make(&world);
    make_file(&world, "PRAGMA application_id = 4711; PRAGMA user_version = 12; "
                      "CREATE TABLE orders (id INTEGER PRIMARY KEY, text TEXT); "
                      "INSERT INTO orders VALUES (1, 'bread')");
    lite_world_open(&world);
    lite_put(&world, "mail");
    assert_int_equal(lite_ask(&world, "PRAGMA application_id"), 4711);
    assert_int_equal(lite_ask(&world, "PRAGMA user_version"), 12);
    assert_int_equal(lite_ask(&world, "SELECT count(*) FROM orders WHERE text = 'bread'"), 1);
    assert_int_equal(lite_ask(&world, "SELECT count(*) FROM sqlite_schema WHERE name NOT LIKE "
                                      "'pawl\\_%' ESCAPE '\\' AND name NOT LIKE "
                                      "'sqlite\\_%' ESCAPE '\\'"),
                     1);
    lite_world_end(&world);
}

static void another_text_encoding_is_refused(void **state)
{
    (void)state; /* none */
    struct lite_world world;
    lite_world_make(&world);
    make_file(&world, "PRAGMA encoding = 'UTF-16'; CREATE TABLE orders (id INTEGER)");
    expect_refused(&world, PAWL_INVALID, "not UTF-8");
    lite_world_end(&world);
}

static void a_damaged_file_is_told(void **state)
{
    (void)state; /* none */
    struct lite_world world;
    pawl_err err = {0};
    pawl_stats stats;
    size_t count;
    lite_world_make(&world);
    lite_world_open(&world);
    lite_put(&world, "mail");
    lite_world_close(&world); /* all of it is in the file now, and the log not needed */
    char log[SCRATCH_PATH_MAX + 32];
    (void)snprintf(log, sizeof(log), "%s-wal", world.scratch.path);
    assert_int_equal(unlink(log), 0);
    struct stat status;
    assert_int_equal(stat(world.scratch.path, &status), 0);
    int fd = open(world.scratch.path, O_WRONLY);
    char noise[4096];
    memset(noise, 0x5a, sizeof(noise));
    for (off_t at = 2 * 4096; at < status.st_size; at += 4096)
        assert_int_equal(pwrite(fd, noise, sizeof(noise), at), sizeof(noise));
    assert_int_equal(close(fd), 0);
    pawl_code code = lite_world_try_open(&world, &err);
    if (code == PAWL_OK)
        code = pawl_queue_stats(world.store, NULL, &stats, 1, &count, &err);
    assert_int_equal(code, PAWL_DOWN);
    assert_non_null(strstr(err.text, "is damaged"));
    assert_non_null(strstr(err.text, "backup"));
    lite_world_end(&world);
}

/* ---- where it may not be written */

/* Rights mean nothing to root: tried as somebody else. */
static int try_as_nobody(struct lite_world *world, const char *part)
{
    pid_t child = fork();
    if (child == 0) {
        pawl_err err = {0};
        if (geteuid() == 0 && (setegid(NOBODY) != 0 || seteuid(NOBODY) != 0))
            _exit(2);
        pawl_code code = lite_world_try_open(world, &err);
        bool is_right = code == PAWL_DOWN && strstr(err.text, "pawl.db") != NULL &&
                        strstr(err.text, part) != NULL;
        if (!is_right)
            (void)fprintf(stderr, "# %s: %s\n", pawl_code_name(code), err.text);
        _exit(is_right ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void a_folder_that_may_not_be_written_is_told(void **state)
{
    (void)state; /* none */
    struct lite_world world;
    lite_world_make(&world);
    assert_int_equal(chmod(world.scratch.folder, 0555), 0);
    assert_int_equal(try_as_nobody(&world, "folder"), 0);
    assert_int_equal(chmod(world.scratch.folder, 0755), 0);
    lite_world_end(&world);
}

static void a_file_that_may_not_be_written_is_told(void **state)
{
    (void)state; /* none */
    struct lite_world world;
    lite_world_make(&world);
    lite_world_open(&world);
    pawl_id id = lite_put(&world, "mail");
    lite_world_close(&world);
    assert_int_equal(chmod(world.scratch.folder, 0777), 0);
    assert_int_equal(chmod(world.scratch.path, 0444), 0);
    char log[SCRATCH_PATH_MAX + 32];
    (void)snprintf(log, sizeof(log), "%s-wal", world.scratch.path);
    assert_int_equal(chmod(log, 0444), 0);
    (void)snprintf(log, sizeof(log), "%s-shm", world.scratch.path);
    assert_int_equal(chmod(log, 0444), 0);
    assert_int_equal(try_as_nobody(&world, "right to write"), 0);
    assert_int_equal(chmod(world.scratch.path, 0644), 0);
    lite_world_open(&world);
    pawl_job job = lite_take_one(&world, "mail");
    assert_int_equal(pawl_id_compare(&job.id, &id), 0);
    lite_world_end(&world);
}

static void a_folder_that_is_not_there_is_told(void **state)
{
    (void)state; /* none */
    struct lite_world world;
    char path[SCRATCH_PATH_MAX + 64];
    lite_world_make(&world);
    (void)snprintf(path, sizeof(path), "%s/missing/pawl.db", world.scratch.folder);
    world.options.path = path;
    expect_refused(&world, PAWL_DOWN, "its folder must exist");
    lite_world_end(&world);
}

/* A full disk: nothing was done, it is said so, and with room it goes on. */
static void a_full_disk_loses_nothing(void **state)
{
    (void)state; /* none */
    struct lite_world world;
    pawl_enqueue_row row;
    pawl_enqueued enqueued;
    pawl_err err = {0};
    static char payload[200000];
    lite_world_make(&world);
    lite_world_open(&world);
    pawl_id id = lite_put(&world, "mail");
    sqlite3 *db = world.sqlite->writer.db;
    int64_t pages = lite_run(db, "PRAGMA page_count");
    char sql[64];
    (void)snprintf(sql, sizeof(sql), "PRAGMA max_page_count = %lld", (long long)pages + 5);
    (void)lite_run(db, sql);
    pawl_enqueue_init(&row);
    row.queue = "mail";
    row.payload = payload;
    row.payload_len = sizeof(payload);
    assert_int_equal(pawl_enqueue(world.store, &row, 1, &enqueued, &err), PAWL_DOWN);
    assert_non_null(strstr(err.text, "disk is full"));
    assert_non_null(strstr(err.text, "pawl.db"));
    lite_check(&world);
    assert_int_equal(lite_ask(&world, "SELECT count(*) FROM pawl_job"), 1);
    (void)lite_run(db, "PRAGMA max_page_count = 100000");
    assert_int_equal(pawl_enqueue(world.store, &row, 1, &enqueued, &err), PAWL_OK);
    pawl_job job = lite_take_one(&world, "mail");
    assert_int_equal(pawl_id_compare(&job.id, &id), 0);
    lite_world_end(&world);
}

/* ---- where it is */

static void check_default(const char *wanted_folder, const char *wanted)
{
    pawl_sqlite *sqlite = NULL;
    pawl_err err = {0};
    if (pawl_sqlite_new(NULL, &sqlite, &err) != PAWL_OK)
        fail_msg("%s", err.text);
    pawl_sqlite_free(sqlite);
    struct stat status;
    assert_int_equal(stat(wanted, &status), 0);
    assert_int_equal(stat(wanted_folder, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0700); /* payloads are nobody else's business */
}

static void remove_default(const char *folder)
{
    struct scratch inner = {0};
    assert_true(pawli_text_copy(inner.folder, sizeof(inner.folder), folder));
    scratch_remove(&inner);
}

static void without_a_path_it_is_a_state_file(void **state)
{
    (void)state; /* none */
    struct scratch scratch;
    char folder[SCRATCH_PATH_MAX + 64], wanted[SCRATCH_PATH_MAX + 128];
    assert_true(scratch_make(&scratch));
    assert_int_equal(setenv("XDG_STATE_HOME", scratch.folder, 1), 0);
    (void)snprintf(folder, sizeof(folder), "%s/pawl", scratch.folder);
    (void)snprintf(wanted, sizeof(wanted), "%s/pawl.db", folder);
    check_default(folder, wanted);
    remove_default(folder);

    assert_int_equal(setenv("XDG_STATE_HOME", "relative/is/ignored", 1), 0);
    assert_int_equal(setenv("HOME", scratch.folder, 1), 0);
    (void)snprintf(folder, sizeof(folder), "%s/.local/state/pawl", scratch.folder);
    (void)snprintf(wanted, sizeof(wanted), "%s/pawl.db", folder);
    check_default(folder, wanted);
    remove_default(folder);
    for (int i = 0; i < 2; i++) {
        *strrchr(folder, '/') = '\0';
        assert_int_equal(rmdir(folder), 0);
    }

    pawl_sqlite *sqlite = NULL;
    pawl_err err;
    assert_int_equal(unsetenv("XDG_STATE_HOME"), 0);
    assert_int_equal(setenv("HOME", "/proc/none", 1), 0);
    assert_int_equal(pawl_sqlite_new(NULL, &sqlite, &err), PAWL_DOWN);
    assert_non_null(strstr(err.text, "/proc/none"));
    assert_int_equal(unsetenv("HOME"), 0);
    assert_int_equal(pawl_sqlite_new(NULL, &sqlite, &err), PAWL_INVALID);
    assert_non_null(strstr(err.text, "HOME"));
    scratch_remove(&scratch);
}

/* Who only opens a file makes none, nor a folder; and finds one that is there. */
static void only_opened(void **state)
{
    (void)state; /* none */
    struct lite_world world;
    pawl_err err;
    pawl_sqlite *sqlite = NULL;
    pawl_sqlite_options options;
    char state_folder[SCRATCH_PATH_MAX + 64];
    lite_world_make(&world);
    world.options.is_only_opened = true;
    assert_int_equal(lite_world_try_open(&world, &err), PAWL_DOWN);
    assert_non_null(strstr(err.text, world.options.path));
    assert_non_null(strstr(err.text, "there is no such file"));
    assert_int_equal(access(world.options.path, F_OK), -1);
    pawl_sqlite_options_init(&options);
    options.is_only_opened = true;
    assert_int_equal(setenv("XDG_STATE_HOME", world.scratch.folder, 1), 0);
    assert_int_equal(pawl_sqlite_new(&options, &sqlite, &err), PAWL_DOWN);
    (void)snprintf(state_folder, sizeof(state_folder), "%s/pawl", world.scratch.folder);
    assert_int_equal(access(state_folder, F_OK), -1);
    assert_int_equal(unsetenv("XDG_STATE_HOME"), 0);
    world.options.is_only_opened = false;
    lite_world_open(&world);
    lite_world_close(&world);
    world.options.is_only_opened = true;
    lite_world_open(&world);
    lite_world_close(&world);
    lite_world_end(&world);
}

/* Nor does it put tables into one that has none of ours, or change its journal. */
static void only_opened_without_tables(void **state)
{
    (void)state;                                                  /* none */
    static const char *const made[] = {"PRAGMA user_version = 0", /* an empty file */
                                       "CREATE TABLE theirs (x)"};
    struct lite_world world;
    lite_world_make(&world);
    for (size_t i = 0; i < 2; i++) {
        struct stat before;
        struct stat after;
        make_file(&world, made[i]);
        assert_int_equal(stat(world.scratch.path, &before), 0);
        world.options.is_only_opened = true;
        expect_refused(&world, PAWL_INVALID, "none of Pawl's tables; `pawl enqueue`");
        assert_int_equal(stat(world.scratch.path, &after), 0);
        assert_int_equal(after.st_size, before.st_size);
        assert_memory_equal(&after.st_mtim, &before.st_mtim, sizeof(after.st_mtim));
    }
    world.options.is_only_opened = false; /* who puts something in makes them */
    lite_world_open(&world);
    lite_world_close(&world);
    lite_world_end(&world);
}

/* What SQLite would take for something else than a file is a file, or refused. */
static void odd_paths(void **state)
{
    (void)state; /* none */
    struct lite_world world;
    pawl_err err;
    char before[1024];
    lite_world_make(&world);
    assert_non_null(getcwd(before, sizeof(before)));
    assert_int_equal(chdir(world.scratch.folder), 0);
    world.options.path = "file:odd.db?mode=memory";
    lite_world_open(&world);
    assert_int_equal(access("file:odd.db?mode=memory", R_OK), 0);
    lite_world_close(&world);
    world.options.path = ":memory:";
    assert_int_equal(lite_world_try_open(&world, &err), PAWL_INVALID);
    world.options.path = "";
    assert_int_equal(lite_world_try_open(&world, &err), PAWL_INVALID);
    assert_int_equal(chdir(before), 0);
    lite_world_end(&world);
}

static void options_are_checked(void **state)
{
    (void)state; /* none */
    struct lite_world world;
    pawl_err err;
    static const pawl_clock no_clock;
    static const pawl_random no_random;
    lite_world_make(&world);
    const pawl_sqlite_options good = world.options;
    const struct {
        pawl_sqlite_options options;
        const char *part;
    } bad[] = {
        {{good.path, &no_clock, good.random, 1, 1, false}, "clock"},
        {{good.path, NULL, good.random, 1, 1, false}, "clock"},
        {{good.path, good.clock, &no_random, 1, 1, false}, "random"},
        {{good.path, good.clock, NULL, 1, 1, false}, "random"},
        {{good.path, good.clock, good.random, 0, 1, false}, "payload_max is 0"},
        {{good.path, good.clock, good.random, (INT64_C(256) << 20) + 1, 1, false}, "payload_max"},
        {{good.path, good.clock, good.random, 1, 0, false}, "call_timeout_ms is 0"},
        {{good.path, good.clock, good.random, 1, 86400001, false}, "call_timeout_ms"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        world.options = bad[i].options;
        assert_int_equal(lite_world_try_open(&world, &err), PAWL_INVALID);
        assert_non_null(strstr(err.text, bad[i].part));
    }
    assert_int_equal(pawl_sqlite_new(&good, NULL, &err), PAWL_INVALID);
    assert_int_equal(pawl_sqlite_open(NULL, &world.store, &err), PAWL_INVALID);
    pawl_sqlite_free(NULL);
    pawl_sqlite_options_init(NULL);
    world.options = good;
    lite_world_open(&world);
    assert_int_equal(pawl_sqlite_open(world.sqlite, NULL, &err), PAWL_INVALID);
    lite_world_end(&world);
}

/* Tokens are like passwords: the file is its user's, until he says otherwise. */
static void a_new_file_is_private(void **state)
{
    (void)state; /* none */
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    struct lite_world world;
    mode_t before = umask(0);
    lite_world_make(&world);
    lite_world_open(&world);
    lite_put(&world, "mail");
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        char path[SCRATCH_PATH_MAX + 32];
        struct stat status;
        (void)snprintf(path, sizeof(path), "%s%s", world.scratch.path, suffixes[i]);
        assert_int_equal(stat(path, &status), 0);
        assert_int_equal(status.st_mode & 0777, 0600);
    }
    (void)umask(before);
    lite_world_end(&world);
}

/* ---- what is kept in the file agrees with what pawl.h says */

static void the_defaults_of_a_queue_are_those_of_the_settings(void **state)
{
    (void)state; /* none */
    struct lite_world world;
    pawl_queue_settings told, wanted;
    lite_world_make(&world);
    lite_world_open(&world);
    lite_put(&world, "mail"); /* makes the queue's row, by the defaults of its columns */
    memset(&told, 0, sizeof(told));
    memset(&wanted, 0, sizeof(wanted));
    assert_int_equal(pawl_queue_get(world.store, "mail", &told, NULL), PAWL_OK);
    pawl_queue_settings_init(&wanted);
    assert_int_equal(told.lease_ms, wanted.lease_ms);
    assert_int_equal(told.execution_timeout_ms, wanted.execution_timeout_ms);
    assert_int_equal(told.max_retries, wanted.max_retries);
    assert_int_equal(told.max_lost_leases, wanted.max_lost_leases);
    assert_int_equal(told.backoff_base_ms, wanted.backoff_base_ms);
    assert_int_equal(told.backoff_max_ms, wanted.backoff_max_ms);
    assert_int_equal(told.keep_succeeded_ms, wanted.keep_succeeded_ms);
    assert_int_equal(told.keep_failed_ms, wanted.keep_failed_ms);
    assert_int_equal(told.is_paused, wanted.is_paused);
    lite_world_end(&world);
}

/* OL-APPEND-ONLY: by every verb that SQL has. OL-FIELDS, OL-ATOMIC */
static void the_ledger_is_append_only(void **state)
{
    (void)state; /* none */
    static const char *const forbidden[] = {
        "UPDATE pawl_attempt SET outcome = 0",
        "UPDATE pawl_attempt SET error_text = 'no'",
        "UPDATE OR REPLACE pawl_attempt SET attempt_no = 1",
        "DELETE FROM pawl_attempt",
        "DELETE FROM pawl_attempt WHERE attempt_no = 1",
        "REPLACE INTO pawl_attempt SELECT * FROM pawl_attempt",
        "INSERT OR REPLACE INTO pawl_attempt SELECT * FROM pawl_attempt",
        ("INSERT INTO pawl_attempt SELECT * FROM pawl_attempt WHERE true ON CONFLICT DO UPDATE SET "
         "outcome = 0"),
        "INSERT INTO pawl_attempt SELECT * FROM pawl_attempt",
    };
    struct lite_world world;
    lite_world_make(&world);
    lite_world_open(&world);
    lite_put(&world, "mail");
    pawl_job job = lite_take_one(&world, "mail");
    assert_int_equal(lite_ask(&world, "SELECT count(*) FROM pawl_job WHERE claimed_by = 'w1' AND "
                                      "length(lease_token) = 16 AND lease_expires_at > claimed_at "
                                      "AND next_attempt_at > 0"),
                     1);
    assert_int_equal(lite_settle(&world, &job, PAWL_SUCCEED).code, PAWL_OK);
    assert_int_equal(lite_ask(&world, "SELECT count(*) FROM pawl_job"), 0);
    sqlite3 *db = lite_connect(&world);
    for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++) {
        char *message = NULL;
        if (sqlite3_exec(db, forbidden[i], NULL, NULL, &message) == SQLITE_OK)
            fail_msg("%s: was not refused", forbidden[i]);
        assert_non_null(strstr(message, "append-only"));
        sqlite3_free(message);
    }
    assert_int_equal(lite_run(db, "SELECT count(*) FROM pawl_attempt WHERE outcome = 0"), 1);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    size_t count;
    pawli_manual_clock_turn_ms(&world.manual, INT64_C(8) * 24 * 3600 * 1000);
    assert_int_equal(pawl_prune(world.store, 1, &count, NULL), PAWL_OK);
    assert_int_equal(count, 1);
    assert_int_equal(lite_ask(&world, "SELECT count(*) FROM pawl_attempt"), 0);
    lite_check(&world);
    lite_world_end(&world);
}

/* Rows that no rule could make cannot be written; and where somebody gets round that, they are not
 * worked on. */
static void odd_rows_are_refused(void **state)
{
    (void)state; /* none */
    static const char *const odd[] = {
        "UPDATE pawl_job SET lease_token = NULL",
        "UPDATE pawl_job SET lease_token = x'00'",
        "UPDATE pawl_job SET claimed_by = NULL",
        "UPDATE pawl_job SET lease_expires_at = NULL, deadline = NULL",
        "UPDATE pawl_job SET state = 2",
        "UPDATE pawl_job SET state = 0",
        "UPDATE pawl_job SET attempts = -1",
        "UPDATE pawl_job SET lease_version = 0",
        "UPDATE pawl_job SET lease_version = 'one'",
        "UPDATE pawl_job SET id = x'01'",
        "UPDATE pawl_job SET deadline = 1",
        "UPDATE pawl_job SET priority = 10",
    };
    struct lite_world world;
    pawl_err err = {0};
    lite_world_make(&world);
    lite_world_open(&world);
    lite_put(&world, "mail");
    pawl_job job = lite_take_one(&world, "mail");
    sqlite3 *db = lite_connect(&world);
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
        if (sqlite3_exec(db, odd[i], NULL, NULL, NULL) == SQLITE_OK)
            fail_msg("%s: was not refused", odd[i]);
    (void)lite_run(db, "PRAGMA ignore_check_constraints = ON; "
                       "UPDATE pawl_job SET lease_token = x'00'");
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    pawl_settle_row row;
    pawl_settled settled;
    pawl_settle_init(&row);
    row.lease = (pawl_lease){job.id, job.token, job.lease_version, job.place};
    assert_int_equal(pawl_settle(world.store, LITE_WORKER, &row, 1, &settled, &err), PAWL_DOWN);
    assert_non_null(strstr(err.text, "is damaged"));
    lite_world_end(&world);
}

/* ---- other processes' locks */

/* The caller is told after call_timeout_ms, and nothing was done. */
static void a_lock_of_another_is_waited_for_and_no_longer(void **state)
{
    (void)state; /* none */
    struct lite_world world;
    pawl_enqueue_row row;
    pawl_enqueued enqueued;
    pawl_err err = {0};
    lite_world_make(&world);
    world.options.call_timeout_ms = 30;
    lite_world_open(&world);
    sqlite3 *db = lite_connect(&world);
    (void)lite_run(db, "BEGIN IMMEDIATE");
    pawl_enqueue_init(&row);
    row.queue = "mail";
    assert_int_equal(pawl_enqueue(world.store, &row, 1, &enqueued, &err), PAWL_DOWN);
    assert_non_null(strstr(err.text, "call_timeout_ms is 30"));
    /* Readers do not care: they never wait for a writer. */
    pawl_stats stats;
    size_t count;
    assert_int_equal(pawl_queue_stats(world.store, NULL, &stats, 1, &count, NULL), PAWL_OK);
    assert_int_equal(count, 0);
    (void)lite_run(db, "COMMIT");
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    assert_int_equal(lite_ask(&world, "SELECT count(*) FROM pawl_job"), 0);
    assert_int_equal(pawl_enqueue(world.store, &row, 1, &enqueued, &err), PAWL_OK);
    lite_world_end(&world);
}

struct settler {
    struct lite_world *world;
    pawl_job job;
    pthread_t thread;
    pawl_settled settled;
};

static void *settle_in_thread(void *user)
{
    struct settler *settler = user;
    settler->settled = lite_settle(settler->world, &settler->job, PAWL_SUCCEED);
    return NULL;
}

/* A clock that says when it was asked first, and that a lock may keep others from asking. */
struct shared_clock {
    pthread_mutex_t mutex;
    pawl_wall now;
};

static pawl_wall shared_wall(void *user)
{
    struct shared_clock *shared = user;
    (void)pthread_mutex_lock(&shared->mutex);
    pawl_wall now = shared->now;
    (void)pthread_mutex_unlock(&shared->mutex);
    return now;
}

static pawl_mono shared_mono(void *user)
{
    return (pawl_mono){shared_wall(user).us};
}

/* Wait until a call of another thread is in the queue of the store, and led. */
static void wait_for_leader(pawl_sqlite *sqlite)
{
    for (bool is_led = false; !is_led;) {
        pawli_sqlite_lock(sqlite);
        is_led = sqlite->is_led;
        pawli_sqlite_unlock(sqlite);
        (void)sched_yield();
    }
}

/* RES-3: the lease ends while the settle waits for the file's lock. */
static void the_clock_is_read_after_the_lock_was_got(void **state)
{
    (void)state; /* none */
    struct lite_world world;
    struct shared_clock shared = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    lite_world_make(&world);
    shared.now = world.manual.wall;
    world.clock = (pawl_clock){.mono = shared_mono, .wall = shared_wall, .user = &shared};
    lite_world_open(&world);
    lite_put(&world, "mail");
    struct settler settler = {.world = &world, .job = lite_take_one(&world, "mail")};
    sqlite3 *db = lite_connect(&world);
    (void)lite_run(db, "BEGIN IMMEDIATE");
    assert_int_equal(pthread_create(&settler.thread, NULL, settle_in_thread, &settler), 0);
    wait_for_leader(world.sqlite);
    (void)pthread_mutex_lock(&shared.mutex);
    shared.now.us += INT64_C(30001) * 1000;
    (void)pthread_mutex_unlock(&shared.mutex);
    (void)lite_run(db, "COMMIT");
    assert_int_equal(pthread_join(settler.thread, NULL), 0);
    assert_int_equal(settler.settled.code, PAWL_STALE);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    lite_world_end(&world);
}

/* A clock that is not set answers DOWN, and nothing is done. */
static void a_clock_before_1970_is_refused(void **state)
{
    (void)state; /* none */
    struct lite_world world;
    pawl_enqueue_row row;
    pawl_enqueued enqueued;
    pawl_wall now;
    pawl_err err;
    lite_world_make(&world);
    lite_world_open(&world);
    world.manual.wall.us = 0;
    pawl_enqueue_init(&row);
    row.queue = "mail";
    assert_int_equal(pawl_enqueue(world.store, &row, 1, &enqueued, &err), PAWL_DOWN);
    assert_non_null(strstr(err.text, "1970"));
    assert_int_equal(pawl_now(world.store, &now, &err), PAWL_DOWN);
    assert_int_equal(lite_ask(&world, "SELECT count(*) FROM pawl_job"), 0);
    lite_world_end(&world);
}

/* ---- hints */

static bool has_hint(pawl_store *store, int64_t timeout_ms)
{
    bool is_hint = false;
    assert_int_equal(pawl_wait(store, timeout_ms, &is_hint, NULL), PAWL_OK);
    return is_hint;
}

/* From a handle of the same process, from another process, and from an application's own SQL. */
static void hints_come_from_everywhere(void **state)
{
    (void)state; /* none */
    struct lite_world world, other;
    lite_world_make(&world);
    lite_world_open(&world);
    other = world; /* the same file, opened once more: as another process would */
    other.sqlite = NULL;
    other.store = NULL;
    lite_world_open(&other);
    (void)has_hint(world.store, 60); /* whatever was there before */
    assert_false(has_hint(world.store, 1));

    pawl_store *second = lite_world_handle(&world);
    (void)has_hint(second, 1);
    lite_put(&world, "mail");
    assert_true(has_hint(second, 60000));
    assert_true(has_hint(other.store, 60000));
    assert_false(has_hint(other.store, 60)); /* once */

    /* What makes no job claimable is no hint. */
    pawl_worker_seen seen = {.name = "w", .host = "h", .version = "1"};
    assert_int_equal(pawl_worker_seen_now(world.store, &seen, NULL), PAWL_OK);
    assert_false(has_hint(other.store, 60));

    (void)has_hint(world.store, 1);
    (void)lite_ask(&world, "INSERT INTO pawl_enqueue (queue, payload) VALUES ('mail', 'x')");
    assert_true(has_hint(world.store, 60000));
    pawl_store_close(second);
    lite_world_close(&other);
    lite_world_end(&world);
}

static pawl_id put_keyed(struct lite_world *world)
{
    pawl_enqueue_row row;
    pawl_enqueued enqueued;
    pawl_enqueue_init(&row);
    row.queue = "mail";
    row.ordering_key = "k";
    assert_int_equal(pawl_enqueue(world->store, &row, 1, &enqueued, NULL), PAWL_OK);
    return enqueued.id;
}

/* What makes a job claimable without putting any: the end of the first of its key, room under a
 * bound, other settings, and the end of a pause. All of it also reaches other processes. */
static void hints_come_where_nothing_was_put(void **state)
{
    (void)state; /* none */
    struct lite_world world, other;
    pawl_queue_settings settings;
    lite_world_make(&world);
    lite_world_open(&world);
    other = world;
    other.sqlite = NULL;
    other.store = NULL;
    lite_world_open(&other);
    (void)put_keyed(&world);
    (void)put_keyed(&world);
    pawl_job job = lite_take_one(&world, "mail");
    (void)has_hint(other.store, 60);
    assert_int_equal(lite_settle(&world, &job, PAWL_SUCCEED).code, PAWL_OK);
    assert_true(has_hint(other.store, 60000));
    job = lite_take_one(&world, "mail");
    assert_int_equal(lite_settle(&world, &job, PAWL_SUCCEED).code, PAWL_OK);
    assert_false(has_hint(other.store, 60)); /* nobody was behind it */

    pawl_queue_settings_init(&settings);
    settings.max_in_flight = 1;
    assert_int_equal(pawl_queue_set(world.store, "mail", &settings, NULL), PAWL_OK);
    assert_true(has_hint(other.store, 60000));
    (void)lite_put(&world, "mail");
    (void)lite_put(&world, "mail");
    job = lite_take_one(&world, "mail");
    (void)has_hint(other.store, 60);
    assert_int_equal(lite_settle(&world, &job, PAWL_SUCCEED).code, PAWL_OK);
    assert_true(has_hint(other.store, 60000));
    job = lite_take_one(&world, "mail");
    assert_int_equal(lite_settle(&world, &job, PAWL_SUCCEED).code, PAWL_OK);
    assert_false(has_hint(other.store, 60)); /* there is room, and nobody to use it */

    assert_int_equal(pawl_queue_pause(world.store, "mail", true, NULL), PAWL_OK);
    assert_false(has_hint(other.store, 60));
    assert_int_equal(pawl_queue_pause(world.store, "mail", false, NULL), PAWL_OK);
    assert_true(has_hint(other.store, 60000));
    lite_world_close(&other);
    lite_world_end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_of_jobs_that_are_done_go),
        cmocka_unit_test(a_file_of_a_newer_pawl_is_left_alone),
        cmocka_unit_test(a_file_that_is_no_database_is_left_alone),
        cmocka_unit_test(tables_of_our_names_that_are_not_ours_are_left_alone),
        cmocka_unit_test(an_application_shares_its_file),
        cmocka_unit_test(another_text_encoding_is_refused),
        cmocka_unit_test(a_damaged_file_is_told),
        cmocka_unit_test(a_folder_that_may_not_be_written_is_told),
        cmocka_unit_test(a_file_that_may_not_be_written_is_told),
        cmocka_unit_test(a_folder_that_is_not_there_is_told),
        cmocka_unit_test(a_full_disk_loses_nothing),
        cmocka_unit_test(without_a_path_it_is_a_state_file),
        cmocka_unit_test(only_opened),
        cmocka_unit_test(only_opened_without_tables),
        cmocka_unit_test(a_new_file_is_private),
        cmocka_unit_test(odd_paths),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(the_defaults_of_a_queue_are_those_of_the_settings),
        cmocka_unit_test(the_ledger_is_append_only),
        cmocka_unit_test(odd_rows_are_refused),
        cmocka_unit_test(a_lock_of_another_is_waited_for_and_no_longer),
        cmocka_unit_test(the_clock_is_read_after_the_lock_was_got),
        cmocka_unit_test(a_clock_before_1970_is_refused),
        cmocka_unit_test(hints_come_from_everywhere),
        cmocka_unit_test(hints_come_where_nothing_was_put),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

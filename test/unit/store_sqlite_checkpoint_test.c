/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * store_sqlite_checkpoint_test.c - the log beside the file stays short, and nobody checkpoints but
 * under both locks (S4).
 * Owns:  the cases about the log's length and about who may bring it into the file.
 * Never: waits for a size: each commit and each checkpoint is made by the test itself.
 */
#include "support/sqlite_vfs.h"
#include "support/sqlite_world.h"

#include "store/sqlite/sqlite.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define PAGE_BYTES  4096
#define FRAME_BYTES (PAGE_BYTES + 24)
#define ROUNDS      300
#define PAYLOAD     20000
/* The pages of one round are appended before anybody looks at the length. */
#define LOG_PAGES_MAX (CHECKPOINT_PAGES + 200)

static off_t size_of(const struct lite_world *world, const char *suffix)
{
    char path[SCRATCH_PATH_MAX + 32];
    struct stat status = {0};
    (void)snprintf(path, sizeof(path), "%s%s", world->scratch.path, suffix);
    return stat(path, &status) == 0 ? status.st_size : 0;
}

/* Put and take a job, with a payload that fills pages. */
static void round_of(struct lite_world *world)
{
    static char payload[PAYLOAD];
    pawl_enqueue_row row;
    pawl_enqueued enqueued;
    pawl_enqueue_init(&row);
    row.queue = "mail";
    row.payload = payload;
    row.payload_len = sizeof(payload);
    assert_int_equal(pawl_enqueue(world->store, &row, 1, &enqueued, NULL), PAWL_OK);
    pawl_job job = lite_take_one(world, "mail");
    assert_int_equal(lite_settle(world, &job, PAWL_SUCCEED).code, PAWL_OK);
}

static void run_rounds(struct lite_world *world, int count)
{
    for (int i = 0; i < count; i++)
        round_of(world);
}

static void the_log_stays_short_under_load(void **state)
{
    (void)state; /* none */
    struct lite_world world;
    lite_world_make(&world);
    lite_world_open(&world);
    for (int i = 0; i < ROUNDS; i++) {
        round_of(&world);
        assert_true(size_of(&world, "-wal") <= (off_t)LOG_PAGES_MAX * FRAME_BYTES);
    }
    lite_check(&world);
    lite_world_end(&world);
}

/* Readers that come and go do not keep the log from beginning anew; one that stays does, and once
 * it has gone the log is short again. */
static void a_long_reader_only_delays_it(void **state)
{
    (void)state; /* none */
    struct lite_world world;
    lite_world_make(&world);
    lite_world_open(&world);
    lite_put(&world, "mail");
    lite_take_one(&world, "mail");
    sqlite3 *db = lite_connect(&world);
    (void)lite_run(db, "BEGIN; SELECT count(*) FROM pawl_job");
    run_rounds(&world, ROUNDS / 2);
    off_t grown = size_of(&world, "-wal");
    assert_true(grown > (off_t)LOG_PAGES_MAX * FRAME_BYTES);
    (void)lite_run(db, "COMMIT");
    run_rounds(&world, 100); /* enough to be tried again, and to begin anew */
    assert_true(world.sqlite->wal_pages < LOG_PAGES_MAX);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    lite_world_end(&world);
}

/* ---- the lock of the file beside */

static int open_lock(const struct lite_world *world)
{
    char path[SCRATCH_PATH_MAX + 32];
    (void)snprintf(path, sizeof(path), "%s-checkpoint", world->scratch.path);
    return open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

/* Another process has the lock until it is killed. */
static pid_t start_holder(const struct lite_world *world)
{
    int ready[2];
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        (void)alarm(60); /* should its parent forget it */
        int fd = open_lock(world);
        if (fd < 0 || flock(fd, LOCK_EX) != 0 || write(ready[1], &byte, 1) != 1)
            _exit(1);
        for (;;)
            (void)pause();
    }
    assert_int_equal(close(ready[1]), 0);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(close(ready[0]), 0);
    return child;
}

static void
nobody_checkpoints_while_another_process_does_and_somebody_does_when_it_dies(void **state)
{
    (void)state; /* none */
    struct lite_world world;
    lite_world_make(&world);
    lite_world_open(&world);
    run_rounds(&world, 5);
    off_t before = size_of(&world, "");
    pid_t holder = start_holder(&world);
    run_rounds(&world, ROUNDS / 2);
    assert_true(size_of(&world, "-wal") > (off_t)LOG_PAGES_MAX * FRAME_BYTES);
    assert_int_equal(size_of(&world, ""), before); /* nothing was brought into the file */
    assert_int_equal(kill(holder, SIGKILL), 0);
    assert_int_equal(waitpid(holder, NULL, 0), holder);
    run_rounds(&world, 100);
    assert_true(size_of(&world, "") > before);
    assert_true(world.sqlite->wal_pages < LOG_PAGES_MAX);
    lite_check(&world);
    lite_world_end(&world);
}

/* Two of a process stand for two processes: their locks are those of open files. */
static void whoever_writes_keeps_the_log_short(void **state)
{
    (void)state; /* none */
    struct lite_world world, other;
    lite_world_make(&world);
    lite_world_open(&world);
    other = world;
    other.sqlite = NULL;
    other.store = NULL;
    lite_world_open(&other);
    run_rounds(&world, ROUNDS / 2); /* it has checkpointed, and idles from now on */
    for (int i = 0; i < ROUNDS / 2; i++) {
        round_of(&other);
        assert_true(size_of(&other, "-wal") <= (off_t)(LOG_PAGES_MAX + 200) * FRAME_BYTES);
    }
    lite_world_close(&other);
    lite_check(&world);
    lite_world_end(&world);
}

/* ---- the write lock */

/* Looks, from outside, whether somebody else could write while the file itself is written. */
struct onlooker {
    sqlite3 *db;
    int seen;
    int could_write;
    bool is_looking;
};

static void look(void *user)
{
    struct onlooker *onlooker = user;
    if (onlooker->is_looking)
        return; /* its own doing */
    onlooker->is_looking = true;
    onlooker->seen++;
    if (sqlite3_exec(onlooker->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK) {
        onlooker->could_write++;
        (void)sqlite3_exec(onlooker->db, "ROLLBACK", NULL, NULL, NULL);
    }
    onlooker->is_looking = false;
}

static void a_checkpoint_runs_under_the_write_lock(void **state)
{
    (void)state; /* none */
    struct lite_world world;
    struct onlooker onlooker = {0};
    lite_world_make(&world);
    lite_world_open(&world);
    onlooker.db = lite_connect(&world);
    assert_int_equal(sqlite3_busy_timeout(onlooker.db, 0), SQLITE_OK);
    vfs_watch(look, &onlooker);
    run_rounds(&world, ROUNDS / 2);
    lite_world_close(&world); /* once more at the end */
    vfs_watch(NULL, NULL);
    assert_true(onlooker.seen > 0);
    assert_int_equal(onlooker.could_write, 0);
    assert_int_equal(sqlite3_close(onlooker.db), SQLITE_OK);
    lite_world_end(&world);
}

/* No connection checkpoints by itself, neither while it writes nor when it is the last to close. */
static void connections_do_not_checkpoint_by_themselves(void **state)
{
    (void)state; /* none */
    struct lite_world world;
    lite_world_make(&world);
    lite_world_open(&world);
    run_rounds(&world, ROUNDS / 2); /* the checkpointer is open by now */
    struct connection *connections[] = {&world.sqlite->writer, &world.sqlite->checkpointer,
                                        &pawli_sqlite_handle(world.store)->reader};
    for (size_t i = 0; i < sizeof(connections) / sizeof(connections[0]); i++) {
        int is_set = 0;
        assert_int_equal(lite_run(connections[i]->db, "PRAGMA wal_autocheckpoint"), 0);
        assert_int_equal(
            sqlite3_db_config(connections[i]->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, -1, &is_set),
            SQLITE_OK);
        assert_int_equal(is_set, 1);
        assert_int_equal(lite_run(connections[i]->db, "PRAGMA synchronous"), 2); /* FULL */
    }
    /* With the lock held by another even the last one to close leaves the file as it is. */
    int fd = open_lock(&world);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    round_of(&world);
    off_t before = size_of(&world, "-wal");
    lite_world_close(&world);
    assert_int_equal(size_of(&world, "-wal"), before);
    assert_int_equal(close(fd), 0);
    lite_world_end(&world);
}

/* A clean end leaves all of it in the file, so that the file alone can be copied. */
static void the_end_brings_all_of_it_into_the_file(void **state)
{
    (void)state; /* none */
    struct lite_world world;
    char log[SCRATCH_PATH_MAX + 32];
    lite_world_make(&world);
    lite_world_open(&world);
    lite_put(&world, "mail");
    lite_world_close(&world);
    (void)snprintf(log, sizeof(log), "%s-wal", world.scratch.path);
    assert_int_equal(unlink(log), 0);
    lite_world_open(&world);
    lite_take_one(&world, "mail");
    lite_world_end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_log_stays_short_under_load),
        cmocka_unit_test(a_long_reader_only_delays_it),
        cmocka_unit_test(
            nobody_checkpoints_while_another_process_does_and_somebody_does_when_it_dies),
        cmocka_unit_test(whoever_writes_keeps_the_log_short),
        cmocka_unit_test(a_checkpoint_runs_under_the_write_lock),
        cmocka_unit_test(connections_do_not_checkpoint_by_themselves),
        cmocka_unit_test(the_end_brings_all_of_it_into_the_file),
    };
    vfs_install();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * store_sqlite_group_test.c - threads of one process on one file, each with a handle of its own:
 * what they write at the same time is committed together, and each is answered for itself.
 * Owns:  the threads. The thread sanitizer's build tells whether two ever use the writer at once;
 *        the random source is one that must not be shared, so that draws are proved too.
 * Never: sleeps, or depends on who comes first: calls are gathered behind a lock of the file.
 */
#include "support/sqlite_vfs.h"
#include "support/sqlite_world.h"

#include "base/clock.h"
#include "store/sqlite/sqlite.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define THREADS 8

/* One thread with one call to make. */
struct caller {
    struct lite_world *world;
    pawl_store *store;
    const char *payload;
    size_t payload_len;
    bool is_bad;        /* makes a call that fails */
    bool is_repeatable; /* and that says that it can be run again */
    int fails_max;      /* how often it fails; 0: always */
    int runs;           /* of a bad call */
    pthread_t thread;
    pawl_id id;
    pawl_code code;
    pawl_err err;
};

/* Puts something into the file, and then finds that it cannot go on. */
static bool fail_half_way(struct pass *pass, void *args)
{
    struct caller *caller = args;
    caller->runs++;
    if (!pawli_sqlite_queue_need(pass, "half-way"))
        return false;
    return (caller->fails_max > 0 && caller->runs > caller->fails_max) ||
           pawli_sqlite_spoil(pass, SQLITE_NOMEM);
}

static void *call(void *user)
{
    struct caller *caller = user;
    pawl_enqueue_row row;
    pawl_enqueued enqueued;
    if (caller->is_bad) {
        const struct write write = {
            .run = fail_half_way, .args = caller, .is_repeatable = caller->is_repeatable};
        caller->code = pawli_sqlite_write(caller->store, &write, &caller->err);
        return NULL;
    }
    pawl_enqueue_init(&row);
    row.queue = "mail";
    row.payload = caller->payload;
    row.payload_len = caller->payload_len;
    caller->code = pawl_enqueue(caller->store, &row, 1, &enqueued, &caller->err);
    caller->id = enqueued.id;
    return NULL;
}

static int count_commit(void *user)
{
    ++*(int *)user;
    return 0; /* go on with it */
}

static size_t waiting_calls(pawl_sqlite *sqlite)
{
    size_t count = 0;
    pawli_sqlite_lock(sqlite);
    for (const struct call *waiting = sqlite->first; waiting != NULL; waiting = waiting->next)
        count++;
    pawli_sqlite_unlock(sqlite);
    return count;
}

static void start_callers(struct lite_world *world, struct caller *callers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        callers[i].world = world;
        callers[i].store = lite_world_handle(world);
        assert_int_equal(pthread_create(&callers[i].thread, NULL, call, &callers[i]), 0);
    }
}

static void end_callers(struct caller *callers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(pthread_join(callers[i].thread, NULL), 0);
        pawl_store_close(callers[i].store);
    }
}

/* Let all of them wait for the file's lock, and then have it. Gives the number of commits. */
static int gather(struct lite_world *world, struct caller *callers, size_t count,
                  const struct vfs_fault *fault)
{
    int commits = 0;
    sqlite3 *db = lite_connect(world);
    (void)sqlite3_commit_hook(world->sqlite->writer.db, count_commit, &commits);
    (void)lite_run(db, "BEGIN IMMEDIATE");
    start_callers(world, callers, count);
    while (waiting_calls(world->sqlite) < count)
        (void)sched_yield();
    if (fault != NULL)
        vfs_fail(fault);
    (void)lite_run(db, "ROLLBACK");
    end_callers(callers, count);
    vfs_rest();
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return commits;
}

static void make_world(struct lite_world *world)
{
    lite_world_make(world);
    world->options.call_timeout_ms = 60000; /* a slow machine is no fault of the store's */
    world->options.payload_max = INT64_C(64) << 20;
    lite_world_open(world);
}

static void calls_that_wait_are_committed_together(void **state)
{
    (void)state; /* none */
    struct lite_world world;
    struct caller callers[THREADS] = {{0}};
    make_world(&world);
    assert_int_equal(gather(&world, callers, THREADS, NULL), 1);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(callers[i].code, PAWL_OK);
    assert_int_equal(lite_ask(&world, "SELECT count(*) FROM pawl_job"), THREADS);
    lite_check(&world);
    lite_world_end(&world);
}

/* Named bounds: no more than GROUP_BYTES_MAX, but one in any case. */
static void a_group_is_bounded_by_bytes(void **state)
{
    (void)state; /* none */
    struct lite_world world;
    struct caller callers[3] = {{0}};
    size_t size = (size_t)GROUP_BYTES_MAX * 5 / 8;
    char *payload = calloc(1, size);
    assert_non_null(payload);
    for (size_t i = 0; i < 3; i++) {
        callers[i].payload = payload;
        callers[i].payload_len = size;
    }
    make_world(&world);
    assert_int_equal(gather(&world, callers, 3, NULL), 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(callers[i].code, PAWL_OK);
    free(payload);
    lite_world_end(&world);
}

static void a_group_is_bounded_by_calls(void **state)
{
    (void)state; /* none */
    struct lite_world world;
    struct caller callers[GROUP_CALLS_MAX + 2] = {{0}};
    make_world(&world);
    assert_int_equal(gather(&world, callers, GROUP_CALLS_MAX + 2, NULL), 2);
    assert_int_equal(lite_ask(&world, "SELECT count(*) FROM pawl_job"), GROUP_CALLS_MAX + 2);
    lite_world_end(&world);
}

/* What one call did before it failed goes; what the others did stays. */
static void one_that_fails_fails_alone(void **state)
{
    (void)state; /* none */
    struct lite_world world;
    struct caller callers[THREADS] = {{0}};
    make_world(&world);
    callers[2].is_bad = true;
    callers[THREADS - 1].is_bad = true;
    assert_int_equal(gather(&world, callers, THREADS, NULL), 1);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(callers[i].code, callers[i].is_bad ? PAWL_NO_MEMORY : PAWL_OK);
    assert_int_equal(lite_ask(&world, "SELECT count(*) FROM pawl_job"), THREADS - 2);
    assert_int_equal(lite_ask(&world, "SELECT count(*) FROM pawl_queue"), 1);
    lite_check(&world);
    lite_world_end(&world);
}

/* The same among calls that share what they do until one of them fails: those are run again, each
 * for itself. What comes behind them in the group has not been run before. */
static void one_that_can_be_run_again_fails_alone(void **state)
{
    (void)state; /* none */
    struct lite_world world;
    for (int fails_max = 0; fails_max <= 1; fails_max++) {
        struct caller callers[THREADS] = {{0}};
        make_world(&world);
        callers[2] = (struct caller){.is_bad = true, .is_repeatable = true, .fails_max = fails_max};
        callers[5] = (struct caller){.is_bad = true};
        assert_int_equal(gather(&world, callers, THREADS, NULL), 1);
        for (size_t i = 0; i < THREADS; i++) {
            bool is_failing = i == 5 || (i == 2 && fails_max == 0);
            assert_int_equal(callers[i].code, is_failing ? PAWL_NO_MEMORY : PAWL_OK);
        }
        assert_int_equal(callers[2].runs, 2);
        assert_int_equal(callers[5].runs, 1);
        assert_int_equal(lite_ask(&world, "SELECT count(*) FROM pawl_job"), THREADS - 2);
        assert_int_equal(lite_ask(&world, "SELECT count(*) FROM pawl_queue"), 1 + fails_max);
        lite_check(&world);
        lite_world_end(&world);
    }
}

/* How often the writer has run a statement. */
static int runs_of(const struct lite_world *world, enum statement statement)
{
    sqlite3_stmt *stmt = world->sqlite->writer.statements[statement];
    return stmt != NULL ? sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_RUN, 0) : 0;
}

/* What makes it cheap that a hundred threads enqueue one by one. */
static void a_group_does_once_what_its_calls_share(void **state)
{
    (void)state; /* none */
    struct lite_world world;
    struct caller callers[THREADS] = {{0}};
    make_world(&world);
    lite_put(&world, "mail");
    int queues = runs_of(&world, S_QUEUE_BY_NAME);
    int begins = runs_of(&world, S_BEGIN_WRITE);
    assert_int_equal(gather(&world, callers, THREADS, NULL), 1);
    assert_int_equal(runs_of(&world, S_QUEUE_BY_NAME) - queues, 1);
    assert_int_equal(runs_of(&world, S_BEGIN_WRITE) - begins, 1);
    assert_int_equal(runs_of(&world, S_INSERT_JOBS), THREADS / ARRIVALS_MAX);
    assert_int_equal(runs_of(&world, S_INSERT_JOB), 1 + THREADS % ARRIVALS_MAX);
    assert_int_equal(runs_of(&world, S_SAVE), 0);
    assert_int_equal(runs_of(&world, S_EXISTS), 0); /* ids were minted for these calls */
    assert_int_equal(lite_ask(&world, "SELECT count(*) FROM pawl_job"), THREADS + 1);
    lite_world_end(&world);
}

/* Q-ENQUEUE: an id that somebody gave is looked for, alone and among ones that were minted. */
static void ids_that_were_given_are_looked_for(void **state)
{
    (void)state; /* none */
    struct lite_world world;
    pawl_enqueue_row rows[2];
    pawl_enqueued results[2];
    pawl_err err;
    make_world(&world);
    pawl_id id = lite_put(&world, "mail");
    for (size_t i = 0; i < 2; i++) {
        pawl_enqueue_init(&rows[i]);
        rows[i].queue = "mail";
    }
    rows[1].id = id;
    assert_int_equal(pawl_enqueue(world.store, rows, 2, results, &err), PAWL_OK);
    assert_int_equal(results[0].code, PAWL_OK);
    assert_int_equal(results[1].code, PAWL_EXISTS);
    assert_int_equal(pawl_enqueue(world.store, &rows[1], 1, results, &err), PAWL_OK);
    assert_int_equal(results[0].code, PAWL_EXISTS);
    lite_check(&world);
    lite_world_end(&world);
}

/* ---- new jobs that are written together */

#define MANY 24

/* Rows of every kind: what stands alone stands between what does not. */
static void fill_rows(pawl_enqueue_row *rows)
{
    for (size_t i = 0; i < MANY; i++) {
        pawl_enqueue_init(&rows[i]);
        rows[i].queue = i % 10 == 3 ? "post" : "mail";
        rows[i].payload = "a payload that is long enough";
        rows[i].payload_len = i < 8 ? i + 1 : i % 3 * 5;
        rows[i].headers = i % 6 == 1 ? "Kind: odd\n" : NULL;
        rows[i].ordering_key = i == 1 || i == 4 || i == 13 ? "key" : NULL;
        rows[i].dedupe_key = i == 6 || i == 7 ? "once" : NULL;
        rows[i].delay_ms = i % 7 == 2 ? 1000 : 0;
        rows[i].start_within_ms = i % 7 == 5 ? 5000 : PAWL_DEFAULT;
        rows[i].priority = (int)(i % 10);
        rows[i].max_retries = i % 4 == 1 ? 7 : PAWL_DEFAULT;
    }
}

/* The same rows make the same jobs, in one call and in one call each. */
static void jobs_are_the_same_together_and_alone(void **state)
{
    (void)state; /* none */
    struct lite_world worlds[2];
    pawl_enqueue_row rows[MANY];
    pawl_enqueued results[2][MANY];
    char attach[sizeof("ATTACH '' AS other") + 4096];
    fill_rows(rows);
    for (size_t i = 0; i < 2; i++) {
        make_world(&worlds[i]);
        for (size_t at = 0; at < MANY; at += i == 0 ? MANY : 1)
            assert_int_equal(
                pawl_enqueue(worlds[i].store, &rows[at], i == 0 ? MANY : 1, &results[i][at], NULL),
                PAWL_OK);
    }
    assert_int_equal(runs_of(&worlds[0], S_INSERT_JOBS), 2);
    assert_int_equal(runs_of(&worlds[1], S_INSERT_JOBS), 0);
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(results[0][i].code, results[1][i].code);
    assert_int_equal(results[0][7].code, PAWL_DUPLICATE);
    sqlite3 *db = lite_connect(&worlds[0]);
    (void)snprintf(attach, sizeof(attach), "ATTACH '%s' AS other", worlds[1].sqlite->path);
    (void)lite_run(db, attach);
    assert_int_equal(lite_run(db, "SELECT count(*) FROM main.pawl_job JOIN other.pawl_job "
                                  "USING (number, id)"),
                     MANY - 1);
    assert_int_equal(lite_run(db, "SELECT count(*) FROM (SELECT * FROM main.pawl_job "
                                  "EXCEPT SELECT * FROM other.pawl_job)"),
                     0);
    assert_int_equal(lite_run(db, "SELECT count(*) FROM (SELECT * FROM main.pawl_payload "
                                  "EXCEPT SELECT * FROM other.pawl_payload)"),
                     0);
    assert_int_equal(lite_run(db, "SELECT count(*) FROM main.pawl_payload") -
                         lite_run(db, "SELECT count(*) FROM other.pawl_payload"),
                     0);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    for (size_t i = 0; i < 2; i++) {
        lite_check(&worlds[i]);
        lite_world_end(&worlds[i]);
    }
}

#define BAD_LEN 13
#define REFUSE                                                                   \
    "CREATE TRIGGER refuse BEFORE INSERT ON pawl_job WHEN new.payload_len = 13 " \
    "BEGIN SELECT RAISE(ABORT, 'refused'); END"

/* One of a group fails although its job was written by the statement of all. */
static void one_that_is_written_with_others_fails_alone(void **state)
{
    (void)state; /* none */
    struct lite_world world;
    struct caller callers[ARRIVALS_MAX] = {{0}};
    make_world(&world);
    (void)lite_ask(&world, REFUSE);
    for (size_t i = 0; i < ARRIVALS_MAX; i++) {
        callers[i].payload = "a payload of a job";
        callers[i].payload_len = i == 5 ? BAD_LEN : i + 1;
    }
    (void)gather(&world, callers, ARRIVALS_MAX, NULL); /* by another connection at last */
    for (size_t i = 0; i < ARRIVALS_MAX; i++)
        assert_int_equal(callers[i].code == PAWL_OK, i != 5);
    assert_int_equal(lite_ask(&world, "SELECT count(*) FROM pawl_job"), ARRIVALS_MAX - 1);
    assert_int_equal(lite_ask(&world, "SELECT count(*) FROM pawl_payload"), ARRIVALS_MAX - 1);
    (void)lite_ask(&world, "DROP TRIGGER refuse");
    lite_check(&world);
    lite_world_end(&world);
}

/* Of a call that fails nothing stays, also of rows before the bad one. */
static void a_call_that_fails_leaves_nothing(void **state)
{
    (void)state; /* none */
    struct lite_world world;
    pawl_enqueue_row rows[ARRIVALS_MAX];
    pawl_enqueued results[ARRIVALS_MAX];
    make_world(&world);
    (void)lite_ask(&world, REFUSE);
    for (size_t i = 0; i < ARRIVALS_MAX; i++) {
        pawl_enqueue_init(&rows[i]);
        rows[i].queue = "mail";
        rows[i].payload = "a payload of a job";
        rows[i].payload_len = i == 5 ? BAD_LEN : i + 1;
    }
    assert_int_not_equal(pawl_enqueue(world.store, rows, ARRIVALS_MAX, results, NULL), PAWL_OK);
    assert_int_equal(lite_ask(&world, "SELECT count(*) FROM pawl_job"), 0);
    assert_int_equal(lite_ask(&world, "SELECT count(*) FROM pawl_queue"), 0);
    assert_int_equal(pawl_enqueue(world.store, rows, 5, results, NULL), PAWL_OK);
    assert_int_equal(lite_ask(&world, "SELECT count(*) FROM pawl_job"), 5);
    (void)lite_ask(&world, "DROP TRIGGER refuse");
    lite_check(&world);
    lite_world_end(&world);
}

/* ---- commits and limits */

/* Nobody is told OK whose work went with the group's. */
static void a_commit_that_fails_fails_all(void **state)
{
    (void)state; /* none */
    struct lite_world world;
    for (int is_lasting = 0; is_lasting <= 1; is_lasting++) {
        struct caller callers[THREADS] = {{0}};
        struct vfs_fault fault = {
            .kind = VFS_SYNC, .way = VFS_REFUSED, .nth = 1, .is_lasting = is_lasting == 1};
        make_world(&world);
        callers[3].is_bad = true;
        (void)gather(&world, callers, THREADS, &fault);
        assert_true(vfs_has_failed());
        for (size_t i = 0; i < THREADS; i++) {
            pawl_code wanted = is_lasting == 1 ? PAWL_UNKNOWN : PAWL_DOWN;
            assert_int_equal(callers[i].code, callers[i].is_bad ? PAWL_NO_MEMORY : wanted);
        }
        lite_world_close(&world);
        lite_world_open(&world);
        int64_t count = lite_ask(&world, "SELECT count(*) FROM pawl_job");
        assert_true(count == 0 || (is_lasting == 1 && count == THREADS - 1)); /* all or none */
        lite_check(&world);
        lite_world_end(&world);
    }
}

/* Each waits for its own time, and no call stays behind. */
static void calls_that_wait_too_long_are_told(void **state)
{
    (void)state; /* none */
    struct lite_world world;
    struct caller callers[THREADS] = {{0}};
    lite_world_make(&world);
    world.options.call_timeout_ms = 20;
    lite_world_open(&world);
    sqlite3 *db = lite_connect(&world);
    (void)lite_run(db, "BEGIN IMMEDIATE");
    start_callers(&world, callers, THREADS);
    end_callers(callers, THREADS);
    (void)lite_run(db, "ROLLBACK");
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(callers[i].code, PAWL_DOWN);
    assert_null(world.sqlite->first);
    assert_null(world.sqlite->last);
    assert_int_equal(lite_ask(&world, "SELECT count(*) FROM pawl_job"), 0);
    lite_put(&world, "mail");
    lite_world_end(&world);
}

/* Another process has the lock until somebody says so; at the latest when nobody can be waiting for
 * anything else any more. */
struct holder {
    sqlite3 *db;
    pthread_mutex_t mutex;
    pthread_cond_t said;
    bool is_said;
    bool is_late;
    pthread_t thread;
};

#define HOLD_MOST_MS 30000

static void *hold(void *user)
{
    struct holder *holder = user;
    struct timespec until = pawli_wait_until(HOLD_MOST_MS);
    (void)pthread_mutex_lock(&holder->mutex); /* cannot fail: it is valid */
    while (!holder->is_said && !holder->is_late)
        holder->is_late = pthread_cond_timedwait(&holder->said, &holder->mutex, &until) != 0;
    (void)pthread_mutex_unlock(&holder->mutex); /* likewise */
    (void)lite_run(holder->db, "ROLLBACK");
    return NULL;
}

static void begin_to_hold(struct lite_world *world, struct holder *holder)
{
    pthread_condattr_t attributes;
    *holder = (struct holder){.db = lite_connect(world)};
    assert_int_equal(pthread_mutex_init(&holder->mutex, NULL), 0);
    assert_int_equal(pthread_condattr_init(&attributes), 0);
    assert_int_equal(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC), 0);
    assert_int_equal(pthread_cond_init(&holder->said, &attributes), 0);
    (void)pthread_condattr_destroy(&attributes); /* cannot fail on a valid attribute */
    (void)lite_run(holder->db, "BEGIN IMMEDIATE");
    assert_int_equal(pthread_create(&holder->thread, NULL, hold, holder), 0);
}

/* Gives whether somebody had to wait for it to end by itself. */
static bool end_to_hold(struct holder *holder)
{
    (void)pthread_mutex_lock(&holder->mutex); /* cannot fail: it is valid */
    holder->is_said = true;
    (void)pthread_cond_signal(&holder->said);
    (void)pthread_mutex_unlock(&holder->mutex);
    assert_int_equal(pthread_join(holder->thread, NULL), 0);
    (void)pthread_cond_destroy(&holder->said);
    (void)pthread_mutex_destroy(&holder->mutex);
    assert_int_equal(sqlite3_close(holder->db), SQLITE_OK);
    return holder->is_late;
}

/* RES-10: a renewal has less time than other calls: whoever leads may wait on, it must not. */
static void a_limit_holds_for_who_leads_and_who_waits(void **state)
{
    (void)state; /* none */
    struct lite_world world;
    struct holder holder;
    struct caller callers[2] = {{0}}; /* one leads, one waits behind it; both have a minute */
    pawl_err err;
    make_world(&world);
    pawl_store *store = lite_world_handle(&world);
    struct caller limited = {.world = &world, .store = store};
    begin_to_hold(&world, &holder);
    pawl_store_limit(store, 20);
    (void)call(&limited); /* it leads */
    assert_int_equal(limited.code, PAWL_DOWN);
    start_callers(&world, callers, 2);
    while (waiting_calls(world.sqlite) < 2)
        (void)sched_yield();
    (void)call(&limited); /* it waits for its turn */
    assert_int_equal(limited.code, PAWL_DOWN);
    assert_non_null(strstr(limited.err.text, "lock"));
    assert_int_equal(waiting_calls(world.sqlite), 2);
    bool is_late = end_to_hold(&holder);
    end_callers(callers, 2);
    assert_false(is_late);
    assert_int_equal(callers[0].code, PAWL_OK);
    assert_int_equal(callers[1].code, PAWL_OK);
    assert_int_equal(lite_ask(&world, "SELECT count(*) FROM pawl_job"), 2);

    /* A limit that is none, or above what the store was opened for, is what it was opened for. */
    pawl_store_limit(store, PAWL_DEFAULT);
    assert_int_equal(pawli_sqlite_handle(store)->limit_ms, 60000);
    pawl_store_limit(store, 60001);
    assert_int_equal(pawli_sqlite_handle(store)->limit_ms, 60000);
    pawl_store_limit(store, 1);
    pawl_wall now;
    assert_int_equal(pawl_now(store, &now, &err), PAWL_OK); /* needs no lock */
    pawl_store_close(store);
    lite_check(&world);
    lite_world_end(&world);
}

#define FIRST_LIMIT_MS 200

/* Whoever waits in a round waits with the others of it: the next of them leads where the one that
 * came first has given up. */
static void another_leads_where_the_first_gives_up(void **state)
{
    (void)state; /* none */
    struct lite_world world;
    struct holder holder;
    struct caller callers[2] = {{0}};
    make_world(&world);
    struct caller first = {.world = &world, .store = lite_world_handle(&world)};
    pawl_store_limit(first.store, FIRST_LIMIT_MS);
    begin_to_hold(&world, &holder);
    assert_int_equal(pthread_create(&first.thread, NULL, call, &first), 0);
    while (waiting_calls(world.sqlite) < 1)
        (void)sched_yield();
    start_callers(&world, callers, 2); /* in good time: else they are a round of their own */
    end_callers(&first, 1);
    assert_int_equal(first.code, PAWL_DOWN);
    bool is_late = end_to_hold(&holder);
    end_callers(callers, 2);
    assert_false(is_late);
    assert_int_equal(callers[0].code, PAWL_OK);
    assert_int_equal(callers[1].code, PAWL_OK);
    assert_null(world.sqlite->first);
    assert_false(world.sqlite->is_led);
    lite_check(&world);
    lite_world_end(&world);
}

/* A source that is safe to share needs no lock; any other has one. */
static void the_system_is_asked_without_a_lock(void **state)
{
    (void)state; /* none */
    struct lite_world world;
    lite_world_make(&world);
    lite_world_open(&world);
    assert_ptr_equal(world.sqlite->random.user, world.sqlite);
    lite_world_close(&world);
    world.options.random = pawl_random_system();
    lite_world_open(&world);
    assert_true(world.sqlite->random.next == pawl_random_system()->next);
    lite_world_end(&world);
}

/* ---- a crowd */

#define PRODUCERS  2
#define WORKERS    3
#define JOBS_EACH  200 /* of one producer */
#define JOBS_ALL   (PRODUCERS * JOBS_EACH)
#define BATCH      8
#define ROUNDS_MAX 200000

struct crowd {
    pawl_sqlite *sqlite;
    _Atomic int64_t done;     /* settles that ended a job */
    _Atomic int64_t troubles; /* calls that did not go as they must */
};

struct member {
    struct crowd *crowd;
    int number;
    pthread_t thread;
};

static void expect(struct crowd *crowd, bool is_right)
{
    if (!is_right)
        atomic_fetch_add(&crowd->troubles, 1);
}

static pawl_store *open_own(struct crowd *crowd)
{
    pawl_store *store = NULL;
    expect(crowd, pawl_sqlite_open(crowd->sqlite, &store, NULL) == PAWL_OK);
    return store;
}

static void *produce(void *user)
{
    struct member *member = user;
    pawl_store *store = open_own(member->crowd);
    for (int i = 0; i < JOBS_EACH; i += 4) {
        pawl_enqueue_row rows[4];
        pawl_enqueued results[4];
        for (int k = 0; k < 4; k++) {
            pawl_enqueue_init(&rows[k]);
            rows[k].queue = "mail";
            rows[k].payload = "payload";
            rows[k].payload_len = 7;
        }
        expect(member->crowd, pawl_enqueue(store, rows, 4, results, NULL) == PAWL_OK);
        for (int k = 0; k < 4; k++)
            expect(member->crowd, results[k].code == PAWL_OK);
    }
    pawl_store_close(store);
    return NULL;
}

static void work_on(struct member *member, pawl_store *store, const char *worker,
                    const pawl_job *job)
{
    pawl_lease lease = {job->id, job->token, job->lease_version, job->place};
    pawl_renew_row renewal = {.lease = lease, .lease_ms = PAWL_DEFAULT};
    pawl_renewed renewed;
    pawl_settle_row row;
    pawl_settled settled;
    expect(member->crowd, pawl_renew(store, worker, &renewal, 1, &renewed, NULL) == PAWL_OK);
    expect(member->crowd, renewed.code == PAWL_OK); /* nobody else can have it: Q-ONE-LEASE */
    pawl_settle_init(&row);
    row.lease = lease;
    expect(member->crowd, pawl_settle(store, worker, &row, 1, &settled, NULL) == PAWL_OK);
    expect(member->crowd, settled.code == PAWL_OK);
    atomic_fetch_add(&member->crowd->done, 1);
}

static void *work(void *user)
{
    struct member *member = user;
    pawl_store *store = open_own(member->crowd);
    char worker[16];
    (void)snprintf(worker, sizeof(worker), "worker-%d", member->number);
    pawl_claim_line line = {.queue = "mail", .jobs_max = BATCH, .lease_ms = PAWL_DEFAULT};
    pawl_claim_args args = {
        .worker = worker, .lines = &line, .lines_count = 1, .bytes_max = PAWL_DEFAULT};
    for (int i = 0; i < ROUNDS_MAX && atomic_load(&member->crowd->done) < JOBS_ALL; i++) {
        pawl_job jobs[BATCH];
        size_t count = 0;
        bool is_hint;
        expect(member->crowd, pawl_claim(store, &args, jobs, BATCH, &count, NULL) == PAWL_OK);
        for (size_t k = 0; k < count; k++) {
            work_on(member, store, worker, &jobs[k]);
            pawl_job_clear(&jobs[k]);
        }
        if (count == 0)
            expect(member->crowd, pawl_wait(store, 1, &is_hint, NULL) == PAWL_OK);
    }
    pawl_store_close(store);
    return NULL;
}

/* Looks and sweeps all the while. No lease expires. */
static void *oversee(void *user)
{
    struct member *member = user;
    struct crowd *crowd = member->crowd;
    pawl_store *store = open_own(crowd);
    for (int i = 0; i < ROUNDS_MAX && atomic_load(&crowd->done) < JOBS_ALL; i++) {
        pawl_job jobs[BATCH];
        pawl_stats stats[BATCH];
        pawl_reaped reaped[BATCH];
        pawl_worker workers[BATCH];
        size_t count;
        pawl_worker_seen seen = {.name = "overseer", .host = "here", .version = "1"};
        expect(crowd, pawl_worker_seen_now(store, &seen, NULL) == PAWL_OK);
        expect(crowd, pawl_workers(store, NULL, workers, BATCH, &count, NULL) == PAWL_OK);
        expect(crowd, pawl_list(store, NULL, NULL, jobs, BATCH, &count, NULL) == PAWL_OK);
        expect(crowd, pawl_queue_stats(store, NULL, stats, BATCH, &count, NULL) == PAWL_OK);
        expect(crowd, pawl_reap(store, reaped, BATCH, &count, NULL) == PAWL_OK && count == 0);
        pawl_wake(store);
    }
    pawl_store_close(store);
    return NULL;
}

static void a_crowd_does_every_job_once(void **state)
{
    (void)state; /* none */
    struct lite_world world;
    make_world(&world);
    struct crowd crowd = {.sqlite = world.sqlite};
    struct member members[PRODUCERS + WORKERS + 1];
    for (int i = 0; i < PRODUCERS + WORKERS + 1; i++) {
        members[i] = (struct member){.crowd = &crowd, .number = i};
        void *(*what)(void *) = i < PRODUCERS ? produce : i < PRODUCERS + WORKERS ? work : oversee;
        assert_int_equal(pthread_create(&members[i].thread, NULL, what, &members[i]), 0);
    }
    for (int i = 0; i < PRODUCERS + WORKERS + 1; i++)
        assert_int_equal(pthread_join(members[i].thread, NULL), 0);
    assert_int_equal(atomic_load(&crowd.troubles), 0);
    assert_int_equal(atomic_load(&crowd.done), JOBS_ALL);
    assert_int_equal(lite_ask(&world, "SELECT count(*) FROM pawl_ended WHERE state = 2"), JOBS_ALL);
    assert_int_equal(lite_ask(&world, "SELECT count(*) FROM pawl_attempt"), JOBS_ALL);
    lite_check(&world);
    lite_world_end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_that_wait_are_committed_together),
        cmocka_unit_test(a_group_is_bounded_by_bytes),
        cmocka_unit_test(a_group_is_bounded_by_calls),
        cmocka_unit_test(one_that_fails_fails_alone),
        cmocka_unit_test(one_that_can_be_run_again_fails_alone),
        cmocka_unit_test(a_group_does_once_what_its_calls_share),
        cmocka_unit_test(ids_that_were_given_are_looked_for),
        cmocka_unit_test(jobs_are_the_same_together_and_alone),
        cmocka_unit_test(one_that_is_written_with_others_fails_alone),
        cmocka_unit_test(a_call_that_fails_leaves_nothing),
        cmocka_unit_test(another_leads_where_the_first_gives_up),
        cmocka_unit_test(the_system_is_asked_without_a_lock),
        cmocka_unit_test(a_commit_that_fails_fails_all),
        cmocka_unit_test(calls_that_wait_too_long_are_told),
        cmocka_unit_test(a_limit_holds_for_who_leads_and_who_waits),
        cmocka_unit_test(a_crowd_does_every_job_once),
    };
    vfs_install();
    vfs_rest();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

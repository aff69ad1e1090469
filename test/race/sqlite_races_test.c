/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * sqlite_races_test.c - an application with a transaction of its own on the file, and a C client
 * that wants the same job: step by step, in every order that matters. There is one writer at a
 * time, so that the client waits; what it is told afterwards is about the file as it is then.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store/sqlite/sqlite.h"
#include "support/sqlite_world.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>

#define LEASE_MS INT64_C(30000)
#define SQL_MAX  512

/* A clock that two threads may use. */
struct shared_clock {
    pthread_mutex_t mutex;
    pawl_wall now; /* under the mutex */
};

enum verb {
    ENQUEUE,
    CLAIM,
    SETTLE,
    RENEW,
    RELEASE
};

struct race {
    struct lite_world world;
    struct shared_clock shared;
    sqlite3 *app; /* the application's connection */
    pawl_id id;   /* of the job that both want */

    /* The call under way. */
    enum verb verb;
    pawl_lease lease;
    pthread_t thread;
    pawl_code code;
    pawl_code verdict;
    size_t count; /* claimed */
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

static void age(struct race *race, int64_t ms)
{
    (void)pthread_mutex_lock(&race->shared.mutex);
    race->shared.now.us += ms * 1000;
    (void)pthread_mutex_unlock(&race->shared.mutex);
}

/* ---------------------------------------------------------------- life */

static void begin(struct race *race)
{
    *race = (struct race){.shared = {.mutex = PTHREAD_MUTEX_INITIALIZER}};
    lite_world_make(&race->world);
    /* What plain SQL puts is due by the system's clock: ours is not behind it. */
    const pawl_clock *system = pawl_clock_system();
    race->shared.now = (pawl_wall){system->wall(system->user).us + 60 * 1000000};
    race->world.clock = (pawl_clock){shared_mono, shared_wall, &race->shared};
    race->world.options.call_timeout_ms = 30000; /* a slow machine is no fault of the store's */
    lite_world_open(&race->world);
    race->app = lite_connect(&race->world);
    (void)lite_run(race->app, "CREATE TABLE orders (item TEXT)");
}

static void end(struct race *race)
{
    assert_int_equal(sqlite3_close(race->app), SQLITE_OK);
    lite_check(&race->world);
    lite_world_end(&race->world);
}

/* The application puts a job and an order into one transaction, and leaves it open. */
static void order(struct race *race)
{
    char sql[SQL_MAX];
    char text[PAWL_ID_TEXT_MAX];
    (void)lite_run(race->app, "BEGIN IMMEDIATE");
    (void)lite_run(race->app, "INSERT INTO orders VALUES ('bread')");
    (void)snprintf(sql, sizeof(sql),
                   "INSERT INTO pawl_enqueue (id, queue, payload) VALUES ('%s', 'mail', 'bread')",
                   pawl_id_format(&race->id, text));
    (void)lite_run(race->app, sql);
}

static void new_id(struct race *race)
{
    pawl_enqueue_row row;
    pawl_enqueue_init(&row);
    row.queue = "mail";
    assert_int_equal(pawl_id_new(race->world.store, &row, &race->id, NULL), PAWL_OK);
}

/* ---------------------------------------------------------------- a call that waits */

static void enqueue(struct race *race)
{
    pawl_enqueue_row row;
    pawl_enqueued result = {0};
    pawl_enqueue_init(&row);
    row.queue = "mail";
    row.id = race->id;
    race->code = pawl_enqueue(race->world.store, &row, 1, &result, NULL);
    race->verdict = result.code;
}

static void claim(struct race *race)
{
    pawl_job job;
    pawl_claim_line line = {"mail", 1, LEASE_MS};
    pawl_claim_args args = {LITE_WORKER, &line, 1, PAWL_DEFAULT};
    race->code = pawl_claim(race->world.store, &args, &job, 1, &race->count, NULL);
    if (race->code != PAWL_OK || race->count == 0)
        return;
    race->lease = (pawl_lease){job.id, job.token, job.lease_version, job.place};
    pawl_job_clear(&job);
}

static void settle(struct race *race)
{
    pawl_settle_row row;
    pawl_settled result = {0};
    pawl_settle_init(&row);
    row.lease = race->lease;
    race->code = pawl_settle(race->world.store, LITE_WORKER, &row, 1, &result, NULL);
    race->verdict = result.code;
}

static void renew(struct race *race)
{
    pawl_renew_row row = {.lease = race->lease, .lease_ms = LEASE_MS};
    pawl_renewed result = {0};
    race->code = pawl_renew(race->world.store, LITE_WORKER, &row, 1, &result, NULL);
    race->verdict = result.code;
}

static void release(struct race *race)
{
    race->code = pawl_release(race->world.store, LITE_WORKER, &race->lease, 1, &race->verdict,
                              NULL);
}

static void *run(void *user)
{
    static void (*const verbs[])(struct race *) = {enqueue, claim, settle, renew, release};
    struct race *race = user;
    verbs[race->verb](race);
    return NULL;
}

/* Begin a call, and wait until it is in the store's queue, and led: then it waits for the file. */
static void call(struct race *race, enum verb verb)
{
    race->verb = verb;
    assert_int_equal(pthread_create(&race->thread, NULL, run, race), 0);
    for (bool is_led = false; !is_led;) {
        pawli_sqlite_lock(race->world.sqlite);
        is_led = race->world.sqlite->is_led;
        pawli_sqlite_unlock(race->world.sqlite);
        (void)sched_yield();
    }
}

static pawl_code answer(struct race *race)
{
    assert_int_equal(pthread_join(race->thread, NULL), 0);
    assert_int_equal(race->code, PAWL_OK);
    return race->verdict;
}

/* The call when nobody is in the way. */
static pawl_code make(struct race *race, enum verb verb)
{
    race->verb = verb;
    (void)run(race);
    assert_int_equal(race->code, PAWL_OK);
    return race->verdict;
}

/* ---------------------------------------------------------------- the stories */

/* Q-ENQUEUE: both put the same job. */
static void enqueue_enqueue_committed(void **state)
{
    (void)state; /* none */
    struct race race;
    begin(&race);
    new_id(&race);
    order(&race);
    call(&race, ENQUEUE);
    (void)lite_run(race.app, "COMMIT");
    assert_int_equal(answer(&race), PAWL_EXISTS);
    assert_int_equal(lite_ask(&race.world, "SELECT count(*) FROM pawl_job"), 1);
    end(&race);
}

static void enqueue_enqueue_rolled_back(void **state)
{
    (void)state; /* none */
    struct race race;
    begin(&race);
    new_id(&race);
    order(&race);
    call(&race, ENQUEUE);
    (void)lite_run(race.app, "ROLLBACK");
    assert_int_equal(answer(&race), PAWL_OK);
    assert_int_equal(lite_ask(&race.world, "SELECT count(*) FROM orders"), 0);
    end(&race);
}

/* Q-NEVER-AGAIN: the application repeats an enqueue whose job the client has completed. */
static void enqueue_after_completion(void **state)
{
    (void)state; /* none */
    struct race race;
    begin(&race);
    new_id(&race);
    order(&race);
    (void)lite_run(race.app, "COMMIT");
    (void)make(&race, CLAIM);
    assert_int_equal(race.count, 1);
    assert_int_equal(make(&race, SETTLE), PAWL_OK);
    char sql[SQL_MAX];
    char text[PAWL_ID_TEXT_MAX];
    (void)snprintf(sql, sizeof(sql),
                   "BEGIN IMMEDIATE; INSERT INTO orders VALUES ('bread'); "
                   "INSERT INTO pawl_enqueue (id, queue) VALUES ('%s', 'mail')",
                   pawl_id_format(&race.id, text));
    assert_int_equal(sqlite3_exec(race.app, sql, NULL, NULL, NULL), SQLITE_CONSTRAINT);
    (void)lite_run(race.app, "ROLLBACK");
    (void)make(&race, CLAIM);
    assert_int_equal(race.count, 0);
    end(&race);
}

/* What is not committed is claimed by nobody; what is, at once. */
static void claim_waits_for_a_producer(void **state)
{
    (void)state; /* none */
    struct race race;
    begin(&race);
    new_id(&race);
    order(&race);
    call(&race, CLAIM);
    (void)lite_run(race.app, "ROLLBACK");
    (void)answer(&race);
    assert_int_equal(race.count, 0);
    order(&race);
    call(&race, CLAIM);
    (void)lite_run(race.app, "COMMIT");
    (void)answer(&race);
    assert_int_equal(race.count, 1);
    assert_int_equal(pawl_id_compare(&race.lease.job, &race.id), 0);
    end(&race);
}

/* RES-3: a lease that ends while its holder waits for the file is over, whatever the call is. */
static void expiry_while_waiting(void **state)
{
    static const enum verb verbs[] = {SETTLE, RENEW, RELEASE};
    (void)state; /* none */
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        struct race race;
        begin(&race);
        (void)lite_put(&race.world, "mail");
        (void)make(&race, CLAIM);
        assert_int_equal(race.count, 1);
        (void)lite_run(race.app, "BEGIN IMMEDIATE");
        call(&race, verbs[i]);
        age(&race, LEASE_MS); /* at expiry it is over */
        (void)lite_run(race.app, "COMMIT");
        assert_int_equal(answer(&race), PAWL_STALE);
        assert_int_equal(lite_ask(&race.world, "SELECT count(*) FROM pawl_attempt"), 0);
        end(&race);
    }
}

static void no_expiry_while_waiting(void **state)
{
    (void)state; /* none */
    struct race race;
    begin(&race);
    (void)lite_put(&race.world, "mail");
    (void)make(&race, CLAIM);
    (void)lite_run(race.app, "BEGIN IMMEDIATE");
    call(&race, SETTLE);
    age(&race, LEASE_MS - 1);
    (void)lite_run(race.app, "COMMIT");
    assert_int_equal(answer(&race), PAWL_OK);
    end(&race);
}

/* RES-4: the reaper of another handle takes it while the holder waits with its settle. */
static void settle_reap_reap_first(void **state)
{
    (void)state; /* none */
    struct race race;
    pawl_reaped rows[2];
    size_t count = 0;
    begin(&race);
    (void)lite_put(&race.world, "mail");
    (void)make(&race, CLAIM);
    pawl_store *reaper = lite_world_handle(&race.world);
    age(&race, LEASE_MS);
    assert_int_equal(pawl_reap(reaper, rows, 2, &count, NULL), PAWL_OK);
    assert_int_equal(count, 1);
    assert_int_equal(make(&race, SETTLE), PAWL_STALE);
    assert_int_equal(pawl_reap(reaper, rows, 2, &count, NULL), PAWL_OK);
    assert_int_equal(count, 0);
    assert_int_equal(lite_ask(&race.world, "SELECT count(*) FROM pawl_attempt"), 1);
    pawl_store_close(reaper);
    end(&race);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(enqueue_enqueue_committed), cmocka_unit_test(enqueue_enqueue_rolled_back),
        cmocka_unit_test(enqueue_after_completion),  cmocka_unit_test(claim_waits_for_a_producer),
        cmocka_unit_test(expiry_while_waiting),      cmocka_unit_test(no_expiry_while_waiting),
        cmocka_unit_test(settle_reap_reap_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

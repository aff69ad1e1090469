/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * sqlite_key_races_test.c - two programs want jobs of one ordering key, or the last place under a
 * bound, on one file: each has connections of its own, as two processes have. While an application
 * has the file's lock, calls of both wait for it, so that they end one after the other in either
 * order. RES-7 in all of them: nobody starts out of turn, nobody is left behind.
 *
 * Jobs are named by their payloads.
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
#include <string.h>

#define QUEUE     "mail"
#define KEY       "k"
#define SQL_MAX   512
#define NAMES_MAX 64
#define JOBS_MAX  8
#define ROUNDS    20 /* of what may go either way */

/* A program on the file, and the call that it has under way. */
struct program {
    struct lite_world world; /* a store of its own */
    const char *worker;
    void (*run)(struct program *program);
    const char *put; /* what `enqueue` puts */
    pawl_id id;      /* of what it has put last */
    pawl_lease lease;
    int64_t fence;
    pawl_settle_action action;
    pthread_t thread;
    pawl_code code;
    pawl_code verdict;
    char names[NAMES_MAX]; /* of what was claimed, each with a blank behind it */
};

struct race {
    struct program a;
    struct program b;
    sqlite3 *app; /* an application's connection */
};

/* ---------------------------------------------------------------- life */

static void begin(struct race *race)
{
    memset(race, 0, sizeof(*race));
    lite_world_make(&race->a.world);
    /* What plain SQL puts is due by the system's clock: ours is not behind it, and stands still. */
    const pawl_clock *system = pawl_clock_system();
    race->a.world.manual.wall = (pawl_wall){system->wall(system->user).us + 60 * 1000000};
    race->a.world.options.call_timeout_ms = 60000; /* a slow machine is no fault of the store's */
    race->b.world = race->a.world;
    race->b.world.seeded.state = 2; /* tokens of its own */
    race->b.world.clock = pawli_manual_clock_as_clock(&race->b.world.manual);
    race->b.world.random = pawli_seeded_as_random(&race->b.world.seeded);
    race->b.world.options.clock = &race->b.world.clock;
    race->b.world.options.random = &race->b.world.random;
    race->a.worker = "a";
    race->b.worker = "b";
    lite_world_open(&race->a.world);
    lite_world_open(&race->b.world);
    race->app = lite_connect(&race->a.world);
}

static void end(struct race *race)
{
    assert_int_equal(sqlite3_close(race->app), SQLITE_OK);
    lite_check(&race->a.world);
    lite_world_close(&race->b.world);
    lite_world_end(&race->a.world);
}

/* The application puts a job of the key; a transaction that it has begun stays open. */
static void app_put(struct race *race, const char *name)
{
    char sql[SQL_MAX];
    (void)snprintf(sql, sizeof(sql), /* fits */
                   "INSERT INTO pawl_enqueue (queue, payload, ordering_key) VALUES ('" QUEUE
                   "', '%s', '" KEY "')",
                   name);
    (void)lite_run(race->app, sql);
}

/* ---------------------------------------------------------------- calls */

static void enqueue(struct program *program)
{
    pawl_enqueue_row row;
    pawl_enqueued result = {0};
    pawl_enqueue_init(&row);
    row.queue = QUEUE;
    row.ordering_key = KEY;
    row.payload = program->put;
    row.payload_len = strlen(program->put);
    program->code = pawl_enqueue(program->world.store, &row, 1, &result, NULL);
    program->verdict = result.code;
    program->id = result.id;
}

/* Claim all that there is. */
static void claim(struct program *program)
{
    pawl_job jobs[JOBS_MAX];
    pawl_claim_line line = {QUEUE, JOBS_MAX, PAWL_DEFAULT};
    pawl_claim_args args = {program->worker, &line, 1, PAWL_DEFAULT};
    size_t count = 0;
    program->names[0] = '\0';
    program->code = pawl_claim(program->world.store, &args, jobs, JOBS_MAX, &count, NULL);
    for (size_t i = 0; i < count; i++) {
        size_t len = strlen(program->names);
        (void)snprintf(program->names + len, NAMES_MAX - len, "%.*s ", (int)jobs[i].payload_len,
                       (const char *)jobs[i].payload); /* fits */
        program->lease = (pawl_lease){jobs[i].id, jobs[i].token, jobs[i].lease_version,
                                      jobs[i].place};
        program->fence = jobs[i].fence;
        pawl_job_clear(&jobs[i]);
    }
}

static void settle(struct program *program)
{
    pawl_settle_row row;
    pawl_settled result = {0};
    pawl_settle_init(&row);
    row.lease = program->lease;
    row.action = program->action;
    row.delay_ms = 0;
    program->code = pawl_settle(program->world.store, program->worker, &row, 1, &result, NULL);
    program->verdict = result.code;
}

static void cancel(struct program *program)
{
    pawl_changed result = {0};
    program->code = pawl_cancel(program->world.store, &program->id, 1, &result, NULL);
    program->verdict = result.code;
}

static void *run_thread(void *user)
{
    struct program *program = user;
    program->run(program);
    return NULL;
}

/* Begin a call, and wait until it is led: then it waits for the file. */
static void call(struct program *program, void (*run)(struct program *))
{
    program->run = run;
    assert_int_equal(pthread_create(&program->thread, NULL, run_thread, program), 0);
    for (bool is_led = false; !is_led;) {
        pawli_sqlite_lock(program->world.sqlite);
        is_led = program->world.sqlite->is_led;
        pawli_sqlite_unlock(program->world.sqlite);
        (void)sched_yield();
    }
}

static void answer(struct program *program)
{
    assert_int_equal(pthread_join(program->thread, NULL), 0);
    assert_int_equal(program->code, PAWL_OK);
    assert_int_equal(program->verdict, PAWL_OK);
}

/* The call when nobody is in the way. */
static void make(struct program *program, void (*run)(struct program *))
{
    run(program);
    assert_int_equal(program->code, PAWL_OK);
    assert_int_equal(program->verdict, PAWL_OK);
}

static void put(struct program *program, const char *name)
{
    program->put = name;
    make(program, enqueue);
}

#define expect_taken(program, wanted)                    \
    do {                                                 \
        make((program), claim);                          \
        assert_string_equal((program)->names, (wanted)); \
    } while (0)

/* All that is left starts one after the other, in this order, whoever asks. */
static void expect_rest(struct race *race, const char *const *names)
{
    for (; *names != NULL; names++) {
        expect_taken(&race->b, *names);
        expect_taken(&race->a, "");
        race->b.action = PAWL_SUCCEED;
        make(&race->b, settle);
    }
    expect_taken(&race->b, "");
    assert_int_equal(lite_ask(&race->a.world, "SELECT count(*) FROM pawl_job"), 0);
}

#define REST(race, ...) expect_rest((race), (const char *const[]){__VA_ARGS__, NULL})

/* ---------------------------------------------------------------- the lost wake-up */

/* An enqueue sees the first job, and has not committed when that one's end begins. */
static void wake_an_enqueue_sees_the_first_before_its_end(void **state)
{
    (void)state; /* none */
    struct race race;
    begin(&race);
    put(&race.a, "1");
    expect_taken(&race.a, "1 ");
    (void)lite_run(race.app, "BEGIN IMMEDIATE");
    app_put(&race, "2"); /* it waits for 1 */
    call(&race.a, settle);
    (void)lite_run(race.app, "COMMIT");
    answer(&race.a);
    REST(&race, "2 ");
    end(&race);
}

static void wake_an_enqueue_that_is_rolled_back(void **state)
{
    (void)state; /* none */
    struct race race;
    begin(&race);
    put(&race.a, "1");
    expect_taken(&race.a, "1 ");
    (void)lite_run(race.app, "BEGIN IMMEDIATE");
    app_put(&race, "2");
    call(&race.a, settle);
    (void)lite_run(race.app, "ROLLBACK");
    answer(&race.a);
    expect_taken(&race.b, "");
    put(&race.b, "3"); /* nobody is before it */
    REST(&race, "3 ");
    end(&race);
}

/* Two programs, and nobody says which comes first: the enqueue of one, the settle of the other. */
static void wake_an_enqueue_and_the_end_of_the_first(void **state)
{
    static const pawl_settle_action ends[] = {PAWL_SUCCEED, PAWL_FAIL};
    (void)state; /* none */
    struct race race;
    begin(&race);
    for (int i = 0; i < ROUNDS; i++) {
        put(&race.a, "1");
        expect_taken(&race.a, "1 ");
        race.a.action = ends[i % 2];
        race.b.put = "2";
        (void)lite_run(race.app, "BEGIN IMMEDIATE");
        call(i % 4 < 2 ? &race.a : &race.b, i % 4 < 2 ? settle : enqueue);
        call(i % 4 < 2 ? &race.b : &race.a, i % 4 < 2 ? enqueue : settle);
        (void)lite_run(race.app, "COMMIT");
        answer(&race.a);
        answer(&race.b);
        REST(&race, "2 ");
    }
    end(&race);
}

/* The same, and others wait already: they come in the order of their enqueues all the same. */
static void wake_an_enqueue_behind_others(void **state)
{
    (void)state; /* none */
    struct race race;
    begin(&race);
    for (int i = 0; i < ROUNDS; i++) {
        put(&race.a, "1");
        put(&race.b, "2");
        expect_taken(&race.a, "1 ");
        race.b.put = "3";
        (void)lite_run(race.app, "BEGIN IMMEDIATE");
        call(&race.a, settle);
        call(&race.b, enqueue);
        (void)lite_run(race.app, "COMMIT");
        answer(&race.a);
        answer(&race.b);
        REST(&race, "2 ", "3 ");
    }
    end(&race);
}

/* The first one is Ready, and is cancelled while another comes. */
static void wake_an_enqueue_and_the_cancel_of_the_first(void **state)
{
    (void)state; /* none */
    struct race race;
    begin(&race);
    for (int i = 0; i < ROUNDS; i++) {
        put(&race.a, "1");
        race.b.put = "2";
        (void)lite_run(race.app, "BEGIN IMMEDIATE");
        call(&race.a, cancel);
        call(&race.b, enqueue);
        (void)lite_run(race.app, "COMMIT");
        answer(&race.a);
        answer(&race.b);
        REST(&race, "2 ");
    }
    end(&race);
}

/* ---------------------------------------------------------------- two of one key */

/* Both claim: one of them gets the first, nobody the second. */
static void two_claims_of_one_key(void **state)
{
    (void)state; /* none */
    struct race race;
    begin(&race);
    for (int i = 0; i < ROUNDS; i++) {
        put(&race.a, "1");
        put(&race.b, "2");
        (void)lite_run(race.app, "BEGIN IMMEDIATE");
        call(&race.a, claim);
        call(&race.b, claim);
        (void)lite_run(race.app, "COMMIT");
        answer(&race.a);
        answer(&race.b);
        bool is_a = strcmp(race.a.names, "1 ") == 0;
        assert_string_equal(race.a.names, is_a ? "1 " : "");
        assert_string_equal(race.b.names, is_a ? "" : "1 ");
        make(is_a ? &race.a : &race.b, settle);
        REST(&race, "2 ");
    }
    end(&race);
}

/* A claim comes while the first one is given back for a retry: it gets that one, or nothing. */
static void a_claim_and_a_retry_of_the_first(void **state)
{
    (void)state; /* none */
    struct race race;
    begin(&race);
    for (int i = 0; i < ROUNDS; i++) {
        put(&race.a, "1");
        put(&race.b, "2");
        expect_taken(&race.a, "1 ");
        int64_t fence = race.a.fence;
        race.a.action = PAWL_RETRY;
        (void)lite_run(race.app, "BEGIN IMMEDIATE");
        call(&race.a, settle);
        call(&race.b, claim);
        (void)lite_run(race.app, "COMMIT");
        answer(&race.a);
        answer(&race.b);
        race.b.action = PAWL_SUCCEED;
        if (race.b.names[0] == '\0')
            make(&race.b, claim);
        assert_string_equal(race.b.names, "1 ");
        assert_true(race.b.fence > fence);
        make(&race.b, settle);
        REST(&race, "2 ");
    }
    end(&race);
}

/* An application that knows SQL only cannot make a second first one, not even by hand. */
static void a_second_first_job_is_refused(void **state)
{
    (void)state; /* none */
    struct race race;
    begin(&race);
    put(&race.a, "1");
    put(&race.a, "2");
    assert_int_equal(sqlite3_exec(race.app, "UPDATE pawl_job SET is_waiting = 0", NULL, NULL, NULL),
                     SQLITE_CONSTRAINT);
    REST(&race, "1 ", "2 ");
    end(&race);
}

/* ---------------------------------------------------------------- the last place */

static void two_claims_of_the_last_place(void **state)
{
    (void)state; /* none */
    struct race race;
    pawl_queue_settings settings;
    begin(&race);
    pawl_queue_settings_init(&settings);
    settings.max_in_flight = 1;
    assert_int_equal(pawl_queue_set(race.a.world.store, QUEUE, &settings, NULL), PAWL_OK);
    for (int i = 0; i < ROUNDS; i++) {
        (void)lite_put(&race.a.world, QUEUE);
        (void)lite_put(&race.b.world, QUEUE);
        (void)lite_run(race.app, "BEGIN IMMEDIATE");
        call(&race.a, claim);
        call(&race.b, claim);
        (void)lite_run(race.app, "COMMIT");
        answer(&race.a);
        answer(&race.b);
        bool is_a = race.a.names[0] != '\0';
        assert_string_equal(race.a.names, is_a ? "payload " : "");
        assert_string_equal(race.b.names, is_a ? "" : "payload ");
        make(is_a ? &race.a : &race.b, settle);
        REST(&race, "payload ");
    }
    end(&race);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wake_an_enqueue_sees_the_first_before_its_end),
        cmocka_unit_test(wake_an_enqueue_that_is_rolled_back),
        cmocka_unit_test(wake_an_enqueue_and_the_end_of_the_first),
        cmocka_unit_test(wake_an_enqueue_behind_others),
        cmocka_unit_test(wake_an_enqueue_and_the_cancel_of_the_first),
        cmocka_unit_test(two_claims_of_one_key),
        cmocka_unit_test(a_claim_and_a_retry_of_the_first),
        cmocka_unit_test(a_second_first_job_is_refused),
        cmocka_unit_test(two_claims_of_the_last_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

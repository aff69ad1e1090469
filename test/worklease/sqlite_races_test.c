/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * sqlite_races_test.c - several processes on one file of work leases, and calls that wait for the
 * file while time passes (WL-LOCK, WL-SINGLE, RES-3); files from before, and files that are odd.
 * Owns:  the processes.
 * Never: uses a connection across fork().
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pawl/worklease.h"
#include "store/sqlite/sqlite.h"
#include "support/sqlite_world.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEASE_MS  1000
#define PROCESSES 4
#define OFFSETS   100

/* ---------------------------------------------------------------- two processes acquiring */

/* In memory that all processes share. */
struct bill {
    atomic_int acquired[OFFSETS]; /* how often each offset was */
    atomic_int refused;           /* HELD or ALREADY_PROCESSED */
};

/* Ask for every offset, and end those that were got. 0: all went well. */
static int work(const char *path, struct bill *bill, const char *owner)
{
    pawl_sqlite_options options;
    pawl_sqlite *sqlite = NULL;
    pawl_store *store = NULL;
    pawl_sqlite_options_init(&options);
    options.path = path;
    options.call_timeout_ms = 60000;
    if (pawl_sqlite_new(&options, &sqlite, NULL) != PAWL_OK ||
        pawl_sqlite_open(sqlite, &store, NULL) != PAWL_OK)
        return 1;
    for (int64_t offset = 0; offset < OFFSETS; offset++) {
        pawl_worklease_acquire args;
        pawl_worklease_acquired got;
        pawl_worklease_ended ended;
        char domain[16];
        (void)snprintf(domain, sizeof(domain), "%d", (int)offset % 5);
        pawl_worklease_acquire_init(&args);
        args.domain = domain;
        args.offset = offset;
        args.owner = owner;
        pawl_code rc = pawl_worklease_try_acquire(store, &args, &got, NULL);
        if (rc == PAWL_WL_ORDER) /* somebody else's turn: come back */
            rc = PAWL_OK, got.got = PAWL_GOT_HELD;
        if (rc != PAWL_OK)
            return 2;
        if (got.got != PAWL_GOT_ACQUIRED) {
            atomic_fetch_add(&bill->refused, 1);
            continue;
        }
        atomic_fetch_add(&bill->acquired[offset], 1);
        pawl_worklease_hold hold = {.domain = domain, .owner = owner, .token = got.token};
        if (pawl_worklease_succeed(store, &hold, &ended, NULL) != PAWL_OK)
            return 3;
    }
    pawl_store_close(store);
    pawl_sqlite_free(sqlite);
    return 0;
}

/* WL-SINGLE, WL-IDEMPOTENT: each may be the first to make the file, and the domain; no offset is
 * got twice. */
static void processes_acquire_each_offset_once(void **state)
{
    (void)state;
    struct scratch scratch;
    assert_true(scratch_make(&scratch));
    struct bill *bill = mmap(NULL, sizeof(*bill), PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(bill != MAP_FAILED);
    pid_t pids[PROCESSES];
    for (int i = 0; i < PROCESSES; i++) {
        char owner[16];
        (void)snprintf(owner, sizeof(owner), "process-%d", i);
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0)
            _exit(work(scratch.path, bill, owner));
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        assert_true(waitpid(pids[i], &status, 0) == pids[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    int all = 0;
    for (int i = 0; i < OFFSETS; i++) {
        assert_true(atomic_load(&bill->acquired[i]) <= 1);
        all += atomic_load(&bill->acquired[i]);
    }
    assert_true(all > 0 && all + atomic_load(&bill->refused) == PROCESSES * OFFSETS);
    (void)munmap(bill, sizeof(*bill)); /* the process ends soon */
    scratch_remove(&scratch);
}

/* ---------------------------------------------------------------- calls that wait for the file */

/* A clock that two threads may use. */
static atomic_llong clock_us;

static pawl_wall shared_wall(void *user)
{
    (void)user; /* there is one */
    return (pawl_wall){atomic_load(&clock_us)};
}

static pawl_mono shared_mono(void *user)
{
    return (pawl_mono){shared_wall(user).us};
}

enum verb {
    ACQUIRE,
    SUCCEED,
    RENEW
};

struct race {
    struct lite_world world;
    sqlite3 *app; /* another program's connection */
    pawl_token token;

    /* The call under way. */
    enum verb verb;
    const char *owner;
    pthread_t thread;
    pawl_code code;
    pawl_worklease_acquired got;
    pawl_wall until;
};

static void make(struct race *race)
{
    pawl_worklease_acquire args;
    pawl_worklease_ended ended;
    pawl_worklease_hold hold = {.domain = "A", .owner = race->owner, .token = race->token};
    pawl_store *store = race->world.store;
    switch (race->verb) {
    case ACQUIRE:
        pawl_worklease_acquire_init(&args);
        args.domain = "A";
        args.offset = 1;
        args.owner = race->owner;
        args.lease_ms = LEASE_MS;
        race->code = pawl_worklease_try_acquire(store, &args, &race->got, NULL);
        break;
    case SUCCEED:
        race->code = pawl_worklease_succeed(store, &hold, &ended, NULL);
        break;
    case RENEW:
        race->code = pawl_worklease_renew(store, &hold, LEASE_MS, &race->until, NULL);
        break;
    }
}

static void *run(void *user)
{
    make(user);
    return NULL;
}

static void begin(struct race *race)
{
    *race = (struct race){.owner = "anna", .verb = ACQUIRE};
    atomic_store(&clock_us, 1700000000000000);
    lite_world_make(&race->world);
    race->world.clock = (pawl_clock){shared_mono, shared_wall, NULL};
    race->world.options.call_timeout_ms = 60000; /* a slow machine is no fault of the store's */
    lite_world_open(&race->world);
    race->app = lite_connect(&race->world);
    make(race);
    assert_int_equal(race->code, PAWL_OK);
    assert_int_equal(race->got.got, PAWL_GOT_ACQUIRED);
    race->token = race->got.token;
}

static void end(struct race *race)
{
    assert_int_equal(sqlite3_close(race->app), SQLITE_OK);
    lite_world_end(&race->world);
}

/* Begin a call while another program has the file, and wait until it is led: then it waits. */
static void call(struct race *race, enum verb verb, const char *owner)
{
    (void)lite_run(race->app, "BEGIN IMMEDIATE");
    race->verb = verb;
    race->owner = owner;
    assert_int_equal(pthread_create(&race->thread, NULL, run, race), 0);
    for (bool is_led = false; !is_led;) {
        pawli_sqlite_lock(race->world.sqlite);
        is_led = race->world.sqlite->is_led;
        pawli_sqlite_unlock(race->world.sqlite);
        (void)sched_yield();
    }
}

/* The other program ends its transaction. Gives the code of the call. */
static pawl_code answer(struct race *race)
{
    (void)lite_run(race->app, "COMMIT");
    assert_int_equal(pthread_join(race->thread, NULL), 0);
    return race->code;
}

static void turn_ms(int64_t ms)
{
    (void)atomic_fetch_add(&clock_us, ms * 1000);
}

/* What another program's take-over leaves in the row. */
#define TAKE_OVER                                                              \
    "UPDATE pawl_worklease SET owner = 'bert', lease_token = randomblob(16), " \
    "lease_expires_at = lease_expires_at + 1000000"

static void takeover_succeed_takeover_first(void **state) /* WL-FENCE */
{
    (void)state;
    struct race race;
    begin(&race);
    turn_ms(LEASE_MS);
    call(&race, SUCCEED, "anna");
    (void)lite_run(race.app, TAKE_OVER);
    assert_int_equal(answer(&race), PAWL_WL_TOKEN);
    assert_int_equal(lite_ask(&race.world, "SELECT current_offset FROM pawl_worklease "
                                           "WHERE owner = 'bert'"),
                     1);
    end(&race);
}

static void takeover_succeed_succeed_first(void **state) /* WL-IDEMPOTENT */
{
    (void)state;
    struct race race;
    begin(&race);
    race.verb = SUCCEED;
    make(&race);
    assert_int_equal(race.code, PAWL_OK);
    turn_ms(LEASE_MS);
    call(&race, ACQUIRE, "bert");
    assert_int_equal(answer(&race), PAWL_OK);
    assert_int_equal(race.got.got, PAWL_GOT_ALREADY_PROCESSED);
    end(&race);
}

/* RES-3: the clock is read once the file is locked. */
static void succeed_waits_beyond_the_deadline(void **state)
{
    (void)state;
    struct race race;
    begin(&race);
    call(&race, SUCCEED, "anna");
    turn_ms(LEASE_MS);
    assert_int_equal(answer(&race), PAWL_WL_EXPIRED);
    end(&race);
}

static void renew_expiry_renew_waits_beyond_the_deadline(void **state)
{
    (void)state;
    struct race race;
    begin(&race);
    call(&race, RENEW, "anna");
    turn_ms(LEASE_MS);
    assert_int_equal(answer(&race), PAWL_WL_EXPIRED);
    end(&race);
}

static void renew_expiry_renew_first(void **state)
{
    (void)state;
    struct race race;
    begin(&race);
    turn_ms(LEASE_MS - 1);
    race.verb = RENEW;
    make(&race);
    assert_int_equal(race.code, PAWL_OK);
    turn_ms(1);
    call(&race, ACQUIRE, "bert");
    assert_int_equal(answer(&race), PAWL_OK);
    assert_int_equal(race.got.got, PAWL_GOT_HELD);
    /* And a take-over that waits takes what has expired meanwhile. */
    call(&race, ACQUIRE, "bert");
    turn_ms(LEASE_MS);
    assert_int_equal(answer(&race), PAWL_OK);
    assert_int_equal(race.got.got, PAWL_GOT_ACQUIRED);
    assert_true(race.got.is_taken_over);
    end(&race);
}

/* ---------------------------------------------------------------- files from before */

/* A file that was made before there were work leases gets their tables when it is opened, and keeps
 * what it has. */
static void older_file_gets_the_tables(void **state)
{
    (void)state;
    struct race race;
    begin(&race);
    pawl_id id = lite_put(&race.world, "mail");
    (void)id; /* only that there is one */
    assert_int_equal(sqlite3_close(race.app), SQLITE_OK);
    lite_world_close(&race.world);
    (void)lite_ask(&race.world, "DROP TABLE pawl_worklease");
    (void)lite_ask(&race.world, "DROP TABLE pawl_worklease_backlog");
    (void)lite_ask(&race.world, "DROP TABLE pawl_worklease_terminal");
    (void)lite_ask(&race.world, "DELETE FROM pawl_meta WHERE name = '004_worklease'");
    lite_world_open(&race.world);
    race.app = lite_connect(&race.world);
    race.verb = ACQUIRE;
    make(&race);
    assert_int_equal(race.got.got, PAWL_GOT_ACQUIRED);
    assert_int_equal(lite_ask(&race.world, "SELECT count(*) FROM pawl_job"), 1);
    end(&race);
}

/* ---------------------------------------------------------------- files that somebody wrote to */

/* What contradicts itself is refused, and neither decided by nor written over. */
static void odd_rows_are_refused(void **state)
{
    (void)state;
    static const char *const odd[] = {
        /* the leased offset has ended */
        "INSERT INTO pawl_worklease_terminal SELECT domain_id, 0, 5, 0 FROM pawl_worklease",
        /* one waits that is not there, and one is there that does not wait */
        "UPDATE pawl_worklease SET backlog_count = 1",
        "INSERT INTO pawl_worklease_backlog SELECT domain_id, 0, 7 FROM pawl_worklease",
        "UPDATE pawl_worklease SET domain = domain || hex(zeroblob(300)) || domain",
    };
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        struct race race;
        pawl_worklease_info rows[2];
        size_t count;
        bool is_name = i == 3; /* it cannot be asked for, only listed */
        begin(&race);
        (void)lite_run(race.app, odd[i]);
        race.verb = SUCCEED;
        make(&race);
        assert_int_equal(race.code, is_name ? PAWL_WL_NO_LEASE : PAWL_DOWN);
        assert_int_equal(lite_ask(&race.world, "SELECT current_offset FROM pawl_worklease"), 1);
        if (i > 0)
            assert_int_equal(pawl_worklease_domains(race.world.store, NULL, rows, 2, &count, NULL),
                             PAWL_DOWN);
        end(&race);
    }
}

/* Whatever a column says, past what the table refuses, each call ends with an answer, and at most
 * one of two that hold the lease can end it (WL-FENCE). */
static void whatever_a_row_says_calls_end(void **state)
{
    (void)state;
    static const char *const columns[] = {"domain_id",     "current_offset", "lease_token",
                                          "owner",         "acquired_at",    "retry_count",
                                          "backlog_first", "backlog_count",  "lease_expires_at"};
    static const char *const values[] = {"NULL",
                                         "-1",
                                         "0",
                                         "1",
                                         "9223372036854775807",
                                         "(-9223372036854775807 - 1)",
                                         "''",
                                         "'bert'",
                                         "x'00'",
                                         "zeroblob(16)",
                                         "printf('%0300d', 1)"};
    struct race race;
    size_t edits = 0;
    begin(&race);
    (void)lite_run(race.app, "PRAGMA ignore_check_constraints = ON");
    for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
        for (size_t k = 0; k < sizeof(values) / sizeof(values[0]); k++) {
            char sql[128];
            (void)lite_run(race.app, "DELETE FROM pawl_worklease; DELETE FROM "
                                     "pawl_worklease_backlog; DELETE FROM pawl_worklease_terminal");
            race.verb = ACQUIRE;
            race.owner = "anna";
            make(&race);
            assert_int_equal(race.code, PAWL_OK);
            race.token = race.got.token;
            (void)snprintf(sql, sizeof(sql), "UPDATE pawl_worklease SET %s = %s", columns[i],
                           values[k]);
            edits += sqlite3_exec(race.app, sql, NULL, NULL, NULL) == SQLITE_OK;
            pawl_worklease_acquire behind;
            pawl_worklease_acquired got;
            pawl_worklease_acquire_init(&behind);
            behind.domain = "A";
            behind.offset = 2;
            race.code = pawl_worklease_try_acquire(race.world.store, &behind, &got, NULL);
            race.verb = RENEW;
            make(&race);
            race.verb = ACQUIRE;
            race.owner = "bert";
            make(&race);
            bool is_berts = race.code == PAWL_OK && race.got.got == PAWL_GOT_ACQUIRED &&
                            race.got.offset == 1;
            race.verb = SUCCEED;
            race.owner = "anna";
            make(&race);
            assert_false(is_berts && race.code == PAWL_OK);
        }
    }
    assert_true(edits > 50); /* otherwise nothing was tried */
    end(&race);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes_acquire_each_offset_once), /* before there are threads */
        cmocka_unit_test(takeover_succeed_takeover_first),
        cmocka_unit_test(takeover_succeed_succeed_first),
        cmocka_unit_test(succeed_waits_beyond_the_deadline),
        cmocka_unit_test(renew_expiry_renew_waits_beyond_the_deadline),
        cmocka_unit_test(renew_expiry_renew_first),
        cmocka_unit_test(older_file_gets_the_tables),
        cmocka_unit_test(odd_rows_are_refused),
        cmocka_unit_test(whatever_a_row_says_calls_end),
    };
    return cmocka_run_group_tests_name("worklease_sqlite_races", tests, NULL, NULL);
}

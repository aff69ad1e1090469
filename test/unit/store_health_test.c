/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * store_health_test.c - what is found wrong with a deployment, exactly at the edges: with clocks
 * turned by hand, on a SQLite store.
 */
#include "support/sqlite_world.h"

#include "store/health.h"
#include "store/sqlite/sqlite.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define FINDINGS_MAX 16

struct told {
    struct pawli_finding list[FINDINGS_MAX];
    size_t count;
};

static void keep(void *user, const struct pawli_finding *finding)
{
    struct told *told = user;
    assert_true(told->count < FINDINGS_MAX);
    told->list[told->count++] = *finding;
}

/* A deployment whose machine has a clock of its own. */
struct place {
    struct lite_world world;
    struct pawli_manual_clock here;
    pawl_clock clock;
    int64_t interval_ms;
};

static void begin(struct place *place)
{
    lite_world_make(&place->world);
    lite_world_open(&place->world);
    place->here = place->world.manual;
    place->clock = pawli_manual_clock_as_clock(&place->here);
    place->interval_ms = PAWL_DEFAULT;
}

static enum pawli_health_level level_of(struct place *place, const char *name)
{
    struct told told = {.count = 0};
    struct pawli_health health = {.tell = keep, .user = &told};
    struct pawli_health_args args = {.reaper_interval_ms = place->interval_ms,
                                     .clock = &place->clock};
    pawl_err err = {.text = ""};
    pawl_code code = pawli_health_check(place->world.store, &args, &health, &err);
    if (code != PAWL_OK)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < told.count; i++) {
        assert_true((told.list[i].advice != NULL) == (told.list[i].level != PAWLI_HEALTH_OK));
        if (strcmp(told.list[i].name, name) == 0)
            return told.list[i].level;
    }
    fail_msg("nothing is told of %s", name);
    return PAWLI_HEALTH_OK;
}

static void see(struct place *place, const char *name, pawl_worker_kind kind)
{
    pawl_worker_seen seen = {.name = name, .kind = kind, .host = "h", .version = "1"};
    assert_int_equal(pawl_worker_seen_now(place->world.store, &seen, NULL), PAWL_OK);
}

static void turn(struct place *place, int64_t ms)
{
    pawli_manual_clock_turn_ms(&place->world.manual, ms);
    pawli_manual_clock_turn_ms(&place->here, ms);
}

static void set_lease(struct place *place, int64_t lease_ms)
{
    pawl_queue_settings settings;
    pawl_queue_settings_init(&settings);
    settings.lease_ms = lease_ms;
    assert_int_equal(pawl_queue_set(place->world.store, "mail", &settings, NULL), PAWL_OK);
}

/* RULE-020-020: three intervals, and not a millisecond more. */
static void a_reaper_must_have_run_within_three_intervals(void **state)
{
    (void)state;
    struct place place;
    begin(&place);
    assert_int_equal(level_of(&place, "reaper"), PAWLI_HEALTH_ERROR);
    see(&place, "w", PAWL_KIND_WORKER);
    assert_int_equal(level_of(&place, "reaper"), PAWLI_HEALTH_ERROR);
    see(&place, "w/reaper", PAWL_KIND_REAPER);
    assert_int_equal(level_of(&place, "reaper"), PAWLI_HEALTH_OK);
    turn(&place, 30000);
    assert_int_equal(level_of(&place, "reaper"), PAWLI_HEALTH_OK);
    turn(&place, 1);
    assert_int_equal(level_of(&place, "reaper"), PAWLI_HEALTH_ERROR);
    see(&place, "another", PAWL_KIND_REAPER); /* one is enough */
    assert_int_equal(level_of(&place, "reaper"), PAWLI_HEALTH_OK);
    lite_world_end(&place.world);
}

/* RULE-020-022: the interval is half of the smallest lease, unless it is said. */
static void the_interval_is_derived(void **state)
{
    (void)state;
    struct place place;
    begin(&place);
    see(&place, "r", PAWL_KIND_REAPER);
    set_lease(&place, 4000);
    turn(&place, 6000);
    assert_int_equal(level_of(&place, "reaper"), PAWLI_HEALTH_OK);
    turn(&place, 1);
    assert_int_equal(level_of(&place, "reaper"), PAWLI_HEALTH_ERROR);
    place.interval_ms = 2001;
    assert_int_equal(level_of(&place, "reaper"), PAWLI_HEALTH_OK);
    /* However short it is, a call may take its time. */
    set_lease(&place, PAWL_LEASE_MIN_MS);
    place.interval_ms = PAWL_DEFAULT;
    see(&place, "r", PAWL_KIND_REAPER);
    turn(&place, 3000);
    assert_int_equal(level_of(&place, "reaper"), PAWLI_HEALTH_OK);
    turn(&place, 1);
    assert_int_equal(level_of(&place, "reaper"), PAWLI_HEALTH_ERROR);
    lite_world_end(&place.world);
}

static void leases_are_recovered_in_time(void **state)
{
    (void)state;
    struct place place;
    begin(&place);
    set_lease(&place, 4000);
    (void)lite_put(&place.world, "mail");
    pawl_job job = lite_take_one(&place.world, "mail");
    turn(&place, 4000 + 6000);
    assert_int_equal(level_of(&place, "leases"), PAWLI_HEALTH_OK);
    turn(&place, 1);
    assert_int_equal(level_of(&place, "leases"), PAWLI_HEALTH_ERROR);
    pawl_job_clear(&job);
    lite_world_end(&place.world);
}

static void clocks_are_compared(void **state)
{
    (void)state;
    static const struct {
        int64_t apart_ms;
        enum pawli_health_level level;
    } cases[] = {{0, PAWLI_HEALTH_OK},          {1000, PAWLI_HEALTH_OK},
                 {1001, PAWLI_HEALTH_WARNING},  {10000, PAWLI_HEALTH_WARNING},
                 {10001, PAWLI_HEALTH_ERROR},   {-1000, PAWLI_HEALTH_OK},
                 {-1001, PAWLI_HEALTH_WARNING}, {-10001, PAWLI_HEALTH_ERROR}};
    struct place place;
    begin(&place);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        place.here.wall.us = place.world.manual.wall.us + cases[i].apart_ms * 1000;
        assert_int_equal(level_of(&place, "clock"), cases[i].level);
    }
    lite_world_end(&place.world);
}

/* What a connection must be set to. Ours are; here they are bent. */
static void a_connection_that_is_not_durable_is_found(void **state)
{
    (void)state;
    struct place place;
    begin(&place);
    struct handle *handle = pawli_sqlite_handle(place.world.store);
    assert_int_equal(level_of(&place, "synchronous"), PAWLI_HEALTH_OK);
    (void)lite_run(handle->reader.db, "PRAGMA synchronous = EXTRA");
    assert_int_equal(level_of(&place, "synchronous"), PAWLI_HEALTH_OK);
    (void)lite_run(handle->reader.db, "PRAGMA synchronous = NORMAL");
    assert_int_equal(level_of(&place, "synchronous"), PAWLI_HEALTH_ERROR);
    (void)lite_run(handle->reader.db, "PRAGMA synchronous = OFF");
    assert_int_equal(level_of(&place, "synchronous"), PAWLI_HEALTH_ERROR);
    lite_world_end(&place.world);
}

/* Nobody can change it while a handle is open: another file stands in for one of an older kind. */
static void a_file_without_a_log_is_found(void **state)
{
    (void)state;
    struct place place;
    begin(&place);
    struct handle *handle = pawli_sqlite_handle(place.world.store);
    struct told told = {.count = 0};
    struct pawli_health health = {.tell = keep, .user = &told};
    assert_int_equal(level_of(&place, "journal_mode"), PAWLI_HEALTH_OK);
    pawli_sqlite_disconnect(&handle->reader);
    assert_int_equal(sqlite3_open(":memory:", &handle->reader.db), SQLITE_OK);
    (void)lite_run(handle->reader.db,
                   "CREATE TABLE pawl_job (queue_id, ordering_key, is_waiting);"
                   "CREATE INDEX pawl_job_first ON pawl_job (queue_id, ordering_key) "
                   "WHERE ordering_key IS NOT NULL AND is_waiting = 0;"
                   "CREATE INDEX pawl_job_waiting ON pawl_job (queue_id, ordering_key) "
                   "WHERE is_waiting = 1");
    assert_int_equal(place.world.store->ops->health(place.world.store, &health, NULL), PAWL_OK);
    for (size_t i = 0; i < told.count; i++)
        if (strcmp(told.list[i].name, "journal_mode") == 0)
            assert_int_equal(told.list[i].level, PAWLI_HEALTH_ERROR);
    assert_true(told.count > 3);
    lite_world_end(&place.world);
}

static void put_keyed(struct place *place, const char *key, size_t count)
{
    pawl_enqueue_row row;
    pawl_enqueued result;
    pawl_enqueue_init(&row);
    row.queue = "mail";
    row.ordering_key = key;
    for (size_t i = 0; i < count; i++)
        assert_int_equal(pawl_enqueue(place->world.store, &row, 1, &result, NULL), PAWL_OK);
}

/* Q-AT-LEAST-ONCE: an edit by hand took the first job of a key away, and the others would wait for
 * ever. What the manual says helps. */
static void a_key_without_a_first_job_is_found(void **state)
{
    (void)state;
    struct place place;
    begin(&place);
    put_keyed(&place, "good", 2);
    put_keyed(&place, "bent", 3);
    assert_int_equal(level_of(&place, "ordering_keys"), PAWLI_HEALTH_OK);
    sqlite3 *db = lite_connect(&place.world);
    (void)lite_run(db, "DELETE FROM pawl_job WHERE ordering_key = 'bent' AND is_waiting = 0");
    assert_int_equal(level_of(&place, "ordering_keys"), PAWLI_HEALTH_ERROR);
    (void)lite_run(db, "UPDATE pawl_job SET is_waiting = 0 WHERE number IN ("
                       "SELECT (SELECT number FROM pawl_job AS n WHERE n.queue_id = w.queue_id "
                       "AND n.ordering_key = w.ordering_key AND n.is_waiting = 1 "
                       "ORDER BY key_seq LIMIT 1) FROM pawl_job AS w WHERE is_waiting = 1 "
                       "AND NOT EXISTS (SELECT 1 FROM pawl_job AS f WHERE f.queue_id = w.queue_id "
                       "AND f.ordering_key = w.ordering_key AND f.is_waiting = 0))");
    assert_int_equal(level_of(&place, "ordering_keys"), PAWLI_HEALTH_OK);
    pawl_job jobs[3];
    assert_int_equal(lite_take(&place.world, "mail", jobs, 3), 2); /* one of each key */
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    lite_world_end(&place.world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reaper_must_have_run_within_three_intervals),
        cmocka_unit_test(the_interval_is_derived),
        cmocka_unit_test(leases_are_recovered_in_time),
        cmocka_unit_test(clocks_are_compared),
        cmocka_unit_test(a_connection_that_is_not_durable_is_found),
        cmocka_unit_test(a_file_without_a_log_is_found),
        cmocka_unit_test(a_key_without_a_first_job_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

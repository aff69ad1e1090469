/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * pump_test.c - the pump as its owner sees it, with a clock turned by hand: a dispatcher with a
 * thread of its own uses it like this. What is looked at first after a pause is the clock (K3).
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "runtime/pool.h"
#include "runtime/pump_inside.h"
#include "runtime/stage.h"

#include <stdlib.h>
#include <string.h>

#define LEASE_MS  2000
#define WALL_FROM (INT64_C(1767225600) * 1000000)

struct owner {
    atomic_llong now_us;
    pawl_clock clock;
    pawl_memory *memory;
    pawl_store *store;
    struct fault_gate gate;
    pawl_opener opener;
    struct pawli_watch *watch;
    struct pawli_crew *crew;
    struct pawli_pump *pump;
    atomic_int wakes;
};

static pawl_mono read_mono(void *user)
{
    return (pawl_mono){atomic_load((atomic_llong *)user)};
}

static pawl_wall read_wall(void *user)
{
    return (pawl_wall){WALL_FROM + atomic_load((atomic_llong *)user)};
}

static void turn(struct owner *owner, int64_t ms)
{
    atomic_fetch_add(&owner->now_us, ms * 1000);
}

static pawl_code open_gated(void *user, pawl_role role, pawl_store **ret_store, pawl_err *err)
{
    struct owner *owner = user;
    (void)role;
    pawl_store *inner = NULL;
    assert_int_equal(pawl_memory_open(owner->memory, &inner, err), PAWL_OK);
    assert_int_equal(fault_store_open(inner, ret_store, err), PAWL_OK);
    fault_store_on_pass(*ret_store, fault_gate_pass, &owner->gate);
    return PAWL_OK;
}

static void on_wake(void *user)
{
    atomic_fetch_add(&((struct owner *)user)->wakes, 1);
}

static int set_up(void **state)
{
    struct owner *owner = calloc(1, sizeof(*owner));
    pawl_memory_options memory;
    pawl_worker_settings settings;
    pawl_err err;
    assert_non_null(owner);
    atomic_store(&owner->now_us, 1000000);
    owner->clock = (pawl_clock){read_mono, read_wall, &owner->now_us};
    pawl_memory_options_init(&memory);
    memory.clock = &owner->clock;
    assert_int_equal(pawl_memory_new(&memory, &owner->memory, &err), PAWL_OK);
    assert_int_equal(pawl_memory_open(owner->memory, &owner->store, &err), PAWL_OK);
    fault_gate_init(&owner->gate);
    owner->opener = (pawl_opener){open_gated, owner};
    owner->watch = pawli_watch_new(&(pawl_watch){.tell = NULL}, &owner->clock, "owner");
    owner->crew = pawli_crew_new(PAWLI_PUMP_THREADS, NULL, NULL);
    assert_true(owner->watch != NULL && owner->crew != NULL);
    pawl_worker_settings_init(&settings);
    settings.call_timeout_ms = 60000;
    static const pawl_worker_queue line = {STAGE_QUEUE, PAWL_DEFAULT, LEASE_MS};
    struct pawli_pump_config config = {.opener = &owner->opener,
                                       .worker = "owner/1/1",
                                       .lines = &line,
                                       .lines_count = 1,
                                       .lines_max = 3,
                                       .settings = &settings,
                                       .clock = &owner->clock,
                                       .random = pawl_random_system(),
                                       .watch = owner->watch,
                                       .wake = on_wake,
                                       .user = owner};
    assert_int_equal(pawli_pump_new(&config, &owner->pump, &err), PAWL_OK);
    assert_int_equal(pawli_pump_start(owner->pump, owner->crew), PAWL_OK);
    *state = owner;
    return 0;
}

static int tear_down(void **state)
{
    struct owner *owner = *state;
    fault_gate_open(&owner->gate, FAULT_ANY_VERB);
    pawli_pump_end(owner->pump);
    assert_int_equal(pawli_crew_wait(owner->crew, STAGE_WAIT_MS), 0);
    assert_int_equal(pawli_crew_leave(owner->crew), 0);
    pawli_pump_free(owner->pump);
    pawli_watch_free(owner->watch);
    pawl_store_close(owner->store);
    pawl_memory_free(owner->memory);
    fault_gate_clear(&owner->gate);
    free(owner);
    return 0;
}

static pawl_id enqueue_into(struct owner *owner, const char *queue)
{
    pawl_enqueue_row row;
    pawl_enqueued result;
    pawl_enqueue_init(&row);
    row.queue = queue;
    row.payload = "x";
    row.payload_len = 1;
    assert_int_equal(pawl_enqueue(owner->store, &row, 1, &result, NULL), PAWL_OK);
    return result.id;
}

static pawl_id enqueue(struct owner *owner)
{
    return enqueue_into(owner, STAGE_QUEUE);
}

/* The next signal, of whatever kind; others may come first where the test does not care. */
static struct pawli_signal await(struct owner *owner, enum pawli_action_kind kind)
{
    struct pawli_signal signal = {.left = 0};
    pawl_mono deadline;
    AWAIT(pawli_pump_take(owner->pump, &signal, &deadline) && signal.kind == kind);
    return signal;
}

static pawl_state state_of(struct owner *owner, const pawl_id *id)
{
    pawl_job job;
    assert_int_equal(pawl_get(owner->store, id, &job, NULL), PAWL_OK);
    pawl_state state = job.state;
    pawl_job_clear(&job);
    return state;
}

/* Nothing is ordered there, and nothing on its way. */
static bool is_lane_idle(struct owner *owner, size_t lane)
{
    pthread_mutex_lock(&owner->pump->mutex);
    bool is_idle = !owner->pump->lanes[lane].has_next && !owner->pump->lanes[lane].is_out;
    pthread_mutex_unlock(&owner->pump->mutex);
    return is_idle;
}

static const struct pawli_pump_end done = {.ended = {.result = PAWLI_RESULT_DONE}};

/* ---------------------------------------------------------------- cases */

static size_t put_line(struct owner *owner, const char *queue, int64_t jobs_max)
{
    return pawli_pump_line_put(owner->pump, &(pawl_worker_queue){queue, jobs_max, LEASE_MS});
}

/* Queues come and go while it runs; a place is given away once nothing of its queue is held. */
static void lines_come_and_go(void **state)
{
    struct owner *owner = *state;
    pawl_job job;
    assert_int_equal(0, pawli_pump_line(owner->pump, STAGE_QUEUE));
    size_t first = put_line(owner, "b", 1);
    size_t second = put_line(owner, "a", 0);
    assert_true(first == 1 && second == 2);
    assert_int_equal(first, put_line(owner, "b", 1));
    assert_true(put_line(owner, "c", 1) == PAWLI_LINE_ALL); /* there are three */
    assert_true(pawli_pump_line(owner->pump, "c") == PAWLI_LINE_ALL);
    pawl_id id = enqueue_into(owner, "b");
    pawl_id waits = enqueue_into(owner, "a");
    struct pawli_signal start = await(owner, PAWLI_ACTION_START);
    assert_true(pawli_pump_begin(owner->pump, start.slot, &job));
    assert_int_equal(pawl_id_compare(&job.id, &id), 0);
    pawl_job_clear(&job);
    pawli_pump_line_drop(owner->pump, first);
    assert_true(put_line(owner, "c", 1) == PAWLI_LINE_ALL); /* something of it is held */
    pawli_pump_ended(owner->pump, start.slot, &done);
    (void)await(owner, PAWLI_ACTION_OVER);
    AWAIT(is_lane_idle(owner, LANE_CLAIM)); /* nor may it be asked for */
    assert_int_equal(first, put_line(owner, "c", 1));
    assert_int_equal(first, pawli_pump_line(owner->pump, "c"));
    assert_true(pawli_pump_line(owner->pump, "b") == PAWLI_LINE_ALL);
    assert_int_equal(PAWL_READY, state_of(owner, &waits));
    pawli_pump_line_bound(owner->pump, second, 1);
    start = await(owner, PAWLI_ACTION_START);
    assert_true(pawli_pump_begin(owner->pump, start.slot, &job));
    assert_int_equal(pawl_id_compare(&job.id, &waits), 0);
    pawl_job_clear(&job);
    pawli_pump_ended(owner->pump, start.slot, &done);
    (void)await(owner, PAWLI_ACTION_OVER);
}

static void a_job_goes_through_its_owner(void **state)
{
    struct owner *owner = *state;
    pawl_job job;
    pawl_id id = enqueue(owner);
    struct pawli_signal start = await(owner, PAWLI_ACTION_START);
    assert_true(atomic_load(&owner->wakes) > 0); /* it was called, not left to poll */
    assert_true(pawli_pump_begin(owner->pump, start.slot, &job));
    assert_int_equal(pawl_id_compare(&job.id, &id), 0);
    assert_int_equal(job.payload_len, 1);
    pawl_job_clear(&job);
    assert_int_equal(pawli_pump_stop_why(owner->pump, start.slot, NULL), PAWLI_WHY_NONE);
    pawli_pump_ended(owner->pump, start.slot, &done);
    struct pawli_signal over = await(owner, PAWLI_ACTION_OVER);
    assert_int_equal(over.why, PAWLI_WHY_SETTLED);
    assert_int_equal(state_of(owner, &id), PAWL_SUCCEEDED);
    pawli_pump_ended(owner->pump, start.slot, &done); /* too late: ignored */
    pawli_pump_shutdown(owner->pump, 1000);
    assert_int_equal(await(owner, PAWLI_ACTION_STOPPED).left, 0);
}

/* A claim that stops because its payloads are large is followed by another, not by the poll. */
static void large_payloads_do_not_wait_for_the_poll(void **state)
{
    enum {
        COUNT = 20 /* more than fit into a claim */
    };
    struct owner *owner = *state;
    pawl_enqueue_row rows[COUNT];
    pawl_enqueued results[COUNT];
    pawl_worker_settings settings;
    pawl_worker_settings_init(&settings);
    settings.call_timeout_ms = 60000;
    settings.parallel_max = COUNT;
    settings.buffer_max = 0;
    assert_int_equal(pawli_pump_set(owner->pump, &settings, NULL), PAWL_OK);
    char *payload = calloc(1, PAWL_PAYLOAD_MAX);
    assert_non_null(payload);
    for (size_t i = 0; i < COUNT; i++) {
        pawl_enqueue_init(&rows[i]);
        rows[i].queue = STAGE_QUEUE;
        rows[i].payload = payload;
        rows[i].payload_len = PAWL_PAYLOAD_MAX;
    }
    (void)enqueue(
        owner); /* when this one starts, nothing is left to be asked for before the rest */
    (void)await(owner, PAWLI_ACTION_START);
    AWAIT(is_lane_idle(owner, LANE_CLAIM));
    assert_int_equal(pawl_enqueue(owner->store, rows, COUNT - 1, results, NULL), PAWL_OK);
    AWAIT(pawli_pump_count(owner->pump).running == COUNT);
    free(payload);
}

/* Whoever ends a job is given the one that starts in its place, and nobody else is told. */
static void who_ends_one_is_given_the_next(void **state)
{
    struct owner *owner = *state;
    pawl_job job;
    struct pawli_slot next = {0};
    pawl_worker_settings settings;
    pawl_worker_settings_init(&settings);
    settings.call_timeout_ms = 60000;
    settings.parallel_max = 1; /* the next one is held, and does not start */
    assert_int_equal(pawli_pump_set(owner->pump, &settings, NULL), PAWL_OK);
    enqueue(owner);
    pawl_id second = enqueue(owner);
    struct pawli_signal start = await(owner, PAWLI_ACTION_START);
    assert_true(pawli_pump_begin(owner->pump, start.slot, &job));
    pawl_job_clear(&job);
    AWAIT(pawli_pump_count(owner->pump).buffered == 1);
    fault_gate_close(&owner->gate, FAULT_SETTLE);
    assert_true(pawli_pump_ended_next(owner->pump, start.slot, &done, &next));
    struct pawli_signal signal;
    pawl_mono deadline;
    assert_false(pawli_pump_take(owner->pump, &signal, &deadline)); /* it is the caller's */
    assert_true(pawli_pump_begin(owner->pump, next, &job));
    assert_int_equal(pawl_id_compare(&job.id, &second), 0);
    pawl_job_clear(&job);
    assert_false(pawli_pump_ended_next(owner->pump, next, &done, &next)); /* there is none */
    fault_gate_open(&owner->gate, FAULT_SETTLE);
    (void)await(owner, PAWLI_ACTION_OVER);
    (void)await(owner, PAWLI_ACTION_OVER);
    assert_int_equal(state_of(owner, &second), PAWL_SUCCEEDED);
}

/* The owner stood still between START and the beginning: nothing begins, nothing is settled. */
static void nothing_begins_after_a_pause(void **state)
{
    struct owner *owner = *state;
    pawl_job job;
    pawl_id id = enqueue(owner);
    struct pawli_signal start = await(owner, PAWLI_ACTION_START);
    fault_gate_close(&owner->gate, FAULT_RENEW);
    turn(owner, LEASE_MS);
    assert_false(pawli_pump_begin(owner->pump, start.slot, &job));
    pawli_pump_ended(owner->pump, start.slot, &done);
    assert_int_equal(await(owner, PAWLI_ACTION_OVER).why, PAWLI_WHY_BEAT_FAILED);
    assert_int_equal(fault_gate_passed(&owner->gate, FAULT_SETTLE), 0);
    assert_int_equal(state_of(owner, &id), PAWL_IN_FLIGHT);
}

/* A handler that asks after a pause is told to stop, before anybody else has looked at the clock.
 */
static void who_asks_after_a_pause_is_told(void **state)
{
    struct owner *owner = *state;
    pawl_job job;
    pawl_mono kill_by;
    enqueue(owner);
    struct pawli_signal start = await(owner, PAWLI_ACTION_START);
    assert_true(pawli_pump_begin(owner->pump, start.slot, &job));
    pawl_job_clear(&job);
    fault_gate_close(&owner->gate, FAULT_RENEW);
    turn(owner, LEASE_MS / 2 - 1);
    assert_int_equal(pawli_pump_stop_why(owner->pump, start.slot, &kill_by), PAWLI_WHY_NONE);
    turn(owner, 1); /* twice the heartbeat since the claim was sent: K2 */
    assert_int_equal(pawli_pump_stop_why(owner->pump, start.slot, &kill_by), PAWLI_WHY_BEAT_FAILED);
    assert_true(kill_by.us > atomic_load(&owner->now_us));
    assert_int_equal(await(owner, PAWLI_ACTION_ABORT).why, PAWLI_WHY_BEAT_FAILED);
    pawli_pump_ended(owner->pump, start.slot, &done);
    assert_int_equal(await(owner, PAWLI_ACTION_OVER).why, PAWLI_WHY_BEAT_FAILED);
    assert_int_equal(fault_gate_passed(&owner->gate, FAULT_SETTLE), 0);
}

/* A settle that waits while its lease comes at risk is not sent any more: the settler was busy with
 * another, and could not know. */
static void what_waits_for_too_long_is_not_sent(void **state)
{
    struct owner *owner = *state;
    pawl_job job;
    struct pawli_signal starts[2];
    pawl_id ids[2];
    for (size_t i = 0; i < 2; i++) {
        ids[i] = enqueue(owner);
        starts[i] = await(owner, PAWLI_ACTION_START);
        assert_true(pawli_pump_begin(owner->pump, starts[i].slot, &job));
        pawl_job_clear(&job);
    }
    fault_gate_close(&owner->gate, FAULT_SETTLE);
    fault_gate_close(&owner->gate, FAULT_RENEW);
    pawli_pump_ended(owner->pump, starts[0].slot, &done);
    AWAIT(fault_gate_waiting(&owner->gate, FAULT_SETTLE) == 1);
    pawli_pump_ended(owner->pump, starts[1].slot, &done);
    turn(owner, LEASE_MS);
    fault_gate_open(&owner->gate,
                    FAULT_SETTLE); /* the first was on its way: the store refuses it */
    assert_int_equal(await(owner, PAWLI_ACTION_OVER).why, PAWLI_WHY_AT_RISK);
    assert_int_equal(await(owner, PAWLI_ACTION_OVER).why, PAWLI_WHY_AT_RISK);
    assert_int_equal(fault_gate_passed(&owner->gate, FAULT_SETTLE), 1);
    assert_int_equal(state_of(owner, &ids[0]), PAWL_IN_FLIGHT);
    assert_int_equal(state_of(owner, &ids[1]), PAWL_IN_FLIGHT);
}

/*
 * Releases wait behind a settle that hangs, within the time that they have. When it is their turn
 * their leases are at risk: they are not sent, and the store is not asked.
 */
static void a_release_that_waited_is_withheld(void **state)
{
    struct owner *owner = *state;
    pawl_job job;
    enqueue(owner);
    struct pawli_signal start = await(owner, PAWLI_ACTION_START);
    assert_true(pawli_pump_begin(owner->pump, start.slot, &job));
    pawl_job_clear(&job);
    pawl_worker_settings settings;
    pawl_worker_settings_init(&settings);
    settings.call_timeout_ms = 60000;
    settings.parallel_max = 1; /* the next one is held, and does not start */
    assert_int_equal(pawli_pump_set(owner->pump, &settings, NULL), PAWL_OK);
    pawl_id id = enqueue(owner);
    AWAIT(pawli_pump_count(owner->pump).buffered == 1);
    fault_gate_close(&owner->gate, FAULT_SETTLE);
    pawli_pump_pause(owner->pump, PAWLI_LINE_ALL, true);
    pawli_pump_ended(owner->pump, start.slot, &done);
    AWAIT(fault_gate_waiting(&owner->gate, FAULT_SETTLE) == 1);
    fault_gate_close(&owner->gate, FAULT_RENEW);
    pawli_pump_shutdown(owner->pump, 60000); /* gives back what is held: behind the settle */
    AWAIT(pawli_pump_count(owner->pump).releasing == 1);
    turn(owner, LEASE_MS);
    fault_gate_open(&owner->gate, FAULT_SETTLE);
    await(owner, PAWLI_ACTION_OVER);
    await(owner, PAWLI_ACTION_OVER);
    await(owner, PAWLI_ACTION_STOPPED);
    AWAIT(is_lane_idle(owner, LANE_SETTLE) && is_lane_idle(owner, LANE_RELEASE));
    assert_int_equal(fault_gate_passed(&owner->gate, FAULT_RELEASE), 0);
    assert_int_equal(state_of(owner, &id), PAWL_IN_FLIGHT);
}

/* ---------------------------------------------------------------- what renewals cost: NFR-001 */

/* The next job starts, and begins. Gives its slot. */
static struct pawli_slot begin_next(struct owner *owner)
{
    pawl_job job;
    struct pawli_signal start = await(owner, PAWLI_ACTION_START);
    assert_true(pawli_pump_begin(owner->pump, start.slot, &job));
    pawl_job_clear(&job);
    return start.slot;
}

static void a_job_shorter_than_a_beat_is_never_renewed(void **state)
{
    struct owner *owner = *state;
    /* A lease counts from when its claim was sent, which may be while the job before it ran. All of
     * them together take longer than a beat. */
    for (int i = 0; i <= 20; i++) {
        enqueue(owner);
        struct pawli_slot slot = begin_next(owner);
        turn(owner, LEASE_MS / 4 / 20);
        pawli_pump_ended(owner->pump, slot, &done);
        assert_int_equal(await(owner, PAWLI_ACTION_OVER).why, PAWLI_WHY_SETTLED);
    }
    assert_int_equal(fault_gate_passed(&owner->gate, FAULT_RENEW), 0);
}

#define HELD 8

static bool are_renewed(struct owner *owner, const pawl_id ids[HELD], int64_t granted_us)
{
    size_t renewed = 0;
    for (size_t i = 0; i < HELD; i++) {
        pawl_job job;
        assert_int_equal(pawl_get(owner->store, &ids[i], &job, NULL), PAWL_OK);
        renewed += job.expires_at.us == granted_us + LEASE_MS / 4 * 1000;
        pawl_job_clear(&job);
    }
    return renewed == HELD;
}

static void one_call_renews_all_that_are_held(void **state)
{
    struct owner *owner = *state;
    pawl_id ids[HELD];
    for (size_t i = 0; i < HELD; i++)
        ids[i] = enqueue(owner);
    for (size_t i = 0; i < HELD; i++)
        (void)begin_next(owner);
    int64_t granted_us = owner->clock.wall(owner->clock.user).us + LEASE_MS * 1000;
    struct pawli_signal signal;
    pawl_mono deadline;
    turn(owner, LEASE_MS / 4);
    AWAIT((pawli_pump_take(owner->pump, &signal, &deadline), are_renewed(owner, ids, granted_us)));
    assert_int_equal(fault_gate_passed(&owner->gate, FAULT_RENEW), 1);
}

/* ---------------------------------------------------------------- a pool beside it */

struct hold {
    atomic_int running;
    atomic_bool is_open;
};

static int hold_on(pawl_job_ctx *ctx, void *user)
{
    struct hold *hold = user;
    atomic_fetch_add(&hold->running, 1);
    while (!atomic_load(&hold->is_open) && !pawl_job_is_cancelled(ctx))
        stage_breathe();
    return PAWL_SUCCEED;
}

/* Jobs that the keeper has started before the pool was told that it has grown do not wait for those
 * before them to end. */
static void a_pool_that_grows_runs_what_waits(void **state)
{
    struct owner *owner = *state;
    struct hold hold = {0};
    struct pawli_crew *crew = pawli_crew_new(3, NULL, NULL);
    struct pawli_pool *pool = pawli_pool_new(&(struct pawli_pool_config){.pump = owner->pump,
                                                                         .crew = crew,
                                                                         .handler = hold_on,
                                                                         .user = &hold,
                                                                         .worker = "owner/1/1",
                                                                         .clock = &owner->clock,
                                                                         .threads_max = 1,
                                                                         .stuck_max = 1});
    assert_true(crew != NULL && pool != NULL);
    for (int i = 0; i < 3; i++)
        enqueue(owner);
    for (int i = 0; i < 3; i++)
        pawli_pool_start(pool, await(owner, PAWLI_ACTION_START).slot);
    AWAIT(atomic_load(&hold.running) == 1);
    pawli_pool_set(pool, 3);
    AWAIT(atomic_load(&hold.running) == 3);
    atomic_store(&hold.is_open, true);
    for (int i = 0; i < 3; i++)
        await(owner, PAWLI_ACTION_OVER);
    pawli_pool_end(pool);
    assert_int_equal(pawli_crew_wait(crew, STAGE_WAIT_MS), 0);
    assert_int_equal(pawli_crew_leave(crew), 0);
    pawli_pool_free(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lines_come_and_go, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_job_goes_through_its_owner, set_up, tear_down),
        cmocka_unit_test_setup_teardown(large_payloads_do_not_wait_for_the_poll, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_ends_one_is_given_the_next, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_begins_after_a_pause, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_asks_after_a_pause_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_waits_for_too_long_is_not_sent, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_release_that_waited_is_withheld, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_job_shorter_than_a_beat_is_never_renewed, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(one_call_renews_all_that_are_held, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_pool_that_grows_runs_what_waits, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

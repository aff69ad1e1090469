/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * store_memory_mutant_test.c - each deliberate bug of the memory store goes wrong in the way that
 * its name says, leaves the store's records in order, and is off unless it is switched on.
 * Owns:  one small story for each; run on the library with its test points compiled in.
 * Never: proves that a bug is caught: the simulator does.
 */
#include "support/memory_check.h"
#include "support/memory_world.h"

#include "core/mutant.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* What happens in a stretched window: another handle does this, once. */
struct intruder {
    struct world *world;
    int point;
    void (*act)(struct world *other);
    int met;
};

static void intrude(int point, void *user)
{
    struct intruder *intruder = user;
    if (point != intruder->point || intruder->met++ > 0)
        return;
    struct world other = *intruder->world;
    assert_int_equal(pawl_memory_open(other.memory, &other.store, NULL), PAWL_OK);
    intruder->act(&other); /* would hang here if the lock were held */
    pawl_store_close(other.store);
}

static void switch_on(int mutant, struct intruder *intruder)
{
    pawli_testpoints.mutant = mutant;
    pawli_testpoints.stretch = intruder != NULL ? intrude : NULL;
    pawli_testpoints.user = intruder;
}

/* Nothing stays switched on behind the story that needed it. */
static void end(struct world *world)
{
    switch_on(PAWLI_MUTANT_NONE, NULL);
    world_end(world);
}

static void turn(struct world *world, int64_t ms)
{
    /* A copy of the world has a copy of the clock: turn the one that the store reads. */
    pawli_manual_clock_turn_ms(world->clock.user, ms);
}

static size_t reap_all(struct world *world, pawl_reaped *ret_rows, size_t rows_max)
{
    size_t count;
    assert_int_equal(pawl_reap(world->store, ret_rows, rows_max, &count, NULL), PAWL_OK);
    return count;
}

/* ---- the reaper */

static void claim_after_expiry(struct world *other)
{
    (void)world_claim_one(other, "second", "q");
}

static void reap_by_id(int mutant, size_t reaped_expected)
{
    struct world world;
    struct intruder intruder = {
        .world = &world, .point = PAWLI_STRETCH_REAP_PICKED, .act = claim_after_expiry};
    pawl_reaped reaped[4];
    world_make(&world, 1);
    pawl_id id = world_enqueue(&world, "q");
    (void)world_claim_one(&world, "first", "q");
    turn(&world, 30000);
    switch_on(mutant, &intruder);
    assert_int_equal(reap_all(&world, reaped, 4), reaped_expected);
    if (mutant != PAWLI_MUTANT_NONE) {
        assert_int_equal(intruder.met, 1);
        assert_string_equal(reaped[0].worker, "second"); /* a lease that had just been granted */
        assert_int_equal(reaped[0].lease_version, 2);
    }
    assert_int_equal(world_get(&world, &id).state, PAWL_READY);
    end(&world);
}

static void test_reap_by_id_only(void **state)
{
    (void)state;
    reap_by_id(PAWLI_MUTANT_NONE, 1);
    reap_by_id(PAWLI_MUTANT_REAP_BY_ID_ONLY, 1);
}

static void test_reap_unexpired(void **state)
{
    (void)state;
    struct world world;
    pawl_reaped reaped[4];
    world_make(&world, 1);
    pawl_id id = world_enqueue(&world, "q");
    (void)world_enqueue(&world, "q");
    (void)world_claim_one(&world, "w", "q");
    (void)world_claim_one(&world, "w", "q");
    assert_int_equal(reap_all(&world, reaped, 4), 0);
    switch_on(PAWLI_MUTANT_REAP_UNEXPIRED, NULL);
    assert_int_equal(reap_all(&world, reaped, 1), 1);
    assert_int_equal(reap_all(&world, reaped, 4), 1);
    assert_int_equal(world_get(&world, &id).reason, PAWL_REASON_EXPIRED);
    end(&world);
}

/* ---- the claim */

static void claim_and_succeed(struct world *other)
{
    pawl_job job = world_claim_one(other, "second", "q");
    world_settle(other, "second", &job, PAWL_SUCCEED);
}

static void claim_in_two_steps(void (*act)(struct world *other), pawl_state before)
{
    struct world world;
    struct intruder intruder = {.world = &world, .point = PAWLI_STRETCH_CLAIM_PICKED, .act = act};
    pawl_enqueue_row row;
    pawl_enqueue_init(&row);
    row.queue = "q";
    row.dedupe_key = "k";
    world_make(&world, 1);
    pawl_id id = world_enqueue_row(&world, &row);
    switch_on(PAWLI_MUTANT_CLAIM_TWO_STEPS, &intruder);
    pawl_job job = world_claim_one(&world, "first", "q");
    assert_int_equal(intruder.met > 0, 1);
    assert_int_equal(pawl_id_compare(&job.id, &id), 0);
    assert_int_equal(job.lease_version, 2); /* the other's was the first */
    assert_int_equal(job.attempts, before == PAWL_SUCCEEDED ? 1 : 0);
    assert_string_equal(world_get(&world, &id).worker, "first");
    end(&world);
}

static void prune_it(struct world *other)
{
    size_t count;
    claim_and_succeed(other);
    turn(other, INT64_C(8) * 24 * 3600 * 1000);
    assert_int_equal(pawl_prune(other->store, 1, &count, NULL), PAWL_OK);
    assert_int_equal(count, 1);
}

static void test_claim_two_steps(void **state)
{
    (void)state;
    claim_in_two_steps(claim_after_expiry, PAWL_IN_FLIGHT);
    claim_in_two_steps(claim_and_succeed, PAWL_SUCCEEDED);

    /* What is gone by then is left out: memory stays whole. */
    struct world world;
    struct intruder intruder = {
        .world = &world, .point = PAWLI_STRETCH_CLAIM_PICKED, .act = prune_it};
    pawl_job job;
    world_make(&world, 1);
    (void)world_enqueue(&world, "q");
    switch_on(PAWLI_MUTANT_CLAIM_TWO_STEPS, &intruder);
    assert_int_equal(world_claim(&world, "first", "q", &job, 1), 0);
    end(&world);
}

/* RES-8 */
static void test_token_per_worker(void **state)
{
    (void)state;
    struct world world;
    pawl_job jobs[4];
    world_make(&world, 1);
    for (int i = 0; i < 4; i++)
        (void)world_enqueue(&world, "q");
    jobs[0] = world_claim_one(&world, "w", "q");
    jobs[1] = world_claim_one(&world, "w", "q");
    assert_memory_not_equal(&jobs[0].token, &jobs[1].token, sizeof(pawl_token));
    switch_on(PAWLI_MUTANT_TOKEN_PER_WORKER, NULL);
    jobs[0] = world_claim_one(&world, "w", "q");
    jobs[1] = world_claim_one(&world, "w", "q");
    assert_memory_equal(&jobs[0].token, &jobs[1].token, sizeof(pawl_token));
    jobs[2] = world_get(&world, &jobs[0].id);
    end(&world);
}

/* ---- the settle */

static void settle_twice(int mutant, int64_t rows_expected)
{
    struct world world;
    world_make(&world, 1);
    pawl_id id = world_enqueue(&world, "q");
    pawl_job job = world_claim_one(&world, "w", "q");
    switch_on(mutant, NULL);
    world_settle(&world, "w", &job, PAWL_SUCCEED);
    world_settle(&world, "w", &job, PAWL_SUCCEED);
    assert_int_equal(world_get(&world, &id).attempts, rows_expected);
    end(&world);
}

static void test_settle_replay_again(void **state)
{
    (void)state;
    settle_twice(PAWLI_MUTANT_NONE, 1);
    settle_twice(PAWLI_MUTANT_SETTLE_REPLAY_AGAIN, 2);
}

/* Q-NEVER-AGAIN */
static void test_terminal_claimable(void **state)
{
    (void)state;
    struct world world;
    pawl_reaped reaped[4];
    world_make(&world, 1);
    pawl_id id = world_enqueue(&world, "q");
    pawl_id other = world_enqueue(&world, "q");
    switch_on(PAWLI_MUTANT_TERMINAL_CLAIMABLE, NULL);
    pawl_job job = world_claim_one(&world, "w", "q");
    world_settle(&world, "w", &job, PAWL_SUCCEED);
    job = world_claim_one(&world, "w", "q");
    world_settle(&world, "w", &job, PAWL_FAIL);
    assert_int_equal(reap_all(&world, reaped, 4), 0);
    assert_int_equal(world_get(&world, &id).state, PAWL_SUCCEEDED);
    turn(&world, 30000);
    assert_int_equal(reap_all(&world, reaped, 4), 1);
    job = world_get(&world, &id);
    assert_int_equal(job.state, PAWL_READY);
    assert_int_equal(job.attempts, 2);
    assert_int_equal(world_get(&world, &other).state, PAWL_FAILED);
    end(&world);
}

/* ---- ordering keys and bounds */

static pawl_enqueue_row row_of_key(void)
{
    pawl_enqueue_row row;
    pawl_enqueue_init(&row);
    row.queue = "q";
    row.ordering_key = "k";
    return row;
}

/* The first of two jobs of a key, claimed; and its id, and the other's. */
static pawl_job take_first(struct world *world, pawl_id *ret_ids)
{
    pawl_enqueue_row row = row_of_key();
    world_make(world, 1);
    ret_ids[0] = world_enqueue_row(world, &row);
    ret_ids[1] = world_enqueue_row(world, &row);
    return world_claim_one(world, "w", "q");
}

static void test_key_retry_overtaken(void **state)
{
    (void)state;
    struct world world;
    pawl_id ids[2];
    pawl_job job = take_first(&world, ids);
    switch_on(PAWLI_MUTANT_KEY_RETRY_OVERTAKEN, NULL);
    world_settle(&world, "w", &job, PAWL_RETRY);
    job = world_claim_one(&world, "w", "q");
    assert_int_equal(pawl_id_compare(&job.id, &ids[1]), 0);
    turn(&world, 20000);
    assert_int_equal(world_claim(&world, "w", "q", &job, 1), 0); /* still one at a time */
    end(&world);
}

static void test_key_release_forgets(void **state)
{
    (void)state;
    struct world world;
    pawl_id ids[2];
    pawl_job jobs[3];
    pawl_code code;
    jobs[0] = take_first(&world, ids);
    pawl_lease lease = world_lease(&jobs[0]);
    switch_on(PAWLI_MUTANT_KEY_RELEASE_FORGETS, NULL);
    assert_int_equal(pawl_release(world.store, "w", &lease, 1, &code, NULL), PAWL_OK);
    assert_int_equal(world_claim(&world, "w", "q", jobs, 3), 2);
    world_settle(&world, "w", &jobs[0], PAWL_SUCCEED);
    world_settle(&world, "w", &jobs[1], PAWL_SUCCEED);
    end(&world);
}

static void test_key_claim_two(void **state)
{
    (void)state;
    struct world world;
    pawl_enqueue_row row = row_of_key();
    pawl_job jobs[4];
    world_make(&world, 1);
    switch_on(PAWLI_MUTANT_KEY_CLAIM_TWO, NULL);
    for (int i = 0; i < 4; i++)
        (void)world_enqueue_row(&world, &row);
    assert_int_equal(world_claim(&world, "w", "q", jobs, 4), 2);
    world_settle(&world, "w", &jobs[0], PAWL_SUCCEED);
    assert_int_equal(world_claim(&world, "w", "q", jobs, 4), 1);
    end(&world);
}

static void test_fence_reused(void **state)
{
    (void)state;
    struct world world;
    pawl_id ids[2];
    pawl_job first = take_first(&world, ids);
    switch_on(PAWLI_MUTANT_FENCE_REUSED, NULL);
    turn(&world, 30000);
    pawl_job again = world_claim_one(&world, "w", "q");
    assert_int_equal(pawl_id_compare(&again.id, &ids[0]), 0);
    assert_true(again.fence == first.fence);
    world_settle(&world, "w", &again, PAWL_SUCCEED);
    pawl_job next = world_claim_one(&world, "w", "q");
    assert_true(next.fence > first.fence);
    end(&world);
}

static void test_in_flight_uncounted(void **state)
{
    (void)state;
    struct world world;
    pawl_queue_settings settings;
    pawl_job jobs[4];
    world_make(&world, 1);
    pawl_queue_settings_init(&settings);
    settings.max_in_flight = 2;
    assert_int_equal(pawl_queue_set(world.store, "q", &settings, NULL), PAWL_OK);
    for (int i = 0; i < 4; i++)
        (void)world_enqueue(&world, "q");
    switch_on(PAWLI_MUTANT_IN_FLIGHT_UNCOUNTED, NULL);
    assert_int_equal(world_claim(&world, "w", "q", jobs, 4), 2);
    assert_int_equal(world_claim(&world, "w", "q", jobs, 4), 2);
    end(&world);
}

/* ---- the window before the lock */

static void let_it_expire(struct world *other)
{
    turn(other, 30000);
}

/* RES-3: a settle that had to wait for the lock is judged by the clock of when it got it. */
static void test_the_clock_is_read_under_the_lock(void **state)
{
    (void)state;
    struct world world;
    struct intruder intruder = {
        .world = &world, .point = PAWLI_STRETCH_STORE_LOCK, .act = let_it_expire};
    pawl_settle_row row;
    pawl_settled settled;
    world_make(&world, 1);
    (void)world_enqueue(&world, "q");
    pawl_job job = world_claim_one(&world, "w", "q");
    pawl_settle_init(&row);
    row.lease = world_lease(&job);
    switch_on(PAWLI_MUTANT_NONE, &intruder);
    assert_int_equal(pawl_settle(world.store, "w", &row, 1, &settled, NULL), PAWL_OK);
    assert_int_equal(intruder.met, 1);
    assert_int_equal(settled.code, PAWL_STALE);
    end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reap_by_id_only),
        cmocka_unit_test(test_reap_unexpired),
        cmocka_unit_test(test_claim_two_steps),
        cmocka_unit_test(test_token_per_worker),
        cmocka_unit_test(test_settle_replay_again),
        cmocka_unit_test(test_terminal_claimable),
        cmocka_unit_test(test_key_retry_overtaken),
        cmocka_unit_test(test_key_release_forgets),
        cmocka_unit_test(test_key_claim_two),
        cmocka_unit_test(test_fence_reused),
        cmocka_unit_test(test_in_flight_uncounted),
        cmocka_unit_test(test_the_clock_is_read_under_the_lock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

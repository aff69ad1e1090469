/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * parts_test.c - what a simulation stands on: the order of events and the arithmetic of clocks.
 * Owns:  the proof of events.c and drift.c.
 * Never: runs a world.
 */
#include "sim/draw.h"
#include "sim/drift.h"
#include "sim/events.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void nothing(struct sim_world *world, const struct sim_event *event)
{
    (void)world;
    (void)event;
}

/* Events come by time, those of one instant in the order of planning; none is lost. */
static void test_events_come_in_order(void **state)
{
    (void)state;
    struct sim_events events = {0};
    struct sim_dice dice = sim_dice_for(7, 1);
    struct sim_event event;
    int64_t last_at = 0;
    uint64_t last_order = 0;
    size_t taken = 0;
    for (uint64_t i = 0; i < 5000; i++)
        sim_events_plan(&events,
                        (struct sim_event){.at = sim_between(&dice, 1, 300), .fn = nothing});
    while (sim_events_take(&events, INT64_MAX, &event)) {
        assert_true(event.at > last_at || (event.at == last_at && event.order > last_order));
        last_at = event.at;
        last_order = event.order;
        taken++;
    }
    assert_int_equal(taken, 5000);
    sim_events_clear(&events);
}

static void test_events_wait_for_their_time(void **state)
{
    (void)state;
    struct sim_events events = {0};
    struct sim_event event;
    sim_events_plan(&events, (struct sim_event){.at = 10, .fn = nothing});
    assert_false(sim_events_take(&events, 9, &event));
    assert_true(sim_events_take(&events, 10, &event));
    assert_false(sim_events_take(&events, INT64_MAX, &event));
    sim_events_clear(&events);
}

/* `when` is the first instant at which `read` shows the time asked for, at any rate. */
static void test_when_is_the_inverse_of_read(void **state)
{
    (void)state;
    struct sim_dice dice = sim_dice_for(7, 2);
    for (int i = 0; i < 20000; i++) {
        struct sim_drift drift = {
            .true_base_us = sim_between(&dice, 0, INT64_C(1) << 40),
            .base_us = sim_between(&dice, 0, INT64_C(1) << 40),
            .rate_ppm = sim_between(&dice, -10000, 10000),
        };
        int64_t shown = drift.base_us + sim_between(&dice, 1, INT64_C(1) << 36);
        int64_t at = sim_drift_when(&drift, shown);
        assert_true(sim_drift_read(&drift, at) >= shown);
        assert_true(sim_drift_read(&drift, at - 1) < shown);
    }
}

/* A change of pace does not make the clock jump; only a jump does. */
static void test_a_new_rate_does_not_jump(void **state)
{
    (void)state;
    struct sim_drift drift = {.true_base_us = 100, .base_us = 5000, .rate_ppm = 10000};
    int64_t before = sim_drift_read(&drift, 1000100);
    sim_drift_set_rate(&drift, 1000100, -10000);
    assert_int_equal(sim_drift_read(&drift, 1000100), before);
    assert_int_equal(sim_drift_read(&drift, 2000100), before + 990000);
    sim_drift_jump(&drift, -500);
    assert_int_equal(sim_drift_read(&drift, 2000100), before + 989500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events_come_in_order),
        cmocka_unit_test(test_events_wait_for_their_time),
        cmocka_unit_test(test_when_is_the_inverse_of_read),
        cmocka_unit_test(test_a_new_rate_does_not_jump),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

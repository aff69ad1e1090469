/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * deliver_slots_test.c - who has how many of the slots, when some of those who were fast hang.
 */
#include "deliver/slots.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define SLOTS     100
#define ENDPOINTS 20
#define LARGE     64 /* what an endpoint may have of itself, having answered well */

struct rig {
    struct pawli_slots slots;
    struct pawli_outlet *outlets[ENDPOINTS];
    pawl_mono now;
};

static int set_up(void **state)
{
    static struct rig rig;
    rig = (struct rig){.slots = {.all = SLOTS}, .now = {1000000}};
    for (int i = 0; i < ENDPOINTS; i++) {
        rig.outlets[i] = calloc(1, sizeof(struct pawli_outlet));
        assert_non_null(rig.outlets[i]);
        rig.outlets[i]->gate.window = rig.outlets[i]->gate.most = LARGE;
    }
    *state = &rig;
    return 0;
}

static int tear_down(void **state)
{
    struct rig *rig = *state;
    for (int i = 0; i < ENDPOINTS; i++)
        free(rig->outlets[i]);
    return 0;
}

/* It takes what it may have, as one with more work than that. Gives how many that were. */
static int64_t take_all(struct rig *rig, struct pawli_outlet *outlet)
{
    int64_t before = outlet->deliveries;
    while (rig->slots.taken < SLOTS && outlet->deliveries < LARGE &&
           outlet->deliveries < pawli_slots_bound(&rig->slots, 1))
        pawli_slots_take(&rig->slots, outlet, rig->now);
    return outlet->deliveries - before;
}

static void give_all(struct rig *rig, struct pawli_outlet *outlet)
{
    while (outlet->deliveries > 0)
        pawli_slots_give(&rig->slots, outlet);
}

/* Alone it has half, and beside others that have nothing to do now all but that of its own. */
static void test_who_is_alone_has_half(void **state)
{
    struct rig *rig = *state;
    assert_int_equal(SLOTS / 2, take_all(rig, rig->outlets[0]));
    assert_int_equal(3, pawli_slots_bound(&(struct pawli_slots){.all = 4, .active = 9, .taken = 9},
                                          3)); /* in any case */
}

/* Who has not answered yet may have a few, and leaves the rest of his part to others. */
static void test_those_who_may_have_few_leave_the_rest(void **state)
{
    struct rig *rig = *state;
    for (int i = 1; i < 5; i++) { /* four that hang with two each, beside one that does not */
        rig->outlets[i]->gate.window = 2;
        pawli_slots_take(&rig->slots, rig->outlets[i], rig->now);
        pawli_slots_take(&rig->slots, rig->outlets[i], rig->now);
    }
    assert_int_equal((SLOTS - 4 * SLOTS / 5 / 2) / 2, take_all(rig, rig->outlets[0]));
    give_all(rig, rig->outlets[0]);
    for (int i = 1; i < 5; i++)
        rig->outlets[i]->gate.window = LARGE; /* they have answered: an equal part for each */
    for (int i = 1; i < 5; i++)
        give_all(rig, rig->outlets[i]);
    assert_int_equal(SLOTS / 5, take_all(rig, rig->outlets[0]));
}

/* The noisy neighbour: each of them has answered well, and has work without end. Half of them hang
 * from one moment on. What the others get done in each round after that is what they did before. */
static void test_those_who_hang_leave_the_others_theirs(void **state)
{
    struct rig *rig = *state;
    int64_t before = 0, after = 0;
    for (int round = 0; round < 200; round++) {
        bool is_after = round >= 100;
        for (int i = 0; i < ENDPOINTS; i++) {
            struct pawli_outlet *outlet = rig->outlets[(i + round) % ENDPOINTS];
            int64_t taken = take_all(rig, outlet);
            if ((i + round) % ENDPOINTS % 2 != 0)
                *(is_after ? &after : &before) += taken;
        }
        for (int i = 0; i < ENDPOINTS; i++)
            if (!is_after || i % 2 != 0)
                give_all(rig, rig->outlets[i]);
    }
    assert_true(before > 0);
    assert_true(after * 10 >= before * 9);
}

/* The others need not have had work at that very moment. */
static void test_those_who_had_work_lately_keep_their_parts(void **state)
{
    struct rig *rig = *state;
    for (int i = 0; i < ENDPOINTS; i++) {
        pawli_slots_take(&rig->slots, rig->outlets[i], rig->now);
        pawli_slots_give(&rig->slots, rig->outlets[i]);
    }
    rig->now = pawli_mono_add_ms(rig->now, 4000);
    for (int i = 0; i < ENDPOINTS; i++)
        pawli_slots_look(&rig->slots, rig->outlets[i], rig->now);
    for (int turn = 0; turn < 100; turn++)
        for (int i = 0; i < ENDPOINTS; i += 2)
            (void)take_all(rig, rig->outlets[i]); /* and never gives any back */
    for (int i = 1; i < ENDPOINTS; i += 2) {
        assert_true(take_all(rig, rig->outlets[i]) >= SLOTS / ENDPOINTS);
        give_all(rig, rig->outlets[i]);
    }
}

/* Of one that has had no work for a while others may have the part. */
static void test_who_has_no_work_has_no_part(void **state)
{
    struct rig *rig = *state;
    for (int i = 0; i < ENDPOINTS; i++)
        pawli_slots_take(&rig->slots, rig->outlets[i], rig->now);
    for (int i = 1; i < ENDPOINTS; i++)
        give_all(rig, rig->outlets[i]);
    assert_int_equal(ENDPOINTS, rig->slots.active);
    rig->now = pawli_mono_add_ms(rig->now, 6000);
    for (int i = 0; i < ENDPOINTS; i++)
        pawli_slots_look(&rig->slots, rig->outlets[i], rig->now);
    assert_int_equal(1, rig->slots.active); /* the one that has something under way */
    give_all(rig, rig->outlets[0]);
    pawli_slots_leave(&rig->slots, rig->outlets[0]);
    assert_int_equal(0, rig->slots.active);
    assert_int_equal(0, rig->slots.taken);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_who_is_alone_has_half),
        CASE(test_those_who_may_have_few_leave_the_rest),
        CASE(test_those_who_hang_leave_the_others_theirs),
        CASE(test_those_who_had_work_lately_keep_their_parts),
        CASE(test_who_has_no_work_has_no_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * deliver_gate_test.c - whether an endpoint may be called, and how many of its deliveries may be
 * held, as its answers say. Every moment is turned by hand.
 */
#include "deliver/gate.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

struct rig {
    struct pawli_gate gate;
    struct pawli_gate_rules rules;
    struct pawli_breaker_now now;
};

static int set_up(void **state)
{
    static struct rig rig;
    memset(&rig, 0, sizeof(rig));
    pawli_breaker_rules_init(&rig.rules.breaker);
    rig.rules.window_start = 4;
    rig.now = (struct pawli_breaker_now){.mono = {1000000}, .wall = {INT64_C(1700000000000000)}};
    pawli_gate_init(&rig.gate, &rig.rules, rig.now.mono, (pawl_wall){0});
    pawli_gate_set(&rig.gate, rig.now.mono, (struct pawli_gate_bounds){.most = 6});
    *state = &rig;
    return 0;
}

static void turn_ms(struct rig *rig, int64_t ms)
{
    rig->now.mono = pawli_mono_add_ms(rig->now.mono, ms);
    rig->now.wall = pawli_wall_add_ms(rig->now.wall, ms);
}

static int64_t bound(struct rig *rig)
{
    return pawli_gate_bound(&rig->gate, rig->now.mono);
}

/* One delivery that ends so: status 0 for none. */
static enum pawli_breaker_event deliver(struct rig *rig, long status, enum pawli_transfer_end end)
{
    struct pawli_outcome_rules rules;
    struct pawli_gate_ended ended = {.end = end};
    const struct pawli_transfer transfer = {
        .end = end, .has_whole_headers = status != 0, .status = status};
    pawli_outcome_rules_init(&rules);
    assert_true(pawli_gate_ask(&rig->gate, rig->now.mono, &ended.pass));
    ended.outcome = pawli_outcome_of(&transfer, &rules, rig->now.wall);
    return pawli_gate_ended(&rig->gate, &rig->rules, rig->now, &ended);
}

/* The window grows with each success up to the endpoint's own maximum, and begins anew. */
static void test_the_window(void **state)
{
    struct rig *rig = *state;
    assert_int_equal(4, bound(rig));
    for (int i = 0; i < 5; i++)
        assert_int_equal(PAWLI_BREAKER_SAME, deliver(rig, 200, PAWLI_END_DONE));
    assert_int_equal(6, bound(rig));
    assert_int_equal(PAWLI_BREAKER_SAME, deliver(rig, 0, PAWLI_END_TIMEOUT));
    assert_int_equal(4, bound(rig));
    pawli_gate_set(&rig->gate, rig->now.mono, (struct pawli_gate_bounds){.most = 1});
    assert_int_equal(1, bound(rig));
}

/* What is our own fault says nothing of the endpoint; one that has too much to do is not broken. */
static void test_what_is_no_failure(void **state)
{
    struct rig *rig = *state;
    for (int i = 0; i < 100; i++) {
        assert_int_equal(PAWLI_BREAKER_SAME, deliver(rig, 0, PAWLI_END_STOPPED));
        assert_int_equal(PAWLI_BREAKER_SAME, deliver(rig, 0, PAWLI_END_LOCAL));
        assert_int_equal(PAWLI_BREAKER_SAME, deliver(rig, 429, PAWLI_END_DONE));
        turn_ms(rig, 5000);
    }
    assert_int_equal(PAWLI_BREAKER_CLOSED, rig->gate.breaker.state);
    assert_int_equal(0, rig->gate.breaker.failures);
}

/* Failures open the breaker; then there is room for one, the probe, and for no other. */
static void test_the_breaker(void **state)
{
    struct rig *rig = *state;
    struct pawli_breaker_pass pass;
    for (int i = 0; i < 4; i++)
        assert_int_equal(PAWLI_BREAKER_SAME, deliver(rig, 500, PAWLI_END_DONE));
    assert_int_equal(PAWLI_BREAKER_OPENED, deliver(rig, 500, PAWLI_END_DONE));
    assert_int_equal(0, bound(rig));
    assert_false(pawli_gate_ask(&rig->gate, rig->now.mono, &pass));
    pawl_mono until = pawli_gate_deadline(&rig->gate, rig->now.mono);
    assert_int_equal(10000, pawli_mono_diff_ms(rig->now.mono, until));
    turn_ms(rig, 9999);
    assert_int_equal(0, bound(rig));
    turn_ms(rig, 1);
    assert_int_equal(1, bound(rig));
    assert_true(pawli_gate_ask(&rig->gate, rig->now.mono, &pass));
    assert_int_equal(0, bound(rig)); /* while the probe is under way */
    assert_false(pawli_gate_ask(&rig->gate, rig->now.mono, &pass));
    assert_true(pawli_gate_deadline(&rig->gate, rig->now.mono).us == PAWLI_MONO_NEVER.us);
    const struct pawli_gate_ended ended = {.pass = {.probe = rig->gate.breaker.probes},
                                           .outcome = {.delivery = PAWLI_DELIVERED}};
    assert_int_equal(PAWLI_BREAKER_CLOSED_AGAIN,
                     pawli_gate_ended(&rig->gate, &rig->rules, rig->now, &ended));
    assert_true(bound(rig) > 1);
}

/* A pause is kept by all, and is not the breaker's. */
static void test_a_pause(void **state)
{
    struct rig *rig = *state;
    struct pawli_breaker_pass pass;
    assert_int_equal(PAWLI_BREAKER_SAME, deliver(rig, 503, PAWLI_END_DONE)); /* 5 s by default */
    assert_int_equal(0, bound(rig));
    assert_false(pawli_gate_ask(&rig->gate, rig->now.mono, &pass));
    pawli_gate_pause(&rig->gate, rig->now.mono, 1000); /* never shorter */
    turn_ms(rig, 4999);
    assert_int_equal(0, bound(rig));
    turn_ms(rig, 1);
    assert_int_equal(4, bound(rig));
}

static void test_gone(void **state)
{
    struct rig *rig = *state;
    assert_int_equal(PAWLI_BREAKER_NOW_DISABLED, deliver(rig, 410, PAWLI_END_DONE));
    assert_int_equal(0, bound(rig));
    turn_ms(rig, 1000000000);
    assert_int_equal(0, bound(rig));
    assert_string_equal("HTTP-410", rig->gate.breaker.reason);
}

/* Of several that are under way the first says it; and one that was sent before somebody enabled it
 * again says nothing of now. */
static void test_gone_is_said_once(void **state)
{
    struct rig *rig = *state;
    struct pawli_gate_ended ended[3];
    for (size_t i = 0; i < 3; i++) {
        ended[i] = (struct pawli_gate_ended){
            .end = PAWLI_END_DONE,
            .outcome = {.delivery = PAWLI_DELIVERY_FAILED, .is_endpoint_gone = true}};
        assert_true(pawli_gate_ask(&rig->gate, rig->now.mono, &ended[i].pass));
    }
    assert_int_equal(PAWLI_BREAKER_NOW_DISABLED,
                     pawli_gate_ended(&rig->gate, &rig->rules, rig->now, &ended[0]));
    assert_int_equal(PAWLI_BREAKER_SAME,
                     pawli_gate_ended(&rig->gate, &rig->rules, rig->now, &ended[1]));
    pawli_breaker_enable(&rig->gate.breaker);
    assert_int_equal(PAWLI_BREAKER_SAME,
                     pawli_gate_ended(&rig->gate, &rig->rules, rig->now, &ended[2]));
    assert_int_equal(PAWLI_BREAKER_CLOSED, rig->gate.breaker.state);
    assert_int_equal(0, rig->gate.in_flight);
    assert_int_equal(PAWLI_BREAKER_NOW_DISABLED, deliver(rig, 410, PAWLI_END_DONE));
}

/* 60 a minute: one, and one more each second; never saved up beyond a second's. */
static void test_the_rate(void **state)
{
    struct rig *rig = *state;
    struct pawli_breaker_pass pass;
    pawli_gate_set(&rig->gate, rig->now.mono,
                   (struct pawli_gate_bounds){.most = 6, .rate_per_minute = 60});
    assert_int_equal(1, bound(rig));
    assert_true(pawli_gate_ask(&rig->gate, rig->now.mono, &pass));
    assert_int_equal(1, bound(rig)); /* the one that is in flight */
    assert_false(pawli_gate_ask(&rig->gate, rig->now.mono, &pass));
    pawl_mono until = pawli_gate_deadline(&rig->gate, rig->now.mono);
    assert_int_equal(1000, pawli_mono_diff_ms(rig->now.mono, until));
    turn_ms(rig, 1001);
    assert_int_equal(2, bound(rig));
    turn_ms(rig, 3600000);
    assert_int_equal(2, bound(rig));
    /* As fast as it may, for a minute. */
    int64_t sent = 0;
    for (int i = 0; i < 6000; i++, turn_ms(rig, 10))
        while (pawli_gate_ask(&rig->gate, rig->now.mono, &pass))
            sent++;
    assert_in_range(sent, 60, 61);
}

/* The highest rate that can be set, over a long time: nothing overflows. */
static void test_the_highest_rate(void **state)
{
    struct rig *rig = *state;
    pawli_gate_set(&rig->gate, rig->now.mono,
                   (struct pawli_gate_bounds){.most = 6, .rate_per_minute = 6000000});
    turn_ms(rig, INT64_C(1000) * 86400 * 365 * 100);
    assert_int_equal(4, bound(rig));
    assert_int_equal(100000, rig->gate.credit_us / 60000000);
}

#define CASE(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_the_window),  CASE(test_what_is_no_failure),
        CASE(test_the_breaker), CASE(test_a_pause),
        CASE(test_gone),        CASE(test_gone_is_said_once),
        CASE(test_the_rate),    CASE(test_the_highest_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

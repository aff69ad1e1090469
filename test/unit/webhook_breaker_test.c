/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * webhook_breaker_test.c - proves webhook/breaker.c: every change of state, and that nothing else
 * changes it.
 * Owns:  a clock that it turns by hand.
 * Never: waits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/random.h"
#include "webhook/breaker.h"

#define CLOSED    PAWLI_BREAKER_CLOSED
#define OPEN      PAWLI_BREAKER_OPEN
#define HALF_OPEN PAWLI_BREAKER_HALF_OPEN
#define DISABLED  PAWLI_BREAKER_DISABLED

struct bench {
    struct pawli_breaker breaker;
    struct pawli_breaker_rules rules;
    struct pawli_breaker_now now;
};

static struct bench new_bench(void)
{
    struct bench bench = {
        .rules = {.failures_max = 3,
                  .open_base_ms = 100,
                  .open_max_ms = 350,
                  .disable_after_ms = 10000},
        .now = {.mono = {1000000}, .wall = {INT64_C(1772323200000000)}},
    };
    pawli_breaker_init(&bench.breaker, (pawl_wall){0});
    return bench;
}

static void turn_ms(struct bench *bench, int64_t ms)
{
    bench->now.mono = pawli_mono_add_ms(bench->now.mono, ms);
    bench->now.wall = pawli_wall_add_ms(bench->now.wall, ms);
}

static bool ask(struct bench *bench, struct pawli_breaker_pass *ret_pass)
{
    return pawli_breaker_ask(&bench->breaker, bench->now.mono, ret_pass);
}

static struct pawli_breaker_pass must_pass(struct bench *bench)
{
    struct pawli_breaker_pass pass;
    assert_true(ask(bench, &pass));
    return pass;
}

static void must_wait(struct bench *bench)
{
    struct pawli_breaker_pass pass = {.probe = 4242};
    enum pawli_breaker_state before = bench->breaker.state;
    assert_false(ask(bench, &pass));
    assert_int_equal(pass.probe, 4242);
    assert_int_equal(bench->breaker.state, before);
}

static enum pawli_breaker_event fail_one(struct bench *bench, struct pawli_breaker_pass pass)
{
    return pawli_breaker_failed(&bench->breaker, pass, &bench->rules, bench->now, "TIMEOUT");
}

/* Fail until it opens. */
static void trip(struct bench *bench)
{
    assert_int_equal(bench->breaker.state, CLOSED);
    while (fail_one(bench, must_pass(bench)) == PAWLI_BREAKER_SAME)
        assert_int_equal(bench->breaker.state, CLOSED);
    assert_int_equal(bench->breaker.state, OPEN);
}

static void it_opens_after_failures_in_a_row(void **state)
{
    (void)state;
    struct bench bench = new_bench();
    for (int i = 0; i < 5; i++) {
        /* Two, and a success: never three in a row. */
        assert_int_equal(fail_one(&bench, must_pass(&bench)), PAWLI_BREAKER_SAME);
        assert_int_equal(fail_one(&bench, must_pass(&bench)), PAWLI_BREAKER_SAME);
        assert_int_equal(pawli_breaker_succeeded(&bench.breaker, must_pass(&bench)),
                         PAWLI_BREAKER_SAME);
        assert_false(pawli_wall_is_set(bench.breaker.failing_since));
    }
    assert_true(pawli_breaker_deadline(&bench.breaker).us <= bench.now.mono.us);
    assert_int_equal(fail_one(&bench, must_pass(&bench)), PAWLI_BREAKER_SAME);
    pawl_wall since = bench.now.wall;
    turn_ms(&bench, 5);
    assert_int_equal(fail_one(&bench, must_pass(&bench)), PAWLI_BREAKER_SAME);
    assert_int_equal(fail_one(&bench, must_pass(&bench)), PAWLI_BREAKER_OPENED);
    assert_int_equal(bench.breaker.state, OPEN);
    assert_true(bench.breaker.failing_since.us == since.us);
    must_wait(&bench);
    turn_ms(&bench, 99);
    must_wait(&bench);
    assert_true(pawli_breaker_deadline(&bench.breaker).us == bench.now.mono.us + 1000);
}

static void one_probe_goes_out_and_decides(void **state)
{
    (void)state;
    struct bench bench = new_bench();
    trip(&bench);
    /* 100 ms, 200, 350 for ever: each time twice as long, bounded. */
    static const int64_t open_ms[] = {100, 200, 350, 350, 350};
    for (size_t i = 0; i < sizeof(open_ms) / sizeof(open_ms[0]); i++) {
        turn_ms(&bench, open_ms[i] - 1);
        must_wait(&bench);
        turn_ms(&bench, 1);
        struct pawli_breaker_pass probe = must_pass(&bench);
        assert_int_equal(probe.probe, i + 1);
        assert_int_equal(bench.breaker.state, HALF_OPEN);
        assert_true(pawli_breaker_deadline(&bench.breaker).us == PAWLI_MONO_NEVER.us);
        turn_ms(&bench, 50);
        must_wait(&bench); /* one, and no more */
        assert_int_equal(fail_one(&bench, probe), PAWLI_BREAKER_OPENED);
    }
    turn_ms(&bench, 350);
    struct pawli_breaker_pass probe = must_pass(&bench);
    assert_int_equal(pawli_breaker_succeeded(&bench.breaker, probe), PAWLI_BREAKER_CLOSED_AGAIN);
    assert_int_equal(bench.breaker.state, CLOSED);
    assert_false(pawli_wall_is_set(bench.breaker.failing_since));
    /* As from the beginning: three failures, and 100 ms. */
    assert_int_equal(fail_one(&bench, must_pass(&bench)), PAWLI_BREAKER_SAME);
    trip(&bench);
    assert_true(pawli_breaker_deadline(&bench.breaker).us == bench.now.mono.us + 100000);
}

/* Settings change while it runs: a probe decides all the same. */
static void a_larger_bound_does_not_hold_a_probe(void **state)
{
    (void)state;
    struct bench bench = new_bench();
    trip(&bench);
    bench.rules.failures_max = 1000;
    turn_ms(&bench, 100);
    assert_int_equal(fail_one(&bench, must_pass(&bench)), PAWLI_BREAKER_OPENED);
    turn_ms(&bench, 200);
    assert_int_equal(must_pass(&bench).probe, 2);
}

static void a_probe_that_was_given_up_is_sent_anew(void **state)
{
    (void)state;
    struct bench bench = new_bench();
    trip(&bench);
    turn_ms(&bench, 100);
    struct pawli_breaker_pass probe = must_pass(&bench);
    pawli_breaker_untold(&bench.breaker, probe);
    assert_int_equal(bench.breaker.state, OPEN);
    struct pawli_breaker_pass second = must_pass(&bench);
    assert_int_equal(second.probe, 2);
    must_wait(&bench);
    /* The first one's end, told late, is not the second one's. */
    assert_int_equal(fail_one(&bench, probe), PAWLI_BREAKER_SAME);
    pawli_breaker_untold(&bench.breaker, probe);
    assert_int_equal(bench.breaker.state, HALF_OPEN);
    assert_int_equal(pawli_breaker_succeeded(&bench.breaker, second), PAWLI_BREAKER_CLOSED_AGAIN);
    /* While it is closed, giving up changes nothing. */
    pawli_breaker_untold(&bench.breaker, must_pass(&bench));
    pawli_breaker_untold(&bench.breaker, second);
    assert_int_equal(bench.breaker.state, CLOSED);
    assert_true(bench.breaker.failures == 0);
}

static void what_was_sent_before_it_opened(void **state)
{
    (void)state;
    struct bench bench = new_bench();
    struct pawli_breaker_pass early[6];
    for (size_t i = 0; i < 6; i++)
        early[i] = must_pass(&bench);
    trip(&bench);
    pawl_mono until = bench.breaker.open_until;
    /* Failures are known already: it does not open for longer. */
    assert_int_equal(fail_one(&bench, early[0]), PAWLI_BREAKER_SAME);
    assert_true(bench.breaker.open_until.us == until.us);
    turn_ms(&bench, 100);
    struct pawli_breaker_pass probe = must_pass(&bench);
    assert_int_equal(fail_one(&bench, early[1]), PAWLI_BREAKER_SAME);
    pawli_breaker_untold(&bench.breaker, early[2]);
    assert_int_equal(bench.breaker.state, HALF_OPEN);
    /* A success closes it, from wherever it comes. */
    assert_int_equal(pawli_breaker_succeeded(&bench.breaker, early[3]), PAWLI_BREAKER_CLOSED_AGAIN);
    /* The probe has become useless: its failure counts for nothing, not even after new ones. */
    trip(&bench);
    until = bench.breaker.open_until;
    assert_int_equal(fail_one(&bench, probe), PAWLI_BREAKER_SAME);
    assert_true(bench.breaker.open_until.us == until.us);
    assert_int_equal(pawli_breaker_succeeded(&bench.breaker, early[4]), PAWLI_BREAKER_CLOSED_AGAIN);
    assert_int_equal(fail_one(&bench, probe), PAWLI_BREAKER_SAME);
    assert_true(bench.breaker.failures == 0);
    /* One that was sent while it was closed counts while it is closed. */
    assert_int_equal(fail_one(&bench, early[5]), PAWLI_BREAKER_SAME);
    assert_true(bench.breaker.failures == 1);
}

static void it_is_disabled_after_failing_for_too_long(void **state)
{
    (void)state;
    struct bench bench = new_bench();
    trip(&bench);
    pawl_wall since = bench.breaker.failing_since;
    enum pawli_breaker_event event = PAWLI_BREAKER_OPENED;
    while (event == PAWLI_BREAKER_OPENED) {
        assert_true(pawli_wall_diff_ms(since, bench.now.wall) < 10000);
        turn_ms(&bench, 350);
        event = fail_one(&bench, must_pass(&bench));
    }
    assert_int_equal(event, PAWLI_BREAKER_NOW_DISABLED);
    assert_in_range(pawli_wall_diff_ms(since, bench.now.wall), 10000, 10349);
    assert_int_equal(bench.breaker.state, DISABLED);
    assert_string_equal(bench.breaker.reason, "failing for 10s or longer, at last with TIMEOUT");
    turn_ms(&bench, PAWL_DURATION_MAX_MS);
    must_wait(&bench);
    assert_true(pawli_breaker_deadline(&bench.breaker).us == PAWLI_MONO_NEVER.us);

    /* Exactly at its time. */
    struct bench exact = new_bench();
    trip(&exact);
    turn_ms(&exact, 9999);
    assert_int_equal(fail_one(&exact, must_pass(&exact)), PAWLI_BREAKER_OPENED);
    exact.now.wall = pawli_wall_add_ms(exact.now.wall, 1);
    exact.now.mono = exact.breaker.open_until;
    assert_int_equal(fail_one(&exact, must_pass(&exact)), PAWLI_BREAKER_NOW_DISABLED);

    /* Never, where the settings say so. */
    struct bench forever = new_bench();
    forever.rules.disable_after_ms = PAWL_FOREVER;
    trip(&forever);
    turn_ms(&forever, PAWL_DURATION_MAX_MS);
    assert_int_equal(fail_one(&forever, must_pass(&forever)), PAWLI_BREAKER_OPENED);
}

/* A single failure, a long silence, and another one: nobody has tried in between. */
static void silence_is_no_failure(void **state)
{
    (void)state;
    struct bench bench = new_bench();
    assert_int_equal(fail_one(&bench, must_pass(&bench)), PAWLI_BREAKER_SAME);
    turn_ms(&bench, 20000);
    assert_int_equal(fail_one(&bench, must_pass(&bench)), PAWLI_BREAKER_SAME);
    assert_int_equal(bench.breaker.state, CLOSED);
    assert_int_equal(fail_one(&bench, must_pass(&bench)), PAWLI_BREAKER_NOW_DISABLED);
}

static void since_when_it_fails_outlives_the_process(void **state)
{
    (void)state;
    struct bench bench = new_bench();
    pawl_wall since = pawli_wall_add_ms(bench.now.wall, -9000);
    pawli_breaker_init(&bench.breaker, since);
    assert_int_equal(bench.breaker.state, CLOSED);
    trip(&bench);
    assert_true(bench.breaker.failing_since.us == since.us);
    turn_ms(&bench, 1000);
    assert_int_equal(fail_one(&bench, must_pass(&bench)), PAWLI_BREAKER_NOW_DISABLED);
    /* A clock that was put back disables nothing. */
    struct bench back = new_bench();
    pawli_breaker_init(&back.breaker, pawli_wall_add_ms(back.now.wall, 3600000));
    trip(&back);
}

static void by_hand(void **state)
{
    (void)state;
    struct bench bench = new_bench();
    struct pawli_breaker_pass early = must_pass(&bench);
    pawli_breaker_disable(&bench.breaker, "HTTP-410");
    assert_int_equal(bench.breaker.state, DISABLED);
    assert_string_equal(bench.breaker.reason, "HTTP-410");
    must_wait(&bench);
    /* What was sent before changes nothing, while it is disabled and after it was enabled. */
    assert_int_equal(pawli_breaker_succeeded(&bench.breaker, early), PAWLI_BREAKER_SAME);
    assert_int_equal(fail_one(&bench, early), PAWLI_BREAKER_SAME);
    pawli_breaker_untold(&bench.breaker, early);
    assert_int_equal(bench.breaker.state, DISABLED);
    pawli_breaker_enable(&bench.breaker);
    assert_int_equal(bench.breaker.state, CLOSED);
    assert_string_equal(bench.breaker.reason, "");
    for (int i = 0; i < 5; i++)
        assert_int_equal(fail_one(&bench, early), PAWLI_BREAKER_SAME);
    assert_true(bench.breaker.failures == 0);

    /* Enabled, it has never failed. */
    trip(&bench);
    turn_ms(&bench, 100);
    struct pawli_breaker_pass probe = must_pass(&bench);
    pawli_breaker_enable(&bench.breaker);
    assert_int_equal(bench.breaker.state, CLOSED);
    assert_false(pawli_wall_is_set(bench.breaker.failing_since));
    assert_int_equal(fail_one(&bench, probe), PAWLI_BREAKER_SAME);
    trip(&bench);
    assert_true(pawli_breaker_deadline(&bench.breaker).us == bench.now.mono.us + 100000);
    turn_ms(&bench, 100);
    assert_int_not_equal(must_pass(&bench).probe, probe.probe);
    /* A reason is cut to fit. */
    char longer[2 * PAWLI_BREAKER_REASON_SIZE];
    memset(longer, 'x', sizeof(longer));
    longer[sizeof(longer) - 1] = '\0';
    pawli_breaker_disable(&bench.breaker, longer);
    assert_int_equal(strlen(bench.breaker.reason), PAWLI_BREAKER_REASON_SIZE - 1);
}

/* Many deliveries at once, in every order: what must hold whatever happens. */
static void the_rules_hold_in_a_random_walk(void **state)
{
    (void)state;
    struct pawli_seeded seeded = {20260308};
    pawl_random random = pawli_seeded_as_random(&seeded);
    struct bench bench = new_bench();
    struct pawli_breaker_pass passes[8];
    size_t count = 0;
    size_t seen[4] = {0};
    for (int i = 0; i < 200000; i++) {
        seen[bench.breaker.state]++;
        pawl_mono deadline = pawli_breaker_deadline(&bench.breaker);
        if (count < 8 && pawli_random_below(&random, 2) == 0) {
            bool is_due = !pawli_mono_is_before(bench.now.mono, deadline);
            bool is_passed = ask(&bench, &passes[count]);
            assert_int_equal(is_passed, is_due); /* the deadline tells the truth */
            count += is_passed;
            continue;
        }
        size_t at = count > 0 ? (size_t)pawli_random_below(&random, count) : 0;
        uint64_t what = pawli_random_below(&random, 100);
        bool was_probing = bench.breaker.state == HALF_OPEN;
        if (what < 20) {
            turn_ms(&bench, (int64_t)pawli_random_below(&random, 300));
        } else if (what < 21) {
            pawli_breaker_disable(&bench.breaker, "by hand");
        } else if (what < 23) {
            pawli_breaker_enable(&bench.breaker);
        } else if (count > 0) {
            bool is_probe = was_probing && passes[at].probe == bench.breaker.probes &&
                            passes[at].generation == bench.breaker.generation;
            if (what < 80)
                (void)fail_one(&bench, passes[at]);
            else if (what < 90)
                pawli_breaker_untold(&bench.breaker, passes[at]);
            else
                (void)pawli_breaker_succeeded(&bench.breaker, passes[at]);
            if (was_probing && !is_probe && what < 90)
                assert_int_equal(bench.breaker.state, HALF_OPEN); /* only its own end counts */
            passes[at] = passes[--count];
        }
        assert_int_equal(bench.breaker.state == DISABLED, bench.breaker.reason[0] != '\0');
        assert_true(bench.breaker.state != CLOSED || bench.breaker.failures < 3);
        assert_true(bench.breaker.failures == 0 || pawli_wall_is_set(bench.breaker.failing_since));
    }
    for (size_t i = 0; i < 4; i++)
        assert_true(seen[i] > 1000);
}

static void settings_are_checked_by_name(void **state)
{
    (void)state;
    struct pawli_breaker_rules good;
    pawli_breaker_rules_init(&good);
    assert_int_equal(pawli_breaker_rules_check(&good, NULL), PAWL_OK);
    struct pawli_breaker_rules rules[9];
    static const char *const named[9] = {
        "failures_max: 0; allowed: 1 to 10000",
        "failures_max: 10001; allowed: 1 to 10000",
        "open_base_ms: 0; allowed: 1 to 600000",
        "open_base_ms: 600001; allowed: 1 to 600000",
        "open_max_ms: 0; allowed: 1 to 315360000000",
        "open_max_ms: 315360000001; allowed: 1 to 315360000000",
        "disable_after_ms: 0; allowed: 1 to 315360000000",
        "disable_after_ms: 315360000001; allowed: 1 to 315360000000",
        NULL,
    };
    for (size_t i = 0; i < 9; i++)
        rules[i] = good;
    rules[0].failures_max = 0;
    rules[1].failures_max = PAWLI_BREAKER_FAILURES_MAX + 1;
    rules[2].open_base_ms = 0;
    rules[3].open_base_ms = rules[3].open_max_ms + 1;
    rules[4].open_max_ms = 0;
    rules[5].open_max_ms = PAWL_DURATION_MAX_MS + 1;
    rules[6].disable_after_ms = 0;
    rules[7].disable_after_ms = PAWL_DURATION_MAX_MS + 1;
    rules[8].disable_after_ms = PAWL_FOREVER;
    for (size_t i = 0; i < 9; i++) {
        pawl_err err = {.text = ""};
        assert_int_equal(pawli_breaker_rules_check(&rules[i], &err),
                         named[i] == NULL ? PAWL_OK : PAWL_INVALID);
        if (named[i] != NULL)
            assert_string_equal(err.text, named[i]);
    }
    assert_string_equal(pawli_breaker_state_name(CLOSED), "closed");
    assert_string_equal(pawli_breaker_state_name(OPEN), "open");
    assert_string_equal(pawli_breaker_state_name(HALF_OPEN), "half-open");
    assert_string_equal(pawli_breaker_state_name(DISABLED), "disabled");
    assert_string_equal(pawli_breaker_state_name((enum pawli_breaker_state)4), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_opens_after_failures_in_a_row),
        cmocka_unit_test(one_probe_goes_out_and_decides),
        cmocka_unit_test(a_larger_bound_does_not_hold_a_probe),
        cmocka_unit_test(a_probe_that_was_given_up_is_sent_anew),
        cmocka_unit_test(what_was_sent_before_it_opened),
        cmocka_unit_test(it_is_disabled_after_failing_for_too_long),
        cmocka_unit_test(silence_is_no_failure),
        cmocka_unit_test(since_when_it_fails_outlives_the_process),
        cmocka_unit_test(by_hand),
        cmocka_unit_test(the_rules_hold_in_a_random_walk),
        cmocka_unit_test(settings_are_checked_by_name),
    };
    return cmocka_run_group_tests_name("webhook_breaker", tests, NULL, NULL);
}

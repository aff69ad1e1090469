/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * core_keeper_test.c - the keeper's decisions, each as a short story. The settings are those of
 * desk_init(): 2 handlers, a buffer of 2, leases of 4 s, so that a beat falls due after 1 s and has
 * failed after 2 s. Owns:  one story per rule of keeper.h. Never: waits; every moment is turned by
 * hand.
 */
#include "support/alloc_fail.h"
#include "support/desk.h"

#include "base/clock.h"
#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static int set_up(void **state)
{
    static struct desk desk;
    desk_init(&desk);
    *state = &desk;
    return 0;
}

static int tear_down(void **state)
{
    desk_close(*state);
    return 0;
}

/* A desk whose keeper runs `running` jobs and is idle otherwise. */
static struct desk *desk_running(void **state, size_t running)
{
    struct desk *desk = *state;
    desk_open(desk, NULL, 1);
    desk_does(desk, "claim:poll 4");
    desk_claimed(desk, running);
    desk_does(desk, running == 1 ? "start 0" : "start 0; start 1");
    return desk;
}

static void desk_running_ten(struct desk *desk)
{
    desk->settings.parallel_max = 10;
    desk_open(desk, NULL, 1);
    desk_does(desk, "claim:poll 12");
    desk_claimed(desk, 10);
    desk_does(desk, "start 0; start 1; start 2; start 3; start 4; start 5; start 6; start 7; "
                    "start 8; start 9");
}

/* ---------------------------------------------------------------- claims */

/* A job's whole way: claim, start, done, settled, and room for the next. */
static void test_one_job(void **state)
{
    struct desk *desk = desk_running(state, 1);
    desk_ended(desk, 0, PAWLI_RESULT_DONE);
    desk_does(desk, "settle:ended 0=succeed");
    desk_settled(desk, PAWL_OK);
    desk_does(desk, "over:settled 0");
    desk_turn(desk, 999);
    desk_does(desk, "");
    desk_turn(desk, 1);
    desk_does(desk, "claim:poll 4");
}

/* RULE-020-041, RULE-020-042, K7: it asks for what it has room for and never runs more than it may.
 */
static void test_room(void **state)
{
    struct desk *desk = *state;
    desk_open(desk, NULL, 1);
    desk_does(desk, "claim:poll 4");
    desk_claimed(desk, 4);
    desk_does(desk, "start 0; start 1");
    struct pawli_keeper_counts counts = pawli_keeper_count(desk->keeper);
    assert_int_equal(2, counts.running);
    assert_int_equal(2, counts.buffered);
    desk_turn(desk, 500);
    desk_does(desk, ""); /* full: no claim, not even a poll */
    desk_ended(desk, 0, PAWLI_RESULT_DONE);
    desk_does(desk, "settle:ended 0=succeed; start 2; claim:more 1");
    desk_ended(desk, 1, PAWLI_RESULT_DONE);
    desk_does(desk, "start 3"); /* one settle, one claim at a time */
    desk_settled(desk, PAWL_OK);
    desk_does(desk, "over:settled 0; settle:ended 1=succeed");
}

/* Settles that are not answered fill the table, and then nothing more is claimed. */
static void test_settles_that_lag_stop_claims(void **state)
{
    struct desk *desk = *state;
    desk_open(desk, NULL, 1);
    desk_does(desk, "claim:poll 4");
    desk_claimed(desk, 4);
    desk_does(desk, "start 0; start 1");
    for (uint32_t i = 0; i < 4; i++)
        desk_ended(desk, i, PAWLI_RESULT_DONE);
    desk_does(desk, "settle:ended 0=succeed 1=succeed; start 2; start 3; claim:more 2");
    desk_claimed(desk, 2);
    desk_ended(desk, 2, PAWLI_RESULT_DONE);
    desk_ended(desk, 3, PAWLI_RESULT_DONE);
    desk_does(desk, "start 4; start 5; claim:more 2");
    desk_claimed(desk, 2);
    desk_does(desk, ""); /* four wait for their settle, four are held: the rest of the table is kept
                            for strays */
    assert_int_equal(4, pawli_keeper_count(desk->keeper).settling);
}

/* A hint leads to a claim at once; one that comes during a claim leads to another claim. */
static void test_wake(void **state)
{
    struct desk *desk = *state;
    desk_open(desk, NULL, 1);
    desk_does(desk, "claim:poll 4");
    pawli_keeper_on_wake(desk->keeper, desk->now);
    desk_does(desk, "");
    desk_claimed(desk, 0);
    desk_does(desk, "claim:wake 4");
    desk_claimed(desk, 0);
    desk_does(desk, "");
    desk_turn(desk, 10);
    pawli_keeper_on_wake(desk->keeper, desk->now);
    desk_does(desk, "claim:wake 4");
    desk_claimed(desk, 0);
    desk_turn(desk, 1000);
    desk_does(desk, "claim:poll 4"); /* polling never stops */
}

/* Each line has its own maximum, and each begins in its turn. */
static void test_lines(void **state)
{
    struct desk *desk = *state;
    int64_t held_max[] = {1, PAWL_DEFAULT, 3};
    desk_open(desk, held_max, 3);
    desk_does(desk, "claim:poll 4 [0:1] [1:4] [2:3]");
    desk_claimed_line(desk, 0, 1);
    desk_does(desk, "start 0"); /* line 0 is at its maximum, and the others have nothing */
    pawli_keeper_on_wake(desk->keeper, desk->now);
    desk_does(desk, "claim:wake 3 [1:3] [2:3]");
    desk_claimed_line(desk, 2, 1);
    desk_does(desk, "start 1");
    desk_turn(desk, 900);
    desk_ended(desk, 0, PAWLI_RESULT_DONE);
    desk_does(desk, "settle:ended 0=succeed"); /* still held, until that is answered */
    desk_settled(desk, PAWL_OK);
    desk_turn(desk, 100);
    desk_does(desk, "over:settled 0; renew:beat 1; claim:poll 3 [2:2] [0:1] [1:3]");
}

/* Q-STORE-DOWN: tries again with a growing, bounded delay; begins afresh when it is back. */
static void test_store_down(void **state)
{
    struct desk *desk = *state;
    desk_open(desk, NULL, 1);
    int64_t delays[] = {100, 200, 400, 400};
    desk_does(desk, "claim:poll 4");
    for (size_t i = 0; i < 4; i++) {
        desk_failed(desk, desk->claim, PAWL_DOWN);
        desk_does(desk, "");
        desk_turn(desk, delays[i] - 1);
        desk_does(desk, "");
        desk_turn(desk, 1);
        desk_does(desk, "claim:store_back 4");
    }
    desk_claimed(desk, 1);
    desk_does(desk, "start 0");
    desk_turn(desk, 999);
    desk_does(desk, "renew:beat 0"); /* up to an eighth of an interval early, to share calls */
    desk_turn(desk, 1);
    desk_does(desk, "claim:poll 3");
}

/* ---------------------------------------------------------------- lost claims */

/* K4, K5: after a lost claim reply it asks, and what it finds must be renewed before it starts. */
static void test_lost_claim(void **state)
{
    struct desk *desk = *state;
    desk_open(desk, NULL, 1);
    desk_does(desk, "claim:poll 4");
    desk_turn(desk, 50);
    desk_failed(desk, desk->claim, PAWL_UNKNOWN);
    assert_int_equal(4, pawli_keeper_count(desk->keeper).reserved);
    desk_does(desk, "");
    desk_turn(desk, 100);
    desk_does(desk, "mine:claim_lost");
    desk_failed(desk, desk->claim, PAWL_DOWN);
    desk_turn(desk, 200);
    desk_does(desk, "mine:claim_lost"); /* until it is answered */
    desk_mine(desk, (uint64_t[]){7, 8}, 2);
    desk_does(desk, "renew:adopt 0* 1*; claim:store_back 2");
    desk_renewed(desk, PAWL_OK);
    desk_does(desk, "start 0; start 1");
    desk_claimed(desk, 0);
    desk_turn(desk, 800);
    desk_does(desk, "");
}

/* The answer of mine may be older than a settle: a lease that is gone by then must not start (K5).
 */
static void test_adopted_lease_is_gone(void **state)
{
    struct desk *desk = *state;
    desk_open(desk, NULL, 1);
    desk_does(desk, "claim:poll 4");
    desk_failed(desk, desk->claim, PAWL_UNKNOWN);
    desk_turn(desk, 100);
    desk_does(desk, "mine:claim_lost");
    desk_mine(desk, (uint64_t[]){7}, 1);
    desk_does(desk, "renew:adopt 0*; claim:store_back 3");
    desk_renewed(desk, PAWL_GONE);
    desk_does(desk, "over:lease_lost 0");
}

/* What it knows already is not taken twice; what it has no room for is given back; a late claim is
 * looked for again. */
static void test_mine_knows_and_gives_back(void **state)
{
    struct desk *desk = *state;
    desk_open(desk, NULL, 1);
    desk_does(desk, "claim:poll 4");
    desk_claimed(desk, 3);
    desk_does(desk, "start 0; start 1");
    desk_turn(desk, 900);
    desk_ended(desk, 0, PAWLI_RESULT_DONE);
    desk_does(desk, "settle:ended 0=succeed; start 2");
    desk_turn(desk, 100);
    desk_does(desk, "renew:beat 0 1 2; claim:poll 2");
    desk_renewed(desk, PAWL_OK);
    desk_failed(desk, desk->claim, PAWL_UNKNOWN);
    desk_turn(desk, 100);
    desk_does(desk, "mine:claim_lost");
    desk_mine(desk, (uint64_t[]){1, 2, 3, 11, 12, 13}, 6);
    desk_does(desk, "renew:adopt 3* 4* 5*");
    desk_renewed(desk, PAWL_OK);
    desk_does(desk, "release:no_room 5");
    desk_released(desk, PAWL_OK);
    desk_does(desk, "over:released 5");
    desk_settled(desk, PAWL_OK);
    desk_turn(desk, 900);
    desk_does(desk, "over:settled 0; renew:beat 1 2 3* 4*");
    for (int quarter = 2; quarter < 30; quarter++) {
        desk_renewed(desk, PAWL_OK);
        desk_turn(desk, 500);
        struct pawli_action action;
        while (pawli_keeper_next(desk->keeper, desk->now, &action)) {
            if (action.kind == PAWLI_ACTION_MINE) {
                assert_int_equal(PAWLI_WHY_MINE_AGAIN, action.why);
                return;
            }
            if (action.kind == PAWLI_ACTION_RENEW) {
                desk->renew = action.request;
                desk->renew_count = action.items_count;
                for (size_t i = 0; i < action.items_count; i++)
                    desk->renew_slots[i] = action.items[i].slot;
            }
        }
    }
    fail_msg("a lost claim may still run, and nobody asked again");
}

/* A shutdown between the adoption and its confirmation: confirmed first, then given back. */
static void test_shutdown_of_an_adopted_lease(void **state)
{
    struct desk *desk = *state;
    desk_open(desk, NULL, 1);
    desk_does(desk, "claim:poll 4");
    desk_failed(desk, desk->claim, PAWL_UNKNOWN);
    desk_turn(desk, 100);
    desk_does(desk, "mine:claim_lost");
    desk_mine(desk, (uint64_t[]){7, 8}, 2);
    desk_does(desk, "renew:adopt 0* 1*; claim:store_back 2");
    desk_claimed(desk, 0);
    pawli_keeper_on_shutdown(desk->keeper, desk->now, 4000);
    desk_does(desk, "");
    struct pawli_verdict verdicts[] = {{desk->slots[0], PAWL_OK, 4000},
                                       {desk->slots[1], PAWL_GONE, 0}};
    pawli_keeper_on_renewed(desk->keeper, desk->now, desk->renew, verdicts, 2);
    desk_does(desk, "over:lease_lost 1; release:not_started 0");
}

/* K9: a lease whose work was stopped may still stand; found by asking, it must not run again. */
static void test_stopped_work_is_not_adopted(void **state)
{
    struct desk *desk = desk_running(state, 1);
    desk_turn(desk, 1000);
    desk_does(desk, "renew:beat 0; claim:poll 3");
    desk_failed(desk, desk->claim, PAWL_UNKNOWN);
    desk_turn(desk, 1000);
    desk_does(desk, "abort:beat_failed 0; mine:claim_lost");
    desk_ended(desk, 0, PAWLI_RESULT_DONE);
    desk_does(desk, "over:beat_failed 0");
    desk_mine(desk, (uint64_t[]){1, 2}, 2); /* job 1 ran; job 2 came with the lost claim */
    desk_failed(desk, desk->renew, PAWL_UNKNOWN);
    desk_does(desk, "renew:adopt 1*; claim:store_back 3");
}

/* A reply that was given up for lost and comes after all is not used: its leases are found by
 * asking. */
static void test_late_claim_reply(void **state)
{
    struct desk *desk = *state;
    desk_open(desk, NULL, 1);
    desk_does(desk, "claim:poll 4");
    uint64_t late = desk->claim;
    desk_failed(desk, desk->claim, PAWL_UNKNOWN);
    desk_turn(desk, 100);
    desk_does(desk, "mine:claim_lost");
    desk_mine(desk, NULL, 0);
    desk_does(desk, "claim:store_back 4");
    uint64_t current = desk->claim;
    desk->claim = late;
    desk_claimed(desk, 2);
    desk_does(desk, "");
    desk->claim = current;
    desk_claimed(desk, 0);
    desk_does(desk, "mine:claim_lost");
    desk_mine(desk, (uint64_t[]){1, 2}, 2);
    desk_does(desk, "renew:adopt 0* 1*; claim:store_back 2");
}

/* ---------------------------------------------------------------- beats */

/* RULE-020-010, K1: each beat counts from when it was sent, however late its answer. */
static void test_beats_count_from_the_request(void **state)
{
    struct desk *desk = desk_running(state, 1);
    desk_turn(desk, 1000);
    desk_does(desk, "renew:beat 0; claim:poll 3");
    desk_turn(desk, 900);
    desk_renewed(desk, PAWL_OK); /* sent 900 ms ago: the next is due in 100 */
    desk_turn(desk, 99);
    desk_does(desk, "");
    desk_turn(desk, 1);
    desk_does(desk, "renew:beat 0");
}

/* RULE-020-012, RES-10, K2: not confirmed within one interval of falling due: stop at once, settle
 * nothing. */
static void test_beat_fails(void **state)
{
    struct desk *desk = desk_running(state, 1);
    desk_turn(desk, 1000);
    desk_does(desk, "renew:beat 0; claim:poll 3");
    desk_claimed(desk, 0);
    /* Half an interval at most, so that there is time for another try. */
    assert_int_equal(500, pawli_mono_diff_ms(desk->now, desk->renew_deadline));
    desk_turn(desk, 500);
    desk_failed(desk, desk->renew, PAWL_UNKNOWN);
    desk_does(desk, "");
    desk_turn(desk, 125);
    desk_does(desk, "renew:beat 0");
    desk_turn(desk, 374);
    desk_does(desk, "");
    assert_true(pawli_keeper_may_send(desk->keeper, desk->slots[0], desk->now));
    desk_turn(desk, 1);
    assert_false(pawli_keeper_may_send(desk->keeper, desk->slots[0], desk->now));
    desk_does(desk, "abort:beat_failed 0; claim:poll 3");
    desk_renewed(desk, PAWL_OK); /* too late */
    desk_ended(desk, 0, PAWLI_RESULT_DONE);
    desk_does(desk, "over:beat_failed 0");
}

/* Handlers are to be stopped before the store could call the lease expired, whatever the grace
 * period. */
static void test_kill_before_the_lease_ends(void **state)
{
    struct desk *desk = *state;
    desk->settings.grace_ms = 60000;
    desk_running(state, 1);
    desk_turn(desk, 2000);
    desk_does(desk, "abort:beat_failed 0; claim:poll 3");
    assert_int_equal(1000,
                     pawli_mono_diff_ms(desk->now, desk->kill_by)); /* 3 s of a lease of 4 s */
    desk_turn(desk, 1000);
    desk_does(desk, "give_up:abort_ignored 0");
    desk_ended(desk, 0, PAWLI_RESULT_DONE);
    desk_does(desk, "over:beat_failed 0");
}

/* RES-10: a renewal of a long lease that hangs leaves a short one time for tries of its own. */
static void test_long_and_short_leases(void **state)
{
    struct desk *desk = *state;
    desk->settings.call_timeout_ms = 5000;
    desk->lease_ms = 100000;
    desk->timeout_ms = 1000000;
    desk_running(state, 1);
    desk_turn(desk, 23500);
    desk_does(desk, "claim:poll 3");
    desk->lease_ms = 4000;
    desk_claimed(desk, 1);
    desk_does(desk, "start 1");
    desk_turn(desk, 500);
    desk_does(desk, "renew:beat 0"); /* of the long lease; the short one's beat is due in 500 ms */
    assert_int_equal(500, pawli_mono_diff_ms(desk->now, desk->renew_deadline));
}

/* K8: a refused renewal ends that job and no other. */
static void test_refused_renewal(void **state)
{
    struct desk *desk = desk_running(state, 2);
    desk_turn(desk, 1000);
    desk_does(desk, "renew:beat 0 1; claim:poll 2");
    struct pawli_verdict verdicts[] = {{desk->slots[0], PAWL_STALE, 0},
                                       {desk->slots[1], PAWL_OK, 4000}};
    pawli_keeper_on_renewed(desk->keeper, desk->now, desk->renew, verdicts, 2);
    desk_does(desk, "abort:lease_lost 0");
    desk_ended(desk, 0, PAWLI_RESULT_DONE);
    desk_ended(desk, 1, PAWLI_RESULT_DONE);
    desk_does(desk, "over:lease_lost 0; settle:ended 1=succeed");
}

/* A verdict about a job that is over does not touch the next job in its slot. */
static void test_generations(void **state)
{
    struct desk *desk = *state;
    desk->settings.parallel_max = 1;
    desk->settings.buffer_max = 0;
    desk_open(desk, NULL, 1);
    desk_does(desk, "claim:poll 1");
    for (uint32_t round = 0; round < 3; round++) { /* once through the table, back to slot 0 */
        desk_claimed(desk, 1);
        char text[64];
        (void)snprintf(text, sizeof(text), "start %u", round);
        desk_does(desk, text);
        if (round == 0) {
            desk_turn(desk, 1000);
            desk_does(desk, "renew:beat 0");
        }
        desk_ended(desk, round, PAWLI_RESULT_SETTLED);
        (void)snprintf(text, sizeof(text), "over:settled_by_handler %u; claim:more 1", round);
        desk_does(desk, text);
    }
    struct pawli_slot old = desk->slots[0];
    desk_claimed(desk, 1);
    desk_does(desk, "start 0");
    assert_int_not_equal(old.generation, desk->slots[0].generation);
    struct pawli_verdict late = {old, PAWL_STALE, 0};
    pawli_keeper_on_renewed(desk->keeper, desk->now, desk->renew, &late, 1);
    pawli_keeper_on_ended(desk->keeper, desk->now, old, (struct pawli_ended){PAWLI_RESULT_DONE, 0});
    assert_false(pawli_keeper_may_send(desk->keeper, old, desk->now));
    assert_true(pawli_keeper_may_send(desk->keeper, desk->slots[0], desk->now));
    desk_does(desk, "");
}

/* K3: after a pause the clock comes first: aborts and drops before anything is started, sent or
 * settled. */
static void test_after_a_pause(void **state)
{
    struct desk *desk = *state;
    desk->settings.parallel_max = 1;
    desk->settings.buffer_max = 2;
    desk_open(desk, NULL, 1);
    desk_does(desk, "claim:poll 3");
    desk_claimed(desk, 3);
    desk_does(desk, "start 0");
    desk_turn(desk, 5000); /* longer than the lease */
    desk_ended(desk, 0, PAWLI_RESULT_DONE);
    desk_does(desk, "over:at_risk 1; over:at_risk 2; over:beat_failed 0; claim:more 3");
}

/* A job that waited is not started on a lease whose beat has failed: it is renewed first. */
static void test_worn_lease_is_renewed_before_the_start(void **state)
{
    struct desk *desk = *state;
    desk->settings.parallel_max = 1;
    desk_open(desk, NULL, 1);
    desk_does(desk, "claim:poll 3");
    desk_claimed(desk, 2);
    desk_does(desk, "start 0");
    desk_turn(desk, 1000);
    desk_does(desk, "renew:beat 0 1*; claim:poll 1");
    desk_turn(desk, 500);
    struct pawli_verdict verdict = {desk->slots[0], PAWL_OK, 4000};
    pawli_keeper_on_renewed(desk->keeper, desk->now, desk->renew, &verdict,
                            1); /* of slot 1 it says nothing */
    desk_turn(desk, 500);
    desk_does(desk, "renew:beat 0 1*");
    desk_ended(desk, 0, PAWLI_RESULT_DONE);
    desk_does(desk, "settle:ended 0=succeed");
    desk_renewed(desk, PAWL_OK);
    desk_does(desk, "start 1");
}

/* ---------------------------------------------------------------- timeouts and cancellation */

/* RULE-020-051, RES-6: stopped within the grace period it is a retry, reason timeout. */
static void test_timeout(void **state)
{
    struct desk *desk = *state;
    desk->timeout_ms = 1500;
    desk_running(state, 1);
    desk_turn(desk, 1000);
    desk_does(desk, "renew:beat 0; claim:poll 3");
    desk_renewed(desk, PAWL_OK);
    desk_turn(desk, 499);
    desk_does(desk, "");
    desk_turn(desk, 1);
    desk_does(desk, "abort:timeout 0");
    assert_int_equal(500, pawli_mono_diff_ms(desk->now, desk->kill_by));
    desk_turn(desk, 499);
    desk_ended(desk, 0, PAWLI_RESULT_DONE);
    desk_does(desk, "settle:ended 0=retry/timeout");
    desk_settled(desk, PAWL_OK);
    desk_does(desk, "over:settled 0");
}

/* RES-6: not stopped within it, it is given up: no beats, no settle; the lease expires. */
static void test_timeout_ignored(void **state)
{
    struct desk *desk = *state;
    desk->timeout_ms = 1500;
    desk_running(state, 1);
    desk_turn(desk, 1000);
    desk_does(desk, "renew:beat 0; claim:poll 3");
    desk_renewed(desk, PAWL_OK);
    desk_turn(desk, 500);
    desk_does(desk, "abort:timeout 0");
    desk_turn(desk, 500);
    desk_does(desk, "give_up:abort_ignored 0");
    assert_int_equal(1, pawli_keeper_count(desk->keeper).running); /* its slot stays taken */
    desk_turn(desk, 5000);
    desk_does(desk, "");
    desk_ended(desk, 0, PAWLI_RESULT_DONE);
    desk_does(desk, "over:timeout 0");
}

/* The store's word that the time is up counts like the keeper's own. */
static void test_timeout_by_the_store(void **state)
{
    struct desk *desk = desk_running(state, 1);
    desk_turn(desk, 1000);
    desk_does(desk, "renew:beat 0; claim:poll 3");
    desk_renewed(desk, PAWL_TIMEOUT);
    desk_does(desk, "abort:timeout 0");
    desk_ended(desk, 0, PAWLI_RESULT_RETRY);
    desk_does(desk, "settle:ended 0=retry/timeout");
}

/* The execution timeout counts from the last word that the job had not started. */
static void test_timeout_counts_from_the_start(void **state)
{
    struct desk *desk = *state;
    desk->settings.parallel_max = 1;
    desk->timeout_ms = 2500;
    desk_open(desk, NULL, 1);
    desk_does(desk, "claim:poll 3");
    desk_claimed(desk, 2);
    desk_does(desk, "start 0");
    desk_turn(desk, 1000);
    desk_does(desk, "renew:beat 0 1*; claim:poll 1");
    desk_renewed(desk, PAWL_OK);
    desk_turn(desk, 1000);
    desk_does(desk, "renew:beat 0 1*");
    desk_renewed(desk, PAWL_OK);
    desk_ended(desk, 0, PAWLI_RESULT_DONE);
    desk_does(desk, "settle:ended 0=succeed; start 1");
    desk_turn(desk,
              1000); /* 3 s after the claim, 1 s after the last word that it had not started */
    desk_does(desk, "renew:beat 0 1");
    desk_renewed(desk, PAWL_OK);
    desk_turn(desk, 999);
    desk_does(desk, "");
    desk_turn(desk, 501);
    desk_does(desk, "abort:timeout 1; renew:beat 0");
}

/* A timeout shorter than the way to the store: one renewal, a start, and the timeout ends it. */
static void test_timeout_shorter_than_the_round_trip(void **state)
{
    struct desk *desk = *state;
    desk->timeout_ms = 100;
    desk_open(desk, NULL, 1);
    desk_does(desk, "claim:poll 4");
    desk_turn(desk, 120);
    desk_claimed(desk, 1);
    desk_does(desk, "renew:adopt 0*");
    desk_turn(desk, 120);
    desk_renewed(desk, PAWL_OK);
    desk_does(desk, "start 0; abort:timeout 0");
    desk_ended(desk, 0, PAWLI_RESULT_DONE);
    desk_does(desk, "settle:ended 0=retry/timeout");
}

/* RES-13: renew answers CANCELLED: the worker stops, and says so; a job that was done all the same
 * is done. */
static void test_cancelled(void **state)
{
    struct desk *desk = desk_running(state, 2);
    desk_turn(desk, 1000);
    desk_does(desk, "renew:beat 0 1; claim:poll 2");
    desk_renewed(desk, PAWL_CANCELLED);
    desk_does(desk, "abort:cancelled 0; abort:cancelled 1");
    desk_ended(desk, 0, PAWLI_RESULT_RETRY);
    desk_ended(desk, 1, PAWLI_RESULT_DONE);
    desk_does(desk, "settle:ended 1=succeed 0=fail/cancelled");
}

/* A job that is cancelled before it has started is given back, which ends it. */
static void test_cancelled_before_the_start(void **state)
{
    struct desk *desk = *state;
    desk_open(desk, NULL, 1);
    pawli_keeper_on_pause(desk->keeper, desk->now, PAWLI_LINE_ALL);
    pawli_keeper_on_resume(desk->keeper, desk->now, PAWLI_LINE_ALL);
    desk_does(desk, "claim:poll 4");
    pawli_keeper_on_pause(desk->keeper, desk->now, PAWLI_LINE_ALL);
    desk_claimed(desk, 1);
    desk_turn(desk, 1000);
    desk_does(desk, "renew:beat 0*");
    desk_renewed(desk, PAWL_CANCELLED);
    desk_does(desk, "release:cancelled 0");
}

/* ---------------------------------------------------------------- settles */

/* What each answer of a handler becomes. */
static void test_results(void **state)
{
    struct desk *desk = *state;
    desk->settings.parallel_max = 4;
    desk->settings.buffer_max = 0;
    desk_open(desk, NULL, 1);
    desk_does(desk, "claim:poll 4");
    desk_claimed(desk, 4);
    desk_does(desk, "start 0; start 1; start 2; start 3");
    struct pawli_keeper *keeper = desk->keeper;
    pawli_keeper_on_ended(keeper, desk->now, desk->slots[0],
                          (struct pawli_ended){PAWLI_RESULT_RETRY, 70});
    pawli_keeper_on_ended(keeper, desk->now, desk->slots[1],
                          (struct pawli_ended){PAWLI_RESULT_SNOOZE, 0});
    desk_ended(desk, 2, PAWLI_RESULT_FAIL);
    desk_ended(desk, 3, PAWLI_RESULT_RETRY);
    desk_does(desk, "settle:ended 0=retry+70 1=snooze+0 2=fail 3=retry; claim:more 4");
}

/* K4: a settle whose reply was lost is repeated as it was; K6: its lease is renewed meanwhile. */
static void test_lost_settle_reply(void **state)
{
    struct desk *desk = desk_running(state, 1);
    desk_ended(desk, 0, PAWLI_RESULT_DONE);
    desk_does(desk, "settle:ended 0=succeed");
    pawl_lease lease = desk->last_lease;
    desk_turn(desk, 1000);
    desk_does(desk, "renew:beat 0; claim:poll 4");
    desk_renewed(desk,
                 PAWL_STALE); /* perhaps because the settle was done: no word of a lost lease */
    desk_does(desk, "");
    desk_failed(desk, desk->settle, PAWL_UNKNOWN);
    desk_turn(desk, 100);
    desk_does(desk, "settle:repeat 0=succeed");
    lease.place = 0; /* it proves nothing, and is not known any more */
    assert_memory_equal(&lease, &desk->last_lease, sizeof(lease));
    desk_settled(desk, PAWL_OK);
    desk_does(desk, "over:settled 0");
}

/* A settle says where the claim found its job, as long as no renewal was sent that may move it. */
static void test_places(void **state)
{
    struct desk *desk = desk_running(state, 2);
    desk_ended(desk, 1, PAWLI_RESULT_DONE);
    desk_does(desk, "settle:ended 1=succeed");
    assert_int_equal(2, desk->last_lease.place);
    desk_failed(desk, desk->settle, PAWL_UNKNOWN);
    desk_turn(desk, 100);
    desk_does(desk, "settle:repeat 1=succeed");
    assert_int_equal(2, desk->last_lease.place);
    desk_settled(desk, PAWL_OK);
    desk_does(desk, "over:settled 1");
    desk_turn(desk, 900);
    desk_does(desk, "renew:beat 0; claim:poll 3");
    desk_claimed(desk, 1); /* granted after that renewal: none of its own was sent */
    desk_does(desk, "start 2");
    desk_ended(desk, 2, PAWLI_RESULT_DONE);
    desk_does(desk, "settle:ended 2=succeed");
    assert_int_equal(3, desk->last_lease.place);
    desk_settled(desk, PAWL_OK);
    desk_does(desk, "over:settled 2");
    desk_ended(desk, 0, PAWLI_RESULT_DONE); /* the renewal is not answered yet */
    desk_does(desk, "settle:ended 0=succeed");
    assert_int_equal(0, desk->last_lease.place);
}

/* Neither does one whose renewal has no answer, or goes out while the settle waits. */
static void test_places_after_renewals(void **state)
{
    struct desk *desk = desk_running(state, 2);
    desk_turn(desk, 1000);
    desk_does(desk, "renew:beat 0 1; claim:poll 2");
    struct pawli_verdict verdict = {desk->slots[0], PAWL_OK, 4000};
    pawli_keeper_on_renewed(desk->keeper, desk->now, desk->renew, &verdict, 1); /* not of 1 */
    for (uint32_t i = 0; i < 2; i++) {
        desk_ended(desk, i, PAWLI_RESULT_DONE);
        desk_does(desk, i == 0 ? "settle:ended 0=succeed" : "settle:ended 1=succeed");
        assert_int_equal(0, desk->last_lease.place);
        desk_settled(desk, PAWL_OK);
        desk_does(desk, i == 0 ? "over:settled 0" : "over:settled 1");
    }
    desk_claimed(desk, 1);
    desk_does(desk, "start 2");
    desk_ended(desk, 2, PAWLI_RESULT_DONE);
    desk_does(desk, "settle:ended 2=succeed");
    assert_int_equal(3, desk->last_lease.place);
    desk_failed(desk, desk->settle, PAWL_DOWN);
    desk_turn(desk, 50);
    desk_does(desk, "");
    desk_turn(desk, 950); /* it was ended before its renewal, and is sent after it */
    desk_does(desk, "renew:beat 2; settle:ended 2=succeed; claim:poll 4");
    assert_int_equal(0, desk->last_lease.place);
}

/* A settle that fails because the store is away is tried again while the lease holds, and not
 * beyond (K3). */
static void test_settle_at_risk(void **state)
{
    struct desk *desk = desk_running(state, 1);
    desk_ended(desk, 0, PAWLI_RESULT_DONE);
    desk_does(desk, "settle:ended 0=succeed");
    desk_failed(desk, desk->settle, PAWL_DOWN);
    desk_turn(desk, 100);
    desk_does(desk, "settle:ended 0=succeed");
    assert_true(pawli_keeper_may_settle(desk->keeper, desk->slots[0], desk->now));
    desk_turn(desk, 1900);
    assert_false(pawli_keeper_may_settle(desk->keeper, desk->slots[0], desk->now));
    desk_failed(desk, desk->settle, PAWL_DOWN);
    desk_does(desk, "over:at_risk 0; claim:poll 4");
}

/* The store's refusals end the job for this worker. */
static void test_settle_refused(void **state)
{
    struct desk *desk = desk_running(state, 2);
    desk_ended(desk, 0, PAWLI_RESULT_DONE);
    desk_does(desk, "settle:ended 0=succeed");
    desk_settled(desk, PAWL_STALE);
    desk_does(desk, "over:fenced 0");
    desk_ended(desk, 1, PAWLI_RESULT_DONE);
    desk_does(desk, "settle:ended 1=succeed");
    desk_failed(desk, desk->settle, PAWL_INVALID);
    desk_does(desk, "over:refused 1");
}

/* One row that the store calls invalid costs no other its settle; a bad delay is no such row. */
static void test_one_bad_settle(void **state)
{
    struct desk *desk = *state;
    desk->settings.parallel_max = 3;
    desk_open(desk, NULL, 1);
    desk_does(desk, "claim:poll 5");
    desk_claimed(desk, 3);
    desk_does(desk, "start 0; start 1; start 2");
    struct pawli_ended bad = {PAWLI_RESULT_SNOOZE, -1};
    pawli_keeper_on_ended(desk->keeper, desk->now, desk->slots[0], bad);
    desk_ended(desk, 1, PAWLI_RESULT_DONE);
    desk_ended(desk, 2, PAWLI_RESULT_DONE);
    desk_does(desk, "settle:ended 0=snooze+0 1=succeed 2=succeed");
    desk_failed(desk, desk->settle, PAWL_INVALID);
    desk_does(desk, "settle:ended 0=snooze+0");
    desk_failed(desk, desk->settle, PAWL_INVALID);
    desk_does(desk, "over:refused 0; settle:ended 1=succeed");
    desk_settled(desk, PAWL_OK);
    desk_does(desk, "over:settled 1; settle:ended 2=succeed");
}

/* What is not renewed any more does not wait for company. */
static void test_no_linger_without_beats(void **state)
{
    struct desk *desk = *state;
    desk->settings.settle_linger_ms = 900;
    desk_running_ten(desk);
    desk_turn(desk, 1000);
    desk_does(desk, "renew:beat 0 1 2 3 4 5 6 7 8 9; claim:poll 2");
    struct pawli_verdict verdicts[10];
    for (size_t i = 0; i < 10; i++)
        verdicts[i] = (struct pawli_verdict){desk->slots[i], i == 0 ? PAWL_CANCELLED : PAWL_OK,
                                             4000};
    pawli_keeper_on_renewed(desk->keeper, desk->now, desk->renew, verdicts, 10);
    desk_does(desk, "abort:cancelled 0");
    desk_ended(desk, 1, PAWLI_RESULT_DONE);
    desk_does(desk, "");
    desk_ended(desk, 0, PAWLI_RESULT_RETRY);
    desk_does(desk, "settle:ended 0=fail/cancelled 1=succeed");
}

/* Settles wait for company no longer than the linger, nor once a batch is full. */
static void test_linger(void **state)
{
    struct desk *desk = *state;
    desk->settings.settle_linger_ms = 50;
    desk->settings.settle_batch_max = 2;
    desk_running_ten(desk);
    desk_ended(desk, 0, PAWLI_RESULT_DONE);
    desk_does(desk, "");
    desk_turn(desk, 49);
    desk_does(desk, "");
    desk_turn(desk, 1);
    desk_does(desk, "settle:ended 0=succeed");
    desk_settled(desk, PAWL_OK);
    desk_does(desk, "over:settled 0");
    desk_ended(desk, 1, PAWLI_RESULT_DONE);
    desk_does(desk, "");
    desk_ended(desk, 2, PAWLI_RESULT_DONE);
    desk_does(desk, "settle:ended 1=succeed 2=succeed");
}

/* Nor where a good part of all that ran has ended: the others may take long. */
static void test_no_linger_in_company(void **state)
{
    struct desk *desk = *state;
    desk->settings.settle_linger_ms = 50;
    desk_running_ten(desk);
    desk_ended(desk, 0, PAWLI_RESULT_DONE);
    desk_does(desk, "");
    desk_ended(desk, 1, PAWLI_RESULT_DONE);
    desk_does(desk, "");
    desk_ended(desk, 2, PAWLI_RESULT_DONE);
    desk_does(desk, "settle:ended 0=succeed 1=succeed 2=succeed");
}

/* Nor where a good part of a line has ended: the next of their keys would wait with them, though it
 * is others that run. */
static void test_no_linger_in_company_of_a_line(void **state)
{
    const int64_t held_max[] = {PAWL_DEFAULT, PAWL_DEFAULT};
    struct desk *desk = *state;
    desk->settings.settle_linger_ms = 50;
    desk->settings.parallel_max = 12;
    desk_open(desk, held_max, 2);
    desk_does(desk, "claim:poll 14 [0:14] [1:14]");
    desk_claimed(desk, 10);
    desk_does(desk, "start 0; start 1; start 2; start 3; start 4; start 5; start 6; start 7; "
                    "start 8; start 9");
    pawli_keeper_on_wake(desk->keeper, desk->now);
    desk_does(desk, "claim:wake 4 [1:4] [0:4]");
    desk_claimed_line(desk, 1, 1);
    desk_does(desk, "start 10");
    desk_ended(desk, 10, PAWLI_RESULT_DONE);
    desk_does(desk, "settle:ended 10=succeed");
    desk_settled(desk, PAWL_OK);
    desk_does(desk, "over:settled 10");
    desk_ended(desk, 0, PAWLI_RESULT_DONE);
    desk_ended(desk, 1, PAWLI_RESULT_DONE);
    desk_does(desk, ""); /* of this line most run on */
    desk_turn(desk, 50);
    desk_does(desk, "settle:ended 0=succeed 1=succeed");
    desk_settled(desk, PAWL_OK);
    desk_does(desk, "over:settled 0; over:settled 1");
    desk_ended(desk, 2, PAWLI_RESULT_DONE);
    desk_does(desk, ""); /* what was settled does not count */
}

static void test_who_is_alone_does_not_linger(void **state)
{
    struct desk *desk = *state;
    desk->settings.settle_linger_ms = 50;
    (void)desk_running(state, 1);
    desk_ended(desk, 0, PAWLI_RESULT_DONE);
    desk_does(desk, "settle:ended 0=succeed");
}

/* ---------------------------------------------------------------- pauses and holding */

/* RULE-020-042: nothing is claimed or started while the downstream is saturated; what is held is
 * renewed. */
static void test_pause_and_resume(void **state)
{
    struct desk *desk = *state;
    int64_t held_max[] = {PAWL_DEFAULT, PAWL_DEFAULT};
    desk_open(desk, held_max, 2);
    pawli_keeper_on_pause(desk->keeper, desk->now, 0);
    desk_does(desk, "claim:poll 4");
    pawli_keeper_on_pause(desk->keeper, desk->now, PAWLI_LINE_ALL);
    desk_claimed_line(desk, 1, 1);
    desk_does(desk, "");
    desk_turn(desk, 1000);
    desk_does(desk, "renew:beat 0*");
    desk_renewed(desk, PAWL_OK);
    pawli_keeper_on_resume(desk->keeper, desk->now, PAWLI_LINE_ALL);
    desk_does(desk, "start 0; claim:poll 3");
    desk_claimed(desk, 0);
    pawli_keeper_on_resume(desk->keeper, desk->now, 0);
    desk_does(desk, "claim:more 3 [0:3] [1:3]");
}

/* A job that waited a whole lease for a slot goes back, and none is taken ahead until a handler
 * ends. */
static void test_held_too_long(void **state)
{
    struct desk *desk = *state;
    desk->settings.parallel_max = 1;
    desk->settings.buffer_max = 1;
    desk_open(desk, NULL, 1);
    desk_does(desk, "claim:poll 2");
    desk_claimed(desk, 2);
    desk_does(desk, "start 0");
    for (int beat = 1; beat < 4; beat++) {
        desk_turn(desk, 1000);
        desk_does(desk, "renew:beat 0 1*");
        desk_renewed(desk, PAWL_OK);
    }
    desk_turn(desk, 1000);
    desk_does(desk, "renew:beat 0 1*; release:held_too_long 1");
    desk_renewed(desk, PAWL_OK);
    desk_released(desk, PAWL_OK);
    desk_does(desk, "over:released 1"); /* and no claim: the buffer is closed */
    desk_ended(desk, 0, PAWLI_RESULT_DONE);
    desk_does(desk, "settle:ended 0=succeed; claim:more 2");
}

/* ---------------------------------------------------------------- shutdown */

/* RULE-020-030, K6: no new work, unstarted jobs go back, running ones finish under renewed leases,
 * then it stops. */
static void test_shutdown(void **state)
{
    struct desk *desk = *state;
    desk_open(desk, NULL, 1);
    desk_does(desk, "claim:poll 4");
    desk_claimed(desk, 3);
    desk_does(desk, "start 0; start 1");
    pawli_keeper_on_shutdown(desk->keeper, desk->now, 4000);
    desk_does(desk, "release:not_started 2");
    desk_released(desk, PAWL_OK);
    desk_does(desk, "over:released 2");
    pawli_keeper_on_wake(desk->keeper, desk->now);
    desk_turn(desk, 1000);
    desk_does(desk, "renew:beat 0 1");
    desk_renewed(desk, PAWL_OK);
    desk_ended(desk, 0, PAWLI_RESULT_DONE);
    desk_ended(desk, 1, PAWLI_RESULT_RETRY);
    desk_does(desk, "settle:ended 0=succeed 1=retry");
    desk_settled(desk, PAWL_OK);
    desk_does(desk, "over:settled 0; over:settled 1; stopped 0");
    desk_does(desk, "");
}

/* RULE-020-031: what still runs is told to stop one grace period before the end; what is left is
 * the reaper's. */
static void test_shutdown_timeout(void **state)
{
    struct desk *desk = desk_running(state, 2);
    pawli_keeper_on_shutdown(desk->keeper, desk->now, 2000);
    desk_turn(desk, 1000);
    desk_does(desk, "renew:beat 0 1");
    desk_renewed(desk, PAWL_OK);
    desk_turn(desk, 499);
    desk_does(desk, "");
    desk_turn(desk, 1);
    desk_does(desk, "abort:shutdown 0; abort:shutdown 1");
    desk_ended(desk, 0,
               PAWLI_RESULT_RETRY); /* it failed because it was stopped: no retry is used */
    desk_does(desk, "settle:ended 0=snooze/shutdown+0");
    desk_settled(desk, PAWL_OK);
    desk_does(desk, "over:settled 0");
    desk_turn(desk, 500);
    desk_does(desk, "give_up:abort_ignored 1; stopped 1");
}

/* RULE-020-030: a grace period as long as the shutdown still leaves the work most of the time. */
static void test_shutdown_shorter_than_the_grace(void **state)
{
    struct desk *desk = *state;
    desk->settings.grace_ms = 5000;
    desk_running(state, 1);
    pawli_keeper_on_shutdown(desk->keeper, desk->now, 800);
    desk_turn(desk, 599);
    desk_does(desk, "");
    desk_turn(desk, 1);
    desk_does(desk, "abort:shutdown 0");
    desk_turn(desk, 200);
    desk_does(desk, "give_up:abort_ignored 0; stopped 1");
}

/* A claim that is under way when the shutdown comes brings jobs that go straight back. */
static void test_shutdown_during_a_claim(void **state)
{
    struct desk *desk = *state;
    desk_open(desk, NULL, 1);
    desk_does(desk, "claim:poll 4");
    pawli_keeper_on_shutdown(desk->keeper, desk->now, 4000);
    desk_does(desk, "");
    desk_claimed(desk, 2);
    desk_does(desk, "release:not_started 0 1");
    desk_failed(desk, desk->release, PAWL_UNKNOWN);
    desk_turn(desk, 100);
    desk_does(desk, "release:repeat 0 1");
    desk_released(desk, PAWL_STALE); /* it had been done */
    desk_does(desk, "over:released 0; over:released 1; stopped 0");
}

/* A claim lost during shutdown is asked after, and what it took goes back. */
static void test_shutdown_with_a_lost_claim(void **state)
{
    struct desk *desk = *state;
    desk_open(desk, NULL, 1);
    desk_does(desk, "claim:poll 4");
    pawli_keeper_on_shutdown(desk->keeper, desk->now, 4000);
    desk_failed(desk, desk->claim, PAWL_UNKNOWN);
    desk_turn(desk, 100);
    desk_does(desk, "mine:claim_lost");
    desk_mine(desk, (uint64_t[]){1}, 1);
    desk_does(desk, "renew:adopt 0*");
    desk_renewed(desk, PAWL_OK);
    desk_does(desk, "release:not_started 0");
    desk_released(desk, PAWL_OK);
    desk_does(desk, "over:released 0; stopped 0");
}

/* The second signal: everything stops now. */
static void test_abort_all(void **state)
{
    struct desk *desk = desk_running(state, 2);
    pawli_keeper_on_shutdown(desk->keeper, desk->now, 4000);
    desk_does(desk, "");
    desk_turn(desk, 100);
    pawli_keeper_on_abort_all(desk->keeper, desk->now);
    desk_does(desk, "abort:abort_all 0; abort:abort_all 1");
    desk_ended(desk, 0, PAWLI_RESULT_RETRY);
    desk_does(desk, "settle:ended 0=snooze/shutdown+0");
    desk_turn(desk, 500);
    desk_does(desk, "give_up:abort_ignored 1; stopped 2");
}

/* ---------------------------------------------------------------- settings, memory, input */

/* RULE-020-002, RES-1: a change holds from the next grant or beat on, and shortens nothing. */
static void test_settings_change(void **state)
{
    struct desk *desk = desk_running(state, 1);
    pawl_worker_settings settings = desk->settings;
    settings.heartbeat_ms = 500;
    settings.parallel_max = 1;
    settings.buffer_max = 100; /* the table does not grow */
    settings.poll_ms = 100;    /* holds for the poll that is due later, too */
    pawli_keeper_on_settings(desk->keeper, desk->now, &settings);
    desk_turn(desk, 99);
    desk_does(desk, "");
    desk_turn(desk, 1);
    desk_does(desk, "claim:poll 3");
    desk_turn(desk, 899);
    desk_does(desk, ""); /* the beat of the lease already granted stays where it was */
    desk_turn(desk, 1);
    desk_does(desk, "renew:beat 0");
    desk_renewed(desk, PAWL_OK);
    desk_claimed(desk, 2);
    desk_does(desk,
              "renew:beat 1* 2*"); /* the new interval holds for what is granted from now on */
    desk_renewed(desk, PAWL_OK);
    desk_turn(desk, 500);
    desk_does(desk, "renew:beat 0 1* 2*; claim:poll 1");
}

/* A line that gave all that it was asked for is asked again as soon as it has room, whatever other
 * lines have said meanwhile. */
static void test_a_line_with_more_is_asked_when_it_has_room(void **state)
{
    const int64_t held_max[] = {1, 1};
    struct desk *desk = *state;
    desk_open(desk, held_max, 2);
    desk_does(desk, "claim:poll 2 [0:1] [1:1]");
    desk_claimed(desk, 1);
    desk_does(desk, "start 0");
    pawli_keeper_on_wake(desk->keeper, desk->now);
    desk_does(desk, "claim:wake 1");
    desk_claimed_line(desk, 1, 0);
    desk_does(desk, "");
    desk_ended(desk, 0, PAWLI_RESULT_DONE);
    desk_does(desk, "settle:ended 0=succeed");
    desk_settled(desk, PAWL_OK);
    desk_does(desk, "over:settled 0; claim:more 2 [0:1] [1:1]");
    desk_claimed(desk, 0);
    desk_turn(desk, 500);
    desk_does(desk, ""); /* nobody has more: by the poll */
}

/* A hint may be of a line that has no room just then: it is asked when it has, not by the poll. */
static void test_a_line_that_had_no_room_for_a_hint(void **state)
{
    const int64_t held_max[] = {4, 4};
    struct desk *desk = *state;
    desk->settings.parallel_max = 20;
    desk_open(desk, held_max, 2);
    desk_does(desk, "claim:poll 8 [0:4] [1:4]");
    desk_claimed(desk, 2);
    desk_does(desk, "start 0; start 1");
    pawli_keeper_on_line(desk->keeper, desk->now, (struct pawli_keeper_bound){0, 2});
    pawli_keeper_on_wake(desk->keeper, desk->now);
    desk_does(desk, "claim:wake 4"); /* of line 1 */
    desk_claimed(desk, 0);
    desk_does(desk, "");
    pawli_keeper_on_line(desk->keeper, desk->now, (struct pawli_keeper_bound){0, 4});
    desk_does(desk, "claim:more 6 [0:2] [1:4]");
    desk_claimed(desk, 0);
    desk_does(desk, "");
}

/* One that is nearly full waits a moment, until there is more room: a claim has its price, for one
 * job as for many. */
static void test_a_line_that_is_nearly_full_is_filled_up_later(void **state)
{
    const int64_t held_max = 16;
    struct desk *desk = *state;
    desk->settings.parallel_max = 20;
    desk_open(desk, &held_max, 1);
    desk_does(desk, "claim:poll 16");
    desk_claimed(desk, 16);
    desk_does(desk, "start 0; start 1; start 2; start 3; start 4; start 5; start 6; start 7; "
                    "start 8; start 9; start 10; start 11; start 12; start 13; start 14; start 15");
    desk_ended(desk, 0, PAWLI_RESULT_DONE);
    desk_does(desk, "settle:ended 0=succeed");
    desk_settled(desk, PAWL_OK);
    desk_does(desk, "over:settled 0");
    desk_turn(desk, 4);
    desk_does(desk, "");
    desk_turn(desk, 1);
    desk_does(desk, "claim:more 1");
    desk_claimed(desk, 1);
    desk_does(desk, "start 16");
    for (uint32_t i = 1; i <= 3; i++)
        desk_ended(desk, i, PAWLI_RESULT_DONE);
    desk_does(desk, "settle:ended 1=succeed 2=succeed 3=succeed");
    desk_settled(desk, PAWL_OK);
    desk_does(desk, "over:settled 1; over:settled 2; over:settled 3");
    desk_ended(desk, 4, PAWLI_RESULT_DONE);
    desk_does(desk, "settle:ended 4=succeed");
    desk_settled(desk, PAWL_OK);
    desk_does(desk, "over:settled 4; claim:more 4"); /* a quarter is free */
    desk_claimed(desk, 3);
    desk_does(desk, "start 17; start 18; start 19");
    pawli_keeper_on_wake(desk->keeper, desk->now);
    desk_does(desk, "claim:wake 1"); /* somebody waits for it */
}

/* Bounds move, and lines come, while it runs. */
static void test_bounds_of_lines_change(void **state)
{
    const int64_t held_max = 1;
    struct desk *desk = *state;
    desk_open(desk, &held_max, 1);
    desk_does(desk, "claim:poll 1");
    desk_claimed(desk, 1);
    desk_does(desk, "start 0");
    assert_int_equal(1, pawli_keeper_line_held(desk->keeper, 0));
    pawli_keeper_on_line(desk->keeper, desk->now, (struct pawli_keeper_bound){0, 3});
    desk_does(desk, "claim:more 2");
    desk_claimed(desk, 2);
    desk_does(desk, "start 1");
    pawli_keeper_on_line(desk->keeper, desk->now, (struct pawli_keeper_bound){0, 0});
    desk_ended(desk, 0, PAWLI_RESULT_DONE);
    desk_does(desk, "settle:ended 0=succeed; start 2"); /* what is held goes on */
    desk_settled(desk, PAWL_OK);
    desk_does(desk, "over:settled 0");
    desk_turn(desk, 999);
    desk_renewed(desk, PAWL_OK); /* none is out: ignored */
    desk_does(desk, "");         /* and nothing is claimed */
    pawli_keeper_on_line(desk->keeper, desk->now, (struct pawli_keeper_bound){0, PAWL_DEFAULT});
    desk_does(desk, "claim:more 2");
}

/* A bound that rises while a claim is under way is not forgotten. */
static void test_a_bound_changes_during_a_claim(void **state)
{
    const int64_t held_max = 1;
    struct desk *desk = *state;
    desk_open(desk, &held_max, 1);
    desk_does(desk, "claim:poll 1");
    desk_claimed(desk, 1);
    desk_does(desk, "start 0");
    pawli_keeper_on_line(desk->keeper, desk->now, (struct pawli_keeper_bound){0, 2});
    desk_does(desk, "claim:more 1");
    pawli_keeper_on_pause(desk->keeper, desk->now, 0);
    pawli_keeper_on_resume(desk->keeper, desk->now, 0);
    desk_claimed(desk, 0);
    desk_does(desk, "claim:more 1");
    desk_claimed(desk, 0);
    desk_does(desk, "");
}

/* A keeper may begin without a line, and be given some. */
static void test_lines_are_added(void **state)
{
    struct desk *desk = *state;
    struct pawli_seeded seeded = {1};
    pawl_random random = pawli_seeded_as_random(&seeded);
    struct pawli_keeper_config config = {
        .settings = &desk->settings, .lines_max = 2, .random = &random};
    assert_int_equal(PAWL_OK, pawli_keeper_new(&config, &desk->keeper, NULL));
    desk_does(desk, "");
    pawli_keeper_on_line(desk->keeper, desk->now, (struct pawli_keeper_bound){0, 0});
    desk_does(desk, "");
    pawli_keeper_on_line(desk->keeper, desk->now, (struct pawli_keeper_bound){1, 1});
    desk_does(desk, "claim:poll 1");
    desk_claimed_line(desk, 1, 1);
    desk_does(desk, "start 0");
}

static void test_bad_lines(void **state)
{
    struct desk *desk = *state;
    struct pawli_keeper_line line = {0};
    struct pawli_keeper *keeper = NULL;
    uint64_t seed = 1;
    struct pawli_seeded seeded = {seed};
    pawl_random random = pawli_seeded_as_random(&seeded);
    struct pawli_keeper_config config = {
        .settings = &desk->settings, .lines = &line, .lines_count = 1, .random = &random};
    pawl_err err;
    assert_int_equal(PAWL_INVALID, pawli_keeper_new(&config, &keeper, &err));
    assert_non_null(strstr(err.text, "held_max"));
    line.held_max = 1;
    config.lines_count = 0;
    assert_int_equal(PAWL_INVALID, pawli_keeper_new(&config, &keeper, &err));
    config.lines_count = PAWL_LINES_MAX + 1;
    assert_int_equal(PAWL_INVALID, pawli_keeper_new(&config, &keeper, &err));
    assert_null(keeper);
}

/* Every allocation fails once; after pawli_keeper_new() there are none. */
static void test_no_memory(void **state)
{
    struct desk *desk = *state;
    struct pawli_keeper_line line = {PAWL_DEFAULT};
    struct pawli_seeded seeded = {1};
    pawl_random random = pawli_seeded_as_random(&seeded);
    struct pawli_keeper_config config = {
        .settings = &desk->settings, .lines = &line, .lines_count = 1, .random = &random};
    uint64_t nth = 1;
    for (;; nth++) {
        struct pawli_keeper *keeper = NULL;
        alloc_fail_nth(nth);
        pawl_code code = pawli_keeper_new(&config, &keeper, NULL);
        if (!alloc_fail_end()) {
            assert_int_equal(PAWL_OK, code);
            pawli_keeper_free(keeper);
            break;
        }
        assert_int_equal(PAWL_NO_MEMORY, code);
        assert_null(keeper);
    }
    assert_int_equal(8, nth); /* seven allocations, each has failed once */

    desk_running(state, 2);
    alloc_fail_nth(1);
    desk_turn(desk, 1000);
    struct pawli_action action;
    while (pawli_keeper_next(desk->keeper, desk->now, &action))
        if (action.kind == PAWLI_ACTION_CLAIM)
            desk->claim = action.request;
    desk_claimed(desk, 2);
    desk_ended(desk, 0, PAWLI_RESULT_DONE);
    while (pawli_keeper_next(desk->keeper, desk->now, &action)) {
    }
    assert_false(alloc_fail_end());
    pawli_keeper_free(NULL);
}

static void test_reasons_have_names(void **state)
{
    (void)state;
    for (int why = 0; why < PAWLI_WHYS; why++) {
        assert_non_null(pawli_why_name((enum pawli_why)why));
        for (int other = 0; other < why; other++)
            assert_string_not_equal(pawli_why_name((enum pawli_why)why),
                                    pawli_why_name((enum pawli_why)other));
    }
    assert_string_equal("?", pawli_why_name(PAWLI_WHYS));
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(test_one_job),
        STORY(test_room),
        STORY(test_settles_that_lag_stop_claims),
        STORY(test_wake),
        STORY(test_lines),
        STORY(test_store_down),
        STORY(test_lost_claim),
        STORY(test_adopted_lease_is_gone),
        STORY(test_mine_knows_and_gives_back),
        STORY(test_shutdown_of_an_adopted_lease),
        STORY(test_stopped_work_is_not_adopted),
        STORY(test_late_claim_reply),
        STORY(test_beats_count_from_the_request),
        STORY(test_beat_fails),
        STORY(test_kill_before_the_lease_ends),
        STORY(test_long_and_short_leases),
        STORY(test_refused_renewal),
        STORY(test_generations),
        STORY(test_after_a_pause),
        STORY(test_worn_lease_is_renewed_before_the_start),
        STORY(test_timeout),
        STORY(test_timeout_ignored),
        STORY(test_timeout_by_the_store),
        STORY(test_timeout_counts_from_the_start),
        STORY(test_timeout_shorter_than_the_round_trip),
        STORY(test_cancelled),
        STORY(test_cancelled_before_the_start),
        STORY(test_results),
        STORY(test_lost_settle_reply),
        STORY(test_places),
        STORY(test_places_after_renewals),
        STORY(test_settle_at_risk),
        STORY(test_settle_refused),
        STORY(test_one_bad_settle),
        STORY(test_no_linger_without_beats),
        STORY(test_linger),
        STORY(test_no_linger_in_company),
        STORY(test_no_linger_in_company_of_a_line),
        STORY(test_who_is_alone_does_not_linger),
        STORY(test_pause_and_resume),
        STORY(test_held_too_long),
        STORY(test_shutdown),
        STORY(test_shutdown_timeout),
        STORY(test_shutdown_shorter_than_the_grace),
        STORY(test_shutdown_during_a_claim),
        STORY(test_shutdown_with_a_lost_claim),
        STORY(test_abort_all),
        STORY(test_settings_change),
        STORY(test_a_line_with_more_is_asked_when_it_has_room),
        STORY(test_a_line_that_had_no_room_for_a_hint),
        STORY(test_a_line_that_is_nearly_full_is_filled_up_later),
        STORY(test_bounds_of_lines_change),
        STORY(test_a_bound_changes_during_a_claim),
        STORY(test_lines_are_added),
        STORY(test_bad_lines),
        STORY(test_no_memory),
        cmocka_unit_test(test_reasons_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * core_job_ends_test.c - proves core/job.c, second half: how attempts and jobs end (settles,
 * release, expiry, cancellation, deadline), the row that each leaves, and the way back.
 * Owns:  nothing.
 * Never: reads a clock: every instant is counted from a fixed one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/job_steps.h"

/* ---------------------------------------------------------------- settles */

/* Q-ACK, RES-12 */
static void success_ends_the_job(void **state)
{
    (void)state;
    struct pawli_job job = claimed_job(0);
    job.lost_in_a_row = 4;
    struct pawli_ledger_row row = must(&job, by_holder(&job, PAWLI_EVENT_SUCCEED, 7));
    assert_int_equal(job.state, PAWL_SUCCEEDED);
    assert_row(row, &job, 7,
               (struct expected_row){1, PAWL_DISPATCHED, PAWL_REASON_NONE, PAWL_ENDED_BY_HOLDER});
    assert_true(job.lost_in_a_row == 0 && job.retries == 0);
}

/* Q-NACK, Q-RETRY-BOUND, RES-5: 1 + MaxRetries attempts that their holder ended. */
static void retries_are_counted_and_bounded(void **state)
{
    (void)state;
    struct pawli_job job = ready_job();
    for (int64_t n = 1; n <= 4; n++) {
        job.due_at = at(0);
        (void)must(&job, claim_at(0));
        job.lost_in_a_row = 4;
        struct pawli_change change = by_holder(&job, PAWLI_EVENT_RETRY, 7);
        change.delay_ms = 1234;
        struct pawli_ledger_row row = must(&job, change);
        assert_true(job.lost_in_a_row == 0);
        assert_true(job.lease_version == n);
        if (n == 4) {
            assert_int_equal(job.state, PAWL_FAILED);
            assert_row(row, &job, 7,
                       (struct expected_row){4, PAWL_FAILED_FINAL, PAWL_REASON_EXHAUSTED,
                                             PAWL_ENDED_BY_HOLDER});
            assert_true(job.retries == 3);
            break;
        }
        assert_int_equal(job.state, PAWL_READY);
        assert_row(
            row, &job, 7,
            (struct expected_row){n, PAWL_RETRYABLE, PAWL_REASON_ERROR, PAWL_ENDED_BY_HOLDER});
        assert_true(job.retries == n);
        assert_true(job.due_at.us == at(7 + 1234).us);
    }
}

static void no_retries_means_one_attempt(void **state)
{
    (void)state;
    struct pawli_job job = claimed_job(0);
    const struct pawli_job_rules once = {0, 10, 500, 30000};
    struct pawli_change change = by_holder(&job, PAWLI_EVENT_RETRY, 7);
    struct pawli_ledger_row row;
    assert_int_equal(pawli_job_change(&job, &once, &change, &no_draw, &row), PAWL_OK);
    assert_row(
        row, &job, 7,
        (struct expected_row){1, PAWL_FAILED_FINAL, PAWL_REASON_EXHAUSTED, PAWL_ENDED_BY_HOLDER});
}

/* The delay that is drawn for a change, with the source's next number at `drawn`. */
static int64_t drawn_delay_ms(struct pawli_job job, struct pawli_change change, uint64_t drawn)
{
    pawl_random random = always(&drawn);
    (void)must_draw(&job, change, &random);
    assert_int_equal(job.state, PAWL_READY);
    return (job.due_at.us - change.now.us) / 1000;
}

/* The ceiling is `ceiling_ms` exactly: it can be drawn, and one more cannot. */
static void assert_ceiling(const struct pawli_job *job, struct pawli_change change,
                           uint64_t ceiling_ms)
{
    assert_true(drawn_delay_ms(*job, change, ceiling_ms) == (int64_t)ceiling_ms);
    assert_true(drawn_delay_ms(*job, change, ceiling_ms + 1) == 0);
    assert_true(drawn_delay_ms(*job, change, 0) == 0);
}

/* Q-BACKOFF: by the retries before this one. */
static void a_retry_without_a_delay_backs_off(void **state)
{
    (void)state;
    static const uint64_t ceilings_ms[] = {500, 1000, 2000};
    struct pawli_job job = claimed_job(0);
    for (int64_t retries = 0; retries < 3; retries++) {
        job.retries = retries;
        assert_ceiling(&job, by_holder(&job, PAWLI_EVENT_RETRY, 7), ceilings_ms[retries]);
    }
    struct pawli_change change = by_holder(&job, PAWLI_EVENT_RETRY, 7);
    change.delay_ms = 0; /* a given delay of 0 is a delay */
    (void)must(&job, change);
    assert_true(job.due_at.us == at(7).us);
}

/* RES-6: stopped by the execution timeout, it is retried and says so; the last one is exhausted. */
static void a_timeout_uses_a_retry(void **state)
{
    (void)state;
    struct pawli_job job = claimed_job(0);
    struct pawli_change change = by_holder(&job, PAWLI_EVENT_RETRY, 7);
    change.reason = PAWL_REASON_TIMEOUT;
    change.delay_ms = 0;
    struct pawli_job last = job;
    struct pawli_ledger_row row = must(&job, change);
    assert_row(row, &job, 7,
               (struct expected_row){1, PAWL_RETRYABLE, PAWL_REASON_TIMEOUT, PAWL_ENDED_BY_HOLDER});
    assert_true(job.retries == 1);
    last.retries = 3;
    row = must(&last, change);
    assert_row(
        row, &last, 7,
        (struct expected_row){1, PAWL_FAILED_FINAL, PAWL_REASON_EXHAUSTED, PAWL_ENDED_BY_HOLDER});
}

static void a_fatal_failure_ends_the_job(void **state)
{
    (void)state;
    struct pawli_job job = claimed_job(0);
    job.lost_in_a_row = 4;
    struct pawli_job told = job;
    struct pawli_change change = by_holder(&job, PAWLI_EVENT_FAIL, 7);
    struct pawli_ledger_row row = must(&job, change);
    assert_int_equal(job.state, PAWL_FAILED);
    assert_row(
        row, &job, 7,
        (struct expected_row){1, PAWL_FAILED_FINAL, PAWL_REASON_FATAL, PAWL_ENDED_BY_HOLDER});
    assert_true(job.retries == 0 && job.lost_in_a_row == 0);

    struct pawli_job marked = told;
    marked.is_cancel_asked = true;
    change.reason = PAWL_REASON_CANCELLED; /* a worker that stopped because it was told to */
    row = must(&marked, change);
    assert_row(
        row, &marked, 7,
        (struct expected_row){1, PAWL_FAILED_FINAL, PAWL_REASON_CANCELLED, PAWL_ENDED_BY_HOLDER});

    row = must(&told, change); /* but nobody had told this one */
    assert_row(
        row, &told, 7,
        (struct expected_row){1, PAWL_FAILED_FINAL, PAWL_REASON_FATAL, PAWL_ENDED_BY_HOLDER});
}

/* RES-12: a snooze uses no retry. */
static void a_snooze_uses_no_retry(void **state)
{
    (void)state;
    struct pawli_job job = claimed_job(0);
    job.retries = 3; /* none left, and none needed */
    job.lost_in_a_row = 4;
    struct pawli_job stopping = job;
    struct pawli_change change = by_holder(&job, PAWLI_EVENT_SNOOZE, 7);
    struct pawli_ledger_row row = must(&job, change);
    assert_int_equal(job.state, PAWL_READY);
    assert_row(row, &job, 7,
               (struct expected_row){1, PAWL_RETRYABLE, PAWL_REASON_SNOOZE, PAWL_ENDED_BY_HOLDER});
    assert_true(job.retries == 3 && job.lost_in_a_row == 0);
    assert_true(job.due_at.us == at(7 + 7000).us);

    change.reason = PAWL_REASON_SHUTDOWN;
    change.delay_ms = 0;
    row = must(&stopping, change);
    assert_row(
        row, &stopping, 7,
        (struct expected_row){1, PAWL_RETRYABLE, PAWL_REASON_SHUTDOWN, PAWL_ENDED_BY_HOLDER});
    assert_true(stopping.due_at.us == at(7).us);
}

/* RES-12: given back unstarted: no row, nothing counted, claimable at once. */
static void a_release_leaves_no_trace(void **state)
{
    (void)state;
    struct pawli_job job = ready_job();
    job.due_at = at(-5000);
    job.retries = 2;
    job.lost_leases = 5;
    job.lost_in_a_row = 4;
    job.attempts = 7;
    job.reason = PAWL_REASON_EXPIRED;
    struct pawli_job before = job;
    (void)must(&job, claim_at(0));
    assert_no_row(must(&job, by_holder(&job, PAWLI_EVENT_RELEASE, 7)));
    assert_true(job.lease_version == 1);
    before.lease_version = 1;
    assert_memory_equal(&job, &before, sizeof(job));
    (void)must(&job, claim_at(7));
}

static void a_released_job_is_due_even_where_the_clock_went_back(void **state)
{
    (void)state;
    struct pawli_job job = claimed_job(0);
    assert_no_row(must(&job, by_holder(&job, PAWLI_EVENT_RELEASE, -100)));
    assert_true(job.due_at.us == at(-100).us);
    (void)must(&job, claim_at(-100));
}

/* ---------------------------------------------------------------- expiry */

/* RES-4, RES-5, Q-TTL: one row, one lost lease, no retry used. */
static void an_expired_lease_puts_the_job_back(void **state)
{
    (void)state;
    struct pawli_job job = claimed_job(0);
    struct pawli_change early = by_others(PAWLI_EVENT_EXPIRE, LEASE_MS);
    early.now = just_before(early.now);
    refused(&job, early, PAWL_NOT_EXPIRED);
    struct pawli_ledger_row row = must(&job, by_others(PAWLI_EVENT_EXPIRE, LEASE_MS));
    assert_int_equal(job.state, PAWL_READY);
    assert_row(
        row, &job, LEASE_MS,
        (struct expected_row){1, PAWL_ZOMBIE_REQUEUE, PAWL_REASON_EXPIRED, PAWL_ENDED_BY_EXPIRY});
    assert_true(job.lost_leases == 1 && job.lost_in_a_row == 1 && job.retries == 0);
    assert_true(job.due_at.us == at(LEASE_MS).us); /* the first loss: at once */
    refused(&job, by_others(PAWLI_EVENT_EXPIRE, LEASE_MS), PAWL_NOT_LEASED); /* exactly one row */
}

/* RES-5: from the second loss in a row on, after a backoff of its own count. */
static void further_losses_in_a_row_back_off(void **state)
{
    (void)state;
    static const uint64_t ceilings_ms[] = {500, 1000, 2000, 4000, 8000, 16000, 30000, 30000};
    struct pawli_job job = claimed_job(0);
    job.retries = 2; /* the retries do not enter into it */
    for (int64_t before = 1; before <= 8; before++) {
        job.lost_in_a_row = before;
        job.lost_leases = 0;
        assert_ceiling(&job, by_others(PAWLI_EVENT_EXPIRE, LEASE_MS), ceilings_ms[before - 1]);
    }
    job.lost_in_a_row = 0; /* a holder has ended an attempt since */
    job.lost_leases = 8;
    (void)must(&job, by_others(PAWLI_EVENT_EXPIRE, LEASE_MS));
    assert_true(job.due_at.us == at(LEASE_MS).us);
}

/* RES-5: at the max_lost_leases-th the job is poison. */
static void the_tenth_lost_lease_is_poison(void **state)
{
    (void)state;
    struct pawli_job job = claimed_job(0);
    job.lost_leases = 8;
    struct pawli_job tenth = job;
    (void)must(&job, by_others(PAWLI_EVENT_EXPIRE, LEASE_MS));
    assert_int_equal(job.state, PAWL_READY);
    assert_true(job.lost_leases == 9);

    tenth.lost_leases = 9;
    tenth.lost_in_a_row = 9; /* no backoff is drawn for a job that does not go on */
    struct pawli_ledger_row row = must(&tenth, by_others(PAWLI_EVENT_EXPIRE, LEASE_MS));
    assert_int_equal(tenth.state, PAWL_FAILED);
    assert_row(
        row, &tenth, LEASE_MS,
        (struct expected_row){1, PAWL_FAILED_FINAL, PAWL_REASON_POISON, PAWL_ENDED_BY_EXPIRY});
    assert_true(tenth.lost_leases == 10);
}

/* ---------------------------------------------------------------- cancel */

/* RES-13: a Ready job is Failed at once; its row belongs to no lease. */
static void a_ready_job_is_cancelled_at_once(void **state)
{
    (void)state;
    struct pawli_job job = ready_job();
    job.lease_version = 3; /* claimed and put back before */
    job.attempts = 3;
    struct pawli_ledger_row row = must(&job, by_others(PAWLI_EVENT_CANCEL, 7));
    assert_int_equal(job.state, PAWL_FAILED);
    assert_true(row.is_due && row.attempt_no == 4 && job.attempts == 4);
    assert_int_equal(row.outcome, PAWL_FAILED_FINAL);
    assert_int_equal(row.reason, PAWL_REASON_CANCELLED);
    assert_int_equal(row.ended_by, PAWL_ENDED_BY_OPERATOR);
    assert_true(row.lease_version == 0 && row.worker[0] == '\0' && row.started_at.us == 0);
    assert_true(row.finished_at.us == at(7).us && job.finished_at.us == at(7).us);
    assert_int_equal(job.reason, PAWL_REASON_CANCELLED);
    assert_true(job.lease_version == 3);
}

/* RES-13: an InFlight job is marked, once, and nothing else changes. */
static void a_running_job_is_marked(void **state)
{
    (void)state;
    struct pawli_job job = claimed_job(0);
    struct pawli_job before = job;
    assert_no_row(must(&job, by_others(PAWLI_EVENT_CANCEL, 7)));
    before.is_cancel_asked = true;
    assert_memory_equal(&job, &before, sizeof(job));
    assert_no_row(must(&job, by_others(PAWLI_EVENT_CANCEL, 8)));
    assert_memory_equal(&job, &before, sizeof(job));
}

/* RES-13: a valid success that comes first wins; every other end is Failed, reason cancelled. */
static void a_marked_job_ends_with_its_attempt(void **state)
{
    (void)state;
    struct pawli_job job = marked_job(0);
    assert_row(must(&job, by_holder(&job, PAWLI_EVENT_SUCCEED, 7)), &job, 7,
               (struct expected_row){1, PAWL_DISPATCHED, PAWL_REASON_NONE, PAWL_ENDED_BY_HOLDER});

    static const enum pawli_event events[] = {PAWLI_EVENT_RETRY, PAWLI_EVENT_SNOOZE,
                                              PAWLI_EVENT_RELEASE};
    for (size_t i = 0; i < 3; i++) {
        job = marked_job(0);
        assert_row(must(&job, by_holder(&job, events[i], 7)), &job, 7,
                   (struct expected_row){1, PAWL_FAILED_FINAL, PAWL_REASON_CANCELLED,
                                         PAWL_ENDED_BY_HOLDER});
        assert_int_equal(job.state, PAWL_FAILED);
        assert_true(job.retries == 0);
    }

    job = marked_job(0); /* a fatal failure keeps its own reason */
    assert_row(
        must(&job, by_holder(&job, PAWLI_EVENT_FAIL, 7)), &job, 7,
        (struct expected_row){1, PAWL_FAILED_FINAL, PAWL_REASON_FATAL, PAWL_ENDED_BY_HOLDER});

    job = marked_job(0);
    job.lost_leases = 9; /* cancelled goes before poison */
    assert_row(
        must(&job, by_others(PAWLI_EVENT_EXPIRE, LEASE_MS)), &job, LEASE_MS,
        (struct expected_row){1, PAWL_FAILED_FINAL, PAWL_REASON_CANCELLED, PAWL_ENDED_BY_EXPIRY});
    assert_true(job.lost_leases == 10);
}

/* ---------------------------------------------------------------- redrive, discard, deadline */

/* Q-DEAD-LETTER, Q-VERSION, RES-12: counters start again; version and row numbers go on. */
static void a_redriven_job_starts_again(void **state)
{
    (void)state;
    struct pawli_job job = failed_job();
    job.retries = 3;
    job.lost_leases = 9;
    job.lost_in_a_row = 2;
    job.start_by = at(3);
    struct pawli_job expected = job;
    assert_no_row(must(&job, by_others(PAWLI_EVENT_REDRIVE, 50)));
    expected.state = PAWL_READY;
    expected.retries = expected.lost_leases = expected.lost_in_a_row = 0;
    expected.due_at = at(50);
    expected.start_by = expected.finished_at = (pawl_wall){0};
    assert_memory_equal(&job, &expected, sizeof(job));
    assert_int_equal(job.reason, PAWL_REASON_FATAL); /* still that of the last row */

    struct pawli_change claim = claim_at(50);
    (void)must(&job, claim);
    assert_true(job.lease_version == 2);
    assert_true(must(&job, by_holder(&job, PAWLI_EVENT_SUCCEED, 51)).attempt_no == 2);
}

static void a_discarded_job_does_not_come_back(void **state)
{
    (void)state;
    struct pawli_job job = failed_job();
    struct pawli_job expected = job;
    assert_no_row(must(&job, by_others(PAWLI_EVENT_DISCARD, 50)));
    expected.is_discarded = true;
    assert_memory_equal(&job, &expected, sizeof(job));
    assert_no_row(must(&job, by_others(PAWLI_EVENT_DISCARD, 51)));
    assert_memory_equal(&job, &expected, sizeof(job));
    refused(&job, by_others(PAWLI_EVENT_REDRIVE, 52), PAWL_GONE);
}

static void a_job_that_did_not_start_in_time_fails(void **state)
{
    (void)state;
    struct pawli_job job = ready_job();
    refused(&job, by_others(PAWLI_EVENT_MISS, 500), PAWL_NOT_MISSED); /* it has no deadline */
    job.start_by = at(500);
    struct pawli_change change = by_others(PAWLI_EVENT_MISS, 500);
    change.now = just_before(at(500));
    refused(&job, change, PAWL_NOT_MISSED);
    struct pawli_ledger_row row = must(&job, by_others(PAWLI_EVENT_MISS, 500));
    assert_int_equal(job.state, PAWL_FAILED);
    assert_true(row.is_due && row.attempt_no == 1);
    assert_int_equal(row.outcome, PAWL_FAILED_FINAL);
    assert_int_equal(row.reason, PAWL_REASON_START_BY);
    assert_int_equal(row.ended_by, PAWL_ENDED_BY_DEADLINE);
    assert_true(row.lease_version == 0 && row.worker[0] == '\0' && row.started_at.us == 0);
    assert_true(row.finished_at.us == at(500).us && job.finished_at.us == at(500).us);
}

/* The deadline is met by the claim that led to an attempt. A release was no attempt. */
static void a_job_that_was_tried_has_met_its_deadline(void **state)
{
    (void)state;
    static const enum pawli_event events[] = {PAWLI_EVENT_RETRY, PAWLI_EVENT_SNOOZE,
                                              PAWLI_EVENT_EXPIRE};
    for (size_t i = 0; i < 3; i++) {
        struct pawli_job job = ready_job();
        job.start_by = at(500);
        (void)must(&job, claim_at(499));
        struct pawli_change change = by_holder(&job, events[i], 499 + LEASE_MS - 1);
        if (events[i] == PAWLI_EVENT_EXPIRE)
            change.now = at(499 + LEASE_MS);
        change.delay_ms = 0;
        (void)must(&job, change);
        refused(&job, by_others(PAWLI_EVENT_MISS, 2 * LEASE_MS), PAWL_NOT_MISSED);
        (void)must(&job, claim_at(2 * LEASE_MS));
    }
    struct pawli_job job = ready_job();
    job.start_by = at(500);
    (void)must(&job, claim_at(499));
    (void)must(&job, by_holder(&job, PAWLI_EVENT_RELEASE, 600));
    refused(&job, claim_at(601), PAWL_MISSED);
    (void)must(&job, by_others(PAWLI_EVENT_MISS, 601));
}

/* ---------------------------------------------------------------- rows */

static const struct {
    pawl_outcome outcome;
    pawl_reason reason;
    const char *actions; /* which repeated settles it answers: s, r, f, z (snooze) */
} replays[] = {
    {PAWL_DISPATCHED, PAWL_REASON_NONE, "s"},    {PAWL_RETRYABLE, PAWL_REASON_ERROR, "r"},
    {PAWL_RETRYABLE, PAWL_REASON_TIMEOUT, "r"},  {PAWL_RETRYABLE, PAWL_REASON_SNOOZE, "z"},
    {PAWL_RETRYABLE, PAWL_REASON_SHUTDOWN, "z"}, {PAWL_FAILED_FINAL, PAWL_REASON_EXHAUSTED, "r"},
    {PAWL_FAILED_FINAL, PAWL_REASON_FATAL, "f"}, {PAWL_FAILED_FINAL, PAWL_REASON_CANCELLED, "rfz"},
};

/* A repeated settle finds its own row; another action does not. */
static void a_repeated_settle_knows_its_row(void **state)
{
    (void)state;
    for (int outcome = 0; outcome < 4; outcome++) {
        for (int reason = 0; reason <= PAWL_REASON_START_BY; reason++) {
            const char *actions = "";
            for (size_t i = 0; i < sizeof(replays) / sizeof(replays[0]); i++)
                if ((int)replays[i].outcome == outcome && (int)replays[i].reason == reason)
                    actions = replays[i].actions;
            if (outcome == PAWL_DISPATCHED)
                actions = "s"; /* success has no reasons to tell apart */
            for (int ended_by = 0; ended_by < 4; ended_by++) {
                struct pawli_ledger_row row = {.is_due = true,
                                               .outcome = (pawl_outcome)outcome,
                                               .reason = (pawl_reason)reason,
                                               .ended_by = (pawl_ended_by)ended_by};
                for (int action = 0; action < 4; action++) {
                    bool is_replay = ended_by == PAWL_ENDED_BY_HOLDER &&
                                     strchr(actions, "srfz"[action]) != NULL;
                    assert_int_equal(pawli_job_is_replay((pawl_settle_action)action, &row),
                                     is_replay);
                }
            }
        }
    }
}

static void a_row_tells_the_state(void **state)
{
    (void)state;
    static const pawl_state states[] = {PAWL_SUCCEEDED, PAWL_READY, PAWL_FAILED, PAWL_READY};
    for (int outcome = 0; outcome < 4; outcome++)
        assert_int_equal(
            pawli_row_state(&(struct pawli_ledger_row){.outcome = (pawl_outcome)outcome}),
            states[outcome]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(success_ends_the_job),
        cmocka_unit_test(retries_are_counted_and_bounded),
        cmocka_unit_test(no_retries_means_one_attempt),
        cmocka_unit_test(a_retry_without_a_delay_backs_off),
        cmocka_unit_test(a_timeout_uses_a_retry),
        cmocka_unit_test(a_fatal_failure_ends_the_job),
        cmocka_unit_test(a_snooze_uses_no_retry),
        cmocka_unit_test(a_release_leaves_no_trace),
        cmocka_unit_test(a_released_job_is_due_even_where_the_clock_went_back),
        cmocka_unit_test(an_expired_lease_puts_the_job_back),
        cmocka_unit_test(further_losses_in_a_row_back_off),
        cmocka_unit_test(the_tenth_lost_lease_is_poison),
        cmocka_unit_test(a_ready_job_is_cancelled_at_once),
        cmocka_unit_test(a_running_job_is_marked),
        cmocka_unit_test(a_marked_job_ends_with_its_attempt),
        cmocka_unit_test(a_redriven_job_starts_again),
        cmocka_unit_test(a_discarded_job_does_not_come_back),
        cmocka_unit_test(a_job_that_did_not_start_in_time_fails),
        cmocka_unit_test(a_job_that_was_tried_has_met_its_deadline),
        cmocka_unit_test(a_repeated_settle_knows_its_row),
        cmocka_unit_test(a_row_tells_the_state),
    };
    return cmocka_run_group_tests_name("core_job_ends", tests, NULL, NULL);
}

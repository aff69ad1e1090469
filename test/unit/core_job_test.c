/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * core_job_test.c - proves core/job.c, first half: what each state says to each event, how a lease
 * is granted, checked and renewed, at the edges. The second half is core_job_ends_test.c.
 * Owns:  a second writing of the transition table.
 * Never: reads a clock: every instant is counted from a fixed one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/job_steps.h"

/* ---------------------------------------------------------------- the table */

#define OK   PAWL_OK
#define LSD  PAWL_LEASED
#define NLSD PAWL_NOT_LEASED
#define NF   PAWL_NOT_FAILED
#define NM   PAWL_NOT_MISSED
#define SUCC PAWL_ALREADY_SUCCEEDED
#define FAIL PAWL_ALREADY_FAILED

/* clang-format off */
static const pawl_code table[4][PAWLI_EVENTS] = {
    /* CLAIM  RENEW SUCCEED RETRY  FAIL SNOOZE RELEASE EXPIRE CANCEL REDRIVE DISCARD MISS */
    {  OK,    NLSD, NLSD,   NLSD,  NLSD, NLSD, NLSD,   NLSD,  OK,    NF,     NF,     OK   },
    {  LSD,   OK,   OK,     OK,    OK,   OK,   OK,     OK,    OK,    NF,     NF,     NM   },
    {  SUCC,  SUCC, SUCC,   SUCC,  SUCC, SUCC, SUCC,   SUCC,  SUCC,  SUCC,   SUCC,   SUCC },
    {  FAIL,  FAIL, FAIL,   FAIL,  FAIL, FAIL, FAIL,   FAIL,  FAIL,  OK,     OK,     FAIL },
};
/* clang-format on */

/* Q-ONE-STATE, Q-NEVER-AGAIN, Q-INVISIBLE, RES-9: each impossible change has its own refusal. */
static void every_state_answers_every_event(void **state)
{
    (void)state;
    struct pawli_job jobs[4] = {ready_job(), claimed_job(0), succeeded_job(), failed_job()};
    int refusals = 0;
    for (int s = PAWL_READY; s <= PAWL_FAILED; s++) {
        assert_int_equal(jobs[s].state, s);
        for (int e = PAWLI_EVENT_CLAIM; e < PAWLI_EVENTS; e++) {
            enum pawli_event event = (enum pawli_event)e;
            assert_int_equal(pawli_job_allows((pawl_state)s, event), table[s][e]);
            if (table[s][e] == PAWL_OK)
                continue;
            refusals++;
            /* With the right token, and long after the lease ended: the state alone refuses. */
            struct pawli_change change = by_holder(&jobs[s], event, 10 * LEASE_MS);
            change.timeout_ms = TIMEOUT_MS;
            refused(&jobs[s], change, table[s][e]);
        }
    }
    assert_int_equal(refusals, 9 + 4 + 12 + 10);
}

/* RES-7: a job has its place among those of its key while it is live. */
static void a_terminal_job_leaves_its_key_and_a_redriven_one_joins(void **state)
{
    (void)state;
    for (int before = PAWL_READY; before <= PAWL_FAILED; before++) {
        for (int after = PAWL_READY; after <= PAWL_FAILED; after++) {
            bool was_live = before == PAWL_READY || before == PAWL_IN_FLIGHT;
            bool is_live = after == PAWL_READY || after == PAWL_IN_FLIGHT;
            enum pawli_key_step step = was_live == is_live ? PAWLI_KEY_STAYS
                                       : is_live           ? PAWLI_KEY_JOINS
                                                           : PAWLI_KEY_LEAVES;
            assert_int_equal(pawli_job_key_step((pawl_state)before, (pawl_state)after), step);
        }
    }
}

/* A fence is of one lease: a renewal keeps it, whatever ends the lease takes it away. */
static void a_fence_goes_with_its_lease(void **state)
{
    (void)state;
    struct pawli_job job = ready_job();
    struct pawli_change change = claim_at(0);
    change.fence = 17;
    (void)must(&job, change);
    assert_true(job.fence == 17);
    change = by_holder(&job, PAWLI_EVENT_RENEW, 1);
    change.fence = 99;
    (void)must(&job, change);
    assert_true(job.fence == 17);
    (void)must(&job, by_holder(&job, PAWLI_EVENT_RELEASE, 2));
    assert_true(job.fence == 0);
    (void)must(&job, claim_at(3));
    assert_true(job.fence == 0); /* none was drawn for it */
}

static void settle_actions_have_their_events(void **state)
{
    (void)state;
    assert_int_equal(pawli_event_of(PAWL_SUCCEED), PAWLI_EVENT_SUCCEED);
    assert_int_equal(pawli_event_of(PAWL_RETRY), PAWLI_EVENT_RETRY);
    assert_int_equal(pawli_event_of(PAWL_FAIL), PAWLI_EVENT_FAIL);
    assert_int_equal(pawli_event_of(PAWL_SNOOZE), PAWLI_EVENT_SNOOZE);
}

/* ---------------------------------------------------------------- claim */

/* Q-CLAIM, Q-VERSION, Q-TIMEOUT, OL-FIELDS */
static void a_claim_grants_a_lease(void **state)
{
    (void)state;
    struct pawli_job job = ready_job();
    job.lease_version = 41;
    assert_no_row(must(&job, claim_at(5)));
    assert_int_equal(job.state, PAWL_IN_FLIGHT);
    assert_true(job.lease_version == 42);
    assert_memory_equal(&job.token, &usual_token, sizeof(usual_token));
    assert_string_equal(job.worker, "w1");
    assert_true(job.claimed_at.us == at(5).us);
    assert_true(job.expires_at.us == at(5 + LEASE_MS).us);
    assert_true(job.run_until.us == at(5 + TIMEOUT_MS).us);
    assert_true(job.unstarted_until.us == at(5 + TIMEOUT_MS + 2 * LEASE_MS).us && !job.is_started);
    assert_true(job.lease_ms == LEASE_MS && job.timeout_ms == TIMEOUT_MS);
    assert_true(job.attempts == 0 && job.retries == 0 && job.lost_leases == 0);
    assert_true(job.due_at.us == at(0).us);
}

static void the_longest_worker_name_is_kept_whole(void **state)
{
    (void)state;
    char worker[PAWL_NAME_MAX + 1] = "";
    memset(worker, 'w', PAWL_NAME_MAX);
    struct pawli_job job = ready_job();
    struct pawli_change change = claim_at(0);
    change.worker = worker;
    (void)must(&job, change); /* no row: seen above */
    assert_string_equal(job.worker, worker);
    change = by_holder(&job, PAWLI_EVENT_SUCCEED, 1);
    change.worker = worker;
    assert_string_equal(must(&job, change).worker, worker);
}

/* Q-RETRY-VISIBLE: claimable from its due time on, not before. */
static void a_job_is_claimable_from_its_due_time(void **state)
{
    (void)state;
    struct pawli_job job = ready_job();
    job.due_at = at(500);
    struct pawli_change change = claim_at(500);
    change.now = just_before(at(500));
    refused(&job, change, PAWL_NOT_DUE);
    (void)must(&job, claim_at(500));
}

static void a_job_is_claimable_before_its_start_by_deadline(void **state)
{
    (void)state;
    struct pawli_job job = ready_job();
    job.start_by = at(500);
    refused(&job, claim_at(500), PAWL_MISSED);
    refused(&job, claim_at(9000), PAWL_MISSED);
    struct pawli_change change = claim_at(500);
    change.now = just_before(at(500));
    (void)must(&job, change);

    struct pawli_job late = ready_job(); /* due after its deadline: it is not due first of all */
    late.start_by = at(500);
    late.due_at = at(900);
    refused(&late, claim_at(600), PAWL_NOT_DUE);
    refused(&late, claim_at(900), PAWL_MISSED);
}

/* RES-4: an expired lease is expired first, so that it leaves its row; a claim never skips that. */
static void an_expired_job_is_not_claimed_directly(void **state)
{
    (void)state;
    struct pawli_job job = claimed_job(0);
    refused(&job, claim_at(LEASE_MS - 1), PAWL_LEASED);
    refused(&job, claim_at(10 * LEASE_MS), PAWL_LEASED);
}

/* ---------------------------------------------------------------- the lease check */

static const enum pawli_event fenced_events[] = {PAWLI_EVENT_RENEW,  PAWLI_EVENT_SUCCEED,
                                                 PAWLI_EVENT_RETRY,  PAWLI_EVENT_FAIL,
                                                 PAWLI_EVENT_SNOOZE, PAWLI_EVENT_RELEASE};
#define FENCED_COUNT (sizeof(fenced_events) / sizeof(fenced_events[0]))

/* RES-3, Q-STALE, Q-ACK, Q-NACK, RULE-020-003, FR-002: token, worker and version, all of them. */
static void only_the_holder_may_renew_settle_and_release(void **state)
{
    (void)state;
    for (size_t i = 0; i < FENCED_COUNT; i++) {
        struct pawli_job job = claimed_job(0);
        struct pawli_change change = by_holder(&job, fenced_events[i], 1);
        change.delay_ms = 0;

        for (size_t byte = 0; byte < sizeof(usual_token.bytes); byte++) {
            for (int bit = 0; bit < 8; bit++) {
                struct pawli_change other = change;
                other.token.bytes[byte] ^= (uint8_t)(1 << bit);
                refused(&job, other, PAWL_STALE);
            }
        }
        static const char *const workers[] = {"w2", "w", "w11", "", "W1"};
        for (size_t w = 0; w < sizeof(workers) / sizeof(workers[0]); w++) {
            struct pawli_change other = change;
            other.worker = workers[w];
            refused(&job, other, PAWL_STALE);
        }
        struct pawli_change other = change;
        other.version = job.lease_version - 1;
        refused(&job, other, PAWL_STALE);
        other.version = job.lease_version + 1;
        refused(&job, other, PAWL_STALE);

        (void)must(&job, change); /* and the holder may */
    }
}

/* RES-3: valid while now < expiry; at expiry it is not, even where nobody has taken the job. */
static void a_lease_ends_at_its_expiry(void **state)
{
    (void)state;
    for (size_t i = 0; i < FENCED_COUNT; i++) {
        struct pawli_job job = claimed_job(0);
        struct pawli_change change = by_holder(&job, fenced_events[i], LEASE_MS);
        change.delay_ms = 0;
        assert_false(pawli_job_is_leased(&job, at(LEASE_MS)));
        refused(&job, change, PAWL_STALE);
        change.now = at(100 * LEASE_MS);
        refused(&job, change, PAWL_STALE);
        change.now = just_before(at(LEASE_MS));
        assert_true(pawli_job_is_leased(&job, change.now));
        (void)must(&job, change);
    }
    struct pawli_job ready = ready_job();
    assert_false(pawli_job_is_leased(&ready, at(0)));
}

/* Q-STALE: the holder before this one has a token, a name and a version, and none of them helps. */
static void the_holder_before_is_stale(void **state)
{
    (void)state;
    struct pawli_job job = claimed_job(0);
    struct pawli_change late = by_holder(&job, PAWLI_EVENT_SUCCEED, LEASE_MS + 2);
    (void)must(&job, by_others(PAWLI_EVENT_EXPIRE, LEASE_MS));
    struct pawli_change again = claim_at(LEASE_MS + 1);
    again.token.bytes[0] = 99;
    (void)must(&job, again); /* the same worker, a fresh token: RES-8 */
    refused(&job, late, PAWL_STALE);
    late.version = job.lease_version;
    refused(&job, late, PAWL_STALE);
    late.token = again.token;
    late.version = job.lease_version - 1;
    refused(&job, late, PAWL_STALE);
}

/* ---------------------------------------------------------------- renew */

/* Q-EXTEND, RES-1: the later of what it is and now + lease. */
static void a_renewal_never_shortens(void **state)
{
    (void)state;
    struct pawli_job job = claimed_job(0);
    struct pawli_change change = by_holder(&job, PAWLI_EVENT_RENEW, 10000);
    assert_no_row(must(&job, change));
    assert_true(job.expires_at.us == at(10000 + LEASE_MS).us);
    assert_true(job.lease_version == 1);
    assert_true(job.claimed_at.us == at(0).us);
    assert_true(job.run_until.us == at(TIMEOUT_MS).us); /* it moves the lease, not the timeout */
    assert_int_equal(job.state, PAWL_IN_FLIGHT);

    change.lease_ms = 5000; /* the queue's lease has become shorter */
    change.now = at(10001);
    assert_no_row(must(&job, change));
    assert_true(job.expires_at.us == at(10000 + LEASE_MS).us);
    assert_true(job.lease_ms == 5000);
    change.now = at(10000 + LEASE_MS - 5000);
    assert_no_row(must(&job, change));
    assert_true(job.expires_at.us == at(10000 + LEASE_MS).us); /* equal: not moved */
    change.now = at(10001 + LEASE_MS - 5000);
    assert_no_row(must(&job, change));
    assert_true(job.expires_at.us == at(10001 + LEASE_MS).us);
}

/* RES-6, RULE-020-051: renewals are refused from the execution timeout on. */
static void a_renewal_is_refused_past_the_execution_timeout(void **state)
{
    (void)state;
    struct pawli_job job = ready_job();
    struct pawli_change claim = claim_at(0);
    claim.timeout_ms = 20000; /* below the lease: the user's choice */
    (void)must(&job, claim);
    struct pawli_change change = by_holder(&job, PAWLI_EVENT_RENEW, 20000);
    refused(&job, change, PAWL_TIMEOUT);
    change.now = just_before(at(20000));
    (void)must(&job, change);
    assert_true(job.expires_at.us == just_before(at(20000 + LEASE_MS)).us);
    refused(&job, by_holder(&job, PAWLI_EVENT_RENEW, 25000), PAWL_TIMEOUT);
    refused(&job, by_holder(&job, PAWLI_EVENT_RENEW, 20000 + LEASE_MS), PAWL_STALE);
    (void)must(&job, by_holder(&job, PAWLI_EVENT_SUCCEED, 25000)); /* but it may still settle */
}

/* The execution timeout counts from the start: what waits in a buffer has not begun. */
static void an_unstarted_job_has_all_its_time(void **state)
{
    (void)state;
    struct pawli_job job = ready_job();
    struct pawli_change claim = claim_at(0);
    claim.timeout_ms = 20000;
    (void)must(&job, claim);
    struct pawli_change change = by_holder(&job, PAWLI_EVENT_RENEW, 25000);
    change.is_unstarted = true;
    (void)must(&job, change);
    assert_true(job.run_until.us == at(45000).us);
    change = by_holder(&job, PAWLI_EVENT_RENEW, 44999);
    (void)must(&job, change);
    assert_true(job.run_until.us == at(45000).us);
    change.now = at(45000);
    refused(&job, change, PAWL_TIMEOUT);
}

/* RES-6, RULE-020-051: what has started does not become unstarted by saying so. */
static void a_started_job_cannot_gain_time(void **state)
{
    (void)state;
    struct pawli_job job = ready_job();
    struct pawli_change claim = claim_at(0);
    claim.timeout_ms = 20000;
    (void)must(&job, claim);
    (void)must(&job, by_holder(&job, PAWLI_EVENT_RENEW, 10000));
    assert_true(job.is_started);
    struct pawli_change change = by_holder(&job, PAWLI_EVENT_RENEW, 15000);
    change.is_unstarted = true;
    (void)must(&job, change); /* it extends the lease, but moves no timeout */
    assert_true(job.run_until.us == at(20000).us && job.is_started);
    assert_true(job.expires_at.us == at(15000 + LEASE_MS).us);
    change.now = at(20000);
    refused(&job, change, PAWL_TIMEOUT);
    change.is_unstarted = false;
    refused(&job, change, PAWL_TIMEOUT);
    change.is_unstarted = true;
    refused(&job, change, PAWL_TIMEOUT);
}

/* RES-6: a job may wait for its timeout and two leases, as they were at the claim. */
static void a_job_cannot_stay_unstarted(void **state)
{
    (void)state;
    const int64_t most_ms = TIMEOUT_MS + 2 * LEASE_MS;
    struct pawli_job job = claimed_job(0);
    struct pawli_change change = by_holder(&job, PAWLI_EVENT_RENEW, LEASE_MS - 1);
    change.is_unstarted = true;
    change.lease_ms = 2 * most_ms; /* a longer lease buys no more of it */
    (void)must(&job, change);
    change.now = just_before(at(most_ms));
    (void)must(&job, change);
    assert_false(job.is_started);
    change.now = at(most_ms);
    refused(&job, change, PAWL_TIMEOUT);
    change.is_unstarted = false; /* begun meanwhile, and within its timeout */
    (void)must(&job, change);
}

/* RES-13: renew answers CANCELLED, whatever else is true, and does not extend. */
static void a_renewal_of_a_marked_job_is_refused(void **state)
{
    (void)state;
    struct pawli_job job = marked_job(0);
    struct pawli_change change = by_holder(&job, PAWLI_EVENT_RENEW, 1);
    refused(&job, change, PAWL_CANCELLED);
    change.is_unstarted = true;
    refused(&job, change, PAWL_CANCELLED);
    job.run_until = at(0); /* past its timeout as well */
    change.is_unstarted = false;
    refused(&job, change, PAWL_CANCELLED);
    change.token.bytes[0] ^= 1; /* but only its holder learns of it */
    refused(&job, change, PAWL_STALE);
}

/* ---------------------------------------------------------------- names */

static void numbers_have_names(void **state)
{
    (void)state;
    static const char *const states[] = {"Ready", "InFlight", "Succeeded", "Failed"};
    static const char *const outcomes[] = {"DISPATCHED", "RETRYABLE", "FAILED", "ZOMBIE_REQUEUE"};
    static const char *const enders[] = {"holder", "expiry", "operator", "deadline"};
    static const char *const reasons[] = {"none",    "error",     "exhausted", "fatal",
                                          "timeout", "snooze",    "shutdown",  "expired",
                                          "poison",  "cancelled", "start_by"};
    for (int i = 0; i < 4; i++) {
        assert_string_equal(pawl_state_name((pawl_state)i), states[i]);
        assert_string_equal(pawl_outcome_name((pawl_outcome)i), outcomes[i]);
        assert_string_equal(pawl_ended_by_name((pawl_ended_by)i), enders[i]);
    }
    for (int i = 0; i < 11; i++)
        assert_string_equal(pawl_reason_name((pawl_reason)i), reasons[i]);
    static const int none[] = {-1, 11, 4711};
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(pawl_state_name((pawl_state)none[i]), "?");
        assert_string_equal(pawl_outcome_name((pawl_outcome)none[i]), "?");
        assert_string_equal(pawl_reason_name((pawl_reason)none[i]), "?");
        assert_string_equal(pawl_ended_by_name((pawl_ended_by)none[i]), "?");
    }
    assert_string_equal(pawl_state_name((pawl_state)4), "?");
    assert_string_equal(pawl_outcome_name((pawl_outcome)4), "?");
    assert_string_equal(pawl_ended_by_name((pawl_ended_by)4), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_state_answers_every_event),
        cmocka_unit_test(a_terminal_job_leaves_its_key_and_a_redriven_one_joins),
        cmocka_unit_test(a_fence_goes_with_its_lease),
        cmocka_unit_test(settle_actions_have_their_events),
        cmocka_unit_test(a_claim_grants_a_lease),
        cmocka_unit_test(the_longest_worker_name_is_kept_whole),
        cmocka_unit_test(a_job_is_claimable_from_its_due_time),
        cmocka_unit_test(a_job_is_claimable_before_its_start_by_deadline),
        cmocka_unit_test(an_expired_job_is_not_claimed_directly),
        cmocka_unit_test(only_the_holder_may_renew_settle_and_release),
        cmocka_unit_test(a_lease_ends_at_its_expiry),
        cmocka_unit_test(the_holder_before_is_stale),
        cmocka_unit_test(a_renewal_never_shortens),
        cmocka_unit_test(a_renewal_is_refused_past_the_execution_timeout),
        cmocka_unit_test(an_unstarted_job_has_all_its_time),
        cmocka_unit_test(a_started_job_cannot_gain_time),
        cmocka_unit_test(a_job_cannot_stay_unstarted),
        cmocka_unit_test(a_renewal_of_a_marked_job_is_refused),
        cmocka_unit_test(numbers_have_names),
    };
    return cmocka_run_group_tests_name("core_job", tests, NULL, NULL);
}

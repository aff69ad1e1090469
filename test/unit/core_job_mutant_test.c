/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * core_job_mutant_test.c - proves that each mutant of core/job.c is the bug that mutant.h says it
 * is, and that none is there while it is not switched on.
 * Owns:  the mutant switch, for the length of a test.
 * Never: proves that the simulator catches them; the simulator does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/mutant.h"
#include "support/job_steps.h"

#ifndef PAWL_TEST_POINTS
#error "this test needs the library with the test points compiled in"
#endif

static int switch_off(void **state)
{
    (void)state;
    pawli_testpoints.mutant = PAWLI_MUTANT_NONE;
    return 0;
}

/* Try a change on a copy, with the mutant on or off, and give the code and the changed copy. */
static pawl_code try_change(enum pawli_mutant mutant, const struct pawli_job *job,
                            struct pawli_change change, struct pawli_job *ret_job)
{
    uint64_t number = 77;
    pawl_random random = always(&number);
    struct pawli_ledger_row row;
    *ret_job = *job;
    pawli_testpoints.mutant = (int)mutant;
    pawl_code rc = pawli_job_change(ret_job, &usual_rules, &change, &random, &row);
    pawli_testpoints.mutant = PAWLI_MUTANT_NONE;
    return rc;
}

/* A change that is stale, and that only these mutants accept. */
static void assert_accepted_by(const struct pawli_job *job, struct pawli_change change,
                               uint64_t mutants)
{
    for (int mutant = 0; mutant < PAWLI_MUTANTS; mutant++) {
        struct pawli_job changed;
        bool is_accepted = (mutants >> mutant & 1) != 0;
        assert_int_equal(try_change((enum pawli_mutant)mutant, job, change, &changed),
                         is_accepted ? PAWL_OK : PAWL_STALE);
    }
}

#define BIT(name) (UINT64_C(1) << PAWLI_MUTANT_##name)

static void unchecked_leases(void **state)
{
    (void)state;
    static const enum pawli_event events[] = {PAWLI_EVENT_RENEW, PAWLI_EVENT_SUCCEED,
                                              PAWLI_EVENT_RELEASE};
    struct pawli_job job = claimed_job(0);
    for (size_t i = 0; i < 3; i++) {
        uint64_t release = events[i] == PAWLI_EVENT_RELEASE ? BIT(RELEASE_STALE) : 0;
        struct pawli_change change = by_holder(&job, events[i], 1);
        change.token.bytes[3] ^= 1;
        assert_accepted_by(&job, change, BIT(TOKEN_UNCHECKED) | release);
        change = by_holder(&job, events[i], 1);
        change.version--;
        assert_accepted_by(&job, change, BIT(TOKEN_UNCHECKED) | BIT(TOKEN_PER_WORKER) | release);
        change = by_holder(&job, events[i], 1);
        change.worker = "w2";
        assert_accepted_by(&job, change, release);
        change = by_holder(&job, events[i], LEASE_MS);
        assert_accepted_by(&job, change, BIT(WORKER_UNCHECKED_EXPIRY) | release);
    }
}

static void miscounted_losses(void **state)
{
    (void)state;
    struct pawli_job job = claimed_job(0);
    struct pawli_job changed;
    struct pawli_change change = by_others(PAWLI_EVENT_EXPIRE, LEASE_MS);
    assert_int_equal(try_change(PAWLI_MUTANT_LOST_NOT_COUNTED, &job, change, &changed), PAWL_OK);
    assert_true(changed.state == PAWL_READY && changed.lost_leases == 0 && changed.attempts == 1);
    assert_int_equal(try_change(PAWLI_MUTANT_EXPIRY_NO_ROW, &job, change, &changed), PAWL_OK);
    assert_true(changed.state == PAWL_READY && changed.lost_leases == 1 && changed.attempts == 0);

    change = by_holder(&job, PAWLI_EVENT_RELEASE, 1);
    assert_int_equal(try_change(PAWLI_MUTANT_RELEASE_COUNTS_LOST, &job, change, &changed), PAWL_OK);
    assert_true(changed.state == PAWL_READY && changed.lost_leases == 1);
    assert_int_equal(try_change(PAWLI_MUTANT_NONE, &job, change, &changed), PAWL_OK);
    assert_true(changed.lost_leases == 0);
}

static void careless_retries(void **state)
{
    (void)state;
    struct pawli_job job = claimed_job(0);
    struct pawli_job changed;
    struct pawli_change change = by_holder(&job, PAWLI_EVENT_RETRY, 1);
    assert_int_equal(try_change(PAWLI_MUTANT_NONE, &job, change, &changed), PAWL_OK);
    assert_true(changed.due_at.us == at(78).us);
    assert_int_equal(try_change(PAWLI_MUTANT_RETRY_NO_DELAY, &job, change, &changed), PAWL_OK);
    assert_true(changed.due_at.us == at(1).us && changed.retries == 1);
    job.retries = 3;
    assert_int_equal(try_change(PAWLI_MUTANT_RETRY_UNBOUNDED, &job, change, &changed), PAWL_OK);
    assert_true(changed.state == PAWL_READY && changed.retries == 4);
}

static void wrong_leases(void **state)
{
    (void)state;
    struct pawli_job job = ready_job();
    struct pawli_job changed;
    assert_int_equal(try_change(PAWLI_MUTANT_VERSION_STANDS, &job, claim_at(0), &changed), PAWL_OK);
    assert_true(changed.state == PAWL_IN_FLIGHT && changed.lease_version == 0);
    job = claimed_job(0);
    struct pawli_change change = by_holder(&job, PAWLI_EVENT_RENEW, 1);
    assert_int_equal(try_change(PAWLI_MUTANT_RENEW_SHORTENS, &job, change, &changed), PAWL_OK);
    assert_true(changed.expires_at.us == at(1 + LEASE_MS / 2).us);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(unchecked_leases, switch_off),
        cmocka_unit_test_teardown(miscounted_losses, switch_off),
        cmocka_unit_test_teardown(careless_retries, switch_off),
        cmocka_unit_test_teardown(wrong_leases, switch_off),
    };
    return cmocka_run_group_tests_name("core_job_mutant", tests, NULL, NULL);
}

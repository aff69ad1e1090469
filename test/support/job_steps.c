/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * job_steps.c - jobs in every state and changes of them, for the tests of core/job.c.
 * Owns:  the usual lease, rules and token of these tests.
 * Never: reaches a state but through pawli_job_change().
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/job_steps.h"

#define T0 INT64_C(1750000000000000)

pawl_wall at(int64_t ms)
{
    return (pawl_wall){T0 + ms * 1000};
}

pawl_wall just_before(pawl_wall instant)
{
    return (pawl_wall){instant.us - 1};
}

static uint64_t forbidden_next(void *user)
{
    (void)user;
    fail_msg("%s", "a random number was drawn where no backoff is computed");
    return 0;
}

const pawl_random no_draw = {.next = forbidden_next, .user = NULL};

static uint64_t always_next(void *user)
{
    const uint64_t *number = user;
    return *number;
}

pawl_random always(uint64_t *number)
{
    return (pawl_random){.next = always_next, .user = number};
}

const struct pawli_job_rules usual_rules = {
    .max_retries = 3, .max_lost_leases = 10, .backoff_base_ms = 500, .backoff_max_ms = 30000};

const pawl_token usual_token = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}};

struct pawli_job ready_job(void)
{
    struct pawli_job job;
    memset(&job, 0, sizeof(job));
    job.due_at = at(0);
    return job;
}

struct pawli_change claim_at(int64_t ms)
{
    return (struct pawli_change){.event = PAWLI_EVENT_CLAIM,
                                 .now = at(ms),
                                 .worker = "w1",
                                 .token = usual_token,
                                 .lease_ms = LEASE_MS,
                                 .timeout_ms = TIMEOUT_MS};
}

struct pawli_change by_holder(const struct pawli_job *job, enum pawli_event event, int64_t ms)
{
    return (struct pawli_change){.event = event,
                                 .now = at(ms),
                                 .worker = "w1",
                                 .token = usual_token,
                                 .version = job->lease_version,
                                 .lease_ms = LEASE_MS,
                                 .delay_ms = event == PAWLI_EVENT_SNOOZE ? 7000 : PAWL_DEFAULT};
}

struct pawli_change by_others(enum pawli_event event, int64_t ms)
{
    return (struct pawli_change){.event = event, .now = at(ms)};
}

struct pawli_ledger_row must_draw(struct pawli_job *job, struct pawli_change change,
                                  const pawl_random *random)
{
    struct pawli_ledger_row row;
    memset(&row, 0xa5, sizeof(row));
    assert_int_equal(pawli_job_change(job, &usual_rules, &change, random, &row), PAWL_OK);
    return row;
}

struct pawli_ledger_row must(struct pawli_job *job, struct pawli_change change)
{
    return must_draw(job, change, &no_draw);
}

void refused(struct pawli_job *job, struct pawli_change change, pawl_code code)
{
    struct pawli_job before;
    struct pawli_ledger_row row, row_before;
    memcpy(&before, job, sizeof(before));
    memset(&row, 0xa5, sizeof(row));
    memcpy(&row_before, &row, sizeof(row));
    assert_int_equal(pawli_job_change(job, &usual_rules, &change, &no_draw, &row), code);
    assert_memory_equal(job, &before, sizeof(before));
    assert_memory_equal(&row, &row_before, sizeof(row));
}

void assert_no_row(struct pawli_ledger_row row)
{
    assert_false(row.is_due);
    assert_true(row.attempt_no == 0 && row.lease_version == 0 && row.worker[0] == '\0');
}

struct pawli_job claimed_job(int64_t ms)
{
    struct pawli_job job = ready_job();
    assert_no_row(must(&job, claim_at(ms)));
    return job;
}

struct pawli_job marked_job(int64_t ms)
{
    struct pawli_job job = claimed_job(ms);
    assert_no_row(must(&job, by_others(PAWLI_EVENT_CANCEL, ms)));
    return job;
}

struct pawli_job succeeded_job(void)
{
    struct pawli_job job = claimed_job(0);
    (void)must(&job, by_holder(&job, PAWLI_EVENT_SUCCEED, 1)); /* the row is seen elsewhere */
    return job;
}

struct pawli_job failed_job(void)
{
    struct pawli_job job = claimed_job(0);
    (void)must(&job, by_holder(&job, PAWLI_EVENT_FAIL, 1)); /* likewise */
    return job;
}

void assert_no_lease(const struct pawli_job *job)
{
    static const pawl_token none;
    static const char empty[sizeof(job->worker)];
    assert_int_not_equal(job->state, PAWL_IN_FLIGHT);
    assert_memory_equal(&job->token, &none, sizeof(none));
    assert_memory_equal(job->worker, empty, sizeof(empty));
    assert_true(job->claimed_at.us == 0 && job->expires_at.us == 0 && job->run_until.us == 0);
    assert_true(job->unstarted_until.us == 0 && !job->is_started);
    assert_true(job->lease_ms == 0 && job->timeout_ms == 0 && job->fence == 0);
    assert_false(job->is_cancel_asked);
}

void assert_row(struct pawli_ledger_row row, const struct pawli_job *job, int64_t ms,
                struct expected_row expected)
{
    assert_true(row.is_due);
    assert_true(row.attempt_no == expected.attempt_no);
    assert_true(job->attempts == expected.attempt_no);
    assert_int_equal(row.outcome, expected.outcome);
    assert_int_equal(row.reason, expected.reason);
    assert_int_equal(job->reason, expected.reason);
    assert_int_equal(row.ended_by, expected.ended_by);
    assert_true(row.lease_version == job->lease_version);
    assert_string_equal(row.worker, "w1");
    assert_true(row.started_at.us == at(0).us);
    assert_true(row.finished_at.us == at(ms).us);
    assert_int_equal(pawli_row_state(&row), job->state);
    assert_no_lease(job);
    bool is_terminal = job->state == PAWL_SUCCEEDED || job->state == PAWL_FAILED;
    assert_true(job->finished_at.us == (is_terminal ? at(ms).us : 0));
}

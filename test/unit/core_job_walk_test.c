/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * core_job_walk_test.c - proves what core/job.c promises of every record, whatever happened to it:
 * seeded walks of random events by right and wrong callers at random times.
 * Owns:  its own count of claims, rows, retries and lost leases, to compare with the record's.
 * Never: knows why a change was refused; core_job_test.c does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/random.h"
#include "support/job_steps.h"

#define WALKS 2000
#define STEPS 120 /* of the longest walk */

/* What the walk has seen, to be compared with what the record says. */
struct walk {
    pawl_random random;
    struct pawli_job job;
    struct pawli_job_rules rules;
    pawl_wall now;
    pawl_token given; /* by the last claim */
    int64_t claims, rows, retries, lost;
};

static int64_t draw(struct walk *walk, int64_t bound)
{
    return (int64_t)pawli_random_below(&walk->random, (uint64_t)bound);
}

/* Mostly the holder, sometimes with one thing wrong. */
static struct pawli_change draw_change(struct walk *walk)
{
    static const char *const workers[] = {"w1", "w1", "w1", "w1", "w1", "w1", "w1", "w2"};
    struct pawli_change change = {
        .event = (enum pawli_event)draw(walk, PAWLI_EVENTS),
        .now = walk->now,
        .worker = workers[draw(walk, 8)],
        .token = walk->given,
        .version = walk->job.lease_version - (draw(walk, 8) == 0),
        .lease_ms = 100 + draw(walk, 30000),
        .timeout_ms = 1 + draw(walk, 90000),
        .is_unstarted = draw(walk, 4) == 0,
        .delay_ms = draw(walk, 10000),
    };
    if (draw(walk, 8) == 0)
        change.token.bytes[draw(walk, 16)] ^= 1;
    if (change.event == PAWLI_EVENT_CLAIM)
        pawli_random_fill(&walk->random, change.token.bytes, sizeof(change.token.bytes));
    if (change.event == PAWLI_EVENT_RETRY && draw(walk, 2) == 0)
        change.delay_ms = PAWL_DEFAULT;
    if (change.event == PAWLI_EVENT_RETRY && draw(walk, 2) == 0)
        change.reason = PAWL_REASON_TIMEOUT;
    return change;
}

static bool is_terminal(pawl_state state)
{
    return state == PAWL_SUCCEEDED || state == PAWL_FAILED;
}

static bool is_fenced(enum pawli_event event)
{
    return event >= PAWLI_EVENT_RENEW && event <= PAWLI_EVENT_RELEASE;
}

/* Promises about one accepted change. */
static void look_at_change(struct walk *walk, const struct pawli_job *before,
                           const struct pawli_change *change, const struct pawli_ledger_row *row)
{
    const struct pawli_job *job = &walk->job;
    assert_int_not_equal(before->state, PAWL_SUCCEEDED); /* Q-NEVER-AGAIN */
    if (is_fenced(change->event)) {                      /* RES-3 */
        assert_true(change->now.us < before->expires_at.us);
        assert_string_equal(change->worker, before->worker);
        assert_true(change->version == before->lease_version);
        assert_memory_equal(&change->token, &before->token, sizeof(change->token));
    }
    if (change->event == PAWLI_EVENT_EXPIRE)
        assert_true(change->now.us >= before->expires_at.us);
    if (change->event == PAWLI_EVENT_RENEW)
        assert_true(job->expires_at.us >= before->expires_at.us); /* Q-EXTEND */

    /* RES-12: one row for leaving InFlight, except by release, and one for becoming terminal. */
    bool is_left = before->state == PAWL_IN_FLIGHT && job->state != PAWL_IN_FLIGHT;
    bool is_ended = is_terminal(job->state) && !is_terminal(before->state);
    bool is_release = change->event == PAWLI_EVENT_RELEASE;
    assert_int_equal(row->is_due, (is_left && !is_release) || is_ended);
    if (row->is_due) {
        assert_true(row->attempt_no == walk->rows + 1);
        assert_int_equal(pawli_row_state(row), job->state);
        assert_true(row->lease_version == (is_left ? before->lease_version : 0));
    }
}

/* Promises about every record. */
static void look_at_job(const struct walk *walk)
{
    const struct pawli_job *job = &walk->job;
    assert_in_range(job->state, PAWL_READY, PAWL_FAILED); /* Q-ONE-STATE */
    assert_true(job->lease_version == walk->claims);      /* Q-VERSION */
    assert_true(job->attempts == walk->rows);             /* OL-APPEND-ONLY */
    assert_true(job->retries == walk->retries);           /* RES-5: only a nack uses a retry */
    assert_true(job->lost_leases == walk->lost);
    assert_true(job->retries <= walk->rules.max_retries); /* Q-RETRY-BOUND */
    assert_true(job->lost_leases <= walk->rules.max_lost_leases);
    assert_true(job->lost_in_a_row <= job->lost_leases);
    if (job->state == PAWL_IN_FLIGHT)
        assert_memory_equal(&job->token, &walk->given, sizeof(job->token));
    else
        assert_no_lease(job);
    assert_int_equal(job->finished_at.us != 0, is_terminal(job->state));
}

static void step(struct walk *walk)
{
    static const int64_t pauses_ms[] = {0, 1, 50, 1000, 20000, 60000};
    walk->now = pawli_wall_add_ms(walk->now, pauses_ms[draw(walk, 6)]);
    struct pawli_change change = draw_change(walk);
    struct pawli_job before;
    memcpy(&before, &walk->job, sizeof(before));
    struct pawli_ledger_row row;
    pawl_code rc = pawli_job_change(&walk->job, &walk->rules, &change, &walk->random, &row);
    if (rc != PAWL_OK) {
        assert_memory_equal(&walk->job, &before, sizeof(before));
        return;
    }
    look_at_change(walk, &before, &change, &row);
    if (change.event == PAWLI_EVENT_CLAIM) {
        walk->claims++;
        walk->given = change.token;
    }
    walk->rows += row.is_due;
    walk->lost += change.event == PAWLI_EVENT_EXPIRE;
    walk->retries += row.is_due && row.outcome == PAWL_RETRYABLE &&
                     (row.reason == PAWL_REASON_ERROR || row.reason == PAWL_REASON_TIMEOUT);
    if (change.event == PAWLI_EVENT_REDRIVE)
        walk->retries = walk->lost = 0;
    look_at_job(walk);
}

/* RES-3, RES-5, RES-12, Q-ONE-STATE, Q-VERSION, Q-RETRY-BOUND, Q-EXTEND */
static void the_promises_hold_on_every_walk(void **state)
{
    (void)state;
    struct pawli_seeded seeded = {4711};
    uint64_t ends[4] = {0};
    for (int i = 0; i < WALKS; i++) {
        struct walk walk = {.random = pawli_seeded_as_random(&seeded),
                            .job = ready_job(),
                            .rules = {.max_retries = i % 4,
                                      .max_lost_leases = 1 + i % 3,
                                      .backoff_base_ms = 500,
                                      .backoff_max_ms = 30000},
                            .now = at(0)};
        if (i % 5 == 0)
            walk.job.start_by = at(1000);
        for (int s = 0; s <= i % STEPS; s++) /* some end early: not all in a terminal state */
            step(&walk);
        ends[walk.job.state]++;
    }
    for (size_t i = 0; i < 4; i++) /* walks that all end alike would prove little */
        assert_true(ends[i] > WALKS / 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_promises_hold_on_every_walk),
    };
    return cmocka_run_group_tests_name("core_job_walk", tests, NULL, NULL);
}

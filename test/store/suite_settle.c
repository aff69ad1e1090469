/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * suite_settle.c - ending attempts.
 * Owns:  the cases about success, retries, final failure and snoozes, and the delays between.
 * Never: checks who may settle (suite_fence.c) or repeats a settle (suite_replay.c).
 */
#include "store/helpers.h"

#include <string.h>

static void expect_no_lease(struct stage *s, pawl_id id)
{
    const pawl_job *job = look(s, id);
    assert_string_equal(job->worker, "");
    expect_number(job->claimed_at.us, 0);
    expect_number(job->expires_at.us, 0);
    expect_number(job->run_until.us, 0);
}

/* Q-ACK, OL-ATOMIC, RES-12 */
static void success_ends_the_job(struct stage *s)
{
    pawl_id id = put(s, "mail");
    const pawl_job *job = take(s, "mail", "w1");
    age(s, 10 * SECOND);
    pawl_settled settled = succeed(s, job);
    expect_code(settled.code, PAWL_OK);
    expect_number(settled.state, PAWL_SUCCEEDED);
    expect_number(settled.attempt_no, 1);
    expect_number(settled.due_at.us, 0);

    const pawl_job *seen = look(s, id);
    expect_number(seen->state, PAWL_SUCCEEDED);
    expect_near(s, seen->finished_at, 0);
    expect_number(seen->retries, 0);
    expect_no_lease(s, id);
    expect_ledger(s, id, "DISPATCHED");

    size_t count = 0;
    const pawl_attempt *row = ledger(s, id, &count);
    expect_number(row->ended_by, PAWL_ENDED_BY_HOLDER);
    expect_number(row->lease_version, job->lease_version);
    assert_string_equal(row->worker, "w1");
    expect_near(s, row->started_at, -10 * SECOND);
    expect_near(s, row->finished_at, 0);
}

/* Q-NACK, OL-ATOMIC, Q-RETRY-VISIBLE */
static void a_retry_waits_for_its_time(struct stage *s)
{
    pawl_id id = put(s, "mail");
    pawl_settled settled = retry_in(s, take(s, "mail", "w1"), 20 * SECOND);
    expect_code(settled.code, PAWL_OK);
    expect_number(settled.state, PAWL_READY);
    expect_near(s, settled.due_at, 20 * SECOND);
    expect_number(settled.attempt_no, 1);

    const pawl_job *seen = look(s, id);
    expect_number(seen->state, PAWL_READY);
    expect_number(seen->retries, 1);
    expect_number(seen->lost_leases, 0);
    expect_number(seen->due_at.us, settled.due_at.us);
    expect_number(seen->finished_at.us, 0);
    expect_no_lease(s, id);
    expect_ledger(s, id, "RETRYABLE error");

    age(s, 18 * SECOND);
    expect_nothing(s, "mail");
    age(s, 3 * SECOND);
    const pawl_job *job = take(s, "mail", "w2");
    expect_id(job->id, id);
    expect_number(job->retries, 1);
}

/* Q-RETRY-VISIBLE */
static void a_retry_is_due_to_the_millisecond(struct stage *s)
{
    put(s, "mail");
    expect_code(retry_in(s, take(s, "mail", "w1"), 20 * SECOND).code, PAWL_OK);
    age(s, 20 * SECOND - 1);
    expect_nothing(s, "mail");
    age(s, 1);
    expect_number(take(s, "mail", "w1")->retries, 1);
}

static void a_retry_without_delay_is_due_at_once(struct stage *s)
{
    pawl_id id = put(s, "mail");
    expect_code(retry_in(s, take(s, "mail", "w1"), 0).code, PAWL_OK);
    expect_id(take(s, "mail", "w1")->id, id);
}

/* ---------------------------------------------------------------- computed delays */

struct delays {
    int64_t least_ms;
    int64_t most_ms;
};

/* Retry each of `count` jobs with a computed delay; all must be of one number of retries. */
static struct delays retry_all(struct stage *s, const char *queue, size_t count)
{
    struct delays delays = {INT64_MAX, INT64_MIN};
    struct batch batch = take_up_to(s, queue, "w1", (int64_t)count);
    expect_number(batch.count, (int64_t)count);
    for (size_t i = 0; i < count; i++) {
        int64_t before_us = now(s).us;
        pawl_settled settled = retry_in(s, batch.jobs[i], PAWL_DEFAULT);
        expect_code(settled.code, PAWL_OK);
        expect_number(settled.state, PAWL_READY);
        int64_t delay_ms = (settled.due_at.us - before_us) / 1000;
        if (delay_ms < delays.least_ms)
            delays.least_ms = delay_ms;
        if (delay_ms > delays.most_ms)
            delays.most_ms = delay_ms;
    }
    return delays;
}

#define DRAWS 40

static void put_draws(struct stage *s, const char *queue)
{
    for (int i = 0; i < DRAWS; i++)
        put(s, queue);
}

/*
 * Every delay lies in [0, ceiling], and forty of them show both halves of it: a source that draws
 * evenly fails this once in 2^39 runs.
 */
static void expect_spread(struct stage *s, struct delays delays, int64_t ceiling_ms)
{
    expect_true(delays.least_ms >= 0);
    expect_true(delays.most_ms <= ceiling_ms + s->kind->slack_ms);
    expect_true(delays.least_ms <= ceiling_ms / 2);
    expect_true(delays.most_ms > ceiling_ms / 2);
}

/* Q-BACKOFF: min(base x 2^retries, max), full jitter, retries counted before this one */
static void computed_delays_grow_to_their_maximum(struct stage *s)
{
    pawl_queue_settings settings = settings_of(s, "mail");
    settings.backoff_base_ms = 10 * SECOND;
    settings.backoff_max_ms = 25 * SECOND;
    settings.max_retries = 5;
    set_settings(s, "mail", &settings);
    put_draws(s, "mail");
    const int64_t ceilings[] = {10 * SECOND, 20 * SECOND, 25 * SECOND, 25 * SECOND};
    for (size_t i = 0; i < COUNT_OF(ceilings); i++) {
        struct delays delays = retry_all(s, "mail", DRAWS);
        expect_spread(s, delays, ceilings[i]);
        age(s, 30 * SECOND);
    }
}

/* Q-BACKOFF: base 500 ms */
static void the_first_default_delay_is_half_a_second_at_most(struct stage *s)
{
    put_draws(s, "mail");
    expect_spread(s, retry_all(s, "mail", DRAWS), 500);
}

/* Q-BACKOFF: per job */
static void a_job_may_have_its_own_backoff(struct stage *s)
{
    /* base, max, ceiling: above the queue's maximum of 30 s, so that neither can be the queue's */
    const int64_t wishes[2][3] = {{40 * SECOND, HOUR, 40 * SECOND},
                                  {HOUR, 90 * SECOND, 90 * SECOND}};
    const char *const queues[] = {"a", "b"};
    for (size_t q = 0; q < COUNT_OF(queues); q++) {
        pawl_enqueue_row row = row_for(queues[q]);
        row.backoff_base_ms = wishes[q][0];
        row.backoff_max_ms = wishes[q][1];
        for (int i = 0; i < DRAWS; i++)
            (void)put_row(s, &row); /* one of forty */
        expect_spread(s, retry_all(s, queues[q], DRAWS), wishes[q][2]);
    }
}

/* ---------------------------------------------------------------- the bound */

/* Nack the queue's one job at once, and give what it became. */
static pawl_state nack(struct stage *s, const char *queue)
{
    pawl_settled settled = retry_in(s, take(s, queue, "w1"), 0);
    expect_code(settled.code, PAWL_OK);
    return settled.state;
}

/* Q-RETRY-BOUND, RES-5: 1 + 3 attempts that their holder ended */
static void after_three_retries_the_job_is_failed(struct stage *s)
{
    pawl_id id = put(s, "mail");
    expect_number(nack(s, "mail"), PAWL_READY);
    expect_number(nack(s, "mail"), PAWL_READY);
    expect_number(nack(s, "mail"), PAWL_READY);
    const pawl_job *job = take(s, "mail", "w1");
    expect_number(job->retries, 3);
    pawl_settled last = retry_in(s, job, 0);
    expect_code(last.code, PAWL_OK);
    expect_number(last.state, PAWL_FAILED);
    expect_number(last.attempt_no, 4);
    expect_number(last.due_at.us, 0);
    expect_ledger(s, id, "RETRYABLE error, RETRYABLE error, RETRYABLE error, FAILED exhausted");
    expect_state(s, id, PAWL_FAILED);
    expect_near(s, look(s, id)->finished_at, 0);
    expect_no_lease(s, id);
    expect_nothing(s, "mail");
}

/* Q-RETRY-BOUND: per queue */
static void a_queue_may_have_its_own_bound(struct stage *s)
{
    set_bounds(s, "strict", 1, 10);
    pawl_id id = put(s, "strict");
    expect_number(look(s, id)->max_retries, 1);
    expect_number(nack(s, "strict"), PAWL_READY);
    expect_number(nack(s, "strict"), PAWL_FAILED);
    expect_ledger(s, id, "RETRYABLE error, FAILED exhausted");

    set_bounds(s, "once", 0, 10);
    pawl_id once = put(s, "once");
    expect_number(nack(s, "once"), PAWL_FAILED);
    expect_ledger(s, once, "FAILED exhausted");
}

/* Q-RETRY-BOUND: per job, against a queue that says otherwise */
static void a_job_may_have_its_own_bound(struct stage *s)
{
    pawl_enqueue_row row = row_for("mail");
    row.max_retries = 0;
    pawl_id once = put_row(s, &row);
    expect_number(look(s, once)->max_retries, 0);
    expect_number(nack(s, "mail"), PAWL_FAILED);
    expect_ledger(s, once, "FAILED exhausted");

    set_bounds(s, "mail", 0, 10);
    row.max_retries = 2;
    pawl_id thrice = put_row(s, &row);
    expect_number(nack(s, "mail"), PAWL_READY);
    expect_number(nack(s, "mail"), PAWL_READY);
    expect_number(nack(s, "mail"), PAWL_FAILED);
    expect_ledger(s, thrice, "RETRYABLE error, RETRYABLE error, FAILED exhausted");
}

/* RES-6: a timeout uses a retry as any failure does */
static void a_timeout_uses_a_retry(struct stage *s)
{
    set_bounds(s, "mail", 1, 10);
    pawl_id id = put(s, "mail");
    for (int i = 0; i < 2; i++) {
        pawl_settle_row row = settle_row_for(take(s, "mail", "w1"), PAWL_RETRY);
        row.reason = PAWL_REASON_TIMEOUT;
        expect_code(settle_row(s, "w1", &row).code, PAWL_OK);
    }
    expect_ledger(s, id, "RETRYABLE timeout, FAILED exhausted");
}

/* RES-5: lost leases are counted apart from nacks */
static void a_lost_lease_uses_no_retry(struct stage *s)
{
    set_bounds(s, "mail", 1, 10);
    pawl_id id = put(s, "mail");
    (void)take_and_lose(s, "mail", "w1"); /* not a nack */
    expect_number(nack(s, "mail"), PAWL_READY);
    const pawl_job *job = look(s, id);
    expect_number(job->retries, 1);
    expect_number(job->lost_leases, 1);
    expect_number(nack(s, "mail"), PAWL_FAILED);
    expect_ledger(s, id, "ZOMBIE_REQUEUE expired, RETRYABLE error, FAILED exhausted");
}

/* ---------------------------------------------------------------- failure and snooze */

/* Q-NACK, RES-12: FAILED when told */
static void failing_for_good_uses_no_retry(struct stage *s)
{
    pawl_id id = put(s, "mail");
    pawl_settled settled = fail_for_good(s, take(s, "mail", "w1"));
    expect_code(settled.code, PAWL_OK);
    expect_number(settled.state, PAWL_FAILED);
    expect_number(settled.due_at.us, 0);
    expect_ledger(s, id, "FAILED fatal");
    expect_number(look(s, id)->retries, 0);
    expect_nothing(s, "mail");
}

/* RES-13: a holder that stopped because of a cancellation says so. */
static void failing_may_name_a_cancellation(struct stage *s)
{
    pawl_id id = put(s, "mail");
    pawl_settle_row row = settle_row_for(take(s, "mail", "w1"), PAWL_FAIL);
    row.reason = PAWL_REASON_CANCELLED;
    expect_code(cancel(s, id).code, PAWL_OK);
    expect_code(settle_row(s, "w1", &row).code, PAWL_OK);
    expect_ledger(s, id, "FAILED cancelled");
}

/* RES-13: but nobody becomes cancelled by a holder's word alone. */
static void failing_cannot_make_up_a_cancellation(struct stage *s)
{
    pawl_id id = put(s, "mail");
    pawl_settle_row row = settle_row_for(take(s, "mail", "w1"), PAWL_FAIL);
    row.reason = PAWL_REASON_CANCELLED;
    expect_code(settle_row(s, "w1", &row).code, PAWL_OK);
    expect_ledger(s, id, "FAILED fatal");
    expect_code(settle_row(s, "w1", &row).code, PAWL_OK); /* and its repeat is found */
}

/* Texts come back as they were given, in whatever script. */
static void errors_may_be_in_any_script(struct stage *s)
{
    static const char code[] = "F\xc3\x9c"
                               "LL-\xe2\x82\xac";
    static const char text[] = "\xe4\xb8\x8d\xe5\x8f\xaf\n\t\xf0\x9f\x98\x80 a\xcc\x88 \xd7\xa9";
    pawl_id id = put(s, "mail");
    pawl_settle_row row = settle_row_for(take(s, "mail", "w1"), PAWL_FAIL);
    row.error_code = code;
    row.error_text = text;
    expect_code(settle_row(s, "w1", &row).code, PAWL_OK);
    size_t count = 0;
    const pawl_attempt *rows = ledger(s, id, &count);
    expect_number(count, 1);
    assert_string_equal(rows[0].error_code, code);
    assert_string_equal(rows[0].error_text, text);
}

/* How often a request left the machine is on record as it was said, of each end; where nobody has
 * said, it is unknown, not 0: so of a lease that expired. */
static void sends_are_on_record(struct stage *s)
{
    static const pawl_settle_action actions[] = {PAWL_RETRY, PAWL_SNOOZE, PAWL_RETRY, PAWL_SUCCEED};
    static const int64_t sends[] = {0, PAWL_SENDS_MAX, PAWL_SENDS_UNKNOWN, 2};
    pawl_id id = put(s, "mail");
    for (size_t i = 0; i < COUNT_OF(actions); i++) {
        pawl_settle_row row = settle_row_for(take(s, "mail", "w1"), actions[i]);
        row.delay_ms = 0;
        row.wire_sends = sends[i];
        expect_code(settle_row(s, "w1", &row).code, PAWL_OK);
        row.wire_sends = 7; /* its repeat changes nothing: Q-STALE */
        expect_code(settle_row(s, "w1", &row).code, PAWL_OK);
    }
    size_t count = 0;
    const pawl_attempt *rows = ledger(s, id, &count);
    expect_number(count, COUNT_OF(actions));
    for (size_t i = 0; i < count; i++)
        expect_number(rows[i].wire_sends, sends[i]);

    id = put(s, "mail");
    (void)take(s, "mail", "w1");
    age(s, 3600 * SECOND);
    (void)reap_one(s);
    rows = ledger(s, id, &count);
    expect_number(count, 1);
    expect_number(rows[0].wire_sends, PAWL_SENDS_UNKNOWN);
}

/* In one call each row has its own, whatever the others have. */
static void sends_of_a_batch_are_each_its_own(struct stage *s)
{
    static const int64_t sends[] = {1, 1, 2, PAWL_SENDS_UNKNOWN, 0, 1};
    pawl_id ids[COUNT_OF(sends)];
    pawl_settle_row rows[COUNT_OF(sends)];
    pawl_settled results[COUNT_OF(sends)];
    for (size_t usual = 0; usual < 2; usual++) {
        for (size_t i = 0; i < COUNT_OF(sends); i++) {
            ids[i] = put(s, "mail");
            rows[i] = settle_row_for(take(s, "mail", "w1"), PAWL_SUCCEED);
            rows[i].wire_sends = usual == 0 ? sends[i] : 1;
        }
        expect_code(pawl_settle(s->store, "w1", rows, COUNT_OF(rows), results, NULL), PAWL_OK);
        for (size_t i = 0; i < COUNT_OF(sends); i++) {
            size_t count = 0;
            expect_code(results[i].code, PAWL_OK);
            const pawl_attempt *row = ledger(s, ids[i], &count);
            expect_number(count, 1);
            expect_number(row->wire_sends, usual == 0 ? sends[i] : 1);
        }
    }
}

/* RES-12: snooze is RETRYABLE, reason snooze, and uses no retry, however often */
static void a_snooze_uses_no_retry(struct stage *s)
{
    set_bounds(s, "mail", 1, 2);
    pawl_id id = put(s, "mail");
    for (int i = 0; i < 4; i++) {
        pawl_settled settled = snooze_for(s, take(s, "mail", "w1"), 20 * SECOND);
        expect_code(settled.code, PAWL_OK);
        expect_number(settled.state, PAWL_READY);
        expect_near(s, settled.due_at, 20 * SECOND);
        expect_nothing(s, "mail");
        age(s, 21 * SECOND);
    }
    expect_number(look(s, id)->retries, 0);
    expect_number(look(s, id)->lost_leases, 0);
    expect_ledger(s, id, "RETRYABLE snooze, RETRYABLE snooze, RETRYABLE snooze, RETRYABLE snooze");
    expect_number(nack(s, "mail"), PAWL_READY); /* the retry is still there */
}

/* RULE-020-030: work stopped by a shutdown goes on elsewhere at no cost */
static void a_shutdown_is_a_snooze_by_another_name(struct stage *s)
{
    pawl_id id = put(s, "mail");
    pawl_settle_row row = settle_row_for(take(s, "mail", "w1"), PAWL_SNOOZE);
    row.reason = PAWL_REASON_SHUTDOWN;
    expect_code(settle_row(s, "w1", &row).code, PAWL_OK);
    expect_ledger(s, id, "RETRYABLE shutdown");
    expect_number(look(s, id)->retries, 0);
    expect_id(take(s, "mail", "w2")->id, id);
}

/* ---------------------------------------------------------------- rows */

static void the_row_carries_the_error(struct stage *s)
{
    char code[PAWL_ERROR_CODE_MAX + 1];
    char text[PAWL_ERROR_TEXT_MAX + 1];
    memset(code, 'c', sizeof(code));
    memset(text, 't', sizeof(text));
    code[PAWL_ERROR_CODE_MAX] = '\0';
    text[PAWL_ERROR_TEXT_MAX] = '\0';

    pawl_id id = put(s, "mail");
    pawl_settle_row row = settle_row_for(take(s, "mail", "w1"), PAWL_RETRY);
    row.error_code = "HTTP-503";
    row.error_text = "the endpoint is \"away\"; it's late";
    expect_code(settle_row(s, "w1", &row).code, PAWL_OK);
    row = settle_row_for(take(s, "mail", "w1"), PAWL_FAIL);
    row.error_code = code;
    row.error_text = text;
    expect_code(settle_row(s, "w1", &row).code, PAWL_OK);

    size_t count = 0;
    const pawl_attempt *rows = ledger(s, id, &count);
    expect_number(count, 2);
    assert_string_equal(rows[0].error_code, "HTTP-503");
    assert_string_equal(rows[0].error_text, "the endpoint is \"away\"; it's late");
    assert_string_equal(rows[1].error_code, code);
    assert_string_equal(rows[1].error_text, text);
}

static void a_batch_settles_each_on_its_own(struct stage *s)
{
    for (int i = 0; i < 4; i++)
        put(s, "mail");
    struct batch batch = take_up_to(s, "mail", "w1", 4);
    expect_number(batch.count, 4);
    pawl_settle_row rows[4] = {
        settle_row_for(batch.jobs[0], PAWL_SUCCEED), settle_row_for(batch.jobs[1], PAWL_RETRY),
        settle_row_for(batch.jobs[2], PAWL_FAIL), settle_row_for(batch.jobs[3], PAWL_SNOOZE)};
    pawl_settled settled[4];
    pawl_err err;
    expect_code(pawl_settle(s->store, "w1", rows, 4, settled, &err), PAWL_OK);
    const pawl_state states[] = {PAWL_SUCCEEDED, PAWL_READY, PAWL_FAILED, PAWL_READY};
    const char *const ledgers[] = {"DISPATCHED", "RETRYABLE error", "FAILED fatal",
                                   "RETRYABLE snooze"};
    for (size_t i = 0; i < 4; i++) {
        expect_code(settled[i].code, PAWL_OK);
        expect_number(settled[i].state, (int64_t)states[i]);
        expect_number(settled[i].attempt_no, 1);
        expect_state(s, batch.jobs[i]->id, states[i]);
        expect_ledger(s, batch.jobs[i]->id, ledgers[i]);
    }
}

static const struct suite_case cases[] = {
    CASE(success_ends_the_job),
    CASE(a_retry_waits_for_its_time),
    CASE_ON(EXACT_CLOCK, a_retry_is_due_to_the_millisecond),
    CASE(a_retry_without_delay_is_due_at_once),
    CASE(computed_delays_grow_to_their_maximum),
    CASE(the_first_default_delay_is_half_a_second_at_most),
    CASE(a_job_may_have_its_own_backoff),
    CASE(after_three_retries_the_job_is_failed),
    CASE(a_queue_may_have_its_own_bound),
    CASE(a_job_may_have_its_own_bound),
    CASE(a_timeout_uses_a_retry),
    CASE(a_lost_lease_uses_no_retry),
    CASE(failing_for_good_uses_no_retry),
    CASE(failing_may_name_a_cancellation),
    CASE(failing_cannot_make_up_a_cancellation),
    CASE(errors_may_be_in_any_script),
    CASE(sends_are_on_record),
    CASE(sends_of_a_batch_are_each_its_own),
    CASE(a_snooze_uses_no_retry),
    CASE(a_shutdown_is_a_snooze_by_another_name),
    CASE(the_row_carries_the_error),
    CASE(a_batch_settles_each_on_its_own),
};

SUITE_GROUP(settle);

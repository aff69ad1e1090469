/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * suite_delay.c - jobs that may not start yet, or must start soon.
 * Owns:  the cases about delayed start and the start-by deadline.
 * Never: sleeps.
 */
#include "store/helpers.h"

static pawl_id put_after(struct stage *s, int64_t delay_ms)
{
    pawl_enqueue_row row = row_for("mail");
    row.delay_ms = delay_ms;
    return put_row(s, &row);
}

static pawl_id put_within(struct stage *s, int64_t start_within_ms)
{
    pawl_enqueue_row row = row_for("mail");
    row.start_within_ms = start_within_ms;
    return put_row(s, &row);
}

/* Q-CLAIM: Ready and due only */
static void a_delayed_job_waits_for_its_time(struct stage *s)
{
    pawl_id id = put_after(s, 10 * SECOND);
    expect_state(s, id, PAWL_READY);
    expect_near(s, look(s, id)->due_at, 10 * SECOND);
    expect_nothing(s, "mail");
    age(s, 8 * SECOND);
    expect_nothing(s, "mail");
    age(s, 3 * SECOND);
    expect_id(take(s, "mail", "w1")->id, id);
}

/* Q-CLAIM: due means now >= due time */
static void a_delayed_job_is_due_to_the_millisecond(struct stage *s)
{
    pawl_id id = put_after(s, 10 * SECOND);
    age(s, 10 * SECOND - 1);
    expect_nothing(s, "mail");
    age(s, 1);
    expect_id(take(s, "mail", "w1")->id, id);
}

static void a_delayed_job_holds_nobody_up(struct stage *s)
{
    pawl_id delayed = put_after(s, HOUR);
    pawl_id prompt = put(s, "mail");
    struct batch batch = take_up_to(s, "mail", "w1", 10);
    expect_batch(batch, prompt);
    expect_state(s, delayed, PAWL_READY);
}

static void a_job_started_in_time_is_done_as_any_other(struct stage *s)
{
    pawl_id id = put_within(s, MINUTE);
    expect_near(s, look(s, id)->start_by, MINUTE);
    age(s, 50 * SECOND);
    const pawl_job *job = take(s, "mail", "w1");
    age(s, 20 * SECOND); /* past the deadline, and running */
    expect_number(reap_up_to(s, 10).count, 0);
    expect_code(succeed(s, job).code, PAWL_OK);
    expect_ledger(s, id, "DISPATCHED");
}

/* Q-AT-LEAST-ONCE: what was not started is told, not lost */
static void a_missed_job_is_failed_by_the_reaper(struct stage *s)
{
    pawl_id id = put_within(s, MINUTE);
    age(s, 59 * SECOND);
    expect_number(reap_up_to(s, 10).count, 0);
    age(s, 3 * SECOND);
    const pawl_reaped *row = reap_one(s);
    expect_id(row->job, id);
    assert_string_equal(row->queue, "mail");
    assert_string_equal(row->worker, "");
    expect_number(row->state, PAWL_FAILED);
    expect_number(row->reason, PAWL_REASON_START_BY);
    expect_true(row->overdue_ms >= 2 * SECOND && row->overdue_ms <= 2 * SECOND + s->kind->slack_ms);

    expect_ledger(s, id, "FAILED start_by");
    size_t count = 0;
    const pawl_attempt *attempt = ledger(s, id, &count);
    expect_number(attempt->ended_by, PAWL_ENDED_BY_DEADLINE);
    expect_number(attempt->lease_version, 0);
    expect_number(attempt->started_at.us, 0);
    assert_string_equal(attempt->worker, "");
    expect_number(reap_up_to(s, 10).count, 0);
    expect_ledger(s, id, "FAILED start_by");
}

static void a_missed_job_is_never_given_out(struct stage *s)
{
    pawl_id missed = put_within(s, MINUTE);
    pawl_id other = put(s, "mail");
    age(s, 61 * SECOND);
    struct batch batch = take_up_to(s, "mail", "w1", 10);
    expect_batch(batch, other);
    (void)reap_up_to(s, 10); /* the claim may have failed it already */
    expect_ledger(s, missed, "FAILED start_by");
    expect_number(look(s, missed)->lease_version, 0);
}

/* Given back unstarted: it has not started yet, so the deadline still holds. */
static void a_released_job_still_has_its_deadline(struct stage *s)
{
    pawl_id id = put_within(s, MINUTE);
    expect_code(release(s, take(s, "mail", "w1")), PAWL_OK);
    age(s, 61 * SECOND);
    expect_number(reap_one(s)->reason, PAWL_REASON_START_BY);
    expect_state(s, id, PAWL_FAILED);
}

/* Failed unless claimed within this time: it was. */
static void a_retried_job_has_met_its_deadline(struct stage *s)
{
    pawl_id id = put_within(s, MINUTE);
    expect_code(retry_in(s, take(s, "mail", "w1"), 0).code, PAWL_OK);
    age(s, 61 * SECOND);
    expect_number(reap_up_to(s, 10).count, 0);
    expect_id(take(s, "mail", "w1")->id, id);
}

/* Q-DEAD-LETTER: redriven without its deadline */
static void a_redriven_job_has_no_deadline(struct stage *s)
{
    pawl_id id = put_within(s, MINUTE);
    age(s, 61 * SECOND);
    (void)reap_one(s); /* fails it */
    expect_code(redrive(s, id).code, PAWL_OK);
    expect_number(look(s, id)->start_by.us, 0);
    age(s, HOUR);
    expect_number(reap_up_to(s, 10).count, 0);
    expect_id(take(s, "mail", "w1")->id, id);
}

/* Whatever order they came in, so that stores and runs agree on whom a bounded run takes. */
static void jobs_missed_at_one_instant_are_failed_by_their_ids(struct stage *s)
{
    pawl_enqueue_row rows[4];
    pawl_enqueued enqueued[4];
    pawl_err err;
    for (size_t i = 4; i-- > 0;) { /* ids rise: the last row has the lowest */
        rows[i] = row_for("mail");
        rows[i].start_within_ms = 10 * SECOND;
        rows[i].id = new_id(s, &rows[i]);
    }
    expect_code(pawl_enqueue(s->store, rows, 4, enqueued, &err), PAWL_OK);
    age(s, 11 * SECOND);
    for (size_t i = 4; i-- > 0;) {
        struct reaped reaped = reap_up_to(s, 1);
        expect_number(reaped.count, 1);
        expect_id(reaped.rows[0].job, rows[i].id);
    }
}

static const struct suite_case cases[] = {
    CASE(a_delayed_job_waits_for_its_time),
    CASE_ON(EXACT_CLOCK, a_delayed_job_is_due_to_the_millisecond),
    CASE(a_delayed_job_holds_nobody_up),
    CASE(a_job_started_in_time_is_done_as_any_other),
    CASE(a_missed_job_is_failed_by_the_reaper),
    CASE_ON(ONE_SHARD, jobs_missed_at_one_instant_are_failed_by_their_ids), /* there ids rise */
    CASE(a_missed_job_is_never_given_out),
    CASE(a_released_job_still_has_its_deadline),
    CASE(a_retried_job_has_met_its_deadline),
    CASE(a_redriven_job_has_no_deadline),
};

SUITE_GROUP(delay);

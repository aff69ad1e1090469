/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * suite_cancel.c - cancelling jobs (RES-13).
 * Owns:  the cases about what becomes of waiting and of running jobs that somebody cancels.
 * Never: stops a handler: that is the worker's part.
 */
#include "store/helpers.h"

/* RES-13, RES-12 */
static void a_ready_job_is_failed_at_once(struct stage *s)
{
    pawl_id id = put(s, "mail");
    pawl_changed changed = cancel(s, id);
    expect_code(changed.code, PAWL_OK);
    expect_number(changed.state, PAWL_FAILED);
    expect_ledger(s, id, "FAILED cancelled");
    expect_near(s, look(s, id)->finished_at, 0);
    expect_number(look(s, id)->retries, 0);
    expect_nothing(s, "mail");

    size_t count = 0;
    const pawl_attempt *row = ledger(s, id, &count);
    expect_number(row->ended_by, PAWL_ENDED_BY_OPERATOR);
    expect_number(row->lease_version, 0);
    expect_number(row->started_at.us, 0);
    expect_near(s, row->finished_at, 0);
    assert_string_equal(row->worker, "");
}

/* RES-13 */
static void a_waiting_job_is_failed_at_once(struct stage *s)
{
    pawl_enqueue_row row = row_for("mail");
    row.delay_ms = HOUR;
    pawl_id delayed = put_row(s, &row);
    pawl_id retried = put(s, "mail");
    expect_code(retry_in(s, take(s, "mail", "w1"), HOUR).code, PAWL_OK);
    expect_number(cancel(s, delayed).state, PAWL_FAILED);
    expect_number(cancel(s, retried).state, PAWL_FAILED);
    age(s, 2 * HOUR);
    expect_nothing(s, "mail");
    expect_ledger(s, delayed, "FAILED cancelled");
    expect_ledger(s, retried, "RETRYABLE error, FAILED cancelled");
}

/* A running job, marked. */
static const pawl_job *marked(struct stage *s)
{
    pawl_id id = put(s, "mail");
    const pawl_job *job = take(s, "mail", "w1");
    expect_id(job->id, id);
    pawl_changed changed = cancel(s, id);
    expect_code(changed.code, PAWL_OK);
    expect_number(changed.state, PAWL_IN_FLIGHT);
    return job;
}

/* RES-13, Q-EXTEND */
static void a_running_job_is_marked_and_its_renewal_refused(struct stage *s)
{
    const pawl_job *job = marked(s);
    const pawl_job *seen = look(s, job->id);
    expect_number(seen->state, PAWL_IN_FLIGHT);
    expect_true(seen->is_cancel_asked);
    expect_number(seen->expires_at.us, job->expires_at.us); /* the lease itself stands */
    expect_true(mine(s, "w1").jobs[0]->is_cancel_asked);
    expect_ledger(s, job->id, "");

    age(s, 10 * SECOND);
    struct picture before = picture_of(s, job->id);
    expect_code(renew(s, job).code, PAWL_CANCELLED);
    pawl_renew_row unstarted = {
        .lease = lease_of(job), .lease_ms = PAWL_DEFAULT, .is_unstarted = true};
    expect_code(renew_row(s, "w1", &unstarted).code, PAWL_CANCELLED);
    expect_unchanged(s, &before); /* not extended */
    expect_nothing(s, "mail");
}

/* RES-13, RES-3: only the holder is told */
static void only_the_holder_learns_of_the_mark(struct stage *s)
{
    const pawl_job *job = marked(s);
    pawl_renew_row row = {.lease = lease_of(job), .lease_ms = PAWL_DEFAULT};
    expect_code(renew_row(s, "w2", &row).code, PAWL_STALE);
    age(s, LEASE + SECOND);
    expect_code(renew(s, job).code, PAWL_STALE);
}

/* RES-13: a valid settle that comes first still wins */
static void a_success_that_comes_first_wins(struct stage *s)
{
    const pawl_job *job = marked(s);
    pawl_settled settled = succeed(s, job);
    expect_code(settled.code, PAWL_OK);
    expect_number(settled.state, PAWL_SUCCEEDED);
    expect_ledger(s, job->id, "DISPATCHED");
    expect_state(s, job->id, PAWL_SUCCEEDED);
    expect_true(!look(s, job->id)->is_cancel_asked);
}

/* RES-13 */
static void a_failure_that_comes_first_wins(struct stage *s)
{
    const pawl_job *job = marked(s);
    expect_code(fail_for_good(s, job).code, PAWL_OK);
    expect_ledger(s, job->id, "FAILED fatal");
}

/* RES-13: it would run again, so it ends here */
static void a_retry_of_a_marked_job_ends_it(struct stage *s)
{
    const pawl_job *job = marked(s);
    pawl_settled settled = retry_in(s, job, 0);
    expect_code(settled.code, PAWL_OK);
    expect_number(settled.state, PAWL_FAILED);
    expect_ledger(s, job->id, "FAILED cancelled");
    expect_nothing(s, "mail");
}

/* RES-13 */
static void a_snooze_of_a_marked_job_ends_it(struct stage *s)
{
    const pawl_job *job = marked(s);
    expect_number(snooze_for(s, job, HOUR).state, PAWL_FAILED);
    expect_ledger(s, job->id, "FAILED cancelled");
}

/* RES-13, RES-12: a release writes no row, but becoming terminal does */
static void a_release_of_a_marked_job_ends_it(struct stage *s)
{
    const pawl_job *job = marked(s);
    expect_code(release(s, job), PAWL_OK);
    expect_state(s, job->id, PAWL_FAILED);
    expect_ledger(s, job->id, "FAILED cancelled");
    expect_nothing(s, "mail");
    expect_code(release(s, job), PAWL_STALE);
    expect_ledger(s, job->id, "FAILED cancelled");
}

/* RES-13, RES-4 */
static void an_expired_marked_job_is_failed_by_the_reaper(struct stage *s)
{
    const pawl_job *job = marked(s);
    age(s, LEASE + SECOND);
    const pawl_reaped *row = reap_one(s);
    expect_number(row->state, PAWL_FAILED);
    expect_number(row->reason, PAWL_REASON_CANCELLED);
    expect_ledger(s, job->id, "FAILED cancelled");
    size_t count = 0;
    expect_number(ledger(s, job->id, &count)->ended_by, PAWL_ENDED_BY_EXPIRY);
}

/* RES-13, RES-4 */
static void an_expired_marked_job_is_failed_by_the_claim(struct stage *s)
{
    const pawl_job *job = marked(s);
    age(s, LEASE + SECOND);
    expect_nothing(s, "mail");
    expect_ledger(s, job->id, "FAILED cancelled");
    expect_number(reap_up_to(s, 10).count, 0);
}

/* Asked twice is asked once. */
static void cancelling_again_is_ok(struct stage *s)
{
    const pawl_job *job = marked(s);
    pawl_changed again = cancel(s, job->id);
    expect_code(again.code, PAWL_OK);
    expect_number(again.state, PAWL_IN_FLIGHT);
    expect_code(release(s, job), PAWL_OK);
    struct picture before = picture_of(s, job->id);
    again = cancel(s, job->id);
    expect_code(again.code, PAWL_OK);
    expect_number(again.state, PAWL_FAILED);
    expect_unchanged(s, &before);
}

static void what_has_ended_cannot_be_cancelled(struct stage *s)
{
    pawl_id done = put_succeeded(s, "mail");
    pawl_id dead = put_failed(s, "mail");
    struct picture before_done = picture_of(s, done);
    struct picture before_dead = picture_of(s, dead);
    expect_code(cancel(s, done).code, PAWL_ALREADY_SUCCEEDED);
    expect_code(cancel(s, dead).code, PAWL_ALREADY_FAILED);
    expect_unchanged(s, &before_done);
    expect_unchanged(s, &before_dead);
    pawl_enqueue_row row = row_for("mail");
    expect_code(cancel(s, new_id(s, &row)).code, PAWL_GONE);
}

/* Q-DEAD-LETTER: the mark does not outlive the job's end */
static void a_redriven_job_is_not_marked(struct stage *s)
{
    const pawl_job *job = marked(s);
    expect_code(release(s, job), PAWL_OK);
    expect_code(redrive(s, job->id).code, PAWL_OK);
    const pawl_job *again = take(s, "mail", "w1");
    expect_true(!again->is_cancel_asked);
    expect_code(renew(s, again).code, PAWL_OK);
    expect_code(succeed(s, again).code, PAWL_OK);
    expect_ledger(s, job->id, "FAILED cancelled, DISPATCHED");
}

static void a_batch_cancels_each_on_its_own(struct stage *s)
{
    pawl_enqueue_row row = row_for("mail");
    pawl_id ids[4] = {put_succeeded(s, "mail"), put(s, "mail"), put(s, "mail"), new_id(s, &row)};
    const pawl_job *job = take(s, "mail", "w1");
    pawl_changed changed[4];
    pawl_err err;
    expect_code(pawl_cancel(s->store, ids, 4, changed, &err), PAWL_OK);
    expect_code(changed[0].code, PAWL_ALREADY_SUCCEEDED);
    expect_code(changed[1].code, PAWL_OK);
    expect_code(changed[2].code, PAWL_OK);
    expect_code(changed[3].code, PAWL_GONE);
    expect_state(s, job->id, PAWL_IN_FLIGHT);
    expect_true(look(s, job->id)->is_cancel_asked);
}

/* ---------------------------------------------------------------- by filter */

static size_t cancel_where(struct stage *s, const pawl_filter *filter, size_t jobs_max)
{
    size_t count = 0;
    pawl_err err;
    expect_code(pawl_cancel_where(s->store, filter, jobs_max, &count, &err), PAWL_OK);
    return count;
}

static void a_filter_cancels_what_fits(struct stage *s)
{
    pawl_id done = put_succeeded(s, "mail");
    pawl_id running = put(s, "mail");
    (void)take(s, "mail", "w1");
    pawl_id waiting = put(s, "mail");
    pawl_id elsewhere = put(s, "print");
    expect_number(cancel_where(s, &(pawl_filter){.queue = "mail"}, 10), 2);
    expect_state(s, done, PAWL_SUCCEEDED);
    expect_true(look(s, running)->is_cancel_asked);
    expect_ledger(s, waiting, "FAILED cancelled");
    expect_state(s, elsewhere, PAWL_READY);
}

static void a_filter_may_name_states_and_workers(struct stage *s)
{
    put(s, "mail");
    put(s, "mail");
    const pawl_job *one = take(s, "mail", "w1");
    const pawl_job *two = take(s, "mail", "w2");
    pawl_id waiting = put(s, "mail");
    expect_number(cancel_where(s, &(pawl_filter){.worker = "w1"}, 10), 1);
    expect_true(look(s, one->id)->is_cancel_asked);
    expect_true(!look(s, two->id)->is_cancel_asked);
    expect_number(cancel_where(s, &(pawl_filter){.states = 1u << PAWL_READY}, 10), 1);
    expect_state(s, waiting, PAWL_FAILED);
    expect_true(!look(s, two->id)->is_cancel_asked);
}

/* Where the count equals the maximum, call again: so each call must get somewhere. */
static void a_filter_is_worked_off_in_steps(struct stage *s)
{
    for (int i = 0; i < 5; i++)
        put(s, "mail");
    expect_number(take_up_to(s, "mail", "w1", 3).count, 3);
    const pawl_filter all = {0};
    expect_number(cancel_where(s, &all, 2), 2);
    expect_number(cancel_where(s, &all, 2), 2);
    expect_number(cancel_where(s, &all, 2), 1);
    expect_number(cancel_where(s, &all, 2), 0);
    pawl_stats stats = stats_of(s, "mail");
    expect_number(stats.failed, 2);
    expect_number(stats.in_flight, 3);
}

static void a_filter_of_ended_jobs_is_refused(struct stage *s)
{
    (void)put_failed(s, "mail");
    pawl_filter filter = {.states = 1u << PAWL_SUCCEEDED | 1u << PAWL_FAILED};
    size_t count = 0;
    pawl_err err;
    expect_code(pawl_cancel_where(s->store, &filter, 10, &count, &err), PAWL_INVALID);
}

static const struct suite_case cases[] = {
    CASE(a_ready_job_is_failed_at_once),
    CASE(a_waiting_job_is_failed_at_once),
    CASE(a_running_job_is_marked_and_its_renewal_refused),
    CASE(only_the_holder_learns_of_the_mark),
    CASE(a_success_that_comes_first_wins),
    CASE(a_failure_that_comes_first_wins),
    CASE(a_retry_of_a_marked_job_ends_it),
    CASE(a_snooze_of_a_marked_job_ends_it),
    CASE(a_release_of_a_marked_job_ends_it),
    CASE(an_expired_marked_job_is_failed_by_the_reaper),
    CASE(an_expired_marked_job_is_failed_by_the_claim),
    CASE(cancelling_again_is_ok),
    CASE(what_has_ended_cannot_be_cancelled),
    CASE(a_redriven_job_is_not_marked),
    CASE(a_batch_cancels_each_on_its_own),
    CASE(a_filter_cancels_what_fits),
    CASE(a_filter_may_name_states_and_workers),
    CASE(a_filter_is_worked_off_in_steps),
    CASE(a_filter_of_ended_jobs_is_refused),
};

SUITE_GROUP(cancel);

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * suite_dead.c - what can be done with Failed jobs (Q-DEAD-LETTER).
 * Owns:  the cases about inspecting, redriving and discarding them, by id and by filter.
 * Never: makes them fail in unusual ways.
 */
#include "store/helpers.h"

/* Q-DEAD-LETTER: listed and inspected */
static void a_failed_job_can_be_inspected(struct stage *s)
{
    (void)put_succeeded(s, "mail");
    pawl_id dead = put_failed(s, "mail");
    put(s, "mail");
    struct batch failed = list(s, &(pawl_filter){.states = 1u << PAWL_FAILED});
    expect_batch(failed, dead);
    const pawl_job *job = look(s, dead);
    expect_number(job->state, PAWL_FAILED);
    expect_number(job->reason, PAWL_REASON_FATAL);
    expect_number(job->payload_len, 4);
    assert_memory_equal(job->payload, "work", 4);
    expect_ledger(s, dead, "FAILED fatal");
}

/* Q-DEAD-LETTER, RES-12, Q-VERSION */
static void a_redriven_job_starts_again(struct stage *s)
{
    set_bounds(s, "mail", 1, 10);
    pawl_id id = put(s, "mail");
    (void)take_and_lose(s, "mail", "w1");
    expect_number(retry_in(s, take(s, "mail", "w1"), 0).state, PAWL_READY);
    expect_number(retry_in(s, take(s, "mail", "w1"), 0).state, PAWL_FAILED);
    age(s, MINUTE);
    pawl_changed changed = redrive(s, id);
    expect_code(changed.code, PAWL_OK);
    expect_number(changed.state, PAWL_READY);

    const pawl_job *job = look(s, id);
    expect_number(job->state, PAWL_READY);
    expect_number(job->retries, 0);
    expect_number(job->lost_leases, 0);
    expect_number(job->attempts, 3);
    expect_number(job->lease_version, 3);
    expect_near(s, job->due_at, 0);
    expect_number(job->finished_at.us, 0);
    expect_near(s, job->created_at, -(LEASE + SECOND + MINUTE));

    job = take(s, "mail", "w1");
    expect_number(job->lease_version, 4);
    assert_memory_equal(job->payload, "work", 4);
    pawl_settled settled = retry_in(s, job, 0);
    expect_number(settled.state, PAWL_READY); /* the whole of its retries again */
    expect_number(settled.attempt_no, 4);
    expect_number(retry_in(s, take(s, "mail", "w1"), 0).state, PAWL_FAILED);
    expect_ledger(s, id,
                  "ZOMBIE_REQUEUE expired, RETRYABLE error, FAILED exhausted, "
                  "RETRYABLE error, FAILED exhausted");
}

/* Every way to fail can be undone. */
static void whatever_ended_it_it_can_be_redriven(struct stage *s)
{
    pawl_id cancelled = put(s, "a");
    expect_code(cancel(s, cancelled).code, PAWL_OK);
    pawl_enqueue_row row = row_for("b");
    row.start_within_ms = MINUTE;
    pawl_id missed = put_row(s, &row);
    set_bounds(s, "c", 3, 1);
    pawl_id poison = put(s, "c");
    (void)take(s, "c", "w1");
    age(s, 61 * SECOND);
    expect_number(reap_up_to(s, 10).count, 2);
    const pawl_id ids[] = {cancelled, missed, poison};
    const char *const queues[] = {"a", "b", "c"};
    for (size_t i = 0; i < 3; i++) {
        expect_state(s, ids[i], PAWL_FAILED);
        expect_code(redrive(s, ids[i]).code, PAWL_OK);
        expect_code(succeed(s, take(s, queues[i], "w1")).code, PAWL_OK);
        expect_state(s, ids[i], PAWL_SUCCEEDED);
    }
}

/* Ready now, whatever it had been waiting for. */
static void a_redriven_job_does_not_wait(struct stage *s)
{
    pawl_enqueue_row row = row_for("mail");
    row.delay_ms = HOUR;
    pawl_id id = put_row(s, &row);
    expect_code(cancel(s, id).code, PAWL_OK);
    expect_code(redrive(s, id).code, PAWL_OK);
    expect_near(s, look(s, id)->due_at, 0);
    expect_id(take(s, "mail", "w1")->id, id);
}

static void only_failed_jobs_are_redriven(struct stage *s)
{
    pawl_id done = put_succeeded(s, "mail");
    pawl_id running = put(s, "mail");
    (void)take(s, "mail", "w1");
    pawl_id ready = put(s, "mail");
    const pawl_id ids[] = {done, running, ready};
    const pawl_code codes[] = {PAWL_ALREADY_SUCCEEDED, PAWL_NOT_FAILED, PAWL_NOT_FAILED};
    for (size_t i = 0; i < 3; i++) {
        struct picture before = picture_of(s, ids[i]);
        expect_code(redrive(s, ids[i]).code, codes[i]);
        expect_unchanged(s, &before);
        expect_code(discard(s, ids[i]).code, codes[i]);
        expect_unchanged(s, &before);
    }
    pawl_enqueue_row row = row_for("mail");
    pawl_id unknown = new_id(s, &row);
    expect_code(redrive(s, unknown).code, PAWL_GONE);
    expect_code(discard(s, unknown).code, PAWL_GONE);
}

static void redriving_twice_is_refused(struct stage *s)
{
    pawl_id id = put_failed(s, "mail");
    expect_code(redrive(s, id).code, PAWL_OK);
    expect_code(redrive(s, id).code, PAWL_NOT_FAILED);
    expect_number(take_up_to(s, "mail", "w1", 10).count, 1); /* it waits once only */
}

/* Q-DEAD-LETTER: the payload goes, the history stays */
static void a_discarded_job_leaves_its_history(struct stage *s)
{
    pawl_id id = put_failed(s, "mail");
    pawl_changed changed = discard(s, id);
    expect_code(changed.code, PAWL_OK);
    expect_number(changed.state, PAWL_FAILED);
    const pawl_job *job = look(s, id);
    expect_number(job->state, PAWL_FAILED);
    expect_true(job->payload == NULL);
    expect_ledger(s, id, "FAILED fatal");
    expect_number(stats_of(s, "mail").failed, 1);

    struct picture before = picture_of(s, id);
    expect_code(discard(s, id).code, PAWL_OK); /* done before */
    expect_code(redrive(s, id).code, PAWL_GONE);
    expect_unchanged(s, &before);
    expect_nothing(s, "mail");
}

static void a_batch_changes_each_on_its_own(struct stage *s)
{
    pawl_enqueue_row row = row_for("mail");
    pawl_id dead = put_failed(s, "mail");
    pawl_id discarded = put_failed(s, "mail");
    expect_code(discard(s, discarded).code, PAWL_OK);
    pawl_id ids[4] = {put_succeeded(s, "mail"), dead, discarded, new_id(s, &row)};
    pawl_changed changed[4];
    pawl_err err;
    expect_code(pawl_redrive(s->store, ids, 4, changed, &err), PAWL_OK);
    expect_code(changed[0].code, PAWL_ALREADY_SUCCEEDED);
    expect_code(changed[1].code, PAWL_OK);
    expect_code(changed[2].code, PAWL_GONE);
    expect_code(changed[3].code, PAWL_GONE);
    expect_code(pawl_discard(s->store, ids, 4, changed, &err), PAWL_OK);
    expect_code(changed[0].code, PAWL_ALREADY_SUCCEEDED);
    expect_code(changed[1].code, PAWL_NOT_FAILED);
    expect_code(changed[2].code, PAWL_OK);
    expect_code(changed[3].code, PAWL_GONE);
}

/* ---------------------------------------------------------------- by filter */

typedef pawl_code where_verb(pawl_store *store, const pawl_filter *filter, size_t jobs_max,
                             size_t *ret_count, pawl_err *err);

static size_t change_where(struct stage *s, where_verb *verb, const pawl_filter *filter,
                           size_t jobs_max)
{
    size_t count = 0;
    pawl_err err;
    expect_code(verb(s->store, filter, jobs_max, &count, &err), PAWL_OK);
    return count;
}

/* One job failed for each of two reasons, in two queues, and a live one. */
static void put_mixed(struct stage *s, pawl_id fatal[2], pawl_id cancelled[2])
{
    const char *const queues[] = {"mail", "print"};
    for (size_t i = 0; i < 2; i++) {
        fatal[i] = put_failed(s, queues[i]);
        cancelled[i] = put(s, queues[i]);
        expect_code(cancel(s, cancelled[i]).code, PAWL_OK);
        put(s, queues[i]);
    }
}

static void a_filter_redrives_what_fits(struct stage *s)
{
    pawl_id fatal[2];
    pawl_id cancelled[2];
    put_mixed(s, fatal, cancelled);
    pawl_filter filter = {.queue = "mail", .reason = PAWL_REASON_FATAL};
    expect_number(change_where(s, pawl_redrive_where, &filter, 10), 1);
    expect_state(s, fatal[0], PAWL_READY);
    expect_state(s, fatal[1], PAWL_FAILED);
    expect_state(s, cancelled[0], PAWL_FAILED);
    filter = (pawl_filter){.states = 1u << PAWL_FAILED};
    expect_number(change_where(s, pawl_redrive_where, &filter, 10), 3);
    expect_number(change_where(s, pawl_redrive_where, &filter, 10), 0);
    expect_number(stats_of(s, "mail").ready, 3);
    expect_number(stats_of(s, "print").ready, 3);
}

static void a_filter_discards_what_fits(struct stage *s)
{
    pawl_id fatal[2];
    pawl_id cancelled[2];
    put_mixed(s, fatal, cancelled);
    pawl_filter filter = {.reason = PAWL_REASON_CANCELLED};
    expect_number(change_where(s, pawl_discard_where, &filter, 10), 2);
    expect_true(look(s, cancelled[0])->payload == NULL);
    expect_true(look(s, cancelled[1])->payload == NULL);
    expect_true(look(s, fatal[0])->payload != NULL);
    expect_number(change_where(s, pawl_discard_where, &filter, 10), 0);
    expect_number(stats_of(s, "mail").ready, 1);
    filter = (pawl_filter){0};
    expect_number(change_where(s, pawl_redrive_where, &filter, 10), 2); /* not the discarded */
    expect_state(s, cancelled[0], PAWL_FAILED);
}

/* In the order of their ids, up to the maximum, until nothing is left. */
static void filters_are_worked_off_in_steps(struct stage *s)
{
    for (int i = 0; i < 5; i++)
        (void)put_failed(s, "mail");
    const pawl_filter all = {0};
    struct batch before = list(s, NULL);
    expect_number(change_where(s, pawl_discard_where, &all, 2), 2);
    expect_true(look(s, before.jobs[0]->id)->payload == NULL);
    expect_true(look(s, before.jobs[1]->id)->payload == NULL);
    expect_true(look(s, before.jobs[2]->id)->payload != NULL);
    expect_number(change_where(s, pawl_redrive_where, &all, 2), 2);
    expect_state(s, before.jobs[2]->id, PAWL_READY);
    expect_state(s, before.jobs[3]->id, PAWL_READY);
    expect_state(s, before.jobs[4]->id, PAWL_FAILED);
    expect_number(change_where(s, pawl_redrive_where, &all, 2), 1);
    expect_number(change_where(s, pawl_redrive_where, &all, 2), 0);
}

/* What the verb cannot change does not count, so that working off comes to an end. */
static void a_filter_passes_over_a_key_that_is_held(struct stage *s)
{
    pawl_enqueue_row row = row_for("mail");
    row.dedupe_key = "k";
    pawl_id dead = put_row(s, &row);
    expect_code(fail_for_good(s, take(s, "mail", "w1")).code, PAWL_OK);
    pawl_id holder = put_row(s, &row);
    const pawl_filter all = {0};
    expect_number(change_where(s, pawl_redrive_where, &all, 10), 0);
    expect_state(s, dead, PAWL_FAILED);
    expect_state(s, holder, PAWL_READY);
}

static void a_filter_of_live_jobs_is_refused(struct stage *s)
{
    pawl_id id = put(s, "mail");
    pawl_filter filter = {.states = 1u << PAWL_READY | 1u << PAWL_SUCCEEDED};
    size_t count = 0;
    pawl_err err;
    expect_code(pawl_redrive_where(s->store, &filter, 10, &count, &err), PAWL_INVALID);
    expect_code(pawl_discard_where(s->store, &filter, 10, &count, &err), PAWL_INVALID);
    expect_state(s, id, PAWL_READY);
}

static const struct suite_case cases[] = {
    CASE(a_failed_job_can_be_inspected),        CASE(a_redriven_job_starts_again),
    CASE(whatever_ended_it_it_can_be_redriven), CASE(a_redriven_job_does_not_wait),
    CASE(only_failed_jobs_are_redriven),        CASE(redriving_twice_is_refused),
    CASE(a_discarded_job_leaves_its_history),   CASE(a_batch_changes_each_on_its_own),
    CASE(a_filter_redrives_what_fits),          CASE(a_filter_discards_what_fits),
    CASE(filters_are_worked_off_in_steps),      CASE(a_filter_passes_over_a_key_that_is_held),
    CASE(a_filter_of_live_jobs_is_refused),
};

SUITE_GROUP(dead);

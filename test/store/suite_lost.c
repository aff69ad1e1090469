/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * suite_lost.c - counting lost leases.
 * Owns:  the cases about RES-5: when a job is poison, and when it has to wait.
 * Never: looks at how an expiry is found: see suite_reap.c and suite_claim.c.
 */
#include "store/helpers.h"

/* Lose the queue's one job once more, recovered by the reaper; then wait its backoff out. */
static const pawl_reaped *lose(struct stage *s, const char *queue)
{
    (void)take_and_lose(s, queue, "w1");
    const pawl_reaped *row = reap_one(s);
    age(s, MINUTE);
    return row;
}

/* RES-5: at exactly the bound, by the reaper */
static void poison_at_exactly_the_bound(struct stage *s)
{
    set_bounds(s, "mail", 3, 3);
    pawl_id id = put(s, "mail");
    expect_number(lose(s, "mail")->state, PAWL_READY);
    expect_number(lose(s, "mail")->state, PAWL_READY);
    expect_number(look(s, id)->lost_leases, 2);
    const pawl_reaped *last = lose(s, "mail");
    expect_number(last->state, PAWL_FAILED);
    expect_number(last->reason, PAWL_REASON_POISON);
    expect_ledger(s, id, "ZOMBIE_REQUEUE expired, ZOMBIE_REQUEUE expired, FAILED poison");
    expect_state(s, id, PAWL_FAILED);
    expect_true(look(s, id)->finished_at.us != 0);
    expect_nothing(s, "mail");

    size_t count = 0;
    const pawl_attempt *rows = ledger(s, id, &count);
    expect_number(rows[2].ended_by, PAWL_ENDED_BY_EXPIRY);
    expect_number(rows[2].lease_version, 3);
    assert_string_equal(rows[2].worker, "w1");
}

/* RES-5: ten by default */
static void ten_lost_leases_are_poison(struct stage *s)
{
    pawl_id id = put(s, "mail");
    for (int i = 1; i <= 9; i++) {
        expect_number(lose(s, "mail")->state, PAWL_READY);
        expect_number(look(s, id)->lost_leases, i);
    }
    expect_number(lose(s, "mail")->reason, PAWL_REASON_POISON);
    expect_state(s, id, PAWL_FAILED);
}

/* RES-5: a bound of one */
static void one_lost_lease_may_be_poison(struct stage *s)
{
    set_bounds(s, "mail", 3, 1);
    pawl_id id = put(s, "mail");
    expect_number(lose(s, "mail")->reason, PAWL_REASON_POISON);
    expect_ledger(s, id, "FAILED poison");
}

/* RES-5, RES-4: the claim that finds the last expiry gives nothing, and leaves the one row */
static void a_claim_finds_poison_too(struct stage *s)
{
    set_bounds(s, "mail", 3, 2);
    pawl_id id = put(s, "mail");
    (void)take_and_lose(s, "mail", "w1");
    (void)take_and_lose(s, "mail", "w2"); /* found by the claim */
    expect_nothing(s, "mail");
    expect_ledger(s, id, "ZOMBIE_REQUEUE expired, FAILED poison");
    expect_number(reap_up_to(s, 10).count, 0);
    expect_state(s, id, PAWL_FAILED);
}

/* RES-5: the first loss is forgiven at once */
static void the_first_loss_is_due_at_once(struct stage *s)
{
    pawl_id id = put(s, "mail");
    (void)take_and_lose(s, "mail", "w1");
    expect_true(reap_one(s)->due_at.us <= now(s).us);
    expect_id(take(s, "mail", "w2")->id, id);
}

#define DRAWS 40

/* Lose `DRAWS` jobs at once and give the longest wait that any of them was told. */
static int64_t longest_wait_ms(struct stage *s)
{
    expect_number(take_up_to(s, "mail", "w1", DRAWS).count, DRAWS);
    age(s, LEASE + SECOND);
    int64_t before_us = now(s).us;
    struct reaped reaped = reap_up_to(s, DRAWS);
    expect_number(reaped.count, DRAWS);
    int64_t longest_us = 0;
    for (size_t i = 0; i < reaped.count; i++) {
        int64_t wait_us = reaped.rows[i].due_at.us - before_us;
        expect_number(look(s, reaped.rows[i].job)->due_at.us, reaped.rows[i].due_at.us);
        if (wait_us > longest_us)
            longest_us = wait_us;
    }
    return longest_us / 1000;
}

/* RES-5, Q-BACKOFF: from the second loss in a row on, and never beyond the maximum */
static void the_second_loss_in_a_row_waits(struct stage *s)
{
    pawl_queue_settings settings = settings_of(s, "mail");
    settings.backoff_base_ms = 20 * SECOND;
    settings.backoff_max_ms = 20 * SECOND;
    set_settings(s, "mail", &settings);
    for (int i = 0; i < DRAWS; i++)
        put(s, "mail");
    expect_true(longest_wait_ms(s) <= s->kind->slack_ms); /* the first loss: none */
    int64_t longest_ms = longest_wait_ms(s);
    expect_true(longest_ms > 10 * SECOND); /* forty even draws: once in 2^40 not */
    expect_true(longest_ms <= 20 * SECOND + s->kind->slack_ms);
    age(s, 21 * SECOND);
    longest_ms = longest_wait_ms(s);
    expect_true(longest_ms > 10 * SECOND);
    expect_true(longest_ms <= 20 * SECOND + s->kind->slack_ms);
}

/* RES-5: a job that waits after a loss is not given out before its time */
static void a_job_that_waits_is_not_given_out(struct stage *s)
{
    pawl_enqueue_row row = row_for("mail");
    row.backoff_base_ms = HOUR;
    row.backoff_max_ms = HOUR;
    for (int i = 0; i < 10; i++)
        (void)put_row(s, &row);
    expect_number(take_up_to(s, "mail", "w1", 10).count, 10);
    age(s, LEASE + SECOND);
    expect_number(take_up_to(s, "mail", "w1", 10).count, 10);
    age(s, LEASE + SECOND);
    /* Ten even draws from an hour: all within the first second once in 10^35. */
    expect_true(take_up_to(s, "mail", "w1", 10).count < 10);
    expect_true(stats_of(s, "mail").delayed > 0);
    age(s, 2 * HOUR);
    (void)reap_up_to(s, 10);
    age(s, 2 * HOUR);
    expect_number(take_up_to(s, "mail", "w1", 10).count, 10);
}

/* RES-5: "in a row" ends where a holder ends an attempt; the count goes on */
static void a_nack_ends_the_row_of_losses(struct stage *s)
{
    pawl_queue_settings settings = settings_of(s, "mail");
    settings.backoff_base_ms = HOUR;
    settings.backoff_max_ms = HOUR;
    settings.max_retries = 100;
    settings.max_lost_leases = 6;
    set_settings(s, "mail", &settings);
    pawl_id id = put(s, "mail");
    for (int i = 1; i <= 5; i++) {
        (void)take_and_lose(s, "mail", "w1");
        expect_true(reap_one(s)->due_at.us <= now(s).us); /* each is the first in its row */
        const pawl_job *job = take(s, "mail", "w1");
        expect_number(job->lost_leases, i);
        pawl_settled settled = i % 2 == 0 ? retry_in(s, job, 0) : snooze_for(s, job, 0);
        expect_code(settled.code, PAWL_OK);
    }
    (void)take_and_lose(s, "mail", "w1");
    expect_number(reap_one(s)->reason, PAWL_REASON_POISON); /* six in all */
    expect_state(s, id, PAWL_FAILED);
}

/* RES-5: since enqueue or redrive */
static void redrive_starts_the_count_again(struct stage *s)
{
    set_bounds(s, "mail", 3, 2);
    pawl_id id = put(s, "mail");
    expect_number(lose(s, "mail")->state, PAWL_READY);
    expect_number(lose(s, "mail")->reason, PAWL_REASON_POISON);
    expect_code(redrive(s, id).code, PAWL_OK);
    expect_number(look(s, id)->lost_leases, 0);
    const pawl_reaped *row = lose(s, "mail");
    expect_number(row->state, PAWL_READY);
    expect_number(look(s, id)->lost_leases, 1);
    expect_number(lose(s, "mail")->reason, PAWL_REASON_POISON);
    expect_ledger(s, id,
                  "ZOMBIE_REQUEUE expired, FAILED poison, ZOMBIE_REQUEUE expired, FAILED poison");
}

/* RES-5, redrive: the row of losses starts again too, so the first one is due at once */
static void redrive_starts_the_row_again(struct stage *s)
{
    pawl_enqueue_row row = row_for("mail");
    row.backoff_base_ms = HOUR;
    row.backoff_max_ms = HOUR;
    for (int i = 0; i < 5; i++) {
        pawl_id id = put_row(s, &row);
        (void)take_and_lose(s, "mail", "w1");
        (void)take(s, "mail", "w1");
        expect_code(cancel(s, id).code, PAWL_OK);
        age(s, LEASE + SECOND);
        expect_number(reap_one(s)->state, PAWL_FAILED); /* its second loss in a row */
        expect_code(redrive(s, id).code, PAWL_OK);
        (void)take_and_lose(s, "mail", "w1");
        expect_true(reap_one(s)->due_at.us <= now(s).us);
        expect_code(succeed(s, take(s, "mail", "w1")).code, PAWL_OK);
    }
}

static const struct suite_case cases[] = {
    CASE(poison_at_exactly_the_bound),       CASE(ten_lost_leases_are_poison),
    CASE(one_lost_lease_may_be_poison),      CASE(a_claim_finds_poison_too),
    CASE(the_first_loss_is_due_at_once),     CASE(the_second_loss_in_a_row_waits),
    CASE(a_job_that_waits_is_not_given_out), CASE(a_nack_ends_the_row_of_losses),
    CASE(redrive_starts_the_count_again),    CASE(redrive_starts_the_row_again),
};

SUITE_GROUP(lost);

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * suite_prune.c - forgetting histories that are old enough.
 * Owns:  the cases about retention: what goes, when, and what never does.
 * Never: touches a job in another way than its users would.
 */
#include "store/helpers.h"

static void set_retention(struct stage *s, const char *queue, int64_t keep_succeeded_ms,
                          int64_t keep_failed_ms)
{
    pawl_queue_settings settings = settings_of(s, queue);
    settings.keep_succeeded_ms = keep_succeeded_ms;
    settings.keep_failed_ms = keep_failed_ms;
    set_settings(s, queue, &settings);
}

static bool is_ledger_gone(struct stage *s, pawl_id id)
{
    pawl_attempt row;
    size_t count = 0;
    pawl_err err;
    return pawl_attempts(s->store, &id, 0, &row, 1, &count, &err) == PAWL_GONE;
}

/* OL-APPEND-ONLY: prune is the one way in which rows go */
static void histories_go_after_their_time(struct stage *s)
{
    set_retention(s, "mail", HOUR, 2 * HOUR);
    pawl_id done = put_succeeded(s, "mail");
    pawl_id dead = put_failed(s, "mail");
    age(s, HOUR - 10 * SECOND);
    expect_number(prune(s), 0);
    expect_state(s, done, PAWL_SUCCEEDED);
    age(s, 20 * SECOND);
    expect_number(prune(s), 1);
    expect_true(is_gone(s, done));
    expect_true(is_ledger_gone(s, done));
    expect_state(s, dead, PAWL_FAILED);
    age(s, HOUR);
    expect_number(prune(s), 1);
    expect_true(is_gone(s, dead));
    expect_true(is_ledger_gone(s, dead));
    expect_number(list(s, NULL).count, 0);
    expect_number(prune(s), 0);
}

static void the_default_is_a_week_and_a_month(struct stage *s)
{
    pawl_id done = put_succeeded(s, "mail");
    pawl_id dead = put_failed(s, "mail");
    age(s, 7 * DAY - MINUTE);
    expect_number(prune(s), 0);
    age(s, 2 * MINUTE);
    expect_number(prune(s), 1);
    expect_true(is_gone(s, done));
    age(s, 23 * DAY - 2 * MINUTE);
    expect_number(prune(s), 0);
    age(s, 2 * MINUTE);
    expect_number(prune(s), 1);
    expect_true(is_gone(s, dead));
}

static void each_queue_has_its_own_retention(struct stage *s)
{
    set_retention(s, "brief", HOUR, HOUR);
    set_retention(s, "ever", PAWL_FOREVER, PAWL_FOREVER);
    pawl_id brief = put_succeeded(s, "brief");
    pawl_id ever = put_succeeded(s, "ever");
    pawl_id ever_dead = put_failed(s, "ever");
    pawl_id usual = put_succeeded(s, "usual");
    age(s, 2 * HOUR);
    expect_number(prune(s), 1);
    expect_true(is_gone(s, brief));
    expect_state(s, usual, PAWL_SUCCEEDED);
    age(s, 3000 * DAY);
    expect_number(prune(s), 1);
    expect_true(is_gone(s, usual));
    expect_state(s, ever, PAWL_SUCCEEDED);
    expect_state(s, ever_dead, PAWL_FAILED);
    expect_ledger(s, ever, "DISPATCHED");
}

/* Q-AT-LEAST-ONCE, Q-DURABLE: live jobs are never touched */
static void live_jobs_are_never_pruned(struct stage *s)
{
    set_retention(s, "mail", HOUR, HOUR);
    pawl_id running = put(s, "mail");
    (void)take_for(s, "mail", "w1", 10 * DAY);
    pawl_id ready = put(s, "mail");
    expect_code(snooze_for(s, take(s, "mail", "w1"), 0).code, PAWL_OK);
    age(s, 2 * DAY);
    expect_number(prune(s), 0);
    expect_state(s, running, PAWL_IN_FLIGHT);
    expect_ledger(s, ready, "RETRYABLE snooze");
    age(s, 9 * DAY); /* and an expired lease is a live job too */
    expect_number(prune(s), 0);
    expect_state(s, running, PAWL_IN_FLIGHT);
}

/* Q-DEAD-LETTER: a redriven job is live; its time begins when it ends again */
static void a_redriven_job_is_kept_from_its_last_end(struct stage *s)
{
    set_retention(s, "mail", 2 * HOUR, 2 * HOUR);
    pawl_id id = put_failed(s, "mail");
    age(s, HOUR);
    expect_code(redrive(s, id).code, PAWL_OK);
    age(s, 2 * HOUR);
    expect_number(prune(s), 0);
    expect_code(succeed(s, take(s, "mail", "w1")).code, PAWL_OK);
    age(s, HOUR);
    expect_number(prune(s), 0);
    expect_ledger(s, id, "FAILED fatal, DISPATCHED");
    age(s, HOUR + MINUTE);
    expect_number(prune(s), 1);
}

static void a_discarded_job_goes_with_the_failed(struct stage *s)
{
    set_retention(s, "mail", HOUR, 2 * HOUR);
    pawl_id id = put_failed(s, "mail");
    age(s, HOUR);
    expect_code(discard(s, id).code, PAWL_OK);
    age(s, HOUR - MINUTE);
    expect_number(prune(s), 0);
    age(s, 2 * MINUTE);
    expect_number(prune(s), 1);
    expect_true(is_gone(s, id));
}

static void prune_keeps_to_its_limit(struct stage *s)
{
    for (int i = 0; i < 5; i++)
        (void)put_succeeded(s, "mail");
    age(s, 8 * DAY);
    const int64_t left[] = {3, 1, 0};
    for (size_t i = 0; i < 3; i++) {
        size_t count = 0;
        pawl_err err;
        expect_code(pawl_prune(s->store, 2, &count, &err), PAWL_OK);
        expect_number(count, i < 2 ? 2 : 1);
        expect_number(list(s, NULL).count, left[i]);
    }
}

static void a_pruned_job_is_gone_for_every_verb(struct stage *s)
{
    pawl_id id = put_failed(s, "mail");
    age(s, 31 * DAY);
    expect_number(prune(s), 1);
    expect_code(cancel(s, id).code, PAWL_GONE);
    expect_code(redrive(s, id).code, PAWL_GONE);
    expect_code(discard(s, id).code, PAWL_GONE);
    expect_true(is_gone(s, id));
    expect_nothing(s, "mail");
}

static const struct suite_case cases[] = {
    CASE(histories_go_after_their_time),
    CASE(the_default_is_a_week_and_a_month),
    CASE(each_queue_has_its_own_retention),
    CASE(live_jobs_are_never_pruned),
    CASE(a_redriven_job_is_kept_from_its_last_end),
    CASE(a_discarded_job_goes_with_the_failed),
    CASE(prune_keeps_to_its_limit),
    CASE(a_pruned_job_is_gone_for_every_verb),
};

SUITE_GROUP(prune);

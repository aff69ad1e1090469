/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * suite_queue.c - a queue's settings, and pause and resume.
 * Owns:  the cases about setting, telling and obeying them while jobs are about.
 * Never: checks what the settings check refuses in detail: that is policy's own test.
 */
#include "store/helpers.h"

static void expect_same_settings(const pawl_queue_settings *a, const pawl_queue_settings *b)
{
    expect_number(a->lease_ms, b->lease_ms);
    expect_number(a->execution_timeout_ms, b->execution_timeout_ms);
    expect_number(a->max_retries, b->max_retries);
    expect_number(a->max_lost_leases, b->max_lost_leases);
    expect_number(a->backoff_base_ms, b->backoff_base_ms);
    expect_number(a->backoff_max_ms, b->backoff_max_ms);
    expect_number(a->keep_succeeded_ms, b->keep_succeeded_ms);
    expect_number(a->keep_failed_ms, b->keep_failed_ms);
}

/* RES-1, RES-5, Q-RETRY-BOUND, Q-BACKOFF */
static void a_queue_begins_with_the_defaults(struct stage *s)
{
    pawl_queue_settings settings = settings_of(s, "mail");
    pawl_queue_settings defaults;
    pawl_queue_settings_init(&defaults);
    expect_same_settings(&settings, &defaults);
    expect_true(!settings.is_paused);
    expect_number(settings.lease_ms, 30 * SECOND);
    expect_number(settings.max_retries, 3);
    expect_number(settings.max_lost_leases, 10);
    expect_number(settings.backoff_base_ms, 500);
    expect_number(settings.backoff_max_ms, 30 * SECOND);
    expect_number(settings.keep_succeeded_ms, 7 * DAY);
    expect_number(settings.keep_failed_ms, 30 * DAY);
}

static void settings_are_kept_per_queue(struct stage *s)
{
    pawl_queue_settings wanted = {.lease_ms = 45 * SECOND,
                                  .execution_timeout_ms = 7 * MINUTE,
                                  .max_retries = 8,
                                  .max_lost_leases = 4,
                                  .backoff_base_ms = 250,
                                  .backoff_max_ms = MINUTE,
                                  .keep_succeeded_ms = PAWL_FOREVER,
                                  .keep_failed_ms = 3 * DAY};
    set_settings(s, "mail", &wanted);
    pawl_queue_settings told = settings_of(s, "mail");
    expect_same_settings(&told, &wanted);
    pawl_queue_settings other = settings_of(s, "print");
    expect_number(other.lease_ms, LEASE);

    wanted.lease_ms = 50 * SECOND;
    wanted.execution_timeout_ms = PAWL_DEFAULT;
    set_settings(s, "mail", &wanted);
    told = settings_of(s, "mail");
    expect_same_settings(&told, &wanted);
}

/* RES-1, RULE-020-002: the profiles, per queue, changed while running */
static void a_claim_goes_by_the_settings_of_now(struct stage *s)
{
    const pawl_lease_profile profiles[] = {PAWL_LEASE_SHORT, PAWL_LEASE_STANDARD, PAWL_LEASE_HEAVY,
                                           PAWL_LEASE_EXTERNAL};
    const int64_t leases[] = {5 * SECOND, 30 * SECOND, 60 * SECOND, 120 * SECOND};
    for (size_t i = 0; i < COUNT_OF(profiles); i++) {
        int64_t lease_ms = 0;
        pawl_err err;
        expect_code(pawl_lease_profile_ms(profiles[i], &lease_ms, &err), PAWL_OK);
        set_lease(s, "mail", lease_ms);
        put(s, "mail");
        const pawl_job *job = take(s, "mail", "w1");
        expect_near(s, job->expires_at, leases[i]);
        expect_near(s, job->run_until, 3 * leases[i]);
        expect_number(job->lease_ms, leases[i]);
    }
}

/* RES-1: from 100 ms */
static void the_shortest_lease_is_granted(struct stage *s)
{
    put(s, "mail");
    const pawl_job *job = take_for(s, "mail", "w1", PAWL_LEASE_MIN_MS);
    expect_number(job->lease_ms, PAWL_LEASE_MIN_MS);
    expect_number(job->expires_at.us - job->claimed_at.us, PAWL_LEASE_MIN_MS * 1000);
}

/* The bound that the job tells is the bound that holds, whenever the queue's was changed. */
static void the_bound_told_is_the_bound_that_holds(struct stage *s)
{
    set_bounds(s, "mail", 2, 10);
    pawl_id id = put(s, "mail");
    set_bounds(s, "mail", 1, 10);
    int64_t nacks = 0;
    while (look(s, id)->state == PAWL_READY) {
        int64_t told = look(s, id)->max_retries;
        pawl_settled settled = retry_in(s, take(s, "mail", "w1"), 0);
        expect_code(settled.code, PAWL_OK);
        nacks++;
        expect_number(settled.state, nacks > told ? PAWL_FAILED : PAWL_READY);
    }
}

static void settings_that_are_refused_change_nothing(struct stage *s)
{
    set_lease(s, "mail", 45 * SECOND);
    pawl_queue_settings before = settings_of(s, "mail");
    const int64_t bad[] = {0, -1, PAWL_LEASE_MIN_MS - 1, PAWL_DURATION_MAX_MS + 1};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        pawl_queue_settings settings = before;
        settings.lease_ms = bad[i];
        settings.max_retries = 77;
        pawl_err err;
        expect_code(pawl_queue_set(s->store, "mail", &settings, &err), PAWL_INVALID);
        pawl_queue_settings after = settings_of(s, "mail");
        expect_same_settings(&after, &before);
    }
}

/* ---------------------------------------------------------------- pause */

/* Leases already granted go on; enqueue goes on. */
static void a_pause_stops_claims_only(struct stage *s)
{
    put(s, "mail");
    const pawl_job *job = take(s, "mail", "w1");
    pause_queue(s, "mail", true);
    expect_true(settings_of(s, "mail").is_paused);
    pawl_id id = put(s, "mail");
    expect_state(s, id, PAWL_READY);
    age(s, 20 * SECOND);
    expect_code(renew(s, job).code, PAWL_OK);
    expect_nothing(s, "mail");
    expect_code(retry_in(s, job, 0).code, PAWL_OK);
    expect_nothing(s, "mail");
    expect_code(cancel(s, id).code, PAWL_OK);
    expect_code(redrive(s, id).code, PAWL_OK);
    expect_nothing(s, "mail");
    pause_queue(s, "mail", false);
    expect_true(!settings_of(s, "mail").is_paused);
    expect_number(take_up_to(s, "mail", "w1", 10).count, 2);
}

static void a_pause_outlives_a_change_of_settings(struct stage *s)
{
    put(s, "mail");
    pause_queue(s, "mail", true);
    pause_queue(s, "mail", true); /* twice is once */
    pawl_queue_settings settings = settings_of(s, "mail");
    settings.is_paused = false; /* ignored by queue_set */
    settings.lease_ms = MINUTE;
    set_settings(s, "mail", &settings);
    expect_true(settings_of(s, "mail").is_paused);
    expect_nothing(s, "mail");

    pause_queue(s, "mail", false);
    settings.is_paused = true;
    set_settings(s, "mail", &settings);
    expect_true(!settings_of(s, "mail").is_paused);
    expect_number(take(s, "mail", "w1")->lease_ms, MINUTE); /* nor did the pause touch the rest */
}

static const struct suite_case cases[] = {
    CASE(a_queue_begins_with_the_defaults),
    CASE(settings_are_kept_per_queue),
    CASE(a_claim_goes_by_the_settings_of_now),
    CASE(the_shortest_lease_is_granted),
    CASE(the_bound_told_is_the_bound_that_holds),
    CASE(settings_that_are_refused_change_nothing),
    CASE(a_pause_stops_claims_only),
    CASE(a_pause_outlives_a_change_of_settings),
};

SUITE_GROUP(queue);

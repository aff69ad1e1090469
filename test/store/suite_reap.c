/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * suite_reap.c - recovering jobs whose lease has expired.
 * Owns:  the cases about what the reaper finds, in which order, and what it says of it.
 * Never: counts losses: see suite_lost.c.
 */
#include "store/helpers.h"

/* RULE-020-021, RULE-020-023 (how long overdue), RES-4, Q-TTL, FR-004, Q-AT-LEAST-ONCE */
static void an_expired_lease_is_recovered(struct stage *s)
{
    pawl_id id = put(s, "mail");
    const pawl_job *job = take(s, "mail", "w1");
    age(s, LEASE + 5 * SECOND);
    const pawl_reaped *row = reap_one(s);
    expect_id(row->job, id);
    assert_string_equal(row->queue, "mail");
    assert_string_equal(row->worker, "w1");
    expect_number(row->lease_version, job->lease_version);
    expect_number(row->state, PAWL_READY);
    expect_number(row->reason, PAWL_REASON_EXPIRED);
    expect_true(row->due_at.us <= now(s).us);
    expect_true(row->overdue_ms >= 5 * SECOND && row->overdue_ms <= 5 * SECOND + s->kind->slack_ms);

    const pawl_job *seen = look(s, id);
    expect_number(seen->state, PAWL_READY);
    expect_number(seen->lost_leases, 1);
    expect_number(seen->retries, 0);
    assert_string_equal(seen->worker, "");
    expect_number(seen->expires_at.us, 0);
    expect_number(seen->claimed_at.us, 0);
    expect_number(mine(s, "w1").count, 0);
    expect_code(succeed(s, job).code, PAWL_STALE); /* the token is cleared too */
    expect_ledger(s, id, "ZOMBIE_REQUEUE expired");
    expect_id(take(s, "mail", "w2")->id, id);
}

/* RES-12, OL-APPEND-ONLY */
static void the_row_names_the_lease_that_was_lost(struct stage *s)
{
    pawl_id id = put(s, "mail");
    expect_code(release(s, take(s, "mail", "w0")), PAWL_OK);
    (void)take(s, "mail", "w1"); /* version 2 */
    age(s, LEASE + 5 * SECOND);
    (void)reap_one(s);
    size_t count = 0;
    const pawl_attempt *row = ledger(s, id, &count);
    expect_number(count, 1);
    expect_number(row->ended_by, PAWL_ENDED_BY_EXPIRY);
    expect_number(row->lease_version, 2);
    assert_string_equal(row->worker, "w1");
    expect_near(s, row->started_at, -(LEASE + 5 * SECOND));
    expect_near(s, row->finished_at, 0);
    assert_string_equal(row->error_code, "");
}

/* Q-ONE-LEASE: a valid lease is nobody else's business */
static void a_valid_lease_is_left_alone(struct stage *s)
{
    pawl_id id = put(s, "mail");
    put(s, "mail");
    (void)take(s, "mail", "w1");
    age(s, LEASE - 2 * SECOND);
    struct picture before = picture_of(s, id);
    expect_number(reap_up_to(s, 10).count, 0);
    expect_unchanged(s, &before);
}

/* RES-3 */
static void a_lease_is_over_at_its_expiry(struct stage *s)
{
    pawl_id id = put(s, "mail");
    (void)take(s, "mail", "w1");
    age(s, LEASE - 1);
    expect_number(reap_up_to(s, 10).count, 0);
    age(s, 1);
    const pawl_reaped *row = reap_one(s);
    expect_id(row->job, id);
    expect_number(row->overdue_ms, 0);
}

/* RES-4: exactly one row for each expiry */
static void an_expiry_is_recovered_once(struct stage *s)
{
    pawl_id id = put(s, "mail");
    (void)take_and_lose(s, "mail", "w1");
    (void)reap_one(s);
    expect_number(reap_up_to(s, 10).count, 0);
    age(s, HOUR);
    expect_number(reap_up_to(s, 10).count, 0);
    const pawl_job *job = take(s, "mail", "w2");
    expect_ledger(s, id, "ZOMBIE_REQUEUE expired");
    expect_number(reap_up_to(s, 10).count, 0); /* the new lease is valid */
    expect_code(succeed(s, job).code, PAWL_OK);
    expect_ledger(s, id, "ZOMBIE_REQUEUE expired, DISPATCHED");
}

/* A lease renewed in time is the lease that counts. */
static void a_renewed_lease_expires_later(struct stage *s)
{
    pawl_id id = put(s, "mail");
    const pawl_job *job = take(s, "mail", "w1");
    age(s, 20 * SECOND);
    expect_code(renew(s, job).code, PAWL_OK);
    age(s, 20 * SECOND);
    expect_number(reap_up_to(s, 10).count, 0);
    age(s, 11 * SECOND);
    expect_id(reap_one(s)->job, id);
}

static void settled_and_released_jobs_are_not_recovered(struct stage *s)
{
    (void)put_succeeded(s, "mail");
    (void)put_failed(s, "mail");
    put(s, "mail");
    expect_code(release(s, take(s, "mail", "w1")), PAWL_OK);
    expect_code(retry_in(s, take(s, "mail", "w1"), HOUR).code, PAWL_OK);
    age(s, 2 * LEASE);
    expect_number(reap_up_to(s, 10).count, 0);
}

/* Oldest first, no more than asked, and the rest the next time. */
static void the_reaper_keeps_to_its_limit_oldest_first(struct stage *s)
{
    pawl_id ids[4];
    const int64_t leases[] = {40 * SECOND, 10 * SECOND, 30 * SECOND, 20 * SECOND};
    for (size_t i = 0; i < 4; i++) {
        ids[i] = put(s, "mail");
        expect_id(take_for(s, "mail", "w1", leases[i])->id, ids[i]);
    }
    age(s, MINUTE);
    struct reaped first = reap_up_to(s, 3);
    expect_number(first.count, 3);
    expect_id(first.rows[0].job, ids[1]);
    expect_id(first.rows[1].job, ids[3]);
    expect_id(first.rows[2].job, ids[2]);
    expect_state(s, ids[0], PAWL_IN_FLIGHT);
    struct reaped second = reap_up_to(s, 3);
    expect_number(second.count, 1);
    expect_id(second.rows[0].job, ids[0]);
}

static void the_reaper_finds_every_shard_and_queue(struct stage *s)
{
    const char *const queues[] = {"a", "b", "c"};
    for (size_t i = 0; i < 12; i++)
        put(s, queues[i % 3]);
    for (size_t i = 0; i < 3; i++)
        expect_number(take_up_to(s, queues[i], "w1", 10).count, 4);
    age(s, LEASE + SECOND);
    size_t total = 0;
    for (int i = 0; i < 4; i++) {
        size_t count = reap_up_to(s, 3).count;
        expect_number(count, 3); /* full while there is more */
        total += count;
    }
    expect_number(total, 12);
    expect_number(reap_up_to(s, 3).count, 0);
    for (size_t i = 0; i < 3; i++)
        expect_number(stats_of(s, queues[i]).ready, 4);
}

/* FR-004: also of a paused queue, whose leases go on as any others */
static void a_paused_queue_is_recovered_too(struct stage *s)
{
    pawl_id id = put(s, "mail");
    (void)take_and_lose(s, "mail", "w1");
    pause_queue(s, "mail", true);
    expect_id(reap_one(s)->job, id);
    expect_nothing(s, "mail");
}

static const struct suite_case cases[] = {
    CASE(an_expired_lease_is_recovered),
    CASE(the_row_names_the_lease_that_was_lost),
    CASE(a_valid_lease_is_left_alone),
    CASE_ON(EXACT_CLOCK, a_lease_is_over_at_its_expiry),
    CASE(an_expiry_is_recovered_once),
    CASE(a_renewed_lease_expires_later),
    CASE(settled_and_released_jobs_are_not_recovered),
    CASE_ON(ONE_SHARD, the_reaper_keeps_to_its_limit_oldest_first),
    CASE(the_reaper_finds_every_shard_and_queue),
    CASE(a_paused_queue_is_recovered_too),
};

SUITE_GROUP(reap);

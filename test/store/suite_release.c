/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * suite_release.c - giving work back unstarted.
 * Owns:  the cases about what a release leaves, and what it never counts.
 * Never: checks who may release: see suite_fence.c.
 */
#include "store/helpers.h"

/* RES-12, RULE-020-030 */
static void a_released_job_is_as_it_was(struct stage *s)
{
    pawl_id id = put(s, "mail");
    const pawl_job *job = take(s, "mail", "w1");
    age(s, 10 * SECOND);
    expect_code(release(s, job), PAWL_OK);

    const pawl_job *seen = look(s, id);
    expect_number(seen->state, PAWL_READY);
    expect_number(seen->retries, 0);
    expect_number(seen->lost_leases, 0);
    expect_number(seen->lease_version, 1);
    assert_string_equal(seen->worker, "");
    expect_number(seen->claimed_at.us, 0);
    expect_number(seen->expires_at.us, 0);
    expect_number(seen->run_until.us, 0);
    expect_true(seen->due_at.us <= now(s).us);
    expect_ledger(s, id, "");                 /* no row */
    expect_id(take(s, "mail", "w2")->id, id); /* at once */
}

/* A repeated release is STALE and harmless. */
static void a_repeated_release_is_stale(struct stage *s)
{
    put(s, "mail");
    const pawl_job *job = take(s, "mail", "w1");
    expect_code(release(s, job), PAWL_OK);
    struct picture before = picture_of(s, job->id);
    expect_code(release(s, job), PAWL_STALE);
    expect_unchanged(s, &before);
    const pawl_job *next = take(s, "mail", "w1");
    expect_code(release(s, job), PAWL_STALE);
    expect_code(succeed(s, next).code, PAWL_OK);
    expect_code(release(s, next), PAWL_STALE);
}

/* RES-5: a release is no lost lease, however often */
static void releases_never_make_poison(struct stage *s)
{
    set_bounds(s, "mail", 0, 1);
    pawl_id id = put(s, "mail");
    for (int i = 0; i < 12; i++)
        expect_code(release(s, take(s, "mail", "w1")), PAWL_OK);
    expect_state(s, id, PAWL_READY);
    expect_number(look(s, id)->lost_leases, 0);
    expect_number(look(s, id)->lease_version, 12);
    expect_ledger(s, id, "");
}

/* Counters that others have earned stay. */
static void a_release_keeps_the_counters(struct stage *s)
{
    pawl_id id = put(s, "mail");
    (void)take_and_lose(s, "mail", "w1"); /* one lost lease */
    expect_code(retry_in(s, take(s, "mail", "w1"), 0).code, PAWL_OK);
    expect_code(release(s, take(s, "mail", "w1")), PAWL_OK);
    expect_number(look(s, id)->retries, 1);
    expect_number(look(s, id)->lost_leases, 1);
    expect_ledger(s, id, "ZOMBIE_REQUEUE expired, RETRYABLE error");
}

static void a_batch_is_released_at_once(struct stage *s)
{
    for (int i = 0; i < 3; i++)
        put(s, "mail");
    struct batch batch = take_up_to(s, "mail", "w1", 3);
    expect_number(batch.count, 3);
    pawl_lease leases[4];
    for (size_t i = 0; i < 3; i++)
        leases[i] = lease_of(batch.jobs[i]);
    leases[3] = leases[0]; /* twice in one call */
    pawl_code codes[4];
    pawl_err err;
    expect_code(pawl_release(s->store, "w1", leases, 4, codes, &err), PAWL_OK);
    for (size_t i = 0; i < 3; i++)
        expect_code(codes[i], PAWL_OK);
    expect_code(codes[3], PAWL_STALE);
    expect_number(take_up_to(s, "mail", "w2", 10).count, 3);
}

static const struct suite_case cases[] = {
    CASE(a_released_job_is_as_it_was), CASE(a_repeated_release_is_stale),
    CASE(releases_never_make_poison),  CASE(a_release_keeps_the_counters),
    CASE(a_batch_is_released_at_once),
};

SUITE_GROUP(release);

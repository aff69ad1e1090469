/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * suite_key_view.c - what a store tells of ordering keys: the key, the fence, lists by key, how far
 *                    a dedupe key reaches, and statistics.
 * Owns:  the cases about these.
 * Never: asserts who waits for whom: see suite_keys.c.
 */
#include "store/helpers.h"

#include <string.h>

static pawl_enqueue_row row_of(const char *key)
{
    pawl_enqueue_row row = row_for("mail");
    row.ordering_key = key;
    return row;
}

static pawl_id put_keyed(struct stage *s, const char *key)
{
    pawl_enqueue_row row = row_of(key);
    return put_row(s, &row);
}

/* ---------------------------------------------------------------- fences */

/* Every claim of a job of the key, of whichever, has a higher fence than all before. */
static void a_fence_rises_with_every_claim_of_a_key(struct stage *s)
{
    pawl_id a = put_keyed(s, "k");
    (void)put_keyed(s, "k");
    int64_t last = 0;
    const pawl_job *job = NULL;
    for (int i = 0; i < 8; i++) {
        job = take(s, "mail", "w1");
        expect_true(job->fence > last);
        last = job->fence;
        switch (i) {
        case 0:
            expect_code(release(s, job), PAWL_OK);
            break;
        case 1:
            expect_code(retry_in(s, job, 0).code, PAWL_OK);
            break;
        case 2:
            expect_code(snooze_for(s, job, 0).code, PAWL_OK);
            break;
        case 3:
            age(s, LEASE + SECOND); /* lost: found by the next claim */
            break;
        case 4:
            expect_code(fail_for_good(s, job).code, PAWL_OK);
            break;
        case 5: /* the second job of the key */
            expect_true(pawl_id_compare(&job->id, &a) != 0);
            expect_code(succeed(s, job).code, PAWL_OK);
            expect_code(redrive(s, a).code, PAWL_OK);
            break;
        case 6:
            expect_id(job->id, a);
            expect_code(succeed(s, job).code, PAWL_OK);
            (void)put_keyed(s, "k"); /* nobody else is there: the fence rises all the same */
            break;
        default:
            break;
        }
    }
}

/* A fence is of a lease: told while it is held, to its holder and to those who look. */
static void a_fence_is_told_with_its_lease(struct stage *s)
{
    pawl_id a = put_keyed(s, "k");
    expect_number(look(s, a)->fence, 0);
    const pawl_job *job = take(s, "mail", "w1");
    expect_true(job->fence > 0);
    expect_number(look(s, a)->fence, job->fence);
    expect_code(renew(s, job).code, PAWL_OK);
    struct batch held = mine(s, "w1");
    expect_number(held.count, 1);
    expect_number(held.jobs[0]->fence, job->fence);
    assert_string_equal(held.jobs[0]->ordering_key, "k");
    struct batch listed = list(s, NULL);
    expect_number(listed.count, 1);
    expect_number(listed.jobs[0]->fence, job->fence);
    expect_code(release(s, job), PAWL_OK);
    expect_number(look(s, a)->fence, 0);
    expect_code(succeed(s, take(s, "mail", "w1")).code, PAWL_OK);
    expect_number(look(s, a)->fence, 0);
}

static void a_job_without_a_key_has_no_fence(struct stage *s)
{
    pawl_id a = put(s, "mail");
    (void)put_keyed(s, "");
    struct batch batch = take_up_to(s, "mail", "w1", 10);
    expect_number(batch.count, 2);
    for (size_t i = 0; i < 2; i++) {
        expect_number(batch.jobs[i]->fence, 0);
        assert_string_equal(batch.jobs[i]->ordering_key, "");
    }
    expect_number(look(s, a)->fence, 0);
}

/* ---------------------------------------------------------------- looking */

static void a_key_is_told_with_its_job(struct stage *s)
{
    pawl_id a = put_keyed(s, "k\xc3\xa4 1");
    pawl_id b = put_keyed(s, "k\xc3\xa4 1");
    assert_string_equal(look(s, a)->ordering_key, "k\xc3\xa4 1");
    assert_string_equal(look(s, b)->ordering_key, "k\xc3\xa4 1");
    const pawl_job *job = take(s, "mail", "w1");
    assert_string_equal(job->ordering_key, "k\xc3\xa4 1");
    expect_code(fail_for_good(s, job).code, PAWL_OK);
    assert_string_equal(look(s, a)->ordering_key, "k\xc3\xa4 1");
    struct batch listed = list(s, NULL);
    for (size_t i = 0; i < listed.count; i++)
        assert_string_equal(listed.jobs[i]->ordering_key, "k\xc3\xa4 1");
}

static void jobs_are_listed_by_key(struct stage *s)
{
    pawl_id a = put_keyed(s, "k");
    pawl_id b = put_keyed(s, "k");
    pawl_id c = put_keyed(s, "k");
    (void)put_keyed(s, "kk");
    (void)put(s, "mail");
    pawl_enqueue_row row = row_of("k");
    row.queue = "print";
    (void)put_row(s, &row);
    expect_number(cancel(s, c).state, PAWL_FAILED);
    struct batch taken = take_up_to(s, "mail", "w1", 10);
    expect_number(taken.count, 3);
    pawl_filter filter = {.queue = "mail", .ordering_key = "k"};
    struct batch batch = list(s, &filter);
    expect_batch(batch, a, b, c);
    filter.states = 1u << PAWL_READY;
    batch = list(s, &filter);
    expect_batch(batch, b);
    filter.states = 1u << PAWL_FAILED;
    batch = list(s, &filter);
    expect_batch(batch, c);
    filter = (pawl_filter){.queue = "mail", .ordering_key = "k", .worker = "w1"};
    batch = list(s, &filter);
    expect_batch(batch, a);
    filter = (pawl_filter){.queue = "mail", .ordering_key = "none"};
    expect_number(list(s, &filter).count, 0);
    filter.queue = "nowhere";
    expect_number(list(s, &filter).count, 0);
}

static void jobs_are_changed_by_key(struct stage *s)
{
    pawl_id a = put_keyed(s, "k");
    pawl_id b = put_keyed(s, "k");
    pawl_id other = put_keyed(s, "other");
    pawl_id plain = put(s, "mail");
    const pawl_filter filter = {.queue = "mail", .ordering_key = "k"};
    size_t count = 0;
    pawl_err err;
    expect_code(pawl_cancel_where(s->store, &filter, 10, &count, &err), PAWL_OK);
    expect_number(count, 2);
    expect_state(s, a, PAWL_FAILED);
    expect_state(s, b, PAWL_FAILED);
    expect_state(s, other, PAWL_READY);
    expect_number(cancel(s, other).state, PAWL_FAILED);
    expect_number(cancel(s, plain).state, PAWL_FAILED);
    expect_code(pawl_discard_where(s->store, &filter, 1, &count, &err), PAWL_OK);
    expect_number(count, 1);
    expect_code(pawl_redrive_where(s->store, &filter, 10, &count, &err), PAWL_OK);
    expect_number(count, 1); /* the one that was not discarded */
    expect_state(s, b, PAWL_READY);
    expect_state(s, other, PAWL_FAILED);
    expect_state(s, plain, PAWL_FAILED);
}

/* ---------------------------------------------------------------- dedupe keys */

/* A dedupe key is unique among the live jobs of one ordering key, or of none. */
static void a_dedupe_key_is_one_within_its_ordering_key(struct stage *s)
{
    pawl_enqueue_row row = row_of("k");
    row.dedupe_key = "d";
    pawl_id a = put_row(s, &row);
    pawl_enqueued again = try_put(s, &row);
    expect_code(again.code, PAWL_DUPLICATE);
    expect_id(again.id, a);
    row.ordering_key = "other";
    pawl_id b = put_row(s, &row);
    row.ordering_key = NULL;
    pawl_id c = put_row(s, &row);
    again = try_put(s, &row);
    expect_code(again.code, PAWL_DUPLICATE);
    expect_id(again.id, c);
    row.ordering_key = "other";
    again = try_put(s, &row);
    expect_code(again.code, PAWL_DUPLICATE);
    expect_id(again.id, b);
}

/* A job that waits behind others holds its dedupe key, too. */
static void a_dedupe_key_is_held_while_waiting(struct stage *s)
{
    (void)put_keyed(s, "k");
    pawl_enqueue_row row = row_of("k");
    row.dedupe_key = "d";
    pawl_id b = put_row(s, &row);
    expect_code(try_put(s, &row).code, PAWL_DUPLICATE);
    expect_number(cancel(s, b).state, PAWL_FAILED);
    (void)put_row(s, &row);
    expect_code(redrive(s, b).code, PAWL_DUPLICATE);
}

/* ---------------------------------------------------------------- statistics */

/* A job that waits behind others is due or not by its own time alone. */
static void who_waits_behind_its_key_is_counted_as_due(struct stage *s)
{
    (void)put_keyed(s, "k");
    (void)put_keyed(s, "k");
    (void)take(s, "mail", "w1");
    age(s, 10 * SECOND);
    (void)put_keyed(s, "other"); /* claimable, and later than the one that waits */
    age(s, 5 * SECOND);
    pawl_stats stats = stats_of(s, "mail");
    expect_number(stats.ready, 2);
    expect_number(stats.delayed, 0);
    expect_true(stats.oldest_due_ms >= 15 * SECOND &&
                stats.oldest_due_ms <= 15 * SECOND + s->kind->slack_ms);
}

static const struct suite_case cases[] = {
    CASE(a_fence_rises_with_every_claim_of_a_key),
    CASE(a_fence_is_told_with_its_lease),
    CASE(a_job_without_a_key_has_no_fence),
    CASE(a_key_is_told_with_its_job),
    CASE(jobs_are_listed_by_key),
    CASE(jobs_are_changed_by_key),
    CASE(a_dedupe_key_is_one_within_its_ordering_key),
    CASE(a_dedupe_key_is_held_while_waiting),
    CASE(who_waits_behind_its_key_is_counted_as_due),
};

SUITE_GROUP(key_view);

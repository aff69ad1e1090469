/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * suite_keys.c - ordering keys: jobs of one key start one at a time, in the order in which they
 *                came.
 * Owns:  the cases about who waits for whom, and about what lets the next one through.
 * Never: asserts where the first of a key stands among other jobs of its priority, but where it
 *        never waited: that is the store's to choose.
 */
#include "store/helpers.h"

#include <stdio.h>
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

static pawl_id put_keyed_after(struct stage *s, const char *key, int64_t delay_ms)
{
    pawl_enqueue_row row = row_of(key);
    row.delay_ms = delay_ms;
    return put_row(s, &row);
}

/* The next job is this one, and it succeeds. */
static void finish_next(struct stage *s, pawl_id wanted)
{
    const pawl_job *job = take(s, "mail", "w1");
    expect_id(job->id, wanted);
    expect_code(succeed(s, job).code, PAWL_OK);
}

/* ---------------------------------------------------------------- order and exclusion */

/* RES-7: one at a time, however much a claim asks for, in the order of their arrival. */
static void jobs_of_a_key_start_one_at_a_time(struct stage *s)
{
    pawl_id a = put_keyed(s, "k");
    pawl_id b = put_keyed(s, "k");
    pawl_id c = put_keyed(s, "k");
    struct batch batch = take_up_to(s, "mail", "w1", 10);
    expect_batch(batch, a);
    expect_nothing(s, "mail");
    expect_code(succeed(s, batch.jobs[0]).code, PAWL_OK);
    batch = take_up_to(s, "mail", "w2", 10);
    expect_batch(batch, b);
    expect_nothing(s, "mail");
    expect_code(succeed(s, batch.jobs[0]).code, PAWL_OK);
    finish_next(s, c);
    expect_nothing(s, "mail");
}

/* Rows of one call come in the order given, whatever their ids. */
static void a_batch_of_a_key_keeps_its_order(struct stage *s)
{
    pawl_enqueue_row rows[4] = {row_of("k"), row_of("k"), row_of("other"), row_of("k")};
    for (size_t i = 0; i < 4; i++)
        rows[3 - i].id = new_id(s, &rows[3 - i]); /* ids fall while positions rise */
    pawl_enqueued results[4];
    pawl_err err;
    expect_code(pawl_enqueue(s->store, rows, 4, results, &err), PAWL_OK);
    struct batch batch = take_up_to(s, "mail", "w1", 10);
    expect_number(batch.count, 2);
    for (size_t i = 0; i < 2; i++)
        expect_code(succeed(s, batch.jobs[i]).code, PAWL_OK);
    expect_state(s, rows[0].id, PAWL_SUCCEEDED);
    expect_state(s, rows[2].id, PAWL_SUCCEEDED);
    finish_next(s, rows[1].id);
    finish_next(s, rows[3].id);
}

static void keys_do_not_wait_for_each_other(struct stage *s)
{
    static const char *const keys[] = {"a", "b", "c", NULL, ""}; /* empty: none */
    pawl_id firsts[COUNT_OF(keys)];
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        firsts[i] = put_keyed(s, keys[i]);
    for (size_t i = 0; i < 3; i++)
        (void)put_keyed(s, keys[i]);
    struct batch batch = take_up_to(s, "mail", "w1", 20);
    expect_number(batch.count, COUNT_OF(keys));
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        expect_state(s, firsts[i], PAWL_IN_FLIGHT);
    expect_nothing(s, "mail");
}

static void a_key_is_one_within_its_queue(struct stage *s)
{
    pawl_enqueue_row row = row_of("k");
    (void)put_row(s, &row);
    row.queue = "print";
    (void)put_row(s, &row);
    assert_string_equal(take(s, "mail", "w1")->ordering_key, "k");
    assert_string_equal(take(s, "print", "w1")->ordering_key, "k");
}

/* Keys are told apart byte by byte, to the last one. */
static void keys_are_compared_whole(struct stage *s)
{
    char *longest = stage_memory(s, PAWL_ORDERING_KEY_MAX + 1);
    memset(longest, 'k', PAWL_ORDERING_KEY_MAX);
    (void)put_keyed(s, longest);
    longest[PAWL_ORDERING_KEY_MAX - 1] = 'l';
    (void)put_keyed(s, longest);
    (void)put_keyed(s, "K");
    (void)put_keyed(s, "k");
    (void)put_keyed(s, "k ");
    (void)put_keyed(s, "\xc3\xa4");
    struct batch batch = take_up_to(s, "mail", "w1", 20);
    expect_number(batch.count, 6);
    size_t longest_count = 0;
    for (size_t i = 0; i < batch.count; i++)
        longest_count += strlen(batch.jobs[i]->ordering_key) == PAWL_ORDERING_KEY_MAX;
    expect_number(longest_count, 2);
}

/* RES-7: within a key priority is ignored. */
static void priority_does_not_overtake_within_a_key(struct stage *s)
{
    pawl_enqueue_row row = row_of("k");
    row.priority = PAWL_PRIORITY_LAST;
    pawl_id first = put_row(s, &row);
    row.priority = PAWL_PRIORITY_URGENT;
    pawl_id second = put_row(s, &row);
    struct batch batch = take_up_to(s, "mail", "w1", 10);
    expect_batch(batch, first);
    expect_code(succeed(s, batch.jobs[0]).code, PAWL_OK);
    finish_next(s, second);
}

/* The first of a key stands in its queue by its own priority. */
static void the_first_of_a_key_has_its_own_priority(struct stage *s)
{
    pawl_enqueue_row row = row_of("k");
    row.priority = PAWL_PRIORITY_LAST;
    pawl_id last = put_row(s, &row);
    row.priority = PAWL_PRIORITY_URGENT;
    pawl_id behind = put_row(s, &row);
    pawl_id plain = put(s, "mail");
    row.ordering_key = "other";
    pawl_id urgent = put_row(s, &row);
    struct batch batch = take_up_to(s, "mail", "w1", 10);
    expect_batch(batch, urgent, plain, last);
    (void)put(s, "mail");
    expect_code(succeed(s, batch.jobs[2]).code, PAWL_OK);
    expect_id(take(s, "mail", "w1")->id, behind);
}

/* Firsts that never waited stand among arrivals as everybody does. */
static void firsts_of_keys_stand_among_arrivals(struct stage *s)
{
    pawl_id a = put_keyed(s, "a");
    pawl_id plain = put(s, "mail");
    pawl_id b = put_keyed(s, "b");
    pawl_id second_plain = put(s, "mail");
    struct batch batch = take_up_to(s, "mail", "w1", 10);
    expect_batch(batch, a, plain, b, second_plain);
}

/* Whoever waits behind a key that is stuck does not keep others waiting. */
static void a_stuck_key_stops_nobody_else(struct stage *s)
{
    pawl_id first = put_keyed(s, "stuck");
    expect_id(take(s, "mail", "w1")->id, first);
    for (int i = 0; i < 300; i++)
        (void)put_keyed(s, "stuck");
    pawl_id free_one = put_keyed(s, "free");
    pawl_id plain = put(s, "mail");
    struct batch batch = take_up_to(s, "mail", "w2", 2);
    expect_number(batch.count, 2);
    expect_state(s, free_one, PAWL_IN_FLIGHT);
    expect_state(s, plain, PAWL_IN_FLIGHT);
    expect_number(stats_of(s, "mail").ready, 300); /* they are due, and counted so */
    expect_number(stats_of(s, "mail").delayed, 0);
}

/* A repeated enqueue is no second job of the key. */
static void a_repeated_enqueue_does_not_join_again(struct stage *s)
{
    pawl_enqueue_row row = row_of("k");
    row.id = new_id(s, &row);
    pawl_id a = put_row(s, &row);
    pawl_id b = put_keyed(s, "k");
    expect_code(try_put(s, &row).code, PAWL_EXISTS);
    finish_next(s, a);
    expect_code(try_put(s, &row).code, PAWL_EXISTS);
    finish_next(s, b);
    expect_nothing(s, "mail");
}

/* All jobs of a key are in one shard, and so are their ids. */
static void a_key_is_in_one_shard(struct stage *s)
{
    char key[16];
    uint8_t seen[8] = {0};
    for (int i = 0; i < 60; i++) {
        (void)snprintf(key, sizeof(key), "key-%d", i); /* fits */
        pawl_enqueue_row row = row_of(key);
        pawl_id first = new_id(s, &row);
        row.dedupe_key = "d";
        pawl_id second = new_id(s, &row);
        expect_number((second.bytes[6] & 0x0f) << 8 | second.bytes[7],
                      (first.bytes[6] & 0x0f) << 8 | first.bytes[7]);
        seen[first.bytes[7] % COUNT_OF(seen)] = 1;
    }
    for (size_t i = 0; i < COUNT_OF(seen); i++)
        expect_number(seen[i], 1); /* and the keys are spread */
}

/* ---------------------------------------------------------------- what keeps the others waiting */

/* RES-7 */
static void a_delayed_first_keeps_the_others_waiting(struct stage *s)
{
    pawl_id a = put_keyed_after(s, "k", 10 * SECOND);
    pawl_id b = put_keyed(s, "k");
    expect_nothing(s, "mail");
    age(s, 10 * SECOND);
    struct batch batch = take_up_to(s, "mail", "w1", 10);
    expect_batch(batch, a);
    expect_code(succeed(s, batch.jobs[0]).code, PAWL_OK);
    finish_next(s, b);
}

/* A delay counts from the enqueue, and keeps the key when its turn has come. */
static void a_delayed_one_waits_when_it_is_first(struct stage *s)
{
    pawl_id a = put_keyed(s, "k");
    pawl_id b = put_keyed_after(s, "k", 20 * SECOND);
    pawl_id c = put_keyed(s, "k");
    age(s, 5 * SECOND);
    finish_next(s, a);
    expect_nothing(s, "mail");
    age(s, 15 * SECOND);
    finish_next(s, b);
    finish_next(s, c);
}

/* What became due while it waited is claimable at once. */
static void a_delay_may_pass_behind_others(struct stage *s)
{
    pawl_id a = put_keyed(s, "k");
    pawl_id b = put_keyed_after(s, "k", 5 * SECOND);
    const pawl_job *job = take(s, "mail", "w1");
    expect_id(job->id, a);
    age(s, 6 * SECOND);
    expect_code(succeed(s, job).code, PAWL_OK);
    finish_next(s, b);
}

/* RES-7 */
static void a_retry_keeps_the_key(struct stage *s)
{
    pawl_id a = put_keyed(s, "k");
    pawl_id b = put_keyed(s, "k");
    expect_code(retry_in(s, take(s, "mail", "w1"), 10 * SECOND).code, PAWL_OK);
    expect_nothing(s, "mail");
    age(s, 10 * SECOND);
    const pawl_job *again = take(s, "mail", "w2");
    expect_id(again->id, a);
    expect_number(again->lease_version, 2);
    expect_code(retry_in(s, again, 0).code, PAWL_OK); /* at once, too */
    finish_next(s, a);
    finish_next(s, b);
}

/* RES-7 */
static void a_snooze_keeps_the_key(struct stage *s)
{
    pawl_id a = put_keyed(s, "k");
    pawl_id b = put_keyed(s, "k");
    expect_code(snooze_for(s, take(s, "mail", "w1"), 10 * SECOND).code, PAWL_OK);
    expect_nothing(s, "mail");
    age(s, 10 * SECOND);
    finish_next(s, a);
    finish_next(s, b);
}

/* RES-7 */
static void a_release_keeps_the_key(struct stage *s)
{
    pawl_id a = put_keyed(s, "k");
    pawl_id b = put_keyed(s, "k");
    for (int i = 0; i < 3; i++) {
        struct batch batch = take_up_to(s, "mail", "w1", 10);
        expect_batch(batch, a);
        expect_code(release(s, batch.jobs[0]), PAWL_OK);
    }
    finish_next(s, a);
    finish_next(s, b);
}

/* RES-7, RES-4: found by the claim */
static void a_lost_lease_keeps_the_key(struct stage *s)
{
    pawl_id a = put_keyed(s, "k");
    pawl_id b = put_keyed(s, "k");
    expect_id(take(s, "mail", "w1")->id, a);
    age(s, LEASE + SECOND);
    struct batch batch = take_up_to(s, "mail", "w2", 10);
    expect_batch(batch, a);
    expect_number(batch.jobs[0]->lost_leases, 1);
    expect_nothing(s, "mail");
    expect_code(succeed(s, batch.jobs[0]).code, PAWL_OK);
    finish_next(s, b);
}

/* RES-7, RES-4: found by the reaper */
static void a_reaped_job_keeps_the_key(struct stage *s)
{
    pawl_id a = put_keyed(s, "k");
    pawl_id b = put_keyed(s, "k");
    expect_id(take(s, "mail", "w1")->id, a);
    age(s, LEASE + SECOND);
    expect_id(reap_one(s)->job, a);
    struct batch batch = take_up_to(s, "mail", "w2", 10);
    expect_batch(batch, a);
    expect_code(succeed(s, batch.jobs[0]).code, PAWL_OK);
    finish_next(s, b);
}

/* RES-5, RES-7: the wait after a second loss in a row holds for the key */
static void a_wait_after_lost_leases_keeps_the_key(struct stage *s)
{
    pawl_queue_settings settings = settings_of(s, "mail");
    settings.backoff_base_ms = settings.backoff_max_ms = HOUR;
    set_settings(s, "mail", &settings);
    pawl_id a = put_keyed(s, "k");
    pawl_id b = put_keyed(s, "k");
    for (int i = 0; i < 2; i++) {
        expect_id(take(s, "mail", "w1")->id, a);
        age(s, LEASE + SECOND);
        expect_id(reap_one(s)->job, a);
    }
    const pawl_job *waiting = look(s, a);
    if (waiting->due_at.us > now(s).us + MINUTE * 1000) /* a backoff may be drawn as next to 0 */
        expect_nothing(s, "mail");
    age(s, HOUR);
    finish_next(s, a);
    finish_next(s, b);
}

/* Q-STALE: who lost the first of a key cannot let the next one through. */
static void a_stale_settle_does_not_free_the_key(struct stage *s)
{
    pawl_id a = put_keyed(s, "k");
    pawl_id b = put_keyed(s, "k");
    const pawl_job *lost = take(s, "mail", "w1");
    age(s, LEASE + SECOND);
    const pawl_job *held = take(s, "mail", "w2");
    expect_id(held->id, a);
    expect_code(succeed(s, lost).code, PAWL_STALE);
    expect_code(fail_for_good(s, lost).code, PAWL_STALE);
    expect_code(release(s, lost), PAWL_STALE);
    expect_nothing(s, "mail");
    expect_code(succeed(s, held).code, PAWL_OK);
    finish_next(s, b);
}

/* A settle that is repeated is answered again, and lets nobody else through. */
static void a_repeated_settle_does_not_free_the_key(struct stage *s)
{
    pawl_id a = put_keyed(s, "k");
    pawl_id b = put_keyed(s, "k");
    pawl_id c = put_keyed(s, "k");
    const pawl_job *first = take(s, "mail", "w1");
    expect_id(first->id, a);
    expect_code(succeed(s, first).code, PAWL_OK);
    const pawl_job *second = take(s, "mail", "w2");
    expect_id(second->id, b);
    expect_code(succeed(s, first).code, PAWL_OK);
    expect_nothing(s, "mail");
    expect_code(retry_in(s, second, 0).code, PAWL_OK);
    expect_code(retry_in(s, second, 0).code, PAWL_OK);
    finish_next(s, b);
    finish_next(s, c);
}

/* RES-13: a job that runs is only marked, and keeps its key until it has ended. */
static void a_marked_job_keeps_the_key(struct stage *s)
{
    pawl_id a = put_keyed(s, "k");
    pawl_id b = put_keyed(s, "k");
    const pawl_job *job = take(s, "mail", "w1");
    expect_code(cancel(s, a).code, PAWL_OK);
    expect_nothing(s, "mail");
    expect_code(retry_in(s, job, MINUTE).code, PAWL_OK); /* it was marked: Failed */
    expect_state(s, a, PAWL_FAILED);
    finish_next(s, b);
}

/* ---------------------------------------------------------------- what lets the next through */

static void a_failed_first_lets_the_next_through(struct stage *s)
{
    set_bounds(s, "mail", 0, 1);
    pawl_id a = put_keyed(s, "k");
    pawl_id b = put_keyed(s, "k");
    pawl_id c = put_keyed(s, "k");
    pawl_id d = put_keyed(s, "k");
    expect_code(fail_for_good(s, take(s, "mail", "w1")).code, PAWL_OK);
    expect_state(s, a, PAWL_FAILED);
    const pawl_job *second = take(s, "mail", "w1");
    expect_id(second->id, b);
    expect_code(settle(s, second, PAWL_RETRY).code, PAWL_OK); /* no retry is left */
    expect_state(s, b, PAWL_FAILED);
    const pawl_job *third = take(s, "mail", "w1");
    expect_id(third->id, c);
    age(s, LEASE + SECOND);
    expect_number(reap_one(s)->reason, PAWL_REASON_POISON);
    finish_next(s, d);
}

/* A claim that ends the first of a key by its expiry lets the next one through. */
static void a_poisoned_first_lets_the_next_through(struct stage *s)
{
    set_bounds(s, "mail", 0, 1);
    pawl_id a = put_keyed(s, "k");
    pawl_id b = put_keyed(s, "k");
    expect_id(take(s, "mail", "w1")->id, a);
    age(s, LEASE + SECOND);
    struct batch batch = take_up_to(s, "mail", "w2", 10); /* at once, or with the next claim */
    if (batch.count == 0)
        batch = take_up_to(s, "mail", "w2", 10);
    expect_batch(batch, b);
    expect_state(s, a, PAWL_FAILED);
}

static void a_cancelled_first_lets_the_next_through(struct stage *s)
{
    pawl_id a = put_keyed_after(s, "k", HOUR);
    pawl_id b = put_keyed(s, "k");
    pawl_id c = put_keyed(s, "k");
    expect_nothing(s, "mail");
    expect_number(cancel(s, a).state, PAWL_FAILED);
    expect_number(cancel(s, c).state, PAWL_FAILED); /* and one in the rear leaves no gap */
    pawl_id d = put_keyed(s, "k");
    finish_next(s, b);
    finish_next(s, d);
}

/* A start-by deadline is missed by the first, and by one that waited behind it, alike. */
static void a_missed_deadline_lets_the_next_through(struct stage *s)
{
    pawl_enqueue_row row = row_of("k");
    row.delay_ms = 5 * SECOND;
    row.start_within_ms = 10 * SECOND;
    pawl_id a = put_row(s, &row);
    row.delay_ms = 0;
    row.start_within_ms = 20 * SECOND;
    pawl_id b = put_row(s, &row);
    pawl_id c = put_keyed(s, "k");
    age(s, 12 * SECOND);
    expect_id(reap_one(s)->job, a);
    const pawl_job *second = take(s, "mail", "w1");
    expect_id(second->id, b);
    expect_code(release(s, second), PAWL_OK); /* a claim that is released does not count */
    age(s, 10 * SECOND);
    expect_number(reap_one(s)->reason, PAWL_REASON_START_BY);
    expect_state(s, b, PAWL_FAILED);
    finish_next(s, c);
}

static void a_deadline_may_pass_behind_others(struct stage *s)
{
    pawl_id a = put_keyed(s, "k");
    pawl_enqueue_row row = row_of("k");
    row.start_within_ms = 10 * SECOND;
    pawl_id b = put_row(s, &row);
    pawl_id c = put_keyed(s, "k");
    const pawl_job *job = take(s, "mail", "w1");
    expect_id(job->id, a);
    age(s, 11 * SECOND);
    expect_id(reap_one(s)->job, b);
    expect_nothing(s, "mail");
    expect_code(succeed(s, job).code, PAWL_OK);
    finish_next(s, c);
}

/* One settle of many jobs lets the next of each key through, and of no other. */
static void a_batch_settle_lets_each_next_through(struct stage *s)
{
    static const char *const keys[] = {"a", "b", "c"};
    pawl_id nexts[COUNT_OF(keys)];
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        (void)put_keyed(s, keys[i]);
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        nexts[i] = put_keyed(s, keys[i]);
    struct batch batch = take_up_to(s, "mail", "w1", 10);
    expect_number(batch.count, 3);
    pawl_settle_row rows[3];
    pawl_settled results[3];
    pawl_err err;
    for (size_t i = 0; i < 3; i++) {
        bool is_b = strcmp(batch.jobs[i]->ordering_key, "b") == 0;
        rows[i] = settle_row_for(batch.jobs[i], is_b ? PAWL_RETRY : PAWL_SUCCEED);
        rows[i].delay_ms = MINUTE;
    }
    expect_code(pawl_settle(s->store, "w1", rows, 3, results, &err), PAWL_OK);
    batch = take_up_to(s, "mail", "w1", 10);
    expect_number(batch.count, 2);
    expect_state(s, nexts[0], PAWL_IN_FLIGHT);
    expect_state(s, nexts[1], PAWL_READY);
    expect_state(s, nexts[2], PAWL_IN_FLIGHT);
}

/* A redriven job comes again, behind all that wait. */
static void a_redriven_job_goes_to_the_tail(struct stage *s)
{
    pawl_id a = put_keyed(s, "k");
    pawl_id b = put_keyed(s, "k");
    pawl_id c = put_keyed(s, "k");
    expect_code(fail_for_good(s, take(s, "mail", "w1")).code, PAWL_OK);
    const pawl_job *second = take(s, "mail", "w1");
    expect_id(second->id, b);
    expect_code(redrive(s, a).code, PAWL_OK);
    expect_nothing(s, "mail");
    expect_code(succeed(s, second).code, PAWL_OK);
    finish_next(s, c);
    expect_code(fail_for_good(s, take(s, "mail", "w1")).code, PAWL_OK);
    expect_state(s, a, PAWL_FAILED);
    expect_code(redrive(s, a).code, PAWL_OK); /* nobody waits: it is the first */
    finish_next(s, a);
}

/* By filter, jobs come again in the order of their ids. */
static void redriven_jobs_join_in_order(struct stage *s)
{
    pawl_id ids[3];
    for (size_t i = 0; i < 3; i++)
        ids[i] = put_keyed(s, "k");
    (void)put_keyed(s, "other");
    for (size_t i = 0; i < 3; i++)
        expect_number(cancel(s, ids[2 - i]).state, PAWL_FAILED);
    pawl_filter filter = {.queue = "mail", .ordering_key = "k"};
    size_t count = 0;
    pawl_err err;
    expect_code(pawl_redrive_where(s->store, &filter, 10, &count, &err), PAWL_OK);
    expect_number(count, 3);
    struct batch batch = take_up_to(s, "mail", "w1", 10);
    expect_number(batch.count, 2); /* of each key one */
    for (size_t i = 0; i < 2; i++)
        expect_code(succeed(s, batch.jobs[i]).code, PAWL_OK);
    expect_state(s, ids[0], PAWL_SUCCEEDED);
    finish_next(s, ids[1]);
    finish_next(s, ids[2]);
}

/* What is pruned leaves the order of the others alone. */
static void pruned_jobs_leave_the_order_alone(struct stage *s)
{
    pawl_queue_settings settings = settings_of(s, "mail");
    settings.keep_succeeded_ms = settings.keep_failed_ms = MINUTE;
    set_settings(s, "mail", &settings);
    pawl_id a = put_keyed(s, "k");
    pawl_id b = put_keyed(s, "k");
    pawl_id c = put_keyed(s, "k");
    finish_next(s, a);
    expect_code(fail_for_good(s, take(s, "mail", "w1")).code, PAWL_OK);
    age(s, HOUR);
    expect_number(prune(s), 2);
    expect_true(is_gone(s, b));
    pawl_id d = put_keyed(s, "k");
    finish_next(s, c);
    finish_next(s, d);
    age(s, HOUR);
    expect_number(prune(s), 2);
    finish_next(s, put_keyed(s, "k"));
}

/* Q-DURABLE: the order is kept with the jobs. */
static void the_order_outlives_a_restart(struct stage *s)
{
    pawl_id a = put_keyed(s, "k");
    pawl_id b = put_keyed(s, "k");
    pawl_id c = put_keyed(s, "k");
    const pawl_job *first = take(s, "mail", "w1");
    expect_id(first->id, a);
    stage_reopen(s);
    expect_nothing(s, "mail");
    expect_code(succeed(s, first).code, PAWL_OK);
    finish_next(s, b);
    stage_reopen(s);
    const pawl_job *third = take(s, "mail", "w1");
    expect_id(third->id, c);
    expect_true(third->fence > first->fence);
}

static const struct suite_case cases[] = {
    CASE(jobs_of_a_key_start_one_at_a_time),
    CASE(a_batch_of_a_key_keeps_its_order),
    CASE(keys_do_not_wait_for_each_other),
    CASE(a_key_is_one_within_its_queue),
    CASE(keys_are_compared_whole),
    CASE(priority_does_not_overtake_within_a_key),
    CASE_ON(ONE_SHARD, the_first_of_a_key_has_its_own_priority),
    CASE_ON(ONE_SHARD, firsts_of_keys_stand_among_arrivals),
    CASE(a_stuck_key_stops_nobody_else),
    CASE(a_repeated_enqueue_does_not_join_again),
    CASE_ON(MANY_SHARDS, a_key_is_in_one_shard),
    CASE(a_delayed_first_keeps_the_others_waiting),
    CASE(a_delayed_one_waits_when_it_is_first),
    CASE(a_delay_may_pass_behind_others),
    CASE(a_retry_keeps_the_key),
    CASE(a_snooze_keeps_the_key),
    CASE(a_release_keeps_the_key),
    CASE(a_lost_lease_keeps_the_key),
    CASE(a_reaped_job_keeps_the_key),
    CASE(a_wait_after_lost_leases_keeps_the_key),
    CASE(a_stale_settle_does_not_free_the_key),
    CASE(a_repeated_settle_does_not_free_the_key),
    CASE(a_marked_job_keeps_the_key),
    CASE(a_failed_first_lets_the_next_through),
    CASE(a_poisoned_first_lets_the_next_through),
    CASE(a_cancelled_first_lets_the_next_through),
    CASE(a_missed_deadline_lets_the_next_through),
    CASE(a_deadline_may_pass_behind_others),
    CASE(a_batch_settle_lets_each_next_through),
    CASE(a_redriven_job_goes_to_the_tail),
    CASE(redriven_jobs_join_in_order),
    CASE(pruned_jobs_leave_the_order_alone),
    CASE_ON(DURABLE, the_order_outlives_a_restart),
};

SUITE_GROUP(keys);

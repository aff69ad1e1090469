/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * suite_in_flight.c - the bound on a queue's jobs in flight.
 * Owns:  the cases about max_in_flight: never exceeded, freed by every way out, changed at any
 *        time, and shared among shards.
 * Never: looks at how a store counts.
 */
#include "store/helpers.h"

#include <stdio.h>

static void set_bound(struct stage *s, const char *queue, int64_t max_in_flight)
{
    pawl_queue_settings settings = settings_of(s, queue);
    settings.max_in_flight = max_in_flight;
    set_settings(s, queue, &settings);
    expect_number(settings_of(s, queue).max_in_flight, max_in_flight);
}

static void put_many(struct stage *s, const char *queue, int count)
{
    for (int i = 0; i < count; i++)
        (void)put(s, queue);
}

static void a_bound_is_never_exceeded(struct stage *s)
{
    set_bound(s, "mail", 3);
    put_many(s, "mail", 8);
    struct batch batch = take_up_to(s, "mail", "w1", 2);
    expect_number(batch.count, 2);
    struct batch rest = take_up_to(s, "mail", "w2", 10);
    expect_number(rest.count, 1);
    expect_nothing(s, "mail");
    expect_number(stats_of(s, "mail").in_flight, 3);
    expect_number(stats_of(s, "mail").ready, 5);
    expect_code(succeed(s, batch.jobs[0]).code, PAWL_OK);
    expect_number(take_up_to(s, "mail", "w2", 10).count, 1);
    expect_nothing(s, "mail");
}

/* One claim that names the queue twice, and a second queue without a bound. */
static void a_bound_holds_over_the_lines_of_a_claim(struct stage *s)
{
    set_bound(s, "mail", 3);
    put_many(s, "mail", 8);
    put_many(s, "print", 8);
    const pawl_claim_line lines[] = {
        {.queue = "mail", .jobs_max = 2, .lease_ms = PAWL_DEFAULT},
        {.queue = "print", .jobs_max = 8, .lease_ms = PAWL_DEFAULT},
        {.queue = "mail", .jobs_max = 8, .lease_ms = PAWL_DEFAULT},
    };
    const pawl_claim_args args = {
        .worker = "w1", .lines = lines, .lines_count = 3, .bytes_max = PAWL_DEFAULT};
    expect_number(claim(s, &args, 100).count, 11);
    expect_number(stats_of(s, "mail").in_flight, 3);
}

/* Each way out of InFlight makes room for one. */
static void every_end_makes_room(struct stage *s)
{
    set_bound(s, "mail", 1);
    put_many(s, "mail", 8);
    for (int i = 0; i < 6; i++) {
        const pawl_job *job = take(s, "mail", "w1");
        expect_nothing(s, "mail");
        switch (i) {
        case 0:
            expect_code(succeed(s, job).code, PAWL_OK);
            break;
        case 1:
            expect_code(fail_for_good(s, job).code, PAWL_OK);
            break;
        case 2:
            expect_code(retry_in(s, job, HOUR).code, PAWL_OK);
            break;
        case 3:
            expect_code(snooze_for(s, job, HOUR).code, PAWL_OK);
            break;
        case 4:
            expect_code(release(s, job), PAWL_OK);
            break;
        default: /* marked, it still runs */
            expect_code(cancel(s, job->id).code, PAWL_OK);
            expect_nothing(s, "mail");
            expect_code(release(s, job), PAWL_OK);
            break;
        }
    }
    expect_number(take_up_to(s, "mail", "w1", 10).count, 1);
}

/* A dead holder does not keep its place for ever. RES-4 */
static void an_expiry_makes_room(struct stage *s)
{
    set_bound(s, "mail", 2);
    put_many(s, "mail", 5);
    expect_number(take_up_to(s, "mail", "dead", 10).count, 2);
    expect_nothing(s, "mail");
    age(s, LEASE + SECOND);
    struct batch batch = take_up_to(s, "mail", "w1", 10); /* it recovers them on the way */
    expect_number(batch.count, 2);
    expect_number(stats_of(s, "mail").in_flight, 2);
    age(s, LEASE + SECOND);
    expect_number(reap_up_to(s, 10).count, 2);
    expect_number(take_up_to(s, "mail", "w2", 1).count, 1);
    expect_number(take_up_to(s, "mail", "w2", 10).count, 1);
    expect_number(stats_of(s, "mail").in_flight, 2);
}

/* Where lost jobs fail, or must wait, their places are free all the same. */
static void a_poisoned_job_makes_room(struct stage *s)
{
    set_bounds(s, "mail", 3, 1);
    set_bound(s, "mail", 2);
    put_many(s, "mail", 6);
    expect_number(take_up_to(s, "mail", "dead", 10).count, 2);
    age(s, LEASE + SECOND);
    struct batch batch = take_up_to(s, "mail", "w1", 10); /* at once, or with the next claim */
    size_t count = batch.count + take_up_to(s, "mail", "w1", 10).count;
    expect_number(count, 2);
    expect_number(stats_of(s, "mail").failed, 2);
    expect_number(stats_of(s, "mail").in_flight, 2);
}

static void a_bound_can_be_changed_at_any_time(struct stage *s)
{
    put_many(s, "mail", 12);
    expect_number(take_up_to(s, "mail", "w1", 4).count, 4); /* no bound yet */
    set_bound(s, "mail", 6);
    struct batch batch = take_up_to(s, "mail", "w1", 10);
    expect_number(batch.count, 2);
    set_bound(s, "mail", 5); /* lowered: nothing is taken back, and nothing is added */
    expect_nothing(s, "mail");
    expect_code(succeed(s, batch.jobs[0]).code, PAWL_OK);
    expect_nothing(s, "mail");
    expect_code(succeed(s, batch.jobs[1]).code, PAWL_OK);
    expect_number(take_up_to(s, "mail", "w1", 10).count, 1);
    expect_nothing(s, "mail");
    set_bound(s, "mail", 7);
    expect_number(take_up_to(s, "mail", "w1", 10).count, 2);
    set_bound(s, "mail", 0);
    expect_number(take_up_to(s, "mail", "w1", 10).count, 3); /* all that are left */
}

/* Leases that expired above a bound that was lowered since are recovered until there is room. */
static void a_lowered_bound_is_kept_over_expiries(struct stage *s)
{
    put_many(s, "mail", 8);
    expect_number(take_up_to(s, "mail", "dead", 5).count, 5);
    set_bound(s, "mail", 2);
    age(s, LEASE + SECOND);
    expect_number(take_up_to(s, "mail", "w1", 1).count, 1);
    expect_number(take_up_to(s, "mail", "w1", 10).count, 1);
    expect_nothing(s, "mail");
    expect_number(stats_of(s, "mail").in_flight, 2);
}

/* With keys: a key that waits for its first one takes no place. */
static void a_bound_and_keys_go_together(struct stage *s)
{
    set_bound(s, "mail", 2);
    static const char *const keys[] = {"a", "a", "b", "b", "c", "c"};
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        pawl_enqueue_row row = row_for("mail");
        row.ordering_key = keys[i];
        (void)put_row(s, &row);
    }
    size_t done = 0;
    while (done < COUNT_OF(keys)) {
        struct batch batch = take_up_to(s, "mail", "w1", 10);
        expect_true(batch.count >= 1 && batch.count <= 2);
        expect_nothing(s, "mail");
        for (size_t i = 0; i < batch.count; i++)
            expect_code(succeed(s, batch.jobs[i]).code, PAWL_OK);
        done += batch.count;
    }
    expect_number(stats_of(s, "mail").succeeded, COUNT_OF(keys));
}

/* Eight shards share 11 places: three have two, five have one. */
static void shards_share_a_bound(struct stage *s)
{
    set_bound(s, "mail", s->shards + 3);
    put_many(s, "mail", 250); /* so that each shard has some */
    size_t taken[8] = {0};
    size_t total = 0;
    struct batch batch;
    do {
        batch = take_up_to(s, "mail", "w1", 5);
        total += batch.count;
        for (size_t i = 0; i < batch.count; i++) {
            const uint8_t *bytes = batch.jobs[i]->id.bytes;
            taken[(size_t)((bytes[6] & 0x0f) << 8 | bytes[7]) % (size_t)s->shards]++;
        }
    } while (batch.count > 0);
    expect_number(total, s->shards + 3);
    for (size_t shard = 0; shard < (size_t)s->shards; shard++)
        expect_number(taken[shard], shard < 3 ? 2 : 1);
}

/* A shard without a share could never give a job out. */
static void a_bound_below_the_shards_is_refused(struct stage *s)
{
    pawl_queue_settings settings = settings_of(s, "mail");
    settings.max_in_flight = s->shards - 1;
    pawl_err err;
    expect_code(pawl_queue_set(s->store, "mail", &settings, &err), PAWL_INVALID);
    expect_number(settings_of(s, "mail").max_in_flight, 0);
}

/* Q-DURABLE: the bound is kept, and so is what counts against it. */
static void a_bound_outlives_a_restart(struct stage *s)
{
    set_bound(s, "mail", 2);
    put_many(s, "mail", 5);
    expect_number(take_up_to(s, "mail", "w1", 1).count, 1);
    stage_reopen(s);
    expect_number(settings_of(s, "mail").max_in_flight, 2);
    expect_number(take_up_to(s, "mail", "w1", 10).count, 1);
    expect_nothing(s, "mail");
}

/* Where the shard of a job is not chosen, what a bound admits is known with one shard only. */
#define BOUND(function) CASE_ON(ONE_SHARD, function)

static const struct suite_case cases[] = {
    BOUND(a_bound_is_never_exceeded),
    BOUND(a_bound_holds_over_the_lines_of_a_claim),
    BOUND(every_end_makes_room),
    BOUND(an_expiry_makes_room),
    BOUND(a_poisoned_job_makes_room),
    BOUND(a_bound_can_be_changed_at_any_time),
    BOUND(a_lowered_bound_is_kept_over_expiries),
    BOUND(a_bound_and_keys_go_together),
    CASE_ON(MANY_SHARDS, shards_share_a_bound),
    CASE_ON(MANY_SHARDS, a_bound_below_the_shards_is_refused),
    CASE_ON(DURABLE | ONE_SHARD, a_bound_outlives_a_restart),
};

SUITE_GROUP(in_flight);

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * suite_order.c - which job comes first.
 * Owns:  the cases about FIFO, priorities, and who goes before arrivals.
 * Never: asserts an order across shards or queues: there is none (Q-FIFO).
 */
#include "store/helpers.h"

static pawl_id put_at(struct stage *s, int priority)
{
    pawl_enqueue_row row = row_for("mail");
    row.priority = priority;
    return put_row(s, &row);
}

static pawl_id put_after(struct stage *s, int64_t delay_ms)
{
    pawl_enqueue_row row = row_for("mail");
    row.delay_ms = delay_ms;
    return put_row(s, &row);
}

/* Q-FIFO */
static void first_in_is_first_out(struct stage *s)
{
    pawl_id a = put(s, "mail");
    pawl_id b = put(s, "mail");
    age(s, SECOND);
    pawl_id c = put(s, "mail");
    pawl_id d = put(s, "mail");
    expect_id(take(s, "mail", "w1")->id, a);
    struct batch batch = take_up_to(s, "mail", "w2", 10);
    expect_batch(batch, b, c, d);
}

/* Q-FIFO: order rests on the position that the store gave, never on the caller's id */
static void arrival_counts_and_not_the_id(struct stage *s)
{
    pawl_enqueue_row early = row_for("mail");
    pawl_enqueue_row late = row_for("mail");
    early.id = new_id(s, &early);
    late.id = new_id(s, &late);
    expect_true(pawl_id_compare(&early.id, &late.id) < 0);
    pawl_id first = put_row(s, &late);
    pawl_id second = put_row(s, &early);
    struct batch batch = take_up_to(s, "mail", "w1", 10);
    expect_batch(batch, first, second);
}

/* Q-FIFO: rows of one call are queued in the order given */
static void a_batch_is_queued_in_its_order(struct stage *s)
{
    pawl_enqueue_row rows[4] = {row_for("mail"), row_for("mail"), row_for("mail"), row_for("mail")};
    for (size_t i = 0; i < 4; i++)
        rows[3 - i].id = new_id(s, &rows[3 - i]); /* ids fall while positions rise */
    pawl_enqueued results[4];
    pawl_err err;
    expect_code(pawl_enqueue(s->store, rows, 4, results, &err), PAWL_OK);
    struct batch batch = take_up_to(s, "mail", "w1", 10);
    expect_batch(batch, rows[0].id, rows[1].id, rows[2].id, rows[3].id);
}

/* Q-FIFO: also where the first row is refused, and a later one has its dedupe key instead */
static void a_batch_keeps_its_order_behind_a_refused_row(struct stage *s)
{
    pawl_enqueue_row rows[3] = {row_for("mail"), row_for("mail"), row_for("mail")};
    pawl_enqueued results[3];
    pawl_err err;
    rows[0].dedupe_key = rows[1].dedupe_key = "k";
    for (size_t i = 0; i < 3; i++)
        rows[i].id = new_id(s, &rows[i]);
    put_row(s, &rows[0]);
    expect_code(succeed(s, take(s, "mail", "w1")).code, PAWL_OK);
    expect_code(pawl_enqueue(s->store, rows, 3, results, &err), PAWL_OK);
    expect_code(results[0].code, PAWL_EXISTS);
    expect_code(results[1].code, PAWL_OK);
    expect_code(results[2].code, PAWL_OK);
    struct batch batch = take_up_to(s, "mail", "w1", 10);
    expect_batch(batch, rows[1].id, rows[2].id);
}

/* Q-FIFO: 0 is the most urgent, 9 the least */
static void urgent_jobs_come_first(struct stage *s)
{
    pawl_id last = put_at(s, PAWL_PRIORITY_LAST);
    pawl_id normal = put_at(s, PAWL_PRIORITY_NORMAL);
    pawl_id second_normal = put(s, "mail");
    pawl_id urgent = put_at(s, PAWL_PRIORITY_URGENT);
    pawl_id second_urgent = put_at(s, PAWL_PRIORITY_URGENT);
    pawl_id four = put_at(s, 4);
    expect_id(take(s, "mail", "w1")->id, urgent);
    struct batch batch = take_up_to(s, "mail", "w1", 10);
    expect_batch(batch, second_urgent, four, normal, second_normal, last);
    expect_number(batch.jobs[0]->priority, PAWL_PRIORITY_URGENT);
    expect_number(batch.jobs[4]->priority, PAWL_PRIORITY_LAST);
}

static void every_priority_has_its_place(struct stage *s)
{
    pawl_id ids[10];
    for (int priority = 9; priority >= 0; priority--)
        ids[priority] = put_at(s, priority);
    struct batch batch = take_up_to(s, "mail", "w1", 10);
    check_batch(HERE, batch, ids, 10);
}

static void a_released_job_goes_before_arrivals(struct stage *s)
{
    pawl_id first = put(s, "mail");
    pawl_id second = put(s, "mail");
    const pawl_job *job = take(s, "mail", "w1");
    expect_id(job->id, first);
    expect_code(release(s, job), PAWL_OK);
    struct batch batch = take_up_to(s, "mail", "w2", 10);
    expect_batch(batch, first, second);
}

/* RES-4, Q-FIFO: found by the reaper, and found by the claim itself */
static void a_recovered_job_goes_before_arrivals(struct stage *s)
{
    pawl_id first = put(s, "mail");
    (void)take_and_lose(s, "mail", "w1"); /* lost */
    pawl_id second = put(s, "mail");
    expect_id(reap_one(s)->job, first);
    struct batch batch = take_up_to(s, "mail", "w2", 10);
    expect_batch(batch, first, second);
}

static void an_expired_job_goes_before_arrivals(struct stage *s)
{
    pawl_id first = put(s, "mail");
    (void)take_and_lose(s, "mail", "w1"); /* lost */
    pawl_id second = put(s, "mail");
    expect_id(take(s, "mail", "w2")->id, first);
    expect_id(take(s, "mail", "w2")->id, second);
}

static void a_job_whose_time_has_come_goes_before_arrivals(struct stage *s)
{
    pawl_id delayed = put_after(s, 10 * SECOND);
    pawl_id arrived = put(s, "mail");
    age(s, 5 * SECOND);
    expect_id(take(s, "mail", "w1")->id, arrived); /* not yet its time */
    pawl_id late = put(s, "mail");
    age(s, 6 * SECOND);
    struct batch batch = take_up_to(s, "mail", "w1", 10);
    expect_batch(batch, delayed, late);
}

/* Q-RETRY-VISIBLE */
static void a_retried_job_whose_time_has_come_goes_before_arrivals(struct stage *s)
{
    pawl_id first = put(s, "mail");
    pawl_id second = put(s, "mail");
    expect_code(retry_in(s, take(s, "mail", "w1"), 10 * SECOND).code, PAWL_OK);
    age(s, 11 * SECOND);
    struct batch batch = take_up_to(s, "mail", "w2", 10);
    expect_batch(batch, first, second);
}

static void delayed_jobs_come_in_the_order_of_their_time(struct stage *s)
{
    pawl_id later = put_after(s, 20 * SECOND);
    pawl_id sooner = put_after(s, 10 * SECOND);
    age(s, 30 * SECOND);
    struct batch batch = take_up_to(s, "mail", "w1", 10);
    expect_batch(batch, sooner, later);
}

static void who_came_back_goes_before_whose_time_has_come(struct stage *s)
{
    pawl_id back = put(s, "mail");
    const pawl_job *job = take(s, "mail", "w1");
    pawl_id delayed = put_after(s, 10 * SECOND);
    age(s, 11 * SECOND);
    expect_code(release(s, job), PAWL_OK);
    pawl_id arrived = put(s, "mail");
    struct batch batch = take_up_to(s, "mail", "w2", 10);
    expect_batch(batch, back, delayed, arrived);
}

/* RES-4: what the claim itself recovers comes back by that, behind what had come back before. */
static void who_is_recovered_by_the_claim_goes_before_whose_time_has_come(struct stage *s)
{
    pawl_id lost = put(s, "mail");
    pawl_id back = put(s, "mail");
    pawl_id delayed = put_after(s, 10 * SECOND);
    (void)take(s, "mail", "w1");
    expect_code(release(s, take(s, "mail", "w1")), PAWL_OK);
    age(s, LEASE + SECOND);
    pawl_id arrived = put(s, "mail");
    struct batch batch = take_up_to(s, "mail", "w2", 10);
    expect_batch(batch, back, lost, delayed, arrived);
}

static void all_that_a_claim_recovers_keeps_the_order_of_its_expiry(struct stage *s)
{
    pawl_id first = put(s, "mail");
    pawl_id second = put(s, "mail");
    pawl_id delayed = put_after(s, 10 * SECOND);
    (void)take(s, "mail", "w1");
    age(s, SECOND);
    (void)take(s, "mail", "w1");
    age(s, LEASE + SECOND);
    pawl_id arrived = put(s, "mail");
    struct batch batch = take_up_to(s, "mail", "w2", 10);
    expect_batch(batch, first, second, delayed, arrived);
}

/* Whoever came back does not overtake what is more urgent. */
static void priority_goes_before_coming_back(struct stage *s)
{
    pawl_id back = put(s, "mail");
    const pawl_job *job = take(s, "mail", "w1");
    pawl_id urgent = put_at(s, PAWL_PRIORITY_URGENT);
    expect_code(release(s, job), PAWL_OK);
    struct batch batch = take_up_to(s, "mail", "w2", 10);
    expect_batch(batch, urgent, back);
}

/* Q-DEAD-LETTER: at the tail */
static void a_redriven_job_queues_up_behind(struct stage *s)
{
    pawl_id dead = put_failed(s, "mail");
    pawl_id waiting = put(s, "mail");
    expect_code(redrive(s, dead).code, PAWL_OK);
    pawl_id later = put(s, "mail");
    struct batch batch = take_up_to(s, "mail", "w1", 10);
    expect_batch(batch, waiting, dead, later);
}

/* A second claim goes on where the first one stopped, also where bytes stopped it. */
static void what_a_claim_left_keeps_its_order(struct stage *s)
{
    pawl_id ids[6];
    for (size_t i = 0; i < 6; i++)
        ids[i] = put(s, "mail"); /* four bytes each */
    pawl_claim_line line = {"mail", 100, PAWL_DEFAULT};
    pawl_claim_args args = {.worker = "w1", .lines = &line, .lines_count = 1, .bytes_max = 9};
    for (size_t i = 0; i < 6; i += 2)
        check_batch(HERE, claim(s, &args, 100), &ids[i], 2);
    expect_nothing(s, "mail");
}

static const struct suite_case cases[] = {
    CASE_ON(ONE_SHARD, first_in_is_first_out),
    CASE_ON(ONE_SHARD, arrival_counts_and_not_the_id),
    CASE_ON(ONE_SHARD, a_batch_is_queued_in_its_order),
    CASE_ON(ONE_SHARD, a_batch_keeps_its_order_behind_a_refused_row),
    CASE_ON(ONE_SHARD, urgent_jobs_come_first),
    CASE_ON(ONE_SHARD, every_priority_has_its_place),
    CASE_ON(ONE_SHARD, a_released_job_goes_before_arrivals),
    CASE_ON(ONE_SHARD, a_recovered_job_goes_before_arrivals),
    CASE_ON(ONE_SHARD, an_expired_job_goes_before_arrivals),
    CASE_ON(ONE_SHARD, a_job_whose_time_has_come_goes_before_arrivals),
    CASE_ON(ONE_SHARD, a_retried_job_whose_time_has_come_goes_before_arrivals),
    CASE_ON(ONE_SHARD, delayed_jobs_come_in_the_order_of_their_time),
    CASE_ON(ONE_SHARD, who_came_back_goes_before_whose_time_has_come),
    CASE_ON(ONE_SHARD, who_is_recovered_by_the_claim_goes_before_whose_time_has_come),
    CASE_ON(ONE_SHARD, all_that_a_claim_recovers_keeps_the_order_of_its_expiry),
    CASE_ON(ONE_SHARD, priority_goes_before_coming_back),
    CASE_ON(ONE_SHARD, a_redriven_job_queues_up_behind),
    CASE_ON(ONE_SHARD, what_a_claim_left_keeps_its_order),
};

SUITE_GROUP(order);

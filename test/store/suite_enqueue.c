/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * suite_enqueue.c - putting jobs into queues.
 * Owns:  the cases about what enqueue makes, takes back, and refuses.
 * Never: looks behind the public verbs.
 */
#include "store/helpers.h"

#include <string.h>

/* Q-ENQUEUE, Q-ONE-STATE, OL-FIELDS */
static void a_new_job_is_ready(struct stage *s)
{
    pawl_id id = put(s, "mail");

    const pawl_job *job = look(s, id);
    assert_string_equal(job->queue, "mail");
    expect_number(job->state, PAWL_READY);
    expect_number(job->priority, PAWL_PRIORITY_NORMAL);
    expect_number(job->retries, 0);
    expect_number(job->lost_leases, 0);
    expect_number(job->lease_version, 0);
    expect_number(job->max_retries, 3);
    expect_near(s, job->created_at, 0);
    expect_near(s, job->due_at, 0);
    expect_number(job->start_by.us, 0);
    expect_number(job->finished_at.us, 0);
    assert_string_equal(job->worker, "");
    expect_number(job->expires_at.us, 0);
    expect_number(job->claimed_at.us, 0);
    expect_true(!job->is_cancel_asked);
    expect_ledger(s, id, "");
}

/* Q-ENQUEUE: it is claimable afterwards */
static void a_new_job_can_be_claimed(struct stage *s)
{
    pawl_id id = put(s, "mail");
    expect_id(take(s, "mail", "w1")->id, id);
}

static void the_caller_may_bring_an_id(struct stage *s)
{
    pawl_enqueue_row row = row_for("mail");
    row.id = new_id(s, &row);
    pawl_enqueued result = try_put(s, &row);
    expect_code(result.code, PAWL_OK);
    expect_id(result.id, row.id);
    expect_state(s, row.id, PAWL_READY);
}

static void ids_are_made_where_none_is_brought(struct stage *s)
{
    pawl_id first = put(s, "mail");
    pawl_id second = put(s, "mail");
    expect_true(!pawl_id_is_nil(&first));
    expect_true(!pawl_id_is_nil(&second));
    expect_true(pawl_id_compare(&first, &second) != 0);
}

/* An id of somebody else's making is taken where its bits name the right shard. */
static void an_id_for_another_shard_is_refused(struct stage *s)
{
    pawl_enqueue_row row = row_for("mail");
    row.id = new_id(s, &row);
    row.id.bytes[7] ^= 1; /* the lowest bit of rand_a: the shard's number changes */

    pawl_enqueued result;
    pawl_err err;
    expect_code(pawl_enqueue(s->store, &row, 1, &result, &err), PAWL_INVALID);
    expect_true(is_gone(s, row.id));
}

static void any_id_will_do_where_there_is_one_shard(struct stage *s)
{
    pawl_enqueue_row row = row_for("mail");
    memset(row.id.bytes, 0xab, sizeof(row.id.bytes));
    expect_id(put_row(s, &row), row.id);
    expect_id(take(s, "mail", "w1")->id, row.id);
}

/* ---------------------------------------------------------------- repeated enqueue */

/* Bring the same id again, with another payload: refused, and the job stays what it was. */
static void expect_exists(struct stage *s, pawl_id id)
{
    struct picture before = picture_of(s, id);
    pawl_enqueue_row again = row_for("mail");
    again.id = id;
    again.payload = "another";
    again.payload_len = 7;
    pawl_enqueued result = try_put(s, &again);
    expect_code(result.code, PAWL_EXISTS);
    expect_id(result.id, id);
    expect_unchanged(s, &before);
}

/* Q-ENQUEUE */
static void a_ready_id_exists(struct stage *s)
{
    pawl_id id = put(s, "mail");
    expect_exists(s, id);
    expect_number(take_up_to(s, "mail", "w1", 10).count, 1);
}

/* Q-ENQUEUE */
static void an_id_in_flight_exists(struct stage *s)
{
    pawl_id id = put(s, "mail");
    const pawl_job *job = take(s, "mail", "w1");
    expect_exists(s, id);
    expect_nothing(s, "mail");
    expect_code(succeed(s, job).code, PAWL_OK);
}

/* Q-ENQUEUE, Q-NEVER-AGAIN */
static void a_succeeded_id_has_existed(struct stage *s)
{
    pawl_id id = put_succeeded(s, "mail");
    expect_exists(s, id);
    expect_nothing(s, "mail");
    age(s, DAY);
    expect_exists(s, id);
    expect_number(reap_up_to(s, 10).count, 0);
    expect_nothing(s, "mail");
}

/* Q-ENQUEUE */
static void a_failed_id_has_existed(struct stage *s)
{
    pawl_id id = put_failed(s, "mail");
    expect_exists(s, id);
    expect_nothing(s, "mail");
}

/* Q-ENQUEUE */
static void a_discarded_id_has_existed(struct stage *s)
{
    pawl_id id = put_failed(s, "mail");
    expect_code(discard(s, id).code, PAWL_OK);
    expect_exists(s, id);
    expect_nothing(s, "mail");
}

/* Q-ENQUEUE: as long as the ledger remembers it */
static void a_pruned_id_is_new_again(struct stage *s)
{
    pawl_id id = put_succeeded(s, "mail");
    age(s, 8 * DAY);
    expect_number(prune(s), 1);

    pawl_enqueue_row again = row_for("mail");
    again.id = id;
    expect_code(try_put(s, &again).code, PAWL_OK);
    expect_ledger(s, id, "");
    expect_number(take(s, "mail", "w1")->lease_version, 1);
}

/* ---------------------------------------------------------------- batches */

static void each_row_of_a_batch_has_its_verdict(struct stage *s)
{
    pawl_enqueue_row rows[4] = {row_for("mail"), row_for("mail"), row_for("mail"), row_for("mail")};
    rows[0].dedupe_key = "k";
    rows[1].id = put(s, "mail");
    rows[2].dedupe_key = "k";
    pawl_enqueued results[4];
    pawl_err err;
    expect_code(pawl_enqueue(s->store, rows, 4, results, &err), PAWL_OK);
    expect_code(results[0].code, PAWL_OK);
    expect_code(results[1].code, PAWL_EXISTS);
    expect_id(results[1].id, rows[1].id);
    expect_code(results[2].code, PAWL_DUPLICATE);
    expect_id(results[2].id, results[0].id);
    expect_code(results[3].code, PAWL_OK);
    expect_number(list(s, NULL).count, 3);
}

static void an_id_twice_in_a_batch_exists_once(struct stage *s)
{
    pawl_enqueue_row rows[2] = {row_for("mail"), row_for("mail")};
    rows[0].id = new_id(s, &rows[0]);
    rows[1].id = rows[0].id;
    pawl_enqueued results[2];
    pawl_err err;
    expect_code(pawl_enqueue(s->store, rows, 2, results, &err), PAWL_OK);
    expect_code(results[0].code, PAWL_OK);
    expect_code(results[1].code, PAWL_EXISTS);
    expect_number(list(s, NULL).count, 1);
}

/* All rows are checked before any is taken. */
static void one_bad_row_refuses_the_batch(struct stage *s)
{
    pawl_enqueue_row rows[3] = {row_for("mail"), row_for("mail"), row_for("mail")};
    rows[2].priority = PAWL_PRIORITY_LAST + 1;
    pawl_enqueued results[3];
    pawl_err err;
    expect_code(pawl_enqueue(s->store, rows, 3, results, &err), PAWL_INVALID);
    expect_number(list(s, NULL).count, 0);
    expect_nothing(s, "mail");
}

/* ---------------------------------------------------------------- payloads */

static void expect_payload(const pawl_job *job, const void *payload, size_t payload_len)
{
    expect_number(job->payload_len, (int64_t)payload_len);
    if (payload_len > 0) {
        expect_true(job->payload != NULL);
        assert_memory_equal(job->payload, payload, payload_len);
    }
}

/* The payload comes back byte for byte wherever it is told. */
static void round_trip(struct stage *s, const void *payload, size_t payload_len)
{
    pawl_enqueue_row row = row_for("mail");
    row.payload = payload;
    row.payload_len = payload_len;
    pawl_id id = put_row(s, &row);
    expect_payload(look(s, id), payload, payload_len);
    const pawl_job *job = take(s, "mail", "w1");
    expect_payload(job, payload, payload_len);
    struct batch held = mine(s, "w1");
    expect_number(held.count, 1);
    expect_payload(held.jobs[0], payload, payload_len);
    expect_code(fail_for_good(s, job).code, PAWL_OK);
    expect_payload(look(s, id), payload, payload_len);
}

static void an_empty_payload_comes_back(struct stage *s)
{
    round_trip(s, NULL, 0);
    round_trip(s, "", 0);
}

static void every_byte_of_a_payload_comes_back(struct stage *s)
{
    unsigned char bytes[512];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)i; /* NUL bytes and invalid UTF-8 among them */
    round_trip(s, bytes, sizeof(bytes));
}

static void the_largest_payload_comes_back(struct stage *s)
{
    unsigned char *bytes = stage_memory(s, PAWL_PAYLOAD_MAX + 1);
    for (size_t i = 0; i <= PAWL_PAYLOAD_MAX; i++)
        bytes[i] = (unsigned char)(i * 31 >> 3);
    round_trip(s, bytes, PAWL_PAYLOAD_MAX);

    pawl_enqueue_row row = row_for("mail");
    row.payload = bytes;
    row.payload_len = PAWL_PAYLOAD_MAX + 1;
    pawl_enqueued result;
    pawl_err err;
    expect_code(pawl_enqueue(s->store, &row, 1, &result, &err), PAWL_INVALID);
}

static const struct suite_case cases[] = {
    CASE(a_new_job_is_ready),
    CASE(a_new_job_can_be_claimed),
    CASE(the_caller_may_bring_an_id),
    CASE(ids_are_made_where_none_is_brought),
    CASE_ON(MANY_SHARDS, an_id_for_another_shard_is_refused),
    CASE_ON(ONE_SHARD, any_id_will_do_where_there_is_one_shard),
    CASE(a_ready_id_exists),
    CASE(an_id_in_flight_exists),
    CASE(a_succeeded_id_has_existed),
    CASE(a_failed_id_has_existed),
    CASE(a_discarded_id_has_existed),
    CASE(a_pruned_id_is_new_again),
    CASE(each_row_of_a_batch_has_its_verdict),
    CASE(an_id_twice_in_a_batch_exists_once),
    CASE(one_bad_row_refuses_the_batch),
    CASE(an_empty_payload_comes_back),
    CASE(every_byte_of_a_payload_comes_back),
    CASE(the_largest_payload_comes_back),
};

SUITE_GROUP(enqueue);

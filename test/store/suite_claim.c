/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * suite_claim.c - taking work.
 * Owns:  the cases about what a claim grants, to whom, how much, and what it leaves alone.
 * Never: asserts an order among jobs: see suite_order.c.
 */
#include "store/helpers.h"

#include <string.h>

static bool is_same_token(const pawl_token *a, const pawl_token *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

/* Q-CLAIM, OL-FIELDS, RULE-020-001, RULE-020-003, RULE-020-032, RES-1, RES-6 */
static void a_claim_grants_a_lease(struct stage *s)
{
    pawl_id id = put(s, "mail");
    const pawl_job *job = take(s, "mail", "w1");

    expect_id(job->id, id);
    expect_number(job->state, PAWL_IN_FLIGHT);
    assert_string_equal(job->worker, "w1");
    assert_string_equal(job->queue, "mail");
    expect_number(job->lease_version, 1);
    expect_true(!is_same_token(&job->token, &(pawl_token){{0}}));
    expect_near(s, job->claimed_at, 0);
    expect_near(s, job->expires_at, LEASE);
    expect_near(s, job->run_until, 3 * LEASE);
    expect_number(job->lease_ms, LEASE);
    expect_number(job->timeout_ms, 3 * LEASE);
    expect_true(!job->is_cancel_asked);

    const pawl_job *seen = look(s, id);
    expect_number(seen->state, PAWL_IN_FLIGHT);
    assert_string_equal(seen->worker, "w1");
    expect_number(seen->expires_at.us, job->expires_at.us);
    expect_number(seen->lease_version, 1);
    expect_ledger(s, id, "");
}

/* RES-1, RULE-020-002 */
static void a_claim_may_name_its_lease(struct stage *s)
{
    put(s, "mail");
    const pawl_job *job = take_for(s, "mail", "w1", 2 * MINUTE);
    expect_near(s, job->expires_at, 2 * MINUTE);
    expect_number(job->lease_ms, 2 * MINUTE);
}

/* Q-INVISIBLE, Q-ONE-LEASE, RULE-020-050 */
static void a_leased_job_is_invisible(struct stage *s)
{
    put(s, "mail");
    const pawl_job *job = take(s, "mail", "w1");
    expect_nothing(s, "mail");
    expect_number(take_up_to(s, "mail", "w1", 1).count, 0);
    age(s, LEASE - 2 * SECOND);
    expect_nothing(s, "mail");
    expect_code(succeed(s, job).code, PAWL_OK);
}

/* Q-TTL, Q-ONE-LEASE: valid while now < expiry, and not at it */
static void a_lease_holds_to_the_last_millisecond(struct stage *s)
{
    put(s, "mail");
    (void)take(s, "mail", "w1"); /* it is the lease that counts */
    age(s, LEASE - 1);
    expect_nothing(s, "mail");
    age(s, 1);
    assert_string_equal(take(s, "mail", "w2")->worker, "w2");
}

static void an_unknown_queue_gives_nothing(struct stage *s)
{
    put(s, "mail");
    expect_nothing(s, "nowhere");
}

static void an_empty_queue_gives_nothing(struct stage *s)
{
    expect_nothing(s, "mail");
    (void)put_succeeded(s, "mail"); /* a queue that had work once */
    expect_nothing(s, "mail");
}

/* Q-NEVER-AGAIN */
static void what_has_ended_is_never_given_out(struct stage *s)
{
    pawl_id done = put_succeeded(s, "mail");
    pawl_id dead = put_failed(s, "mail");
    pawl_id cancelled = put(s, "mail");
    expect_code(cancel(s, cancelled).code, PAWL_OK);
    for (int i = 0; i < 3; i++) {
        expect_nothing(s, "mail");
        expect_number(reap_up_to(s, 10).count, 0);
        age(s, HOUR);
    }
    expect_state(s, done, PAWL_SUCCEEDED);
    expect_state(s, dead, PAWL_FAILED);
    expect_state(s, cancelled, PAWL_FAILED);
}

/* ---------------------------------------------------------------- tokens and versions */

/* RES-8 */
static void every_job_on_every_claim_has_its_own_token(struct stage *s)
{
    pawl_token tokens[15];
    size_t count = 0;
    for (int i = 0; i < 5; i++)
        put(s, "mail");
    for (int round = 0; round < 3; round++) {
        struct batch batch = take_up_to(s, "mail", "w1", 5);
        expect_number(batch.count, 5);
        for (size_t i = 0; i < batch.count; i++) {
            for (size_t j = 0; j < count; j++)
                expect_true(!is_same_token(&batch.jobs[i]->token, &tokens[j]));
            tokens[count++] = batch.jobs[i]->token;
            expect_code(release(s, batch.jobs[i]), PAWL_OK);
        }
    }
}

/* Q-VERSION: through every way back to Ready */
static void the_version_rises_by_one_with_each_claim(struct stage *s)
{
    pawl_id id = put(s, "mail");
    int64_t version = 0;

    const pawl_job *job = take(s, "mail", "w1");
    expect_number(job->lease_version, ++version);
    expect_code(release(s, job), PAWL_OK);
    expect_number(look(s, id)->lease_version, version);

    job = take(s, "mail", "w1");
    expect_number(job->lease_version, ++version);
    expect_code(retry_in(s, job, 0).code, PAWL_OK);

    job = take(s, "mail", "w1");
    expect_number(job->lease_version, ++version);
    expect_code(snooze_for(s, job, 0).code, PAWL_OK);

    job = take_and_lose(s, "mail", "w1");
    expect_number(job->lease_version, ++version);
    job = take(s, "mail", "w1"); /* found by the claim */
    expect_number(job->lease_version, ++version);
    expect_code(snooze_for(s, job, 0).code, PAWL_OK);

    job = take_and_lose(s, "mail", "w1");
    expect_number(job->lease_version, ++version);
    expect_number(reap_one(s)->lease_version, version);
    job = take(s, "mail", "w1");
    expect_number(job->lease_version, ++version);

    expect_code(fail_for_good(s, job).code, PAWL_OK);
    expect_code(redrive(s, id).code, PAWL_OK);
    expect_number(look(s, id)->lease_version, version);
    expect_number(take(s, "mail", "w1")->lease_version, ++version);
}

/* ---------------------------------------------------------------- how much */

static void a_claim_takes_no_more_than_asked(struct stage *s)
{
    for (int i = 0; i < 5; i++)
        put(s, "mail");
    expect_number(take_up_to(s, "mail", "w1", 2).count, 2);
    expect_number(take_up_to(s, "mail", "w2", 10).count, 3);
    expect_nothing(s, "mail");
}

static void put_some(struct stage *s, const char *queue, int count)
{
    for (int i = 0; i < count; i++)
        put(s, queue);
}

static int64_t count_of(struct batch batch, const char *queue)
{
    int64_t count = 0;
    for (size_t i = 0; i < batch.count; i++)
        count += strcmp(batch.jobs[i]->queue, queue) == 0;
    return count;
}

static struct batch take_lines(struct stage *s, const pawl_claim_line *lines, size_t lines_count,
                               size_t jobs_max)
{
    pawl_claim_args args = {
        .worker = "w1", .lines = lines, .lines_count = lines_count, .bytes_max = PAWL_DEFAULT};
    return claim(s, &args, jobs_max);
}

static void each_line_has_its_own_maximum(struct stage *s)
{
    put_some(s, "a", 5);
    put_some(s, "b", 5);
    put_some(s, "c", 1);
    pawl_claim_line lines[] = {{"a", 2, PAWL_DEFAULT}, {"b", 3, MINUTE}, {"c", 5, PAWL_DEFAULT}};
    struct batch batch = take_lines(s, lines, 3, 100);
    expect_number(batch.count, 6);
    expect_number(count_of(batch, "a"), 2);
    expect_number(count_of(batch, "b"), 3);
    expect_number(count_of(batch, "c"), 1);
    for (size_t i = 0; i < batch.count; i++) {
        bool is_b = strcmp(batch.jobs[i]->queue, "b") == 0;
        expect_number(batch.jobs[i]->lease_ms, is_b ? MINUTE : LEASE);
    }
}

static void lines_are_served_in_the_order_given(struct stage *s)
{
    put_some(s, "a", 3);
    put_some(s, "b", 3);
    pawl_claim_line lines[] = {{"b", 2, PAWL_DEFAULT}, {"a", 3, PAWL_DEFAULT}};
    struct batch batch = take_lines(s, lines, 2, 3);
    expect_number(batch.count, 3);
    assert_string_equal(batch.jobs[0]->queue, "b");
    assert_string_equal(batch.jobs[1]->queue, "b");
    assert_string_equal(batch.jobs[2]->queue, "a");
}

static void put_bytes(struct stage *s, const char *queue, size_t payload_len)
{
    pawl_enqueue_row row = row_for(queue);
    row.payload = stage_memory(s, payload_len);
    row.payload_len = payload_len;
    (void)put_row(s, &row); /* its size is what matters */
}

static struct batch take_bytes(struct stage *s, int64_t bytes_max)
{
    pawl_claim_line lines[] = {{"a", 100, PAWL_DEFAULT}, {"b", 100, PAWL_DEFAULT}};
    pawl_claim_args args = {
        .worker = "w1", .lines = lines, .lines_count = 2, .bytes_max = bytes_max};
    return claim(s, &args, 100);
}

static void a_claim_stops_before_it_carries_too_much(struct stage *s)
{
    for (int i = 0; i < 3; i++)
        put_bytes(s, "a", 100);
    put_bytes(s, "b", 100);
    expect_number(take_bytes(s, 299).count, 2);
    expect_number(take_bytes(s, 200).count, 2); /* the last of a, and b's one: exactly 200 */
    expect_nothing(s, "a");
    expect_nothing(s, "b");
}

static void a_claim_gives_one_job_however_large(struct stage *s)
{
    put_bytes(s, "a", 5000);
    put_bytes(s, "a", 5000);
    expect_number(take_bytes(s, 10).count, 1);
    expect_number(take_bytes(s, 10).count, 1);
    expect_number(take_bytes(s, 10).count, 0);
}

/* 16 MiB where the caller does not say */
static void a_claim_carries_sixteen_megabytes(struct stage *s)
{
    for (int i = 0; i < 17; i++)
        put_bytes(s, "a", PAWL_PAYLOAD_MAX);
    expect_number(take_bytes(s, PAWL_DEFAULT).count, 16);
    expect_number(take_bytes(s, PAWL_DEFAULT).count, 1);
}

/* ---------------------------------------------------------------- pause */

static void a_paused_queue_gives_nothing(struct stage *s)
{
    pawl_id id = put(s, "mail");
    put(s, "other");
    pause_queue(s, "mail", true);
    expect_nothing(s, "mail");
    pawl_claim_line lines[] = {{"mail", 5, PAWL_DEFAULT}, {"other", 5, PAWL_DEFAULT}};
    struct batch batch = take_lines(s, lines, 2, 10);
    expect_number(batch.count, 1);
    assert_string_equal(batch.jobs[0]->queue, "other");
    expect_state(s, id, PAWL_READY);

    pause_queue(s, "mail", false);
    expect_id(take(s, "mail", "w1")->id, id);
}

/* ---------------------------------------------------------------- expired leases */

/* RES-4, Q-TTL, FR-004 */
static void a_claim_takes_an_expired_job_directly(struct stage *s)
{
    pawl_id id = put(s, "mail");
    const pawl_job *lost = take_and_lose(s, "mail", "w1");
    const pawl_job *job = take(s, "mail", "w2");

    expect_id(job->id, id);
    assert_string_equal(job->worker, "w2");
    expect_number(job->lost_leases, 1);
    expect_number(job->retries, 0);
    expect_ledger(s, id, "ZOMBIE_REQUEUE expired"); /* exactly one row */
    expect_number(reap_up_to(s, 10).count, 0);
    expect_ledger(s, id, "ZOMBIE_REQUEUE expired");

    size_t count = 0;
    const pawl_attempt *row = ledger(s, id, &count);
    assert_string_equal(row->worker, "w1");
    expect_number(row->lease_version, lost->lease_version);
    expect_number(row->ended_by, PAWL_ENDED_BY_EXPIRY);
}

/* Also where it is the same worker that comes back. */
static void a_worker_may_take_again_what_it_lost(struct stage *s)
{
    pawl_id id = put(s, "mail");
    const pawl_job *lost = take_and_lose(s, "mail", "w1");
    const pawl_job *job = take(s, "mail", "w1");
    expect_number(job->lease_version, lost->lease_version + 1);
    expect_code(succeed(s, lost).code, PAWL_STALE);
    expect_code(succeed(s, job).code, PAWL_OK);
    expect_ledger(s, id, "ZOMBIE_REQUEUE expired, DISPATCHED");
}

/* ---------------------------------------------------------------- mine */

static void expect_same_lease(const pawl_job *a, const pawl_job *b)
{
    expect_id(a->id, b->id);
    expect_true(is_same_token(&a->token, &b->token));
    expect_number(a->lease_version, b->lease_version);
    expect_number(a->expires_at.us, b->expires_at.us);
    expect_number(a->run_until.us, b->run_until.us);
    expect_number(a->lease_ms, b->lease_ms);
    assert_string_equal(a->worker, b->worker);
    assert_string_equal(a->queue, b->queue);
    expect_number(a->payload_len, (int64_t)b->payload_len);
    assert_memory_equal(a->payload, b->payload, b->payload_len);
}

/* And all else that is told of a job. */
static void expect_same_job(const pawl_job *a, const pawl_job *b)
{
    expect_same_lease(a, b);
    expect_number(a->state, b->state);
    expect_number(a->priority, b->priority);
    expect_number(a->retries, b->retries);
    expect_number(a->lost_leases, b->lost_leases);
    expect_number(a->attempts, b->attempts);
    expect_number(a->max_retries, b->max_retries);
    expect_number(a->created_at.us, b->created_at.us);
    expect_number(a->due_at.us, b->due_at.us);
    expect_number(a->start_by.us, b->start_by.us);
    expect_number(a->reason, b->reason);
    expect_number(a->claimed_at.us, b->claimed_at.us);
    expect_number(a->timeout_ms, b->timeout_ms);
    expect_number(a->fence, b->fence);
    assert_string_equal(a->ordering_key, b->ordering_key);
    assert_string_equal(a->headers != NULL ? a->headers : "", b->headers != NULL ? b->headers : "");
}

/* Q-ONE-LEASE */
static void mine_tells_what_claim_gave(struct stage *s)
{
    put(s, "mail");
    const pawl_job *job = take(s, "mail", "w1");
    put(s, "mail");
    (void)take(s, "mail", "w2"); /* somebody else's, which must not be told */

    struct batch held = mine(s, "w1");
    expect_number(held.count, 1);
    expect_same_lease(held.jobs[0], job);
    struct picture before = picture_of(s, job->id);
    expect_number(mine(s, "w1").count, 1);
    expect_unchanged(s, &before);
    expect_number(mine(s, "w3").count, 0);
    expect_code(succeed(s, held.jobs[0]).code, PAWL_OK); /* its lease is as good as the claim's */
    expect_number(mine(s, "w1").count, 0);
}

/* Jobs as they are usual, and such as differ in one thing each. */
static void put_all_kinds(struct stage *s, const char *queue)
{
    pawl_enqueue_row rows[6];
    put_some(s, queue, 4);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        rows[i] = row_for(queue);
    rows[0].priority = 7;
    rows[1].max_retries = 9;
    rows[2].timeout_ms = 7 * MINUTE;
    rows[3].start_within_ms = MINUTE;
    rows[4].delay_ms = SECOND;
    rows[5].headers = "a: b\n";
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        (void)put_row(s, &rows[i]); /* found by the claim */
}

/* Stores may tell what many jobs share only once; of each it must be what it is. */
static void mine_tells_what_large_claims_gave(struct stage *s)
{
    pawl_claim_line lines[] = {
        {"a", 50, PAWL_DEFAULT}, {"b", 50, MINUTE}, {"keyed", 50, PAWL_DEFAULT}};
    put_all_kinds(s, "a");
    put_all_kinds(s, "b");
    put_all_kinds(s, "keyed");
    pawl_enqueue_row keyed = row_for("keyed");
    keyed.ordering_key = "k";
    (void)put_row(s, &keyed); /* likewise */
    expect_code(retry_in(s, take(s, "a", "w2"), SECOND).code, PAWL_OK);
    age(s, 2 * SECOND);
    put_some(s, "before", 6);
    expect_number(take_up_to(s, "before", "w1", 50).count, 6); /* tells what to expect */

    struct batch given = take_lines(s, lines, 3, 50);
    struct batch held = mine(s, "w1");
    expect_number(given.count, 31);
    expect_number(held.count, 6 + 31);
    for (size_t i = 0; i < given.count; i++) {
        size_t at = 0;
        while (at < held.count && pawl_id_compare(&held.jobs[at]->id, &given.jobs[i]->id) != 0)
            at++;
        expect_true(at < held.count);
        expect_same_job(given.jobs[i], held.jobs[at]);
    }
    for (size_t i = 0; i < given.count; i++)
        expect_code(succeed(s, given.jobs[i]).code, PAWL_OK);
}

static void mine_tells_valid_leases_only(struct stage *s)
{
    put(s, "mail");
    put(s, "mail");
    put(s, "mail");
    (void)take_for(s, "mail", "w1", 10 * SECOND); /* runs out below */
    const pawl_job *job = take_for(s, "mail", "w1", MINUTE);
    expect_code(release(s, take(s, "mail", "w1")), PAWL_OK);
    age(s, 20 * SECOND);
    struct batch held = mine(s, "w1");
    expect_batch(held, job->id);
}

static void mine_comes_in_pages_by_id(struct stage *s)
{
    put_some(s, "mail", 5);
    expect_number(take_up_to(s, "mail", "w1", 5).count, 5);
    struct batch all = mine(s, "w1");
    expect_number(all.count, 5);

    pawl_job page[2] = {0};
    size_t seen = 0;
    const pawl_id *after = NULL;
    pawl_id last;
    for (;;) {
        size_t count = 0;
        pawl_err err;
        expect_code(pawl_mine(s->store, "w1", after, page, 2, &count, &err), PAWL_OK);
        for (size_t i = 0; i < count; i++) {
            const pawl_job *job = stage_keep(s, &page[i]);
            expect_true(seen < all.count);
            expect_id(job->id, all.jobs[seen++]->id);
        }
        if (count < 2)
            break;
        last = page[1].id;
        after = &last;
    }
    expect_number(seen, 5);
    for (size_t i = 1; i < all.count; i++)
        expect_true(pawl_id_compare(&all.jobs[i - 1]->id, &all.jobs[i]->id) < 0);
}

static const struct suite_case cases[] = {
    CASE(a_claim_grants_a_lease),
    CASE(a_claim_may_name_its_lease),
    CASE(a_leased_job_is_invisible),
    CASE_ON(EXACT_CLOCK, a_lease_holds_to_the_last_millisecond),
    CASE(an_unknown_queue_gives_nothing),
    CASE(an_empty_queue_gives_nothing),
    CASE(what_has_ended_is_never_given_out),
    CASE(every_job_on_every_claim_has_its_own_token),
    CASE(the_version_rises_by_one_with_each_claim),
    CASE(a_claim_takes_no_more_than_asked),
    CASE(each_line_has_its_own_maximum),
    CASE(lines_are_served_in_the_order_given),
    CASE(a_claim_stops_before_it_carries_too_much),
    CASE(a_claim_gives_one_job_however_large),
    CASE_ON(ONE_SHARD, a_claim_carries_sixteen_megabytes), /* once: it moves much */
    CASE(a_paused_queue_gives_nothing),
    CASE(a_claim_takes_an_expired_job_directly),
    CASE(a_worker_may_take_again_what_it_lost),
    CASE(mine_tells_what_claim_gave),
    CASE(mine_tells_what_large_claims_gave),
    CASE(mine_tells_valid_leases_only),
    CASE(mine_comes_in_pages_by_id),
};

SUITE_GROUP(claim);

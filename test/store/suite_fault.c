/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * suite_fault.c - what a caller does about a reply that it never got.
 * Owns:  the cases about repeating and asking after PAWL_UNKNOWN and PAWL_DOWN.
 * Never: loses more than the calls that it scripts.
 */
#include "store/helpers.h"

#include "support/fault_store.h"

/* Put the fault store between the case and its store. */
static void unplug(struct stage *s)
{
    pawl_store *wrapped = NULL;
    pawl_err err;
    expect_code(fault_store_open(s->store, &wrapped, &err), PAWL_OK);
    s->handles[0] = wrapped;
    s->store = wrapped;
}

static void next_is(struct stage *s, enum fault_verb verb, enum fault_kind kind)
{
    struct fault fault = {.verb = verb, .nth = 1, .kind = kind};
    expect_code(fault_store_add(s->store, &fault), PAWL_OK);
}

/* ---------------------------------------------------------------- enqueue */

static pawl_code put_unsafely(struct stage *s, const pawl_enqueue_row *row, pawl_code *ret_verdict)
{
    pawl_enqueued result = {0};
    pawl_err err;
    pawl_code code = pawl_enqueue(s->store, row, 1, &result, &err);
    *ret_verdict = result.code;
    return code;
}

/* Q-ENQUEUE, Q-AT-LEAST-ONCE: repeat with the same id; EXISTS then means that it is there */
static void an_enqueue_is_repeated_after_a_lost_reply(struct stage *s)
{
    unplug(s);
    pawl_enqueue_row row = row_for("mail");
    row.dedupe_key = "k";
    row.id = new_id(s, &row);
    pawl_code verdict;
    next_is(s, FAULT_ENQUEUE, FAULT_LOST_REPLY);
    expect_code(put_unsafely(s, &row, &verdict), PAWL_UNKNOWN);
    expect_code(put_unsafely(s, &row, &verdict), PAWL_OK);
    expect_code(verdict, PAWL_EXISTS);
    expect_number(list(s, NULL).count, 1);
    expect_id(take(s, "mail", "w1")->id, row.id);
}

static void an_enqueue_is_repeated_after_a_lost_request(struct stage *s)
{
    unplug(s);
    const enum fault_kind kinds[] = {FAULT_LOST_REQUEST, FAULT_DOWN};
    const pawl_code codes[] = {PAWL_UNKNOWN, PAWL_DOWN};
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        pawl_enqueue_row row = row_for("mail");
        row.id = new_id(s, &row);
        pawl_code verdict;
        next_is(s, FAULT_ENQUEUE, kinds[i]);
        expect_code(put_unsafely(s, &row, &verdict), codes[i]);
        expect_true(is_gone(s, row.id));
        expect_code(put_unsafely(s, &row, &verdict), PAWL_OK);
        expect_code(verdict, PAWL_OK);
    }
    expect_number(list(s, NULL).count, 2);
}

/* Q-NEVER-AGAIN: however late the copy comes */
static void an_enqueue_that_arrives_twice_is_one_job(struct stage *s)
{
    unplug(s);
    pawl_enqueue_row row = row_for("mail");
    pawl_code verdict;
    next_is(s, FAULT_ENQUEUE, FAULT_TWICE_FIRST);
    expect_code(put_unsafely(s, &row, &verdict), PAWL_OK);
    expect_code(verdict, PAWL_OK);
    next_is(s, FAULT_ENQUEUE, FAULT_TWICE_SECOND);
    expect_code(put_unsafely(s, &row, &verdict), PAWL_OK);
    expect_code(verdict, PAWL_EXISTS);
    expect_number(list(s, NULL).count, 2);
}

/* ---------------------------------------------------------------- settle */

static pawl_code settle_unsafely(struct stage *s, const pawl_settle_row *row)
{
    pawl_settled settled = {0};
    pawl_err err;
    return pawl_settle(s->store, "w1", row, 1, &settled, &err);
}

/* Q-ACK, Q-NACK, RES-12: found by its ledger row, and done once */
static void a_settle_is_repeated_after_a_lost_reply(struct stage *s)
{
    unplug(s);
    const pawl_settle_action actions[] = {PAWL_SUCCEED, PAWL_RETRY, PAWL_FAIL, PAWL_SNOOZE};
    const char *const ledgers[] = {"DISPATCHED", "RETRYABLE error", "FAILED fatal",
                                   "RETRYABLE snooze"};
    const char *const queues[] = {"a", "b", "c", "d"};
    for (size_t i = 0; i < COUNT_OF(actions); i++) {
        pawl_id id = put(s, queues[i]);
        pawl_settle_row row = settle_row_for(take(s, queues[i], "w1"), actions[i]);
        next_is(s, FAULT_SETTLE, FAULT_LOST_REPLY);
        expect_code(settle_unsafely(s, &row), PAWL_UNKNOWN);
        expect_code(settle_row(s, "w1", &row).code, PAWL_OK);
        expect_ledger(s, id, ledgers[i]);
    }
}

/* RES-3: the request was lost, so the repeat is the settle, under the same lease rules */
static void a_settle_is_repeated_after_a_lost_request(struct stage *s)
{
    unplug(s);
    pawl_id id = put(s, "mail");
    pawl_settle_row row = settle_row_for(take(s, "mail", "w1"), PAWL_SUCCEED);
    next_is(s, FAULT_SETTLE, FAULT_LOST_REQUEST);
    expect_code(settle_unsafely(s, &row), PAWL_UNKNOWN);
    expect_state(s, id, PAWL_IN_FLIGHT);
    next_is(s, FAULT_SETTLE, FAULT_DOWN);
    expect_code(settle_unsafely(s, &row), PAWL_DOWN);
    expect_state(s, id, PAWL_IN_FLIGHT);
    age(s, LEASE + SECOND);
    expect_code(settle_row(s, "w1", &row).code, PAWL_STALE);
    expect_ledger(s, id, "");
}

static void a_settle_that_arrives_twice_is_done_once(struct stage *s)
{
    unplug(s);
    pawl_id id = put(s, "mail");
    pawl_settle_row row = settle_row_for(take(s, "mail", "w1"), PAWL_RETRY);
    next_is(s, FAULT_SETTLE, FAULT_TWICE_SECOND);
    expect_code(settle_row(s, "w1", &row).code, PAWL_OK);
    expect_ledger(s, id, "RETRYABLE error");
    expect_number(look(s, id)->retries, 1);
}

struct meanwhile {
    struct stage *s;
    pawl_store *direct; /* a handle without faults */
    const pawl_job *taken;
};

/* While the request is on its way: the lease ends, and somebody else takes the job. */
static void lose_the_lease(void *user)
{
    struct meanwhile *meanwhile = user;
    struct stage *s = meanwhile->s;
    pawl_store *slow = s->store;
    s->store = meanwhile->direct;
    age(s, LEASE + SECOND);
    meanwhile->taken = take(s, "mail", "w2");
    s->store = slow;
}

/* RES-3, Q-STALE: judged when it arrives, not when it was sent */
static void a_settle_held_up_past_the_lease_is_stale(struct stage *s)
{
    unplug(s);
    put(s, "mail");
    pawl_settle_row row = settle_row_for(take(s, "mail", "w1"), PAWL_SUCCEED);
    struct meanwhile meanwhile = {.s = s, .direct = stage_handle(s)};
    struct fault fault = {
        .verb = FAULT_SETTLE, .nth = 1, .before_request = lose_the_lease, .user = &meanwhile};
    expect_code(fault_store_add(s->store, &fault), PAWL_OK);
    expect_code(settle_row(s, "w1", &row).code, PAWL_STALE);
    expect_code(succeed(s, meanwhile.taken).code, PAWL_OK);
    expect_ledger(s, row.lease.job, "ZOMBIE_REQUEUE expired, DISPATCHED");
}

/* ---------------------------------------------------------------- release */

/* A repeated release is STALE and harmless. */
static void a_release_is_repeated_after_a_lost_reply(struct stage *s)
{
    unplug(s);
    pawl_id id = put(s, "mail");
    const pawl_job *job = take(s, "mail", "w1");
    pawl_lease lease = lease_of(job);
    pawl_code verdict = PAWL_OK;
    pawl_err err;
    next_is(s, FAULT_RELEASE, FAULT_LOST_REPLY);
    expect_code(pawl_release(s->store, "w1", &lease, 1, &verdict, &err), PAWL_UNKNOWN);
    expect_state(s, id, PAWL_READY);
    expect_code(release(s, job), PAWL_STALE);
    const pawl_job *next = take(s, "mail", "w2");
    expect_code(release(s, job), PAWL_STALE);
    expect_code(succeed(s, next).code, PAWL_OK);
    expect_ledger(s, id, "DISPATCHED");
}

static void a_release_is_repeated_after_a_lost_request(struct stage *s)
{
    unplug(s);
    pawl_id id = put(s, "mail");
    const pawl_job *job = take(s, "mail", "w1");
    pawl_lease lease = lease_of(job);
    pawl_code verdict = PAWL_OK;
    pawl_err err;
    next_is(s, FAULT_RELEASE, FAULT_LOST_REQUEST);
    expect_code(pawl_release(s->store, "w1", &lease, 1, &verdict, &err), PAWL_UNKNOWN);
    expect_state(s, id, PAWL_IN_FLIGHT);
    expect_code(release(s, job), PAWL_OK);
    expect_state(s, id, PAWL_READY);
}

/* ---------------------------------------------------------------- claim */

static pawl_code claim_unsafely(struct stage *s)
{
    pawl_claim_line line = {"mail", 10, PAWL_DEFAULT};
    pawl_claim_args args = {
        .worker = "w1", .lines = &line, .lines_count = 1, .bytes_max = PAWL_DEFAULT};
    pawl_job jobs[10] = {0};
    size_t count = 0;
    pawl_err err;
    return pawl_claim(s->store, &args, jobs, 10, &count, &err);
}

/* RES-5: a lost claim reply leaves leases in the worker's name; asking finds them, so nothing is
 * lost and nothing looks like poison */
static void a_lost_claim_is_found_by_asking(struct stage *s)
{
    unplug(s);
    for (int i = 0; i < 3; i++)
        put(s, "mail");
    next_is(s, FAULT_CLAIM, FAULT_LOST_REPLY);
    expect_code(claim_unsafely(s), PAWL_UNKNOWN);
    expect_nothing(s, "mail");
    struct batch held = mine(s, "w1");
    expect_number(held.count, 3);
    expect_code(succeed(s, held.jobs[0]).code, PAWL_OK);
    expect_code(release(s, held.jobs[1]), PAWL_OK);
    expect_code(renew(s, held.jobs[2]).code, PAWL_OK);
    assert_memory_equal(held.jobs[0]->payload, "work", 4);
    expect_ledger(s, held.jobs[0]->id, "DISPATCHED");
    expect_number(look(s, held.jobs[1]->id)->lost_leases, 0);
}

/* Q-STORE-DOWN: while the store is away nothing is done, and what was committed is kept */
static void a_claim_that_never_arrived_took_nothing(struct stage *s)
{
    unplug(s);
    put(s, "mail");
    next_is(s, FAULT_CLAIM, FAULT_LOST_REQUEST);
    expect_code(claim_unsafely(s), PAWL_UNKNOWN);
    next_is(s, FAULT_CLAIM, FAULT_DOWN);
    expect_code(claim_unsafely(s), PAWL_DOWN);
    expect_number(mine(s, "w1").count, 0);
    expect_number(take(s, "mail", "w1")->lease_version, 1);
}

/* Q-ONE-LEASE: a claim that arrives twice takes two jobs, never one job twice */
static void a_claim_that_arrives_twice_gives_each_job_once(struct stage *s)
{
    unplug(s);
    put(s, "mail");
    put(s, "mail");
    next_is(s, FAULT_CLAIM, FAULT_TWICE_SECOND);
    const pawl_job *told = take(s, "mail", "w1");
    struct batch held = mine(s, "w1");
    expect_number(held.count, 2);
    expect_number(held.jobs[0]->lease_version, 1);
    expect_number(held.jobs[1]->lease_version, 1);
    expect_code(succeed(s, told).code, PAWL_OK);
}

/* ---------------------------------------------------------------- others */

/* Q-EXTEND: renewing twice is renewing once */
static void a_renewal_is_repeated_after_a_lost_reply(struct stage *s)
{
    unplug(s);
    put(s, "mail");
    const pawl_job *job = take(s, "mail", "w1");
    age(s, 10 * SECOND);
    pawl_renew_row row = {.lease = lease_of(job), .lease_ms = PAWL_DEFAULT};
    pawl_renewed renewed;
    pawl_err err;
    next_is(s, FAULT_RENEW, FAULT_LOST_REPLY);
    expect_code(pawl_renew(s->store, "w1", &row, 1, &renewed, &err), PAWL_UNKNOWN);
    pawl_renewed again = renew(s, job);
    expect_code(again.code, PAWL_OK);
    expect_near(s, again.expires_at, LEASE);
}

/* RES-4: a reaper whose reply was lost has recovered all the same, once */
static void a_lost_reap_is_not_repeated_on_the_jobs(struct stage *s)
{
    unplug(s);
    pawl_id id = put(s, "mail");
    (void)take_and_lose(s, "mail", "w1");
    pawl_reaped row;
    size_t count = 0;
    pawl_err err;
    next_is(s, FAULT_REAP, FAULT_LOST_REPLY);
    expect_code(pawl_reap(s->store, &row, 1, &count, &err), PAWL_UNKNOWN);
    expect_number(reap_up_to(s, 10).count, 0);
    expect_ledger(s, id, "ZOMBIE_REQUEUE expired");
}

/* RES-13, Q-DEAD-LETTER: asking twice is harmless */
static void operators_may_repeat_themselves(struct stage *s)
{
    unplug(s);
    pawl_id id = put(s, "mail");
    pawl_changed changed;
    pawl_err err;
    next_is(s, FAULT_CANCEL, FAULT_LOST_REPLY);
    expect_code(pawl_cancel(s->store, &id, 1, &changed, &err), PAWL_UNKNOWN);
    expect_code(cancel(s, id).code, PAWL_OK);
    expect_ledger(s, id, "FAILED cancelled");
    next_is(s, FAULT_DISCARD, FAULT_LOST_REPLY);
    expect_code(pawl_discard(s->store, &id, 1, &changed, &err), PAWL_UNKNOWN);
    expect_code(discard(s, id).code, PAWL_OK);
    expect_ledger(s, id, "FAILED cancelled");
}

static const struct suite_case cases[] = {
    CASE(an_enqueue_is_repeated_after_a_lost_reply),
    CASE(an_enqueue_is_repeated_after_a_lost_request),
    CASE(an_enqueue_that_arrives_twice_is_one_job),
    CASE(a_settle_is_repeated_after_a_lost_reply),
    CASE(a_settle_is_repeated_after_a_lost_request),
    CASE(a_settle_that_arrives_twice_is_done_once),
    CASE(a_settle_held_up_past_the_lease_is_stale),
    CASE(a_release_is_repeated_after_a_lost_reply),
    CASE(a_release_is_repeated_after_a_lost_request),
    CASE(a_lost_claim_is_found_by_asking),
    CASE(a_claim_that_never_arrived_took_nothing),
    CASE(a_claim_that_arrives_twice_gives_each_job_once),
    CASE(a_renewal_is_repeated_after_a_lost_reply),
    CASE(a_lost_reap_is_not_repeated_on_the_jobs),
    CASE(operators_may_repeat_themselves),
};

SUITE_GROUP(fault);

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * pg_key_races_test.c - two programs want jobs of one ordering key, or the last place under a
 * bound: each race told step by step, in every order that matters. RES-7 in all of them: nobody
 * starts out of turn, nobody is left behind.
 *
 * Jobs are named by their payloads.
 */
#include "race/race_stage.h"

#include <string.h>

#define LEASE_IS_OVER_MS (RACE_LEASE_MS + 1)
#define OLD_SNAPSHOT     "begin isolation level repeatable read; select 1"

static void put_in(PGconn *session, const char *name, const char *more)
{
    struct race_text told = race_ask(
        session, "select pawl.enqueue('" RACE_QUEUE "', '%s'::text, p_ordering_key => 'k'%s)", name,
        more);
    assert_int_equal(strlen(told.text), PAWL_ID_TEXT_MAX - 1);
}

static void put(struct race *race, const char *name)
{
    put_in(race->watching, name, "");
}

/* Two in one call; gives how many were taken. */
static struct race_text put_batch(PGconn *session, const char *first, const char *second)
{
    return race_ask(session,
                    "select count(*) from pawl.enqueue_batch(0, '{" RACE_QUEUE "," RACE_QUEUE
                    "}', array[pawl.new_id('" RACE_QUEUE "'), pawl.new_id('" RACE_QUEUE "')], "
                    "array['%s', '%s']::bytea[], p_ordering_keys => '{k,k}') where verdict = 'OK'",
                    first, second);
}

#define TAKE_SQL                                                                \
    "select coalesce(string_agg(convert_from(payload, 'UTF8'), ','), '') from " \
    "pawl.claim_outbox_batch(9, '%s', 30, '" RACE_QUEUE "')"

/* What a claim of all that there is gives: names with commas between them. */
static struct race_text take(PGconn *session, const char *worker)
{
    return race_ask(session, TAKE_SQL, worker);
}

#define DONE_SQL                                                                                 \
    "select pawl.complete_outbox_attempt(id, lease_token, claimed_by, '%s', p_retry_seconds => " \
    "0) from pawl.job where payload = '%s'"

/* Gives the number of the attempt, or the SQLSTATE. */
static struct race_text end(PGconn *session, const char *name, const char *outcome)
{
    return race_ask(session, DONE_SQL, outcome, name);
}

static struct race_text cancel_one(PGconn *session, const char *name)
{
    return race_ask(session,
                    "select c.verdict from pawl.job j, pawl.cancel_batch(0, array[j.id]) c where "
                    "j.payload = '%s'",
                    name);
}

static void begin(PGconn *session)
{
    expect_told(race_ask(session, "begin"), "");
}

static void commit(PGconn *session)
{
    expect_told(race_ask(session, "commit"), "");
}

static void roll_back(PGconn *session)
{
    expect_told(race_ask(session, "rollback"), "");
}

/* All that is left starts one after the other, in this order, and then no key is held. */
static void expect_rest(struct race *race, const char *const *names)
{
    for (; *names != NULL; names++) {
        expect_told(take(race->watching, "rest"), *names);
        expect_told(take(race->watching, "other"), "");
        (void)end(race->watching, *names, "DISPATCHED"); /* the next step sees whether it has */
    }
    expect_told(take(race->watching, "rest"), "");
    expect_told(race_ask(race->watching, "select count(*) from pawl.job"), "0");
    expect_told(race_ask(race->watching, "select count(*) from pawl.hold"), "0");
}

#define REST(race, ...) expect_rest((race), (const char *const[]){__VA_ARGS__, NULL})

/* ---------------------------------------------------------------- the lost wake-up */

/* An enqueue that is not committed when the job before it ends. */
static void wake_enqueue_commits_after_the_end(void **state)
{
    struct race *race = *state;
    put(race, "a");
    expect_told(take(race->sql, "w"), "a");
    begin(race->sql2);
    put_in(race->sql2, "b", "");
    expect_told(end(race->sql, "a", "DISPATCHED"), "1"); /* nobody waits here */
    commit(race->sql2);
    REST(race, "b");
}

/* The same of two in one call: the second has been parked from the start. */
static void wake_a_batch_commits_after_the_end(void **state)
{
    struct race *race = *state;
    put(race, "a");
    expect_told(take(race->sql, "w"), "a");
    begin(race->sql2);
    expect_told(put_batch(race->sql2, "b", "c"), "2");
    expect_told(end(race->sql, "a", "DISPATCHED"), "1");
    commit(race->sql2);
    REST(race, "b", "c");
}

/* A claim parks behind a job whose end waits for it, and then must see whom it has parked. */
static void park_then_end(struct race *race, const char *how_the_claim_ends)
{
    put(race, "a");
    expect_told(take(race->sql, "w"), "a");
    put(race, "b");
    begin(race->sql2);
    expect_told(take(race->sql2, "w2"), ""); /* it parks b */
    race_send(race->sql, DONE_SQL, "DISPATCHED", "a");
    race_await_waiting(race);
    expect_told(race_ask(race->sql2, "%s", how_the_claim_ends), "");
    expect_told(race_answer(race->sql), "1");
    REST(race, "b");
}

static void wake_claim_parks_before_the_end(void **state)
{
    park_then_end(*state, "commit");
}

static void wake_claim_parks_and_gives_up(void **state)
{
    park_then_end(*state, "rollback");
}

/* The end is not committed: a claim neither waits for it, nor takes or parks the next one. */
static void wake_end_is_committed_after_a_claim(void **state)
{
    struct race *race = *state;
    put(race, "a");
    expect_told(take(race->sql, "w"), "a");
    put(race, "b");
    begin(race->sql);
    expect_told(end(race->sql, "a", "DISPATCHED"), "1");
    expect_told(take(race->sql2, "w2"), "");
    commit(race->sql);
    REST(race, "b");
}

static void wake_end_is_rolled_back_after_a_claim(void **state)
{
    struct race *race = *state;
    put(race, "a");
    expect_told(take(race->sql, "w"), "a");
    put(race, "b");
    begin(race->sql);
    expect_told(end(race->sql, "a", "DISPATCHED"), "1");
    expect_told(take(race->sql2, "w2"), "");
    roll_back(race->sql);
    expect_told(take(race->sql2, "w2"), "");
    expect_told(end(race->sql, "a", "DISPATCHED"), "1");
    REST(race, "b");
}

/* While an end is not committed, the next job can neither start nor be parked: it keeps nobody else
 * waiting all the same. */
static void wake_others_pass_by(void **state)
{
    struct race *race = *state;
    put(race, "a");
    expect_told(take(race->sql, "w"), "a");
    put(race, "b");
    put(race, "c");
    expect_told(race_ask(race->watching, "select pawl.enqueue('q', 'x'::text) is not null"), "t");
    begin(race->sql);
    expect_told(end(race->sql, "a", "DISPATCHED"), "1");
    expect_told(race_ask(race->sql2, "select convert_from(payload, 'UTF8') from "
                                     "pawl.claim_outbox_batch(1, 'w2', 30, 'q')"),
                "x");
    commit(race->sql);
    expect_told(end(race->sql, "x", "DISPATCHED"), "1");
    REST(race, "b", "c");
}

/* However many they are. */
static void wake_others_pass_by_very_many(void **state)
{
    struct race *race = *state;
    put(race, "a");
    expect_told(take(race->sql, "w"), "a");
    begin(race->sql);
    expect_told(end(race->sql, "a", "FAILED"), "1");
    expect_told(race_ask(race->watching,
                         "select count(pawl.enqueue('q', 'b'::text, p_ordering_key => 'k')) from "
                         "generate_series(1, 2500)"),
                "2500");
    expect_told(race_ask(race->watching, "select pawl.enqueue('q', 'x'::text) is not null"), "t");
    expect_told(take(race->sql2, "w2"), "x");
    roll_back(race->sql);
    expect_told(take(race->sql2, "w2"), "");
    expect_told(race_ask(race->watching, "select count(*) from pawl.job where lane = 2"), "2500");
}

/* The one who is parked next is in somebody else's hands when the turn is his. */
static void wake_the_next_is_locked(void **state)
{
    struct race *race = *state;
    put(race, "a");
    expect_told(take(race->sql, "w"), "a");
    put(race, "b");
    put(race, "c");
    expect_told(take(race->sql, "w"), ""); /* parks both */
    begin(race->sql2);
    expect_told(race_ask(race->sql2, "select 1 from pawl.job where payload = 'b' for update"), "1");
    expect_told(end(race->sql, "a", "DISPATCHED"), "1"); /* does not wait */
    expect_told(take(race->sql, "w"), "");               /* nor gives c its turn */
    roll_back(race->sql2);
    REST(race, "b", "c");
}

/* Two came in one call after the end had looked for the next one; the first is cancelled. */
static void wake_a_batch_loses_its_first_meanwhile(void **state)
{
    struct race *race = *state;
    put(race, "a");
    expect_told(take(race->sql, "w"), "a");
    begin(race->sql);
    expect_told(end(race->sql, "a", "DISPATCHED"), "1");
    expect_told(put_batch(race->watching, "b", "c"), "2");
    expect_told(cancel_one(race->sql2, "b"), "OK"); /* does not wait */
    expect_told(take(race->sql2, "w2"), "");
    commit(race->sql);
    REST(race, "c");
}

/* ---------------------------------------------------------------- under an old snapshot */

/* A completion in the caller's transaction, whose snapshot does not show who was parked since. */
static void old_snapshot_ends_the_first(void **state)
{
    struct race *race = *state;
    put(race, "a");
    expect_told(take(race->sql, "w"), "a");
    expect_told(race_ask(race->sql, OLD_SNAPSHOT), "1");
    put(race, "b");
    expect_told(take(race->sql2, "w2"), ""); /* parks b */
    expect_told(end(race->sql, "a", "DISPATCHED"), "1");
    commit(race->sql);
    REST(race, "b");
}

static void old_snapshot_is_rolled_back(void **state)
{
    struct race *race = *state;
    put(race, "a");
    expect_told(take(race->sql, "w"), "a");
    expect_told(race_ask(race->sql, OLD_SNAPSHOT), "1");
    put(race, "b");
    expect_told(take(race->sql2, "w2"), "");
    expect_told(end(race->sql, "a", "DISPATCHED"), "1");
    roll_back(race->sql);
    expect_told(take(race->sql2, "w2"), "");
    expect_told(end(race->sql, "a", "DISPATCHED"), "1");
    REST(race, "b");
}

/* A claim has given a delayed job the key since: its row says so, and the cancellation fails. */
static void old_snapshot_cancels_the_first(void **state)
{
    struct race *race = *state;
    put_in(race->watching, "a", ", p_delay_ms => 60000");
    expect_told(race_ask(race->sql, OLD_SNAPSHOT), "1");
    put(race, "b");
    expect_told(take(race->sql2, "w2"), ""); /* a holds the key, b is parked */
    expect_told(cancel_one(race->sql, "a"), "40001");
    roll_back(race->sql);
    expect_told(cancel_one(race->sql, "a"), "OK");
    REST(race, "b");
}

/* A claim has given a job the key that did not fit into its bytes any more: likewise. */
static void old_snapshot_cancels_who_did_not_fit(void **state)
{
    struct race *race = *state;
    expect_told(race_ask(race->watching, "select pawl.enqueue('" RACE_QUEUE "', 'x'::text, "
                                         "p_ordering_key => 'other') is not null"),
                "t");
    put(race, "a");
    expect_told(race_ask(race->sql, OLD_SNAPSHOT), "1");
    expect_told(race_ask(race->sql2,
                         "select convert_from(payload, 'UTF8') from pawl.claim_batch(0, 'w2', "
                         "'{" RACE_QUEUE "}', '{9}', null, 9, 1, sha256('seed'))"),
                "x");
    expect_told(cancel_one(race->sql, "a"), "40001");
    roll_back(race->sql);
    expect_told(cancel_one(race->sql, "a"), "OK");
    expect_told(end(race->sql, "x", "DISPATCHED"), "1");
    put(race, "b");
    REST(race, "b");
}

/* Positions do not come from the snapshot. */
static void old_snapshot_enqueues(void **state)
{
    struct race *race = *state;
    put(race, "a");
    expect_told(race_ask(race->sql, OLD_SNAPSHOT), "1");
    put(race, "b");
    put_in(race->sql, "c", "");
    commit(race->sql);
    REST(race, "a", "b", "c");
}

/* What others have claimed since would not be seen: such a claim is refused. */
static void old_snapshot_claims(void **state)
{
    struct race *race = *state;
    put(race, "a");
    expect_told(race_ask(race->sql, OLD_SNAPSHOT), "1");
    expect_told(take(race->sql, "w"), "P7001");
    roll_back(race->sql);
    REST(race, "a");
}

/* ---------------------------------------------------------------- claim against claim */

/* The second waits for the first, and then sees what it has left. */
static void claims_of_one_key(struct race *race, const char *how_the_first_ends,
                              const char *second_gets)
{
    put(race, "a");
    put(race, "b");
    begin(race->sql);
    expect_told(take(race->sql, "w"), "a");
    race_send(race->sql2, TAKE_SQL, "w2");
    race_await_waiting(race);
    expect_told(race_ask(race->sql, "%s", how_the_first_ends), "");
    expect_told(race_answer(race->sql2), second_gets);
    expect_told(take(race->sql, "w"), "");
    expect_told(end(race->sql, "a", "DISPATCHED"), "1");
    REST(race, "b");
}

static void claim_claim_first_commits(void **state)
{
    claims_of_one_key(*state, "commit", "");
}

static void claim_claim_first_gives_up(void **state)
{
    claims_of_one_key(*state, "rollback", "a");
}

/* Who is at one gate does not wait at another: two who come from two sides would wait for ever. */
static void claim_claim_two_gates(void **state)
{
    struct race *race = *state;
    put(race, "a");
    expect_told(race_ask(race->watching,
                         "select pawl.enqueue('q2', 'x'::text, p_ordering_key => 'k') is not null"),
                "t");
    begin(race->sql);
    expect_told(take(race->sql, "w"), "a");
    expect_told(race_ask(race->sql2,
                         "select string_agg(convert_from(payload, 'UTF8'), ',') from "
                         "pawl.claim_lines('{0}', 'w2', '{q2," RACE_QUEUE "}', '{9,9}', "
                         "'{30000,30000}', 9, 1000, sha256('1'))"),
                "x"); /* and did not wait */
    commit(race->sql);
}

/* ---------------------------------------------------------------- late commits */

/* Makes the queue known: who comes first keeps others waiting until it commits. */
static void open_queue(struct race *race)
{
    put(race, "zero");
    expect_told(take(race->watching, "w"), "zero");
    expect_told(end(race->watching, "zero", "DISPATCHED"), "1");
}

/* An older job of the key commits while a newer one runs: it waits, whatever becomes of that. */
static void a_late_commit_waits_for_who_holds_the_key(void **state)
{
    struct race *race = *state;
    open_queue(race);
    begin(race->sql2);
    put_in(race->sql2, "early", "");
    put(race, "late");
    expect_told(take(race->sql, "w"), "late");
    commit(race->sql2);
    expect_told(take(race->sql, "w"), "");
    expect_told(end(race->sql, "late", "RETRYABLE"), "1");
    expect_told(take(race->sql, "w"), "late");
    expect_told(race_ask(race->sql, "select count(*) from pawl.job j, pawl.release_batch(0, 'w', "
                                    "array[j.id], array[j.lease_token], array[j.lease_version]) "
                                    "where j.state = 1"),
                "1");
    expect_told(take(race->sql, "w"), "late");
    race_age(race, LEASE_IS_OVER_MS);
    expect_told(take(race->sql, "w"), "late");
    expect_told(end(race->sql, "late", "DISPATCHED"), "3");
    REST(race, "early");
}

/* It comes before all that have not started, also those that are parked. */
static void a_late_commit_comes_before_the_parked(void **state)
{
    struct race *race = *state;
    open_queue(race);
    begin(race->sql2);
    put_in(race->sql2, "early", "");
    put(race, "late");
    put(race, "later");
    expect_told(take(race->sql, "w"), "late"); /* parks later */
    commit(race->sql2);
    expect_told(end(race->sql, "late", "DISPATCHED"), "1");
    REST(race, "early", "later");
}

/* ---------------------------------------------------------------- reap against claim */

static void lose_for_good(struct race *race)
{
    expect_told(race_ask(race->watching, "select pawl.queue_set('" RACE_QUEUE
                                         "', 30000, null, 3, 1, 500, 30000, null, null)"),
                "");
    put(race, "a");
    put(race, "b");
    expect_told(take(race->sql, "w"), "a");
    race_age(race, LEASE_IS_OVER_MS);
}

/* The reaper has ended the first, and is not committed: a claim leaves the key alone. */
static void reap_claim_reap_first(void **state)
{
    struct race *race = *state;
    lose_for_good(race);
    begin(race->sql2);
    expect_told(race_ask(race->sql2, "select count(*) from pawl.repair_expired_leases()"), "1");
    expect_told(take(race->sql, "w"), "");
    commit(race->sql2);
    REST(race, "b");
}

static void reap_claim_reap_is_rolled_back(void **state)
{
    struct race *race = *state;
    lose_for_good(race);
    begin(race->sql2);
    expect_told(race_ask(race->sql2, "select count(*) from pawl.repair_expired_leases()"), "1");
    expect_told(take(race->sql, "w"), "");
    roll_back(race->sql2);
    REST(race, "b"); /* the claim itself ends a */
}

/* A claim has the hold: the reaper comes again, and does not wait. */
static void reap_claim_claim_first(void **state)
{
    struct race *race = *state;
    lose_for_good(race);
    begin(race->sql2);
    expect_told(race_ask(race->sql2, "select 1 from pawl.hold for update"), "1");
    expect_told(race_ask(race->sql, "select count(*) from pawl.repair_expired_leases()"), "0");
    commit(race->sql2);
    expect_told(race_ask(race->sql, "select count(*) from pawl.repair_expired_leases()"), "1");
    REST(race, "b");
}

/* ---------------------------------------------------------------- cancel against claim */

static void cancel_first(struct race *race, const char *how, const char *first)
{
    put(race, "a");
    put(race, "b");
    begin(race->sql2);
    expect_told(cancel_one(race->sql2, "a"), "OK");
    expect_told(take(race->sql, "w"), ""); /* it does not wait, and b does not pass */
    expect_told(race_ask(race->sql2, "%s", how), "");
    if (strcmp(first, "a") == 0)
        REST(race, "a", "b");
    else
        REST(race, "b");
}

static void cancel_claim_cancel_first(void **state)
{
    cancel_first(*state, "commit", "b");
}

static void cancel_claim_cancel_is_rolled_back(void **state)
{
    cancel_first(*state, "rollback", "a");
}

/* A claim gives the key to a job that is not due yet, and parks another: the cancel sees it. */
static void cancel_claim_claim_first(void **state)
{
    struct race *race = *state;
    put_in(race->watching, "a", ", p_delay_ms => 60000");
    put(race, "b");
    begin(race->sql2);
    expect_told(take(race->sql2, "w2"), "");
    race_send(race->sql, "select c.verdict from pawl.job j, pawl.cancel_batch(0, array[j.id]) c "
                         "where j.payload = 'a'");
    race_await_waiting(race);
    commit(race->sql2);
    expect_told(race_answer(race->sql), "OK");
    REST(race, "b");
}

static void put_three(struct race *race)
{
    expect_told(race_ask(race->watching,
                         "select count(*) from pawl.enqueue_batch(0, '{q,q,q}', "
                         "array(select pawl.new_id('q') from generate_series(1, 3)), "
                         "array['a', 'b', 'c']::bytea[], p_ordering_keys => '{k,k,k}')"),
                "3");
}

/* Two are cancelled at once. The second has been given the first one's place meanwhile. */
static void cancel_cancel_the_first_two(void **state)
{
    struct race *race = *state;
    put_three(race);
    begin(race->sql);
    begin(race->sql2);
    expect_told(cancel_one(race->sql, "a"), "OK");
    race_send(race->sql2, "select c.verdict from pawl.job j, pawl.cancel_batch(0, array[j.id]) c "
                          "where j.payload = 'b'");
    race_await_waiting(race);
    commit(race->sql);
    expect_told(race_answer(race->sql2), "OK");
    expect_told(take(race->watching, "w"), "");
    commit(race->sql2);
    REST(race, "c");
}

/* Neither sees that the other goes too. */
static void cancel_cancel_the_other_way(void **state)
{
    struct race *race = *state;
    put_three(race);
    begin(race->sql);
    begin(race->sql2);
    expect_told(cancel_one(race->sql2, "b"), "OK");
    expect_told(cancel_one(race->sql, "a"), "OK");
    commit(race->sql2);
    expect_told(take(race->watching, "w"), "");
    commit(race->sql);
    REST(race, "c");
}

/* The first of a call is cancelled, and that is not committed: no claim waits for it, nor for a
 * call that came and lost its first in one transaction. */
static void cancel_claim_a_batch_loses_its_first(void **state)
{
    struct race *race = *state;
    put(race, "a");
    expect_told(put_batch(race->watching, "b", "c"), "2");
    begin(race->sql);
    expect_told(cancel_one(race->sql, "b"), "OK");
    expect_told(put_batch(race->sql, "d", "e"), "2");
    expect_told(cancel_one(race->sql, "d"), "OK");
    begin(race->sql2);
    expect_told(race_ask(race->sql2, "set local statement_timeout = '60s'"), "");
    expect_told(take(race->sql2, "w"), "a");
    commit(race->sql2);
    commit(race->sql);
    expect_told(end(race->sql, "a", "DISPATCHED"), "1");
    REST(race, "c", "e");
}

/* ---------------------------------------------------------------- the bound */

#define BOUND_SQL \
    "select pawl.queue_set('" RACE_QUEUE "', 30000, null, 3, 10, 500, 30000, null, null, 1)"

/* A claim that does not know of the bound is not committed: the bound waits for it. */
static void bound_waits_for_claims(void **state)
{
    struct race *race = *state;
    (void)race_put(race->c);
    (void)race_put(race->c);
    begin(race->sql);
    (void)race_take_sql(race->sql, "w");
    race_send(race->sql2, BOUND_SQL);
    race_await_waiting(race);
    commit(race->sql);
    expect_told(race_answer(race->sql2), "");
    assert_int_equal(race_take_count(race->c, "c"), 0);
}

/* Two claims want the one place. */
static void bound_one_place(void **state)
{
    struct race *race = *state;
    put(race, "a");
    expect_told(race_ask(race->watching, BOUND_SQL), "");
    expect_told(race_ask(race->watching, "select pawl.enqueue('q', 'x'::text) is not null"), "t");
    begin(race->sql);
    expect_told(take(race->sql, "w"), "a");
    race_send(race->sql2, TAKE_SQL, "w2");
    race_await_waiting(race);
    commit(race->sql);
    expect_told(race_answer(race->sql2), "");
    begin(race->sql);
    expect_told(end(race->sql, "a", "DISPATCHED"), "1");
    expect_told(take(race->sql2, "w2"), ""); /* not yet */
    commit(race->sql);
    expect_told(take(race->sql2, "w2"), "x");
}

/* A claim under a snapshot that is older than the bound: it would not see it, and is refused. */
static void bound_old_snapshot_claims(void **state)
{
    struct race *race = *state;
    (void)race_put(race->c);
    (void)race_put(race->c);
    expect_told(race_ask(race->sql, OLD_SNAPSHOT), "1");
    expect_told(race_ask(race->sql2, BOUND_SQL), "");
    expect_told(take(race->sql, "w"), "40001");
    roll_back(race->sql);
    assert_int_equal(race_take_count(race->c, "c"), 1);
}

/* ---------------------------------------------------------------- fences */

/* Across jobs, claims that were given up, redrives and lost leases. */
static void fences_rise(void **state)
{
    struct race *race = *state;
    static const char fence_sql[] = "select max(fence) from pawl.leases where ordering_key = 'k'";
    put(race, "a");
    put(race, "b");
    begin(race->sql);
    expect_told(take(race->sql, "w"), "a");
    struct race_text given_up = race_ask(race->sql, fence_sql);
    roll_back(race->sql);
    expect_told(take(race->sql, "w"), "a");
    struct race_text first = race_ask(race->sql, fence_sql);
    race_age(race, LEASE_IS_OVER_MS);
    expect_told(take(race->sql2, "w2"), "a");
    struct race_text second = race_ask(race->sql, fence_sql);
    expect_told(end(race->sql2, "a", "FAILED"), "2");
    expect_told(take(race->sql, "w"), "b");
    struct race_text third = race_ask(race->sql, fence_sql);
    expect_told(race_ask(race->sql, "select r.verdict from pawl.dead_letter d, "
                                    "pawl.redrive_batch(0, array[d.id]) r"),
                "OK");
    expect_told(end(race->sql, "b", "DISPATCHED"), "1");
    expect_told(take(race->sql, "w"), "a");
    struct race_text fourth = race_ask(race->sql, fence_sql);
    expect_told(race_ask(race->sql, "select %s < %s and %s < %s and %s < %s and %s < %s",
                         given_up.text, first.text, first.text, second.text, second.text,
                         third.text, third.text, fourth.text),
                "t");
}

#define STORY(function) cmocka_unit_test_setup_teardown(function, race_set_up, race_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(wake_enqueue_commits_after_the_end),
        STORY(wake_a_batch_commits_after_the_end),
        STORY(wake_a_batch_loses_its_first_meanwhile),
        STORY(wake_claim_parks_before_the_end),
        STORY(wake_claim_parks_and_gives_up),
        STORY(wake_end_is_committed_after_a_claim),
        STORY(wake_end_is_rolled_back_after_a_claim),
        STORY(wake_others_pass_by),
        STORY(wake_others_pass_by_very_many),
        STORY(wake_the_next_is_locked),
        STORY(old_snapshot_ends_the_first),
        STORY(old_snapshot_is_rolled_back),
        STORY(old_snapshot_cancels_the_first),
        STORY(old_snapshot_cancels_who_did_not_fit),
        STORY(old_snapshot_enqueues),
        STORY(old_snapshot_claims),
        STORY(claim_claim_first_commits),
        STORY(claim_claim_first_gives_up),
        STORY(claim_claim_two_gates),
        STORY(a_late_commit_waits_for_who_holds_the_key),
        STORY(a_late_commit_comes_before_the_parked),
        STORY(reap_claim_reap_first),
        STORY(reap_claim_reap_is_rolled_back),
        STORY(reap_claim_claim_first),
        STORY(cancel_claim_cancel_first),
        STORY(cancel_claim_cancel_is_rolled_back),
        STORY(cancel_claim_claim_first),
        STORY(cancel_cancel_the_first_two),
        STORY(cancel_cancel_the_other_way),
        STORY(cancel_claim_a_batch_loses_its_first),
        STORY(bound_waits_for_claims),
        STORY(bound_one_place),
        STORY(bound_old_snapshot_claims),
        STORY(fences_rise),
    };
    return cmocka_run_group_tests(tests, race_begin, race_end);
}

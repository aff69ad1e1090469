/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * pg_races_test.c - two programs want the same job: one that knows SQL only and keeps its
 * transaction open, and a C client. Each race is told step by step, in every order that matters.
 * Races of two SQL clients are in test/pgtap/race_test.sql.
 */
#include "race/race_stage.h"

#include <stdio.h>
#include <string.h>

#define LEASE_IS_OVER_MS (RACE_LEASE_MS + 1)

/* Locks a job's row, as a stranger could. */
static void hold_row(struct race *race, const pawl_id *id)
{
    expect_told(race_ask(race->sql2, "begin"), "");
    expect_told(race_ask(race->sql2, "select id from pawl.job where id = '%s' for update",
                         race_id(id).text),
                race_id(id).text);
}

static void let_go(PGconn *session)
{
    expect_told(race_ask(session, "commit"), "");
}

/* ---------------------------------------------------------------- claim against claim */

/* RULE-020-040, Q-INVISIBLE */
static void claim_claim_sql_first(void **state)
{
    struct race *race = *state;
    pawl_id first = race_put(race->c);
    pawl_id second = race_put(race->c);
    expect_told(race_ask(race->sql, "begin"), "");
    pawl_lease theirs = race_take_sql(race->sql, "sql");
    assert_int_equal(pawl_id_compare(&theirs.job, &first), 0);
    pawl_lease ours = race_take(race->c, "c"); /* it does not wait */
    assert_int_equal(pawl_id_compare(&ours.job, &second), 0);
    let_go(race->sql);
    assert_int_equal(race_take_count(race->c, "c"), 0);
    expect_told(race_done_sql(race->sql, "sql", &theirs, "DISPATCHED"), "1");
}

static void claim_claim_sql_gives_up(void **state)
{
    struct race *race = *state;
    pawl_id id = race_put(race->c);
    expect_told(race_ask(race->sql, "begin"), "");
    pawl_lease theirs = race_take_sql(race->sql, "sql");
    assert_int_equal(race_take_count(race->c, "c"), 0);
    expect_told(race_ask(race->sql, "rollback"), "");
    pawl_lease ours = race_take(race->c, "c");
    assert_int_equal(ours.version, 1);
    assert_int_equal(pawl_id_compare(&ours.job, &id), 0);
    expect_told(race_done_sql(race->sql, "sql", &theirs, "DISPATCHED"), "P7002"); /* RES-8 */
}

static void claim_claim_c_first(void **state)
{
    struct race *race = *state;
    (void)race_put(race->c);
    pawl_lease ours = race_take(race->c, "c");
    expect_told(race_ask(race->sql, "select count(*) from pawl.claim_outbox_batch(9, 'sql', 30, "
                                    "'" RACE_QUEUE "')"),
                "0");
    expect_told(race_done_sql(race->sql, "sql", &ours, "DISPATCHED"), "P7002"); /* not its worker */
    expect_told(race_done_sql(race->sql, "c", &ours, "DISPATCHED"), "1");       /* OL-ANY-CLIENT */
}

#define LARGE_CLAIM "select count(*) from pawl.claim_outbox_batch(101, '%s', 30, '" RACE_QUEUE "')"

/* Large claims take turns; but whoever holds its turn for long holds nobody up. */
static void claim_claim_large_ones(void **state)
{
    struct race *race = *state;
    for (int i = 0; i < 250; i++)
        (void)race_put(race->c);
    expect_told(race_ask(race->sql, "begin"), "");
    expect_told(race_ask(race->sql, "select count(*) from pawl.claim_outbox_batch(100, 'sql', 30, "
                                    "'" RACE_QUEUE "')"),
                "100");
    expect_told(race_ask(race->sql, "select count(*) from pawl.turn"), "0");
    expect_told(race_ask(race->sql, "rollback"), "");
    expect_told(race_ask(race->sql, "begin"), "");
    expect_told(race_ask(race->sql, LARGE_CLAIM, "sql"), "101");
    expect_told(race_ask(race->sql, "select count(*) from pawl.turn"), "1");
    expect_told(race_ask(race->sql2, LARGE_CLAIM, "sql2"), "101"); /* the row is being made */
    let_go(race->sql);
    expect_told(race_ask(race->sql, "begin"), "");
    expect_told(race_ask(race->sql, LARGE_CLAIM, "sql"), "48");
    expect_told(race_ask(race->sql2, LARGE_CLAIM, "sql2"), "0"); /* it is there, and locked */
    expect_told(race_ask(race->sql, "rollback"), "");
    expect_told(race_ask(race->sql2, "begin isolation level repeatable read"), "");
    expect_told(race_ask(race->sql2, LARGE_CLAIM, "sql2"), "48");
    let_go(race->sql2);
}

/* ---------------------------------------------------------------- settle against reap */

/* RES-4: the settle came in time, and its transaction ends after the deadline. */
static void settle_reap_settle_first(void **state)
{
    struct race *race = *state;
    pawl_id id = race_put(race->c);
    pawl_lease lease = race_take_sql(race->sql, "sql");
    expect_told(race_ask(race->sql, "begin"), "");
    expect_told(race_done_sql(race->sql, "sql", &lease, "DISPATCHED"), "1");
    race_age(race, LEASE_IS_OVER_MS);
    assert_int_equal(race_reap(race->c), 0); /* it skips, and does not wait: RES-11 */
    let_go(race->sql);
    assert_int_equal(race_reap(race->c), 0);
    expect_told(race_ledger(race, &id), "1 DISPATCHED none");
}

static void settle_reap_settle_is_rolled_back(void **state)
{
    struct race *race = *state;
    pawl_id id = race_put(race->c);
    pawl_lease lease = race_take_sql(race->sql, "sql");
    expect_told(race_ask(race->sql, "begin"), "");
    expect_told(race_done_sql(race->sql, "sql", &lease, "DISPATCHED"), "1");
    race_age(race, LEASE_IS_OVER_MS);
    assert_int_equal(race_reap(race->c), 0);
    expect_told(race_ask(race->sql, "rollback"), "");
    assert_int_equal(race_reap(race->c), 1);
    expect_told(race_ledger(race, &id), "1 ZOMBIE_REQUEUE expired");
}

static void settle_reap_reap_first(void **state)
{
    struct race *race = *state;
    pawl_id id = race_put(race->c);
    struct race_call call = {
        .store = race->c, .verb = RACE_SETTLE, .worker = "c", .leases = {race_take(race->c, "c")}};
    race_age(race, LEASE_IS_OVER_MS);
    expect_told(race_ask(race->sql, "begin"), "");
    expect_told(race_ask(race->sql, "select count(*) from pawl.repair_expired_leases()"), "1");
    race_call(race, &call);
    let_go(race->sql);
    assert_int_equal(race_join(&call), PAWL_STALE); /* Q-STALE */
    expect_told(race_ledger(race, &id), "1 ZOMBIE_REQUEUE expired");
}

static void settle_reap_reap_is_rolled_back(void **state)
{
    struct race *race = *state;
    pawl_id id = race_put(race->c);
    struct race_call call = {
        .store = race->c, .verb = RACE_SETTLE, .worker = "c", .leases = {race_take(race->c, "c")}};
    race_age(race, LEASE_IS_OVER_MS);
    expect_told(race_ask(race->sql, "begin"), "");
    expect_told(race_ask(race->sql, "select count(*) from pawl.repair_expired_leases()"), "1");
    race_call(race, &call);
    expect_told(race_ask(race->sql, "rollback"), "");
    assert_int_equal(race_join(&call), PAWL_STALE); /* RES-3: over, although nobody has taken it */
    expect_told(race_ledger(race, &id), "");
    assert_int_equal(race_state(race, &id), PAWL_IN_FLIGHT);
}

/* The C client has one of two rows, and waits for the other: both leases end meanwhile. */
static void settle_reap_half_a_settle_first(void **state)
{
    struct race *race = *state;
    pawl_id first = race_put(race->c);
    pawl_id second = race_put(race->c);
    struct race_call call = {.store = race->c,
                             .verb = RACE_SETTLE,
                             .worker = "c",
                             .leases = {race_take(race->c, "c"), race_take(race->c, "c")},
                             .count = 2};
    hold_row(race, &second);
    race_call(race, &call);
    race_age(race, LEASE_IS_OVER_MS);
    expect_told(race_ask(race->sql, "select count(*) from pawl.repair_expired_leases()"), "0");
    let_go(race->sql2);
    assert_int_equal(race_join(&call), PAWL_STALE);
    assert_int_equal(call.verdicts[1], PAWL_STALE);
    expect_told(race_ask(race->sql, "select count(*) from pawl.repair_expired_leases()"), "2");
    expect_told(race_ledger(race, &first), "1 ZOMBIE_REQUEUE expired");
    expect_told(race_ledger(race, &second), "1 ZOMBIE_REQUEUE expired");
}

/* ---------------------------------------------------------------- renew against reap */

/* Q-EXTEND */
static void renew_reap_renew_first(void **state)
{
    struct race *race = *state;
    pawl_id id = race_put(race->c);
    pawl_lease lease = race_take_sql(race->sql, "sql");
    pawl_id token;
    memcpy(token.bytes, lease.token.bytes, sizeof(token.bytes));
    race_age(race, RACE_LEASE_MS - 1);
    expect_told(race_ask(race->sql, "begin"), "");
    expect_told(race_ask(race->sql,
                         "select pawl.renew_outbox_lease('%s', '%s', 'sql', 30) is not null",
                         race_id(&id).text, race_id(&token).text),
                "t");
    race_age(race, 2); /* past the deadline that others still see */
    assert_int_equal(race_reap(race->c), 0);
    assert_int_equal(race_take_count(race->c, "c"), 0);
    let_go(race->sql);
    assert_int_equal(race_reap(race->c), 0);
    expect_told(race_done_sql(race->sql, "sql", &lease, "DISPATCHED"), "1");
}

static void renew_reap_reap_first(void **state)
{
    struct race *race = *state;
    pawl_id id = race_put(race->c);
    struct race_call call = {
        .store = race->c, .verb = RACE_RENEW, .worker = "c", .leases = {race_take(race->c, "c")}};
    race_age(race, LEASE_IS_OVER_MS);
    expect_told(race_ask(race->sql, "begin"), "");
    expect_told(race_ask(race->sql, "select count(*) from pawl.repair_expired_leases()"), "1");
    race_call(race, &call);
    let_go(race->sql);
    assert_int_equal(race_join(&call), PAWL_STALE);
    assert_int_equal(race_state(race, &id), PAWL_READY);
}

/* ---------------------------------------------------------------- reap against reap */

static void reap_reap_both_orders(void **state)
{
    struct race *race = *state;
    pawl_id id = race_put(race->c);
    (void)race_take(race->c, "c");
    race_age(race, LEASE_IS_OVER_MS);
    expect_told(race_ask(race->sql, "begin"), "");
    expect_told(race_ask(race->sql, "select count(*) from pawl.repair_expired_leases()"), "1");
    assert_int_equal(race_reap(race->c), 0);
    expect_told(race_ask(race->sql, "rollback"), "");
    assert_int_equal(race_reap(race->c), 1);
    expect_told(race_ask(race->sql, "select count(*) from pawl.repair_expired_leases()"), "0");
    expect_told(race_ledger(race, &id), "1 ZOMBIE_REQUEUE expired"); /* RES-4: exactly one row */
}

/* A claim recovers on its way what a reaper has in hands: it leaves it alone. */
static void reap_claim_reap_first(void **state)
{
    struct race *race = *state;
    pawl_id id = race_put(race->c);
    (void)race_take(race->c, "c");
    race_age(race, LEASE_IS_OVER_MS);
    expect_told(race_ask(race->sql, "begin"), "");
    expect_told(race_ask(race->sql, "select count(*) from pawl.repair_expired_leases()"), "1");
    assert_int_equal(race_take_count(race->c, "c"), 0);
    let_go(race->sql);
    pawl_lease lease = race_take(race->c, "c");
    assert_int_equal(lease.version, 2);
    expect_told(race_ledger(race, &id), "1 ZOMBIE_REQUEUE expired");
}

/* ---------------------------------------------------------------- cancel against settle */

static struct race_text cancel_sql(struct race *race, const pawl_id *id)
{
    return race_ask(race->sql, "select verdict from pawl.cancel_batch(0, '{%s}')",
                    race_id(id).text);
}

/* RES-13: a valid settle still wins. */
static void cancel_settle_cancel_first(void **state)
{
    struct race *race = *state;
    pawl_id id = race_put(race->c);
    struct race_call call = {
        .store = race->c, .verb = RACE_SETTLE, .worker = "c", .leases = {race_take(race->c, "c")}};
    expect_told(race_ask(race->sql, "begin"), "");
    expect_told(cancel_sql(race, &id), "OK");
    race_call(race, &call);
    let_go(race->sql);
    assert_int_equal(race_join(&call), PAWL_OK);
    assert_int_equal(call.states[0], PAWL_SUCCEEDED);
}

static void cancel_settle_cancel_first_then_a_retry(void **state)
{
    struct race *race = *state;
    pawl_id id = race_put(race->c);
    struct race_call call = {.store = race->c,
                             .verb = RACE_SETTLE,
                             .worker = "c",
                             .action = PAWL_RETRY,
                             .leases = {race_take(race->c, "c")}};
    expect_told(race_ask(race->sql, "begin"), "");
    expect_told(cancel_sql(race, &id), "OK");
    race_call(race, &call);
    let_go(race->sql);
    assert_int_equal(race_join(&call), PAWL_OK);
    assert_int_equal(call.states[0], PAWL_FAILED);
    expect_told(race_ledger(race, &id), "1 FAILED cancelled");
}

static void cancel_settle_settle_first(void **state)
{
    struct race *race = *state;
    pawl_id id = race_put(race->c);
    pawl_lease lease = race_take_sql(race->sql, "sql");
    struct race_call call = {.store = race->c, .verb = RACE_CANCEL, .leases = {{.job = id}}};
    expect_told(race_ask(race->sql, "begin"), "");
    expect_told(race_done_sql(race->sql, "sql", &lease, "DISPATCHED"), "1");
    race_call(race, &call);
    let_go(race->sql);
    assert_int_equal(race_join(&call), PAWL_ALREADY_SUCCEEDED);
}

/* The completion is rolled back with all else that its transaction did: the mark is set. */
static void cancel_settle_settle_is_rolled_back(void **state)
{
    struct race *race = *state;
    pawl_id id = race_put(race->c);
    pawl_lease lease = race_take_sql(race->sql, "sql");
    struct race_call call = {.store = race->c, .verb = RACE_CANCEL, .leases = {{.job = id}}};
    expect_told(race_ask(race->sql, "begin"), "");
    expect_told(race_done_sql(race->sql, "sql", &lease, "DISPATCHED"), "1");
    race_call(race, &call);
    expect_told(race_ask(race->sql, "rollback"), "");
    assert_int_equal(race_join(&call), PAWL_OK);
    assert_int_equal(call.states[0], PAWL_IN_FLIGHT);
    expect_told(race_done_sql(race->sql, "sql", &lease, "DISPATCHED"), "1"); /* it still wins */
}

static void cancel_claim_cancel_first(void **state)
{
    struct race *race = *state;
    pawl_id id = race_put(race->c);
    expect_told(race_ask(race->sql, "begin"), "");
    expect_told(cancel_sql(race, &id), "OK");
    assert_int_equal(race_take_count(race->c, "c"), 0);
    let_go(race->sql);
    assert_int_equal(race_take_count(race->c, "c"), 0);
    expect_told(race_ledger(race, &id), "1 FAILED cancelled");
}

/* ---------------------------------------------------------------- redrive against prune */

static pawl_id put_old_failure(struct race *race)
{
    pawl_id id = race_put(race->c);
    struct race_call call = {.store = race->c,
                             .verb = RACE_SETTLE,
                             .worker = "c",
                             .action = PAWL_FAIL,
                             .leases = {race_take(race->c, "c")}};
    assert_int_equal(race_make(&call), PAWL_OK);
    race_age(race, INT64_C(31) * 24 * 3600 * 1000);
    return id;
}

/* Q-DEAD-LETTER */
static void redrive_prune_redrive_first(void **state)
{
    struct race *race = *state;
    pawl_id id = put_old_failure(race);
    expect_told(race_ask(race->sql, "begin"), "");
    expect_told(
        race_ask(race->sql, "select verdict from pawl.redrive_batch(0, '{%s}')", race_id(&id).text),
        "OK");
    assert_int_equal(race_prune(race->c), 0);
    let_go(race->sql);
    assert_int_equal(race_prune(race->c), 0);
    expect_told(race_ledger(race, &id), "1 FAILED fatal");
    assert_int_equal(race_take(race->c, "c").version, 2); /* Q-VERSION */
}

static void redrive_prune_prune_first(void **state)
{
    struct race *race = *state;
    pawl_id id = put_old_failure(race);
    struct race_call call = {.store = race->c, .verb = RACE_REDRIVE, .leases = {{.job = id}}};
    expect_told(race_ask(race->sql, "begin"), "");
    expect_told(race_ask(race->sql, "select pawl.prune(0, 10)"), "1");
    race_call(race, &call);
    let_go(race->sql);
    assert_int_equal(race_join(&call), PAWL_GONE);
    assert_int_equal(race_take_count(race->c, "c"), 0);
}

static void redrive_prune_prune_is_rolled_back(void **state)
{
    struct race *race = *state;
    pawl_id id = put_old_failure(race);
    struct race_call call = {.store = race->c, .verb = RACE_REDRIVE, .leases = {{.job = id}}};
    expect_told(race_ask(race->sql, "begin"), "");
    expect_told(race_ask(race->sql, "select pawl.prune(0, 10)"), "1");
    race_call(race, &call);
    expect_told(race_ask(race->sql, "rollback"), "");
    assert_int_equal(race_join(&call), PAWL_OK);
    expect_told(race_ledger(race, &id), "1 FAILED fatal");
}

/* ---------------------------------------------------------------- expiry while waiting */

/* RES-3: by the clock as it is when the row was got, whatever the call is. */
static void wait_past_the_deadline(struct race *race, enum race_verb verb,
                                   pawl_settle_action action)
{
    struct race_call call = {.store = race->c,
                             .verb = verb,
                             .worker = "c",
                             .action = action,
                             .leases = {race_take(race->c, "c")}};
    hold_row(race, &call.leases[0].job);
    race_call(race, &call);
    race_age(race, RACE_LEASE_MS); /* at expiry it is over */
    let_go(race->sql2);
    assert_int_equal(race_join(&call), PAWL_STALE);
    assert_int_equal(race_state(race, &call.leases[0].job), PAWL_IN_FLIGHT);
}

static void expiry_while_waiting(void **state)
{
    struct race *race = *state;
    for (int i = 0; i < 4; i++)
        (void)race_put(race->c);
    wait_past_the_deadline(*state, RACE_SETTLE, PAWL_SUCCEED);
    wait_past_the_deadline(*state, RACE_SETTLE, PAWL_RETRY);
    wait_past_the_deadline(*state, RACE_RENEW, PAWL_SUCCEED);
    wait_past_the_deadline(*state, RACE_RELEASE, PAWL_SUCCEED);
    assert_int_equal(race_reap(race->c) > 0, true); /* claims have recovered the others */
}

/* The same, but the row is got a millisecond before. */
static void no_expiry_while_waiting(void **state)
{
    struct race *race = *state;
    pawl_id id = race_put(race->c);
    struct race_call call = {
        .store = race->c, .verb = RACE_SETTLE, .worker = "c", .leases = {race_take(race->c, "c")}};
    hold_row(race, &id);
    race_call(race, &call);
    race_age(race, RACE_LEASE_MS - 1);
    let_go(race->sql2);
    assert_int_equal(race_join(&call), PAWL_OK);
}

/* ---------------------------------------------------------------- batches that succeed whole */

#define WHOLE_MS 50 /* for so long a lease must last yet, and it may wait */

/* Two jobs of a worker, in the order of their ids. */
static void take_two(struct race *race, const char *worker, pawl_lease *ret_leases)
{
    (void)race_put(race->c);
    (void)race_put(race->c);
    pawl_lease one = race_take(race->c, worker);
    pawl_lease other = race_take(race->c, worker);
    bool is_sorted = pawl_id_compare(&one.job, &other.job) < 0;
    ret_leases[0] = is_sorted ? one : other;
    ret_leases[1] = is_sorted ? other : one;
}

/* Then they are found by their ids. */
static void forget_places(pawl_lease *leases)
{
    leases[0].place = 0;
    leases[1].place = 0;
}

/* A place as SQL has it. */
static struct race_text place_text(int64_t place)
{
    struct race_text text;
    (void)snprintf(text.text, sizeof(text.text), "(%lld,%lld)", (long long)(place >> 16),
                   (long long)(place & 0xffff)); /* fits */
    return text;
}

static struct race_text place_now(struct race *race, const pawl_id *id)
{
    return race_ask(race->watching, "select ctid from pawl.job where id = '%s'", race_id(id).text);
}

/* Sends what lets both succeed, as the C client would; the answer is how many, or "". */
static void send_whole(PGconn *session, const char *worker, const pawl_lease *leases)
{
    char places[3 * RACE_TEXT_MAX] = "null";
    if (leases[0].place != 0 && leases[1].place != 0)
        (void)snprintf(places, sizeof(places), "'{\"%s\",\"%s\"}'",
                       place_text(leases[0].place).text,
                       place_text(leases[1].place).text); /* fits */
    struct race_text ids[] = {race_id(&leases[0].job), race_id(&leases[1].job)};
    pawl_id tokens[2];
    memcpy(&tokens[0], &leases[0].token, sizeof(tokens[0]));
    memcpy(&tokens[1], &leases[1].token, sizeof(tokens[1]));
    race_send(session, "select pawl.succeed_all('%s', '{%s,%s}', '{%s,%s}', %lld, null, %s)",
              worker, ids[0].text, ids[1].text, race_id(&tokens[0]).text, race_id(&tokens[1]).text,
              (long long)leases[0].version, places);
}

/* Both settled by what is told of each; gives the verdicts. */
static struct race_text settle_both(PGconn *session, const char *worker, const pawl_lease *leases)
{
    pawl_id tokens[2];
    memcpy(&tokens[0], &leases[0].token, sizeof(tokens[0]));
    memcpy(&tokens[1], &leases[1].token, sizeof(tokens[1]));
    return race_ask(session,
                    "select string_agg(s.verdict, ' ' order by s.ordinal) from "
                    "pawl.settle_batch(0, '%s', '{%s,%s}', '{%s,%s}', '{%lld,%lld}', '{0,0}', "
                    "null, null, null, null, '\\x01') s",
                    worker, race_id(&leases[0].job).text, race_id(&leases[1].job).text,
                    race_id(&tokens[0]).text, race_id(&tokens[1]).text,
                    (long long)leases[0].version, (long long)leases[1].version);
}

static void expect_untouched(struct race *race, const pawl_lease *lease)
{
    expect_told(race_ledger(race, &lease->job), "");
    assert_int_equal(race_state(race, &lease->job), PAWL_IN_FLIGHT);
}

/* It waits for a row for 50 ms of the server's time, which is not ours to turn: without that bound
 * only the clock that is ends its wait. */
static void be_patient(struct race *race, bool is_patient)
{
    expect_told(race_ask(race->watching, "alter function pawl.succeed_all set lock_timeout = '%s'",
                         is_patient ? "0" : "50ms"),
                "");
}

/* RES-3, RES-11: it waits for a row, no longer than it knows both leases to last. */
static void whole_waits_for_a_while(void **state)
{
    struct race *race = *state;
    pawl_lease leases[2];
    be_patient(race, true);
    take_two(race, "sql", leases);
    pawl_lease placeless[2] = {leases[0], leases[1]};
    forget_places(placeless);
    for (int i = 0; i < 4; i++) {
        hold_row(race, &leases[i % 2].job);
        send_whole(race->sql, "sql", i < 2 ? leases : placeless);
        race_await_waiting(race);
        race_age(race, WHOLE_MS);
        let_go(race->sql2);
        expect_told(race_answer(race->sql), ""); /* too long; nothing was done */
        expect_untouched(race, &leases[0]);
        expect_untouched(race, &leases[1]);
    }
    hold_row(race, &leases[1].job);
    send_whole(race->sql, "sql", leases);
    race_await_waiting(race);
    race_age(race, WHOLE_MS - 1);
    let_go(race->sql2);
    expect_told(race_answer(race->sql), "2");
    expect_told(race_ledger(race, &leases[0].job), "1 DISPATCHED none");
    expect_told(race_ledger(race, &leases[1].job), "1 DISPATCHED none");
    be_patient(race, false);
}

/* The row is not let go of at all while it waits. */
static void whole_gives_up(void **state)
{
    struct race *race = *state;
    pawl_lease leases[2];
    take_two(race, "sql", leases);
    hold_row(race, &leases[1].job);
    send_whole(race->sql, "sql", leases);
    expect_told(race_answer(race->sql), "");
    let_go(race->sql2);
    expect_untouched(race, &leases[0]);
    expect_untouched(race, &leases[1]);
}

/* The jobs with the lowest, the last but one and the highest id, whose rows lie in another order:
 * the highest first. */
static void take_three(struct race *race, const char *worker, pawl_lease *ret_leases)
{
    expect_told(race_ask(race->watching,
                         "select count(*) from pawl.enqueue_batch(0, array_fill('" RACE_QUEUE
                         "'::text, '{3}'), array['ffff0000-0000-7000-8000-000000000003', "
                         "'ffff0000-0000-7000-8000-000000000001', "
                         "'ffff0000-0000-7000-8000-000000000002']::uuid[], "
                         "array_fill(''::bytea, '{3}')) where verdict = 'OK'"),
                "3");
    ret_leases[2] = race_take(race->c, worker);
    ret_leases[0] = race_take(race->c, worker);
    ret_leases[1] = race_take(race->c, worker);
}

/* A renewal locks rows by their ids, and this one by their places: each has what the other wants.
 * It is this one that gives in, and before the server calls it a deadlock. */
static void whole_renew_in_another_order(void **state)
{
    struct race *race = *state;
    struct race_call call = {.store = race->c, .verb = RACE_RENEW, .worker = "c", .count = 3};
    take_three(race, "c", call.leases);
    pawl_lease both[2] = {call.leases[0], call.leases[2]};
    hold_row(race, &call.leases[1].job);
    race_call(race, &call);           /* has the first, and waits for the second */
    send_whole(race->sql, "c", both); /* has the last, and waits for the first */
    for (int i = 0; i < WHOLE_MS; i++)
        if (strcmp(race_ask(race->watching,
                            "select count(*) from pg_stat_activity where wait_event_type = 'Lock' "
                            "and datname = current_database()")
                       .text,
                   "2") == 0)
            break;
    let_go(race->sql2);
    expect_told(race_answer(race->sql), "");
    assert_int_equal(race_join(&call), PAWL_OK);
    assert_int_equal(call.verdicts[1], PAWL_OK);
    assert_int_equal(call.verdicts[2], PAWL_OK);
    for (int i = 0; i < 3; i++)
        expect_untouched(race, &call.leases[i]);
}

/* RES-3: a lease that ends within that time is no lease for it, and neither is one that has. */
static void whole_needs_leases_that_last(void **state)
{
    struct race *race = *state;
    pawl_lease leases[2];
    take_two(race, "sql", leases);
    race_age(race, RACE_LEASE_MS - WHOLE_MS - 1);
    send_whole(race->sql, "sql", leases);
    expect_told(race_answer(race->sql), "2");
    take_two(race, "sql", leases);
    race_age(race, RACE_LEASE_MS - WHOLE_MS);
    send_whole(race->sql, "sql", leases);
    expect_told(race_answer(race->sql), "");
    race_age(race, WHOLE_MS);
    send_whole(race->sql, "sql", leases);
    expect_told(race_answer(race->sql), "");
    expect_told(race_ledger(race, &leases[0].job), "");
    expect_told(race_ledger(race, &leases[1].job), "");
}

/* The C client waits, and then all goes as others do: valid leases end well, a millisecond before
 * their ends too; RES-3: at their ends they do not. */
static void whole_of_a_c_client_waits(void **state)
{
    struct race *race = *state;
    for (int late_ms = -1; late_ms <= 0; late_ms++) {
        struct race_call call = {.store = race->c, .verb = RACE_SETTLE, .worker = "c", .count = 2};
        take_two(race, "c", call.leases);
        hold_row(race, &call.leases[1].job);
        race_call(race, &call);
        race_age(race, RACE_LEASE_MS + late_ms);
        let_go(race->sql2);
        assert_int_equal(race_join(&call), late_ms < 0 ? PAWL_OK : PAWL_STALE);
        assert_int_equal(call.verdicts[1], late_ms < 0 ? PAWL_OK : PAWL_STALE);
        expect_told(race_ledger(race, &call.leases[0].job), late_ms < 0 ? "1 DISPATCHED none" : "");
        expect_told(race_ledger(race, &call.leases[1].job), late_ms < 0 ? "1 DISPATCHED none" : "");
    }
}

/* RES-13: the mark is set while it waits, and a settle wins all the same. The mark has moved the
 * row: then servers that look at places again find it no more, and it goes as others do. */
static void whole_cancel_first(void **state)
{
    struct race *race = *state;
    be_patient(race, true);
    for (int is_placed = 0; is_placed <= 1; is_placed++) {
        pawl_lease leases[2];
        take_two(race, "sql2", leases);
        if (!is_placed)
            forget_places(leases);
        expect_told(race_ask(race->sql, "begin"), "");
        expect_told(cancel_sql(race, &leases[1].job), "OK");
        send_whole(race->sql2, "sql2", leases);
        race_await_waiting(race);
        let_go(race->sql);
        struct race_text told = race_answer(race->sql2);
        if (strcmp(told.text, "2") != 0) {
            expect_told(told, "");
            expect_untouched(race, &leases[0]);
            expect_untouched(race, &leases[1]);
            expect_told(settle_both(race->sql2, "sql2", leases), "OK OK");
        }
        expect_told(race_ledger(race, &leases[0].job), "1 DISPATCHED none");
        expect_told(race_ledger(race, &leases[1].job), "1 DISPATCHED none");
    }
    be_patient(race, false);
}

/* The same of a C client. */
static void whole_of_a_c_client_cancel_first(void **state)
{
    struct race *race = *state;
    struct race_call call = {.store = race->c, .verb = RACE_SETTLE, .worker = "c", .count = 2};
    take_two(race, "c", call.leases);
    expect_told(race_ask(race->sql, "begin"), "");
    expect_told(cancel_sql(race, &call.leases[1].job), "OK");
    race_call(race, &call);
    let_go(race->sql);
    assert_int_equal(race_join(&call), PAWL_OK);
    assert_int_equal(call.verdicts[1], PAWL_OK);
    assert_int_equal(call.states[1], PAWL_SUCCEEDED);
    expect_told(race_ledger(race, &call.leases[0].job), "1 DISPATCHED none");
    expect_told(race_ledger(race, &call.leases[1].job), "1 DISPATCHED none");
}

/* RES-4: it came in time, and its transaction ends after the deadline. */
static void whole_reap_whole_first(void **state)
{
    struct race *race = *state;
    pawl_lease leases[2];
    take_two(race, "sql", leases);
    expect_told(race_ask(race->sql, "begin"), "");
    send_whole(race->sql, "sql", leases);
    expect_told(race_answer(race->sql), "2");
    race_age(race, LEASE_IS_OVER_MS);
    assert_int_equal(race_reap(race->c), 0); /* it skips, and does not wait: RES-11 */
    let_go(race->sql);
    assert_int_equal(race_reap(race->c), 0);
    expect_told(race_ledger(race, &leases[0].job), "1 DISPATCHED none");
}

/* A lease is over, its job recovered, and given to a C client. */
static pawl_lease lose_one(struct race *race, const pawl_lease *lease)
{
    expect_told(race_ask(race->watching,
                         "with j as (update pawl.job set lease_expires_at = claimed_at where id = "
                         "'%s' returning 1) select count(*) from j",
                         race_id(&lease->job).text),
                "1");
    assert_int_equal(race_reap(race->c), 1);
    pawl_lease theirs = race_take(race->c, "c");
    assert_int_equal(pawl_id_compare(&theirs.job, &lease->job), 0);
    return theirs;
}

/* Q-ONE-LEASE, Q-STALE: one of them was recovered, and given to somebody else. */
static void whole_after_one_was_lost(void **state)
{
    struct race *race = *state;
    for (int is_placed = 0; is_placed <= 1; is_placed++) {
        pawl_lease leases[2];
        take_two(race, "sql", leases);
        if (!is_placed)
            forget_places(leases);
        pawl_lease theirs = lose_one(race, &leases[1]);
        send_whole(race->sql, "sql", leases);
        expect_told(race_answer(race->sql), "");
        assert_int_equal(race_state(race, &leases[0].job), PAWL_IN_FLIGHT);
        struct race_call call = {
            .store = race->c, .verb = RACE_SETTLE, .worker = "c", .leases = {theirs}};
        assert_int_equal(race_make(&call), PAWL_OK);
    }
}

#define MOVES_MAX 20

/* Has a job's row written anew until it lies where an earlier one did, as it may come to any day.
 */
static void move_to(struct race *race, const pawl_id *id, int64_t place)
{
    struct race_text wanted = place_text(place);
    expect_told(race_ask(race->watching, "vacuum (index_cleanup on) pawl.job"), "");
    for (int i = 0; i < MOVES_MAX; i++) {
        if (strcmp(place_now(race, id).text, wanted.text) == 0)
            return;
        expect_told(race_ask(race->watching,
                             "update pawl.job set payload = payload where id = '%s'",
                             race_id(id).text),
                    "");
    }
    fail_msg("%s does not come to lie at %s", race_id(id).text, wanted.text);
}

/* Q-STALE, Q-ONE-LEASE: whoever has lost a lease may still know where its job was. It is not his
 * when it comes to lie there again, be it at another attempt or not. */
static void whole_at_a_place_that_is_used_again(void **state)
{
    struct race *race = *state;
    expect_told(race_ask(race->watching, "vacuum full pawl.job"), ""); /* few places: soon used */
    for (int is_released = 0; is_released <= 1; is_released++) {
        pawl_lease leases[2];
        take_two(race, "sql", leases);
        struct race_call release = {
            .store = race->c, .verb = RACE_RELEASE, .worker = "sql", .leases = {leases[1]}};
        if (is_released)
            assert_int_equal(race_make(&release), PAWL_OK);
        pawl_lease theirs = is_released ? race_take(race->c, "c") : lose_one(race, &leases[1]);
        assert_int_equal(pawl_id_compare(&theirs.job, &leases[1].job), 0);
        assert_int_not_equal(theirs.place, leases[1].place);
        send_whole(race->sql, "sql", leases); /* nothing lies there */
        expect_told(race_answer(race->sql), "");
        move_to(race, &theirs.job, leases[1].place);
        send_whole(race->sql, "sql", leases);
        expect_told(race_answer(race->sql), "");
        expect_untouched(race, &leases[0]);
        assert_int_equal(race_state(race, &theirs.job), PAWL_IN_FLIGHT);
        struct race_call call = {
            .store = race->c, .verb = RACE_SETTLE, .worker = "c", .leases = {theirs}};
        call.leases[0].place = leases[1].place;
        assert_int_equal(race_make(&call), PAWL_OK);
        expect_told(race_ledger(race, &theirs.job),
                    is_released ? "1 DISPATCHED none"
                                : "1 ZOMBIE_REQUEUE expired, 2 DISPATCHED none");
    }
}

/* Q-STALE: nor is another job his, although he has that one, too, for the time being. */
static void whole_at_a_place_of_another_job(void **state)
{
    struct race *race = *state;
    pawl_lease leases[2];
    expect_told(race_ask(race->watching, "vacuum full pawl.job"), ""); /* likewise */
    take_two(race, "sql", leases);
    struct race_call lost = {.store = race->c,
                             .verb = RACE_SETTLE,
                             .worker = "c",
                             .leases = {lose_one(race, &leases[1])}};
    assert_int_equal(race_make(&lost), PAWL_OK);
    (void)race_put(race->c);
    pawl_lease other = race_take(race->c, "sql");
    move_to(race, &other.job, leases[1].place);
    send_whole(race->sql, "sql", leases);
    expect_told(race_answer(race->sql), "");
    expect_untouched(race, &leases[0]);
    expect_untouched(race, &other);
    struct race_call late = {.store = race->c,
                             .verb = RACE_SETTLE,
                             .worker = "sql",
                             .leases = {leases[0], leases[1]},
                             .count = 2};
    assert_int_equal(race_make(&late), PAWL_OK);
    assert_int_equal(late.verdicts[1], PAWL_STALE);
    expect_untouched(race, &other);
    expect_told(race_ledger(race, &leases[0].job), "1 DISPATCHED none");
}

/* ---------------------------------------------------------------- enqueue against completion */

/* Q-NEVER-AGAIN */
static void enqueue_completion_not_committed_yet(void **state)
{
    struct race *race = *state;
    pawl_id id = race_put(race->c);
    pawl_lease lease = race_take_sql(race->sql, "sql");
    struct race_call call = {.store = race->c, .verb = RACE_ENQUEUE, .leases = {{.job = id}}};
    expect_told(race_ask(race->sql, "begin"), "");
    expect_told(race_done_sql(race->sql, "sql", &lease, "DISPATCHED"), "1");
    race_call(race, &call);
    let_go(race->sql);
    assert_int_equal(race_join(&call), PAWL_EXISTS);
    assert_int_equal(race_state(race, &id), PAWL_SUCCEEDED);
    assert_int_equal(race_take_count(race->c, "c"), 0);
}

/* A C client completes; a program whose snapshot is older repeats the enqueue. */
static void enqueue_under_an_old_snapshot(struct race *race, const char *level)
{
    pawl_id id = race_put(race->c);
    struct race_call call = {
        .store = race->c, .verb = RACE_SETTLE, .worker = "c", .leases = {race_take(race->c, "c")}};
    race_age(race, 1); /* nobody makes the same job twice at the same microsecond */
    expect_told(race_ask(race->sql, "begin isolation level %s", level), "");
    expect_told(race_ask(race->sql, "select count(*) from pawl.job"), "1");
    assert_int_equal(race_make(&call), PAWL_OK);
    expect_told(race_ask(race->sql,
                         "select verdict from pawl.enqueue_batch(0, '{" RACE_QUEUE "}', "
                         "'{%s}', '{x}')",
                         race_id(&id).text),
                "EXISTS");
    let_go(race->sql);
    assert_int_equal(race_take_count(race->c, "c"), 0);
    expect_told(race_ledger(race, &id), "1 DISPATCHED none");
}

static void enqueue_under_repeatable_read(void **state)
{
    enqueue_under_an_old_snapshot(*state, "repeatable read");
}

static void enqueue_under_serializable(void **state)
{
    enqueue_under_an_old_snapshot(*state, "serializable");
}

/* The same id, or the same dedupe key, of two producers. Q-ENQUEUE */
static void enqueue_enqueue(struct race *race, const char *end, pawl_code wanted_id,
                            pawl_code wanted_key)
{
    pawl_id id;
    pawl_enqueue_row row;
    pawl_enqueue_init(&row);
    row.queue = RACE_QUEUE;
    assert_int_equal(pawl_id_new(race->c, &row, &id, NULL), PAWL_OK);
    struct race_call by_id = {.store = race->c, .verb = RACE_ENQUEUE, .leases = {{.job = id}}};
    struct race_call by_key = {.store = race->c, .verb = RACE_ENQUEUE, .dedupe_key = "k"};
    expect_told(race_ask(race->sql, "begin"), "");
    expect_told(race_ask(race->sql, "select pawl.enqueue('" RACE_QUEUE "', 'x', p_id => '%s')",
                         race_id(&id).text),
                race_id(&id).text);
    race_call(race, &by_id);
    expect_told(race_ask(race->sql, "%s", end), "");
    assert_int_equal(race_join(&by_id), wanted_id);
    expect_told(race_ask(race->sql, "begin"), "");
    (void)race_ask(race->sql, "select pawl.enqueue('" RACE_QUEUE "', 'x', p_dedupe_key => 'k')");
    race_call(race, &by_key);
    expect_told(race_ask(race->sql, "%s", end), "");
    assert_int_equal(race_join(&by_key), wanted_key);
    assert_int_equal(race_take_count(race->c, "c"), 2);
}

static void enqueue_enqueue_committed(void **state)
{
    struct race *race = *state;
    (void)race_put(race->c); /* the queue is there: a new one would be waited for */
    (void)race_take(race->c, "c");
    enqueue_enqueue(race, "commit", PAWL_EXISTS, PAWL_DUPLICATE);
}

static void enqueue_enqueue_rolled_back(void **state)
{
    struct race *race = *state;
    (void)race_put(race->c);
    (void)race_take(race->c, "c");
    enqueue_enqueue(race, "rollback", PAWL_OK, PAWL_OK);
}

/* ---------------------------------------------------------------- late commits */

/* Q-AT-LEAST-ONCE: marks have moved beyond the place of a job that commits late. */
static void a_late_commit_is_found(void **state)
{
    struct race *race = *state;
    (void)race_put(race->c);
    (void)race_take(race->c, "c");
    expect_told(race_ask(race->sql, "begin"), "");
    struct race_text early = race_ask(race->sql, "select pawl.enqueue('" RACE_QUEUE "', 'early')");
    for (int i = 0; i < 5; i++) {
        (void)race_put(race->c);
        (void)race_take(race->c, "c"); /* later, and taken first */
        race_age(race, 11000);         /* so that marks may move */
    }
    assert_int_equal(race_reap(race->c) > 0, true);
    (void)race_take_count(race->c, "c");
    assert_int_equal(race_take_count(race->c, "c"), 0);
    let_go(race->sql);
    pawl_lease lease = race_take(race->c2, "c2");
    assert_string_equal(race_id(&lease.job).text, early.text);
}

/* ---------------------------------------------------------------- an SQL client alone */

/* OL-LEASE-LOST, OL-ANY-CLIENT: what the caller did beside rolls back with it. */
static void a_late_completion_takes_its_own_work_back(void **state)
{
    struct race *race = *state;
    pawl_id id = race_put(race->c);
    pawl_lease lease = race_take_sql(race->sql, "sql");
    expect_told(race_ask(race->sql, "create temp table paid (id uuid)"), "");
    race_age(race, LEASE_IS_OVER_MS);
    pawl_lease ours = race_take(race->c, "c"); /* RES-4: a claim takes it directly */
    assert_int_equal(ours.version, 2);
    expect_told(race_ask(race->sql, "begin"), "");
    expect_told(race_ask(race->sql, "insert into paid values ('%s')", race_id(&id).text), "");
    expect_told(race_done_sql(race->sql, "sql", &lease, "DISPATCHED"), "P7002");
    expect_told(race_ask(race->sql, "commit"), ""); /* is a rollback */
    expect_told(race_ask(race->sql, "select count(*) from paid"), "0");
    struct race_call call = {
        .store = race->c, .verb = RACE_SETTLE, .worker = "c", .leases = {ours}};
    assert_int_equal(race_make(&call), PAWL_OK);
    expect_told(race_ledger(race, &id), "1 ZOMBIE_REQUEUE expired, 2 DISPATCHED none");
}

/* The C client settles while the SQL client, whose lease it was, waits with its completion. */
static void an_sql_completion_waits_and_is_lost(void **state)
{
    struct race *race = *state;
    pawl_id id = race_put(race->c);
    pawl_lease lease = race_take_sql(race->sql, "sql");
    pawl_id token;
    memcpy(token.bytes, lease.token.bytes, sizeof(token.bytes));
    hold_row(race, &id);
    race_send(race->sql, "select pawl.complete_outbox_attempt('%s', '%s', 'sql', 'DISPATCHED')",
              race_id(&id).text, race_id(&token).text);
    race_await_waiting(race);
    race_age(race, LEASE_IS_OVER_MS);
    let_go(race->sql2);
    expect_told(race_answer(race->sql), "P7002");
    assert_int_equal(race_take(race->c, "c").version, 2);
}

#define STORY(function) cmocka_unit_test_setup_teardown(function, race_set_up, race_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(claim_claim_sql_first),
        STORY(claim_claim_sql_gives_up),
        STORY(claim_claim_c_first),
        STORY(claim_claim_large_ones),
        STORY(settle_reap_settle_first),
        STORY(settle_reap_settle_is_rolled_back),
        STORY(settle_reap_reap_first),
        STORY(settle_reap_reap_is_rolled_back),
        STORY(settle_reap_half_a_settle_first),
        STORY(renew_reap_renew_first),
        STORY(renew_reap_reap_first),
        STORY(reap_reap_both_orders),
        STORY(reap_claim_reap_first),
        STORY(cancel_settle_cancel_first),
        STORY(cancel_settle_cancel_first_then_a_retry),
        STORY(cancel_settle_settle_first),
        STORY(cancel_settle_settle_is_rolled_back),
        STORY(cancel_claim_cancel_first),
        STORY(redrive_prune_redrive_first),
        STORY(redrive_prune_prune_first),
        STORY(redrive_prune_prune_is_rolled_back),
        STORY(expiry_while_waiting),
        STORY(no_expiry_while_waiting),
        STORY(whole_renew_in_another_order), /* before anybody was patient */
        STORY(whole_gives_up),
        STORY(whole_waits_for_a_while),
        STORY(whole_needs_leases_that_last),
        STORY(whole_of_a_c_client_waits),
        STORY(whole_cancel_first),
        STORY(whole_of_a_c_client_cancel_first),
        STORY(whole_reap_whole_first),
        STORY(whole_after_one_was_lost),
        STORY(whole_at_a_place_that_is_used_again),
        STORY(whole_at_a_place_of_another_job),
        STORY(enqueue_completion_not_committed_yet),
        STORY(enqueue_under_repeatable_read),
        STORY(enqueue_under_serializable),
        STORY(enqueue_enqueue_committed),
        STORY(enqueue_enqueue_rolled_back),
        STORY(a_late_commit_is_found),
        STORY(a_late_completion_takes_its_own_work_back),
        STORY(an_sql_completion_waits_and_is_lost),
    };
    return cmocka_run_group_tests(tests, race_begin, race_end);
}

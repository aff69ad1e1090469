/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * pg_races_test.c - two programs on one domain of work leases, one of which keeps its transaction
 * open: step by step, in every order that matters (WL-LOCK, WL-FENCE, RES-3).
 */
#include "race/race_stage.h"

#include "pawl/worklease.h"

#include <stdio.h>
#include <string.h>

#define LEASE_MS "30000"

static void begin(PGconn *session)
{
    expect_told(race_ask(session, "begin"), "");
}

/* What a session is told by try_acquire of offset 1. */
#define ACQUIRE(owner) \
    "select result from pawl.worklease_try_acquire('A', 1, '" owner "', " LEASE_MS ")"

/* Anna holds offset 1; her token is written down where both sessions find it. */
static void anna_holds(struct race *race)
{
    expect_told(race_ask(race->sql, "set client_min_messages = warning"), "");
    expect_told(race_ask(race->sql, "create table if not exists pawl_test.token (token uuid)"), "");
    expect_told(race_ask(race->sql, "truncate pawl_test.token"), "");
    expect_told(race_ask(race->sql,
                         "with got as (select * from pawl.worklease_try_acquire('A', 1, 'anna', "
                         "" LEASE_MS ")), kept as (insert into pawl_test.token select lease_token "
                         "from got) select result from got"),
                "ACQUIRED");
}
#define TOKEN   "(select token from pawl_test.token)"
#define SUCCEED "select result from pawl.worklease_succeed('A', " TOKEN ", 'anna')"
#define RENEW \
    "select (pawl.worklease_renew('A', " TOKEN ", " LEASE_MS ", 'anna') > pawl_test.clock())"

/* Of the domain: the offset of its lease and the owner. */
static struct race_text held_by(struct race *race)
{
    return race_ask(race->watching, "select concat_ws(' ', current_offset, owner) "
                                    "from pawl.workleases where domain = 'A'");
}

/* ---------------------------------------------------------------- acquire against acquire */

/* Neither has ever heard of the domain: both would make it. */
static void acquire_acquire_first_commits(void **state) /* WL-SINGLE */
{
    struct race *race = *state;
    begin(race->sql);
    expect_told(race_ask(race->sql, ACQUIRE("anna")), "ACQUIRED");
    race_send(race->sql2, ACQUIRE("bert"));
    race_await_waiting(race);
    expect_told(race_ask(race->sql, "commit"), "");
    expect_told(race_answer(race->sql2), "HELD");
    expect_told(held_by(race), "1 anna");
}

static void acquire_acquire_first_rolls_back(void **state)
{
    struct race *race = *state;
    begin(race->sql);
    expect_told(race_ask(race->sql, ACQUIRE("anna")), "ACQUIRED");
    race_send(race->sql2, ACQUIRE("bert"));
    race_await_waiting(race);
    expect_told(race_ask(race->sql, "rollback"), "");
    expect_told(race_answer(race->sql2), "ACQUIRED");
    expect_told(held_by(race), "1 bert");
}

static void acquire_acquire_another_offset(void **state) /* WL-FIFO */
{
    struct race *race = *state;
    begin(race->sql);
    expect_told(race_ask(race->sql, ACQUIRE("anna")), "ACQUIRED");
    race_send(race->sql2, "select result from pawl.worklease_try_acquire('A', 2, 'bert')");
    race_await_waiting(race);
    expect_told(race_ask(race->sql, "commit"), "");
    expect_told(race_answer(race->sql2), "ENQUEUED");
    expect_told(race_ask(race->watching, "select backlog_head from pawl.workleases"), "2");
}

/* Other domains are not in the way: there is one lock per domain (WL-LOCK). */
static void acquire_acquire_another_domain(void **state)
{
    struct race *race = *state;
    begin(race->sql);
    expect_told(race_ask(race->sql, ACQUIRE("anna")), "ACQUIRED");
    pawl_worklease_acquire args;
    pawl_worklease_acquired got;
    pawl_worklease_acquire_init(&args);
    args.domain = "B";
    assert_int_equal(pawl_worklease_try_acquire(race->c, &args, &got, NULL), PAWL_OK);
    assert_int_equal(got.got, PAWL_GOT_ACQUIRED);
    expect_told(race_ask(race->sql, "commit"), "");
}

/* ---------------------------------------------------------------- take-over against succeed */

static void takeover_succeed_takeover_first(void **state)
{
    struct race *race = *state;
    anna_holds(race);
    race_age(race, RACE_LEASE_MS);
    begin(race->sql2);
    expect_told(race_ask(race->sql2, ACQUIRE("bert")), "ACQUIRED");
    race_send(race->sql, SUCCEED);
    race_await_waiting(race);
    expect_told(race_ask(race->sql2, "commit"), "");
    expect_told(race_answer(race->sql), "P7012"); /* her token is no longer the lease's */
    expect_told(held_by(race), "1 bert");
}

static void takeover_succeed_takeover_is_rolled_back(void **state)
{
    struct race *race = *state;
    anna_holds(race);
    race_age(race, RACE_LEASE_MS);
    begin(race->sql2);
    expect_told(race_ask(race->sql2, ACQUIRE("bert")), "ACQUIRED");
    race_send(race->sql, SUCCEED);
    race_await_waiting(race);
    expect_told(race_ask(race->sql2, "rollback"), "");
    expect_told(race_answer(race->sql), "P7014"); /* it is hers, and over */
    expect_told(held_by(race), "1 anna");
}

static void takeover_succeed_succeed_first(void **state) /* WL-IDEMPOTENT */
{
    struct race *race = *state;
    anna_holds(race);
    begin(race->sql);
    expect_told(race_ask(race->sql, SUCCEED), "NO_BACKLOG");
    race_age(race, RACE_LEASE_MS); /* it came in time, and its transaction ends later */
    race_send(race->sql2, ACQUIRE("bert"));
    race_await_waiting(race);
    expect_told(race_ask(race->sql, "commit"), "");
    expect_told(race_answer(race->sql2), "ALREADY_PROCESSED");
    expect_told(held_by(race), "");
}

static void takeover_succeed_succeed_is_rolled_back(void **state)
{
    struct race *race = *state;
    anna_holds(race);
    begin(race->sql);
    expect_told(race_ask(race->sql, SUCCEED), "NO_BACKLOG");
    race_age(race, RACE_LEASE_MS);
    race_send(race->sql2, ACQUIRE("bert"));
    race_await_waiting(race);
    expect_told(race_ask(race->sql, "rollback"), "");
    expect_told(race_answer(race->sql2), "ACQUIRED");
    expect_told(held_by(race), "1 bert");
}

/* RES-3: the clock is read once the row is locked. */
static void succeed_waits_beyond_the_deadline(void **state)
{
    struct race *race = *state;
    anna_holds(race);
    begin(race->sql2);
    expect_told(race_ask(race->sql2, "select 1 from pawl.worklease for update"), "1");
    race_send(race->sql, SUCCEED);
    race_await_waiting(race);
    race_age(race, RACE_LEASE_MS);
    expect_told(race_ask(race->sql2, "commit"), "");
    expect_told(race_answer(race->sql), "P7014");
}

/* ---------------------------------------------------------------- renew against expiry */

static void renew_expiry_renew_waits_beyond_the_deadline(void **state)
{
    struct race *race = *state;
    anna_holds(race);
    begin(race->sql2);
    expect_told(race_ask(race->sql2, "select 1 from pawl.worklease for update"), "1");
    race_send(race->sql, RENEW);
    race_await_waiting(race);
    race_age(race, RACE_LEASE_MS);
    expect_told(race_ask(race->sql2, "commit"), "");
    expect_told(race_answer(race->sql), "P7014");
}

static void renew_expiry_renew_first(void **state)
{
    struct race *race = *state;
    anna_holds(race);
    race_age(race, RACE_LEASE_MS - 1);
    begin(race->sql);
    expect_told(race_ask(race->sql, RENEW), "t");
    race_age(race, 1); /* the deadline that was */
    race_send(race->sql2, ACQUIRE("bert"));
    race_await_waiting(race);
    expect_told(race_ask(race->sql, "commit"), "");
    expect_told(race_answer(race->sql2), "HELD");
}

static void renew_expiry_renew_is_rolled_back(void **state)
{
    struct race *race = *state;
    anna_holds(race);
    race_age(race, RACE_LEASE_MS - 1);
    begin(race->sql);
    expect_told(race_ask(race->sql, RENEW), "t");
    race_age(race, 1);
    race_send(race->sql2, ACQUIRE("bert"));
    race_await_waiting(race);
    expect_told(race_ask(race->sql, "rollback"), "");
    expect_told(race_answer(race->sql2), "ACQUIRED");
    expect_told(race_ask(race->sql, RENEW), "P7012");
}

/* ---------------------------------------------------------------- older snapshots */

/* What changes in a domain changes its row, so that nobody decides by what has been. */
static void older_snapshot_is_refused(void **state)
{
    struct race *race = *state;
    anna_holds(race);
    expect_told(race_ask(race->sql2, "begin isolation level repeatable read"), "");
    expect_told(race_ask(race->sql2, "select count(*) from pawl.worklease"), "1");
    expect_told(race_ask(race->sql, SUCCEED), "NO_BACKLOG");
    expect_told(race_ask(race->sql2, ACQUIRE("bert")), "40001");
    expect_told(race_ask(race->sql2, "rollback"), "");
    expect_told(race_ask(race->sql2, ACQUIRE("bert")), "ALREADY_PROCESSED");
}

/* The same where the domain was made meanwhile: it is neither made twice nor waited for. */
static void snapshot_from_before_the_domain_is_refused(void **state)
{
    struct race *race = *state;
    expect_told(race_ask(race->sql2, "begin isolation level repeatable read"), "");
    expect_told(race_ask(race->sql2, "select count(*) from pawl.worklease"), "0");
    anna_holds(race);
    expect_told(race_ask(race->sql2, ACQUIRE("bert")), "40001");
    expect_told(race_ask(race->sql2, "rollback"), "");
    expect_told(race_ask(race->sql2, ACQUIRE("bert")), "HELD");
}

/* ---------------------------------------------------------------- two domains at once */

/* Each has the domain that the other wants: one of them is refused, and the other goes on. */
static void crosswise_one_is_refused(void **state) /* WL-LOCK */
{
    struct race *race = *state;
    begin(race->sql);
    begin(race->sql2);
    expect_told(race_ask(race->sql, ACQUIRE("anna")), "ACQUIRED");
    expect_told(race_ask(race->sql2, "select result from pawl.worklease_try_acquire('B', 1)"),
                "ACQUIRED");
    race_send(race->sql, "select result from pawl.worklease_try_acquire('B', 1)");
    race_await_waiting(race);
    race_send(race->sql2, ACQUIRE("bert"));
    struct race_text first = race_answer(race->sql);
    struct race_text second = race_answer(race->sql2);
    assert_int_equal((strcmp(first.text, "ACQUIRED") == 0) + (strcmp(second.text, "ACQUIRED") == 0),
                     1);
    assert_int_equal((strcmp(first.text, "40P01") == 0) + (strcmp(second.text, "40P01") == 0), 1);
    expect_told(race_ask(race->sql, "commit"), "");
    expect_told(race_ask(race->sql2, "commit"), "");
    expect_told(race_ask(race->watching, "select count(*) from pawl.workleases where "
                                         "current_offset = 1"),
                "2"); /* of one of them, and nothing of the other */
}

#define RACE(name) cmocka_unit_test_setup_teardown(name, race_set_up, race_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RACE(acquire_acquire_first_commits),     RACE(acquire_acquire_first_rolls_back),
        RACE(acquire_acquire_another_offset),    RACE(acquire_acquire_another_domain),
        RACE(takeover_succeed_takeover_first),   RACE(takeover_succeed_takeover_is_rolled_back),
        RACE(takeover_succeed_succeed_first),    RACE(takeover_succeed_succeed_is_rolled_back),
        RACE(succeed_waits_beyond_the_deadline), RACE(renew_expiry_renew_waits_beyond_the_deadline),
        RACE(renew_expiry_renew_first),          RACE(renew_expiry_renew_is_rolled_back),
        RACE(older_snapshot_is_refused),         RACE(snapshot_from_before_the_domain_is_refused),
        RACE(crosswise_one_is_refused),
    };
    return cmocka_run_group_tests_name("worklease_pg_races", tests, race_begin, race_end);
}

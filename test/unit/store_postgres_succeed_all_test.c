/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * store_postgres_succeed_all_test.c - which settles go to pawl.succeed_all(), which to
 * pawl.settle_batch(), that each row is answered as it is either way, and how long the first is
 * left alone where it would not. Where claims say that rows are, and what comes of it where they
 * are not there.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "store/postgres/postgres.h"
#include "support/alloc_fail.h"
#include "support/pg_world.h"

#include <stdio.h>
#include <string.h>

#define TIMEOUT_MS 20000
#define ROWS_MAX   100
#define SETTLES    300
#define TRIES      10

static struct {
    struct pg_server server;
    pawl_store *store;
    pawl_settle_row rows[ROWS_MAX];
    pawl_settled results[ROWS_MAX];
} world;

static int begin(void **state)
{
    (void)state;
    return pg_world_begin(&world.server, false, 1) ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    pg_server_remove(&world.server);
    return 0;
}

static int open_store(void **state)
{
    (void)state;
    world.store = pg_world_open(&world.server, NULL, TIMEOUT_MS);
    return world.store != NULL ? 0 : -1;
}

static int close_store(void **state)
{
    (void)state;
    pawl_store_close(world.store);
    return 0;
}

static const struct pawli_pg_handle *handle(void)
{
    return pawli_pg_handle_of(world.store);
}

static void run(const char *sql)
{
    assert_true(pg_server_run(&world.server, PG_WORLD_DATABASE, sql));
}

static int64_t number(const char *sql)
{
    return pg_world_number(&world.server, sql);
}

/* While a function has another name, whoever calls it fails. */
#define HIDE_ALL  "alter function pawl.succeed_all rename to succeed_all_hidden"
#define SHOW_ALL  "alter function pawl.succeed_all_hidden rename to succeed_all"
#define HIDE_EACH "alter function pawl.settle_batch rename to settle_batch_hidden"
#define SHOW_EACH "alter function pawl.settle_batch_hidden rename to settle_batch"
#define HIDE_FEW  "alter function pawl.claim_few rename to claim_few_hidden"
#define SHOW_FEW  "alter function pawl.claim_few_hidden rename to claim_few"
#define HIDE_MANY "alter function pawl.claim_lines rename to claim_lines_hidden"
#define SHOW_MANY "alter function pawl.claim_lines_hidden rename to claim_lines"

/* ---- jobs */

static void put_keyed(const char *queue, size_t count, const char *ordering_key)
{
    for (size_t i = 0; i < count; i++) {
        pawl_enqueue_row row;
        pawl_enqueued result;
        pawl_enqueue_init(&row);
        row.queue = queue;
        row.ordering_key = ordering_key;
        assert_int_equal(pawl_enqueue(world.store, &row, 1, &result, NULL), PAWL_OK);
        assert_int_equal(result.code, PAWL_OK);
    }
}

static void put(const char *queue, size_t count)
{
    put_keyed(queue, count, NULL);
}

/* Claim all that a queue has, and another one (NULL: none): world.rows from `first` on are then
 * their successes. Of two it is never a claim of a few. */
static void take_both(const char *queue, const char *other, size_t first, size_t count)
{
    pawl_job jobs[ROWS_MAX];
    pawl_claim_line lines[] = {{.queue = queue, .jobs_max = ROWS_MAX, .lease_ms = PAWL_DEFAULT},
                               {.queue = other, .jobs_max = ROWS_MAX, .lease_ms = PAWL_DEFAULT}};
    pawl_claim_args args = {"w1", lines, other != NULL ? 2 : 1, PAWL_DEFAULT};
    size_t taken = 0;
    assert_int_equal(pawl_claim(world.store, &args, jobs, ROWS_MAX - first, &taken, NULL), PAWL_OK);
    assert_int_equal(taken, count);
    for (size_t i = 0; i < count; i++) {
        pawl_settle_row *row = &world.rows[first + i];
        pawl_settle_init(row);
        row->action = PAWL_SUCCEED;
        row->lease = (pawl_lease){jobs[i].id, jobs[i].token, jobs[i].lease_version, jobs[i].place};
        pawl_job_clear(&jobs[i]);
    }
}

static void take(const char *queue, size_t first, size_t count)
{
    take_both(queue, NULL, first, count);
}

static void put_and_take(const char *queue, size_t count)
{
    put(queue, count);
    take(queue, 0, count);
}

/* ---- settles */

/* Settle world.rows. Whatever comes of it, the next call has its time. */
static pawl_code settle(size_t count)
{
    memset(world.results, 0, sizeof(world.results));
    pawl_code rc = pawl_settle(world.store, "w1", world.rows, count, world.results, NULL);
    assert_int_equal(handle()->limit_ms, TIMEOUT_MS);
    return rc;
}

static void expect_success(size_t i)
{
    assert_int_equal(world.results[i].code, PAWL_OK);
    assert_int_equal(world.results[i].state, PAWL_SUCCEEDED);
    assert_int_equal(world.results[i].attempt_no, 1);
    assert_int_equal(world.results[i].due_at.us, 0);
}

/* As a whole, since there is no other way. Where the machine was held up for long that is refused
 * too: then it is tried again, which it is every other time. */
static void settle_whole(size_t count)
{
    pawl_code rc = PAWL_DOWN;
    run(HIDE_EACH);
    for (size_t i = 0; i < TRIES && rc != PAWL_OK; i++)
        rc = settle(count);
    run(SHOW_EACH);
    assert_int_equal(rc, PAWL_OK);
    assert_int_equal(handle()->succeed_all.refusals, 0);
    for (size_t i = 0; i < count; i++)
        expect_success(i);
}

/* Row by row, since there is no other way, and nothing else is tried. */
static void settle_each(size_t count)
{
    unsigned pause = handle()->succeed_all.pause;
    run(HIDE_ALL);
    assert_int_equal(settle(count), PAWL_OK);
    run(SHOW_ALL);
    assert_int_equal(handle()->succeed_all.pause, pause);
}

/* ---- Q-ACK: what goes as a whole */

static void alike_ones_go_as_a_whole(void **state)
{
    (void)state;
    put_and_take("alike", 2);
    settle_whole(2);
    put_and_take("alike", ROWS_MAX);
    settle_whole(ROWS_MAX);
    assert_int_equal(number("select count(*) from pawl.attempts where queue = 'alike' and outcome "
                            "= 'DISPATCHED' and attempt_no = 1 and worker = 'w1'"),
                     2 + ROWS_MAX);
    assert_int_equal(number("select count(*) from pawl.jobs where queue = 'alike' and state <> "
                            "'Succeeded'"),
                     0);
}

/* In any order: the library sorts them, and each row has its answer. */
static void so_do_unsorted_ones(void **state)
{
    (void)state;
    put_and_take("unsorted", 5);
    pawl_settle_row first = world.rows[0];
    world.rows[0] = world.rows[4];
    world.rows[4] = world.rows[1];
    world.rows[1] = first;
    settle_whole(5);
}

static void so_do_those_that_say_the_same(void **state)
{
    (void)state;
    put_and_take("sent", 3);
    for (size_t i = 0; i < 3; i++)
        world.rows[i].wire_sends = 2;
    settle_whole(3);
    assert_int_equal(number("select count(*) from pawl.attempt a join pawl.queue q on q.queue_id = "
                            "a.line_id / 4096 where q.name = 'sent' and a.wire_sends = 2"),
                     3);
    put_and_take("sent", 3);
    settle_whole(3);
    assert_int_equal(number("select count(*) from pawl.attempt a join pawl.queue q on q.queue_id = "
                            "a.line_id / 4096 where q.name = 'sent' and a.wire_sends is null"),
                     3);
}

static void so_does_one(void **state)
{
    (void)state;
    put_and_take("one", 1);
    settle_whole(1);
    assert_int_equal(number("select count(*) from pawl.attempts where queue = 'one' and outcome "
                            "= 'DISPATCHED' and attempt_no = 1 and worker = 'w1'"),
                     1);
}

static void but_not_one_without_a_place(void **state)
{
    (void)state;
    put_and_take("one", 1);
    world.rows[0].lease.place = 0;
    settle_each(1);
    expect_success(0);
    /* One that has come back has none, and nor has one with a key. */
    put("one", 1);
    run("update pawl.job set attempts = 1, lease_version = 1 where state = 0");
    take("one", 0, 1);
    assert_int_equal(world.rows[0].lease.place, 0);
    settle_each(1);
    put_keyed("one", 1, "k");
    take("one", 0, 1);
    assert_int_equal(world.rows[0].lease.place, 0);
    settle_each(1);
    expect_success(0);
}

/* ---- places */

#define PLACE_BEYOND  (((int64_t)1 << 40) + 1) /* on a page that there is not */
#define PLACE_LAST    ((int64_t)-1)            /* of all that can be said */
#define PLACE_UNUSED  ((int64_t)60000)         /* of the first page, which has not so many */
#define PLACE_NOWHERE ((int64_t)65536)         /* of the second page: numbers begin at 1 */

/* What the table has of the job that world.rows[i] is about; 0: it is not there. */
static int64_t job_number(size_t i, const char *what)
{
    char sql[512];
    char id[PAWL_ID_TEXT_MAX];
    (void)snprintf(sql, sizeof(sql),
                   "select coalesce(max(%s), 0)::int8 from pawl.job where id = '%s'", what,
                   pawl_id_format(&world.rows[i].lease.job, id)); /* fits */
    return number(sql);
}

/* As a claim tells it: the page, and the number on it; of jobs with a key nothing. */
#define PLACE "(ctid::text::point)[0]::int8 * 65536 + (ctid::text::point)[1]::int8"
static int64_t place_of(size_t i)
{
    return job_number(i, "case when ordering_key is null then " PLACE " end");
}

/* Each lease must say where its row is; so many of them do. */
static void expect_places(size_t count, size_t wanted)
{
    size_t told = 0;
    for (size_t i = 0; i < count; i++) {
        told += world.rows[i].lease.place != 0;
        assert_int_equal(world.rows[i].lease.place, place_of(i));
    }
    assert_int_equal(told, wanted);
}

/* Whether its answer says what jobs share once, which it does after a claim of some, or with each;
 * of jobs with keys, and without. */
static void claims_say_where_rows_are(void **state)
{
    (void)state;
    static const size_t counts[] = {2, 9, 9};
    run(HIDE_FEW);
    for (size_t i = 0; i < 3; i++) {
        put("where", counts[i]);
        put_keyed("where2", 1, "k");
        put_keyed("where2", 1, "l");
        put("where2", 1);
        take_both("where", "where2", 0, counts[i] + 3);
        expect_places(counts[i] + 3, counts[i] + 1);
        assert_int_equal(settle(counts[i] + 3), PAWL_OK);
        for (size_t k = 0; k < counts[i] + 3; k++)
            expect_success(k);
    }
    run(SHOW_FEW);
}

/* They need not lie on the first page. */
static void so_do_claims_of_a_few(void **state)
{
    (void)state;
    put_and_take("few", 1); /* makes the marks */
    settle_whole(1);
    (void)close_store(NULL);
    assert_int_equal(open_store(NULL), 0);
    run(HIDE_MANY);
    put_and_take("few", 1);
    expect_places(1, 1);
    settle_whole(1);
    put_and_take("few", ROWS_MAX);
    expect_places(ROWS_MAX, ROWS_MAX);
    run(SHOW_MANY);
    assert_true(world.rows[ROWS_MAX - 1].lease.place > PLACE_NOWHERE);
    settle_whole(ROWS_MAX);
}

/* Where one of them is not known, all are found by their ids. */
static void without_a_place_they_go_as_a_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        put_and_take("placeless", 3);
        world.rows[i].lease.place = 0;
        settle_whole(3);
    }
    put_and_take("placeless", 3);
    for (size_t i = 0; i < 3; i++)
        world.rows[i].lease.place = 0;
    settle_whole(3);
}

/* It does not matter whose place is whose. */
static void so_do_those_whose_places_are_swapped(void **state)
{
    (void)state;
    put_and_take("swapped", 3);
    int64_t place = world.rows[0].lease.place;
    world.rows[0].lease.place = world.rows[2].lease.place;
    world.rows[2].lease.place = world.rows[1].lease.place;
    world.rows[1].lease.place = place;
    settle_whole(3);
}

/* It is asked, and would not: then each row is settled all the same. */
static void settle_otherwise(size_t count)
{
    (void)close_store(NULL);
    assert_int_equal(open_store(NULL), 0); /* nobody knows of refusals */
    assert_int_equal(settle(count), PAWL_OK);
    assert_int_equal(handle()->succeed_all.refusals, 1);
    for (size_t i = 0; i < count; i++)
        expect_success(i);
}

static void wrong_places_cost_a_round_trip(void **state)
{
    (void)state;
    static const int64_t wrong[] = {PLACE_BEYOND, PLACE_LAST, PLACE_UNUSED, PLACE_NOWHERE};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        put_and_take("wrong", 3);
        world.rows[i % 3].lease.place = wrong[i];
        settle_otherwise(3);
        put_and_take("wrong", 1);
        world.rows[0].lease.place = wrong[i];
        settle_otherwise(1);
    }
    put_and_take("wrong", 3);
    world.rows[1].lease.place = world.rows[0].lease.place; /* twice the same */
    settle_otherwise(3);
    assert_int_equal(number("select count(*) from pawl.attempts where queue = 'wrong' and outcome "
                            "= 'DISPATCHED' and attempt_no = 1"),
                     4 * (3 + 1) + 3);
}

/* Q-STALE: a place gives no right to what lies there, be it one's own, in the same queue. */
static void a_place_of_another_job_does_it_no_harm(void **state)
{
    (void)state;
    put_and_take("other", 4);
    pawl_settle_row other = world.rows[3];
    world.rows[1].lease.place = other.lease.place;
    settle_otherwise(3);
    assert_int_equal(job_number(3, "state"), PAWL_IN_FLIGHT);
    assert_int_equal(place_of(3), other.lease.place); /* nobody has touched it */

    put_and_take("other2", 1); /* alone, in its stead */
    world.rows[0].lease.place = other.lease.place;
    settle_otherwise(1);
    assert_int_equal(job_number(3, "state"), PAWL_IN_FLIGHT);
    assert_int_equal(place_of(3), other.lease.place);
    world.rows[0] = other;
    settle_whole(1);

    put_and_take("other", 2);
    put("other", 1); /* one that is Ready */
    world.rows[1].lease.place = number(
        "select (ctid::text::point)[0]::int8 * 65536 + (ctid::text::point)[1]::int8 "
        "from pawl.job where state = 0");
    settle_otherwise(2);
    assert_int_equal(number("select count(*) from pawl.job where state = 0"), 1);
    take("other", 0, 1);
    settle_whole(1);
}

/* Q-EXTEND: a renewal has put the row elsewhere. */
static void a_renewal_takes_the_place_away(void **state)
{
    (void)state;
    for (int is_known = 0; is_known <= 1; is_known++) {
        put_and_take("renewed", 3);
        pawl_renew_row renewal = {.lease = world.rows[1].lease, .lease_ms = PAWL_DEFAULT};
        pawl_renewed renewed;
        assert_int_equal(pawl_renew(world.store, "w1", &renewal, 1, &renewed, NULL), PAWL_OK);
        assert_int_equal(renewed.code, PAWL_OK);
        assert_int_not_equal(place_of(1), world.rows[1].lease.place);
        if (is_known) {
            settle_otherwise(3);
        } else {
            world.rows[1].lease.place = 0;
            settle_whole(3);
        }
    }
}

/* ---- what does not */

static void mixed_ones_go_as_before(void **state)
{
    (void)state;
    put_and_take("mixed", 3);
    world.rows[1].action = PAWL_FAIL;
    settle_each(3);
    expect_success(0);
    assert_int_equal(world.results[1].code, PAWL_OK);
    assert_int_equal(world.results[1].state, PAWL_FAILED);
    expect_success(2);

    put_and_take("mixed", 2);
    world.rows[1].error_text = "it was late";
    settle_each(2);
    expect_success(1);

    put_and_take("mixed", 2);
    world.rows[1].wire_sends = 1;
    settle_each(2);
    expect_success(1);
    assert_int_equal(number("select count(*) from pawl.attempt a join pawl.queue q on q.queue_id = "
                            "a.line_id / 4096 where q.name = 'mixed' and a.wire_sends = 1"),
                     1);
}

/* Q-VERSION */
static void so_do_leases_of_several_versions(void **state)
{
    (void)state;
    pawl_code verdict;
    put_and_take("versions", 1);
    assert_int_equal(pawl_release(world.store, "w1", &world.rows[0].lease, 1, &verdict, NULL),
                     PAWL_OK);
    assert_int_equal(verdict, PAWL_OK);
    put_and_take("versions2", 1);
    take("versions", 1, 1);
    assert_int_equal(world.rows[0].lease.version, 1);
    assert_int_equal(world.rows[1].lease.version, 2);
    settle_each(2);
    expect_success(0);
    expect_success(1);

    put_and_take("versions", 2);
    world.rows[0].lease.version = (int64_t)INT32_MAX + 1; /* nobody's */
    world.rows[1].lease.version = (int64_t)INT32_MAX + 1;
    settle_each(2);
    assert_int_equal(world.results[0].code, PAWL_STALE);
    assert_int_equal(world.results[1].code, PAWL_STALE);
}

/* ---- what is refused */

/* Q-STALE: whoever has lost a lease is told so, and it costs nobody else his. */
static void what_is_refused_is_settled_all_the_same(void **state)
{
    (void)state;
    put_and_take("stale", 4);
    world.rows[1].lease.token.bytes[0] ^= 1;
    pawl_settle_row last = world.rows[3];
    world.rows[3] = world.rows[0];
    world.rows[0] = last; /* not in their order either */
    assert_int_equal(settle(4), PAWL_OK);
    expect_success(0);
    assert_int_equal(world.results[1].code, PAWL_STALE);
    expect_success(2);
    expect_success(3);
    assert_int_equal(handle()->succeed_all.refusals, 1);
    assert_int_equal(handle()->succeed_all.pause, 1);

    world.rows[1].lease.token.bytes[0] ^= 1; /* the others are repeated */
    assert_int_equal(settle(4), PAWL_OK);    /* is not asked */
    assert_int_equal(handle()->succeed_all.pause, 0);
    for (size_t i = 0; i < 4; i++)
        expect_success(i);
    assert_int_equal(number("select count(*) from pawl.attempts where queue = 'stale'"), 4);

    put_and_take("stale", 2);
    settle_whole(2); /* is asked, and does */
}

/* Where nothing can be done at all, the call fails as it would, and that is no refusal. */
static void what_fails_has_failed(void **state)
{
    (void)state;
    put_and_take("failing", 2);
    run(HIDE_EACH);
    run(HIDE_ALL);
    assert_int_not_equal(settle(2), PAWL_OK);
    run(SHOW_ALL);
    run(SHOW_EACH);
    assert_int_equal(handle()->succeed_all.refusals, 0);
    settle_whole(2);
}

#define SLOW_MS "5"

/* One that takes a while leaves the next one all of its time. */
static void a_slow_one_takes_no_time_from_the_next(void **state)
{
    (void)state;
    run("create function public.dawdle() returns trigger language plpgsql as "
        "'begin perform pg_sleep(" SLOW_MS " / 1000.0); return old; end'");
    run("create trigger dawdle before delete on pawl.job for each row execute function "
        "public.dawdle()");
    put_and_take("slow", 2);
    assert_int_equal(settle(2), PAWL_OK); /* settle() looks at it */
    expect_success(0);
    expect_success(1);
    run("drop trigger dawdle on pawl.job");
    run("drop function public.dawdle()");
}

/* Each allocation fails once, either way: nothing is done, and it can be repeated. */
static void without_memory_nothing_is_done(void **state)
{
    (void)state;
    bool is_failed = true;
    put_and_take("memory", 2);
    run(HIDE_EACH);
    for (uint64_t nth = 1; is_failed; nth++) {
        alloc_fail_nth(nth);
        pawl_code rc = settle(2);
        is_failed = alloc_fail_end();
        if (is_failed)
            assert_int_equal(rc, PAWL_NO_MEMORY);
    }
    run(SHOW_EACH);
    put_and_take("refused", 2);
    world.rows[0].lease.token.bytes[0] ^= 1;
    is_failed = true;
    for (uint64_t nth = 1; is_failed; nth++) {
        assert_int_equal(number("select count(*) from pawl.job where state = 1 and line_id = "
                                "(select queue_id * 4096 from pawl.queue where name = 'refused')"),
                         2);
        alloc_fail_nth(nth);
        pawl_code rc = settle(2);
        is_failed = alloc_fail_end();
        if (is_failed)
            assert_int_equal(rc, PAWL_NO_MEMORY);
    }
    assert_int_equal(world.results[0].code, PAWL_STALE);
    expect_success(1);
}

static void where_it_would_not_it_is_left_alone_ever_longer(void **state)
{
    (void)state;
    size_t asked = 0;
    put_and_take("again", 2);
    assert_int_equal(settle(2), PAWL_OK);
    for (size_t i = 0; i < TRIES && handle()->succeed_all.refusals > 0; i++) { /* held up */
        put_and_take("again", 2);
        assert_int_equal(settle(2), PAWL_OK);
    }
    assert_int_equal(handle()->succeed_all.refusals, 0);
    for (size_t i = 0; i < SETTLES; i++) {
        unsigned pause = handle()->succeed_all.pause;
        assert_int_equal(settle(2), PAWL_OK); /* it has been done: the ledger knows */
        expect_success(0);
        expect_success(1);
        asked += handle()->succeed_all.pause > pause;
    }
    /* At 0, 2, 5, 10, 19, 36, 69, 134, 199 and 264. */
    assert_int_equal(asked, 10);
    /* Others, which are not for it, do not count. */
    unsigned pause = handle()->succeed_all.pause;
    assert_true(pause > 0);
    put_and_take("again", 1);
    world.rows[0].action = PAWL_FAIL;
    assert_int_equal(settle(1), PAWL_OK);
    assert_int_equal(handle()->succeed_all.pause, pause);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, open_store, close_store)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(alike_ones_go_as_a_whole),
        CASE(so_do_unsorted_ones),
        CASE(so_do_those_that_say_the_same),
        CASE(so_does_one),
        CASE(but_not_one_without_a_place),
        CASE(claims_say_where_rows_are),
        CASE(so_do_claims_of_a_few),
        CASE(without_a_place_they_go_as_a_whole),
        CASE(so_do_those_whose_places_are_swapped),
        CASE(wrong_places_cost_a_round_trip),
        CASE(a_place_of_another_job_does_it_no_harm),
        CASE(a_renewal_takes_the_place_away),
        CASE(mixed_ones_go_as_before),
        CASE(so_do_leases_of_several_versions),
        CASE(what_is_refused_is_settled_all_the_same),
        CASE(what_fails_has_failed),
        CASE(a_slow_one_takes_no_time_from_the_next),
        CASE(without_memory_nothing_is_done),
        CASE(where_it_would_not_it_is_left_alone_ever_longer),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("store_postgres_succeed_all", tests, begin, end);
}

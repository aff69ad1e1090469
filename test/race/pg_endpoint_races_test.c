/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * pg_endpoint_races_test.c - a publish in a transaction that stays open, against those who add,
 * switch, change and remove endpoints, and against the same event from elsewhere: step by step, in
 * every order that matters.
 */
#include "pawl/endpoint.h"
#include "race/race_stage.h"

#include <string.h>

#define SECRET   "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
#define SECRET_2 "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

static void add(pawl_store *store, const char *name)
{
    pawl_endpoint_settings settings;
    pawl_endpoint_settings_init(&settings);
    settings.url = "https://hooks.example/";
    settings.topics = "x.*";
    pawl_endpoint_add_args args = {.name = name, .secret = SECRET, .settings = &settings};
    assert_int_equal(pawl_endpoint_add(store, &args, NULL), PAWL_OK);
}

static pawl_published publish(pawl_store *store, const char *id)
{
    pawl_publish_row row;
    pawl_published result;
    pawl_publish_init(&row);
    row.type = "x.y";
    row.id = id;
    assert_int_equal(pawl_publish(store, &row, 1, &result, NULL), PAWL_OK);
    return result;
}

/* Jobs that are Ready in an endpoint's queue. */
static struct race_text waiting(struct race *race, const char *name)
{
    return race_ask(race->sql2,
                    "select count(*) from pawl.jobs where queue = 'webhook/%s' and "
                    "state = 'Ready'",
                    name);
}

static void begin_publish(struct race *race, const char *id)
{
    expect_told(race_ask(race->sql, "begin"), "");
    expect_told(race_ask(race->sql, "select pawl.publish('x.y', 'p', '%s')", id), id);
}

static void end(PGconn *session, const char *how)
{
    expect_told(race_ask(session, "%s", how), "");
}

/* ---------------------------------------------------------------- publish against remove */

/* Who removes waits for who has published, and sees what came of it. */
static void publish_remove_publish_first(void **state)
{
    struct race *race = *state;
    add(race->c, "a");
    begin_publish(race, "evt_1");
    race_send(race->sql2, "select pawl.endpoint_remove('a')");
    race_await_waiting(race);
    end(race->sql, "commit");
    expect_told(race_answer(race->sql2), "P7021");
    expect_told(waiting(race, "a"), "1");
    pawl_endpoint row;
    assert_int_equal(pawl_endpoint_get(race->c, "a", &row, NULL), PAWL_OK);
}

static void publish_remove_publish_is_rolled_back(void **state)
{
    struct race *race = *state;
    add(race->c, "a");
    begin_publish(race, "evt_1");
    race_send(race->sql2, "select pawl.endpoint_remove('a')");
    race_await_waiting(race);
    end(race->sql, "rollback");
    expect_told(race_answer(race->sql2), "");
    expect_told(waiting(race, "a"), "0");
    assert_int_equal(publish(race->c, "evt_1").endpoints, 0);
}

/* No job ever comes into a queue whose endpoint is gone. */
static void publish_remove_remove_first(void **state)
{
    struct race *race = *state;
    add(race->c, "a");
    add(race->c, "b");
    expect_told(race_ask(race->sql2, "begin"), "");
    expect_told(race_ask(race->sql2, "select pawl.endpoint_remove('a')"), "");
    race_send(race->sql, "select pawl.publish('x.y', 'p', 'evt_1')");
    race_await_waiting(race);
    end(race->sql2, "commit");
    expect_told(race_answer(race->sql), "evt_1");
    expect_told(waiting(race, "a"), "0");
    expect_told(waiting(race, "b"), "1");
}

static void publish_remove_remove_is_rolled_back(void **state)
{
    struct race *race = *state;
    add(race->c, "a");
    expect_told(race_ask(race->sql2, "begin"), "");
    expect_told(race_ask(race->sql2, "select pawl.endpoint_remove('a')"), "");
    race_send(race->sql, "select pawl.publish('x.y', 'p', 'evt_1')");
    race_await_waiting(race);
    end(race->sql2, "rollback");
    expect_told(race_answer(race->sql), "evt_1");
    expect_told(waiting(race, "a"), "1");
}

/* ---------------------------------------------------------------- publish against switches */

/* A switch waits for nobody: what was under way may still come, and stays in the paused queue. */
static void publish_disable_publish_first(void **state)
{
    struct race *race = *state;
    add(race->c, "a");
    (void)publish(race->c, "evt_0"); /* the queue has had a job */
    begin_publish(race, "evt_1");
    pawl_endpoint_switch off = {.name = "a", .by = "c"};
    assert_int_equal(pawl_endpoint_disable(race->c, &off, NULL), PAWL_OK);
    assert_int_equal(publish(race->c, "evt_2").endpoints, 0);
    end(race->sql, "commit");
    expect_told(waiting(race, "a"), "2");
    expect_told(race_ask(race->sql, "select count(*) from pawl.claim_outbox_batch(9, 'w', 30, "
                                    "'webhook/a')"),
                "0");
}

static void publish_disable_disable_first(void **state)
{
    struct race *race = *state;
    add(race->c, "a");
    (void)publish(race->c, "evt_0");
    expect_told(race_ask(race->sql, "begin"), "");
    expect_told(race_ask(race->sql, "select pawl.endpoint_disable('a', 'sql')"), "");
    assert_int_equal(publish(race->c, "evt_1").jobs, 1); /* it does not wait */
    end(race->sql, "commit");
    assert_int_equal(publish(race->c, "evt_2").endpoints, 0);
    expect_told(waiting(race, "a"), "2");
}

static void publish_enable_enable_first(void **state)
{
    struct race *race = *state;
    add(race->c, "a");
    pawl_endpoint_switch off = {.name = "a", .by = "c"};
    assert_int_equal(pawl_endpoint_disable(race->c, &off, NULL), PAWL_OK);
    expect_told(race_ask(race->sql, "begin"), "");
    expect_told(race_ask(race->sql, "select pawl.endpoint_enable('a', 'sql')"), "");
    assert_int_equal(publish(race->c, "evt_1").endpoints, 0);
    end(race->sql, "commit");
    assert_int_equal(publish(race->c, "evt_2").endpoints, 1);
}

/* Two who switch: the second finds it done, and leaves the record. */
static void disable_disable(void **state)
{
    struct race *race = *state;
    add(race->c, "a");
    expect_told(race_ask(race->sql, "begin"), "");
    expect_told(race_ask(race->sql, "select pawl.endpoint_disable('a', 'first', 'why')"), "");
    race_send(race->sql2, "select pawl.endpoint_disable('a', 'second')");
    race_await_waiting(race);
    end(race->sql, "commit");
    expect_told(race_answer(race->sql2), "");
    pawl_endpoint row;
    assert_int_equal(pawl_endpoint_get(race->c, "a", &row, NULL), PAWL_OK);
    assert_string_equal(row.switched_by, "first");
    assert_int_equal(row.revision, 2);
}

/* ---------------------------------------------------------------- publish against add and set */

static void publish_add_add_first(void **state)
{
    struct race *race = *state;
    expect_told(race_ask(race->sql, "begin"), "");
    expect_told(
        race_ask(race->sql, "select pawl.endpoint_add('a', 'https://x', 'x.*', '" SECRET "')"), "");
    assert_int_equal(publish(race->c, "evt_1").endpoints, 0); /* it does not wait */
    end(race->sql, "commit");
    assert_int_equal(publish(race->c, "evt_2").endpoints, 1);
    assert_int_equal(publish(race->c, "evt_1").jobs, 1); /* what is missing is made */
}

/* Who adds does not wait for who publishes. */
static void publish_add_publish_first(void **state)
{
    struct race *race = *state;
    add(race->c, "a");
    begin_publish(race, "evt_1");
    add(race->c, "b");
    end(race->sql, "commit");
    expect_told(waiting(race, "a"), "1");
    expect_told(waiting(race, "b"), "0");
}

static void add_add_of_one_name(void **state)
{
    struct race *race = *state;
    expect_told(race_ask(race->sql, "begin"), "");
    expect_told(
        race_ask(race->sql, "select pawl.endpoint_add('a', 'https://x', 'x', '" SECRET "')"), "");
    race_send(race->sql2, "select pawl.endpoint_add('a', 'https://y', 'y', '" SECRET "')");
    race_await_waiting(race);
    end(race->sql, "commit");
    expect_told(race_answer(race->sql2), "P7003");
}

static void publish_set_set_first(void **state)
{
    struct race *race = *state;
    add(race->c, "a");
    expect_told(race_ask(race->sql, "begin"), "");
    expect_told(race_ask(race->sql, "select pawl.endpoint_set('a', p_topics => 'z')"), "");
    assert_int_equal(publish(race->c, "evt_1").endpoints, 1);
    end(race->sql, "commit");
    assert_int_equal(publish(race->c, "evt_2").endpoints, 0);
}

/* ---------------------------------------------------------------- the same event twice */

/* The second one waits for the first; then `jobs` are made by it. */
static void publish_twice(struct race *race, const char *first_ends, const char *jobs)
{
    add(race->c, "a");
    begin_publish(race, "evt_1");
    race_send(race->sql2, "select jobs from pawl.publish_batch('{x.y}', '{evt_1}', '{f}', '{p}', "
                          "array[null]::text[], array[E'a: 1\\n'])");
    race_await_waiting(race);
    end(race->sql, first_ends);
    expect_told(race_answer(race->sql2), jobs);
    expect_told(waiting(race, "a"), "1");
}

static void publish_publish_first_is_committed(void **state)
{
    publish_twice(*state, "commit", "0");
}

static void publish_publish_first_is_rolled_back(void **state)
{
    publish_twice(*state, "rollback", "1");
}

/* ---------------------------------------------------------------- secrets */

static void rotate_rotate(void **state)
{
    struct race *race = *state;
    add(race->c, "a");
    expect_told(race_ask(race->sql, "begin"), "");
    expect_told(race_ask(race->sql, "select pawl.endpoint_rotate('a', '" SECRET_2 "', 60000)"), "");
    race_send(race->sql2, "select pawl.endpoint_rotate('a', '" SECRET_2 "', 60000)");
    race_await_waiting(race);
    end(race->sql, "commit");
    expect_told(race_answer(race->sql2), "P7023"); /* the same call, repeated: once is enough */
    pawl_endpoint_credentials held;
    assert_int_equal(pawl_endpoint_credentials_get(race->c, "a", &held, NULL), PAWL_OK);
    assert_int_equal(held.secrets_count, 2);
    assert_string_equal(held.secrets[0].text, SECRET_2);
}

#define STEPS(test) cmocka_unit_test_setup_teardown(test, race_set_up, race_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STEPS(publish_remove_publish_first),
        STEPS(publish_remove_publish_is_rolled_back),
        STEPS(publish_remove_remove_first),
        STEPS(publish_remove_remove_is_rolled_back),
        STEPS(publish_disable_publish_first),
        STEPS(publish_disable_disable_first),
        STEPS(publish_enable_enable_first),
        STEPS(disable_disable),
        STEPS(publish_add_add_first),
        STEPS(publish_add_publish_first),
        STEPS(add_add_of_one_name),
        STEPS(publish_set_set_first),
        STEPS(publish_publish_first_is_committed),
        STEPS(publish_publish_first_is_rolled_back),
        STEPS(rotate_rotate),
    };
    return cmocka_run_group_tests_name("pg_endpoint_races", tests, race_begin, race_end);
}

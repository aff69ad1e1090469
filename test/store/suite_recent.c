/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * suite_recent.c - which jobs have changed lately.
 * Owns:  the cases about what others have done.
 * Never: asks when a job was added of a store that knows it by the job's id alone.
 */
#include "store/helpers.h"
#include "store/recent.h"

#include <string.h>

#define ROWS_MAX 64
#define MISSING  (-1)

static struct pawli_recent rows[ROWS_MAX];

static size_t recent(struct stage *s, int64_t span_ms, const pawl_id *ids, size_t ids_count,
                     size_t rows_max)
{
    const struct pawli_recent_args args = {.span_ms = span_ms, .ids = ids, .ids_count = ids_count};
    size_t count = 0;
    expect_code(pawli_recent(s->store, &args, rows, rows_max, &count, NULL), PAWL_OK);
    expect_true(count <= rows_max);
    return count;
}

/* The state of a job among the rows. */
static int state_of(pawl_id id, const char *queue, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (pawl_id_compare(&rows[i].job, &id) != 0)
            continue;
        assert_string_equal(rows[i].queue, queue);
        return (int)rows[i].state;
    }
    return MISSING;
}

static void each_state_is_found(struct stage *s)
{
    pawl_id done = put(s, "a");
    expect_code(succeed(s, take(s, "a", "w")).code, PAWL_OK);
    pawl_id failed = put(s, "a");
    expect_code(cancel(s, failed).code, PAWL_OK);
    pawl_id held = put(s, "a");
    (void)take(s, "a", "w");
    pawl_id ready = put(s, "b");
    size_t count = recent(s, MINUTE, NULL, 0, ROWS_MAX);
    expect_number((int64_t)count, 4);
    expect_number(state_of(done, "a", count), PAWL_SUCCEEDED);
    expect_number(state_of(failed, "a", count), PAWL_FAILED);
    expect_number(state_of(held, "a", count), PAWL_IN_FLIGHT);
    expect_number(state_of(ready, "b", count), PAWL_READY);
    /* What ended too long ago is not found, but by its id. */
    age(s, HOUR);
    count = recent(s, MINUTE, NULL, 0, ROWS_MAX);
    expect_number(state_of(done, "a", count), MISSING);
    expect_number(state_of(failed, "a", count), MISSING);
    const pawl_id ids[] = {done, failed, {.bytes = {1}}};
    count = recent(s, MINUTE, ids, 3, ROWS_MAX);
    expect_number(state_of(done, "a", count), PAWL_SUCCEEDED);
    expect_number(state_of(failed, "a", count), PAWL_FAILED);
    expect_number(state_of(ids[2], "a", count), MISSING);
}

static void a_discarded_job_is_told_from_a_failed_one(struct stage *s)
{
    pawl_id id = put(s, "a");
    expect_code(cancel(s, id).code, PAWL_OK);
    expect_number((int64_t)recent(s, MINUTE, &id, 1, 1), 1);
    expect_true(!rows[0].is_discarded);
    expect_code(discard(s, id).code, PAWL_OK);
    expect_number((int64_t)recent(s, MINUTE, &id, 1, 1), 1);
    expect_true(rows[0].is_discarded);
    expect_number((int64_t)recent(s, MINUTE, NULL, 0, ROWS_MAX), 1);
    expect_true(rows[0].is_discarded);
}

static void no_more_are_given_than_asked_for(struct stage *s)
{
    pawl_id first = put(s, "a");
    expect_code(succeed(s, take(s, "a", "w")).code, PAWL_OK);
    for (int i = 0; i < 3; i++)
        (void)put(s, "a");
    expect_number((int64_t)recent(s, MINUTE, &first, 1, 1), 1);
    expect_id(rows[0].job, first); /* these come first */
    expect_number((int64_t)recent(s, MINUTE, NULL, 0, 2), 2);
    expect_number((int64_t)recent(s, MINUTE, NULL, 0, 4), 4);
    expect_number((int64_t)recent(s, MINUTE, NULL, 0, 5), 4);
}

static void each_is_found_by_its_id_in_any_store(struct stage *s)
{
    const pawl_id ids[] = {put(s, "a"), put(s, "b"), {.bytes = {1}}};
    expect_code(cancel(s, ids[1]).code, PAWL_OK);
    size_t count = recent(s, MINUTE, ids, 3, ROWS_MAX);
    expect_number(state_of(ids[0], "a", count), PAWL_READY);
    expect_number(state_of(ids[1], "b", count), PAWL_FAILED);
    expect_number(state_of(ids[2], "", count), MISSING);
}

static const struct suite_case cases[] = {
    CASE_ON(ENDPOINTS | DURABLE, each_state_is_found),
    CASE_ON(ENDPOINTS | DURABLE, a_discarded_job_is_told_from_a_failed_one),
    CASE_ON(ENDPOINTS | DURABLE, no_more_are_given_than_asked_for),
    CASE(each_is_found_by_its_id_in_any_store),
};
SUITE_GROUP(recent);

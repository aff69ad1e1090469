/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * suite_ledger.c - the rows that a job leaves (RES-12, OL-APPEND-ONLY).
 * Owns:  the cases about a ledger as a whole: its numbers, its order, and that it never changes.
 * Never: asserts what a single verb writes: see the verb's own file.
 */
#include "store/helpers.h"

#include <string.h>

/* A ledger as it was at some moment, in story time so that it can be compared across ages. */
struct copy {
    pawl_attempt rows[32];
    size_t count;
};

static struct copy *copy_of(struct stage *s, pawl_id id)
{
    struct copy *copy = stage_memory(s, sizeof(*copy));
    const pawl_attempt *rows = ledger(s, id, &copy->count);
    assert_true(copy->count <= COUNT_OF(copy->rows));
    for (size_t i = 0; i < copy->count; i++) {
        copy->rows[i] = rows[i];
        copy->rows[i].started_at.us = story_us(s, rows[i].started_at);
        copy->rows[i].finished_at.us = story_us(s, rows[i].finished_at);
    }
    return copy;
}

static void expect_same_row(const pawl_attempt *a, const pawl_attempt *b)
{
    expect_number(a->attempt_no, b->attempt_no);
    expect_number(a->outcome, (int64_t)b->outcome);
    expect_number(a->reason, (int64_t)b->reason);
    expect_number(a->ended_by, (int64_t)b->ended_by);
    expect_number(a->lease_version, b->lease_version);
    assert_string_equal(a->worker, b->worker);
    expect_number(a->started_at.us, b->started_at.us);
    expect_number(a->finished_at.us, b->finished_at.us);
    assert_string_equal(a->error_code, b->error_code);
    assert_string_equal(a->error_text, b->error_text);
    expect_number(a->wire_sends, b->wire_sends);
}

/* OL-APPEND-ONLY: `later` is `earlier` and `more` rows */
static void expect_appended(const struct copy *earlier, const struct copy *later, size_t more)
{
    expect_number(later->count, (int64_t)(earlier->count + more));
    for (size_t i = 0; i < earlier->count; i++)
        expect_same_row(&earlier->rows[i], &later->rows[i]);
    for (size_t i = 0; i < later->count; i++)
        expect_number(later->rows[i].attempt_no, (int64_t)i + 1);
}

/* The steps of a long life; each says how many rows it adds. */
static size_t step(struct stage *s, pawl_id id, int number)
{
    switch (number) {
    case 0:
        expect_code(release(s, take(s, "mail", "w1")), PAWL_OK);
        return 0;
    case 1:
        expect_code(retry_in(s, take(s, "mail", "w1"), 0).code, PAWL_OK);
        return 1;
    case 2:
        expect_code(snooze_for(s, take(s, "mail", "w2"), 0).code, PAWL_OK);
        return 1;
    case 3:
        (void)take_and_lose(s, "mail", "w3");
        (void)reap_one(s);
        return 1;
    case 4:
        expect_code(fail_for_good(s, take(s, "mail", "w1")).code, PAWL_OK);
        return 1;
    case 5:
        expect_code(redrive(s, id).code, PAWL_OK);
        return 0;
    case 6:
        expect_code(renew(s, take(s, "mail", "w4")).code, PAWL_OK);
        return 0;
    case 7:
        age(s, LEASE + SECOND);
        (void)take(s, "mail", "w5"); /* finds the expiry of step 6 */
        return 1;
    case 8:
        expect_code(release(s, mine(s, "w5").jobs[0]), PAWL_OK);
        return 0;
    case 9:
        expect_code(cancel(s, id).code, PAWL_OK);
        return 1;
    case 10:
        expect_code(redrive(s, id).code, PAWL_OK);
        return 0;
    default:
        expect_code(succeed(s, take(s, "mail", "w6")).code, PAWL_OK);
        return 1;
    }
}

/* RES-12, OL-APPEND-ONLY, RES-4 */
static void a_long_life_leaves_one_row_per_attempt(struct stage *s)
{
    pawl_id id = put(s, "mail");
    struct copy *before = copy_of(s, id);
    for (int number = 0; number < 12; number++) {
        size_t more = step(s, id, number);
        struct copy *after = copy_of(s, id);
        expect_appended(before, after, more);
        before = after;
    }
    expect_ledger(s, id,
                  "RETRYABLE error, RETRYABLE snooze, ZOMBIE_REQUEUE expired, FAILED fatal, "
                  "ZOMBIE_REQUEUE expired, FAILED cancelled, DISPATCHED");
    const int64_t versions[] = {2, 3, 4, 5, 6, 0, 8};
    const char *const workers[] = {"w1", "w2", "w3", "w1", "w4", "", "w6"};
    for (size_t i = 0; i < before->count; i++) {
        expect_number(before->rows[i].lease_version, versions[i]);
        assert_string_equal(before->rows[i].worker, workers[i]);
        expect_true(before->rows[i].finished_at.us != 0);
        expect_true(i == 0 || before->rows[i].finished_at.us >= before->rows[i - 1].finished_at.us);
    }
}

static void a_ledger_comes_in_pages(struct stage *s)
{
    set_bounds(s, "mail", 10, 10);
    pawl_id id = put(s, "mail");
    for (int i = 0; i < 5; i++)
        expect_code(retry_in(s, take(s, "mail", "w1"), 0).code, PAWL_OK);
    pawl_attempt page[2];
    const int64_t wanted[3][3] = {{0, 2, 1}, {2, 2, 3}, {4, 1, 5}}; /* after, count, first */
    for (size_t i = 0; i < 3; i++) {
        size_t count = 0;
        pawl_err err;
        expect_code(pawl_attempts(s->store, &id, wanted[i][0], page, 2, &count, &err), PAWL_OK);
        expect_number(count, wanted[i][1]);
        expect_number(page[0].attempt_no, wanted[i][2]);
    }
    size_t count = 9;
    pawl_err err;
    expect_code(pawl_attempts(s->store, &id, 5, page, 2, &count, &err), PAWL_OK);
    expect_number(count, 0);
}

static void an_unknown_job_has_no_ledger(struct stage *s)
{
    pawl_enqueue_row row = row_for("mail");
    pawl_id unknown = new_id(s, &row);
    pawl_attempt page[1];
    size_t count = 0;
    pawl_err err;
    expect_code(pawl_attempts(s->store, &unknown, 0, page, 1, &count, &err), PAWL_GONE);
    expect_true(is_gone(s, unknown));
}

static const struct suite_case cases[] = {
    CASE(a_long_life_leaves_one_row_per_attempt),
    CASE(a_ledger_comes_in_pages),
    CASE(an_unknown_job_has_no_ledger),
};

SUITE_GROUP(ledger);

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * suite_dedupe.c - at most one live job per dedupe key and queue.
 * Owns:  the cases about who holds a key, and when it is free again.
 * Never: looks behind the public verbs.
 */
#include "store/helpers.h"

#include <string.h>

static pawl_enqueue_row keyed_row(const char *queue, const char *key)
{
    pawl_enqueue_row row = row_for(queue);
    row.dedupe_key = key;
    return row;
}

static pawl_id put_keyed(struct stage *s, const char *key)
{
    pawl_enqueue_row row = keyed_row("mail", key);
    return put_row(s, &row);
}

static void expect_held_by(struct stage *s, const char *key, pawl_id holder)
{
    struct picture before = picture_of(s, holder);
    pawl_enqueue_row row = keyed_row("mail", key);
    pawl_enqueued result = try_put(s, &row);
    expect_code(result.code, PAWL_DUPLICATE);
    expect_id(result.id, holder);
    expect_unchanged(s, &before);
}

static void a_live_job_holds_its_key(struct stage *s)
{
    pawl_id id = put_keyed(s, "order-1");
    expect_held_by(s, "order-1", id);
    const pawl_job *job = take(s, "mail", "w1");
    expect_held_by(s, "order-1", id);
    expect_code(retry_in(s, job, MINUTE).code, PAWL_OK);
    expect_held_by(s, "order-1", id);
    age(s, MINUTE + SECOND);
    job = take_and_lose(s, "mail", "w1");
    expect_held_by(s, "order-1", id);
    (void)reap_one(s); /* back to Ready */
    expect_held_by(s, "order-1", id);
    job = take(s, "mail", "w1");
    expect_code(release(s, job), PAWL_OK);
    expect_held_by(s, "order-1", id);
    expect_number(list(s, NULL).count, 1);
}

static void success_frees_the_key(struct stage *s)
{
    pawl_id first = put_keyed(s, "order-1");
    expect_code(succeed(s, take(s, "mail", "w1")).code, PAWL_OK);
    pawl_id second = put_keyed(s, "order-1");
    expect_true(pawl_id_compare(&first, &second) != 0);
    expect_held_by(s, "order-1", second);
}

static void failure_frees_the_key(struct stage *s)
{
    (void)put_keyed(s, "order-1"); /* fails */
    expect_code(fail_for_good(s, take(s, "mail", "w1")).code, PAWL_OK);
    expect_held_by(s, "order-1", put_keyed(s, "order-1"));
}

static void cancellation_frees_the_key(struct stage *s)
{
    expect_code(cancel(s, put_keyed(s, "order-1")).code, PAWL_OK);
    expect_held_by(s, "order-1", put_keyed(s, "order-1"));
}

static void poison_frees_the_key(struct stage *s)
{
    set_bounds(s, "mail", 3, 1);
    (void)put_keyed(s, "order-1"); /* is lost */
    (void)take_and_lose(s, "mail", "w1");
    expect_number(reap_one(s)->reason, PAWL_REASON_POISON);
    expect_held_by(s, "order-1", put_keyed(s, "order-1"));
}

static void a_missed_deadline_frees_the_key(struct stage *s)
{
    pawl_enqueue_row row = keyed_row("mail", "order-1");
    row.start_within_ms = MINUTE;
    (void)put_row(s, &row); /* is missed */
    age(s, 61 * SECOND);
    (void)reap_one(s); /* fails it */
    expect_held_by(s, "order-1", put_keyed(s, "order-1"));
}

static void keys_of_other_queues_are_other_keys(struct stage *s)
{
    (void)put_keyed(s, "order-1"); /* of "mail" */
    pawl_enqueue_row row = keyed_row("print", "order-1");
    expect_code(try_put(s, &row).code, PAWL_OK);
    pawl_enqueue_row other = keyed_row("mail", "order-2");
    expect_code(try_put(s, &other).code, PAWL_OK);
}

static void the_longest_key_is_compared_to_its_end(struct stage *s)
{
    char a[PAWL_DEDUPE_KEY_MAX + 1];
    char b[PAWL_DEDUPE_KEY_MAX + 1];
    memset(a, 'k', sizeof(a));
    a[PAWL_DEDUPE_KEY_MAX] = '\0';
    memcpy(b, a, sizeof(b));
    b[PAWL_DEDUPE_KEY_MAX - 1] = 'l';
    pawl_id first = put_keyed(s, a);
    pawl_id second = put_keyed(s, b);
    expect_held_by(s, a, first);
    expect_held_by(s, b, second);
}

/* Q-ENQUEUE: a repeat after a lost reply must read EXISTS, although the key is taken too: by itself
 */
static void a_repeat_exists_and_is_no_duplicate(struct stage *s)
{
    pawl_enqueue_row row = keyed_row("mail", "order-1");
    row.id = new_id(s, &row);
    expect_code(try_put(s, &row).code, PAWL_OK);
    pawl_enqueued again = try_put(s, &row);
    expect_code(again.code, PAWL_EXISTS);
    expect_id(again.id, row.id);
}

/* Also where the key has gone to another job since. */
static void a_repeat_of_a_finished_job_exists(struct stage *s)
{
    pawl_enqueue_row row = keyed_row("mail", "order-1");
    row.id = new_id(s, &row);
    expect_code(try_put(s, &row).code, PAWL_OK);
    expect_code(succeed(s, take(s, "mail", "w1")).code, PAWL_OK);
    pawl_id other = put_keyed(s, "order-1");
    expect_code(try_put(s, &row).code, PAWL_EXISTS);
    expect_held_by(s, "order-1", other);
}

static void a_refused_row_leaves_no_trace(struct stage *s)
{
    (void)put_keyed(s, "order-1"); /* holds it */
    pawl_enqueue_row row = keyed_row("mail", "order-1");
    row.id = new_id(s, &row);
    expect_code(try_put(s, &row).code, PAWL_DUPLICATE);
    expect_true(is_gone(s, row.id));
    expect_code(succeed(s, take(s, "mail", "w1")).code, PAWL_OK);
    expect_code(try_put(s, &row).code, PAWL_OK); /* the id was not used up */
}

/* Q-DEAD-LETTER */
static void redrive_needs_the_key(struct stage *s)
{
    pawl_id dead = put_keyed(s, "order-1");
    expect_code(fail_for_good(s, take(s, "mail", "w1")).code, PAWL_OK);
    (void)put_keyed(s, "order-1"); /* holds the key now */
    struct picture before = picture_of(s, dead);
    expect_code(redrive(s, dead).code, PAWL_DUPLICATE);
    expect_unchanged(s, &before);

    expect_code(succeed(s, take(s, "mail", "w1")).code, PAWL_OK);
    expect_code(redrive(s, dead).code, PAWL_OK);
    expect_held_by(s, "order-1", dead);
}

/* Q-DEAD-LETTER: of two with one key, one comes back */
static void a_key_is_redriven_once(struct stage *s)
{
    pawl_id dead[2];
    for (size_t i = 0; i < 2; i++) {
        dead[i] = put_keyed(s, "order-1");
        expect_code(fail_for_good(s, take(s, "mail", "w1")).code, PAWL_OK);
    }
    pawl_changed changed[2];
    pawl_err err;
    expect_code(pawl_redrive(s->store, dead, 2, changed, &err), PAWL_OK);
    expect_code(changed[0].code, PAWL_OK);
    expect_code(changed[1].code, PAWL_DUPLICATE);
    expect_code(cancel(s, dead[0]).code, PAWL_OK);
    size_t count = 0;
    const pawl_filter all = {0};
    expect_code(pawl_redrive_where(s->store, &all, 10, &count, &err), PAWL_OK);
    expect_number(count, 1);
    expect_number(take_up_to(s, "mail", "w1", 10).count, 1);
}

/* Two keys that look alike are not the same: nothing is folded or composed. */
static void keys_may_be_in_any_script(struct stage *s)
{
    static const char *const keys[] = {"\xc3\xa4", "a\xcc\x88", "\xc3\x84", "\xf0\x9f\x98\x80"};
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        pawl_enqueue_row row = row_for("mail");
        row.dedupe_key = keys[i];
        pawl_id id = put_row(s, &row);
        pawl_enqueued again;
        pawl_err err;
        expect_code(pawl_enqueue(s->store, &row, 1, &again, &err), PAWL_OK);
        expect_code(again.code, PAWL_DUPLICATE);
        expect_id(again.id, id);
    }
}

static const struct suite_case cases[] = {
    CASE(keys_may_be_in_any_script),
    CASE(a_live_job_holds_its_key),
    CASE(success_frees_the_key),
    CASE(failure_frees_the_key),
    CASE(cancellation_frees_the_key),
    CASE(poison_frees_the_key),
    CASE(a_missed_deadline_frees_the_key),
    CASE(keys_of_other_queues_are_other_keys),
    CASE(the_longest_key_is_compared_to_its_end),
    CASE(a_repeat_exists_and_is_no_duplicate),
    CASE(a_repeat_of_a_finished_job_exists),
    CASE(a_refused_row_leaves_no_trace),
    CASE(redrive_needs_the_key),
    CASE(a_key_is_redriven_once),
};

SUITE_GROUP(dedupe);

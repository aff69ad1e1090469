/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * suite_list.c - listing jobs.
 * Owns:  the cases about filters, pages and the cursor, and what a list must not show.
 * Never: changes jobs but to have something to list.
 */
#include "store/helpers.h"

#include <string.h>

static const pawl_token no_token;

static bool has_job(struct batch batch, pawl_id id)
{
    for (size_t i = 0; i < batch.count; i++) {
        if (pawl_id_compare(&batch.jobs[i]->id, &id) == 0)
            return true;
    }
    return false;
}

/* One job in each state, in queue "mail", and a Ready one in "print". */
struct cast {
    pawl_id ready, running, done, dead, elsewhere;
};

static struct cast put_cast(struct stage *s)
{
    struct cast cast;
    cast.done = put_succeeded(s, "mail");
    cast.dead = put_failed(s, "mail");
    cast.running = put(s, "mail");
    (void)take(s, "mail", "w1");
    cast.ready = put(s, "mail");
    cast.elsewhere = put(s, "print");
    return cast;
}

static struct batch list_states(struct stage *s, unsigned states)
{
    return list(s, &(pawl_filter){.states = states});
}

/* Q-ONE-STATE, Q-DEAD-LETTER */
static void a_filter_names_states(struct stage *s)
{
    struct cast cast = put_cast(s);
    expect_batch(list_states(s, 1u << PAWL_SUCCEEDED), cast.done);
    expect_batch(list_states(s, 1u << PAWL_FAILED), cast.dead);
    expect_batch(list_states(s, 1u << PAWL_IN_FLIGHT), cast.running);
    struct batch ready = list_states(s, 1u << PAWL_READY);
    expect_number(ready.count, 2);
    expect_true(has_job(ready, cast.ready) && has_job(ready, cast.elsewhere));
    struct batch ended = list_states(s, 1u << PAWL_SUCCEEDED | 1u << PAWL_FAILED);
    expect_number(ended.count, 2);
    expect_number(list_states(s, 0).count, 5);
    expect_number(list(s, NULL).count, 5);
}

static void a_filter_names_a_queue(struct stage *s)
{
    struct cast cast = put_cast(s);
    expect_batch(list(s, &(pawl_filter){.queue = "print"}), cast.elsewhere);
    expect_number(list(s, &(pawl_filter){.queue = "mail"}).count, 4);
    expect_number(list(s, &(pawl_filter){.queue = "nowhere"}).count, 0);
    pawl_filter both = {.queue = "mail", .states = 1u << PAWL_READY};
    expect_batch(list(s, &both), cast.ready);
}

static void a_filter_names_the_last_reason(struct stage *s)
{
    struct cast cast = put_cast(s);
    expect_batch(list(s, &(pawl_filter){.reason = PAWL_REASON_FATAL}), cast.dead);
    expect_code(cancel(s, cast.ready).code, PAWL_OK);
    expect_batch(list(s, &(pawl_filter){.reason = PAWL_REASON_CANCELLED}), cast.ready);
    expect_code(redrive(s, cast.dead).code, PAWL_OK);
    expect_code(succeed(s, take(s, "mail", "w1")).code, PAWL_OK);
    expect_number(list(s, &(pawl_filter){.reason = PAWL_REASON_FATAL}).count, 0); /* not the last */
}

static void a_filter_names_a_worker(struct stage *s)
{
    struct cast cast = put_cast(s);
    (void)take(s, "print", "w2");
    expect_batch(list(s, &(pawl_filter){.worker = "w1"}), cast.running);
    expect_batch(list(s, &(pawl_filter){.worker = "w2"}), cast.elsewhere);
    expect_number(list(s, &(pawl_filter){.worker = "w"}).count, 0); /* its jobs have ended */
    pawl_filter other = {.worker = "w1", .queue = "print"};
    expect_number(list(s, &other).count, 0);
}

/* OL-QUERIES, NFR-003: no token, no payload */
static void a_list_shows_no_secret(struct stage *s)
{
    struct cast cast = put_cast(s);
    struct batch all = list(s, NULL);
    expect_number(all.count, 5);
    for (size_t i = 0; i < all.count; i++) {
        expect_true(all.jobs[i]->payload == NULL && all.jobs[i]->headers == NULL);
        assert_memory_equal(&all.jobs[i]->token, &no_token, sizeof(no_token));
    }
    const pawl_job *running = look(s, cast.running);
    assert_memory_equal(&running->token, &no_token, sizeof(no_token)); /* get shows none either */
    struct batch live = list_states(s, 1u << PAWL_READY);
    expect_number(live.jobs[0]->payload_len, 4); /* its size may be known */
}

/* OL-FIELDS: but for the two secrets, it shows what get shows */
static void a_list_tells_what_get_tells(struct stage *s)
{
    (void)put_cast(s);
    struct batch all = list(s, NULL);
    for (size_t i = 0; i < all.count; i++) {
        const pawl_job *listed = all.jobs[i];
        const pawl_job *seen = look(s, listed->id);
        expect_number(listed->state, (int64_t)seen->state);
        assert_string_equal(listed->queue, seen->queue);
        assert_string_equal(listed->worker, seen->worker);
        expect_number(listed->reason, (int64_t)seen->reason);
        expect_number(listed->attempts, seen->attempts);
        expect_number(listed->lease_version, seen->lease_version);
        expect_number(listed->max_retries, seen->max_retries);
        expect_number(listed->created_at.us, seen->created_at.us);
        expect_number(listed->expires_at.us, seen->expires_at.us);
        expect_number(listed->finished_at.us, seen->finished_at.us);
    }
}

/* ---------------------------------------------------------------- pages */

/* Read all pages of `page_max` and give the jobs in the order in which they came. */
static struct batch read_pages(struct stage *s, const pawl_filter *filter, size_t page_max)
{
    pawl_job *page = stage_memory(s, page_max * sizeof(page[0]));
    struct batch all = {stage_memory(s, 64 * sizeof(all.jobs[0])), 0};
    pawl_id after;
    for (;;) {
        size_t count = 0;
        pawl_err err;
        expect_code(pawl_list(s->store, filter, all.count > 0 ? &after : NULL, page, page_max,
                              &count, &err),
                    PAWL_OK);
        if (count == 0)
            return all;
        for (size_t i = 0; i < count; i++) {
            assert_true(all.count < 64);
            all.jobs[all.count++] = stage_keep(s, &page[i]);
        }
        after = page[count - 1].id;
    }
}

static void pages_add_up_to_the_whole(struct stage *s)
{
    for (int i = 0; i < 20; i++)
        put(s, i % 3 == 0 ? "mail" : "print");
    expect_number(take_up_to(s, "print", "w1", 5).count, 5);
    const pawl_filter filters[] = {{0}, {.queue = "print"}, {.states = 1u << PAWL_READY}};
    const size_t sizes[] = {1, 3, 7, 20, 50};
    for (size_t f = 0; f < COUNT_OF(filters); f++) {
        struct batch whole = list(s, &filters[f]);
        for (size_t i = 1; i < whole.count; i++)
            expect_true(pawl_id_compare(&whole.jobs[i - 1]->id, &whole.jobs[i]->id) < 0);
        for (size_t i = 0; i < COUNT_OF(sizes); i++) {
            struct batch pages = read_pages(s, &filters[f], sizes[i]);
            expect_number(pages.count, (int64_t)whole.count);
            for (size_t j = 0; j < pages.count; j++)
                expect_id(pages.jobs[j]->id, whole.jobs[j]->id);
        }
    }
}

/* The cursor is an id, which need not exist any more. */
static void a_page_begins_above_any_id(struct stage *s)
{
    for (int i = 0; i < 4; i++)
        put(s, "mail");
    struct batch all = list(s, NULL);
    pawl_id after = all.jobs[1]->id;
    after.bytes[15] = (uint8_t)(after.bytes[15] + 1); /* an id that nobody has */
    bool is_carry = after.bytes[15] == 0;
    if (is_carry)
        after = all.jobs[1]->id;
    pawl_job page[4] = {0};
    size_t count = 0;
    pawl_err err;
    expect_code(pawl_list(s->store, NULL, &after, page, 4, &count, &err), PAWL_OK);
    expect_number(count, 2);
    expect_id(page[0].id, all.jobs[2]->id);
    memset(&after, 0xff, sizeof(after));
    expect_code(pawl_list(s->store, NULL, &after, page, 4, &count, &err), PAWL_OK);
    expect_number(count, 0);
}

/* Jobs that stay as they are appear exactly once, whatever comes and goes between two pages. */
static void a_cursor_is_stable_while_jobs_come_and_go(struct stage *s)
{
    pawl_id stay[12];
    for (size_t i = 0; i < 12; i++) {
        stay[i] = put(s, "stay");
        put(s, "go");
    }
    size_t seen[12] = {0};
    pawl_job page[3] = {0};
    pawl_id after = {{0}};
    for (int pages = 0;; pages++) {
        expect_true(pages < 100); /* a cursor that stands still would never end */
        size_t count = 0;
        pawl_err err;
        expect_code(pawl_list(s->store, NULL, &after, page, 3, &count, &err), PAWL_OK);
        if (count == 0)
            break;
        for (size_t i = 0; i < count; i++) {
            for (size_t j = 0; j < 12; j++)
                seen[j] += pawl_id_compare(&page[i].id, &stay[j]) == 0;
        }
        after = page[count - 1].id;
        struct batch batch = take_up_to(s, "go", "w1", 2);
        if (batch.count > 0)
            expect_code(succeed(s, batch.jobs[0]).code, PAWL_OK);
        if (batch.count > 0)
            put(s, "come");
        age(s, 8 * DAY);
        (void)prune(s); /* the succeeded one is gone, also where it was the cursor */
    }
    for (size_t j = 0; j < 12; j++)
        expect_number(seen[j], 1);
}

static const struct suite_case cases[] = {
    CASE(a_filter_names_states),
    CASE(a_filter_names_a_queue),
    CASE(a_filter_names_the_last_reason),
    CASE(a_filter_names_a_worker),
    CASE(a_list_shows_no_secret),
    CASE(a_list_tells_what_get_tells),
    CASE(pages_add_up_to_the_whole),
    CASE(a_page_begins_above_any_id),
    CASE(a_cursor_is_stable_while_jobs_come_and_go),
};

SUITE_GROUP(list);

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * suite_view.c - who holds what, who is there, and how much waits.
 * Owns:  the cases about leases, workers and statistics.
 * Never: changes jobs but to have something to look at.
 */
#include "store/helpers.h"

#include <stdio.h>
#include <string.h>

#define ROWS_MAX 16

/* ---------------------------------------------------------------- leases */

struct lease_page {
    pawl_lease_info rows[ROWS_MAX];
    size_t count;
};

static struct lease_page leases(struct stage *s, const pawl_filter *filter, const pawl_id *after,
                                size_t rows_max)
{
    struct lease_page page = {.count = 0};
    pawl_err err;
    expect_code(pawl_leases(s->store, filter, after, page.rows, rows_max, &page.count, &err),
                PAWL_OK);
    return page;
}

/* OL-QUERIES, OL-FIELDS, RULE-020-032 */
static void a_lease_tells_who_holds_what(struct stage *s)
{
    pawl_id id = put(s, "mail");
    const pawl_job *job = take(s, "mail", "w1");
    put(s, "mail"); /* waits: not a lease */
    age(s, 10 * SECOND);
    struct lease_page page = leases(s, NULL, NULL, ROWS_MAX);
    expect_number(page.count, 1);
    const pawl_lease_info *row = &page.rows[0];
    expect_id(row->job, id);
    assert_string_equal(row->queue, "mail");
    assert_string_equal(row->worker, "w1");
    expect_number(row->lease_version, job->lease_version);
    expect_near(s, row->claimed_at, -10 * SECOND);
    expect_near(s, row->expires_at, LEASE - 10 * SECOND);
    expect_true(!row->is_expired);
    expect_true(!row->is_cancel_asked);

    expect_code(cancel(s, id).code, PAWL_OK);
    expect_true(leases(s, NULL, NULL, ROWS_MAX).rows[0].is_cancel_asked);
    expect_code(succeed(s, job).code, PAWL_OK);
    expect_number(leases(s, NULL, NULL, ROWS_MAX).count, 0);
}

/* OL-QUERIES: what is stale */
static void an_expired_lease_is_told_as_such(struct stage *s)
{
    put(s, "mail");
    (void)take_and_lose(s, "mail", "w1");
    struct lease_page page = leases(s, NULL, NULL, ROWS_MAX);
    expect_number(page.count, 1);
    expect_true(page.rows[0].is_expired);
    (void)reap_one(s);
    expect_number(leases(s, NULL, NULL, ROWS_MAX).count, 0);
}

static void leases_are_filtered_and_paged(struct stage *s)
{
    for (int i = 0; i < 3; i++) {
        put(s, "mail");
        put(s, "print");
        (void)take(s, "mail", "w1");
        (void)take(s, "print", i == 0 ? "w1" : "w2");
    }
    expect_number(leases(s, &(pawl_filter){.queue = "mail"}, NULL, ROWS_MAX).count, 3);
    expect_number(leases(s, &(pawl_filter){.worker = "w1"}, NULL, ROWS_MAX).count, 4);
    pawl_filter both = {.worker = "w1", .queue = "print"};
    expect_number(leases(s, &both, NULL, ROWS_MAX).count, 1);

    struct lease_page all = leases(s, NULL, NULL, ROWS_MAX);
    expect_number(all.count, 6);
    for (size_t i = 1; i < all.count; i++)
        expect_true(pawl_id_compare(&all.rows[i - 1].job, &all.rows[i].job) < 0);
    struct lease_page second = leases(s, NULL, &all.rows[3].job, 2);
    expect_number(second.count, 2);
    expect_id(second.rows[0].job, all.rows[4].job);
    expect_id(second.rows[1].job, all.rows[5].job);
    expect_number(leases(s, NULL, &all.rows[5].job, 2).count, 0);
}

/* ---------------------------------------------------------------- workers */

static void say_seen(struct stage *s, const char *name, pawl_worker_kind kind)
{
    pawl_worker_seen seen = {.name = name,
                             .kind = kind,
                             .host = "host-1",
                             .version = "1.2.3",
                             .queues = kind == PAWL_KIND_WORKER ? "mail print" : NULL};
    pawl_err err;
    expect_code(pawl_worker_seen_now(s->store, &seen, &err), PAWL_OK);
}

static void say_ended(struct stage *s, const char *name)
{
    pawl_err err;
    expect_code(pawl_worker_ended(s->store, name, &err), PAWL_OK);
}

struct worker_page {
    pawl_worker rows[ROWS_MAX];
    size_t count;
};

static struct worker_page workers(struct stage *s, const char *after, size_t rows_max)
{
    struct worker_page page = {.count = 0};
    pawl_err err;
    expect_code(pawl_workers(s->store, after, page.rows, rows_max, &page.count, &err), PAWL_OK);
    return page;
}

/* RULE-020-052, RULE-020-032 */
static void a_worker_shows_itself_and_goes(struct stage *s)
{
    expect_number(workers(s, NULL, ROWS_MAX).count, 0);
    say_seen(s, "w1", PAWL_KIND_WORKER);
    age(s, MINUTE);
    say_seen(s, "w1", PAWL_KIND_WORKER);
    age(s, 10 * SECOND);
    struct worker_page page = workers(s, NULL, ROWS_MAX);
    expect_number(page.count, 1);
    assert_string_equal(page.rows[0].name, "w1");
    assert_string_equal(page.rows[0].host, "host-1");
    assert_string_equal(page.rows[0].version, "1.2.3");
    assert_string_equal(page.rows[0].queues, "mail print");
    expect_number(page.rows[0].kind, PAWL_KIND_WORKER);
    expect_near(s, page.rows[0].since, -(MINUTE + 10 * SECOND));
    expect_near(s, page.rows[0].last_seen, -10 * SECOND);
    expect_number(page.rows[0].leases, 0);

    say_ended(s, "w1");
    expect_number(workers(s, NULL, ROWS_MAX).count, 0);
    say_ended(s, "w1"); /* no row is fine too */
    say_ended(s, "never-seen");
}

/* RULE-020-052: who died did not say so; its row goes some day */
static void a_worker_long_gone_is_forgotten(struct stage *s)
{
    say_seen(s, "gone", PAWL_KIND_WORKER);
    say_seen(s, "gone-too", PAWL_KIND_REAPER);
    say_seen(s, "holding", PAWL_KIND_WORKER);
    put(s, "mail");
    (void)take(s, "mail", "holding"); /* until it is recovered */
    say_seen(s, "here", PAWL_KIND_WORKER);
    age(s, 6 * DAY);
    say_seen(s, "here", PAWL_KIND_WORKER);
    expect_number(prune(s), 0);
    expect_number(workers(s, NULL, ROWS_MAX).count, 4);
    age(s, DAY + MINUTE);
    expect_number(prune(s), 0);
    struct worker_page page = workers(s, NULL, ROWS_MAX);
    expect_number(page.count, 2);
    assert_string_equal(page.rows[0].name, "here");
    assert_string_equal(page.rows[1].name, "holding");
    (void)reap_one(s); /* it holds nothing any more */
    expect_number(prune(s), 0);
    page = workers(s, NULL, ROWS_MAX);
    expect_number(page.count, 1);
    assert_string_equal(page.rows[0].name, "here");
}

/* RULE-020-052: whoever recovers its leases can see what a silent worker held */
static void a_worker_is_told_with_its_leases(struct stage *s)
{
    say_seen(s, "w1", PAWL_KIND_WORKER);
    say_seen(s, "r1", PAWL_KIND_REAPER);
    for (int i = 0; i < 3; i++)
        put(s, "mail");
    expect_number(take_up_to(s, "mail", "w1", 2).count, 2);
    (void)take(s, "mail", "w2"); /* has not shown itself */
    struct worker_page page = workers(s, NULL, ROWS_MAX);
    expect_number(page.count, 2);
    assert_string_equal(page.rows[0].name, "r1");
    expect_number(page.rows[0].kind, PAWL_KIND_REAPER);
    expect_number(page.rows[0].leases, 0);
    assert_string_equal(page.rows[1].name, "w1");
    expect_number(page.rows[1].leases, 2);
    expect_code(succeed(s, mine(s, "w1").jobs[0]).code, PAWL_OK);
    expect_number(workers(s, NULL, ROWS_MAX).rows[1].leases, 1);
}

static void workers_come_by_name_in_pages(struct stage *s)
{
    const char *const names[] = {"w5", "w1", "w3", "w2", "w4"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        say_seen(s, names[i], PAWL_KIND_WORKER);
    struct worker_page page = workers(s, NULL, 2);
    expect_number(page.count, 2);
    assert_string_equal(page.rows[0].name, "w1");
    assert_string_equal(page.rows[1].name, "w2");
    page = workers(s, "w2", 2);
    assert_string_equal(page.rows[0].name, "w3");
    assert_string_equal(page.rows[1].name, "w4");
    page = workers(s, "w4", 2);
    expect_number(page.count, 1);
    expect_number(workers(s, "w5", 2).count, 0);
}

/* ---------------------------------------------------------------- statistics */

static void a_queue_is_counted_by_state(struct stage *s)
{
    for (int i = 0; i < 5; i++)
        put(s, "mail");
    (void)take(s, "mail", "w1");
    (void)take_for(s, "mail", "w1", 5 * SECOND); /* expires below */
    expect_code(succeed(s, take(s, "mail", "w1")).code, PAWL_OK);
    expect_code(fail_for_good(s, take(s, "mail", "w1")).code, PAWL_OK);
    pawl_enqueue_row row = row_for("mail");
    row.delay_ms = HOUR;
    (void)put_row(s, &row);
    put(s, "print"); /* of another queue */
    age(s, 10 * SECOND);

    pawl_stats stats = stats_of(s, "mail");
    assert_string_equal(stats.queue, "mail");
    expect_true(!stats.is_paused);
    expect_number(stats.ready, 2);
    expect_number(stats.delayed, 1);
    expect_number(stats.in_flight, 2);
    expect_number(stats.expired, 1);
    expect_number(stats.succeeded, 1);
    expect_number(stats.failed, 1);
    expect_number(stats_of(s, "print").ready, 1);
    pause_queue(s, "mail", true);
    expect_true(stats_of(s, "mail").is_paused);
}

static void expect_oldest(struct stage *s, int64_t ms)
{
    int64_t told_ms = stats_of(s, "mail").oldest_due_ms;
    expect_true(told_ms >= ms && told_ms <= ms + s->kind->slack_ms);
}

static void the_oldest_due_job_is_told(struct stage *s)
{
    pawl_enqueue_row row = row_for("mail");
    row.delay_ms = 10 * SECOND;
    (void)put_row(s, &row);
    expect_number(stats_of(s, "mail").oldest_due_ms, 0); /* none is due */
    age(s, 15 * SECOND);
    expect_oldest(s, 5 * SECOND); /* due for 5 s, though 15 s old */
    put(s, "mail");
    age(s, 5 * SECOND);
    expect_oldest(s, 10 * SECOND);
    const pawl_job *job = take(s, "mail", "w1");
    if (job->due_at.us > job->created_at.us) /* the delayed one, whichever the shard */
        expect_oldest(s, 5 * SECOND);
    (void)take(s, "mail", "w1");
    expect_number(stats_of(s, "mail").oldest_due_ms, 0);
}

/* One that waits for its key is due all the same: who watches must see that a key is stuck. */
static void the_oldest_due_job_may_wait_for_its_key(struct stage *s)
{
    pawl_enqueue_row row = row_for("mail");
    row.ordering_key = "k";
    (void)put_row(s, &row);
    (void)put_row(s, &row);
    (void)take(s, "mail", "w1");
    age(s, 5 * SECOND);
    expect_oldest(s, 5 * SECOND);
    expect_number(stats_of(s, "mail").ready, 1);
}

static void what_is_pruned_is_not_counted(struct stage *s)
{
    (void)put_succeeded(s, "mail");
    put(s, "mail");
    expect_number(stats_of(s, "mail").succeeded, 1);
    age(s, 8 * DAY);
    expect_number(prune(s), 1);
    expect_number(stats_of(s, "mail").succeeded, 0);
    expect_number(stats_of(s, "mail").ready, 1);
}

static void queues_come_by_name_in_pages(struct stage *s)
{
    put(s, "c");
    (void)put_succeeded(s, "a");
    set_lease(s, "d", MINUTE); /* settings only */
    put(s, "b");
    pawl_stats rows[ROWS_MAX];
    size_t count = 0;
    pawl_err err;
    expect_code(pawl_queue_stats(s->store, NULL, rows, 2, &count, &err), PAWL_OK);
    expect_number(count, 2);
    assert_string_equal(rows[0].queue, "a");
    expect_number(rows[0].succeeded, 1);
    assert_string_equal(rows[1].queue, "b");
    expect_code(pawl_queue_stats(s->store, "b", rows, ROWS_MAX, &count, &err), PAWL_OK);
    expect_number(count, 2);
    assert_string_equal(rows[0].queue, "c");
    assert_string_equal(rows[1].queue, "d");
    expect_number(rows[1].ready, 0);
    expect_code(pawl_queue_stats(s->store, "d", rows, ROWS_MAX, &count, &err), PAWL_OK);
    expect_number(count, 0);
}

/* Depths count what is live, of one queue or of all, and nothing of what has ended. */
static void depths_leave_out_what_has_ended(struct stage *s)
{
    (void)put_succeeded(s, "b");
    put(s, "b");
    put(s, "d");
    put(s, "d");
    pawl_enqueue_row row = row_for("d");
    row.delay_ms = HOUR;
    put_row(s, &row);
    (void)take_up_to(s, "d", "w1", 1);
    pawl_stats rows[ROWS_MAX];
    size_t count = 0;
    pawl_err err;
    pawl_depth_args args = {.queue = "d"};
    age(s, 1000);
    expect_code(pawl_queue_depths(s->store, &args, rows, 1, &count, &err), PAWL_OK);
    expect_number(count, 1);
    assert_string_equal(rows[0].queue, "d");
    expect_number(rows[0].ready, 2);
    expect_number(rows[0].delayed, 1);
    expect_number(rows[0].in_flight, 1);
    expect_number(rows[0].expired, 0);
    assert_true(rows[0].oldest_due_ms >= 1000);
    age(s, MINUTE);
    expect_code(pawl_queue_depths(s->store, &args, rows, ROWS_MAX, &count, &err), PAWL_OK);
    expect_number(rows[0].expired, 1);
    args.queue = "unknown";
    expect_code(pawl_queue_depths(s->store, &args, rows, 1, &count, &err), PAWL_OK);
    expect_number(count, 1);
    assert_string_equal(rows[0].queue, "unknown");
    expect_number(rows[0].ready + rows[0].in_flight + rows[0].oldest_due_ms, 0);
    expect_code(pawl_queue_depths(s->store, NULL, rows, 1, &count, &err), PAWL_OK);
    expect_number(count, 1);
    assert_string_equal(rows[0].queue, "b");
    expect_number(rows[0].ready, 1);
    expect_number(rows[0].succeeded, 0); /* there is one, which is not looked at */
    args = (pawl_depth_args){.after = "b"};
    expect_code(pawl_queue_depths(s->store, &args, rows, ROWS_MAX, &count, &err), PAWL_OK);
    expect_number(count, 1);
    assert_string_equal(rows[0].queue, "d");
    args = (pawl_depth_args){.after = "d"};
    expect_code(pawl_queue_depths(s->store, &args, rows, ROWS_MAX, &count, &err), PAWL_OK);
    expect_number(count, 0);
}

static const struct suite_case cases[] = {
    CASE(a_lease_tells_who_holds_what),
    CASE(an_expired_lease_is_told_as_such),
    CASE(leases_are_filtered_and_paged),
    CASE(a_worker_shows_itself_and_goes),
    CASE(a_worker_long_gone_is_forgotten),
    CASE(a_worker_is_told_with_its_leases),
    CASE(workers_come_by_name_in_pages),
    CASE(a_queue_is_counted_by_state),
    CASE(the_oldest_due_job_is_told),
    CASE(what_is_pruned_is_not_counted),
    CASE(the_oldest_due_job_may_wait_for_its_key),
    CASE(queues_come_by_name_in_pages),
    CASE(depths_leave_out_what_has_ended),
};

SUITE_GROUP(view);

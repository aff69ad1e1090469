/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * suite_event.c - what those who deliver say of an endpoint, and events that are replayed.
 * Owns:  the cases about marks, about events that are kept, and about replays.
 * Never: looks behind the verbs.
 */
#include "store/endpoints.h"

#include "pawl/headers.h"

#include <stdio.h>
#include <string.h>

/* ---------------------------------------------------------------- marks */

static pawl_endpoint_marked mark(struct stage *s, bool is_failing, int64_t disable_after_ms)
{
    pawl_endpoint_mark_args args;
    pawl_endpoint_marked marked;
    pawl_err err = {.text = ""};
    pawl_endpoint_mark_init(&args);
    args.name = "crm";
    args.by = "deliverer";
    args.is_failing = is_failing;
    args.disable_after_ms = disable_after_ms;
    args.reason = "failing";
    expect_code(pawl_endpoint_mark(s->store, &args, &marked, &err), PAWL_OK);
    return marked;
}

/* The first who says so counts, whoever that was; a success of anybody ends it. */
static void the_first_failure_counts(struct stage *s)
{
    add_endpoint(s, "crm", "*");
    expect_number(endpoint(s, "crm").failing_since.us, 0);
    pawl_endpoint_marked first = mark(s, true, PAWL_FOREVER);
    expect_true(first.is_enabled);
    expect_near(s, first.failing_since, 0);
    age(s, HOUR);
    s->store = stage_handle(s); /* another process */
    expect_near(s, mark(s, true, PAWL_FOREVER).failing_since, -HOUR);
    expect_near(s, endpoint(s, "crm").failing_since, -HOUR);
    expect_number(mark(s, false, PAWL_FOREVER).failing_since.us, 0);
    expect_number(mark(s, false, PAWL_FOREVER).failing_since.us, 0);
    expect_number(endpoint(s, "crm").failing_since.us, 0);
    expect_near(s, mark(s, true, PAWL_FOREVER).failing_since, 0);
    /* None of it is a change of the endpoint's settings. */
    expect_number(endpoint(s, "crm").revision, 1);
}

/* By the store's clock, from the first failure on; and on record. */
static void failing_for_too_long_disables(struct stage *s)
{
    add_endpoint(s, "crm", "*");
    (void)mark(s, true, HOUR);
    age(s, HOUR - MINUTE);
    expect_true(mark(s, true, HOUR).is_enabled);
    expect_true(endpoint(s, "crm").is_enabled);
    age(s, 2 * MINUTE);
    expect_true(mark(s, true, PAWL_FOREVER).is_enabled); /* only where it is asked for */
    pawl_endpoint_marked last = mark(s, true, HOUR);
    expect_true(!last.is_enabled);
    expect_near(s, last.failing_since, -(HOUR + MINUTE));
    pawl_endpoint row = endpoint(s, "crm");
    expect_true(!row.is_enabled && row.queue_settings.is_paused);
    expect_number(row.revision, 2);
    assert_string_equal(row.switched_by, "deliverer");
    assert_string_equal(row.reason, "failing");
    expect_near(s, row.failing_since, -(HOUR + MINUTE)); /* stays on record */
    expect_true(!mark(s, true, HOUR).is_enabled);        /* once */
    expect_number(endpoint(s, "crm").revision, 2);
    turn_on(s, "crm"); /* as if it had never failed */
    expect_number(endpoint(s, "crm").failing_since.us, 0);
    expect_true(mark(s, true, HOUR).is_enabled);
}

/* A success in between, of whomever: the time begins anew. */
static void a_success_starts_the_time_anew(struct stage *s)
{
    add_endpoint(s, "crm", "*");
    (void)mark(s, true, HOUR);
    age(s, 2 * HOUR);
    (void)mark(s, false, PAWL_FOREVER);
    expect_true(mark(s, true, HOUR).is_enabled);
}

static void marks_that_are_refused(struct stage *s)
{
    pawl_endpoint_mark_args args;
    pawl_endpoint_marked marked;
    pawl_endpoint_mark_init(&args);
    args.name = "crm";
    args.by = "deliverer";
    expect_code(pawl_endpoint_mark(s->store, &args, &marked, NULL), PAWL_GONE);
    add_endpoint(s, "crm", "*");
    args.disable_after_ms = 0;
    expect_code(pawl_endpoint_mark(s->store, &args, &marked, NULL), PAWL_INVALID);
    args.disable_after_ms = 1;
    args.by = "";
    expect_code(pawl_endpoint_mark(s->store, &args, &marked, NULL), PAWL_INVALID);
    args.by = "deliverer";
    args.reason = "bell \a";
    expect_code(pawl_endpoint_mark(s->store, &args, &marked, NULL), PAWL_INVALID);
    expect_number(endpoint(s, "crm").failing_since.us, 0);
}

/* ---------------------------------------------------------------- replays */

static pawl_publish_row event_row(const char *id, const char *type)
{
    pawl_publish_row row;
    pawl_publish_init(&row);
    row.id = id;
    row.type = type;
    row.payload = "{\"a\": \"\0\"}";
    row.payload_len = 10;
    row.ordering_key = "k";
    row.headers = "content-type: application/x-odd\nx-own: 1\n";
    return row;
}

static void publish_id(struct stage *s, const char *id, const char *type)
{
    pawl_publish_row row = event_row(id, type);
    (void)publish_row(s, &row);
}

static pawl_replay_args replay_of(const char *event, const char *as)
{
    pawl_replay_args args;
    pawl_replay_init(&args);
    args.name = "crm";
    args.event = event;
    args.as = as;
    return args;
}

static pawl_replayed replay(struct stage *s, const pawl_replay_args *args)
{
    pawl_replayed done = {.events = -1};
    pawl_err err = {.text = ""};
    if (pawl_endpoint_replay(s->store, args, &done, &err) != PAWL_OK)
        complain(HERE, "replay: %s", err.text);
    return done;
}

/* What a delivery is made of. */
struct seen {
    char payload[64];
    size_t payload_len;
    char id[PAWL_EVENT_ID_MAX + 1];
    char type[PAWL_ENDPOINT_TOPIC_MAX + 1];
    char time[32];
    char content_type[64];
    char ordering_key[PAWL_ORDERING_KEY_MAX + 1];
};

static void copy_header(const char *headers, const char *name, char *to, size_t to_size)
{
    size_t len = 0;
    const char *value = pawl_headers_find(headers, name, &len);
    assert_true(len < to_size);
    if (len > 0)
        memcpy(to, value, len);
}

/* Take the next job of the endpoint, and settle it. */
static struct seen deliver(struct stage *s)
{
    struct seen seen = {.payload_len = 0};
    const pawl_job *job = take(s, "webhook/crm", "w1");
    assert_true(job->payload_len < sizeof(seen.payload));
    memcpy(seen.payload, job->payload, job->payload_len);
    seen.payload_len = job->payload_len;
    copy_header(job->headers, "pawl-event-id", seen.id, sizeof(seen.id));
    copy_header(job->headers, "pawl-event-type", seen.type, sizeof(seen.type));
    copy_header(job->headers, "pawl-event-time", seen.time, sizeof(seen.time));
    copy_header(job->headers, "content-type", seen.content_type, sizeof(seen.content_type));
    memcpy(seen.ordering_key, job->ordering_key, sizeof(seen.ordering_key));
    pawl_settle_row row = settle_row_for(job, PAWL_SUCCEED);
    expect_code(settle_row(s, "w1", &row).code, PAWL_OK);
    return seen;
}

/* A delivered event comes again: the same id, type, time, headers and payload, byte for byte. */
static void an_event_is_replayed_as_it_was(struct stage *s)
{
    add_ordered(s, "crm", "order.*");
    pawl_publish_row row = event_row("evt_1", "order.created");
    row.time.us = 1580608922123456;
    (void)publish_row(s, &row);
    struct seen first = deliver(s);
    expect_nothing(s, "webhook/crm");
    pawl_replay_args args = replay_of("evt_1", "again");
    pawl_replayed done = replay(s, &args);
    expect_number(done.events, 1);
    expect_number(done.jobs, 1);
    expect_true(!done.is_more);
    struct seen second = deliver(s);
    assert_memory_equal(&first, &second, sizeof(first));
    assert_string_equal(second.id, "evt_1");
    assert_string_equal(second.time, "1580608922123456");
    assert_string_equal(second.content_type, "application/x-odd");
    assert_string_equal(second.ordering_key, "k");
    expect_number(second.payload_len, 10);
    expect_nothing(s, "webhook/crm");
}

/* The time of an event of which none was said is when it was published, not when it is replayed. */
static void a_replay_has_the_time_of_the_publish(struct stage *s)
{
    add_endpoint(s, "crm", "*");
    publish_id(s, "evt_1", "a");
    int64_t created_us = take(s, "webhook/crm", "w1")->created_at.us;
    pawl_replay_args args = replay_of("evt_1", "again");
    expect_number(replay(s, &args).jobs, 1);
    char text[32];
    (void)snprintf(text, sizeof(text), "%lld", (long long)created_us);
    assert_string_equal(deliver(s).time, text);
}

/* Once for each name, however often it is said, also after it was delivered. */
static void a_replay_is_idempotent_by_its_name(struct stage *s)
{
    add_endpoint(s, "crm", "*");
    publish_id(s, "evt_1", "a");
    (void)deliver(s);
    pawl_replay_args args = replay_of("evt_1", "r1");
    expect_number(replay(s, &args).jobs, 1);
    expect_number(replay(s, &args).jobs, 0);
    (void)deliver(s);
    expect_number(replay(s, &args).jobs, 0);
    args.as = "r2";
    expect_number(replay(s, &args).jobs, 1);
    (void)deliver(s);
    args.as = NULL; /* it has come before */
    expect_number(replay(s, &args).events, 1);
    expect_number(replay(s, &args).jobs, 0);
    expect_nothing(s, "webhook/crm");
}

/* What was published while the endpoint was disabled, or before it was there, comes by a replay,
 * and by a repeat of the publish nothing twice. */
static void what_was_missed_comes_by_a_replay(struct stage *s)
{
    publish_id(s, "evt_1", "a");
    add_endpoint(s, "crm", "a");
    turn_off(s, "crm");
    publish_id(s, "evt_2", "a");
    publish_id(s, "evt_3", "other");
    turn_on(s, "crm");
    publish_id(s, "evt_4", "a");
    pawl_replay_args args = replay_of(NULL, NULL);
    pawl_replayed done = replay(s, &args);
    expect_number(done.events, 3); /* not what it does not want */
    expect_number(done.jobs, 2);   /* and not what it has */
    publish_id(s, "evt_2", "a");
    args.event = "evt_3"; /* by its id it comes all the same */
    expect_number(replay(s, &args).jobs, 1);
    expect_number(replay(s, &args).jobs, 0);
    static const char *const ids[] = {"evt_4", "evt_1", "evt_2", "evt_3"};
    for (size_t i = 0; i < COUNT_OF(ids); i++)
        assert_string_equal(deliver(s).id, ids[i]);
    expect_nothing(s, "webhook/crm");
}

/* In batches, in the order of the publishing, and each event once. */
static void a_range_comes_in_batches(struct stage *s)
{
    static const char *const ids[] = {"e0", "e1", "e2", "e3", "e4"};
    add_ordered(s, "crm", "*");
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        publish_id(s, ids[i], "a");
        (void)deliver(s);
        age(s, MINUTE);
    }
    pawl_wall now;
    expect_code(pawl_now(s->store, &now, NULL), PAWL_OK);
    pawl_replay_args args = replay_of(NULL, "r");
    args.since.us = now.us - (4 * MINUTE + MINUTE / 2) * 1000; /* not the first */
    args.until.us = now.us - (MINUTE + MINUTE / 2) * 1000;     /* not the last */
    args.events_max = 2;
    pawl_replayed done = replay(s, &args);
    expect_number(done.events, 2);
    expect_true(done.is_more);
    expect_number(replay(s, &args).jobs, 0); /* the same again */
    args.after = done.next;
    done = replay(s, &args);
    expect_number(done.events, 1);
    expect_number(done.jobs, 1);
    expect_true(!done.is_more);
    for (size_t i = 1; i <= 3; i++)
        assert_string_equal(deliver(s).id, ids[i]);
    expect_nothing(s, "webhook/crm");
}

/* Events go when they need not be kept any more; what was made of them stays. */
static void events_are_kept_as_long_as_was_said(struct stage *s)
{
    size_t pruned = 0;
    add_endpoint(s, "crm", "*");
    pawl_publish_row row = event_row("short", "a");
    row.keep_ms = MINUTE;
    (void)publish_row(s, &row);
    row.id = "never";
    row.keep_ms = 0;
    (void)publish_row(s, &row);
    publish_id(s, "usual", "a");
    publish_id(s, "usual", "a"); /* the first one stays */
    pawl_replay_args args = replay_of("never", "r");
    pawl_replayed done;
    expect_code(pawl_endpoint_replay(s->store, &args, &done, NULL), PAWL_GONE);
    age(s, 2 * MINUTE);
    expect_code(pawl_prune(s->store, 100, &pruned, NULL), PAWL_OK);
    expect_number(pruned, 1);
    args.event = "short";
    expect_code(pawl_endpoint_replay(s->store, &args, &done, NULL), PAWL_GONE);
    args.event = "usual";
    expect_number(replay(s, &args).jobs, 1);
    age(s, PAWL_EVENT_KEEP_MS);
    expect_code(pawl_prune(s->store, 100, &pruned, NULL), PAWL_OK);
    expect_number(pruned, 1);
    expect_code(pawl_endpoint_replay(s->store, &args, &done, NULL), PAWL_GONE);
    for (size_t i = 0; i < 4; i++)
        (void)deliver(s);
    expect_nothing(s, "webhook/crm");
}

static void replays_that_are_refused(struct stage *s)
{
    pawl_replayed done = {.events = 77};
    pawl_replay_args args = replay_of(NULL, "r");
    expect_code(pawl_endpoint_replay(s->store, &args, &done, NULL), PAWL_GONE);
    add_endpoint(s, "crm", "*");
    args.events_max = 0;
    expect_code(pawl_endpoint_replay(s->store, &args, &done, NULL), PAWL_INVALID);
    args.events_max = PAWL_BATCH_MAX + 1;
    expect_code(pawl_endpoint_replay(s->store, &args, &done, NULL), PAWL_INVALID);
    args = replay_of("no.id", "r");
    expect_code(pawl_endpoint_replay(s->store, &args, &done, NULL), PAWL_INVALID);
    args = replay_of(NULL, "no name");
    expect_code(pawl_endpoint_replay(s->store, &args, &done, NULL), PAWL_INVALID);
    args = replay_of(NULL, "r");
    args.since.us = -1;
    expect_code(pawl_endpoint_replay(s->store, &args, &done, NULL), PAWL_INVALID);
    pawl_publish_row row = event_row("e", "a");
    row.keep_ms = -1;
    pawl_published published;
    expect_code(pawl_publish(s->store, &row, 1, &published, NULL), PAWL_INVALID);
    expect_number(done.events, 77);
}

static const struct suite_case cases[] = {
    CASE_ON(ENDPOINTS, the_first_failure_counts),
    CASE_ON(ENDPOINTS, failing_for_too_long_disables),
    CASE_ON(ENDPOINTS, a_success_starts_the_time_anew),
    CASE_ON(ENDPOINTS, marks_that_are_refused),
    CASE_ON(ENDPOINTS, an_event_is_replayed_as_it_was),
    CASE_ON(ENDPOINTS, a_replay_has_the_time_of_the_publish),
    CASE_ON(ENDPOINTS, a_replay_is_idempotent_by_its_name),
    CASE_ON(ENDPOINTS | ONE_SHARD, what_was_missed_comes_by_a_replay),
    CASE_ON(ENDPOINTS, a_range_comes_in_batches),
    CASE_ON(ENDPOINTS, events_are_kept_as_long_as_was_said),
    CASE_ON(ENDPOINTS, replays_that_are_refused),
};
SUITE_GROUP(event);

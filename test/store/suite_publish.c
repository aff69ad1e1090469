/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * suite_publish.c - events, and the jobs that they become.
 * Owns:  the cases about publishing: who gets what, once, in order, all or nothing.
 * Never: lists every pattern: core/topic.c has its own test, and topics_match_alike() its table.
 */
#include "core/event.h"
#include "core/topic.h"
#include "pawl/headers.h"
#include "store/endpoints.h"
#include "store/topic_cases.h"

#include <stdio.h>
#include <string.h>

static pawl_publish_row event_of(const char *type, const char *id)
{
    pawl_publish_row row;
    pawl_publish_init(&row);
    row.type = type;
    row.id = id;
    row.payload = "{\"n\":1}";
    row.payload_len = 7;
    return row;
}

static struct pawli_event_info event_behind(const pawl_job *job)
{
    struct pawli_event_info info;
    pawl_err err;
    if (pawli_event_read(job, &info, &err) != PAWL_OK)
        complain(HERE, "%s", err.text);
    return info;
}

static void an_event_goes_to_all_who_want_it(struct stage *s)
{
    add_endpoint(s, "all", "*");
    add_endpoint(s, "orders", "order.*");
    add_endpoint(s, "created", "invoice.paid,order.created");
    add_endpoint(s, "other", "invoice.*");
    add_endpoint(s, "off", "*");
    turn_off(s, "off");
    pawl_published result = publish_type(s, "order.created");
    expect_code(result.code, PAWL_OK);
    expect_number(result.endpoints, 3);
    expect_number(result.jobs, 3);
    expect_number(strlen(result.id), 36);
    static const char *const queues[] = {"webhook/all", "webhook/orders", "webhook/created"};
    for (size_t i = 0; i < COUNT_OF(queues); i++) {
        const pawl_job *job = take(s, queues[i], "w");
        assert_string_equal(event_behind(job).id, result.id); /* the same for everybody */
        assert_memory_equal(job->payload, "{}", 2);
        expect_number(job->lease_ms, 120 * SECOND);
        expect_number(job->max_retries, 20);
    }
    expect_nothing(s, "webhook/other");
    expect_nothing(s, "webhook/off");
    expect_number(list(s, NULL).count, 3);
}

static void an_event_that_nobody_wants_is_published(struct stage *s)
{
    add_endpoint(s, "orders", "order.*");
    pawl_publish_row row = event_of("invoice.paid", "evt_1");
    pawl_published result = publish_row(s, &row);
    expect_code(result.code, PAWL_OK);
    expect_number(result.endpoints, 0);
    expect_number(result.jobs, 0);
    assert_string_equal(result.id, "evt_1");
    expect_number(list(s, NULL).count, 0);
}

/* What those who deliver must know stands in the headers, not in the payload. */
static void an_event_is_told_in_headers(struct stage *s)
{
    add_ordered(s, "crm", "order.*");
    pawl_publish_row row = event_of("order.created", "evt_1");
    row.ordering_key = "customer 17 \xc3\xa4";
    row.headers = "content-type: text/plain\ntraceparent: "
                  "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\nx-own: 1\n";
    row.time.us = 1600000000123456;
    expect_number(publish_row(s, &row).jobs, 1);
    const pawl_job *job = take(s, "webhook/crm", "w");
    struct pawli_event_info info = event_behind(job);
    assert_string_equal(info.id, "evt_1");
    assert_string_equal(info.type, "order.created");
    assert_string_equal(info.key, row.ordering_key);
    assert_string_equal(info.content_type, "text/plain");
    assert_string_equal(info.traceparent,
                        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    expect_number(info.time.us, 1600000000123456);
    size_t len = 0;
    const char *own = pawl_headers_find(job->headers, "x-own", &len);
    expect_true(own != NULL && len == 1 && own[0] == '1');
    assert_string_equal(job->ordering_key, row.ordering_key);
    expect_number(job->payload_len, 7);
    assert_memory_equal(job->payload, "{\"n\":1}", 7);

    /* And stays, on every way. */
    expect_code(retry_in(s, job, 0).code, PAWL_OK);
    const pawl_job *again = take(s, "webhook/crm", "w");
    assert_string_equal(again->headers, job->headers);

    /* Without a time of its own it is that of the publish. */
    expect_code(succeed(s, again).code, PAWL_OK);
    (void)publish_type(s, "order.created");
    expect_near(s, event_behind(take(s, "webhook/crm", "w")).time, 0);
}

/* The same bytes, whatever they are, and none. */
static void payloads_are_not_looked_into(struct stage *s)
{
    static const char bytes[] = "\0\xff\n'\\\x01";
    add_endpoint(s, "a", "x");
    add_endpoint(s, "b", "x");
    pawl_publish_row rows[2] = {event_of("x", "evt_1"), event_of("x", "evt_2")};
    pawl_published results[2];
    rows[0].payload = bytes;
    rows[0].payload_len = sizeof(bytes);
    rows[1].payload = NULL;
    rows[1].payload_len = 0;
    expect_code(pawl_publish(s->store, rows, 2, results, NULL), PAWL_OK);
    for (int i = 0; i < 2; i++) {
        struct batch jobs = take_up_to(s, i == 0 ? "webhook/a" : "webhook/b", "w", 9);
        expect_number(jobs.count, 2);
        for (size_t j = 0; j < 2; j++) {
            bool is_first = strcmp(event_behind(jobs.jobs[j]).id, "evt_1") == 0;
            expect_number(jobs.jobs[j]->payload_len, is_first ? sizeof(bytes) : 0);
            if (is_first)
                assert_memory_equal(jobs.jobs[j]->payload, bytes, sizeof(bytes));
        }
    }
}

/* Nothing is made twice: not of what waits, is under way, was delivered, or has failed. */
static void a_repeated_event_makes_nothing_twice(struct stage *s)
{
    add_endpoint(s, "a", "x");
    add_endpoint(s, "b", "x");
    pawl_publish_row row = event_of("x", "evt_1");
    expect_number(publish_row(s, &row).jobs, 2);
    pawl_published again = publish_row(s, &row);
    expect_code(again.code, PAWL_EXISTS);
    expect_number(again.endpoints, 2);
    expect_number(again.jobs, 0);
    assert_string_equal(again.id, "evt_1");
    const pawl_job *job = take(s, "webhook/a", "w");
    expect_code(publish_row(s, &row).code, PAWL_EXISTS);
    expect_code(succeed(s, job).code, PAWL_OK);
    const pawl_job *other = take(s, "webhook/b", "w");
    expect_code(fail_for_good(s, other).code, PAWL_OK);
    expect_code(publish_row(s, &row).code, PAWL_EXISTS);
    expect_nothing(s, "webhook/a");
    expect_nothing(s, "webhook/b");

    /* Another id is another event, and one in one call counts, too. */
    pawl_publish_row rows[3] = {event_of("x", "evt_2"), event_of("x", "evt_2"),
                                event_of("x", "evt-2")};
    pawl_published results[3];
    expect_code(pawl_publish(s->store, rows, 3, results, NULL), PAWL_OK);
    expect_code(results[0].code, PAWL_OK);
    expect_code(results[1].code, PAWL_EXISTS);
    expect_code(results[2].code, PAWL_OK);
    expect_number(take_up_to(s, "webhook/a", "w", 9).count, 2);
}

/* With an ordering key as well. */
static void a_repeated_ordered_event_makes_nothing_twice(struct stage *s)
{
    add_ordered(s, "a", "x");
    add_endpoint(s, "b", "x");
    pawl_publish_row row = event_of("x", "evt_1");
    row.ordering_key = "k";
    expect_number(publish_row(s, &row).jobs, 2);
    expect_code(publish_row(s, &row).code, PAWL_EXISTS);
    expect_code(succeed(s, take(s, "webhook/a", "w")).code, PAWL_OK);
    expect_code(publish_row(s, &row).code, PAWL_EXISTS);
    expect_nothing(s, "webhook/a");
    const pawl_job *job = take(s, "webhook/b", "w");
    assert_string_equal(job->ordering_key, ""); /* who keeps no order is not held up */
    assert_string_equal(event_behind(job).key, "k");
}

/* Of one that comes later, only what is missing is made. */
static void a_repeat_makes_what_is_missing(struct stage *s)
{
    add_endpoint(s, "a", "x");
    pawl_publish_row row = event_of("x", "evt_1");
    expect_number(publish_row(s, &row).jobs, 1);
    add_endpoint(s, "b", "x");
    pawl_published again = publish_row(s, &row);
    expect_code(again.code, PAWL_OK);
    expect_number(again.endpoints, 2);
    expect_number(again.jobs, 1);
    expect_number(take_up_to(s, "webhook/a", "w", 9).count, 1);
    expect_number(take_up_to(s, "webhook/b", "w", 9).count, 1);
}

static void events_without_an_id_are_all_others(struct stage *s)
{
    add_endpoint(s, "a", "x");
    pawl_published first = publish_type(s, "x");
    pawl_published second = publish_type(s, "x");
    expect_true(strcmp(first.id, second.id) != 0);
    expect_number(take_up_to(s, "webhook/a", "w", 9).count, 2);
}

/* Events of one key are delivered one at a time, in the order of publishing. */
static void ordered_endpoints_keep_the_order_of_a_key(struct stage *s)
{
    add_ordered(s, "a", "x");
    add_endpoint(s, "b", "x");
    static const char *const ids[] = {"evt_1", "evt_2", "evt_3"};
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        pawl_publish_row row = event_of("x", ids[i]);
        row.ordering_key = "k";
        expect_number(publish_row(s, &row).jobs, 2);
    }
    expect_number(take_up_to(s, "webhook/b", "w", 9).count, 3);
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        struct batch jobs = take_up_to(s, "webhook/a", "w", 9);
        expect_number(jobs.count, 1);
        assert_string_equal(event_behind(jobs.jobs[0]).id, ids[i]);
        /* A retry holds the others up. */
        if (i == 0) {
            expect_code(retry_in(s, jobs.jobs[0], MINUTE).code, PAWL_OK);
            expect_nothing(s, "webhook/a");
            age(s, MINUTE);
            jobs.jobs[0] = take(s, "webhook/a", "w");
            assert_string_equal(event_behind(jobs.jobs[0]).id, ids[0]);
        }
        expect_code(succeed(s, jobs.jobs[0]).code, PAWL_OK);
    }
}

static void events_of_one_call_keep_their_order(struct stage *s)
{
    add_endpoint(s, "a", "x.*");
    pawl_publish_row rows[4] = {event_of("x.1", NULL), event_of("x.2", NULL), event_of("y", NULL),
                                event_of("x.3", NULL)};
    pawl_published results[4];
    expect_code(pawl_publish(s->store, rows, 4, results, NULL), PAWL_OK);
    expect_number(results[2].endpoints, 0);
    struct batch jobs = take_up_to(s, "webhook/a", "w", 9);
    expect_number(jobs.count, 3);
    assert_string_equal(event_behind(jobs.jobs[0]).type, "x.1");
    assert_string_equal(event_behind(jobs.jobs[1]).type, "x.2");
    assert_string_equal(event_behind(jobs.jobs[2]).type, "x.3");
    assert_string_equal(event_behind(jobs.jobs[2]).id, results[3].id);
}

/* A hanging endpoint cannot fill others' slots: each has its own bound. */
/* Each event by its own type, whatever stands beside it; one that is there twice counts once. */
static void events_of_one_call_differ(struct stage *s)
{
    static const char *const types[] = {"a.b", "a.b", "c", "a.b", "none", "a.b"};
    static const char *const ids[] = {"1", "2", "3", "4", "5", "2"};
    static const int64_t endpoints[] = {2, 2, 1, 2, 0, 2};
    static const int64_t jobs[] = {2, 2, 1, 2, 0, 0};
    pawl_publish_row rows[COUNT_OF(types)];
    pawl_published results[COUNT_OF(types)];
    add_endpoint(s, "plain", "a.*,c");
    add_ordered(s, "ordered", "a.b");
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        rows[i] = event_of(types[i], ids[i]);
        rows[i].ordering_key = i % 2 == 0 ? "even" : "odd";
    }
    expect_code(pawl_publish(s->store, rows, COUNT_OF(rows), results, NULL), PAWL_OK);
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        assert_string_equal(results[i].id, ids[i]);
        expect_number(results[i].endpoints, endpoints[i]);
        expect_number(results[i].jobs, jobs[i]);
    }
    expect_number(list(s, NULL).count, 7);
    for (size_t i = 0; i < 2; i++) { /* the first of each key; the second of "odd" waits */
        const pawl_job *job = take(s, "webhook/ordered", "w");
        bool is_even = strcmp(job->ordering_key, "even") == 0;
        assert_string_equal(event_behind(job).id, is_even ? "1" : "2");
    }
    expect_nothing(s, "webhook/ordered");
}

static void endpoints_have_bounds_of_their_own(struct stage *s)
{
    pawl_endpoint_settings settings = endpoint_settings("x");
    settings.max_in_flight = 2;
    expect_code(try_add(s, "slow", &settings, SECRET_1, NULL), PAWL_OK);
    add_endpoint(s, "fast", "x");
    for (int i = 0; i < 5; i++)
        expect_number(publish_type(s, "x").jobs, 2);
    pawl_claim_line lines[] = {{"webhook/slow", 100, PAWL_DEFAULT},
                               {"webhook/fast", 100, PAWL_DEFAULT}};
    pawl_claim_args args = {.worker = "w", .lines = lines, .lines_count = 2, PAWL_DEFAULT};
    expect_number(claim(s, &args, 100).count, 2 + 5);
}

static void bad_events_are_refused(struct stage *s)
{
    add_endpoint(s, "a", "*");
    const struct {
        pawl_publish_row row;
        const char *named;
    } bad[] = {
        {{.type = NULL}, "event_type"},
        {{.type = ""}, "event_type"},
        {{.type = "a..b"}, "event_type"},
        {{.type = "a.*"}, "event_type"},
        {{.type = "x", .id = ""}, "id"},
        {{.type = "x", .id = "a.b"}, "id"},
        {{.type = "x", .id = "a b"}, "id"},
        {{.type = "x", .payload_len = 3}, "payload"},
        {{.type = "x", .ordering_key = "a\nb"}, "ordering_key"},
        {{.type = "x", .headers = "swordfish"}, "header 1"},
        {{.type = "x", .headers = "pawl-event-id: swordfish\n"}, "pawl-event-id"},
        {{.type = "x", .headers = "Pawl-X: swordfish\n"}, "Pawl-X"},
        {{.type = "x", .time = {-1}}, "time"},
        {{.type = "x", .time = {INT64_C(253402300799000001)}}, "time"}, /* not to be printed */
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        pawl_publish_row rows[2] = {event_of("x", NULL), bad[i].row};
        pawl_published results[2];
        pawl_err err = {.code = PAWL_OK};
        expect_code(pawl_publish(s->store, rows, 2, results, &err), PAWL_INVALID);
        if (strstr(err.text, "row 1: ") == NULL || strstr(err.text, bad[i].named) == NULL ||
            strstr(err.text, "swordfish") != NULL)
            complain(HERE, "\"%s\" does not name row 1 and %s, or quotes", err.text, bad[i].named);
    }
    expect_number(list(s, NULL).count, 0);
}

/* What tells of the event counts among the headers. */
static void headers_leave_room_for_the_events(struct stage *s)
{
    char headers[64 * 16] = "";
    char *at = headers;
    add_endpoint(s, "a", "*");
    for (int i = 0; i < PAWL_HEADERS_MAX - 2; i++)
        at += snprintf(at, sizeof(headers) - (size_t)(at - headers), "x-%d: v\n", i);
    pawl_publish_row row = event_of("x", NULL);
    pawl_published result;
    pawl_err err;
    row.headers = headers;
    expect_code(pawl_publish(s->store, &row, 1, &result, &err), PAWL_OK);
    row.ordering_key = "k";
    expect_code(pawl_publish(s->store, &row, 1, &result, &err), PAWL_INVALID);
    expect_true(strstr(err.text, "64") != NULL);
}

/* All or nothing: the event before the one that is too wide is not there either. */
static void too_many_jobs_are_refused_as_a_whole(struct stage *s)
{
    enum {
        WIDE = 26,
        EVENTS = 400
    };
    char name[8];
    for (int i = 0; i < WIDE; i++) {
        (void)snprintf(name, sizeof(name), "e%d", i);
        add_endpoint(s, name, "x");
    }
    pawl_publish_row *rows = stage_memory(s, EVENTS * sizeof(*rows));
    pawl_published *results = stage_memory(s, EVENTS * sizeof(*results));
    for (int i = 0; i < EVENTS; i++)
        rows[i] = event_of("x", NULL);
    pawl_err err;
    expect_code(pawl_publish(s->store, rows, EVENTS, results, &err), PAWL_FULL);
    expect_true(strstr(err.text, "10000") != NULL);
    expect_number(stats_of(s, "webhook/e0").ready, 0);
    expect_code(pawl_publish(s->store, rows, 3, results, &err), PAWL_OK);
    expect_number(stats_of(s, "webhook/e25").ready, 3);
}

/* The same table as the unit test of topics, and as the pgTAP test of the SQL. */
static void topics_match_alike(struct stage *s)
{
    for (size_t i = 0; i < COUNT_OF(topic_cases); i++) {
        pawl_endpoint_settings settings = endpoint_settings(topic_cases[i].list);
        pawl_code code = i == 0 ? try_add(s, "crm", &settings, SECRET_1, NULL)
                                : pawl_endpoint_set(s->store, "crm", &settings, NULL);
        expect_code(code, PAWL_OK);
        expect_number(pawli_topics_match(topic_cases[i].list, topic_cases[i].type),
                      topic_cases[i].is_match);
        if (publish_type(s, topic_cases[i].type).endpoints != topic_cases[i].is_match)
            complain(HERE, "%s and %s", topic_cases[i].list, topic_cases[i].type);
    }
}

/* Q-DURABLE */
static void events_survive_a_restart(struct stage *s)
{
    add_endpoint(s, "a", "x");
    pawl_publish_row row = event_of("x", "evt_1");
    expect_number(publish_row(s, &row).jobs, 1);
    stage_reopen(s);
    expect_code(publish_row(s, &row).code, PAWL_EXISTS);
    assert_string_equal(event_behind(take(s, "webhook/a", "w")).id, "evt_1");
}

static const struct suite_case cases[] = {
    CASE_ON(ENDPOINTS, an_event_goes_to_all_who_want_it),
    CASE_ON(ENDPOINTS, an_event_that_nobody_wants_is_published),
    CASE_ON(ENDPOINTS, an_event_is_told_in_headers),
    CASE_ON(ENDPOINTS, payloads_are_not_looked_into),
    CASE_ON(ENDPOINTS, a_repeated_event_makes_nothing_twice),
    CASE_ON(ENDPOINTS, a_repeated_ordered_event_makes_nothing_twice),
    CASE_ON(ENDPOINTS, a_repeat_makes_what_is_missing),
    CASE_ON(ENDPOINTS, events_without_an_id_are_all_others),
    CASE_ON(ENDPOINTS, ordered_endpoints_keep_the_order_of_a_key),
    CASE_ON(ENDPOINTS | ONE_SHARD, events_of_one_call_keep_their_order),
    CASE_ON(ENDPOINTS, events_of_one_call_differ),
    CASE_ON(ENDPOINTS | ONE_SHARD, endpoints_have_bounds_of_their_own),
    CASE_ON(ENDPOINTS, bad_events_are_refused),
    CASE_ON(ENDPOINTS, headers_leave_room_for_the_events),
    CASE_ON(ENDPOINTS | ONE_SHARD, too_many_jobs_are_refused_as_a_whole),
    CASE_ON(ENDPOINTS, topics_match_alike),
    CASE_ON(ENDPOINTS | DURABLE, events_survive_a_restart),
};
SUITE_GROUP(publish);

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * serve_call_alloc_test.c - every allocation in every kind of request fails once: each time there
 * is an answer, one that says that nothing was done is true, and the same request works afterwards.
 * What leaks shows to the sanitizer's build.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "pawl/metrics.h"
#include "serve/endpoint.h"
#include "serve/stream.h"
#include "support/alloc_fail.h"
#include "support/serve_desk.h"

#include <stdio.h>
#include <string.h>

#define NTH_MAX 500

static const char endpoint[] =
    "{\"url\":\"https://a.example/\",\"topics\":\"*\",\"headers\":{\"x\":\"y\"}}";

static const struct request {
    const char *method;
    const char *target;
    const char *body;
    const char *key; /* Idempotency-Key; NULL: none */
    unsigned status;
} requests[] = {
    {"POST", "/v1/queues/q/jobs", "x", NULL, 201},
    {"POST", "/v1/queues/q/jobs", "x", "key", 201},
    {"POST", "/v1/jobs",
     "{\"jobs\":[{\"queue\":\"q\",\"headers\":{\"a\":\"b\"}},{\"queue\":\"q\"}]}", NULL, 200},
    {"POST", "/v1/jobs", "{\"jobs\":[{\"queue\":\"q\"}]}", "key", 200},
    {"POST", "/v1/jobs/stream", "{\"queue\":\"q\"}\n{\"queue\":\"q\",\"payload\":1}\n", NULL, 200},
    {"POST", "/v1/events/a.b", "x", NULL, 201},
    {"POST", "/v1/events", "{\"events\":[{\"type\":\"a\",\"headers\":{\"a\":\"b\"}}]}", "key", 200},
    {"POST", "/v1/claim", "{\"worker\":\"v\",\"queues\":[{\"queue\":\"r\"}]}", NULL, 200},
    {"POST", "/v1/mine", "{\"worker\":\"w\"}", NULL, 200},
    {"GET", "/v1/jobs", "", NULL, 200},
    {"GET", "/v1/leases", "", NULL, 200},
    {"GET", "/v1/workers", "", NULL, 200},
    {"GET", "/v1/queues", "", NULL, 200},
    {"GET", "/v1/queues/q", "", NULL, 200},
    {"PUT", "/v1/queues/q", "{}", NULL, 200},
    {"GET", "/v1/queues/q/stats", "", NULL, 200},
    {"POST", "/v1/queues/q/pause", "", NULL, 200},
    {"POST", "/v1/cancel", "{\"filter\":{\"queue\":\"none\"}}", NULL, 200},
    {"GET", "/v1/changes", "", NULL, 200},
    {"GET", "/v1/endpoints", "", NULL, 200},
    {"GET", "/v1/endpoints/crm", "", NULL, 200},
    {"POST", "/v1/endpoints/new", endpoint, NULL, 201},
    {"PATCH", "/v1/endpoints/crm", endpoint, NULL, 200},
    {"POST", "/v1/endpoints/crm/disable", "{}", NULL, 200},
    {"POST", "/v1/endpoints/crm/test", "", NULL, 200},
    {"DELETE", "/v1/endpoints/crm", "", NULL, 200},
    {"POST", "/v1/workleases/d/acquire", "{\"offset\":1,\"owner\":\"a\"}", NULL, 200},
    {"GET", "/v1/workleases", "", NULL, 200},
    {"GET", "/livez", "", NULL, 200},
};

static pawl_code check_settings(void *user, pawl_endpoint_settings *settings,
                                struct pawli_endpoint_room *room, pawl_err *err)
{
    (void)user;
    (void)settings;
    (void)room;
    (void)err;
    return PAWL_OK;
}

static pawl_code make_secret(void *user, struct pawli_made_secret *made, pawl_err *err)
{
    (void)user;
    (void)err;
    (void)snprintf(made->secret, sizeof(made->secret), "%s",
                   "whsec_MDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAw");
    return PAWL_OK;
}

static pawl_code test_endpoint(void *user, pawl_store *store, const char *name,
                               struct pawli_tested *ret_tested, pawl_err *err)
{
    (void)user;
    (void)store;
    (void)name;
    (void)err;
    *ret_tested = (struct pawli_tested){.is_delivered = true};
    return PAWL_OK;
}

static const struct pawli_webhooks webhooks = {check_settings, make_secret, test_endpoint, NULL};

static unsigned ask(struct serve_desk *desk, const struct request *request)
{
    const struct pawli_pair headers[] = {
        {request->key != NULL ? "Idempotency-Key" : "X", request->key != NULL ? request->key : "y"},
        {NULL, NULL}};
    return serve_desk_ask(desk, request->method, request->target, headers, request->body,
                          strlen(request->body));
}

static int64_t count_jobs(struct serve_desk *desk)
{
    static const char *const queues[] = {"q", "webhook/crm"};
    int64_t jobs = 0;
    for (size_t i = 0; i < 2; i++) {
        const pawl_depth_args args = {.queue = queues[i]};
        pawl_stats row;
        size_t count = 0;
        assert_int_equal(pawl_queue_depths(desk->store, &args, &row, 1, &count, NULL), PAWL_OK);
        jobs += row.ready;
    }
    return jobs;
}

static bool one_fails(const struct request *request, uint64_t nth)
{
    static const struct request before[] = {
        {"POST", "/v1/queues/r/jobs", "x", NULL, 201},
        {"POST", "/v1/endpoints/crm", endpoint, NULL, 201},
    };
    struct serve_desk desk;
    assert_true(serve_desk_init(&desk));
    desk.host.webhooks = &webhooks;
    desk.host.stream = pawli_stream_new(1);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(ask(&desk, &before[i]), before[i].status);
    int64_t jobs = count_jobs(&desk);
    alloc_fail_nth(nth);
    unsigned status = ask(&desk, request);
    bool has_failed = alloc_fail_end();
    if (!has_failed && status != request->status)
        fail_msg("%s %s: %u: %s", request->method, request->target, status, serve_desk_text(&desk));
    if (status != request->status && status != 503 && status != 504)
        fail_msg("%s %s: %u at %llu", request->method, request->target, status,
                 (unsigned long long)nth);
    if (status == 503 && count_jobs(&desk) != jobs) /* nothing was done */
        fail_msg("%s %s: done all the same, at %llu: %s", request->method, request->target,
                 (unsigned long long)nth, serve_desk_text(&desk));
    if (status == 503)
        assert_int_equal(ask(&desk, request), request->status);
    if (request->key != NULL) { /* whatever it was told, it is done once */
        assert_int_equal(ask(&desk, request), request->status);
        assert_int_equal(count_jobs(&desk), jobs + 1);
    }
    pawli_stream_free(desk.host.stream);
    serve_desk_clear(&desk);
    return has_failed;
}

static void every_allocation_fails_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        uint64_t nth = 1;
        while (one_fails(&requests[i], nth) && nth < NTH_MAX)
            nth++;
        assert_true(nth < NTH_MAX);
        assert_true(nth > 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_fails_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

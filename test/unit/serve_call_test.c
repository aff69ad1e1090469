/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * serve_call_test.c - proves what requests are answered with, route by route, without a server.
 * Owns:  the fixed corpus on which every compiler runs the fuzz target of requests.
 * Never: waits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fuzz/serve_fuzz.h"
#include "serve/claim.h"
#include "serve/endpoint.h"
#include "serve/enqueue.h"
#include "support/serve_desk.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct serve_desk desk;

static int begin(void **state)
{
    (void)state;
    return serve_desk_init(&desk) ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    serve_desk_clear(&desk);
    return 0;
}

/* Ask, and expect a status. Gives the answer as JSON, which the caller frees; NULL: it is none. */
static json_t *ask(unsigned status, const char *method, const char *target, const char *body)
{
    unsigned got = serve_desk_ask(&desk, method, target, NULL, body, strlen(body));
    if (got != status)
        fail_msg("%s %s: %u: %s", method, target, got, serve_desk_text(&desk));
    return json_loads(serve_desk_text(&desk), JSON_REJECT_DUPLICATES, NULL);
}

static void expect(unsigned status, const char *method, const char *target, const char *body,
                   const char *said)
{
    json_decref(ask(status, method, target, body));
    if (strstr(serve_desk_text(&desk), said) == NULL)
        fail_msg("%s %s: no %s in %s", method, target, said, serve_desk_text(&desk));
}

static const char *text_of(json_t *tree, const char *name)
{
    const char *text = json_string_value(json_object_get(tree, name));
    if (text == NULL)
        fail_msg("no %s in %s", name, serve_desk_text(&desk));
    return text;
}

/* What a worker shows, of the i-th job of a claim's answer. */
static void proof_of(json_t *answer, size_t i, char *proof, size_t size, char *id)
{
    json_t *job = json_array_get(json_object_get(answer, "jobs"), i);
    (void)snprintf(proof, size, "\"token\":\"%s\",\"version\":%lld", text_of(job, "token"),
                   (long long)json_integer_value(json_object_get(job, "lease_version")));
    (void)snprintf(id, PAWL_ID_TEXT_MAX, "%s", text_of(job, "id"));
}

/* ---- producing */

static void one_is_enqueued_byte_by_byte(void **state)
{
    (void)state;
    static const char payload[] = "\x00\xff{\r\n\x7f";
    const struct pawli_pair headers[] = {{"Content-Type", "image/png"},
                                         {"pawl-header-Tenant", "acme"},
                                         {"Accept", "*/*"},
                                         {NULL, NULL}};
    assert_int_equal(serve_desk_ask(&desk, "POST",
                                    "/v1/queues/a%2Fb/jobs?priority=2&delay=1s&dedupe_key=k+1",
                                    headers, payload, sizeof(payload)),
                     201);
    json_t *answer = json_loads(serve_desk_text(&desk), 0, NULL);
    char target[128];
    assert_string_equal(text_of(answer, "verdict"), "OK");
    (void)snprintf(target, sizeof(target), "/v1/jobs/%s/payload", text_of(answer, "id"));
    assert_int_equal(serve_desk_ask(&desk, "GET", target, NULL, "", 0), 200);
    assert_int_equal(desk.answer.body.len, sizeof(payload));
    assert_memory_equal(desk.answer.body.bytes, payload, sizeof(payload));
    assert_string_equal(desk.answer.payload_type, "image/png");
    (void)snprintf(target, sizeof(target), "/v1/jobs/%s", text_of(answer, "id"));
    expect(200, "GET", target, "", "\"queue\":\"a/b\"");
    expect(200, "GET", target, "", "\"priority\":2");
    /* The key is held: the answer names who holds it. */
    assert_int_equal(
        serve_desk_ask(&desk, "POST", "/v1/queues/a%2Fb/jobs?dedupe_key=k%201", NULL, "", 0), 200);
    assert_non_null(strstr(serve_desk_text(&desk), "\"DUPLICATE\""));
    assert_non_null(strstr(serve_desk_text(&desk), text_of(answer, "id")));
    /* The id has existed. */
    (void)snprintf(target, sizeof(target), "/v1/queues/a%%2Fb/jobs?id=%s", text_of(answer, "id"));
    expect(200, "POST", target, "x", "\"EXISTS\"");
    json_decref(answer);
}

static void wrong_options_are_named(void **state)
{
    (void)state;
    expect(400, "POST", "/v1/queues/q/jobs?priority=10", "", "priority is 10");
    expect(400, "POST", "/v1/queues/q/jobs?priority=x", "", "priority must be a whole number");
    expect(400, "POST", "/v1/queues/q/jobs?delay=5", "", "delay");
    expect(400, "POST", "/v1/queues/q/jobs?id=5", "", "id must be an id");
    expect(400, "POST", "/v1/queues/q/jobs?prio=5", "", "prio is not known");
    expect(400, "POST", "/v1/queues/q/jobs?max_retries=99999999999999999999", "", "max_retries");
    expect(400, "POST", "/v1/jobs",
           "{\"jobs\":[{\"queue\":\"q\",\"payload\":1,\"payload_base64\":\"\"}]}",
           "jobs[0]: payload and");
    expect(400, "POST", "/v1/jobs", "{\"jobs\":[{\"queue\":\"q\"},{\"payload\":1}]}",
           "jobs[1]: queue must be there");
    expect(400, "POST", "/v1/jobs", "{\"jobs\":[{\"queue\":\"q\",\"queue\":\"r\"}]}",
           "queue is there twice");
    expect(400, "POST", "/v1/jobs", "{\"jobs\":[{\"queue\":7}]}", "queue must be a text");
    expect(400, "POST", "/v1/jobs", "{\"jobs\":[{\"queue\":\"q\\u0000\"}]}", "without a NUL");
    expect(400, "POST", "/v1/jobs", "{\"jobs\":[{\"queue\":\"q\",\"headers\":{\"a\":1}}]}",
           "headers");
    expect(400, "POST", "/v1/jobs",
           "{\"jobs\":[{\"queue\":\"q\",\"headers\":{\"a\":\"1\",\"A\":\"2\"}}]}", "headers");
    expect(400, "POST", "/v1/jobs", "{\"jobs\":[{\"queue\":\"q\",\"payload_base64\":\"a\"}]}",
           "base64");
    expect(400, "POST", "/v1/jobs", "{\"jobs\":[]}", "at least one");
    expect(400, "POST", "/v1/jobs", "{\"jobs\":[{}]} x", "queue must be there");
    expect(400, "POST", "/v1/jobs", "{\"jobs\":[{\"queue\":\"q\"}]} x", "behind the end");
    expect(400, "POST", "/v1/jobs", "", "byte 1");
    expect(400, "POST", "/v1/jobs", "{}", "jobs must be there");
    expect(400, "POST", "/v1/jobs?queue=q", "{}", "the parameter queue is not known");
    expect(400, "POST", "/v1/queues/q/pause?now=1", "", "the parameter now is not known");
    expect(400, "POST", "/v1/jobs", "{\"job\":[]}", "job is not known");
    expect(200, "GET", "/v1/queues", "", "\"queues\":[]"); /* none of it was done */
}

static void many_are_enqueued_as_they_are_written(void **state)
{
    (void)state;
    json_decref(ask(200, "POST", "/v1/jobs",
                    "{\"jobs\":[{\"queue\":\"q\",\"payload\":\"a\\u0000b\"},"
                    "{\"queue\":\"q\",\"payload\": {\"x\":0.1, \"y\" : 12345678901234567890} },"
                    "{\"queue\":\"q\",\"payload_base64\":\"/wA=\",\"headers\":{\"n\":\"\\u00e9\"}},"
                    "{\"queue\":\"q\"}]}"));
    json_t *answer = ask(200, "POST", "/v1/claim",
                         "{\"worker\":\"w\",\"max\":9,\"queues\":[{\"queue\":\"q\"}]}");
    const char *text = serve_desk_text(&desk);
    assert_non_null(strstr(text, "\"payload\":\"a\\u0000b\""));
    assert_non_null(
        strstr(text, "\"payload\":\"{\\\"x\\\":0.1, \\\"y\\\" : 12345678901234567890}\""));
    assert_non_null(strstr(text, "\"payload_base64\":\"/wA=\""));
    assert_non_null(strstr(text, "\"headers\":{\"n\":\"\xc3\xa9\"}"));
    assert_non_null(strstr(text, "\"payload\":\"\""));
    json_decref(answer);
}

static void each_line_has_its_verdict(void **state)
{
    (void)state;
    json_decref(
        ask(200, "POST", "/v1/jobs/stream",
            "{\"queue\":\"q\",\"payload\":1}\n\n{\"queue\":\"q\",\"payload\":2,\"dedupe_key\":"
            "\"k\"}\r\n"
            "{\"queue\"\n{\"queue\":\"q\",\"dedupe_key\":\"k\"}\n"
            "{\"queue\":\"q\",\"delay\":\"5s\",\"start_within\":\"1s\"}\n{\"queue\":\"q\"}"));
    static const char *const said[] = {
        "{\"line\":1,\"id\":", "{\"line\":3,\"id\":", "{\"line\":4,\"verdict\":\"INVALID\"",
        "{\"line\":5,\"id\":", "\"DUPLICATE\"",       "{\"line\":6,\"verdict\":\"INVALID\"",
        "{\"line\":7,\"id\":"};
    const char *at = serve_desk_text(&desk);
    for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
        at = strstr(at, said[i]);
        if (at == NULL)
            fail_msg("no %s in %s", said[i], serve_desk_text(&desk));
    }
    expect(200, "GET", "/v1/queues/q/stats", "", "\"ready\":3");
}

/* ---- working */

static void a_lease_is_renewed_settled_and_then_stale(void **state)
{
    (void)state;
    char proof[128];
    char id[PAWL_ID_TEXT_MAX];
    char target[128];
    char body[512];
    json_decref(ask(201, "POST", "/v1/queues/q/jobs", "x"));
    json_t *answer = ask(200, "POST", "/v1/claim",
                         "{\"worker\":\"w\",\"queues\":[{\"queue\":\"q\",\"lease\":\"10s\"}]}");
    proof_of(answer, 0, proof, sizeof(proof), id);
    json_decref(answer);
    (void)snprintf(body, sizeof(body), "{\"worker\":\"w\",%s,\"lease\":\"60s\"}", proof);
    (void)snprintf(target, sizeof(target), "/v1/jobs/%s/renew", id);
    expect(200, "POST", target, body, "\"lease_ms\":60000");
    /* Another worker has not the lease, whatever it shows. Q-STALE */
    (void)snprintf(body, sizeof(body), "{\"worker\":\"v\",%s}", proof);
    expect(409, "POST", target, body, "urn:pawl:problem:stale");
    (void)snprintf(target, sizeof(target), "/v1/jobs/%s/settle", id);
    (void)snprintf(body, sizeof(body), "{\"worker\":\"w\",%s,\"action\":\"done\"}", proof);
    expect(400, "POST", target, body, "action is");
    (void)snprintf(body, sizeof(body),
                   "{\"worker\":\"w\",%s,\"action\":\"retry\",\"delay\":\"0s\",\"error_text\":"
                   "\"no\",\"wire_sends\":2}",
                   proof);
    expect(200, "POST", target, body, "\"state\":\"Ready\"");
    (void)snprintf(body, sizeof(body), "{\"worker\":\"w\",%s,\"action\":\"succeed\"}", proof);
    expect(409, "POST", target, body, "\"code\":\"STALE\"");
    (void)snprintf(target, sizeof(target), "/v1/jobs/%s/attempts", id);
    expect(200, "GET", target, "", "\"outcome\":\"RETRYABLE\"");
    expect(200, "GET", target, "", "\"error_text\":\"no\",\"wire_sends\":2");
    expect(404, "POST", "/v1/jobs/01890a5d-ac96-774b-bcce-b302099a8057/settle", body,
           "urn:pawl:problem:gone");
}

static void batches_have_a_verdict_for_each(void **state)
{
    (void)state;
    char proof[2][128];
    char id[2][PAWL_ID_TEXT_MAX];
    char body[1024];
    json_decref(ask(200, "POST", "/v1/jobs", "{\"jobs\":[{\"queue\":\"q\"},{\"queue\":\"q\"}]}"));
    json_t *answer = ask(200, "POST", "/v1/claim",
                         "{\"worker\":\"w\",\"max\":2,\"queues\":[{\"queue\":\"q\"}]}");
    proof_of(answer, 0, proof[0], sizeof(proof[0]), id[0]);
    proof_of(answer, 1, proof[1], sizeof(proof[1]), id[1]);
    json_decref(answer);
    expect(200, "POST", "/v1/mine", "{\"worker\":\"w\"}", id[1]);
    /* Each with the other's token: both are stale, and nothing else happens. */
    (void)snprintf(body, sizeof(body),
                   "{\"worker\":\"w\",\"leases\":[{\"job\":\"%s\",%s},{\"job\":\"%s\",%s}]}", id[0],
                   proof[0], id[1], proof[0]);
    expect(200, "POST", "/v1/renew", body, "\"results\":[{\"verdict\":\"OK\"");
    assert_non_null(strstr(serve_desk_text(&desk), "{\"verdict\":\"STALE\"}]"));
    (void)snprintf(body, sizeof(body),
                   "{\"worker\":\"w\",\"leases\":[{\"job\":\"%s\",%s,\"action\":\"succeed\"}]}",
                   id[0], proof[0]);
    expect(200, "POST", "/v1/settle", body, "\"state\":\"Succeeded\"");
    (void)snprintf(body, sizeof(body), "{\"worker\":\"w\",\"leases\":[{\"job\":\"%s\",%s}]}", id[1],
                   proof[1]);
    expect(200, "POST", "/v1/release", body, "\"verdict\":\"OK\"");
    expect(200, "POST", "/v1/release", body, "\"verdict\":\"STALE\"");
    expect(200, "GET", "/v1/queues/q/stats", "", "\"ready\":1");
}

static void a_claim_waits_only_where_it_may(void **state)
{
    (void)state;
    expect(200, "POST", "/v1/claim", "{\"worker\":\"w\",\"queues\":[{\"queue\":\"q\"}]}",
           "\"jobs\":[]");
    assert_false(desk.is_waiting);
    json_decref(ask(200, "POST", "/v1/claim",
                    "{\"worker\":\"w\",\"wait\":\"30s\",\"queues\":[{\"queue\":\"q\"}]}"));
    assert_true(desk.is_waiting);
    expect(400, "POST", "/v1/claim",
           "{\"worker\":\"w\",\"wait\":\"31s\",\"queues\":[{\"queue\":\"q\"}]}", "at most 30s");
    expect(400, "POST", "/v1/claim",
           "{\"worker\":\"w\",\"max\":1001,\"queues\":[{\"queue\":\"q\"}]}", "max is 1001");
    json_decref(ask(201, "POST", "/v1/queues/q/jobs", "x"));
    expect(200, "POST", "/v1/claim",
           "{\"worker\":\"w\",\"wait\":\"30s\",\"queues\":[{\"queue\":\"q\"}]}",
           "\"payload\":\"x\"");
    assert_false(desk.is_waiting);
    /* What was given out can be given back. */
    desk.claiming->worker = "w";
    assert_int_equal(desk.claiming->granted_count, 1);
    assert_int_equal(pawli_claim_give_back(desk.store, desk.claiming, NULL), PAWL_OK);
    expect(200, "GET", "/v1/queues/q/stats", "", "\"ready\":1");
}

/* ---- operating */

static void jobs_are_listed_page_by_page(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++)
        json_decref(ask(201, "POST", i < 3 ? "/v1/queues/q/jobs" : "/v1/queues/r/jobs", "x"));
    json_t *page = ask(200, "GET", "/v1/jobs?limit=2&queue=q", "");
    char target[128];
    assert_int_equal(json_array_size(json_object_get(page, "jobs")), 2);
    (void)snprintf(target, sizeof(target), "/v1/jobs?limit=2&queue=q&after=%s",
                   text_of(page, "next"));
    json_decref(page);
    page = ask(200, "GET", target, "");
    assert_int_equal(json_array_size(json_object_get(page, "jobs")), 1);
    assert_true(json_is_null(json_object_get(page, "next")));
    json_decref(page);
    expect(200, "GET", "/v1/jobs?state=Failed,Succeeded", "", "\"jobs\":[]");
    expect(400, "GET", "/v1/jobs?state=Lost", "", "state must be");
    expect(400, "GET", "/v1/jobs?reason=none", "", "reason must be");
    expect(400, "GET", "/v1/jobs?limit=0", "", "limit is 0");
    expect(400, "GET", "/v1/jobs?limit=1001", "", "limit is 1001");
    expect(400, "GET", "/v1/jobs?after=x", "", "after must be an id");
    expect(404, "GET", "/v1/jobs/01890a5d-ac96-774b-bcce-b302099a8057", "", "problem:gone");
    expect(400, "GET", "/v1/jobs/x", "", "problem:invalid");
}

static void jobs_are_cancelled_redriven_and_discarded(void **state)
{
    (void)state;
    char target[128];
    char body[256];
    json_t *answer = ask(201, "POST", "/v1/queues/q/jobs", "x");
    char id[PAWL_ID_TEXT_MAX];
    (void)snprintf(id, sizeof(id), "%s", text_of(answer, "id"));
    json_decref(answer);
    (void)snprintf(target, sizeof(target), "/v1/jobs/%s/redrive", id);
    expect(409, "POST", target, "", "problem:not-failed");
    (void)snprintf(target, sizeof(target), "/v1/jobs/%s/cancel", id);
    expect(200, "POST", target, "", "\"state\":\"Failed\"");
    (void)snprintf(body, sizeof(body),
                   "{\"ids\":[\"%s\",\"01890a5d-ac96-774b-bcce-b302099a8057\"]}", id);
    expect(200, "POST", "/v1/redrive", body, "\"verdict\":\"GONE\"");
    expect(200, "GET", "/v1/queues/q/stats", "", "\"ready\":1");
    expect(200, "POST", "/v1/cancel", "{\"filter\":{\"queue\":\"q\"},\"max\":1}",
           "{\"changed\":1,\"is_more\":true}");
    expect(200, "POST", "/v1/discard", "{\"filter\":{\"queue\":\"q\",\"reason\":\"cancelled\"}}",
           "{\"changed\":1,\"is_more\":false}");
    expect(400, "POST", "/v1/cancel", "{}", "and not both");
    expect(400, "POST", "/v1/cancel", "{\"ids\":[]}", "at least one");
    expect(400, "POST", "/v1/cancel", "{\"ids\":[1]}", "ids");
    expect(400, "POST", "/v1/cancel", "{\"filter\":{\"queu\":\"q\"}}", "filter: the field queu");
    (void)snprintf(target, sizeof(target), "/v1/jobs/%s/payload", id);
    expect(404, "GET", target, "", "no longer kept");
}

static void settings_have_an_etag(void **state)
{
    (void)state;
    expect(200, "GET", "/v1/queues/q", "", "\"lease_ms\":30000");
    char before[PAWLI_ETAG_MAX];
    memcpy(before, desk.answer.etag, sizeof(before));
    assert_int_equal(strlen(before), 34);
    const struct pawli_pair known[] = {{"If-None-Match", before}, {NULL, NULL}};
    assert_int_equal(serve_desk_ask(&desk, "GET", "/v1/queues/q", known, "", 0), 304);
    assert_int_equal(desk.answer.body.len, 0);
    const struct pawli_pair match[] = {{"If-Match", before}, {NULL, NULL}};
    static const char body[] =
        "{\"lease_ms\":5000,\"keep_failed_ms\":\"forever\",\"execution_timeout_ms\":\"default\"}";
    assert_int_equal(serve_desk_ask(&desk, "PUT", "/v1/queues/q", match, body, strlen(body)), 200);
    assert_string_not_equal(desk.answer.etag, before);
    assert_non_null(strstr(serve_desk_text(&desk), "\"keep_failed_ms\":\"forever\""));
    assert_int_equal(serve_desk_ask(&desk, "PUT", "/v1/queues/q", match, "{}", 2), 412);
    expect(200, "GET", "/v1/queues/q", "", "\"lease_ms\":5000");
    /* What is not said is as it is by default. */
    expect(200, "PUT", "/v1/queues/q", "{\"max_retries\":0}", "\"lease_ms\":30000");
    expect(400, "PUT", "/v1/queues/q", "{\"lease_ms\":5}", "lease_ms");
    expect(400, "PUT", "/v1/queues/q", "{\"lease_ms\":\"forever\"}", "lease_ms must be");
    expect(400, "PUT", "/v1/queues/q", "{\"is_paused\":true}", "is_paused is not known");
    expect(200, "POST", "/v1/queues/q/pause", "", "\"is_paused\":true");
    expect(200, "POST", "/v1/queues/q/resume", "", "\"is_paused\":false");
}

static void work_leases_go_their_way(void **state)
{
    (void)state;
    char body[256];
    json_t *answer = ask(200, "POST", "/v1/workleases/log%2F1/acquire",
                         "{\"offset\":7,\"owner\":\"a\",\"lease\":\"10s\"}");
    assert_string_equal(text_of(answer, "got"), "ACQUIRED");
    expect(200, "POST", "/v1/workleases/log%2F1/acquire", "{\"offset\":8,\"owner\":\"b\"}",
           "\"got\":\"ENQUEUED\"");
    assert_null(strstr(serve_desk_text(&desk), "token"));
    expect(409, "POST", "/v1/workleases/log%2F1/succeed",
           "{\"owner\":\"a\",\"token\":\"00000000000000000000000000000000\"}", "problem:wl-token");
    (void)snprintf(body, sizeof(body), "{\"owner\":\"a\",\"token\":\"%s\",\"lease\":\"20s\"}",
                   text_of(answer, "token"));
    expect(200, "POST", "/v1/workleases/log%2F1/renew", body, "expires_at");
    (void)snprintf(body, sizeof(body), "{\"owner\":\"a\",\"token\":\"%s\"}",
                   text_of(answer, "token"));
    expect(200, "POST", "/v1/workleases/log%2F1/fail", body,
           "\"end\":\"RETRY_SCHEDULED\",\"retry_count\":1");
    expect(200, "POST", "/v1/workleases/log%2F1/succeed", body,
           "\"end\":\"NEXT_HINT\",\"next_offset\":8");
    expect(409, "POST", "/v1/workleases/log%2F1/succeed", body, "problem:wl-no-lease");
    expect(409, "POST", "/v1/workleases/log%2F1/acquire", "{\"offset\":9}", "problem:wl-order");
    expect(200, "GET", "/v1/workleases/log%2F1", "", "\"backlog_head\":8");
    expect(200, "GET", "/v1/workleases", "", "\"domain\":\"log/1\"");
    expect(200, "GET", "/v1/workleases/log%2F1/backlog", "", "{\"offsets\":[8],\"next\":null}");
    expect(200, "GET", "/v1/workleases/log%2F1/terminal", "",
           "{\"first\":7,\"last\":7,\"is_failed\":false}");
    expect(404, "GET", "/v1/workleases/none", "", "problem:gone");
    json_decref(answer);
}

/* ---- tokens for some queues */

static void a_token_for_some_queues_reaches_no_other(void **state)
{
    (void)state;
    json_t *answer = ask(201, "POST", "/v1/queues/other/jobs", "x");
    char target[128];
    char id[PAWL_ID_TEXT_MAX];
    (void)snprintf(id, sizeof(id), "%s", text_of(answer, "id"));
    json_decref(answer);
    (void)snprintf(desk.grant.queues, sizeof(desk.grant.queues), "mail,news-*");
    static const char forbidden[] = "problem:forbidden";
    expect(403, "POST", "/v1/queues/other/jobs", "x", forbidden);
    expect(201, "POST", "/v1/queues/mail/jobs", "x", "OK");
    expect(403, "POST", "/v1/jobs", "{\"jobs\":[{\"queue\":\"mail\"},{\"queue\":\"other\"}]}",
           forbidden);
    expect(200, "POST", "/v1/jobs/stream", "{\"queue\":\"other\"}\n{\"queue\":\"mail\"}",
           "\"line\":1,\"verdict\":\"INVALID\"");
    expect(403, "POST", "/v1/claim",
           "{\"worker\":\"w\",\"queues\":[{\"queue\":\"mail\"},{\"queue\":\"other\"}]}", forbidden);
    expect(403, "GET", "/v1/jobs", "", "say which queue");
    expect(403, "GET", "/v1/jobs?queue=other", "", forbidden);
    expect(200, "GET", "/v1/jobs?queue=mail", "", "\"mail\"");
    expect(403, "GET", "/v1/leases", "", forbidden);
    static const char *const tails[] = {"", "/payload", "/attempts"};
    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(target, sizeof(target), "/v1/jobs/%s%s", id, tails[i]);
        expect(403, "GET", target, "", forbidden);
    }
    static const char *const verbs[] = {"cancel", "redrive", "discard"};
    for (size_t i = 0; i < 3; i++) {
        char body[128];
        (void)snprintf(target, sizeof(target), "/v1/jobs/%s/%s", id, verbs[i]);
        expect(403, "POST", target, "", forbidden);
        (void)snprintf(target, sizeof(target), "/v1/%s", verbs[i]);
        (void)snprintf(body, sizeof(body), "{\"ids\":[\"%s\"]}", id);
        expect(403, "POST", target, body, forbidden);
        expect(403, "POST", target, "{\"filter\":{}}", forbidden);
        expect(403, "POST", target, "{\"filter\":{\"queue\":\"other\"}}", forbidden);
    }
    expect(403, "GET", "/v1/queues/other", "", forbidden);
    expect(403, "GET", "/v1/queues/other/stats", "", forbidden);
    expect(403, "PUT", "/v1/queues/other", "{}", forbidden);
    expect(403, "POST", "/v1/queues/other/pause", "", forbidden);
    expect(403, "POST", "/v1/queues/other/resume", "", forbidden);
    expect(200, "GET", "/v1/queues", "", "\"mail\"");
    assert_null(strstr(serve_desk_text(&desk), "other"));
    static const char *const holds[] = {"acquire", "succeed", "fail", "renew"};
    for (size_t i = 0; i < 4; i++) {
        (void)snprintf(target, sizeof(target), "/v1/workleases/other/%s", holds[i]);
        expect(403, "POST", target, "{}", forbidden);
    }
    expect(403, "GET", "/v1/workleases/other", "", forbidden);
    expect(403, "GET", "/v1/workleases/other/backlog", "", forbidden);
    expect(403, "GET", "/v1/workleases/other/terminal", "", forbidden);
    pawli_grant_all(&desk.grant);
    (void)snprintf(target, sizeof(target), "/v1/jobs/%s", id);
    expect(200, "GET", target, "", "\"state\":\"Ready\""); /* nothing was done to it */
}

/* ---- health */

static void it_is_ready_while_a_reaper_runs(void **state)
{
    (void)state;
    expect(200, "GET", "/livez", "", "\"is_alive\":true");
    expect(503, "GET", "/readyz", "", "no reaper runs"); /* RULE-020-020 */
    const pawl_worker_seen reaper = {"r/1/x", PAWL_KIND_REAPER, "h", "1", NULL};
    assert_int_equal(pawl_worker_seen_now(desk.store, &reaper, NULL), PAWL_OK);
    expect(200, "GET", "/readyz", "", "\"is_ready\":true");
    pawli_manual_clock_turn_ms(&desk.manual, 31000);
    expect(503, "GET", "/readyz", "", "no reaper has finished a run");
    assert_int_equal(desk.answer.retry_after_s, 1);
    expect(200, "GET", "/metrics", "", "# none");
}

static void the_corpus_of_requests_is_answered(void **state)
{
    (void)state;
    static const char *const corpus[] = {
        "GET /livez",
        "GET /%",
        "GET",
        "",
        " ",
        "POST /v1/jobs\n{",
        "POST /v1/claim\n{\"worker\":\"\",\"queues\":[{\"queue\":\"\"}]}",
        "POST /v1/queues/%20/jobs",
        "PUT /v1/queues/a\n{\"lease_ms\":9223372036854775807}",
        "POST "
        "/v1/jobs\n{\"jobs\":[{\"queue\":\"q\",\"delay\":\"3650d\",\"start_within\":\"1ms\"}]}",
        "POST /v1/workleases/d/acquire\n{\"offset\":-9223372036854775808,\"backlog_max\":1}",
        "POST "
        "/v1/"
        "renew\n{\"worker\":\"w\",\"leases\":[{\"job\":\"00000000-0000-0000-0000-000000000000\","
        "\"token\":\"00000000000000000000000000000000\",\"version\":1}]}",
        "GET /v1/jobs?ordering_key=x",
        "GET /v1/workers?after=%01",
        "GET /v1/workers?after=",
        "POST /v1/mine\n{\"worker\":\"\\u0001\"}",
    };
    for (size_t i = 0; i < sizeof(corpus) / sizeof(corpus[0]); i++)
        serve_fuzz_one((const uint8_t *)corpus[i], strlen(corpus[i]));
    static const char two[] = "POST /v1/queues/q/jobs\nx\0POST "
                              "/v1/claim\n{\"worker\":\"w\",\"queues\":[{\"queue\":\"q\"}]}";
    serve_fuzz_one((const uint8_t *)two, sizeof(two) - 1);
}

/* ---- events and endpoints */

static pawl_code check_settings(void *user, pawl_endpoint_settings *settings,
                                struct pawli_endpoint_room *room, pawl_err *err)
{
    (void)user;
    (void)room;
    if (settings->url == NULL || strncmp(settings->url, "https://", 8) == 0)
        return PAWL_OK;
    *err = (pawl_err){PAWL_INVALID, "url: it must be https"};
    return PAWL_INVALID;
}

static pawl_code make_secret(void *user, struct pawli_made_secret *made, pawl_err *err)
{
    (void)user;
    (void)err;
    if (!made->is_given)
        (void)snprintf(made->secret, sizeof(made->secret), "%s",
                       "whsec_MDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAw");
    return PAWL_OK;
}

static pawl_code test_endpoint(void *user, pawl_store *store, const char *name,
                               struct pawli_tested *ret_tested, pawl_err *err)
{
    (void)user;
    pawl_endpoint row;
    *ret_tested = (struct pawli_tested){.is_delivered = true, .answer = "HTTP-204"};
    return pawl_endpoint_get(store, name, &row, err);
}

static const struct pawli_webhooks webhooks = {check_settings, make_secret, test_endpoint, NULL};

static void events_go_to_endpoints(void **state)
{
    (void)state;
    static const char add[] = "{\"url\":\"https://a.example/x\",\"topics\":\"order.*\"}";
    expect(400, "POST", "/v1/endpoints/crm", add, "built without webhooks");
    expect(400, "POST", "/v1/endpoints/crm/test", "", "built without webhooks");
    desk.host.webhooks = &webhooks;
    expect(400, "POST", "/v1/endpoints/crm", "{\"url\":\"http://a\",\"topics\":\"*\"}", "https");
    expect(400, "POST", "/v1/endpoints/crm",
           "{\"url\":\"https://a\",\"topics\":\"*\",\"format\":\"x\"}", "format must be");
    expect(400, "POST", "/v1/endpoints/crm",
           "{\"url\":\"https://a\",\"topics\":\"*\",\"secret\":\"x\",\"is_key_pair\":true}",
           "is_key_pair");
    expect(201, "POST", "/v1/endpoints/crm", add, "\"secret\":\"whsec_");
    expect(409, "POST", "/v1/endpoints/crm", add, "problem:exists");
    expect(200, "GET", "/v1/endpoints/crm", "", "\"url\":\"https://a.example/x\"");
    assert_null(strstr(serve_desk_text(&desk), "whsec_"));
    expect(200, "GET", "/v1/endpoints", "", "\"origin\":\"https://a.example\"");
    assert_null(strstr(serve_desk_text(&desk), "example/x"));
    expect(201, "POST", "/v1/events/order.made?id=e1", "p", "\"jobs\":1");
    expect(200, "POST", "/v1/events/order.made?id=e1", "p", "EXISTS");
    expect(200, "POST", "/v1/events/other", "p", "\"endpoints\":0");
    expect(400, "POST", "/v1/events/or%20der", "p", "type");
    expect(200, "POST", "/v1/events",
           "{\"events\":[{\"type\":\"order.a\",\"payload\":1,\"headers\":{\"a\":\"b\"}},{\"type\":"
           "\"b\"}]}",
           "\"jobs\":1},{");
    expect(409, "DELETE", "/v1/endpoints/crm", "", "problem:has-jobs");
    expect(200, "POST", "/v1/cancel", "{\"filter\":{\"queue\":\"webhook/crm\"}}", "\"changed\":2");
    expect(200, "PATCH", "/v1/endpoints/crm", "{\"ordering\":\"key\"}", "\"revision\":2");
    expect(200, "POST", "/v1/endpoints/crm/disable", "{\"by\":\"me\"}", "\"switched_by\":\"me\"");
    expect(200, "POST", "/v1/endpoints/crm/enable", "", "\"switched_by\":\"http\"");
    expect(400, "POST", "/v1/endpoints/crm/rotate", "", "secret"); /* it has this one */
    expect(200, "POST", "/v1/endpoints/crm/test", "", "HTTP-204");
    expect(200, "DELETE", "/v1/endpoints/crm", "", "\"is_removed\":true");
    expect(404, "GET", "/v1/endpoints/crm", "", "problem:gone");
}

static void a_token_for_some_queues_has_some_endpoints(void **state)
{
    (void)state;
    static const char add[] = "{\"url\":\"https://a.example/x\",\"topics\":\"*\"}";
    desk.host.webhooks = &webhooks;
    expect(201, "POST", "/v1/endpoints/crm", add, "secret");
    expect(201, "POST", "/v1/endpoints/erp", add, "secret");
    (void)snprintf(desk.grant.queues, sizeof(desk.grant.queues), "webhook/crm");
    expect(200, "GET", "/v1/endpoints/crm", "", "crm");
    expect(200, "GET", "/v1/endpoints", "", "crm");
    assert_null(strstr(serve_desk_text(&desk), "erp\",\"queue"));
    expect(403, "GET", "/v1/endpoints/erp", "", "forbidden");
    expect(403, "DELETE", "/v1/endpoints/erp", "", "forbidden");
    expect(403, "POST", "/v1/endpoints/erp/rotate", "", "forbidden");
    expect(403, "POST", "/v1/events/a", "", "forbidden");
    expect(403, "POST", "/v1/events", "{\"events\":[{\"type\":\"b\"}]}", "forbidden");
    (void)snprintf(desk.grant.queues, sizeof(desk.grant.queues), "webhook/*");
    expect(201, "POST", "/v1/events/a", "", "\"jobs\":2");
}

/* ---- once */

static unsigned put_with_key(const char *key, const char *target, const char *body)
{
    const struct pawli_pair headers[] = {{"idempotency-key", key}, {"X-Trace", body}, {NULL, NULL}};
    return serve_desk_ask(&desk, "POST", target, headers, body, strlen(body));
}

/* A key is its token's own, is kept for a day, and what was refused is not kept. ADR 0022. */
static void a_key_is_carried_out_once(void **state)
{
    (void)state;
    char first[256];
    assert_int_equal(put_with_key("k", "/v1/queues/q/jobs?priority=77", "x"), 400);
    assert_int_equal(put_with_key("k", "/v1/queues/q/jobs", "x"), 201);
    assert_false(desk.answer.is_replayed);
    (void)snprintf(first, sizeof(first), "%s", serve_desk_text(&desk));
    assert_int_equal(put_with_key("k", "/v1/queues/q/jobs", "x"), 201);
    assert_true(desk.answer.is_replayed);
    assert_string_equal(serve_desk_text(&desk), first);
    assert_int_equal(put_with_key("k", "/v1/queues/q/jobs", "y"), 422);
    assert_int_equal(put_with_key("k", "/v1/queues/q/jobs?delay=1s", "x"), 422);
    assert_int_equal(put_with_key("l", "/v1/queues/q/jobs", "x"), 201);
    assert_int_equal(put_with_key("", "/v1/queues/q/jobs", "x"), 400);
    assert_int_equal(put_with_key("\x7f", "/v1/queues/q/jobs", "x"), 400);
    expect(200, "GET", "/v1/queues/q/stats", "", "\"ready\":2");
    (void)snprintf(desk.grant.name, sizeof(desk.grant.name), "other");
    assert_int_equal(put_with_key("k", "/v1/queues/q/jobs", "y"), 201);
    assert_false(desk.answer.is_replayed);
    desk.manual.wall.us += INT64_C(24) * 3600 * 1000000;
    assert_int_equal(put_with_key("k", "/v1/queues/q/jobs", "z"), 201);
    assert_false(desk.answer.is_replayed);
}

/* ---- together */

/* Requests that have come at the same time share a transaction; one that is wrong spoils none. */
static void enqueues_go_together(void **state)
{
    (void)state;
    static const char *const targets[] = {
        "/v1/queues/q/jobs?dedupe_key=k",   "/v1/queues/q/jobs?priority=99",
        "/v1/queues/q/jobs?dedupe_key=k",   "/v1/queues/hidden/jobs",
        "/v1/queues/q/jobs?ordering_key=o", "/v1/queues/%20/jobs",
    };
    static const unsigned statuses[] = {201, 400, 200, 403, 201, 400};
    enum {
        COUNT = sizeof(targets) / sizeof(targets[0])
    };
    struct serve_desk_asked asked[COUNT];
    struct pawli_call *calls[COUNT];
    (void)snprintf(desk.grant.queues, sizeof(desk.grant.queues), "q, *");
    for (size_t i = 0; i < COUNT; i++) {
        serve_desk_prepare(&desk, &asked[i], "POST", targets[i], "payload", 7);
        calls[i] = &asked[i].call;
    }
    size_t asked_count = 0;
    assert_int_equal(pawli_enqueue_together(calls, COUNT, &asked_count), PAWL_OK);
    assert_int_equal(asked_count, 1);
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(asked[i].answer.status, statuses[i]);
        serve_desk_asked_clear(&asked[i]);
    }
    pawli_grant_all(&desk.grant);
    expect(200, "GET", "/v1/queues/q/stats", "", "\"ready\":2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_is_enqueued_byte_by_byte, begin, end),
        cmocka_unit_test_setup_teardown(wrong_options_are_named, begin, end),
        cmocka_unit_test_setup_teardown(many_are_enqueued_as_they_are_written, begin, end),
        cmocka_unit_test_setup_teardown(each_line_has_its_verdict, begin, end),
        cmocka_unit_test_setup_teardown(a_lease_is_renewed_settled_and_then_stale, begin, end),
        cmocka_unit_test_setup_teardown(batches_have_a_verdict_for_each, begin, end),
        cmocka_unit_test_setup_teardown(a_claim_waits_only_where_it_may, begin, end),
        cmocka_unit_test_setup_teardown(jobs_are_listed_page_by_page, begin, end),
        cmocka_unit_test_setup_teardown(jobs_are_cancelled_redriven_and_discarded, begin, end),
        cmocka_unit_test_setup_teardown(settings_have_an_etag, begin, end),
        cmocka_unit_test_setup_teardown(work_leases_go_their_way, begin, end),
        cmocka_unit_test_setup_teardown(a_token_for_some_queues_reaches_no_other, begin, end),
        cmocka_unit_test_setup_teardown(it_is_ready_while_a_reaper_runs, begin, end),
        cmocka_unit_test_setup_teardown(events_go_to_endpoints, begin, end),
        cmocka_unit_test_setup_teardown(a_token_for_some_queues_has_some_endpoints, begin, end),
        cmocka_unit_test_setup_teardown(a_key_is_carried_out_once, begin, end),
        cmocka_unit_test_setup_teardown(enqueues_go_together, begin, end),
        cmocka_unit_test(the_corpus_of_requests_is_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

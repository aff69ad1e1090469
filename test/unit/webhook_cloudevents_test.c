/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * webhook_cloudevents_test.c - proves webhook/cloudevents.c: headers and envelopes as CloudEvents
 * 1.0 has them, and no byte of a payload changed.
 * Owns:  the fixed corpus on which every compiler runs the fuzz target.
 * Never: sends anything.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"
#include "fuzz/cloudevents_fuzz.h"
#include "support/alloc_fail.h"
#include "webhook/cloudevents.h"

#include <jansson.h>

#define TRACE "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

static struct pawli_cloud_event some_event(const char *payload)
{
    return (struct pawli_cloud_event){
        .id = "0198c2a0-0000-7000-8000-000000000001",
        .source = "/shop",
        .type = "order.created",
        .time = {INT64_C(1772323200123456)},
        .payload = payload,
        .payload_len = strlen(payload),
    };
}

/* The envelope, or the headers with a newline behind each, as text. */
static void print(const struct pawli_cloud_event *event, bool is_binary, char *text, size_t size)
{
    struct pawli_buffer buffer = {.len = 0};
    assert_int_equal(pawli_cloud_event_check(event, NULL), PAWL_OK);
    assert_true(pawli_buffer_put(&buffer, "kept:", 5));
    assert_int_equal(is_binary ? pawli_cloud_event_headers(event, &buffer, NULL)
                               : pawli_cloud_event_envelope(event, &buffer, NULL),
                     PAWL_OK);
    assert_memory_equal(buffer.bytes, "kept:", 5); /* behind what was there */
    assert_true(buffer.len - 5 < size);
    for (size_t i = 5; i < buffer.len; i++)
        text[i - 5] = buffer.bytes[i] != '\0' ? (char)buffer.bytes[i] : '\n';
    text[buffer.len - 5] = '\0';
    pawli_buffer_clear(&buffer);
    assert_true(cloudevents_fuzz_one(event));
}

static void attributes_become_headers(void **state)
{
    (void)state;
    char text[2048];
    struct pawli_cloud_event event = some_event("{}");
    event.subject = "a \"b\" 100% \xe2\x82\xac \xf0\x9f\x98\x80";
    event.content_type = "text/plain; charset=\"utf-8\"";
    event.traceparent = TRACE;
    print(&event, true, text, sizeof(text));
    assert_string_equal(text, "content-type: text/plain; charset=\"utf-8\"\n"
                              "ce-specversion: 1.0\n"
                              "ce-id: 0198c2a0-0000-7000-8000-000000000001\n"
                              "ce-source: /shop\n"
                              "ce-type: order.created\n"
                              "ce-time: 2026-03-01T00:00:00.123456Z\n"
                              "ce-subject: a%20%22b%22%20100%25%20%E2%82%AC%20%F0%9F%98%80\n"
                              "ce-traceparent: " TRACE "\n"
                              "traceparent: " TRACE "\n");
    event = some_event("{}");
    event.time.us = 0;
    event.subject = "";
    event.traceparent = "00-bad";
    print(&event, true, text, sizeof(text));
    assert_string_equal(text, "content-type: application/json\n"
                              "ce-specversion: 1.0\n"
                              "ce-id: 0198c2a0-0000-7000-8000-000000000001\n"
                              "ce-source: /shop\n"
                              "ce-type: order.created\n");
}

#define HEAD                                                                    \
    "{\"specversion\":\"1.0\",\"id\":\"0198c2a0-0000-7000-8000-000000000001\"," \
    "\"source\":\"/shop\",\"type\":\"order.created\",\"time\":\"2026-03-01T00:00:00.123456Z\""

static void json_goes_into_the_envelope_as_it_is(void **state)
{
    (void)state;
    char text[2048];
    char expected[2048];
    /* Each would come out otherwise from a parser and a printer. */
    static const char *const payloads[] = {
        "{\"b\": 1, \"a\" :2 }",
        "{\"a\":1,\"a\":2}",
        "12345678901234567890123456789.10",
        "1.10",
        "1e999",
        "\"\\u0041\\u0000\"",
        "null",
        "[1e5, 1E+2]",
        " true\n",
        "\"\xe2\x82\xac\"",
    };
    static const char *const content_types[] = {
        NULL,
        "application/json",
        "application/JSON; charset=utf-8",
        "application/vnd.a+json",
        "text/json ;x=y",
        "a/b+JSON",
    };
    for (size_t i = 0; i < sizeof(payloads) / sizeof(payloads[0]); i++) {
        for (size_t k = 0; k < sizeof(content_types) / sizeof(content_types[0]); k++) {
            struct pawli_cloud_event event = some_event(payloads[i]);
            event.content_type = content_types[k];
            print(&event, false, text, sizeof(text));
            (void)snprintf(expected, sizeof(expected),
                           HEAD ",\"datacontenttype\":\"%s\",\"data\":%s}",
                           k == 0 ? "application/json" : content_types[k], payloads[i]);
            assert_string_equal(text, expected);
        }
    }
}

static void everything_else_goes_in_base64(void **state)
{
    (void)state;
    char text[2048];
    static const struct {
        const char *content_type;
        const char *payload;
        const char *coded;
    } rows[] = {
        {"text/plain", "foobar", "Zm9vYmFy"},
        {"text/plain", "1", "MQ=="},
        {"application/xjson", "1", "MQ=="},
        {"application/json-seq", "1", "MQ=="},
        {"application/jsonx", "1", "MQ=="},
        {"json/a", "1", "MQ=="},
        {"application/octet-stream; a=/json", "1", "MQ=="},
        /* Said to be JSON, and is not: nothing is lost. */
        {"application/json", "foobar", "Zm9vYmFy"},
        {NULL, "{} ,\"id\":\"x\"", "e30gLCJpZCI6Ingi"},
        {NULL, "{}}", "e319"},
        {NULL, "\xff", "/w=="},
        {NULL, "\xef\xbb\xbf{}", "77u/e30="},
        {NULL, " ", "IA=="},
        {NULL, "\"\\ud800\"", "Ilx1ZDgwMCI="},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct pawli_cloud_event event = some_event(rows[i].payload);
        char expected[2048];
        event.content_type = rows[i].content_type;
        print(&event, false, text, sizeof(text));
        (void)snprintf(expected, sizeof(expected),
                       HEAD ",\"datacontenttype\":\"%s\",\"data_base64\":\"%s\"}",
                       rows[i].content_type != NULL ? rows[i].content_type : "application/json",
                       rows[i].coded);
        assert_string_equal(text, expected);
    }
    /* A NUL in a payload is a byte like any other. */
    struct pawli_cloud_event event = some_event("");
    event.payload = "\"a\0b\"";
    event.payload_len = 5;
    print(&event, false, text, sizeof(text));
    assert_non_null(strstr(text, "\"data_base64\":\"ImEAYiI=\""));
    /* None is none. */
    event = some_event("");
    event.subject = "k\"1";
    event.traceparent = TRACE;
    print(&event, false, text, sizeof(text));
    assert_string_equal(text, HEAD ",\"subject\":\"k\\\"1\",\"traceparent\":\"" TRACE "\"}");
}

static void traceparents_are_told_apart(void **state)
{
    (void)state;
    static const char *const refused[] = {
        NULL,
        "",
        "00",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "0g-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0x",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n",
        "00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331_01",
        "00-0af7651916cd43dd8448eb211c80319-cb7ad6b7169203331-01",
        " 0-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    };
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        if (pawli_traceparent_is_good(refused[i]))
            fail_msg("\"%s\" must be refused", refused[i]);
    assert_true(pawli_traceparent_is_good(TRACE));
    assert_true(
        pawli_traceparent_is_good("00-00000000000000000000000000000001-0000000000000001-00"));
    assert_true(
        pawli_traceparent_is_good("fe-ffffffffffffffffffffffffffffffff-ffffffffffffffff-ff"));
}

static void attributes_are_checked_by_name(void **state)
{
    (void)state;
    char longest[PAWLI_CLOUD_SOURCE_MAX + 2];
    memset(longest, 'x', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    struct pawli_cloud_event events[17];
    static const char *const named[17] = {
        "id: ",           "id: ",           "id: ",           "source: ",  "source: ",  "source: ",
        "source: ",       "event_type",     "event_type",     "subject: ", "subject: ", "subject: ",
        "content_type: ", "content_type: ", "content_type: ", "time: ",    "time: ",
    };
    for (size_t i = 0; i < 17; i++)
        events[i] = some_event("{}");
    events[0].id = NULL;
    events[1].id = "";
    events[2].id = longest;
    events[3].source = NULL;
    events[4].source = longest;
    events[5].source = "a b";
    events[6].source = "a\r\nx-evil: 1";
    events[7].type = NULL;
    events[8].type = "a.*";
    events[9].subject = "a\nb";
    events[10].subject = "\xff";
    events[11].subject = longest + sizeof(longest) - 1 - (PAWLI_CLOUD_SUBJECT_MAX + 1);
    events[12].content_type = "text/plain\r\nx: y";
    events[13].content_type = "json";
    events[14].content_type = longest;
    events[15].time.us = -1;
    events[16].time.us = INT64_C(253402300799) * 1000000 + 1;
    for (size_t i = 0; i < 17; i++) {
        pawl_err err = {.text = ""};
        assert_int_equal(pawli_cloud_event_check(&events[i], &err), PAWL_INVALID);
        if (strncmp(err.text, named[i], strlen(named[i])) != 0)
            fail_msg("\"%s\" must name %s", err.text, named[i]);
        assert_false(cloudevents_fuzz_one(&events[i]));
    }
    static const char *const bad_types[] = {"",     "/",           "a/",   "/a",           "; a/b",
                                            "a;/b", "text/plain ", "a /b", "text/\xc3\xa4"};
    for (size_t i = 0; i < sizeof(bad_types) / sizeof(bad_types[0]); i++) {
        struct pawli_cloud_event event = some_event("{}");
        event.content_type = bad_types[i];
        if (cloudevents_fuzz_one(&event))
            fail_msg("\"%s\" must be refused", bad_types[i]);
    }
    struct pawli_cloud_event event = some_event("{}");
    longest[PAWLI_CLOUD_SOURCE_MAX] = '\0';
    event.source = longest;
    event.subject = longest + PAWLI_CLOUD_SOURCE_MAX - PAWLI_CLOUD_SUBJECT_MAX;
    event.id = longest + PAWLI_CLOUD_SOURCE_MAX - PAWLI_CLOUD_ID_MAX;
    event.time.us = INT64_C(253402300799) * 1000000;
    assert_true(cloudevents_fuzz_one(&event));
}

/* jansson allocates through these: see main(). */
static void *json_take(size_t size)
{
    return malloc(size);
}

static void json_give(void *block)
{
    free(block);
}

static void running_out_of_memory_changes_nothing(void **state)
{
    (void)state;
    /* Long enough for the buffer to grow more than once. */
    static char digits[8000];
    static char source[PAWLI_CLOUD_SOURCE_MAX + 1];
    memset(digits, '1', sizeof(digits) - 1);
    memset(source, 's', sizeof(source) - 1);
    struct pawli_cloud_event json = some_event(digits);
    struct pawli_cloud_event bytes = some_event(digits);
    json.subject = "x";
    json.source = source;
    bytes.content_type = "text/plain";
    for (int what = 0; what < 3; what++) {
        const struct pawli_cloud_event *event = what == 2 ? &bytes : &json;
        uint64_t nth = 1;
        for (;; nth++) {
            struct pawli_buffer buffer = {.len = 0};
            alloc_fail_nth(nth);
            pawl_code rc = what == 0 ? pawli_cloud_event_headers(event, &buffer, NULL)
                                     : pawli_cloud_event_envelope(event, &buffer, NULL);
            bool has_failed = alloc_fail_end();
            size_t len = buffer.len;
            pawli_buffer_clear(&buffer);
            if (!has_failed) {
                assert_int_equal(rc, PAWL_OK);
                break;
            }
            if (rc != PAWL_NO_MEMORY)
                fail_msg("%d: allocation %d: %d, %d", what, (int)nth, rc, (int)len);
            assert_int_equal(len, 0);
        }
        assert_true(nth > 1);
    }
}

static void the_property_holds_on_the_corpus(void **state)
{
    (void)state;
    struct pawli_seeded seeded = {20260310};
    pawl_random random = pawli_seeded_as_random(&seeded);
    static const char *const seeds[] = {
        "subject\napplication/json\n/shop\n" TRACE "\n{\"a\":1}",
        "\n\n\n\n[1,2,3]",
        "k\ntext/plain; x=y\nurn:a:b\n\nplain",
        "\xe2\x82\xac\na/b+json\nhttps://a/b\n" TRACE "\n\"\\u0041\"",
    };
    for (int i = 0; i < 30000; i++) {
        char text[200] = {0};
        (void)snprintf(text, sizeof(text) - 1, "%s", seeds[pawli_random_below(&random, 4)]);
        size_t len = strlen(text);
        for (uint64_t changes = pawli_random_below(&random, 4); changes > 0; changes--)
            text[pawli_random_below(&random, len + 1)] = (char)pawli_random_below(&random, 256);
        assert_int_equal(LLVMFuzzerTestOneInput((const uint8_t *)text, len), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attributes_become_headers),
        cmocka_unit_test(json_goes_into_the_envelope_as_it_is),
        cmocka_unit_test(everything_else_goes_in_base64),
        cmocka_unit_test(traceparents_are_told_apart),
        cmocka_unit_test(attributes_are_checked_by_name),
        cmocka_unit_test(running_out_of_memory_changes_nothing),
        cmocka_unit_test(the_property_holds_on_the_corpus),
    };
    json_set_alloc_funcs(json_take, json_give);
    return cmocka_run_group_tests_name("webhook_cloudevents", tests, NULL, NULL);
}

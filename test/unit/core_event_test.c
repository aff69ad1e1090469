/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * core_event_test.c - the ids of an event's jobs, and what their headers tell of the event.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/event.h"
#include "core/headers.h"
#include "core/id.h"
#include "support/alloc_fail.h"

#include <string.h>

#define MINTED "0192f0c1-a2b3-7000-8000-0123456789ab"

/* The SQL function has the same rows in test/pgtap/publish_test.sql. */
static const struct {
    const char *event_id;
    const char *queue;
    const char *key;
    bool is_minted;
    int64_t shards;
    const char *wanted;
} id_rows[] = {
    {"evt_1", "webhook/crm", NULL, false, 1, "5e90e4f1-5816-8000-afe2-768c90ec6a9e"},
    {"evt_1", "webhook/crm", NULL, false, 4096, "5e90e4f1-5816-862e-afe2-768c90ec6a9e"},
    {"evt_1", "webhook/crm", "k", false, 4096, "5e90e4f1-5816-822a-afe2-768c90ec6a9e"},
    {"evt_1", "webhook/crm2", NULL, false, 1, "f9601031-ad72-8000-8576-76011eb2f32f"},
    {MINTED, "webhook/crm", NULL, true, 1, "0192f0c1-a2b3-7000-a8e9-5203856f71fa"},
    {MINTED, "webhook/crm", "k", true, 8, "0192f0c1-a2b3-7002-a8e9-5203856f71fa"},
};

static void ids_come_from_event_and_queue(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(id_rows) / sizeof(id_rows[0]); i++) {
        struct pawli_publish_event event = {.is_minted = id_rows[i].is_minted};
        memcpy(event.id, id_rows[i].event_id, strlen(id_rows[i].event_id) + 1);
        pawl_enqueue_row row = {.queue = id_rows[i].queue, .ordering_key = id_rows[i].key};
        pawl_id id = pawli_event_job_id(&event, &row, id_rows[i].shards);
        char text[PAWL_ID_TEXT_MAX];
        assert_string_equal(pawl_id_format(&id, text), id_rows[i].wanted);
        struct pawli_shard_key key = pawli_shard_key_of(&row);
        assert_int_equal(pawli_id_shard(&id, id_rows[i].shards),
                         pawli_shard_of(&key, &id, id_rows[i].shards));
    }
}

static void names(void **state)
{
    (void)state;
    char queue[PAWL_NAME_MAX + 1];
    assert_string_equal(pawli_endpoint_queue("crm.eu-1_x", queue), "webhook/crm.eu-1_x");
    char most[PAWL_ENDPOINT_NAME_MAX + 2];
    memset(most, 'a', sizeof(most) - 1);
    most[sizeof(most) - 1] = '\0';
    pawl_err err;
    assert_int_equal(pawli_endpoint_name_check("name", most, &err), PAWL_INVALID);
    assert_non_null(strstr(err.text, "100"));
    most[sizeof(most) - 2] = '\0';
    assert_int_equal(pawli_endpoint_name_check("name", most, &err), PAWL_OK);
    assert_int_equal(strlen(pawli_endpoint_queue(most, queue)), PAWL_ENDPOINT_NAME_MAX + 8);
    static const char *const bad[] = {"", ".a", "-a", "a/b", "a b", "a\n", "\xc3\xa4", "a:b"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(pawli_endpoint_name_check("name", bad[i], NULL), PAWL_INVALID);
    assert_int_equal(pawli_endpoint_name_check("name", NULL, NULL), PAWL_INVALID);
}

/* The whole way: put into headers, and read from a job that has them. */
static void headers_go_round(void **state)
{
    (void)state;
    pawl_publish_row row = {.type = "order.created",
                            .ordering_key = "k: \xc3\xa4",
                            .headers = "Content-Type: a/b\nx: 1\n",
                            .time = {PAWLI_EVENT_TIME_MAX_US}};
    struct pawli_buffer buffer = {.bytes = NULL};
    assert_true(pawli_buffer_put(&buffer, "before", 6));
    assert_int_equal(pawli_event_headers_put(&row, "evt_1", &buffer, NULL), PAWL_OK);
    char *headers = (char *)buffer.bytes + 6;
    assert_int_equal(pawli_headers_check(headers, NULL), PAWL_OK);
    pawl_job job = {.headers = headers, .created_at = {7}};
    struct pawli_event_info info;
    assert_int_equal(pawli_event_read(&job, &info, NULL), PAWL_OK);
    assert_string_equal(info.id, "evt_1");
    assert_string_equal(info.type, "order.created");
    assert_string_equal(info.key, row.ordering_key);
    assert_string_equal(info.content_type, "a/b");
    assert_string_equal(info.traceparent, "");
    assert_int_equal(info.time.us, PAWLI_EVENT_TIME_MAX_US);
    pawli_buffer_clear(&buffer);
}

/* A job that was put into the queue by hand. */
static void a_job_without_an_event_is_none(void **state)
{
    (void)state;
    static const struct {
        char *headers;
        bool is_event;
        int64_t time_us;
    } rows[] = {
        {NULL, false, 0},
        {"x: 1\n", false, 0},
        {"pawl-event-id: a\n", false, 0},
        {"pawl-event-id: a.b\npawl-event-type: t\n", false, 0},
        {"pawl-event-id: a\npawl-event-type: t.\n", false, 0},
        {"pawl-event-id: a\npawl-event-type: t\n", true, 7},
        {"PAWL-EVENT-ID: a\npawl-event-type: t\npawl-event-time: 12\n", true, 12},
        {"pawl-event-id: a\npawl-event-type: t\npawl-event-time: 12x\n", true, 7},
        {"pawl-event-id: a\npawl-event-type: t\npawl-event-time: 9223372036854775808\n", true, 7},
        {"pawl-event-id: a\npawl-event-type: t\npawl-event-time: 253402300799000001\n", true, 7},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        pawl_job job = {.headers = rows[i].headers, .created_at = {7}};
        struct pawli_event_info info = {.time = {0}};
        pawl_err err;
        assert_int_equal(pawli_event_read(&job, &info, &err),
                         rows[i].is_event ? PAWL_OK : PAWL_INVALID);
        assert_int_equal(info.time.us, rows[i].time_us);
    }
}

static void what_is_too_long_is_left_out(void **state)
{
    (void)state;
    char headers[512] = "pawl-event-id: a\npawl-event-type: t\ncontent-type: ";
    size_t at = strlen(headers);
    memset(headers + at, 'x', PAWLI_CONTENT_TYPE_LEN_MAX + 1);
    memcpy(headers + at + PAWLI_CONTENT_TYPE_LEN_MAX + 1, "\n", 2);
    pawl_job job = {.headers = headers};
    struct pawli_event_info info;
    assert_int_equal(pawli_event_read(&job, &info, NULL), PAWL_OK);
    assert_string_equal(info.content_type, PAWLI_EVENT_BYTES_TYPE);
    memcpy(headers + at + PAWLI_CONTENT_TYPE_LEN_MAX, "\n", 2);
    assert_int_equal(pawli_event_read(&job, &info, NULL), PAWL_OK);
    assert_int_equal(strlen(info.content_type), PAWLI_CONTENT_TYPE_LEN_MAX);
}

static void memory_runs_out(void **state)
{
    (void)state;
    pawl_publish_row row = {.type = "t", .ordering_key = "k", .time = {5}};
    for (uint64_t nth = 1;; nth++) {
        struct pawli_buffer buffer = {.bytes = NULL};
        alloc_fail_nth(nth);
        pawl_code rc = pawli_event_headers_put(&row, "evt_1", &buffer, NULL);
        bool has_failed = alloc_fail_end();
        pawli_buffer_clear(&buffer);
        if (!has_failed) {
            assert_int_equal(rc, PAWL_OK);
            break;
        }
        assert_int_equal(rc, PAWL_NO_MEMORY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_come_from_event_and_queue),
        cmocka_unit_test(names),
        cmocka_unit_test(headers_go_round),
        cmocka_unit_test(a_job_without_an_event_is_none),
        cmocka_unit_test(what_is_too_long_is_left_out),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests_name("core_event", tests, NULL, NULL);
}

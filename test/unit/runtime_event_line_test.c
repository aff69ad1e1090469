/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * runtime_event_line_test.c - events as lines: what is in them, how it is escaped, how long they
 * get. JSON is read back by jansson.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"
#include "base/text.h"
#include "pawl/worker.h"

#include <jansson.h>
#include <string.h>

static pawl_event sample(void)
{
    pawl_event event = {.kind = PAWL_EVENT_JOB_ABORT,
                        .level = PAWL_LEVEL_WARN,
                        .at = {INT64_C(1767323045678901)},
                        .worker = "host/12/ab",
                        .reason = "beat_failed",
                        .attempt = 3,
                        .lease_version = 4};
    memset(event.job.bytes, 0x11, sizeof(event.job.bytes));
    (void)pawli_text_copy(event.queue, sizeof(event.queue), "mail");
    return event;
}

static const char *print(const pawl_event *event, pawl_line_format format)
{
    static char line[PAWL_EVENT_LINE_MAX];
    size_t len = pawl_event_line(event, format, line, sizeof(line));
    assert_int_equal(len, strlen(line));
    assert_true(len > 1 && line[len - 1] == '\n');
    assert_ptr_equal(strchr(line, '\n'), line + len - 1); /* one line, whatever is in it */
    return line;
}

static json_t *parse(const char *line)
{
    json_error_t error;
    json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, &error);
    if (object == NULL)
        fail_msg("not JSON: %s: %s", error.text, line);
    return object;
}

static const char *text_of(json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "(none)";
}

/* FR-005: job, worker, attempt and reason are there. */
static void logfmt_has_every_field(void **state)
{
    (void)state;
    pawl_event event = sample();
    assert_string_equal(
        print(&event, PAWL_LINE_LOGFMT),
        "time=2026-01-02T03:04:05.678901Z level=warn event=JOB-ABORT "
        "msg=\"the handler of a job was told to stop\" worker=host/12/ab "
        "job=11111111-1111-1111-1111-111111111111 queue=mail attempt=3 lease_version=4 "
        "reason=beat_failed\n");
    event = (pawl_event){.kind = PAWL_EVENT_CALL_FAILED,
                         .level = PAWL_LEVEL_WARN,
                         .worker = "w",
                         .reason = "",
                         .code = PAWL_DOWN,
                         .refused = 2,
                         .took_us = 1234567,
                         .subject = "renew",
                         .text = "the \"server\" = away"};
    assert_string_equal(
        print(&event, PAWL_LINE_LOGFMT),
        "time=1970-01-01T00:00:00.000000Z level=warn event=CALL-FAILED msg=\"the store did not do "
        "what it was asked; it is asked again\" worker=w verb=renew code=DOWN rows=0 refused=2 "
        "took_s=1.234567 text=\"the \\\"server\\\" = away\"\n");
}

static void json_has_the_same_fields(void **state)
{
    (void)state;
    pawl_event event = sample();
    json_t *object = parse(print(&event, PAWL_LINE_JSON));
    assert_string_equal(text_of(object, "time"), "2026-01-02T03:04:05.678901Z");
    assert_string_equal(text_of(object, "level"), "warn");
    assert_string_equal(text_of(object, "event"), "JOB-ABORT");
    assert_string_equal(text_of(object, "worker"), "host/12/ab");
    assert_string_equal(text_of(object, "job"), "11111111-1111-1111-1111-111111111111");
    assert_string_equal(text_of(object, "queue"), "mail");
    assert_string_equal(text_of(object, "reason"), "beat_failed");
    assert_int_equal(json_integer_value(json_object_get(object, "attempt")), 3);
    assert_int_equal(json_integer_value(json_object_get(object, "lease_version")), 4);
    assert_null(json_object_get(object, "text"));
    assert_null(json_object_get(object, "code"));
    json_decref(object);
}

/* Each event prints in both formats, and a number that it counts is a number. */
static void every_event_prints(void **state)
{
    (void)state;
    for (int i = 0; i < PAWL_EVENT_KINDS; i++) {
        pawl_event event = {.kind = (pawl_event_kind)i, .worker = "w", .reason = ""};
        assert_non_null(strstr(print(&event, PAWL_LINE_LOGFMT), pawl_event_id(event.kind)));
        json_t *object = parse(print(&event, PAWL_LINE_JSON));
        assert_string_equal(text_of(object, "event"), pawl_event_id(event.kind));
        json_decref(object);
    }
}

/* Nothing gets into a line that could end it, colour a terminal, or is no UTF-8. */
static void controls_are_escaped(void **state)
{
    (void)state;
    pawl_event event = sample();
    const char *text = "a\nb\tc\x1b[31m\x7f \xc2\x9b \xff\xc3 \xe2\x82\xac \"\\";
    (void)pawli_text_copy(event.text, sizeof(event.text), text);
    assert_non_null(strstr(print(&event, PAWL_LINE_LOGFMT),
                           "text=\"a\\nb\\tc\\u001b[31m\\u007f \\u009b \\ufffd\\ufffd "
                           "\xe2\x82\xac \\\"\\\\\"\n"));
    json_t *object = parse(print(&event, PAWL_LINE_JSON));
    assert_string_equal(text_of(object, "text"),
                        "a\nb\tc\x1b[31m\x7f \xc2\x9b \xef\xbf\xbd\xef\xbf\xbd \xe2\x82\xac \"\\");
    json_decref(object);
}

/* Whatever bytes there are, and however little room: a whole line, or none; JSON that parses. */
static void lines_are_bounded(void **state)
{
    (void)state;
    struct pawli_seeded seeded = {.state = 7};
    pawl_random random = pawli_seeded_as_random(&seeded);
    char line[PAWL_EVENT_LINE_MAX + 1];
    for (int round = 0; round < 2000; round++) {
        pawl_event event = sample();
        event.kind = (pawl_event_kind)pawli_random_below(&random, PAWL_EVENT_KINDS);
        bool is_worst = pawli_random_below(&random, 4) == 0;
        char *const texts[] = {event.queue, event.subject, event.text};
        const size_t sizes[] = {sizeof(event.queue), sizeof(event.subject), sizeof(event.text)};
        for (size_t i = 0; i < 3; i++) {
            for (size_t at = 0; at + 1 < sizes[i]; at++)
                texts[i][at] = is_worst ? '\x01' : (char)pawli_random_below(&random, 256);
            texts[i][sizes[i] - 1] = '\0';
        }
        size_t size = is_worst ? PAWL_EVENT_LINE_MAX
                               : pawli_random_below(&random, PAWL_EVENT_LINE_MAX) + 1;
        pawl_line_format format = (pawl_line_format)pawli_random_below(&random, 2);
        memset(line, '#', sizeof(line));
        size_t len = pawl_event_line(&event, format, line, size);
        assert_true(len < size);
        for (size_t at = size; at < sizeof(line); at++)
            assert_int_equal(line[at], '#');
        if (len == 0)
            continue;
        assert_int_equal(line[len], '\0');
        assert_ptr_equal(memchr(line, '\n', len), line + len - 1);
        assert_int_equal(pawli_text_good(line, "\n"), len);
        if (format == PAWL_LINE_JSON)
            json_decref(parse(line));
    }
}

static void bad_arguments_print_nothing(void **state)
{
    (void)state;
    char line[64];
    pawl_event event = sample();
    assert_int_equal(pawl_event_line(NULL, PAWL_LINE_JSON, line, sizeof(line)), 0);
    assert_int_equal(pawl_event_line(&event, PAWL_LINE_JSON, NULL, sizeof(line)), 0);
    assert_int_equal(pawl_event_line(&event, PAWL_LINE_JSON, line, 0), 0);
    assert_int_equal(pawl_event_line(&event, (pawl_line_format)2, line, sizeof(line)), 0);
    event.kind = PAWL_EVENT_KINDS;
    assert_int_equal(pawl_event_line(&event, PAWL_LINE_JSON, line, sizeof(line)), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logfmt_has_every_field), cmocka_unit_test(json_has_the_same_fields),
        cmocka_unit_test(every_event_prints),     cmocka_unit_test(controls_are_escaped),
        cmocka_unit_test(lines_are_bounded),      cmocka_unit_test(bad_arguments_print_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

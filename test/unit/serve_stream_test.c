/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * serve_stream_test.c - proves what listeners are told, without anybody listening.
 * Owns:  nothing.
 * Never: waits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "serve/stream.h"

#include <stdio.h>
#include <string.h>

static struct pawli_stream *stream;
static struct pawli_cursor cursor;
static struct pawli_buffer text;

static int begin(void **state)
{
    (void)state;
    stream = pawli_stream_new(0xabc);
    cursor = (struct pawli_cursor){.next = 0};
    text = (struct pawli_buffer){0};
    pawli_grant_all(&cursor.grant);
    return stream != NULL ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    pawli_stream_free(stream);
    pawli_buffer_clear(&text);
    return 0;
}

static void tell(const char *queue, int count)
{
    struct pawli_change change = {.at = {1}, .state = "Ready"};
    (void)snprintf(change.queue, sizeof(change.queue), "%s", queue);
    for (int i = 0; i < count; i++)
        pawli_stream_tell(stream, &change);
}

/* How often a text is in what was read. */
static int read_and_count(const char *what, size_t bytes_max)
{
    int count = 0;
    text.len = 0;
    assert_true(pawli_stream_read(stream, &cursor, bytes_max, &text));
    assert_true(pawli_buffer_put(&text, "", 1));
    for (const char *at = (const char *)text.bytes; (at = strstr(at, what)) != NULL; at++)
        count++;
    return count;
}

static void each_is_told_once_in_order(void **state)
{
    (void)state;
    pawli_stream_seek(stream, NULL, &cursor);
    tell("q", 3);
    assert_int_equal(read_and_count("event: job\n", 100000), 3);
    assert_non_null(strstr((const char *)text.bytes, "id: 0000000000000abc-1\n"));
    assert_int_equal(read_and_count("event:", 100000), 0);
    tell("q", 100);
    int first = read_and_count("event: job\n", 1000);
    assert_true(first >= 1 && first < 100);
    assert_int_equal(first + read_and_count("event: job\n", 1000000), 100);
}

static void an_id_goes_on_behind_it(void **state)
{
    (void)state;
    tell("q", 5);
    pawli_stream_seek(stream, "0000000000000abc-3", &cursor);
    assert_false(cursor.is_behind);
    assert_int_equal(read_and_count("event: job\n", 100000), 2);
    static const char *const unknown[] = {"0000000000000abd-3", "0000000000000abc-6",
                                          "0000000000000abc-3x", "x", "0000000000000abc--1"};
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
        pawli_stream_seek(stream, unknown[i], &cursor);
        if (!cursor.is_behind)
            fail_msg("%s is taken as known", unknown[i]);
        assert_int_equal(read_and_count("event:", 100000), 0); /* from now on */
    }
}

/* Never is a gap passed over in silence. */
static void who_falls_behind_is_told(void **state)
{
    (void)state;
    pawli_stream_seek(stream, NULL, &cursor);
    tell("q", PAWLI_STREAM_WINDOW);
    struct pawli_cursor before = cursor;
    assert_int_equal(read_and_count("event: lost\n", (size_t)1 << 30), 0);
    cursor = before;
    tell("q", 1);
    assert_int_equal(read_and_count("event: lost\n", (size_t)1 << 30), 1);
    cursor = before;
    assert_int_equal(read_and_count("event: job\n", (size_t)1 << 30), PAWLI_STREAM_WINDOW);
    pawli_stream_seek(stream, "0000000000000abc-0", &cursor);
    assert_true(cursor.is_behind);
}

static void nobody_hears_of_queues_of_others(void **state)
{
    (void)state;
    pawli_stream_seek(stream, NULL, &cursor);
    struct pawli_cursor before = cursor;
    tell("q", 1);
    tell("r", 1);
    assert_int_equal(read_and_count("event: job\n", 100000), 2);
    cursor = before;
    (void)snprintf(cursor.queue, sizeof(cursor.queue), "r");
    assert_int_equal(read_and_count("event: job\n", 100000), 1);
    cursor = before;
    (void)snprintf(cursor.grant.queues, sizeof(cursor.grant.queues), "q");
    assert_int_equal(read_and_count("event: job\n", 100000), 1);
    assert_non_null(strstr((const char *)text.bytes, "\"queue\":\"q\""));
}

static struct pawli_change change_of(uint8_t job, const char *queue, const char *state)
{
    struct pawli_change change = {.job = {.bytes = {job, 7}}, .at = {1}};
    (void)snprintf(change.queue, sizeof(change.queue), "%s", queue);
    (void)snprintf(change.state, sizeof(change.state), "%s", state);
    return change;
}

static void tell_job(uint8_t job, const char *queue, const char *state)
{
    const struct pawli_change change = change_of(job, queue, state);
    pawli_stream_tell(stream, &change);
}

static void see(uint64_t mark, uint8_t job, const char *state)
{
    const struct pawli_change change = change_of(job, "q", state);
    pawli_stream_tell_seen(stream, mark, &change, 1);
}

/* Whoever settles names the job alone: its queue is that of what was told before, or is asked for.
 */
static void a_job_is_told_with_its_queue(void **state)
{
    (void)state;
    pawl_id ids[4];
    pawli_stream_seek(stream, NULL, &cursor);
    tell_job(1, "q", "InFlight");
    tell_job(1, "", "Succeeded");
    assert_int_equal(read_and_count("\"queue\":\"q\"", 100000), 2);
    tell_job(2, "", "Succeeded");
    assert_int_equal(read_and_count("event:", 100000), 0);
    assert_int_equal(pawli_stream_ask_after(stream, ids, 4), 1);
    assert_int_equal(ids[0].bytes[0], 2);
    assert_int_equal(pawli_stream_ask_after(stream, ids, 4), 0); /* once */
    see(pawli_stream_mark(stream), 2, "Succeeded");
    assert_int_equal(read_and_count("\"queue\":\"q\"", 100000), 1);
}

/* What is seen in the store is told where it is news, and never over something newer. */
static void what_is_seen_is_told_once(void **state)
{
    (void)state;
    pawli_stream_seek(stream, NULL, &cursor);
    see(0, 1, "Ready");
    see(pawli_stream_mark(stream), 1, "Ready");
    assert_int_equal(read_and_count("event: job\n", 100000), 1);
    tell_job(1, "q", "Ready"); /* by whoever made the change, a little later */
    assert_int_equal(read_and_count("event: job\n", 100000), 0);
    uint64_t mark = pawli_stream_mark(stream);
    tell_job(1, "q", "Failed");
    tell_job(1, "q", "Ready");
    see(mark, 1, "Failed"); /* was read before it was put back */
    assert_int_equal(read_and_count("event: job\n", 100000), 2);
    see(pawli_stream_mark(stream), 1, "InFlight");
    see(pawli_stream_mark(stream), 1, "Ready");
    assert_int_equal(read_and_count("event: job\n", 100000), 2);
}

/* Jobs that are live by what was told last are looked at again, in turn. */
static void live_jobs_are_asked_after_in_turn(void **state)
{
    (void)state;
    pawl_id ids[2];
    bool is_asked[6] = {false};
    pawli_stream_seek(stream, NULL, &cursor);
    assert_int_equal(pawli_stream_ask_after(stream, ids, 2), 0);
    for (uint8_t i = 0; i < 5; i++)
        tell_job(i, "q", i == 3 ? "Succeeded" : "Ready");
    tell_job(4, "q", "Failed");
    for (int round = 0; round < 2; round++) {
        assert_int_equal(pawli_stream_ask_after(stream, ids, 2), 2);
        is_asked[ids[0].bytes[0]] = is_asked[ids[1].bytes[0]] = true;
    }
    for (int i = 0; i < 6; i++)
        assert_int_equal(is_asked[i], i < 3);
    for (int i = 0; i < PAWLI_STREAM_WINDOW; i++) /* all of them are forgotten */
        tell_job(9, "q", "Succeeded");
    assert_int_equal(pawli_stream_ask_after(stream, ids, 2), 0);
    see(pawli_stream_mark(stream), 0, "Ready"); /* and would be news */
    assert_int_equal(pawli_stream_ask_after(stream, ids, 2), 1);
}

/* Where nobody has looked for what others did, who comes back is told. */
static void a_time_without_a_lookout_is_lost(void **state)
{
    (void)state;
    pawl_id ids[2];
    pawli_stream_seek(stream, NULL, &cursor);
    struct pawli_cursor before = cursor;
    pawli_stream_unwatch(stream);
    tell_job(1, "", "Ready"); /* nobody is there to be asked */
    assert_int_equal(pawli_stream_ask_after(stream, ids, 2), 0);
    assert_int_equal(read_and_count("event: lost\n", 100000), 1);
    cursor = before;
    (void)snprintf(cursor.queue, sizeof(cursor.queue), "r");
    (void)snprintf(cursor.grant.queues, sizeof(cursor.grant.queues), "r");
    assert_int_equal(read_and_count("event: lost\n", 100000), 1); /* whatever it listens to */
    pawli_stream_seek(stream, NULL, &cursor);
    pawli_stream_watch(stream); /* it was, by the seek */
    assert_int_equal(read_and_count("event:", 100000), 0);
    pawli_stream_unwatch(stream);
    pawli_stream_watch(stream);
    assert_int_equal(read_and_count("event: lost\n", 100000), 2);
    for (int i = 0; i <= PAWLI_STREAM_ASKS_MAX; i++)
        tell_job(2, "", "Ready");
    assert_int_equal(read_and_count("event: lost\n", 100000), 1); /* one too many */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_is_told_once_in_order, begin, end),
        cmocka_unit_test_setup_teardown(an_id_goes_on_behind_it, begin, end),
        cmocka_unit_test_setup_teardown(who_falls_behind_is_told, begin, end),
        cmocka_unit_test_setup_teardown(nobody_hears_of_queues_of_others, begin, end),
        cmocka_unit_test_setup_teardown(a_job_is_told_with_its_queue, begin, end),
        cmocka_unit_test_setup_teardown(what_is_seen_is_told_once, begin, end),
        cmocka_unit_test_setup_teardown(live_jobs_are_asked_after_in_turn, begin, end),
        cmocka_unit_test_setup_teardown(a_time_without_a_lookout_is_lost, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * store_stream_test.c - which hints of a stream of enqueues may be left out, by a clock that is
 * turned by hand.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "store/stream.h"

#include <stdio.h>
#include <string.h>

#define GAP_US   ((int64_t)PAWLI_STREAM_GAP_MS * 1000)
#define RENEW_US ((int64_t)PAWLI_STREAM_RENEW_MS * 1000)
#define START    INT64_C(1000000)

static struct pawli_stream stream;

static int begin(void **state)
{
    (void)state;
    pawli_stream_init(&stream);
    return 0;
}

static int end(void **state)
{
    (void)state;
    pawli_stream_clear(&stream);
    return 0;
}

static enum pawli_hint hint_at(const char *queue, int64_t us)
{
    return pawli_stream_hint(&stream, queue, (pawl_mono){us});
}

/* S1: the second of two that are close says that more may come, and stands for those that do. */
static void one_stands_for_those_that_follow(void **state)
{
    (void)state;
    assert_int_equal(hint_at("q", START), PAWLI_HINT_PLAIN);
    assert_int_equal(hint_at("q", START + 1), PAWLI_HINT_MORE);
    assert_int_equal(hint_at("q", START + 2), PAWLI_HINT_NONE);
    assert_int_equal(hint_at("q", START + RENEW_US), PAWLI_HINT_NONE);
    /* What was left out does not move the end of what one stands for. */
    assert_int_equal(hint_at("q", START + 1 + GAP_US), PAWLI_HINT_PLAIN);
    assert_int_equal(hint_at("q", START + 2 * GAP_US), PAWLI_HINT_MORE);
}

/* S4: the next one is decided on while the last one stands, and both have the same time. */
static void a_stream_renews_its_hint(void **state)
{
    (void)state;
    assert_true(RENEW_US < GAP_US);
    (void)hint_at("q", START);
    assert_int_equal(hint_at("q", START + 1), PAWLI_HINT_MORE);
    for (int64_t i = 0; i < 10; i++) {
        int64_t at = START + 1 + i * RENEW_US;
        assert_int_equal(hint_at("q", at + RENEW_US - 1), PAWLI_HINT_NONE);
        assert_int_equal(hint_at("q", at + RENEW_US), PAWLI_HINT_MORE);
        assert_int_equal(hint_at("q", at + RENEW_US), PAWLI_HINT_NONE);
    }
}

static bool stands_at(const char *queue, int64_t us)
{
    return pawli_stream_stands(&stream, queue, (pawl_mono){us});
}

/* S2: what is decided on stands for nothing until it is sent, and then from when it was decided. */
static void what_is_not_sent_stands_for_nothing(void **state)
{
    (void)state;
    assert_false(stands_at("q", START));
    (void)hint_at("q", START);
    assert_int_equal(hint_at("q", START + 1), PAWLI_HINT_MORE);
    assert_false(stands_at("q", START + 2));
    pawli_stream_sent(&stream, "q", (pawl_mono){START + 1});
    assert_true(stands_at("q", START + GAP_US));
    assert_false(stands_at("q", START + 1 + GAP_US));
    pawli_stream_sent(&stream, "q", (pawl_mono){START}); /* an older one, late */
    assert_true(stands_at("q", START + GAP_US));
    pawli_stream_sent(&stream, "other", (pawl_mono){START + 2});
    assert_false(stands_at("other", START + 2));
}

/* At a slower pace none is left out, and none asks for a second look. */
static void a_slow_pace_has_a_hint_each(void **state)
{
    (void)state;
    for (int64_t i = 0; i < 10; i++)
        assert_int_equal(hint_at("q", START + i * GAP_US), PAWLI_HINT_PLAIN);
}

static void no_queue_stands_for_another(void **state)
{
    (void)state;
    char queue[16];
    for (int i = 0; i < 4 * PAWLI_STREAM_SLOTS; i++) { /* some of them share a slot */
        (void)snprintf(queue, sizeof(queue), "q%d", i);
        assert_int_equal(hint_at(queue, START), PAWLI_HINT_PLAIN);
    }
    assert_int_equal(hint_at("a", START), PAWLI_HINT_PLAIN);
    assert_int_equal(hint_at("b", START), PAWLI_HINT_PLAIN);
    assert_int_equal(hint_at("a", START), PAWLI_HINT_MORE);
    assert_int_equal(hint_at("b", START), PAWLI_HINT_MORE);
}

static void the_longest_name_is_known_again(void **state)
{
    (void)state;
    char queue[PAWL_NAME_MAX + 1];
    memset(queue, 'x', PAWL_NAME_MAX);
    queue[PAWL_NAME_MAX] = '\0';
    assert_int_equal(hint_at(queue, START), PAWLI_HINT_PLAIN);
    assert_int_equal(hint_at(queue, START), PAWLI_HINT_MORE);
    queue[PAWL_NAME_MAX - 1] = '\0';
    assert_int_equal(hint_at(queue, START), PAWLI_HINT_PLAIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_stands_for_those_that_follow, begin, end),
        cmocka_unit_test_setup_teardown(a_stream_renews_its_hint, begin, end),
        cmocka_unit_test_setup_teardown(what_is_not_sent_stands_for_nothing, begin, end),
        cmocka_unit_test_setup_teardown(a_slow_pace_has_a_hint_each, begin, end),
        cmocka_unit_test_setup_teardown(no_queue_stands_for_another, begin, end),
        cmocka_unit_test_setup_teardown(the_longest_name_is_known_again, begin, end),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("store_stream", tests, NULL, NULL);
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * core_worklease_test.c - proves core/worklease.c by example: the six scenarios, every error,
 * memory and cost. The comparison with a naive model stands in core_worklease_model_test.c.
 * Owns:  nothing.
 * Never: looks into the record but through worklease_record.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>

#include "base/random.h"
#include "support/heap.h"
#include "support/worklease_rig.h"

#define MIB ((size_t)1024 * 1024)

/* ---------------------------------------------------------------- short forms */

static pawl_token token_of(uint64_t number)
{
    pawl_token token = {{0}};
    memcpy(token.bytes, &number, sizeof number);
    token.bytes[15] = 1; /* the last byte counts too, and no token is zero */
    return token;
}

static bool is_same_token(const pawl_token *a, const pawl_token *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

static struct rig *new_record(const char *domain, int64_t max_retries, int64_t backlog_max)
{
    struct rig *record = rig_new(domain, max_retries, backlog_max);
    assert_non_null(record);
    return record;
}

static struct rig *new_default(void)
{
    return new_record("A", PAWL_DEFAULT, PAWL_DEFAULT);
}

/* Try to acquire with a token made of `number`, at `number` microseconds. */
static pawl_code try_acquire(struct rig *record, int64_t offset, uint64_t number,
                             pawl_worklease_acquired *ret_acquired, pawl_err *err)
{
    struct rig_call args = {
        .offset = offset,
        .token = token_of(number),
        .now = {(int64_t)number},
    };
    return rig_try_acquire(record, &args, ret_acquired, err);
}

/* The same where it must be done: its result. */
static pawl_worklease_acquired acquire(struct rig *record, int64_t offset, uint64_t number)
{
    pawl_worklease_acquired acquired;
    memset(&acquired, 0xff, sizeof acquired);
    assert_int_equal(try_acquire(record, offset, number, &acquired, NULL), PAWL_OK);
    return acquired;
}

static pawl_worklease_ended succeed(struct rig *record, uint64_t number)
{
    pawl_token token = token_of(number);
    pawl_worklease_ended finished;
    memset(&finished, 0xff, sizeof finished);
    assert_int_equal(rig_succeed(record, &(struct rig_call){.token = token}, &finished, NULL),
                     PAWL_OK);
    return finished;
}

static pawl_worklease_ended fail_once(struct rig *record, uint64_t number)
{
    pawl_token token = token_of(number);
    pawl_worklease_ended finished;
    memset(&finished, 0xff, sizeof finished);
    assert_int_equal(rig_fail(record, &(struct rig_call){.token = token}, &finished, NULL),
                     PAWL_OK);
    return finished;
}

static void check_acquired(pawl_worklease_acquired acquired, pawl_worklease_got result,
                           uint64_t number)
{
    pawl_token none = {{0}};
    pawl_token token = number != 0 ? token_of(number) : none;
    assert_int_equal(acquired.got, result);
    assert_true(is_same_token(&acquired.token, &token));
}

static void check_hint(pawl_worklease_ended finished, pawl_worklease_end result,
                       int64_t next_offset)
{
    assert_int_equal(finished.end, result);
    assert_true(finished.next_offset == next_offset);
    assert_int_equal(finished.retry_count, 0);
}

static void check_retry(pawl_worklease_ended finished, int64_t retry_count)
{
    assert_int_equal(finished.end, PAWL_END_RETRY_SCHEDULED);
    assert_true(finished.retry_count == retry_count);
    assert_true(finished.next_offset == 0);
}

/* ---------------------------------------------------------------- the document's six scenarios */

static void scenario_1_happy_path(void **state) /* WL-ACQUIRE, WL-SUCCEED */
{
    (void)state;
    struct rig *record = new_default();
    check_acquired(acquire(record, 1, 10), PAWL_GOT_ACQUIRED, 10);
    struct rig_view view = rig_look(record);
    assert_true(view.is_leased && view.offset == 1 && view.acquired_at.us == 10);
    check_hint(succeed(record, 10), PAWL_END_NO_BACKLOG, 0);
    view = rig_look(record);
    assert_false(view.is_leased);
    assert_true(rig_is_processed(record, 1));
    assert_false(rig_is_failed(record, 1));
    rig_free(record);
}

/* Scenario 2 up to its hint: 1 has succeeded, 2 waits, nothing is leased. */
static struct rig *with_hint_at_2(void)
{
    struct rig *record = new_default();
    check_acquired(acquire(record, 1, 10), PAWL_GOT_ACQUIRED, 10);
    check_acquired(acquire(record, 2, 11), PAWL_GOT_ENQUEUED, 0);
    check_hint(succeed(record, 10), PAWL_END_NEXT_HINT, 2);
    return record;
}

static void scenario_2_queue_then_hand_off(void **state) /* WL-ACQUIRE, WL-SUCCEED, WL-FIFO */
{
    (void)state;
    struct rig *record = with_hint_at_2();
    struct rig_view view = rig_look(record);
    assert_false(view.is_leased); /* no hand-off of its own accord */
    assert_int_equal(view.backlog_count, 1);
    assert_true(view.backlog_head == 2); /* hinted at, not removed */
    check_acquired(acquire(record, 2, 12), PAWL_GOT_ACQUIRED, 12);
    view = rig_look(record);
    assert_true(view.is_leased && view.offset == 2);
    assert_int_equal(view.backlog_count, 0);
    rig_free(record);
}

static void scenario_3_out_of_order(void **state) /* WL-ORDER */
{
    (void)state;
    struct rig *record = with_hint_at_2();
    pawl_worklease_acquired acquired;
    pawl_err err;
    assert_int_equal(try_acquire(record, 3, 13, &acquired, &err), PAWL_WL_ORDER);
    assert_int_equal(err.code, PAWL_WL_ORDER);
    assert_non_null(strstr(err.text, "expected offset 2"));
    assert_non_null(strstr(err.text, "3 was given"));
    assert_non_null(strstr(err.text, "domain A"));
    check_acquired(acquire(record, 2, 14), PAWL_GOT_ACQUIRED, 14);
    check_hint(succeed(record, 14), PAWL_END_NO_BACKLOG, 0); /* 3 was not queued by its refusal */
    rig_free(record);
}

static void scenario_4_retry(void **state) /* WL-FAIL */
{
    (void)state;
    struct rig *record = new_default();
    check_acquired(acquire(record, 1, 10), PAWL_GOT_ACQUIRED, 10);
    for (int64_t n = 1; n <= PAWL_WORKLEASE_RETRIES; n++) {
        check_retry(fail_once(record, 10), n);
        struct rig_view view = rig_look(record);
        assert_true(view.is_leased && view.offset == 1 && view.retry_count == n);
        assert_true(view.acquired_at.us == 10);
        check_acquired(acquire(record, 1, 90), PAWL_GOT_ALREADY_ACQUIRED, 10); /* the same token */
    }
    rig_free(record);
}

static void scenario_5_final_give_up(void **state) /* WL-FAIL */
{
    (void)state;
    struct rig *record = new_default();
    for (int is_backlogged = 0; is_backlogged <= 1; is_backlogged++) {
        int64_t offset = 1 + is_backlogged;
        check_acquired(acquire(record, offset, 10), PAWL_GOT_ACQUIRED, 10);
        if (is_backlogged)
            check_acquired(acquire(record, 7, 11), PAWL_GOT_ENQUEUED, 0);
        for (int64_t n = 1; n <= 3; n++)
            check_retry(fail_once(record, 10), n);
        if (is_backlogged)
            check_hint(fail_once(record, 10), PAWL_END_GIVE_UP_NEXT_HINT, 7);
        else
            check_hint(fail_once(record, 10), PAWL_END_GIVE_UP_NO_BACKLOG, 0);
        assert_false(rig_look(record).is_leased);
        assert_true(rig_is_failed(record, offset));
        assert_false(rig_is_processed(record, offset)); /* the sets are kept apart */
    }
    assert_int_equal(rig_look(record).backlog_count, 1);
    /* The next offset begins to count anew. */
    check_acquired(acquire(record, 7, 12), PAWL_GOT_ACQUIRED, 12);
    assert_true(rig_look(record).retry_count == 0);
    check_retry(fail_once(record, 12), 1);
    rig_free(record);
}

static void scenario_6_idempotence(void **state) /* WL-IDEMPOTENT */
{
    (void)state;
    struct rig *record = new_record("A", 0, PAWL_DEFAULT);
    check_acquired(acquire(record, 1, 10), PAWL_GOT_ACQUIRED, 10);
    check_hint(succeed(record, 10), PAWL_END_NO_BACKLOG, 0);
    check_acquired(acquire(record, 2, 11), PAWL_GOT_ACQUIRED, 11);
    check_hint(fail_once(record, 11), PAWL_END_GIVE_UP_NO_BACKLOG, 0);
    for (int round = 0; round < 2; round++) { /* without a lease, then under one */
        check_acquired(acquire(record, 1, 20), PAWL_GOT_ALREADY_PROCESSED, 0);
        check_acquired(acquire(record, 2, 21), PAWL_GOT_ALREADY_FAILED, 0);
        assert_int_equal(rig_look(record).backlog_count, 0);
        if (round == 0)
            check_acquired(acquire(record, 3, 22), PAWL_GOT_ACQUIRED, 22);
    }
    /* Nor do they become an ordering error where others wait: terminal is looked at first. */
    check_acquired(acquire(record, 4, 23), PAWL_GOT_ENQUEUED, 0);
    check_hint(succeed(record, 22), PAWL_END_NEXT_HINT, 4);
    check_acquired(acquire(record, 1, 24), PAWL_GOT_ALREADY_PROCESSED, 0);
    check_acquired(acquire(record, 2, 25), PAWL_GOT_ALREADY_FAILED, 0);
    rig_free(record);
}

/* ---------------------------------------------------------------- every error */

/* WL-ORDER: the two numbers stay readable however long the domain's name is. */
static void order_error_names_everything(void **state)
{
    (void)state;
    char name[PAWL_WORKLEASE_DOMAIN_MAX + 1];
    memset(name, 'd', sizeof name);
    name[sizeof name - 1] = '\0';
    struct rig *record = new_record(name, PAWL_DEFAULT, PAWL_DEFAULT);
    (void)acquire(record, 0, 1);
    check_acquired(acquire(record, INT64_MIN, 2), PAWL_GOT_ENQUEUED, 0);
    check_hint(succeed(record, 1), PAWL_END_NEXT_HINT, INT64_MIN);
    pawl_worklease_acquired acquired;
    memset(&acquired, 0xee, sizeof acquired);
    pawl_worklease_acquired untouched = acquired;
    pawl_err err;
    assert_int_equal(try_acquire(record, INT64_MIN + 1, 3, &acquired, &err), PAWL_WL_ORDER);
    assert_memory_equal(&acquired, &untouched, sizeof acquired);
    assert_non_null(strstr(err.text, "expected offset -9223372036854775808"));
    assert_non_null(strstr(err.text, "-9223372036854775807 was given"));
    assert_non_null(strstr(err.text, "domain dddddddddddddddddddddddddddddddd"));
    assert_true(strlen(err.text) < sizeof err.text);
    rig_free(record);
}

static void finishing_without_a_lease(void **state) /* WL-NO-LEASE */
{
    (void)state;
    struct rig *record = new_default();
    pawl_token token = token_of(10);
    pawl_worklease_ended finished;
    memset(&finished, 0xee, sizeof finished);
    pawl_worklease_ended untouched = finished;
    for (int round = 0; round < 2; round++) { /* before the first lease, and after its end */
        pawl_err err;
        assert_int_equal(rig_succeed(record, &(struct rig_call){.token = token}, &finished, &err),
                         PAWL_WL_NO_LEASE);
        assert_int_equal(err.code, PAWL_WL_NO_LEASE);
        assert_non_null(strstr(err.text, "domain A"));
        assert_int_equal(rig_fail(record, &(struct rig_call){.token = token}, &finished, &err),
                         PAWL_WL_NO_LEASE);
        assert_int_equal(rig_fail(record, &(struct rig_call){.token = token}, &finished, NULL),
                         PAWL_WL_NO_LEASE);
        assert_memory_equal(&finished, &untouched, sizeof finished);
        if (round == 0) {
            (void)acquire(record, 1, 10);
            (void)succeed(record, 10);
        }
    }
    /* The zeros that an ended lease leaves behind are no token. */
    pawl_token zero = {{0}};
    assert_int_equal(rig_succeed(record, &(struct rig_call){.token = zero}, &finished, NULL),
                     PAWL_WL_NO_LEASE);
    rig_free(record);
}

static void finishing_with_another_token(void **state) /* WL-FENCE */
{
    (void)state;
    struct rig *record = new_default();
    (void)acquire(record, 1, 10);
    pawl_worklease_ended finished;
    memset(&finished, 0xee, sizeof finished);
    pawl_worklease_ended untouched = finished;
    for (size_t i = 0; i < sizeof(pawl_token); i++) { /* each byte counts */
        pawl_token token = token_of(10);
        token.bytes[i] ^= 0x80;
        pawl_err err;
        assert_int_equal(rig_succeed(record, &(struct rig_call){.token = token}, &finished, &err),
                         PAWL_WL_TOKEN);
        assert_int_equal(err.code, PAWL_WL_TOKEN);
        assert_non_null(strstr(err.text, "domain A"));
        assert_int_equal(rig_fail(record, &(struct rig_call){.token = token}, &finished, &err),
                         PAWL_WL_TOKEN);
        assert_memory_equal(&finished, &untouched, sizeof finished);
    }
    struct rig_view view = rig_look(record);
    assert_true(view.is_leased && view.retry_count == 0);

    /* The token of the lease before is as wrong as any. */
    (void)succeed(record, 10);
    (void)acquire(record, 2, 11);
    pawl_token late = token_of(10);
    assert_int_equal(rig_succeed(record, &(struct rig_call){.token = late}, &finished, NULL),
                     PAWL_WL_TOKEN);
    assert_false(rig_is_processed(record, 2));
    rig_free(record);
}

/* The bound, named; what needs no room is answered all the same. */
static void full_backlog_refuses_new_offsets_only(void **state)
{
    (void)state;
    struct rig *record = new_record("A", PAWL_DEFAULT, 2);
    (void)acquire(record, 1, 10);
    (void)succeed(record, 10);
    (void)acquire(record, 2, 11);
    check_acquired(acquire(record, 3, 12), PAWL_GOT_ENQUEUED, 0);
    check_acquired(acquire(record, 4, 12), PAWL_GOT_ENQUEUED, 0);
    pawl_worklease_acquired acquired;
    memset(&acquired, 0xee, sizeof acquired);
    pawl_worklease_acquired untouched = acquired;
    pawl_err err;
    assert_int_equal(try_acquire(record, 5, 13, &acquired, &err), PAWL_WL_BACKLOG_FULL);
    assert_int_equal(err.code, PAWL_WL_BACKLOG_FULL);
    assert_non_null(strstr(err.text, "2 offsets are allowed"));
    assert_non_null(strstr(err.text, "domain A"));
    assert_memory_equal(&acquired, &untouched, sizeof acquired);

    check_acquired(acquire(record, 3, 14), PAWL_GOT_ENQUEUED, 0); /* it waits already */
    check_acquired(acquire(record, 4, 14), PAWL_GOT_ENQUEUED, 0);
    check_acquired(acquire(record, 2, 14), PAWL_GOT_ALREADY_ACQUIRED, 11);
    check_acquired(acquire(record, 1, 14), PAWL_GOT_ALREADY_PROCESSED, 0);
    assert_int_equal(rig_look(record).backlog_count, 2);
    assert_true(pawli_worklease_backlog_at(record->record, 0) == 3);
    assert_true(pawli_worklease_backlog_at(record->record, 1) == 4);

    (void)succeed(record, 11);
    check_acquired(acquire(record, 3, 15), PAWL_GOT_ACQUIRED, 15); /* makes room */
    check_acquired(acquire(record, 5, 16), PAWL_GOT_ENQUEUED, 0);
    rig_free(record);
}

/* ---------------------------------------------------------------- memory and cost */

static void process(struct rig *record, int64_t offset)
{
    struct rig_call args = {.offset = offset, .token = token_of((uint64_t)offset)};
    pawl_worklease_acquired acquired;
    pawl_worklease_ended finished;
    if (rig_try_acquire(record, &args, &acquired, NULL) != PAWL_OK ||
        acquired.got != PAWL_GOT_ACQUIRED ||
        rig_succeed(record, &(struct rig_call){.token = acquired.token}, &finished, NULL) !=
            PAWL_OK)
        fail_msg("offset %" PRId64 " was not processed", offset);
}

static void ten_million_contiguous_cost_less_than_4_kib(void **state) /* WL-MEMORY */
{
    (void)state;
    const int64_t count = HEAP_IS_COUNTED ? 10000000 : 1000000; /* sanitizers are slow */
    struct rig *record = new_record("A", 0, PAWL_DEFAULT);
    for (int64_t offset = 0; offset < count; offset++)
        process(record, offset);
    for (int64_t offset = count; offset < count + 1000; offset++) { /* and some that failed */
        (void)acquire(record, offset, 1);
        (void)fail_once(record, 1);
    }
    struct rig_view view = rig_look(record);
    assert_int_equal(view.processed_intervals, 1);
    assert_int_equal(view.failed_intervals, 1);
    assert_true(view.memory_bytes < 4096);
    assert_true(rig_is_processed(record, 0));
    assert_true(rig_is_processed(record, count - 1));
    assert_false(rig_is_processed(record, count));
    assert_true(rig_is_failed(record, count));
    rig_free(record);
}

/* WL-MEMORY: memory_bytes says what the heap says. Many records, so that blocks which the allocator
 * keeps at hand and counts as used do not matter. */
static void memory_bytes_is_what_the_heap_gives(void **state)
{
    (void)state;
    enum {
        RECORDS = 500
    };
    struct rig *records[RECORDS];
    size_t bytes = 0;
    size_t heap_before = heap_bytes();
    for (size_t i = 0; i < RECORDS; i++) {
        records[i] = new_record("A", 0, PAWL_DEFAULT);
        for (int64_t offset = 0; offset < 100; offset += 2)
            process(records[i], offset); /* two chunks */
        (void)acquire(records[i], 101, 1);
        (void)fail_once(records[i], 1); /* one more */
        (void)acquire(records[i], 1, 1);
        for (int64_t offset = 1000; offset < 1020; offset++)
            check_acquired(acquire(records[i], offset, 1), PAWL_GOT_ENQUEUED, 0);
        bytes += rig_look(records[i]).memory_bytes;
    }
    size_t heap_used = heap_bytes() - heap_before;
    assert_true(!HEAP_IS_COUNTED || heap_used > bytes - bytes / 20);
    assert_true(heap_used < bytes + bytes / 4);
    for (size_t i = 0; i < RECORDS; i++)
        rig_free(records[i]);
}

static void million_in_random_order_stay_below_32_mib(void **state) /* WL-MEMORY */
{
    (void)state;
    const size_t count = HEAP_IS_COUNTED ? 1000000 : 200000; /* sanitizers are slow */
    int64_t *order = malloc(count * sizeof *order);
    assert_non_null(order);
    struct pawli_seeded seeded = {.state = 10};
    pawl_random random = pawli_seeded_as_random(&seeded);
    for (size_t i = 0; i < count; i++) { /* a shuffle as it fills */
        size_t j = (size_t)pawli_random_below(&random, i + 1);
        order[i] = order[j];
        order[j] = (int64_t)i;
    }
    size_t heap_before = heap_bytes();
    struct rig *record = new_default();
    size_t intervals_most = 0;
    for (size_t i = 0; i < count; i++) {
        process(record, order[i]);
        if (i % 1000 != 0)
            continue;
        struct rig_view view = rig_look(record);
        assert_true(view.memory_bytes < 32 * MIB);
        assert_true(heap_bytes() - heap_before < 32 * MIB);
        if (view.processed_intervals > intervals_most)
            intervals_most = view.processed_intervals;
    }
    assert_true(intervals_most > count / 5); /* the gaps were open */
    struct rig_view view = rig_look(record);
    assert_int_equal(view.processed_intervals, 1);
    assert_true(view.memory_bytes < 4096);
    rig_free(record);
    free(order);
}

/* The longest backlog by default. Looked through from end to end, it would take this many calls
 * minutes; the bound is generous to slow machines, and on the processor's time only. */
static void long_backlog_is_not_searched_linearly(void **state) /* WL-FIFO */
{
    (void)state;
    enum {
        COUNT = PAWL_WORKLEASE_BACKLOG_MAX,
        ROUNDS = 5
    };
    clock_t begin = clock();
    struct rig *record = new_default();
    (void)acquire(record, 0, 1);
    for (int round = 0; round < ROUNDS; round++) /* after the first, all of them wait already */
        for (int64_t i = 1; i <= COUNT; i++)
            check_acquired(acquire(record, i * 7919 % 1000003, 2), PAWL_GOT_ENQUEUED, 0);
    assert_int_equal(rig_look(record).backlog_count, COUNT);
    assert_true(rig_look(record).memory_bytes < 8 * MIB);
    pawl_worklease_acquired acquired;
    pawl_err err;
    assert_int_equal(try_acquire(record, -1, 3, &acquired, &err), PAWL_WL_BACKLOG_FULL);
    assert_non_null(strstr(err.text, "100000"));

    for (int64_t i = 1; i <= COUNT; i++) {
        check_hint(succeed(record, 1), PAWL_END_NEXT_HINT, i * 7919 % 1000003);
        check_acquired(acquire(record, i * 7919 % 1000003, 1), PAWL_GOT_ACQUIRED, 1);
    }
    check_hint(succeed(record, 1), PAWL_END_NO_BACKLOG, 0);
    rig_free(record);
    assert_true((clock() - begin) / CLOCKS_PER_SEC < 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scenario_1_happy_path),
        cmocka_unit_test(scenario_2_queue_then_hand_off),
        cmocka_unit_test(scenario_3_out_of_order),
        cmocka_unit_test(scenario_4_retry),
        cmocka_unit_test(scenario_5_final_give_up),
        cmocka_unit_test(scenario_6_idempotence),
        cmocka_unit_test(order_error_names_everything),
        cmocka_unit_test(finishing_without_a_lease),
        cmocka_unit_test(finishing_with_another_token),
        cmocka_unit_test(full_backlog_refuses_new_offsets_only),
        cmocka_unit_test(ten_million_contiguous_cost_less_than_4_kib),
        cmocka_unit_test(memory_bytes_is_what_the_heap_gives),
        cmocka_unit_test(million_in_random_order_stay_below_32_mib),
        cmocka_unit_test(long_backlog_is_not_searched_linearly),
    };
    return cmocka_run_group_tests_name("core_worklease", tests, NULL, NULL);
}

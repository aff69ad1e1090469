/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * core_backlog_test.c - proves core/backlog.c against a plain array.
 * Owns:  the array.
 * Never: looks into the ring or the tree.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"
#include "core/backlog.h"
#include "support/alloc_fail.h"

#define OFFSETS 200

/* The offset of an index: the ends of the range are among them. */
static int64_t offset_of(size_t i)
{
    if (i == 0)
        return INT64_MIN;
    if (i == 1)
        return INT64_MAX;
    return (int64_t)i - OFFSETS / 2;
}

struct plain {
    int64_t offsets[OFFSETS];
    size_t count;
};

static bool plain_has(const struct plain *plain, int64_t offset)
{
    for (size_t i = 0; i < plain->count; i++)
        if (plain->offsets[i] == offset)
            return true;
    return false;
}

static void check_equal(const struct pawli_backlog *backlog, const struct plain *plain)
{
    assert_int_equal(pawli_backlog_count(backlog), plain->count);
    for (size_t i = 0; i < plain->count; i++)
        assert_true(pawli_backlog_at(backlog, i) == plain->offsets[i]);
    for (size_t i = 0; i < OFFSETS; i++)
        assert_int_equal(pawli_backlog_has(backlog, offset_of(i)), plain_has(plain, offset_of(i)));
    assert_int_equal(pawli_backlog_bytes(backlog) == 0, plain->count == 0);
}

/* Push one after every allocation that it makes has failed once, without a trace. */
static size_t push_with_failures(struct pawli_backlog *backlog, const struct plain *plain,
                                 int64_t offset)
{
    for (uint64_t nth = 1;; nth++) {
        size_t bytes = pawli_backlog_bytes(backlog);
        alloc_fail_nth(nth);
        pawl_code code = pawli_backlog_push(backlog, offset);
        if (!alloc_fail_end()) {
            assert_int_equal(code, PAWL_OK);
            return (size_t)nth - 1;
        }
        assert_int_equal(code, PAWL_NO_MEMORY);
        assert_int_equal(pawli_backlog_bytes(backlog), bytes);
        check_equal(backlog, plain);
    }
}

/* WL-FIFO: long enough for the ring to grow, to wrap and to grow while it is wrapped. */
static void equals_an_array(void **state)
{
    (void)state;
    struct pawli_seeded seeded = {.state = 1};
    pawl_random random = pawli_seeded_as_random(&seeded);
    struct pawli_backlog backlog;
    pawli_backlog_init(&backlog);
    struct plain plain = {.count = 0};
    size_t failures_most = 0;
    check_equal(&backlog, &plain);

    for (int step = 0; step < 20000; step++) {
        /* Phases that fill and phases that drain, by turns. */
        bool is_filling = step / 500 % 2 == 0;
        int64_t offset = offset_of((size_t)pawli_random_below(&random, OFFSETS));
        bool is_push = pawli_random_below(&random, 4) < (is_filling ? 3 : 1);
        if (is_push && !plain_has(&plain, offset)) {
            size_t failures = push_with_failures(&backlog, &plain, offset);
            failures_most = failures > failures_most ? failures : failures_most;
            plain.offsets[plain.count++] = offset;
        } else if (!is_push && plain.count > 0) {
            alloc_fail_nth(1);
            pawli_backlog_pop(&backlog);
            assert_false(alloc_fail_end()); /* never allocates */
            plain.count--;
            memmove(plain.offsets, plain.offsets + 1, plain.count * sizeof plain.offsets[0]);
        }
        check_equal(&backlog, &plain);
    }
    assert_int_equal(failures_most, 2); /* an entry, and a ring that has to grow */
    pawli_backlog_clear(&backlog);
    plain.count = 0;
    check_equal(&backlog, &plain);
    pawli_backlog_clear(&backlog);
    pawli_backlog_clear(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_an_array),
    };
    return cmocka_run_group_tests_name("core_backlog", tests, NULL, NULL);
}

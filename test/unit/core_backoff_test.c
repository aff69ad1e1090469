/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * core_backoff_test.c - proves core/backoff.c: Q-BACKOFF, exact at the edges and even in between.
 * Owns:  nothing.
 * Never: draws from a source without a fixed seed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"
#include "core/backoff.h"
#include "support/chi_square.h"

/* Q-BACKOFF: min(base x 2^retries, max). */
static void the_ceiling_is_exact(void **state)
{
    (void)state;
    static const struct {
        int64_t base_ms, max_ms, retries, ceiling_ms;
    } cases[] = {
        {500, 30000, 0, 500}, /* the first retry: nothing is doubled yet */
        {500, 30000, 1, 1000},
        {500, 30000, 2, 2000},
        {500, 30000, 5, 16000},
        {500, 30000, 6, 30000}, /* 32,000 is cut */
        {500, 30000, 7, 30000},
        {500, 32000, 6, 32000}, /* equal to the maximum */
        {500, 31999, 6, 31999},
        {500, 32001, 6, 32000},
        {40000, 30000, 0, 30000}, /* base above the maximum */
        {30000, 30000, 0, 30000},
        {30001, 30000, 0, 30000},
        {1, 1, 0, 1},
        {1, 1, 1, 1},
        /* where a careless shift overflows */
        {1, INT64_MAX, 62, INT64_C(1) << 62},
        {1, INT64_MAX, 63, INT64_MAX},
        {1, INT64_MAX, 64, INT64_MAX},
        {1, INT64_MAX, 65, INT64_MAX},
        {1, INT64_MAX, INT64_MAX, INT64_MAX},
        {3, INT64_MAX, 61, INT64_C(3) << 61},
        {3, INT64_MAX, 62, INT64_MAX},
        {INT64_MAX, INT64_MAX, 0, INT64_MAX},
        {INT64_MAX, INT64_MAX, 1, INT64_MAX},
        {INT64_MAX / 2, INT64_MAX, 1, INT64_MAX - 1},
        {INT64_MAX / 2 + 1, INT64_MAX, 1, INT64_MAX},
        {500, 30000, INT64_C(1) << 32, 30000}, /* not a shift by 0 */
        {500, 30000, PAWL_RETRIES_MAX, 30000},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_true(pawli_backoff_ceiling_ms(cases[i].base_ms, cases[i].max_ms, cases[i].retries) ==
                    cases[i].ceiling_ms);
}

/* Q-BACKOFF: every whole millisecond from 0 to the ceiling, both included, equally likely. */
static void the_jitter_is_full_and_even(void **state)
{
    (void)state;
    struct pawli_seeded seeded = {7};
    pawl_random random = pawli_seeded_as_random(&seeded);
    uint64_t counts[9] = {0}; /* 2 x 2^2 = 8 is the ceiling */
    for (int i = 0; i < 90000; i++) {
        int64_t delay_ms = pawli_backoff_ms(2, 100, 2, &random);
        assert_in_range(delay_ms, 0, 8);
        counts[delay_ms]++;
    }
    assert_true(counts[0] > 0);
    assert_true(counts[8] > 0);
    assert_true(chi_square_is_even(counts, 9));
}

/* The defaults at their cap, in 100 cells: 300 ms each and the ceiling itself in the last. */
static void the_jitter_is_even_at_the_cap(void **state)
{
    (void)state;
    struct pawli_seeded seeded = {8};
    pawl_random random = pawli_seeded_as_random(&seeded);
    uint64_t counts[100] = {0};
    for (int i = 0; i < 200000; i++) {
        int64_t delay_ms = pawli_backoff_ms(500, 29999, 20, &random);
        assert_in_range(delay_ms, 0, 29999);
        counts[delay_ms / 300]++;
    }
    assert_true(chi_square_is_even(counts, 100));
}

static uint64_t fixed_next(void *user)
{
    return *(const uint64_t *)user;
}

static int64_t delay_of(uint64_t drawn, int64_t base_ms, int64_t max_ms, int64_t retries)
{
    return pawli_backoff_ms(base_ms, max_ms, retries, &(pawl_random){fixed_next, &drawn});
}

static void both_ends_can_be_drawn(void **state)
{
    (void)state;
    assert_true(delay_of(0, 500, 30000, 0) == 0);
    assert_true(delay_of(500, 500, 30000, 0) == 500);
    assert_true(delay_of(501, 500, 30000, 0) == 0);
    assert_true(delay_of(INT64_MAX, 1, INT64_MAX, 63) == INT64_MAX);
    assert_true(delay_of((uint64_t)INT64_MAX + 1, 1, INT64_MAX, 63) == 0);
    assert_true(delay_of(1, 1, 1, 0) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_ceiling_is_exact),
        cmocka_unit_test(the_jitter_is_full_and_even),
        cmocka_unit_test(the_jitter_is_even_at_the_cap),
        cmocka_unit_test(both_ends_can_be_drawn),
    };
    return cmocka_run_group_tests_name("core_backoff", tests, NULL, NULL);
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * core_intervals_test.c - proves core/intervals.c against a table of flags.
 * Owns:  the flags: one for each value that a test may add.
 * Never: looks into the chunks; what they must hold shows in has, count and bytes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"
#include "core/intervals.h"
#include "support/alloc_fail.h"
#include "support/heap.h"

#define MIB             ((size_t)1024 * 1024)
#define CHUNK_BYTES_MAX 1024 /* what a set of one interval may cost */

/* ---------------------------------------------------------------- the table of flags */

/* The values values[0 .. count), rising, and which of them are in the set. */
struct flags {
    const int64_t *values;
    bool *is_in;
    size_t count;
};

static void check_equal(const struct pawli_intervals *set, const struct flags *flags)
{
    size_t runs = 0;
    for (size_t i = 0; i < flags->count; i++) {
        assert_int_equal(pawli_intervals_has(set, flags->values[i]), flags->is_in[i]);
        bool is_joined = i > 0 && flags->is_in[i - 1] &&
                         flags->values[i - 1] + 1 == flags->values[i];
        runs += flags->is_in[i] && !is_joined;
    }
    assert_int_equal(pawli_intervals_count(set), runs);
}

static void fill_rising(int64_t *values, size_t count, int64_t from, int64_t step)
{
    for (size_t i = 0; i < count; i++)
        values[i] = from + (int64_t)i * step;
}

static void shuffle(int64_t *values, size_t count, const pawl_random *random)
{
    for (size_t i = count; i > 1; i--) {
        size_t j = (size_t)pawli_random_below(random, i);
        int64_t held = values[i - 1];
        values[i - 1] = values[j];
        values[j] = held;
    }
}

static int64_t *new_values(size_t count)
{
    int64_t *values = malloc(count * sizeof *values);
    assert_non_null(values);
    return values;
}

/* ---------------------------------------------------------------- what a set is */

static void empty_set_has_nothing_and_costs_nothing(void **state)
{
    (void)state;
    struct pawli_intervals set;
    pawli_intervals_init(&set);
    assert_false(pawli_intervals_has(&set, 0));
    assert_false(pawli_intervals_has(&set, INT64_MIN));
    assert_false(pawli_intervals_has(&set, INT64_MAX));
    assert_int_equal(pawli_intervals_count(&set), 0);
    assert_int_equal(pawli_intervals_bytes(&set), 0);
    pawli_intervals_clear(&set);
    pawli_intervals_clear(NULL);
}

static void closing_a_gap_makes_one_interval(void **state)
{
    (void)state;
    struct pawli_intervals set;
    pawli_intervals_init(&set);
    assert_int_equal(pawli_intervals_add(&set, 10), PAWL_OK);
    assert_int_equal(pawli_intervals_add(&set, 12), PAWL_OK);
    assert_int_equal(pawli_intervals_count(&set), 2);
    assert_false(pawli_intervals_has(&set, 11));
    assert_int_equal(pawli_intervals_add(&set, 11), PAWL_OK);
    assert_int_equal(pawli_intervals_count(&set), 1);
    assert_int_equal(pawli_intervals_add(&set, 9), PAWL_OK);
    assert_int_equal(pawli_intervals_add(&set, 13), PAWL_OK);
    assert_int_equal(pawli_intervals_count(&set), 1);
    for (int64_t value = 8; value <= 14; value++)
        assert_int_equal(pawli_intervals_has(&set, value), value >= 9 && value <= 13);

    /* Once more changes nothing. */
    for (int64_t value = 9; value <= 13; value++)
        assert_int_equal(pawli_intervals_add(&set, value), PAWL_OK);
    assert_int_equal(pawli_intervals_count(&set), 1);
    pawli_intervals_clear(&set);
    assert_int_equal(pawli_intervals_count(&set), 0);
    assert_false(pawli_intervals_has(&set, 10));
}

/* The ends of the range neither overflow nor meet each other. */
static void takes_the_smallest_and_the_largest(void **state)
{
    (void)state;
    struct pawli_intervals set;
    pawli_intervals_init(&set);
    assert_int_equal(pawli_intervals_add(&set, INT64_MAX), PAWL_OK);
    assert_int_equal(pawli_intervals_add(&set, INT64_MIN), PAWL_OK);
    assert_int_equal(pawli_intervals_count(&set), 2);
    assert_int_equal(pawli_intervals_add(&set, INT64_MIN), PAWL_OK);
    assert_int_equal(pawli_intervals_add(&set, INT64_MAX), PAWL_OK);
    assert_int_equal(pawli_intervals_count(&set), 2);
    assert_int_equal(pawli_intervals_add(&set, INT64_MAX - 1), PAWL_OK);
    assert_int_equal(pawli_intervals_add(&set, INT64_MIN + 1), PAWL_OK);
    assert_int_equal(pawli_intervals_count(&set), 2);
    assert_true(pawli_intervals_has(&set, INT64_MIN));
    assert_true(pawli_intervals_has(&set, INT64_MIN + 1));
    assert_false(pawli_intervals_has(&set, INT64_MIN + 2));
    assert_false(pawli_intervals_has(&set, -1));
    assert_false(pawli_intervals_has(&set, 0));
    assert_false(pawli_intervals_has(&set, INT64_MAX - 2));
    assert_true(pawli_intervals_has(&set, INT64_MAX - 1));
    assert_true(pawli_intervals_has(&set, INT64_MAX));
    pawli_intervals_clear(&set);
}

/* ---------------------------------------------------------------- against the flags */

/* Runs of neighbours at both ends of the range and around 0, so that merges meet every edge. */
#define WINDOW 30
static void equals_the_flags_at_every_edge(void **state)
{
    (void)state;
    int64_t values[3 * WINDOW];
    fill_rising(values, WINDOW, INT64_MIN, 1);
    fill_rising(values + WINDOW, WINDOW, -WINDOW / 2, 1);
    fill_rising(values + 2 * WINDOW, WINDOW, INT64_MAX - WINDOW + 1, 1);
    bool is_in[3 * WINDOW];
    struct flags flags = {.values = values, .is_in = is_in, .count = 3 * WINDOW};
    struct pawli_seeded seeded = {.state = 1};
    pawl_random random = pawli_seeded_as_random(&seeded);

    for (int round = 0; round < 200; round++) {
        memset(is_in, 0, sizeof is_in);
        struct pawli_intervals set;
        pawli_intervals_init(&set);
        for (int step = 0; step < 200; step++) {
            size_t i = (size_t)pawli_random_below(&random, flags.count);
            assert_int_equal(pawli_intervals_add(&set, values[i]), PAWL_OK);
            is_in[i] = true;
            check_equal(&set, &flags);
        }
        pawli_intervals_clear(&set);
    }
}

/* Thousands of intervals: chunks split, shrink and merge on the way from none to many to one. */
static void equals_the_flags_through_many_chunks(void **state)
{
    (void)state;
    enum {
        COUNT = 6000,
        ROUNDS = 4
    };
    int64_t *values = new_values(COUNT);
    int64_t *order = new_values(COUNT);
    bool *is_in = malloc(COUNT * sizeof *is_in);
    assert_non_null(is_in);
    struct pawli_seeded seeded = {.state = 2};
    pawl_random random = pawli_seeded_as_random(&seeded);

    for (int round = 0; round < ROUNDS; round++) {
        fill_rising(values, COUNT, -COUNT / 2, 1);
        memcpy(order, values, COUNT * sizeof *order);
        shuffle(order, COUNT, &random);
        memset(is_in, 0, COUNT * sizeof *is_in);
        struct flags flags = {.values = values, .is_in = is_in, .count = COUNT};
        struct pawli_intervals set;
        pawli_intervals_init(&set);
        for (size_t i = 0; i < COUNT; i++) {
            assert_int_equal(pawli_intervals_add(&set, order[i]), PAWL_OK);
            is_in[order[i] + COUNT / 2] = true;
            if (i % 50 == 0)
                check_equal(&set, &flags);
        }
        check_equal(&set, &flags);
        assert_int_equal(pawli_intervals_count(&set), 1);
        assert_true(pawli_intervals_bytes(&set) < CHUNK_BYTES_MAX);
        pawli_intervals_clear(&set);
    }
    free(is_in);
    free(order);
    free(values);
}

/* ---------------------------------------------------------------- orders that stores really see */

/* Add every second value in the given order, then the gaps in the same order: bytes while the gaps
 * are open. */
static size_t bytes_of_sparse(const int64_t *order, size_t count)
{
    struct pawli_intervals set;
    pawli_intervals_init(&set);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(pawli_intervals_add(&set, order[i]), PAWL_OK);
    assert_int_equal(pawli_intervals_count(&set), count);
    size_t bytes = pawli_intervals_bytes(&set);

    for (size_t i = 0; i < count; i++) {
        assert_int_equal(pawli_intervals_add(&set, order[i] + 1), PAWL_OK);
        assert_true(pawli_intervals_count(&set) <= count);
    }
    assert_int_equal(pawli_intervals_count(&set), 1);
    assert_true(pawli_intervals_bytes(&set) < CHUNK_BYTES_MAX);
    for (size_t i = 0; i < count; i++)
        assert_true(pawli_intervals_has(&set, order[i]) && pawli_intervals_has(&set, order[i] + 1));
    pawli_intervals_clear(&set);
    return bytes;
}

/* WL-MEMORY: rising and falling values leave no chunk half empty. */
static void packs_rising_and_falling_values(void **state)
{
    (void)state;
    enum {
        COUNT = 32 * 100
    };
    int64_t *order = new_values(COUNT);
    fill_rising(order, COUNT, 0, 2);
    assert_true(bytes_of_sparse(order, COUNT) <= COUNT * 18);
    fill_rising(order, COUNT, 2 * COUNT, -2);
    assert_true(bytes_of_sparse(order, COUNT) <= COUNT * 18);
    for (int64_t i = 0; i < COUNT; i++) /* from the middle out, to both sides in turn */
        order[i] = i % 2 == 0 ? i : -i - 1;
    assert_true(bytes_of_sparse(order, COUNT) <= COUNT * 18);
    free(order);
}

/* Orders that leave chunks badly filled where they are split without a look at their neighbours. */
enum bad_order {
    RISING_BELOW_ONE_FAR_ABOVE,
    FALLING_ABOVE_ONE_FAR_BELOW,
    RISING_THEN_FALLING_FROM_FAR_ABOVE,
    FALLING_THEN_RISING_FROM_FAR_BELOW,
    FROM_BOTH_ENDS_INWARDS,
    MANY_RISING_BY_TURNS,
    MANY_FALLING_BY_TURNS,
    HALVING,
    BAD_ORDERS
};

/* The bits of i in reverse: 0, 1/2, 1/4, 3/4, 1/8 ... of count, which is a power of two. */
static int64_t mirrored(int64_t i, int64_t count)
{
    int64_t mirror = 0;
    for (int64_t bit = 1; bit < count; bit *= 2) {
        mirror = 2 * mirror + i % 2;
        i /= 2;
    }
    return mirror;
}

static int64_t bad_value(enum bad_order order, int64_t i, int64_t count)
{
    const int64_t far = INT64_C(1) << 40;
    switch (order) {
    case RISING_BELOW_ONE_FAR_ABOVE:
        return i == 0 ? far : i;
    case FALLING_ABOVE_ONE_FAR_BELOW:
        return i == 0 ? -far : -i;
    case RISING_THEN_FALLING_FROM_FAR_ABOVE:
        return i < 32 ? i : far - i;
    case FALLING_THEN_RISING_FROM_FAR_BELOW:
        return i < 32 ? -i : i - far;
    case FROM_BOTH_ENDS_INWARDS:
        return i % 2 == 0 ? i : far - i;
    case MANY_RISING_BY_TURNS:
        return i % 64 * far / 64 + i / 64;
    case MANY_FALLING_BY_TURNS:
        return i % 64 * far / 64 - i / 64;
    default:
        return mirrored(i, count);
    }
}

static void no_order_wastes_memory(void **state) /* WL-MEMORY */
{
    (void)state;
    enum {
        COUNT = 1 << 14
    };
    for (int round = 0; round < BAD_ORDERS; round++) {
        enum bad_order order = (enum bad_order)round;
        struct pawli_intervals set;
        pawli_intervals_init(&set);
        for (int64_t i = 0; i < COUNT; i++)
            assert_int_equal(pawli_intervals_add(&set, 2 * bad_value(order, i, COUNT)), PAWL_OK);
        assert_int_equal(pawli_intervals_count(&set), COUNT); /* each value once, none touching */
        assert_true(pawli_intervals_bytes(&set) <= COUNT * 32);
        for (int64_t i = 0; i < COUNT; i++) {
            assert_true(pawli_intervals_has(&set, 2 * bad_value(order, i, COUNT)));
            assert_false(pawli_intervals_has(&set, 2 * bad_value(order, i, COUNT) + 1));
        }
        pawli_intervals_clear(&set);
    }
}

/* WL-MEMORY: closing most gaps gives the memory back, not only closing the last one. */
static void gives_memory_back_while_gaps_close(void **state)
{
    (void)state;
    enum {
        COUNT = 20000,
        LEFT = 1000
    };
    int64_t *order = new_values(COUNT);
    fill_rising(order, COUNT, 0, 2);
    struct pawli_seeded seeded = {.state = 3};
    pawl_random random = pawli_seeded_as_random(&seeded);
    shuffle(order, COUNT, &random);
    struct pawli_intervals set;
    pawli_intervals_init(&set);
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(pawli_intervals_add(&set, order[i]), PAWL_OK);
    for (size_t i = 0; i < COUNT - LEFT; i++)
        assert_int_equal(pawli_intervals_add(&set, order[i] + 1), PAWL_OK);
    assert_true(pawli_intervals_count(&set) <= LEFT + 1);
    assert_true(pawli_intervals_bytes(&set) <= (LEFT + 1) * 48);
    pawli_intervals_clear(&set);
    free(order);
}

/* WL-MEMORY: a million intervals, the worst that a million values can be, on the real heap. */
static void million_open_gaps_stay_below_32_mib(void **state)
{
    (void)state;
    const size_t count = HEAP_IS_COUNTED ? 1000000 : 200000; /* sanitizers are slow */
    int64_t *order = new_values(count);
    fill_rising(order, count, 0, 2);
    struct pawli_seeded seeded = {.state = 4};
    pawl_random random = pawli_seeded_as_random(&seeded);
    shuffle(order, count, &random);

    size_t heap_before = heap_bytes();
    struct pawli_intervals set;
    pawli_intervals_init(&set);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(pawli_intervals_add(&set, order[i]), PAWL_OK);
    assert_int_equal(pawli_intervals_count(&set), count);
    size_t heap_used = heap_bytes() - heap_before;
    assert_true(pawli_intervals_bytes(&set) < 32 * MIB);
    assert_true(heap_used < 32 * MIB);
    assert_true(!HEAP_IS_COUNTED || heap_used >= pawli_intervals_bytes(&set));

    for (size_t i = 0; i < count; i++)
        assert_int_equal(pawli_intervals_add(&set, order[i] + 1), PAWL_OK);
    assert_int_equal(pawli_intervals_count(&set), 1);
    assert_true(pawli_intervals_bytes(&set) < CHUNK_BYTES_MAX);
    assert_true(!HEAP_IS_COUNTED || heap_bytes() - heap_before < 2 * CHUNK_BYTES_MAX + 8192);
    pawli_intervals_clear(&set);
    free(order);
}

/* ---------------------------------------------------------------- out of memory */

static void failed_allocation_changes_nothing(void **state)
{
    (void)state;
    enum {
        COUNT = 400
    };
    int64_t values[COUNT];
    int64_t order[COUNT];
    bool is_in[COUNT] = {false};
    fill_rising(values, COUNT, 0, 2);
    memcpy(order, values, sizeof order);
    struct pawli_seeded seeded = {.state = 5};
    pawl_random random = pawli_seeded_as_random(&seeded);
    shuffle(order, COUNT, &random);
    struct flags flags = {.values = values, .is_in = is_in, .count = COUNT};
    struct pawli_intervals set;
    pawli_intervals_init(&set);
    size_t failures = 0;

    for (size_t i = 0; i < COUNT; i++) {
        for (uint64_t nth = 1;; nth++) {
            size_t bytes = pawli_intervals_bytes(&set);
            alloc_fail_nth(nth);
            pawl_code code = pawli_intervals_add(&set, order[i]);
            if (!alloc_fail_end()) {
                assert_int_equal(code, PAWL_OK);
                break;
            }
            assert_int_equal(code, PAWL_NO_MEMORY);
            assert_int_equal(pawli_intervals_bytes(&set), bytes);
            check_equal(&set, &flags);
            failures++;
        }
        is_in[order[i] / 2] = true;
        check_equal(&set, &flags);
    }
    assert_true(failures >= COUNT / 32); /* the first chunk, and each split, has failed once */

    /* What closes gaps never allocates: a full machine can always finish contiguous work. */
    for (size_t i = 0; i < COUNT; i++) {
        alloc_fail_nth(1);
        assert_int_equal(pawli_intervals_add(&set, order[i] + 1), PAWL_OK);
        assert_false(alloc_fail_end());
    }
    assert_int_equal(pawli_intervals_count(&set), 1);
    pawli_intervals_clear(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_set_has_nothing_and_costs_nothing),
        cmocka_unit_test(closing_a_gap_makes_one_interval),
        cmocka_unit_test(takes_the_smallest_and_the_largest),
        cmocka_unit_test(equals_the_flags_at_every_edge),
        cmocka_unit_test(equals_the_flags_through_many_chunks),
        cmocka_unit_test(packs_rising_and_falling_values),
        cmocka_unit_test(no_order_wastes_memory),
        cmocka_unit_test(gives_memory_back_while_gaps_close),
        cmocka_unit_test(million_open_gaps_stay_below_32_mib),
        cmocka_unit_test(failed_allocation_changes_nothing),
    };
    return cmocka_run_group_tests_name("core_intervals", tests, NULL, NULL);
}

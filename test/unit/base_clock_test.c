/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * base_clock_test.c - proves base/clock.c: arithmetic that saturates, the system's clocks, and the
 * clock turned by hand.
 * Owns:  nothing.
 * Never: waits for time to pass.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"

#include <time.h>

static const struct {
    int64_t at_us, ms, sum_us;
} sums[] = {
    {0, 0, 0},
    {5, 1, 1005},
    {5, -1, -995},
    {INT64_MAX - 1000, 1, INT64_MAX},
    {INT64_MAX - 999, 1, INT64_MAX},
    {INT64_MAX, 1, INT64_MAX},
    {INT64_MAX, -1, INT64_MAX - 1000},
    {0, INT64_MAX, INT64_MAX},
    {-1, INT64_MAX, INT64_MAX},
    {0, INT64_MAX / 1000, INT64_MAX / 1000 * 1000},
    {0, INT64_MAX / 1000 + 1, INT64_MAX},
    {INT64_MIN + 1000, -1, INT64_MIN},
    {INT64_MIN + 999, -1, INT64_MIN},
    {INT64_MIN, 1, INT64_MIN + 1000},
    {0, INT64_MIN, INT64_MIN},
    {1, INT64_MIN, INT64_MIN},
};

static void sums_saturate(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++) {
        assert_true(pawli_mono_add_ms((pawl_mono){sums[i].at_us}, sums[i].ms).us == sums[i].sum_us);
        assert_true(pawli_wall_add_ms((pawl_wall){sums[i].at_us}, sums[i].ms).us == sums[i].sum_us);
    }
}

static const struct {
    int64_t from_us, to_us, ms;
} differences[] = {
    {0, 0, 0},
    {0, 999, 0},
    {0, 1000, 1},
    {999, 0, 0},
    {1000, 0, -1},
    {1999, 0, -1},
    {-500, 500, 1},
    {INT64_MIN, INT64_MAX, INT64_MAX / 1000},
    {INT64_MAX, INT64_MIN, INT64_MIN / 1000},
    {-1, INT64_MAX, INT64_MAX / 1000},
    {0, INT64_MAX, INT64_MAX / 1000},
};

static void differences_saturate_and_round_towards_zero(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(differences) / sizeof(differences[0]); i++) {
        int64_t from_us = differences[i].from_us;
        int64_t to_us = differences[i].to_us;
        assert_true(pawli_mono_diff_ms((pawl_mono){from_us}, (pawl_mono){to_us}) ==
                    differences[i].ms);
        assert_true(pawli_wall_diff_ms((pawl_wall){from_us}, (pawl_wall){to_us}) ==
                    differences[i].ms);
    }
}

static void comparisons(void **state)
{
    (void)state;
    assert_true(pawli_mono_is_before((pawl_mono){1}, (pawl_mono){2}));
    assert_false(pawli_mono_is_before((pawl_mono){2}, (pawl_mono){2}));
    assert_true(pawli_wall_is_before((pawl_wall){1}, (pawl_wall){2}));
    assert_false(pawli_wall_is_before((pawl_wall){2}, (pawl_wall){2}));
    assert_true(pawli_mono_min((pawl_mono){3}, PAWLI_MONO_NEVER).us == 3);
    assert_true(pawli_mono_min(PAWLI_MONO_NEVER, (pawl_mono){3}).us == 3);
    assert_false(pawli_wall_is_set((pawl_wall){0}));
    assert_true(pawli_wall_is_set((pawl_wall){-1}));
}

static int64_t read_us(clockid_t clock)
{
    struct timespec now;
    assert_int_equal(clock_gettime(clock, &now), 0);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* The monotonic clock is the one that runs on through suspend: a worker that slept must see it. */
static void the_system_s_clocks_are_the_right_ones(void **state)
{
    (void)state;
    const pawl_clock *clock = pawl_clock_system();
    int64_t before_us = read_us(CLOCK_BOOTTIME);
    pawl_mono mono = clock->mono(clock->user);
    assert_true(before_us <= mono.us && mono.us <= read_us(CLOCK_BOOTTIME));

    before_us = read_us(CLOCK_REALTIME);
    pawl_wall wall = clock->wall(clock->user);
    assert_true(before_us <= wall.us && wall.us <= read_us(CLOCK_REALTIME));
}

static void a_wait_ends_on_the_clock_of_conditions(void **state)
{
    (void)state;
    int64_t before_us = read_us(CLOCK_MONOTONIC);
    struct timespec until = pawli_wait_until(1999);
    int64_t until_us = (int64_t)until.tv_sec * 1000000 + until.tv_nsec / 1000;
    assert_in_range(until.tv_nsec, 0, 999999999);
    assert_true(before_us + 1999000 <= until_us);
    assert_true(until_us <= read_us(CLOCK_MONOTONIC) + 1999000);
}

static void the_manual_clock_moves_when_told(void **state)
{
    (void)state;
    struct pawli_manual_clock manual = {.mono = {7}, .wall = {INT64_MAX - 1500}};
    pawl_clock clock = pawli_manual_clock_as_clock(&manual);
    assert_true(clock.mono(clock.user).us == 7);
    assert_true(clock.wall(clock.user).us == INT64_MAX - 1500);
    pawli_manual_clock_turn_ms(&manual, 1);
    assert_true(clock.mono(clock.user).us == 1007);
    assert_true(clock.wall(clock.user).us == INT64_MAX - 500);
    pawli_manual_clock_turn_ms(&manual, 1);
    assert_true(clock.wall(clock.user).us == INT64_MAX);
    manual.wall.us = 3; /* a wall clock may be put back */
    assert_true(clock.wall(clock.user).us == 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_saturate),
        cmocka_unit_test(differences_saturate_and_round_towards_zero),
        cmocka_unit_test(comparisons),
        cmocka_unit_test(the_system_s_clocks_are_the_right_ones),
        cmocka_unit_test(a_wait_ends_on_the_clock_of_conditions),
        cmocka_unit_test(the_manual_clock_moves_when_told),
    };
    return cmocka_run_group_tests_name("base_clock", tests, NULL, NULL);
}

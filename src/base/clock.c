/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * clock.c - the system's clocks, a clock turned by hand, and arithmetic on instants.
 * Owns:  every question to the system about the time.
 * Never: sleeps; lets an instant overflow; goes on without a clock (a lease without time is none).
 */
#include "base/clock.h"

#include <assert.h>
#include <stdlib.h>
#include <time.h>

#define US_PER_MS INT64_C(1000)

/* An offset that is too long to be counted in microseconds leads to that end of time. */
static int64_t add_ms(int64_t us, int64_t ms)
{
    int64_t end = ms < 0 ? INT64_MIN : INT64_MAX;
    int64_t offset_us;
    int64_t sum_us;
    if (__builtin_mul_overflow(ms, US_PER_MS, &offset_us))
        return end;
    if (__builtin_add_overflow(us, offset_us, &sum_us))
        return end;
    return sum_us;
}

static int64_t diff_ms(int64_t from_us, int64_t to_us)
{
    int64_t diff_us;
    if (__builtin_sub_overflow(to_us, from_us, &diff_us))
        diff_us = to_us < from_us ? INT64_MIN : INT64_MAX;
    return diff_us / US_PER_MS;
}

pawl_mono pawli_mono_add_ms(pawl_mono at, int64_t ms)
{
    return (pawl_mono){add_ms(at.us, ms)};
}

pawl_wall pawli_wall_add_ms(pawl_wall at, int64_t ms)
{
    return (pawl_wall){add_ms(at.us, ms)};
}

int64_t pawli_mono_diff_ms(pawl_mono from, pawl_mono to)
{
    return diff_ms(from.us, to.us);
}

int64_t pawli_wall_diff_ms(pawl_wall from, pawl_wall to)
{
    return diff_ms(from.us, to.us);
}

/* ---- the system's clocks */

static int64_t read_system_us(clockid_t clock)
{
    struct timespec now;
    /* These clocks exist on every Linux that this builds for. Were one missing, any number given
     * back would make some lease look valid. */
    if (clock_gettime(clock, &now) != 0)
        abort();
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static pawl_mono system_mono(void *user)
{
    (void)user; /* the system's clock has no state of ours */
    return (pawl_mono){read_system_us(CLOCK_BOOTTIME)};
}

static pawl_wall system_wall(void *user)
{
    (void)user; /* as above */
    return (pawl_wall){read_system_us(CLOCK_REALTIME)};
}

static const pawl_clock system_clock = {.mono = system_mono, .wall = system_wall, .user = NULL};

const pawl_clock *pawl_clock_system(void)
{
    return &system_clock;
}

struct timespec pawli_wait_until(int64_t ms)
{
    assert(ms >= 0);
    int64_t until_us = add_ms(read_system_us(CLOCK_MONOTONIC), ms);
    return (struct timespec){.tv_sec = (time_t)(until_us / 1000000),
                             .tv_nsec = (long)(until_us % 1000000) * 1000};
}

/* ---- the clock turned by hand */

static pawl_mono manual_mono(void *user)
{
    const struct pawli_manual_clock *manual = user;
    return manual->mono;
}

static pawl_wall manual_wall(void *user)
{
    const struct pawli_manual_clock *manual = user;
    return manual->wall;
}

pawl_clock pawli_manual_clock_as_clock(struct pawli_manual_clock *manual)
{
    assert(manual != NULL);
    return (pawl_clock){.mono = manual_mono, .wall = manual_wall, .user = manual};
}

void pawli_manual_clock_turn_ms(struct pawli_manual_clock *manual, int64_t ms)
{
    assert(manual != NULL);
    assert(ms >= 0); /* a monotonic clock never goes back; set `wall` itself to turn that one */
    manual->mono = pawli_mono_add_ms(manual->mono, ms);
    manual->wall = pawli_wall_add_ms(manual->wall, ms);
}

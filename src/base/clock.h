/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * clock.h - arithmetic on the two kinds of time, and a clock that is turned by hand. Everything
 * saturates: no instant overflows.
 */
#ifndef PAWLI_BASE_CLOCK_H
#define PAWLI_BASE_CLOCK_H

#include "pawl/pawl.h"

#include <time.h>

#define PAWLI_MONO_NEVER ((pawl_mono){INT64_MAX})

pawl_mono pawli_mono_add_ms(pawl_mono at, int64_t ms);
pawl_wall pawli_wall_add_ms(pawl_wall at, int64_t ms);

/* Whole milliseconds from `from` to `to`, rounded towards zero; negative where `to` is earlier. */
int64_t pawli_mono_diff_ms(pawl_mono from, pawl_mono to);
int64_t pawli_wall_diff_ms(pawl_wall from, pawl_wall to);

static inline bool pawli_mono_is_before(pawl_mono a, pawl_mono b)
{
    return a.us < b.us;
}

static inline bool pawli_wall_is_before(pawl_wall a, pawl_wall b)
{
    return a.us < b.us;
}

static inline pawl_mono pawli_mono_min(pawl_mono a, pawl_mono b)
{
    return a.us < b.us ? a : b;
}

static inline bool pawli_wall_is_set(pawl_wall at)
{
    return at.us != 0;
}

/*
 * The instant `ms` from now as pthread_cond_timedwait() takes it, for conditions that were made for
 * CLOCK_MONOTONIC: how long a thread waits is real time, whatever clock its work was handed.
 */
struct timespec pawli_wait_until(int64_t ms);

/* A clock that moves only when it is told to. Not safe to turn while another thread reads it. */
struct pawli_manual_clock {
    pawl_mono mono;
    pawl_wall wall;
};

pawl_clock pawli_manual_clock_as_clock(struct pawli_manual_clock *manual);
void pawli_manual_clock_turn_ms(struct pawli_manual_clock *manual, int64_t ms);

#endif

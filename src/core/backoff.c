/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * backoff.c - how long to wait before the next try.
 * Owns:  the arithmetic of exponential backoff with full jitter.
 * Never: sleeps; reads a clock; draws from anything but the source it was handed.
 */
#include "core/backoff.h"

#include "base/random.h"

#include <assert.h>

#define SHIFT_MAX 62 /* any int64_t above 0, doubled more often than this, has overflowed */

int64_t pawli_backoff_ceiling_ms(int64_t base_ms, int64_t max_ms, int64_t retries)
{
    assert(base_ms > 0);
    assert(max_ms > 0);
    assert(retries >= 0);

    /* base x 2^retries > max exactly where base > floor(max / 2^retries): nothing is doubled that
     * could overflow. */
    if (retries > SHIFT_MAX || base_ms > max_ms >> retries)
        return max_ms;
    return base_ms << retries;
}

int64_t pawli_backoff_ms(int64_t base_ms, int64_t max_ms, int64_t retries,
                         const pawl_random *random)
{
    int64_t ceiling_ms = pawli_backoff_ceiling_ms(base_ms, max_ms, retries);
    return (int64_t)pawli_random_below(random, (uint64_t)ceiling_ms + 1);
}

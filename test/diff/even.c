/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * even.c - takes chance out of the stores that are written in C: where a backoff would be drawn, it
 * is the longest that could have been drawn. The test is linked so that this is called instead.
 * Owns:  nothing.
 * Never: changes what the bounds of a backoff are: these are compared.
 */
#include "core/backoff.h"

int64_t __wrap_pawli_backoff_ms(int64_t base_ms, int64_t max_ms, int64_t retries,
                                const pawl_random *random);

int64_t __wrap_pawli_backoff_ms(int64_t base_ms, int64_t max_ms, int64_t retries,
                                const pawl_random *random)
{
    (void)random; /* that is the point */
    return pawli_backoff_ceiling_ms(base_ms, max_ms, retries);
}

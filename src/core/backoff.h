/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * backoff.h - how long to wait before the next try: exponential, capped, with full jitter
 * (Q-BACKOFF).
 */
#ifndef PAWLI_CORE_BACKOFF_H
#define PAWLI_CORE_BACKOFF_H

#include "pawl/pawl.h"

/* min(base x 2^retries, max), exact, without overflow. `base_ms` and `max_ms` above 0, `retries`
 * from 0. */
int64_t pawli_backoff_ceiling_ms(int64_t base_ms, int64_t max_ms, int64_t retries);

/* A whole number of milliseconds in [0, ceiling], each equally likely. `retries` counts those
 * before this one. */
int64_t pawli_backoff_ms(int64_t base_ms, int64_t max_ms, int64_t retries,
                         const pawl_random *random);

#endif

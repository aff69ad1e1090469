/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * drift.h - a clock that is not quite right: it runs too fast or too slow, and may jump.
 */
#ifndef SIM_DRIFT_H
#define SIM_DRIFT_H

#include <stdint.h>

struct sim_drift {
    int64_t true_base_us; /* at this true time ... */
    int64_t base_us;      /* ... the clock showed this, and since then it runs at ... */
    int64_t rate_ppm;     /* ... so many millionths too fast (negative: too slow) */
};

/* What the clock shows at the true time `at_us`, which is not before the last change. */
int64_t sim_drift_read(const struct sim_drift *drift, int64_t at_us);

/* The first true time at which the clock shows `shown_us` or more. */
int64_t sim_drift_when(const struct sim_drift *drift, int64_t shown_us);

/* From `at_us` on, run at another rate. What it shows does not jump. */
void sim_drift_set_rate(struct sim_drift *drift, int64_t at_us, int64_t rate_ppm);

/* Jump by `by_us`. */
void sim_drift_jump(struct sim_drift *drift, int64_t by_us);

#endif

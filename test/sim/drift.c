/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * drift.c - a clock that is not quite right.
 * Owns:  the arithmetic between true time and what a clock shows.
 * Never: reads a real clock; decides when a clock goes wrong (faults.c does).
 */
#include "sim/drift.h"

#include <assert.h>

#define MILLION INT64_C(1000000)

int64_t sim_drift_read(const struct sim_drift *drift, int64_t at_us)
{
    int64_t passed = at_us - drift->true_base_us;
    assert(passed >= 0);
    return drift->base_us + passed + passed * drift->rate_ppm / MILLION;
}

int64_t sim_drift_when(const struct sim_drift *drift, int64_t shown_us)
{
    int64_t ahead = shown_us - drift->base_us;
    if (ahead <= 0)
        return drift->true_base_us;
    /* In two parts, so that a year of microseconds times a million does not overflow. */
    int64_t speed = MILLION + drift->rate_ppm;
    int64_t at = drift->true_base_us + ahead / speed * MILLION + ahead % speed * MILLION / speed;
    /* The quotients were rounded: the right instant is a microsecond away at most. */
    while (sim_drift_read(drift, at) < shown_us)
        at++;
    while (sim_drift_read(drift, at - 1) >= shown_us)
        at--;
    return at;
}

void sim_drift_set_rate(struct sim_drift *drift, int64_t at_us, int64_t rate_ppm)
{
    drift->base_us = sim_drift_read(drift, at_us);
    drift->true_base_us = at_us;
    drift->rate_ppm = rate_ppm;
}

void sim_drift_jump(struct sim_drift *drift, int64_t by_us)
{
    drift->base_us += by_us;
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * policy.h - what the settings come to once their defaults are derived. The settings themselves,
 * and their checks, are public: see pawl.h.
 */
#ifndef PAWLI_CORE_POLICY_H
#define PAWLI_CORE_POLICY_H

#include "pawl/pawl.h"

/* Names: 1 to PAWL_NAME_MAX bytes of printable ASCII without blanks. PAWL_INVALID names `field`. */
pawl_code pawli_check_name(const char *field, const char *value, pawl_err *err);

/* A duration in [min, PAWL_DURATION_MAX_MS]. PAWL_INVALID names `field`, the value and the bound.
 */
pawl_code pawli_check_duration(const char *field, int64_t ms, int64_t min_ms, pawl_err *err);

/* A whole number in [min, max]. PAWL_INVALID names `field`, the value and the bounds. */
struct pawli_range {
    int64_t min;
    int64_t max;
};
pawl_code pawli_check_range(const char *field, int64_t value, struct pawli_range range,
                            pawl_err *err);

/*
 * A shard's share of a queue's max_in_flight: of `shards`, the first ones get one more where it
 * does not divide. INT64_MAX where there is no such bound.
 */
int64_t pawli_in_flight_share(int64_t max_in_flight, int64_t shard, int64_t shards);

/* Three times the lease that was granted, unless the setting says otherwise: RES-6. */
int64_t pawli_execution_timeout_ms(const pawl_queue_settings *settings, int64_t lease_ms);

/*
 * The heartbeat interval for one lease: the worker's setting where three of it fit strictly into
 * the lease, otherwise a quarter of the lease (so a lease shorter than the worker was set up for is
 * still renewed in time).
 */
int64_t pawli_heartbeat_ms(const pawl_worker_settings *settings, int64_t lease_ms);

int64_t pawli_shutdown_timeout_ms(const pawl_worker_settings *settings, int64_t smallest_lease_ms);
int64_t pawli_reaper_interval_ms(const pawl_reaper_settings *settings, int64_t smallest_lease_ms);

#endif

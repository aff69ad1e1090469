/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * worker_options.h - checking what a worker is to be started with.
 */
#ifndef PAWLI_RUNTIME_WORKER_OPTIONS_H
#define PAWLI_RUNTIME_WORKER_OPTIONS_H

#include "pawl/worker.h"
#include "store/check.h"

/*
 * Check the options, and ask the store for the smallest lease that the queues have. PAWL_INVALID,
 * and what the opener and the store say. `has_hands`: it brings hands along, so that it needs no
 * handler, and no queue yet.
 */
pawl_code pawli_worker_options_check(const pawl_worker_options *options, bool has_hands,
                                     int64_t *ret_smallest_lease_ms, pawl_err *err);

#endif

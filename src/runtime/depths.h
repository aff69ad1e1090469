/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * depths.h - asks the store how deep queues are, for the figures.
 */
#ifndef PAWLI_RUNTIME_DEPTHS_H
#define PAWLI_RUNTIME_DEPTHS_H

#include "runtime/metrics.h"

/*
 * Ask for the queues that workers of this process serve, or for all (`is_all`), and tell the
 * figures. Blocks for as many calls as that takes, and stops at the first that fails.
 * Codes of pawl_queue_depths(). *ret_rows: queues that were asked for.
 */
pawl_code pawli_depths_look(pawl_metrics *metrics, pawl_store *store, bool is_all, size_t *ret_rows,
                            pawl_err *err);

/* When to look again, after a look that took so long: never more than a small part of the time goes
 * into it, however much there is to count. */
int64_t pawli_depths_pause_ms(const pawl_metrics *metrics, int64_t took_us);

#endif

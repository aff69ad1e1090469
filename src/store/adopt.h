/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * adopt.h - what a mapping of an old outbox may say. See pawl_adopt() in pawl.h.
 */
#ifndef PAWLI_STORE_ADOPT_H
#define PAWLI_STORE_ADOPT_H

#include "pawl/adopt.h"

#define PAWLI_ADOPT_STALE_AFTER "stale_after" /* the key whose value is a duration */

/* Check the options and the mapping in them, and read how long an old lease lasts. PAWL_INVALID
 * names the key, the value and what is allowed. */
pawl_code pawli_adopt_check(const pawl_adopt_options *options, int64_t *ret_stale_after_ms,
                            pawl_err *err);

#endif

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * retry_after.h - the header Retry-After: for how long an endpoint asks to be left alone.
 */
#ifndef PAWLI_WEBHOOK_RETRY_AFTER_H
#define PAWLI_WEBHOOK_RETRY_AFTER_H

#include "pawl/pawl.h"

/*
 * Read the value of the header: whole seconds, or a date in one of the three forms that HTTP has
 * (RFC 9110, 5.6.7), counted from `now`. The result is 0 (a date that has passed) to `max_ms`,
 * however much is asked for. False, and nothing written, for anything else, NULL among it.
 */
bool pawli_retry_after_read(const char *value, pawl_wall now, int64_t max_ms, int64_t *ret_ms);

#endif

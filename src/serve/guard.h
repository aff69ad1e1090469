/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * guard.h - settings that are changed by If-Match are changed by one request at a time.
 */
#ifndef PAWLI_SERVE_GUARD_H
#define PAWLI_SERVE_GUARD_H

#include "serve/call.h"

/*
 * Let `set` compare and change the settings of what the path names. Meanwhile no other request of
 * this server changes any, and none with If-Match at another server on the same store changes
 * these: where one does just now, the answer is that they have changed.
 */
pawl_code pawli_guarded(struct pawli_call *call,
                        pawl_code (*set)(struct pawli_call *call, const void *wanted),
                        const void *wanted);

#endif

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * notify.h - tells the service manager how we are (the protocol of sd_notify).
 */
#ifndef PAWLI_SERVER_NOTIFY_H
#define PAWLI_SERVER_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

/* Send "READY=1", "STOPPING=1", "WATCHDOG=1" or the like to NOTIFY_SOCKET. False: there is none or
 * it cannot be reached: nobody needs to know. */
bool pawli_notify(const char *state);

/* How often the manager wants to hear WATCHDOG=1, at most, in milliseconds: half of what it waits.
 * 0: it does not. */
int64_t pawli_notify_watchdog_ms(void);

#endif

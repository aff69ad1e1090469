/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * stop_signals.h - the signals of a command that runs until it is told to end: SIGTERM and SIGINT,
 * of which the first asks it to end in order, the second at once; and SIGHUP, which asks it to read
 * its settings again.
 */
#ifndef PAWLI_CLI_STOP_SIGNALS_H
#define PAWLI_CLI_STOP_SIGNALS_H

#include <stdint.h>

/* Keep them from ending the process. Before any thread is started. */
void pawli_cli_stop_signals_hold(void);

/* Wait up to `ms` (below 0: for ever) for one of them. Its number; 0: none came. A SIGHUP that the
 * kernel sends, since the terminal is gone, is told as SIGTERM. */
int pawli_cli_stop_signals_wait(int64_t ms);

#endif

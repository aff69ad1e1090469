/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * run_until_told.h - a worker of any kind as a program: it runs until a signal says otherwise.
 */
#ifndef PAWLI_CLI_RUN_UNTIL_TOLD_H
#define PAWLI_CLI_RUN_UNTIL_TOLD_H

#include "cli/again.h"
#include "pawl/worker.h"

/*
 * The first signal: end in order (RULE-020-030). The second: at once. SIGHUP: read the settings
 * again. Frees the worker, and gives the exit code. *ret_left: threads that still run, and use what
 * they were given.
 */
int pawli_run_until_told(const struct pawli_line *line, pawl_runner *runner,
                         const struct pawli_again *again, size_t *ret_left);

#endif

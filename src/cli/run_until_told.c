/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * run_until_told.c - a worker of any kind as a program: it runs until a signal says otherwise.
 * Owns:  what signals do to the worker.
 * Never: decides what happens to a job.
 */
#include "cli/run_until_told.h"

#include "cli/stop_signals.h"

#include <signal.h>
#include <sysexits.h>

#define LOOK_MS 50 /* between two looks whether it has ended */

int pawli_run_until_told(const struct pawli_line *line, pawl_runner *runner,
                         const struct pawli_again *again, size_t *ret_left)
{
    pawl_worker_end end = {0};
    while (pawli_cli_stop_signals_wait(-1) == SIGHUP)
        pawli_again_read(line, again);
    pawl_worker_stop(runner, PAWL_DEFAULT);
    pawl_worker_counts counts = {0};
    bool is_aborted = false;
    while (!counts.is_stopped) {
        int told = pawli_cli_stop_signals_wait(LOOK_MS);
        if (told != 0 && told != SIGHUP && !is_aborted) {
            is_aborted = true;
            pawl_worker_abort(runner);
        }
        pawl_worker_count(runner, &counts);
    }
    (void)!pawl_worker_wait(runner, 0, &end); /* how many jobs are left; threads may still end */
    *ret_left = pawl_worker_free(runner);
    return is_aborted && (*ret_left > 0 || end.jobs_left > 0) ? EX_TEMPFAIL : EX_OK;
}

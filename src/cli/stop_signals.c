/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * stop_signals.c - the signals of a command that runs until it is told to end.
 * Owns:  SIGTERM, SIGINT and SIGHUP, once they are held.
 * Never: runs anything in a signal handler: there is none.
 */
#include "cli/stop_signals.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>

static sigset_t stopping(void)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM); /* none of these can fail: the signals exist */
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGHUP);
    return set;
}

void pawli_cli_stop_signals_hold(void)
{
    sigset_t set = stopping();
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL); /* cannot fail: the set is good */
}

int pawli_cli_stop_signals_wait(int64_t ms)
{
    sigset_t set = stopping();
    struct timespec time = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
    siginfo_t told;
    int number;
    do {
        number = ms < 0 ? sigwaitinfo(&set, &told) : sigtimedwait(&set, &told, &time);
    } while (number < 0 && errno == EINTR);
    if (number == SIGHUP && told.si_code == SI_KERNEL)
        return SIGTERM;
    return number > 0 ? number : 0;
}

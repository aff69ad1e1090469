/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * crew.h - the threads of one worker or reaper, and who frees what they share. A thread that does
 * not end in time is left behind: what it may still touch is freed by the last one that leaves.
 */
#ifndef PAWLI_RUNTIME_CREW_H
#define PAWLI_RUNTIME_CREW_H

#include "pawl/pawl.h"

#include <pthread.h>

struct pawli_crew;

/* A crew of at most `threads_max` threads in all its life. `free_user(user)` is called by whoever
 * is the last to leave: the one who made it counts. NULL: memory ran out. */
struct pawli_crew *pawli_crew_new(size_t threads_max, void (*free_user)(void *user), void *user);

/*
 * Start a thread. It takes no signals of the process. `name` is shown by the system; at most 15
 * bytes of it. PAWL_NO_MEMORY: there is none to be had.
 */
pawl_code pawli_crew_start(struct pawli_crew *crew, const char *name, void (*run)(void *user),
                           void *user);

/* Wait up to `ms` until all threads have ended; the number of those that have not. */
size_t pawli_crew_wait(struct pawli_crew *crew, int64_t ms);

/* The maker leaves: what has ended is joined, the rest is left behind. The number of those left. */
size_t pawli_crew_leave(struct pawli_crew *crew);

/* A condition that is waited for by CLOCK_MONOTONIC: see pawli_wait_until(). False: no memory. */
bool pawli_cond_init(pthread_cond_t *cond);

#endif

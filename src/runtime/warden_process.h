/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * warden_process.h - what a worker and a warden say to each other.
 */
#ifndef PAWLI_RUNTIME_WARDEN_PROCESS_H
#define PAWLI_RUNTIME_WARDEN_PROCESS_H

#include <stddef.h>

#define PAWLI_ORDER_FDS 3 /* standard input, standard error, and output where there is one */

/*
 * From the worker. A signal; or, where that is 0, a run: the descriptors come with it, and behind
 * it the environment, `count` texts in `bytes`, each closed by a NUL.
 */
struct pawli_order {
    int signal;
    size_t count;
    size_t bytes;
};

/* The answer to a run is a struct pawli_program_end. */

/* The life of a warden, in its own process, from the fork to its end. */
_Noreturn void pawli_warden_live(const char *path, char *const *argv, int fd);

#endif

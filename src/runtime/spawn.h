/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * spawn.h - starting a program, at the speed of vfork().
 */
#ifndef PAWLI_RUNTIME_SPAWN_H
#define PAWLI_RUNTIME_SPAWN_H

#include <sys/types.h>

struct pawli_spawn {
    const char *path;
    char *const *argv;
    char *const *envp;
    int stdin_fd;  /* becomes 0 */
    int stdout_fd; /* becomes 1; -1: as it is for us */
    int stderr_fd; /* becomes 2 */
};

/*
 * Start the program in a session, and so in a process group, of its own: its leader is the process
 * given back. It has these three descriptors, and no other; no signal blocked, and those ignored
 * that the caller ignores; and it is killed when the calling thread ends. -1: *ret_errno says why
 * not.
 */
pid_t pawli_spawn(const struct pawli_spawn *spawn, int *ret_errno);

#endif

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * strays.c - what a warden that was killed could not clear away.
 * Owns:  finding them among the children of this process, and their end.
 * Never: kills a warden, or a child that has not yet become one; waits for long.
 *
 * A program and all that it starts are in sessions of their own, and cannot come back into ours. A
 * warden takes its name before it leaves our session.
 */
#include "runtime/strays.h"

#include "runtime/proc.h"
#include "runtime/warden.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS_MAX   200
#define PAUSE_MS     5
#define CHILDREN_MAX 1024 /* in one round; the rest has the next one */

bool pawli_strays_adopt(void)
{
    return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0;
}

static bool is_stray(pid_t pid)
{
    struct pawli_proc seen;
    return pawli_proc_look(pid, &seen) && seen.parent == getpid() && seen.session != getsid(0) &&
           strcmp(seen.name, PAWLI_WARDEN_NAME) != 0;
}

/* Stands for a process, and for no other that gets its number. -1: the system has no such thing. */
static int open_process(pid_t pid)
{
#if defined(SYS_pidfd_open) && defined(SYS_pidfd_send_signal)
    return (int)syscall(SYS_pidfd_open, pid, 0u); /* closes on exec by itself */
#else
    (void)pid;
    return -1;
#endif
}

static void kill_process(pid_t pid, int fd)
{
#if defined(SYS_pidfd_open) && defined(SYS_pidfd_send_signal)
    if (fd >= 0) {
        (void)syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0u); /* dead already: as good */
        return;
    }
#endif
    (void)fd;
    (void)kill(pid, SIGKILL); /* likewise */
}

/* The descriptor is got before it is looked at: another thread may reap it, and its number be given
 * to another, at any moment. */
static bool kill_stray(pid_t pid)
{
    int fd = open_process(pid);
    bool is_found = is_stray(pid);
    if (is_found)
        kill_process(pid, fd);
    if (fd >= 0)
        (void)close(fd);
    if (is_found)
        (void)waitpid(pid, NULL, WNOHANG); /* or in the next round */
    return is_found;
}

/* Gives how many were found: what they leave behind is found in the next round. */
static size_t kill_once(void)
{
    pid_t pids[CHILDREN_MAX];
    size_t count = pawli_proc_children(pids, CHILDREN_MAX);
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        found += kill_stray(pids[i]);
    return found;
}

void pawli_strays_kill(void)
{
    for (int round = 0; round < ROUNDS_MAX && kill_once() > 0; round++)
        (void)poll(NULL, 0, PAUSE_MS); /* what was killed needs a moment to die */
}

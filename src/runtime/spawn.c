/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * spawn.c - starting a program, at the speed of vfork().
 * Owns:  what happens between vfork() and exec.
 * Never: allocates, locks or returns in the child: it runs on the parent's memory.
 *
 * posix_spawn() would do, but cannot ask that the child be killed with its parent.
 */
#include "runtime/spawn.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXIT_NO_EXEC 127 /* as shells say it */
#define FD_FIRST     3   /* the first that the child must not have */

/* Shared with the child, which fills `error`. */
struct birth {
    const struct pawli_spawn *spawn;
    pid_t parent;
    volatile int error;
};

/* In the child. Signals are blocked until the last moment: what they do there is for the program,
 * not for the parent's memory. */
static _Noreturn void become(struct birth *birth)
{
    const struct pawli_spawn *spawn = birth->spawn;
    if (setsid() < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0)
        goto failed;
    if (getppid() != birth->parent) /* it was gone before it could be asked for */
        _exit(EXIT_NO_EXEC);
    if (dup2(spawn->stdin_fd, 0) < 0 || dup2(spawn->stderr_fd, 2) < 0 ||
        (spawn->stdout_fd >= 0 && dup2(spawn->stdout_fd, 1) < 0))
        goto failed;
#ifdef SYS_close_range
    /* Ours close on exec by themselves; this is for those of the program around us. */
    (void)syscall(SYS_close_range, (unsigned)FD_FIRST, ~0u, 0u);
#endif
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL); /* neither can fail */
    (void)execve(spawn->path, spawn->argv, spawn->envp);
failed:
    birth->error = errno;
    _exit(EXIT_NO_EXEC);
}

pid_t pawli_spawn(const struct pawli_spawn *spawn, int *ret_errno)
{
    struct birth birth = {.spawn = spawn, .parent = getpid()};
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* neither can fail */
    /* The child writes into our frame: the compiler must believe that vfork() knows where it is. */
    __asm__ volatile("" : : "r"(&birth) : "memory");
    pid_t pid = vfork();
    if (pid == 0)
        become(&birth);
    int error = pid < 0 ? errno : birth.error;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (pid < 0 || error == 0) {
        *ret_errno = error;
        return pid;
    }
    siginfo_t info; /* it has ended: leave no zombie */
    while (waitid(P_PID, (id_t)pid, &info, WEXITED) != 0 && errno == EINTR)
        ;
    *ret_errno = error;
    return -1;
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * warden_process.c - a warden, in its own process.
 * Life:  forked by a worker; runs a program for each order; ends with the socket, which ends with
 *        the worker, however that ends. Kills all that is left of a program when that has ended,
 *        and before its own end.
 * Owns:  the program, and all its descendants: they are its children, or will be.
 * Never: has a descriptor of the worker's open, but the socket and what comes through it; takes a
 *        signal; takes a lock, or anything else that a thread of the worker's may have held when it
 *        was forked.
 */
#include "runtime/warden_process.h"

#include "runtime/proc.h"
#include "runtime/spawn.h"
#include "runtime/warden.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define FD_SOCKET    3 /* the only one that it keeps, above the three usual ones */
#define FDS_MOST     65536
#define PAUSE_MS     5
#define ROUNDS_RUN   200   /* how long a worker waits for what a program has left: a second */
#define ROUNDS_END   12000 /* a minute, when there is nothing else to do */
#define CHILDREN_MAX 1024  /* in one round; the rest has the next one */

#define KERNEL_SIGACTION_WORDS 8 /* at least: handler, flags, restorer, mask */
#define KERNEL_SIGSET_BYTES    8 /* 64 signals */

struct warden {
    const char *path;
    char *const *argv;
    int child_fd; /* readable when a child may have ended; -1: none to be had */
};

/* ---------------------------------------------------------------- what is left */

/* What was killed needs a moment to die. */
static void pause_for_child(const struct warden *warden)
{
    struct signalfd_siginfo told;
    struct pollfd fd = {.fd = warden->child_fd, .events = POLLIN};
    if (poll(&fd, 1, PAUSE_MS) > 0)
        (void)!read(warden->child_fd, &told, sizeof(told)); /* that it came is all we need */
}

/* Reap all that have ended. False: there are no children, dead or alive. */
static bool reap_all(void)
{
    pid_t pid;
    do {
        pid = waitpid(-1, NULL, WNOHANG);
    } while (pid > 0 || (pid < 0 && errno == EINTR));
    return pid == 0;
}

/*
 * Kill every child until there is none: their own children become ours then, and come next. Nothing
 * is killed that is not ours, whatever its number was before: a child's number is its own until we
 * reap it. False: some are left; they cannot die yet, or are not for us to kill.
 */
static bool kill_all(const struct warden *warden, int rounds)
{
    pid_t pids[CHILDREN_MAX];
    for (; reap_all(); rounds--) {
        if (rounds == 0)
            return false;
        size_t count = pawli_proc_children_of_thread(pids, CHILDREN_MAX); /* our only one */
        if (count == 0)
            count = pawli_proc_children(pids, CHILDREN_MAX);
        for (size_t i = 0; i < count; i++)
            (void)kill(pids[i], SIGKILL); /* dead already: as good */
        pause_for_child(warden);
    }
    return true;
}

/* ---------------------------------------------------------------- orders */

/* Receive `size` bytes. False: the worker is gone. */
static bool receive(void *to, size_t size)
{
    for (size_t at = 0; at < size;) {
        ssize_t got = recv(FD_SOCKET, (char *)to + at, size - at, 0);
        if (got == 0 || (got < 0 && errno != EINTR))
            return false;
        at += got > 0 ? (size_t)got : 0;
    }
    return true;
}

struct run {
    struct pawli_order order;
    int fds[PAWLI_ORDER_FDS]; /* -1: not given */
    bool is_cut;              /* there was no room for all of them */
    char *memory;             /* of the environment */
    size_t memory_size;
    char **envp; /* in it */
};

static void clear_run(struct run *run)
{
    for (size_t i = 0; i < PAWLI_ORDER_FDS; i++)
        if (run->fds[i] >= 0)
            (void)close(run->fds[i]); /* the program has them */
    if (run->memory != NULL)
        (void)munmap(run->memory, run->memory_size); /* cannot fail: it is ours */
}

/* The next order, with its descriptors. False: the worker is gone. */
static bool receive_order(struct run *run)
{
    union {
        char bytes[CMSG_SPACE(PAWLI_ORDER_FDS * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec part = {&run->order, sizeof(run->order)};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes)};
    *run = (struct run){.fds = {-1, -1, -1}};
    ssize_t got;
    do {
        got = recvmsg(FD_SOCKET, &message, MSG_CMSG_CLOEXEC | MSG_WAITALL);
    } while (got < 0 && errno == EINTR);
    const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (got > 0 && header != NULL && header->cmsg_level == SOL_SOCKET &&
        header->cmsg_type == SCM_RIGHTS)
        memcpy(run->fds, CMSG_DATA(header), header->cmsg_len - CMSG_LEN(0));
    run->is_cut = (message.msg_flags & MSG_CTRUNC) != 0;
    return got == (ssize_t)sizeof(run->order);
}

/* The environment behind the order. False: the worker is gone, or there is no memory: then we are
 * of no use to it. */
static bool receive_environment(struct run *run)
{
    size_t count = run->order.count;
    size_t table_size = (count + 1) * sizeof(char *);
    run->memory_size = table_size + run->order.bytes;
    run->memory = mmap(NULL, run->memory_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                       -1, 0);
    if (run->memory == MAP_FAILED) {
        run->memory = NULL;
        return false;
    }
    run->envp = (char **)(void *)run->memory; /* a page is aligned for anything */
    char *text = run->memory + table_size;
    if (!receive(text, run->order.bytes))
        return false;
    for (size_t i = 0; i < count; i++) {
        run->envp[i] = text;
        text += strlen(text) + 1;
    }
    return true;
}

/* ---------------------------------------------------------------- a run */

/* Reap what has ended, but for the program itself. True: that has ended. */
static bool has_ended(pid_t program)
{
    siginfo_t info;
    for (;;) {
        info.si_pid = 0;
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == EINTR)
            continue;
        if (info.si_pid == 0 || info.si_pid == program)
            return info.si_pid == program;
        (void)waitpid(info.si_pid, NULL, 0); /* an orphan that was left to us */
    }
}

/* Until the program has ended. False: the worker is gone. */
static bool watch(const struct warden *warden, pid_t program)
{
    while (!has_ended(program)) {
        struct signalfd_siginfo told;
        struct pollfd fds[] = {{.fd = FD_SOCKET, .events = POLLIN},
                               {.fd = warden->child_fd, .events = POLLIN}};
        (void)poll(fds, 2, warden->child_fd >= 0 ? -1 : PAUSE_MS); /* or a signal: look again */
        if (fds[1].revents != 0)
            (void)!read(warden->child_fd, &told, sizeof(told)); /* that it came is all we need */
        struct pawli_order order;
        if (fds[0].revents == 0)
            continue;
        if (!receive(&order, sizeof(order)))
            return false;
        (void)kill(-program, order.signal); /* the group is there: its leader is not reaped */
    }
    return true;
}

/* False: the worker is gone, or cannot be answered. */
static bool run_program(const struct warden *warden, struct run *run)
{
    struct pawli_program_end end = {.is_all_gone = true};
    siginfo_t info = {.si_code = 0};
    if (run->is_cut) {
        end.error = EMFILE;
    } else {
        pid_t program = pawli_spawn(&(struct pawli_spawn){.path = warden->path,
                                                          .argv = warden->argv,
                                                          .envp = run->envp,
                                                          .stdin_fd = run->fds[0],
                                                          .stdout_fd = run->fds[2],
                                                          .stderr_fd = run->fds[1]},
                                    &end.error);
        clear_run(run);
        *run = (struct run){.fds = {-1, -1, -1}};
        if (program > 0 && !watch(warden, program))
            return false;
        if (program > 0) {
            (void)kill(-program, SIGKILL);                      /* nobody left: as it should be */
            (void)waitid(P_PID, (id_t)program, &info, WEXITED); /* it has ended */
        }
        end.code = info.si_code;
        end.status = info.si_status;
        end.is_all_gone = kill_all(warden, ROUNDS_RUN);
    }
    return send(FD_SOCKET, &end, sizeof(end), MSG_NOSIGNAL) == (ssize_t)sizeof(end);
}

/* ---------------------------------------------------------------- life */

/* Nothing of the worker's but the socket; what is meant for the three usual ones goes nowhere. */
static void close_all_but(int fd)
{
    (void)syscall(SYS_dup3, fd, FD_SOCKET, O_CLOEXEC); /* or it is that number already */
    (void)fcntl(FD_SOCKET, F_SETFD, FD_CLOEXEC);
    for (int i = 0; i < FD_SOCKET; i++) {
        (void)close(i);
        (void)open("/dev/null", O_RDWR); /* gets the number that is free */
    }
#ifdef SYS_close_range
    if (syscall(SYS_close_range, (unsigned)FD_SOCKET + 1, ~0u, 0u) == 0)
        return;
#endif
    long most = sysconf(_SC_OPEN_MAX);
    for (int i = FD_SOCKET + 1; i < (most > 0 && most < FDS_MOST ? (int)most : FDS_MOST); i++)
        (void)close(i);
}

/* Every signal as usual, once and for all programs: what we ignored, they would ignore. Straight to
 * the kernel: the C library does not touch the two that it uses itself, and an ancestor may have
 * had them ignored. All zero: the default, and no flags. */
static void take_usual_signals(void)
{
    static const unsigned long usual[KERNEL_SIGACTION_WORDS] = {0};
    for (int number = 1; number <= SIGRTMAX; number++)
        (void)syscall(SYS_rt_sigaction, number, usual, NULL, (size_t)KERNEL_SIGSET_BYTES);
}

/* Come with all signals blocked: so they stay. */
static int listen_to_children(void)
{
    struct sigaction usual = {.sa_handler = SIG_DFL}; /* one that ignores them would not see them */
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigaction(SIGCHLD, &usual, NULL); /* none of these can fail: the signal exists */
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

_Noreturn void pawli_warden_live(const char *path, char *const *argv, int fd)
{
    struct warden warden = {.path = path, .argv = argv};
    struct run run;
    (void)prctl(PR_SET_NAME, PAWLI_WARDEN_NAME, 0, 0, 0); /* before the session: see strays.c */
    (void)setsid(); /* what is typed at the worker's terminal is not for us */
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    close_all_but(fd);
    take_usual_signals();
    warden.child_fd = listen_to_children();
    bool is_on = true;
    while (is_on && receive_order(&run)) {
        if (run.order.signal != 0)
            continue; /* for a program that had just ended */
        is_on = receive_environment(&run) && run_program(&warden, &run);
        clear_run(&run);
    }
    (void)kill_all(&warden, ROUNDS_END); /* also what we may not kill: nobody could do more */
    _exit(0);
}

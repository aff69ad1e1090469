/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * warden.h - a small process between the worker and a program: the program's parent, and of
 * whatever the program starts and leaves (it is a subreaper). So nothing of a program can get away:
 * what is still there when the program has ended, or when the worker has, however that ended, is a
 * child of the warden, or becomes one, and is killed. It runs one program at a time, and stays for
 * the next.
 */
#ifndef PAWLI_RUNTIME_WARDEN_H
#define PAWLI_RUNTIME_WARDEN_H

#include <stdbool.h>
#include <sys/queue.h>
#include <sys/types.h>

#define PAWLI_WARDEN_NAME "pawl-warden" /* of its process, as the system has it */

struct pawli_warden {
    pid_t pid;
    int fd; /* to poll: readable when the program has ended; -1: it was dismissed */
    TAILQ_ENTRY(pawli_warden) place; /* the owner's */
};

/* Start one, for runs of this program. Forks. Must not change while it lives. NULL: errno. */
struct pawli_warden *pawli_warden_new(const char *path, char *const *argv);

/* It gets no more to do: it kills what is left of its program, and ends. Never waits. */
void pawli_warden_dismiss(struct pawli_warden *warden);

/* Whether one that was dismissed has ended; reaps it. */
bool pawli_warden_has_ended(struct pawli_warden *warden);

/* Dismiss it, and wait a moment for its end. Accepts NULL. */
void pawli_warden_free(struct pawli_warden *warden);

/* One run. What is not named here is as it is for us. */
struct pawli_warden_run {
    char *const *envp;
    int stdin_fd;
    int stderr_fd;
};

/* Let it start the program; how that went is told with its end. False: errno; the warden is of no
 * more use. */
bool pawli_warden_start(struct pawli_warden *warden, const struct pawli_warden_run *run);

/* SIGTERM or SIGKILL to the group of the program, where it still runs. */
void pawli_warden_signal(struct pawli_warden *warden, int number);

struct pawli_program_end {
    int error;        /* errno: it could not be started; 0: it could */
    int code;         /* as siginfo_t has it: CLD_EXITED ... */
    int status;       /* likewise */
    bool is_all_gone; /* all that it had started; else the warden goes on killing when dismissed */
};

enum pawli_heard {
    PAWLI_HEARD_NOTHING,
    PAWLI_HEARD_END,
    PAWLI_HEARD_LOST /* the warden was killed; the program with it, but not what that had started */
};

/* What there is to hear, without waiting. *ret_end is written with PAWLI_HEARD_END. */
enum pawli_heard pawli_warden_hear(struct pawli_warden *warden, struct pawli_program_end *ret_end);

#endif

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * proc.h - what the system tells of other processes. All of it may be out of date when it is read.
 */
#ifndef PAWLI_RUNTIME_PROC_H
#define PAWLI_RUNTIME_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define PAWLI_PROC_NAME_MAX 16 /* with the closing NUL; longer ones are cut by the system */

struct pawli_proc {
    char name[PAWLI_PROC_NAME_MAX];
    pid_t parent;
    pid_t session;
};

/* False: it is gone. */
bool pawli_proc_look(pid_t pid, struct pawli_proc *ret_proc);

/* The children of this process, dead or alive, up to `pids_max` of them. Looks at every process. */
size_t pawli_proc_children(pid_t *pids, size_t pids_max);

/* The same of the calling thread alone, at once. None: it has none, or the system cannot tell. */
size_t pawli_proc_children_of_thread(pid_t *pids, size_t pids_max);

#endif

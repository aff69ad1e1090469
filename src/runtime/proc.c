/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * proc.c - what the system tells of other processes.
 * Owns:  the forms of the files in /proc (Linux).
 * Never: changes anything; keeps what it has read: a process may be gone by then.
 */
#include "runtime/proc.h"

#include "base/text.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_MAX 4096

/* Read a whole small file, or its beginning. Gives its length; -1: it cannot be read. */
static ssize_t read_file(const char *path, char *text, size_t text_size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    size_t len = 0;
    ssize_t got = 0;
    while (len + 1 < text_size && (got = read(fd, text + len, text_size - 1 - len)) > 0)
        len += (size_t)got;
    (void)close(fd); /* it was only read */
    if (got < 0)
        return -1;
    text[len] = '\0';
    return (ssize_t)len;
}

bool pawli_proc_look(pid_t pid, struct pawli_proc *ret_proc)
{
    char path[64];
    char text[TEXT_MAX];
    (void)snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid); /* fits */
    if (read_file(path, text, sizeof(text)) <= 0)
        return false;
    char *name = strchr(text, '(');
    char *at = strrchr(text, ')'); /* the name before it may hold anything */
    if (name == NULL || at == NULL || strlen(at) < 4)
        return false;
    *at = '\0';
    (void)pawli_text_copy(ret_proc->name, sizeof(ret_proc->name), name + 1); /* it has a bound */
    at += 3; /* behind the state: parent, group, session */
    ret_proc->parent = (pid_t)strtol(at, &at, 10);
    (void)strtol(at, &at, 10);
    ret_proc->session = (pid_t)strtol(at, &at, 10);
    return true;
}

size_t pawli_proc_children_of_thread(pid_t *pids, size_t pids_max)
{
    char text[TEXT_MAX];
    size_t count = 0;
    ssize_t len = read_file("/proc/thread-self/children", text, sizeof(text));
    char *last = len + 1 == (ssize_t)sizeof(text) ? strrchr(text, ' ') : NULL;
    if (last != NULL)
        *last = '\0'; /* there are more than fit, and the last number may be cut */
    for (char *at = text, *end; len > 0 && count < pids_max; at = end) {
        long pid = strtol(at, &end, 10);
        if (end == at || pid <= 0)
            break;
        pids[count++] = (pid_t)pid;
    }
    return count;
}

size_t pawli_proc_children(pid_t *pids, size_t pids_max)
{
    size_t count = 0;
    DIR *processes = opendir("/proc");
    const struct dirent *entry;
    while (processes != NULL && count < pids_max && (entry = readdir(processes)) != NULL) {
        struct pawli_proc seen;
        char *end;
        long pid = strtol(entry->d_name, &end, 10);
        if (*end == '\0' && pid > 1 && pawli_proc_look((pid_t)pid, &seen) &&
            seen.parent == getpid())
            pids[count++] = (pid_t)pid;
    }
    if (processes != NULL)
        (void)closedir(processes); /* it was only read */
    return count;
}

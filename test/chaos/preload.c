/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * preload.c - put before the C library of a process (LD_PRELOAD): its clocks jump, and its disk is
 * full, when the director says so.
 * Owns:  clock_gettime() and the ways in which SQLite writes.
 * Never: does anything unless it is told to; keeps state of its own.
 */
#include "chaos/control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define REPLACES __attribute__((visibility("default")))
#define SECOND   INT64_C(1000000)

/* Set once, before main(). */
static struct chaos_control *control;

__attribute__((constructor)) static void find_control(void)
{
    const char *path = getenv(CHAOS_CONTROL_VARIABLE);
    int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *found = mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void)close(fd);
    control = found != MAP_FAILED ? found : NULL;
}

/* ---- clocks */

static int64_t offset_us(clockid_t clock)
{
    if (control == NULL)
        return 0;
    if (clock == CLOCK_BOOTTIME)
        return atomic_load(&control->boot_us);
    return clock == CLOCK_REALTIME ? atomic_load(&control->wall_us) : 0;
}

REPLACES int clock_gettime(clockid_t clock, struct timespec *ret_time)
{
    int rc = (int)syscall(SYS_clock_gettime, clock, ret_time);
    int64_t us = rc == 0 ? offset_us(clock) : 0;
    if (us == 0)
        return rc;
    int64_t sum_us = (int64_t)ret_time->tv_sec * SECOND + ret_time->tv_nsec / 1000 + us;
    ret_time->tv_sec = (time_t)(sum_us / SECOND);
    ret_time->tv_nsec = (long)(sum_us % SECOND) * 1000 + ret_time->tv_nsec % 1000;
    atomic_fetch_add(&control->jumps, 1);
    return rc;
}

/* ---- the disk */

static int is_full(int fd)
{
    char link[40];
    char path[1024];
    if (control == NULL || atomic_load(&control->is_disk_full) == 0)
        return 0;
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, path, sizeof(path) - 1);
    path[len > 0 ? len : 0] = '\0';
    if (strstr(path, CHAOS_FULL_FILE) == NULL)
        return 0;
    atomic_fetch_add(&control->refused, 1);
    errno = ENOSPC;
    return 1;
}

REPLACES ssize_t write(int fd, const void *bytes, size_t len)
{
    return is_full(fd) ? -1 : (ssize_t)syscall(SYS_write, fd, bytes, len);
}

/* With offsets of 64 bits, as the build has them, these are pwrite64() and ftruncate64(). */
REPLACES ssize_t pwrite(int fd, const void *bytes, size_t len, off_t at)
{
    return is_full(fd) ? -1 : (ssize_t)syscall(SYS_pwrite64, fd, bytes, len, at);
}

REPLACES int ftruncate(int fd, off_t len)
{
    return is_full(fd) ? -1 : (int)syscall(SYS_ftruncate, fd, len);
}

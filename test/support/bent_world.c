/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * bent_world.c - loaded before a program (LD_PRELOAD), bends what the system tells it:
 *                BENT_CLOCK_S seconds are added to the time of day, BENT_FS_TYPE is the type of
 *                every file system, BENT_DISK_FREE the bytes that are free on each.
 * Owns:  the answers of clock_gettime, statfs and statvfs.
 * Never: is a part of the program.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

static long long told(const char *name, long long otherwise)
{
    const char *value = getenv(name);
    return value != NULL ? strtoll(value, NULL, 0) : otherwise;
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    long rc = syscall(SYS_clock_gettime, clock, time);
    if (rc == 0 && clock == CLOCK_REALTIME)
        time->tv_sec += told("BENT_CLOCK_S", 0);
    return (int)rc;
}

int statfs(const char *path, struct statfs *found)
{
    long rc = syscall(SYS_statfs, path, found);
    if (rc == 0)
        found->f_type = told("BENT_FS_TYPE", found->f_type);
    return (int)rc;
}

int statvfs(const char *path, struct statvfs *found)
{
    struct statfs of_kernel;
    if (syscall(SYS_statfs, path, &of_kernel) != 0)
        return -1;
    long long bytes = told("BENT_DISK_FREE", -1);
    *found = (struct statvfs){.f_bsize = (unsigned long)of_kernel.f_bsize,
                              .f_frsize = (unsigned long)of_kernel.f_bsize,
                              .f_bavail = of_kernel.f_bavail};
    if (bytes >= 0) {
        found->f_frsize = 1;
        found->f_bavail = (fsblkcnt_t)bytes;
    }
    return 0;
}

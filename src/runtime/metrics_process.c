/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * metrics_process.c - the figures of the process as a whole, as Linux tells them.
 * Owns:  reading /proc.
 * Never: keeps a file open; fails where a file is not there: then there are no figures.
 */
#include "runtime/metrics_inside.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define STAT_MAX    1024
#define BOOT_MAX    16384 /* of the system's own: its interrupts make a long line */
#define FIELD_UTIME 11    /* counted behind the name, from 0: proc(5) counts from 3 there */

static bool read_file(const char *path, char *text, size_t text_size)
{
    size_t len = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    for (ssize_t got = 1; got > 0 && len<text_size - 1; len += got> 0 ? (size_t)got : 0)
        got = read(fd, text + len, text_size - 1 - len);
    (void)close(fd); /* it was only read */
    text[len] = '\0';
    return len > 0;
}

/* When the system was started, in seconds since 1970; 0: it does not tell. */
static int64_t boot_time(void)
{
    static const char mark[] = "\nbtime ";
    char *text = malloc(BOOT_MAX);
    int64_t seconds = 0;
    if (text != NULL && read_file("/proc/stat", text, BOOT_MAX)) {
        const char *at = strstr(text, mark);
        seconds = at != NULL ? strtoll(at + sizeof(mark) - 1, NULL, 10) : 0;
    }
    free(text);
    return seconds;
}

static int64_t count_fds(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int64_t count = 0;
    if (folder == NULL)
        return 0;
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder))
        count += entry->d_name[0] != '.';
    (void)closedir(folder); /* likewise */
    return count - 1;       /* the folder itself */
}

bool pawli_process_figures(struct process_figures *ret_figures)
{
    char text[STAT_MAX];
    int64_t fields[FIELD_UTIME + 11] = {0};
    int64_t ticks = sysconf(_SC_CLK_TCK);
    struct rlimit limit;
    if (ticks <= 0 || !read_file("/proc/self/stat", text, sizeof(text)))
        return false;
    /* The program's name stands between brackets, and may hold anything. */
    char *at = strrchr(text, ')');
    if (at == NULL || at[1] == '\0' || at[2] == '\0')
        return false;
    at += 3; /* behind the letter of its state */
    for (size_t i = 1; i < sizeof(fields) / sizeof(fields[0]); i++)
        fields[i] = (int64_t)strtoull(at, &at, 10);
    *ret_figures = (struct process_figures){
        .cpu_us = (fields[FIELD_UTIME] + fields[FIELD_UTIME + 1]) * (1000000 / ticks),
        .threads = fields[FIELD_UTIME + 6],
        .started_us = boot_time() * 1000000 + fields[FIELD_UTIME + 8] * (1000000 / ticks),
        .virtual_bytes = fields[FIELD_UTIME + 9],
        .resident_bytes = fields[FIELD_UTIME + 10] * sysconf(_SC_PAGESIZE),
        .open_fds = count_fds(),
        .max_fds = INT64_MAX,
    };
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        ret_figures->max_fds = (int64_t)limit.rlim_cur;
    return true;
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * sink.c - the server of support/hostile.py as a process that a test starts.
 * Owns:  that process, its log.
 * Never: leaves it behind: it ends when its standard input does.
 */
#include "deliver/sink.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define LOG_MAX (1 << 20)

void sink_start(struct sink *sink)
{
    int to[2];
    int from[2];
    assert_true(scratch_make(&sink->scratch));
    assert_int_equal(0, pipe(to));
    assert_int_equal(0, pipe(from));
    sink->pid = fork();
    assert_true(sink->pid >= 0);
    if (sink->pid == 0) {
        if (dup2(to[0], 0) < 0 || dup2(from[1], 1) < 0 || close(to[0]) != 0 || close(to[1]) != 0 ||
            close(from[0]) != 0 || close(from[1]) != 0)
            _exit(127);
        (void)execlp("python3", "python3", SINK_PROGRAM, sink->scratch.path, (char *)NULL);
        _exit(127);
    }
    (void)close(to[0]);
    (void)close(from[1]);
    sink->to = to[1];
    sink->from = from[0];
    (void)fcntl(sink->to, F_SETFD, FD_CLOEXEC);
    char text[16] = "";
    for (size_t len = 0; strchr(text, '\n') == NULL; len++) {
        assert_true(len < sizeof(text) - 1);
        assert_int_equal(1, read(sink->from, text + len, 1));
    }
    sink->port = (uint16_t)strtoul(text, NULL, 10);
    assert_true(sink->port > 0);
}

void sink_stop(struct sink *sink)
{
    int status = 0;
    (void)close(sink->to);
    (void)close(sink->from);
    assert_int_equal(sink->pid, waitpid(sink->pid, &status, 0));
    scratch_remove(&sink->scratch);
}

const char *sink_url(const struct sink *sink, const char *host, const char *path, char url[256])
{
    (void)snprintf(url, 256, "http://%s:%u%s", host, (unsigned)sink->port, path);
    return url;
}

void sink_forget(struct sink *sink)
{
    FILE *file = fopen(sink->scratch.path, "r");
    assert_non_null(file);
    assert_int_equal(0, fseek(file, 0, SEEK_END));
    sink->forgotten = ftell(file);
    (void)fclose(file);
}

size_t sink_count(const struct sink *sink, const char *text)
{
    static char line[LOG_MAX];
    size_t count = 0;
    FILE *file = fopen(sink->scratch.path, "r");
    assert_non_null(file);
    assert_int_equal(0, fseek(file, sink->forgotten, SEEK_SET));
    while (fgets(line, sizeof(line), file) != NULL)
        count += strstr(line, text) != NULL;
    (void)fclose(file);
    return count;
}

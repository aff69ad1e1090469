/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * log.c - events of workers and reapers as lines on standard error.
 * Owns:  writing a line, and what becomes of those that cannot be written.
 * Never: waits longer than a moment for whoever reads; changes how standard error behaves for
 *        others who have it (it may be the terminal of a shell); decides what is in a line.
 */
#include "cli/log.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define WAIT_MS 1000 /* for a reader that is slow, before lines are dropped */

const char *const pawli_log_formats[] = {"logfmt", "json", NULL};
const char *const pawli_log_levels[] = {"debug", "info", "warn", "error", NULL};

/* The place of a choice among its words. */
static int chosen(const struct pawli_line *line, const char *name, int otherwise)
{
    int64_t bits = pawli_line_number(line, name, 0);
    for (int i = 0; bits != 0 && i < 63; i++)
        if ((bits & (INT64_C(1) << i)) != 0)
            return i;
    return otherwise;
}

void pawli_log_init(struct pawli_log *log, const struct pawli_line *line)
{
    int level = pawli_line_has(line, "--verbose") ? PAWL_LEVEL_DEBUG : PAWL_LEVEL_INFO;
    *log = (struct pawli_log){
        .fd = STDERR_FILENO,
        .format = pawli_line_has(line, "--json")
                      ? PAWL_LINE_JSON
                      : (pawl_line_format)chosen(line, "--log-format", PAWL_LINE_LOGFMT),
        .level = (pawl_level)chosen(line, "--log-level", level),
    };
}

pawl_watch pawli_log_watch(struct pawli_log *log)
{
    return (pawl_watch){.tell = pawli_log_tell, .user = log, .level = log->level};
}

/* Whether a write of a line would not block: a pipe that can take anything has room for PIPE_BUF
 * bytes, and no line is longer. */
static bool is_ready(struct pawli_log *log)
{
    struct pollfd fd = {.fd = log->fd, .events = POLLOUT};
    int rc;
    do {
        rc = poll(&fd, 1, log->is_stuck ? 0 : WAIT_MS);
    } while (rc < 0 && errno == EINTR);
    log->is_stuck = rc == 0;
    if (rc == 0)
        log->why = "output_blocked";
    return rc != 0; /* an error is for the write to find */
}

static bool write_all(struct pawli_log *log, const char *text, size_t len)
{
    while (len > 0) {
        if (!is_ready(log))
            return false;
        ssize_t wrote = write(log->fd, text, len);
        if (wrote < 0 && errno != EINTR) {
            log->why = "output_failed";
            return false;
        }
        log->is_torn = wrote > 0 ? (size_t)wrote < len : log->is_torn;
        text += wrote > 0 ? wrote : 0;
        len -= wrote > 0 ? (size_t)wrote : 0;
    }
    return true;
}

static bool write_event(struct pawli_log *log, const pawl_event *event)
{
    char line[PAWL_EVENT_LINE_MAX];
    size_t len = pawl_event_line(event, log->format, line, sizeof(line));
    if (log->is_torn && !write_all(log, "\n", 1))
        return false;
    return write_all(log, line, len);
}

static void drop(struct pawli_log *log)
{
    log->dropped++;
    pawl_metrics_log_dropped(log->metrics, 1);
}

void pawli_log_tell(void *user, const pawl_event *event)
{
    struct pawli_log *log = user;
    pawl_event dropped = {.kind = PAWL_EVENT_DROPPED,
                          .level = PAWL_LEVEL_WARN,
                          .at = event->at,
                          .worker = event->worker,
                          .reason = log->why,
                          .count = log->dropped};
    if (log->dropped > 0 && write_event(log, &dropped))
        log->dropped = 0;
    if (log->dropped > 0 || !write_event(log, event))
        drop(log);
}

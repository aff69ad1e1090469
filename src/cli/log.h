/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * log.h - events of workers and reapers as lines on standard error, for commands that run until
 * they are told to end.
 */
#ifndef PAWLI_CLI_LOG_H
#define PAWLI_CLI_LOG_H

#include "cli/options.h"
#include "pawl/worker.h"

/* The options of such a command: it has all of these, but where --json has more to say. */
extern const char *const pawli_log_formats[]; /* by their numbers; ended by NULL */
extern const char *const pawli_log_levels[];  /* likewise */
#define PAWLI_OPTION_LOG_JSON                                                                      \
    {                                                                                              \
        "--json", PAWLI_FLAG, NULL, "the log as JSON, a document in each line: --log-format json", \
            0, 0, NULL                                                                             \
    }
#define PAWLI_OPTION_LOG_FORMAT                                                      \
    {                                                                                \
        "--log-format", PAWLI_CHOICE | PAWLI_SETTING, "FORMAT",                      \
            "of the log on standard error (default logfmt)", 0, 0, pawli_log_formats \
    }
#define PAWLI_OPTION_LOG_LEVEL                                              \
    {                                                                       \
        "--log-level", PAWLI_CHOICE | PAWLI_SETTING, "LEVEL",               \
            "log nothing below this (default info)", 0, 0, pawli_log_levels \
    }
#define PAWLI_OPTION_VERBOSE                                                                      \
    {                                                                                             \
        "--verbose", PAWLI_FLAG | PAWLI_SETTING, NULL, "log every step: --log-level debug", 0, 0, \
            NULL                                                                                  \
    }

/* Used by one thread at a time. */
struct pawli_log {
    int fd;
    pawl_line_format format;
    pawl_level level;
    bool is_stuck;         /* nobody reads: lines are dropped without waiting until somebody does */
    bool is_torn;          /* a part of a line was written */
    int64_t dropped;       /* lines, since the last one that was written */
    const char *why;       /* they were dropped */
    pawl_metrics *metrics; /* where they are counted; NULL: nowhere */
};

/* To standard error, as the options say. */
void pawli_log_init(struct pawli_log *log, const struct pawli_line *line);

/* For the options of workers and reapers. The log must outlive their threads. */
pawl_watch pawli_log_watch(struct pawli_log *log);

/* Log an event: for pawl_watch.tell, with the log as its user. A reader that is slow is waited for
 * a moment; then lines are dropped, and the next one that is written says how many. */
void pawli_log_tell(void *log, const pawl_event *event);

#endif

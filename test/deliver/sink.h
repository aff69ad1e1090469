/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * sink.h - the server of support/hostile.py as a process that a test starts. Each of these
 * functions fails the test where it cannot be done.
 */
#ifndef PAWLT_DELIVER_SINK_H
#define PAWLT_DELIVER_SINK_H

#include "support/scratch.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct sink {
    struct scratch scratch; /* its log */
    pid_t pid;
    int to;   /* its standard input: it serves until this is closed */
    int from; /* its standard output */
    uint16_t port;
    long forgotten; /* bytes of its log that do not count any more */
};

void sink_start(struct sink *sink);
void sink_stop(struct sink *sink);

/* http://HOST:PORT and a path. Gives `url`. */
const char *sink_url(const struct sink *sink, const char *host, const char *path, char url[256]);

/* What has come so far does not count any more. */
void sink_forget(struct sink *sink);

/* How many requests have come whose line in the log has `text` in it. */
size_t sink_count(const struct sink *sink, const char *text);

#endif

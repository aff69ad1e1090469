/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * again.h - SIGHUP: the settings are read again while a command runs. What came of it is told as
 * events, so that a log stays one in its format.
 */
#ifndef PAWLI_CLI_AGAIN_H
#define PAWLI_CLI_AGAIN_H

#include "cli/options.h"
#include "pawl/worker.h"

/* Who is to have the settings. */
struct pawli_again {
    const char *const *live; /* options that may change while it runs; ended by NULL */
    /* Take all of what the line says, or refuse it and change nothing. */
    pawl_code (*take)(void *user, const struct pawli_line *line, pawl_level level, pawl_err *err);
    void (*tell)(void *user, const pawl_event *event);
    void *user;
};

/* Read the file and the environment again, over what the command line said. */
void pawli_again_read(const struct pawli_line *line, const struct pawli_again *to);

#endif

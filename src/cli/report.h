/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * report.h - what a command that runs until it is told to end reports: a log on standard error,
 * and metrics over HTTP where that was asked for.
 */
#ifndef PAWLI_CLI_REPORT_H
#define PAWLI_CLI_REPORT_H

#include "cli/log.h"
#include "pawl/metrics.h"
#include "server/metrics_http.h"

#define PAWLI_OPTION_METRICS_INTERVAL                                                        \
    {                                                                                        \
        "--metrics-interval", PAWLI_DURATION | PAWLI_SETTING, "D",                           \
            "how often the store is asked for the depth of queues (default 15s)", 0, 0, NULL \
    }
#define PAWLI_OPTION_METRICS_LISTEN                                                             \
    {                                                                                           \
        "--metrics-listen", PAWLI_TEXT | PAWLI_SETTING, "ADDRESS",                              \
            "serve metrics at PORT (on 127.0.0.1), HOST:PORT, [IPV6]:PORT or a socket's path; " \
            "default: nowhere",                                                                 \
            0, 0, NULL                                                                          \
    }

struct pawli_report {
    struct pawli_log log;
    pawl_metrics *metrics;           /* NULL: not asked for */
    struct pawli_metrics_http *http; /* likewise */
};

/* As the options of the command say. Listens from here on. PAWL_INVALID, PAWL_DOWN,
 * PAWL_NO_MEMORY: with a text that names the option. */
pawl_code pawli_report_new(const struct pawli_line *line, struct pawli_report **ret_report,
                           pawl_err *err);

/* Its events must have come to their end. Accepts NULL. */
void pawli_report_free(struct pawli_report *report);

#endif

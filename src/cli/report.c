/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * report.c - what a command that runs until it is told to end reports.
 * Owns:  the log, the figures and who serves them.
 * Never: is in the way of what it reports on.
 */
#include "cli/report.h"

#include <stdio.h>
#include <stdlib.h>

#define LISTEN   "--metrics-listen"
#define INTERVAL "--metrics-interval"

static pawl_code fail(const char *option, pawl_code code, pawl_err *err)
{
    pawl_err inner = *err;
    *err = (pawl_err){.code = code};
    /* What does not fit is the end of a long path. */
    (void)snprintf(err->text, sizeof(err->text), "%s: %.230s", option, inner.text);
    return code;
}

static void tell_up(struct pawli_report *report)
{
    const pawl_clock *clock = pawl_clock_system();
    if (report->log.level > PAWL_LEVEL_INFO)
        return; /* what comes from workers and reapers, they choose */
    pawl_event event = {.kind = PAWL_EVENT_METRICS_UP,
                        .level = PAWL_LEVEL_INFO,
                        .at = clock->wall(clock->user),
                        .worker = "",
                        .reason = ""};
    (void)snprintf(event.text, sizeof(event.text), "%s",
                   pawli_metrics_http_address(report->http)); /* fits */
    pawli_log_tell(&report->log, &event);
}

static pawl_code serve(struct pawli_report *report, const struct pawli_line *line,
                       const char *address, pawl_err *err)
{
    pawl_metrics_options options;
    pawl_metrics_options_init(&options);
    options.look_ms = pawli_line_number(line, INTERVAL, options.look_ms);
    pawl_code code = pawl_metrics_new(&options, &report->metrics, err);
    if (code != PAWL_OK)
        return fail(INTERVAL, code, err);
    report->log.metrics = report->metrics;
    code = pawli_metrics_http_start(report->metrics, address, &report->http, err);
    if (code != PAWL_OK)
        return fail(LISTEN, code, err);
    tell_up(report);
    return PAWL_OK;
}

pawl_code pawli_report_new(const struct pawli_line *line, struct pawli_report **ret_report,
                           pawl_err *err)
{
    const char *address = pawli_line_text(line, LISTEN);
    struct pawli_report *report = calloc(1, sizeof(*report));
    if (report == NULL) {
        *err = (pawl_err){.code = PAWL_NO_MEMORY, .text = "memory ran out"};
        return PAWL_NO_MEMORY;
    }
    pawli_log_init(&report->log, line);
    pawl_code code = address != NULL ? serve(report, line, address, err) : PAWL_OK;
    if (code != PAWL_OK) {
        pawli_report_free(report);
        return code;
    }
    *ret_report = report;
    return PAWL_OK;
}

void pawli_report_free(struct pawli_report *report)
{
    if (report == NULL)
        return;
    pawli_metrics_http_stop(report->http);
    pawl_metrics_free(report->metrics);
    free(report);
}

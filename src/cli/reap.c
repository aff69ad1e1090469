/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * reap.c - `pawl reap`: recovers expired leases and prunes old histories, once, or until it is told
 *          to end.
 * Owns:  the words of the command and the form of its output.
 * Never: decides that a lease has expired.
 */
#include "cli/again.h"
#include "cli/command.h"
#include "cli/json.h"
#include "cli/report.h"
#include "cli/stop_signals.h"
#include "cli/store_url.h"

#include "runtime/reaper.h"
#include "store/health.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>
#include <unistd.h>

#define NAME      "reap"
#define BATCH_MAX 1000

struct sums {
    int64_t recovered;
    int64_t failed; /* of these */
    int64_t pruned;
};

/* All that has expired, and all that is old. */
static pawl_code reap_all(pawl_store *store, pawl_reaped *rows, struct sums *ret_sums,
                          pawl_err *err)
{
    size_t count = BATCH_MAX;
    while (count == BATCH_MAX) {
        pawl_code code = pawl_reap(store, rows, BATCH_MAX, &count, err);
        if (code != PAWL_OK)
            return code;
        ret_sums->recovered += (int64_t)count;
        for (size_t i = 0; i < count; i++)
            ret_sums->failed += rows[i].state == PAWL_FAILED;
    }
    count = BATCH_MAX;
    while (count == BATCH_MAX) {
        pawl_code code = pawl_prune(store, BATCH_MAX, &count, err);
        if (code != PAWL_OK)
            return code;
        ret_sums->pruned += (int64_t)count;
    }
    return PAWL_OK;
}

static void tell(const struct sums *sums, bool is_json)
{
    if (!is_json) {
        (void)printf(
            "%lld recovered (%lld of them failed), %lld pruned\n", /* main asks for errors */
            (long long)sums->recovered, (long long)sums->failed, (long long)sums->pruned);
        return;
    }
    struct pawli_json json;
    pawli_json_init(&json, stdout);
    pawli_json_open_object(&json, NULL);
    pawli_json_number(&json, "recovered", sums->recovered);
    pawli_json_number(&json, "failed", sums->failed);
    pawli_json_number(&json, "pruned", sums->pruned);
    pawli_json_close(&json);
}

static int run_once(const struct pawli_line *line, const struct pawli_cli_store *store)
{
    struct sums sums = {0};
    pawl_store *handle = NULL;
    pawl_err err = {.text = "memory ran out"};
    pawl_reaped *rows = calloc(BATCH_MAX, sizeof(*rows));
    pawl_code code = rows != NULL ? PAWL_OK : PAWL_NO_MEMORY;
    if (code == PAWL_OK)
        code = store->opener.open(store->opener.user, PAWL_ROLE_REAPER, &handle, &err);
    if (code == PAWL_OK)
        code = reap_all(handle, rows, &sums, &err);
    pawl_store_close(handle);
    free(rows);
    if (code != PAWL_OK)
        return pawli_cli_fail(NAME, code, &err);
    tell(&sums, pawli_line_has(line, "--json"));
    return EX_OK;
}

/* The smallest lease of the queues (RULE-020-022). A store that is away is waited for later. */
static int64_t find_lease(const struct pawli_cli_store *store, int64_t otherwise_ms)
{
    pawl_store *handle = NULL;
    int64_t lease_ms = otherwise_ms;
    if (store->opener.open(store->opener.user, PAWL_ROLE_REAPER, &handle, NULL) != PAWL_OK ||
        pawli_health_smallest_lease(handle, &lease_ms, NULL) != PAWL_OK)
        lease_ms = otherwise_ms;
    pawl_store_close(handle);
    return lease_ms;
}

/* What may change while it runs. */
static const char *const live_options[] = {"--interval", "--log-level", "--verbose", NULL};

/* SIGHUP: all of what the file says now, or nothing of it. */
static pawl_code take_settings(void *reaper, const struct pawli_line *again, pawl_level level,
                               pawl_err *err)
{
    return pawl_reaper_tune(reaper, pawli_line_number(again, "--interval", PAWL_DEFAULT), level,
                            err);
}

static void tell_event(void *reaper, const pawl_event *event)
{
    pawli_reaper_tell(reaper, event);
}

static int run_watch(const struct pawli_line *line, const struct pawli_cli_store *store)
{
    pawl_reaper_options options;
    struct pawli_report *report = NULL;
    pawl_reaper *reaper = NULL;
    pawl_err err;
    pawl_reaper_options_init(&options);
    options.settings.interval_ms = pawli_line_number(line, "--interval",
                                                     options.settings.interval_ms);
    options.smallest_lease_ms = pawli_line_number(line, "--lease",
                                                  find_lease(store, options.smallest_lease_ms));
    options.presence_ms = pawli_line_number(line, "--presence", options.presence_ms);
    options.opener = store->opener;
    options.name = pawli_line_text(line, "--name");
    pawli_cli_stop_signals_hold();
    pawl_code code = pawli_report_new(line, &report, &err);
    if (code == PAWL_OK) {
        options.watch = pawli_log_watch(&report->log);
        options.metrics = report->metrics;
        code = pawl_reaper_start(&options, &reaper, &err);
    }
    if (code != PAWL_OK) {
        pawli_report_free(report);
        return pawli_cli_fail(NAME, code, &err);
    }
    const struct pawli_again again = {live_options, take_settings, tell_event, reaper};
    while (pawli_cli_stop_signals_wait(-1) == SIGHUP)
        pawli_again_read(line, &again);
    if (pawl_reaper_stop(reaper) > 0)
        _exit(EX_OK); /* nothing can be freed, nor done at exit, under threads that still run */
    pawli_report_free(report);
    return EX_OK;
}

static int run_reap(const struct pawli_line *line)
{
    struct pawli_cli_store store;
    pawl_err err;
    bool is_watch = pawli_line_has(line, "--watch");
    /* One that goes on may be the first to be started. */
    const struct pawli_cli_store_args args = {.call_timeout_ms = PAWL_DEFAULT, .is_made = is_watch};
    pawl_code code = pawli_cli_store_init(&store, line, &args, &err);
    if (code != PAWL_OK)
        return pawli_cli_fail(NAME, code, &err);
    int exit_code = is_watch ? run_watch(line, &store) : run_once(line, &store);
    pawli_cli_store_clear(&store);
    return exit_code;
}

static const struct pawli_option options[] = {
    PAWLI_OPTION_CONFIG,
    {"--interval", PAWLI_DURATION | PAWLI_SETTING, "D",
     "between two runs; default: half the lease, 10s at most", 0, 0, NULL},
    {"--json", PAWLI_FLAG, NULL, "as one JSON document; with --watch, the log: --log-format json",
     0, 0, NULL},
    {"--lease", PAWLI_DURATION | PAWLI_SETTING, "D",
     "the smallest lease of the queues; default: what they are set to", 0, 0, NULL},
    PAWLI_OPTION_LOG_FORMAT,
    PAWLI_OPTION_LOG_LEVEL,
    PAWLI_OPTION_METRICS_INTERVAL,
    PAWLI_OPTION_METRICS_LISTEN,
    {"--name", PAWLI_NAME | PAWLI_SETTING, "NAME", "the beginning of its name; default: the host's",
     0, 0, NULL},
    {"--presence", PAWLI_DURATION | PAWLI_SETTING, "D",
     "how often presence rows are refreshed in this deployment (default 5s)", 0, 0, NULL},
    PAWLI_OPTION_STORE,
    PAWLI_OPTION_VERBOSE,
    {"--watch", PAWLI_FLAG, NULL, "go on until told to end", 0, 0, NULL},
    {0},
};

const struct pawli_command pawli_command_reap = {
    .name = "reap",
    .about = "recover expired leases and prune old histories",
    .options = options,
    .details = "Once, and says how many; with --watch, again and again until SIGTERM or SIGINT. "
               "Workers do this by themselves; any number may do it at once. With --watch it also "
               "reports workers that have ended without a word, and SIGHUP makes it read its "
               "settings again: --interval, --log-level and --verbose change while it runs.",
    .examples = "pawl reap\npawl reap --watch --interval 5s\n",
    .run = run_reap,
};

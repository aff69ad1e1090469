/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * deliver.c - `pawl deliver`: delivers events to the endpoints that want them.
 * Owns:  the words of the command.
 * Never: decides what happens to a job, or whether an address may be called.
 */
#include "cli/command.h"
#include "cli/descriptors.h"
#include "cli/private.h"
#include "cli/report.h"
#include "cli/run_until_told.h"
#include "cli/stop_signals.h"
#include "cli/store_url.h"
#include "cli/webhook_rules.h"
#include "deliver/dispatcher.h"
#include "runtime/worker.h"

#include <sysexits.h>
#include <unistd.h>

#define NAME        "deliver"
#define DESCRIPTORS 64 /* beside those of deliveries: the store's, the log's, metrics ... */

/* ---------------------------------------------------------------- words */

/* What may change while it runs (RULE-020-002), and what the level of the log comes from. */
static const char *const live_options[] = {"--call-timeout",     "--grace",   "--log-level",
                                           "--webhook-parallel", "--poll",    "--reaper-interval",
                                           "--shutdown",         "--verbose", NULL};

static void fill_settings(const struct pawli_line *line, pawl_worker_settings *settings)
{
    const struct {
        const char *name;
        int64_t *number;
    } numbers[] = {
        {"--webhook-parallel", &settings->parallel_max},
        {"--poll", &settings->poll_ms},
        {"--grace", &settings->grace_ms},
        {"--shutdown", &settings->shutdown_timeout_ms},
        {"--call-timeout", &settings->call_timeout_ms},
    };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        *numbers[i].number = pawli_line_number(line, numbers[i].name, *numbers[i].number);
}

static void fill_options(const struct pawli_line *line, const struct pawli_webhook_rules *rules,
                         struct pawli_dispatcher_options *options)
{
    pawl_worker_options *worker = &options->worker;
    fill_settings(line, &worker->settings);
    worker->reaper.interval_ms = pawli_line_number(line, "--reaper-interval",
                                                   worker->reaper.interval_ms);
    worker->presence_ms = pawli_line_number(line, "--presence", worker->presence_ms);
    worker->is_reaper_off = pawli_line_has(line, "--no-reaper");
    worker->name = pawli_line_text(line, "--name");
    options->target = rules->target;
    options->wire.allow = &rules->allow;
    options->wire.ca_file = pawli_line_text(line, "--webhook-ca");
    options->wire.proxy = pawli_line_text(line, "--webhook-proxy");
    options->wire.connections_max = (long)worker->settings.parallel_max;
    options->refresh_ms = pawli_line_number(line, "--webhook-refresh", options->refresh_ms);
    options->per_host_max = pawli_line_number(line, "--webhook-per-host", options->per_host_max);
    options->breaker.failures_max = pawli_line_number(line, "--webhook-failures",
                                                      options->breaker.failures_max);
    options->breaker.open_base_ms = pawli_line_number(line, "--webhook-open",
                                                      options->breaker.open_base_ms);
    if (options->breaker.open_max_ms < options->breaker.open_base_ms)
        options->breaker.open_max_ms = options->breaker.open_base_ms;
    options->breaker.disable_after_ms = pawli_line_number(line, "--webhook-disable-after",
                                                          options->breaker.disable_after_ms);
    if (pawli_line_has(line, "--webhook-source"))
        options->source = pawli_line_text(line, "--webhook-source");
}

/* Each delivery takes a descriptor: as many as are wanted, where the system lets us have them. */
static bool raise_limit(const struct pawli_line *line, int64_t parallel_max)
{
    int64_t wanted = DESCRIPTORS +
                     pawli_cli_descriptors_of(parallel_max, PAWLI_DESCRIPTORS_PER_DELIVERY);
    int64_t given = pawli_cli_descriptors(wanted);
    if (given >= wanted)
        return true;
    (void)pawli_line_refuse(
        line,
        "--webhook-parallel %lld needs %lld descriptors, and the system gives %lld "
        "(ulimit -Hn)",
        (long long)parallel_max, (long long)wanted, (long long)given);
    return false;
}

/* ---------------------------------------------------------------- running */

/* SIGHUP: all of what the file says now, or nothing of it. */
static pawl_code take_settings(void *runner, const struct pawli_line *again, pawl_level level,
                               pawl_err *err)
{
    struct pawli_dispatcher_options options;
    pawli_dispatcher_options_init(&options);
    pawl_worker_tuning tuning = {
        .settings = options.worker.settings,
        .lease_ms = PAWL_DEFAULT,
        .reaper_interval_ms = pawli_line_number(again, "--reaper-interval", PAWL_DEFAULT),
        .level = level,
    };
    fill_settings(again, &tuning.settings);
    return pawl_worker_tune(runner, &tuning, err);
}

static void tell(void *runner, const pawl_event *event)
{
    pawli_worker_tell(runner, event);
}

static int run(const struct pawli_line *line, struct pawli_dispatcher_options *options)
{
    struct pawli_cli_store store;
    pawl_runner *runner = NULL;
    pawl_err err;
    struct pawli_report *report = NULL;
    pawli_cli_keep_private();
    pawli_cli_stop_signals_hold();
    const struct pawli_cli_store_args args = {options->worker.settings.call_timeout_ms, true};
    pawl_code code = pawli_cli_store_init(&store, line, &args, &err);
    if (code == PAWL_OK)
        code = pawli_report_new(line, &report, &err);
    if (code == PAWL_OK) {
        options->worker.watch = pawli_log_watch(&report->log);
        options->worker.metrics = report->metrics;
        options->worker.opener = store.opener;
        code = pawli_dispatcher_start(options, &runner, &err);
    }
    size_t left = 0;
    const struct pawli_again again = {live_options, take_settings, tell, runner};
    int exit_code = code == PAWL_OK ? pawli_run_until_told(line, runner, &again, &left)
                                    : pawli_cli_fail(NAME, code, &err);
    if (left > 0)
        _exit(exit_code); /* nothing can be freed, nor done at exit, under threads that still run */
    pawli_cli_store_clear(&store);
    pawli_report_free(report);
    return exit_code;
}

static int run_deliver(const struct pawli_line *line)
{
    struct pawli_dispatcher_options dispatcher;
    struct pawli_webhook_rules rules;
    pawli_dispatcher_options_init(&dispatcher);
    if (!pawli_webhook_rules_read(line, &rules))
        return EX_USAGE;
    fill_options(line, &rules, &dispatcher);
    if (!raise_limit(line, dispatcher.worker.settings.parallel_max))
        return EX_USAGE;
    return run(line, &dispatcher);
}

static const struct pawli_option options[] = {
    {"--call-timeout", PAWLI_DURATION | PAWLI_SETTING, "D",
     "the longest that a store call may take (default 5s)", 0, 0, NULL},
    PAWLI_OPTION_CONFIG,
    {"--grace", PAWLI_DURATION | PAWLI_SETTING, "D",
     "how long before the end of a shutdown deliveries are stopped (default 5s)", 0, 0, NULL},
    PAWLI_OPTION_LOG_JSON,
    PAWLI_OPTION_LOG_FORMAT,
    PAWLI_OPTION_LOG_LEVEL,
    PAWLI_OPTION_METRICS_INTERVAL,
    PAWLI_OPTION_METRICS_LISTEN,
    {"--name", PAWLI_NAME | PAWLI_SETTING, "NAME", "the beginning of its name; default: the host's",
     0, 0, NULL},
    {"--no-reaper", PAWLI_FLAG | PAWLI_SETTING, NULL, "leave recovering to others", 0, 0, NULL},
    {"--poll", PAWLI_DURATION | PAWLI_SETTING, "D",
     "how often it asks for work when there is none (default 1s)", 0, 0, NULL},
    {"--presence", PAWLI_DURATION | PAWLI_SETTING, "D",
     "how often presence rows are refreshed (default 5s)", 0, 0, NULL},
    {"--reaper-interval", PAWLI_DURATION | PAWLI_SETTING, "D",
     "default: half the smallest lease, 10s at most", 0, 0, NULL},
    {"--shutdown", PAWLI_DURATION | PAWLI_SETTING, "D",
     "default: the smallest lease, which is also the most", 0, 0, NULL},
    PAWLI_OPTION_STORE,
    PAWLI_OPTION_VERBOSE,
    PAWLI_OPTION_WEBHOOK_ALLOW,
    PAWLI_OPTION_WEBHOOK_CA,
    {"--webhook-disable-after", PAWLI_DURATION | PAWLI_SETTING, "D",
     "disable an endpoint that has failed for so long, without a success (default 5d)", 0, 0, NULL},
    {"--webhook-failures", PAWLI_NUMBER | PAWLI_SETTING, "N",
     "so many in a row, and an endpoint is left alone for a while (default 5)", 1,
     PAWLI_BREAKER_FAILURES_MAX, NULL},
    PAWLI_OPTION_WEBHOOK_HTTP,
    {"--webhook-open", PAWLI_DURATION | PAWLI_SETTING, "D",
     "for how long an endpoint that fails is left alone the first time; then twice as long, and so "
     "on, up to 10m (default 10s)",
     0, 0, NULL},
    {"--webhook-parallel", PAWLI_NUMBER | PAWLI_SETTING, "N", "deliveries at once (default 1000)",
     1, INT64_MAX, NULL},
    {"--webhook-per-host", PAWLI_NUMBER | PAWLI_SETTING, "N",
     "deliveries at once to one host and port (default 256)", 1, PAWL_BATCH_MAX, NULL},
    PAWLI_OPTION_WEBHOOK_PORTS,
    PAWLI_OPTION_WEBHOOK_PROXY,
    {"--webhook-refresh", PAWLI_DURATION | PAWLI_SETTING, "D",
     "how often it asks which endpoints there are (default 2s)", 0, 0, NULL},
    PAWLI_OPTION_WEBHOOK_SOURCE,
    {0},
};

const struct pawli_command pawli_command_deliver = {
    .name = NAME,
    .about = "deliver events to the endpoints that want them",
    .options = options,
    .details =
        "Serves every endpoint that there is, and follows them as they are added, changed, "
        "disabled and removed. Any number of these processes may run at once. Deliveries are "
        "signed as Standard Webhooks has it. 2xx: delivered; 410: failed for good, and the "
        "endpoint is disabled; 429 and 503: retried, and the endpoint is left alone for as long as "
        "it asks (Retry-After, an hour at most); 4xx that the endpoint is set to fail: failed for "
        "good; all else is retried as the endpoint is set. Redirects are not followed. An endpoint "
        "that fails several times in a row is left alone for a while, then tried with one "
        "delivery; after --webhook-disable-after without a success it is disabled.\n"
        "Only public addresses are called, by https and on ports 80 and 443, unless the settings "
        "webhook-allow, webhook-http and webhook-ports say more.\n"
        "The first SIGTERM or SIGINT ends it in order, the second at once. SIGHUP makes it read "
        "its settings again: --call-timeout, --grace, --log-level, --webhook-parallel (up to what "
        "it was "
        "at the start), --poll, --reaper-interval, --shutdown and --verbose change while it runs, "
        "all of them or, where one is wrong, none.",
    .examples = "pawl deliver\n"
                "pawl deliver --webhook-parallel 5000 --metrics-listen 9464\n",
    .run = run_deliver,
};

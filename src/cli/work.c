/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * work.c - `pawl work`: a worker that runs a program for each job.
 * Owns:  the words of the command; what signals do to the worker.
 * Never: decides what happens to a job.
 */
#include "cli/again.h"
#include "cli/command.h"
#include "cli/report.h"
#include "cli/run_until_told.h"
#include "cli/stop_signals.h"
#include "cli/store_url.h"

#include "runtime/worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>
#include <unistd.h>

#define NAME "work"

/* ---------------------------------------------------------------- words */

/* What may change while it runs (RULE-020-002), and what the level of the log comes from. */
static const char *const live_options[] = {
    "--buffer",   "--call-timeout", "--grace",           "--heartbeat", "--lease",   "--log-level",
    "--parallel", "--poll",         "--reaper-interval", "--shutdown",  "--verbose", NULL};

static void fill_settings(const struct pawli_line *line, pawl_worker_settings *settings)
{
    const struct {
        const char *name;
        int64_t *number;
    } numbers[] = {
        {"--parallel", &settings->parallel_max},
        {"--buffer", &settings->buffer_max},
        {"--heartbeat", &settings->heartbeat_ms},
        {"--poll", &settings->poll_ms},
        {"--grace", &settings->grace_ms},
        {"--shutdown", &settings->shutdown_timeout_ms},
        {"--call-timeout", &settings->call_timeout_ms},
    };
    settings->settle_linger_ms = PAWL_COMMAND_LINGER_MS;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        *numbers[i].number = pawli_line_number(line, numbers[i].name, *numbers[i].number);
}

static void fill_options(const struct pawli_line *line, pawl_worker_queue *queues,
                         pawl_worker_options *options)
{
    fill_settings(line, &options->settings);
    options->reaper.interval_ms = pawli_line_number(line, "--reaper-interval",
                                                    options->reaper.interval_ms);
    options->presence_ms = pawli_line_number(line, "--presence", options->presence_ms);
    for (size_t i = 0; i < line->arguments_count; i++)
        queues[i] = (pawl_worker_queue){
            .queue = line->arguments[i],
            .jobs_max = PAWL_DEFAULT,
            .lease_ms = pawli_line_number(line, "--lease", PAWL_DEFAULT),
        };
    options->queues = queues;
    options->queues_count = line->arguments_count;
    options->is_reaper_off = pawli_line_has(line, "--no-reaper");
    options->name = pawli_line_text(line, "--name");
}

/* ---------------------------------------------------------------- running */

/* SIGHUP: all of what the file says now, or nothing of it. */
static pawl_code take_settings(void *runner, const struct pawli_line *again, pawl_level level,
                               pawl_err *err)
{
    pawl_worker_tuning tuning = {
        .lease_ms = pawli_line_number(again, "--lease", PAWL_DEFAULT),
        .reaper_interval_ms = pawli_line_number(again, "--reaper-interval", PAWL_DEFAULT),
        .level = level,
    };
    pawl_worker_settings_init(&tuning.settings);
    fill_settings(again, &tuning.settings);
    return pawl_worker_tune(runner, &tuning, err);
}

static void tell(void *runner, const pawl_event *event)
{
    pawli_worker_tell(runner, event);
}

static int run(const struct pawli_line *line, pawl_worker_options *options)
{
    struct pawli_cli_store store;
    pawl_command *command = NULL;
    pawl_runner *runner = NULL;
    pawl_err err;
    struct pawli_report *report = NULL;
    pawl_command_options run = {.argv = line->program, .is_process_ours = true};
    pawli_cli_stop_signals_hold();
    const struct pawli_cli_store_args args = {.call_timeout_ms = options->settings.call_timeout_ms,
                                              .is_made = true};
    pawl_code code = pawli_cli_store_init(&store, line, &args, &err);
    if (code == PAWL_OK)
        code = pawl_command_new(&run, &command, &err);
    if (code == PAWL_OK)
        code = pawli_report_new(line, &report, &err);
    if (code == PAWL_OK) {
        options->watch = pawli_log_watch(&report->log);
        options->metrics = report->metrics;
        options->opener = store.opener;
        options->handler = pawl_command_handler;
        options->user = command;
        code = pawl_worker_start(options, &runner, &err);
    }
    size_t left = 0;
    const struct pawli_again again = {live_options, take_settings, tell, runner};
    int exit_code = code == PAWL_OK ? pawli_run_until_told(line, runner, &again, &left)
                                    : pawli_cli_fail(NAME, code, &err);
    if (left > 0)
        _exit(exit_code); /* nothing can be freed, nor done at exit, under threads that still run */
    pawl_command_free(command);
    pawli_cli_store_clear(&store);
    pawli_report_free(report);
    return exit_code;
}

static int run_work(const struct pawli_line *line)
{
    pawl_worker_options worker;
    pawl_worker_options_init(&worker);
    if (line->program == NULL)
        return pawli_line_refuse(line, "say what to run, after --");
    pawl_worker_queue *queues = calloc(line->arguments_count, sizeof(*queues));
    if (queues == NULL) {
        (void)fputs("pawl work: memory ran out\n", stderr);
        return EX_OSERR;
    }
    fill_options(line, queues, &worker);
    int exit_code = run(line, &worker);
    free(queues);
    return exit_code;
}

static const struct pawli_option options[] = {
    {"--buffer", PAWLI_NUMBER | PAWLI_SETTING, "N", "jobs held but not started (default 10)", 0,
     INT64_MAX, NULL},
    {"--call-timeout", PAWLI_DURATION | PAWLI_SETTING, "D",
     "the longest that a store call may take (default 5s)", 0, 0, NULL},
    PAWLI_OPTION_CONFIG,
    {"--grace", PAWLI_DURATION | PAWLI_SETTING, "D", "from SIGTERM to SIGKILL, about (default 5s)",
     0, 0, NULL},
    {"--heartbeat", PAWLI_DURATION | PAWLI_SETTING, "D", "default: a quarter of the lease", 0, 0,
     NULL},
    PAWLI_OPTION_LOG_JSON,
    {"--lease", PAWLI_DURATION | PAWLI_SETTING, "D", "default: what each queue is set to", 0, 0,
     NULL},
    PAWLI_OPTION_LOG_FORMAT,
    PAWLI_OPTION_LOG_LEVEL,
    PAWLI_OPTION_METRICS_INTERVAL,
    PAWLI_OPTION_METRICS_LISTEN,
    {"--name", PAWLI_NAME | PAWLI_SETTING, "NAME", "the beginning of its name; default: the host's",
     0, 0, NULL},
    {"--no-reaper", PAWLI_FLAG | PAWLI_SETTING, NULL, "leave recovering to others", 0, 0, NULL},
    {"--parallel", PAWLI_NUMBER | PAWLI_SETTING, "N", "programs at once (default 10)", 0, INT64_MAX,
     NULL},
    {"--poll", PAWLI_DURATION | PAWLI_SETTING, "D",
     "how often an idle worker asks for work (default 1s)", 0, 0, NULL},
    {"--presence", PAWLI_DURATION | PAWLI_SETTING, "D",
     "how often presence rows are refreshed (default 5s)", 0, 0, NULL},
    {"--reaper-interval", PAWLI_DURATION | PAWLI_SETTING, "D",
     "default: half the lease, 10s at most", 0, 0, NULL},
    {"--shutdown", PAWLI_DURATION | PAWLI_SETTING, "D",
     "default: the smallest lease, which is also the most", 0, 0, NULL},
    PAWLI_OPTION_STORE,
    PAWLI_OPTION_VERBOSE,
    {0},
};

const struct pawli_command pawli_command_work = {
    .name = NAME,
    .about = "run a program for each job of some queues",
    .arguments = "QUEUE...",
    .arguments_min = 1,
    .arguments_max = PAWL_LINES_MAX,
    .names_max = PAWL_LINES_MAX,
    .is_program_taken = true,
    .options = options,
    .details =
        "The program gets the payload on standard input, and PAWL_JOB_ID, PAWL_QUEUE, "
        "PAWL_ORDERING_KEY, PAWL_FENCE, PAWL_ATTEMPT, PAWL_LEASE_VERSION, PAWL_DEADLINE (Unix "
        "seconds) and TRACEPARENT in its environment; and each header of the job as PAWL_HEADER_ "
        "and its name, in capitals, with _ for whatever is neither letter nor digit (of two that "
        "fall together the first counts). A valid header traceparent gives TRACEPARENT its trace "
        "and flags. Exit 0: done; 75: put back without using a "
        "retry; 65: failed for good; "
        "anything else: a failed attempt, with the last lines of standard error as its text. When "
        "it must stop it gets SIGTERM, then SIGKILL. Whatever it has started is killed when it "
        "has ended. One that cannot be started for lack of processes, descriptors or memory uses "
        "no retry: its job is put back.\n"
        "The first SIGTERM or SIGINT ends the worker in order, the second at once. SIGHUP makes it "
        "read its settings again: --buffer, --call-timeout, --grace, --heartbeat, --lease, "
        "--log-level, --parallel, --poll, --reaper-interval, --shutdown and --verbose change while "
        "it runs (--parallel and --buffer together up to what they were at the start), all of them "
        "or, where one is wrong, none.",
    .examples = "pawl work mail --parallel 4 -- /usr/bin/deliver --quiet\n"
                "pawl work mail news -- sh -c 'echo \"$PAWL_QUEUE: $(cat)\"'\n",
    .run = run_work,
};

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * jobs.c - `pawl jobs` and `pawl attempts`: which jobs there are, one of them, and its history.
 * Owns:  the form of their output.
 * Never: shows a token; shows a payload but where it was asked for, alone; shows headers in a list.
 */
#include "cli/command.h"
#include "cli/store_url.h"
#include "cli/tell.h"
#include "pawl/headers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#define PAGE          1000
#define LIMIT_DEFAULT 100
#define NUMBER_SIZE   24 /* of a printed number */

/* ---- a job */

/* Only of one that was asked for: a list has none. */
static void headers_json(struct pawli_json *json, const char *headers)
{
    pawl_header header;
    char name[PAWL_HEADER_NAME_MAX + 1];
    char value[PAWL_HEADER_VALUE_MAX + 1];
    if (headers == NULL)
        return;
    pawli_json_open_object(json, "headers");
    for (const char *at = headers; pawl_headers_next(&at, &header);) {
        (void)snprintf(name, sizeof(name), "%.*s", (int)header.name_len, header.name); /* they */
        (void)snprintf(value, sizeof(value), "%.*s", (int)header.value_len, header.value); /* fit */
        pawli_json_text(json, name, value);
    }
    pawli_json_close(json);
}

static void job_json(struct pawli_json *json, const pawl_job *job)
{
    pawli_json_open_object(json, NULL);
    pawli_json_id(json, "id", &job->id);
    pawli_json_text(json, "queue", job->queue);
    if (job->ordering_key[0] != '\0')
        pawli_json_text(json, "ordering_key", job->ordering_key);
    pawli_json_text(json, "state", pawl_state_name(job->state));
    pawli_json_number(json, "priority", job->priority);
    pawli_json_number(json, "retries", job->retries);
    pawli_json_number(json, "max_retries", job->max_retries);
    pawli_json_number(json, "lost_leases", job->lost_leases);
    pawli_json_number(json, "attempts", job->attempts);
    pawli_json_number(json, "lease_version", job->lease_version);
    pawli_json_text(json, "reason", pawl_reason_name(job->reason));
    pawli_json_time(json, "created_at", job->created_at);
    pawli_json_time(json, "due_at", job->due_at);
    pawli_json_time(json, "start_by", job->start_by);
    pawli_json_time(json, "finished_at", job->finished_at);
    if (job->state == PAWL_IN_FLIGHT) {
        pawli_json_text(json, "worker", job->worker);
        pawli_json_time(json, "claimed_at", job->claimed_at);
        pawli_json_time(json, "expires_at", job->expires_at);
        pawli_json_time(json, "run_until", job->run_until);
        pawli_json_number(json, "lease_ms", job->lease_ms);
        pawli_json_bool(json, "is_cancel_asked", job->is_cancel_asked);
        if (job->fence > 0)
            pawli_json_number(json, "fence", job->fence);
    }
    pawli_json_number(json, "payload_len", (int64_t)job->payload_len);
    headers_json(json, job->headers);
    pawli_json_close(json);
}

static void job_line(const pawl_job *job)
{
    char id[PAWL_ID_TEXT_MAX];
    char at[PAWLI_TIME_TEXT_MAX];
    pawl_wall when = job->state == PAWL_IN_FLIGHT ? job->expires_at
                     : job->state == PAWL_READY   ? job->due_at
                                                  : job->finished_at;
    (void)printf("%s  %-9s  %-24s  %8" PRId64 "  %-9s  %s%s%s\n", /* here and below: main asks */
                 pawl_id_format(&job->id, id), pawl_state_name(job->state),
                 pawli_time_text(when, at), job->attempts, pawl_reason_name(job->reason),
                 job->queue, job->ordering_key[0] != '\0' ? "  " : "", job->ordering_key);
}

static void job_text(const pawl_job *job)
{
    char id[PAWL_ID_TEXT_MAX];
    char at[PAWLI_TIME_TEXT_MAX];
    (void)printf("id             %s\nqueue          %s\nstate          %s\nreason         %s\n",
                 pawl_id_format(&job->id, id), job->queue, pawl_state_name(job->state),
                 pawl_reason_name(job->reason));
    if (job->ordering_key[0] != '\0')
        (void)printf("key            %s\n", job->ordering_key);
    if (job->fence > 0)
        (void)printf("fence          %" PRId64 "\n", job->fence);
    (void)printf("priority       %d\nattempts       %" PRId64 "\nretries        %" PRId64
                 " of %" PRId64 "\nlost leases    %" PRId64 "\nlease version  %" PRId64 "\n",
                 job->priority, job->attempts, job->retries, job->max_retries, job->lost_leases,
                 job->lease_version);
    const struct {
        const char *name;
        pawl_wall at;
    } times[] = {{"created", job->created_at},  {"due", job->due_at},
                 {"start by", job->start_by},   {"finished", job->finished_at},
                 {"claimed", job->claimed_at},  {"expires", job->expires_at},
                 {"runs until", job->run_until}};
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
        if (times[i].at.us > 0)
            (void)printf("%-14s %s\n", times[i].name, pawli_time_text(times[i].at, at));
    if (job->state == PAWL_IN_FLIGHT)
        (void)printf("worker         %s\n%s", job->worker,
                     job->is_cancel_asked ? "               marked for cancellation\n" : "");
    (void)printf("payload        %zu bytes\n", job->payload_len);
    pawl_header header;
    for (const char *from = job->headers; pawl_headers_next(&from, &header);)
        (void)printf("header         %.*s: %.*s\n", (int)header.name_len, header.name,
                     (int)header.value_len, header.value);
}

/* ---- jobs list */

static pawl_code list(const struct pawli_line *line, pawl_store *store, int *ret_exit,
                      pawl_err *err)
{
    bool is_json = pawli_line_has(line, "--json");
    int64_t left = pawli_line_number(line, "--limit", LIMIT_DEFAULT);
    pawl_filter filter = pawli_line_filter(line);
    struct pawli_json json;
    pawl_id after = {{0}};
    pawl_code code = PAWL_OK;
    const char *first = pawli_line_text(line, "--after");
    if (first != NULL && !pawli_line_id(line, first, &after)) {
        *ret_exit = EX_USAGE;
        return PAWL_OK;
    }
    pawl_job *jobs = calloc(PAGE, sizeof(*jobs));
    if (jobs == NULL)
        return PAWL_NO_MEMORY;
    pawli_json_init(&json, stdout);
    if (is_json) {
        pawli_json_open_object(&json, NULL);
        pawli_json_open_array(&json, "jobs");
    } else {
        (void)printf("%-36s  %-9s  %-24s  %8s  %-9s  %s\n", "ID", "STATE", "DUE/EXPIRES/FINISHED",
                     "ATTEMPTS", "REASON", "QUEUE  KEY");
    }
    size_t count = 1;
    for (bool is_first = true; left > 0 && count > 0; is_first = false) {
        size_t wanted = left < PAGE ? (size_t)left : PAGE;
        const pawl_id *from = is_first && first == NULL ? NULL : &after;
        code = pawl_list(store, &filter, from, jobs, wanted, &count, err);
        if (code != PAWL_OK)
            break;
        for (size_t i = 0; i < count; i++) {
            if (is_json)
                job_json(&json, &jobs[i]);
            else
                job_line(&jobs[i]);
            after = jobs[i].id;
            pawl_job_clear(&jobs[i]);
        }
        left -= (int64_t)count;
    }
    free(jobs);
    if (code == PAWL_OK && is_json) {
        pawli_json_close(&json);
        if (count > 0 && left == 0)
            pawli_json_id(&json, "next_after", &after);
        pawli_json_close(&json);
    } else if (code == PAWL_OK && count > 0 && left == 0) {
        char id[PAWL_ID_TEXT_MAX];
        (void)fprintf(stderr, "There may be more: --after %s\n", pawl_id_format(&after, id));
    }
    return code;
}

static int run_list(const struct pawli_line *line)
{
    return pawli_cli_with_store(line, list);
}

static const struct pawli_option list_options[] = {
    {"--after", PAWLI_TEXT, "ID", "go on behind this id", 0, 0, NULL},
    PAWLI_OPTION_CONFIG,
    PAWLI_OPTION_JSON,
    {"--key", PAWLI_TEXT, "KEY", "only of this ordering key; needs --queue", 0, 0, NULL},
    PAWLI_OPTION_LIMIT("how many at most (default 100)"),
    PAWLI_OPTION_QUEUE,
    PAWLI_OPTION_REASON,
    PAWLI_OPTION_STATE,
    PAWLI_OPTION_STORE,
    PAWLI_OPTION_WORKER,
    {0},
};
static const struct pawli_command list_command = {
    .name = "jobs list",
    .about = "list jobs in the order of their ids",
    .options = list_options,
    .examples = "pawl jobs list --queue mail --state failed,in_flight --limit 20\n",
    .run = run_list,
};

/* ---- jobs show */

static pawl_code show(const struct pawli_line *line, pawl_store *store, int *ret_exit,
                      pawl_err *err)
{
    pawl_id id;
    pawl_job job;
    if (!pawli_line_id(line, line->arguments[0], &id)) {
        *ret_exit = EX_USAGE;
        return PAWL_OK;
    }
    pawl_code code = pawl_get(store, &id, &job, err);
    if (code != PAWL_OK)
        return code;
    if (pawli_line_has(line, "--payload")) {
        if (job.payload != NULL) {
            (void)fwrite(job.payload, 1, job.payload_len, stdout);
        } else if (job.payload_len > 0) {
            (void)fputs("pawl jobs show: the payload is no longer kept\n", stderr);
            *ret_exit = EX_DATAERR;
        }
    } else if (pawli_line_has(line, "--json")) {
        struct pawli_json json;
        pawli_json_init(&json, stdout);
        job_json(&json, &job);
    } else {
        job_text(&job);
    }
    pawl_job_clear(&job);
    return PAWL_OK;
}

static int run_show(const struct pawli_line *line)
{
    return pawli_cli_with_store(line, show);
}

static const struct pawli_option show_options[] = {
    PAWLI_OPTION_CONFIG,
    PAWLI_OPTION_JSON,
    {"--payload", PAWLI_FLAG, NULL, "its payload, byte by byte, and nothing else", 0, 0, NULL},
    PAWLI_OPTION_STORE,
    {0},
};
static const struct pawli_command show_command = {
    .name = "jobs show",
    .about = "show one job, and its headers",
    .arguments = "ID",
    .arguments_min = 1,
    .arguments_max = 1,
    .options = show_options,
    .examples = "pawl jobs show 0190a000-0000-7000-8000-000000000001 --payload\n",
    .run = run_show,
};

static const struct pawli_command *const jobs_actions[] = {&list_command, &show_command, NULL};
const struct pawli_command pawli_command_jobs = {
    .name = "jobs",
    .about = "list jobs, or show one",
    .actions = jobs_actions,
    .usual = &list_command,
    .details = "Without an action it lists.",
    .examples = "pawl jobs --queue mail --state failed,in_flight\n"
                "pawl jobs show 0190a000-0000-7000-8000-000000000001\n",
};

/* ---- attempts */

static void attempt_json(struct pawli_json *json, const pawl_attempt *row)
{
    pawli_json_open_object(json, NULL);
    pawli_json_number(json, "attempt_no", row->attempt_no);
    pawli_json_text(json, "outcome", pawl_outcome_name(row->outcome));
    pawli_json_text(json, "reason", pawl_reason_name(row->reason));
    pawli_json_text(json, "ended_by", pawl_ended_by_name(row->ended_by));
    pawli_json_number(json, "lease_version", row->lease_version);
    if (row->worker[0] != '\0')
        pawli_json_text(json, "worker", row->worker);
    pawli_json_time(json, "started_at", row->started_at);
    pawli_json_time(json, "finished_at", row->finished_at);
    if (row->error_code[0] != '\0')
        pawli_json_text(json, "error_code", row->error_code);
    if (row->error_text[0] != '\0')
        pawli_json_text(json, "error_text", row->error_text);
    if (row->wire_sends != PAWL_SENDS_UNKNOWN)
        pawli_json_number(json, "wire_sends", row->wire_sends);
    pawli_json_close(json);
}

static void attempt_line(const pawl_attempt *row)
{
    char started[PAWLI_TIME_TEXT_MAX];
    char finished[PAWLI_TIME_TEXT_MAX];
    char sends[NUMBER_SIZE] = "-"; /* unknown: it was no delivery, or it was lost */
    if (row->wire_sends != PAWL_SENDS_UNKNOWN)
        (void)snprintf(sends, sizeof(sends), "%" PRId64, row->wire_sends); /* it fits */
    (void)printf("%3" PRId64 "  %-14s  %-9s  %-24s  %-24s  %-20s  %5s  %s", row->attempt_no,
                 pawl_outcome_name(row->outcome), pawl_reason_name(row->reason),
                 pawli_time_text(row->started_at, started),
                 pawli_time_text(row->finished_at, finished), pawli_column(row->worker), sends,
                 pawli_column(row->error_code));
    /* What a handler said may have several lines: the first is enough in a list. */
    (void)printf("%s%.*s\n", row->error_text[0] != '\0' ? "  " : "",
                 (int)strcspn(row->error_text, "\n"), row->error_text);
}

static pawl_code attempts(const struct pawli_line *line, pawl_store *store, int *ret_exit,
                          pawl_err *err)
{
    bool is_json = pawli_line_has(line, "--json");
    struct pawli_json json;
    pawl_id id;
    if (!pawli_line_id(line, line->arguments[0], &id)) {
        *ret_exit = EX_USAGE;
        return PAWL_OK;
    }
    pawl_attempt *rows = calloc(PAGE, sizeof(*rows));
    if (rows == NULL)
        return PAWL_NO_MEMORY;
    size_t count = PAGE;
    pawl_code code = pawl_attempts(store, &id, 0, rows, PAGE, &count, err);
    pawli_json_init(&json, stdout);
    if (code == PAWL_OK && is_json) {
        pawli_json_open_object(&json, NULL);
        pawli_json_id(&json, "id", &id);
        pawli_json_open_array(&json, "attempts");
    } else if (code == PAWL_OK) {
        (void)printf("%3s  %-14s  %-9s  %-24s  %-24s  %-20s  %5s  %s\n", "NO", "OUTCOME", "REASON",
                     "STARTED", "FINISHED", "WORKER", "SENDS", "ERROR");
    }
    while (code == PAWL_OK && count > 0) {
        for (size_t i = 0; i < count; i++) {
            if (is_json)
                attempt_json(&json, &rows[i]);
            else
                attempt_line(&rows[i]);
        }
        code = pawl_attempts(store, &id, rows[count - 1].attempt_no, rows, PAGE, &count, err);
    }
    if (code == PAWL_OK && is_json) {
        pawli_json_close(&json);
        pawli_json_close(&json);
    }
    free(rows);
    return code;
}

static int run_attempts(const struct pawli_line *line)
{
    return pawli_cli_with_store(line, attempts);
}

static const struct pawli_option attempts_options[] = {
    PAWLI_OPTION_CONFIG, PAWLI_OPTION_JSON, PAWLI_OPTION_STORE, {0}};
const struct pawli_command pawli_command_attempts = {
    .name = "attempts",
    .about = "show a job's history: each attempt that has ended",
    .arguments = "ID",
    .arguments_min = 1,
    .arguments_max = 1,
    .options = attempts_options,
    .examples = "pawl attempts 0190a000-0000-7000-8000-000000000001\n",
    .run = run_attempts,
};

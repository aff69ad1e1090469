/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * queues.c - `pawl queues`: how much waits in them, their settings, pause and resume.
 * Owns:  the form of its output; which settings a change leaves as they are.
 * Never: checks a setting (the library does).
 */
#include "cli/command.h"
#include "cli/store_url.h"
#include "cli/tell.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#define PAGE 1000

/* ---- list */

static void stats_json(struct pawli_json *json, const pawl_stats *row)
{
    pawli_json_open_object(json, NULL);
    pawli_json_text(json, "queue", row->queue);
    pawli_json_bool(json, "is_paused", row->is_paused);
    pawli_json_number(json, "ready", row->ready);
    pawli_json_number(json, "delayed", row->delayed);
    pawli_json_number(json, "in_flight", row->in_flight);
    pawli_json_number(json, "expired", row->expired);
    pawli_json_number(json, "succeeded", row->succeeded);
    pawli_json_number(json, "failed", row->failed);
    pawli_json_number(json, "oldest_due_ms", row->oldest_due_ms);
    pawli_json_close(json);
}

static void stats_line(const pawl_stats *row)
{
    char age[PAWL_DURATION_TEXT_MAX];
    (void)printf("%-6s  %9" PRId64 "  %9" PRId64 "  %9" PRId64 "  %9" PRId64 "  %9" PRId64
                 "  %9" PRId64 "  %9s  %s\n", /* here and below: main asks for errors */
                 row->is_paused ? "paused" : "open", row->ready, row->delayed, row->in_flight,
                 row->expired, row->succeeded, row->failed,
                 pawl_duration_format(
                     row->oldest_due_ms >= 1000 ? row->oldest_due_ms / 1000 * 1000 : -1, age),
                 row->queue);
}

static pawl_code list(const struct pawli_line *line, pawl_store *store, int *ret_exit,
                      pawl_err *err)
{
    (void)ret_exit; /* nothing to refuse */
    bool is_json = pawli_line_has(line, "--json");
    struct pawli_json json;
    pawl_stats *rows = calloc(PAGE, sizeof(*rows));
    if (rows == NULL)
        return PAWL_NO_MEMORY;
    size_t count = 0;
    pawl_code code = pawl_queue_stats(store, NULL, rows, PAGE, &count, err);
    pawli_json_init(&json, stdout);
    if (code == PAWL_OK && is_json) {
        pawli_json_open_object(&json, NULL);
        pawli_json_open_array(&json, "queues");
    } else if (code == PAWL_OK) {
        (void)printf("%-6s  %9s  %9s  %9s  %9s  %9s  %9s  %9s  %s\n", "STATE", "READY", "DELAYED",
                     "IN FLIGHT", "EXPIRED", "SUCCEEDED", "FAILED", "OLDEST", "QUEUE");
    }
    while (code == PAWL_OK && count > 0) {
        for (size_t i = 0; i < count; i++) {
            if (is_json)
                stats_json(&json, &rows[i]);
            else
                stats_line(&rows[i]);
        }
        char after[PAWL_NAME_MAX + 1];
        memcpy(after, rows[count - 1].queue, sizeof(after));
        code = pawl_queue_stats(store, after, rows, PAGE, &count, err);
    }
    if (code == PAWL_OK && is_json) {
        pawli_json_close(&json);
        pawli_json_close(&json);
    }
    free(rows);
    return code;
}

static int run_list(const struct pawli_line *line)
{
    return pawli_cli_with_store(line, list);
}

static const struct pawli_option plain_options[] = {
    PAWLI_OPTION_CONFIG, PAWLI_OPTION_JSON, PAWLI_OPTION_STORE, {0}};
static const struct pawli_command list_command = {
    .name = "queues list",
    .about = "show how much waits, runs and has ended in each queue",
    .options = plain_options,
    .examples = "pawl queues list --json\n",
    .run = run_list,
};

/* ---- settings */

/* The settings by their options. "forever" and "default" stand for what is no number. */
struct setting {
    const char *option;
    const char *key;
    size_t offset;
    bool is_duration;
};
#define SETTING(option_, field_, is_duration_)                                \
    {                                                                         \
        option_, #field_, offsetof(pawl_queue_settings, field_), is_duration_ \
    }
static const struct setting settings_table[] = {
    SETTING("--lease", lease_ms, true),
    SETTING("--timeout", execution_timeout_ms, true),
    SETTING("--max-retries", max_retries, false),
    SETTING("--max-lost-leases", max_lost_leases, false),
    SETTING("--backoff-base", backoff_base_ms, true),
    SETTING("--backoff-max", backoff_max_ms, true),
    SETTING("--keep-succeeded", keep_succeeded_ms, true),
    SETTING("--keep-failed", keep_failed_ms, true),
    SETTING("--max-in-flight", max_in_flight, false),
};
#define SETTINGS_COUNT (sizeof(settings_table) / sizeof(settings_table[0]))

static int64_t *number_of(pawl_queue_settings *settings, const struct setting *setting)
{
    return (int64_t *)((char *)settings + setting->offset);
}

static void settings_json(const char *queue, pawl_queue_settings *settings)
{
    struct pawli_json json;
    pawli_json_init(&json, stdout);
    pawli_json_open_object(&json, NULL);
    pawli_json_text(&json, "queue", queue);
    pawli_json_bool(&json, "is_paused", settings->is_paused);
    for (size_t i = 0; i < SETTINGS_COUNT; i++) {
        int64_t number = *number_of(settings, &settings_table[i]);
        if (number == PAWL_FOREVER)
            pawli_json_text(&json, settings_table[i].key, "forever");
        else if (number == PAWL_DEFAULT)
            pawli_json_text(&json, settings_table[i].key, "default");
        else
            pawli_json_number(&json, settings_table[i].key, number);
    }
    pawli_json_close(&json);
}

static void settings_text(const char *queue, pawl_queue_settings *settings)
{
    char text[PAWL_DURATION_TEXT_MAX];
    (void)printf("%-17s%s\n%-17s%s\n", "queue", queue, "state",
                 settings->is_paused ? "paused" : "open");
    for (size_t i = 0; i < SETTINGS_COUNT; i++) {
        const struct setting *setting = &settings_table[i];
        int64_t number = *number_of(settings, setting);
        const char *word = number == PAWL_FOREVER   ? "forever"
                           : number == PAWL_DEFAULT ? "default: three times the lease"
                           : setting->is_duration   ? pawl_duration_format(number, text)
                                                    : NULL;
        if (word != NULL)
            (void)printf("%-17s%s\n", setting->option + 2, word);
        else
            (void)printf("%-17s%" PRId64 "\n", setting->option + 2, number);
    }
}

static pawl_code tell_settings(const struct pawli_line *line, pawl_store *store, pawl_err *err)
{
    pawl_queue_settings settings;
    pawl_code code = pawl_queue_get(store, line->arguments[0], &settings, err);
    if (code == PAWL_OK && pawli_line_has(line, "--json"))
        settings_json(line->arguments[0], &settings);
    else if (code == PAWL_OK)
        settings_text(line->arguments[0], &settings);
    return code;
}

static pawl_code show(const struct pawli_line *line, pawl_store *store, int *ret_exit,
                      pawl_err *err)
{
    (void)ret_exit; /* nothing to refuse */
    return tell_settings(line, store, err);
}

static int run_show(const struct pawli_line *line)
{
    return pawli_cli_with_store(line, show);
}

static const struct pawli_command show_command = {
    .name = "queues show",
    .about = "show a queue's settings",
    .arguments = "QUEUE",
    .arguments_min = 1,
    .arguments_max = 1,
    .names_max = 1,
    .options = plain_options,
    .examples = "pawl queues show mail\n",
    .run = run_show,
};

/* ---- set */

/* A duration, or a word for what is none. False: told. */
static bool read_setting(const struct pawli_line *line, const struct setting *setting,
                         pawl_queue_settings *settings)
{
    const char *word = pawli_line_text(line, setting->option);
    bool is_kept = strncmp(setting->option, "--keep-", strlen("--keep-")) == 0;
    pawl_err err;
    if (word == NULL)
        return true;
    int64_t *number = number_of(settings, setting);
    if (!setting->is_duration)
        *number = pawli_line_number(line, setting->option, 0);
    else if (is_kept && strcmp(word, "forever") == 0)
        *number = PAWL_FOREVER;
    else if (strcmp(setting->option, "--timeout") == 0 && strcmp(word, "default") == 0)
        *number = PAWL_DEFAULT;
    else if (pawl_duration_parse(word, number, &err) != PAWL_OK) {
        (void)pawli_line_refuse(line, "%s: %s", setting->option, err.text);
        return false;
    }
    return true;
}

static pawl_code set(const struct pawli_line *line, pawl_store *store, int *ret_exit, pawl_err *err)
{
    pawl_queue_settings settings;
    pawl_code code = pawl_queue_get(store, line->arguments[0], &settings, err);
    if (code != PAWL_OK)
        return code;
    bool is_changed = false;
    for (size_t i = 0; i < SETTINGS_COUNT; i++) {
        if (!read_setting(line, &settings_table[i], &settings)) {
            *ret_exit = EX_USAGE;
            return PAWL_OK;
        }
        is_changed |= pawli_line_has(line, settings_table[i].option);
    }
    if (!is_changed) {
        *ret_exit = pawli_line_refuse(line, "say which setting to change");
        return PAWL_OK;
    }
    code = pawl_queue_set(store, line->arguments[0], &settings, err);
    return code == PAWL_OK ? tell_settings(line, store, err) : code;
}

static int run_set(const struct pawli_line *line)
{
    return pawli_cli_with_store(line, set);
}

static const struct pawli_option set_options[] = {
    {"--backoff-base", PAWLI_TEXT, "D", "the first delay after a failed attempt", 0, 0, NULL},
    {"--backoff-max", PAWLI_TEXT, "D", "the longest such delay", 0, 0, NULL},
    PAWLI_OPTION_CONFIG,
    PAWLI_OPTION_JSON,
    {"--keep-failed", PAWLI_TEXT, "D", "how long a Failed job is kept, or forever", 0, 0, NULL},
    {"--keep-succeeded", PAWLI_TEXT, "D", "how long a Succeeded job is remembered, or forever", 0,
     0, NULL},
    {"--lease", PAWLI_TEXT, "D", "what a claim grants", 0, 0, NULL},
    {"--max-in-flight", PAWLI_NUMBER, "N", "jobs in flight over all workers; 0: no bound", 0,
     PAWL_IN_FLIGHT_MAX, NULL},
    {"--max-lost-leases", PAWLI_NUMBER, "N", "leases that may expire before a job is poison", 1,
     PAWL_RETRIES_MAX, NULL},
    {"--max-retries", PAWLI_NUMBER, "N", "retries before a job is Failed", 0, PAWL_RETRIES_MAX,
     NULL},
    PAWLI_OPTION_STORE,
    {"--timeout", PAWLI_TEXT, "D", "how long a job may run, or default: three times the lease", 0,
     0, NULL},
    {0},
};
static const struct pawli_command set_command = {
    .name = "queues set",
    .about = "change a queue's settings",
    .arguments = "QUEUE",
    .arguments_min = 1,
    .arguments_max = 1,
    .names_max = 1,
    .is_store_made = true,
    .options = set_options,
    .details = "Settings that are not named stay as they are. A change holds for what is granted "
               "afterwards; it never shortens a lease already granted.",
    .examples = "pawl queues set mail --lease 60s --max-retries 10\n",
    .run = run_set,
};

/* ---- pause, resume */

static pawl_code pause_queue(const struct pawli_line *line, pawl_store *store, int *ret_exit,
                             pawl_err *err)
{
    (void)ret_exit; /* nothing to refuse */
    bool is_paused = strcmp(pawli_command_word(line->command), "pause") == 0;
    pawl_code code = pawl_queue_pause(store, line->arguments[0], is_paused, err);
    return code == PAWL_OK && pawli_line_has(line, "--json") ? tell_settings(line, store, err)
                                                             : code;
}

static int run_pause(const struct pawli_line *line)
{
    return pawli_cli_with_store(line, pause_queue);
}

static const struct pawli_command pause_command = {
    .name = "queues pause",
    .about = "stop claims from a queue; what is in flight goes on",
    .arguments = "QUEUE",
    .arguments_min = 1,
    .arguments_max = 1,
    .names_max = 1,
    .is_store_made = true,
    .options = plain_options,
    .examples = "pawl queues pause mail\n",
    .run = run_pause,
};
static const struct pawli_command resume_command = {
    .name = "queues resume",
    .about = "let a queue be claimed from again",
    .arguments = "QUEUE",
    .arguments_min = 1,
    .arguments_max = 1,
    .names_max = 1,
    .options = plain_options,
    .examples = "pawl queues resume mail\n",
    .run = run_pause,
};

static const struct pawli_command *const actions[] = {
    &list_command, &pause_command, &resume_command, &set_command, &show_command, NULL,
};
const struct pawli_command pawli_command_queues = {
    .name = "queues",
    .about = "list queues, change their settings, pause and resume them",
    .actions = actions,
    .usual = &list_command,
    .details = "Without an action it lists.",
    .examples = "pawl queues\npawl queues pause mail\npawl queues set mail --lease 60s\n",
};

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * endpoint_tell.c - `pawl endpoint list` and `pawl endpoint show`.
 * Owns:  the form of their output.
 * Never: asks the store for a secret; shows the value of a header, or in a list more of a URL than
 *        its host: the rest may be a secret.
 */
#include "cli/endpoint_tell.h"

#include "cli/store_url.h"
#include "cli/tell.h"
#include "pawl/endpoint.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE          100
#define LIMIT_DEFAULT 100

/* ---- list */

/* Scheme and host of a URL: as much of it as is no secret. */
static const char *origin_of(const pawl_endpoint *row, char origin[PAWL_ENDPOINT_URL_MAX + 1])
{
    const char *host = strstr(row->url, "://");
    size_t len = host != NULL ? (size_t)(host - row->url) + 3 : 0;
    len += strcspn(row->url + len, "/?#");
    memcpy(origin, row->url, len);
    origin[len] = '\0';
    return origin;
}

static const char *state_of(const pawl_endpoint *row)
{
    if (!row->is_enabled)
        return "disabled";
    return row->queue_settings.is_paused ? "paused" : "enabled";
}

static void row_json(struct pawli_json *json, const pawl_endpoint *row)
{
    char origin[PAWL_ENDPOINT_URL_MAX + 1];
    pawli_json_open_object(json, NULL);
    pawli_json_text(json, "name", row->name);
    pawli_json_text(json, "state", state_of(row));
    pawli_json_text(json, "origin", origin_of(row, origin));
    pawli_json_text(json, "topics", row->topics);
    pawli_json_text(json, "ordering", pawl_endpoint_ordering_name(row->ordering));
    pawli_json_number(json, "revision", row->revision);
    pawli_json_close(json);
}

static void row_line(const pawl_endpoint *row)
{
    char origin[PAWL_ENDPOINT_URL_MAX + 1];
    (void)printf("%-8s  %-20s  %-8s  %-40s  %s\n", /* here and below: main asks for errors */
                 state_of(row), row->name, pawl_endpoint_ordering_name(row->ordering),
                 origin_of(row, origin), row->topics);
}

static void tell_page(struct pawli_json *json, const pawl_endpoint *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (json != NULL)
            row_json(json, &rows[i]);
        else
            row_line(&rows[i]);
    }
}

static void tell_end(struct pawli_json *json, const char *next)
{
    if (json == NULL) {
        if (next != NULL)
            (void)fprintf(stderr, "There may be more: --after '%s'\n", next);
        return;
    }
    pawli_json_close(json);
    if (next != NULL)
        pawli_json_text(json, "next_after", next);
    pawli_json_close(json);
}

static pawl_code list(const struct pawli_line *line, pawl_store *store, int *ret_exit,
                      pawl_err *err)
{
    (void)ret_exit; /* nothing to refuse */
    int64_t left = pawli_line_number(line, "--limit", LIMIT_DEFAULT);
    const char *after = pawli_line_text(line, "--after");
    char last[PAWL_ENDPOINT_NAME_MAX + 1];
    struct pawli_json document;
    struct pawli_json *json = pawli_line_has(line, "--json") ? &document : NULL;
    size_t count = 0;
    pawl_endpoint *rows = calloc(PAGE, sizeof(*rows));
    if (rows == NULL)
        return PAWL_NO_MEMORY;
    pawl_code code = pawl_endpoint_list(store, after, rows, left < PAGE ? (size_t)left : PAGE,
                                        &count, err);
    pawli_json_init(&document, stdout);
    if (code == PAWL_OK && json != NULL) {
        pawli_json_open_object(json, NULL);
        pawli_json_open_array(json, "endpoints");
    } else if (code == PAWL_OK) {
        (void)printf("%-8s  %-20s  %-8s  %-40s  %s\n", "STATE", "NAME", "ORDERING", "ORIGIN",
                     "TOPICS");
    }
    while (code == PAWL_OK && count > 0) {
        tell_page(json, rows, count);
        memcpy(last, rows[count - 1].name, sizeof(last));
        left -= (int64_t)count;
        if (left == 0)
            break;
        code = pawl_endpoint_list(store, last, rows, left < PAGE ? (size_t)left : PAGE, &count,
                                  err);
    }
    if (code == PAWL_OK)
        tell_end(json, left == 0 ? last : NULL);
    free(rows);
    return code;
}

static int run_list(const struct pawli_line *line)
{
    return pawli_cli_with_store(line, list);
}

static const struct pawli_option list_options[] = {
    {"--after", PAWLI_TEXT, "NAME", "go on behind this endpoint", 0, 0, NULL},
    PAWLI_OPTION_CONFIG,
    PAWLI_OPTION_JSON,
    PAWLI_OPTION_LIMIT("how many at most (default 100)"),
    PAWLI_OPTION_STORE,
    {0},
};
const struct pawli_command pawli_endpoint_list_command = {
    .name = "endpoint list",
    .about = "list endpoints: where they are, and what they want",
    .options = list_options,
    .details = "In the order of their names, byte by byte. Of a URL the host is shown: the rest "
               "may be a secret.",
    .examples = "pawl endpoint list --json\n",
    .run = run_list,
};

/* ---- show */

/* What is shown of an endpoint, as a name and a text or a number. */
struct fact {
    const char *name;
    const char *text; /* NULL: a number */
    int64_t number;
    bool is_ms;
};

static void tell_fact(struct pawli_json *json, const struct fact *fact)
{
    char text[PAWL_DURATION_TEXT_MAX];
    char key[64];
    if (json != NULL) {
        (void)snprintf(key, sizeof(key), "%s%s", fact->name, fact->is_ms ? "_ms" : ""); /* fits */
        if (fact->text != NULL)
            pawli_json_text(json, key, fact->text);
        else
            pawli_json_number(json, key, fact->number);
    } else if (fact->text != NULL) {
        (void)printf("%-16s  %s\n", fact->name, pawli_column(fact->text));
    } else if (fact->is_ms) {
        (void)printf("%-16s  %s\n", fact->name, pawl_duration_format(fact->number, text));
    } else {
        (void)printf("%-16s  %" PRId64 "\n", fact->name, fact->number);
    }
}

static void tell_time(struct pawli_json *json, const char *name, pawl_wall at)
{
    char text[PAWLI_TIME_TEXT_MAX];
    if (json != NULL)
        pawli_json_time(json, name, at);
    else if (at.us != 0)
        (void)printf("%-16s  %s\n", name, pawli_time_text(at, text));
}

static void tell_endpoint(struct pawli_json *json, const pawl_endpoint *row)
{
    const pawl_queue_settings *queue = &row->queue_settings;
    const struct fact facts[] = {
        {.name = "name", .text = row->name},
        {.name = "state", .text = state_of(row)},
        {.name = "queue", .text = row->queue},
        {.name = "url", .text = row->url},
        {.name = "topics", .text = row->topics},
        {.name = "ordering", .text = pawl_endpoint_ordering_name(row->ordering)},
        {.name = "format", .text = pawl_endpoint_format_name(row->format)},
        {.name = "headers", .text = row->header_names},
        {.name = "fail_statuses", .text = row->fail_statuses},
        {.name = "timeout", .number = row->timeout_ms, .is_ms = true},
        {.name = "rate_per_minute", .number = row->rate_per_minute},
        {.name = "secrets", .number = row->secrets_count},
        {.name = "lease", .number = queue->lease_ms, .is_ms = true},
        {.name = "max_in_flight", .number = queue->max_in_flight},
        {.name = "max_retries", .number = queue->max_retries},
        {.name = "backoff_base", .number = queue->backoff_base_ms, .is_ms = true},
        {.name = "backoff_max", .number = queue->backoff_max_ms, .is_ms = true},
        {.name = "revision", .number = row->revision},
    };
    for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++)
        tell_fact(json, &facts[i]);
    tell_time(json, "created_at", row->created_at);
    tell_time(json, "changed_at", row->changed_at);
    tell_time(json, "failing_since", row->failing_since);
    tell_time(json, "switched_at", row->switched_at);
    if (row->switched_at.us == 0)
        return;
    tell_fact(json, &(struct fact){.name = "switched_by", .text = row->switched_by});
    tell_fact(json, &(struct fact){.name = "reason", .text = row->reason});
}

pawl_code pawli_endpoint_show(const struct pawli_line *line, pawl_store *store, pawl_err *err)
{
    pawl_endpoint row;
    struct pawli_json json;
    pawl_code code = pawl_endpoint_get(store, line->arguments[0], &row, err);
    if (code != PAWL_OK)
        return code;
    if (!pawli_line_has(line, "--json")) {
        tell_endpoint(NULL, &row);
        return PAWL_OK;
    }
    pawli_json_init(&json, stdout);
    pawli_json_open_object(&json, NULL);
    tell_endpoint(&json, &row);
    pawli_json_close(&json);
    return PAWL_OK;
}

static pawl_code show(const struct pawli_line *line, pawl_store *store, int *ret_exit,
                      pawl_err *err)
{
    (void)ret_exit; /* nothing to refuse */
    return pawli_endpoint_show(line, store, err);
}

static int run_show(const struct pawli_line *line)
{
    return pawli_cli_with_store(line, show);
}

static const struct pawli_option show_options[] = {
    PAWLI_OPTION_CONFIG,
    PAWLI_OPTION_JSON,
    PAWLI_OPTION_STORE,
    {0},
};
const struct pawli_command pawli_endpoint_show_command = {
    .name = "endpoint show",
    .about = "show an endpoint: its settings, and who switched it when and why",
    .arguments = "NAME",
    .arguments_min = 1,
    .arguments_max = 1,
    .options = show_options,
    .details = "Secrets are not shown, and of headers the names only.",
    .examples = "pawl endpoint show crm --json\n",
    .run = run_show,
};

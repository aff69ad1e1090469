/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * holders.c - `pawl leases` and `pawl workers`: who holds what, and who is there (OL-QUERIES).
 * Owns:  the form of their output.
 * Never: shows a token.
 */
#include "cli/command.h"
#include "cli/store_url.h"
#include "cli/tell.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 1000

/* ---- leases */

static void lease_json(struct pawli_json *json, const pawl_lease_info *row)
{
    pawli_json_open_object(json, NULL);
    pawli_json_id(json, "job", &row->job);
    pawli_json_text(json, "queue", row->queue);
    pawli_json_text(json, "worker", row->worker);
    pawli_json_number(json, "lease_version", row->lease_version);
    pawli_json_time(json, "claimed_at", row->claimed_at);
    pawli_json_time(json, "expires_at", row->expires_at);
    pawli_json_bool(json, "is_expired", row->is_expired);
    pawli_json_bool(json, "is_cancel_asked", row->is_cancel_asked);
    pawli_json_close(json);
}

static void lease_line(const pawl_lease_info *row)
{
    char id[PAWL_ID_TEXT_MAX];
    char claimed[PAWLI_TIME_TEXT_MAX];
    char expires[PAWLI_TIME_TEXT_MAX];
    (void)printf("%s  %-24s  %-24s  %-9s  %-20s  %s\n", /* here and below: main asks for errors */
                 pawl_id_format(&row->job, id), pawli_time_text(row->claimed_at, claimed),
                 pawli_time_text(row->expires_at, expires),
                 row->is_expired        ? "expired"
                 : row->is_cancel_asked ? "cancelled"
                                        : "valid",
                 row->worker, row->queue);
}

static pawl_code leases(const struct pawli_line *line, pawl_store *store, int *ret_exit,
                        pawl_err *err)
{
    (void)ret_exit; /* nothing to refuse */
    bool is_json = pawli_line_has(line, "--json");
    pawl_filter filter = {.queue = pawli_line_text(line, "--queue"),
                          .worker = pawli_line_text(line, "--worker")};
    struct pawli_json json;
    pawl_lease_info *rows = calloc(PAGE, sizeof(*rows));
    if (rows == NULL)
        return PAWL_NO_MEMORY;
    size_t count = 0;
    pawl_code code = pawl_leases(store, &filter, NULL, rows, PAGE, &count, err);
    pawli_json_init(&json, stdout);
    if (code == PAWL_OK && is_json) {
        pawli_json_open_object(&json, NULL);
        pawli_json_open_array(&json, "leases");
    } else if (code == PAWL_OK) {
        (void)printf("%-36s  %-24s  %-24s  %-9s  %-20s  %s\n", "JOB", "CLAIMED", "EXPIRES", "LEASE",
                     "WORKER", "QUEUE");
    }
    while (code == PAWL_OK && count > 0) {
        for (size_t i = 0; i < count; i++) {
            if (is_json)
                lease_json(&json, &rows[i]);
            else
                lease_line(&rows[i]);
        }
        pawl_id after = rows[count - 1].job;
        code = pawl_leases(store, &filter, &after, rows, PAGE, &count, err);
    }
    if (code == PAWL_OK && is_json) {
        pawli_json_close(&json);
        pawli_json_close(&json);
    }
    free(rows);
    return code;
}

static int run_leases(const struct pawli_line *line)
{
    return pawli_cli_with_store(line, leases);
}

static const struct pawli_option leases_options[] = {
    PAWLI_OPTION_CONFIG, PAWLI_OPTION_JSON,   PAWLI_OPTION_QUEUE,
    PAWLI_OPTION_STORE,  PAWLI_OPTION_WORKER, {0},
};
const struct pawli_command pawli_command_leases = {
    .name = "leases",
    .about = "show who holds which job, and until when",
    .options = leases_options,
    .details = "Leases that have expired and that nobody has recovered yet are among them.",
    .examples = "pawl leases --queue mail\n",
    .run = run_leases,
};

/* ---- workers */

static const char *kind_name(pawl_worker_kind kind)
{
    return kind == PAWL_KIND_REAPER ? "reaper" : "worker";
}

static void worker_json(struct pawli_json *json, const pawl_worker *row)
{
    pawli_json_open_object(json, NULL);
    pawli_json_text(json, "name", row->name);
    pawli_json_text(json, "kind", kind_name(row->kind));
    pawli_json_text(json, "host", row->host);
    pawli_json_text(json, "version", row->version);
    pawli_json_text(json, "queues", row->queues);
    pawli_json_time(json, "since", row->since);
    pawli_json_time(json, "last_seen", row->last_seen);
    pawli_json_number(json, "leases", row->leases);
    pawli_json_close(json);
}

static void worker_line(const pawl_worker *row)
{
    char since[PAWLI_TIME_TEXT_MAX];
    char seen[PAWLI_TIME_TEXT_MAX];
    (void)printf("%-6s  %-24s  %-24s  %6" PRId64 "  %-10s  %-16s  %-24s  %s\n",
                 kind_name(row->kind), pawli_time_text(row->since, since),
                 pawli_time_text(row->last_seen, seen), row->leases, row->version, row->host,
                 row->name, row->queues);
}

static pawl_code workers(const struct pawli_line *line, pawl_store *store, int *ret_exit,
                         pawl_err *err)
{
    (void)ret_exit; /* nothing to refuse */
    bool is_json = pawli_line_has(line, "--json");
    struct pawli_json json;
    pawl_worker *rows = calloc(PAGE, sizeof(*rows));
    if (rows == NULL)
        return PAWL_NO_MEMORY;
    size_t count = 0;
    pawl_code code = pawl_workers(store, NULL, rows, PAGE, &count, err);
    pawli_json_init(&json, stdout);
    if (code == PAWL_OK && is_json) {
        pawli_json_open_object(&json, NULL);
        pawli_json_open_array(&json, "workers");
    } else if (code == PAWL_OK) {
        (void)printf("%-6s  %-24s  %-24s  %6s  %-10s  %-16s  %-24s  %s\n", "KIND", "SINCE",
                     "LAST SEEN", "LEASES", "VERSION", "HOST", "NAME", "QUEUES");
    }
    while (code == PAWL_OK && count > 0) {
        for (size_t i = 0; i < count; i++) {
            if (is_json)
                worker_json(&json, &rows[i]);
            else
                worker_line(&rows[i]);
        }
        char after[PAWL_NAME_MAX + 1];
        memcpy(after, rows[count - 1].name, sizeof(after));
        code = pawl_workers(store, after, rows, PAGE, &count, err);
    }
    if (code == PAWL_OK && is_json) {
        pawli_json_close(&json);
        pawli_json_close(&json);
    }
    free(rows);
    return code;
}

static int run_workers(const struct pawli_line *line)
{
    return pawli_cli_with_store(line, workers);
}

static const struct pawli_option workers_options[] = {
    PAWLI_OPTION_CONFIG, PAWLI_OPTION_JSON, PAWLI_OPTION_STORE, {0}};
const struct pawli_command pawli_command_workers = {
    .name = "workers",
    .about = "show the workers and reapers that have shown themselves",
    .options = workers_options,
    .examples = "pawl workers --json\n",
    .run = run_workers,
};

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * change.c - `pawl redrive`, `discard` and `cancel`, by id or by filter; `pawl prune`.
 * Owns:  the form of their output; that nothing is changed wholesale by mistake.
 * Never: decides what a job may become.
 */
#include "cli/command.h"
#include "cli/store_url.h"
#include "cli/tell.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#define BATCH 1000

/* What differs between the three. */
struct verb {
    const char *name;
    const char *done; /* "redriven" */
    pawl_code (*by_id)(pawl_store *store, const pawl_id *ids, size_t ids_count,
                       pawl_changed *ret_results, pawl_err *err);
    pawl_code (*where)(pawl_store *store, const pawl_filter *filter, size_t jobs_max,
                       size_t *ret_count, pawl_err *err);
};
static const struct verb verbs[] = {
    {"redrive", "redriven", pawl_redrive, pawl_redrive_where},
    {"discard", "discarded", pawl_discard, pawl_discard_where},
    {"cancel", "cancelled", pawl_cancel, pawl_cancel_where},
};

static const struct verb *verb_of(const struct pawli_line *line)
{
    const struct verb *verb = verbs;
    while (strcmp(verb->name, line->command->name) != 0)
        verb++;
    return verb;
}

/* How many, in both forms; in JSON the caller has opened the document. */
static void tell_count(const struct pawli_line *line, struct pawli_json *json, int64_t count)
{
    const char *done = verb_of(line)->done;
    if (pawli_line_has(line, "--json"))
        pawli_json_number(json, done, count);
    else
        (void)printf("%" PRId64 " %s\n", count, done); /* main asks for errors */
}

/* ---- by id */

struct rows {
    pawl_id *ids;
    pawl_changed *changed;
    size_t count;
};

static void tell_row(const struct pawli_line *line, struct pawli_json *json, const pawl_id *id,
                     const pawl_changed *changed)
{
    char text[PAWL_ID_TEXT_MAX];
    if (pawli_line_has(line, "--json")) {
        pawli_json_open_object(json, NULL);
        pawli_json_id(json, "id", id);
        pawli_json_text(json, "verdict", pawl_code_name(changed->code));
        if (changed->code == PAWL_OK)
            pawli_json_text(json, "state", pawl_state_name(changed->state));
        pawli_json_close(json);
    } else if (changed->code != PAWL_OK) {
        (void)fprintf(stderr, "pawl %s: %s: %s: %s\n", line->command->name,
                      pawl_id_format(id, text), pawl_code_name(changed->code),
                      pawl_code_text(changed->code));
    }
}

static pawl_code change_rows(const struct pawli_line *line, pawl_store *store, struct rows *rows,
                             int *ret_exit, pawl_err *err)
{
    struct pawli_json json;
    int64_t done = 0;
    for (size_t at = 0; at < rows->count; at += BATCH) {
        size_t count = rows->count - at < BATCH ? rows->count - at : BATCH;
        pawl_code code = verb_of(line)->by_id(store, rows->ids + at, count, rows->changed + at,
                                              err);
        if (code != PAWL_OK)
            return code;
    }
    pawli_json_init(&json, stdout);
    if (pawli_line_has(line, "--json")) {
        pawli_json_open_object(&json, NULL);
        pawli_json_open_array(&json, "jobs");
    }
    for (size_t i = 0; i < rows->count; i++) {
        tell_row(line, &json, &rows->ids[i], &rows->changed[i]);
        done += rows->changed[i].code == PAWL_OK;
        if (rows->changed[i].code != PAWL_OK)
            *ret_exit = EX_DATAERR;
    }
    if (pawli_line_has(line, "--json"))
        pawli_json_close(&json);
    tell_count(line, &json, done);
    if (pawli_line_has(line, "--json"))
        pawli_json_close(&json);
    return PAWL_OK;
}

static pawl_code change_ids(const struct pawli_line *line, pawl_store *store, int *ret_exit,
                            pawl_err *err)
{
    struct rows rows = {
        .ids = calloc(line->arguments_count, sizeof(*rows.ids)),
        .changed = calloc(line->arguments_count, sizeof(*rows.changed)),
        .count = line->arguments_count,
    };
    pawl_code code = rows.ids != NULL && rows.changed != NULL ? PAWL_OK : PAWL_NO_MEMORY;
    for (size_t i = 0; code == PAWL_OK && *ret_exit == EX_OK && i < rows.count; i++)
        if (!pawli_line_id(line, line->arguments[i], &rows.ids[i]))
            *ret_exit = EX_USAGE;
    if (code == PAWL_OK && *ret_exit == EX_OK)
        code = change_rows(line, store, &rows, ret_exit, err);
    free(rows.ids);
    free(rows.changed);
    return code;
}

/* ---- by filter */

static pawl_code change_where(const struct pawli_line *line, pawl_store *store, int *ret_exit,
                              pawl_err *err)
{
    (void)ret_exit; /* nothing to refuse */
    pawl_filter filter = pawli_line_filter(line);
    int64_t left = pawli_line_number(line, "--limit", INT64_MAX);
    int64_t done = 0;
    size_t count = BATCH;
    struct pawli_progress progress;
    pawli_progress_begin(&progress, verb_of(line)->done, false);
    for (size_t wanted = BATCH; left > 0 && count == wanted; left -= (int64_t)count) {
        wanted = left < BATCH ? (size_t)left : BATCH;
        pawl_code code = verb_of(line)->where(store, &filter, wanted, &count, err);
        if (code != PAWL_OK) {
            pawli_progress_end(&progress);
            if (done > 0)
                (void)fprintf(stderr, "pawl %s: %" PRId64 " %s before it failed\n",
                              line->command->name, done, verb_of(line)->done);
            return code;
        }
        done += (int64_t)count;
        pawli_progress_show(&progress, done);
    }
    pawli_progress_end(&progress);
    struct pawli_json json;
    pawli_json_init(&json, stdout);
    if (pawli_line_has(line, "--json"))
        pawli_json_open_object(&json, NULL);
    tell_count(line, &json, done);
    if (pawli_line_has(line, "--json"))
        pawli_json_close(&json);
    return PAWL_OK;
}

static int run_change(const struct pawli_line *line)
{
    bool is_filtered = pawli_line_has(line, "--queue") || pawli_line_has(line, "--reason") ||
                       pawli_line_has(line, "--worker") || pawli_line_has(line, "--all");
    if (line->arguments_count > 0 && (is_filtered || pawli_line_has(line, "--limit")))
        return pawli_line_refuse(line, "say ids, or which jobs by options, but not both");
    if (line->arguments_count == 0 && !is_filtered)
        return pawli_line_refuse(line, "say ids, or --queue, --reason, --worker, or --all");
    return pawli_cli_with_store(line, is_filtered ? change_where : change_ids);
}

static const struct pawli_option change_options[] = {
    {"--all", PAWLI_FLAG, NULL, "all that it can be done to", 0, 0, NULL},
    PAWLI_OPTION_CONFIG,
    PAWLI_OPTION_JSON,
    PAWLI_OPTION_LIMIT("how many at most"),
    PAWLI_OPTION_QUEUE,
    PAWLI_OPTION_REASON,
    PAWLI_OPTION_STORE,
    PAWLI_OPTION_WORKER,
    {0},
};

#define CHANGE(name_, about_, details_, examples_)                                               \
    {                                                                                            \
        .name = name_, .about = about_, .arguments = "[ID...]", .arguments_max = PAWL_BATCH_MAX, \
        .options = change_options, .details = details_, .examples = examples_, .run = run_change \
    }

const struct pawli_command pawli_command_redrive = CHANGE(
    "redrive", "put Failed jobs back to Ready",
    "Counters of retries and lost leases begin again; the history goes on.",
    "pawl redrive 0190a000-0000-7000-8000-000000000001\n"
    "pawl redrive --queue mail --reason exhausted\n");

const struct pawli_command pawli_command_discard = CHANGE(
    "discard", "give up Failed jobs: their payloads go, their history stays",
    "They cannot be redriven any more.", "pawl discard --queue mail --reason fatal\n");

const struct pawli_command pawli_command_cancel = CHANGE(
    "cancel", "cancel jobs: Ready ones now, those in flight at their next renewal",
    "A job that is in flight is marked; its worker learns it at the next renewal, and a "
    "completion that comes first still counts.",
    "pawl cancel 0190a000-0000-7000-8000-000000000001\npawl cancel --queue mail\n");

/* ---- prune */

static pawl_code prune(const struct pawli_line *line, pawl_store *store, int *ret_exit,
                       pawl_err *err)
{
    (void)ret_exit; /* nothing to refuse */
    int64_t left = pawli_line_number(line, "--limit", INT64_MAX);
    int64_t done = 0;
    size_t count = BATCH;
    struct pawli_progress progress;
    pawli_progress_begin(&progress, "pruned", false);
    for (size_t wanted = BATCH; left > 0 && count == wanted; left -= (int64_t)count) {
        wanted = left < BATCH ? (size_t)left : BATCH;
        pawl_code code = pawl_prune(store, wanted, &count, err);
        if (code != PAWL_OK) {
            pawli_progress_end(&progress);
            if (done > 0)
                (void)fprintf(stderr, "pawl prune: %" PRId64 " pruned before it failed\n", done);
            return code;
        }
        done += (int64_t)count;
        pawli_progress_show(&progress, done);
    }
    pawli_progress_end(&progress);
    if (!pawli_line_has(line, "--json")) {
        (void)printf("%" PRId64 " pruned\n", done);
        return PAWL_OK;
    }
    struct pawli_json json;
    pawli_json_init(&json, stdout);
    pawli_json_open_object(&json, NULL);
    pawli_json_number(&json, "pruned", done);
    pawli_json_close(&json);
    return PAWL_OK;
}

static int run_prune(const struct pawli_line *line)
{
    return pawli_cli_with_store(line, prune);
}

static const struct pawli_option prune_options[] = {
    PAWLI_OPTION_CONFIG,
    PAWLI_OPTION_JSON,
    PAWLI_OPTION_LIMIT("how many at most"),
    PAWLI_OPTION_STORE,
    {0},
};
const struct pawli_command pawli_command_prune = {
    .name = "prune",
    .about = "delete histories that are older than their queue's retention",
    .options = prune_options,
    .details = "Live jobs are never touched. Reapers do this by themselves.",
    .examples = "pawl prune --limit 10000\n",
    .run = run_prune,
};

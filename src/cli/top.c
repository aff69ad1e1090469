/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * top.c - `pawl top`: what goes on, again and again until it is told to end.
 * Owns:  the words of the command; when it looks.
 * Never: changes anything.
 */
#include "cli/command.h"
#include "cli/figures.h"
#include "cli/frame.h"
#include "cli/secret.h"
#include "cli/store_url.h"
#include "cli/tell.h"
#include "cli/terminal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#define REFRESH_MS       2000
#define REFRESH_LEAST_MS 100
#define STORE_SIZE       200

/* ---- one document */

static void stats_json(struct pawli_json *json, const pawl_stats *stats)
{
    pawli_json_number(json, "ready", stats->ready);
    pawli_json_number(json, "delayed", stats->delayed);
    pawli_json_number(json, "in_flight", stats->in_flight);
    pawli_json_number(json, "expired", stats->expired);
    pawli_json_number(json, "succeeded", stats->succeeded);
    pawli_json_number(json, "failed", stats->failed);
    pawli_json_number(json, "oldest_due_ms", stats->oldest_due_ms);
}

static void tell_json(const struct pawli_figures *figures)
{
    struct pawli_json json;
    pawli_json_init(&json, stdout);
    pawli_json_open_object(&json, NULL);
    pawli_json_time(&json, "at", figures->at);
    pawli_json_open_object(&json, "all");
    stats_json(&json, &figures->sums);
    pawli_json_close(&json);
    pawli_json_open_array(&json, "queues");
    for (size_t i = 0; i < figures->queues_count; i++) {
        pawli_json_open_object(&json, NULL);
        pawli_json_text(&json, "queue", figures->queues[i].stats.queue);
        pawli_json_bool(&json, "is_paused", figures->queues[i].stats.is_paused);
        stats_json(&json, &figures->queues[i].stats);
        pawli_json_close(&json);
    }
    pawli_json_close(&json);
    pawli_json_open_array(&json, "workers");
    for (size_t i = 0; i < figures->workers_count; i++) {
        const pawl_worker *worker = &figures->workers[i];
        pawli_json_open_object(&json, NULL);
        pawli_json_text(&json, "name", worker->name);
        pawli_json_text(&json, "kind", worker->kind == PAWL_KIND_REAPER ? "reaper" : "worker");
        pawli_json_text(&json, "host", worker->host);
        pawli_json_number(&json, "leases", worker->leases);
        pawli_json_time(&json, "since", worker->since);
        pawli_json_time(&json, "last_seen", worker->last_seen);
        pawli_json_close(&json);
    }
    pawli_json_close(&json);
    pawli_json_close(&json);
}

/* ---- one picture */

static void name_store(const struct pawli_line *line, char shown[STORE_SIZE])
{
    const char *url = pawli_line_text(line, "--store");
    pawli_secret_shown(url != NULL ? url : "sqlite:", shown, STORE_SIZE);
}

static pawl_code show_once(const struct pawli_line *line, pawl_store *store, pawl_err *err)
{
    struct pawli_figures none = {.queues = NULL};
    struct pawli_figures figures;
    struct pawli_buffer buffer = {0};
    char shown[STORE_SIZE];
    pawl_code code = pawli_figures_read(store, pawl_clock_system(), &none, &figures, err);
    if (code != PAWL_OK)
        return code;
    name_store(line, shown);
    if (pawli_line_has(line, "--json"))
        tell_json(&figures);
    else if (pawli_frame_draw(&(struct pawli_frame_args){.figures = &figures, .store = shown},
                              &buffer))
        (void)fwrite(buffer.bytes, 1, buffer.len, stdout); /* main asks for errors */
    else
        code = PAWL_NO_MEMORY;
    pawli_buffer_clear(&buffer);
    pawli_figures_clear(&figures);
    return code;
}

/* ---- again and again */

struct show {
    pawl_store *store;
    char name[STORE_SIZE];
    struct pawli_figures figures;
    pawl_err err; /* of the last look; empty: it went well */
};

/* Look again. A store that is away is told, and asked again. */
static void look(struct show *show)
{
    struct pawli_figures figures;
    show->err = (pawl_err){.text = ""};
    pawl_code code = pawli_figures_read(show->store, pawl_clock_system(), &show->figures, &figures,
                                        &show->err);
    if (code == PAWL_OK) {
        pawli_figures_clear(&show->figures);
        show->figures = figures;
    }
}

static bool draw(const struct show *show)
{
    struct pawli_buffer buffer = {0};
    struct pawli_terminal_size size = pawli_terminal_size();
    const char *no_colour = getenv("NO_COLOR");
    struct pawli_frame_args args = {
        .figures = &show->figures,
        .store = show->name,
        .notice = show->err.text[0] != '\0' ? show->err.text : NULL,
        .columns = size.columns,
        .rows = size.rows,
        .is_styled = no_colour == NULL || no_colour[0] == '\0',
    };
    bool is_drawn = pawli_frame_draw(&args, &buffer) &&
                    pawli_terminal_put((const char *)buffer.bytes, buffer.len);
    pawli_buffer_clear(&buffer);
    return is_drawn;
}

static pawl_code show_live(const struct pawli_line *line, pawl_store *store, int *ret_exit)
{
    struct pawli_terminal terminal;
    struct show show = {.store = store};
    int64_t refresh_ms = pawli_line_number(line, "--refresh", REFRESH_MS);
    enum pawli_terminal_event event = PAWLI_TERMINAL_TIME;
    name_store(line, show.name);
    if (!pawli_terminal_take(&terminal)) {
        (void)fprintf(stderr, "pawl top: the terminal cannot be taken: %s\n", strerror(errno));
        *ret_exit = EX_IOERR;
        return PAWL_OK;
    }
    while (event != PAWLI_TERMINAL_END) {
        if (event == PAWLI_TERMINAL_TIME)
            look(&show);
        if (!draw(&show)) {
            *ret_exit = EX_IOERR;
            break;
        }
        event = pawli_terminal_wait(&terminal, refresh_ms);
    }
    pawli_terminal_give(&terminal);
    pawli_figures_clear(&show.figures);
    return PAWL_OK;
}

static pawl_code top(const struct pawli_line *line, pawl_store *store, int *ret_exit, pawl_err *err)
{
    bool is_once = pawli_line_has(line, "--once") || pawli_line_has(line, "--json");
    if (is_once || !pawli_terminal_is_fit())
        return show_once(line, store, err);
    return show_live(line, store, ret_exit);
}

static int run_top(const struct pawli_line *line)
{
    if (pawli_line_number(line, "--refresh", REFRESH_MS) < REFRESH_LEAST_MS)
        return pawli_line_refuse(line, "--refresh must be at least 100ms: each look counts all "
                                       "jobs");
    return pawli_cli_with_store(line, top);
}

static const struct pawli_option options[] = {
    PAWLI_OPTION_CONFIG,
    PAWLI_OPTION_JSON,
    {"--once", PAWLI_FLAG, NULL, "one plain picture, as into a pipe", 0, 0, NULL},
    {"--refresh", PAWLI_DURATION | PAWLI_SETTING, "D", "between two looks (default 2s)", 0, 0,
     NULL},
    PAWLI_OPTION_STORE,
    {0},
};

const struct pawli_command pawli_command_top = {
    .name = "top",
    .about = "watch queues and workers: depth, rates, jobs in flight, ages, failures",
    .options = options,
    .details =
        "On a terminal it goes on until q or Ctrl-C; a blank looks at once. Into a pipe, with "
        "--once or with --json it looks once, and rates are not known yet. The queues and workers "
        "with the most to do come first. Each look counts all jobs that are remembered.\n"
        "IN/S, DONE/S and FAIL/S are jobs in a second since the look before: enqueued or redriven, "
        "succeeded, failed for good. OLDEST is how long the job that has waited longest has been "
        "due.",
    .examples = "pawl top --refresh 5s\npawl top --json\n",
    .run = run_top,
};

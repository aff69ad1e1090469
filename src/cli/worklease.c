/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * worklease.c - `pawl worklease`: domains of work leases, their holders, backlogs and histories.
 * Owns:  the form of its output.
 * Never: shows a token; acquires or ends a lease.
 */
#include "pawl/worklease.h"

#include "cli/command.h"
#include "cli/store_url.h"
#include "cli/tell.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE          1000
#define LIMIT_DEFAULT 100

/* ---- list */

static const char *state_of(const pawl_worklease_info *info)
{
    if (!info->is_leased)
        return "idle";
    return info->is_expired ? "expired" : "leased";
}

/* The members of a domain, in an object that is open. */
static void info_json(struct pawli_json *json, const pawl_worklease_info *info)
{
    pawli_json_text(json, "domain", info->domain);
    pawli_json_text(json, "state", state_of(info));
    if (info->is_leased) {
        pawli_json_number(json, "offset", info->offset);
        if (info->owner[0] != '\0')
            pawli_json_text(json, "owner", info->owner);
        pawli_json_time(json, "acquired_at", info->acquired_at);
        pawli_json_number(json, "retry_count", info->retry_count);
        pawli_json_time(json, "expires_at", info->expires_at);
    }
    pawli_json_number(json, "backlog_count", info->backlog_count);
    if (info->backlog_count > 0)
        pawli_json_number(json, "backlog_head", info->backlog_head);
}

static void info_line(const pawl_worklease_info *info)
{
    char expires[PAWLI_TIME_TEXT_MAX];
    char offset[24] = "-";
    if (info->is_leased)
        (void)snprintf(offset, sizeof(offset), "%" PRId64, info->offset);      /* it fits */
    (void)printf("%-7s  %20s  %6" PRId64 "  %-24s  %7" PRId64 "  %-20s  %s\n", /* here and below:
                                                                         main asks for errors */
                 state_of(info), offset, info->retry_count,
                 pawli_time_text(info->expires_at, expires), info->backlog_count,
                 pawli_column(info->owner), info->domain);
}

/* One page of domains, as lines or as members of an array. */
static void tell_page(struct pawli_json *json, const pawl_worklease_info *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (json == NULL) {
            info_line(&rows[i]);
            continue;
        }
        pawli_json_open_object(json, NULL);
        info_json(json, &rows[i]);
        pawli_json_close(json);
    }
}

static pawl_code list(const struct pawli_line *line, pawl_store *store, int *ret_exit,
                      pawl_err *err)
{
    (void)ret_exit; /* nothing to refuse */
    bool is_json = pawli_line_has(line, "--json");
    int64_t left = pawli_line_number(line, "--limit", LIMIT_DEFAULT);
    const char *after = pawli_line_text(line, "--after");
    char last[PAWL_WORKLEASE_DOMAIN_MAX + 1];
    struct pawli_json json;
    pawl_worklease_info *rows = calloc(PAGE, sizeof(*rows));
    if (rows == NULL)
        return PAWL_NO_MEMORY;
    size_t count = 0;
    pawl_code code = pawl_worklease_domains(store, after, rows, left < PAGE ? (size_t)left : PAGE,
                                            &count, err);
    pawli_json_init(&json, stdout);
    if (code == PAWL_OK && is_json) {
        pawli_json_open_object(&json, NULL);
        pawli_json_open_array(&json, "domains");
    } else if (code == PAWL_OK) {
        (void)printf("%-7s  %20s  %6s  %-24s  %7s  %-20s  %s\n", "STATE", "OFFSET", "FAILED",
                     "EXPIRES", "BACKLOG", "OWNER", "DOMAIN");
    }
    while (code == PAWL_OK && count > 0) {
        tell_page(is_json ? &json : NULL, rows, count);
        memcpy(last, rows[count - 1].domain, sizeof(last));
        left -= (int64_t)count;
        if (left == 0)
            break;
        code = pawl_worklease_domains(store, last, rows, left < PAGE ? (size_t)left : PAGE, &count,
                                      err);
    }
    if (code == PAWL_OK && is_json) {
        pawli_json_close(&json);
        if (left == 0)
            pawli_json_text(&json, "next_after", last);
        pawli_json_close(&json);
    } else if (code == PAWL_OK && left == 0) {
        (void)fprintf(stderr, "There may be more: --after '%s'\n", last);
    }
    free(rows);
    return code;
}

static int run_list(const struct pawli_line *line)
{
    return pawli_cli_with_store(line, list);
}

static const struct pawli_option list_options[] = {
    {"--after", PAWLI_TEXT, "DOMAIN", "go on behind this domain", 0, 0, NULL},
    PAWLI_OPTION_CONFIG,
    PAWLI_OPTION_JSON,
    PAWLI_OPTION_LIMIT("how many at most (default 100)"),
    PAWLI_OPTION_STORE,
    {0},
};
static const struct pawli_command list_command = {
    .name = "worklease list",
    .about = "list domains: who holds which offset, and how many wait",
    .options = list_options,
    .details = "In the order of their names, byte by byte.",
    .examples = "pawl worklease list --after orders/7 --limit 20\n",
    .run = run_list,
};

/* ---- show */

/* What is shown of one domain. */
struct shown {
    pawl_worklease_info info;
    int64_t *backlog;
    size_t backlog_count;
    pawl_worklease_interval *terminal;
    size_t terminal_count;
    int64_t next_skip; /* 0: that is all */
};

static pawl_code look(pawl_store *store, const pawl_worklease_page *page, size_t limit,
                      struct shown *shown, pawl_err *err)
{
    shown->backlog = calloc(limit, sizeof(*shown->backlog));
    shown->terminal = calloc(limit, sizeof(*shown->terminal));
    if (shown->backlog == NULL || shown->terminal == NULL)
        return PAWL_NO_MEMORY;
    pawl_code code = pawl_worklease_get(store, page->domain, &shown->info, err);
    if (code == PAWL_OK)
        code = pawl_worklease_backlog(store, page, shown->backlog, limit, &shown->backlog_count,
                                      err);
    if (code == PAWL_OK)
        code = pawl_worklease_terminal(store, page, shown->terminal, limit, &shown->terminal_count,
                                       err);
    bool is_full = shown->backlog_count == limit || shown->terminal_count == limit;
    if (is_full && page->skip <= INT64_MAX - (int64_t)limit)
        shown->next_skip = page->skip + (int64_t)limit;
    return code;
}

static void shown_json(const struct shown *shown)
{
    struct pawli_json json;
    pawli_json_init(&json, stdout);
    pawli_json_open_object(&json, NULL);
    info_json(&json, &shown->info);
    pawli_json_open_array(&json, "backlog");
    for (size_t i = 0; i < shown->backlog_count; i++)
        pawli_json_number(&json, NULL, shown->backlog[i]);
    pawli_json_close(&json);
    pawli_json_open_array(&json, "terminal");
    for (size_t i = 0; i < shown->terminal_count; i++) {
        const pawl_worklease_interval *interval = &shown->terminal[i];
        pawli_json_open_object(&json, NULL);
        pawli_json_number(&json, "first", interval->first);
        pawli_json_number(&json, "last", interval->last);
        pawli_json_text(&json, "outcome", interval->is_failed ? "failed" : "processed");
        pawli_json_close(&json);
    }
    pawli_json_close(&json);
    if (shown->next_skip > 0)
        pawli_json_number(&json, "next_skip", shown->next_skip);
    pawli_json_close(&json);
}

static void shown_lines(const struct shown *shown)
{
    const pawl_worklease_info *info = &shown->info;
    char at[PAWLI_TIME_TEXT_MAX];
    (void)printf("domain    %s\nstate     %s\n", info->domain, state_of(info));
    if (info->is_leased) {
        (void)printf("offset    %" PRId64 "\nowner     %s\n", info->offset,
                     pawli_column(info->owner));
        (void)printf("acquired  %s\n", pawli_time_text(info->acquired_at, at));
        (void)printf("expires   %s\n", pawli_time_text(info->expires_at, at));
        (void)printf("failed    %" PRId64 "\n", info->retry_count);
    }
    (void)printf("backlog   %" PRId64 "\n", info->backlog_count);
    for (size_t i = 0; i < shown->backlog_count; i++)
        (void)printf("          %" PRId64 "\n", shown->backlog[i]);
    for (size_t i = 0; i < shown->terminal_count; i++) {
        const pawl_worklease_interval *interval = &shown->terminal[i];
        (void)printf("%-9s %" PRId64, interval->is_failed ? "failed" : "processed",
                     interval->first);
        if (interval->last != interval->first)
            (void)printf(" to %" PRId64, interval->last);
        (void)printf("\n");
    }
    if (shown->next_skip > 0)
        (void)fprintf(stderr, "There may be more: --skip %" PRId64 "\n", shown->next_skip);
}

static pawl_code show(const struct pawli_line *line, pawl_store *store, int *ret_exit,
                      pawl_err *err)
{
    (void)ret_exit; /* nothing to refuse */
    size_t limit = (size_t)pawli_line_number(line, "--limit", LIMIT_DEFAULT);
    pawl_worklease_page page = {.domain = line->arguments[0],
                                .skip = pawli_line_number(line, "--skip", 0)};
    struct shown shown = {.backlog = NULL};
    pawl_code code = look(store, &page, limit, &shown, err);
    if (code == PAWL_OK && pawli_line_has(line, "--json"))
        shown_json(&shown);
    else if (code == PAWL_OK)
        shown_lines(&shown);
    free(shown.backlog);
    free(shown.terminal);
    return code;
}

static int run_show(const struct pawli_line *line)
{
    return pawli_cli_with_store(line, show);
}

static const struct pawli_option show_options[] = {
    PAWLI_OPTION_CONFIG,
    PAWLI_OPTION_JSON,
    {"--limit", PAWLI_NUMBER, "N",
     "at most so many of the backlog, and so many intervals; default 100", 1, PAWL_BATCH_MAX, NULL},
    {"--skip", PAWLI_NUMBER, "N",
     "leave out so many of the backlog, and so many intervals, from the beginning", 0, INT64_MAX,
     NULL},
    PAWLI_OPTION_STORE,
    {0},
};
static const struct pawli_command show_command = {
    .name = "worklease show",
    .about = "show one domain: its lease, its backlog, and what has ended",
    .arguments = "DOMAIN",
    .arguments_min = 1,
    .arguments_max = 1,
    .options = show_options,
    .details = "What has ended is told as intervals of offsets. No token is shown.",
    .examples = "pawl worklease show orders/7\n",
    .run = run_show,
};

static const struct pawli_command *const actions[] = {&list_command, &show_command, NULL};
const struct pawli_command pawli_command_worklease = {
    .name = "worklease",
    .about = "look at work leases: domains, backlogs, and what has ended",
    .actions = actions,
    .usual = &list_command,
    .details = "Without an action it lists. docs/worklease.md says what work leases are.",
    .examples = "pawl worklease\npawl worklease show orders/7 --json\n",
};

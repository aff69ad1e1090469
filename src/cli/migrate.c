/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * migrate.c - `pawl migrate`: shows, plans and applies the steps of the PostgreSQL schema.
 * Owns:  the words of the command and the form of its output.
 * Never: shows the connection string, which may hold a password; decides what a step is.
 */
#include "cli/command.h"
#include "cli/json.h"
#include "cli/store_url.h"
#include "cli/tell.h"
#include "pawl/pawl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

static bool is_current(const pawl_migrate_step *steps, size_t steps_count)
{
    for (size_t i = 0; i < steps_count; i++)
        if (!steps[i].is_plain && steps[i].applied_at.us == 0)
            return false;
    return true;
}

static void tell_json(const pawl_migrate_step *steps, size_t steps_count)
{
    char text[PAWLI_TIME_TEXT_MAX];
    struct pawli_json json;
    pawli_json_init(&json, stdout);
    pawli_json_open_object(&json, NULL);
    pawli_json_bool(&json, "is_current", is_current(steps, steps_count));
    pawli_json_open_array(&json, "steps");
    for (size_t i = 0; i < steps_count; i++) {
        pawli_json_open_object(&json, NULL);
        pawli_json_text(&json, "name", steps[i].name);
        pawli_json_bool(&json, "is_needed", !steps[i].is_plain);
        pawli_json_bool(&json, "is_applied", steps[i].applied_at.us != 0);
        if (steps[i].applied_at.us != 0)
            pawli_json_text(&json, "applied_at", pawli_time_text(steps[i].applied_at, text));
        pawli_json_close(&json);
    }
    pawli_json_close(&json);
    pawli_json_close(&json);
}

static void tell_text(const pawl_migrate_step *steps, size_t steps_count)
{
    char text[PAWLI_TIME_TEXT_MAX];
    for (size_t i = 0; i < steps_count; i++) {
        const char *missing = steps[i].is_plain ? "missing (not needed)" : "missing";
        (void)printf("%-20s %s\n", steps[i].name, /* here and below: main asks for errors */
                     steps[i].applied_at.us != 0 ? pawli_time_text(steps[i].applied_at, text)
                                                 : missing);
    }
    (void)puts(is_current(steps, steps_count) ? "The schema is up to date."
                                              : "The schema is behind: run pawl migrate up");
}

static int run_status(const pawl_migrate_options *options, bool is_json)
{
    pawl_migrate_step *steps = NULL;
    size_t steps_count = 0;
    pawl_err err;
    pawl_code code = pawl_migrate_status(options, &steps, &steps_count, &err);
    if (code != PAWL_OK)
        return pawli_cli_fail("migrate", code, &err);
    if (is_json)
        tell_json(steps, steps_count);
    else
        tell_text(steps, steps_count);
    free(steps);
    return EX_OK;
}

static int run_plan(const pawl_migrate_options *options, bool is_json)
{
    char *sql = NULL;
    pawl_err err;
    pawl_code code = pawl_migrate_plan(options, &sql, &err);
    if (code != PAWL_OK)
        return pawli_cli_fail("migrate", code, &err);
    if (is_json) {
        struct pawli_json json;
        pawli_json_init(&json, stdout);
        pawli_json_open_object(&json, NULL);
        pawli_json_text(&json, "sql", sql);
        pawli_json_close(&json);
    } else {
        (void)fputs(sql, stdout);
    }
    free(sql);
    return EX_OK;
}

static int run_up(const pawl_migrate_options *options, bool is_json)
{
    size_t count = 0;
    pawl_err err;
    pawl_code code = pawl_migrate_up(options, &count, &err);
    if (code != PAWL_OK)
        return pawli_cli_fail("migrate", code, &err);
    if (is_json) {
        struct pawli_json json;
        pawli_json_init(&json, stdout);
        pawli_json_open_object(&json, NULL);
        pawli_json_number(&json, "applied", (int64_t)count);
        pawli_json_close(&json);
    } else if (count == 0) {
        (void)puts("Nothing to do: the schema is up to date.");
    } else {
        (void)printf("%zu step%s applied.\n", count, count == 1 ? "" : "s");
    }
    return EX_OK;
}

static int run(const struct pawli_line *line,
               int (*action)(const pawl_migrate_options *options, bool is_json))
{
    pawl_migrate_options options;
    pawl_err err;
    pawl_migrate_options_init(&options);
    options.is_plain = !pawli_line_has(line, "--no-plain");
    options.shards = pawli_line_number(line, "--shards", PAWL_DEFAULT);
    pawl_code code = pawli_cli_conninfo(line, &options.conninfo, &err);
    if (code != PAWL_OK)
        return pawli_cli_fail("migrate", code, &err);
    return action(&options, pawli_line_has(line, "--json"));
}

static int migrate_status(const struct pawli_line *line)
{
    return run(line, run_status);
}

static int migrate_plan(const struct pawli_line *line)
{
    return run(line, run_plan);
}

static int migrate_up(const struct pawli_line *line)
{
    return run(line, run_up);
}

static const struct pawli_option options[] = {
    PAWLI_OPTION_CONFIG,
    PAWLI_OPTION_JSON,
    {"--no-plain", PAWLI_FLAG, NULL,
     "leave out what only plain PostgreSQL can do, and is not needed", 0, 0, NULL},
    {"--shards", PAWLI_NUMBER, "N",
     "with the first up: how many shards (default 1); fixed from then on", 1, PAWL_SHARDS_MAX,
     NULL},
    PAWLI_OPTION_STORE,
    {0},
};

static const struct pawli_command status = {
    .name = "migrate status",
    .about = "show which steps were applied",
    .options = options,
    .examples = "pawl migrate status --json\n",
    .run = migrate_status,
};
static const struct pawli_command plan = {
    .name = "migrate plan",
    .about = "print the SQL that up would run",
    .options = options,
    .examples = "pawl migrate plan > steps.sql\n",
    .run = migrate_plan,
};
static const struct pawli_command up = {
    .name = "migrate up",
    .about = "apply the steps that are missing, each whole or not at all",
    .options = options,
    .examples = "pawl migrate up --store postgres://pawl_owner@db/app\n",
    .run = migrate_up,
};
static const struct pawli_command *const actions[] = {&status, &plan, &up, NULL};

const struct pawli_command pawli_command_migrate = {
    .name = "migrate",
    .about = "set up the schema of a PostgreSQL database",
    .actions = actions,
    .details = "Safe to repeat, and from several places at once. SQLite files need none of it.",
    .examples = "pawl migrate status\n"
                "pawl migrate up --shards 8 --store postgres://pawl_owner@db/app\n",
};

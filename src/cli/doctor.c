/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * doctor.c - `pawl doctor`: whether a deployment is fit, and what to do where it is not.
 * Owns:  the form of its output, and its exit code.
 * Never: changes anything.
 */
#include "cli/command.h"
#include "cli/json.h"
#include "cli/store_url.h"

#include "base/text.h"
#include "store/health.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#define NAME "doctor"

static const char *const level_words[] = {"ok", "warning", "error"};

/* What was told so far. */
struct report {
    struct pawli_json *json; /* NULL: as text */
    int64_t counts[PAWLI_HEALTH_ERROR + 1];
};

static void tell(void *user, const struct pawli_finding *finding)
{
    struct report *report = user;
    report->counts[finding->level]++;
    if (report->json != NULL) {
        pawli_json_open_object(report->json, NULL);
        pawli_json_text(report->json, "level", level_words[finding->level]);
        pawli_json_text(report->json, "name", finding->name);
        pawli_json_text(report->json, "text", finding->text);
        if (finding->advice != NULL)
            pawli_json_text(report->json, "advice", finding->advice);
        pawli_json_close(report->json);
        return;
    }
    (void)printf("%-7s  %-18s  %s\n", level_words[finding->level], finding->name,
                 finding->text); /* here and below: main asks for errors */
    if (finding->advice != NULL)
        (void)printf("%29s-> %s\n", "", finding->advice);
}

static void tell_failure(struct report *report, const char *name, const char *advice,
                         const pawl_err *err)
{
    struct pawli_finding finding = {.level = PAWLI_HEALTH_ERROR, .name = name, .advice = advice};
    (void)pawli_text_copy(finding.text, sizeof(finding.text), err->text); /* the same size */
    tell(report, &finding);
}

/* ---- the schema of a server */

static void tell_steps(struct report *report, const pawl_migrate_step *steps, size_t steps_count)
{
    struct pawli_finding finding = {.name = "schema"};
    size_t missing = 0;
    bool has_plain = true;
    const char *first = "";
    for (size_t i = 0; i < steps_count; i++) {
        if (steps[i].applied_at.us != 0)
            continue;
        has_plain &= !steps[i].is_plain;
        if (!steps[i].is_plain && missing++ == 0)
            first = steps[i].name;
    }
    if (missing > 0) {
        finding.level = PAWLI_HEALTH_ERROR;
        finding.advice = "run pawl migrate up as the owner of the schema";
        (void)snprintf(finding.text, sizeof(finding.text), /* it fits */
                       "%zu steps are missing, from %s on", missing, first);
    } else if (!has_plain) {
        finding.level = PAWLI_HEALTH_WARNING;
        finding.advice = "run pawl migrate up without --no-plain, unless the server is not a plain "
                         "PostgreSQL: the ledger is not kept from changes by hand";
        (void)snprintf(finding.text, sizeof(finding.text), /* it fits */
                       "the step for plain PostgreSQL is missing");
    } else {
        (void)snprintf(finding.text, sizeof(finding.text), "it is current"); /* it fits */
    }
    tell(report, &finding);
}

/* False: the store cannot be used as it is. */
static bool check_schema(const char *conninfo, struct report *report)
{
    pawl_migrate_options options;
    pawl_migrate_step *steps = NULL;
    size_t steps_count = 0;
    pawl_err err = {.text = ""};
    pawl_migrate_options_init(&options);
    options.conninfo = conninfo;
    pawl_code code = pawl_migrate_status(&options, &steps, &steps_count, &err);
    if (code == PAWL_OK) {
        tell_steps(report, steps, steps_count);
        free(steps);
    } else if (code == PAWL_INVALID) {
        tell_failure(report, "schema", "use the Pawl that set up the schema, or a newer one", &err);
    }
    return code == PAWL_OK; /* a server that is away is told by whoever opens it */
}

/* ---- all of it */

static int check_store(const struct pawli_line *line, struct report *report)
{
    struct pawli_cli_store store;
    pawl_store *handle = NULL;
    pawl_err err = {.text = ""};
    struct pawli_health health = {.tell = tell, .user = report};
    struct pawli_health_args args = {
        .reaper_interval_ms = pawli_line_number(line, "--reaper-interval", PAWL_DEFAULT),
        .clock = pawl_clock_system(),
    };
    const struct pawli_cli_store_args open = {.call_timeout_ms = PAWL_DEFAULT};
    pawl_code code = pawli_cli_store_init(&store, line, &open, &err);
    if (code == PAWL_OK)
        code = pawl_source_open(store.source, &handle, &err);
    if (code == PAWL_OK)
        code = pawli_health_check(handle, &args, &health, &err);
    pawl_store_close(handle);
    pawli_cli_store_clear(&store);
    if (code == PAWL_OK)
        return EX_OK;
    if (err.text[0] == '\0')
        (void)pawli_text_copy(err.text, sizeof(err.text), pawl_code_text(code)); /* it fits */
    tell_failure(report, "store", "see pawl config for where its name comes from", &err);
    return code == PAWL_DOWN || code == PAWL_UNKNOWN ? EX_UNAVAILABLE : EX_CONFIG;
}

static int check(const struct pawli_line *line, struct report *report)
{
    pawl_err err;
    const char *conninfo = NULL;
    /* Of what is no server there is no schema to look at; and none is named without a URL. */
    if (pawli_cli_conninfo(line, &conninfo, &err) == PAWL_OK && conninfo != NULL)
        (void)check_schema(conninfo, report); /* told where it is wrong */
    int exit_code = check_store(line, report);
    if (exit_code == EX_OK && report->counts[PAWLI_HEALTH_ERROR] > 0)
        exit_code = EX_CONFIG;
    return exit_code;
}

static int run_doctor(const struct pawli_line *line)
{
    struct pawli_json json;
    struct report report = {.json = pawli_line_has(line, "--json") ? &json : NULL};
    if (report.json != NULL) {
        pawli_json_init(&json, stdout);
        pawli_json_open_object(&json, NULL);
        pawli_json_open_array(&json, "findings");
    }
    int exit_code = check(line, &report);
    if (report.json != NULL) {
        pawli_json_close(&json);
        pawli_json_number(&json, "errors", report.counts[PAWLI_HEALTH_ERROR]);
        pawli_json_number(&json, "warnings", report.counts[PAWLI_HEALTH_WARNING]);
        pawli_json_close(&json);
    } else {
        (void)printf("%lld errors, %lld warnings\n", (long long)report.counts[PAWLI_HEALTH_ERROR],
                     (long long)report.counts[PAWLI_HEALTH_WARNING]);
    }
    return exit_code;
}

static const struct pawli_option options[] = {
    PAWLI_OPTION_CONFIG,
    PAWLI_OPTION_JSON,
    {"--reaper-interval", PAWLI_DURATION | PAWLI_SETTING, "D",
     "how often reapers run; default: half the lease, 10s at most", 0, 0, NULL},
    PAWLI_OPTION_STORE,
    {0},
};

const struct pawli_command pawli_command_doctor = {
    .name = NAME,
    .about = "look for what is wrong with a deployment, and say what to do",
    .options = options,
    .details =
        "Whether a reaper runs, and keeps up; whether the store's clock and this machine's agree; "
        "of PostgreSQL: fsync, synchronous_commit, full_page_writes, autovacuum, the schema, the "
        "budget of connections, notifications; of a SQLite file: the file system, room on the "
        "disk, journal mode, synchronous, and quick_check, which reads all of it.\n"
        "Exits with 0 where there is no error, 78 where there is one, 69 where the store cannot be "
        "reached. Warnings alone are no failure.",
    .examples = "pawl doctor\npawl doctor --json --store postgres://pawl_runtime@db/app\n",
    .run = run_doctor,
};

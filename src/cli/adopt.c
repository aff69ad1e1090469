/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * adopt.c - `pawl adopt`: takes over an older outbox, as a mapping file describes it.
 * Owns:  the words of the command; reading the mapping's file.
 * Never: shows the connection string, which may hold a password; decides what becomes of a row.
 */
#include "cli/adopt_tell.h"
#include "cli/command.h"
#include "cli/mapping.h"
#include "cli/store_url.h"
#include "pawl/adopt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

/* ---- the mapping's file */

/* Read a file, or standard input where its name is `-`. Gives 0, or the exit code. */
static int read_file(const char *name, char text[PAWLI_MAPPING_BYTES_MAX + 1], size_t *ret_len)
{
    FILE *file = strcmp(name, "-") == 0 ? stdin : fopen(name, "rb");
    if (file == NULL) {
        (void)fprintf(stderr, "pawl adopt: %s: %s\n", name, strerror(errno));
        return EX_NOINPUT;
    }
    size_t length = fread(text, 1, PAWLI_MAPPING_BYTES_MAX + 1, file);
    bool is_bad = ferror(file) != 0;
    if (file != stdin)
        (void)fclose(file); /* only read from */
    if (is_bad) {
        (void)fprintf(stderr, "pawl adopt: %s: cannot be read\n", name);
        return EX_NOINPUT;
    }
    if (length > PAWLI_MAPPING_BYTES_MAX) {
        (void)fprintf(stderr, "pawl adopt: %s: has more than %d bytes: no mapping has\n", name,
                      PAWLI_MAPPING_BYTES_MAX);
        return EX_CONFIG;
    }
    *ret_len = length;
    return EX_OK;
}

static int read_mapping(const char *name, struct pawli_mapping *ret_mapping)
{
    size_t length = 0;
    pawl_err err;
    char *text = malloc(PAWLI_MAPPING_BYTES_MAX + 1);
    if (text == NULL) {
        (void)fputs("pawl adopt: memory ran out\n", stderr);
        return EX_OSERR;
    }
    int exit_code = read_file(name, text, &length);
    if (exit_code == EX_OK && !pawli_mapping_read(text, length, ret_mapping, &err)) {
        (void)fprintf(stderr, "pawl adopt: %s: %s\n", name, err.text);
        exit_code = err.code == PAWL_NO_MEMORY ? EX_OSERR : EX_CONFIG;
    }
    free(text);
    return exit_code;
}

/* ---- the run */

static void show_step(void *user, const char *step)
{
    (void)user; /* none */
    (void)fprintf(stderr, "pawl adopt: %s ...\n", step);
}

static int run(const pawl_adopt_options *options, bool is_json)
{
    pawl_adopt_report report = {0};
    pawl_err err;
    pawl_code code = pawl_adopt(options, &report, &err);
    if (code != PAWL_OK)
        return pawli_cli_fail("adopt", code, &err);
    if (is_json)
        pawli_adopt_tell_json(&report, options->is_dry_run);
    else
        pawli_adopt_tell_text(&report, options->is_dry_run, stderr);
    int exit_code = report.problems_count > 0 ? EX_DATAERR : EX_OK;
    pawl_adopt_report_clear(&report);
    return exit_code;
}

static int run_adopt(const struct pawli_line *line)
{
    pawl_adopt_options options;
    pawl_adopt_options_init(&options);
    pawl_err err;
    options.is_dry_run = pawli_line_has(line, "--dry-run");
    options.is_retiring = pawli_line_has(line, "--retire");
    options.lock_timeout_ms = pawli_line_number(line, "--lock-timeout", options.lock_timeout_ms);
    options.timeout_ms = pawli_line_number(line, "--timeout", options.timeout_ms);
    pawl_code code = pawli_cli_conninfo(line, &options.conninfo, &err);
    if (code != PAWL_OK)
        return pawli_cli_fail("adopt", code, &err);
    struct pawli_mapping mapping = {0};
    int exit_code = read_mapping(line->arguments[0], &mapping);
    if (exit_code != EX_OK)
        return exit_code;
    options.mapping = mapping.entries;
    options.mapping_count = mapping.count;
    options.progress = isatty(STDERR_FILENO) == 1 ? show_step : NULL;
    exit_code = run(&options, pawli_line_has(line, "--json"));
    pawli_mapping_clear(&mapping);
    return exit_code;
}

static const struct pawli_option options[] = {
    PAWLI_OPTION_CONFIG,
    {"--dry-run", PAWLI_FLAG, NULL, "say what would become of every row, and change nothing", 0, 0,
     NULL},
    PAWLI_OPTION_JSON,
    {"--lock-timeout", PAWLI_DURATION, "D",
     "how long to wait for others who write to the old tables (default 5s)", 0, 0, NULL},
    {"--retire", PAWLI_FLAG, NULL, "rename the old tables in the same transaction, adding _adopted",
     0, 0, NULL},
    PAWLI_OPTION_STORE,
    {"--timeout", PAWLI_DURATION, "D", "how long all of it may take (default 1h)", 0, 0, NULL},
    {0},
};

const struct pawli_command pawli_command_adopt = {
    .name = "adopt",
    .about = "take over an older outbox in a PostgreSQL database",
    .arguments = "MAPPING",
    .arguments_min = 1,
    .arguments_max = 1,
    .options = options,
    .details =
        "Adopts an outbox from which claims delete: a table of pending rows and one of attempts, "
        "which MAPPING names: a JSON file, or - for standard input; see docs/adopting.md. One "
        "transaction; safe to repeat; needs the owner of the schema pawl. Stop the programs that "
        "work on the old tables first, or retire these.",
    .examples = "pawl adopt payments.json --dry-run\n"
                "pawl adopt payments.json --retire --store postgres://pawl_owner@db/app\n",
    .run = run_adopt,
};

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * check_main.c - the checker as a program: pawl-check [options] FILE...
 * Owns:  its command line; reading the files.
 * Never: judges (check.c does).
 */
#include "sim/check.h"
#include "store/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <sysexits.h>

static const char usage_text[] =
    "usage: pawl-check [OPTION]... FILE...\n"
    "Reads histories, merged by the time of their records, and says which promise was not kept.\n"
    "  --print           print the records, do not check\n"
    "  --rules           print the rules\n"
    "  --exact           the one history has its calls in the order in which the store did them\n"
    "  --complete        it must end with a list of all jobs and all ledgers\n"
    "  --drained         it must end with every job terminal\n"
    "  --drift-ppm N     how far the rates of any two clocks may differ (default 500)\n"
    "  --round-trip D    the longest that a call takes while nothing is broken (default 100ms)\n"
    "  --reaper D        the longest from an expiry to the next reap (default: not checked)\n"
    "  --recover D       the longest from a lost claim to its leases being found (likewise)\n"
    "  --calm D          how long after the last fault workers are at their usual pace\n"
    "Exit status: 0 all promises kept, 1 one was not, 64 wrong usage, 65 not a history, 66 no "
    "file.\n";

struct command {
    struct check_options options;
    bool is_print;
    bool is_rules;
    const char **files;
    size_t files_count;
};

/* ---------------------------------------------------------------- the command line */

static bool parse_number(const char *text, int64_t *ret_number)
{
    char *end = NULL;
    errno = 0;
    long long number = text[0] >= '0' && text[0] <= '9' ? strtoll(text, &end, 10) : -1;
    if (number < 0 || errno != 0 || *end != '\0' || number > 1000000)
        return false;
    *ret_number = number;
    return true;
}

static bool parse_value(struct check_options *options, const char *name, const char *value)
{
    pawl_err err;
    if (strcmp(name, "--drift-ppm") == 0)
        return parse_number(value, &options->drift_ppm);
    if (strcmp(name, "--round-trip") == 0)
        return pawl_duration_parse(value, &options->round_trip_ms, &err) == PAWL_OK;
    if (strcmp(name, "--reaper") == 0)
        return pawl_duration_parse(value, &options->reaper_ms, &err) == PAWL_OK;
    if (strcmp(name, "--recover") == 0)
        return pawl_duration_parse(value, &options->recover_ms, &err) == PAWL_OK;
    if (strcmp(name, "--calm") == 0)
        return pawl_duration_parse(value, &options->calm_ms, &err) == PAWL_OK;
    return false;
}

static bool parse_flag(struct command *command, const char *name)
{
    bool *flag = strcmp(name, "--print") == 0      ? &command->is_print
                 : strcmp(name, "--rules") == 0    ? &command->is_rules
                 : strcmp(name, "--exact") == 0    ? &command->options.is_exact
                 : strcmp(name, "--complete") == 0 ? &command->options.is_complete
                 : strcmp(name, "--drained") == 0  ? &command->options.must_drain
                                                   : NULL;
    if (flag == NULL)
        return false;
    *flag = true;
    return true;
}

static bool parse(struct command *command, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] != '-') {
            command->files[command->files_count++] = argv[i];
        } else if (!parse_flag(command, argv[i])) {
            if (i + 1 >= argc || !parse_value(&command->options, argv[i], argv[i + 1])) {
                fprintf(stderr, "pawl-check: %s: unknown, or without a value that it can use\n",
                        argv[i]);
                return false;
            }
            i++;
        }
    }
    return command->files_count > 0 || command->is_rules;
}

/* ---------------------------------------------------------------- files */

static bool read_file(const char *name, struct check_part *ret_part)
{
    FILE *file = fopen(name, "rb");
    uint8_t *bytes = NULL;
    size_t len = 0;
    size_t size = 0;
    bool is_read = file != NULL;
    while (is_read) {
        if (len == size) {
            size = size == 0 ? 1 << 16 : 2 * size;
            uint8_t *grown = realloc(bytes, size);
            is_read = grown != NULL;
            bytes = is_read ? grown : bytes;
            if (!is_read)
                break;
        }
        size_t got = fread(bytes + len, 1, size - len, file);
        len += got;
        if (got == 0)
            break;
    }
    is_read = is_read && ferror(file) == 0;
    if (file != NULL)
        fclose(file);
    if (!is_read) {
        free(bytes);
        return false;
    }
    *ret_part = (struct check_part){bytes, len};
    return true;
}

/* ---------------------------------------------------------------- what it does */

static int print_rules(void)
{
    for (int i = 1; i < CHECK_RULES_COUNT; i++)
        printf("%-4s %-18s %s\n", check_rule_number((enum check_rule)i),
               check_rule_name((enum check_rule)i), check_rule_text((enum check_rule)i));
    return EXIT_SUCCESS;
}

static pawl_code print_history(const struct check_part *part, pawl_err *err)
{
    struct pawli_trace_reader *reader = NULL;
    pawl_code code = pawli_trace_reader_new(part->bytes, part->len, &reader, err);
    struct pawli_trace_record record;
    bool is_more = true;
    while (code == PAWL_OK && is_more) {
        code = pawli_trace_read(reader, &record, &is_more, err);
        if (code == PAWL_OK && is_more)
            pawli_trace_print(&record, stdout);
    }
    if (code == PAWL_OK && pawli_trace_is_cut(reader))
        puts("(cut off here)");
    pawli_trace_reader_free(reader);
    return code;
}

static int print_all(const struct command *command, const struct check_part *parts)
{
    for (size_t i = 0; i < command->files_count; i++) {
        pawl_err err;
        if (print_history(&parts[i], &err) != PAWL_OK) {
            fprintf(stderr, "pawl-check: %s: %s\n", command->files[i], err.text);
            return EX_DATAERR;
        }
    }
    return EXIT_SUCCESS;
}

static int check_all(const struct command *command, const struct check_part *parts)
{
    struct check_report *report = calloc(1, sizeof(*report));
    pawl_err err = {.text = "out of memory"};
    if (report == NULL ||
        check_histories(parts, command->files_count, &command->options, report, &err) != PAWL_OK) {
        fprintf(stderr, "pawl-check: %s\n", err.text);
        free(report);
        return EX_DATAERR;
    }
    check_report_print(report, stdout);
    size_t violations = report->violations_count;
    printf("%s: %zu records, %zu jobs, %zu leases, %zu expired, %zu starts%s\n",
           violations == 0 ? "ok" : "FAILED", report->records, report->jobs, report->leases,
           report->expiries, report->starts, report->is_cut ? ", cut off" : "");
    free(report);
    return violations == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int run(struct command *command, struct check_part *parts)
{
    for (size_t i = 0; i < command->files_count; i++) {
        if (!read_file(command->files[i], &parts[i])) {
            fprintf(stderr, "pawl-check: %s: cannot be read\n", command->files[i]);
            return EX_NOINPUT;
        }
    }
    return command->is_print ? print_all(command, parts) : check_all(command, parts);
}

int main(int argc, char **argv)
{
    struct command command = {.options = {.drift_ppm = 500, .round_trip_ms = 100}};
    size_t files_max = argc > 0 ? (size_t)argc : 1;
    command.files = calloc(files_max, sizeof(const char *));
    struct check_part *parts = calloc(files_max, sizeof(*parts));
    int status = EX_OSERR;
    if (command.files != NULL && parts != NULL) {
        if (!parse(&command, argc, argv)) {
            fputs(usage_text, stderr);
            status = EX_USAGE;
        } else {
            status = command.is_rules ? print_rules() : run(&command, parts);
        }
        for (size_t i = 0; i < command.files_count; i++)
            free((void *)parts[i].bytes);
    }
    free(command.files);
    free(parts);
    return status;
}

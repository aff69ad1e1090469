/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * adopt_tell.c - how the report of `pawl adopt` is told.
 * Owns:  its words and columns.
 * Never: tells more of an old row than its id; lets an id control the terminal.
 */
#include "cli/adopt_tell.h"

#include "cli/json.h"

#include <inttypes.h>

#define NAME_WIDTH  22
#define COUNT_WIDTH 9

/* An id is the old table's text: whatever is not a printable character of ASCII is a question
 * mark. */
static void print_id(FILE *out, const pawl_adopt_old_id *id)
{
    for (const char *at = id->text; *at != '\0'; at++)
        (void)fputc(*at >= ' ' && *at <= '~' ? *at : '?', out); /* here and below: main asks */
}

static void print_ids(const pawl_adopt_class *class)
{
    for (size_t i = 0; i < class->ids_count; i++) {
        (void)printf("%*s", NAME_WIDTH + COUNT_WIDTH + 4, "");
        print_id(stdout, &class->ids[i]);
        (void)putchar('\n');
    }
    if (class->ids_count > 0 && (int64_t) class->ids_count < class->count)
        (void)printf("%*s...\n", NAME_WIDTH + COUNT_WIDTH + 4, "");
}

static void print_classes(const pawl_adopt_report *report, pawl_adopt_kind kind, const char *title)
{
    (void)printf("%s\n", title);
    for (size_t i = 0; i < report->classes_count; i++) {
        const pawl_adopt_class *class = &report->classes[i];
        if (class->kind != kind)
            continue;
        (void)printf("  %-*s%*" PRId64 "  %s\n", NAME_WIDTH, class->name, COUNT_WIDTH, class->count,
                     class->count > 0 ? class->becomes : "");
        print_ids(class);
    }
}

static void print_problems(const pawl_adopt_report *report, FILE *out)
{
    (void)fputs("pawl adopt: nothing was adopted; these stand in the way:\n", out);
    for (size_t i = 0; i < report->classes_count; i++) {
        const pawl_adopt_class *class = &report->classes[i];
        if (class->kind != PAWL_ADOPT_PROBLEM)
            continue;
        (void)fprintf(out, "  %" PRId64 " job%s: %s\n", class->count, class->count == 1 ? "" : "s",
                      class->name);
        for (size_t id = 0; id < class->ids_count; id++) {
            (void)fputs("    ", out);
            print_id(out, &class->ids[id]);
            (void)fputc('\n', out);
        }
        if ((int64_t) class->ids_count < class->count)
            (void)fprintf(out, "    and %" PRId64 " more\n",
                          class->count - (int64_t) class->ids_count);
    }
}

static int64_t count_new(const pawl_adopt_report *report)
{
    int64_t count = 0;
    for (size_t i = 0; i < report->classes_count; i++)
        if (report->classes[i].kind == PAWL_ADOPT_JOBS)
            count += report->classes[i].count;
    /* The last class of jobs is what was adopted before. */
    for (size_t i = report->classes_count; i-- > 0;)
        if (report->classes[i].kind == PAWL_ADOPT_JOBS)
            return count - report->classes[i].count;
    return count;
}

void pawli_adopt_tell_text(const pawl_adopt_report *report, bool is_dry_run, FILE *problems)
{
    print_classes(report, PAWL_ADOPT_JOBS, "jobs");
    print_classes(report, PAWL_ADOPT_ROWS, "rows of the old attempts");
    if (report->problems_count > 0) {
        print_problems(report, problems);
        return;
    }
    int64_t count = count_new(report);
    if (count == 0)
        (void)puts("Nothing to do: all of it was adopted before.");
    else
        (void)printf("%" PRId64 " job%s %s.\n", count, count == 1 ? "" : "s",
                     is_dry_run ? "would be adopted; nothing was changed" : "adopted");
    if (report->is_retired)
        (void)puts("The old tables are retired: their names end in _adopted.");
}

static void tell_classes(struct pawli_json *json, const pawl_adopt_report *report,
                         pawl_adopt_kind kind, const char *key)
{
    pawli_json_open_array(json, key);
    for (size_t i = 0; i < report->classes_count; i++) {
        const pawl_adopt_class *class = &report->classes[i];
        if (class->kind != kind)
            continue;
        pawli_json_open_object(json, NULL);
        pawli_json_text(json, kind == PAWL_ADOPT_PROBLEM ? "why" : "class", class->name);
        if (kind != PAWL_ADOPT_PROBLEM)
            pawli_json_text(json, "becomes", class->becomes);
        pawli_json_number(json, "count", class->count);
        if (kind != PAWL_ADOPT_ROWS) {
            pawli_json_open_array(json, "ids");
            for (size_t id = 0; id < class->ids_count; id++)
                pawli_json_text(json, NULL, class->ids[id].text);
            pawli_json_close(json);
        }
        pawli_json_close(json);
    }
    pawli_json_close(json);
}

void pawli_adopt_tell_json(const pawl_adopt_report *report, bool is_dry_run)
{
    struct pawli_json json;
    pawli_json_init(&json, stdout);
    pawli_json_open_object(&json, NULL);
    pawli_json_bool(&json, "is_dry_run", is_dry_run);
    pawli_json_bool(&json, "is_done", report->is_done);
    pawli_json_bool(&json, "is_retired", report->is_retired);
    pawli_json_number(&json, "adopted", report->is_done ? count_new(report) : 0);
    tell_classes(&json, report, PAWL_ADOPT_JOBS, "jobs");
    tell_classes(&json, report, PAWL_ADOPT_ROWS, "rows");
    tell_classes(&json, report, PAWL_ADOPT_PROBLEM, "problems");
    pawli_json_close(&json);
}

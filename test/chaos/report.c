/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * report.c - what came of the chaos, as a TAP stream.
 * Owns:  what must have happened for the run to count, and what must hold afterwards.
 * Never: forgives.
 */
#include "chaos/chaos.h"

#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES 128

struct tap {
    int number;
    int failed;
};

static void tell(struct tap *tap, bool is_ok, const char *what)
{
    (void)printf("%s %d - %s\n", is_ok ? "ok" : "not ok", ++tap->number, what);
    tap->failed += !is_ok;
}

/* ---------------------------------------------------------------- what programs did */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* All lines of a text, sorted. */
static char **sort_lines(char *text, size_t *ret_count)
{
    size_t count = 0;
    for (const char *at = text; *at != '\0'; at++)
        count += *at == '\n';
    char **lines = calloc(count + 1, sizeof(char *));
    *ret_count = 0;
    for (char *at = text; lines != NULL && *ret_count < count; at++) {
        lines[(*ret_count)++] = at;
        at = strchr(at, '\n');
        *at = '\0';
    }
    if (lines != NULL)
        qsort(lines, count, sizeof(char *), by_text);
    return lines;
}

static char *read_text(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = NULL;
    if (file != NULL && fseek(file, 0, SEEK_END) == 0) {
        long size = ftell(file);
        text = size >= 0 ? calloc((size_t)size + 1, 1) : NULL;
        rewind(file);
        if (text != NULL && fread(text, 1, (size_t)size, file) != (size_t)size)
            text[0] = '\0';
    }
    if (file != NULL)
        (void)fclose(file); /* it was only read */
    return text;
}

/* A job that a program completed has been begun by one, under the lease that completed it. */
static void look_for(struct chaos_found *found, const pawl_job *job, char **lines, size_t count)
{
    char id[PAWL_ID_TEXT_MAX];
    char line[LINE_MAX_BYTES];
    const char *key = line;
    (void)snprintf(line, sizeof(line), "%s %lld", pawl_id_format(&job->id, id),
                   (long long)job->lease_version);
    if (bsearch(&key, lines, count, sizeof(char *), by_text) != NULL)
        return;
    found->unseen++;
    (void)printf("# job %s: completed, but no program has run for it\n", id);
}

void chaos_read_effects(struct director *director, struct chaos_found *found)
{
    char path[CHAOS_TEXT_MAX];
    (void)snprintf(path, sizeof(path), "%s/" CHAOS_EFFECTS, director->folder);
    char *text = read_text(path);
    char **lines = text != NULL ? sort_lines(text, &found->effects) : NULL;
    pawl_filter filter = {.queue = CHAOS_SHELL, .states = 1u << PAWL_SUCCEEDED};
    pawl_id after = {0};
    pawl_job page[100];
    size_t count = 100;
    bool is_read = lines != NULL;
    while (is_read && count == 100) {
        is_read = pawl_list(director->pen.store, &filter, pawl_id_is_nil(&after) ? NULL : &after,
                            page, 100, &count, NULL) == PAWL_OK;
        for (size_t i = 0; is_read && i < count; i++) {
            look_for(found, &page[i], lines, found->effects);
            after = page[i].id;
            pawl_job_clear(&page[i]);
        }
    }
    free(lines);
    free(text);
    found->unseen += !is_read;
}

/* ---------------------------------------------------------------- what must have happened */

static const char *const trouble_texts[CHAOS_TROUBLES] = {
    "workers were killed",
    "producers were killed",
    "workers stood still",
    "the network was broken",
    "processes of the server were killed",
    "the server was killed",
    "clocks jumped",
    "the disk was full",
};

static void tell_troubles(struct tap *tap, const struct director *director)
{
    char text[LINE_MAX_BYTES];
    for (int i = 0; i < CHAOS_TROUBLES; i++) {
        if (director->plan.troubles[i] == 0)
            continue;
        (void)snprintf(text, sizeof(text), "%s: %zu times", trouble_texts[i], director->done[i]);
        tell(tap, director->done[i] >= director->plan.troubles[i], text);
    }
    if (director->plan.troubles[CHAOS_JUMP] > 0)
        tell(tap, director->jumped > 0, "processes saw their clocks jump");
    if (director->plan.troubles[CHAOS_FULL] > 0)
        tell(tap, director->refused > 0, "writes were refused by the full disk");
}

static void tell_kinds(struct tap *tap, const struct director *director)
{
    static const char *const phases[CHAOS_PHASES] = {"claiming", "settling", "renewing", "reaping",
                                                     "running",  "idle",     "ending"};
    static const char *const breaks[PG_BREAKS] = {"drop",         "black hole", "lost requests",
                                                  "lost replies", "reset",      "a byte a second"};
    bool is_every_phase = true;
    bool is_every_break = true;
    (void)printf("# stopped while");
    for (int i = 0; i < CHAOS_PHASES; i++) {
        (void)printf(" %s: %zu%s", phases[i], director->phases[i],
                     i + 1 < CHAOS_PHASES ? "," : "\n# partitions:");
        is_every_phase = is_every_phase && director->phases[i] > 0;
    }
    for (int i = 0; i < PG_BREAKS; i++) {
        (void)printf(" %s: %zu%s", breaks[i], director->breaks[i], i + 1 < PG_BREAKS ? "," : "\n");
        is_every_break = is_every_break && director->breaks[i] > 0;
    }
    if (director->plan.troubles[CHAOS_PAUSE] >= 4 * CHAOS_PHASES) /* each is aimed at often */
        tell(tap, is_every_phase, "workers stood still in every phase");
    if (director->plan.troubles[CHAOS_PARTITION] >= PG_BREAKS)
        tell(tap, is_every_break, "the network broke in every way");
}

/* ---------------------------------------------------------------- what must hold */

/* What was broken on purpose must have been seen; all the rest must have gone well. */
static int report_broken(const struct director *director, const struct chaos_found *found)
{
    struct tap tap = {0};
    const struct verdicts *verdicts = &found->verdicts;
    bool is_seen = false;
    for (int rule = 1; rule < CHECK_RULES_COUNT; rule++)
        is_seen = is_seen ||
                  (verdicts->is_broken[rule] &&
                   strcmp(check_rule_number((enum check_rule)rule), director->plan.expected) == 0);
    if (verdicts->is_read && !director->is_failed && !is_seen && director->plan.rounds_left > 0) {
        (void)printf("# what was broken on purpose has not shown in this round\n");
        return CHAOS_AGAIN;
    }
    tell(&tap, verdicts->is_read && !director->is_failed && is_seen,
         "what was broken on purpose is found");
    (void)printf("1..%d\n", tap.number);
    return tap.failed;
}

int chaos_report(const struct director *director, const struct chaos_found *found)
{
    struct tap tap = {0};
    const struct verdicts *verdicts = &found->verdicts;
    char text[LINE_MAX_BYTES];
    (void)printf("# %zu processes; %zu jobs: %zu Succeeded, %zu Failed; %zu acknowledged; "
                 "%zu calls unanswered; %zu programs run\n",
                 director->started, verdicts->jobs, verdicts->succeeded, verdicts->failed,
                 verdicts->acked, verdicts->unanswered, found->effects);
    if (director->plan.expected != NULL)
        return report_broken(director, found);
    tell(&tap, !director->is_failed, "everybody else went on, and ended in order");
    tell_troubles(&tap, director);
    tell_kinds(&tap, director);
    (void)snprintf(text, sizeof(text), "%zu jobs were acknowledged", verdicts->acked);
    tell(&tap, verdicts->acked >= director->plan.jobs && verdicts->unanswered > 0, text);
    tell(&tap, verdicts->is_read && verdicts->lost == 0, "every acknowledged job is there");
    tell(&tap, found->is_drained && verdicts->live == 0, "all jobs drained");
    tell(&tap, verdicts->is_read && verdicts->twice == 0, "no job completed twice");
    tell(&tap, verdicts->is_read && verdicts->gaps == 0, "every ledger is gapless from 1");
    tell(&tap, found->effects > 0 && found->unseen == 0, "programs ran for what they completed");
    tell(&tap, verdicts->is_kept, "the checker finds every promise kept");
    tell(&tap, found->grown == 0, "memory, threads and descriptors stayed flat");
    (void)printf("1..%d\n", tap.number);
    return tap.failed;
}

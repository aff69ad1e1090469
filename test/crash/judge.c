/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * judge.c - what must hold when everything has been killed often enough and has drained.
 * Owns:  reading the store back, and reading the files of all processes.
 * Never: takes a word from a process but what had left it before it was killed.
 */
#include "crash/crash.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_MAX   500
#define LEDGER_MAX 200
#define TOLD_MAX   5 /* wrong things of one kind that are told */

/* ---------------------------------------------------------------- what the store tells */

struct jobs {
    pawl_id *ids; /* sorted: that is the order of a list */
    size_t count;
};

static void tell(const pawl_id *id, const char *what, size_t times)
{
    char text[PAWL_ID_TEXT_MAX];
    if (times <= TOLD_MAX)
        (void)printf("# job %s: %s\n", pawl_id_format(id, text), what);
}

/* OL-APPEND-ONLY, Q-NEVER-AGAIN, Q-ONE-STATE */
static void judge_ledger(struct verdicts *verdicts, const pawl_job *job, const pawl_attempt *rows,
                         size_t count)
{
    size_t completions = 0;
    bool is_gapless = (int64_t)count == job->attempts && count > 0;
    for (size_t i = 0; i < count; i++) {
        is_gapless = is_gapless && rows[i].attempt_no == (int64_t)i + 1;
        completions += rows[i].outcome == PAWL_DISPATCHED;
    }
    bool is_done = count > 0 && rows[count - 1].outcome == PAWL_DISPATCHED;
    bool is_right = completions == (job->state == PAWL_SUCCEEDED ? 1 : 0) &&
                    is_done == (job->state == PAWL_SUCCEEDED);
    if (!is_gapless)
        tell(&job->id, "its ledger has gaps", ++verdicts->gaps);
    if (!is_right)
        tell(&job->id, "its completions are not what its state says", ++verdicts->twice);
}

static bool judge_job(struct pen *pen, struct verdicts *verdicts, const pawl_job *job,
                      pawl_attempt *rows)
{
    size_t count = 0;
    bool is_read = pawl_attempts(pen->store, &job->id, 0, rows, LEDGER_MAX, &count, NULL) ==
                   PAWL_OK;
    if (is_read)
        judge_ledger(verdicts, job, rows, count);
    verdicts->succeeded += job->state == PAWL_SUCCEEDED;
    verdicts->failed += job->state == PAWL_FAILED;
    verdicts->live += job->state == PAWL_READY || job->state == PAWL_IN_FLIGHT;
    return is_read;
}

static bool judge_page(struct pen *pen, struct verdicts *verdicts, struct jobs *jobs,
                       pawl_job *page, size_t count)
{
    pawl_attempt *rows = calloc(LEDGER_MAX, sizeof(rows[0]));
    pawl_id *grown = realloc(jobs->ids, (jobs->count + count + 1) * sizeof(jobs->ids[0]));
    bool is_read = rows != NULL && grown != NULL;
    if (grown != NULL)
        jobs->ids = grown;
    for (size_t i = 0; i < count; i++) {
        is_read = is_read && judge_job(pen, verdicts, &page[i], rows);
        if (is_read)
            jobs->ids[jobs->count++] = page[i].id;
        pawl_job_clear(&page[i]);
    }
    free(rows);
    return is_read;
}

/* Everything, by pages: through the trace, so that it ends the history. */
static bool judge_store(struct pen *pen, struct verdicts *verdicts, struct jobs *jobs)
{
    pawl_job *page = calloc(PAGE_MAX, sizeof(page[0]));
    size_t count = PAGE_MAX;
    bool is_read = page != NULL;
    while (is_read && count == PAGE_MAX) {
        const pawl_id *after = jobs->count > 0 ? &jobs->ids[jobs->count - 1] : NULL;
        is_read = pawl_list(pen->store, NULL, after, page, PAGE_MAX, &count, NULL) == PAWL_OK &&
                  judge_page(pen, verdicts, jobs, page, count);
    }
    free(page);
    verdicts->jobs = jobs->count;
    return is_read;
}

/* ---------------------------------------------------------------- the files of the processes */

struct file {
    uint8_t *bytes;
    size_t len;
};

static bool read_file(const char *folder, const char *name, struct file *ret_file)
{
    char path[2 * PEN_PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *stream = fopen(path, "rb");
    size_t room = 0;
    size_t got = 1;
    *ret_file = (struct file){0};
    while (stream != NULL && got > 0) {
        if (ret_file->len == room) {
            room = room == 0 ? 4096 : 2 * room;
            uint8_t *grown = realloc(ret_file->bytes, room);
            if (grown == NULL)
                break;
            ret_file->bytes = grown;
        }
        got = fread(ret_file->bytes + ret_file->len, 1, room - ret_file->len, stream);
        ret_file->len += got;
    }
    if (stream != NULL)
        (void)fclose(stream); /* it was only read */
    return stream != NULL && got == 0;
}

static int compare_ids(const void *a, const void *b)
{
    return pawl_id_compare(a, b);
}

/* Q-DURABLE, Q-AT-LEAST-ONCE: all that a producer had in hands. */
static void judge_acks(struct verdicts *verdicts, const struct jobs *jobs, const struct file *acks)
{
    for (size_t at = 0; at + sizeof(pawl_id) <= acks->len; at += sizeof(pawl_id)) {
        pawl_id id;
        memcpy(&id, acks->bytes + at, sizeof(id));
        verdicts->acked++;
        if (bsearch(&id, jobs->ids, jobs->count, sizeof(id), compare_ids) == NULL)
            tell(&id, "acknowledged, and not there", ++verdicts->lost);
    }
}

/* What was under way, as a history of its own; empty: nothing was. */
static struct check_part pending_of(const struct file *file)
{
    uint64_t head = 0;
    if (file->len < sizeof(head))
        return (struct check_part){0};
    memcpy(&head, file->bytes, sizeof(head));
    if (head == 0 || head > file->len - sizeof(head))
        return (struct check_part){0};
    return (struct check_part){file->bytes + sizeof(head), (size_t)head};
}

struct histories {
    struct file *files;
    struct check_part *parts; /* room for as many as there are files */
    size_t files_count;
    size_t files_max;
    size_t parts_count;
};

static bool make_room(struct histories *all)
{
    if (all->files_count < all->files_max)
        return true;
    size_t room = all->files_max == 0 ? 256 : 2 * all->files_max;
    struct file *files = realloc(all->files, room * sizeof(files[0]));
    if (files == NULL)
        return false;
    all->files = files;
    struct check_part *parts = realloc(all->parts, room * sizeof(parts[0]));
    if (parts == NULL)
        return false;
    all->parts = parts;
    all->files_max = room;
    return true;
}

static bool begins_with(const char *name, const char *beginning)
{
    return strncmp(name, beginning, strlen(beginning)) == 0;
}

static bool add_file(struct histories *all, struct verdicts *verdicts, const struct jobs *jobs,
                     const char *folder, const char *name)
{
    bool is_pending = begins_with(name, "pending-");
    bool is_history = begins_with(name, "history-");
    if (!is_pending && !is_history && !begins_with(name, "acks-"))
        return true;
    if (!make_room(all))
        return false;
    struct file *file = &all->files[all->files_count++];
    if (!read_file(folder, name, file))
        return false;
    struct check_part part = is_pending ? pending_of(file)
                                        : (struct check_part){file->bytes, file->len};
    if (!is_pending && !is_history)
        judge_acks(verdicts, jobs, file);
    else if (part.len > 0) /* one that was killed at once has none */
        all->parts[all->parts_count++] = part;
    verdicts->unanswered += is_pending && part.len > 0;
    return true;
}

static bool read_all(struct histories *all, struct verdicts *verdicts, const struct jobs *jobs,
                     const char *folder)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    bool is_read = dir != NULL;
    while (is_read && (entry = readdir(dir)) != NULL)
        is_read = add_file(all, verdicts, jobs, folder, entry->d_name);
    if (dir != NULL)
        (void)closedir(dir); /* it was only read */
    return is_read;
}

/* The checker of the simulator, on all histories together. */
static bool check(const struct histories *all, const struct check_options *options,
                  struct verdicts *verdicts)
{
    struct check_report *report = calloc(1, sizeof(*report));
    pawl_err err = {.text = "out of memory"};
    bool is_checked = report != NULL && check_histories(all->parts, all->parts_count, options,
                                                        report, &err) == PAWL_OK;
    if (!is_checked) {
        (void)printf("# the checker: %s\n", err.text);
        free(report);
        return false;
    }
    (void)printf("# the checker: %zu histories, %zu records, %zu jobs, %zu leases\n",
                 all->parts_count, report->records, report->jobs, report->leases);
    if (options->reaper_ms > 0)
        (void)printf("# the slowest recovery: %" PRId64 " ms after the lease had expired\n",
                     report->slowest_us / 1000);
    for (size_t i = 0; i < report->kept && i < TOLD_MAX; i++)
        (void)printf("# %s %s: %s\n", check_rule_number(report->violations[i].rule),
                     check_rule_name(report->violations[i].rule), report->violations[i].text);
    bool is_kept = report->violations_count == 0;
    memcpy(verdicts->is_broken, report->is_broken, sizeof(report->is_broken));
    if (!is_kept)
        check_report_print(report, stderr); /* with jobs and times */
    free(report);
    return is_kept;
}

struct verdicts judge(struct pen *pen, const char *folder, const struct check_options *options)
{
    struct verdicts verdicts = {0};
    struct jobs jobs = {0};
    struct histories all = {0};
    verdicts.is_read = judge_store(pen, &verdicts, &jobs) &&
                       pawli_trace_flush(pen->writer, NULL) == PAWL_OK &&
                       read_all(&all, &verdicts, &jobs, folder);
    verdicts.is_kept = verdicts.is_read && check(&all, options, &verdicts);
    for (size_t i = 0; i < all.files_count; i++)
        free(all.files[i].bytes);
    free(all.files);
    free(all.parts);
    free(jobs.ids);
    return verdicts;
}

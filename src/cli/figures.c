/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * figures.c - the figures of a deployment at a moment.
 * Owns:  how rates come of two looks.
 * Never: shows them; keeps more than the named maxima, however many there are.
 */
#include "cli/figures.h"

#include "base/clock.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

#define PAGE 100

/* ---- rates */

static double rate(int64_t before, int64_t now, int64_t us)
{
    /* Old histories are pruned meanwhile: that is no movement backwards. */
    return now > before ? (double)(now - before) * 1e6 / (double)us : 0;
}

static int64_t all_of(const pawl_stats *stats)
{
    return stats->ready + stats->in_flight + stats->succeeded + stats->failed;
}

/* `before` NULL: the queue was not there, or was not kept. */
static struct pawli_rates rates_of(const pawl_stats *before, const pawl_stats *now, int64_t us)
{
    static const pawl_stats none = {.ready = 0};
    if (us <= 0)
        return (struct pawli_rates){-1, -1, -1};
    if (before == NULL)
        before = &none;
    return (struct pawli_rates){
        .in = rate(all_of(before), all_of(now), us),
        .done = rate(before->succeeded, now->succeeded, us),
        .failed = rate(before->failed, now->failed, us),
    };
}

static int compare(const void *name, const void *queue)
{
    return strcmp(name, ((const struct pawli_queue_figures *)queue)->stats.queue);
}

static const pawl_stats *find(const struct pawli_figures *figures, const char *queue)
{
    const struct pawli_queue_figures *found = figures->queues_count > 0
                                                  ? bsearch(queue, figures->queues,
                                                            figures->queues_count,
                                                            sizeof(*figures->queues), compare)
                                                  : NULL;
    return found != NULL ? &found->stats : NULL;
}

static void fill_rates(struct pawli_figures *figures, const struct pawli_figures *before)
{
    int64_t us = before->read.us != 0 ? figures->read.us - before->read.us : 0;
    for (size_t i = 0; i < figures->queues_count; i++) {
        struct pawli_queue_figures *queue = &figures->queues[i];
        queue->rates = rates_of(find(before, queue->stats.queue), &queue->stats, us);
    }
    figures->rates = rates_of(&before->sums, &figures->sums, us);
}

/* ---- reading */

static void add_queue(struct pawli_figures *figures, const pawl_stats *row)
{
    pawl_stats *sums = &figures->sums;
    sums->ready += row->ready;
    sums->delayed += row->delayed;
    sums->in_flight += row->in_flight;
    sums->expired += row->expired;
    sums->succeeded += row->succeeded;
    sums->failed += row->failed;
    if (row->oldest_due_ms > sums->oldest_due_ms)
        sums->oldest_due_ms = row->oldest_due_ms;
    if (figures->queues_count < PAWLI_FIGURES_QUEUES_MAX)
        figures->queues[figures->queues_count++].stats = *row;
    figures->queues_all++;
}

static pawl_code read_queues(pawl_store *store, struct pawli_figures *figures, pawl_err *err)
{
    pawl_stats *rows = calloc(PAGE, sizeof(*rows));
    char after[PAWL_NAME_MAX + 1] = "";
    size_t count = PAGE;
    pawl_code code = rows != NULL ? PAWL_OK : pawli_fail_plain(err, PAWL_NO_MEMORY);
    while (code == PAWL_OK && count == PAGE) {
        code = pawl_queue_stats(store, after[0] != '\0' ? after : NULL, rows, PAGE, &count, err);
        for (size_t i = 0; code == PAWL_OK && i < count; i++)
            add_queue(figures, &rows[i]);
        if (code == PAWL_OK && count > 0)
            memcpy(after, rows[count - 1].queue, sizeof(after));
    }
    free(rows);
    return code;
}

static pawl_code read_workers(pawl_store *store, struct pawli_figures *figures, pawl_err *err)
{
    pawl_worker *rows = calloc(PAGE, sizeof(*rows));
    char after[PAWL_NAME_MAX + 1] = "";
    size_t count = PAGE;
    pawl_code code = rows != NULL ? PAWL_OK : pawli_fail_plain(err, PAWL_NO_MEMORY);
    while (code == PAWL_OK && count == PAGE) {
        code = pawl_workers(store, after[0] != '\0' ? after : NULL, rows, PAGE, &count, err);
        for (size_t i = 0; code == PAWL_OK && i < count; i++) {
            figures->workers_all++;
            figures->reapers_all += rows[i].kind == PAWL_KIND_REAPER;
            if (figures->workers_count < PAWLI_FIGURES_WORKERS_MAX)
                figures->workers[figures->workers_count++] = rows[i];
        }
        if (code == PAWL_OK && count > 0)
            memcpy(after, rows[count - 1].name, sizeof(after));
    }
    free(rows);
    return code;
}

pawl_code pawli_figures_read(pawl_store *store, const pawl_clock *clock,
                             const struct pawli_figures *before, struct pawli_figures *ret_figures,
                             pawl_err *err)
{
    struct pawli_figures figures = {
        .queues = calloc(PAWLI_FIGURES_QUEUES_MAX, sizeof(*figures.queues)),
        .workers = calloc(PAWLI_FIGURES_WORKERS_MAX, sizeof(*figures.workers)),
    };
    pawl_code code = figures.queues != NULL && figures.workers != NULL
                         ? pawl_now(store, &figures.at, err)
                         : pawli_fail_plain(err, PAWL_NO_MEMORY);
    if (code == PAWL_OK)
        code = read_queues(store, &figures, err);
    if (code == PAWL_OK)
        code = read_workers(store, &figures, err);
    figures.read = clock->mono(clock->user);
    if (code != PAWL_OK) {
        pawli_figures_clear(&figures);
        return code;
    }
    fill_rates(&figures, before);
    *ret_figures = figures;
    return PAWL_OK;
}

void pawli_figures_clear(struct pawli_figures *figures)
{
    free(figures->queues);
    free(figures->workers);
    *figures = (struct pawli_figures){.queues = NULL};
}

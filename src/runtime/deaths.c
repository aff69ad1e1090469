/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * deaths.c - which workers have ended without a word.
 * Owns:  what a death is, and the report of it.
 * Never: recovers a lease (the store does, when it has expired); believes its own clock: rows are
 *        held against the store's.
 */
#include "runtime/deaths.h"

#include "base/clock.h"
#include "base/text.h"
#include "store/store.h"

#include <string.h>

#define PAGE_MAX 64

static struct pawli_loser *find(struct pawli_deaths *deaths, const char *worker)
{
    size_t known = deaths->count < PAWLI_LOSERS_MAX ? deaths->count : PAWLI_LOSERS_MAX;
    for (size_t i = 0; i < known; i++)
        if (strcmp(deaths->losers[i].name, worker) == 0)
            return &deaths->losers[i];
    return NULL;
}

void pawli_deaths_lost(struct pawli_deaths *deaths, const char *worker)
{
    if (worker[0] == '\0')
        return; /* it had no holder: a deadline was missed */
    struct pawli_loser *loser = find(deaths, worker);
    if (loser == NULL) {
        loser = &deaths->losers[deaths->count++ % PAWLI_LOSERS_MAX];
        (void)pawli_text_copy(loser->name, sizeof(loser->name), worker); /* the same size */
        loser->leases = 0;
    }
    loser->leases++;
}

static void report(struct pawli_deaths *deaths, const pawl_worker *row, int64_t silent_ms,
                   struct pawli_watch *watch)
{
    struct pawli_loser *loser = find(deaths, row->name);
    pawl_event event = {.kind = PAWL_EVENT_WORKER_DIED,
                        .level = PAWL_LEVEL_ERROR,
                        .reason = row->kind == PAWL_KIND_REAPER ? "reaper" : "worker",
                        .count = row->leases + (loser != NULL ? loser->leases : 0),
                        .took_us = silent_ms * 1000};
    (void)pawli_text_copy(event.subject, sizeof(event.subject), row->name); /* the same size */
    (void)pawli_text_copy(event.text, sizeof(event.text), row->host);       /* fits */
    pawli_watch_tell(watch, &event);
    if (loser != NULL)
        loser->leases = 0;
}

static bool is_dead(const pawl_worker *row, const struct pawli_deaths_args *args, int64_t silent_ms)
{
    return silent_ms > args->stale_ms && strcmp(row->name, args->own_name) != 0 &&
           strcmp(row->name, args->own_worker) != 0;
}

static bool is_any_dead(const pawl_worker *rows, size_t rows_count,
                        const struct pawli_deaths_args *args, pawl_wall now)
{
    for (size_t i = 0; i < rows_count; i++)
        if (is_dead(&rows[i], args, pawli_wall_diff_ms(rows[i].last_seen, now)))
            return true;
    return false;
}

pawl_code pawli_deaths_report(struct pawli_deaths *deaths, pawl_store *store,
                              const struct pawli_deaths_args *args, pawl_err *err)
{
    pawl_worker rows[PAGE_MAX];
    char after[PAWL_NAME_MAX + 1] = "";
    size_t count = PAGE_MAX;
    while (count == PAGE_MAX) {
        pawl_wall now;
        const char *from = after[0] != '\0' ? after : NULL;
        pawl_code code = pawl_now(store, &now, err);
        if (code == PAWL_OK)
            code = pawli_presences(store, from, rows, PAGE_MAX, &count, err);
        /* What they held is asked only then: to count leases may take a look at every job. */
        if (code == PAWL_OK && is_any_dead(rows, count, args, now))
            code = pawl_workers(store, from, rows, PAGE_MAX, &count, err);
        if (code != PAWL_OK)
            return code;
        for (size_t i = 0; i < count; i++) {
            int64_t silent_ms = pawli_wall_diff_ms(rows[i].last_seen, now);
            if (!is_dead(&rows[i], args, silent_ms))
                continue;
            report(deaths, &rows[i], silent_ms, args->watch);
            /* Where this fails it is reported once more: better than not at all. */
            (void)!pawl_worker_ended(store, rows[i].name, NULL);
        }
        if (count > 0)
            (void)pawli_text_copy(after, sizeof(after), rows[count - 1].name); /* the same size */
    }
    return PAWL_OK;
}

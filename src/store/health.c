/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * health.c - whether a deployment is fit, as far as the verbs of a store can tell.
 * Owns:  what counts as overdue.
 * Never: changes anything; believes its own clock where the store has one.
 */
#include "store/health.h"

#include "base/clock.h"
#include "base/error.h"
#include "core/policy.h"
#include "store/store.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE             256
#define INTERVALS_MAX    3     /* RULE-020-020 */
#define INTERVAL_LEAST   1000  /* below it, three of them are less than a call may take */
#define RECENT_MS        60000 /* who has not shown himself for so long is not counted */
#define CLOCK_WARNING_US 1000000
#define CLOCK_ERROR_US   10000000
#define REAPER_SUFFIX    "/reaper" /* of a reaper that is part of a worker */

void pawli_health_tell(const struct pawli_health *health, const struct pawli_health_about *about,
                       const char *format, ...)
{
    struct pawli_finding finding = {
        .level = about->level,
        .name = about->name,
        .advice = about->level != PAWLI_HEALTH_OK ? about->advice : NULL,
    };
    va_list args;
    va_start(args, format);
    (void)vsnprintf(finding.text, sizeof(finding.text), format, args); /* cut where it is long */
    va_end(args);
    health->tell(health->user, &finding);
}

/* ---- clocks */

static pawl_code check_clock(pawl_store *store, const struct pawli_health_args *args,
                             const struct pawli_health *health, pawl_err *err)
{
    struct pawli_health_about about = {
        .name = "clock",
        .advice = "let both machines follow the same time service (NTP): the store's clock decides "
                  "about leases, but ids, logs and deadlines shown to programs are of this one",
    };
    pawl_wall store_now;
    pawl_wall before = args->clock->wall(args->clock->user);
    pawl_code code = pawl_now(store, &store_now, err);
    pawl_wall after = args->clock->wall(args->clock->user);
    if (code != PAWL_OK)
        return code;
    /* The store read its clock at some moment of the call: what that can explain is no finding. */
    int64_t apart_us = store_now.us < before.us  ? store_now.us - before.us
                       : store_now.us > after.us ? store_now.us - after.us
                                                 : 0;
    int64_t size_us = apart_us < 0 ? -apart_us : apart_us;
    about.level = size_us > CLOCK_ERROR_US     ? PAWLI_HEALTH_ERROR
                  : size_us > CLOCK_WARNING_US ? PAWLI_HEALTH_WARNING
                                               : PAWLI_HEALTH_OK;
    pawli_health_tell(health, &about, "the store's clock is %" PRId64 ".%03d s %s this machine's",
                      size_us / 1000000, (int)(size_us / 1000 % 1000),
                      apart_us < 0 ? "behind" : "ahead of");
    return PAWL_OK;
}

/* ---- leases of queues */

pawl_code pawli_health_smallest_lease(pawl_store *store, int64_t *ret_ms, pawl_err *err)
{
    pawl_queue_settings settings;
    char after[PAWL_NAME_MAX + 1] = "";
    size_t count = PAGE;
    int64_t smallest_ms = INT64_MAX;
    pawl_code code = PAWL_OK;
    pawl_stats *rows = calloc(PAGE, sizeof(*rows));
    if (rows == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    while (code == PAWL_OK && count > 0) {
        code = pawl_queue_stats(store, after[0] != '\0' ? after : NULL, rows, PAGE, &count, err);
        for (size_t i = 0; code == PAWL_OK && i < count; i++) {
            code = pawl_queue_get(store, rows[i].queue, &settings, err);
            if (code == PAWL_OK && settings.lease_ms < smallest_ms)
                smallest_ms = settings.lease_ms;
        }
        if (code == PAWL_OK && count > 0)
            memcpy(after, rows[count - 1].queue, sizeof(after));
    }
    free(rows);
    pawl_queue_settings_init(&settings);
    if (code == PAWL_OK)
        *ret_ms = smallest_ms != INT64_MAX ? smallest_ms : settings.lease_ms;
    return code;
}

/* ---- who is there */

struct fleet {
    pawl_wall reaper_seen; /* the last that any reaper was seen, which is while its runs end well */
    char reaper[PAWL_NAME_MAX + 1];
};

static bool is_part_of_worker(const char *name)
{
    size_t length = strlen(name);
    size_t suffix = strlen(REAPER_SUFFIX);
    return length > suffix && strcmp(name + length - suffix, REAPER_SUFFIX) == 0;
}

static void count_worker(const pawl_worker *row, pawl_wall now, struct fleet *fleet,
                         struct pawli_health *health)
{
    bool is_recent = pawli_wall_diff_ms(row->last_seen, now) <= RECENT_MS;
    if (row->kind == PAWL_KIND_WORKER) {
        health->workers += is_recent;
        return;
    }
    health->reapers += is_recent && !is_part_of_worker(row->name);
    if (row->last_seen.us > fleet->reaper_seen.us) {
        fleet->reaper_seen = row->last_seen;
        memcpy(fleet->reaper, row->name, sizeof(fleet->reaper));
    }
}

static pawl_code look_at_fleet(pawl_store *store, pawl_wall now, struct fleet *fleet,
                               struct pawli_health *health, pawl_err *err)
{
    char after[PAWL_NAME_MAX + 1] = "";
    size_t count = PAGE;
    pawl_code code = PAWL_OK;
    pawl_worker *rows = calloc(PAGE, sizeof(*rows));
    if (rows == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    while (code == PAWL_OK && count > 0) {
        code = pawl_workers(store, after[0] != '\0' ? after : NULL, rows, PAGE, &count, err);
        for (size_t i = 0; code == PAWL_OK && i < count; i++)
            count_worker(&rows[i], now, fleet, health);
        if (code == PAWL_OK && count > 0)
            memcpy(after, rows[count - 1].name, sizeof(after));
    }
    free(rows);
    return code;
}

/* RULE-020-020. A reaper shows itself at the end of each run, and between two runs while the last
 * one has ended well. */
static void tell_reaper(const struct fleet *fleet, pawl_wall now, int64_t interval_ms,
                        const struct pawli_health *health)
{
    char interval[PAWL_DURATION_TEXT_MAX];
    struct pawli_health_about about = {
        .name = "reaper",
        .level = PAWLI_HEALTH_ERROR,
        .advice = "start a worker without --no-reaper, or pawl reap --watch: without a reaper the "
                  "jobs of workers that died are not recovered; if one runs, see its log for "
                  "CALL-FAILED",
    };
    (void)pawl_duration_format(interval_ms, interval); /* gives `interval` */
    int64_t silent_ms = pawli_wall_diff_ms(fleet->reaper_seen, now);
    int64_t least_ms = interval_ms > INTERVAL_LEAST ? interval_ms : INTERVAL_LEAST;
    if (fleet->reaper_seen.us == 0) {
        pawli_health_tell(health, &about, "no reaper runs");
        return;
    }
    if (silent_ms <= INTERVALS_MAX * least_ms)
        about.level = PAWLI_HEALTH_OK;
    pawli_health_tell(health, &about,
                      about.level == PAWLI_HEALTH_OK
                          ? "a reaper was seen %" PRId64 ".%03d s ago (%.80s); the interval is %s"
                          : "no reaper has finished a run for %" PRId64
                            ".%03d s (the last was %.80s): more than three intervals of %s",
                      silent_ms > 0 ? silent_ms / 1000 : 0,
                      silent_ms > 0 ? (int)(silent_ms % 1000) : 0, fleet->reaper, interval);
}

/* ---- leases that nobody recovers */

struct stale {
    int64_t count;
    int64_t held; /* all leases */
    int64_t longest_ms;
    char id[PAWL_ID_TEXT_MAX];
};

static pawl_code look_at_leases(pawl_store *store, int64_t late_ms, struct stale *stale,
                                pawl_err *err)
{
    pawl_id after;
    pawl_wall now;
    size_t count = PAGE;
    bool is_first = true;
    pawl_code code = PAWL_OK;
    pawl_lease_info *rows = calloc(PAGE, sizeof(*rows));
    if (rows == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    while (code == PAWL_OK && count > 0) {
        code = pawl_now(store, &now, err);
        if (code == PAWL_OK)
            code = pawl_leases(store, NULL, is_first ? NULL : &after, rows, PAGE, &count, err);
        for (size_t i = 0; code == PAWL_OK && i < count; i++) {
            int64_t overdue_ms = pawli_wall_diff_ms(rows[i].expires_at, now);
            stale->held++;
            stale->count += overdue_ms > late_ms;
            if (overdue_ms > late_ms && overdue_ms > stale->longest_ms) {
                stale->longest_ms = overdue_ms;
                (void)pawl_id_format(&rows[i].job, stale->id); /* gives the text */
            }
            after = rows[i].job;
            is_first = false;
        }
    }
    free(rows);
    return code;
}

static pawl_code check_leases(pawl_store *store, int64_t interval_ms,
                              const struct pawli_health *health, pawl_err *err)
{
    struct pawli_health_about about = {
        .name = "leases",
        .level = PAWLI_HEALTH_ERROR,
        .advice = "see pawl leases; pawl reap recovers them now; if they come back, no reaper "
                  "keeps up: see the finding on reapers",
    };
    struct stale stale = {0};
    int64_t least_ms = interval_ms > INTERVAL_LEAST ? interval_ms : INTERVAL_LEAST;
    pawl_code code = look_at_leases(store, INTERVALS_MAX * least_ms, &stale, err);
    if (code != PAWL_OK)
        return code;
    if (stale.count == 0) {
        about.level = PAWLI_HEALTH_OK;
        pawli_health_tell(health, &about, "%" PRId64 " held, none of them long past its end",
                          stale.held);
    } else {
        pawli_health_tell(health, &about,
                          "%" PRId64 " of %" PRId64
                          " leases are long past their end and nobody has "
                          "recovered them; job %s for %" PRId64 " s",
                          stale.count, stale.held, stale.id, stale.longest_ms / 1000);
    }
    return PAWL_OK;
}

/* ---- all of it */

/* How often reapers run where their interval derives from the queues. */
static pawl_code find_interval(pawl_store *store, const struct pawli_health_args *args,
                               int64_t *ret_ms, pawl_err *err)
{
    pawl_reaper_settings reaper;
    int64_t lease_ms = 0;
    if (args->reaper_interval_ms != PAWL_DEFAULT) {
        *ret_ms = args->reaper_interval_ms; /* no need to look at every queue */
        return PAWL_OK;
    }
    pawl_code code = pawli_health_smallest_lease(store, &lease_ms, err);
    pawl_reaper_settings_init(&reaper);
    if (code == PAWL_OK)
        *ret_ms = pawli_reaper_interval_ms(&reaper, lease_ms);
    return code;
}

pawl_code pawli_health_reaper(pawl_store *store, const struct pawli_health_args *args,
                              struct pawli_health *health, pawl_err *err)
{
    pawl_wall now;
    struct fleet fleet = {{0}, ""};
    int64_t interval_ms = 0;
    pawl_code code = pawl_now(store, &now, err);
    if (code == PAWL_OK)
        code = look_at_fleet(store, now, &fleet, health, err);
    if (code == PAWL_OK)
        code = find_interval(store, args, &interval_ms, err);
    if (code == PAWL_OK)
        tell_reaper(&fleet, now, interval_ms, health);
    return code;
}

pawl_code pawli_health_check(pawl_store *store, const struct pawli_health_args *args,
                             struct pawli_health *health, pawl_err *err)
{
    pawl_wall now;
    struct fleet fleet = {{0}, ""};
    int64_t interval_ms = 0;
    health->workers = 0;
    health->reapers = 0;
    pawl_code code = pawl_now(store, &now, err);
    if (code == PAWL_OK)
        code = look_at_fleet(store, now, &fleet, health, err);
    if (code == PAWL_OK && store->ops->health != NULL)
        code = store->ops->health(store, health, err);
    if (code == PAWL_OK)
        code = check_clock(store, args, health, err);
    if (code == PAWL_OK)
        code = find_interval(store, args, &interval_ms, err);
    if (code != PAWL_OK)
        return code;
    tell_reaper(&fleet, now, interval_ms, health);
    return check_leases(store, interval_ms, health, err);
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * reaper_alone.c - a reaper that is no part of a worker: pawl_reaper_start() and its kin.
 * Owns:  its options, its two threads.
 * Never: reaps (reaper.c does).
 */
#include "runtime/reaper.h"

#include "base/error.h"
#include "core/policy.h"
#include "runtime/crew.h"
#include "runtime/event_table.h"
#include "runtime/metrics.h"
#include "runtime/name.h"

#include <stdio.h>
#include <stdlib.h>

#define LEASE_USUAL_MS 30000
#define PRESENCE_MS    5000
#define THREADS        2
#define STOP_WAIT_MS   30000 /* a call that hangs longer than that is left behind */

struct pawl_reaper {
    pawl_opener opener;
    char name[PAWL_NAME_MAX + 1];
    pawl_reaper_settings settings; /* as it was started */
    int64_t smallest_lease_ms;
    struct pawli_watch *watch;
    struct pawli_reaping *reaping;
    struct pawli_crew *crew;
};

void pawl_reaper_options_init(pawl_reaper_options *options)
{
    if (options == NULL)
        return;
    *options = (pawl_reaper_options){
        .smallest_lease_ms = LEASE_USUAL_MS,
        .presence_ms = PRESENCE_MS,
        .watch = {.level = PAWL_LEVEL_INFO},
        .clock = pawl_clock_system(),
        .random = pawl_random_system(),
    };
    pawl_reaper_settings_init(&options->settings);
}

static pawl_code check(const pawl_reaper_options *options, pawl_reaper **ret_reaper, pawl_err *err)
{
    if (options == NULL || ret_reaper == NULL)
        return pawli_fail(err, PAWL_INVALID, "%s is missing (NULL)",
                          options == NULL ? "options" : "ret_reaper");
    if (options->opener.open == NULL || options->clock == NULL || options->random == NULL)
        return pawli_fail(err, PAWL_INVALID, "%s is missing (NULL)",
                          options->opener.open == NULL ? "opener.open"
                          : options->clock == NULL     ? "clock"
                                                       : "random");
    pawl_code code = options->name != NULL ? pawli_check_name("name", options->name, err) : PAWL_OK;
    if (code == PAWL_OK)
        code = pawl_reaper_settings_check(&options->settings, options->smallest_lease_ms, err);
    if (code == PAWL_OK)
        code = pawli_check_duration("presence_ms", options->presence_ms, 1, err);
    return code;
}

static void free_reaper(void *user)
{
    pawl_reaper *reaper = user;
    pawli_reaping_free(reaper->reaping);
    pawli_watch_free(reaper->watch);
    free(reaper);
}

static void run(void *user)
{
    pawl_reaper *reaper = user;
    pawli_watch_tell(reaper->watch,
                     &(pawl_event){.kind = PAWL_EVENT_REAPER_UP, .level = PAWL_LEVEL_INFO});
    pawli_reaping_run(reaper->reaping);
    pawli_watch_tell(reaper->watch, &(pawl_event){.kind = PAWL_EVENT_REAPER_STOPPED,
                                                  .level = PAWL_LEVEL_INFO,
                                                  .count = pawli_reaping_runs(reaper->reaping)});
    pawli_watch_leave(reaper->watch); /* not before the last event was told */
}

pawl_code pawl_reaper_start(const pawl_reaper_options *options, pawl_reaper **ret_reaper,
                            pawl_err *err)
{
    pawl_code code = check(options, ret_reaper, err);
    if (code != PAWL_OK)
        return code;
    pawl_reaper *reaper = calloc(1, sizeof(*reaper));
    if (reaper == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    reaper->opener = options->opener;
    reaper->settings = options->settings;
    reaper->smallest_lease_ms = options->smallest_lease_ms;
    pawli_fresh_name(reaper->name, options->name, options->random);
    reaper->watch = pawli_watch_new(&options->watch, options->clock, reaper->name);
    if (reaper->watch != NULL) {
        pawli_watch_count_in(reaper->watch, options->metrics);
        reaper->reaping = pawli_reaping_new(&(struct pawli_reaper_config){
            .opener = &reaper->opener,
            .name = reaper->name,
            .interval_ms = pawli_reaper_interval_ms(&options->settings, options->smallest_lease_ms),
            .batch_max = options->settings.batch_max,
            .presence_ms = options->presence_ms,
            .watch = reaper->watch,
            .clock = options->clock,
            .random = options->random,
        });
    }
    if (reaper->reaping != NULL)
        reaper->crew = pawli_crew_new(THREADS, free_reaper, reaper);
    if (reaper->crew == NULL) {
        free_reaper(reaper);
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    }
    if (pawli_crew_start(reaper->crew, "pawl-watch", pawli_watch_run, reaper->watch) != PAWL_OK ||
        pawli_crew_start(reaper->crew, "pawl-reaper", run, reaper) != PAWL_OK) {
        pawli_watch_leave(reaper->watch);
        (void)pawl_reaper_stop(reaper);
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    }
    pawli_metrics_join(options->metrics, reaper->name, PAWL_KIND_REAPER);
    *ret_reaper = reaper;
    return PAWL_OK;
}

const char *pawl_reaper_name(const pawl_reaper *reaper)
{
    return reaper != NULL ? reaper->name : "";
}

int64_t pawl_reaper_runs(pawl_reaper *reaper)
{
    return reaper != NULL ? pawli_reaping_runs(reaper->reaping) : 0;
}

pawl_code pawl_reaper_tune(pawl_reaper *reaper, int64_t interval_ms, pawl_level level,
                           pawl_err *err)
{
    if (reaper == NULL)
        return pawli_fail(err, PAWL_INVALID, "reaper is missing (NULL)");
    pawl_reaper_settings settings = reaper->settings;
    settings.interval_ms = interval_ms;
    pawl_code code = pawl_reaper_settings_check(&settings, reaper->smallest_lease_ms, err);
    if (code == PAWL_OK)
        code = pawli_check_level(level, err);
    if (code != PAWL_OK)
        return code;
    interval_ms = pawli_reaper_interval_ms(&settings, reaper->smallest_lease_ms);
    pawli_reaping_set_interval(reaper->reaping, interval_ms);
    pawl_event event = {.kind = PAWL_EVENT_SETTINGS, .level = PAWL_LEVEL_INFO};
    (void)snprintf(event.text, sizeof(event.text), "interval_ms %lld, level %s", /* it fits */
                   (long long)interval_ms, pawli_level_name(level));
    pawli_watch_tell(reaper->watch, &event); /* under the level that held until now */
    pawli_watch_set_level(reaper->watch, level);
    return PAWL_OK;
}

void pawli_reaper_tell(pawl_reaper *reaper, const pawl_event *event)
{
    pawli_watch_tell(reaper->watch, event);
}

size_t pawl_reaper_stop(pawl_reaper *reaper)
{
    if (reaper == NULL)
        return 0;
    pawli_metrics_leave(pawli_watch_metrics(reaper->watch), reaper->name);
    pawli_reaping_end(reaper->reaping);
    struct pawli_crew *crew = reaper->crew;
    (void)pawli_crew_wait(crew, STOP_WAIT_MS);
    return pawli_crew_leave(crew); /* what hangs is left behind; nobody could do more */
}

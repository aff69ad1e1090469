/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * worker.c - a worker that runs: a pump, a pool, a reaper, a watcher, and the thread that joins
 *            them.
 * Owns:  the public functions of workers; the order in which the parts start and end.
 * Never: decides what happens to a job (the keeper does); runs a handler (the pool does).
 * Locks: runner.mutex, for how it stopped and its settings; never held over a call.
 */
#include "runtime/worker.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "core/policy.h"
#include "runtime/crew.h"
#include "runtime/event_table.h"
#include "runtime/metrics.h"
#include "runtime/name.h"
#include "runtime/hands.h"
#include "runtime/pool.h"
#include "runtime/pump.h"
#include "runtime/reaper.h"
#include "runtime/worker_options.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_OWN   (PAWLI_PUMP_THREADS + 3) /* conductor, reaper, watcher */
#define END_MARGIN_MS 3000                     /* for the presence row, and threads to end */
#define REAPER_SUFFIX "/reaper"

struct pawl_runner {
    pawl_opener opener;
    char name[PAWL_NAME_MAX + 1];
    char reaper_name[PAWL_NAME_MAX + 1];
    const pawl_clock *clock;
    pawl_reaper_settings reaper; /* as it was started */
    struct pawli_watch *watch;
    struct pawli_pump *pump;
    struct pawli_hands hands;
    struct pawli_reaping *reaping;
    struct pawli_crew *crew;

    pthread_mutex_t mutex;
    pawl_worker_settings settings; /* mutex */
    bool is_interval_derived;      /* of the reaper: mutex */
    int64_t smallest_lease_ms;     /* mutex */
    bool is_stopped;               /* mutex */
    int64_t jobs_left;             /* mutex */
};

/* ---------------------------------------------------------------- the thread that joins them */

static void reap(void *user)
{
    pawl_runner *runner = user;
    pawli_reaping_run(runner->reaping);
    pawli_watch_leave(runner->watch);
}

static void on_stopped(pawl_runner *runner, size_t left)
{
    pthread_mutex_lock(&runner->mutex);
    runner->is_stopped = true;
    runner->jobs_left = (int64_t)left;
    pthread_mutex_unlock(&runner->mutex);
    pawli_watch_tell(runner->watch,
                     &(pawl_event){.kind = PAWL_EVENT_WORKER_STOPPED,
                                   .level = left > 0 ? PAWL_LEVEL_WARN : PAWL_LEVEL_INFO,
                                   .count = (int64_t)left});
    runner->hands.ops->end(runner->hands.user);
    pawli_pump_end(runner->pump);
    pawli_reaping_end(runner->reaping);
    pawli_watch_leave(runner->watch);
}

static void conduct(void *user)
{
    pawl_runner *runner = user;
    const struct pawli_hands_ops *ops = runner->hands.ops;
    void *hands = runner->hands.user;
    struct pawli_signal signal = {.left = 0};
    while (signal.kind != PAWLI_ACTION_STOPPED) {
        pawl_mono deadline;
        if (!pawli_pump_take(runner->pump, &signal, &deadline)) {
            ops->wait(hands, deadline);
            continue;
        }
        if (signal.kind == PAWLI_ACTION_START)
            ops->start(hands, signal.slot);
        else if (signal.kind == PAWLI_ACTION_ABORT)
            ops->abort(hands, signal.slot);
        else if (signal.kind == PAWLI_ACTION_GIVE_UP)
            ops->give_up(hands, signal.slot);
    }
    on_stopped(runner, signal.left);
}

/* ---------------------------------------------------------------- starting */

static void free_runner(void *user)
{
    pawl_runner *runner = user;
    if (runner->hands.user != NULL)
        runner->hands.ops->free(runner->hands.user);
    pawli_pump_free(runner->pump);
    pawli_reaping_free(runner->reaping);
    pawli_watch_free(runner->watch);
    (void)pthread_mutex_destroy(&runner->mutex); /* nobody has it: all have left */
    free(runner);
}

/* What it is made of beside its options. */
struct more {
    struct pawli_trace_writer *notes;      /* NULL: none */
    const struct pawli_hands_maker *maker; /* NULL: handlers */
};

static struct pawli_reaping *new_reaping(pawl_runner *runner, const pawl_worker_options *options,
                                         const struct more *more)
{
    bool has_name = more->maker != NULL && more->maker->shows_as != NULL;
    const pawl_worker_queue shown = {.queue = has_name ? more->maker->shows_as : NULL};
    return pawli_reaping_new(&(struct pawli_reaper_config){
        .opener = &runner->opener,
        .name = options->is_reaper_off ? NULL : runner->reaper_name,
        .worker = runner->name,
        .queues = has_name ? &shown : options->queues,
        .queues_count = has_name ? 1 : options->queues_count,
        .interval_ms = pawli_reaper_interval_ms(&options->reaper, runner->smallest_lease_ms),
        .batch_max = options->reaper.batch_max,
        .presence_ms = options->presence_ms,
        .watch = runner->watch,
        .clock = options->clock,
        .random = options->random,
    });
}

static void wake_hands(void *user)
{
    pawl_runner *runner = user;
    runner->hands.ops->wake(runner->hands.user);
}

static pawl_code new_pump(pawl_runner *runner, const pawl_worker_options *options,
                          const struct more *more, pawl_err *err)
{
    return pawli_pump_new(
        &(struct pawli_pump_config){.opener = &runner->opener,
                                    .worker = runner->name,
                                    .lines = options->queues,
                                    .lines_count = options->queues_count,
                                    .lines_max = more->maker != NULL ? more->maker->lines_max : 0,
                                    .settings = &options->settings,
                                    .clock = options->clock,
                                    .random = options->random,
                                    .watch = runner->watch,
                                    .notes = more->notes,
                                    .wake = more->maker != NULL ? wake_hands : NULL,
                                    .user = runner},
        &runner->pump, err);
}

static pawl_code new_hands(pawl_runner *runner, const pawl_worker_options *options,
                           const struct more *more, pawl_err *err)
{
    size_t parallel = (size_t)options->settings.parallel_max;
    const struct pawli_hands_place place = {.runner = runner,
                                            .pump = runner->pump,
                                            .crew = runner->crew,
                                            .watch = runner->watch,
                                            .opener = &runner->opener,
                                            .worker = runner->name,
                                            .clock = options->clock,
                                            .random = options->random,
                                            .settings = &options->settings};
    if (more->maker != NULL)
        return more->maker->make(more->maker->user, &place, &runner->hands, err);
    runner->hands.ops = &pawli_pool_hands;
    runner->hands.user = pawli_pool_new(&(struct pawli_pool_config){.pump = runner->pump,
                                                                    .crew = runner->crew,
                                                                    .handler = options->handler,
                                                                    .user = options->user,
                                                                    .worker = runner->name,
                                                                    .clock = options->clock,
                                                                    .threads_max = parallel,
                                                                    .stuck_max = parallel});
    return runner->hands.user != NULL ? PAWL_OK : pawli_fail_plain(err, PAWL_NO_MEMORY);
}

/* Everything but the threads. Where it fails, free_runner() takes what there is. */
static pawl_code build(pawl_runner *runner, const pawl_worker_options *options,
                       const struct more *more, pawl_err *err)
{
    /* Twice the handlers: as many as run at once may be stuck before slots are lost to them. */
    size_t threads = more->maker != NULL ? more->maker->threads_max
                                         : (size_t)(2 * options->settings.parallel_max +
                                                    options->settings.buffer_max);
    runner->watch = pawli_watch_new(&options->watch, options->clock, runner->name);
    if (runner->watch == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    pawli_watch_count_in(runner->watch, options->metrics);
    pawl_code code = new_pump(runner, options, more, err);
    if (code != PAWL_OK)
        return code;
    runner->reaping = new_reaping(runner, options, more);
    runner->crew = pawli_crew_new(THREADS_OWN + threads, free_runner, runner);
    if (runner->reaping == NULL || runner->crew == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    return new_hands(runner, options, more, err);
}

static void join_metrics(pawl_runner *runner, const pawl_worker_options *options)
{
    for (size_t i = 0; i < options->queues_count; i++)
        pawli_metrics_serve(options->metrics, options->queues[i].queue);
    pawli_metrics_join(options->metrics, runner->name, PAWL_KIND_WORKER);
    if (!options->is_reaper_off)
        pawli_metrics_join(options->metrics, runner->reaper_name, PAWL_KIND_REAPER);
}

/* When it has stopped, whatever threads are left. */
static void leave_metrics(pawl_runner *runner)
{
    pawl_metrics *metrics = pawli_watch_metrics(runner->watch);
    pawli_metrics_leave(metrics, runner->name);
    pawli_metrics_leave(metrics, runner->reaper_name);
}

static bool start_reaper(pawl_runner *runner)
{
    pawli_watch_join(runner->watch);
    if (pawli_crew_start(runner->crew, "pawl-reaper", reap, runner) == PAWL_OK)
        return true;
    pawli_watch_leave(runner->watch);
    return false;
}

/* The watcher ends with the last of those who tell: the conductor leaves it for us. */
static bool start_threads(pawl_runner *runner, const struct pawli_hands_maker *maker)
{
    struct pawli_crew *crew = runner->crew;
    bool has_own = maker != NULL && maker->start != NULL;
    return pawli_crew_start(crew, "pawl-watch", pawli_watch_run, runner->watch) == PAWL_OK &&
           start_reaper(runner) && pawli_pump_start(runner->pump, crew) == PAWL_OK &&
           (!has_own || maker->start(runner->hands.user) == PAWL_OK) &&
           pawli_crew_start(crew, "pawl-conductor", conduct, runner) == PAWL_OK;
}

static void set_names(pawl_runner *runner, const pawl_worker_options *options)
{
    pawli_fresh_name(runner->name, options->name, options->random);
    (void)pawli_text_copy(runner->reaper_name, sizeof(runner->reaper_name), runner->name);
    size_t len = strlen(runner->reaper_name); /* name.c leaves room for this */
    (void)pawli_text_copy(runner->reaper_name + len, sizeof(runner->reaper_name) - len,
                          REAPER_SUFFIX);
}

/* The end of a worker that did not come into being. */
static void stop_starting(pawl_runner *runner)
{
    leave_metrics(runner);
    runner->hands.ops->end(runner->hands.user);
    pawli_pump_end(runner->pump);
    pawli_reaping_end(runner->reaping);
    pawli_watch_leave(runner->watch);
    (void)pawli_crew_wait(runner->crew, END_MARGIN_MS);
}

static pawl_code start(const pawl_worker_options *options, const struct more *more,
                       pawl_runner **ret_runner, pawl_err *err)
{
    int64_t smallest_lease_ms = 0;
    pawl_code code = pawli_check_given("ret_runner", ret_runner, err);
    if (code == PAWL_OK)
        code = pawli_worker_options_check(options, more->maker != NULL, &smallest_lease_ms, err);
    if (code != PAWL_OK)
        return code;
    pawl_runner *runner = calloc(1, sizeof(*runner));
    if (runner == NULL || pthread_mutex_init(&runner->mutex, NULL) != 0) {
        free(runner);
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    }
    runner->opener = options->opener;
    runner->clock = options->clock;
    runner->settings = options->settings;
    runner->reaper = options->reaper;
    runner->is_interval_derived = options->reaper.interval_ms == PAWL_DEFAULT;
    runner->smallest_lease_ms = smallest_lease_ms;
    set_names(runner, options);
    code = build(runner, options, more, err);
    if (code != PAWL_OK && runner->crew == NULL) {
        free_runner(runner);
        return code;
    }
    if (code == PAWL_OK)
        join_metrics(runner, options);
    if (code == PAWL_OK && !start_threads(runner, more->maker)) {
        stop_starting(runner);
        code = pawli_fail(err, PAWL_NO_MEMORY, "the system gives no more threads");
    }
    if (code != PAWL_OK) {
        (void)pawli_crew_leave(runner->crew); /* frees all of it, now or when the last one ends */
        return code;
    }
    pawli_watch_tell(runner->watch, &(pawl_event){.kind = PAWL_EVENT_WORKER_UP,
                                                  .level = PAWL_LEVEL_INFO,
                                                  .count = (int64_t)options->queues_count});
    *ret_runner = runner;
    return PAWL_OK;
}

pawl_code pawli_worker_start(const pawl_worker_options *options, struct pawli_trace_writer *notes,
                             pawl_runner **ret_runner, pawl_err *err)
{
    return start(options, &(struct more){.notes = notes}, ret_runner, err);
}

pawl_code pawli_worker_start_with(const pawl_worker_options *options,
                                  const struct pawli_hands_maker *maker, pawl_runner **ret_runner,
                                  pawl_err *err)
{
    assert(maker != NULL);
    return start(options, &(struct more){.maker = maker}, ret_runner, err);
}

pawl_code pawl_worker_start(const pawl_worker_options *options, pawl_runner **ret_runner,
                            pawl_err *err)
{
    return pawli_worker_start(options, NULL, ret_runner, err);
}

const char *pawl_worker_name(const pawl_runner *runner)
{
    return runner != NULL ? runner->name : "";
}

/* ---------------------------------------------------------------- stopping */

static void tell_stopping(pawl_runner *runner, const char *reason, int64_t timeout_ms)
{
    pawli_watch_tell(runner->watch, &(pawl_event){.kind = PAWL_EVENT_WORKER_STOPPING,
                                                  .level = PAWL_LEVEL_INFO,
                                                  .reason = reason,
                                                  .took_us = timeout_ms * 1000});
}

static pawl_worker_settings settings_of(pawl_runner *runner)
{
    pthread_mutex_lock(&runner->mutex);
    pawl_worker_settings settings = runner->settings;
    pthread_mutex_unlock(&runner->mutex);
    return settings;
}

static int64_t smallest_lease_of(pawl_runner *runner)
{
    pthread_mutex_lock(&runner->mutex);
    int64_t lease_ms = runner->smallest_lease_ms;
    pthread_mutex_unlock(&runner->mutex);
    return lease_ms;
}

void pawl_worker_stop(pawl_runner *runner, int64_t timeout_ms)
{
    if (runner == NULL)
        return;
    pawl_worker_settings settings = settings_of(runner);
    int64_t lease_ms = smallest_lease_of(runner);
    int64_t most_ms = pawli_shutdown_timeout_ms(&settings, lease_ms);
    if (most_ms > lease_ms)
        most_ms = lease_ms; /* a queue with a shorter lease came after the start */
    /* Never above the smallest lease, whoever asks: RULE-020-031. */
    if (timeout_ms == PAWL_DEFAULT || timeout_ms > lease_ms)
        timeout_ms = most_ms;
    if (timeout_ms < 0)
        timeout_ms = 0;
    tell_stopping(runner, pawli_why_name(PAWLI_WHY_SHUTDOWN), timeout_ms);
    pawli_pump_shutdown(runner->pump, timeout_ms);
}

void pawl_worker_abort(pawl_runner *runner)
{
    if (runner == NULL)
        return;
    tell_stopping(runner, pawli_why_name(PAWLI_WHY_ABORT_ALL), settings_of(runner).grace_ms);
    pawli_pump_abort_all(runner->pump);
}

static bool has_stopped(pawl_runner *runner, int64_t *ret_left)
{
    pthread_mutex_lock(&runner->mutex);
    bool is_stopped = runner->is_stopped;
    *ret_left = runner->jobs_left;
    pthread_mutex_unlock(&runner->mutex);
    return is_stopped;
}

pawl_code pawl_worker_wait(pawl_runner *runner, int64_t timeout_ms, pawl_worker_end *ret_end)
{
    if (runner == NULL)
        return PAWL_INVALID;
    pawl_worker_end end = {.threads_left = (int64_t)pawli_crew_wait(runner->crew, timeout_ms)};
    bool is_stopped = has_stopped(runner, &end.jobs_left);
    if (ret_end != NULL)
        *ret_end = end;
    return is_stopped && end.threads_left == 0 ? PAWL_OK : PAWL_TIMEOUT;
}

size_t pawl_worker_free(pawl_runner *runner)
{
    int64_t left = 0;
    if (runner == NULL)
        return 0;
    pawl_worker_settings settings = settings_of(runner);
    if (!has_stopped(runner, &left))
        pawl_worker_abort(runner);
    struct pawli_crew *crew = runner->crew;
    leave_metrics(runner);
    (void)pawli_crew_wait(crew, settings.grace_ms + settings.call_timeout_ms + END_MARGIN_MS);
    return pawli_crew_leave(crew);
}

/* ---------------------------------------------------------------- steering */

static pawl_code pause(pawl_runner *runner, const char *queue, bool is_paused, pawl_err *err)
{
    pawl_code code = pawli_check_given("runner", runner, err);
    if (code == PAWL_OK && queue != NULL)
        code = pawli_check_name("queue", queue, err);
    if (code != PAWL_OK)
        return code;
    size_t line = queue != NULL ? pawli_pump_line(runner->pump, queue) : PAWLI_LINE_ALL;
    if (queue != NULL && line == PAWLI_LINE_ALL)
        return pawli_fail(err, PAWL_INVALID, "queue \"%s\" is not served by this worker", queue);
    pawli_pump_pause(runner->pump, line, is_paused);
    pawl_event event = {.kind = is_paused ? PAWL_EVENT_PAUSED : PAWL_EVENT_RESUMED,
                        .level = PAWL_LEVEL_INFO};
    (void)pawli_text_copy(event.subject, sizeof(event.subject), queue); /* fits; NULL is empty */
    pawli_watch_tell(runner->watch, &event);
    return PAWL_OK;
}

pawl_code pawl_worker_pause(pawl_runner *runner, const char *queue, pawl_err *err)
{
    return pause(runner, queue, true, err);
}

pawl_code pawl_worker_resume(pawl_runner *runner, const char *queue, pawl_err *err)
{
    return pause(runner, queue, false, err);
}

void pawli_worker_lease(pawl_runner *runner, int64_t lease_ms)
{
    pthread_mutex_lock(&runner->mutex);
    bool is_smaller = lease_ms < runner->smallest_lease_ms;
    bool is_derived = runner->is_interval_derived;
    if (is_smaller)
        runner->smallest_lease_ms = lease_ms;
    pthread_mutex_unlock(&runner->mutex);
    pawl_reaper_settings reaper = runner->reaper;
    reaper.interval_ms = PAWL_DEFAULT;
    if (is_smaller && is_derived)
        pawli_reaping_set_interval(runner->reaping, pawli_reaper_interval_ms(&reaper, lease_ms));
}

static pawl_code set(pawl_runner *runner, const pawl_worker_settings *settings, int64_t lease_ms,
                     pawl_err *err)
{
    pawl_code code = pawl_worker_settings_check(settings, lease_ms, err);
    if (code == PAWL_OK)
        code = pawli_pump_set(runner->pump, settings, err);
    if (code != PAWL_OK)
        return code;
    if (runner->hands.ops->set != NULL)
        runner->hands.ops->set(runner->hands.user, (size_t)settings->parallel_max);
    pthread_mutex_lock(&runner->mutex);
    runner->settings = *settings;
    runner->smallest_lease_ms = lease_ms;
    pthread_mutex_unlock(&runner->mutex);
    return PAWL_OK;
}

pawl_code pawl_worker_set(pawl_runner *runner, const pawl_worker_settings *settings, pawl_err *err)
{
    pawl_code code = pawli_check_given("runner", runner, err);
    return code == PAWL_OK ? set(runner, settings, smallest_lease_of(runner), err) : code;
}

static void tell_tuning(pawl_runner *runner, const pawl_worker_tuning *tuning, int64_t lease_ms,
                        int64_t interval_ms)
{
    const pawl_worker_settings *settings = &tuning->settings;
    pawl_event event = {.kind = PAWL_EVENT_SETTINGS, .level = PAWL_LEVEL_INFO};
    (void)snprintf(event.text, sizeof(event.text), /* it fits */
                   "parallel_max %lld, buffer_max %lld, poll_ms %lld, smallest lease_ms %lld, "
                   "reaper interval_ms %lld, level %s",
                   (long long)settings->parallel_max, (long long)settings->buffer_max,
                   (long long)settings->poll_ms, (long long)lease_ms, (long long)interval_ms,
                   pawli_level_name(tuning->level));
    pawli_watch_tell(runner->watch, &event); /* under the level that held until now */
}

/* Everything is checked before anything is changed. */
pawl_code pawl_worker_tune(pawl_runner *runner, const pawl_worker_tuning *tuning, pawl_err *err)
{
    pawl_code code = pawli_check_given("runner", runner, err);
    if (code == PAWL_OK)
        code = pawli_check_given("tuning", tuning, err);
    if (code != PAWL_OK)
        return code;
    bool has_lease = tuning->lease_ms != PAWL_DEFAULT;
    int64_t lease_ms = has_lease ? tuning->lease_ms : smallest_lease_of(runner);
    pawl_reaper_settings reaper = runner->reaper;
    reaper.interval_ms = tuning->reaper_interval_ms;
    code = pawli_check_duration("lease_ms", lease_ms, PAWL_LEASE_MIN_MS, err);
    if (code == PAWL_OK)
        code = pawl_reaper_settings_check(&reaper, lease_ms, err);
    if (code == PAWL_OK)
        code = pawli_check_level(tuning->level, err);
    if (code == PAWL_OK)
        code = set(runner, &tuning->settings, lease_ms, err);
    if (code != PAWL_OK)
        return code;
    if (has_lease)
        pawli_pump_set_lease(runner->pump, lease_ms);
    int64_t interval_ms = pawli_reaper_interval_ms(&reaper, lease_ms);
    pawli_reaping_set_interval(runner->reaping, interval_ms);
    tell_tuning(runner, tuning, lease_ms, interval_ms);
    pawli_watch_set_level(runner->watch, tuning->level);
    return PAWL_OK;
}

void pawli_worker_tell(pawl_runner *runner, const pawl_event *event)
{
    pawli_watch_tell(runner->watch, event);
}

void pawl_worker_count(pawl_runner *runner, pawl_worker_counts *ret_counts)
{
    int64_t left = 0;
    if (runner == NULL || ret_counts == NULL)
        return;
    struct pawli_keeper_counts counts = pawli_pump_count(runner->pump);
    *ret_counts = (pawl_worker_counts){
        .running = (int64_t)counts.running,
        .buffered = (int64_t)counts.buffered,
        .settling = (int64_t)counts.settling,
        .releasing = (int64_t)counts.releasing,
        .stuck = (int64_t)runner->hands.ops->stuck(runner->hands.user),
        .is_stopped = has_stopped(runner, &left),
    };
}

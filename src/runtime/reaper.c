/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * reaper.c - recovers jobs whose lease has expired, prunes old histories, shows who is there.
 * Owns:  the reaper's thread, its interval, its presence rows.
 * Never: decides that a lease has expired (the store does, by its clock); calls a handler; counts
 *        on being alone: any number of reapers may run at once.
 * Locks: reaping.mutex, never held over a store call.
 */
#include "runtime/reaper.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "core/policy.h"
#include "runtime/crew.h"
#include "runtime/deaths.h"
#include "runtime/depths.h"
#include "runtime/link.h"
#include "runtime/name.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define MORE_QUEUES     " ..."
#define JITTER_PART     10   /* runs come up to a tenth of the interval early, never late */
#define ROUNDS_MAX      100  /* batches in one run: then the presence rows have their turn */
#define WAIT_MOST_MS    500  /* a suspended machine is noticed so long after it woke up */
#define STALE_PRESENCES 3    /* so many missed in a row are a death */
#define END_LIMIT_MS    2000 /* the longest that taking the presence rows away may hold up an end */
#define LOOK_LIMIT_MS   2000 /* the longest that counting a queue may hold up a run */

struct pawli_reaping {
    struct pawli_reaper_config config;
    char name[PAWL_NAME_MAX + 1];   /* empty: does not reap */
    char worker[PAWL_NAME_MAX + 1]; /* empty: has none */
    char host[PAWL_NAME_MAX + 1];
    char queues[PAWL_QUEUES_TEXT_MAX + 1]; /* of the worker */
    struct pawli_link link;
    pawl_reaped *rows; /* batch_max */
    struct pawli_deaths deaths;
    pawl_mono reap_at;
    pawl_mono present_at;
    pawl_mono look_at;
    bool is_well; /* the last run was finished */

    pthread_mutex_t mutex;
    pthread_cond_t told;
    bool is_ending;          /* mutex */
    int64_t runs;            /* mutex */
    int64_t new_interval_ms; /* mutex; 0: none since the thread looked */
};

/* ---------------------------------------------------------------- one run */

/* A store call: begun, ended, told. */
struct call {
    const char *verb;
    pawl_mono began;
    pawl_err err;
};

static struct call begin_call(const struct pawli_reaping *reaping, const char *verb)
{
    const pawl_clock *clock = reaping->config.clock;
    return (struct call){.verb = verb, .began = clock->mono(clock->user)};
}

/* True where it went well. A handle that broke is closed. */
static bool end_call(struct pawli_reaping *reaping, struct call *call, pawl_code code, size_t rows)
{
    const pawl_clock *clock = reaping->config.clock;
    bool is_ok = pawli_link_after(&reaping->link, code) == PAWL_OK;
    pawl_event event = {.kind = is_ok ? PAWL_EVENT_CALL : PAWL_EVENT_CALL_FAILED,
                        .level = is_ok ? PAWL_LEVEL_DEBUG : PAWL_LEVEL_WARN,
                        .code = code,
                        .count = is_ok ? (int64_t)rows : 0,
                        .took_us = clock->mono(clock->user).us - call->began.us};
    if (!pawli_watch_wants(reaping->config.watch, event.level))
        return is_ok;
    (void)pawli_text_copy(event.subject, sizeof(event.subject), call->verb); /* fits */
    if (!is_ok)
        (void)pawli_text_copy(event.text, sizeof(event.text), call->err.text); /* fits */
    pawli_watch_tell(reaping->config.watch, &event);
    return is_ok;
}

static void tell_reaped(struct pawli_reaping *reaping, const pawl_reaped *row)
{
    pawl_event event = {.kind = PAWL_EVENT_REAPED,
                        .level = PAWL_LEVEL_INFO,
                        .reason = pawl_reason_name(row->reason),
                        .job = row->job,
                        .lease_version = row->lease_version,
                        .took_us = row->overdue_ms * 1000};
    (void)pawli_text_copy(event.queue, sizeof(event.queue), row->queue);      /* the same size */
    (void)pawli_text_copy(event.subject, sizeof(event.subject), row->worker); /* likewise */
    pawli_watch_tell(reaping->config.watch, &event);
    pawli_deaths_lost(&reaping->deaths, row->worker);
}

/* Recover all that has expired. Gives how many, or -1 where the store failed. */
static int64_t reap(struct pawli_reaping *reaping)
{
    int64_t all = 0;
    size_t batch = (size_t)reaping->config.batch_max;
    size_t count = batch;
    for (int round = 0; round < ROUNDS_MAX && count == batch; round++) {
        struct call call = begin_call(reaping, "reap");
        pawl_code code = pawl_reap(reaping->link.store, reaping->rows, batch, &count, &call.err);
        if (!end_call(reaping, &call, code, count))
            return -1;
        for (size_t i = 0; i < count; i++)
            tell_reaped(reaping, &reaping->rows[i]);
        all += (int64_t)count;
    }
    return all;
}

static bool prune(struct pawli_reaping *reaping)
{
    struct call call = begin_call(reaping, "prune");
    size_t count = 0;
    pawl_code code = pawl_prune(reaping->link.store, (size_t)reaping->config.batch_max, &count,
                                &call.err);
    if (!end_call(reaping, &call, code, count))
        return false;
    if (count > 0)
        pawli_watch_tell(reaping->config.watch, &(pawl_event){.kind = PAWL_EVENT_PRUNED,
                                                              .level = PAWL_LEVEL_INFO,
                                                              .count = (int64_t)count});
    return true;
}

static bool is_ready(struct pawli_reaping *reaping, int64_t limit_ms)
{
    struct call call = begin_call(reaping, "open");
    bool is_open = reaping->link.store != NULL;
    pawl_code code = pawli_link_ready(&reaping->link, limit_ms, &call.err);
    return is_open || end_call(reaping, &call, code, 0);
}

/* Show one name; a reaper's own only while its runs are finished (RULE-020-020). */
static bool show(struct pawli_reaping *reaping, const char *name, pawl_worker_kind kind)
{
    struct call call = begin_call(reaping, "worker_seen");
    if (name[0] == '\0')
        return true;
    pawl_worker_seen seen = {.name = name,
                             .kind = kind,
                             .host = reaping->host,
                             .version = pawl_version(),
                             .queues = kind == PAWL_KIND_WORKER ? reaping->queues : NULL};
    pawl_code code = pawl_worker_seen_now(reaping->link.store, &seen, &call.err);
    return end_call(reaping, &call, code, 1);
}

static void reap_once(struct pawli_reaping *reaping)
{
    const pawl_clock *clock = reaping->config.clock;
    pawl_mono began = clock->mono(clock->user);
    reaping->is_well = false;
    if (!is_ready(reaping, PAWL_DEFAULT))
        return;
    int64_t recovered = reap(reaping);
    if (recovered < 0 || !prune(reaping) || !show(reaping, reaping->name, PAWL_KIND_REAPER))
        return;
    struct pawli_deaths_args args = {.stale_ms = STALE_PRESENCES * reaping->config.presence_ms,
                                     .own_name = reaping->name,
                                     .own_worker = reaping->worker,
                                     .watch = reaping->config.watch};
    struct call call = begin_call(reaping, "workers");
    pawl_code code = pawli_deaths_report(&reaping->deaths, reaping->link.store, &args, &call.err);
    (void)end_call(reaping, &call, code, 0); /* the next run looks again */
    pawli_watch_tell(reaping->config.watch,
                     &(pawl_event){.kind = PAWL_EVENT_REAP_RUN,
                                   .level = recovered > 0 ? PAWL_LEVEL_INFO : PAWL_LEVEL_DEBUG,
                                   .count = recovered,
                                   .took_us = clock->mono(clock->user).us - began.us});
    reaping->is_well = true;
    pthread_mutex_lock(&reaping->mutex);
    reaping->runs++;
    pthread_mutex_unlock(&reaping->mutex);
}

/* Ask how deep queues are, where somebody counts: a reaper alone of all queues, others of those
 * that the process serves. Says when to ask again. */
static pawl_mono look(struct pawli_reaping *reaping, pawl_metrics *metrics, pawl_mono now)
{
    const pawl_clock *clock = reaping->config.clock;
    if (is_ready(reaping, LOOK_LIMIT_MS)) {
        size_t rows = 0;
        struct call call = begin_call(reaping, "queue_depths");
        pawl_code code = pawli_depths_look(metrics, reaping->link.store, reaping->worker[0] == '\0',
                                           &rows, &call.err);
        if (end_call(reaping, &call, code, rows))
            pawli_metrics_looked(metrics, clock->wall(clock->user));
        if (reaping->link.store != NULL)
            pawl_store_limit(reaping->link.store, PAWL_DEFAULT);
    }
    pawl_mono after = clock->mono(clock->user);
    return pawli_mono_add_ms(after, pawli_depths_pause_ms(metrics, after.us - now.us));
}

/* ---------------------------------------------------------------- the thread */

static pawl_mono later(const struct pawli_reaping *reaping, pawl_mono now, int64_t interval_ms)
{
    int64_t us = interval_ms * 1000;
    uint64_t early = pawli_random_below(reaping->config.random, (uint64_t)(us / JITTER_PART) + 1);
    return (pawl_mono){now.us + us - (int64_t)early};
}

static void take_interval(struct pawli_reaping *reaping, pawl_mono now)
{
    pthread_mutex_lock(&reaping->mutex);
    int64_t interval_ms = reaping->new_interval_ms;
    reaping->new_interval_ms = 0;
    pthread_mutex_unlock(&reaping->mutex);
    if (interval_ms == 0)
        return;
    reaping->config.interval_ms = interval_ms;
    reaping->reap_at = pawli_mono_min(reaping->reap_at, later(reaping, now, interval_ms));
}

/* Do what is due, and say when the next thing is. */
static pawl_mono step(struct pawli_reaping *reaping)
{
    const pawl_clock *clock = reaping->config.clock;
    pawl_mono now = clock->mono(clock->user);
    take_interval(reaping, now);
    if (!pawli_mono_is_before(now, reaping->present_at)) {
        if (is_ready(reaping, PAWL_DEFAULT) && show(reaping, reaping->worker, PAWL_KIND_WORKER) &&
            reaping->is_well)
            (void)show(reaping, reaping->name, PAWL_KIND_REAPER); /* told where it fails */
        now = clock->mono(clock->user);
        reaping->present_at = later(reaping, now, reaping->config.presence_ms);
    }
    if (reaping->name[0] != '\0' && !pawli_mono_is_before(now, reaping->reap_at)) {
        reap_once(reaping);
        reaping->reap_at = later(reaping, clock->mono(clock->user), reaping->config.interval_ms);
    }
    pawl_metrics *metrics = pawli_watch_metrics(reaping->config.watch);
    now = clock->mono(clock->user);
    if (metrics != NULL && !pawli_mono_is_before(now, reaping->look_at))
        reaping->look_at = look(reaping, metrics, now);
    pawl_mono next = reaping->present_at;
    if (reaping->name[0] != '\0')
        next = pawli_mono_min(next, reaping->reap_at);
    return metrics != NULL ? pawli_mono_min(next, reaping->look_at) : next;
}

/* False: it was told to end. */
static bool wait_until(struct pawli_reaping *reaping, pawl_mono at)
{
    const pawl_clock *clock = reaping->config.clock;
    bool is_told = false;
    for (;;) {
        int64_t ms = (at.us - clock->mono(clock->user).us + 999) / 1000;
        if (ms <= 0 || is_told)
            break;
        struct timespec until = pawli_wait_until(ms < WAIT_MOST_MS ? ms : WAIT_MOST_MS);
        int rc = 0;
        pthread_mutex_lock(&reaping->mutex);
        while (rc == 0 && !reaping->is_ending && reaping->new_interval_ms == 0)
            rc = pthread_cond_timedwait(&reaping->told, &reaping->mutex, &until);
        is_told = reaping->is_ending || reaping->new_interval_ms != 0;
        pthread_mutex_unlock(&reaping->mutex);
    }
    pthread_mutex_lock(&reaping->mutex);
    bool is_ending = reaping->is_ending;
    pthread_mutex_unlock(&reaping->mutex);
    return !is_ending;
}

static void say_goodbye(struct pawli_reaping *reaping)
{
    if (reaping->link.store == NULL)
        return; /* there is no way to the store: others will find out */
    pawl_store_limit(reaping->link.store, END_LIMIT_MS);
    /* Where these fail, the rows grow old, and that is reported. */
    if (reaping->worker[0] != '\0')
        (void)!pawl_worker_ended(reaping->link.store, reaping->worker, NULL);
    if (reaping->name[0] != '\0')
        (void)!pawl_worker_ended(reaping->link.store, reaping->name, NULL);
}

void pawli_reaping_run(void *argument)
{
    struct pawli_reaping *reaping = argument;
    bool is_going = true;
    while (is_going)
        is_going = wait_until(reaping, step(reaping));
    say_goodbye(reaping);
    pawli_link_close(&reaping->link);
}

void pawli_reaping_end(struct pawli_reaping *reaping)
{
    pthread_mutex_lock(&reaping->mutex);
    reaping->is_ending = true;
    pthread_cond_signal(&reaping->told);
    pthread_mutex_unlock(&reaping->mutex);
}

void pawli_reaping_set_interval(struct pawli_reaping *reaping, int64_t interval_ms)
{
    assert(interval_ms > 0);
    pthread_mutex_lock(&reaping->mutex);
    reaping->new_interval_ms = interval_ms;
    pthread_cond_signal(&reaping->told);
    pthread_mutex_unlock(&reaping->mutex);
}

int64_t pawli_reaping_runs(struct pawli_reaping *reaping)
{
    pthread_mutex_lock(&reaping->mutex);
    int64_t runs = reaping->runs;
    pthread_mutex_unlock(&reaping->mutex);
    return runs;
}

/* ---------------------------------------------------------------- life */

/* As many names as there is room for; "..." where that is not all. */
static void name_queues(struct pawli_reaping *reaping)
{
    const struct pawli_reaper_config *config = &reaping->config;
    char *text = reaping->queues;
    size_t len = 0;
    for (size_t i = 0; i < config->queues_count; i++) {
        const char *name = config->queues[i].queue;
        size_t needed = strlen(name) + (len > 0);
        size_t kept = i + 1 < config->queues_count ? sizeof(MORE_QUEUES) : 1;
        if (len + needed + kept > sizeof(reaping->queues)) {
            memcpy(text + len, MORE_QUEUES, sizeof(MORE_QUEUES));
            return;
        }
        if (len > 0)
            text[len++] = ' ';
        memcpy(text + len, name, strlen(name) + 1);
        len += strlen(name);
    }
}

struct pawli_reaping *pawli_reaping_new(const struct pawli_reaper_config *config)
{
    struct pawli_reaping *reaping = calloc(1, sizeof(*reaping));
    if (reaping == NULL)
        return NULL;
    reaping->config = *config;
    (void)pawli_text_copy(reaping->name, sizeof(reaping->name), config->name);       /* fits */
    (void)pawli_text_copy(reaping->worker, sizeof(reaping->worker), config->worker); /* fits */
    name_queues(reaping);
    pawli_host_name(reaping->host);
    reaping->link = (struct pawli_link){.opener = config->opener, .role = PAWL_ROLE_REAPER};
    reaping->rows = calloc((size_t)config->batch_max, sizeof(*reaping->rows));
    if (reaping->rows == NULL || pthread_mutex_init(&reaping->mutex, NULL) != 0)
        goto no_mutex;
    if (!pawli_cond_init(&reaping->told))
        goto no_cond;
    return reaping;

no_cond:
    (void)pthread_mutex_destroy(&reaping->mutex); /* nobody has it */
no_mutex:
    free(reaping->rows);
    free(reaping);
    return NULL;
}

void pawli_reaping_free(struct pawli_reaping *reaping)
{
    if (reaping == NULL)
        return;
    pawli_link_close(&reaping->link);
    (void)pthread_cond_destroy(&reaping->told); /* nobody waits: its thread has ended */
    (void)pthread_mutex_destroy(&reaping->mutex);
    free(reaping->rows);
    free(reaping);
}

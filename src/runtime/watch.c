/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * watch.c - events on their way to the callback that logs them.
 * Owns:  the line of events.
 * Never: blocks whoever tells; calls back from any thread but its own.
 * Locks: watch.mutex, never held over the callback.
 */
#include "runtime/watch.h"

#include "base/text.h"
#include "runtime/crew.h"
#include "runtime/metrics.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>

#define LINE_MAX 1024 /* events that wait for the callback */

struct pawli_watch {
    pawl_watch to;
    atomic_int level; /* instead of to.level */
    const pawl_clock *clock;
    char worker[PAWL_NAME_MAX + 1];
    pawl_metrics *metrics; /* NULL: nobody counts */
    pthread_mutex_t mutex;
    pthread_cond_t told;
    pawl_event *line; /* a ring of LINE_MAX: mutex; NULL where nobody listens */
    size_t first;     /* mutex */
    size_t count;     /* mutex */
    int64_t dropped;  /* since the last one that was told: mutex */
    size_t tellers;   /* that have not left: mutex */
};

struct pawli_watch *pawli_watch_new(const pawl_watch *to, const pawl_clock *clock,
                                    const char *worker)
{
    assert(to != NULL && clock != NULL && worker != NULL);
    struct pawli_watch *watch = calloc(1, sizeof(*watch));
    if (watch == NULL)
        return NULL;
    watch->to = *to;
    atomic_init(&watch->level, (int)to->level);
    watch->clock = clock;
    watch->tellers = 1;
    (void)pawli_text_copy(watch->worker, sizeof(watch->worker), worker); /* checked: it fits */
    if (to->tell != NULL)
        watch->line = calloc(LINE_MAX, sizeof(*watch->line));
    if ((to->tell != NULL && watch->line == NULL) || pthread_mutex_init(&watch->mutex, NULL) != 0)
        goto no_mutex;
    if (!pawli_cond_init(&watch->told))
        goto no_cond;
    return watch;

no_cond:
    (void)pthread_mutex_destroy(&watch->mutex); /* nobody has it */
no_mutex:
    free(watch->line);
    free(watch);
    return NULL;
}

void pawli_watch_free(struct pawli_watch *watch)
{
    if (watch == NULL)
        return;
    (void)pthread_cond_destroy(&watch->told); /* nobody waits: its thread has ended */
    (void)pthread_mutex_destroy(&watch->mutex);
    free(watch->line);
    free(watch);
}

bool pawli_watch_wants(const struct pawli_watch *watch, pawl_level level)
{
    return watch->metrics != NULL ||
           (watch->line != NULL &&
            (int)level >= atomic_load_explicit(&watch->level, memory_order_relaxed));
}

void pawli_watch_set_level(struct pawli_watch *watch, pawl_level level)
{
    atomic_store_explicit(&watch->level, (int)level, memory_order_relaxed);
}

void pawli_watch_count_in(struct pawli_watch *watch, pawl_metrics *metrics)
{
    watch->metrics = metrics;
}

pawl_metrics *pawli_watch_metrics(const struct pawli_watch *watch)
{
    return watch->metrics;
}

static void put(struct pawli_watch *watch, const pawl_event *event)
{
    assert(watch->count < LINE_MAX);
    pawl_event *place = &watch->line[(watch->first + watch->count++) % LINE_MAX];
    *place = *event;
    place->worker = watch->worker;
    if (place->reason == NULL)
        place->reason = "";
}

void pawli_watch_tell(struct pawli_watch *watch, const pawl_event *event)
{
    if (!pawli_watch_wants(watch, event->level))
        return;
    pawl_wall at = watch->clock->wall(watch->clock->user);
    if (watch->metrics != NULL)
        pawli_metrics_count(watch->metrics, event, at);
    if (watch->line == NULL ||
        (int)event->level < atomic_load_explicit(&watch->level, memory_order_relaxed))
        return;
    pthread_mutex_lock(&watch->mutex);
    /* Room for two: what was dropped is told before whatever comes after it. */
    if (watch->count + 2 > LINE_MAX) {
        watch->dropped++;
        pawl_metrics_log_dropped(watch->metrics, 1);
    } else {
        if (watch->dropped > 0)
            put(watch, &(pawl_event){.kind = PAWL_EVENT_DROPPED,
                                     .level = PAWL_LEVEL_WARN,
                                     .at = at,
                                     .reason = "callback_slow",
                                     .count = watch->dropped});
        watch->dropped = 0;
        put(watch, event);
        watch->line[(watch->first + watch->count - 1) % LINE_MAX].at = at;
        pthread_cond_signal(&watch->told);
    }
    pthread_mutex_unlock(&watch->mutex);
}

void pawli_watch_run(void *argument)
{
    struct pawli_watch *watch = argument;
    pthread_mutex_lock(&watch->mutex);
    for (;;) {
        while (watch->count == 0 && watch->tellers > 0)
            pthread_cond_wait(&watch->told, &watch->mutex);
        if (watch->count == 0)
            break;
        pawl_event event = watch->line[watch->first];
        watch->first = (watch->first + 1) % LINE_MAX;
        watch->count--;
        pthread_mutex_unlock(&watch->mutex);
        watch->to.tell(watch->to.user, &event);
        pthread_mutex_lock(&watch->mutex);
    }
    pthread_mutex_unlock(&watch->mutex);
}

void pawli_watch_join(struct pawli_watch *watch)
{
    pthread_mutex_lock(&watch->mutex);
    assert(watch->tellers > 0); /* else its thread may have ended */
    watch->tellers++;
    pthread_mutex_unlock(&watch->mutex);
}

void pawli_watch_leave(struct pawli_watch *watch)
{
    pthread_mutex_lock(&watch->mutex);
    assert(watch->tellers > 0);
    if (--watch->tellers == 0)
        pthread_cond_signal(&watch->told);
    pthread_mutex_unlock(&watch->mutex);
}

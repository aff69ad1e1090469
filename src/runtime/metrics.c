/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * metrics.c - counts what workers and reapers do.
 * Owns:  the figures; which event changes which of them.
 * Never: blocks whoever counts: figures are atomic, and the lock is for names only, of queues and
 *        members that are new; reads a clock or a store.
 * Locks: metrics.mutex, never held longer than it takes to copy a few names.
 */
#include "runtime/metrics_inside.h"

#include "base/error.h"
#include "base/text.h"
#include "core/keeper.h"
#include "core/policy.h"
#include "store/check.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_MS     15000
#define LOOK_MIN_MS 100

const struct bounds pawli_bounds_jobs = {12,
                                         {10000, 50000, 100000, 500000, 1000000, 5000000, 10000000,
                                          30000000, 60000000, 300000000, 900000000, 3600000000}};
const struct bounds pawli_bounds_calls = {13,
                                          {500, 1000, 2500, 5000, 10000, 25000, 50000, 100000,
                                           250000, 500000, 1000000, 2500000, 5000000}};
const struct bounds pawli_bounds_stale = {10,
                                          {100000, 500000, 1000000, 2500000, 5000000, 10000000,
                                           30000000, 60000000, 300000000, 3600000000}};

enum {
    OUTCOME_RELEASED = 5,
    OUTCOME_BY_HANDLER = 6,
    OUTCOME_LOST = 7,
    RESULT_OK = 0,
    RESULT_FAILED = 5
};
const char *const pawli_outcomes[OUTCOMES] = {
    "succeeded",          "retried", "snoozed", "failed", "cancelled", "released",
    "settled_by_handler", "lost"};
const char *const pawli_aborts[ABORTS] = {"lease_lost", "beat_failed", "cancelled",
                                          "timeout",    "shutdown",    "abort_all"};
const char *const pawli_results[RESULTS] = {"ok",        "stale",   "gone",
                                            "cancelled", "timeout", "failed"};
const char *const pawli_fenced[FENCED] = {"settle", "renew", "release"};
const char *const pawli_expiries[EXPIRIES] = {"expired", "poison", "cancelled"};
const char *const pawli_verbs[VERBS] = {"claim",   "mine",         "renew", "settle",
                                        "release", "reap",         "prune", "worker_seen",
                                        "workers", "queue_depths", "open"};
const char *const pawli_answers[ANSWERS] = {
    "2xx",     "3xx",   "4xx",      "5xx",         "other",     "dns",     "connect", "tls",
    "timeout", "reset", "protocol", "headers_cut", "too_large", "address", "local",   "stopped"};
const pawl_code pawli_failures[FAILURES] = {PAWL_INVALID, PAWL_NO_MEMORY, PAWL_DOWN,
                                            PAWL_UNKNOWN, PAWL_FULL,      PAWL_BROKEN};

/* The place of a word in a list; the list's length where it is not there. */
static size_t place_of(const char *const *words, size_t count, const char *word)
{
    size_t i = 0;
    while (i < count && strcmp(words[i], word) != 0)
        i++;
    return i;
}

static void count_word(figure *figures, const char *const *words, size_t count, const char *word)
{
    size_t place = place_of(words, count, word);
    if (place < count) /* another word is none of ours to tell */
        pawli_add(&figures[place], 1);
}

static void observe(struct histogram *histogram, const struct bounds *bounds, int64_t us)
{
    size_t i = 0;
    us = us > 0 ? us : 0;
    while (i < bounds->count && us > bounds->us[i])
        i++;
    pawli_add(&histogram->buckets[i], 1);
    pawli_add(&histogram->sum_us, us);
}

/* ---------------------------------------------------------------- life */

void pawl_metrics_options_init(pawl_metrics_options *options)
{
    if (options != NULL)
        *options = (pawl_metrics_options){.look_ms = LOOK_MS};
}

pawl_code pawl_metrics_new(const pawl_metrics_options *options, pawl_metrics **ret_metrics,
                           pawl_err *err)
{
    pawl_metrics_options usual;
    pawl_metrics_options_init(&usual);
    pawl_code code = pawli_check_given("ret_metrics", ret_metrics, err);
    options = options != NULL ? options : &usual;
    if (code == PAWL_OK)
        code = pawli_check_duration("look_ms", options->look_ms, LOOK_MIN_MS, err);
    if (code != PAWL_OK)
        return code;
    pawl_metrics *metrics = calloc(1, sizeof(*metrics));
    if (metrics == NULL || pthread_mutex_init(&metrics->mutex, NULL) != 0) {
        free(metrics);
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    }
    metrics->options = *options;
    struct queue_figures *others = &metrics->queues[PAWLI_METRICS_QUEUES_MAX];
    (void)pawli_text_copy(others->name, sizeof(others->name), PAWLI_METRICS_OTHER); /* fits */
    *ret_metrics = metrics;
    return PAWL_OK;
}

void pawl_metrics_free(pawl_metrics *metrics)
{
    if (metrics == NULL)
        return;
    (void)pthread_mutex_destroy(&metrics->mutex); /* nobody has it */
    free(metrics);
}

void pawl_metrics_log_dropped(pawl_metrics *metrics, int64_t lines)
{
    if (metrics != NULL)
        pawli_add(&metrics->dropped, lines);
}

/* ---------------------------------------------------------------- queues and members */

static struct queue_figures *find_queue(pawl_metrics *metrics, const char *name)
{
    size_t count = atomic_load_explicit(&metrics->queues_count, memory_order_acquire);
    for (size_t i = 0; i < count; i++)
        if (strcmp(metrics->queues[i].name, name) == 0)
            return &metrics->queues[i];
    return NULL;
}

/* The figures of a queue; those of all others where there is no room for its name. */
static struct queue_figures *queue_of(pawl_metrics *metrics, const char *name)
{
    struct queue_figures *others = &metrics->queues[PAWLI_METRICS_QUEUES_MAX];
    if (strcmp(name, PAWLI_METRICS_OTHER) == 0)
        return others; /* two figures of one name would be worse */
    struct queue_figures *queue = find_queue(metrics, name);
    if (queue != NULL)
        return queue;
    pthread_mutex_lock(&metrics->mutex);
    queue = find_queue(metrics, name); /* another may have been faster */
    size_t count = atomic_load_explicit(&metrics->queues_count, memory_order_relaxed);
    if (queue == NULL && count < PAWLI_METRICS_QUEUES_MAX) {
        queue = &metrics->queues[count];
        (void)pawli_text_copy(queue->name, sizeof(queue->name), name); /* the same size */
        atomic_store_explicit(&metrics->queues_count, count + 1, memory_order_release);
    }
    pthread_mutex_unlock(&metrics->mutex);
    return queue != NULL ? queue : others;
}

void pawli_metrics_serve(pawl_metrics *metrics, const char *queue)
{
    if (metrics != NULL)
        pawli_put(&queue_of(metrics, queue)->is_served, 1);
}

void pawli_metrics_join(pawl_metrics *metrics, const char *name, pawl_worker_kind kind)
{
    if (metrics == NULL)
        return;
    pthread_mutex_lock(&metrics->mutex);
    size_t i = 0;
    while (i < PAWLI_METRICS_MEMBERS_MAX && metrics->members[i].name[0] != '\0')
        i++;
    if (i < PAWLI_METRICS_MEMBERS_MAX) {
        metrics->members[i].kind = kind;
        (void)pawli_text_copy(metrics->members[i].name, sizeof(metrics->members[i].name), name);
    }
    pthread_mutex_unlock(&metrics->mutex);
}

void pawli_metrics_leave(pawl_metrics *metrics, const char *name)
{
    if (metrics == NULL)
        return;
    pthread_mutex_lock(&metrics->mutex);
    for (size_t i = 0; i < PAWLI_METRICS_MEMBERS_MAX; i++)
        if (strcmp(metrics->members[i].name, name) == 0)
            metrics->members[i].name[0] = '\0';
    pthread_mutex_unlock(&metrics->mutex);
}

void pawli_metrics_gauge(pawl_metrics *metrics, struct pawli_gauges *told,
                         const struct pawli_gauges *now)
{
    if (metrics == NULL)
        return;
    /* By the difference: several workers may be counted together. */
    pawli_add(&metrics->slots, now->slots - told->slots);
    pawli_add(&metrics->running, now->running - told->running);
    pawli_add(&metrics->buffered, now->buffered - told->buffered);
    pawli_add(&metrics->settling, now->settling - told->settling);
    pawli_add(&metrics->releasing, now->releasing - told->releasing);
    *told = *now;
}

/* ---------------------------------------------------------------- depths */

int64_t pawli_metrics_look_ms(const pawl_metrics *metrics)
{
    return metrics->options.look_ms;
}

bool pawli_metrics_served(const pawl_metrics *metrics, size_t i, char ret_name[PAWL_NAME_MAX + 1])
{
    size_t count = atomic_load_explicit(&metrics->queues_count, memory_order_acquire);
    for (size_t at = 0; at < count; at++) {
        if (pawli_read(&metrics->queues[at].is_served) == 0 || i-- > 0)
            continue;
        (void)pawli_text_copy(ret_name, PAWL_NAME_MAX + 1, metrics->queues[at].name); /* fits */
        return true;
    }
    return false;
}

/* The depth of a queue, or what many come to. */
static void put_depth(struct queue_figures *queue, const pawl_stats *row)
{
    pawli_put(&queue->ready, row->ready - row->delayed);
    pawli_put(&queue->delayed, row->delayed);
    pawli_put(&queue->in_flight, row->in_flight);
    pawli_put(&queue->leases_expired, row->expired);
    pawli_put(&queue->oldest_us, row->oldest_due_ms * 1000);
    pawli_put(&queue->is_paused, row->is_paused);
    pawli_put(&queue->is_looked, 1);
}

static const pawl_stats *find_row(const pawl_stats *rows, size_t rows_count, const char *name)
{
    for (size_t i = 0; i < rows_count; i++)
        if (strcmp(rows[i].queue, name) == 0)
            return &rows[i];
    return NULL;
}

void pawli_metrics_depths(pawl_metrics *metrics, const pawl_stats *rows, size_t rows_count,
                          bool is_all)
{
    static const pawl_stats nothing = {.ready = 0};
    struct queue_figures *others = &metrics->queues[PAWLI_METRICS_QUEUES_MAX];
    pawl_stats sum = {.ready = 0};
    bool has_others = false;
    for (size_t i = 0; i < rows_count; i++) {
        struct queue_figures *queue = queue_of(metrics, rows[i].queue);
        if (queue != others) {
            put_depth(queue, &rows[i]);
            continue;
        }
        has_others = true;
        sum.ready += rows[i].ready;
        sum.delayed += rows[i].delayed;
        sum.in_flight += rows[i].in_flight;
        sum.expired += rows[i].expired;
        if (rows[i].oldest_due_ms > sum.oldest_due_ms)
            sum.oldest_due_ms = rows[i].oldest_due_ms;
    }
    if (has_others || (is_all && pawli_read(&others->is_looked) != 0))
        put_depth(others, &sum);
    size_t count = atomic_load_explicit(&metrics->queues_count, memory_order_acquire);
    for (size_t i = 0; i < count && is_all; i++)
        if (pawli_read(&metrics->queues[i].is_looked) != 0 &&
            find_row(rows, rows_count, metrics->queues[i].name) == NULL)
            put_depth(&metrics->queues[i], &nothing);
}

void pawli_metrics_looked(pawl_metrics *metrics, pawl_wall at)
{
    pawli_put(&metrics->looked_us, at.us);
}

/* ---------------------------------------------------------------- events */

static void count_call(pawl_metrics *metrics, const pawl_event *event)
{
    size_t verb = place_of(pawli_verbs, VERBS, event->subject);
    bool is_late = event->reason != NULL && strcmp(event->reason, "late") == 0;
    bool is_ok = event->kind == PAWL_EVENT_CALL;
    if (verb == VERBS)
        return;
    observe(&metrics->calls[verb], &pawli_bounds_calls, event->took_us);
    for (size_t i = 0; i < FAILURES && !is_ok; i++)
        if (pawli_failures[i] == event->code)
            pawli_add(&metrics->call_failures[verb][i], 1);
    /* One that comes late was counted as failed when its time was up. */
    if (strcmp(event->subject, "renew") == 0 && !is_late)
        pawli_add(&metrics->renewals[is_ok ? RESULT_OK : RESULT_FAILED],
                  event->count - (is_ok ? event->refused : 0));
}

static void count_overdue(pawl_metrics *metrics, const pawl_event *event)
{
    count_word(metrics->calls_overdue, pawli_verbs, VERBS, event->subject);
    if (strcmp(event->subject, "renew") == 0)
        pawli_add(&metrics->renewals[RESULT_FAILED], event->count);
}

static void count_refused(pawl_metrics *metrics, const pawl_event *event, const char *verb)
{
    if (event->code == PAWL_STALE || event->code == PAWL_GONE)
        count_word(metrics->fenced, pawli_fenced, FENCED, verb);
}

static void count_unrenewed(pawl_metrics *metrics, const pawl_event *event)
{
    const char *result = event->code == PAWL_STALE       ? "stale"
                         : event->code == PAWL_GONE      ? "gone"
                         : event->code == PAWL_CANCELLED ? "cancelled"
                                                         : "timeout";
    count_word(metrics->renewals, pawli_results, RESULTS, result);
    count_refused(metrics, event, "renew");
}

static void count_over(pawl_metrics *metrics, const pawl_event *event)
{
    size_t outcome = OUTCOME_LOST;
    if (strcmp(event->reason, pawli_why_name(PAWLI_WHY_SETTLED)) == 0)
        return; /* JOB-SETTLED said so */
    if (strcmp(event->reason, pawli_why_name(PAWLI_WHY_RELEASED)) == 0)
        outcome = OUTCOME_RELEASED;
    else if (strcmp(event->reason, pawli_why_name(PAWLI_WHY_SETTLED_BY_HANDLER)) == 0)
        outcome = OUTCOME_BY_HANDLER;
    pawli_add(&queue_of(metrics, event->queue)->outcomes[outcome], 1);
}

static void count_reaped(pawl_metrics *metrics, const pawl_event *event)
{
    struct queue_figures *queue = queue_of(metrics, event->queue);
    pawli_add(&metrics->reaper_recovered, 1);
    observe(&metrics->reaper_stale, &pawli_bounds_stale, event->took_us);
    if (event->subject[0] != '\0') /* else it had no lease: it missed its start */
        count_word(queue->expired, pawli_expiries, EXPIRIES, event->reason);
}

static void count_run(pawl_metrics *metrics, const pawl_event *event, pawl_wall at)
{
    pawli_add(&metrics->reaper_runs, 1);
    pawli_put(&metrics->reaper_recovered_last, event->count);
    pawli_put(&metrics->reaper_last_run_us, at.us);
}

/* "HTTP-503" counts as 5xx, "TOO-LARGE" as too_large. */
static void count_delivery(pawl_metrics *metrics, const pawl_event *event)
{
    static const char http[] = "HTTP-";
    char word[sizeof(event->subject)];
    (void)pawli_text_copy(word, sizeof(word), event->subject); /* the same size */
    for (char *at = word; *at != '\0'; at++)
        *at = *at == '-' ? '_' : *at >= 'A' && *at <= 'Z' ? (char)(*at | 0x20) : *at;
    if (strncmp(event->subject, http, sizeof(http) - 1) == 0) {
        char hundreds = event->subject[sizeof(http) - 1];
        (void)pawli_text_copy(word, sizeof(word), "?xx");
        word[0] = hundreds;
    }
    size_t place = place_of(pawli_answers, ANSWERS, word);
    pawli_add(
        &metrics->answers[place < ANSWERS ? place : place_of(pawli_answers, ANSWERS, "other")], 1);
    pawli_add(&metrics->sends, event->count);
    observe(&metrics->delivery, &pawli_bounds_jobs, event->took_us);
}

void pawli_metrics_count(pawl_metrics *metrics, const pawl_event *event, pawl_wall at)
{
    switch (event->kind) {
    case PAWL_EVENT_CALL:
    case PAWL_EVENT_CALL_FAILED:
        count_call(metrics, event);
        break;
    case PAWL_EVENT_CALL_OVERDUE:
        count_overdue(metrics, event);
        break;
    case PAWL_EVENT_RENEW_REFUSED:
        count_unrenewed(metrics, event);
        break;
    case PAWL_EVENT_SETTLE_REFUSED:
        count_refused(metrics, event, event->subject);
        break;
    case PAWL_EVENT_JOB_START:
        observe(&queue_of(metrics, event->queue)->wait, &pawli_bounds_jobs, event->took_us);
        break;
    case PAWL_EVENT_JOB_ENDED:
        observe(&queue_of(metrics, event->queue)->run, &pawli_bounds_jobs, event->took_us);
        break;
    case PAWL_EVENT_JOB_SETTLED:
        count_word(queue_of(metrics, event->queue)->outcomes, pawli_outcomes, OUTCOMES,
                   event->subject);
        break;
    case PAWL_EVENT_JOB_OVER:
        count_over(metrics, event);
        break;
    case PAWL_EVENT_JOB_ABORT:
        count_word(metrics->aborts, pawli_aborts, ABORTS, event->reason);
        break;
    case PAWL_EVENT_JOB_GIVEN_UP:
        pawli_add(&metrics->stuck, 1);
        break;
    case PAWL_EVENT_THREAD_BACK:
        pawli_add(&metrics->stuck, -1);
        break;
    case PAWL_EVENT_REAPED:
        count_reaped(metrics, event);
        break;
    case PAWL_EVENT_REAP_RUN:
        count_run(metrics, event, at);
        break;
    case PAWL_EVENT_PRUNED:
        pawli_add(&metrics->pruned, event->count);
        break;
    case PAWL_EVENT_WORKER_DIED:
        pawli_add(&metrics->deaths, 1);
        break;
    case PAWL_EVENT_DELIVERY:
        count_delivery(metrics, event);
        break;
    case PAWL_EVENT_ENDPOINT_OPENED:
        pawli_add(&metrics->openings, 1);
        break;
    case PAWL_EVENT_ENDPOINT_DISABLED:
        pawli_add(&metrics->disabled, 1);
        break;
    default:
        break; /* the others are for logs alone */
    }
}

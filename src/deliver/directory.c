/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * directory.c - which endpoints there are, as the store has them.
 * Owns:  its thread and its handle; what it has told of each endpoint.
 * Never: decides what is to be disabled; asks so often that more than a small part of the time goes
 *        into it; keeps a secret after it was told.
 * Locks: directory.mutex, never held over a store call but pawl_wake(), which does not block.
 */
#include "deliver/directory.h"

#include "base/clock.h"
#include "base/text.h"
#include "core/event.h"
#include "runtime/link.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <bsd/sys/tree.h>

#define PAGE_ROWS    50
#define HINTS_MIN_MS 200 /* hints lead to a look no more often than this */
#define COST_PART    20  /* of the time, one part of so many goes into looking */
#define RETRY_MS     1000

/* An endpoint that was told. */
struct known {
    RB_ENTRY(known) place;
    char name[PAWL_ENDPOINT_NAME_MAX + 1];
    int64_t revision;
    pawl_wall created_at; /* another of the same name begins with the first revision again */
    int64_t lease_ms;
    int64_t max_in_flight;
    pawl_wall failing_since;
    int64_t marks; /* orders that were carried out */
    int64_t round; /* when it was last seen */
};
RB_HEAD(known_tree, known);

/* An endpoint that is to be disabled, or marked. */
struct order {
    STAILQ_ENTRY(order) next;
    bool is_mark;
    bool is_failing; /* this and the next: of a mark */
    int64_t disable_after_ms;
    int64_t revision; /* this and the next: not of a mark; see pawli_disabling */
    pawl_wall created_at;
    char name[PAWL_ENDPOINT_NAME_MAX + 1];
    char reason[PAWL_ENDPOINT_REASON_MAX + 1];
};
STAILQ_HEAD(order_list, order);

struct pawli_directory {
    struct pawli_directory_config config;
    struct pawli_link link;
    struct known_tree known;
    pawl_endpoint *page; /* PAGE_ROWS */
    int64_t round;

    pthread_mutex_t mutex;
    pthread_cond_t told;
    struct order_list orders; /* mutex */
    pawl_store *waiting;      /* it waits for a hint on it, and may be woken; mutex */
    bool is_ending;           /* mutex */
};

static int known_order(const struct known *a, const struct known *b)
{
    return strcmp(a->name, b->name);
}
/* Not RB_GENERATE_STATIC: it needs an __unused that only the BSDs define. */
RB_GENERATE_INTERNAL(known_tree, known, place, known_order, static __attribute__((unused)))

void pawli_news_free(struct pawli_news *news)
{
    if (news == NULL)
        return;
    explicit_bzero(news, sizeof(*news));
    free(news);
}

/* ---------------------------------------------------------------- calls */

static void tell_call(struct pawli_directory *directory, const char *verb, pawl_mono began,
                      const pawl_err *err)
{
    const pawl_clock *clock = directory->config.clock;
    bool is_ok = err->code == PAWL_OK;
    pawl_event event = {.kind = is_ok ? PAWL_EVENT_CALL : PAWL_EVENT_CALL_FAILED,
                        .level = is_ok ? PAWL_LEVEL_DEBUG : PAWL_LEVEL_WARN,
                        .code = err->code,
                        .took_us = clock->mono(clock->user).us - began.us};
    (void)pawli_text_copy(event.subject, sizeof(event.subject), verb); /* fits */
    if (!is_ok)
        (void)pawli_text_copy(event.text, sizeof(event.text), err->text); /* fits */
    pawli_watch_tell(directory->config.watch, &event);
}

static pawl_code ready(struct pawli_directory *directory, pawl_err *err)
{
    return pawli_link_ready(&directory->link, PAWL_DEFAULT, err);
}

/* ---------------------------------------------------------------- looking */

static bool is_same(const struct known *known, const pawl_endpoint *endpoint)
{
    return known->revision == endpoint->revision &&
           known->created_at.us == endpoint->created_at.us &&
           known->lease_ms == endpoint->queue_settings.lease_ms &&
           known->max_in_flight == endpoint->queue_settings.max_in_flight &&
           known->failing_since.us == endpoint->failing_since.us;
}

static void remember(struct known *known, const pawl_endpoint *endpoint)
{
    known->revision = endpoint->revision;
    known->created_at = endpoint->created_at;
    known->lease_ms = endpoint->queue_settings.lease_ms;
    known->max_in_flight = endpoint->queue_settings.max_in_flight;
    known->failing_since = endpoint->failing_since;
}

static struct known *find(struct pawli_directory *directory, const char *name)
{
    struct known key;
    (void)pawli_text_copy(key.name, sizeof(key.name), name); /* the same size */
    return RB_FIND(known_tree, &directory->known, &key);
}

/* Tell one that is new or has changed. Where that fails it is not remembered, and told later. */
static pawl_code tell_endpoint(struct pawli_directory *directory, const pawl_endpoint *endpoint,
                               pawl_err *err)
{
    struct known *known = find(directory, endpoint->name);
    if (known != NULL)
        known->round = directory->round;
    if (known != NULL && is_same(known, endpoint))
        return PAWL_OK;
    struct pawli_news *news = calloc(1, sizeof(*news));
    bool is_new = known == NULL;
    if (is_new)
        known = calloc(1, sizeof(*known));
    pawl_code code = news != NULL && known != NULL ? PAWL_OK : PAWL_NO_MEMORY;
    if (code == PAWL_OK)
        code = pawl_endpoint_credentials_get(directory->link.store, endpoint->name,
                                             &news->credentials, err);
    if (code != PAWL_OK) {
        pawli_news_free(news);
        if (is_new)
            free(known);
        return code == PAWL_GONE ? PAWL_OK : code; /* gone meanwhile: the next look sees it */
    }
    if (news->credentials.revision != endpoint->revision ||
        news->credentials.created_at.us != endpoint->created_at.us) {
        /* Changed, or another of the same name, between the two calls: what is secret is not for
         * the address that was read. */
        pawli_news_free(news);
        if (is_new)
            free(known);
        return PAWL_OK; /* the next look tells all of it */
    }
    news->endpoint = *endpoint;
    if (is_new) {
        (void)pawli_text_copy(known->name, sizeof(known->name), endpoint->name); /* fits */
        (void)RB_INSERT(known_tree, &directory->known, known);
    }
    known->round = directory->round;
    news->marks = known->marks;
    remember(known, endpoint);
    directory->config.tell(directory->config.user, news);
    return PAWL_OK;
}

static bool tell_gone(struct pawli_directory *directory, struct known *known)
{
    struct pawli_news *news = calloc(1, sizeof(*news));
    if (news == NULL)
        return false;
    news->is_gone = true;
    (void)pawli_text_copy(news->endpoint.name, sizeof(news->endpoint.name), known->name); /* fits */
    (void)RB_REMOVE(known_tree, &directory->known, known);
    free(known);
    directory->config.tell(directory->config.user, news);
    return true;
}

/* After all of them were seen: those that were not are gone. */
static void tell_all_gone(struct pawli_directory *directory)
{
    struct known *next;
    for (struct known *known = RB_MIN(known_tree, &directory->known); known != NULL; known = next) {
        next = RB_NEXT(known_tree, &directory->known, known);
        if (known->round != directory->round && !tell_gone(directory, known))
            return; /* no memory: the next look tells it */
    }
}

static pawl_code look_at_all(struct pawli_directory *directory, pawl_err *err)
{
    char after[PAWL_ENDPOINT_NAME_MAX + 1] = "";
    size_t count = PAGE_ROWS;
    pawl_code code = ready(directory, err);
    directory->round++;
    while (code == PAWL_OK && count == PAGE_ROWS) {
        code = pawl_endpoint_list(directory->link.store, after[0] != '\0' ? after : NULL,
                                  directory->page, PAGE_ROWS, &count, err);
        for (size_t i = 0; code == PAWL_OK && i < count; i++)
            code = tell_endpoint(directory, &directory->page[i], err);
        if (code == PAWL_OK && count > 0)
            (void)pawli_text_copy(after, sizeof(after), directory->page[count - 1].name); /* fits */
    }
    if (code == PAWL_OK)
        tell_all_gone(directory);
    return code;
}

/* Gives how long to leave it at that: more where a look takes long. */
static int64_t look(struct pawli_directory *directory, bool *ret_is_well)
{
    const pawl_clock *clock = directory->config.clock;
    pawl_err err = {.code = PAWL_OK};
    pawl_mono began = clock->mono(clock->user);
    err.code = pawli_link_after(&directory->link, look_at_all(directory, &err));
    tell_call(directory, "endpoints", began, &err);
    *ret_is_well = err.code == PAWL_OK;
    int64_t took_ms = pawli_mono_diff_ms(began, clock->mono(clock->user));
    return took_ms * COST_PART;
}

/* ---------------------------------------------------------------- orders */

static struct order *take_order(struct pawli_directory *directory)
{
    pthread_mutex_lock(&directory->mutex);
    struct order *order = STAILQ_FIRST(&directory->orders);
    if (order != NULL)
        STAILQ_REMOVE_HEAD(&directory->orders, next);
    pthread_mutex_unlock(&directory->mutex);
    return order;
}

static void put_order_back(struct pawli_directory *directory, struct order *order)
{
    pthread_mutex_lock(&directory->mutex);
    STAILQ_INSERT_HEAD(&directory->orders, order, next);
    pthread_mutex_unlock(&directory->mutex);
}

/* The store says that it is disabled, because it has failed for too long. */
static void tell_disabled(struct pawli_directory *directory, const struct order *order)
{
    pawl_event event = {.kind = PAWL_EVENT_ENDPOINT_DISABLED, .level = PAWL_LEVEL_ERROR};
    (void)pawli_text_copy(event.subject, sizeof(event.subject), order->name); /* fits */
    (void)pawli_endpoint_queue(order->name, event.queue);
    (void)pawli_text_copy(event.text, sizeof(event.text), order->reason); /* fits */
    pawli_watch_tell(directory->config.watch, &event);
}

static pawl_code mark(struct pawli_directory *directory, const struct order *order, pawl_err *err)
{
    pawl_endpoint_mark_args args;
    pawl_endpoint_marked marked;
    pawl_endpoint_mark_init(&args);
    args.name = order->name;
    args.by = directory->config.worker;
    args.is_failing = order->is_failing;
    args.disable_after_ms = order->disable_after_ms;
    args.reason = order->reason;
    pawl_code code = pawl_endpoint_mark(directory->link.store, &args, &marked, err);
    if (code == PAWL_OK && order->disable_after_ms != PAWL_FOREVER && !marked.is_enabled)
        tell_disabled(directory, order);
    return code;
}

static pawl_code disable(struct pawli_directory *directory, const struct order *order,
                         pawl_err *err)
{
    const pawl_endpoint_switch args = {
        .name = order->name, .by = directory->config.worker, .reason = order->reason};
    pawl_endpoint *now = &directory->page[0];
    pawl_code code = pawl_endpoint_get(directory->link.store, order->name, now, err);
    if (code != PAWL_OK || now->revision != order->revision ||
        now->created_at.us != order->created_at.us)
        return code; /* the store may have been away for long: that is another matter by now */
    return pawl_endpoint_disable(directory->link.store, &args, err);
}

/* It is done: the next look tells the endpoint, whatever has become of it. */
static void forget(struct pawli_directory *directory, const struct order *order)
{
    struct known *known = find(directory, order->name);
    if (known == NULL)
        return;
    known->marks++;
    known->revision = 0; /* no endpoint has it */
}

/* Carry out what is ordered. False: the store is away; what is left stays. */
static bool carry_out(struct pawli_directory *directory)
{
    const pawl_clock *clock = directory->config.clock;
    struct order *order;
    while ((order = take_order(directory)) != NULL) {
        pawl_mono began = clock->mono(clock->user);
        pawl_err err = {.code = PAWL_OK};
        err.code = ready(directory, &err);
        if (err.code == PAWL_OK)
            err.code = pawli_link_after(&directory->link, order->is_mark
                                                              ? mark(directory, order, &err)
                                                              : disable(directory, order, &err));
        tell_call(directory, order->is_mark ? "endpoint_mark" : "endpoint_disable", began, &err);
        /* Repeated, it changes nothing: so whatever may pass is tried again. */
        if (err.code == PAWL_DOWN || err.code == PAWL_UNKNOWN || err.code == PAWL_BROKEN ||
            err.code == PAWL_NO_MEMORY) {
            put_order_back(directory, order);
            return false;
        }
        forget(directory, order);
        free(order);
    }
    return true;
}

static void give_order(struct pawli_directory *directory, struct order *order)
{
    pthread_mutex_lock(&directory->mutex);
    STAILQ_INSERT_TAIL(&directory->orders, order, next);
    pthread_cond_signal(&directory->told);
    if (directory->waiting != NULL)
        pawl_wake(directory->waiting);
    pthread_mutex_unlock(&directory->mutex);
}

bool pawli_directory_disable(struct pawli_directory *directory, const struct pawli_disabling *what)
{
    struct order *order = calloc(1, sizeof(*order));
    if (order == NULL)
        return false;
    order->revision = what->revision;
    order->created_at = what->created_at;
    (void)pawli_text_copy(order->name, sizeof(order->name), what->name);       /* the same size */
    (void)pawli_text_copy(order->reason, sizeof(order->reason), what->reason); /* cut */
    give_order(directory, order);
    return true;
}

bool pawli_directory_mark(struct pawli_directory *directory, const struct pawli_mark *what)
{
    struct order *order = calloc(1, sizeof(*order));
    if (order == NULL)
        return false;
    order->is_mark = true;
    order->is_failing = what->is_failing;
    order->disable_after_ms = what->disable_after_ms;
    (void)pawli_text_copy(order->name, sizeof(order->name), what->name); /* the same size */
    (void)pawli_text_copy(order->reason, sizeof(order->reason),
                          what->reason != NULL ? what->reason : ""); /* cut */
    give_order(directory, order);
    return true;
}

/* ---------------------------------------------------------------- the thread */

static bool is_ending(struct pawli_directory *directory)
{
    pthread_mutex_lock(&directory->mutex);
    bool is = directory->is_ending;
    pthread_mutex_unlock(&directory->mutex);
    return is;
}

/* Wait for so long, or until there is something to do. */
static void rest(struct pawli_directory *directory, int64_t ms)
{
    struct timespec until = pawli_wait_until(ms);
    int rc = 0;
    pthread_mutex_lock(&directory->mutex);
    while (rc == 0 && !directory->is_ending && STAILQ_EMPTY(&directory->orders))
        rc = pthread_cond_timedwait(&directory->told, &directory->mutex, &until);
    pthread_mutex_unlock(&directory->mutex);
}

/* The same at the store, so that a hint ends it: where there is work, there may be an endpoint. */
static void rest_for_hint(struct pawli_directory *directory, int64_t ms)
{
    pawl_store *store = directory->link.store;
    bool is_hint = false;
    pthread_mutex_lock(&directory->mutex);
    bool is_idle = !directory->is_ending && STAILQ_EMPTY(&directory->orders);
    if (is_idle)
        directory->waiting = store;
    pthread_mutex_unlock(&directory->mutex);
    if (!is_idle)
        return;
    pawl_code code = pawl_wait(store, ms, &is_hint, NULL);
    pthread_mutex_lock(&directory->mutex);
    directory->waiting = NULL;
    pthread_mutex_unlock(&directory->mutex);
    if (pawli_link_after(&directory->link, code) != PAWL_OK) {
        pawli_link_close(&directory->link); /* no hints from here: let the next look find out */
        rest(directory, ms < RETRY_MS ? ms : RETRY_MS);
    }
}

void pawli_directory_run(void *argument)
{
    struct pawli_directory *directory = argument;
    while (!is_ending(directory)) {
        bool is_well = false;
        int64_t pause_ms = look(directory, &is_well);
        is_well = carry_out(directory) && is_well;
        if (!is_well) {
            rest(directory, RETRY_MS);
            continue;
        }
        pause_ms = pause_ms > HINTS_MIN_MS ? pause_ms : HINTS_MIN_MS;
        rest(directory, pause_ms);
        if (pause_ms < directory->config.refresh_ms && directory->link.store != NULL)
            rest_for_hint(directory, directory->config.refresh_ms - pause_ms);
    }
    pawli_link_close(&directory->link);
}

void pawli_directory_end(struct pawli_directory *directory)
{
    pthread_mutex_lock(&directory->mutex);
    directory->is_ending = true;
    pthread_cond_signal(&directory->told);
    if (directory->waiting != NULL)
        pawl_wake(directory->waiting);
    pthread_mutex_unlock(&directory->mutex);
}

/* ---------------------------------------------------------------- life */

struct pawli_directory *pawli_directory_new(const struct pawli_directory_config *config)
{
    struct pawli_directory *directory = calloc(1, sizeof(*directory));
    if (directory == NULL)
        return NULL;
    directory->config = *config;
    directory->link = (struct pawli_link){.opener = config->opener, .role = PAWL_ROLE_DIRECTORY};
    RB_INIT(&directory->known);
    STAILQ_INIT(&directory->orders);
    directory->page = calloc(PAGE_ROWS, sizeof(*directory->page));
    if (directory->page == NULL || pthread_mutex_init(&directory->mutex, NULL) != 0)
        goto no_mutex;
    if (!pawli_cond_init(&directory->told))
        goto no_cond;
    return directory;

no_cond:
    (void)pthread_mutex_destroy(&directory->mutex); /* nobody has it */
no_mutex:
    free(directory->page);
    free(directory);
    return NULL;
}

void pawli_directory_free(struct pawli_directory *directory)
{
    struct known *known;
    struct order *order;
    if (directory == NULL)
        return;
    while ((known = RB_ROOT(&directory->known)) != NULL) {
        (void)RB_REMOVE(known_tree, &directory->known, known);
        free(known);
    }
    while ((order = take_order(directory)) != NULL)
        free(order);
    pawli_link_close(&directory->link);
    (void)pthread_cond_destroy(&directory->told); /* nobody waits: its thread has ended */
    (void)pthread_mutex_destroy(&directory->mutex);
    free(directory->page);
    free(directory);
}

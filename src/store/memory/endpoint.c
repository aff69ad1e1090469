/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * endpoint.c - endpoints in memory, and publishing to them.
 * Owns:  the endpoints and their secrets; which of them an event goes to.
 * Never: changes a job that exists; gives a secret out but by `credentials`.
 */
#include "store/memory/memory.h"

#include "base/error.h"
#include "base/text.h"
#include "core/topic.h"
#include "store/endpoint.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- records */

struct endpoint *pawli_memory_endpoint_find(pawl_memory *memory, const char *name)
{
    struct endpoint *at = RB_ROOT(&memory->endpoints);
    while (at != NULL) {
        int order = strcmp(name, at->row.name);
        if (order == 0)
            break;
        at = order < 0 ? RB_LEFT(at, in_endpoints) : RB_RIGHT(at, in_endpoints);
    }
    return at;
}

static void free_endpoint(pawl_memory *memory, struct endpoint *endpoint)
{
    RB_REMOVE(pawli_endpoint_tree, &memory->endpoints, endpoint);
    memory->endpoints_count--;
    pawl_endpoint_credentials_clear(&endpoint->credentials);
    free(endpoint);
}

void pawli_memory_endpoints_free(pawl_memory *memory)
{
    struct endpoint *endpoint;
    while ((endpoint = RB_MIN(pawli_endpoint_tree, &memory->endpoints)) != NULL)
        free_endpoint(memory, endpoint);
}

/* Copy a text where one is given: the front has checked that it fits. */
static void write_text(char *to, size_t to_size, const char *text)
{
    if (text != NULL)
        (void)pawli_text_copy(to, to_size, text);
}

/* Write what settings say; what they leave out stays. */
static void write_settings(struct endpoint *endpoint, const pawl_endpoint_settings *settings,
                           pawl_wall now)
{
    pawl_endpoint *row = &endpoint->row;
    char *headers = endpoint->credentials.headers;
    write_text(row->url, sizeof(row->url), settings->url);
    write_text(row->topics, sizeof(row->topics), settings->topics);
    write_text(row->fail_statuses, sizeof(row->fail_statuses), settings->fail_statuses);
    write_text(headers, sizeof(endpoint->credentials.headers), settings->headers);
    pawli_endpoint_header_names(headers, row->header_names);
    if (settings->timeout_ms != PAWL_DEFAULT)
        row->timeout_ms = settings->timeout_ms;
    if (settings->rate_per_minute != PAWL_DEFAULT)
        row->rate_per_minute = settings->rate_per_minute;
    if (settings->ordering != PAWL_ORDERING_DEFAULT)
        row->ordering = settings->ordering;
    if (settings->format != PAWL_FORMAT_DEFAULT)
        row->format = settings->format;
    row->revision++;
    row->changed_at = now;
}

/* The queue that an endpoint has: it is set, and so it stays. */
static struct queue *queue_of(pawl_memory *memory, const struct endpoint *endpoint)
{
    struct queue *queue = pawli_memory_queue_find(memory, endpoint->row.queue);
    assert(queue != NULL);
    return queue;
}

static bool has_jobs(const struct queue *queue)
{
    return queue->counts[PAWL_READY] > 0 || queue->counts[PAWL_IN_FLIGHT] > 0;
}

/* ---- adding and changing */

/* Under the lock. Makes the queue as well. */
static pawl_code add_endpoint(pawl_memory *memory, struct endpoint *endpoint,
                              const pawl_endpoint_settings *settings, pawl_err *err)
{
    const char *name = endpoint->row.name;
    if (pawli_memory_endpoint_find(memory, name) != NULL)
        return pawli_endpoint_exists(name, err);
    if (memory->endpoints_count >= PAWL_ENDPOINTS_MAX)
        return pawli_endpoints_full(err);
    struct queue *queue = pawli_memory_queue_need(memory, endpoint->row.queue);
    if (queue == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    if (has_jobs(queue))
        return pawli_endpoint_has_jobs(name, err);
    pawl_queue_settings_init(&queue->settings);
    pawli_endpoint_queue_settings(settings, settings->timeout_ms, &queue->settings);
    queue->is_set = true;
    RB_INSERT(pawli_endpoint_tree, &memory->endpoints, endpoint);
    memory->endpoints_count++;
    return PAWL_OK;
}

static pawl_code add(pawl_store *store, const pawl_endpoint_add_args *args, pawl_err *err)
{
    struct endpoint *endpoint = calloc(1, sizeof(*endpoint));
    if (endpoint == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    pawl_endpoint_credentials *credentials = &endpoint->credentials;
    write_text(endpoint->row.name, sizeof(endpoint->row.name), args->name);
    (void)pawli_endpoint_queue(args->name, endpoint->row.queue);
    write_text(credentials->secrets[0].text, sizeof(credentials->secrets[0].text), args->secret);
    credentials->secrets_count = 1;
    endpoint->row.is_enabled = true;

    pawl_wall now;
    pawl_code rc = PAWL_DOWN;
    pawl_memory *memory = pawli_memory_enter(store, &now, err);
    if (memory != NULL) {
        write_settings(endpoint, args->settings, now);
        endpoint->row.created_at = now;
        rc = add_endpoint(memory, endpoint, args->settings, err);
        pawli_memory_leave(memory);
    }
    if (rc != PAWL_OK) {
        pawl_endpoint_credentials_clear(credentials);
        free(endpoint);
    }
    return rc;
}

/* Enter for a change of one endpoint. NULL, without the lock: *ret_rc tells why. */
static struct endpoint *enter(pawl_store *store, const char *name, pawl_wall *ret_now,
                              pawl_code *ret_rc, pawl_err *err)
{
    pawl_memory *memory = pawli_memory_enter(store, ret_now, err);
    *ret_rc = PAWL_DOWN;
    if (memory == NULL)
        return NULL;
    struct endpoint *endpoint = pawli_memory_endpoint_find(memory, name);
    if (endpoint != NULL)
        return endpoint;
    pawli_memory_leave(memory);
    *ret_rc = pawli_endpoint_gone(name, err);
    return NULL;
}

static pawl_memory *memory_of(pawl_store *store)
{
    return ((struct handle *)store)->memory;
}

static pawl_code set(pawl_store *store, const char *name, const pawl_endpoint_settings *settings,
                     pawl_err *err)
{
    pawl_wall now;
    pawl_code rc;
    struct endpoint *endpoint = enter(store, name, &now, &rc, err);
    if (endpoint == NULL)
        return rc;
    pawl_memory *memory = memory_of(store);
    write_settings(endpoint, settings, now);
    pawli_endpoint_queue_settings(settings, endpoint->row.timeout_ms,
                                  &queue_of(memory, endpoint)->settings);
    pawli_memory_hint(memory); /* more may be in flight now */
    pawli_memory_leave(memory);
    return PAWL_OK;
}

static pawl_code rotate(pawl_store *store, const pawl_endpoint_rotate_args *args, pawl_err *err)
{
    pawl_wall now;
    pawl_code rc;
    struct endpoint *endpoint = enter(store, args->name, &now, &rc, err);
    if (endpoint == NULL)
        return rc;
    rc = pawli_endpoint_rotate(&endpoint->credentials, args, now, err);
    if (rc == PAWL_OK) {
        endpoint->row.revision++;
        endpoint->row.changed_at = now;
    }
    pawli_memory_leave(memory_of(store));
    return rc;
}

/* Under the lock. */
static void turn_one(pawl_memory *memory, struct endpoint *endpoint,
                     const struct pawli_endpoint_turn *turn, pawl_wall now)
{
    pawl_endpoint *row = &endpoint->row;
    if (row->is_enabled == turn->is_enabled)
        return;
    row->is_enabled = turn->is_enabled;
    row->switched_at = now;
    row->changed_at = now;
    row->revision++;
    write_text(row->switched_by, sizeof(row->switched_by), turn->args->by);
    write_text(row->reason, sizeof(row->reason),
               turn->args->reason != NULL ? turn->args->reason : "");
    queue_of(memory, endpoint)->settings.is_paused = !turn->is_enabled;
    if (turn->is_enabled) {
        row->failing_since.us = 0;
        pawli_memory_hint(memory);
    }
}

static pawl_code turn(pawl_store *store, const struct pawli_endpoint_turn *turn, pawl_err *err)
{
    pawl_wall now;
    pawl_code rc;
    struct endpoint *endpoint = enter(store, turn->args->name, &now, &rc, err);
    if (endpoint == NULL)
        return rc;
    turn_one(memory_of(store), endpoint, turn, now);
    pawli_memory_leave(memory_of(store));
    return PAWL_OK;
}

static pawl_code mark(pawl_store *store, const pawl_endpoint_mark_args *args,
                      pawl_endpoint_marked *ret_marked, pawl_err *err)
{
    pawl_wall now;
    pawl_code rc;
    struct endpoint *endpoint = enter(store, args->name, &now, &rc, err);
    if (endpoint == NULL)
        return rc;
    pawl_endpoint *row = &endpoint->row;
    pawli_endpoint_mark(row, args, now);
    const pawl_endpoint_switch off = {.name = args->name, .by = args->by, .reason = args->reason};
    if (pawli_endpoint_is_hopeless(row, args, now))
        turn_one(memory_of(store), endpoint,
                 &(struct pawli_endpoint_turn){.args = &off, .is_enabled = false}, now);
    *ret_marked = (pawl_endpoint_marked){row->failing_since, row->is_enabled};
    pawli_memory_leave(memory_of(store));
    return PAWL_OK;
}

static pawl_code remove_endpoint(pawl_store *store, const char *name, pawl_err *err)
{
    pawl_wall now;
    pawl_code rc;
    struct endpoint *endpoint = enter(store, name, &now, &rc, err);
    if (endpoint == NULL)
        return rc;
    pawl_memory *memory = memory_of(store);
    struct queue *queue = queue_of(memory, endpoint);
    if (has_jobs(queue)) {
        rc = pawli_endpoint_has_jobs(name, err);
    } else {
        rc = PAWL_OK;
        free_endpoint(memory, endpoint);
        pawl_queue_settings_init(&queue->settings);
        queue->is_set = false;
        pawli_memory_queue_drop(memory, queue);
    }
    pawli_memory_leave(memory);
    return rc;
}

/* ---- looking */

static void give(pawl_memory *memory, const struct endpoint *endpoint, pawl_wall now,
                 pawl_endpoint *ret_endpoint)
{
    pawl_endpoint_credentials credentials = endpoint->credentials;
    pawli_endpoint_secrets_prune(&credentials, now);
    *ret_endpoint = endpoint->row;
    ret_endpoint->secrets_count = (int64_t)credentials.secrets_count;
    ret_endpoint->queue_settings = queue_of(memory, endpoint)->settings;
    pawl_endpoint_credentials_clear(&credentials);
}

static pawl_code get(pawl_store *store, const char *name, pawl_endpoint *ret_endpoint,
                     pawl_err *err)
{
    pawl_wall now;
    pawl_code rc;
    struct endpoint *endpoint = enter(store, name, &now, &rc, err);
    if (endpoint == NULL)
        return rc;
    give(memory_of(store), endpoint, now, ret_endpoint);
    pawli_memory_leave(memory_of(store));
    return PAWL_OK;
}

static pawl_code list(pawl_store *store, const char *after, pawl_endpoint *ret_rows,
                      size_t rows_max, size_t *ret_count, pawl_err *err)
{
    pawl_wall now;
    pawl_memory *memory = pawli_memory_look(store, &now, err);
    if (memory == NULL)
        return PAWL_DOWN;
    size_t count = 0;
    struct endpoint *endpoint;
    RB_FOREACH(endpoint, pawli_endpoint_tree, &memory->endpoints)
    {
        if (after != NULL && strcmp(endpoint->row.name, after) <= 0)
            continue;
        if (count == rows_max)
            break;
        give(memory, endpoint, now, &ret_rows[count++]);
    }
    pawli_memory_leave(memory);
    *ret_count = count;
    return PAWL_OK;
}

static pawl_code credentials(pawl_store *store, const char *name,
                             pawl_endpoint_credentials *ret_credentials, pawl_err *err)
{
    pawl_wall now;
    pawl_code rc;
    struct endpoint *endpoint = enter(store, name, &now, &rc, err);
    if (endpoint == NULL)
        return rc;
    *ret_credentials = endpoint->credentials;
    ret_credentials->revision = endpoint->row.revision;
    ret_credentials->created_at = endpoint->row.created_at;
    pawli_memory_leave(memory_of(store));
    pawli_endpoint_secrets_prune(ret_credentials, now);
    return PAWL_OK;
}

/* ---- publishing */

/* The jobs that a call comes to. */
struct jobs {
    pawl_enqueue_row *rows;
    size_t count;
    size_t room;
};

static pawl_code add_job(struct jobs *jobs, const pawl_memory *memory,
                         const struct endpoint *endpoint, const struct pawli_publish_event *event,
                         pawl_err *err)
{
    if (jobs->count == PAWL_BATCH_MAX)
        return pawli_publish_too_many(err);
    if (jobs->count == jobs->room) {
        size_t room = jobs->room == 0 ? 16 : 2 * jobs->room;
        pawl_enqueue_row *more = realloc(jobs->rows, room * sizeof(*more));
        if (more == NULL)
            return pawli_fail_plain(err, PAWL_NO_MEMORY);
        jobs->rows = more;
        jobs->room = room;
    }
    pawl_enqueue_row *row = &jobs->rows[jobs->count++];
    pawl_enqueue_init(row);
    row->queue = endpoint->row.queue;
    row->payload = event->payload;
    row->payload_len = event->payload_len;
    row->headers = event->headers;
    if (endpoint->row.ordering == PAWL_ORDERING_KEY)
        row->ordering_key = event->ordering_key;
    row->id = pawli_event_job_id(event, row, memory->shards);
    return PAWL_OK;
}

/* Find who wants an event; under the lock. */
static pawl_code match(pawl_memory *memory, const struct pawli_publish_event *event,
                       struct jobs *jobs, int64_t *ret_endpoints, pawl_err *err)
{
    struct endpoint *endpoint;
    *ret_endpoints = 0;
    RB_FOREACH(endpoint, pawli_endpoint_tree, &memory->endpoints)
    {
        if (!endpoint->row.is_enabled || !pawli_topics_match(endpoint->row.topics, event->type))
            continue;
        if (++*ret_endpoints > PAWL_PUBLISH_ENDPOINTS_MAX)
            return pawli_publish_too_wide(event->type, err);
        pawl_code rc = add_job(jobs, memory, endpoint, event, err);
        if (rc != PAWL_OK)
            return rc;
    }
    return PAWL_OK;
}

struct publish {
    const struct pawli_publish_event *events;
    size_t events_count;
    int64_t *endpoints; /* that each event goes to */
};

/* Under the lock. *ret_enqueued is the caller's to free. */
static pawl_code publish_all(pawl_memory *memory, pawl_wall now, const struct publish *publish,
                             pawl_enqueued **ret_enqueued, pawl_err *err)
{
    struct jobs jobs = {.rows = NULL};
    pawl_code rc = PAWL_OK;
    for (size_t i = 0; i < publish->events_count && rc == PAWL_OK; i++)
        rc = match(memory, &publish->events[i], &jobs, &publish->endpoints[i], err);
    struct kept_event **kept = pawli_memory_events_copy(publish->events, publish->events_count,
                                                        now);
    if (rc == PAWL_OK && kept == NULL)
        rc = pawli_fail_plain(err, PAWL_NO_MEMORY);
    if (rc == PAWL_OK && jobs.count > 0) {
        *ret_enqueued = calloc(jobs.count, sizeof(**ret_enqueued));
        struct memory_put put = {jobs.rows, jobs.count, *ret_enqueued};
        rc = *ret_enqueued != NULL ? pawli_memory_put(memory, now, &put, err)
                                   : pawli_fail_plain(err, PAWL_NO_MEMORY);
    }
    if (rc == PAWL_OK)
        pawli_memory_events_keep(memory, kept, publish->events_count);
    pawli_memory_events_drop(kept, publish->events_count);
    free(jobs.rows);
    return rc;
}

static pawl_code publish(pawl_store *store, const struct pawli_publish_event *events,
                         size_t events_count, pawl_published *ret_results, pawl_err *err)
{
    pawl_enqueued *enqueued = NULL;
    struct publish publish = {events, events_count,
                              calloc(events_count, sizeof(*publish.endpoints))};
    if (publish.endpoints == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    pawl_wall now;
    pawl_code rc = PAWL_DOWN;
    pawl_memory *memory = pawli_memory_enter(store, &now, err);
    if (memory != NULL) {
        rc = publish_all(memory, now, &publish, &enqueued, err);
        pawli_memory_leave(memory);
    }
    const pawl_enqueued *at = enqueued;
    for (size_t i = 0; i < events_count && rc == PAWL_OK; i++) {
        int64_t made = 0;
        for (int64_t j = 0; j < publish.endpoints[i]; j++)
            made += (at++)->code == PAWL_OK;
        pawli_published(&events[i], publish.endpoints[i], made, &ret_results[i]);
    }
    free(enqueued);
    free(publish.endpoints);
    return rc;
}

const struct pawli_endpoint_ops pawli_memory_endpoint_ops = {
    .add = add,
    .set = set,
    .rotate = rotate,
    .turn = turn,
    .remove = remove_endpoint,
    .get = get,
    .list = list,
    .credentials = credentials,
    .publish = publish,
    .mark = mark,
    .replay = pawli_memory_replay,
};

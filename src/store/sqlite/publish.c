/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * publish.c - publishing in a file of SQLite.
 * Owns:  which endpoints an event goes to, all of them known before the first job is written.
 * Never: changes a job that exists; leaves a part of a call behind.
 */
#include "store/endpoint.h"

#include "base/error.h"
#include "core/event.h"
#include "store/sqlite/sqlite.h"

#include <stdlib.h>
#include <string.h>

/* A job that an event becomes. */
struct wanted {
    size_t event;
    bool is_ordered;
    char queue[PAWL_NAME_MAX + 1];
};

struct publish {
    const struct pawli_publish_event *events;
    size_t events_count;
    pawl_published *results; /* a pass may run twice: they stay here until it was good */
    struct wanted *wanted;
    size_t wanted_count;
    size_t wanted_room;
    size_t last_first; /* where those begin that want the event before */
    pawl_code code;    /* where the pass is good */
    pawl_err err;
};

/* Room for one more. NULL: no memory. */
static struct wanted *add_wanted(struct publish *publish)
{
    if (publish->wanted_count == publish->wanted_room) {
        size_t room = publish->wanted_room == 0 ? 16 : 2 * publish->wanted_room;
        struct wanted *more = realloc(publish->wanted, room * sizeof(*more));
        if (more == NULL)
            return NULL;
        publish->wanted = more;
        publish->wanted_room = room;
    }
    return &publish->wanted[publish->wanted_count++];
}

/* Read one endpoint that wants an event. */
static bool read_wanted(struct query *query, struct publish *publish, size_t event)
{
    char name[PAWL_ENDPOINT_NAME_MAX + 1];
    struct wanted *wanted = add_wanted(publish);
    if (wanted == NULL)
        return pawli_sqlite_spoil(query->pass, SQLITE_NOMEM);
    if (!pawli_sqlite_text(query, name, sizeof(name)))
        return pawli_sqlite_spoil(query->pass, SQLITE_CORRUPT);
    wanted->event = event;
    wanted->is_ordered = pawli_sqlite_int(query) == PAWL_ORDERING_KEY;
    (void)pawli_endpoint_queue(name, wanted->queue);
    return true;
}

static bool find_wanting(struct pass *pass, struct publish *publish, size_t event)
{
    struct query query = pawli_sqlite_query(pass, S_EP_WANTING);
    pawli_sqlite_put_text(&query, publish->events[event].type);
    pawli_sqlite_put_int(&query, PAWL_PUBLISH_ENDPOINTS_MAX + 1);
    while (pawli_sqlite_row(&query) && read_wanted(&query, publish, event))
        continue;
    return pawli_sqlite_end(&query);
}

/* Whoever wants the one before wants this one of the same type. */
static bool copy_wanting(struct pass *pass, struct publish *publish, size_t event)
{
    size_t end = publish->wanted_count;
    for (size_t i = publish->last_first; i < end; i++) {
        struct wanted *wanted = add_wanted(publish);
        if (wanted == NULL)
            return pawli_sqlite_spoil(pass, SQLITE_NOMEM);
        *wanted = publish->wanted[i];
        wanted->event = event;
    }
    return true;
}

/* Find who wants an event. False: it failed; too many are an answer. */
static bool match(struct pass *pass, struct publish *publish, size_t event)
{
    const char *type = publish->events[event].type;
    size_t before = publish->wanted_count;
    bool is_same = event > 0 && strcmp(type, publish->events[event - 1].type) == 0;
    if (!(is_same ? copy_wanting(pass, publish, event) : find_wanting(pass, publish, event)))
        return false;
    publish->last_first = before;
    if (publish->wanted_count - before > PAWL_PUBLISH_ENDPOINTS_MAX)
        publish->code = pawli_publish_too_wide(type, &publish->err);
    else if (publish->wanted_count > PAWL_BATCH_MAX)
        publish->code = pawli_publish_too_many(&publish->err);
    return true;
}

static bool put(struct pass *pass, struct publish *publish, const struct wanted *wanted)
{
    const struct pawli_publish_event *event = &publish->events[wanted->event];
    pawl_published *result = &publish->results[wanted->event];
    pawl_enqueue_row row;
    pawl_enqueued enqueued;
    pawl_enqueue_init(&row);
    row.queue = wanted->queue;
    row.payload = event->payload;
    row.payload_len = event->payload_len;
    row.headers = event->headers;
    row.ordering_key = wanted->is_ordered ? event->ordering_key : NULL;
    row.id = pawli_event_job_id(event, &row, 1);
    if (!pawli_sqlite_put(pass, &row, &enqueued))
        return false;
    result->endpoints++;
    result->jobs += enqueued.code == PAWL_OK;
    return true;
}

static bool publish_all(struct pass *pass, void *args)
{
    struct publish *publish = args;
    publish->code = PAWL_OK;
    publish->wanted_count = 0;
    memset(publish->results, 0, publish->events_count * sizeof(publish->results[0]));
    for (size_t i = 0; i < publish->events_count && publish->code == PAWL_OK; i++)
        if (!match(pass, publish, i))
            return false;
    for (size_t i = 0; i < publish->wanted_count && publish->code == PAWL_OK; i++)
        if (!put(pass, publish, &publish->wanted[i]))
            return false;
    for (size_t i = 0; i < publish->events_count && publish->code == PAWL_OK; i++)
        if (publish->events[i].keep_ms > 0 && !pawli_sqlite_event_keep(pass, &publish->events[i]))
            return false;
    return true;
}

pawl_code pawli_sqlite_publish(pawl_store *store, const struct pawli_publish_event *events,
                               size_t events_count, pawl_published *ret_results, pawl_err *err)
{
    struct publish publish = {.events = events,
                              .events_count = events_count,
                              .results = calloc(events_count, sizeof(*publish.results))};
    struct write write = {.run = publish_all, .args = &publish, .rows_count = events_count};
    if (publish.results == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    for (size_t i = 0; i < events_count; i++)
        write.payload_bytes += 2 * (events[i].payload_len + strlen(events[i].headers));
    pawl_code rc = pawli_sqlite_write(store, &write, err);
    if (rc == PAWL_OK && publish.code != PAWL_OK) {
        rc = publish.code;
        if (err != NULL)
            *err = publish.err;
    }
    for (size_t i = 0; i < events_count && rc == PAWL_OK; i++)
        pawli_published(&events[i], publish.results[i].endpoints, publish.results[i].jobs,
                        &ret_results[i]);
    free(publish.wanted);
    free(publish.results);
    return rc;
}

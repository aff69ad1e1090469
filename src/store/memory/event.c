/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * event.c - events that are kept in memory, to be replayed.
 * Owns:  the events, in the order of their publishing, and how long they stay.
 * Never: changes a job that exists; keeps two events of one id.
 */
#include "store/memory/memory.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "store/endpoint.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- keeping */

static void free_event(struct kept_event *event)
{
    if (event == NULL)
        return;
    free(event->payload);
    free(event->headers);
    free(event->ordering_key);
    free(event);
}

/* NULL in *ret_copy where there is none. False: no memory. */
static bool copy_text(const char *text, char **ret_copy)
{
    *ret_copy = NULL;
    if (text == NULL)
        return true;
    size_t size = strlen(text) + 1;
    *ret_copy = malloc(size);
    if (*ret_copy != NULL)
        memcpy(*ret_copy, text, size);
    return *ret_copy != NULL;
}

/* NULL: no memory. */
static struct kept_event *copy_event(const struct pawli_publish_event *from, pawl_wall now)
{
    struct kept_event *event = calloc(1, sizeof(*event));
    if (event == NULL)
        return NULL;
    (void)pawli_text_copy(event->id, sizeof(event->id), from->id);       /* the same size */
    (void)pawli_text_copy(event->type, sizeof(event->type), from->type); /* checked: it fits */
    event->is_minted = from->is_minted;
    event->place.at = now;
    event->keep_until = pawli_wall_add_ms(now, from->keep_ms);
    event->payload_len = from->payload_len;
    event->payload = malloc(from->payload_len + 1); /* an empty one, too */
    bool is_whole = event->payload != NULL && copy_text(from->headers, &event->headers) &&
                    copy_text(from->ordering_key, &event->ordering_key);
    if (!is_whole) {
        free_event(event);
        return NULL;
    }
    if (from->payload_len > 0)
        memcpy(event->payload, from->payload, from->payload_len);
    return event;
}

void pawli_memory_events_drop(struct kept_event **events, size_t events_count)
{
    for (size_t i = 0; events != NULL && i < events_count; i++)
        free_event(events[i]);
    free(events);
}

struct kept_event **pawli_memory_events_copy(const struct pawli_publish_event *events,
                                             size_t events_count, pawl_wall now)
{
    struct kept_event **copies = calloc(events_count, sizeof(struct kept_event *));
    for (size_t i = 0; copies != NULL && i < events_count; i++) {
        if (events[i].keep_ms == 0)
            continue;
        copies[i] = copy_event(&events[i], now);
        if (copies[i] == NULL) {
            pawli_memory_events_drop(copies, i);
            return NULL;
        }
    }
    return copies;
}

static struct kept_event *find(pawl_memory *memory, const char *id)
{
    struct kept_event key;
    (void)pawli_text_copy(key.id, sizeof(key.id), id); /* checked: it fits */
    return RB_FIND(pawli_event_id_tree, &memory->events_by_id, &key);
}

void pawli_memory_events_keep(pawl_memory *memory, struct kept_event **events, size_t events_count)
{
    for (size_t i = 0; i < events_count; i++) {
        struct kept_event *event = events[i];
        if (event == NULL || find(memory, event->id) != NULL)
            continue; /* published before: the first one stays, and this one is dropped */
        event->place.seq = ++memory->position;
        (void)RB_INSERT(pawli_event_id_tree, &memory->events_by_id, event);
        (void)RB_INSERT(pawli_event_tree, &memory->events, event);
        (void)RB_INSERT(pawli_event_keep_tree, &memory->events_by_keep, event);
        events[i] = NULL;
    }
}

static void forget(pawl_memory *memory, struct kept_event *event)
{
    RB_REMOVE(pawli_event_id_tree, &memory->events_by_id, event);
    RB_REMOVE(pawli_event_tree, &memory->events, event);
    RB_REMOVE(pawli_event_keep_tree, &memory->events_by_keep, event);
    free_event(event);
}

size_t pawli_memory_events_prune(pawl_memory *memory, size_t events_max, pawl_wall now)
{
    size_t count = 0;
    for (; count < events_max; count++) {
        struct kept_event *oldest = RB_MIN(pawli_event_keep_tree, &memory->events_by_keep);
        if (oldest == NULL || !pawli_wall_is_before(oldest->keep_until, now))
            break;
        forget(memory, oldest);
    }
    return count;
}

void pawli_memory_events_free(pawl_memory *memory)
{
    struct kept_event *event;
    while ((event = RB_MIN(pawli_event_tree, &memory->events)) != NULL)
        forget(memory, event);
}

/* ---- replaying */

/* The rows of one call, and the headers of each. */
struct replay {
    struct pawli_replay_target target;
    pawl_enqueue_row *rows;
    struct pawli_buffer *headers;
    size_t count;
    size_t room;
    size_t bytes;
    pawl_replayed result;
};

static struct kept_event *first_after(pawl_memory *memory, pawl_replay_place place)
{
    const struct kept_event key = {.place = {place.at, place.seq}};
    struct kept_event *event = RB_NFIND(pawli_event_tree, &memory->events,
                                        (struct kept_event *)&key);
    if (event != NULL && event->place.at.us == place.at.us && event->place.seq == place.seq)
        event = RB_NEXT(pawli_event_tree, &memory->events, event);
    return event;
}

static pawl_code add(struct replay *replay, const struct kept_event *event, pawl_err *err)
{
    const struct pawli_kept_event kept = {.place = event->place,
                                          .id = event->id,
                                          .type = event->type,
                                          .is_minted = event->is_minted,
                                          .payload = event->payload,
                                          .payload_len = event->payload_len,
                                          .ordering_key = event->ordering_key,
                                          .headers = event->headers};
    if (!pawli_replay_wants(&replay->target, &kept))
        return PAWL_OK;
    assert(replay->count < replay->room);
    size_t at = replay->count++;
    pawl_code rc = pawli_replay_row(&replay->target, &kept, &replay->headers[at], &replay->rows[at],
                                    err);
    replay->bytes += event->payload_len + replay->headers[at].len;
    replay->result.events++;
    return rc;
}

/* Under the lock: what the call is about. */
static pawl_code collect(pawl_memory *memory, struct replay *replay, pawl_err *err)
{
    const pawl_replay_args *args = replay->target.args;
    pawl_code rc = PAWL_OK;
    if (args->event != NULL) {
        const struct kept_event *event = find(memory, args->event);
        return event != NULL ? add(replay, event, err) : pawli_event_gone(args->event, err);
    }
    struct kept_event *event = first_after(memory, pawli_replay_begin(args));
    for (int64_t seen = 0; rc == PAWL_OK && event != NULL; seen++) {
        if (args->until.us != 0 && !pawli_wall_is_before(event->place.at, args->until))
            break;
        if (seen == args->events_max || replay->bytes >= PAWL_PUBLISH_BYTES_MAX) {
            replay->result.is_more = true;
            break;
        }
        rc = add(replay, event, err);
        replay->result.next = event->place;
        event = RB_NEXT(pawli_event_tree, &memory->events, event);
    }
    return rc;
}

static pawl_code put_all(pawl_memory *memory, struct replay *replay, pawl_wall now, pawl_err *err)
{
    if (replay->count == 0)
        return PAWL_OK;
    pawl_enqueued *enqueued = calloc(replay->count, sizeof(*enqueued));
    struct memory_put put = {replay->rows, replay->count, enqueued};
    pawl_code rc = enqueued != NULL ? pawli_memory_put(memory, now, &put, err)
                                    : pawli_fail_plain(err, PAWL_NO_MEMORY);
    for (size_t i = 0; i < replay->count && rc == PAWL_OK; i++)
        replay->result.jobs += enqueued[i].code == PAWL_OK;
    free(enqueued);
    return rc;
}

/* Under the lock. */
static pawl_code replay_all(pawl_memory *memory, struct replay *replay, pawl_wall now,
                            pawl_err *err)
{
    const struct endpoint *endpoint = pawli_memory_endpoint_find(memory, replay->target.args->name);
    if (endpoint == NULL)
        return pawli_endpoint_gone(replay->target.args->name, err);
    replay->target.topics = endpoint->row.topics;
    replay->target.is_ordered = endpoint->row.ordering == PAWL_ORDERING_KEY;
    replay->target.shards = memory->shards;
    memcpy(replay->target.queue, endpoint->row.queue, sizeof(replay->target.queue));
    pawl_code rc = collect(memory, replay, err);
    return rc == PAWL_OK ? put_all(memory, replay, now, err) : rc;
}

pawl_code pawli_memory_replay(pawl_store *store, const pawl_replay_args *args,
                              pawl_replayed *ret_replayed, pawl_err *err)
{
    size_t room = args->event != NULL ? 1 : (size_t)args->events_max;
    struct replay replay = {.target = {.args = args},
                            .rows = calloc(room, sizeof(*replay.rows)),
                            .headers = calloc(room, sizeof(*replay.headers)),
                            .room = room};
    pawl_wall now;
    pawl_memory *memory = NULL;
    pawl_code rc = PAWL_OK;
    if (replay.rows == NULL || replay.headers == NULL)
        rc = pawli_fail_plain(err, PAWL_NO_MEMORY);
    else if ((memory = pawli_memory_enter(store, &now, err)) == NULL)
        rc = PAWL_DOWN;
    if (memory != NULL) {
        rc = replay_all(memory, &replay, now, err);
        pawli_memory_leave(memory);
    }
    if (rc == PAWL_OK)
        *ret_replayed = replay.result;
    for (size_t i = 0; replay.headers != NULL && i < replay.count; i++)
        pawli_buffer_clear(&replay.headers[i]);
    free(replay.headers);
    free(replay.rows);
    return rc;
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * event.c - events that are kept in a file of SQLite, to be replayed.
 * Owns:  how they are written, read again and forgotten.
 * Never: changes a job that exists; keeps two events of one id; holds two payloads at once.
 */
#include "store/endpoint.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "core/event.h"
#include "core/headers.h"
#include "store/sqlite/sqlite.h"

#include <string.h>

bool pawli_sqlite_event_keep(struct pass *pass, const struct pawli_publish_event *event)
{
    struct query query = pawli_sqlite_query(pass, S_EV_KEEP);
    pawli_sqlite_put_text(&query, event->id);
    pawli_sqlite_put_int(&query, event->is_minted);
    pawli_sqlite_put_text(&query, event->type);
    pawli_sqlite_put_text(&query, event->ordering_key);
    pawli_sqlite_put_int(&query, pass->now.us);
    pawli_sqlite_put_int(&query, pawli_wall_add_ms(pass->now, event->keep_ms).us);
    pawli_sqlite_put_text(&query, event->headers);
    pawli_sqlite_put_bytes(&query, event->payload_len > 0 ? event->payload : "",
                           event->payload_len);
    return pawli_sqlite_change_rows(&query, -1); /* none where it was published before */
}

bool pawli_sqlite_events_prune(struct pass *pass, size_t events_max, size_t *count)
{
    if (events_max == 0)
        return true;
    struct query query = pawli_sqlite_query(pass, S_EV_PRUNE);
    pawli_sqlite_put_int(&query, pass->now.us);
    pawli_sqlite_put_int(&query, (int64_t)events_max);
    if (!pawli_sqlite_change_rows(&query, -1))
        return false;
    query = pawli_sqlite_query(pass, S_EV_PRUNED);
    if (pawli_sqlite_row(&query))
        *count += (size_t)pawli_sqlite_int(&query);
    return pawli_sqlite_end(&query);
}

/* ---- replaying */

struct replay {
    struct pawli_replay_target target;
    pawl_endpoint endpoint;
    struct pawli_buffer headers; /* of its job */
    int64_t bytes;               /* of what was made */
    pawl_replayed result;
    pawl_code code; /* where the pass is good */
    pawl_err err;
};

/* The texts of an event, as they are read. */
struct texts {
    char id[PAWL_EVENT_ID_MAX + 1];
    char type[PAWL_ENDPOINT_TOPIC_MAX + 1];
    char ordering_key[PAWL_ORDERING_KEY_MAX + 1];
    char headers[PAWL_HEADERS_LEN_MAX + 1];
};

/* Read the row of a query; the payload holds until its next row. */
static bool read_event(struct query *query, struct texts *texts, struct pawli_kept_event *ret_event)
{
    *ret_event = (struct pawli_kept_event){.id = texts->id, .type = texts->type};
    ret_event->place.at.us = pawli_sqlite_int(query);
    ret_event->place.seq = pawli_sqlite_int(query);
    bool is_good = pawli_sqlite_text(query, texts->id, sizeof(texts->id));
    is_good = pawli_sqlite_text(query, texts->type, sizeof(texts->type)) && is_good;
    ret_event->is_minted = pawli_sqlite_int(query) != 0;
    is_good = pawli_sqlite_text(query, texts->ordering_key, sizeof(texts->ordering_key)) && is_good;
    is_good = pawli_sqlite_text(query, texts->headers, sizeof(texts->headers)) && is_good;
    ret_event->payload = pawli_sqlite_blob(query, &ret_event->payload_len);
    ret_event->ordering_key = texts->ordering_key[0] != '\0' ? texts->ordering_key : NULL;
    ret_event->headers = texts->headers;
    is_good = is_good && pawli_headers_check(texts->headers, NULL) == PAWL_OK &&
              pawli_event_id_check(texts->id, NULL) == PAWL_OK;
    return is_good || pawli_sqlite_spoil(query->pass, SQLITE_CORRUPT);
}

static bool put(struct pass *pass, struct replay *replay, const struct pawli_kept_event *event)
{
    pawl_enqueue_row row;
    pawl_enqueued enqueued;
    if (!pawli_replay_wants(&replay->target, event))
        return true;
    if (pawli_replay_row(&replay->target, event, &replay->headers, &row, NULL) != PAWL_OK)
        return pawli_sqlite_spoil(pass, SQLITE_NOMEM);
    if (!pawli_sqlite_put(pass, &row, &enqueued))
        return false;
    replay->bytes += (int64_t)(event->payload_len + replay->headers.len);
    replay->result.events++;
    replay->result.jobs += enqueued.code == PAWL_OK;
    return true;
}

static bool replay_one(struct pass *pass, struct replay *replay)
{
    const char *id = replay->target.args->event;
    struct texts texts;
    struct pawli_kept_event event;
    struct query query = pawli_sqlite_query(pass, S_EV_GET);
    pawli_sqlite_put_text(&query, id);
    if (!pawli_sqlite_row(&query))
        replay->code = pawli_event_gone(id, &replay->err);
    else if (read_event(&query, &texts, &event))
        (void)put(pass, replay, &event); /* told by end */
    return pawli_sqlite_end(&query);
}

static bool replay_range(struct pass *pass, struct replay *replay)
{
    const pawl_replay_args *args = replay->target.args;
    pawl_replay_place begin = pawli_replay_begin(args);
    int64_t seen = 0;
    struct texts texts;
    struct pawli_kept_event event;
    struct query query = pawli_sqlite_query(pass, S_EV_RANGE);
    pawli_sqlite_put_int(&query, begin.at.us);
    pawli_sqlite_put_int(&query, begin.seq);
    pawli_sqlite_put_int(&query, args->until.us != 0 ? args->until.us : INT64_MAX);
    pawli_sqlite_put_int(&query, args->events_max + 1);
    while (pawli_sqlite_row(&query) && read_event(&query, &texts, &event)) {
        if (seen++ == args->events_max || replay->bytes >= PAWL_PUBLISH_BYTES_MAX) {
            replay->result.is_more = true;
            break;
        }
        replay->result.next = event.place;
        if (!put(pass, replay, &event))
            break;
    }
    return pawli_sqlite_end(&query);
}

static bool replay_all(struct pass *pass, void *args)
{
    struct replay *replay = args;
    const char *name = replay->target.args->name;
    bool is_found;
    replay->result = (pawl_replayed){0}; /* a pass may run twice */
    replay->bytes = 0;
    replay->code = PAWL_OK;
    if (!pawli_sqlite_endpoint_find(pass, name, &replay->endpoint, NULL, &is_found))
        return false;
    if (!is_found) {
        replay->code = pawli_endpoint_gone(name, &replay->err);
        return true;
    }
    replay->target.topics = replay->endpoint.topics;
    replay->target.is_ordered = replay->endpoint.ordering == PAWL_ORDERING_KEY;
    replay->target.shards = 1;
    memcpy(replay->target.queue, replay->endpoint.queue, sizeof(replay->target.queue));
    return replay->target.args->event != NULL ? replay_one(pass, replay)
                                              : replay_range(pass, replay);
}

pawl_code pawli_sqlite_replay(pawl_store *store, const pawl_replay_args *args,
                              pawl_replayed *ret_replayed, pawl_err *err)
{
    struct replay replay = {.target = {.args = args}};
    struct write write = {
        .run = replay_all, .args = &replay, .rows_count = (size_t)args->events_max};
    pawl_code rc = pawli_sqlite_write(store, &write, err);
    if (rc == PAWL_OK && replay.code != PAWL_OK && err != NULL)
        *err = replay.err;
    if (rc == PAWL_OK)
        rc = replay.code;
    if (rc == PAWL_OK)
        *ret_replayed = replay.result;
    pawli_buffer_clear(&replay.headers);
    return rc;
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * publish.c - publishes events to the endpoints that want them: one with its payload as the body,
 *             many as JSON.
 * Owns:  how an event is written in a request.
 * Never: looks into a payload; publishes twice where a reply of the store was lost; sends anything.
 */
#include "serve/api.h"
#include "serve/content.h"
#include "serve/fields.h"
#include "serve/json_write.h"
#include "serve/mint.h"
#include "serve/once.h"

#include "base/error.h"
#include "pawl/endpoint.h"

#include <stdlib.h>

#define TRIES 2

/* What a token must be for: it is not known beforehand which endpoints want an event. */
#define QUEUES "webhook/*"

struct event {
    const char *type;
    const char *id;
    const char *ordering_key;
    struct pawli_content content;
};

static bool read_payload(struct pawli_reader *reader, void *to, pawl_err *err)
{
    struct event *event = to;
    return pawli_content_payload(reader, &event->content, err);
}

static bool read_base64(struct pawli_reader *reader, void *to, pawl_err *err)
{
    struct event *event = to;
    return pawli_content_base64(reader, &event->content, err);
}

static bool read_headers(struct pawli_reader *reader, void *to, pawl_err *err)
{
    struct event *event = to;
    return pawli_content_headers(reader, &event->content, err);
}

#define OPTIONS                                                                                   \
    {"id", PAWLI_FIELD_TEXT, offsetof(struct event, id), 0, 0, false, NULL},                      \
    {                                                                                             \
        "ordering_key", PAWLI_FIELD_TEXT, offsetof(struct event, ordering_key), 0, 0, false, NULL \
    }

static const struct pawli_field option_rows[] = {OPTIONS};
static const struct pawli_fields option_fields = PAWLI_FIELDS(option_rows);

static const struct pawli_field event_rows[] = {
    OPTIONS,
    {"headers", PAWLI_FIELD_OWN, 0, 0, 0, false, read_headers},
    {"payload", PAWLI_FIELD_OWN, 0, 0, 0, false, read_payload},
    {"payload_base64", PAWLI_FIELD_OWN, 0, 0, 0, false, read_base64},
    {"type", PAWLI_FIELD_TEXT, offsetof(struct event, type), 0, 0, true, NULL},
};
static const struct pawli_fields event_fields = PAWLI_FIELDS(event_rows);

/* ---------------------------------------------------------------- sending */

/* What the library takes, and room for what it gives. */
struct sending {
    pawl_publish_row *rows;
    pawl_published *results;
    char (*ids)[PAWL_ID_TEXT_MAX]; /* of those that were made here; else empty */
};

static void clear_sending(struct sending *sending)
{
    free(sending->rows);
    free(sending->results);
    free(sending->ids);
}

/* Events that have no id are given one, so that a call whose reply was lost can be repeated. */
static pawl_code fill(struct pawli_call *call, const struct event *events, size_t count,
                      struct sending *sending)
{
    struct pawli_mint mint;
    pawl_enqueue_row any;
    pawl_id id;
    pawl_enqueue_init(&any);
    any.queue = "webhook";
    sending->rows = calloc(count, sizeof(*sending->rows));
    sending->results = calloc(count, sizeof(*sending->results));
    sending->ids = calloc(count, sizeof(*sending->ids));
    if (sending->rows == NULL || sending->results == NULL || sending->ids == NULL)
        return pawli_fail_plain(&call->err, PAWL_NO_MEMORY);
    pawl_code code = pawli_mint_begin(call, &mint);
    for (size_t i = 0; code == PAWL_OK && i < count; i++) {
        pawl_publish_row *row = &sending->rows[i];
        pawl_publish_init(row);
        row->type = events[i].type;
        row->id = events[i].id;
        row->payload = events[i].content.payload;
        row->payload_len = events[i].content.payload_len;
        row->ordering_key = events[i].ordering_key;
        row->headers = events[i].content.headers;
        if (row->id == NULL && pawli_mint_next(&mint, &any, &id))
            row->id = pawl_id_format(&id, sending->ids[i]);
    }
    pawli_mint_end(&mint);
    return code;
}

/* An id that was made here nobody else has published: EXISTS, in a second try, is this request. */
static void take_as_done(struct sending *sending, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        pawl_published *result = &sending->results[i];
        if (sending->ids[i][0] == '\0')
            continue;
        result->code = PAWL_OK;
        result->jobs = result->endpoints;
    }
}

static pawl_code send(struct pawli_call *call, const struct event *events, size_t count,
                      struct sending *sending)
{
    pawl_code code = fill(call, events, count, sending);
    bool is_due = code == PAWL_OK;
    int tries = 0;
    while (is_due && tries < TRIES) {
        tries++;
        code = pawl_publish(call->store, sending->rows, count, sending->results, &call->err);
        is_due = code == PAWL_UNKNOWN;
    }
    if (code == PAWL_OK && (tries > 1 || (call->once != NULL && call->once->is_again)))
        take_as_done(sending, count);
    return tries > 1 && code == PAWL_DOWN ? PAWL_UNKNOWN : code;
}

static void put_result(struct pawli_writer *writer, const pawl_published *result)
{
    pawli_put_object(writer, NULL);
    pawli_put_text(writer, "id", result->id);
    pawli_put_text(writer, "verdict", pawl_code_name(result->code));
    pawli_put_number(writer, "endpoints", result->endpoints);
    pawli_put_number(writer, "jobs", result->jobs);
    pawli_put_object_end(writer);
}

/* ---------------------------------------------------------------- one, many */

pawl_code pawli_api_publish(struct pawli_call *call)
{
    struct event event = {.type = call->captures[0]};
    struct sending sending = {0};
    struct pawli_writer writer;
    if (!pawli_call_may(call, QUEUES))
        return PAWL_OK;
    pawl_code code = pawli_fields_query(&option_fields, call->uri, &event, &call->err);
    if (code == PAWL_OK)
        code = pawli_content_of_call(call, &event.content);
    if (code == PAWL_OK)
        code = send(call, &event, 1, &sending);
    if (code == PAWL_OK) {
        pawli_call_json(call, sending.results[0].jobs > 0 ? 201 : 200, &writer);
        put_result(&writer, &sending.results[0]);
        code = pawli_call_done(call, &writer);
    }
    clear_sending(&sending);
    free(event.content.headers);
    return code;
}

struct many {
    struct pawli_rows events; /* of struct event */
};

static const struct pawli_rows_kind many_kind = {"events", &event_fields, sizeof(struct event),
                                                 PAWL_BATCH_MAX, NULL};

static bool read_many(struct pawli_reader *reader, void *to, pawl_err *err)
{
    struct many *many = to;
    return pawli_fields_rows(&many_kind, reader, &many->events, err);
}

static const struct pawli_field many_rows[] = {
    {"events", PAWLI_FIELD_OWN, 0, 0, 0, true, read_many},
};
static const struct pawli_fields many_fields = PAWLI_FIELDS(many_rows);

pawl_code pawli_api_publish_many(struct pawli_call *call)
{
    struct many many = {{0}};
    struct sending sending = {0};
    struct pawli_writer writer;
    if (!pawli_call_may(call, QUEUES))
        return PAWL_OK;
    pawl_code code = pawli_fields_body(&many_fields, call->body, call->body_len, &many, &call->err);
    struct event *events = many.events.rows;
    if (code == PAWL_OK)
        code = send(call, events, many.events.count, &sending);
    if (code == PAWL_OK) {
        pawli_call_json(call, 200, &writer);
        pawli_put_object(&writer, NULL);
        pawli_put_array(&writer, "results");
        for (size_t i = 0; i < many.events.count; i++)
            put_result(&writer, &sending.results[i]);
        pawli_put_array_end(&writer);
        pawli_put_object_end(&writer);
        code = pawli_call_done(call, &writer);
    }
    for (size_t i = 0; i < many.events.count; i++)
        free(events[i].content.headers);
    clear_sending(&sending);
    pawli_rows_clear(&many.events);
    return code;
}

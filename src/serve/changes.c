/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * changes.c - listens to changes of jobs, and tells them.
 * Owns:  how a listener says what it wants to hear of.
 * Never: waits: see ears.c.
 */
#include "serve/api.h"
#include "serve/fields.h"
#include "serve/stream.h"

#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct wanted {
    const char *queue;
};

static const struct pawli_field wanted_rows[] = {
    {"queue", PAWLI_FIELD_TEXT, offsetof(struct wanted, queue), 0, 0, false, NULL},
};
static const struct pawli_fields wanted_fields = PAWLI_FIELDS(wanted_rows);

pawl_code pawli_api_changes(struct pawli_call *call)
{
    struct wanted wanted = {.queue = NULL};
    struct pawli_stream *stream = call->host->stream;
    pawl_code code = pawli_fields_query(&wanted_fields, call->uri, &wanted, &call->err);
    if (code != PAWL_OK || (wanted.queue != NULL && !pawli_call_may(call, wanted.queue)))
        return code; /* of all queues, a token hears of its own */
    if (wanted.queue != NULL && (wanted.queue[0] == '\0' || strlen(wanted.queue) > PAWL_NAME_MAX))
        return pawli_fail(&call->err, PAWL_INVALID, "queue must have 1 to %d bytes", PAWL_NAME_MAX);
    if (stream == NULL || call->host->is_draining(call->host->user)) {
        pawli_answer_problem(call->answer, PAWLI_PROBLEM_DRAINING, "ask another one");
        return PAWL_OK;
    }
    struct pawli_cursor *cursor = calloc(1, sizeof(*cursor));
    if (cursor == NULL)
        return pawli_fail_plain(&call->err, PAWL_NO_MEMORY);
    call->listening = cursor;
    cursor->grant = *call->grant;
    if (wanted.queue != NULL)
        (void)snprintf(cursor->queue, sizeof(cursor->queue), "%s", wanted.queue); /* fits */
    pawli_stream_seek(stream, pawli_call_header(call, "Last-Event-ID"), cursor);
    call->answer->status = 200;
    call->answer->type = "text/event-stream";
    return pawli_stream_hello(stream, cursor, &call->answer->body)
               ? PAWL_OK
               : pawli_fail_plain(&call->err, PAWL_NO_MEMORY);
}

void pawli_call_changed(const struct pawli_call *call, const pawl_id *job, const char *queue,
                        const char *state)
{
    const struct pawli_host *host = call->host;
    struct pawli_change change = {.job = *job};
    if (host->stream == NULL)
        return;
    if (state == NULL) {
        pawli_stream_ask(host->stream, job);
        return;
    }
    change.at = host->clock->wall(host->clock->user);
    (void)snprintf(change.queue, sizeof(change.queue), "%s", queue); /* fits: it is a queue's */
    (void)snprintf(change.state, sizeof(change.state), "%s", state); /* likewise */
    pawli_stream_tell(host->stream, &change);
}

void pawli_call_changed_some(const struct pawli_call *call, const char *queue)
{
    const struct pawli_host *host = call->host;
    struct pawli_change change = {.kind = queue != NULL ? PAWLI_CHANGE_QUEUE : PAWLI_CHANGE_LOST};
    if (host->stream == NULL)
        return;
    change.at = host->clock->wall(host->clock->user);
    if (queue != NULL)
        (void)snprintf(change.queue, sizeof(change.queue), "%s", queue); /* fits: it is a queue's */
    pawli_stream_tell(host->stream, &change);
}

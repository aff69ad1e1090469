/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * holders.c - looks at who holds what, and who is there.
 * Owns:  how these are told.
 * Never: changes anything; tells a lease's token.
 */
#include "serve/api.h"
#include "serve/job_json.h"

#include "base/error.h"

#include <stdlib.h>

static const struct pawli_field lease_rows[] = {
    {"after", PAWLI_FIELD_TEXT, offsetof(struct pawli_wanted, after), 0, 0, false, NULL},
    {"limit", PAWLI_FIELD_NUMBER, offsetof(struct pawli_wanted, limit), 1, PAWLI_PAGE_LIMIT_MAX,
     false, NULL},
    {"queue", PAWLI_FIELD_TEXT, offsetof(struct pawli_wanted, queue), 0, 0, false, NULL},
    {"worker", PAWLI_FIELD_TEXT, offsetof(struct pawli_wanted, worker), 0, 0, false, NULL},
};
static const struct pawli_fields lease_fields = PAWLI_FIELDS(lease_rows);

static void put_lease(struct pawli_writer *writer, const pawl_lease_info *row)
{
    pawli_put_object(writer, NULL);
    pawli_put_id(writer, "job", &row->job);
    pawli_put_text(writer, "queue", row->queue);
    pawli_put_text(writer, "worker", row->worker);
    pawli_put_number(writer, "lease_version", row->lease_version);
    pawli_put_time(writer, "claimed_at", row->claimed_at);
    pawli_put_time(writer, "expires_at", row->expires_at);
    pawli_put_flag(writer, "is_expired", row->is_expired);
    pawli_put_flag(writer, "is_cancel_asked", row->is_cancel_asked);
    pawli_put_object_end(writer);
}

pawl_code pawli_api_leases(struct pawli_call *call)
{
    struct pawli_wanted wanted = {.limit = PAWLI_PAGE_LIMIT};
    struct pawli_writer writer;
    pawl_id room;
    const pawl_id *after = NULL;
    size_t count = 0;
    pawl_code code = pawli_fields_query(&lease_fields, call->uri, &wanted, &call->err);
    if (code == PAWL_OK)
        code = pawli_after_id(wanted.after, &room, &after, &call->err);
    if (code != PAWL_OK || !pawli_call_may(call, wanted.queue))
        return code;
    size_t limit = (size_t)wanted.limit;
    const pawl_filter filter = {.queue = wanted.queue, .worker = wanted.worker};
    pawl_lease_info *rows = calloc(limit, sizeof(*rows));
    if (rows == NULL)
        return pawli_fail_plain(&call->err, PAWL_NO_MEMORY);
    code = pawl_leases(call->store, &filter, after, rows, limit, &count, &call->err);
    if (code == PAWL_OK) {
        pawli_call_json(call, 200, &writer);
        pawli_put_object(&writer, NULL);
        pawli_put_array(&writer, "leases");
        for (size_t i = 0; i < count; i++)
            put_lease(&writer, &rows[i]);
        pawli_put_array_end(&writer);
        pawli_put_next_id(&writer, count > 0 ? &rows[count - 1].job : NULL, count == limit);
        pawli_put_object_end(&writer);
        code = pawli_call_done(call, &writer);
    }
    free(rows);
    return code;
}

/* ---------------------------------------------------------------- workers */

static const struct pawli_field worker_rows[] = {
    {"after", PAWLI_FIELD_TEXT, offsetof(struct pawli_wanted, after), 0, 0, false, NULL},
    {"limit", PAWLI_FIELD_NUMBER, offsetof(struct pawli_wanted, limit), 1, PAWLI_PAGE_LIMIT_MAX,
     false, NULL},
};
static const struct pawli_fields worker_fields = PAWLI_FIELDS(worker_rows);

static void put_worker(struct pawli_writer *writer, const pawl_worker *row)
{
    pawli_put_object(writer, NULL);
    pawli_put_text(writer, "name", row->name);
    pawli_put_text(writer, "kind", row->kind == PAWL_KIND_REAPER ? "reaper" : "worker");
    pawli_put_text(writer, "host", row->host);
    pawli_put_text(writer, "version", row->version);
    pawli_put_text(writer, "queues", row->queues);
    pawli_put_time(writer, "since", row->since);
    pawli_put_time(writer, "last_seen", row->last_seen);
    pawli_put_number(writer, "leases", row->leases);
    pawli_put_object_end(writer);
}

pawl_code pawli_api_workers(struct pawli_call *call)
{
    struct pawli_wanted wanted = {.limit = PAWLI_PAGE_LIMIT};
    struct pawli_writer writer;
    size_t count = 0;
    pawl_code code = pawli_fields_query(&worker_fields, call->uri, &wanted, &call->err);
    if (code != PAWL_OK)
        return code;
    size_t limit = (size_t)wanted.limit;
    pawl_worker *rows = calloc(limit, sizeof(*rows));
    if (rows == NULL)
        return pawli_fail_plain(&call->err, PAWL_NO_MEMORY);
    code = pawl_workers(call->store, wanted.after, rows, limit, &count, &call->err);
    if (code == PAWL_OK) {
        pawli_call_json(call, 200, &writer);
        pawli_put_object(&writer, NULL);
        pawli_put_array(&writer, "workers");
        for (size_t i = 0; i < count; i++)
            put_worker(&writer, &rows[i]);
        pawli_put_array_end(&writer);
        pawli_put_next_name(&writer, count > 0 ? rows[count - 1].name : NULL, count == limit);
        pawli_put_object_end(&writer);
        code = pawli_call_done(call, &writer);
    }
    free(rows);
    return code;
}

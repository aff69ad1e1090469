/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * queues.c - looks at queues, changes their settings, pauses and resumes them.
 * Owns:  how settings are written; their ETag, which is a hash of them.
 * Never: changes settings that are not those which If-Match names.
 */
#include "serve/api.h"
#include "serve/etag.h"
#include "serve/guard.h"
#include "serve/page.h"

#include "base/error.h"
#include "pawl/metrics.h"

#include <stdlib.h>
#include <string.h>

#define SET(field) offsetof(pawl_queue_settings, field)
#define MS_MAX     PAWL_DURATION_MAX_MS

/* What is out of bounds is the library's to refuse, which knows them best. */
static const struct pawli_field setting_rows[] = {
    {"lease_ms", PAWLI_FIELD_SETTING, SET(lease_ms), 0, MS_MAX, false, NULL},
    {"execution_timeout_ms", PAWLI_FIELD_SETTING, SET(execution_timeout_ms), PAWL_DEFAULT, MS_MAX,
     false, NULL},
    {"max_retries", PAWLI_FIELD_SETTING, SET(max_retries), 0, PAWL_RETRIES_MAX, false, NULL},
    {"max_lost_leases", PAWLI_FIELD_SETTING, SET(max_lost_leases), 1, PAWL_RETRIES_MAX, false,
     NULL},
    {"backoff_base_ms", PAWLI_FIELD_SETTING, SET(backoff_base_ms), 0, MS_MAX, false, NULL},
    {"backoff_max_ms", PAWLI_FIELD_SETTING, SET(backoff_max_ms), 0, MS_MAX, false, NULL},
    {"keep_succeeded_ms", PAWLI_FIELD_SETTING, SET(keep_succeeded_ms), 0, PAWL_FOREVER, false,
     NULL},
    {"keep_failed_ms", PAWLI_FIELD_SETTING, SET(keep_failed_ms), 0, PAWL_FOREVER, false, NULL},
    {"max_in_flight", PAWLI_FIELD_SETTING, SET(max_in_flight), 0, PAWL_IN_FLIGHT_MAX, false, NULL},
};
static const struct pawli_fields setting_fields = PAWLI_FIELDS(setting_rows);

static int64_t setting_of(const pawl_queue_settings *settings, const struct pawli_field *field)
{
    int64_t number;
    memcpy(&number, (const char *)settings + field->offset, sizeof(number));
    return number;
}

static void put_settings(struct pawli_writer *writer, const char *queue,
                         const pawl_queue_settings *settings)
{
    pawli_put_object(writer, NULL);
    pawli_put_text(writer, "queue", queue);
    pawli_put_flag(writer, "is_paused", settings->is_paused);
    for (size_t i = 0; i < setting_fields.count; i++) {
        const struct pawli_field *field = &setting_fields.rows[i];
        int64_t number = setting_of(settings, field);
        if (number == PAWL_FOREVER || number == PAWL_DEFAULT)
            pawli_put_text(writer, field->name, number == PAWL_FOREVER ? "forever" : "default");
        else
            pawli_put_number(writer, field->name, number);
    }
    pawli_put_object_end(writer);
}

static pawl_code answer_settings(struct pawli_call *call, const pawl_queue_settings *settings)
{
    struct pawli_writer writer;
    pawli_call_json(call, 200, &writer);
    put_settings(&writer, call->captures[0], settings);
    if (writer.has_failed)
        return pawli_call_done(call, &writer);
    pawli_etag_make(call->answer);
    return PAWL_OK;
}

static pawl_code no_params(struct pawli_call *call)
{
    static const struct pawli_fields none = {NULL, 0};
    return pawli_fields_query(&none, call->uri, NULL, &call->err);
}

pawl_code pawli_api_queue(struct pawli_call *call)
{
    pawl_queue_settings settings;
    pawl_code code = no_params(call);
    if (code != PAWL_OK || !pawli_call_may(call, call->captures[0]))
        return code;
    code = pawl_queue_get(call->store, call->captures[0], &settings, &call->err);
    if (code == PAWL_OK)
        code = answer_settings(call, &settings);
    if (code == PAWL_OK)
        pawli_etag_known(call);
    return code;
}

static pawl_code set(struct pawli_call *call, const void *wanted)
{
    pawl_queue_settings settings;
    pawl_code code = pawl_queue_get(call->store, call->captures[0], &settings, &call->err);
    if (code == PAWL_OK)
        code = answer_settings(call, &settings);
    if (code == PAWL_OK && !pawli_etag_matches(call))
        return PAWL_OK;
    if (code == PAWL_OK)
        code = pawl_queue_set(call->store, call->captures[0], wanted, &call->err);
    if (code == PAWL_OK)
        code = pawl_queue_get(call->store, call->captures[0], &settings, &call->err);
    return code == PAWL_OK ? answer_settings(call, &settings) : code;
}

pawl_code pawli_api_queue_set(struct pawli_call *call)
{
    pawl_queue_settings wanted;
    pawl_queue_settings_init(&wanted);
    pawl_code code = no_params(call);
    if (code != PAWL_OK || !pawli_call_may(call, call->captures[0]))
        return code;
    code = pawli_fields_body(&setting_fields, call->body, call->body_len, &wanted, &call->err);
    if (code != PAWL_OK)
        return code;
    return pawli_guarded(call, set, &wanted);
}

static pawl_code pause(struct pawli_call *call, bool is_paused)
{
    pawl_queue_settings settings;
    pawl_code code = no_params(call);
    if (code != PAWL_OK || !pawli_call_may(call, call->captures[0]))
        return code;
    code = pawl_queue_pause(call->store, call->captures[0], is_paused, &call->err);
    if (code == PAWL_OK)
        code = pawl_queue_get(call->store, call->captures[0], &settings, &call->err);
    return code == PAWL_OK ? answer_settings(call, &settings) : code;
}

pawl_code pawli_api_pause(struct pawli_call *call)
{
    return pause(call, true);
}

pawl_code pawli_api_resume(struct pawli_call *call)
{
    return pause(call, false);
}

/* ---------------------------------------------------------------- how much is in them */

static void put_stats(struct pawli_writer *writer, const pawl_stats *row, bool is_whole)
{
    pawli_put_object(writer, NULL);
    pawli_put_text(writer, "queue", row->queue);
    pawli_put_flag(writer, "is_paused", row->is_paused);
    pawli_put_number(writer, "ready", row->ready);
    pawli_put_number(writer, "delayed", row->delayed);
    pawli_put_number(writer, "in_flight", row->in_flight);
    pawli_put_number(writer, "expired", row->expired);
    if (is_whole) {
        pawli_put_number(writer, "succeeded", row->succeeded);
        pawli_put_number(writer, "failed", row->failed);
    }
    pawli_put_number(writer, "oldest_due_ms", row->oldest_due_ms);
    pawli_put_object_end(writer);
}

static const char *queue_of(const void *row)
{
    return ((const pawl_stats *)row)->queue;
}

static void put_whole(struct pawli_writer *writer, const void *row)
{
    put_stats(writer, row, true);
}

static void put_live(struct pawli_writer *writer, const void *row)
{
    put_stats(writer, row, false);
}

static pawl_code read_whole(struct pawli_call *call, const char *after, void *ret_rows,
                            size_t rows_max, size_t *ret_count)
{
    return pawl_queue_stats(call->store, after, ret_rows, rows_max, ret_count, &call->err);
}

static pawl_code read_live(struct pawli_call *call, const char *after, void *ret_rows,
                           size_t rows_max, size_t *ret_count)
{
    const pawl_depth_args args = {.after = after};
    return pawl_queue_depths(call->store, &args, ret_rows, rows_max, ret_count, &call->err);
}

#define PAGE_OF(read_, put_)                                                                \
    {                                                                                       \
        "queues", sizeof(pawl_stats), PAWLI_PAGE_LIMIT_MAX, read_, queue_of, queue_of, put_ \
    }
static const struct pawli_page whole_page = PAGE_OF(read_whole, put_whole);
static const struct pawli_page live_page = PAGE_OF(read_live, put_live);

pawl_code pawli_api_queues(struct pawli_call *call)
{
    return pawli_page_answer(call, &whole_page, PAWLI_PAGE_LIMIT);
}

pawl_code pawli_api_stats(struct pawli_call *call)
{
    return pawli_page_answer(call, &live_page, PAWLI_PAGE_LIMIT);
}

pawl_code pawli_api_queue_stats(struct pawli_call *call)
{
    struct pawli_writer writer;
    pawl_stats row;
    size_t count = 0;
    const pawl_depth_args args = {.queue = call->captures[0]};
    pawl_code code = no_params(call);
    if (code != PAWL_OK || !pawli_call_may(call, call->captures[0]))
        return code;
    code = pawl_queue_depths(call->store, &args, &row, 1, &count, &call->err);
    if (code != PAWL_OK)
        return code;
    pawli_call_json(call, 200, &writer);
    put_stats(&writer, &row, false);
    return pawli_call_done(call, &writer);
}

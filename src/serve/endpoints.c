/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * endpoints.c - endpoints of webhooks: looks at them, adds, changes, switches, tests and removes
 *               them.
 * Owns:  how an endpoint is written; that a secret which was made here is shown once, when it is
 *        made.
 * Never: shows a secret that was given, or the value of a header; in a list more of a URL than its
 *        host: the rest may be a secret.
 * Locks: host->test_lock, over a test, so that tests never hold more than one thread.
 */
#include "serve/endpoint.h"

#include "serve/api.h"
#include "serve/content.h"
#include "serve/etag.h"
#include "serve/guard.h"
#include "serve/page.h"

#include "base/error.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUEUE_PREFIX "webhook/"
#define NOBODY       "http" /* who switches, where nobody needs a token */
#define OVERLAP_MS   (INT64_C(24) * 3600 * 1000)
#define LIST_MAX     100 /* rows of a page: each has 10 KiB in memory */

/* ---------------------------------------------------------------- telling */

static void put_settings(struct pawli_writer *writer, const pawl_endpoint *row)
{
    pawli_put_text(writer, "topics", row->topics);
    pawli_put_text(writer, "header_names", row->header_names);
    pawli_put_text(writer, "fail_statuses", row->fail_statuses);
    pawli_put_number(writer, "timeout_ms", row->timeout_ms);
    pawli_put_number(writer, "rate_per_minute", row->rate_per_minute);
    pawli_put_text(writer, "ordering", pawl_endpoint_ordering_name(row->ordering));
    pawli_put_text(writer, "format", pawl_endpoint_format_name(row->format));
    pawli_put_number(writer, "lease_ms", row->queue_settings.lease_ms);
    pawli_put_number(writer, "max_in_flight", row->queue_settings.max_in_flight);
    pawli_put_number(writer, "max_retries", row->queue_settings.max_retries);
    pawli_put_number(writer, "backoff_base_ms", row->queue_settings.backoff_base_ms);
    pawli_put_number(writer, "backoff_max_ms", row->queue_settings.backoff_max_ms);
}

/* Scheme and host of a URL: as much of it as is no secret. */
static void put_origin(struct pawli_writer *writer, const pawl_endpoint *row)
{
    char origin[PAWL_ENDPOINT_URL_MAX + 1];
    const char *host = strstr(row->url, "://");
    size_t len = host != NULL ? (size_t)(host - row->url) + 3 : 0;
    len += strcspn(row->url + len, "/?#");
    memcpy(origin, row->url, len);
    origin[len] = '\0';
    pawli_put_text(writer, "origin", origin);
}

/* The members of an endpoint, of an object that is open. */
static void put_endpoint(struct pawli_writer *writer, const pawl_endpoint *row, bool is_whole)
{
    pawli_put_text(writer, "name", row->name);
    pawli_put_text(writer, "queue", row->queue);
    if (is_whole)
        pawli_put_text(writer, "url", row->url);
    else
        put_origin(writer, row);
    pawli_put_flag(writer, "is_enabled", row->is_enabled);
    pawli_put_flag(writer, "is_paused", row->queue_settings.is_paused);
    put_settings(writer, row);
    pawli_put_number(writer, "secrets", row->secrets_count);
    pawli_put_time(writer, "switched_at", row->switched_at);
    pawli_put_text(writer, "switched_by", row->switched_by);
    pawli_put_text(writer, "reason", row->reason);
    pawli_put_number(writer, "revision", row->revision);
    pawli_put_time(writer, "created_at", row->created_at);
    pawli_put_time(writer, "changed_at", row->changed_at);
}

/* The endpoint of the path as the answer, with its ETag. */
static pawl_code answer_endpoint(struct pawli_call *call)
{
    struct pawli_writer writer;
    pawl_endpoint *row = calloc(1, sizeof(*row));
    if (row == NULL)
        return pawli_fail_plain(&call->err, PAWL_NO_MEMORY);
    pawl_code code = pawl_endpoint_get(call->store, call->captures[0], row, &call->err);
    if (code == PAWL_OK) {
        pawli_call_json(call, 200, &writer);
        pawli_put_object(&writer, NULL);
        put_endpoint(&writer, row, true);
        pawli_put_object_end(&writer);
        code = pawli_call_done(call, &writer);
    }
    if (code == PAWL_OK)
        pawli_etag_make(call->answer);
    free(row);
    return code;
}

/* Whether the token is for the endpoint of the path: its queue says so. */
static bool may(struct pawli_call *call)
{
    char queue[sizeof(QUEUE_PREFIX) + PAWL_NAME_MAX];
    (void)snprintf(queue, sizeof(queue), QUEUE_PREFIX "%.128s",
                   call->captures[0]); /* cut: longer ones are none */
    return pawli_call_may(call, queue);
}

static const char *name_of(const void *row)
{
    return ((const pawl_endpoint *)row)->name;
}

static const char *queue_of(const void *row)
{
    return ((const pawl_endpoint *)row)->queue;
}

static void put_row(struct pawli_writer *writer, const void *row)
{
    pawli_put_object(writer, NULL);
    put_endpoint(writer, row, false);
    pawli_put_object_end(writer);
}

static pawl_code read_rows(struct pawli_call *call, const char *after, void *ret_rows,
                           size_t rows_max, size_t *ret_count)
{
    return pawl_endpoint_list(call->store, after, ret_rows, rows_max, ret_count, &call->err);
}

pawl_code pawli_api_endpoints(struct pawli_call *call)
{
    static const struct pawli_page page = {
        "endpoints", sizeof(pawl_endpoint), LIST_MAX, read_rows, name_of, queue_of, put_row};
    return pawli_page_answer(call, &page, LIST_MAX);
}

pawl_code pawli_api_endpoint(struct pawli_call *call)
{
    static const struct pawli_fields none = {NULL, 0};
    pawl_code code = pawli_fields_query(&none, call->uri, NULL, &call->err);
    if (code != PAWL_OK || !may(call))
        return code;
    code = answer_endpoint(call);
    if (code == PAWL_OK)
        pawli_etag_known(call);
    return code;
}

/* ---------------------------------------------------------------- reading */

/* What a request says of an endpoint. */
struct said {
    pawl_endpoint_settings settings;
    struct pawli_content content; /* its headers */
    struct pawli_endpoint_room room;
    const char *ordering;
    const char *format;
    const char *secret;
    bool is_key_pair;
    int64_t overlap_ms;
};

static bool read_headers(struct pawli_reader *reader, void *to, pawl_err *err)
{
    struct said *said = to;
    return pawli_content_headers(reader, &said->content, err);
}

#define SET(field) offsetof(struct said, settings.field)
#define MS_MAX     PAWL_DURATION_MAX_MS
#define TEXT(name_, place_)                                \
    {                                                      \
        name_, PAWLI_FIELD_TEXT, place_, 0, 0, false, NULL \
    }
#define COUNT(name_, place_, max_)                              \
    {                                                           \
        name_, PAWLI_FIELD_NUMBER, place_, 0, max_, false, NULL \
    }
/* What is out of bounds is the library's to refuse, which knows them best. */
#define SETTINGS                                                                                  \
    COUNT("backoff_base_ms", SET(backoff_base_ms), MS_MAX),                                       \
        COUNT("backoff_max_ms", SET(backoff_max_ms), MS_MAX),                                     \
        TEXT("fail_statuses", SET(fail_statuses)), TEXT("format", offsetof(struct said, format)), \
        {"headers", PAWLI_FIELD_OWN, 0, 0, 0, false, read_headers},                               \
        COUNT("lease_ms", SET(lease_ms), MS_MAX),                                                 \
        COUNT("max_in_flight", SET(max_in_flight), PAWL_IN_FLIGHT_MAX),                           \
        COUNT("max_retries", SET(max_retries), PAWL_RETRIES_MAX),                                 \
        TEXT("ordering", offsetof(struct said, ordering)),                                        \
        COUNT("rate_per_minute", SET(rate_per_minute), PAWL_ENDPOINT_RATE_MAX),                   \
        COUNT("timeout_ms", SET(timeout_ms), MS_MAX), TEXT("topics", SET(topics)),                \
        TEXT("url", SET(url))
#define SECRETS                                                                               \
    {"is_key_pair", PAWLI_FIELD_FLAG, offsetof(struct said, is_key_pair), 0, 0, false, NULL}, \
        TEXT("secret", offsetof(struct said, secret))

static const struct pawli_field add_rows[] = {SECRETS, SETTINGS};
static const struct pawli_fields add_fields = PAWLI_FIELDS(add_rows);
static const struct pawli_field set_rows[] = {SETTINGS};
static const struct pawli_fields set_fields = PAWLI_FIELDS(set_rows);
static const struct pawli_field rotate_rows[] = {
    SECRETS,
    {"overlap", PAWLI_FIELD_DURATION, offsetof(struct said, overlap_ms), 0, 0, false, NULL},
};
static const struct pawli_fields rotate_fields = PAWLI_FIELDS(rotate_rows);

static pawl_code read_choices(struct said *said, pawl_err *err)
{
    pawl_endpoint_settings *settings = &said->settings;
    for (int i = PAWL_ORDERING_NONE; said->ordering != NULL && i <= PAWL_ORDERING_KEY; i++)
        if (strcmp(said->ordering, pawl_endpoint_ordering_name((pawl_endpoint_ordering)i)) == 0)
            settings->ordering = (pawl_endpoint_ordering)i;
    if (said->ordering != NULL && settings->ordering == PAWL_ORDERING_DEFAULT)
        return pawli_fail(err, PAWL_INVALID, "ordering must be none or key");
    for (int i = PAWL_FORMAT_PLAIN; said->format != NULL && i <= PAWL_FORMAT_CLOUD_STRUCTURED; i++)
        if (strcmp(said->format, pawl_endpoint_format_name((pawl_endpoint_format)i)) == 0)
            settings->format = (pawl_endpoint_format)i;
    if (said->format != NULL && settings->format == PAWL_FORMAT_DEFAULT)
        return pawli_fail(err, PAWL_INVALID,
                          "format must be plain, cloudevents-binary or cloudevents-structured");
    return PAWL_OK;
}

/* Read a body. What was made of it is cleared by clear_said() in any case. */
static pawl_code read_said(struct pawli_call *call, const struct pawli_fields *fields,
                           struct said *said)
{
    const struct pawli_webhooks *webhooks = call->host->webhooks;
    *said = (struct said){.overlap_ms = OVERLAP_MS};
    pawl_endpoint_settings_init(&said->settings);
    pawl_code code = PAWL_OK;
    if (call->body_len > 0 || fields != &rotate_fields)
        code = pawli_fields_body(fields, call->body, call->body_len, said, &call->err);
    if (code == PAWL_OK && webhooks == NULL)
        code = pawli_fail(&call->err, PAWL_INVALID, "this program was built without webhooks");
    said->settings.headers = said->content.headers;
    if (code == PAWL_OK)
        code = read_choices(said, &call->err);
    if (code == PAWL_OK)
        code = webhooks->check(webhooks->user, &said->settings, &said->room, &call->err);
    if (code == PAWL_OK && said->secret != NULL && said->is_key_pair)
        code = pawli_fail(&call->err, PAWL_INVALID,
                          "is_key_pair is about a secret that is made, and secret gives one");
    if (code == PAWL_OK && said->secret != NULL && strlen(said->secret) > PAWL_ENDPOINT_SECRET_MAX)
        code = pawli_fail(&call->err, PAWL_INVALID, "secret has more than %d bytes",
                          PAWL_ENDPOINT_SECRET_MAX);
    return code;
}

static void clear_said(struct said *said)
{
    if (said->content.headers != NULL)
        explicit_bzero(said->content.headers, strlen(said->content.headers));
    free(said->content.headers);
    explicit_bzero(said, sizeof(*said));
}

static pawl_code make_secret(struct pawli_call *call, const struct said *said,
                             struct pawli_made_secret *made)
{
    const struct pawli_webhooks *webhooks = call->host->webhooks;
    *made = (struct pawli_made_secret){.is_given = said->secret != NULL,
                                       .is_pair = said->is_key_pair};
    if (said->secret != NULL)
        memcpy(made->secret, said->secret, strlen(said->secret) + 1); /* it was measured */
    return webhooks->secret(webhooks->user, made, &call->err);
}

/* ---------------------------------------------------------------- changing */

static pawl_code answer_secret(struct pawli_call *call, unsigned status,
                               const struct pawli_made_secret *made)
{
    struct pawli_writer writer;
    pawli_call_json(call, status, &writer);
    pawli_put_object(&writer, NULL);
    pawli_put_text(&writer, "name", call->captures[0]);
    if (!made->is_given)
        pawli_put_text(&writer, "secret", made->secret);
    if (made->public_key[0] != '\0')
        pawli_put_text(&writer, "public_key", made->public_key);
    pawli_put_object_end(&writer);
    return pawli_call_done(call, &writer);
}

pawl_code pawli_api_endpoint_add(struct pawli_call *call)
{
    struct said said;
    struct pawli_made_secret made = {.is_given = false};
    if (!may(call))
        return PAWL_OK;
    pawl_code code = read_said(call, &add_fields, &said);
    if (code == PAWL_OK)
        code = make_secret(call, &said, &made);
    const pawl_endpoint_add_args args = {
        .name = call->captures[0], .secret = made.secret, .settings = &said.settings};
    if (code == PAWL_OK)
        code = pawl_endpoint_add(call->store, &args, &call->err);
    if (code == PAWL_OK)
        code = answer_secret(call, 201, &made);
    explicit_bzero(&made, sizeof(made));
    clear_said(&said);
    return code;
}

static pawl_code set(struct pawli_call *call, const void *settings)
{
    pawl_code code = answer_endpoint(call);
    if (code != PAWL_OK || !pawli_etag_matches(call))
        return code;
    code = pawl_endpoint_set(call->store, call->captures[0], settings, &call->err);
    return code == PAWL_OK ? answer_endpoint(call) : code;
}

pawl_code pawli_api_endpoint_set(struct pawli_call *call)
{
    struct said said;
    if (!may(call))
        return PAWL_OK;
    pawl_code code = read_said(call, &set_fields, &said);
    if (code == PAWL_OK)
        code = pawli_guarded(call, set, &said.settings);
    clear_said(&said);
    return code;
}

pawl_code pawli_api_endpoint_rotate(struct pawli_call *call)
{
    struct said said;
    struct pawli_made_secret made = {.is_given = false};
    if (!may(call))
        return PAWL_OK;
    pawl_code code = read_said(call, &rotate_fields, &said);
    if (code == PAWL_OK)
        code = make_secret(call, &said, &made);
    const pawl_endpoint_rotate_args args = {
        .name = call->captures[0], .secret = made.secret, .overlap_ms = said.overlap_ms};
    if (code == PAWL_OK)
        code = pawl_endpoint_rotate(call->store, &args, &call->err);
    if (code == PAWL_OK)
        code = answer_secret(call, 200, &made);
    explicit_bzero(&made, sizeof(made));
    clear_said(&said);
    return code;
}

struct turning {
    const char *by;
    const char *reason;
};

static const struct pawli_field turn_rows[] = {
    TEXT("by", offsetof(struct turning, by)),
    TEXT("reason", offsetof(struct turning, reason)),
};
static const struct pawli_fields turn_fields = PAWLI_FIELDS(turn_rows);

static pawl_code turn(struct pawli_call *call, bool is_enabled)
{
    const char *who = call->grant->name;
    struct turning turning = {.by = who[0] != '\0' ? who : NOBODY};
    pawl_code code = PAWL_OK;
    if (!may(call))
        return PAWL_OK;
    if (call->body_len > 0)
        code = pawli_fields_body(&turn_fields, call->body, call->body_len, &turning, &call->err);
    const pawl_endpoint_switch args = {call->captures[0], turning.by, turning.reason};
    if (code == PAWL_OK)
        code = is_enabled ? pawl_endpoint_enable(call->store, &args, &call->err)
                          : pawl_endpoint_disable(call->store, &args, &call->err);
    return code == PAWL_OK ? answer_endpoint(call) : code;
}

pawl_code pawli_api_endpoint_disable(struct pawli_call *call)
{
    return turn(call, false);
}

pawl_code pawli_api_endpoint_enable(struct pawli_call *call)
{
    return turn(call, true);
}

pawl_code pawli_api_endpoint_remove(struct pawli_call *call)
{
    struct pawli_writer writer;
    if (!may(call))
        return PAWL_OK;
    pawl_code code = pawl_endpoint_remove(call->store, call->captures[0], &call->err);
    if (code != PAWL_OK)
        return code;
    pawli_call_json(call, 200, &writer);
    pawli_put_object(&writer, NULL);
    pawli_put_text(&writer, "name", call->captures[0]);
    pawli_put_flag(&writer, "is_removed", true);
    pawli_put_object_end(&writer);
    return pawli_call_done(call, &writer);
}

/* ---------------------------------------------------------------- testing */

static pawl_code answer_test(struct pawli_call *call, const struct pawli_tested *tested)
{
    struct pawli_writer writer;
    pawli_call_json(call, 200, &writer);
    pawli_put_object(&writer, NULL);
    pawli_put_text(&writer, "name", call->captures[0]);
    pawli_put_flag(&writer, "is_delivered", tested->is_delivered);
    pawli_put_text(&writer, "answer", tested->answer);
    pawli_put_text(&writer, "text", tested->text);
    pawli_put_text(&writer, "webhook_id", tested->id);
    pawli_put_number(&writer, "sends", tested->sends);
    pawli_put_number(&writer, "took_ms", tested->took_ms);
    pawli_put_object_end(&writer);
    return pawli_call_done(call, &writer);
}

pawl_code pawli_api_endpoint_test(struct pawli_call *call)
{
    const struct pawli_webhooks *webhooks = call->host->webhooks;
    struct pawli_tested tested = {.is_delivered = false};
    if (!may(call))
        return PAWL_OK;
    if (webhooks == NULL)
        return pawli_fail(&call->err, PAWL_INVALID, "this program was built without webhooks");
    if (pthread_mutex_trylock(call->host->test_lock) != 0) {
        pawli_answer_problem(call->answer, PAWLI_PROBLEM_BUSY,
                             "another test is under way; try again when it has ended");
        return PAWL_OK;
    }
    pawl_code code = webhooks->test(webhooks->user, call->store, call->captures[0], &tested,
                                    &call->err);
    (void)pthread_mutex_unlock(call->host->test_lock);
    return code == PAWL_OK ? answer_test(call, &tested) : code;
}

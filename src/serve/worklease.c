/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * worklease.c - work leases over HTTP. The patterns of a token are about domains here.
 * Owns:  how these are written in a request.
 * Never: decides whether a lease is valid: the store does.
 */
#include "serve/api.h"
#include "serve/job_json.h"

#include "base/error.h"
#include "pawl/worklease.h"

#include <stdlib.h>

struct request {
    int64_t offset;
    const char *owner;
    int64_t lease_ms;
    int64_t backlog_max;
    pawl_token token;
    int64_t max_retries;
};

/* clang-format off */
#define AT(field) offsetof(struct request, field)
#define OWNER {"owner", PAWLI_FIELD_TEXT, AT(owner), 0, 0, false, NULL}
#define TOKEN {"token", PAWLI_FIELD_TOKEN, AT(token), 0, 0, true, NULL}

static const struct pawli_field acquire_rows[] = {
    {"backlog_max", PAWLI_FIELD_NUMBER, AT(backlog_max), 1, INT64_MAX, false, NULL},
    {"lease", PAWLI_FIELD_DURATION, AT(lease_ms), 1, 0, false, NULL},
    {"offset", PAWLI_FIELD_NUMBER, AT(offset), INT64_MIN, INT64_MAX, true, NULL},
    OWNER,
};
static const struct pawli_field succeed_rows[] = {OWNER, TOKEN};
static const struct pawli_field fail_rows[] = {
    {"max_retries", PAWLI_FIELD_NUMBER, AT(max_retries), 0, PAWL_RETRIES_MAX, false, NULL},
    OWNER,
    TOKEN,
};
static const struct pawli_field renew_rows[] = {
    {"lease", PAWLI_FIELD_DURATION, AT(lease_ms), 1, 0, true, NULL},
    OWNER,
    TOKEN,
};
/* clang-format on */
static const struct pawli_fields acquire_fields = PAWLI_FIELDS(acquire_rows);
static const struct pawli_fields succeed_fields = PAWLI_FIELDS(succeed_rows);
static const struct pawli_fields fail_fields = PAWLI_FIELDS(fail_rows);
static const struct pawli_fields renew_fields = PAWLI_FIELDS(renew_rows);

/* *ret_is_there: it was read, and the token is for the domain. */
static pawl_code read_request(struct pawli_call *call, const struct pawli_fields *fields,
                              struct request *ret_request, bool *ret_is_there)
{
    *ret_is_there = false;
    *ret_request = (struct request){
        .lease_ms = PAWL_DEFAULT, .backlog_max = PAWL_DEFAULT, .max_retries = PAWL_DEFAULT};
    if (!pawli_call_may(call, call->captures[0]))
        return PAWL_OK;
    pawl_code code = pawli_fields_body(fields, call->body, call->body_len, ret_request, &call->err);
    *ret_is_there = code == PAWL_OK;
    return code;
}

pawl_code pawli_api_worklease_acquire(struct pawli_call *call)
{
    struct request request;
    struct pawli_writer writer;
    pawl_worklease_acquired got;
    bool is_there;
    pawl_code code = read_request(call, &acquire_fields, &request, &is_there);
    if (!is_there)
        return code;
    const pawl_worklease_acquire args = {.domain = call->captures[0],
                                         .offset = request.offset,
                                         .owner = request.owner,
                                         .lease_ms = request.lease_ms,
                                         .backlog_max = request.backlog_max};
    code = pawl_worklease_try_acquire(call->store, &args, &got, &call->err);
    if (code != PAWL_OK)
        return code;
    bool is_ours = got.got == PAWL_GOT_ACQUIRED || got.got == PAWL_GOT_ALREADY_ACQUIRED;
    bool has_lease = is_ours || got.got == PAWL_GOT_ENQUEUED || got.got == PAWL_GOT_HELD;
    pawli_call_json(call, 200, &writer);
    pawli_put_object(&writer, NULL);
    pawli_put_text(&writer, "got", pawl_worklease_got_name(got.got));
    if (is_ours)
        pawli_put_token(&writer, "token", &got.token);
    if (has_lease) {
        pawli_put_flag(&writer, "is_taken_over", got.is_taken_over);
        pawli_put_number(&writer, "offset", got.offset);
        pawli_put_time(&writer, "acquired_at", got.acquired_at);
        pawli_put_number(&writer, "retry_count", got.retry_count);
        pawli_put_time(&writer, "expires_at", got.expires_at);
    }
    pawli_put_object_end(&writer);
    return pawli_call_done(call, &writer);
}

static pawl_code answer_ended(struct pawli_call *call, const pawl_worklease_ended *ended)
{
    struct pawli_writer writer;
    pawli_call_json(call, 200, &writer);
    pawli_put_object(&writer, NULL);
    pawli_put_text(&writer, "end", pawl_worklease_end_name(ended->end));
    if (ended->end == PAWL_END_NEXT_HINT || ended->end == PAWL_END_GIVE_UP_NEXT_HINT)
        pawli_put_number(&writer, "next_offset", ended->next_offset);
    if (ended->end == PAWL_END_RETRY_SCHEDULED)
        pawli_put_number(&writer, "retry_count", ended->retry_count);
    pawli_put_object_end(&writer);
    return pawli_call_done(call, &writer);
}

pawl_code pawli_api_worklease_succeed(struct pawli_call *call)
{
    struct request request;
    pawl_worklease_ended ended;
    bool is_there;
    pawl_code code = read_request(call, &succeed_fields, &request, &is_there);
    if (!is_there)
        return code;
    const pawl_worklease_hold hold = {call->captures[0], request.owner, request.token};
    code = pawl_worklease_succeed(call->store, &hold, &ended, &call->err);
    return code == PAWL_OK ? answer_ended(call, &ended) : code;
}

pawl_code pawli_api_worklease_fail(struct pawli_call *call)
{
    struct request request;
    pawl_worklease_ended ended;
    bool is_there;
    pawl_code code = read_request(call, &fail_fields, &request, &is_there);
    if (!is_there)
        return code;
    const pawl_worklease_hold hold = {call->captures[0], request.owner, request.token};
    code = pawl_worklease_fail(call->store, &hold, request.max_retries, &ended, &call->err);
    return code == PAWL_OK ? answer_ended(call, &ended) : code;
}

pawl_code pawli_api_worklease_renew(struct pawli_call *call)
{
    struct request request;
    struct pawli_writer writer;
    pawl_wall expires_at;
    bool is_there;
    pawl_code code = read_request(call, &renew_fields, &request, &is_there);
    if (!is_there)
        return code;
    const pawl_worklease_hold hold = {call->captures[0], request.owner, request.token};
    code = pawl_worklease_renew(call->store, &hold, request.lease_ms, &expires_at, &call->err);
    if (code != PAWL_OK)
        return code;
    pawli_call_json(call, 200, &writer);
    pawli_put_object(&writer, NULL);
    pawli_put_time(&writer, "expires_at", expires_at);
    pawli_put_object_end(&writer);
    return pawli_call_done(call, &writer);
}

/* ---------------------------------------------------------------- looking */

struct page {
    const char *after;
    int64_t limit;
    int64_t skip;
};
static const struct pawli_field domains_rows[] = {
    {"after", PAWLI_FIELD_TEXT, offsetof(struct page, after), 0, 0, false, NULL},
    {"limit", PAWLI_FIELD_NUMBER, offsetof(struct page, limit), 1, PAWLI_PAGE_LIMIT_MAX, false,
     NULL},
};
static const struct pawli_fields domains_fields = PAWLI_FIELDS(domains_rows);
static const struct pawli_field inside_rows[] = {
    {"limit", PAWLI_FIELD_NUMBER, offsetof(struct page, limit), 1, PAWLI_PAGE_LIMIT_MAX, false,
     NULL},
    {"skip", PAWLI_FIELD_NUMBER, offsetof(struct page, skip), 0, INT64_MAX, false, NULL},
};
static const struct pawli_fields inside_fields = PAWLI_FIELDS(inside_rows);

static void put_info(struct pawli_writer *writer, const pawl_worklease_info *info)
{
    pawli_put_object(writer, NULL);
    pawli_put_text(writer, "domain", info->domain);
    pawli_put_flag(writer, "is_leased", info->is_leased);
    if (info->is_leased) {
        pawli_put_number(writer, "offset", info->offset);
        pawli_put_text(writer, "owner", info->owner);
        pawli_put_time(writer, "acquired_at", info->acquired_at);
        pawli_put_number(writer, "retry_count", info->retry_count);
        pawli_put_time(writer, "expires_at", info->expires_at);
        pawli_put_flag(writer, "is_expired", info->is_expired);
    }
    pawli_put_number(writer, "backlog_count", info->backlog_count);
    if (info->backlog_count > 0)
        pawli_put_number(writer, "backlog_head", info->backlog_head);
    pawli_put_object_end(writer);
}

pawl_code pawli_api_workleases(struct pawli_call *call)
{
    struct page page = {.limit = PAWLI_PAGE_LIMIT};
    struct pawli_writer writer;
    size_t count = 0;
    pawl_code code = pawli_fields_query(&domains_fields, call->uri, &page, &call->err);
    if (code != PAWL_OK)
        return code;
    size_t limit = (size_t)page.limit;
    pawl_worklease_info *rows = calloc(limit, sizeof(*rows));
    if (rows == NULL)
        return pawli_fail_plain(&call->err, PAWL_NO_MEMORY);
    code = pawl_worklease_domains(call->store, page.after, rows, limit, &count, &call->err);
    if (code == PAWL_OK) {
        pawli_call_json(call, 200, &writer);
        pawli_put_object(&writer, NULL);
        pawli_put_array(&writer, "domains");
        for (size_t i = 0; i < count; i++)
            put_info(&writer, &rows[i]);
        pawli_put_array_end(&writer);
        pawli_put_next_name(&writer, count > 0 ? rows[count - 1].domain : NULL, count == limit);
        pawli_put_object_end(&writer);
        code = pawli_call_done(call, &writer);
    }
    free(rows);
    return code;
}

pawl_code pawli_api_worklease(struct pawli_call *call)
{
    static const struct pawli_fields none = {NULL, 0};
    struct pawli_writer writer;
    pawl_worklease_info info;
    pawl_code code = pawli_fields_query(&none, call->uri, NULL, &call->err);
    if (code != PAWL_OK || !pawli_call_may(call, call->captures[0]))
        return code;
    code = pawl_worklease_get(call->store, call->captures[0], &info, &call->err);
    if (code != PAWL_OK)
        return code;
    pawli_call_json(call, 200, &writer);
    put_info(&writer, &info);
    return pawli_call_done(call, &writer);
}

/* The next page begins behind so many; null where there is none. */
static void put_next_skip(struct pawli_writer *writer, const struct page *page, size_t count)
{
    if (count == (size_t)page->limit)
        pawli_put_number(writer, "next", page->skip + (int64_t)count);
    else
        pawli_put_null(writer, "next");
}

pawl_code pawli_api_worklease_backlog(struct pawli_call *call)
{
    struct page page = {.limit = PAWLI_PAGE_LIMIT};
    struct pawli_writer writer;
    size_t count = 0;
    pawl_code code = pawli_fields_query(&inside_fields, call->uri, &page, &call->err);
    if (code != PAWL_OK || !pawli_call_may(call, call->captures[0]))
        return code;
    const pawl_worklease_page args = {call->captures[0], page.skip};
    int64_t *rows = calloc((size_t)page.limit, sizeof(*rows));
    if (rows == NULL)
        return pawli_fail_plain(&call->err, PAWL_NO_MEMORY);
    code = pawl_worklease_backlog(call->store, &args, rows, (size_t)page.limit, &count, &call->err);
    if (code == PAWL_OK) {
        pawli_call_json(call, 200, &writer);
        pawli_put_object(&writer, NULL);
        pawli_put_array(&writer, "offsets");
        for (size_t i = 0; i < count; i++)
            pawli_put_number(&writer, NULL, rows[i]);
        pawli_put_array_end(&writer);
        put_next_skip(&writer, &page, count);
        pawli_put_object_end(&writer);
        code = pawli_call_done(call, &writer);
    }
    free(rows);
    return code;
}

pawl_code pawli_api_worklease_terminal(struct pawli_call *call)
{
    struct page page = {.limit = PAWLI_PAGE_LIMIT};
    struct pawli_writer writer;
    size_t count = 0;
    pawl_code code = pawli_fields_query(&inside_fields, call->uri, &page, &call->err);
    if (code != PAWL_OK || !pawli_call_may(call, call->captures[0]))
        return code;
    const pawl_worklease_page args = {call->captures[0], page.skip};
    pawl_worklease_interval *rows = calloc((size_t)page.limit, sizeof(*rows));
    if (rows == NULL)
        return pawli_fail_plain(&call->err, PAWL_NO_MEMORY);
    code = pawl_worklease_terminal(call->store, &args, rows, (size_t)page.limit, &count,
                                   &call->err);
    if (code == PAWL_OK) {
        pawli_call_json(call, 200, &writer);
        pawli_put_object(&writer, NULL);
        pawli_put_array(&writer, "intervals");
        for (size_t i = 0; i < count; i++) {
            pawli_put_object(&writer, NULL);
            pawli_put_number(&writer, "first", rows[i].first);
            pawli_put_number(&writer, "last", rows[i].last);
            pawli_put_flag(&writer, "is_failed", rows[i].is_failed);
            pawli_put_object_end(&writer);
        }
        pawli_put_array_end(&writer);
        put_next_skip(&writer, &page, count);
        pawli_put_object_end(&writer);
        code = pawli_call_done(call, &writer);
    }
    free(rows);
    return code;
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * worklease.c - work leases on PostgreSQL.
 * Owns:  the form of these calls and of their answers.
 * Never: judges a lease (the SQL functions do, by the server's clock); makes a token (they do).
 */
#include "store/worklease.h"

#include "base/error.h"
#include "store/postgres/postgres.h"

#include <assert.h>
#include <string.h>

static struct pawli_pg_cell cell(const struct pawli_pg_call *call, int row, int column)
{
    return (struct pawli_pg_cell){call->answers[0], row, column};
}

static int rows_of(const struct pawli_pg_call *call)
{
    return PQntuples(call->answers[0]);
}

/* Run a call whose answer is one row. */
static pawl_code run_one(struct pawli_pg_call *call, const char *shape, pawl_err *err)
{
    pawl_code rc = pawli_pg_call_run(call, shape, err);
    if (rc == PAWL_OK && rows_of(call) != 1)
        rc = pawli_pg_call_spoilt(call, err);
    return rc;
}

/* ---- acquiring */

static bool read_got(struct pawli_pg_cell at, pawl_worklease_got *ret_got)
{
    const char *name = pawli_pg_bytes(at);
    for (int got = PAWL_GOT_ACQUIRED; got <= PAWL_GOT_HELD; got++) {
        if (strcmp(name, pawl_worklease_got_name((pawl_worklease_got)got)) == 0) {
            *ret_got = (pawl_worklease_got)got;
            return true;
        }
    }
    return false;
}

static pawl_code try_acquire(pawl_store *store, const pawl_worklease_acquire *args,
                             pawl_worklease_acquired *ret_acquired, pawl_err *err)
{
    struct pawli_pg_call call = {.handle = pawli_pg_handle_of(store)};
    struct pawli_pg_args *put = pawli_pg_call_add(
        &call, "select result, lease_token, is_taken_over, current_offset, acquired_at, "
               "retry_count, lease_expires_at from pawl.worklease_try_acquire($1, $2, $3, $4, $5)");
    pawli_pg_arg_text(put, args->domain);
    pawli_pg_arg_int8(put, args->offset);
    pawli_pg_arg_text(put, args->owner);
    pawli_pg_arg_optional(put, args->lease_ms);
    pawli_pg_arg_int8(put, args->backlog_max);
    pawl_code rc = run_one(&call, "subitit", err);
    pawl_worklease_acquired acquired = {.got = PAWL_GOT_ACQUIRED};
    if (rc == PAWL_OK && !read_got(cell(&call, 0, 0), &acquired.got))
        rc = pawli_pg_call_spoilt(&call, err);
    if (rc == PAWL_OK) {
        pawli_pg_uuid(cell(&call, 0, 1), acquired.token.bytes);
        acquired.is_taken_over = pawli_pg_bool(cell(&call, 0, 2));
        acquired.offset = pawli_pg_int(cell(&call, 0, 3));
        acquired.acquired_at = pawli_pg_wall(cell(&call, 0, 4));
        acquired.retry_count = pawli_pg_int(cell(&call, 0, 5));
        acquired.expires_at = pawli_pg_wall(cell(&call, 0, 6));
        *ret_acquired = acquired;
    }
    pawli_pg_call_clear(&call);
    return rc;
}

/* ---- holding */

/* Domain, token, owner: how each of these statements begins. */
static void put_hold(struct pawli_pg_args *put, const pawl_worklease_hold *hold)
{
    pawl_id token; /* a UUID, as ids are */
    memcpy(token.bytes, hold->token.bytes, sizeof(token.bytes));
    pawli_pg_arg_text(put, hold->domain);
    pawli_pg_arg_id(put, &token);
    pawli_pg_arg_text(put, hold->owner);
}

static bool read_end(struct pawli_pg_cell at, pawl_worklease_end *ret_end)
{
    const char *name = pawli_pg_bytes(at);
    for (int end = PAWL_END_NO_BACKLOG; end <= PAWL_END_GIVE_UP_NEXT_HINT; end++) {
        if (strcmp(name, pawl_worklease_end_name((pawl_worklease_end)end)) == 0) {
            *ret_end = (pawl_worklease_end)end;
            return true;
        }
    }
    return false;
}

/* Run a call that ends a lease, or counts a failure, and clear it. */
static pawl_code run_end(struct pawli_pg_call *call, pawl_worklease_ended *ret_ended, pawl_err *err)
{
    pawl_worklease_ended ended = {.end = PAWL_END_NO_BACKLOG};
    pawl_code rc = run_one(call, "sii", err);
    if (rc == PAWL_OK && !read_end(cell(call, 0, 0), &ended.end))
        rc = pawli_pg_call_spoilt(call, err);
    if (rc == PAWL_OK) {
        ended.next_offset = pawli_pg_int(cell(call, 0, 1));
        ended.retry_count = pawli_pg_int(cell(call, 0, 2));
        *ret_ended = ended;
    }
    pawli_pg_call_clear(call);
    return rc;
}

static pawl_code succeed(pawl_store *store, const pawl_worklease_hold *hold,
                         pawl_worklease_ended *ret_ended, pawl_err *err)
{
    struct pawli_pg_call call = {.handle = pawli_pg_handle_of(store)};
    struct pawli_pg_args *put = pawli_pg_call_add(
        &call, "select result, next_offset, 0 from pawl.worklease_succeed($1, $2, $3)");
    put_hold(put, hold);
    return run_end(&call, ret_ended, err);
}

static pawl_code fail(pawl_store *store, const pawl_worklease_hold *hold, int64_t max_retries,
                      pawl_worklease_ended *ret_ended, pawl_err *err)
{
    struct pawli_pg_call call = {.handle = pawli_pg_handle_of(store)};
    struct pawli_pg_args *put = pawli_pg_call_add(
        &call, "select result, next_offset, retry_count from pawl.worklease_fail($1, $2, $3, $4)");
    put_hold(put, hold);
    pawli_pg_arg_int4(put, max_retries);
    return run_end(&call, ret_ended, err);
}

static pawl_code renew(pawl_store *store, const pawl_worklease_hold *hold, int64_t lease_ms,
                       pawl_wall *ret_expires_at, pawl_err *err)
{
    struct pawli_pg_call call = {.handle = pawli_pg_handle_of(store)};
    struct pawli_pg_args *put = pawli_pg_call_add(
        &call, "select lease_expires_at from pawl.worklease_renew($1, $2, $4, $3) as r"
               "(lease_expires_at)");
    put_hold(put, hold);
    pawli_pg_arg_int8(put, lease_ms);
    pawl_code rc = run_one(&call, "t", err);
    if (rc == PAWL_OK)
        *ret_expires_at = pawli_pg_wall(cell(&call, 0, 0));
    pawli_pg_call_clear(&call);
    return rc;
}

/* ---- looking */

static void read_info(const struct pawli_pg_call *call, int row, pawl_worklease_info *ret_info)
{
    *ret_info = (pawl_worklease_info){
        .is_leased = !pawli_pg_is_null(cell(call, row, 1)),
        .offset = pawli_pg_int(cell(call, row, 1)),
        .acquired_at = pawli_pg_wall(cell(call, row, 3)),
        .retry_count = pawli_pg_int(cell(call, row, 4)),
        .expires_at = pawli_pg_wall(cell(call, row, 5)),
        .is_expired = pawli_pg_bool(cell(call, row, 6)),
        .backlog_count = pawli_pg_int(cell(call, row, 7)),
        .backlog_head = pawli_pg_int(cell(call, row, 8)),
    };
    pawli_pg_text(cell(call, row, 0), ret_info->domain, sizeof(ret_info->domain));
    pawli_pg_text(cell(call, row, 2), ret_info->owner, sizeof(ret_info->owner));
}

/* One domain, or those after a name. */
static pawl_code run_list(struct pawli_pg_call *call, const char *domain, const char *after,
                          size_t rows_max, pawl_err *err)
{
    struct pawli_pg_args *put = pawli_pg_call_add(
        call, "select domain, current_offset, owner, acquired_at, retry_count, lease_expires_at, "
              "is_expired, backlog_count, backlog_head from pawl.list_workleases($1, $2, $3)");
    pawli_pg_arg_text(put, domain);
    pawli_pg_arg_text(put, after);
    pawli_pg_arg_int4(put, (int64_t)rows_max);
    pawl_code rc = pawli_pg_call_run(call, "sistitbii", err);
    if (rc == PAWL_OK && (size_t)rows_of(call) > rows_max)
        rc = pawli_pg_call_spoilt(call, err);
    return rc;
}

static pawl_code get(pawl_store *store, const char *domain, pawl_worklease_info *ret_info,
                     pawl_err *err)
{
    struct pawli_pg_call call = {.handle = pawli_pg_handle_of(store), .is_read = true};
    pawl_code rc = run_list(&call, domain, NULL, 1, err);
    if (rc == PAWL_OK && rows_of(&call) == 0)
        rc = pawli_worklease_gone(domain, err);
    if (rc == PAWL_OK)
        read_info(&call, 0, ret_info);
    pawli_pg_call_clear(&call);
    return rc;
}

static pawl_code list_domains(pawl_store *store, const char *after, pawl_worklease_info *ret_rows,
                              size_t rows_max, size_t *ret_count, pawl_err *err)
{
    struct pawli_pg_call call = {.handle = pawli_pg_handle_of(store), .is_read = true};
    pawl_code rc = run_list(&call, NULL, after, rows_max, err);
    if (rc == PAWL_OK) {
        size_t count = (size_t)rows_of(&call);
        for (size_t i = 0; i < count; i++)
            read_info(&call, (int)i, &ret_rows[i]);
        *ret_count = count;
    }
    pawli_pg_call_clear(&call);
    return rc;
}

/* Run a list whose first row says no more than that the domain is known. */
static pawl_code run_page(struct pawli_pg_call *call, const pawl_worklease_page *page,
                          const char *sql, const char *shape, size_t rows_max, pawl_err *err)
{
    struct pawli_pg_args *put = pawli_pg_call_add(call, sql);
    pawli_pg_arg_text(put, page->domain);
    pawli_pg_arg_int8(put, page->skip);
    pawli_pg_arg_int4(put, (int64_t)rows_max);
    pawl_code rc = pawli_pg_call_run(call, shape, err);
    if (rc == PAWL_OK && rows_of(call) == 0)
        rc = pawli_worklease_gone(page->domain, err);
    if (rc == PAWL_OK && (size_t)rows_of(call) > rows_max + 1)
        rc = pawli_pg_call_spoilt(call, err);
    return rc;
}

static pawl_code list_backlog(pawl_store *store, const pawl_worklease_page *page, int64_t *ret_rows,
                              size_t rows_max, size_t *ret_count, pawl_err *err)
{
    struct pawli_pg_call call = {.handle = pawli_pg_handle_of(store), .is_read = true};
    pawl_code rc = run_page(&call, page,
                            "select queued_offset from pawl.list_worklease_backlog($1, $2, $3)",
                            "i", rows_max, err);
    if (rc == PAWL_OK) {
        size_t count = (size_t)rows_of(&call) - 1;
        for (size_t i = 0; i < count; i++)
            ret_rows[i] = pawli_pg_int(cell(&call, (int)i + 1, 0));
        *ret_count = count;
    }
    pawli_pg_call_clear(&call);
    return rc;
}

static pawl_code list_terminal(pawl_store *store, const pawl_worklease_page *page,
                               pawl_worklease_interval *ret_rows, size_t rows_max,
                               size_t *ret_count, pawl_err *err)
{
    struct pawli_pg_call call = {.handle = pawli_pg_handle_of(store), .is_read = true};
    pawl_code rc = run_page(
        &call, page,
        "select first_offset, last_offset, is_failed from pawl.list_worklease_terminal($1, $2, $3)",
        "iib", rows_max, err);
    if (rc == PAWL_OK) {
        size_t count = (size_t)rows_of(&call) - 1;
        for (size_t i = 0; i < count; i++)
            ret_rows[i] = (pawl_worklease_interval){
                .first = pawli_pg_int(cell(&call, (int)i + 1, 0)),
                .last = pawli_pg_int(cell(&call, (int)i + 1, 1)),
                .is_failed = pawli_pg_bool(cell(&call, (int)i + 1, 2)),
            };
        *ret_count = count;
    }
    pawli_pg_call_clear(&call);
    return rc;
}

const struct pawli_worklease_ops pawli_pg_worklease_ops = {
    .try_acquire = try_acquire,
    .succeed = succeed,
    .fail = fail,
    .renew = renew,
    .get = get,
    .domains = list_domains,
    .backlog = list_backlog,
    .terminal = list_terminal,
};

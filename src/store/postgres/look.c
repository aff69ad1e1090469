/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * look.c - what the PostgreSQL store shows: jobs, ledgers, leases, workers, counts.
 * Owns:  the form in which a job is given out; pages.
 * Never: changes anything; shows a token to anybody but its holder.
 */
#include "store/postgres/postgres.h"
#include "store/postgres/rows.h"

#include "base/error.h"
#include "core/id.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- jobs */

bool pawli_pg_payload(struct pawli_pg_cell cell, pawl_job *job)
{
    size_t len = pawli_pg_len(cell);
    job->payload = NULL;
    if (!pawli_pg_is_null(cell))
        job->payload_len = len;
    if (pawli_pg_is_null(cell) || len == 0)
        return true;
    job->payload = malloc(len);
    if (job->payload == NULL)
        return false;
    memcpy(job->payload, pawli_pg_bytes(cell), len);
    return true;
}

bool pawli_pg_headers(struct pawli_pg_cell cell, pawl_job *job)
{
    size_t len = pawli_pg_len(cell);
    job->headers = NULL;
    if (pawli_pg_is_null(cell) || len == 0)
        return true;
    job->headers = malloc(len + 1);
    if (job->headers == NULL)
        return false;
    memcpy(job->headers, pawli_pg_bytes(cell), len);
    job->headers[len] = '\0';
    return true;
}

void pawli_pg_clear_jobs(pawl_job *jobs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        pawl_job_clear(&jobs[i]);
}

/* The cell of one row, column after column. */
struct cursor {
    struct pawli_pg_cell cell;
};

static struct pawli_pg_cell next(struct cursor *cursor)
{
    struct pawli_pg_cell cell = cursor->cell;
    cursor->cell.column++;
    return cell;
}

/* In the order of PAWLI_PG_JOB_COLUMNS. */
static bool give_job(const PGresult *answer, int row, pawl_job *ret_job)
{
    struct cursor at = {{answer, row, 0}};
    *ret_job = (pawl_job){0};
    pawli_pg_uuid(next(&at), ret_job->id.bytes);
    pawli_pg_text(next(&at), ret_job->queue, sizeof(ret_job->queue));
    ret_job->state = (pawl_state)pawli_pg_int(next(&at));
    ret_job->priority = (int)pawli_pg_int(next(&at));
    ret_job->retries = pawli_pg_int(next(&at));
    ret_job->lost_leases = pawli_pg_int(next(&at));
    ret_job->attempts = pawli_pg_int(next(&at));
    ret_job->lease_version = pawli_pg_int(next(&at));
    ret_job->max_retries = pawli_pg_int(next(&at));
    ret_job->created_at = pawli_pg_wall(next(&at));
    ret_job->due_at = pawli_pg_wall(next(&at));
    ret_job->start_by = pawli_pg_wall(next(&at));
    ret_job->finished_at = pawli_pg_wall(next(&at));
    ret_job->reason = (pawl_reason)pawli_pg_int(next(&at));
    pawli_pg_text(next(&at), ret_job->worker, sizeof(ret_job->worker));
    ret_job->claimed_at = pawli_pg_wall(next(&at));
    ret_job->expires_at = pawli_pg_wall(next(&at));
    ret_job->run_until = pawli_pg_wall(next(&at));
    ret_job->lease_ms = pawli_pg_int(next(&at));
    ret_job->timeout_ms = pawli_pg_int(next(&at));
    ret_job->is_cancel_asked = pawli_pg_bool(next(&at));
    ret_job->payload_len = (size_t)pawli_pg_int(next(&at));
    pawli_pg_uuid(next(&at), ret_job->token.bytes);
    struct pawli_pg_cell payload = next(&at);
    pawli_pg_text(next(&at), ret_job->ordering_key, sizeof(ret_job->ordering_key));
    ret_job->fence = pawli_pg_int(next(&at));
    return pawli_pg_payload(payload, ret_job) && pawli_pg_headers(next(&at), ret_job);
}

pawl_code pawli_pg_give_jobs(const struct pawli_pg_call *call, pawl_job *ret_jobs, size_t jobs_max,
                             size_t *ret_count, pawl_err *err)
{
    const PGresult *answer = call->answers[0];
    size_t count = (size_t)PQntuples(answer);
    assert(call->is_read);
    if (count > jobs_max)
        return pawli_pg_call_spoilt(call, err);
    for (size_t i = 0; i < count; i++) {
        if (!give_job(answer, (int)i, &ret_jobs[i])) {
            pawli_pg_clear_jobs(ret_jobs, i + 1);
            return pawli_fail_plain(err, PAWL_NO_MEMORY);
        }
    }
    *ret_count = count;
    return PAWL_OK;
}

pawl_code pawli_pg_get(pawl_store *store, const pawl_id *id, pawl_job *ret_job, pawl_err *err)
{
    struct pawli_pg_call call = {.handle = pawli_pg_handle_of(store), .is_read = true};
    struct pawli_pg_args *args = pawli_pg_call_add(&call, "select " PAWLI_PG_JOB_COLUMNS
                                                          " from pawl.get_job($1, $2)");
    pawli_pg_arg_int4(args, pawli_id_shard(id, call.handle->shards));
    pawli_pg_arg_id(args, id);
    size_t count = 0;
    pawl_code rc = pawli_pg_call_run(&call, PAWLI_PG_JOB_SHAPE, err);
    if (rc == PAWL_OK)
        rc = pawli_pg_give_jobs(&call, ret_job, 1, &count, err);
    if (rc == PAWL_OK && count == 0)
        rc = pawli_fail_plain(err, PAWL_GONE);
    pawli_pg_call_clear(&call);
    return rc;
}

static const pawl_filter filter_all = {0};

pawl_code pawli_pg_list(pawl_store *store, const pawl_filter *filter, const pawl_id *after,
                        pawl_job *ret_jobs, size_t jobs_max, size_t *ret_count, pawl_err *err)
{
    struct pawli_pg_call call = {.handle = pawli_pg_handle_of(store), .is_read = true};
    struct pawli_pg_args *args = pawli_pg_call_add(
        &call,
        "select " PAWLI_PG_JOB_COLUMNS " from pawl.list_jobs($1, $2, $3::int2, $4, $5, $6, $7) "
        "order by id");
    filter = filter != NULL ? filter : &filter_all;
    pawli_pg_arg_text(args, filter->queue);
    pawli_pg_arg_int4(args, (int64_t)filter->states);
    pawli_pg_arg_int4(args, (int64_t)filter->reason);
    pawli_pg_arg_text(args, filter->worker);
    pawli_pg_arg_id(args, after);
    pawli_pg_arg_int4(args, (int64_t)jobs_max);
    pawli_pg_arg_text(args, filter->ordering_key);
    pawl_code rc = pawli_pg_call_run(&call, PAWLI_PG_JOB_SHAPE, err);
    if (rc == PAWL_OK)
        rc = pawli_pg_give_jobs(&call, ret_jobs, jobs_max, ret_count, err);
    pawli_pg_call_clear(&call);
    return rc;
}

/* ---- pages of other rows */

/* Run a call that only reads and fill a page from its one answer, a row at a time. */
struct page {
    const char *shape;
    void (*read)(struct cursor *at, void *ret_row);
    void *ret_rows;
    size_t row_size;
    size_t rows_max;
};

static pawl_code run_page(struct pawli_pg_call *call, const struct page *page, size_t *ret_count,
                          pawl_err *err)
{
    assert(call->is_read);
    pawl_code rc = pawli_pg_call_run(call, page->shape, err);
    if (rc != PAWL_OK)
        return rc;
    size_t count = (size_t)PQntuples(call->answers[0]);
    if (count > page->rows_max)
        return pawli_pg_call_spoilt(call, err);
    for (size_t i = 0; i < count; i++) {
        struct cursor at = {{call->answers[0], (int)i, 0}};
        page->read(&at, (char *)page->ret_rows + i * page->row_size);
    }
    *ret_count = count;
    return PAWL_OK;
}

/* ---- ledgers */

static void read_attempt(struct cursor *at, pawl_attempt *row)
{
    *row = (pawl_attempt){.attempt_no = pawli_pg_int(next(at))};
    row->outcome = (pawl_outcome)pawli_pg_int(next(at));
    row->reason = (pawl_reason)pawli_pg_int(next(at));
    row->ended_by = (pawl_ended_by)pawli_pg_int(next(at));
    row->lease_version = pawli_pg_int(next(at));
    pawli_pg_text(next(at), row->worker, sizeof(row->worker));
    row->started_at = pawli_pg_wall(next(at));
    row->finished_at = pawli_pg_wall(next(at));
    pawli_pg_text(next(at), row->error_code, sizeof(row->error_code));
    pawli_pg_text(next(at), row->error_text, sizeof(row->error_text));
    struct pawli_pg_cell sends = next(at);
    row->wire_sends = pawli_pg_is_null(sends) ? PAWL_SENDS_UNKNOWN : pawli_pg_int(sends);
}

pawl_code pawli_pg_attempts(pawl_store *store, const pawl_id *id, int64_t after_no,
                            pawl_attempt *ret_rows, size_t rows_max, size_t *ret_count,
                            pawl_err *err)
{
    struct pawli_pg_call call = {.handle = pawli_pg_handle_of(store), .is_read = true};
    struct pawli_pg_args *args = pawli_pg_call_add(
        &call, "select attempt_no, outcome, reason, ended_by, lease_version, worker, started_at, "
               "finished_at, error_code, error_text, wire_sends from "
               "pawl.list_attempts($1, $2, $3, $4) order by attempt_no");
    pawli_pg_arg_int4(args, pawli_id_shard(id, call.handle->shards));
    pawli_pg_arg_id(args, id);
    pawli_pg_arg_int4(args, after_no < INT32_MAX ? after_no : INT32_MAX);
    pawli_pg_arg_int4(args, (int64_t)rows_max);
    pawl_code rc = pawli_pg_call_run(&call, "iiiiisttssi", err);
    if (rc == PAWL_OK) {
        /* The first row has the number 0 and says only that there is memory of the job. */
        size_t count = (size_t)PQntuples(call.answers[0]);
        if (count > rows_max + 1)
            rc = pawli_pg_call_spoilt(&call, err);
        else if (count == 0)
            rc = pawli_fail_plain(err, PAWL_GONE);
        for (size_t i = 1; rc == PAWL_OK && i < count; i++) {
            struct cursor at = {{call.answers[0], (int)i, 0}};
            read_attempt(&at, &ret_rows[i - 1]);
        }
        if (rc == PAWL_OK)
            *ret_count = count - 1;
    }
    pawli_pg_call_clear(&call);
    return rc;
}

/* ---- leases */

static void read_lease(struct cursor *at, void *ret_row)
{
    pawl_lease_info *row = ret_row;
    *row = (pawl_lease_info){0};
    pawli_pg_uuid(next(at), row->job.bytes);
    pawli_pg_text(next(at), row->queue, sizeof(row->queue));
    pawli_pg_text(next(at), row->worker, sizeof(row->worker));
    row->lease_version = pawli_pg_int(next(at));
    row->claimed_at = pawli_pg_wall(next(at));
    row->expires_at = pawli_pg_wall(next(at));
    row->is_expired = pawli_pg_bool(next(at));
    row->is_cancel_asked = pawli_pg_bool(next(at));
}

pawl_code pawli_pg_leases(pawl_store *store, const pawl_filter *filter, const pawl_id *after,
                          pawl_lease_info *ret_rows, size_t rows_max, size_t *ret_count,
                          pawl_err *err)
{
    struct pawli_pg_call call = {.handle = pawli_pg_handle_of(store), .is_read = true};
    struct pawli_pg_args *args = pawli_pg_call_add(
        &call, "select id, queue, worker, lease_version, claimed_at, lease_expires_at, is_expired, "
               "is_cancel_asked from pawl.list_leases($1, $2, $3, $4) order by id");
    filter = filter != NULL ? filter : &filter_all;
    pawli_pg_arg_text(args, filter->queue);
    pawli_pg_arg_text(args, filter->worker);
    pawli_pg_arg_id(args, after);
    pawli_pg_arg_int4(args, (int64_t)rows_max);
    struct page page = {"ussittbb", read_lease, ret_rows, sizeof(*ret_rows), rows_max};
    pawl_code rc = run_page(&call, &page, ret_count, err);
    pawli_pg_call_clear(&call);
    return rc;
}

/* ---- workers and queues */

static void read_worker(struct cursor *at, void *ret_row)
{
    pawl_worker *row = ret_row;
    *row = (pawl_worker){0};
    pawli_pg_text(next(at), row->name, sizeof(row->name));
    row->kind = (pawl_worker_kind)pawli_pg_int(next(at));
    pawli_pg_text(next(at), row->host, sizeof(row->host));
    pawli_pg_text(next(at), row->version, sizeof(row->version));
    pawli_pg_text(next(at), row->queues, sizeof(row->queues));
    row->since = pawli_pg_wall(next(at));
    row->last_seen = pawli_pg_wall(next(at));
    row->leases = pawli_pg_int(next(at));
}

static pawl_code list_workers(pawl_store *store, const char *sql, const char *after,
                              struct page *page, size_t *ret_count, pawl_err *err)
{
    struct pawli_pg_call call = {.handle = pawli_pg_handle_of(store), .is_read = true};
    struct pawli_pg_args *args = pawli_pg_call_add(&call, sql);
    pawli_pg_arg_text(args, after);
    pawli_pg_arg_int4(args, (int64_t)page->rows_max);
    pawl_code rc = run_page(&call, page, ret_count, err);
    pawli_pg_call_clear(&call);
    return rc;
}

#define WORKERS       "select name, kind, host, version, queues, since, last_seen, leases from "
#define WORKERS_SHAPE "sissstti"

pawl_code pawli_pg_workers(pawl_store *store, const char *after, pawl_worker *ret_rows,
                           size_t rows_max, size_t *ret_count, pawl_err *err)
{
    struct page page = {WORKERS_SHAPE, read_worker, ret_rows, sizeof(*ret_rows), rows_max};
    return list_workers(store, WORKERS "pawl.list_workers($1, $2) order by name collate \"C\"",
                        after, &page, ret_count, err);
}

pawl_code pawli_pg_presences(pawl_store *store, const char *after, pawl_worker *ret_rows,
                             size_t rows_max, size_t *ret_count, pawl_err *err)
{
    struct page page = {WORKERS_SHAPE, read_worker, ret_rows, sizeof(*ret_rows), rows_max};
    return list_workers(store,
                        WORKERS "pawl.list_workers($1, $2, false) order by name collate \"C\"",
                        after, &page, ret_count, err);
}

static void read_stats(struct cursor *at, void *ret_row)
{
    pawl_stats *row = ret_row;
    *row = (pawl_stats){0};
    pawli_pg_text(next(at), row->queue, sizeof(row->queue));
    row->is_paused = pawli_pg_bool(next(at));
    row->ready = pawli_pg_int(next(at));
    row->delayed = pawli_pg_int(next(at));
    row->in_flight = pawli_pg_int(next(at));
    row->expired = pawli_pg_int(next(at));
    row->succeeded = pawli_pg_int(next(at));
    row->failed = pawli_pg_int(next(at));
    row->oldest_due_ms = pawli_pg_int(next(at));
}

pawl_code pawli_pg_queue_stats(pawl_store *store, const char *after, pawl_stats *ret_rows,
                               size_t rows_max, size_t *ret_count, pawl_err *err)
{
    struct pawli_pg_call call = {.handle = pawli_pg_handle_of(store), .is_read = true};
    struct pawli_pg_args *args = pawli_pg_call_add(
        &call, "select queue, is_paused, ready, delayed, in_flight, expired, succeeded, failed, "
               "oldest_due_ms from pawl.list_stats($1, $2) order by queue collate \"C\"");
    pawli_pg_arg_text(args, after);
    pawli_pg_arg_int4(args, (int64_t)rows_max);
    struct page page = {"sbiiiiiii", read_stats, ret_rows, sizeof(*ret_rows), rows_max};
    pawl_code rc = run_page(&call, &page, ret_count, err);
    pawli_pg_call_clear(&call);
    return rc;
}

static void read_depth(struct cursor *at, void *ret_row)
{
    pawl_stats *row = ret_row;
    *row = (pawl_stats){0};
    pawli_pg_text(next(at), row->queue, sizeof(row->queue));
    row->is_paused = pawli_pg_bool(next(at));
    row->ready = pawli_pg_int(next(at));
    row->delayed = pawli_pg_int(next(at));
    row->in_flight = pawli_pg_int(next(at));
    row->expired = pawli_pg_int(next(at));
    row->oldest_due_ms = pawli_pg_int(next(at));
}

pawl_code pawli_pg_queue_depths(pawl_store *store, const pawl_depth_args *args,
                                pawl_stats *ret_rows, size_t rows_max, size_t *ret_count,
                                pawl_err *err)
{
    struct pawli_pg_call call = {.handle = pawli_pg_handle_of(store), .is_read = true};
    struct pawli_pg_args *values = pawli_pg_call_add(
        &call, "select queue, is_paused, ready, delayed, in_flight, expired, oldest_due_ms "
               "from pawl.list_depths($1, $2, $3) order by queue collate \"C\"");
    pawli_pg_arg_text(values, args->queue);
    pawli_pg_arg_text(values, args->after);
    pawli_pg_arg_int4(values, (int64_t)rows_max);
    struct page page = {"sbiiiii", read_depth, ret_rows, sizeof(*ret_rows), rows_max};
    pawl_code rc = run_page(&call, &page, ret_count, err);
    pawli_pg_call_clear(&call);
    return rc;
}

pawl_code pawli_pg_now(pawl_store *store, pawl_wall *ret_now, pawl_err *err)
{
    struct pawli_pg_call call = {.handle = pawli_pg_handle_of(store), .is_read = true};
    (void)pawli_pg_call_add(&call, "select pawl.store_now()"); /* it has no arguments */
    pawl_code rc = pawli_pg_call_run(&call, "t", err);
    if (rc == PAWL_OK)
        *ret_now = pawli_pg_wall((struct pawli_pg_cell){call.answers[0], 0, 0});
    pawli_pg_call_clear(&call);
    return rc;
}

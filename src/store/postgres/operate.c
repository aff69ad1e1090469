/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * operate.c - what operators and reapers do to the PostgreSQL store, and its registers.
 * Owns:  the form of cancel, redrive, discard, reap and prune, of queue settings and of presence.
 * Never: decides what a job becomes (the SQL functions do).
 */
#include "store/postgres/postgres.h"

#include "base/error.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- by id */

struct ids {
    const pawl_id *ids;
    size_t count;
    pawl_changed *results;
};

static bool read_changed(const PGresult *answer, const size_t *picks, size_t picks_count,
                         pawl_changed *ret_results)
{
    if ((size_t)PQntuples(answer) != picks_count)
        return false;
    for (int row = 0; row < (int)picks_count; row++) {
        int64_t ordinal = pawli_pg_int((struct pawli_pg_cell){answer, row, 0});
        pawl_changed changed = {0};
        if (ordinal < 1 || (size_t)ordinal > picks_count ||
            !pawli_pg_verdict((struct pawli_pg_cell){answer, row, 1}, &changed.code))
            return false;
        if (changed.code == PAWL_OK)
            changed.state = (pawl_state)pawli_pg_int((struct pawli_pg_cell){answer, row, 2});
        ret_results[picks[ordinal - 1]] = changed;
    }
    return true;
}

static pawl_code change_ids(pawl_store *store, const char *sql, const struct ids *ids,
                            pawl_err *err)
{
    struct pawli_pg_call call = {.handle = pawli_pg_handle_of(store)};
    struct pawli_pg_groups groups;
    if (!pawli_pg_group(call.handle, ids->ids, sizeof(pawl_id), ids->count, &groups))
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    for (size_t shard = 0; shard < groups.count; shard++) {
        size_t at = groups.starts[shard];
        if (at == groups.starts[shard + 1])
            continue;
        struct pawli_pg_args *args = pawli_pg_call_add(&call, sql);
        pawli_pg_arg_int4(args, (int64_t)shard);
        pawli_pg_array_begin(args, PAWLI_PG_UUID, groups.starts[shard + 1] - at);
        for (; at < groups.starts[shard + 1]; at++)
            pawli_pg_item_uuid(args, ids->ids[groups.rows[at]].bytes);
        pawli_pg_array_end(args);
    }
    pawl_code rc = pawli_pg_call_run(&call, "isi", err);
    size_t answered = 0;
    for (size_t shard = 0; rc == PAWL_OK && shard < groups.count; shard++) {
        size_t at = groups.starts[shard];
        size_t count = groups.starts[shard + 1] - at;
        if (count > 0 &&
            !read_changed(call.answers[answered++], &groups.rows[at], count, ids->results))
            rc = pawli_pg_call_spoilt(&call, err);
    }
    pawli_pg_call_clear(&call);
    pawli_pg_groups_clear(&groups);
    return rc;
}

pawl_code pawli_pg_cancel(pawl_store *store, const pawl_id *ids, size_t ids_count,
                          pawl_changed *ret_results, pawl_err *err)
{
    return change_ids(store, "select ordinal, verdict, state from pawl.cancel_batch($1, $2)",
                      &(struct ids){ids, ids_count, ret_results}, err);
}

pawl_code pawli_pg_redrive(pawl_store *store, const pawl_id *ids, size_t ids_count,
                           pawl_changed *ret_results, pawl_err *err)
{
    return change_ids(store, "select ordinal, verdict, state from pawl.redrive_batch($1, $2)",
                      &(struct ids){ids, ids_count, ret_results}, err);
}

pawl_code pawli_pg_discard(pawl_store *store, const pawl_id *ids, size_t ids_count,
                           pawl_changed *ret_results, pawl_err *err)
{
    return change_ids(store, "select ordinal, verdict, state from pawl.discard_batch($1, $2)",
                      &(struct ids){ids, ids_count, ret_results}, err);
}

/* ---- by filter, and what only counts */

/* Run a call whose one answer is one number: how many. */
static pawl_code run_count(struct pawli_pg_call *call, size_t most, size_t *ret_count,
                           pawl_err *err)
{
    pawl_code rc = pawli_pg_call_run(call, "i", err);
    if (rc == PAWL_OK) {
        const PGresult *answer = call->answers[0];
        int64_t count = PQntuples(answer) == 1 ? pawli_pg_int((struct pawli_pg_cell){answer, 0, 0})
                                               : -1;
        if (count < 0 || (uint64_t)count > most)
            rc = pawli_pg_call_spoilt(call, err);
        else
            *ret_count = (size_t)count;
    }
    pawli_pg_call_clear(call);
    return rc;
}

static pawl_code change_where(pawl_store *store, const char *sql, const pawl_filter *filter,
                              size_t jobs_max, size_t *ret_count, pawl_err *err)
{
    struct pawli_pg_call call = {.handle = pawli_pg_handle_of(store)};
    struct pawli_pg_args *args = pawli_pg_call_add(&call, sql);
    pawli_pg_arg_text(args, filter->queue);
    pawli_pg_arg_int4(args, (int64_t)filter->states);
    pawli_pg_arg_int4(args, (int64_t)filter->reason);
    pawli_pg_arg_text(args, filter->worker);
    pawli_pg_arg_int4(args, (int64_t)jobs_max);
    pawli_pg_arg_text(args, filter->ordering_key);
    return run_count(&call, jobs_max, ret_count, err);
}

pawl_code pawli_pg_cancel_where(pawl_store *store, const pawl_filter *filter, size_t jobs_max,
                                size_t *ret_count, pawl_err *err)
{
    return change_where(store, "select pawl.cancel_where($1, $2, $3::int2, $4, $5, $6)", filter,
                        jobs_max, ret_count, err);
}

pawl_code pawli_pg_redrive_where(pawl_store *store, const pawl_filter *filter, size_t jobs_max,
                                 size_t *ret_count, pawl_err *err)
{
    return change_where(store, "select pawl.redrive_where($1, $2, $3::int2, $4, $5, $6)", filter,
                        jobs_max, ret_count, err);
}

pawl_code pawli_pg_discard_where(pawl_store *store, const pawl_filter *filter, size_t jobs_max,
                                 size_t *ret_count, pawl_err *err)
{
    return change_where(store, "select pawl.discard_where($1, $2, $3::int2, $4, $5, $6)", filter,
                        jobs_max, ret_count, err);
}

/* ---- recovering */

static void put_all_shards(struct pawli_pg_args *args, const struct pawli_pg_handle *handle)
{
    pawli_pg_array_begin(args, PAWLI_PG_INT4, (size_t)handle->shards);
    for (int64_t shard = 0; shard < handle->shards; shard++)
        pawli_pg_item_int4(args, shard);
    pawli_pg_array_end(args);
}

static void read_reaped(const PGresult *answer, int row, pawl_reaped *ret_row)
{
    *ret_row = (pawl_reaped){
        .lease_version = pawli_pg_int((struct pawli_pg_cell){answer, row, 3}),
        .state = (pawl_state)pawli_pg_int((struct pawli_pg_cell){answer, row, 4}),
        .reason = (pawl_reason)pawli_pg_int((struct pawli_pg_cell){answer, row, 5}),
        .overdue_ms = pawli_pg_int((struct pawli_pg_cell){answer, row, 7}),
    };
    if (ret_row->state == PAWL_READY)
        ret_row->due_at = pawli_pg_wall((struct pawli_pg_cell){answer, row, 6});
    pawli_pg_uuid((struct pawli_pg_cell){answer, row, 0}, ret_row->job.bytes);
    pawli_pg_text((struct pawli_pg_cell){answer, row, 1}, ret_row->queue, sizeof(ret_row->queue));
    pawli_pg_text((struct pawli_pg_cell){answer, row, 2}, ret_row->worker, sizeof(ret_row->worker));
}

pawl_code pawli_pg_reap(pawl_store *store, pawl_reaped *ret_rows, size_t rows_max,
                        size_t *ret_count, pawl_err *err)
{
    struct pawli_pg_call call = {.handle = pawli_pg_handle_of(store)};
    struct pawli_pg_args *args = pawli_pg_call_add(
        &call, "select id, queue, worker, lease_version, state, reason, due_at, overdue_ms from "
               "pawl.reap_lines($1, $2, $3)");
    put_all_shards(args, call.handle);
    pawli_pg_arg_int4(args, (int64_t)rows_max);
    pawli_pg_arg_seed(&call, args);
    pawl_code rc = pawli_pg_call_run(&call, "ussiiiti", err);
    if (rc == PAWL_OK && (size_t)PQntuples(call.answers[0]) > rows_max)
        rc = pawli_pg_call_spoilt(&call, err);
    if (rc == PAWL_OK) {
        size_t count = (size_t)PQntuples(call.answers[0]);
        for (size_t i = 0; i < count; i++)
            read_reaped(call.answers[0], (int)i, &ret_rows[i]);
        *ret_count = count;
    }
    pawli_pg_call_clear(&call);
    return rc;
}

pawl_code pawli_pg_prune(pawl_store *store, size_t jobs_max, size_t *ret_count, pawl_err *err)
{
    struct pawli_pg_call call = {.handle = pawli_pg_handle_of(store)};
    struct pawli_pg_args *args = pawli_pg_call_add(&call, "select pawl.prune_lines($1, $2)");
    put_all_shards(args, call.handle);
    pawli_pg_arg_int4(args, (int64_t)jobs_max);
    return run_count(&call, jobs_max, ret_count, err);
}

/* ---- queues and workers */

/* Run a call whose answer says nothing. The functions return void, which has no binary form that
 * we would read: the statements wrap it. */
static pawl_code run_plain(struct pawli_pg_call *call, pawl_err *err)
{
    pawl_code rc = pawli_pg_call_run(call, "b", err);
    pawli_pg_call_clear(call);
    return rc;
}

static int64_t optional(struct pawli_pg_cell cell, int64_t where_null)
{
    return pawli_pg_is_null(cell) ? where_null : pawli_pg_int(cell);
}

pawl_code pawli_pg_queue_get(pawl_store *store, const char *queue,
                             pawl_queue_settings *ret_settings, pawl_err *err)
{
    struct pawli_pg_call call = {.handle = pawli_pg_handle_of(store), .is_read = true};
    struct pawli_pg_args *args = pawli_pg_call_add(
        &call, "select lease_ms, execution_timeout_ms, max_retries, max_lost_leases, "
               "backoff_base_ms, backoff_max_ms, keep_succeeded_ms, keep_failed_ms, is_paused, "
               "max_in_flight from pawl.queue_get($1)");
    pawli_pg_arg_text(args, queue);
    pawl_code rc = pawli_pg_call_run(&call, "iiiiiiiibi", err);
    if (rc == PAWL_OK && PQntuples(call.answers[0]) == 0) {
        pawl_queue_settings_init(ret_settings);
    } else if (rc == PAWL_OK) {
        const PGresult *answer = call.answers[0];
        *ret_settings = (pawl_queue_settings){
            .lease_ms = pawli_pg_int((struct pawli_pg_cell){answer, 0, 0}),
            .execution_timeout_ms = optional((struct pawli_pg_cell){answer, 0, 1}, PAWL_DEFAULT),
            .max_retries = pawli_pg_int((struct pawli_pg_cell){answer, 0, 2}),
            .max_lost_leases = pawli_pg_int((struct pawli_pg_cell){answer, 0, 3}),
            .backoff_base_ms = pawli_pg_int((struct pawli_pg_cell){answer, 0, 4}),
            .backoff_max_ms = pawli_pg_int((struct pawli_pg_cell){answer, 0, 5}),
            .keep_succeeded_ms = optional((struct pawli_pg_cell){answer, 0, 6}, PAWL_FOREVER),
            .keep_failed_ms = optional((struct pawli_pg_cell){answer, 0, 7}, PAWL_FOREVER),
            .is_paused = pawli_pg_bool((struct pawli_pg_cell){answer, 0, 8}),
            .max_in_flight = pawli_pg_int((struct pawli_pg_cell){answer, 0, 9}),
        };
    }
    pawli_pg_call_clear(&call);
    return rc;
}

pawl_code pawli_pg_queue_set(pawl_store *store, const char *queue,
                             const pawl_queue_settings *settings, pawl_err *err)
{
    struct pawli_pg_call call = {.handle = pawli_pg_handle_of(store)};
    struct pawli_pg_args *args = pawli_pg_call_add(
        &call, "select true from pawl.queue_set($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)");
    pawli_pg_arg_text(args, queue);
    pawli_pg_arg_int8(args, settings->lease_ms);
    pawli_pg_arg_optional(args, settings->execution_timeout_ms);
    pawli_pg_arg_int4(args, settings->max_retries);
    pawli_pg_arg_int4(args, settings->max_lost_leases);
    pawli_pg_arg_int8(args, settings->backoff_base_ms);
    pawli_pg_arg_int8(args, settings->backoff_max_ms);
    pawli_pg_arg_optional(args, settings->keep_succeeded_ms);
    pawli_pg_arg_optional(args, settings->keep_failed_ms);
    pawli_pg_arg_int4(args, settings->max_in_flight);
    return run_plain(&call, err);
}

pawl_code pawli_pg_queue_pause(pawl_store *store, const char *queue, bool is_paused, pawl_err *err)
{
    struct pawli_pg_call call = {.handle = pawli_pg_handle_of(store)};
    struct pawli_pg_args *args = pawli_pg_call_add(&call,
                                                   "select true from pawl.queue_pause($1, $2)");
    pawli_pg_arg_text(args, queue);
    pawli_pg_arg_bool(args, is_paused);
    return run_plain(&call, err);
}

pawl_code pawli_pg_worker_seen(pawl_store *store, const pawl_worker_seen *seen, pawl_err *err)
{
    struct pawli_pg_call call = {.handle = pawli_pg_handle_of(store)};
    struct pawli_pg_args *args = pawli_pg_call_add(
        &call, "select true from pawl.worker_seen($1, $2::int2, $3, $4, $5)");
    pawli_pg_arg_text(args, seen->name);
    pawli_pg_arg_int4(args, (int64_t)seen->kind);
    pawli_pg_arg_text(args, seen->host);
    pawli_pg_arg_text(args, seen->version);
    pawli_pg_arg_text(args, seen->queues);
    return run_plain(&call, err);
}

pawl_code pawli_pg_worker_ended(pawl_store *store, const char *name, pawl_err *err)
{
    struct pawli_pg_call call = {.handle = pawli_pg_handle_of(store)};
    struct pawli_pg_args *args = pawli_pg_call_add(&call, "select true from pawl.worker_ended($1)");
    pawli_pg_arg_text(args, name);
    return run_plain(&call, err);
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * registry.c - the SQLite store's queues, and who has shown himself.
 * Owns:  when a queue comes into being; the verbs on queue settings and on workers' presence; the
 *        counts of a queue.
 * Never: changes a job.
 */
#include "store/sqlite/sqlite.h"

#include "base/clock.h"
#include "base/error.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- queues */

/* Read the row that the query gives, if any, into pass->queue. */
static bool read_queue(struct pass *pass, struct query *query, bool *ret_found)
{
    *ret_found = pawli_sqlite_row(query);
    if (*ret_found) {
        struct queue *queue = &pass->queue;
        pawl_queue_settings *settings = &queue->settings;
        queue->queue_id = pawli_sqlite_int(query);
        bool is_whole = pawli_sqlite_text(query, queue->name, sizeof(queue->name));
        settings->lease_ms = pawli_sqlite_int(query);
        settings->execution_timeout_ms = pawli_sqlite_optional(query, PAWL_DEFAULT);
        settings->max_retries = pawli_sqlite_int(query);
        settings->max_lost_leases = pawli_sqlite_int(query);
        settings->backoff_base_ms = pawli_sqlite_int(query);
        settings->backoff_max_ms = pawli_sqlite_int(query);
        settings->keep_succeeded_ms = pawli_sqlite_optional(query, PAWL_FOREVER);
        settings->keep_failed_ms = pawli_sqlite_optional(query, PAWL_FOREVER);
        settings->max_in_flight = pawli_sqlite_int(query);
        settings->is_paused = pawli_sqlite_int(query) != 0;
        queue->is_set = pawli_sqlite_int(query) != 0;
        if (!is_whole || pawl_queue_settings_check(settings, NULL) != PAWL_OK)
            (void)pawli_sqlite_spoil(pass, SQLITE_CORRUPT); /* told by end */
    }
    pass->has_queue = *ret_found;
    return pawli_sqlite_end(query);
}

bool pawli_sqlite_queue_find(struct pass *pass, const char *name, bool *ret_found)
{
    *ret_found = pass->has_queue && strcmp(pass->queue.name, name) == 0;
    if (*ret_found)
        return true;
    struct query query = pawli_sqlite_query(pass, S_QUEUE_BY_NAME);
    pawli_sqlite_put_text(&query, name);
    return read_queue(pass, &query, ret_found);
}

bool pawli_sqlite_queue_need(struct pass *pass, const char *name)
{
    bool is_found;
    if (!pawli_sqlite_queue_find(pass, name, &is_found) || is_found)
        return is_found;
    struct query query = pawli_sqlite_query(pass, S_QUEUE_INSERT);
    pawli_sqlite_put_text(&query, name);
    return pawli_sqlite_change_rows(&query, 1) && pawli_sqlite_queue_find(pass, name, &is_found);
}

bool pawli_sqlite_queue_of(struct pass *pass, int64_t queue_id)
{
    bool is_found;
    if (pass->has_queue && pass->queue.queue_id == queue_id)
        return true;
    struct query query = pawli_sqlite_query(pass, S_QUEUE_BY_ID);
    pawli_sqlite_put_int(&query, queue_id);
    if (!read_queue(pass, &query, &is_found))
        return false;
    return is_found || pawli_sqlite_spoil(pass, SQLITE_CORRUPT);
}

bool pawli_sqlite_queue_after(struct pass *pass, const char *name, bool *ret_found)
{
    struct query query = pawli_sqlite_query(pass, S_QUEUE_AFTER);
    pawli_sqlite_put_text(&query, name);
    return read_queue(pass, &query, ret_found);
}

/* ---- settings */

struct queue_call {
    const char *name;
    const pawl_queue_settings *settings; /* queue_set */
    bool is_paused;                      /* queue_pause */
    pawl_queue_settings result;          /* queue_get */
};

static bool get_settings(struct pass *pass, void *args)
{
    struct queue_call *call = args;
    bool is_found;
    if (!pawli_sqlite_queue_find(pass, call->name, &is_found))
        return false;
    if (is_found)
        call->result = pass->queue.settings;
    else
        pawl_queue_settings_init(&call->result);
    return true;
}

pawl_code pawli_sqlite_queue_get(pawl_store *store, const char *queue,
                                 pawl_queue_settings *ret_settings, pawl_err *err)
{
    struct queue_call call = {.name = queue};
    pawl_code rc = pawli_sqlite_read(store, get_settings, &call, err);
    if (rc == PAWL_OK)
        *ret_settings = call.result;
    return rc;
}

bool pawli_sqlite_queue_write(struct pass *pass, const pawl_queue_settings *settings)
{
    assert(pass->has_queue);
    struct query query = pawli_sqlite_query(pass, S_QUEUE_SET);
    pawli_sqlite_put_int(&query, pass->queue.queue_id);
    pawli_sqlite_put_int(&query, settings->lease_ms);
    pawli_sqlite_put_optional(&query, settings->execution_timeout_ms, PAWL_DEFAULT);
    pawli_sqlite_put_int(&query, settings->max_retries);
    pawli_sqlite_put_int(&query, settings->max_lost_leases);
    pawli_sqlite_put_int(&query, settings->backoff_base_ms);
    pawli_sqlite_put_int(&query, settings->backoff_max_ms);
    pawli_sqlite_put_optional(&query, settings->keep_succeeded_ms, PAWL_FOREVER);
    pawli_sqlite_put_optional(&query, settings->keep_failed_ms, PAWL_FOREVER);
    pawli_sqlite_put_int(&query, settings->max_in_flight);
    pass->sqlite->is_hinting = true; /* more may be in flight now */
    pass->has_queue = false;
    return pawli_sqlite_change_rows(&query, 1);
}

static bool set_settings(struct pass *pass, void *args)
{
    const struct queue_call *call = args;
    return pawli_sqlite_queue_need(pass, call->name) &&
           pawli_sqlite_queue_write(pass, call->settings);
}

pawl_code pawli_sqlite_queue_set(pawl_store *store, const char *queue,
                                 const pawl_queue_settings *settings, pawl_err *err)
{
    struct queue_call call = {.name = queue, .settings = settings};
    return pawli_sqlite_write(
        store, &(struct write){.run = set_settings, .args = &call, .rows_count = 1}, err);
}

static bool pause_queue(struct pass *pass, void *args)
{
    const struct queue_call *call = args;
    if (!pawli_sqlite_queue_need(pass, call->name))
        return false;
    struct query query = pawli_sqlite_query(pass, S_QUEUE_PAUSE);
    pawli_sqlite_put_int(&query, pass->queue.queue_id);
    pawli_sqlite_put_int(&query, call->is_paused);
    if (!call->is_paused)
        pass->sqlite->is_hinting = true;
    return pawli_sqlite_change_rows(&query, 1);
}

pawl_code pawli_sqlite_queue_pause(pawl_store *store, const char *queue, bool is_paused,
                                   pawl_err *err)
{
    struct queue_call call = {.name = queue, .is_paused = is_paused};
    return pawli_sqlite_write(
        store, &(struct write){.run = pause_queue, .args = &call, .rows_count = 1}, err);
}

/* ---- counts */

static bool count_ended(struct pass *pass, int64_t queue_id, pawl_state state, int64_t *ret_count)
{
    struct query query = pawli_sqlite_query(pass, S_COUNT_ENDED);
    pawli_sqlite_put_int(&query, queue_id);
    pawli_sqlite_put_int(&query, state);
    if (pawli_sqlite_row(&query))
        *ret_count = pawli_sqlite_int(&query);
    return pawli_sqlite_end(&query);
}

/* Add the Ready jobs of the queue in pass->queue that a statement counts, and find the oldest. */
static bool count_ready(struct pass *pass, enum statement statement, pawl_stats *row,
                        pawl_wall *oldest)
{
    struct query query = pawli_sqlite_query(pass, statement);
    pawli_sqlite_put_int(&query, pass->queue.queue_id);
    pawli_sqlite_put_int(&query, pass->now.us);
    if (pawli_sqlite_row(&query)) {
        row->ready += pawli_sqlite_int(&query);
        row->delayed += pawli_sqlite_int(&query);
        int64_t due_us = pawli_sqlite_optional(&query, INT64_MAX);
        if (due_us < oldest->us)
            oldest->us = due_us;
    }
    return pawli_sqlite_end(&query);
}

/* What is live of the queue in pass->queue. */
static bool count_live(struct pass *pass, pawl_stats *ret_row)
{
    const struct queue *queue = &pass->queue;
    pawl_wall oldest = {INT64_MAX};
    *ret_row = (pawl_stats){.is_paused = queue->settings.is_paused};
    memcpy(ret_row->queue, queue->name, sizeof(ret_row->queue));
    if (!count_ready(pass, S_COUNT_READY, ret_row, &oldest) ||
        !count_ready(pass, S_COUNT_WAITING, ret_row, &oldest))
        return false;
    if (ret_row->ready > ret_row->delayed)
        ret_row->oldest_due_ms = pawli_wall_diff_ms(oldest, pass->now);
    struct query query = pawli_sqlite_query(pass, S_COUNT_LEASES);
    pawli_sqlite_put_int(&query, queue->queue_id);
    pawli_sqlite_put_int(&query, pass->now.us);
    if (pawli_sqlite_row(&query)) {
        ret_row->in_flight = pawli_sqlite_int(&query);
        ret_row->expired = pawli_sqlite_int(&query);
    }
    return pawli_sqlite_end(&query);
}

/* All counts of it. */
static bool count(struct pass *pass, pawl_stats *ret_row)
{
    int64_t queue_id = pass->queue.queue_id;
    return count_live(pass, ret_row) &&
           count_ended(pass, queue_id, PAWL_SUCCEEDED, &ret_row->succeeded) &&
           count_ended(pass, queue_id, PAWL_FAILED, &ret_row->failed);
}

struct stats_call {
    const char *queue; /* NULL: all */
    const char *after;
    bool is_live_only;
    pawl_stats *rows;
    size_t rows_max;
    size_t count;
};

static bool count_all(struct pass *pass, void *args)
{
    struct stats_call *call = args;
    char name[PAWL_NAME_MAX + 1] = "";
    bool is_found;
    const char *after = call->after != NULL ? call->after : "";
    while (call->count < call->rows_max) {
        if (!pawli_sqlite_queue_after(pass, after, &is_found))
            return false;
        if (!is_found)
            break;
        memcpy(name, pass->queue.name, sizeof(name));
        after = name;
        pawl_stats *row = &call->rows[call->count];
        if (call->is_live_only ? !count_live(pass, row) : !count(pass, row))
            return false;
        call->count += pass->queue.is_set ||
                       row->ready + row->in_flight + row->succeeded + row->failed > 0;
    }
    return true;
}

static bool count_one(struct pass *pass, void *args)
{
    struct stats_call *call = args;
    bool is_found;
    if (!pawli_sqlite_queue_find(pass, call->queue, &is_found))
        return false;
    if (!is_found)
        return true;
    call->count = 1;
    return count_live(pass, &call->rows[0]);
}

/* A pass may run twice: what it counts stays here until it was good. */
static pawl_code run_counts(pawl_store *store, struct stats_call *call, pawl_stats *ret_rows,
                            size_t *ret_count, pawl_err *err)
{
    call->rows = calloc(call->rows_max, sizeof(*call->rows));
    if (call->rows == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    pawl_code rc = pawli_sqlite_read(store, call->queue != NULL ? count_one : count_all, call, err);
    if (rc == PAWL_OK) {
        memcpy(ret_rows, call->rows, call->count * sizeof(*ret_rows));
        *ret_count = call->count;
    }
    free(call->rows);
    return rc;
}

pawl_code pawli_sqlite_queue_stats(pawl_store *store, const char *after, pawl_stats *ret_rows,
                                   size_t rows_max, size_t *ret_count, pawl_err *err)
{
    struct stats_call call = {.after = after, .rows_max = rows_max};
    return run_counts(store, &call, ret_rows, ret_count, err);
}

pawl_code pawli_sqlite_queue_depths(pawl_store *store, const pawl_depth_args *args,
                                    pawl_stats *ret_rows, size_t rows_max, size_t *ret_count,
                                    pawl_err *err)
{
    struct stats_call call = {
        .queue = args->queue, .after = args->after, .is_live_only = true, .rows_max = rows_max};
    return run_counts(store, &call, ret_rows, ret_count, err);
}

/* ---- presence */

static bool see_worker(struct pass *pass, void *args)
{
    const pawl_worker_seen *seen = args;
    struct query query = pawli_sqlite_query(pass, S_WORKER_SEEN);
    pawli_sqlite_put_text(&query, seen->name);
    pawli_sqlite_put_int(&query, seen->kind);
    pawli_sqlite_put_text(&query, seen->host);
    pawli_sqlite_put_text(&query, seen->version);
    pawli_sqlite_put_text(&query, seen->queues != NULL ? seen->queues : "");
    pawli_sqlite_put_int(&query, pass->now.us);
    return pawli_sqlite_change_rows(&query, 1);
}

pawl_code pawli_sqlite_worker_seen(pawl_store *store, const pawl_worker_seen *args, pawl_err *err)
{
    pawl_worker_seen seen = *args;
    return pawli_sqlite_write(
        store, &(struct write){.run = see_worker, .args = &seen, .rows_count = 1}, err);
}

static bool end_worker(struct pass *pass, void *args)
{
    struct query query = pawli_sqlite_query(pass, S_WORKER_ENDED);
    pawli_sqlite_put_text(&query, args);
    return pawli_sqlite_change_rows(&query, -1); /* no row is fine too */
}

pawl_code pawli_sqlite_worker_ended(pawl_store *store, const char *name, pawl_err *err)
{
    char copy[PAWL_NAME_MAX + 1];
    memcpy(copy, name, strlen(name) + 1); /* checked by the front: it fits */
    return pawli_sqlite_write(
        store, &(struct write){.run = end_worker, .args = copy, .rows_count = 1}, err);
}

struct workers_call {
    const char *after;
    pawl_worker *rows;
    size_t rows_max;
    size_t count;
};

static bool read_workers(struct pass *pass, void *args)
{
    struct workers_call *call = args;
    struct query query = pawli_sqlite_query(pass, S_WORKERS);
    pawli_sqlite_put_text(&query, call->after != NULL ? call->after : "");
    pawli_sqlite_put_int(&query, (int64_t)call->rows_max);
    while (pawli_sqlite_row(&query)) {
        assert(call->count < call->rows_max);
        pawl_worker *row = &call->rows[call->count++];
        bool is_whole = pawli_sqlite_text(&query, row->name, sizeof(row->name));
        row->kind = (pawl_worker_kind)pawli_sqlite_int(&query);
        is_whole = pawli_sqlite_text(&query, row->host, sizeof(row->host)) && is_whole;
        is_whole = pawli_sqlite_text(&query, row->version, sizeof(row->version)) && is_whole;
        is_whole = pawli_sqlite_text(&query, row->queues, sizeof(row->queues)) && is_whole;
        row->since.us = pawli_sqlite_int(&query);
        row->last_seen.us = pawli_sqlite_int(&query);
        row->leases = pawli_sqlite_int(&query);
        if (!is_whole)
            (void)pawli_sqlite_spoil(pass, SQLITE_CORRUPT); /* told by end */
    }
    return pawli_sqlite_end(&query);
}

pawl_code pawli_sqlite_workers(pawl_store *store, const char *after, pawl_worker *ret_rows,
                               size_t rows_max, size_t *ret_count, pawl_err *err)
{
    struct workers_call call = {
        .after = after, .rows = calloc(rows_max, sizeof(*call.rows)), .rows_max = rows_max};
    if (call.rows == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    pawl_code rc = pawli_sqlite_read(store, read_workers, &call, err);
    if (rc == PAWL_OK) {
        memcpy(ret_rows, call.rows, call.count * sizeof(*ret_rows));
        *ret_count = call.count;
    }
    free(call.rows);
    return rc;
}

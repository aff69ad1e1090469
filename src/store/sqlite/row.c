/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * row.c - jobs between the rules' record and the file's rows.
 * Owns:  the columns of a job, in and out; which table a job is in; the form in which it is given
 *        out.
 * Never: decides what a job becomes; believes a row that no rule could have made.
 */
#include "store/sqlite/sqlite.h"

#include "base/text.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- out of the file */

static pawl_wall wall(struct query *query)
{
    return (pawl_wall){pawli_sqlite_optional(query, 0)};
}

static bool is_in(int64_t value, int64_t low, int64_t high)
{
    return value >= low && value <= high;
}

/* A count that can rise by one more. */
static bool is_count(int64_t value)
{
    return is_in(value, 0, INT64_MAX - 1);
}

/* What a job may have of its own, and a queue has otherwise. */
static bool is_own(int64_t value, int64_t low, int64_t high)
{
    return value == PAWL_DEFAULT || is_in(value, low, high);
}

static bool are_own_right(const struct record *record)
{
    return is_own(record->max_retries, 0, PAWL_RETRIES_MAX) &&
           is_own(record->timeout_ms, 1, PAWL_DURATION_MAX_MS) &&
           is_own(record->backoff_base_ms, 1, PAWL_DURATION_MAX_MS) &&
           is_own(record->backoff_max_ms, 1, PAWL_DURATION_MAX_MS);
}

/* What a lease's columns say. False: they are no lease, and not empty either. */
static bool read_lease(struct query *query, struct pawli_job *job)
{
    bool is_leased = job->state == PAWL_IN_FLIGHT;
    bool is_whole = pawli_sqlite_text(query, job->worker, sizeof(job->worker)) &&
                    (job->worker[0] != '\0') == is_leased;
    bool has_token = pawli_sqlite_bytes(query, job->token.bytes, sizeof(job->token.bytes));
    job->claimed_at = wall(query);
    job->expires_at = wall(query);
    job->run_until = wall(query);
    job->unstarted_until = wall(query);
    job->lease_ms = pawli_sqlite_optional(query, 0);
    job->timeout_ms = pawli_sqlite_optional(query, 0);
    job->is_started = pawli_sqlite_int(query) != 0;
    job->is_cancel_asked = pawli_sqlite_int(query) != 0;
    bool has_times = job->claimed_at.us != 0 && job->expires_at.us != 0 && job->run_until.us != 0 &&
                     job->unstarted_until.us != 0 && job->lease_ms > 0 && job->timeout_ms > 0;
    return is_whole && has_token == is_leased && has_times == is_leased;
}

/* The key, and the fence of its lease. False: one is there without the other. */
static bool read_order(struct query *query, struct record *record)
{
    bool is_whole = pawli_sqlite_text(query, record->ordering_key, sizeof(record->ordering_key));
    record->job.fence = pawli_sqlite_optional(query, 0);
    bool is_fenced = record->job.state == PAWL_IN_FLIGHT && record->ordering_key[0] != '\0';
    return is_whole && (is_fenced ? record->job.fence > 0 : record->job.fence == 0);
}

bool pawli_sqlite_read_record(struct query *query, struct record *ret_record)
{
    struct record record = {.number = pawli_sqlite_int(query)};
    struct pawli_job *job = &record.job;
    bool is_right = pawli_sqlite_bytes(query, record.id.bytes, sizeof(record.id.bytes));
    record.queue_id = pawli_sqlite_int(query);
    int64_t state = pawli_sqlite_int(query);
    int64_t priority = pawli_sqlite_int(query);
    int64_t rank = pawli_sqlite_int(query);
    record.timed_us = pawli_sqlite_int(query);
    record.position = pawli_sqlite_int(query);
    job->due_at = wall(query);
    job->start_by = wall(query);
    record.created_at = wall(query);
    job->retries = pawli_sqlite_int(query);
    job->lost_leases = pawli_sqlite_int(query);
    job->lost_in_a_row = pawli_sqlite_int(query);
    job->attempts = pawli_sqlite_int(query);
    job->lease_version = pawli_sqlite_int(query);
    int64_t reason = pawli_sqlite_int(query);
    record.max_retries = pawli_sqlite_optional(query, PAWL_DEFAULT);
    record.timeout_ms = pawli_sqlite_optional(query, PAWL_DEFAULT);
    record.backoff_base_ms = pawli_sqlite_optional(query, PAWL_DEFAULT);
    record.backoff_max_ms = pawli_sqlite_optional(query, PAWL_DEFAULT);
    int64_t payload_len = pawli_sqlite_int(query);
    job->finished_at = wall(query);
    job->is_discarded = pawli_sqlite_int(query) != 0;
    is_right = is_right && is_in(state, PAWL_READY, PAWL_FAILED) &&
               is_in(priority, PAWL_PRIORITY_URGENT, PAWL_PRIORITY_LAST) &&
               is_in(rank, RANK_RETURNED, RANK_ARRIVAL) &&
               is_in(reason, PAWL_REASON_NONE, PAWL_REASON_START_BY) && payload_len >= 0 &&
               is_count(job->retries) && is_count(job->lost_leases) &&
               is_count(job->lost_in_a_row) && is_count(job->attempts) &&
               is_count(job->lease_version) && are_own_right(&record);
    if (!is_right)
        return pawli_sqlite_spoil(query->pass, SQLITE_CORRUPT);
    job->state = (pawl_state)state;
    job->reason = (pawl_reason)reason;
    record.priority = (int)priority;
    record.rank = (enum rank)rank;
    record.payload_len = (size_t)payload_len;
    if (!read_lease(query, job) || !read_order(query, &record))
        return pawli_sqlite_spoil(query->pass, SQLITE_CORRUPT);
    *ret_record = record;
    return true;
}

static bool load_from(struct pass *pass, enum statement statement, const pawl_id *id,
                      struct record *ret_record, bool *ret_found)
{
    struct query query = pawli_sqlite_query(pass, statement);
    pawli_sqlite_put_id(&query, id);
    *ret_found = pawli_sqlite_row(&query);
    if (*ret_found)
        (void)pawli_sqlite_read_record(&query, ret_record); /* told by end */
    return pawli_sqlite_end(&query);
}

bool pawli_sqlite_load(struct pass *pass, const pawl_id *id, struct record *ret_record,
                       bool *ret_found)
{
    if (!load_from(pass, S_LIVE, id, ret_record, ret_found))
        return false;
    return *ret_found || load_from(pass, S_ENDED, id, ret_record, ret_found);
}

/* ---- into the file */

static bool renew_live(struct pass *pass, const struct record *record)
{
    const struct pawli_job *job = &record->job;
    struct query query = pawli_sqlite_query(pass, S_RENEW_LIVE);
    pawli_sqlite_put_int(&query, record->number);
    pawli_sqlite_put_int(&query, job->expires_at.us);
    pawli_sqlite_put_int(&query, job->run_until.us);
    pawli_sqlite_put_int(&query, job->lease_ms);
    pawli_sqlite_put_int(&query, job->is_started);
    return pawli_sqlite_change_rows(&query, 1);
}

static bool update_live(struct pass *pass, const struct record *record)
{
    const struct pawli_job *job = &record->job;
    bool is_leased = job->state == PAWL_IN_FLIGHT;
    struct query query = pawli_sqlite_query(pass, S_UPDATE_LIVE);
    pawli_sqlite_put_int(&query, record->number);
    pawli_sqlite_put_int(&query, job->state);
    pawli_sqlite_put_int(&query, record->rank);
    pawli_sqlite_put_int(&query, record->timed_us);
    pawli_sqlite_put_int(&query, record->position);
    pawli_sqlite_put_int(&query, job->due_at.us);
    pawli_sqlite_put_optional(&query, job->start_by.us, 0);
    pawli_sqlite_put_int(&query, job->retries);
    pawli_sqlite_put_int(&query, job->lost_leases);
    pawli_sqlite_put_int(&query, job->lost_in_a_row);
    pawli_sqlite_put_int(&query, job->attempts);
    pawli_sqlite_put_int(&query, job->lease_version);
    pawli_sqlite_put_int(&query, job->reason);
    pawli_sqlite_put_text(&query, is_leased ? job->worker : NULL);
    pawli_sqlite_put_bytes(&query, is_leased ? job->token.bytes : NULL, sizeof(job->token.bytes));
    pawli_sqlite_put_optional(&query, job->claimed_at.us, 0);
    pawli_sqlite_put_optional(&query, job->expires_at.us, 0);
    pawli_sqlite_put_optional(&query, job->run_until.us, 0);
    pawli_sqlite_put_optional(&query, job->unstarted_until.us, 0);
    pawli_sqlite_put_optional(&query, job->lease_ms, 0);
    pawli_sqlite_put_optional(&query, job->timeout_ms, 0);
    pawli_sqlite_put_int(&query, job->is_started);
    pawli_sqlite_put_int(&query, job->is_cancel_asked);
    pawli_sqlite_put_optional(&query, is_leased ? job->expires_at.us : job->start_by.us, 0);
    pawli_sqlite_put_optional(&query, job->fence, 0);
    return pawli_sqlite_change_rows(&query, 1);
}

/* Live no more: OL-ATOMIC. */
static bool end_live(struct pass *pass, const struct record *record)
{
    const struct pawli_job *job = &record->job;
    struct query query = pawli_sqlite_query(pass, S_END);
    pawli_sqlite_put_int(&query, record->number);
    pawli_sqlite_put_int(&query, job->state);
    pawli_sqlite_put_int(&query, job->due_at.us);
    pawli_sqlite_put_optional(&query, job->start_by.us, 0);
    pawli_sqlite_put_int(&query, job->finished_at.us);
    pawli_sqlite_put_int(&query, job->retries);
    pawli_sqlite_put_int(&query, job->lost_leases);
    pawli_sqlite_put_int(&query, job->lost_in_a_row);
    pawli_sqlite_put_int(&query, job->attempts);
    pawli_sqlite_put_int(&query, job->lease_version);
    pawli_sqlite_put_int(&query, job->reason);
    if (!pawli_sqlite_change_rows(&query, 1))
        return false;
    query = pawli_sqlite_query(pass, S_DELETE_LIVE);
    pawli_sqlite_put_int(&query, record->number);
    return pawli_sqlite_change_rows(&query, 1);
}

/* Redriven: counters at 0, no start-by deadline, the last of its key. */
static bool revive(struct pass *pass, const struct record *record)
{
    bool has_key = record->ordering_key[0] != '\0';
    bool is_waiting = false;
    assert(record->job.retries == 0 && record->job.lost_leases == 0);
    if (has_key &&
        !pawli_sqlite_order_is_held(pass, record->queue_id, record->ordering_key, &is_waiting))
        return false;
    struct query query = pawli_sqlite_query(pass, S_REVIVE);
    pawli_sqlite_put_id(&query, &record->id);
    pawli_sqlite_put_int(&query, record->rank);
    pawli_sqlite_put_int(&query, record->timed_us);
    pawli_sqlite_put_int(&query, record->position);
    pawli_sqlite_put_int(&query, record->job.due_at.us);
    pawli_sqlite_put_optional(&query, has_key ? record->position : 0, 0);
    pawli_sqlite_put_int(&query, is_waiting);
    if (!pawli_sqlite_change_rows(&query, 1))
        return false;
    query = pawli_sqlite_query(pass, S_DELETE_ENDED);
    pawli_sqlite_put_id(&query, &record->id);
    return pawli_sqlite_change_rows(&query, 1);
}

static bool is_live(pawl_state state)
{
    return state == PAWL_READY || state == PAWL_IN_FLIGHT;
}

bool pawli_sqlite_save(struct pass *pass, const struct record *record, pawl_state before,
                       enum pawli_event event)
{
    pawl_state after = record->job.state;
    if (event == PAWLI_EVENT_RENEW)
        return renew_live(pass, record);
    if (is_live(before))
        return is_live(after) ? update_live(pass, record) : end_live(pass, record);
    if (is_live(after))
        return revive(pass, record);
    assert(event == PAWLI_EVENT_DISCARD);
    struct query query = pawli_sqlite_query(pass, S_DISCARD);
    pawli_sqlite_put_id(&query, &record->id);
    return pawli_sqlite_change_rows(&query, 1);
}

/* ---- out to callers */

bool pawli_sqlite_give(struct pass *pass, const struct record *record, pawl_job *ret_job)
{
    const struct pawli_job *job = &record->job;
    if (!pawli_sqlite_queue_of(pass, record->queue_id))
        return false;
    const struct queue *queue = &pass->queue;
    *ret_job = (pawl_job){
        .id = record->id,
        .state = job->state,
        .priority = record->priority,
        .retries = job->retries,
        .lost_leases = job->lost_leases,
        .attempts = job->attempts,
        .lease_version = job->lease_version,
        .max_retries = record->max_retries != PAWL_DEFAULT ? record->max_retries
                                                           : queue->settings.max_retries,
        .created_at = record->created_at,
        .due_at = job->due_at,
        .start_by = job->start_by,
        .finished_at = job->finished_at,
        .reason = job->reason,
        .claimed_at = job->claimed_at,
        .expires_at = job->expires_at,
        .run_until = job->run_until,
        .lease_ms = job->lease_ms,
        .timeout_ms = job->timeout_ms,
        .fence = job->fence,
        .is_cancel_asked = job->is_cancel_asked,
        .payload_len = record->payload_len,
    };
    memcpy(ret_job->queue, queue->name, sizeof(ret_job->queue));
    memcpy(ret_job->worker, job->worker, sizeof(ret_job->worker));
    memcpy(ret_job->ordering_key, record->ordering_key, sizeof(ret_job->ordering_key));
    return true;
}

/* A copy of a column of `len` bytes, and a NUL behind it. */
static void *copy_column(struct pass *pass, const void *bytes, size_t len)
{
    char *copy = pass->rc == SQLITE_OK ? malloc(len + 1) : NULL;
    if (copy == NULL) {
        (void)pawli_sqlite_spoil(pass, SQLITE_NOMEM); /* told by whoever ends the query */
        return NULL;
    }
    memcpy(copy, bytes, len);
    copy[len] = '\0';
    return copy;
}

bool pawli_sqlite_give_payload(struct pass *pass, const struct record *record, pawl_job *job)
{
    size_t len = 0;
    size_t headers_len = 0;
    job->payload = NULL;
    job->headers = NULL;
    if (record->job.state == PAWL_SUCCEEDED || record->job.is_discarded)
        return true;
    struct query query = pawli_sqlite_query(pass, S_PAYLOAD);
    pawli_sqlite_put_int(&query, record->number);
    bool is_there = pawli_sqlite_row(&query);
    const void *bytes = is_there ? pawli_sqlite_blob(&query, &len) : NULL;
    const void *headers = is_there ? pawli_sqlite_blob(&query, &headers_len) : NULL;
    if (pass->rc == SQLITE_OK && len != record->payload_len)
        (void)pawli_sqlite_spoil(pass, SQLITE_CORRUPT); /* told by end */
    if (pass->rc == SQLITE_OK && len > 0)
        job->payload = copy_column(pass, bytes, len);
    if (pass->rc == SQLITE_OK && headers_len > 0)
        job->headers = copy_column(pass, headers, headers_len);
    if (pawli_sqlite_end(&query))
        return true;
    free(job->payload);
    free(job->headers);
    job->payload = NULL;
    job->headers = NULL;
    return false;
}

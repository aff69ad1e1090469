/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * recover.c - what becomes of jobs that nobody ends, and of history that nobody needs.
 * Owns:  the sweep over expired leases and missed start-by deadlines; the pruning of old jobs, and
 *        of workers that went without a word.
 * Never: touches a lease that is valid by the clock of this call; prunes a live job.
 */
#include "store/sqlite/sqlite.h"

#include "base/clock.h"
#include "base/error.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK            64
#define PRESENCE_KEEP_MS (INT64_C(7) * 24 * 3600 * 1000)

/* ---- reap */

struct reap {
    pawl_reaped *rows;
    size_t rows_max;
    size_t count;
    struct record chunk[CHUNK];
};

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Read the jobs whose deadline passed longest ago. */
static bool pick(struct pass *pass, struct reap *reap, size_t *ret_count)
{
    struct query query = pawli_sqlite_query(pass, S_OVERDUE);
    pawli_sqlite_put_int(&query, pass->now.us);
    pawli_sqlite_put_int(&query, (int64_t)smaller(reap->rows_max - reap->count, CHUNK));
    *ret_count = 0;
    while (pawli_sqlite_row(&query)) {
        assert(*ret_count < CHUNK);
        if (pawli_sqlite_read_record(&query, &reap->chunk[*ret_count]))
            ++*ret_count;
    }
    return pawli_sqlite_end(&query);
}

/* Recover one job, and say what has become of it. */
static bool recover(struct pass *pass, struct record *record, pawl_reaped *ret_row)
{
    bool is_lease = record->job.state == PAWL_IN_FLIGHT;
    pawl_wall deadline = is_lease ? record->job.expires_at : record->job.start_by;
    *ret_row = (pawl_reaped){
        .job = record->id,
        .lease_version = is_lease ? record->job.lease_version : 0,
        .overdue_ms = pawli_wall_diff_ms(deadline, pass->now),
    };
    memcpy(ret_row->worker, record->job.worker, sizeof(ret_row->worker));
    struct pawli_change change = {
        .event = is_lease ? PAWLI_EVENT_EXPIRE : PAWLI_EVENT_MISS,
        .now = pass->now,
    };
    pawl_code code;
    if (!pawli_sqlite_change(pass, record, &change, NULL, &code))
        return false;
    if (code != PAWL_OK) /* the deadline that it was found by is not its own */
        return pawli_sqlite_spoil(pass, SQLITE_CORRUPT);
    memcpy(ret_row->queue, pass->queue.name, sizeof(ret_row->queue)); /* the change has read it */
    ret_row->state = record->job.state;
    ret_row->reason = record->job.reason;
    if (ret_row->state == PAWL_READY)
        ret_row->due_at = record->job.due_at;
    return true;
}

static bool reap_all(struct pass *pass, void *args)
{
    struct reap *reap = args;
    size_t count = 1;
    while (count > 0 && reap->count < reap->rows_max) {
        if (!pick(pass, reap, &count))
            return false;
        for (size_t i = 0; i < count; i++)
            if (!recover(pass, &reap->chunk[i], &reap->rows[reap->count++]))
                return false;
    }
    return true;
}

pawl_code pawli_sqlite_reap(pawl_store *store, pawl_reaped *ret_rows, size_t rows_max,
                            size_t *ret_count, pawl_err *err)
{
    pawl_code rc = PAWL_NO_MEMORY;
    struct reap *reap = calloc(1, sizeof(*reap));
    pawl_reaped *rows = calloc(rows_max, sizeof(*rows));
    if (reap != NULL && rows != NULL) {
        reap->rows = rows;
        reap->rows_max = rows_max;
        rc = pawli_sqlite_write(
            store, &(struct write){.run = reap_all, .args = reap, .rows_count = rows_max}, err);
    } else {
        (void)pawli_fail_plain(err, rc); /* gives rc */
    }
    if (rc == PAWL_OK) {
        memcpy(ret_rows, rows, reap->count * sizeof(*rows));
        *ret_count = reap->count;
    }
    free(rows);
    free(reap);
    return rc;
}

/* ---- prune */

struct prune {
    size_t jobs_max;
    size_t count;
};

/* A job that is to be forgotten. */
struct old_job {
    pawl_id id;
    int64_t number;
};

static bool forget(struct pass *pass, const struct old_job *old)
{
    struct query query = pawli_sqlite_query(pass, S_DELETE_ATTEMPTS);
    pawli_sqlite_put_id(&query, &old->id);
    if (!pawli_sqlite_change_rows(&query, -1))
        return false;
    query = pawli_sqlite_query(pass, S_DELETE_PAYLOAD);
    pawli_sqlite_put_int(&query, old->number);
    if (!pawli_sqlite_change_rows(&query, -1)) /* it may have gone before */
        return false;
    query = pawli_sqlite_query(pass, S_DELETE_ENDED);
    pawli_sqlite_put_id(&query, &old->id);
    return pawli_sqlite_change_rows(&query, 1);
}

/* Forget the oldest of one kind, of the queue with this id. */
static bool prune_state(struct pass *pass, struct prune *prune, int64_t queue_id, pawl_state state,
                        int64_t keep_ms)
{
    struct old_job chunk[CHUNK];
    size_t count = 1;
    if (keep_ms == PAWL_FOREVER)
        return true;
    pawl_wall before = pawli_wall_add_ms(pass->now, -keep_ms);
    while (count > 0 && prune->count < prune->jobs_max) {
        count = 0;
        struct query query = pawli_sqlite_query(pass, S_OLD);
        pawli_sqlite_put_int(&query, queue_id);
        pawli_sqlite_put_int(&query, state);
        pawli_sqlite_put_int(&query, before.us);
        pawli_sqlite_put_int(&query, (int64_t)smaller(prune->jobs_max - prune->count, CHUNK));
        while (count < CHUNK && pawli_sqlite_row(&query)) {
            struct old_job *old = &chunk[count++];
            if (!pawli_sqlite_bytes(&query, old->id.bytes, sizeof(old->id.bytes)))
                (void)pawli_sqlite_spoil(pass, SQLITE_CORRUPT); /* told by end */
            old->number = pawli_sqlite_int(&query);
        }
        if (!pawli_sqlite_end(&query))
            return false;
        for (size_t i = 0; i < count; i++, prune->count++)
            if (!forget(pass, &chunk[i]))
                return false;
    }
    return true;
}

static bool drop_idle_queue(struct pass *pass, int64_t queue_id)
{
    struct query query = pawli_sqlite_query(pass, S_QUEUE_DROP);
    pawli_sqlite_put_int(&query, queue_id);
    pass->has_queue = false;
    return pawli_sqlite_change_rows(&query, -1); /* mostly it is not idle */
}

static bool prune_queues(struct pass *pass, struct prune *prune)
{
    char after[PAWL_NAME_MAX + 1] = "";
    bool is_found = true;
    while (prune->count < prune->jobs_max) {
        if (!pawli_sqlite_queue_after(pass, after, &is_found))
            return false;
        if (!is_found)
            break;
        struct queue queue = pass->queue;
        memcpy(after, queue.name, sizeof(after));
        if (!prune_state(pass, prune, queue.queue_id, PAWL_SUCCEEDED,
                         queue.settings.keep_succeeded_ms) ||
            !prune_state(pass, prune, queue.queue_id, PAWL_FAILED, queue.settings.keep_failed_ms) ||
            !drop_idle_queue(pass, queue.queue_id))
            return false;
    }
    return true;
}

/* Let the ledger's rows go, or no more: OL-APPEND-ONLY. */
static bool set_pruning(struct pass *pass, bool is_pruning)
{
    struct query query = pawli_sqlite_query(pass, S_PRUNING);
    pawli_sqlite_put_int(&query, is_pruning);
    return pawli_sqlite_change_rows(&query, 1);
}

static bool prune_workers(struct pass *pass)
{
    struct query query = pawli_sqlite_query(pass, S_WORKERS_PRUNE);
    pawli_sqlite_put_int(&query, pawli_wall_add_ms(pass->now, -PRESENCE_KEEP_MS).us);
    return pawli_sqlite_change_rows(&query, -1);
}

static bool prune_all(struct pass *pass, void *args)
{
    struct prune *prune = args;
    prune->count = 0; /* a pass may run twice */
    return set_pruning(pass, true) && prune_queues(pass, prune) && set_pruning(pass, false) &&
           pawli_sqlite_events_prune(pass, prune->jobs_max - prune->count, &prune->count) &&
           pawli_sqlite_once_prune(pass, prune->jobs_max) && prune_workers(pass);
}

pawl_code pawli_sqlite_prune(pawl_store *store, size_t jobs_max, size_t *ret_count, pawl_err *err)
{
    struct prune prune = {.jobs_max = jobs_max};
    pawl_code rc = pawli_sqlite_write(
        store, &(struct write){.run = prune_all, .args = &prune, .rows_count = jobs_max}, err);
    if (rc == PAWL_OK)
        *ret_count = prune.count;
    return rc;
}

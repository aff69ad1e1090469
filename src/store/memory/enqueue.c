/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * enqueue.c - how jobs come into the memory store.
 * Owns:  the making of a job's record; which ids and dedupe keys are taken; the bound on all jobs.
 * Never: leaves a part of a batch behind where the whole cannot be taken.
 */
#include "store/memory/memory.h"

#include "base/clock.h"
#include "base/error.h"
#include "core/headers.h"
#include "core/id.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- records, made before the lock is taken */

/* Copy payload and headers. False: no memory; what was made stays with the entry. */
static bool load(struct entry *entry, const pawl_enqueue_row *row)
{
    if (row->payload_len > 0) {
        entry->payload = malloc(row->payload_len);
        if (entry->payload == NULL)
            return false;
        memcpy(entry->payload, row->payload, row->payload_len);
    }
    if (pawli_headers_any(row->headers)) {
        size_t size = strlen(row->headers) + 1;
        entry->headers = malloc(size);
        if (entry->headers == NULL)
            return false;
        memcpy(entry->headers, row->headers, size);
    }
    return true;
}

static struct entry *entry_new(const pawl_enqueue_row *row)
{
    const char *key = row->dedupe_key != NULL ? row->dedupe_key : "";
    size_t key_size = strlen(key) + 1;
    struct entry *entry = calloc(1, sizeof(*entry) + key_size);
    if (entry == NULL)
        return NULL;
    memcpy(entry->dedupe_key, key, key_size);
    if (!load(entry, row)) {
        free(entry->payload);
        free(entry);
        return NULL;
    }
    entry->id = row->id;
    entry->ledger = entry->ledger_first;
    entry->ledger_room = 1;
    entry->payload_len = row->payload_len;
    entry->priority = row->priority;
    entry->max_retries = row->max_retries;
    entry->timeout_ms = row->timeout_ms;
    entry->backoff_base_ms = row->backoff_base_ms;
    entry->backoff_max_ms = row->backoff_max_ms;
    return entry;
}

static void free_all(pawl_memory *memory, struct entry **entries, size_t entries_count)
{
    for (size_t i = 0; i < entries_count; i++)
        pawli_memory_free_entry(memory, entries[i]);
    free(entries);
}

static struct entry **make_all(pawl_memory *memory, const pawl_enqueue_row *rows, size_t rows_count)
{
    struct entry **entries = calloc(rows_count, sizeof(*entries));
    if (entries == NULL)
        return NULL;
    for (size_t i = 0; i < rows_count; i++) {
        entries[i] = entry_new(&rows[i]);
        if (entries[i] == NULL) {
            free_all(memory, entries, i);
            return NULL;
        }
    }
    return entries;
}

/* ---- taking them in */

/*
 * Take the row's id and key, or tell who has them. Q-ENQUEUE: the id first, so that a repeated call
 * is told EXISTS by its own job, and not DUPLICATE.
 */
static pawl_enqueued take_names(pawl_memory *memory, struct entry *entry)
{
    if (TAILED_PUT(pawli_job_tree, &memory->jobs, entry) != NULL)
        return (pawl_enqueued){.code = PAWL_EXISTS, .id = entry->id};
    if (entry->dedupe_key[0] != '\0') {
        struct entry *other = RB_INSERT(pawli_dedupe_tree, &entry->queue->dedupes, entry);
        if (other != NULL) {
            TAILED_TAKE(pawli_job_tree, &memory->jobs, entry);
            return (pawl_enqueued){.code = PAWL_DUPLICATE, .id = other->id};
        }
        entry->is_dedupe_held = true;
    }
    return (pawl_enqueued){.code = PAWL_OK, .id = entry->id};
}

static void give_names_back(pawl_memory *memory, struct entry *entry)
{
    TAILED_TAKE(pawli_job_tree, &memory->jobs, entry);
    if (entry->is_dedupe_held)
        RB_REMOVE(pawli_dedupe_tree, &entry->queue->dedupes, entry);
    entry->is_dedupe_held = false;
}

/* Make the job Ready, at the tail of its queue or at its due time. */
static void arrive(pawl_memory *memory, struct entry *entry, const pawl_enqueue_row *row,
                   pawl_wall now)
{
    entry->job.state = PAWL_READY;
    entry->created_at = now;
    entry->job.due_at = pawli_wall_add_ms(now, row->delay_ms);
    if (row->start_within_ms != PAWL_DEFAULT)
        entry->job.start_by = pawli_wall_add_ms(now, row->start_within_ms);
    entry->rank = row->delay_ms > 0 ? RANK_TIMED : RANK_ARRIVAL;
    entry->timed_us = row->delay_ms > 0 ? entry->job.due_at.us : 0;
    entry->position = ++memory->position;
    entry->line = &entry->queue->lines[pawli_id_shard(&entry->id, memory->shards)];
    pawli_memory_turn_due(entry->queue, now);
    pawli_memory_order_join(entry);
    pawli_memory_link(memory, entry);
    memory->jobs_count++;
    if (entry->is_claimable)
        pawli_memory_hint(memory);
}

/* A batch between its first and its last row. Entries that are in the store are no longer here. */
struct batch {
    const pawl_enqueue_row *rows;
    size_t rows_count;
    struct entry **entries;
    pawl_enqueued *results;
};

/* Find, or make, the row's queue and ordering key. False: no memory. */
static bool need_places(pawl_memory *memory, struct entry *entry, const pawl_enqueue_row *row)
{
    entry->queue = pawli_memory_queue_need(memory, row->queue);
    if (entry->queue == NULL)
        return false;
    if (row->ordering_key == NULL || row->ordering_key[0] == '\0')
        return true;
    entry->ordering_key = pawli_memory_key_need(entry->queue, row->ordering_key);
    return entry->ordering_key != NULL;
}

/* The key of a row that did not get in goes before its queue does. */
static void drop_key(struct entry *entry)
{
    pawli_memory_key_drop(entry->ordering_key);
    entry->ordering_key = NULL;
}

/* Give each row its verdict and take its names; all or nothing. Changes no job. */
static pawl_code take_all(pawl_memory *memory, const struct batch *batch)
{
    int64_t taken = 0;
    size_t done = 0;
    pawl_code rc = PAWL_OK;
    for (; done < batch->rows_count; done++) {
        struct entry *entry = batch->entries[done];
        if (!need_places(memory, entry, &batch->rows[done])) {
            rc = PAWL_NO_MEMORY;
            break;
        }
        batch->results[done] = take_names(memory, entry);
        if (batch->results[done].code == PAWL_OK)
            taken++;
        else
            drop_key(entry);
    }
    if (rc == PAWL_OK && taken > memory->jobs_max - memory->jobs_count)
        rc = PAWL_FULL;
    if (rc == PAWL_OK)
        return PAWL_OK;
    for (size_t i = 0; i < done; i++) {
        if (batch->results[i].code != PAWL_OK)
            continue;
        give_names_back(memory, batch->entries[i]);
        drop_key(batch->entries[i]);
    }
    return rc;
}

/* Queues that were made for rows which did not get in. */
static void drop_idle_queues(pawl_memory *memory, const struct batch *batch)
{
    for (size_t i = 0; i < batch->rows_count; i++) {
        struct queue *queue = pawli_memory_queue_find(memory, batch->rows[i].queue);
        if (queue != NULL)
            pawli_memory_queue_drop(memory, queue);
    }
}

/* Put a batch into the store; what was taken is no longer the batch's. Under the lock. */
static pawl_code put_batch(pawl_memory *memory, pawl_wall now, struct batch *batch)
{
    pawl_code rc = take_all(memory, batch);
    bool is_any_refused = rc != PAWL_OK;
    for (size_t i = 0; i < batch->rows_count && rc == PAWL_OK; i++) {
        if (batch->results[i].code == PAWL_OK) {
            arrive(memory, batch->entries[i], &batch->rows[i], now);
            batch->entries[i] = NULL;
        } else {
            is_any_refused = true;
        }
    }
    if (is_any_refused)
        drop_idle_queues(memory, batch);
    return rc;
}

static pawl_code fail_batch(const pawl_memory *memory, pawl_code rc, size_t rows_count,
                            pawl_err *err)
{
    if (rc == PAWL_FULL)
        return pawli_fail(err, rc, "jobs_max is %lld; these %zu would exceed it",
                          (long long)memory->jobs_max, rows_count);
    return rc == PAWL_NO_MEMORY ? pawli_fail_plain(err, rc) : rc;
}

pawl_code pawli_memory_put(pawl_memory *memory, pawl_wall now, const struct memory_put *put,
                           pawl_err *err)
{
    struct batch batch = {
        .rows = put->rows,
        .rows_count = put->rows_count,
        .entries = make_all(memory, put->rows, put->rows_count),
        .results = put->results,
    };
    pawl_code rc = PAWL_NO_MEMORY;
    if (batch.entries != NULL) {
        rc = put_batch(memory, now, &batch);
        free_all(memory, batch.entries, batch.rows_count);
    }
    return fail_batch(memory, rc, put->rows_count, err);
}

pawl_code pawli_memory_enqueue(pawl_store *store, const pawl_enqueue_row *rows, size_t rows_count,
                               pawl_enqueued *ret_results, pawl_err *err)
{
    struct handle *handle = (struct handle *)store;
    struct batch batch = {
        .rows = rows,
        .rows_count = rows_count,
        .entries = make_all(handle->memory, rows, rows_count),
        .results = calloc(rows_count, sizeof(*batch.results)),
    };
    pawl_code rc = PAWL_NO_MEMORY;
    if (batch.entries == NULL || batch.results == NULL)
        goto free;

    pawl_wall now;
    pawl_memory *memory = pawli_memory_enter(store, &now, err);
    if (memory == NULL) {
        rc = PAWL_DOWN;
        goto free;
    }
    rc = put_batch(memory, now, &batch);
    pawli_memory_leave(memory);
    if (rc == PAWL_OK)
        memcpy(ret_results, batch.results, rows_count * sizeof(*ret_results));

free:
    if (batch.entries != NULL)
        free_all(handle->memory, batch.entries, rows_count);
    free(batch.results);
    return fail_batch(handle->memory, rc, rows_count, err);
}

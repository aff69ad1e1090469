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
#include "core/id.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- records, made before the lock is taken */

static struct entry *entry_new(const pawl_enqueue_row *row)
{
    const char *key = row->dedupe_key != NULL ? row->dedupe_key : "";
    size_t key_size = strlen(key) + 1;
    struct entry *entry = calloc(1, sizeof(*entry) + key_size);
    if (entry == NULL)
        return NULL;
    memcpy(entry->dedupe_key, key, key_size);
    if (row->payload_len > 0) {
        entry->payload = malloc(row->payload_len);
        if (entry->payload == NULL) {
            free(entry);
            return NULL;
        }
        memcpy(entry->payload, row->payload, row->payload_len);
    }
    entry->id = row->id;
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
    if (RB_INSERT(pawli_job_tree, &memory->jobs, entry) != NULL)
        return (pawl_enqueued){.code = PAWL_EXISTS, .id = entry->id};
    if (entry->dedupe_key[0] != '\0') {
        struct entry *other = RB_INSERT(pawli_key_tree, &entry->queue->keys, entry);
        if (other != NULL) {
            RB_REMOVE(pawli_job_tree, &memory->jobs, entry);
            return (pawl_enqueued){.code = PAWL_DUPLICATE, .id = other->id};
        }
        entry->is_key_held = true;
    }
    return (pawl_enqueued){.code = PAWL_OK, .id = entry->id};
}

static void give_names_back(pawl_memory *memory, struct entry *entry)
{
    RB_REMOVE(pawli_job_tree, &memory->jobs, entry);
    if (entry->is_key_held)
        RB_REMOVE(pawli_key_tree, &entry->queue->keys, entry);
    entry->is_key_held = false;
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
    pawli_memory_link(memory, entry);
    memory->jobs_count++;
    if (row->delay_ms == 0)
        pawli_memory_hint(memory);
}

/* A batch between its first and its last row. Entries that are in the store are no longer here. */
struct batch {
    const pawl_enqueue_row *rows;
    size_t rows_count;
    struct entry **entries;
    pawl_enqueued *results;
};

/* Give each row its verdict and take its names; all or nothing. Changes no job. */
static pawl_code take_all(pawl_memory *memory, const struct batch *batch)
{
    int64_t taken = 0;
    size_t done = 0;
    pawl_code rc = PAWL_OK;
    for (; done < batch->rows_count; done++) {
        struct entry *entry = batch->entries[done];
        entry->queue = pawli_memory_queue_need(memory, batch->rows[done].queue);
        if (entry->queue == NULL) {
            rc = PAWL_NO_MEMORY;
            break;
        }
        batch->results[done] = take_names(memory, entry);
        taken += batch->results[done].code == PAWL_OK;
    }
    if (rc == PAWL_OK && taken > memory->jobs_max - memory->jobs_count)
        rc = PAWL_FULL;
    if (rc == PAWL_OK)
        return PAWL_OK;
    for (size_t i = 0; i < done; i++)
        if (batch->results[i].code == PAWL_OK)
            give_names_back(memory, batch->entries[i]);
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
    rc = take_all(memory, &batch);
    bool is_any_refused = rc != PAWL_OK;
    for (size_t i = 0; i < rows_count && rc == PAWL_OK; i++) {
        if (batch.results[i].code == PAWL_OK) {
            arrive(memory, batch.entries[i], &rows[i], now);
            batch.entries[i] = NULL;
        } else {
            is_any_refused = true;
        }
    }
    if (is_any_refused)
        drop_idle_queues(memory, &batch);
    pawli_memory_leave(memory);
    if (rc == PAWL_OK)
        memcpy(ret_results, batch.results, rows_count * sizeof(*ret_results));

free:
    if (batch.entries != NULL)
        free_all(handle->memory, batch.entries, rows_count);
    free(batch.results);
    if (rc == PAWL_FULL)
        return pawli_fail(err, rc, "jobs_max is %lld; these %zu would exceed it",
                          (long long)handle->memory->jobs_max, rows_count);
    return rc == PAWL_NO_MEMORY ? pawli_fail_plain(err, rc) : rc;
}

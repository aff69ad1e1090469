/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * look.c - what the memory store shows: jobs, ledgers, leases, counts.
 * Owns:  the form in which a job is given out; pages.
 * Never: changes a job; gives a token to anybody but its holder.
 */
#include "store/memory/memory.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

/* ---- jobs */

void pawli_memory_give(const struct entry *entry, pawl_job *ret_job)
{
    const struct pawli_job *job = &entry->job;
    *ret_job = (pawl_job){
        .id = entry->id,
        .state = job->state,
        .priority = entry->priority,
        .retries = job->retries,
        .lost_leases = job->lost_leases,
        .attempts = job->attempts,
        .lease_version = job->lease_version,
        .max_retries = pawli_memory_rules(entry).max_retries,
        .created_at = entry->created_at,
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
        .payload_len = entry->payload_len,
    };
    (void)pawli_text_copy(ret_job->queue, sizeof(ret_job->queue), entry->queue->name); /* they */
    (void)pawli_text_copy(ret_job->worker, sizeof(ret_job->worker), job->worker);      /* fit */
    if (entry->ordering_key != NULL)
        (void)pawli_text_copy(ret_job->ordering_key, sizeof(ret_job->ordering_key),
                              entry->ordering_key->name); /* likewise */
}

/* NULL where there is nothing to copy. False: no memory. */
static bool copy(const void *bytes, size_t bytes_len, void **ret_copy)
{
    *ret_copy = bytes != NULL ? malloc(bytes_len) : NULL;
    if (*ret_copy != NULL)
        memcpy(*ret_copy, bytes, bytes_len);
    return *ret_copy != NULL || bytes == NULL;
}

bool pawli_memory_load(const struct entry *entry, struct cargo *ret_cargo)
{
    void *payload;
    void *headers;
    if (!copy(entry->payload, entry->payload_len, &payload))
        return false;
    size_t headers_size = entry->headers != NULL ? strlen(entry->headers) + 1 : 0;
    if (!copy(entry->headers, headers_size, &headers)) {
        free(payload);
        return false;
    }
    *ret_cargo = (struct cargo){payload, headers};
    return true;
}

void pawli_memory_unload(struct cargo *cargo, pawl_job *job)
{
    job->payload = cargo->payload;
    job->headers = cargo->headers;
    *cargo = (struct cargo){0};
}

void pawli_memory_drop(struct cargo *cargo)
{
    free(cargo->payload);
    free(cargo->headers);
    *cargo = (struct cargo){0};
}

pawl_code pawli_memory_get(pawl_store *store, const pawl_id *id, pawl_job *ret_job, pawl_err *err)
{
    pawl_wall now;
    pawl_memory *memory = pawli_memory_look(store, &now, err);
    if (memory == NULL)
        return PAWL_DOWN;
    const struct entry *entry = pawli_memory_find(memory, id);
    pawl_code rc = entry != NULL ? PAWL_OK : PAWL_GONE;
    struct cargo cargo;
    if (rc == PAWL_OK && !pawli_memory_load(entry, &cargo))
        rc = PAWL_NO_MEMORY;
    if (rc == PAWL_OK) {
        pawli_memory_give(entry, ret_job);
        pawli_memory_unload(&cargo, ret_job);
    }
    pawli_memory_leave(memory);
    return rc == PAWL_OK ? PAWL_OK : pawli_fail_plain(err, rc);
}

static const pawl_filter filter_all = {0};

#define STATES_ALL ((1u << STATES_COUNT) - 1)

pawl_code pawli_memory_list(pawl_store *store, const pawl_filter *filter, const pawl_id *after,
                            pawl_job *ret_jobs, size_t jobs_max, size_t *ret_count, pawl_err *err)
{
    struct walk_range range;
    struct walk walk;
    const struct entry *entry;
    size_t count = 0;
    pawl_wall now;
    if (filter == NULL)
        filter = &filter_all;
    pawl_memory *memory = pawli_memory_look(store, &now, err);
    if (memory == NULL)
        return PAWL_DOWN;
    if (pawli_memory_range(memory, filter, &range)) {
        pawli_memory_range_states(&range, filter, STATES_ALL, false);
        pawli_memory_range_states(&range, filter, STATES_ALL, true);
        pawli_memory_walk(&walk, memory, &range, after);
        while (count < jobs_max && (entry = pawli_memory_walk_next(&walk)) != NULL)
            pawli_memory_give(entry, &ret_jobs[count++]);
    }
    pawli_memory_leave(memory);
    *ret_count = count;
    return PAWL_OK;
}

/* ---- what a worker holds */

/* The jobs that a worker holds at `now`, as a list by `next`. Gives how many. */
static size_t held_by(pawl_memory *memory, const char *worker, const pawl_id *after,
                      size_t jobs_max, pawl_wall now, struct entry **ret_first)
{
    pawl_filter filter = {.worker = worker};
    struct walk_range range;
    struct walk walk;
    struct entry *entry;
    struct entry **tail = ret_first;
    size_t count = 0;
    *tail = NULL;
    if (!pawli_memory_range(memory, &filter, &range))
        return 0;
    pawli_memory_range_states(&range, &filter, STATES_ALL, false);
    pawli_memory_range_states(&range, &filter, STATES_ALL, true);
    pawli_memory_walk(&walk, memory, &range, after);
    while (count < jobs_max && (entry = pawli_memory_walk_next(&walk)) != NULL) {
        if (!pawli_job_is_leased(&entry->job, now))
            continue;
        entry->next = NULL;
        *tail = entry;
        tail = &entry->next;
        count++;
    }
    return count;
}

/* Give the jobs of a list out to their holder. False: no memory, and nothing was given. */
static bool give_held(const struct entry *first, size_t count, pawl_job *ret_jobs)
{
    struct cargo *cargos = calloc(count, sizeof(*cargos));
    if (cargos == NULL)
        return false;
    const struct entry *entry = first;
    for (size_t i = 0; i < count; i++, entry = entry->next) {
        if (!pawli_memory_load(entry, &cargos[i])) {
            while (i-- > 0)
                pawli_memory_drop(&cargos[i]);
            free(cargos);
            return false;
        }
    }
    entry = first;
    for (size_t i = 0; i < count; i++, entry = entry->next) {
        pawli_memory_give(entry, &ret_jobs[i]);
        ret_jobs[i].token = entry->job.token;
        pawli_memory_unload(&cargos[i], &ret_jobs[i]);
    }
    free(cargos);
    return true;
}

pawl_code pawli_memory_mine(pawl_store *store, const char *worker, const pawl_id *after,
                            pawl_job *ret_jobs, size_t jobs_max, size_t *ret_count, pawl_err *err)
{
    pawl_wall now;
    struct entry *first;
    pawl_memory *memory = pawli_memory_look(store, &now, err);
    if (memory == NULL)
        return PAWL_DOWN;
    size_t count = held_by(memory, worker, after, jobs_max, now, &first);
    bool is_given = count == 0 || give_held(first, count, ret_jobs);
    pawli_memory_leave(memory);
    if (!is_given)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    *ret_count = count;
    return PAWL_OK;
}

pawl_code pawli_memory_leases(pawl_store *store, const pawl_filter *filter, const pawl_id *after,
                              pawl_lease_info *ret_rows, size_t rows_max, size_t *ret_count,
                              pawl_err *err)
{
    pawl_filter held = {0};
    struct walk_range range;
    struct walk walk;
    const struct entry *entry;
    size_t count = 0;
    pawl_wall now;
    if (filter != NULL)
        held = (pawl_filter){.queue = filter->queue, .worker = filter->worker};
    pawl_memory *memory = pawli_memory_look(store, &now, err);
    if (memory == NULL)
        return PAWL_DOWN;
    if (pawli_memory_range(memory, &held, &range)) {
        pawli_memory_range_states(&range, &held, 1u << PAWL_IN_FLIGHT, false);
        pawli_memory_range_states(&range, &held, 1u << PAWL_IN_FLIGHT, true);
        pawli_memory_walk(&walk, memory, &range, after);
        while (count < rows_max && (entry = pawli_memory_walk_next(&walk)) != NULL) {
            pawl_lease_info *row = &ret_rows[count++];
            *row = (pawl_lease_info){
                .job = entry->id,
                .lease_version = entry->job.lease_version,
                .claimed_at = entry->job.claimed_at,
                .expires_at = entry->job.expires_at,
                .is_expired = !pawli_job_is_leased(&entry->job, now),
                .is_cancel_asked = entry->job.is_cancel_asked,
            };
            (void)pawli_text_copy(row->queue, sizeof(row->queue), entry->queue->name);  /* they */
            (void)pawli_text_copy(row->worker, sizeof(row->worker), entry->job.worker); /* fit */
        }
    }
    pawli_memory_leave(memory);
    *ret_count = count;
    return PAWL_OK;
}

/* ---- ledgers */

static void give_attempt(const struct entry *entry, int64_t attempt_no, pawl_attempt *ret_row)
{
    struct pawli_ledger_row row = pawli_memory_row(entry, attempt_no);
    const struct error_note *error = entry->ledger[attempt_no - 1].error;
    *ret_row = (pawl_attempt){
        .attempt_no = row.attempt_no,
        .outcome = row.outcome,
        .reason = row.reason,
        .ended_by = row.ended_by,
        .lease_version = row.lease_version,
        .started_at = row.started_at,
        .finished_at = row.finished_at,
        .wire_sends = entry->ledger[attempt_no - 1].wire_sends,
    };
    memcpy(ret_row->worker, row.worker, sizeof(ret_row->worker));
    if (error == NULL)
        return;
    /* The front has checked that they fit. */
    (void)pawli_text_copy(ret_row->error_code, sizeof(ret_row->error_code), error->chars);
    (void)pawli_text_copy(ret_row->error_text, sizeof(ret_row->error_text),
                          error->chars + error->text_at);
}

pawl_code pawli_memory_attempts(pawl_store *store, const pawl_id *id, int64_t after_no,
                                pawl_attempt *ret_rows, size_t rows_max, size_t *ret_count,
                                pawl_err *err)
{
    pawl_wall now;
    pawl_memory *memory = pawli_memory_look(store, &now, err);
    if (memory == NULL)
        return PAWL_DOWN;
    const struct entry *entry = pawli_memory_find(memory, id);
    size_t count = 0;
    if (entry != NULL)
        while (count < rows_max && after_no < entry->job.attempts)
            give_attempt(entry, ++after_no, &ret_rows[count++]);
    pawli_memory_leave(memory);
    if (entry == NULL)
        return pawli_fail_plain(err, PAWL_GONE);
    *ret_count = count;
    return PAWL_OK;
}

/* ---- counts */

static void give_stats(struct queue *queue, pawl_wall now, pawl_stats *ret_row)
{
    pawli_memory_turn_due(queue, now);
    *ret_row = (pawl_stats){
        .is_paused = queue->settings.is_paused,
        .ready = queue->counts[PAWL_READY],
        .delayed = queue->delayed,
        .in_flight = queue->counts[PAWL_IN_FLIGHT],
        .expired = queue->expired,
        .succeeded = queue->counts[PAWL_SUCCEEDED],
        .failed = queue->counts[PAWL_FAILED],
    };
    /* Of those that are due; whether one waits behind its key is no matter. */
    const struct entry *oldest = RB_MIN(pawli_due_tree, &queue->due);
    if (oldest != NULL && oldest->job.due_at.us <= now.us)
        ret_row->oldest_due_ms = pawli_wall_diff_ms(oldest->job.due_at, now);
    (void)pawli_text_copy(ret_row->queue, sizeof(ret_row->queue), queue->name); /* it fits */
}

pawl_code pawli_memory_queue_stats(pawl_store *store, const char *after, pawl_stats *ret_rows,
                                   size_t rows_max, size_t *ret_count, pawl_err *err)
{
    pawl_wall now;
    pawl_memory *memory = pawli_memory_look(store, &now, err);
    if (memory == NULL)
        return PAWL_DOWN;
    struct queue key;
    (void)pawli_text_copy(key.name, sizeof(key.name), after); /* NULL: before all names */
    struct queue *queue = RB_NFIND(pawli_queue_tree, &memory->queues, &key);
    if (queue != NULL && after != NULL && strcmp(queue->name, after) == 0)
        queue = RB_NEXT(pawli_queue_tree, &memory->queues, queue);
    pawli_memory_turn_expired(memory, now);
    size_t count = 0;
    for (; queue != NULL && count < rows_max;
         queue = RB_NEXT(pawli_queue_tree, &memory->queues, queue))
        give_stats(queue, now, &ret_rows[count++]);
    pawli_memory_leave(memory);
    *ret_count = count;
    return PAWL_OK;
}

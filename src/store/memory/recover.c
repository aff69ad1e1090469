/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * recover.c - what becomes of jobs that nobody ends, and of history that nobody needs.
 * Owns:  the sweep over expired leases and missed start-by deadlines; the pruning of old jobs, and
 *        of workers that went without a word.
 * Never: touches a lease that is valid by the clock of this call; prunes a live job.
 */
#include "store/memory/memory.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "core/mutant.h"

#include <assert.h>
#include <string.h>

/* ---- reap */

/* Gather jobs whose deadline has passed, the longest ago first. False: no memory. */
static bool pick(pawl_memory *memory, struct reap *reap)
{
    struct entry **tail = &reap->first;
    struct entry *entry = RB_MIN(pawli_deadline_tree, &memory->deadlines);
    for (; entry != NULL && reap->count < reap->rows_max && entry->deadline.us <= reap->now.us;
         entry = RB_NEXT(pawli_deadline_tree, &memory->deadlines, entry)) {
        if (!pawli_memory_reserve(entry))
            return false;
        entry->next = NULL;
        *tail = entry;
        tail = &entry->next;
        reap->count++;
    }
    return true;
}

/* Recover one job, and say what has become of it. */
static bool recover(pawl_memory *memory, struct entry *entry, pawl_wall now, pawl_reaped *ret_row)
{
#ifdef PAWL_TEST_POINTS
    if (entry->ghost != NULL)
        pawli_memory_mutant_revive(memory, entry);
#endif
    bool is_lease = entry->job.state == PAWL_IN_FLIGHT;
    pawl_wall deadline = is_lease ? entry->job.expires_at : entry->job.start_by;
    pawl_reaped row = {
        .job = entry->id,
        .lease_version = is_lease ? entry->job.lease_version : 0,
        .overdue_ms = pawli_wall_diff_ms(deadline, now),
    };
    (void)pawli_text_copy(row.queue, sizeof(row.queue), entry->queue->name); /* they fit */
    (void)pawli_text_copy(row.worker, sizeof(row.worker), entry->job.worker);
    struct pawli_change change = {
        .event = is_lease ? PAWLI_EVENT_EXPIRE : PAWLI_EVENT_MISS,
        .now = now,
    };
    if (pawli_memory_change(memory, entry, &change, NULL) != PAWL_OK)
        return false;
    row.state = entry->job.state;
    row.reason = entry->job.reason;
    if (row.state == PAWL_READY)
        row.due_at = entry->job.due_at;
    *ret_row = row;
    return true;
}

pawl_code pawli_memory_reap(pawl_store *store, pawl_reaped *ret_rows, size_t rows_max,
                            size_t *ret_count, pawl_err *err)
{
    struct reap reap = {.rows_max = rows_max};
    pawl_memory *memory = pawli_memory_enter(store, &reap.now, err);
    if (memory == NULL)
        return PAWL_DOWN;
    bool is_room = pick(memory, &reap);
#ifdef PAWL_TEST_POINTS
    pawli_memory_mutant_pick(memory, store, &reap);
#endif
    size_t count = 0;
    for (struct entry *entry = reap.first; entry != NULL && is_room;) {
        struct entry *next = entry->next;
        bool is_done = recover(memory, entry, reap.now, &ret_rows[count]);
        assert(is_done); /* its deadline has passed */
        count += is_done;
        entry = next;
    }
    pawli_memory_leave(memory);
    if (!is_room)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    *ret_count = count;
    return PAWL_OK;
}

/* ---- prune */

static bool is_old(const struct entry *entry, pawl_wall now)
{
    const pawl_queue_settings *settings = &entry->queue->settings;
    int64_t keep_ms = entry->job.state == PAWL_FAILED ? settings->keep_failed_ms
                                                      : settings->keep_succeeded_ms;
    if (keep_ms == PAWL_FOREVER)
        return false;
    return pawli_wall_is_before(pawli_wall_add_ms(entry->job.finished_at, keep_ms), now);
}

static void forget(pawl_memory *memory, struct entry *entry)
{
    pawli_memory_unlink(memory, entry);
    TAILED_TAKE(pawli_job_tree, &memory->jobs, entry);
    memory->jobs_count--;
    pawli_memory_free_entry(memory, entry);
}

/* Forget the oldest of one kind. Gives how many. */
static size_t prune_tree(pawl_memory *memory, struct pawli_finished_tree *finished, size_t jobs_max,
                         pawl_wall now)
{
    size_t count = 0;
    for (; count < jobs_max; count++) {
        struct entry *oldest = RB_MIN(pawli_finished_tree, finished);
        if (oldest == NULL || !is_old(oldest, now))
            break;
        forget(memory, oldest);
    }
    return count;
}

pawl_code pawli_memory_prune(pawl_store *store, size_t jobs_max, size_t *ret_count, pawl_err *err)
{
    pawl_wall now;
    pawl_memory *memory = pawli_memory_enter(store, &now, err);
    if (memory == NULL)
        return PAWL_DOWN;
    size_t count = 0;
    struct queue *queue = RB_MIN(pawli_queue_tree, &memory->queues);
    while (queue != NULL && count < jobs_max) {
        struct queue *next = RB_NEXT(pawli_queue_tree, &memory->queues, queue);
        count += prune_tree(memory, &queue->succeeded, jobs_max - count, now);
        count += prune_tree(memory, &queue->failed, jobs_max - count, now);
        pawli_memory_queue_drop(memory, queue);
        queue = next;
    }
    count += pawli_memory_events_prune(memory, jobs_max - count, now);
    pawli_memory_once_prune(memory, jobs_max, now);
    pawli_memory_presence_prune(memory, now);
    pawli_memory_leave(memory);
    *ret_count = count;
    return PAWL_OK;
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * index.c - which trees a job is in, and walks through them.
 * Owns:  M1 to M7 of memory.h: putting jobs into the trees and taking them out, the counters that
 *        go with it, and the two boundaries that follow the clock.
 * Never: changes a job's own fields; allocates; takes the lock (its callers hold it).
 */
#include "store/memory/memory.h"

#include "base/clock.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct entry *pawli_memory_find(pawl_memory *memory, const pawl_id *id)
{
    struct entry key;
    key.id = *id;
    return RB_FIND(pawli_job_tree, &memory->jobs, &key);
}

/* ---- shelves */

int pawli_memory_shelf(pawl_state state, bool is_marked, pawl_reason reason)
{
    return ((int)state * 2 + (is_marked ? 1 : 0)) * REASONS_COUNT + (int)reason;
}

static int shelf_of(const struct entry *entry)
{
    bool is_marked = entry->job.is_cancel_asked || entry->job.is_discarded;
    return pawli_memory_shelf(entry->job.state, is_marked, entry->job.reason);
}

/* ---- in and out */

static bool is_live(const struct entry *entry)
{
    return entry->job.state == PAWL_READY || entry->job.state == PAWL_IN_FLIGHT;
}

static struct pawli_finished_tree *finished_of(struct entry *entry)
{
    return entry->job.state == PAWL_FAILED ? &entry->queue->failed : &entry->queue->succeeded;
}

static void link_ready(struct entry *entry)
{
    struct queue *queue = entry->queue;
    TAILED_PUT(pawli_due_tree, &queue->due, entry);
    bool is_due = entry->job.due_at.us <= queue->due_until.us;
    queue->delayed += is_due ? 0 : 1;
    entry->is_claimable = is_due && pawli_memory_order_is_first(entry); /* M2 */
    if (entry->is_claimable)
        TAILED_PUT(pawli_ready_tree, &entry->line->ready, entry);
    entry->deadline = entry->job.start_by;
}

static void link_in_flight(pawl_memory *memory, struct entry *entry)
{
    assert(entry->holder != NULL);
    TAILED_PUT(pawli_lease_tree, &entry->line->leases, entry);
    entry->line->in_flight++;
    TAILED_PUT(pawli_held_tree, &entry->holder->held, entry);
    entry->holder->held_count++;
    entry->deadline = entry->job.expires_at;
    if (entry->deadline.us <= memory->expired_until.us)
        entry->queue->expired++;
}

void pawli_memory_link(pawl_memory *memory, struct entry *entry)
{
    struct queue *queue = entry->queue;
    assert(entry->deadline.us == 0 && !entry->is_claimable);

    queue->counts[entry->job.state]++;
    entry->shelf = shelf_of(entry);
    TAILED_PUT(pawli_shelf_tree, &memory->shelves[entry->shelf], entry);
    TAILED_PUT(pawli_queue_shelf_tree, &queue->shelves[entry->shelf], entry);
    if (entry->job.state == PAWL_READY)
        link_ready(entry);
    else if (entry->job.state == PAWL_IN_FLIGHT)
        link_in_flight(memory, entry);
    else
        TAILED_PUT(pawli_finished_tree, finished_of(entry), entry);
    if (pawli_wall_is_set(entry->deadline))
        TAILED_PUT(pawli_deadline_tree, &memory->deadlines, entry);
    /* Whether the key is free was asked before the job became live (M6); enqueue has taken it. */
    if (is_live(entry) && entry->dedupe_key[0] != '\0' && !entry->is_dedupe_held)
        entry->is_dedupe_held = RB_INSERT(pawli_dedupe_tree, &queue->dedupes, entry) == NULL;
}

static void unlink_ready(struct entry *entry)
{
    struct queue *queue = entry->queue;
    TAILED_TAKE(pawli_due_tree, &queue->due, entry);
    if (entry->is_claimable)
        TAILED_TAKE(pawli_ready_tree, &entry->line->ready, entry);
    queue->delayed -= entry->job.due_at.us <= queue->due_until.us ? 0 : 1;
    entry->is_claimable = false;
}

static void unlink_in_flight(pawl_memory *memory, struct entry *entry)
{
    TAILED_TAKE(pawli_lease_tree, &entry->line->leases, entry);
    entry->line->in_flight--;
    TAILED_TAKE(pawli_held_tree, &entry->holder->held, entry);
    entry->holder->held_count--;
    if (entry->deadline.us <= memory->expired_until.us)
        entry->queue->expired--;
}

void pawli_memory_unlink(pawl_memory *memory, struct entry *entry)
{
    struct queue *queue = entry->queue;
    assert(queue->counts[entry->job.state] > 0);
    assert(entry->shelf == shelf_of(entry));

    queue->counts[entry->job.state]--;
    TAILED_TAKE(pawli_shelf_tree, &memory->shelves[entry->shelf], entry);
    TAILED_TAKE(pawli_queue_shelf_tree, &queue->shelves[entry->shelf], entry);
    if (entry->job.state == PAWL_READY)
        unlink_ready(entry);
    else if (entry->job.state == PAWL_IN_FLIGHT)
        unlink_in_flight(memory, entry);
    else
        TAILED_TAKE(pawli_finished_tree, finished_of(entry), entry);
    if (pawli_wall_is_set(entry->deadline))
        TAILED_TAKE(pawli_deadline_tree, &memory->deadlines, entry);
    entry->deadline = (pawl_wall){0};
    if (entry->is_dedupe_held)
        RB_REMOVE(pawli_dedupe_tree, &queue->dedupes, entry);
    entry->is_dedupe_held = false;
}

void pawli_memory_free_entry(pawl_memory *memory, struct entry *entry)
{
    if (entry == NULL)
        return;
    for (int64_t i = 0; i < entry->job.attempts; i++) {
        pawli_memory_holder_drop(memory, entry->ledger[i].holder);
        free(entry->ledger[i].error);
    }
    pawli_memory_holder_drop(memory, entry->holder);
    pawli_memory_order_leave(entry);
    pawli_memory_key_drop(entry->ordering_key);
    if (entry->ledger != entry->ledger_first)
        free(entry->ledger);
    free(entry->payload);
    free(entry->headers);
#ifdef PAWL_TEST_POINTS
    free(entry->ghost);
#endif
    free(entry);
}

/* ---- boundaries that follow the clock */

/*
 * A boundary moves from where it was to `now`, and each job between the two changes sides, once.
 * The clock of a store may be set back: then they change back, so that what is due is always what
 * the clock of this call says.
 */
static struct entry *first_due_after(struct queue *queue, pawl_wall at)
{
    struct entry key;
    if (at.us == INT64_MAX)
        return NULL;
    key.job.due_at.us = at.us + 1;
    key.position = INT64_MIN;
    return RB_NFIND(pawli_due_tree, &queue->due, &key);
}

void pawli_memory_turn_due(struct queue *queue, pawl_wall now)
{
    pawl_wall from = queue->due_until;
    bool is_forward = from.us < now.us;
    pawl_wall low = is_forward ? from : now;
    pawl_wall high = is_forward ? now : from;
    if (low.us == high.us)
        return;

    queue->due_until = now;
    struct entry *entry = first_due_after(queue, low);
    for (; entry != NULL && entry->job.due_at.us <= high.us;
         entry = RB_NEXT(pawli_due_tree, &queue->due, entry)) {
        assert(!entry->is_claimable || !is_forward);
        bool is_claimable = is_forward && pawli_memory_order_is_first(entry);
        queue->delayed += is_forward ? -1 : 1;
        if (is_claimable)
            TAILED_PUT(pawli_ready_tree, &entry->line->ready, entry);
        else if (entry->is_claimable)
            TAILED_TAKE(pawli_ready_tree, &entry->line->ready, entry);
        entry->is_claimable = is_claimable;
    }
}

void pawli_memory_turn_expired(pawl_memory *memory, pawl_wall now)
{
    pawl_wall from = memory->expired_until;
    bool is_forward = from.us < now.us;
    pawl_wall low = is_forward ? from : now;
    pawl_wall high = is_forward ? now : from;
    if (low.us == high.us)
        return;

    memory->expired_until = now;
    struct entry key;
    key.deadline.us = low.us + 1;
    memset(&key.id, 0, sizeof(key.id));
    struct entry *entry = RB_NFIND(pawli_deadline_tree, &memory->deadlines, &key);
    for (; entry != NULL && entry->deadline.us <= high.us;
         entry = RB_NEXT(pawli_deadline_tree, &memory->deadlines, entry))
        if (entry->job.state == PAWL_IN_FLIGHT)
            entry->queue->expired += is_forward ? 1 : -1;
}

/* ---- walks */

bool pawli_memory_range(pawl_memory *memory, const pawl_filter *filter,
                        struct walk_range *ret_range)
{
    memset(ret_range, 0, sizeof(*ret_range));
    if (filter->queue != NULL) {
        ret_range->queue = pawli_memory_queue_find(memory, filter->queue);
        if (ret_range->queue == NULL)
            return false;
    }
    if (filter->worker != NULL) {
        ret_range->holder = pawli_memory_holder_find(memory, filter->worker);
        if (ret_range->holder == NULL)
            return false;
    }
    if (filter->ordering_key != NULL) {
        assert(ret_range->queue != NULL); /* the front has checked it */
        ret_range->ordering_key = pawli_memory_key_find(ret_range->queue, filter->ordering_key);
        if (ret_range->ordering_key == NULL)
            return false;
    }
    return true;
}

void pawli_memory_range_states(struct walk_range *range, const pawl_filter *filter, unsigned states,
                               bool is_marked)
{
    for (int state = 0; state < STATES_COUNT; state++) {
        if ((states & 1u << state) == 0)
            continue;
        if (filter->states != 0 && (filter->states & 1u << state) == 0)
            continue;
        for (int reason = 0; reason < REASONS_COUNT; reason++)
            if (filter->reason == PAWL_REASON_NONE || (int)filter->reason == reason)
                range->shelves[pawli_memory_shelf((pawl_state)state, is_marked,
                                                  (pawl_reason)reason)] = true;
    }
}

/* The first job of a shelf at or after `key`, which must name the shelf. */
static struct entry *first_on_shelf(pawl_memory *memory, struct queue *queue, struct entry *key)
{
    return queue != NULL ? RB_NFIND(pawli_queue_shelf_tree, &queue->shelves[key->shelf], key)
                         : RB_NFIND(pawli_shelf_tree, &memory->shelves[key->shelf], key);
}

static struct entry *next_on_shelf(const struct walk *walk, struct entry *entry)
{
    return walk->range.queue != NULL ? RB_NEXT(pawli_queue_shelf_tree, NULL, entry)
                                     : RB_NEXT(pawli_shelf_tree, NULL, entry);
}

/* Steps over what the id itself would find: the walk begins above it. */
static struct entry *step_over(struct entry *entry, const pawl_id *after, struct entry *next)
{
    bool is_it = entry != NULL && after != NULL && pawl_id_compare(&entry->id, after) == 0;
    return is_it ? next : entry;
}

void pawli_memory_walk(struct walk *walk, pawl_memory *memory, const struct walk_range *range,
                       const pawl_id *after)
{
    struct entry key;
    memset(&key.id, 0, sizeof(key.id));
    if (after != NULL)
        key.id = *after;
    walk->range = *range;
    walk->heads_count = 0;
    if (range->holder != NULL) {
        struct entry *first = RB_NFIND(pawli_held_tree, &range->holder->held, &key);
        struct entry *next = first != NULL ? RB_NEXT(pawli_held_tree, NULL, first) : NULL;
        walk->heads[0] = step_over(first, after, next);
        walk->heads_count = walk->heads[0] != NULL;
        return;
    }
    for (key.shelf = 0; key.shelf < SHELVES_COUNT; key.shelf++) {
        if (!range->shelves[key.shelf])
            continue;
        struct entry *first = first_on_shelf(memory, range->queue, &key);
        struct entry *next = first != NULL ? next_on_shelf(walk, first) : NULL;
        first = step_over(first, after, next);
        if (first != NULL)
            walk->heads[walk->heads_count++] = first;
    }
}

static struct entry *next_held(struct walk *walk)
{
    while (walk->heads_count > 0) {
        struct entry *entry = walk->heads[0];
        walk->heads[0] = RB_NEXT(pawli_held_tree, NULL, entry);
        walk->heads_count = walk->heads[0] != NULL;
        bool is_in_queue = walk->range.queue == NULL || walk->range.queue == entry->queue;
        if (is_in_queue && walk->range.shelves[entry->shelf])
            return entry;
    }
    return NULL;
}

static struct entry *next_of_shelves(struct walk *walk)
{
    if (walk->heads_count == 0)
        return NULL;
    size_t lowest = 0;
    for (size_t i = 1; i < walk->heads_count; i++)
        if (pawl_id_compare(&walk->heads[i]->id, &walk->heads[lowest]->id) < 0)
            lowest = i;
    struct entry *entry = walk->heads[lowest];
    walk->heads[lowest] = next_on_shelf(walk, entry);
    if (walk->heads[lowest] == NULL)
        walk->heads[lowest] = walk->heads[--walk->heads_count];
    return entry;
}

struct entry *pawli_memory_walk_next(struct walk *walk)
{
    const struct ordering_key *key = walk->range.ordering_key;
    struct entry *entry;
    do
        entry = walk->range.holder != NULL ? next_held(walk) : next_of_shelves(walk);
    while (entry != NULL && key != NULL && entry->ordering_key != key);
    return entry;
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * order.c - the ordering keys of the memory store: who stands behind whom.
 * Owns:  the records of keys (M9) and the order of their live jobs (M10); the fences.
 * Never: decides when a job joins or leaves (core/job.c does); takes the lock (its callers hold
 *        it); looks at more than the first jobs of a key, however many wait behind them.
 */
#include "store/memory/memory.h"

#include "base/text.h"
#include "core/mutant.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- records */

/* A record that is only looked for with: its name stands where a key's does. */
union ordering_key_key {
    struct ordering_key key;
    char bytes[sizeof(struct ordering_key) + PAWL_ORDERING_KEY_MAX + 1];
};

struct ordering_key *pawli_memory_key_find(struct queue *queue, const char *name)
{
    union ordering_key_key key;
    (void)pawli_text_copy(key.key.name, PAWL_ORDERING_KEY_MAX + 1, name); /* checked: it fits */
    return RB_FIND(pawli_ordering_tree, &queue->ordering_keys, &key.key);
}

struct ordering_key *pawli_memory_key_need(struct queue *queue, const char *name)
{
    struct ordering_key *key = pawli_memory_key_find(queue, name);
    if (key == NULL) {
        size_t name_size = strlen(name) + 1;
        key = calloc(1, sizeof(*key) + name_size);
        if (key == NULL)
            return NULL;
        memcpy(key->name, name, name_size);
        key->queue = queue;
        TAILQ_INIT(&key->jobs);
        RB_INSERT(pawli_ordering_tree, &queue->ordering_keys, key);
    }
    key->uses++;
    return key;
}

void pawli_memory_key_drop(struct ordering_key *key)
{
    if (key == NULL)
        return;
    assert(key->uses > 0);
    if (--key->uses > 0)
        return;
    assert(TAILQ_EMPTY(&key->jobs));
    RB_REMOVE(pawli_ordering_tree, &key->queue->ordering_keys, key);
    free(key);
}

/* ---- the order of one key */

void pawli_memory_order_join(struct entry *entry)
{
    if (entry->ordering_key == NULL || entry->is_in_order)
        return;
    TAILQ_INSERT_TAIL(&entry->ordering_key->jobs, entry, in_order);
    entry->is_in_order = true;
}

void pawli_memory_order_leave(struct entry *entry)
{
    if (!entry->is_in_order)
        return;
    TAILQ_REMOVE(&entry->ordering_key->jobs, entry, in_order);
    entry->is_in_order = false;
}

bool pawli_memory_order_is_first(const struct entry *entry)
{
    if (!entry->is_in_order)
        return true;
    const struct entry *first = TAILQ_FIRST(&entry->ordering_key->jobs);
    if (PAWLI_MUTANT(PAWLI_MUTANT_KEY_CLAIM_TWO) && TAILQ_NEXT(first, in_order) == entry)
        return true;
    return first == entry;
}

/* Make it claimable where it should be and is not. */
static void let_through(pawl_memory *memory, struct entry *entry)
{
    bool is_due = entry->job.due_at.us <= entry->queue->due_until.us;
    if (entry->job.state != PAWL_READY || entry->is_claimable || !is_due)
        return;
    TAILED_PUT(pawli_ready_tree, &entry->line->ready, entry);
    entry->is_claimable = true;
    pawli_memory_hint(memory);
}

void pawli_memory_order_move_up(pawl_memory *memory, struct ordering_key *key)
{
    struct entry *first = key != NULL ? TAILQ_FIRST(&key->jobs) : NULL;
    if (first == NULL)
        return;
    let_through(memory, first);
    struct entry *second = TAILQ_NEXT(first, in_order);
    if (PAWLI_MUTANT(PAWLI_MUTANT_KEY_CLAIM_TWO) && second != NULL)
        let_through(memory, second);
}

/* ---- fences */

int64_t pawli_memory_draw_fence(pawl_memory *memory, const struct entry *entry)
{
    if (entry->ordering_key == NULL)
        return 0;
    bool is_again = entry->job.lease_version > 0;
    if (PAWLI_MUTANT(PAWLI_MUTANT_FENCE_REUSED) && is_again)
        return memory->fence;
    return ++memory->fence;
}

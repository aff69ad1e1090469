/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * backlog.c - offsets in the order in which they came, and found by value.
 * Owns:  a ring of entries for the order, a tree of the same entries for the look-up.
 * Never: holds an offset twice; lets one out but at the head; bounds itself (worklease.c does).
 *
 * A tree and not a hash: offsets are the producers' to choose, and no choice of theirs may make the
 * look-up slow.
 */
#include "core/backlog.h"

#include <assert.h>

#define RING_SIZE_MIN 16

struct pawli_waiting {
    RB_ENTRY(pawli_waiting) entry;
    int64_t offset;
};

static int compare_waiting(const struct pawli_waiting *a, const struct pawli_waiting *b)
{
    return (a->offset > b->offset) - (a->offset < b->offset);
}

/* Not RB_GENERATE_STATIC: it needs an __unused that only the BSDs define. */
RB_GENERATE_INTERNAL(pawli_waiting_tree, pawli_waiting, entry, compare_waiting,
                     static __attribute__((unused)))

void pawli_backlog_init(struct pawli_backlog *backlog)
{
    assert(backlog != NULL);

    *backlog = (struct pawli_backlog){.count = 0};
}

/* The ring's field for the i-th entry from the head; i up to the ring's last free field. */
static struct pawli_waiting **field_at(const struct pawli_backlog *backlog, size_t i)
{
    assert(i < backlog->ring_size);

    return &backlog->ring[(backlog->head + i) & (backlog->ring_size - 1)];
}

void pawli_backlog_clear(struct pawli_backlog *backlog)
{
    if (backlog == NULL)
        return;

    for (size_t i = 0; i < backlog->count; i++)
        free(*field_at(backlog, i));
    free(backlog->ring);
    pawli_backlog_init(backlog);
}

bool pawli_backlog_has(const struct pawli_backlog *backlog, int64_t offset)
{
    assert(backlog != NULL);

    const struct pawli_waiting *at = RB_ROOT(&backlog->by_offset);
    while (at != NULL && at->offset != offset)
        at = offset < at->offset ? RB_LEFT(at, entry) : RB_RIGHT(at, entry);
    return at != NULL;
}

size_t pawli_backlog_count(const struct pawli_backlog *backlog)
{
    assert(backlog != NULL);

    return backlog->count;
}

int64_t pawli_backlog_at(const struct pawli_backlog *backlog, size_t i)
{
    assert(backlog != NULL);
    assert(i < backlog->count);

    return (*field_at(backlog, i))->offset;
}

/* Room for one more in the ring. The order stays; the entries stay where they are. */
static pawl_code grow_ring(struct pawli_backlog *backlog)
{
    if (backlog->count < backlog->ring_size)
        return PAWL_OK;

    size_t size = backlog->ring_size > 0 ? 2 * backlog->ring_size : RING_SIZE_MIN;
    if (size > SIZE_MAX / sizeof *backlog->ring)
        return PAWL_NO_MEMORY;
    struct pawli_waiting **ring = malloc(size * sizeof *ring);
    if (ring == NULL)
        return PAWL_NO_MEMORY;

    for (size_t i = 0; i < backlog->count; i++)
        ring[i] = *field_at(backlog, i);
    free(backlog->ring);
    backlog->ring = ring;
    backlog->ring_size = size;
    backlog->head = 0;
    return PAWL_OK;
}

pawl_code pawli_backlog_push(struct pawli_backlog *backlog, int64_t offset)
{
    assert(backlog != NULL);

    struct pawli_waiting *added = malloc(sizeof *added);
    if (added == NULL)
        return PAWL_NO_MEMORY;
    pawl_code rc = grow_ring(backlog);
    if (rc != PAWL_OK) {
        free(added);
        return rc;
    }

    added->offset = offset;
    struct pawli_waiting *twin = RB_INSERT(pawli_waiting_tree, &backlog->by_offset, added);
    assert(twin == NULL);
    (void)twin; /* read by the assert only */
    *field_at(backlog, backlog->count) = added;
    backlog->count++;
    return PAWL_OK;
}

void pawli_backlog_pop(struct pawli_backlog *backlog)
{
    assert(backlog != NULL);
    assert(backlog->count > 0);

    struct pawli_waiting *head = *field_at(backlog, 0);
    RB_REMOVE(pawli_waiting_tree, &backlog->by_offset, head);
    free(head);
    backlog->head = (backlog->head + 1) & (backlog->ring_size - 1);
    backlog->count--;
    if (backlog->count == 0)
        pawli_backlog_clear(backlog); /* the memory of a long backlog goes when it has drained */
}

size_t pawli_backlog_bytes(const struct pawli_backlog *backlog)
{
    assert(backlog != NULL);

    return backlog->count * sizeof(struct pawli_waiting) +
           backlog->ring_size * sizeof *backlog->ring;
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * backlog.h - the offsets that wait behind a work lease: first in, first out, each at most once.
 *
 * Every function costs O(log n) at worst (a push that outgrows its memory aside, which happens once
 * per doubling), clear O(n). One caller at a time.
 */
#ifndef PAWLI_CORE_BACKLOG_H
#define PAWLI_CORE_BACKLOG_H

#include "pawl/pawl.h"

#include <bsd/sys/tree.h>

struct pawli_waiting;
RB_HEAD(pawli_waiting_tree, pawli_waiting);

/* The caller's struct; its fields are backlog.c's own. */
struct pawli_backlog {
    struct pawli_waiting **ring; /* in the order of arrival, from ring[head] on */
    size_t ring_size;            /* 0, or a power of two */
    size_t head;
    size_t count;
    struct pawli_waiting_tree by_offset; /* the same entries */
};

void pawli_backlog_init(struct pawli_backlog *backlog);  /* to empty; allocates nothing */
void pawli_backlog_clear(struct pawli_backlog *backlog); /* frees everything; accepts NULL */

bool pawli_backlog_has(const struct pawli_backlog *backlog, int64_t offset);
size_t pawli_backlog_count(const struct pawli_backlog *backlog);

/* The i-th offset from the head; i below the count. */
int64_t pawli_backlog_at(const struct pawli_backlog *backlog, size_t i);

/* Append an offset that is not in it. PAWL_OK, or PAWL_NO_MEMORY and the backlog is as it was. */
pawl_code pawli_backlog_push(struct pawli_backlog *backlog, int64_t offset);

/* Remove the head of a backlog that is not empty. Never allocates. */
void pawli_backlog_pop(struct pawli_backlog *backlog);

/* What the backlog has allocated, without the caller's struct. */
size_t pawli_backlog_bytes(const struct pawli_backlog *backlog);

#endif

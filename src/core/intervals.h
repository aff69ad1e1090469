/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * intervals.h - a set of signed 64-bit numbers that only grows, kept as disjoint intervals that
 * merge as the gaps between them close: a contiguous set costs the same whatever its size
 * (WL-MEMORY).
 *
 * Every function costs O(log n) in the number of intervals, clear O(n). One caller at a time.
 */
#ifndef PAWLI_CORE_INTERVALS_H
#define PAWLI_CORE_INTERVALS_H

#include "pawl/pawl.h"

#include <bsd/sys/tree.h>

struct pawli_chunk;
RB_HEAD(pawli_chunk_tree, pawli_chunk);

struct pawli_interval {
    int64_t first;
    int64_t last; /* in the interval */
};

/* The caller's struct; its fields are intervals.c's own. */
struct pawli_intervals {
    struct pawli_chunk_tree chunks;
    size_t chunks_count;
    size_t intervals_count;
    struct pawli_interval alone; /* the one there is, while there are no chunks */
};

void pawli_intervals_init(struct pawli_intervals *set);  /* to the empty set; allocates nothing */
void pawli_intervals_clear(struct pawli_intervals *set); /* frees everything; accepts NULL */

/* Put `value` in; one that is in already stays. PAWL_OK, or PAWL_NO_MEMORY and the set is as it
 * was. */
pawl_code pawli_intervals_add(struct pawli_intervals *set, int64_t value);

bool pawli_intervals_has(const struct pawli_intervals *set, int64_t value);

/* How many intervals there are: no two of them touch. */
size_t pawli_intervals_count(const struct pawli_intervals *set);

/* The lowest interval, and the one after *interval: false where there is none. */
bool pawli_intervals_first(const struct pawli_intervals *set, struct pawli_interval *ret_interval);
bool pawli_intervals_next(const struct pawli_intervals *set, struct pawli_interval *interval);

/* What the set has allocated, without the caller's struct. */
size_t pawli_intervals_bytes(const struct pawli_intervals *set);

#endif

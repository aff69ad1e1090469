/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * walk.h - random calls on several stores at once, each answer compared with the first store's.
 */
#ifndef PAWLT_DIFF_WALK_H
#define PAWLT_DIFF_WALK_H

#include "diff/call.h"

struct walk_plan {
    const struct store_kind *kinds[DIFF_SIDES_MAX]; /* the first one is what the choices rest on */
    int mutants[DIFF_SIDES_MAX];                    /* deliberate bugs, by side; 0: none */
    size_t sides_count;
    int64_t shards;
    uint64_t seed;
    bool is_partial;   /* do not go on until every answer was met */
    size_t calls;      /* at least so many, and on until every answer was met */
    size_t check_from; /* from this call on everything is compared after every call; 0: never */
};

struct walk_result {
    bool is_same;      /* no difference was found */
    bool is_covered;   /* every answer was met */
    bool is_broken;    /* a store could not be made or opened */
    size_t calls;      /* made, before the difference where there is one */
    size_t pictures;   /* how often everything was compared */
    size_t same_at;    /* the last call after which everything was the same */
    bool is_in_answer; /* the difference showed in an answer, not in the picture after it */
};

/* Walk. A difference is told to `out`, as comments of a TAP stream; NULL: nowhere. */
struct walk_result walk_stores(const struct walk_plan *plan, FILE *out);

#endif

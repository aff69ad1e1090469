/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * invariants.h - a domain of work leases as somebody saw it, and what must hold of it after every
 * step (WL-SINGLE, WL-DISJOINT, WL-FIFO, WL-IDEMPOTENT). Each check fails the test.
 */
#ifndef PAWLT_WORKLEASE_INVARIANTS_H
#define PAWLT_WORKLEASE_INVARIANTS_H

#include "worklease/draw.h"

struct seen {
    pawl_worklease_info info;
    int64_t backlog[UNIVERSE];
    size_t backlog_count;
    pawl_worklease_interval terminal[UNIVERSE];
    size_t terminal_count;
};

/* Whether an offset has ended, and how: by the intervals. */
bool seen_is_ended(const struct seen *seen, int64_t offset, bool is_failed);

/* No offset is in two places, and no two intervals of a kind touch. */
void seen_check_disjoint(const struct seen *seen);

/* What one operation may change. */
void seen_check_step(const struct seen *before, const struct seen *now, const struct operation *op,
                     const struct outcome *outcome);

#endif

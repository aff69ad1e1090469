/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * invariants.c - what must hold of a domain of work leases after every step.
 * Owns:  the invariants, by the names of the requirements.
 * Never: asks a store, or the model: it judges what was seen.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "worklease/invariants.h"

bool seen_is_ended(const struct seen *seen, int64_t offset, bool is_failed)
{
    for (size_t i = 0; i < seen->terminal_count; i++)
        if (seen->terminal[i].first <= offset && offset <= seen->terminal[i].last &&
            seen->terminal[i].is_failed == is_failed)
            return true;
    return false;
}

void seen_check_disjoint(const struct seen *seen) /* WL-DISJOINT */
{
    for (size_t i = 0; i < UNIVERSE; i++) {
        int places = seen_is_ended(seen, worklease_universe[i], false) +
                     seen_is_ended(seen, worklease_universe[i], true) +
                     (seen->info.is_leased && seen->info.offset == worklease_universe[i]);
        for (size_t j = 0; j < seen->backlog_count; j++)
            places += seen->backlog[j] == worklease_universe[i];
        assert_true(places <= 1);
    }
    for (size_t i = 0; i + 1 < seen->terminal_count; i++) { /* WL-MEMORY: no two touch */
        const pawl_worklease_interval *a = &seen->terminal[i];
        const pawl_worklease_interval *b = &seen->terminal[i + 1];
        assert_true(a->first <= a->last && a->last < b->first);
        assert_true(a->is_failed != b->is_failed || a->last + 1 < b->first);
    }
}

void seen_check_step(const struct seen *before, const struct seen *now, const struct operation *op,
                     const struct outcome *outcome)
{
    bool is_granted = op->kind == ACQUIRE && outcome->code == PAWL_OK &&
                      outcome->acquired.got == PAWL_GOT_ACQUIRED &&
                      !outcome->acquired.is_taken_over;

    /* WL-SINGLE: granted only where there was none; the one there is stays on its offset. */
    assert_true(!is_granted || !before->info.is_leased);
    if (before->info.is_leased && now->info.is_leased) {
        assert_true(before->info.offset == now->info.offset);
        assert_true(before->info.acquired_at.us == now->info.acquired_at.us);
    } else if (before->info.is_leased) { /* nothing is dropped without becoming terminal */
        assert_true(seen_is_ended(now, before->info.offset, op->kind == FAIL));
    }

    /* WL-FIFO: the same, or one more at its tail, or without its head, which was just leased. */
    size_t lost = is_granted && before->backlog_count > 0 ? 1 : 0;
    assert_true(lost == 0 || before->backlog[0] == now->info.offset);
    size_t kept = before->backlog_count - lost;
    assert_true(now->backlog_count == kept || now->backlog_count == kept + 1);
    if (now->backlog_count == kept + 1)
        assert_true(op->kind == ACQUIRE && !is_granted && now->backlog[kept] == op->offset);
    for (size_t i = 0; i < kept; i++)
        assert_true(now->backlog[i] == before->backlog[i + lost]);

    for (size_t i = 0; i < UNIVERSE; i++) { /* WL-IDEMPOTENT */
        assert_true(!seen_is_ended(before, worklease_universe[i], false) ||
                    seen_is_ended(now, worklease_universe[i], false));
        assert_true(!seen_is_ended(before, worklease_universe[i], true) ||
                    seen_is_ended(now, worklease_universe[i], true));
    }
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * order.c - the ordering keys of the SQLite store: who waits for whom.
 * Owns:  S6: which job of a key does not wait.
 * Never: decides when a job joins or leaves (core/job.c does); looks at more than the first jobs of
 *        a key, however many wait behind them.
 *
 * There is one writer at a time, so that nobody joins a key while its first job ends: a job that
 * was enqueued before is seen by the one who ends the first, and one that comes later finds no
 * first.
 */
#include "store/sqlite/sqlite.h"

#include <assert.h>

bool pawli_sqlite_order_is_held(struct pass *pass, int64_t queue_id, const char *ordering_key,
                                bool *ret_held)
{
    assert(ordering_key[0] != '\0');
    struct query query = pawli_sqlite_query(pass, S_KEY_HELD);
    pawli_sqlite_put_int(&query, queue_id);
    pawli_sqlite_put_text(&query, ordering_key);
    *ret_held = pawli_sqlite_row(&query);
    return pawli_sqlite_end(&query);
}

bool pawli_sqlite_order_move_up(struct pass *pass, const struct record *left, pawl_state before)
{
    assert(left->ordering_key[0] != '\0');
    int64_t number = 0;
    pawl_wall due_at = {0};
    bool is_held = false;
    /* Who was in flight was the first; who was not may have waited itself. */
    if (before != PAWL_IN_FLIGHT &&
        !pawli_sqlite_order_is_held(pass, left->queue_id, left->ordering_key, &is_held))
        return false;
    if (is_held)
        return true;
    struct query query = pawli_sqlite_query(pass, S_KEY_NEXT);
    pawli_sqlite_put_int(&query, left->queue_id);
    pawli_sqlite_put_text(&query, left->ordering_key);
    bool is_found = pawli_sqlite_row(&query);
    if (is_found) {
        number = pawli_sqlite_int(&query);
        due_at.us = pawli_sqlite_int(&query);
    }
    if (!pawli_sqlite_end(&query) || !is_found)
        return pass->rc == SQLITE_OK;
    if (due_at.us <= pass->now.us)
        pass->sqlite->is_hinting = true;
    query = pawli_sqlite_query(pass, S_MOVE_UP);
    pawli_sqlite_put_int(&query, number);
    return pawli_sqlite_change_rows(&query, 1);
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * enqueue.c - how jobs come into the SQLite store. Applications come by another way: see
 *             sql/008_enqueue.sql, which must do the same.
 * Owns:  the making of a job's row; which ids and dedupe keys are taken.
 * Never: makes a queue for a row that is refused.
 */
#include "store/sqlite/sqlite.h"

#include "base/clock.h"
#include "base/error.h"
#include "core/headers.h"

#include <stdlib.h>
#include <string.h>

struct batch {
    const pawl_enqueue_row *rows;
    size_t rows_count;
    pawl_enqueued *results;
};

/* Q-ENQUEUE, Q-NEVER-AGAIN */
static bool has_existed(struct pass *pass, const pawl_id *id, bool *ret_existed)
{
    struct query query = pawli_sqlite_query(pass, S_EXISTS);
    pawli_sqlite_put_id(&query, id);
    *ret_existed = pawli_sqlite_row(&query);
    return pawli_sqlite_end(&query);
}

/* NULL where it has none. */
static const char *ordering_key_of(const pawl_enqueue_row *row)
{
    bool has_key = row->ordering_key != NULL && row->ordering_key[0] != '\0';
    return has_key ? row->ordering_key : NULL;
}

/* Who holds the row's dedupe key, in the queue in pass->queue and among those of its ordering key.
 */
static bool find_dedupe_holder(struct pass *pass, const pawl_enqueue_row *row, pawl_id *ret_id,
                               bool *ret_found)
{
    const char *ordering_key = ordering_key_of(row);
    struct query query = pawli_sqlite_query(pass, ordering_key != NULL ? S_DEDUPE_HOLDER_ORDERED
                                                                       : S_DEDUPE_HOLDER);
    pawli_sqlite_put_int(&query, pass->queue.queue_id);
    pawli_sqlite_put_text(&query, row->dedupe_key);
    if (ordering_key != NULL)
        pawli_sqlite_put_text(&query, ordering_key);
    *ret_found = pawli_sqlite_row(&query);
    if (*ret_found && !pawli_sqlite_bytes(&query, ret_id->bytes, sizeof(ret_id->bytes)))
        (void)pawli_sqlite_spoil(pass, SQLITE_CORRUPT); /* told by end */
    return pawli_sqlite_end(&query);
}

/* The verdict on a row's names; the id first, so that a repeated call is told EXISTS by its own
 * job, and not DUPLICATE. */
static bool judge(struct pass *pass, const pawl_enqueue_row *row, pawl_enqueued *ret_result)
{
    bool is_found;
    *ret_result = (pawl_enqueued){.code = PAWL_OK, .id = row->id};
    if (!has_existed(pass, &row->id, &is_found))
        return false;
    if (is_found) {
        ret_result->code = PAWL_EXISTS;
        return true;
    }
    if (row->dedupe_key == NULL)
        return true;
    if (!pawli_sqlite_queue_find(pass, row->queue, &is_found))
        return false;
    if (is_found && !find_dedupe_holder(pass, row, &ret_result->id, &is_found))
        return false;
    if (is_found)
        ret_result->code = PAWL_DUPLICATE;
    return true;
}

/* Make the job Ready, at the tail of its queue and key, or at its due time. */
static bool arrive(struct pass *pass, const pawl_enqueue_row *row)
{
    int64_t number;
    bool is_delayed = row->delay_ms > 0;
    bool is_waiting = false;
    const char *ordering_key = ordering_key_of(row);
    if (!pawli_sqlite_queue_need(pass, row->queue) || !pawli_sqlite_draw_position(pass, &number))
        return false;
    if (ordering_key != NULL &&
        !pawli_sqlite_order_is_held(pass, pass->queue.queue_id, ordering_key, &is_waiting))
        return false;
    pawl_wall due_at = pawli_wall_add_ms(pass->now, row->delay_ms);
    pawl_wall start_by = {0};
    if (row->start_within_ms != PAWL_DEFAULT)
        start_by = pawli_wall_add_ms(pass->now, row->start_within_ms);
    struct query query = pawli_sqlite_query(pass, S_INSERT_JOB);
    pawli_sqlite_put_int(&query, number);
    pawli_sqlite_put_id(&query, &row->id);
    pawli_sqlite_put_int(&query, pass->queue.queue_id);
    pawli_sqlite_put_int(&query, row->priority);
    pawli_sqlite_put_int(&query, is_delayed ? RANK_TIMED : RANK_ARRIVAL);
    pawli_sqlite_put_int(&query, is_delayed ? due_at.us : 0);
    pawli_sqlite_put_int(&query, due_at.us);
    pawli_sqlite_put_optional(&query, start_by.us, 0);
    pawli_sqlite_put_int(&query, pass->now.us);
    pawli_sqlite_put_optional(&query, row->max_retries, PAWL_DEFAULT);
    pawli_sqlite_put_optional(&query, row->timeout_ms, PAWL_DEFAULT);
    pawli_sqlite_put_optional(&query, row->backoff_base_ms, PAWL_DEFAULT);
    pawli_sqlite_put_optional(&query, row->backoff_max_ms, PAWL_DEFAULT);
    pawli_sqlite_put_text(&query, row->dedupe_key);
    pawli_sqlite_put_int(&query, (int64_t)row->payload_len);
    pawli_sqlite_put_text(&query, ordering_key);
    pawli_sqlite_put_optional(&query, ordering_key != NULL ? number : 0, 0);
    pawli_sqlite_put_int(&query, is_waiting);
    if (!pawli_sqlite_change_rows(&query, 1))
        return false;
    if (!is_delayed && !is_waiting)
        pass->sqlite->is_hinting = true;
    if (row->payload_len == 0 && !pawli_headers_any(row->headers))
        return true;
    query = pawli_sqlite_query(pass, S_INSERT_PAYLOAD);
    pawli_sqlite_put_int(&query, number);
    pawli_sqlite_put_bytes(&query, row->payload != NULL ? row->payload : "", row->payload_len);
    pawli_sqlite_put_text(&query, pawli_headers_any(row->headers) ? row->headers : NULL);
    return pawli_sqlite_change_rows(&query, 1);
}

bool pawli_sqlite_put(struct pass *pass, const pawl_enqueue_row *row, pawl_enqueued *ret_result)
{
    return judge(pass, row, ret_result) && (ret_result->code != PAWL_OK || arrive(pass, row));
}

static bool enqueue(struct pass *pass, void *args)
{
    const struct batch *batch = args;
    for (size_t i = 0; i < batch->rows_count; i++)
        if (!pawli_sqlite_put(pass, &batch->rows[i], &batch->results[i]))
            return false;
    return true;
}

static size_t headers_length(const pawl_enqueue_row *row)
{
    return row->headers != NULL ? strlen(row->headers) : 0;
}

pawl_code pawli_sqlite_enqueue(pawl_store *store, const pawl_enqueue_row *rows, size_t rows_count,
                               pawl_enqueued *ret_results, pawl_err *err)
{
    struct batch batch = {rows, rows_count, calloc(rows_count, sizeof(*batch.results))};
    struct write write = {.run = enqueue, .args = &batch, .rows_count = rows_count};
    if (batch.results == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    for (size_t i = 0; i < rows_count; i++)
        write.payload_bytes += rows[i].payload_len + headers_length(&rows[i]);
    pawl_code rc = pawli_sqlite_write(store, &write, err);
    if (rc == PAWL_OK)
        memcpy(ret_results, batch.results, rows_count * sizeof(*ret_results));
    free(batch.results);
    return rc;
}

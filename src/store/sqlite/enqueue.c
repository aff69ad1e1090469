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
    bool are_ids_minted; /* for this call, so that none has existed */
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
static bool judge(struct pass *pass, const pawl_enqueue_row *row, bool is_minted,
                  pawl_enqueued *ret_result)
{
    bool is_found = false;
    *ret_result = (pawl_enqueued){.code = PAWL_OK, .id = row->id};
    if (!is_minted && !has_existed(pass, &row->id, &is_found))
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

/* ---- writing */

/* In the order of JOB_ROW. */
static void put_job(struct query *query, const struct arrival *arrival)
{
    const pawl_enqueue_row *row = arrival->row;
    bool is_delayed = row->delay_ms > 0;
    bool is_ordered = arrival->ordering_key != NULL;
    pawl_wall due_at = pawli_wall_add_ms(arrival->now, row->delay_ms);
    pawl_wall start_by = {0};
    if (row->start_within_ms != PAWL_DEFAULT)
        start_by = pawli_wall_add_ms(arrival->now, row->start_within_ms);
    pawli_sqlite_put_int(query, arrival->number);
    pawli_sqlite_put_id(query, &row->id);
    pawli_sqlite_put_int(query, arrival->queue_id);
    pawli_sqlite_put_int(query, row->priority);
    pawli_sqlite_put_int(query, is_delayed ? RANK_TIMED : RANK_ARRIVAL);
    pawli_sqlite_put_int(query, is_delayed ? due_at.us : 0);
    pawli_sqlite_put_int(query, arrival->number); /* its position */
    pawli_sqlite_put_int(query, due_at.us);
    pawli_sqlite_put_optional(query, start_by.us, 0);
    pawli_sqlite_put_optional(query, start_by.us, 0); /* its deadline */
    pawli_sqlite_put_int(query, arrival->now.us);
    pawli_sqlite_put_optional(query, row->max_retries, PAWL_DEFAULT);
    pawli_sqlite_put_optional(query, row->timeout_ms, PAWL_DEFAULT);
    pawli_sqlite_put_optional(query, row->backoff_base_ms, PAWL_DEFAULT);
    pawli_sqlite_put_optional(query, row->backoff_max_ms, PAWL_DEFAULT);
    pawli_sqlite_put_text(query, row->dedupe_key);
    pawli_sqlite_put_int(query, (int64_t)row->payload_len);
    pawli_sqlite_put_text(query, arrival->ordering_key);
    pawli_sqlite_put_optional(query, is_ordered ? arrival->number : 0, 0);
    pawli_sqlite_put_int(query, arrival->is_waiting);
}

static bool has_payload(const pawl_enqueue_row *row)
{
    return row->payload_len > 0 || pawli_headers_any(row->headers);
}

static void put_payload(struct query *query, const struct arrival *arrival)
{
    const pawl_enqueue_row *row = arrival->row;
    pawli_sqlite_put_int(query, arrival->number);
    pawli_sqlite_put_bytes(query, row->payload != NULL ? row->payload : "", row->payload_len);
    pawli_sqlite_put_text(query, pawli_headers_any(row->headers) ? row->headers : NULL);
}

static bool write_payload(struct pass *pass, const struct arrival *arrival)
{
    if (!has_payload(arrival->row))
        return true;
    struct query query = pawli_sqlite_query(pass, S_INSERT_PAYLOAD);
    put_payload(&query, arrival);
    return pawli_sqlite_change_rows(&query, 1);
}

static bool write_one(struct pass *pass, const struct arrival *arrival)
{
    struct query query = pawli_sqlite_query(pass, S_INSERT_JOB);
    put_job(&query, arrival);
    return pawli_sqlite_change_rows(&query, 1) && write_payload(pass, arrival);
}

/* Write as many as the statements take. */
static bool write_together(struct pass *pass)
{
    size_t payloads = 0;
    struct query query = pawli_sqlite_query(pass, S_INSERT_JOBS);
    for (size_t i = 0; i < ARRIVALS_MAX; i++) {
        put_job(&query, &pass->arrivals[i]);
        payloads += has_payload(pass->arrivals[i].row);
    }
    if (!pawli_sqlite_change_rows(&query, ARRIVALS_MAX))
        return false;
    if (payloads < ARRIVALS_MAX) {
        for (size_t i = 0; i < ARRIVALS_MAX; i++)
            if (!write_payload(pass, &pass->arrivals[i]))
                return false;
        return true;
    }
    query = pawli_sqlite_query(pass, S_INSERT_PAYLOADS);
    for (size_t i = 0; i < ARRIVALS_MAX; i++)
        put_payload(&query, &pass->arrivals[i]);
    return pawli_sqlite_change_rows(&query, ARRIVALS_MAX);
}

/* Write what has arrived and is not written. */
static bool write_arrivals(struct pass *pass)
{
    size_t count = pass->arrivals_count;
    pass->arrivals_count = 0;
    for (size_t i = 0; i < count; i++)
        if (!write_one(pass, &pass->arrivals[i]))
            return false;
    return true;
}

/* Put a job behind those that are written together. */
static bool write_later(struct pass *pass, const struct arrival *arrival)
{
    pass->arrivals[pass->arrivals_count++] = *arrival;
    if (pass->arrivals_count < ARRIVALS_MAX)
        return true;
    pass->arrivals_count = 0;
    return write_together(pass);
}

/* Make the job Ready, at the tail of its queue and key, or at its due time. One that is minted and
 * stays with the caller may be written later: nobody can ask for it by its id or a key. */
static bool arrive(struct pass *pass, const pawl_enqueue_row *row, bool is_minted)
{
    struct arrival arrival = {.row = row, .now = pass->now, .ordering_key = ordering_key_of(row)};
    if (!pawli_sqlite_queue_need(pass, row->queue) ||
        !pawli_sqlite_draw_position(pass, &arrival.number))
        return false;
    arrival.queue_id = pass->queue.queue_id;
    if (arrival.ordering_key != NULL &&
        !pawli_sqlite_order_is_held(pass, arrival.queue_id, arrival.ordering_key,
                                    &arrival.is_waiting))
        return false;
    if (row->delay_ms <= 0 && !arrival.is_waiting)
        pass->sqlite->is_hinting = true;
    bool is_plain = is_minted && arrival.ordering_key == NULL && row->dedupe_key == NULL;
    return is_plain ? write_later(pass, &arrival) : write_one(pass, &arrival);
}

static bool put(struct pass *pass, const pawl_enqueue_row *row, bool is_minted,
                pawl_enqueued *ret_result)
{
    return judge(pass, row, is_minted, ret_result) &&
           (ret_result->code != PAWL_OK || arrive(pass, row, is_minted));
}

bool pawli_sqlite_put(struct pass *pass, const pawl_enqueue_row *row, pawl_enqueued *ret_result)
{
    return put(pass, row, false, ret_result);
}

static bool enqueue(struct pass *pass, void *args)
{
    const struct batch *batch = args;
    for (size_t i = 0; i < batch->rows_count; i++)
        if (!put(pass, &batch->rows[i], batch->are_ids_minted, &batch->results[i]))
            return false;
    return pass->is_next_alike || write_arrivals(pass);
}

static size_t headers_length(const pawl_enqueue_row *row)
{
    return row->headers != NULL ? strlen(row->headers) : 0;
}

pawl_code pawli_sqlite_enqueue(pawl_store *store, const pawl_enqueue_row *rows, size_t rows_count,
                               pawl_enqueued *ret_results, pawl_err *err)
{
    struct batch batch = {.rows = rows,
                          .rows_count = rows_count,
                          .are_ids_minted = store->are_ids_minted,
                          .results = calloc(rows_count, sizeof(*batch.results))};
    struct write write = {
        .run = enqueue, .args = &batch, .rows_count = rows_count, .is_repeatable = true};
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

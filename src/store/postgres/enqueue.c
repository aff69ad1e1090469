/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * enqueue.c - how jobs get into the PostgreSQL store.
 * Owns:  the cutting of a batch into statements: by shard, and by size; the lines that it knows;
 *        which hint follows a call.
 * Never: decides whether an id or a dedupe key is taken (pawl.enqueue_batch does).
 */
#include "store/postgres/postgres.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The most bytes of payloads and headers in one statement, unless one row has more: a message of
 * the protocol, and so a statement with its arguments, stays below 1 GiB. */
#define STATEMENT_BYTES_MAX ((size_t)64 << 20)

/* Every argument is named by its place, and none is left to its default: the server would read the
 * defaults of the function anew in each call. */
#define ENQUEUE                                                                                \
    "select ordinal, verdict, id from pawl.enqueue_batch($1, $2, $3, $4, $5, $6, $7, $8, $9, " \
    "$10, "                                                                                    \
    "$11, $12, $13, $14, $15, false)"
#define ENQUEUE_SHAPE "isu"

/* For one job of which nothing is special: most single enqueues are. */
#define ENQUEUE_ONE       "select pawl.enqueue_one($1, $2, $3)"
#define ENQUEUE_ONE_SHAPE "i"

/* The same where the line is known, unless the table of jobs, or the session, is another one by
 * now: the connection may have been lost since, and the next one be to another database. */
#define ARRIVE                                                                         \
    "insert into pawl.arrival (line_id, id, payload) select $1, $2, $3 "               \
    "where 'pawl.job'::pg_catalog.regclass::pg_catalog.oid::pg_catalog.int8 = $4 and " \
    "pg_catalog.pg_backend_pid() = $5"
#define ARRIVE_SHAPE ""   /* rows to give out would be stored away first */
#define KNOWN_MS     1000 /* how long a line is known */

#define HINT_AS                                                         \
    "select pg_catalog.set_config('synchronous_commit', 'off', true), " \
    "pg_catalog.pg_notify('pawl', q)"
#define HINT_OF " from pg_catalog.unnest($1) q"

static const char *const hints[] = {
    [PAWLI_HINT_NONE] = NULL,
    [PAWLI_HINT_PLAIN] = HINT_AS HINT_OF,
    [PAWLI_HINT_MORE] = HINT_AS ", pg_catalog.pg_notify('pawl_more', '')" HINT_OF,
};

/* Some rows of one shard, in the order given: what one statement carries. */
struct part {
    int64_t shard;
    const pawl_enqueue_row *rows;
    const size_t *picks; /* which of them */
    size_t count;
    bool is_new; /* every id was minted for this call: none of them can have existed */
};

static bool is_given(const char *text)
{
    return text != NULL && text[0] != '\0';
}

static void item_given(struct pawli_pg_args *args, const char *text)
{
    pawli_pg_item_text(args, is_given(text) ? text : NULL);
}

/* An array argument of one field of each row. */
#define PUT_ALL(args, part, item, put, field)                   \
    do {                                                        \
        pawli_pg_array_begin((args), (item), (part)->count);    \
        for (size_t i_ = 0; i_ < (part)->count; i_++)           \
            put((args), (part)->rows[(part)->picks[i_]].field); \
        pawli_pg_array_end(args);                               \
    } while (0)

/* The same of a field that most calls leave as it is by default: then there is no array, and the
 * server looks at none of its items. */
#define PUT_OTHERS(args, part, item, put, field, usual)                                  \
    do {                                                                                 \
        size_t at_ = 0;                                                                  \
        while (at_ < (part)->count && (part)->rows[(part)->picks[at_]].field == (usual)) \
            at_++;                                                                       \
        if (at_ == (part)->count)                                                        \
            pawli_pg_arg_array_null((args), (item));                                     \
        else                                                                             \
            PUT_ALL(args, part, item, put, field);                                       \
    } while (0)

/* The same of a text. NULL counts as empty, and empty as none. */
#define PUT_TEXTS(args, part, field)                                                     \
    do {                                                                                 \
        size_t at_ = 0;                                                                  \
        while (at_ < (part)->count && !is_given((part)->rows[(part)->picks[at_]].field)) \
            at_++;                                                                       \
        if (at_ == (part)->count)                                                        \
            pawli_pg_arg_array_null((args), PAWLI_PG_TEXT);                              \
        else                                                                             \
            PUT_ALL(args, part, PAWLI_PG_TEXT, item_given, field);                       \
    } while (0)

static void put_part(struct pawli_pg_args *args, const struct part *part)
{
    pawli_pg_arg_int4(args, part->shard);
    PUT_ALL(args, part, PAWLI_PG_TEXT, pawli_pg_item_text, queue);
    PUT_ALL(args, part, PAWLI_PG_UUID, pawli_pg_item_uuid, id.bytes);
    pawli_pg_array_begin(args, PAWLI_PG_BYTES, part->count);
    for (size_t i = 0; i < part->count; i++) {
        const pawl_enqueue_row *row = &part->rows[part->picks[i]];
        pawli_pg_item_bytes(args, row->payload, row->payload_len);
    }
    pawli_pg_array_end(args);
    PUT_OTHERS(args, part, PAWLI_PG_INT2, pawli_pg_item_int2, priority, PAWL_PRIORITY_NORMAL);
    PUT_OTHERS(args, part, PAWLI_PG_INT8, pawli_pg_item_optional, delay_ms, 0);
    PUT_OTHERS(args, part, PAWLI_PG_INT8, pawli_pg_item_optional, start_within_ms, PAWL_DEFAULT);
    PUT_OTHERS(args, part, PAWLI_PG_INT4, pawli_pg_item_optional_int4, max_retries, PAWL_DEFAULT);
    PUT_OTHERS(args, part, PAWLI_PG_INT8, pawli_pg_item_optional, timeout_ms, PAWL_DEFAULT);
    PUT_OTHERS(args, part, PAWLI_PG_INT8, pawli_pg_item_optional, backoff_base_ms, PAWL_DEFAULT);
    PUT_OTHERS(args, part, PAWLI_PG_INT8, pawli_pg_item_optional, backoff_max_ms, PAWL_DEFAULT);
    PUT_TEXTS(args, part, dedupe_key);
    pawli_pg_arg_bool(args, part->is_new);
    PUT_TEXTS(args, part, ordering_key);
    PUT_TEXTS(args, part, headers);
}

static size_t bytes_of(const pawl_enqueue_row *row)
{
    return row->payload_len + (row->headers != NULL ? strlen(row->headers) : 0);
}

/* How many of the rows from `picks` on fit into one statement: one at least. */
static size_t fit(const pawl_enqueue_row *rows, const size_t *picks, size_t picks_count)
{
    size_t bytes = bytes_of(&rows[picks[0]]);
    size_t count = 1;
    for (; count < picks_count; count++) {
        size_t more = bytes_of(&rows[picks[count]]);
        if (more > STATEMENT_BYTES_MAX || bytes + more > STATEMENT_BYTES_MAX)
            break;
        bytes += more;
    }
    return count;
}

static void put_all(struct pawli_pg_call *call, const pawl_enqueue_row *rows, bool are_new,
                    const struct pawli_pg_groups *groups)
{
    for (size_t shard = 0; shard < groups->count; shard++) {
        size_t at = groups->starts[shard];
        while (at < groups->starts[shard + 1]) {
            struct part part = {
                .shard = (int64_t)shard,
                .rows = rows,
                .picks = &groups->rows[at],
                .count = fit(rows, &groups->rows[at], groups->starts[shard + 1] - at),
                .is_new = are_new,
            };
            put_part(pawli_pg_call_add(call, ENQUEUE), &part);
            at += part.count;
        }
    }
}

/* ---- hints */

static pawl_mono real_now(void)
{
    struct timespec now = pawli_wait_until(0);
    return (pawl_mono){now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000};
}

static void put_queues(struct pawli_pg_args *args, const pawl_enqueue_row *rows, size_t rows_count)
{
    size_t count = 0;
    for (size_t i = 0; i < rows_count; i++)
        count += i == 0 || strcmp(rows[i].queue, rows[i - 1].queue) != 0;
    pawli_pg_array_begin(args, PAWLI_PG_TEXT, count);
    for (size_t i = 0; i < rows_count; i++)
        if (i == 0 || strcmp(rows[i].queue, rows[i - 1].queue) != 0)
            pawli_pg_item_text(args, rows[i].queue);
    pawli_pg_array_end(args);
}

/* Whether all are of one queue. Those of several have a hint of their own. */
static bool is_stream(const pawl_enqueue_row *rows, size_t rows_count)
{
    for (size_t i = 1; i < rows_count; i++)
        if (strcmp(rows[i].queue, rows[0].queue) != 0)
            return false;
    return true;
}

/* Workers hear of the jobs once they are there, by a transaction that waits for no disk. Sent
 * within the call, the hint would keep all other transactions that send one from committing until
 * this one has been written. */
static void put_hint(struct pawli_pg_call *call, const pawl_enqueue_row *rows, size_t rows_count)
{
    struct pawli_pg_handle *handle = call->handle;
    call->put_at = real_now();
    call->hint = !handle->is_notifying ? PAWLI_HINT_NONE
                 : !is_stream(rows, rows_count)
                     ? PAWLI_HINT_PLAIN
                     : pawli_stream_hint(handle->store.stream, rows[0].queue, call->put_at);
    call->after.sql = hints[call->hint];
    if (call->hint != PAWLI_HINT_NONE)
        put_queues(&call->after.args, rows, rows_count);
}

/* The call is done. What its hint says holds from now on (S2); if it left its hint to another one,
 * that may not have been sent yet, or too early (S3). */
static void make_up(const struct pawli_pg_call *call, const pawl_enqueue_row *rows,
                    size_t rows_count)
{
    struct pawli_pg_handle *handle = call->handle;
    if (!handle->is_notifying || !is_stream(rows, rows_count))
        return;
    if (call->hint == PAWLI_HINT_MORE)
        pawli_stream_sent(handle->store.stream, rows[0].queue, call->put_at);
    if (call->hint != PAWLI_HINT_NONE || handle->link.conn == NULL || handle->link.is_owing ||
        pawli_stream_stands(handle->store.stream, rows[0].queue, real_now()))
        return;
    struct pawli_pg_statement statement = {.sql = hints[PAWLI_HINT_MORE]};
    put_queues(&statement.args, rows, rows_count);
    pawl_mono now = real_now();
    if (!statement.args.is_failed) {
        pawli_pg_follow(&handle->link, &statement);
        if (handle->link.is_owing) /* else it could not be sent */
            pawli_stream_sent(handle->store.stream, rows[0].queue, now);
    }
    pawli_pg_args_clear(&statement.args);
}

/* The answers stand in the order of the statements, and so their rows in that of the groups. */
static bool read_all(const struct pawli_pg_call *call, const struct pawli_pg_groups *groups,
                     size_t rows_count, pawl_enqueued *ret_results)
{
    size_t at = 0;
    for (size_t i = 0; i < call->count; i++) {
        const PGresult *answer = call->answers[i];
        int count = PQntuples(answer);
        for (int row = 0; row < count; row++) {
            int64_t ordinal = pawli_pg_int((struct pawli_pg_cell){answer, row, 0});
            if (ordinal < 1 || ordinal > count || at + (size_t)count > rows_count)
                return false;
            pawl_enqueued *result = &ret_results[groups->rows[at + (size_t)ordinal - 1]];
            if (!pawli_pg_verdict((struct pawli_pg_cell){answer, row, 1}, &result->code))
                return false;
            pawli_pg_uuid((struct pawli_pg_cell){answer, row, 2}, result->id.bytes);
        }
        at += (size_t)count;
    }
    return at == rows_count;
}

/* ---- one job */

static bool is_plain(const pawl_enqueue_row *row)
{
    return row->priority == PAWL_PRIORITY_NORMAL && row->delay_ms == 0 &&
           row->start_within_ms == PAWL_DEFAULT && row->max_retries == PAWL_DEFAULT &&
           row->timeout_ms == PAWL_DEFAULT && row->backoff_base_ms == PAWL_DEFAULT &&
           row->backoff_max_ms == PAWL_DEFAULT && !is_given(row->dedupe_key) &&
           !is_given(row->ordering_key) && !is_given(row->headers);
}

/* The line of a queue, if the server told it a moment ago; else negative. */
static int64_t known_line(const struct pawli_pg_handle *handle, const char *queue)
{
    /* Behind a pooler a statement is read and planned in each call: there a function is cheaper. */
    if (!handle->link.is_direct)
        return -1;
    for (size_t i = 0; i < PAWLI_PG_KNOWN_MAX; i++)
        if (strcmp(handle->known[i].queue, queue) == 0 &&
            pawli_pg_left_ms(handle->known[i].until) > 0)
            return handle->known[i].line;
    return -1;
}

static void know_line(struct pawli_pg_handle *handle, const char *queue, int64_t line)
{
    size_t at = 0;
    while (at < PAWLI_PG_KNOWN_MAX && strcmp(handle->known[at].queue, queue) != 0)
        at++;
    if (at == PAWLI_PG_KNOWN_MAX) {
        at = handle->known_next;
        handle->known_next = (at + 1) % PAWLI_PG_KNOWN_MAX;
    }
    struct pawli_pg_known *known = &handle->known[at];
    (void)pawli_text_copy(known->queue, sizeof(known->queue), queue); /* it fits */
    known->line = line;
    known->until = pawli_wait_until(KNOWN_MS);
}

static void put_one(struct pawli_pg_call *call, const pawl_enqueue_row *row, int64_t line)
{
    struct pawli_pg_args *args = pawli_pg_call_add(call, line >= 0 ? ARRIVE : ENQUEUE_ONE);
    if (line >= 0)
        pawli_pg_arg_int4(args, line);
    else
        pawli_pg_arg_text(args, row->queue);
    pawli_pg_arg_id(args, &row->id);
    pawli_pg_arg_bytes(args, row->payload, row->payload_len);
    if (line >= 0) {
        pawli_pg_arg_int8(args, call->handle->home);
        pawli_pg_arg_int4(args, PQbackendPID(call->handle->link.conn)); /* none: 0 */
    }
}

/* *ret_is_done: it is in; else nothing was done, and it goes as others do. */
static pawl_code enqueue_one(struct pawli_pg_handle *handle, const pawl_enqueue_row *row,
                             bool *ret_is_done, pawl_err *err)
{
    struct pawli_pg_call call = {.handle = handle};
    int64_t line = known_line(handle, row->queue);
    put_one(&call, row, line);
    put_hint(&call, row, 1);
    pawl_code rc = pawli_pg_call_run(&call, line >= 0 ? ARRIVE_SHAPE : ENQUEUE_ONE_SHAPE, err);
    if (rc == PAWL_OK && line >= 0) {
        *ret_is_done = strcmp(PQcmdTuples(call.answers[0]), "1") == 0;
    } else if (rc == PAWL_OK && PQntuples(call.answers[0]) == 1) {
        struct pawli_pg_cell cell = {call.answers[0], 0, 0};
        *ret_is_done = !pawli_pg_is_null(cell);
        if (*ret_is_done)
            know_line(handle, row->queue, pawli_pg_int(cell));
    } else if (rc == PAWL_OK) {
        rc = pawli_pg_call_spoilt(&call, err);
    }
    if (rc == PAWL_OK)
        make_up(&call, row, 1);
    pawli_pg_call_clear(&call);
    return rc;
}

/* ---- the verb */

static pawl_code enqueue_many(pawl_store *store, const pawl_enqueue_row *rows, size_t rows_count,
                              pawl_enqueued *ret_results, pawl_err *err)
{
    struct pawli_pg_call call = {.handle = pawli_pg_handle_of(store)};
    struct pawli_pg_groups groups;
    if (!pawli_pg_group(call.handle, &rows[0].id, sizeof(rows[0]), rows_count, &groups))
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    put_all(&call, rows, store->are_ids_minted, &groups);
    put_hint(&call, rows, rows_count);
    pawl_code rc = pawli_pg_call_run(&call, ENQUEUE_SHAPE, err);
    if (rc == PAWL_OK && !read_all(&call, &groups, rows_count, ret_results))
        rc = pawli_pg_call_spoilt(&call, err);
    if (rc == PAWL_OK)
        make_up(&call, rows, rows_count);
    pawli_pg_call_clear(&call);
    pawli_pg_groups_clear(&groups);
    return rc;
}

pawl_code pawli_pg_enqueue(pawl_store *store, const pawl_enqueue_row *rows, size_t rows_count,
                           pawl_enqueued *ret_results, pawl_err *err)
{
    struct pawli_pg_handle *handle = pawli_pg_handle_of(store);
    bool is_done = false;
    if (rows_count == 1 && store->are_ids_minted && handle->shards == 1 && is_plain(&rows[0])) {
        pawl_code rc = enqueue_one(handle, &rows[0], &is_done, err);
        if (rc != PAWL_OK)
            return rc;
    }
    if (!is_done)
        return enqueue_many(store, rows, rows_count, ret_results, err);
    ret_results[0] = (pawl_enqueued){.code = PAWL_OK, .id = rows[0].id};
    return PAWL_OK;
}

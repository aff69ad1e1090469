/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * claim.c - how workers get jobs from the PostgreSQL store, and find those they hold.
 * Owns:  the form of a claim; the order of the jobs it gives; where the walk of the shards begins.
 * Never: picks a job or grants a lease (the SQL functions do); says that nothing was done once the
 *        server may have granted leases.
 */
#include "store/postgres/postgres.h"
#include "store/postgres/rows.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "base/text.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MAX_DEFAULT (INT64_C(16) << 20)
#define MANY_MIN          4 /* jobs of a claim for which it pays to say what they share once */

/* ---- asking */

static const char claim_sql[] =
    "select id, retries, lost_leases, attempts, lease_version, max_retries, created_at, "
    "next_attempt_at, start_by, reason, lease_token, claimed_at, lease_expires_at, run_until, "
    "lease_ms, timeout_ms, payload, pos, seq, headers, place, queue, priority, lane, ordering_key, "
    "fence from pawl.claim_lines($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
#define CLAIM_SHAPE "uiiiiitttiutttiiyiispsiisi"

enum claim_column {
    AT_ID,
    AT_RETRIES,
    AT_LOST_LEASES,
    AT_ATTEMPTS,
    AT_VERSION,
    AT_MAX_RETRIES,
    AT_CREATED_AT,
    AT_DUE_AT,
    AT_START_BY,
    AT_REASON,
    AT_TOKEN,
    AT_CLAIMED_AT,
    AT_EXPIRES_AT,
    AT_RUN_UNTIL,
    AT_LEASE_MS,
    AT_TIMEOUT_MS,
    AT_PAYLOAD,
    AT_POS,
    AT_SEQ,
    AT_HEADERS,
    AT_PLACE,
    AT_QUEUE,
    AT_PRIORITY,
    AT_LANE,
    AT_KEY,
    AT_FENCE
};

/* The shards, from another one on each time, so that none is served before the others for good. */
static void put_shards(struct pawli_pg_args *args, struct pawli_pg_handle *handle)
{
    size_t shards = (size_t)handle->shards;
    pawli_pg_array_begin(args, PAWLI_PG_INT4, shards);
    for (size_t i = 0; i < shards; i++)
        pawli_pg_item_int4(args, (int64_t)((handle->next_shard + i) % shards));
    pawli_pg_array_end(args);
    handle->next_shard = (handle->next_shard + 1) % shards;
}

/* Tokens for so many jobs; the server makes those that are missing of the seed, at a higher
 * price. */
static void put_tokens(struct pawli_pg_call *call, struct pawli_pg_args *args, size_t count)
{
    if (count == 0) {
        pawli_pg_arg_array_null(args, PAWLI_PG_UUID);
        return;
    }
    struct pawli_stock stock = {.random = call->handle->random,
                                .wanted = count * sizeof(pawl_token)};
    pawli_pg_array_begin(args, PAWLI_PG_UUID, count);
    for (size_t i = 0; i < count; i++) {
        pawl_token token;
        pawli_stock_take(&stock, token.bytes, sizeof(token.bytes));
        pawli_pg_item_uuid(args, token.bytes);
    }
    pawli_pg_array_end(args);
}

/* As many as a claim will give, by what the last one gave. */
static size_t guess(const struct pawli_pg_handle *handle, size_t jobs_max)
{
    size_t count = 2 * handle->claimed_last;
    return count < jobs_max ? count : jobs_max;
}

int64_t pawli_pg_bytes_max(const pawl_claim_args *claim)
{
    return claim->bytes_max != PAWL_DEFAULT ? claim->bytes_max : BYTES_MAX_DEFAULT;
}

static void put_claim(struct pawli_pg_call *call, const pawl_claim_args *claim, size_t jobs_max)
{
    struct pawli_pg_args *args = pawli_pg_call_add(call, claim_sql);
    put_shards(args, call->handle);
    pawli_pg_arg_text(args, claim->worker);
    pawli_pg_array_begin(args, PAWLI_PG_TEXT, claim->lines_count);
    for (size_t i = 0; i < claim->lines_count; i++)
        pawli_pg_item_text(args, claim->lines[i].queue);
    pawli_pg_array_end(args);
    pawli_pg_array_begin(args, PAWLI_PG_INT4, claim->lines_count);
    for (size_t i = 0; i < claim->lines_count; i++) {
        int64_t most = claim->lines[i].jobs_max;
        pawli_pg_item_int4(args, most < (int64_t)jobs_max ? most : (int64_t)jobs_max);
    }
    pawli_pg_array_end(args);
    pawli_pg_array_begin(args, PAWLI_PG_INT8, claim->lines_count);
    for (size_t i = 0; i < claim->lines_count; i++)
        pawli_pg_item_optional(args, claim->lines[i].lease_ms);
    pawli_pg_array_end(args);
    pawli_pg_arg_int4(args, (int64_t)jobs_max);
    pawli_pg_arg_int8(args, pawli_pg_bytes_max(claim));
    pawli_pg_arg_seed(call, args);
    bool are_many = call->handle->claimed_last >= MANY_MIN;
    put_tokens(call, args, are_many ? guess(call->handle, jobs_max) : 0);
    pawli_pg_arg_bool(args, are_many);
}

/* ---- the order */

/* Lanes, as the SQL functions number them, and the order in which they are claimed: what came back
 * (1), what had to wait for its time (3), arrivals (0). */
enum {
    HEAD_NONE = -1,
    LANE_ARRIVALS = 0,
    LANE_TIMED = 3,
    LANES_COUNT = 4
};

static int64_t turn_of(int64_t lane)
{
    return lane == LANE_ARRIVALS ? LANES_COUNT : lane;
}

/* A row of the answer, with what decides its place. */
struct claimed {
    int row;
    int head;    /* the row that tells what it leaves out; HEAD_NONE: it leaves out nothing */
    size_t line; /* the first line of its queue */
    int64_t priority;
    int64_t turn; /* of its lane */
    int64_t pos;
    int64_t due_us; /* of those that had waited for their time; else 0 */
    int64_t seq;
};

static int compare(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int claim_order(const void *left, const void *right)
{
    const struct claimed *a = left;
    const struct claimed *b = right;
    int order = compare((int64_t)a->line, (int64_t)b->line);
    if (order == 0)
        order = compare(a->priority, b->priority);
    if (order == 0)
        order = compare(a->turn, b->turn);
    if (order == 0)
        order = compare(a->pos, b->pos);
    if (order == 0)
        order = compare(a->due_us, b->due_us);
    if (order == 0)
        order = compare(a->seq, b->seq);
    return order;
}

/* The line that names a queue. Rows of one queue come together, in the order of the lines, so the
 * search goes on where it last ended. */
static size_t find_line(const pawl_claim_args *claim, const char *queue, size_t from)
{
    for (size_t i = 0; i < claim->lines_count; i++) {
        size_t at = (from + i) % claim->lines_count;
        if (strcmp(claim->lines[at].queue, queue) == 0)
            return at;
    }
    return claim->lines_count; /* cannot be: nothing else was asked for */
}

/* A cell of a row, or of its head where the row leaves it out. */
static struct pawli_pg_cell cell_of(const PGresult *answer, const struct claimed *at, int column)
{
    struct pawli_pg_cell cell = {answer, at->row, column};
    if (at->head != HEAD_NONE && pawli_pg_is_null(cell))
        cell.row = at->head;
    return cell;
}

/* When a job was due: most are when they are created. */
static pawl_wall due_of(const PGresult *answer, const struct claimed *at)
{
    struct pawli_pg_cell cell = {answer, at->row, AT_DUE_AT};
    if (pawli_pg_is_null(cell))
        cell.column = AT_CREATED_AT;
    return pawli_pg_wall(cell);
}

static bool is_head(const PGresult *answer, int row)
{
    return pawli_pg_is_null((struct pawli_pg_cell){answer, row, AT_ID});
}

/* What decides a row's place, but for its position. */
static void place(const PGresult *answer, const pawl_claim_args *claim, struct claimed *at)
{
    if (at->head == at->row || at->head == HEAD_NONE)
        at->line = find_line(
            claim, pawli_pg_bytes((struct pawli_pg_cell){answer, at->row, AT_QUEUE}), at->line);
    int64_t lane = pawli_pg_int(cell_of(answer, at, AT_LANE));
    at->priority = pawli_pg_int(cell_of(answer, at, AT_PRIORITY));
    at->turn = turn_of(lane);
    at->due_us = lane == LANE_TIMED ? due_of(answer, at).us : 0;
}

/* The rows that are jobs, in the order of their claim; as many as the answer has rows at most. */
static struct claimed *sort_rows(const PGresult *answer, const pawl_claim_args *claim,
                                 size_t *ret_count)
{
    int rows_count = PQntuples(answer);
    struct claimed *rows = malloc((size_t)rows_count * sizeof(*rows));
    if (rows == NULL)
        return NULL;
    struct claimed at = {.head = HEAD_NONE};
    size_t count = 0;
    bool is_sorted = true;
    for (int row = 0; row < rows_count; row++) {
        at.row = row;
        if (is_head(answer, row))
            at.head = row;
        place(answer, claim, &at);
        if (at.head == row)
            continue;
        at.pos = pawli_pg_int((struct pawli_pg_cell){answer, row, AT_POS});
        at.seq = pawli_pg_int((struct pawli_pg_cell){answer, row, AT_SEQ});
        rows[count] = at;
        is_sorted = is_sorted && (count == 0 || claim_order(&rows[count - 1], &at) <= 0);
        count++;
    }
    if (!is_sorted)
        qsort(rows, count, sizeof(*rows), claim_order);
    *ret_count = count;
    return rows;
}

/* ---- giving out */

/* What the jobs of a head share; of those without, what a job that says nothing would be. */
static void begin(const PGresult *answer, int head, const pawl_claim_args *claim,
                  pawl_job *ret_usual)
{
    *ret_usual = (pawl_job){.state = PAWL_IN_FLIGHT};
    (void)pawli_text_copy(ret_usual->worker, sizeof(ret_usual->worker), claim->worker); /* fits */
    if (head == HEAD_NONE)
        return;
    ret_usual->claimed_at = pawli_pg_wall((struct pawli_pg_cell){answer, head, AT_CLAIMED_AT});
    ret_usual->expires_at = pawli_pg_wall((struct pawli_pg_cell){answer, head, AT_EXPIRES_AT});
    ret_usual->run_until = pawli_pg_wall((struct pawli_pg_cell){answer, head, AT_RUN_UNTIL});
    ret_usual->lease_ms = pawli_pg_int((struct pawli_pg_cell){answer, head, AT_LEASE_MS});
    ret_usual->timeout_ms = pawli_pg_int((struct pawli_pg_cell){answer, head, AT_TIMEOUT_MS});
    ret_usual->max_retries = pawli_pg_int((struct pawli_pg_cell){answer, head, AT_MAX_RETRIES});
    pawli_pg_text((struct pawli_pg_cell){answer, head, AT_QUEUE}, ret_usual->queue,
                  sizeof(ret_usual->queue));
}

static void set_int(const PGresult *answer, int row, int column, int64_t *value)
{
    struct pawli_pg_cell cell = {answer, row, column};
    if (pawli_pg_len(cell) > 0) /* it is not NULL */
        *value = pawli_pg_int(cell);
}

static void set_wall(const PGresult *answer, int row, int column, pawl_wall *wall)
{
    struct pawli_pg_cell cell = {answer, row, column};
    if (pawli_pg_len(cell) > 0)
        *wall = pawli_pg_wall(cell);
}

/* What a row says, over what is usual. */
static bool give(const PGresult *answer, const struct claimed *at, pawl_job *job)
{
    int row = at->row;
    job->priority = (int)at->priority;
    set_int(answer, row, AT_RETRIES, &job->retries);
    set_int(answer, row, AT_LOST_LEASES, &job->lost_leases);
    set_int(answer, row, AT_ATTEMPTS, &job->attempts);
    set_int(answer, row, AT_VERSION, &job->lease_version);
    set_int(answer, row, AT_MAX_RETRIES, &job->max_retries);
    set_int(answer, row, AT_TIMEOUT_MS, &job->timeout_ms);
    set_wall(answer, row, AT_CREATED_AT, &job->created_at);
    set_wall(answer, row, AT_START_BY, &job->start_by);
    set_wall(answer, row, AT_RUN_UNTIL, &job->run_until);
    job->due_at = due_of(answer, at);
    job->place = pawli_pg_int((struct pawli_pg_cell){answer, row, AT_PLACE});
    job->reason = (pawl_reason)pawli_pg_int((struct pawli_pg_cell){answer, row, AT_REASON});
    pawli_pg_uuid((struct pawli_pg_cell){answer, row, AT_ID}, job->id.bytes);
    pawli_pg_uuid((struct pawli_pg_cell){answer, row, AT_TOKEN}, job->token.bytes);
    if (at->head == HEAD_NONE) {
        set_int(answer, row, AT_LEASE_MS, &job->lease_ms);
        set_wall(answer, row, AT_CLAIMED_AT, &job->claimed_at);
        set_wall(answer, row, AT_EXPIRES_AT, &job->expires_at);
        pawli_pg_text((struct pawli_pg_cell){answer, row, AT_QUEUE}, job->queue,
                      sizeof(job->queue));
    }
    set_int(answer, row, AT_FENCE, &job->fence);
    pawli_pg_text((struct pawli_pg_cell){answer, row, AT_KEY}, job->ordering_key,
                  sizeof(job->ordering_key));
    return pawli_pg_payload((struct pawli_pg_cell){answer, row, AT_PAYLOAD}, job) &&
           pawli_pg_headers((struct pawli_pg_cell){answer, row, AT_HEADERS}, job);
}

static bool give_all(const PGresult *answer, const struct claimed *rows, size_t count,
                     const pawl_claim_args *claim, pawl_job *ret_jobs)
{
    pawl_job usual;
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || rows[i].head != rows[i - 1].head)
            begin(answer, rows[i].head, claim, &usual);
        ret_jobs[i] = usual;
        if (!give(answer, &rows[i], &ret_jobs[i])) {
            pawli_pg_clear_jobs(ret_jobs, i + 1);
            return false;
        }
    }
    return true;
}

/* ---- the verb */

static pawl_code claim_lines(struct pawli_pg_handle *handle, const pawl_claim_args *args,
                             pawl_job *ret_jobs, size_t jobs_max, size_t *ret_count, pawl_err *err)
{
    struct pawli_pg_call call = {.handle = handle};
    put_claim(&call, args, jobs_max);
    pawl_code rc = pawli_pg_call_run(&call, CLAIM_SHAPE, err);
    size_t count = 0;
    if (rc == PAWL_OK && PQntuples(call.answers[0]) > 0) {
        struct claimed *rows = sort_rows(call.answers[0], args, &count);
        /* The leases are granted: their worker must ask for them. */
        if (count > jobs_max)
            rc = pawli_pg_call_spoilt(&call, err);
        else if (rows == NULL || !give_all(call.answers[0], rows, count, args, ret_jobs))
            rc = pawli_fail(err, PAWL_UNKNOWN, "memory ran out for the jobs that were claimed");
        free(rows);
    }
    if (rc == PAWL_OK)
        *ret_count = count;
    pawli_pg_call_clear(&call);
    return rc;
}

pawl_code pawli_pg_claim(pawl_store *store, const pawl_claim_args *args, pawl_job *ret_jobs,
                         size_t jobs_max, size_t *ret_count, pawl_err *err)
{
    struct pawli_pg_handle *handle = pawli_pg_handle_of(store);
    int64_t limit_ms = handle->limit_ms;
    struct timespec until = pawli_wait_until(limit_ms);
    size_t few = pawli_pg_few_of(handle, args, jobs_max);
    bool is_done = false;
    pawl_code rc = PAWL_OK;
    if (few > 0)
        rc = pawli_pg_claim_few(handle, args, ret_jobs, few, ret_count, &is_done, err);
    if (!is_done) {
        if (few > 0)
            handle->limit_ms = pawli_pg_left_of(until); /* both together have the time of one */
        rc = claim_lines(handle, args, ret_jobs, jobs_max, ret_count, err);
        handle->limit_ms = limit_ms;
    }
    if (rc == PAWL_OK)
        handle->claimed_last = *ret_count;
    return rc;
}

pawl_code pawli_pg_mine(pawl_store *store, const char *worker, const pawl_id *after,
                        pawl_job *ret_jobs, size_t jobs_max, size_t *ret_count, pawl_err *err)
{
    struct pawli_pg_call call = {.handle = pawli_pg_handle_of(store), .is_read = true};
    struct pawli_pg_args *args = pawli_pg_call_add(
        &call, "select " PAWLI_PG_JOB_COLUMNS " from pawl.mine($1, $2, $3) order by id");
    pawli_pg_arg_text(args, worker);
    pawli_pg_arg_id(args, after);
    pawli_pg_arg_int4(args, (int64_t)jobs_max);
    pawl_code rc = pawli_pg_call_run(&call, PAWLI_PG_JOB_SHAPE, err);
    if (rc == PAWL_OK)
        rc = pawli_pg_give_jobs(&call, ret_jobs, jobs_max, ret_count, err);
    pawli_pg_call_clear(&call);
    return rc;
}

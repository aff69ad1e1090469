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

#include "base/error.h"
#include "base/text.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MAX_DEFAULT (INT64_C(16) << 20)

/* ---- asking */

#define CLAIM_COLUMNS                                                                          \
    "select id, queue, priority, retries, lost_leases, attempts, lease_version, max_retries, " \
    "created_at, next_attempt_at, start_by, reason, lease_token, claimed_at, "                 \
    "lease_expires_at, run_until, lease_ms, timeout_ms, payload, lane, pos, seq, "             \
    "ordering_key, fence, headers "
#define CLAIM_SHAPE "usiiiiiitttiutttiiyiiisis"

static const char claim_sql[] = CLAIM_COLUMNS
    "from pawl.claim_lines($1, $2, $3, $4, $5, $6, $7, $8)";

enum claim_column {
    AT_ID,
    AT_QUEUE,
    AT_PRIORITY,
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
    AT_LANE,
    AT_POS,
    AT_SEQ,
    AT_KEY,
    AT_FENCE,
    AT_HEADERS
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
    pawli_pg_arg_int8(args,
                      claim->bytes_max != PAWL_DEFAULT ? claim->bytes_max : BYTES_MAX_DEFAULT);
    pawli_pg_arg_seed(call, args);
}

/* ---- the order */

/* Lanes, as the SQL functions number them, and the order in which they are claimed: what came back
 * (1), what had to wait for its time (3), arrivals (0). */
enum {
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

static struct claimed *sort_rows(const PGresult *answer, const pawl_claim_args *claim)
{
    size_t count = (size_t)PQntuples(answer);
    struct claimed *rows = calloc(count, sizeof(*rows));
    if (rows == NULL)
        return NULL;
    size_t line = 0;
    for (size_t i = 0; i < count; i++) {
        int row = (int)i;
        line = find_line(claim, pawli_pg_bytes((struct pawli_pg_cell){answer, row, AT_QUEUE}),
                         line);
        int64_t lane = pawli_pg_int((struct pawli_pg_cell){answer, row, AT_LANE});
        pawl_wall due = pawli_pg_wall((struct pawli_pg_cell){answer, row, AT_DUE_AT});
        rows[i] = (struct claimed){
            .row = row,
            .line = line,
            .priority = pawli_pg_int((struct pawli_pg_cell){answer, row, AT_PRIORITY}),
            .turn = turn_of(lane),
            .pos = pawli_pg_int((struct pawli_pg_cell){answer, row, AT_POS}),
            .due_us = lane == LANE_TIMED ? due.us : 0,
            .seq = pawli_pg_int((struct pawli_pg_cell){answer, row, AT_SEQ}),
        };
    }
    qsort(rows, count, sizeof(*rows), claim_order);
    return rows;
}

/* ---- giving out */

static void give(const PGresult *answer, int row, const char *worker, pawl_job *ret_job)
{
    *ret_job = (pawl_job){
        .state = PAWL_IN_FLIGHT,
        .priority = (int)pawli_pg_int((struct pawli_pg_cell){answer, row, AT_PRIORITY}),
        .retries = pawli_pg_int((struct pawli_pg_cell){answer, row, AT_RETRIES}),
        .lost_leases = pawli_pg_int((struct pawli_pg_cell){answer, row, AT_LOST_LEASES}),
        .attempts = pawli_pg_int((struct pawli_pg_cell){answer, row, AT_ATTEMPTS}),
        .lease_version = pawli_pg_int((struct pawli_pg_cell){answer, row, AT_VERSION}),
        .max_retries = pawli_pg_int((struct pawli_pg_cell){answer, row, AT_MAX_RETRIES}),
        .created_at = pawli_pg_wall((struct pawli_pg_cell){answer, row, AT_CREATED_AT}),
        .due_at = pawli_pg_wall((struct pawli_pg_cell){answer, row, AT_DUE_AT}),
        .start_by = pawli_pg_wall((struct pawli_pg_cell){answer, row, AT_START_BY}),
        .reason = (pawl_reason)pawli_pg_int((struct pawli_pg_cell){answer, row, AT_REASON}),
        .claimed_at = pawli_pg_wall((struct pawli_pg_cell){answer, row, AT_CLAIMED_AT}),
        .expires_at = pawli_pg_wall((struct pawli_pg_cell){answer, row, AT_EXPIRES_AT}),
        .run_until = pawli_pg_wall((struct pawli_pg_cell){answer, row, AT_RUN_UNTIL}),
        .lease_ms = pawli_pg_int((struct pawli_pg_cell){answer, row, AT_LEASE_MS}),
        .timeout_ms = pawli_pg_int((struct pawli_pg_cell){answer, row, AT_TIMEOUT_MS}),
        .fence = pawli_pg_int((struct pawli_pg_cell){answer, row, AT_FENCE}),
    };
    pawli_pg_uuid((struct pawli_pg_cell){answer, row, AT_ID}, ret_job->id.bytes);
    pawli_pg_uuid((struct pawli_pg_cell){answer, row, AT_TOKEN}, ret_job->token.bytes);
    pawli_pg_text((struct pawli_pg_cell){answer, row, AT_QUEUE}, ret_job->queue,
                  sizeof(ret_job->queue));
    pawli_pg_text((struct pawli_pg_cell){answer, row, AT_KEY}, ret_job->ordering_key,
                  sizeof(ret_job->ordering_key));
    (void)pawli_text_copy(ret_job->worker, sizeof(ret_job->worker), worker); /* checked: it fits */
}

static bool give_all(const PGresult *answer, const struct claimed *rows, const char *worker,
                     pawl_job *ret_jobs)
{
    size_t count = (size_t)PQntuples(answer);
    for (size_t i = 0; i < count; i++) {
        struct pawli_pg_cell payload = {answer, rows[i].row, AT_PAYLOAD};
        struct pawli_pg_cell headers = {answer, rows[i].row, AT_HEADERS};
        give(answer, rows[i].row, worker, &ret_jobs[i]);
        if (!pawli_pg_payload(payload, &ret_jobs[i]) || !pawli_pg_headers(headers, &ret_jobs[i])) {
            pawli_pg_clear_jobs(ret_jobs, i + 1);
            return false;
        }
    }
    return true;
}

pawl_code pawli_pg_claim(pawl_store *store, const pawl_claim_args *args, pawl_job *ret_jobs,
                         size_t jobs_max, size_t *ret_count, pawl_err *err)
{
    struct pawli_pg_call call = {.handle = pawli_pg_handle_of(store)};
    put_claim(&call, args, jobs_max);
    pawl_code rc = pawli_pg_call_run(&call, CLAIM_SHAPE, err);
    size_t count = rc == PAWL_OK ? (size_t)PQntuples(call.answers[0]) : 0;
    if (rc == PAWL_OK && count > jobs_max)
        rc = pawli_pg_call_spoilt(&call, err);
    if (rc == PAWL_OK && count > 0) {
        struct claimed *rows = sort_rows(call.answers[0], args);
        /* The leases are granted: their worker must ask for them. */
        if (rows == NULL || !give_all(call.answers[0], rows, args->worker, ret_jobs))
            rc = pawli_fail(err, PAWL_UNKNOWN, "memory ran out for the jobs that were claimed");
        free(rows);
    }
    pawli_pg_call_clear(&call);
    if (rc == PAWL_OK)
        *ret_count = count;
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

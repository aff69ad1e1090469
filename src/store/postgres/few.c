/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * few.c - claims of a few jobs of one queue, by a function that does nothing else.
 * Owns:  which claims go there; the form of its call and of its answer; the order of the jobs.
 * Never: picks a job or grants a lease (pawl.claim_few() does); says that nothing was done once the
 *        server may have granted leases.
 */
#include "store/postgres/postgres.h"
#include "store/postgres/rows.h"

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"

#include <assert.h>
#include <string.h>

#define FEW_MAX   100 /* of which pawl.claim_few() gives at most */
#define US_PER_MS 1000

static const char few_sql[] =
    "select id, lease_token, at, max_retries, payload, headers, place, lease_ms, timeout_ms "
    "from pawl.claim_few($1, $2, $3, $4, $5, $6)";
#define FEW_SHAPE "uutiyspii"

enum few_column {
    AT_ID,
    AT_TOKEN,
    AT_CREATED_AT, /* of the first row: when all were claimed */
    AT_MAX_RETRIES,
    AT_PAYLOAD,
    AT_HEADERS,
    AT_PLACE,
    AT_LEASE_MS, /* this and the next one: of the first row */
    AT_TIMEOUT_MS
};

/* A claim under way. */
struct few {
    const pawl_claim_args *claim;
    size_t jobs_max;
    pawl_token tokens[FEW_MAX]; /* in the order of the jobs */
};

/* ---- asking */

static void put(struct pawli_pg_call *call, struct few *few)
{
    const pawl_claim_line *line = &few->claim->lines[0];
    size_t tokens_size = few->jobs_max * sizeof(few->tokens[0]);
    pawli_random_fill(call->handle->random, few->tokens[0].bytes, tokens_size);
    struct pawli_pg_args *args = pawli_pg_call_add(call, few_sql);
    pawli_pg_arg_text(args, few->claim->worker);
    pawli_pg_arg_text(args, line->queue);
    pawli_pg_arg_int4(args, (int64_t)few->jobs_max);
    pawli_pg_arg_optional(args, line->lease_ms);
    pawli_pg_arg_int8(args, pawli_pg_bytes_max(few->claim));
    pawli_pg_array_begin(args, PAWLI_PG_UUID, few->jobs_max);
    for (size_t i = 0; i < few->jobs_max; i++)
        pawli_pg_item_uuid(args, few->tokens[i].bytes);
    pawli_pg_array_end(args);
}

/* ---- the order */

/* Which job of the claim a row is, by its token; `guess` is mostly right. few->jobs_max: none. */
static size_t number_of(const struct few *few, const PGresult *answer, int row, size_t guess)
{
    pawl_token token;
    pawli_pg_uuid((struct pawli_pg_cell){answer, row, AT_TOKEN}, token.bytes);
    if (guess < few->jobs_max && memcmp(&few->tokens[guess], &token, sizeof(token)) == 0)
        return guess;
    size_t number = 0;
    while (number < few->jobs_max && memcmp(&few->tokens[number], &token, sizeof(token)) != 0)
        number++;
    return number;
}

/* The row of each job, 0 where there is none. False: that is no answer to this claim. */
static bool sort_rows(const struct few *few, const PGresult *answer, int ret_rows[FEW_MAX])
{
    int rows_count = PQntuples(answer);
    size_t next = 0;
    memset(ret_rows, 0, FEW_MAX * sizeof(ret_rows[0]));
    for (int row = 1; row < rows_count; row++) {
        size_t number = number_of(few, answer, row, next);
        if (number == few->jobs_max || ret_rows[number] != 0)
            return false;
        ret_rows[number] = row;
        next = number + 1;
    }
    return true;
}

/* ---- giving out */

/* What the first row says of all. */
static pawl_job usual_of(const struct few *few, const PGresult *answer)
{
    pawl_job usual = {
        .state = PAWL_IN_FLIGHT,
        .priority = PAWL_PRIORITY_NORMAL,
        .lease_version = 1,
        .max_retries = pawli_pg_int((struct pawli_pg_cell){answer, 0, AT_MAX_RETRIES}),
        .claimed_at = pawli_pg_wall((struct pawli_pg_cell){answer, 0, AT_CREATED_AT}),
        .lease_ms = pawli_pg_int((struct pawli_pg_cell){answer, 0, AT_LEASE_MS}),
        .timeout_ms = pawli_pg_int((struct pawli_pg_cell){answer, 0, AT_TIMEOUT_MS}),
    };
    usual.expires_at.us = usual.claimed_at.us + usual.lease_ms * US_PER_MS;
    usual.run_until.us = usual.claimed_at.us + usual.timeout_ms * US_PER_MS;
    (void)pawli_text_copy(usual.worker, sizeof(usual.worker), few->claim->worker); /* both fit */
    (void)pawli_text_copy(usual.queue, sizeof(usual.queue), few->claim->lines[0].queue);
    return usual;
}

static bool give(const PGresult *answer, int row, pawl_job *job)
{
    struct pawli_pg_cell max_retries = {answer, row, AT_MAX_RETRIES};
    pawli_pg_uuid((struct pawli_pg_cell){answer, row, AT_ID}, job->id.bytes);
    pawli_pg_uuid((struct pawli_pg_cell){answer, row, AT_TOKEN}, job->token.bytes);
    job->created_at = pawli_pg_wall((struct pawli_pg_cell){answer, row, AT_CREATED_AT});
    job->due_at = job->created_at;
    job->place = pawli_pg_int((struct pawli_pg_cell){answer, row, AT_PLACE});
    if (!pawli_pg_is_null(max_retries))
        job->max_retries = pawli_pg_int(max_retries);
    return pawli_pg_payload((struct pawli_pg_cell){answer, row, AT_PAYLOAD}, job) &&
           pawli_pg_headers((struct pawli_pg_cell){answer, row, AT_HEADERS}, job);
}

static bool give_all(const struct few *few, const PGresult *answer, const int rows[FEW_MAX],
                     pawl_job *ret_jobs, size_t *ret_count)
{
    const pawl_job usual = usual_of(few, answer);
    size_t count = 0;
    for (size_t number = 0; number < few->jobs_max; number++) {
        if (rows[number] == 0)
            continue;
        ret_jobs[count++] = usual;
        if (!give(answer, rows[number], &ret_jobs[count - 1])) {
            pawli_pg_clear_jobs(ret_jobs, count);
            return false;
        }
    }
    *ret_count = count;
    return true;
}

/* Nothing is there, or a row for all and those of the jobs; the first alone: *ret_is_done is false.
 */
static pawl_code read(const struct few *few, const struct pawli_pg_call *call, pawl_job *ret_jobs,
                      size_t *ret_count, bool *ret_is_done, pawl_err *err)
{
    const PGresult *answer = call->answers[0];
    int rows[FEW_MAX];
    if (PQntuples(answer) == 0)
        return PAWL_OK;
    /* The leases may be granted: their worker must ask for them. */
    if (!pawli_pg_is_null((struct pawli_pg_cell){answer, 0, AT_ID}) ||
        !sort_rows(few, answer, rows))
        return pawli_pg_call_spoilt(call, err);
    *ret_is_done = PQntuples(answer) > 1;
    if (!give_all(few, answer, rows, ret_jobs, ret_count))
        return pawli_fail(err, PAWL_UNKNOWN, "memory ran out for the jobs that were claimed");
    return PAWL_OK;
}

/* ---- the claim */

size_t pawli_pg_few_of(struct pawli_pg_handle *handle, const pawl_claim_args *args, size_t jobs_max)
{
    if (handle->shards != 1 || args->lines_count != 1)
        return 0;
    if ((size_t)args->lines[0].jobs_max < jobs_max)
        jobs_max = (size_t)args->lines[0].jobs_max;
    return jobs_max <= FEW_MAX && pawli_pg_shortcut_try(&handle->few) ? jobs_max : 0;
}

pawl_code pawli_pg_claim_few(struct pawli_pg_handle *handle, const pawl_claim_args *args,
                             pawl_job *ret_jobs, size_t jobs_max, size_t *ret_count,
                             bool *ret_is_done, pawl_err *err)
{
    assert(jobs_max >= 1 && jobs_max <= FEW_MAX);
    struct pawli_pg_call call = {.handle = handle};
    struct few few = {.claim = args, .jobs_max = jobs_max};
    size_t count = 0;
    put(&call, &few);
    pawl_code rc = pawli_pg_call_run(&call, FEW_SHAPE, err);
    *ret_is_done = true; /* where it has failed nothing else is tried */
    if (rc == PAWL_OK)
        rc = read(&few, &call, ret_jobs, &count, ret_is_done, err);
    if (rc == PAWL_OK)
        *ret_count = count;
    pawli_pg_shortcut_note(&handle->few, *ret_is_done);
    pawli_pg_call_clear(&call);
    return rc;
}

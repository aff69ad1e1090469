/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * claim.c - how workers get jobs from the SQLite store.
 * Owns:  the order of claims across lines, priorities and ranks; the bounds of a claim; what a
 *        claim recovers on its way. All of it as in the memory store.
 * Never: goes through jobs that it cannot take, but for the few that it puts away.
 */
#include "store/sqlite/sqlite.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "core/policy.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MAX_DEFAULT (INT64_C(16) << 20)

/* How many jobs that it cannot take a claim puts away at most: this, and so many for each job that
 * it may take. */
#define ASIDE_MAX         100
#define ASIDE_MAX_PER_JOB 2

/* Rows are read so many at a time, and changed once they are all read. */
#define CHUNK 64

/* Of a queue without a bound; what is recovered adds to it. */
#define SLOTS_UNBOUNDED (INT64_MAX / 2)

struct claim {
    const pawl_claim_args *args;
    pawl_job *jobs; /* taken so far */
    size_t jobs_max;
    size_t jobs_count;
    int64_t bytes_max;
    int64_t bytes;
    size_t aside; /* jobs met that give the claim nothing: failed, or must wait */
    size_t aside_max;
    bool is_full; /* by jobs_max, bytes_max or aside_max */
    struct pawli_stock tokens;
    struct record chunk[CHUNK];
};

/* Read the rows of a query into the chunk. */
static bool read_chunk(struct claim *claim, struct query *query, size_t *ret_count)
{
    *ret_count = 0;
    while (*ret_count < CHUNK && pawli_sqlite_row(query))
        if (pawli_sqlite_read_record(query, &claim->chunk[*ret_count]))
            ++*ret_count;
    return pawli_sqlite_end(query);
}

static int64_t smaller(size_t a, size_t b)
{
    return (int64_t)(a < b ? a : b);
}

/* ---- expired leases: RES-4 */

/* A line of the claim while it is worked on. */
struct line {
    int64_t queue_id;
    int64_t lease_ms;
    size_t want;
    int64_t slots;    /* how many more may be in flight; below 0 where the bound was lowered */
    int64_t priority; /* this and the next: the rank that is worked on; at first one before all */
    int64_t rank;
};

/* Recover one lease. *ret_back: the job can be claimed at once. */
static bool recover_one(struct pass *pass, struct record *record, bool *ret_back)
{
    struct pawli_change change = {.event = PAWLI_EVENT_EXPIRE, .now = pass->now};
    pawl_code code;
    if (!pawli_sqlite_change(pass, record, &change, NULL, &code))
        return false;
    assert(code == PAWL_OK); /* the query's clock is the change's */
    *ret_back = record->job.state == PAWL_READY &&
                !pawli_wall_is_before(pass->now, record->job.due_at);
    return true;
}

/*
 * Recover leases of the queue, but no more than can be taken, and few that cannot. Each of them
 * also makes room under the queue's bound; where that was lowered, more may have to make room than
 * are taken.
 */
static bool recover(struct pass *pass, struct claim *claim, struct line *line, size_t want)
{
    size_t count = 1;
    size_t back = 0;
    while (count > 0 && (back < want || line->slots < (int64_t)want) &&
           claim->aside < claim->aside_max) {
        struct query query = pawli_sqlite_query(pass, S_EXPIRED);
        pawli_sqlite_put_int(&query, line->queue_id);
        pawli_sqlite_put_int(&query, pass->now.us);
        pawli_sqlite_put_int(&query, back < want ? smaller(want - back, CHUNK) : 1);
        if (!read_chunk(claim, &query, &count))
            return false;
        for (size_t i = 0; i < count && claim->aside < claim->aside_max; i++) {
            bool is_back;
            if (!recover_one(pass, &claim->chunk[i], &is_back))
                return false;
            line->slots++;
            claim->aside += !is_back || back >= want;
            back += is_back;
        }
    }
    return true;
}

/* ---- taking */

static bool put_away(struct pass *pass, struct claim *claim, struct record *record)
{
    struct pawli_change change = {.event = PAWLI_EVENT_MISS, .now = pass->now};
    pawl_code code;
    if (claim->aside == claim->aside_max) {
        claim->is_full = true;
        return true;
    }
    claim->aside++;
    return pawli_sqlite_change(pass, record, &change, NULL, &code);
}

/* Grant a lease on one job. *ret_taken false: it has missed its deadline, or the bytes are used up.
 */
static bool take(struct pass *pass, struct claim *claim, struct record *record, int64_t lease_ms,
                 bool *ret_taken)
{
    *ret_taken = false;
    pawl_wall start_by = record->job.start_by;
    if (pawli_wall_is_set(start_by) && !pawli_wall_is_before(pass->now, start_by))
        return put_away(pass, claim, record);
    int64_t bytes = (int64_t)record->payload_len;
    if (claim->jobs_count > 0 && bytes > claim->bytes_max - claim->bytes) {
        claim->is_full = true;
        return true;
    }
    if (!pawli_sqlite_queue_of(pass, record->queue_id))
        return false;
    struct pawli_change change = {
        .event = PAWLI_EVENT_CLAIM,
        .now = pass->now,
        .worker = claim->args->worker,
        .lease_ms = lease_ms,
        .timeout_ms = record->timeout_ms != PAWL_DEFAULT
                          ? record->timeout_ms
                          : pawli_execution_timeout_ms(&pass->queue.settings, lease_ms),
    };
    pawli_stock_take(&claim->tokens, change.token.bytes, sizeof(change.token.bytes)); /* RES-8 */
    if (record->ordering_key[0] != '\0' && !pawli_sqlite_draw_fence(pass, &change.fence))
        return false;
    pawl_job *job = &claim->jobs[claim->jobs_count];
    pawl_code code;
    /* The payload last: once it is there nothing fails any more, and the job is counted. */
    if (!pawli_sqlite_change(pass, record, &change, NULL, &code) ||
        !pawli_sqlite_give(pass, record, job) || !pawli_sqlite_give_payload(pass, record, job))
        return false;
    assert(code == PAWL_OK); /* it is Ready, due, and in time */
    job->token = record->job.token;
    claim->jobs_count++;
    claim->bytes += bytes;
    claim->is_full = claim->jobs_count == claim->jobs_max;
    *ret_taken = true;
    return true;
}

bool pawli_sqlite_is_any_claimable(struct pass *pass, int64_t queue_id, bool *ret_any)
{
    struct query query = pawli_sqlite_query(pass, S_NEXT_RANK);
    pawli_sqlite_put_int(&query, queue_id);
    pawli_sqlite_put_int(&query, PAWL_PRIORITY_URGENT);
    pawli_sqlite_put_int(&query, RANK_RETURNED);
    *ret_any = pawli_sqlite_row(&query);
    return pawli_sqlite_end(&query);
}

/* Go to the next rank of the queue that has Ready jobs which do not wait for their key. */
static bool next_rank(struct pass *pass, struct line *line, bool *ret_found)
{
    struct query query = pawli_sqlite_query(pass, S_NEXT_RANK);
    pawli_sqlite_put_int(&query, line->queue_id);
    pawli_sqlite_put_int(&query, line->priority);
    pawli_sqlite_put_int(&query, line->rank + 1);
    *ret_found = pawli_sqlite_row(&query);
    if (*ret_found) {
        line->priority = pawli_sqlite_int(&query);
        line->rank = pawli_sqlite_int(&query);
    }
    return pawli_sqlite_end(&query);
}

/* Take what is due of one rank. What is taken or put away is Ready no more, so that the next look
 * finds others. */
static bool take_rank(struct pass *pass, struct claim *claim, struct line *line)
{
    size_t count = 1;
    while (count > 0 && line->want > 0 && line->slots > 0 && !claim->is_full) {
        size_t room = (uint64_t)line->slots < line->want ? (size_t)line->slots : line->want;
        struct query query = pawli_sqlite_query(pass, S_READY);
        pawli_sqlite_put_int(&query, line->queue_id);
        pawli_sqlite_put_int(&query, line->priority);
        pawli_sqlite_put_int(&query, line->rank);
        pawli_sqlite_put_int(&query, pass->now.us);
        pawli_sqlite_put_int(&query, smaller(room, CHUNK));
        if (!read_chunk(claim, &query, &count))
            return false;
        for (size_t i = 0; i < count && !claim->is_full; i++) {
            bool is_taken;
            if (!take(pass, claim, &claim->chunk[i], line->lease_ms, &is_taken))
                return false;
            line->want -= is_taken;
            line->slots -= is_taken;
        }
    }
    return true;
}

/* How many more of the queue in pass->queue may be in flight. Counted anew by each claim: there is
 * one writer at a time, and nothing beside the leases themselves to go wrong. */
static bool count_slots(struct pass *pass, int64_t *ret_slots)
{
    *ret_slots = SLOTS_UNBOUNDED;
    if (pass->queue.settings.max_in_flight == 0)
        return true;
    struct query query = pawli_sqlite_query(pass, S_COUNT_LEASES);
    pawli_sqlite_put_int(&query, pass->queue.queue_id);
    pawli_sqlite_put_int(&query, pass->now.us);
    if (pawli_sqlite_row(&query))
        *ret_slots = pass->queue.settings.max_in_flight - pawli_sqlite_int(&query);
    return pawli_sqlite_end(&query);
}

static bool claim_line(struct pass *pass, struct claim *claim, const pawl_claim_line *asked)
{
    bool is_found;
    if (!pawli_sqlite_queue_find(pass, asked->queue, &is_found))
        return false;
    if (!is_found || pass->queue.settings.is_paused)
        return true;
    struct line line = {
        .queue_id = pass->queue.queue_id,
        .lease_ms = asked->lease_ms != PAWL_DEFAULT ? asked->lease_ms
                                                    : pass->queue.settings.lease_ms,
        .want = claim->jobs_max - claim->jobs_count,
        .priority = PAWL_PRIORITY_URGENT,
        .rank = RANK_RETURNED - 1,
    };
    if ((uint64_t)asked->jobs_max < line.want)
        line.want = (size_t)asked->jobs_max;
    int64_t max_in_flight = pass->queue.settings.max_in_flight;
    size_t want = line.want;
    if (max_in_flight > 0 && max_in_flight < (int64_t)want)
        want = (size_t)max_in_flight;
    if (!count_slots(pass, &line.slots) || !recover(pass, claim, &line, want))
        return false;
    while (line.want > 0 && line.slots > 0 && !claim->is_full) {
        if (!next_rank(pass, &line, &is_found))
            return false;
        if (!is_found)
            break;
        if (!take_rank(pass, claim, &line))
            return false;
    }
    return true;
}

static bool claim_lines(struct pass *pass, void *args)
{
    struct claim *claim = args;
    claim->tokens = (struct pawli_stock){.random = &pass->sqlite->random,
                                         .wanted = claim->jobs_max * sizeof(pawl_token)};
    for (size_t i = 0; i < claim->args->lines_count && !claim->is_full; i++)
        if (!claim_line(pass, claim, &claim->args->lines[i]))
            return false;
    return true;
}

pawl_code pawli_sqlite_claim(pawl_store *store, const pawl_claim_args *args, pawl_job *ret_jobs,
                             size_t jobs_max, size_t *ret_count, pawl_err *err)
{
    pawl_code rc = PAWL_NO_MEMORY;
    struct claim *claim = calloc(1, sizeof(*claim));
    pawl_job *jobs = calloc(jobs_max, sizeof(*jobs));
    if (claim == NULL || jobs == NULL) {
        (void)pawli_fail_plain(err, rc); /* gives rc */
        goto free;
    }
    claim->args = args;
    claim->jobs = jobs;
    claim->jobs_max = jobs_max;
    claim->aside_max = ASIDE_MAX + ASIDE_MAX_PER_JOB * jobs_max;
    claim->bytes_max = args->bytes_max != PAWL_DEFAULT ? args->bytes_max : BYTES_MAX_DEFAULT;
    rc = pawli_sqlite_write(
        store, &(struct write){.run = claim_lines, .args = claim, .rows_count = jobs_max}, err);
    if (rc == PAWL_OK) {
        memcpy(ret_jobs, jobs, claim->jobs_count * sizeof(*jobs));
        *ret_count = claim->jobs_count;
    } else {
        for (size_t i = 0; i < claim->jobs_count; i++)
            pawl_job_clear(&jobs[i]);
    }
free:
    free(jobs);
    free(claim);
    return rc;
}

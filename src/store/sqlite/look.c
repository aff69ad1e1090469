/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * look.c - what the SQLite store shows: jobs, ledgers, leases.
 * Owns:  pages; walks through live and ended jobs in the order of their ids.
 * Never: changes a job; gives a token.
 */
#include "store/sqlite/sqlite.h"

#include "base/error.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- one job */

struct get {
    const pawl_id *id;
    pawl_job job;
};

static bool get_job(struct pass *pass, void *args)
{
    struct get *get = args;
    struct record record;
    bool is_found;
    if (!pawli_sqlite_load(pass, get->id, &record, &is_found))
        return false;
    if (!is_found) {
        pass->code = PAWL_GONE;
        return false;
    }
    return pawli_sqlite_give(pass, &record, &get->job) &&
           pawli_sqlite_give_payload(pass, &record, &get->job);
}

pawl_code pawli_sqlite_get(pawl_store *store, const pawl_id *id, pawl_job *ret_job, pawl_err *err)
{
    struct get get = {.id = id};
    pawl_code rc = pawli_sqlite_read(store, get_job, &get, err);
    if (rc == PAWL_OK)
        *ret_job = get.job;
    return rc;
}

/* ---- walks */

/* One of the two tables, and the next job of it. */
struct side {
    struct query query;
    struct record next;
    bool has_next;
};

static const pawl_filter filter_all = {0};

#define STATES_LIVE  (1u << PAWL_READY | 1u << PAWL_IN_FLIGHT)
#define STATES_ENDED (1u << PAWL_SUCCEEDED | 1u << PAWL_FAILED)

/* Which states a walk can meet. */
static unsigned states_of(const struct walk_range *range)
{
    const pawl_filter *filter = range->filter;
    unsigned states = filter->states != 0 ? filter->states & range->states : range->states;
    return filter->worker != NULL ? states & (1u << PAWL_IN_FLIGHT) : states;
}

static bool advance(struct side *side)
{
    side->has_next = pawli_sqlite_row(&side->query);
    return !side->has_next || pawli_sqlite_read_record(&side->query, &side->next);
}

/* The filter's queue is in pass->queue, where it names one. */
static bool begin_side(struct pass *pass, struct side *side, enum statement statement,
                       const struct walk_range *range)
{
    const pawl_filter *filter = range->filter;
    side->query = pawli_sqlite_query(pass, statement);
    pawli_sqlite_put_id(&side->query, range->after);
    pawli_sqlite_put_optional(&side->query, filter->queue != NULL ? pass->queue.queue_id : 0, 0);
    pawli_sqlite_put_int(&side->query, states_of(range));
    pawli_sqlite_put_int(&side->query, filter->reason);
    pawli_sqlite_put_text(&side->query, filter->worker);
    pawli_sqlite_put_int(&side->query, range->is_unmarked);
    pawli_sqlite_put_int(&side->query, (int64_t)range->jobs_max);
    pawli_sqlite_put_text(&side->query, filter->ordering_key);
    return advance(side);
}

static enum statement live_statement(const struct walk_range *range)
{
    if (range->filter->worker != NULL)
        return S_LIST_HELD;
    if (range->filter->ordering_key != NULL)
        return S_LIST_KEY;
    if (states_of(range) == 1u << PAWL_IN_FLIGHT)
        return S_LIST_IN_FLIGHT;
    return range->filter->queue != NULL ? S_LIST_QUEUE : S_LIST_LIVE;
}

static enum statement ended_statement(const struct walk_range *range)
{
    if ((states_of(range) & STATES_ENDED) != 1u << PAWL_FAILED)
        return S_LIST_ENDED;
    return range->filter->queue != NULL ? S_LIST_FAILED_QUEUE : S_LIST_FAILED;
}

static bool begin_sides(struct pass *pass, struct side *live, struct side *ended,
                        const struct walk_range *range)
{
    unsigned states = states_of(range);
    if ((states & STATES_LIVE) != 0 && !begin_side(pass, live, live_statement(range), range))
        return false;
    return (states & STATES_ENDED) == 0 || begin_side(pass, ended, ended_statement(range), range);
}

bool pawli_sqlite_walk(struct pass *pass, const struct walk_range *range, walk_visit *visit,
                       void *args)
{
    struct side live = {.query.pass = pass};
    struct side ended = {.query.pass = pass};
    bool is_found = true;
    if (range->filter->queue != NULL &&
        !pawli_sqlite_queue_find(pass, range->filter->queue, &is_found))
        return false;
    if (!is_found)
        return true;
    bool is_well = begin_sides(pass, &live, &ended, range);
    for (size_t count = 0; is_well && count < range->jobs_max; count++) {
        if (!live.has_next && !ended.has_next)
            break;
        bool is_live = live.has_next &&
                       (!ended.has_next || pawl_id_compare(&live.next.id, &ended.next.id) < 0);
        struct side *side = is_live ? &live : &ended;
        is_well = visit(pass, &side->next, args) && advance(side);
    }
    is_well = pawli_sqlite_end(&live.query) && is_well;
    return pawli_sqlite_end(&ended.query) && is_well;
}

/* ---- lists */

struct list {
    struct walk_range range;
    pawl_job *jobs;
    size_t count;
};

static bool list_one(struct pass *pass, const struct record *record, void *args)
{
    struct list *list = args;
    return pawli_sqlite_give(pass, record, &list->jobs[list->count++]);
}

static bool list_all(struct pass *pass, void *args)
{
    struct list *list = args;
    return pawli_sqlite_walk(pass, &list->range, list_one, list);
}

pawl_code pawli_sqlite_list(pawl_store *store, const pawl_filter *filter, const pawl_id *after,
                            pawl_job *ret_jobs, size_t jobs_max, size_t *ret_count, pawl_err *err)
{
    struct list list = {
        .range = {.filter = filter != NULL ? filter : &filter_all,
                  .states = STATES_ALL,
                  .after = after,
                  .jobs_max = jobs_max},
        .jobs = calloc(jobs_max, sizeof(*list.jobs)),
    };
    if (list.jobs == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    pawl_code rc = pawli_sqlite_read(store, list_all, &list, err);
    if (rc == PAWL_OK) {
        memcpy(ret_jobs, list.jobs, list.count * sizeof(*ret_jobs));
        *ret_count = list.count;
    }
    free(list.jobs);
    return rc;
}

/* ---- leases */

struct leases {
    struct walk_range range;
    pawl_lease_info *rows;
    size_t count;
};

static bool lease_one(struct pass *pass, const struct record *record, void *args)
{
    struct leases *leases = args;
    pawl_lease_info *row = &leases->rows[leases->count++];
    if (!pawli_sqlite_queue_of(pass, record->queue_id))
        return false;
    *row = (pawl_lease_info){
        .job = record->id,
        .lease_version = record->job.lease_version,
        .claimed_at = record->job.claimed_at,
        .expires_at = record->job.expires_at,
        .is_expired = !pawli_job_is_leased(&record->job, pass->now),
        .is_cancel_asked = record->job.is_cancel_asked,
    };
    memcpy(row->queue, pass->queue.name, sizeof(row->queue));
    memcpy(row->worker, record->job.worker, sizeof(row->worker));
    return true;
}

static bool lease_all(struct pass *pass, void *args)
{
    struct leases *leases = args;
    return pawli_sqlite_walk(pass, &leases->range, lease_one, leases);
}

pawl_code pawli_sqlite_leases(pawl_store *store, const pawl_filter *filter, const pawl_id *after,
                              pawl_lease_info *ret_rows, size_t rows_max, size_t *ret_count,
                              pawl_err *err)
{
    pawl_filter held = {0};
    if (filter != NULL)
        held = (pawl_filter){.queue = filter->queue, .worker = filter->worker};
    struct leases leases = {
        .range = {.filter = &held,
                  .states = 1u << PAWL_IN_FLIGHT,
                  .after = after,
                  .jobs_max = rows_max},
        .rows = calloc(rows_max, sizeof(*leases.rows)),
    };
    if (leases.rows == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    pawl_code rc = pawli_sqlite_read(store, lease_all, &leases, err);
    if (rc == PAWL_OK) {
        memcpy(ret_rows, leases.rows, leases.count * sizeof(*ret_rows));
        *ret_count = leases.count;
    }
    free(leases.rows);
    return rc;
}

/* ---- ledgers */

struct attempts {
    const pawl_id *id;
    int64_t after_no;
    pawl_attempt *rows;
    size_t rows_max;
    size_t count;
};

static void read_attempt(struct query *query, pawl_attempt *row)
{
    row->attempt_no = pawli_sqlite_int(query);
    row->outcome = (pawl_outcome)pawli_sqlite_int(query);
    row->reason = (pawl_reason)pawli_sqlite_int(query);
    row->ended_by = (pawl_ended_by)pawli_sqlite_int(query);
    int64_t job_version = pawli_sqlite_int(query);
    bool is_whole = pawli_sqlite_text(query, row->worker, sizeof(row->worker));
    row->lease_version = row->worker[0] != '\0' ? job_version : 0;
    row->started_at.us = pawli_sqlite_optional(query, 0);
    row->finished_at.us = pawli_sqlite_int(query);
    is_whole = pawli_sqlite_text(query, row->error_code, sizeof(row->error_code)) && is_whole;
    is_whole = pawli_sqlite_text(query, row->error_text, sizeof(row->error_text)) && is_whole;
    row->wire_sends = pawli_sqlite_optional(query, PAWL_SENDS_UNKNOWN);
    if (!is_whole)
        (void)pawli_sqlite_spoil(query->pass, SQLITE_CORRUPT); /* told by end */
}

static bool read_attempts(struct pass *pass, void *args)
{
    struct attempts *attempts = args;
    struct record record;
    bool is_found;
    if (!pawli_sqlite_load(pass, attempts->id, &record, &is_found))
        return false;
    if (!is_found) {
        pass->code = PAWL_GONE;
        return false;
    }
    struct query query = pawli_sqlite_query(pass, S_ATTEMPTS);
    pawli_sqlite_put_id(&query, attempts->id);
    pawli_sqlite_put_int(&query, attempts->after_no);
    pawli_sqlite_put_int(&query, (int64_t)attempts->rows_max);
    while (pawli_sqlite_row(&query)) {
        assert(attempts->count < attempts->rows_max);
        read_attempt(&query, &attempts->rows[attempts->count++]);
    }
    return pawli_sqlite_end(&query);
}

pawl_code pawli_sqlite_attempts(pawl_store *store, const pawl_id *id, int64_t after_no,
                                pawl_attempt *ret_rows, size_t rows_max, size_t *ret_count,
                                pawl_err *err)
{
    struct attempts attempts = {.id = id,
                                .after_no = after_no,
                                .rows = calloc(rows_max, sizeof(*attempts.rows)),
                                .rows_max = rows_max};
    if (attempts.rows == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    pawl_code rc = pawli_sqlite_read(store, read_attempts, &attempts, err);
    if (rc == PAWL_OK) {
        memcpy(ret_rows, attempts.rows, attempts.count * sizeof(*ret_rows));
        *ret_count = attempts.count;
    }
    free(attempts.rows);
    return rc;
}

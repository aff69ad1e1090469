/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * hold.c - what holders of leases ask of the SQLite store while they hold them: renew, release, and
 *          which they are.
 * Owns:  the verdicts on these.
 * Never: accepts anything that core/job.c refuses; gives a token to anybody but its holder.
 */
#include "store/sqlite/sqlite.h"

#include "base/error.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A refusal by the job's state means the same to a holder as one by its lease: stop. */
static pawl_code verdict_of(pawl_code code)
{
    switch (code) {
    case PAWL_OK:
    case PAWL_CANCELLED:
    case PAWL_TIMEOUT:
        return code;
    default:
        return PAWL_STALE;
    }
}

/* ---- renew */

struct renewals {
    const char *worker;
    const pawl_renew_row *rows;
    size_t rows_count;
    pawl_renewed *results;
};

static bool renew_one(struct pass *pass, const char *worker, const pawl_renew_row *row,
                      pawl_renewed *ret_result)
{
    struct record record;
    bool is_found;
    *ret_result = (pawl_renewed){.code = PAWL_GONE};
    if (!pawli_sqlite_load(pass, &row->lease.job, &record, &is_found))
        return false;
    if (!is_found)
        return true;
    if (!pawli_sqlite_queue_of(pass, record.queue_id))
        return false;
    struct pawli_change change = {
        .event = PAWLI_EVENT_RENEW,
        .now = pass->now,
        .worker = worker,
        .token = row->lease.token,
        .version = row->lease.version,
        .lease_ms = row->lease_ms != PAWL_DEFAULT ? row->lease_ms : pass->queue.settings.lease_ms,
        .is_unstarted = row->is_unstarted,
    };
    pawl_code code;
    if (!pawli_sqlite_change(pass, &record, &change, NULL, &code))
        return false;
    ret_result->code = verdict_of(code);
    if (code == PAWL_OK) {
        ret_result->expires_at = record.job.expires_at;
        ret_result->lease_ms = record.job.lease_ms;
    }
    return true;
}

static bool renew_all(struct pass *pass, void *args)
{
    const struct renewals *renewals = args;
    for (size_t i = 0; i < renewals->rows_count; i++)
        if (!renew_one(pass, renewals->worker, &renewals->rows[i], &renewals->results[i]))
            return false;
    return true;
}

pawl_code pawli_sqlite_renew(pawl_store *store, const char *worker, const pawl_renew_row *rows,
                             size_t rows_count, pawl_renewed *ret_results, pawl_err *err)
{
    struct renewals renewals = {worker, rows, rows_count,
                                calloc(rows_count, sizeof(*renewals.results))};
    if (renewals.results == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    pawl_code rc = pawli_sqlite_write(
        store,
        &(struct write){
            .run = renew_all, .args = &renewals, .rows_count = rows_count, .is_repeatable = true},
        err);
    if (rc == PAWL_OK)
        memcpy(ret_results, renewals.results, rows_count * sizeof(*ret_results));
    free(renewals.results);
    return rc;
}

/* ---- release */

struct releases {
    const char *worker;
    const pawl_lease *leases;
    size_t leases_count;
    pawl_code *codes;
};

static bool release_one(struct pass *pass, const char *worker, const pawl_lease *lease,
                        pawl_code *ret_code)
{
    struct record record;
    bool is_found;
    *ret_code = PAWL_GONE;
    if (!pawli_sqlite_load(pass, &lease->job, &record, &is_found))
        return false;
    if (!is_found)
        return true;
    struct pawli_change change = {
        .event = PAWLI_EVENT_RELEASE,
        .now = pass->now,
        .worker = worker,
        .token = lease->token,
        .version = lease->version,
    };
    if (!pawli_sqlite_change(pass, &record, &change, NULL, ret_code))
        return false;
    *ret_code = verdict_of(*ret_code);
    return true;
}

static bool release_all(struct pass *pass, void *args)
{
    const struct releases *releases = args;
    for (size_t i = 0; i < releases->leases_count; i++)
        if (!release_one(pass, releases->worker, &releases->leases[i], &releases->codes[i]))
            return false;
    return true;
}

pawl_code pawli_sqlite_release(pawl_store *store, const char *worker, const pawl_lease *leases,
                               size_t leases_count, pawl_code *ret_codes, pawl_err *err)
{
    struct releases releases = {worker, leases, leases_count,
                                calloc(leases_count, sizeof(*releases.codes))};
    if (releases.codes == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    pawl_code rc = pawli_sqlite_write(
        store, &(struct write){.run = release_all, .args = &releases, .rows_count = leases_count},
        err);
    if (rc == PAWL_OK)
        memcpy(ret_codes, releases.codes, leases_count * sizeof(*ret_codes));
    free(releases.codes);
    return rc;
}

/* ---- mine */

struct mine {
    const char *worker;
    const pawl_id *after;
    struct record *records;
    pawl_job *jobs;
    size_t jobs_max;
    size_t jobs_count; /* of `jobs`: filled */
};

static bool read_held(struct pass *pass, struct mine *mine, size_t *ret_count)
{
    struct query query = pawli_sqlite_query(pass, S_MINE);
    pawli_sqlite_put_text(&query, mine->worker);
    pawli_sqlite_put_id(&query, mine->after);
    pawli_sqlite_put_int(&query, pass->now.us);
    pawli_sqlite_put_int(&query, (int64_t)mine->jobs_max);
    *ret_count = 0;
    while (pawli_sqlite_row(&query)) {
        assert(*ret_count < mine->jobs_max);
        if (pawli_sqlite_read_record(&query, &mine->records[*ret_count]))
            ++*ret_count;
    }
    return pawli_sqlite_end(&query);
}

static bool give_held(struct pass *pass, void *args)
{
    struct mine *mine = args;
    size_t count;
    if (!read_held(pass, mine, &count))
        return false;
    for (size_t i = 0; i < count; i++) {
        pawl_job *job = &mine->jobs[i];
        if (!pawli_sqlite_give(pass, &mine->records[i], job) ||
            !pawli_sqlite_give_payload(pass, &mine->records[i], job))
            return false;
        job->token = mine->records[i].job.token;
        mine->jobs_count++;
    }
    return true;
}

pawl_code pawli_sqlite_mine(pawl_store *store, const char *worker, const pawl_id *after,
                            pawl_job *ret_jobs, size_t jobs_max, size_t *ret_count, pawl_err *err)
{
    struct mine mine = {
        .worker = worker,
        .after = after,
        .records = calloc(jobs_max, sizeof(*mine.records)),
        .jobs = calloc(jobs_max, sizeof(*mine.jobs)),
        .jobs_max = jobs_max,
    };
    pawl_code rc = PAWL_NO_MEMORY;
    if (mine.records != NULL && mine.jobs != NULL)
        rc = pawli_sqlite_read(store, give_held, &mine, err);
    else
        (void)pawli_fail_plain(err, rc); /* gives rc */
    if (rc == PAWL_OK) {
        memcpy(ret_jobs, mine.jobs, mine.jobs_count * sizeof(*ret_jobs));
        *ret_count = mine.jobs_count;
    } else {
        for (size_t i = 0; i < mine.jobs_count; i++)
            pawl_job_clear(&mine.jobs[i]);
    }
    free(mine.records);
    free(mine.jobs);
    return rc;
}

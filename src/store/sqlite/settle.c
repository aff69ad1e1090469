/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * settle.c - how holders of leases end attempts on the SQLite store.
 * Owns:  the verdicts on a settle, and the answer to one that is repeated.
 * Never: accepts anything that core/job.c refuses; tells why a lease is not the caller's.
 */
#include "store/sqlite/sqlite.h"

#include "base/error.h"
#include "core/token.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct batch {
    const char *worker;
    const pawl_settle_row *rows;
    size_t rows_count;
    pawl_settled *results;
};

/* ---- a settle that came before */

struct kept_row {
    struct pawli_ledger_row row;
    int64_t job_version;
    uint64_t token_digest; /* 0: no holder ended a lease with it */
};

static bool read_row(struct pass *pass, const pawl_id *id, int64_t attempt_no,
                     struct kept_row *ret_row)
{
    struct query query = pawli_sqlite_query(pass, S_ATTEMPT);
    pawli_sqlite_put_id(&query, id);
    pawli_sqlite_put_int(&query, attempt_no);
    if (pawli_sqlite_row(&query)) {
        struct pawli_ledger_row *row = &ret_row->row;
        *row = (struct pawli_ledger_row){.is_due = true, .attempt_no = attempt_no};
        row->outcome = (pawl_outcome)pawli_sqlite_int(&query);
        row->reason = (pawl_reason)pawli_sqlite_int(&query);
        row->ended_by = (pawl_ended_by)pawli_sqlite_int(&query);
        ret_row->job_version = pawli_sqlite_int(&query);
        if (!pawli_sqlite_text(&query, row->worker, sizeof(row->worker)))
            (void)pawli_sqlite_spoil(pass, SQLITE_CORRUPT); /* told by end */
        int64_t digest = pawli_sqlite_optional(&query, 0);
        memcpy(&ret_row->token_digest, &digest, sizeof(digest));
    } else if (pass->rc == SQLITE_OK) {
        (void)pawli_sqlite_spoil(pass, SQLITE_CORRUPT); /* ledgers have no gaps; told by end */
    }
    return pawli_sqlite_end(&query);
}

/* The row that the lease of this version left; attempt_no 0 where there is none. Versions never
 * fall from row to row; of one version, the lease's own row is the first. */
static bool row_of_lease(struct pass *pass, const struct record *record, int64_t version,
                         struct kept_row *ret_row)
{
    int64_t low = 1;
    int64_t high = record->job.attempts + 1;
    memset(ret_row, 0, sizeof(*ret_row));
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        struct kept_row row;
        if (!read_row(pass, &record->id, middle, &row))
            return false;
        if (row.job_version < version)
            low = middle + 1;
        else
            high = middle;
        if (row.job_version == version && high == middle)
            *ret_row = row;
    }
    if (ret_row->row.worker[0] == '\0')
        memset(ret_row, 0, sizeof(*ret_row)); /* no lease ended with it */
    return true;
}

/* Q-STALE, or OK once more. */
static bool answer_again(struct pass *pass, const struct record *record, const char *worker,
                         const pawl_settle_row *settle, pawl_settled *ret_result)
{
    struct kept_row kept;
    *ret_result = (pawl_settled){.code = PAWL_STALE};
    if (!row_of_lease(pass, record, settle->lease.version, &kept))
        return false;
    if (kept.row.attempt_no == 0 || strcmp(kept.row.worker, worker) != 0 ||
        !pawli_job_is_replay(settle->action, &kept.row) ||
        kept.token_digest != pawli_token_digest(&settle->lease.token))
        return true;
    *ret_result = (pawl_settled){
        .code = PAWL_OK, .state = pawli_row_state(&kept.row), .attempt_no = kept.row.attempt_no};
    return true;
}

/* ---- settle */

static bool settle_one(struct pass *pass, const char *worker, const pawl_settle_row *settle,
                       pawl_settled *ret_result)
{
    struct record record;
    bool is_found;
    if (!pawli_sqlite_load(pass, &settle->lease.job, &record, &is_found))
        return false;
    if (!is_found) {
        *ret_result = (pawl_settled){.code = PAWL_GONE};
        return true;
    }
    struct pawli_change change = {
        .event = pawli_event_of(settle->action),
        .now = pass->now,
        .worker = worker,
        .token = settle->lease.token,
        .version = settle->lease.version,
        .reason = settle->reason,
        .delay_ms = settle->delay_ms,
    };
    struct pawli_ledger_row row;
    struct change_extra extra = {.error_code = settle->error_code,
                                 .error_text = settle->error_text,
                                 .wire_sends = &settle->wire_sends,
                                 .ret_row = &row};
    pawl_code code;
    if (!pawli_sqlite_change(pass, &record, &change, &extra, &code))
        return false;
    if (code != PAWL_OK)
        return answer_again(pass, &record, worker, settle, ret_result);
    assert(row.is_due); /* RES-12 */
    *ret_result = (pawl_settled){
        .code = PAWL_OK, .state = record.job.state, .attempt_no = row.attempt_no};
    if (record.job.state == PAWL_READY)
        ret_result->due_at = record.job.due_at;
    return true;
}

static bool settle_all(struct pass *pass, void *args)
{
    const struct batch *batch = args;
    for (size_t i = 0; i < batch->rows_count; i++)
        if (!settle_one(pass, batch->worker, &batch->rows[i], &batch->results[i]))
            return false;
    return true;
}

pawl_code pawli_sqlite_settle(pawl_store *store, const char *worker, const pawl_settle_row *rows,
                              size_t rows_count, pawl_settled *ret_results, pawl_err *err)
{
    struct batch batch = {worker, rows, rows_count, calloc(rows_count, sizeof(*batch.results))};
    if (batch.results == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    pawl_code rc = pawli_sqlite_write(
        store,
        &(struct write){
            .run = settle_all, .args = &batch, .rows_count = rows_count, .is_repeatable = true},
        err);
    if (rc == PAWL_OK)
        memcpy(ret_results, batch.results, rows_count * sizeof(*ret_results));
    free(batch.results);
    return rc;
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * operate.c - what operators do to jobs of the SQLite store: cancel, redrive, discard, by id and by
 *             filter.
 * Owns:  the verdicts on these; which jobs of a filter each of them can change.
 * Never: ends a lease (a running job is only marked); redrives a job whose dedupe key is taken.
 */
#include "store/sqlite/sqlite.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

/* ---- one job */

/* Changes a job and tells the verdict. False: it failed. */
typedef bool operation(struct pass *pass, struct record *record, pawl_changed *ret_result);

static bool change_by(struct pass *pass, struct record *record, enum pawli_event event,
                      pawl_changed *ret_result)
{
    struct pawli_change change = {.event = event, .now = pass->now};
    pawl_code code;
    if (!pawli_sqlite_change(pass, record, &change, NULL, &code))
        return false;
    *ret_result = (pawl_changed){.code = code};
    if (code == PAWL_OK)
        ret_result->state = record->job.state;
    return true;
}

static bool cancel(struct pass *pass, struct record *record, pawl_changed *ret_result)
{
    bool is_done = record->job.state == PAWL_FAILED && record->job.reason == PAWL_REASON_CANCELLED;
    if (!is_done)
        return change_by(pass, record, PAWLI_EVENT_CANCEL, ret_result);
    *ret_result = (pawl_changed){.code = PAWL_OK, .state = PAWL_FAILED};
    return true;
}

/* Whether a live job of the same ordering key, or none, has the dedupe key of this ended one. */
static bool is_dedupe_taken(struct pass *pass, const struct record *record, bool *ret_taken)
{
    struct query query = pawli_sqlite_query(
        pass, record->ordering_key[0] != '\0' ? S_DEDUPE_TAKEN_ORDERED : S_DEDUPE_TAKEN);
    pawli_sqlite_put_id(&query, &record->id);
    *ret_taken = pawli_sqlite_row(&query);
    return pawli_sqlite_end(&query);
}

static bool redrive(struct pass *pass, struct record *record, pawl_changed *ret_result)
{
    bool is_taken = false;
    if (record->job.state == PAWL_FAILED && !record->job.is_discarded &&
        !is_dedupe_taken(pass, record, &is_taken))
        return false;
    if (!is_taken)
        return change_by(pass, record, PAWLI_EVENT_REDRIVE, ret_result);
    *ret_result = (pawl_changed){.code = PAWL_DUPLICATE};
    return true;
}

static bool discard(struct pass *pass, struct record *record, pawl_changed *ret_result)
{
    return change_by(pass, record, PAWLI_EVENT_DISCARD, ret_result);
}

/* ---- by id */

struct ids {
    const pawl_id *ids;
    size_t ids_count;
    pawl_changed *results;
    operation *change;
};

static bool change_ids(struct pass *pass, void *args)
{
    const struct ids *ids = args;
    for (size_t i = 0; i < ids->ids_count; i++) {
        struct record record;
        bool is_found;
        if (!pawli_sqlite_load(pass, &ids->ids[i], &record, &is_found))
            return false;
        ids->results[i] = (pawl_changed){.code = PAWL_GONE};
        if (is_found && !ids->change(pass, &record, &ids->results[i]))
            return false;
    }
    return true;
}

static pawl_code write_ids(pawl_store *store, struct ids *ids, pawl_changed *ret_results,
                           pawl_err *err)
{
    ids->results = calloc(ids->ids_count, sizeof(*ids->results));
    if (ids->results == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    pawl_code rc = pawli_sqlite_write(
        store, &(struct write){.run = change_ids, .args = ids, .rows_count = ids->ids_count}, err);
    if (rc == PAWL_OK)
        memcpy(ret_results, ids->results, ids->ids_count * sizeof(*ret_results));
    free(ids->results);
    return rc;
}

pawl_code pawli_sqlite_cancel(pawl_store *store, const pawl_id *ids, size_t ids_count,
                              pawl_changed *ret_results, pawl_err *err)
{
    return write_ids(store, &(struct ids){.ids = ids, .ids_count = ids_count, .change = cancel},
                     ret_results, err);
}

pawl_code pawli_sqlite_redrive(pawl_store *store, const pawl_id *ids, size_t ids_count,
                               pawl_changed *ret_results, pawl_err *err)
{
    return write_ids(store, &(struct ids){.ids = ids, .ids_count = ids_count, .change = redrive},
                     ret_results, err);
}

pawl_code pawli_sqlite_discard(pawl_store *store, const pawl_id *ids, size_t ids_count,
                               pawl_changed *ret_results, pawl_err *err)
{
    return write_ids(store, &(struct ids){.ids = ids, .ids_count = ids_count, .change = discard},
                     ret_results, err);
}

/* ---- by filter */

/* Jobs are read so many at a time, and changed once they are all read. */
#define CHUNK 64

struct where {
    const pawl_filter *filter;
    size_t jobs_max;
    unsigned states; /* that the operation can change; those marked already it need not */
    operation *change;
    size_t count;
    size_t chunk_count;
    struct record chunk[CHUNK];
};

static bool gather(struct pass *pass, const struct record *record, void *args)
{
    (void)pass; /* nothing is asked of the file here */
    struct where *where = args;
    where->chunk[where->chunk_count++] = *record;
    return true;
}

static bool change_where(struct pass *pass, void *args)
{
    struct where *where = args;
    pawl_id after;
    struct walk_range range = {
        .filter = where->filter, .states = where->states, .is_unmarked = true, .jobs_max = CHUNK};
    do {
        where->chunk_count = 0;
        if (!pawli_sqlite_walk(pass, &range, gather, where))
            return false;
        for (size_t i = 0; i < where->chunk_count && where->count < where->jobs_max; i++) {
            pawl_changed result;
            if (!where->change(pass, &where->chunk[i], &result))
                return false;
            where->count += result.code == PAWL_OK;
            after = where->chunk[i].id;
        }
        range.after = &after;
    } while (where->chunk_count == CHUNK && where->count < where->jobs_max);
    return true;
}

static pawl_code write_where(pawl_store *store, const struct where *what, size_t *ret_count,
                             pawl_err *err)
{
    struct where *where = calloc(1, sizeof(*where));
    if (where == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    where->filter = what->filter;
    where->jobs_max = what->jobs_max;
    where->states = what->states;
    where->change = what->change;
    pawl_code rc = pawli_sqlite_write(
        store, &(struct write){.run = change_where, .args = where, .rows_count = where->jobs_max},
        err);
    if (rc == PAWL_OK)
        *ret_count = where->count;
    free(where);
    return rc;
}

pawl_code pawli_sqlite_cancel_where(pawl_store *store, const pawl_filter *filter, size_t jobs_max,
                                    size_t *ret_count, pawl_err *err)
{
    return write_where(store,
                       &(struct where){.filter = filter,
                                       .jobs_max = jobs_max,
                                       .states = 1u << PAWL_READY | 1u << PAWL_IN_FLIGHT,
                                       .change = cancel},
                       ret_count, err);
}

pawl_code pawli_sqlite_redrive_where(pawl_store *store, const pawl_filter *filter, size_t jobs_max,
                                     size_t *ret_count, pawl_err *err)
{
    return write_where(
        store,
        &(struct where){
            .filter = filter, .jobs_max = jobs_max, .states = 1u << PAWL_FAILED, .change = redrive},
        ret_count, err);
}

pawl_code pawli_sqlite_discard_where(pawl_store *store, const pawl_filter *filter, size_t jobs_max,
                                     size_t *ret_count, pawl_err *err)
{
    return write_where(
        store,
        &(struct where){
            .filter = filter, .jobs_max = jobs_max, .states = 1u << PAWL_FAILED, .change = discard},
        ret_count, err);
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * settle.c - what holders of leases say to the memory store: renew, settle, release.
 * Owns:  the verdicts on these, and the answer to a settle that is repeated.
 * Never: accepts anything that core/job.c refuses; tells why a lease is not the caller's.
 */
#include "store/memory/memory.h"

#include "base/error.h"
#include "core/mutant.h"

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

static pawl_renewed renew_one(pawl_memory *memory, const char *worker, const pawl_renew_row *row,
                              pawl_wall now)
{
    struct entry *entry = pawli_memory_find(memory, &row->lease.job);
    if (entry == NULL)
        return (pawl_renewed){.code = PAWL_GONE};
    struct pawli_change change = {
        .event = PAWLI_EVENT_RENEW,
        .now = now,
        .worker = worker,
        .token = row->lease.token,
        .version = row->lease.version,
        .lease_ms = row->lease_ms != PAWL_DEFAULT ? row->lease_ms : entry->queue->settings.lease_ms,
        .is_unstarted = row->is_unstarted,
    };
    pawl_code code = verdict_of(pawli_memory_change(memory, entry, &change, NULL));
    if (code != PAWL_OK)
        return (pawl_renewed){.code = code};
    return (pawl_renewed){
        .code = PAWL_OK, .expires_at = entry->job.expires_at, .lease_ms = entry->job.lease_ms};
}

pawl_code pawli_memory_renew(pawl_store *store, const char *worker, const pawl_renew_row *rows,
                             size_t rows_count, pawl_renewed *ret_results, pawl_err *err)
{
    pawl_wall now;
    pawl_memory *memory = pawli_memory_enter(store, &now, err);
    if (memory == NULL)
        return PAWL_DOWN;
    for (size_t i = 0; i < rows_count; i++)
        ret_results[i] = renew_one(memory, worker, &rows[i], now);
    pawli_memory_leave(memory);
    return PAWL_OK;
}

/* ---- settle */

/* A settle that came before, and whose answer may have been lost: Q-STALE, or OK once more. */
static pawl_settled answer_again(struct entry *entry, const char *worker,
                                 const pawl_settle_row *settle)
{
    int64_t attempt_no = pawli_memory_row_of_lease(entry, settle->lease.version);
    if (attempt_no == 0)
        return (pawl_settled){.code = PAWL_STALE};
    struct pawli_ledger_row row = pawli_memory_row(entry, attempt_no);
    if (strcmp(row.worker, worker) != 0 || !pawli_job_is_replay(settle->action, &row) ||
        !pawli_memory_row_is_by(entry, attempt_no, &settle->lease.token))
        return (pawl_settled){.code = PAWL_STALE};
#ifdef PAWL_TEST_POINTS
    if (PAWLI_MUTANT(PAWLI_MUTANT_SETTLE_REPLAY_AGAIN))
        attempt_no = pawli_memory_mutant_second_row(entry, attempt_no);
#endif
    return (pawl_settled){
        .code = PAWL_OK, .state = pawli_row_state(&row), .attempt_no = attempt_no};
}

/* The jobs of a settle are among those that its worker holds, which are few beside all jobs. */
static struct entry *find_held(pawl_memory *memory, struct holder *holder, const pawl_id *id)
{
    struct entry key;
    key.id = *id;
    struct entry *entry = holder != NULL ? RB_FIND(pawli_held_tree, &holder->held, &key) : NULL;
    return entry != NULL ? entry : pawli_memory_find(memory, id);
}

/* A row of a settle. */
struct settling {
    struct entry *entry;     /* NULL: there is no such job */
    struct error_note *note; /* owned until a row is written; NULL: none */
};

static pawl_settled settle_one(pawl_memory *memory, struct pawli_change *change,
                               const pawl_settle_row *settle, struct settling *settling)
{
    struct entry *entry = settling->entry;
    if (entry == NULL)
        return (pawl_settled){.code = PAWL_GONE};
    change->event = pawli_event_of(settle->action);
    change->token = settle->lease.token;
    change->version = settle->lease.version;
    change->reason = settle->reason;
    change->delay_ms = settle->delay_ms;
    struct pawli_ledger_row row;
#ifdef PAWL_TEST_POINTS
    struct pawli_job before = entry->job;
#endif
    pawl_code rc = pawli_memory_change(memory, entry, change,
                                       &(struct change_extra){.error = settling->note,
                                                              .wire_sends = &settle->wire_sends,
                                                              .ret_row = &row});
    if (rc != PAWL_OK)
        return answer_again(entry, change->worker, settle);
    assert(row.is_due); /* RES-12 */
    settling->note = NULL;
#ifdef PAWL_TEST_POINTS
    if (PAWLI_MUTANT(PAWLI_MUTANT_TERMINAL_CLAIMABLE) && entry->job.state == PAWL_SUCCEEDED)
        pawli_memory_mutant_haunt(memory, entry, &before);
#endif
    pawl_settled settled = {
        .code = PAWL_OK, .state = entry->job.state, .attempt_no = row.attempt_no};
    if (settled.state == PAWL_READY)
        settled.due_at = entry->job.due_at;
    return settled;
}

static void free_settlings(struct settling *settlings, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(settlings[i].note);
    free(settlings);
}

static struct settling *make_settlings(const pawl_settle_row *rows, size_t rows_count)
{
    struct settling *made = calloc(rows_count, sizeof(*made));
    if (made == NULL)
        return NULL;
    for (size_t i = 0; i < rows_count; i++) {
        if (!pawli_memory_error_note(rows[i].error_code, rows[i].error_text, &made[i].note)) {
            free_settlings(made, i);
            return NULL;
        }
    }
    return made;
}

/* Find the jobs, and gather what their rows need. False: no memory. */
static bool find_all(pawl_memory *memory, const char *worker, const pawl_settle_row *rows,
                     size_t rows_count, struct settling *settlings)
{
    struct holder *holder = pawli_memory_holder_find(memory, worker);
    bool is_room = true;
    for (size_t i = 0; i < rows_count && is_room; i++) {
        settlings[i].entry = find_held(memory, holder, &rows[i].lease.job);
        is_room = settlings[i].entry == NULL || pawli_memory_reserve(settlings[i].entry);
    }
    return is_room;
}

pawl_code pawli_memory_settle(pawl_store *store, const char *worker, const pawl_settle_row *rows,
                              size_t rows_count, pawl_settled *ret_results, pawl_err *err)
{
    struct settling *settlings = make_settlings(rows, rows_count);
    if (settlings == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);

    struct pawli_change change = {.worker = worker};
    pawl_memory *memory = pawli_memory_enter(store, &change.now, err);
    if (memory == NULL) {
        free_settlings(settlings, rows_count);
        return PAWL_DOWN;
    }
    bool is_room = find_all(memory, worker, rows, rows_count, settlings);
    for (size_t i = 0; i < rows_count && is_room; i++)
        ret_results[i] = settle_one(memory, &change, &rows[i], &settlings[i]);
    pawli_memory_leave(memory);
    free_settlings(settlings, rows_count);
    return is_room ? PAWL_OK : pawli_fail_plain(err, PAWL_NO_MEMORY);
}

/* ---- release */

static bool reserve_for(pawl_memory *memory, const pawl_id *id)
{
    struct entry *entry = pawli_memory_find(memory, id);
    return entry == NULL || pawli_memory_reserve(entry);
}

static pawl_code release_one(pawl_memory *memory, const char *worker, const pawl_lease *lease,
                             pawl_wall now)
{
    struct entry *entry = pawli_memory_find(memory, &lease->job);
    if (entry == NULL)
        return PAWL_GONE;
    struct pawli_change change = {
        .event = PAWLI_EVENT_RELEASE,
        .now = now,
        .worker = worker,
        .token = lease->token,
        .version = lease->version,
    };
    return verdict_of(pawli_memory_change(memory, entry, &change, NULL));
}

pawl_code pawli_memory_release(pawl_store *store, const char *worker, const pawl_lease *leases,
                               size_t leases_count, pawl_code *ret_codes, pawl_err *err)
{
    pawl_wall now;
    pawl_memory *memory = pawli_memory_enter(store, &now, err);
    if (memory == NULL)
        return PAWL_DOWN;
    bool is_room = true; /* a job that is marked for cancellation gets a row */
    for (size_t i = 0; i < leases_count && is_room; i++)
        is_room = reserve_for(memory, &leases[i].job);
    for (size_t i = 0; i < leases_count && is_room; i++)
        ret_codes[i] = release_one(memory, worker, &leases[i], now);
    pawli_memory_leave(memory);
    return is_room ? PAWL_OK : pawli_fail_plain(err, PAWL_NO_MEMORY);
}

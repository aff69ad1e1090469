/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * change.c - the one way in which the memory store changes a job, and the job's ledger.
 * Owns:  the ledger's memory; where a job stands once it is Ready again; who holds a job.
 * Never: decides what a job may become (core/job.c does); takes the lock (its callers hold it);
 *        allocates while it changes.
 */
#include "store/memory/memory.h"

#include "base/clock.h"
#include "base/text.h"
#include "core/mutant.h"
#include "core/token.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- room for what a change writes */

bool pawli_memory_reserve(struct entry *entry)
{
    size_t rows_count = (size_t)entry->job.attempts;
    if (rows_count < entry->ledger_room)
        return true;
    size_t room = 2 * entry->ledger_room;
    bool is_first = entry->ledger == entry->ledger_first;
    struct ledger_row *ledger = realloc(is_first ? NULL : entry->ledger, room * sizeof(*ledger));
    if (ledger == NULL)
        return false;
    if (is_first)
        memcpy(ledger, entry->ledger_first, sizeof(entry->ledger_first));
    entry->ledger = ledger;
    entry->ledger_room = room;
    return true;
}

bool pawli_memory_error_note(const char *code, const char *text, struct error_note **ret_note)
{
    struct error_note *note = NULL;
    size_t code_len = code != NULL ? strlen(code) : 0;
    size_t text_len = text != NULL ? strlen(text) : 0;
    if (code_len + text_len > 0) {
        note = malloc(sizeof(*note) + code_len + 1 + text_len + 1);
        if (note == NULL)
            return false;
        note->text_at = code_len + 1;
        (void)pawli_text_copy(note->chars, code_len + 1, code); /* sized for them: they fit */
        (void)pawli_text_copy(note->chars + note->text_at, text_len + 1, text);
    }
    *ret_note = note;
    return true;
}

/* ---- the ledger */

/* The lease that a row ends, if any. */
struct ended_lease {
    struct holder *holder;
    pawl_token token;
};

static void append_row(struct entry *entry, const struct pawli_ledger_row *row,
                       const struct ended_lease *ended, const struct change_extra *extra)
{
    assert(row->attempt_no == entry->job.attempts);
    assert((size_t)entry->job.attempts <= entry->ledger_room); /* it was reserved */

    bool is_by_holder = row->ended_by == PAWL_ENDED_BY_HOLDER;
    if (ended->holder != NULL)
        ended->holder->uses++;
    entry->ledger[row->attempt_no - 1] = (struct ledger_row){
        .job_version = entry->job.lease_version,
        .started_at = row->started_at,
        .finished_at = row->finished_at,
        .holder = ended->holder,
        .error = extra->error,
        .token_digest = is_by_holder ? pawli_token_digest(&ended->token) : 0,
        .wire_sends = (int32_t)(extra->wire_sends != NULL ? *extra->wire_sends
                                                          : PAWL_SENDS_UNKNOWN),
        .outcome = (uint8_t)row->outcome,
        .reason = (uint8_t)row->reason,
        .ended_by = (uint8_t)row->ended_by,
    };
}

struct pawli_ledger_row pawli_memory_row(const struct entry *entry, int64_t attempt_no)
{
    assert(attempt_no >= 1 && attempt_no <= entry->job.attempts);
    const struct ledger_row *kept = &entry->ledger[attempt_no - 1];
    struct pawli_ledger_row row = {
        .is_due = true,
        .attempt_no = attempt_no,
        .outcome = (pawl_outcome)kept->outcome,
        .reason = (pawl_reason)kept->reason,
        .ended_by = (pawl_ended_by)kept->ended_by,
        .lease_version = kept->holder != NULL ? kept->job_version : 0,
        .started_at = kept->started_at,
        .finished_at = kept->finished_at,
    };
    if (kept->holder != NULL)
        (void)pawli_text_copy(row.worker, sizeof(row.worker), kept->holder->name); /* it fits */
    return row;
}

int64_t pawli_memory_row_of_lease(const struct entry *entry, int64_t lease_version)
{
    /* Versions never fall from row to row; of one version, the lease's own row is the first. */
    int64_t low = 0;
    int64_t high = entry->job.attempts;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (entry->ledger[middle].job_version < lease_version)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == entry->job.attempts)
        return 0;
    const struct ledger_row *row = &entry->ledger[low];
    return row->job_version == lease_version && row->holder != NULL ? low + 1 : 0;
}

bool pawli_memory_row_is_by(const struct entry *entry, int64_t attempt_no, const pawl_token *token)
{
    assert(attempt_no >= 1 && attempt_no <= entry->job.attempts);
    return entry->ledger[attempt_no - 1].token_digest == pawli_token_digest(token);
}

/* ---- the change */

struct pawli_job_rules pawli_memory_rules(const struct entry *entry)
{
    const pawl_queue_settings *settings = &entry->queue->settings;
    struct pawli_job_rules rules = {
        .max_retries = settings->max_retries,
        .max_lost_leases = settings->max_lost_leases,
        .backoff_base_ms = settings->backoff_base_ms,
        .backoff_max_ms = settings->backoff_max_ms,
    };
    if (entry->max_retries != PAWL_DEFAULT)
        rules.max_retries = entry->max_retries;
    if (entry->backoff_base_ms != PAWL_DEFAULT)
        rules.backoff_base_ms = entry->backoff_base_ms;
    if (entry->backoff_max_ms != PAWL_DEFAULT)
        rules.backoff_max_ms = entry->backoff_max_ms;
    return rules;
}

/* Give a job that has become Ready its place among the others. */
static void place(pawl_memory *memory, struct entry *entry, const struct pawli_change *change)
{
    bool is_delayed = pawli_wall_is_before(change->now, entry->job.due_at);
    if (change->event == PAWLI_EVENT_REDRIVE)
        entry->rank = RANK_ARRIVAL;
    else if (change->event == PAWLI_EVENT_RELEASE)
        entry->rank = RANK_RETURNED;
    else if (change->event == PAWLI_EVENT_EXPIRE)
        entry->rank = is_delayed ? RANK_TIMED : RANK_RETURNED;
    else
        entry->rank = RANK_TIMED;
    entry->timed_us = entry->rank == RANK_TIMED ? entry->job.due_at.us : 0;
    entry->position = ++memory->position;
}

/* Who becomes claimable besides the job itself: the next of its key, or one that the queue's bound
 * kept waiting. */
static void let_others_in(pawl_memory *memory, struct entry *entry, pawl_state before)
{
    bool has_room = before == PAWL_IN_FLIGHT && entry->job.state != PAWL_IN_FLIGHT &&
                    entry->queue->settings.max_in_flight > 0;
    pawli_memory_order_move_up(memory, entry->ordering_key);
    if (entry->is_claimable || (has_room && !RB_EMPTY(&entry->line->ready)))
        pawli_memory_hint(memory);
}

/* The job's place among those of its key: RES-7. */
static void keep_order(struct entry *entry, pawl_state before, enum pawli_event event)
{
    enum pawli_key_step step = pawli_job_key_step(before, entry->job.state);
    bool is_ready = entry->job.state == PAWL_READY;
    bool is_overtaken = PAWLI_MUTANT(PAWLI_MUTANT_KEY_RETRY_OVERTAKEN) && is_ready &&
                        event == PAWLI_EVENT_RETRY;
    bool is_forgotten = PAWLI_MUTANT(PAWLI_MUTANT_KEY_RELEASE_FORGETS) && is_ready &&
                        event == PAWLI_EVENT_RELEASE;
    if (step == PAWLI_KEY_LEAVES || is_overtaken || is_forgotten)
        pawli_memory_order_leave(entry);
    if (step == PAWLI_KEY_JOINS || is_overtaken)
        pawli_memory_order_join(entry);
}

pawl_code pawli_memory_change(pawl_memory *memory, struct entry *entry,
                              const struct pawli_change *change, const struct change_extra *extra)
{
    static const struct change_extra none = {0};
    if (extra == NULL)
        extra = &none;
    const pawl_random *random = extra->random != NULL ? extra->random : memory->random;
    struct pawli_job_rules rules = pawli_memory_rules(entry);
    struct pawli_job after = entry->job;
    struct pawli_ledger_row row;
    pawl_code rc = pawli_job_change(&after, &rules, change, random, &row);
    if (rc != PAWL_OK)
        return rc;

    pawl_state before = entry->job.state;
    struct ended_lease ended = {.holder = entry->holder, .token = entry->job.token};
    struct holder *holder = entry->holder;
    pawli_memory_unlink(memory, entry);
    entry->job = after;
    if (row.is_due)
        append_row(entry, &row, &ended, extra);
    if (after.state != PAWL_IN_FLIGHT) {
        pawli_memory_holder_drop(memory, holder);
        entry->holder = NULL;
    }
    if (change->event == PAWLI_EVENT_CLAIM) {
        assert(holder == NULL && extra->holder != NULL);
        entry->holder = extra->holder;
        entry->holder->uses++;
    }
    if (after.state == PAWL_READY && before != PAWL_READY)
        place(memory, entry, change);
    if (after.state == PAWL_SUCCEEDED || after.is_discarded) {
        free(entry->payload); /* nobody will work on it again */
        free(entry->headers);
        entry->payload = NULL;
        entry->headers = NULL;
    }
    keep_order(entry, before, change->event);
    pawli_memory_turn_due(entry->queue, change->now);
    pawli_memory_link(memory, entry);
    if (before != after.state)
        let_others_in(memory, entry, before);
    if (extra->ret_row != NULL)
        *extra->ret_row = row;
    return PAWL_OK;
}

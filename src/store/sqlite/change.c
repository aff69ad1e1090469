/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * change.c - the one way in which the SQLite store changes a job.
 * Owns:  the row that a change writes into the ledger; where a job stands once it is Ready again.
 * Never: decides what a job may become (core/job.c does: S5).
 */
#include "store/sqlite/sqlite.h"

#include "base/clock.h"
#include "core/token.h"

#include <assert.h>
#include <string.h>

static struct pawli_job_rules rules_of(const struct record *record, const struct queue *queue)
{
    const pawl_queue_settings *settings = &queue->settings;
    struct pawli_job_rules rules = {
        .max_retries = settings->max_retries,
        .max_lost_leases = settings->max_lost_leases,
        .backoff_base_ms = settings->backoff_base_ms,
        .backoff_max_ms = settings->backoff_max_ms,
    };
    if (record->max_retries != PAWL_DEFAULT)
        rules.max_retries = record->max_retries;
    if (record->backoff_base_ms != PAWL_DEFAULT)
        rules.backoff_base_ms = record->backoff_base_ms;
    if (record->backoff_max_ms != PAWL_DEFAULT)
        rules.backoff_max_ms = record->backoff_max_ms;
    return rules;
}

/* `ended` is the job as it was before, with the lease that the row ends, if any. */
static bool append_row(struct pass *pass, const struct record *ended,
                       const struct pawli_ledger_row *row, const struct change_extra *extra)
{
    bool is_by_holder = row->ended_by == PAWL_ENDED_BY_HOLDER;
    bool had_lease = ended->job.state == PAWL_IN_FLIGHT;
    uint64_t digest = is_by_holder ? pawli_token_digest(&ended->job.token) : 0;
    int64_t kept_digest; /* the same bits: columns have a sign */
    memcpy(&kept_digest, &digest, sizeof(kept_digest));
    struct query query = pawli_sqlite_query(pass, S_INSERT_ATTEMPT);
    pawli_sqlite_put_id(&query, &ended->id);
    pawli_sqlite_put_int(&query, row->attempt_no);
    pawli_sqlite_put_int(&query, row->outcome);
    pawli_sqlite_put_int(&query, row->reason);
    pawli_sqlite_put_int(&query, row->ended_by);
    pawli_sqlite_put_int(&query, ended->job.lease_version);
    pawli_sqlite_put_text(&query, had_lease ? row->worker : NULL);
    pawli_sqlite_put_optional(&query, row->started_at.us, 0);
    pawli_sqlite_put_int(&query, row->finished_at.us);
    pawli_sqlite_put_text(&query, extra->error_code);
    pawli_sqlite_put_text(&query, extra->error_text);
    pawli_sqlite_put_optional(&query, kept_digest, 0);
    pawli_sqlite_put_optional(&query,
                              extra->wire_sends != NULL ? *extra->wire_sends : PAWL_SENDS_UNKNOWN,
                              PAWL_SENDS_UNKNOWN);
    return pawli_sqlite_change_rows(&query, 1);
}

/* Give a job that has become Ready its place among the others: as in the memory store. */
static bool place(struct pass *pass, struct record *record, const struct pawli_change *change)
{
    bool is_delayed = pawli_wall_is_before(change->now, record->job.due_at);
    if (change->event == PAWLI_EVENT_REDRIVE)
        record->rank = RANK_ARRIVAL;
    else if (change->event == PAWLI_EVENT_RELEASE)
        record->rank = RANK_RETURNED;
    else if (change->event == PAWLI_EVENT_EXPIRE)
        record->rank = is_delayed ? RANK_TIMED : RANK_RETURNED;
    else
        record->rank = RANK_TIMED;
    record->timed_us = record->rank == RANK_TIMED ? record->job.due_at.us : 0;
    if (!is_delayed)
        pass->sqlite->is_hinting = true;
    return pawli_sqlite_draw_position(pass, &record->position);
}

/* Who becomes claimable besides the job itself: the next of its key, or one that the bound of the
 * queue in pass->queue kept waiting. */
static bool let_others_in(struct pass *pass, const struct record *record, pawl_state before)
{
    pawl_state after = record->job.state;
    if (record->ordering_key[0] != '\0' && pawli_job_key_step(before, after) == PAWLI_KEY_LEAVES &&
        !pawli_sqlite_order_move_up(pass, record, before))
        return false;
    bool has_room = before == PAWL_IN_FLIGHT && after != PAWL_IN_FLIGHT &&
                    pass->queue.settings.max_in_flight > 0;
    if (!has_room || pass->sqlite->is_hinting)
        return true;
    return pawli_sqlite_is_any_claimable(pass, record->queue_id, &pass->sqlite->is_hinting);
}

static bool drop_payload(struct pass *pass, const struct record *record)
{
    struct query query = pawli_sqlite_query(pass, S_DELETE_PAYLOAD);
    pawli_sqlite_put_int(&query, record->number);
    return pawli_sqlite_change_rows(&query, -1); /* it may have none, or be discarded twice */
}

bool pawli_sqlite_change(struct pass *pass, struct record *record,
                         const struct pawli_change *change, const struct change_extra *extra,
                         pawl_code *ret_code)
{
    static const struct change_extra none = {0};
    if (extra == NULL)
        extra = &none;
    if (!pawli_sqlite_queue_of(pass, record->queue_id))
        return false;
    struct pawli_job_rules rules = rules_of(record, &pass->queue);
    struct record after = *record;
    struct pawli_ledger_row row;
    *ret_code = pawli_job_change(&after.job, &rules, change, &pass->sqlite->random, &row);
    if (*ret_code != PAWL_OK)
        return true;

    pawl_state before = record->job.state;
    if (row.is_due && !append_row(pass, record, &row, extra))
        return false;
    if (after.job.state == PAWL_READY && before != PAWL_READY && !place(pass, &after, change))
        return false;
    if (!pawli_sqlite_save(pass, &after, before, change->event) ||
        !let_others_in(pass, &after, before))
        return false;
    if ((after.job.state == PAWL_SUCCEEDED || after.job.is_discarded) &&
        !drop_payload(pass, &after))
        return false; /* nobody will work on it again */
    *record = after;
    if (extra->ret_row != NULL)
        *extra->ret_row = row;
    return true;
}

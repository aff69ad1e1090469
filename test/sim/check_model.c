/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * check_model.c - what becomes of a job in the checker's model, seen and unseen.
 * Owns:  the transitions of the model; what may have happened between two records.
 * Never: guesses what the records or the final ledger tell.
 */
#include "sim/check_model.h"

#include "core/backoff.h"

#include <assert.h>
#include <inttypes.h>

#define DUE_UNKNOWN INT64_MIN

/* ---------------------------------------------------------------- limits */

struct check_settings check_limits(const struct check_model *model, uint32_t seq)
{
    struct check_settings limits = check_settings_at(model->job->queue, seq);
    if (model->max_retries != PAWL_DEFAULT)
        limits.max_retries = model->max_retries;
    if (model->base_ms != PAWL_DEFAULT)
        limits.base_ms = model->base_ms;
    if (model->max_ms != PAWL_DEFAULT)
        limits.max_ms = model->max_ms;
    return limits;
}

/* ---------------------------------------------------------------- what the ledger tells */

/* The row with this number, where the final ledger is known. */
static const struct check_event *ledger_row(const struct check_model *model, int64_t number)
{
    if (!model->job->has_ledger)
        return NULL;
    const struct check_event *row = model->job->ledger_first;
    while (row != NULL && row->u.attempt.number != number)
        row = row->next;
    return row;
}

const struct check_event *check_next_row(const struct check_model *model)
{
    return ledger_row(model, model->attempts + 1);
}

static bool is_expiry_of(const struct check_event *row, const struct check_lease *lease)
{
    return row != NULL && row->ended_by == PAWL_ENDED_BY_EXPIRY && row->version == lease->version;
}

/* ---------------------------------------------------------------- what the clock allows */

bool check_has_been(const struct check_book *book, int64_t us, uint32_t after_seq,
                    const struct check_event *event)
{
    if (event->store_us >= us)
        return true;
    for (size_t i = 0; i < book->peaks.count; i++) {
        const struct check_span *peak = &book->peaks.items[i];
        if (peak->seq > after_seq && peak->seq < event->seq && peak->what >= us)
            return true;
    }
    return false;
}

bool check_can_expire(const struct check_model *model, const struct check_event *event)
{
    const struct check_lease *lease = model->lease;
    if (check_has_been(model->book, lease->expires_us, lease->extended_seq, event))
        return true;
    const struct check_event *row = check_next_row(model);
    return is_expiry_of(row, lease) && row->u.attempt.finished_us >= lease->expires_us;
}

static bool can_miss(const struct check_model *model, const struct check_event *event)
{
    if (model->start_by_us == 0)
        return false;
    const struct check_event *row = check_next_row(model);
    return check_has_been(model->book, model->start_by_us, 0, event) ||
           (row != NULL && row->ended_by == PAWL_ENDED_BY_DEADLINE);
}

bool check_is_valid(const struct check_model *model, const struct check_event *event)
{
    const struct check_lease *lease = model->lease;
    return model->state == PAWL_IN_FLIGHT && lease->version == event->version &&
           lease->grant->digest == event->digest && lease->holder == event->by &&
           event->store_us < lease->expires_us;
}

/* ---------------------------------------------------------------- transitions */

void check_add_row(struct check_model *model, struct check_row row)
{
    model->attempts++;
    if (model->rows_count < model->rows_size)
        model->rows[model->rows_count] = row;
    model->rows_count++;
}

void check_join(struct check_model *model, const struct check_event *joined)
{
    struct check_stay *stay = check_alloc(model->book, sizeof(*stay));
    if (stay == NULL)
        return;
    *stay = (struct check_stay){.next = model->job->stays,
                                .joined = joined,
                                .left_seq = UINT32_MAX,
                                .left_until_us = CHECK_NEVER_US,
                                .is_vague = joined == NULL};
    model->job->stays = stay;
}

static bool is_live(pawl_state state)
{
    return state == PAWL_READY || state == PAWL_IN_FLIGHT;
}

void check_enter(struct check_model *model, pawl_state state, pawl_reason reason, uint32_t seq)
{
    struct check_stay *stay = model->job->stays;
    if (stay != NULL && is_live(model->state) && !is_live(state)) {
        stay->left_seq = seq;
        stay->left_until_us = model->event->until_us;
    }
    model->state = state;
    model->reason = reason;
    model->since_seq = seq;
    if (state != PAWL_IN_FLIGHT)
        model->lease = NULL;
}

/* Why the lease ended the job, or did not, and whether that may be. */
static pawl_reason expiry_reason(struct check_model *model, const struct check_event *event,
                                 const struct check_event *reaped)
{
    const struct check_lease *lease = model->lease;
    const struct check_event *row = check_next_row(model);
    int64_t most = check_limits(model, event->seq).max_lost_leases;
    int64_t most_before = check_limits(model, lease->extended_seq).max_lost_leases;
    bool is_at_bound = model->lost >= most;
    pawl_reason reason = lease->is_cancel_asked ? PAWL_REASON_CANCELLED
                         : is_at_bound          ? PAWL_REASON_POISON
                                                : PAWL_REASON_EXPIRED;
    if (reaped != NULL)
        reason = (pawl_reason)reaped->reason;
    else if (is_expiry_of(row, lease))
        reason = (pawl_reason)row->reason;
    if (lease->is_cancel_possible && reason == PAWL_REASON_CANCELLED)
        return reason;
    if (lease->is_cancel_asked != (reason == PAWL_REASON_CANCELLED)) {
        check_wrong(model, CHECK_C22, event,
                    "v%" PRId64 " expired with the reason %s, but it was %s for cancellation",
                    lease->version, pawl_reason_name(reason),
                    lease->is_cancel_asked ? "marked" : "not marked");
    } else if (reason != PAWL_REASON_CANCELLED && most >= 0 && most == most_before &&
               !model->has_guessed && is_at_bound != (reason == PAWL_REASON_POISON)) {
        check_wrong(model, CHECK_C6, event,
                    "lost lease %" PRId64 " of at most %" PRId64 " ended with the reason %s",
                    model->lost, most, pawl_reason_name(reason));
    }
    return reason;
}

/* When a job is due again after an expiry. */
static void set_due_after_expiry(struct check_model *model, const struct check_event *event,
                                 const struct check_event *reaped)
{
    model->due_us = DUE_UNKNOWN;
    if (reaped == NULL)
        return;
    model->due_us = reaped->u.reap.due_us;
    int64_t delay_us = minus(model->due_us, reaped->store_us);
    struct check_settings limits = check_limits(model, event->seq);
    int64_t most_ms = 0;
    if (model->has_guessed || limits.base_ms <= 0 || limits.max_ms <= 0)
        return;
    if (model->lost_in_a_row >= 2)
        most_ms = pawli_backoff_ceiling_ms(limits.base_ms, limits.max_ms, model->lost_in_a_row - 2);
    if (delay_us < 0 || delay_us > ms_to_us(most_ms)) {
        check_wrong(model, CHECK_C18, event,
                    "due %" PRId64 " us after loss %" PRId64 " in a row; 0 to %" PRId64
                    " ms are allowed",
                    delay_us, model->lost_in_a_row, most_ms);
    } else if (most_ms > 0) {
        check_delays_add(&model->book->loss_delays, delay_us, most_ms);
    }
}

void check_expire(struct check_model *model, const struct check_event *event,
                  const struct check_event *reaped)
{
    struct check_lease *lease = model->lease;
    assert(lease != NULL);
    model->book->report->expiries++;
    model->lost++;
    model->lost_in_a_row++;
    const struct check_event *told = check_next_row(model);
    pawl_reason reason = expiry_reason(model, event, reaped);
    bool is_back = reason == PAWL_REASON_EXPIRED;
    int64_t finished_us = reaped != NULL ? reaped->store_us : 0;
    if (reaped == NULL && is_expiry_of(told, lease))
        finished_us = told->u.attempt.finished_us;
    check_add_row(model, (struct check_row){
                             .version = lease->version,
                             .outcome = is_back ? PAWL_ZOMBIE_REQUEUE : PAWL_FAILED_FINAL,
                             .reason = reason,
                             .ended_by = PAWL_ENDED_BY_EXPIRY,
                             .worker = lease->holder,
                             .started_us = lease->grant->u.grant.claimed_us,
                             .finished_us = finished_us,
                             .cause = event,
                         });
    lease->end = CHECK_EXPIRED;
    lease->ended_by = event;
    lease->expired_store_us = finished_us;
    /* Unseen, it may have happened at any time since the lease was last extended. */
    uint32_t since = reaped != NULL ? reaped->seq : lease->extended_seq;
    check_enter(model, is_back ? PAWL_READY : PAWL_FAILED, reason, since);
    if (!is_back)
        return;
    model->start_by_us = 0;
    set_due_after_expiry(model, event, reaped);
}

void check_miss(struct check_model *model, const struct check_event *event,
                const struct check_event *reaped)
{
    const struct check_event *told = check_next_row(model);
    int64_t finished_us = reaped != NULL ? reaped->store_us : 0;
    if (reaped == NULL && told != NULL)
        finished_us = told->u.attempt.finished_us;
    check_add_row(model, (struct check_row){
                             .outcome = PAWL_FAILED_FINAL,
                             .reason = PAWL_REASON_START_BY,
                             .ended_by = PAWL_ENDED_BY_DEADLINE,
                             .finished_us = finished_us,
                             .cause = event,
                         });
    check_enter(model, PAWL_FAILED, PAWL_REASON_START_BY,
                reaped != NULL ? reaped->seq : model->since_seq);
}

void check_cancel_ready(struct check_model *model, const struct check_event *event,
                        int64_t finished_us)
{
    check_add_row(model, (struct check_row){
                             .outcome = PAWL_FAILED_FINAL,
                             .reason = PAWL_REASON_CANCELLED,
                             .ended_by = PAWL_ENDED_BY_OPERATOR,
                             .finished_us = finished_us,
                             .cause = event,
                         });
    check_enter(model, PAWL_FAILED, PAWL_REASON_CANCELLED, event->seq);
}

void check_redrive(struct check_model *model, int64_t due_us, uint32_t seq)
{
    check_enter(model, PAWL_READY, model->reason, seq);
    model->retries = model->lost = model->lost_in_a_row = 0;
    model->due_us = due_us;
    model->start_by_us = 0;
}

/* ---------------------------------------------------------------- unseen changes */

/* One unseen change that leads on to `state`; false: there is none. */
static bool drift(struct check_model *model, const struct check_event *event, pawl_state state)
{
    if (model->state == PAWL_IN_FLIGHT && check_can_expire(model, event)) {
        check_expire(model, event, NULL);
        return true;
    }
    if (model->state == PAWL_FAILED && state != PAWL_FAILED &&
        model->redrive_seq > model->since_seq) {
        check_redrive(model, DUE_UNKNOWN, model->since_seq);
        check_join(model, NULL);
        return true;
    }
    if (model->state != PAWL_READY || state != PAWL_FAILED)
        return false;
    const struct check_event *row = check_next_row(model);
    bool is_cancel_possible = !model->job->has_ledger && model->cancel_seq > model->since_seq;
    bool is_miss_told = row != NULL && row->ended_by == PAWL_ENDED_BY_DEADLINE;
    if (can_miss(model, event) && (is_miss_told || !is_cancel_possible)) {
        check_miss(model, event, NULL);
        return true;
    }
    if (is_cancel_possible)
        check_cancel_ready(model, event, 0);
    return is_cancel_possible;
}

/* Unseen changes that the ledger tells of, as far as it must have got by now. Changes by filter are
 * known from it already: see cancel_where(). */
static void catch_up(struct check_model *model, const struct check_event *event, int64_t attempts)
{
    while (model->attempts < attempts) {
        const struct check_event *row = check_next_row(model);
        if (row == NULL)
            return;
        if (model->state == PAWL_IN_FLIGHT) {
            if (!is_expiry_of(row, model->lease) || !check_can_expire(model, event))
                return;
            check_expire(model, event, NULL);
            continue;
        }
        if (row->ended_by != PAWL_ENDED_BY_DEADLINE)
            return;
        if (model->state == PAWL_FAILED && !drift(model, event, PAWL_READY))
            return;
        if (model->state != PAWL_READY || !can_miss(model, event))
            return;
        check_miss(model, event, NULL);
    }
}

bool check_become(struct check_model *model, const struct check_event *event, pawl_state state,
                  int64_t attempts)
{
    if (model->job->has_ledger)
        catch_up(model, event, attempts);
    /* Expiry, redrive, cancel or miss, and once more for a job that went round by filter. */
    for (int i = 0; i < 4 && model->state != state; i++) {
        if (!drift(model, event, state))
            return false;
    }
    return model->state == state;
}

/* ---------------------------------------------------------------- changes by filter */

bool check_is_cancelled_at(const struct check_model *model, int64_t store_us)
{
    const struct check_event *row = check_next_row(model);
    if (row != NULL && (row->ended_by == PAWL_ENDED_BY_EXPIRY && model->state == PAWL_IN_FLIGHT))
        row = ledger_row(model, model->attempts + 2);
    return row != NULL && row->ended_by == PAWL_ENDED_BY_OPERATOR &&
           row->u.attempt.finished_us == store_us;
}

static void cancel_where(struct check_model *model, const struct check_where *where)
{
    model->cancel_seq = where->seq;
    if (check_is_cancelled_at(model, where->store_us)) {
        struct check_event *event = check_alloc(model->book, sizeof(*event));
        if (event == NULL)
            return;
        *event = (struct check_event){.job = model->job,
                                      .seq = where->seq,
                                      .verb = PAWLI_VERB_CANCEL,
                                      .at_us = where->at_us,
                                      .until_us = where->at_us,
                                      .store_us = where->store_us};
        if (check_become(model, event, PAWL_READY, -1))
            check_cancel_ready(model, event, where->store_us);
        return;
    }
    if (model->state == PAWL_IN_FLIGHT && !model->lease->is_cancel_asked)
        model->lease->is_cancel_possible = true;
}

void check_wheres(struct check_model *model, uint32_t seq)
{
    for (; model->where != NULL && model->where->seq < seq; model->where = model->where->next) {
        const struct check_where *where = model->where;
        if (!model->is_enqueued || where->verb == PAWLI_VERB_PRUNE)
            continue;
        if (where->queue != NULL && where->queue != model->job->queue)
            continue;
        model->has_guessed = model->has_guessed || !model->job->has_ledger;
        if (where->verb == PAWLI_VERB_CANCEL)
            cancel_where(model, where);
        else if (where->verb == PAWLI_VERB_REDRIVE)
            model->redrive_seq = where->seq;
        else
            model->discard_seq = where->seq;
    }
}

bool check_may_be_pruned(const struct check_book *book, uint32_t terminal_seq, uint32_t seq)
{
    for (const struct check_where *where = book->wheres; where != NULL; where = where->next) {
        if (where->verb == PAWLI_VERB_PRUNE && where->seq > terminal_seq && where->seq < seq)
            return true;
    }
    return false;
}

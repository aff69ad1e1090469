/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * pump_answers.c - what the store answered, turned into the keeper's events.
 * Owns:  putting claimed jobs into slots; what the watcher learns of verdicts.
 * Never: believes an answer more than the keeper does: late ones are handed on as they are.
 * Locks: all of it runs under pump.mutex.
 */
#include "runtime/pump_inside.h"

#include "base/text.h"

#include <assert.h>
#include <string.h>

static void note_confirmed(struct pawli_pump *pump, const pawl_lease *lease, pawl_mono sent_at,
                           int64_t lease_ms)
{
    pawli_pump_note(pump, (struct pawli_trace_note){.kind = PAWLI_NOTE_CONFIRMED,
                                                    .job = lease->job,
                                                    .version = lease->version,
                                                    .a = sent_at.us,
                                                    .b = lease_ms});
}

/* ---------------------------------------------------------------- claimed jobs */

static void fill_grants(struct caller *caller, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const pawl_job *job = &caller->jobs[i];
        caller->grants[i] = (struct pawli_grant){
            .line = pawli_pump_find_line(caller->pump, job->queue),
            .lease = {.job = job->id,
                      .token = job->token,
                      .version = job->lease_version,
                      .place = job->place},
            .lease_ms = job->lease_ms,
            .timeout_ms = job->timeout_ms,
        };
    }
}

/* Each job goes into its slot; what the keeper does not take goes. */
static void put_jobs(struct caller *caller, size_t count, const struct lane *lane, bool is_claim)
{
    struct pawli_pump *pump = caller->pump;
    for (size_t i = 0; i < count; i++) {
        struct pawli_slot slot = caller->slots[i];
        if (slot.index == PAWLI_SLOT_NONE) {
            pawl_job_clear(&caller->jobs[i]);
            continue;
        }
        struct held *held = &pump->held[slot.index];
        assert(!held->is_used);
        *held = (struct held){
            .is_used = true,
            .generation = slot.generation,
            .line = caller->grants[i].line,
            .lease = caller->grants[i].lease,
            .attempt = caller->jobs[i].attempts + 1,
            .due_at = caller->jobs[i].due_at,
            .retries_left = caller->jobs[i].max_retries - caller->jobs[i].retries,
            .wire_sends = PAWL_SENDS_UNKNOWN,
            .has_job = true,
            .job = caller->jobs[i],
        };
        if (is_claim)
            note_confirmed(pump, &held->lease, lane->out.sent_at, caller->grants[i].lease_ms);
    }
}

/* Whether the store may have stopped because another payload like these would have been too much.
 * Then lines that gave less than they were asked for may have more. */
static bool is_cut_short(const struct caller *caller, size_t count)
{
    size_t bytes = 0;
    size_t largest = 0;
    for (size_t i = 0; i < count; i++) {
        size_t len = caller->jobs[i].payload_len;
        bytes += len;
        largest = len > largest ? len : largest;
    }
    return bytes + largest > (size_t)CLAIM_BYTES_MAX;
}

static void answer_claim(struct caller *caller, struct lane *lane)
{
    struct pawli_pump *pump = caller->pump;
    size_t count = caller->jobs_count;
    bool has_more = is_cut_short(caller, count);
    fill_grants(caller, count);
    pawli_keeper_on_claimed(pump->keeper, pawli_pump_now(pump), lane->out.request, caller->grants,
                            count, caller->slots);
    put_jobs(caller, count, lane, true);
    if (has_more)
        pawli_keeper_on_wake(pump->keeper, pawli_pump_now(pump));
}

void pawli_answer_mine(struct caller *caller, struct lane *lane, bool is_last)
{
    struct pawli_pump *pump = caller->pump;
    size_t count = caller->jobs_count;
    fill_grants(caller, count);
    struct pawli_mine_page page = {
        .grants = caller->grants, .grants_count = count, .is_last = is_last};
    pawli_keeper_on_mine(pump->keeper, pawli_pump_now(pump), lane->out.request, &page,
                         caller->slots);
    put_jobs(caller, count, lane, false);
}

/* ---------------------------------------------------------------- verdicts */

static void tell_verdict(struct pawli_pump *pump, const struct held *held, pawl_event event,
                         const char *subject)
{
    if (!pawli_watch_wants(pump->watch, event.level))
        return;
    pawli_pump_fill(pump, held, &event);
    (void)pawli_text_copy(event.subject, sizeof(event.subject), subject); /* fits */
    pawli_watch_tell(pump->watch, &event);
}

static void tell_refused(struct pawli_pump *pump, const struct held *held, pawl_code code)
{
    tell_verdict(
        pump, held,
        (pawl_event){.kind = PAWL_EVENT_RENEW_REFUSED, .level = PAWL_LEVEL_WARN, .code = code},
        NULL);
}

void pawli_pump_tell_unrenewed(struct pawli_pump *pump, const struct order *order, pawl_code code)
{
    if (order->kind != PAWLI_ACTION_RENEW)
        return;
    for (size_t i = 0; i < order->items_count; i++) {
        struct held *held = pawli_pump_find(pump, order->items[i].slot);
        if (held == NULL || held->is_renewal_failed)
            continue;
        held->is_renewal_failed = true;
        tell_verdict(
            pump, held,
            (pawl_event){.kind = PAWL_EVENT_RENEW_FAILED, .level = PAWL_LEVEL_WARN, .code = code},
            NULL);
    }
}

static void answer_renewal(struct caller *caller, struct lane *lane)
{
    struct pawli_pump *pump = caller->pump;
    const struct order *order = &lane->out;
    const pawl_renewed *results = caller->results;
    for (size_t i = 0; i < order->items_count; i++) {
        struct held *held = pawli_pump_find(pump, order->items[i].slot);
        caller->verdicts[i] = (struct pawli_verdict){
            .slot = order->items[i].slot, .code = results[i].code, .lease_ms = results[i].lease_ms};
        if (held != NULL && !lane->is_overdue)
            held->is_renewal_failed = false;
        if (held != NULL && results[i].code != PAWL_OK)
            tell_refused(pump, held, results[i].code);
        else if (held != NULL && !lane->is_overdue)
            note_confirmed(pump, &held->lease, order->sent_at, results[i].lease_ms);
    }
    pawli_keeper_on_renewed(pump->keeper, pawli_pump_now(pump), order->request, caller->verdicts,
                            order->items_count);
}

/* What the attempt came to, by what was asked and what the job has become. */
static const char *outcome_of(const struct pawli_action_item *item, const struct held *held,
                              pawl_state state, const char **ret_reason)
{
    bool is_over = state == PAWL_FAILED;
    /* Only a cancellation ends a job that asked to go on, and could. */
    bool is_cancelled = is_over && item->action != PAWL_FAIL &&
                        (item->action == PAWL_SNOOZE || held->retries_left > 0);
    is_cancelled = is_cancelled || (is_over && item->reason == PAWL_REASON_CANCELLED);
    pawl_reason reason = is_cancelled ? PAWL_REASON_CANCELLED : item->reason;
    if (is_over && !is_cancelled && item->action == PAWL_RETRY)
        reason = PAWL_REASON_EXHAUSTED; /* whatever the last attempt ended with */
    else if (reason == PAWL_REASON_NONE)
        reason = item->action == PAWL_RETRY    ? PAWL_REASON_ERROR
                 : item->action == PAWL_FAIL   ? PAWL_REASON_FATAL
                 : item->action == PAWL_SNOOZE ? PAWL_REASON_SNOOZE
                                               : PAWL_REASON_NONE;
    *ret_reason = reason != PAWL_REASON_NONE ? pawl_reason_name(reason) : "";
    if (is_over)
        return is_cancelled ? "cancelled" : "failed";
    return item->action == PAWL_RETRY    ? "retried"
           : item->action == PAWL_SNOOZE ? "snoozed"
                                         : "succeeded";
}

static void tell_settled(struct pawli_pump *pump, const struct held *held,
                         const struct pawli_action_item *item, pawl_state state)
{
    const char *reason = "";
    const char *outcome = outcome_of(item, held, state, &reason);
    tell_verdict(pump, held,
                 (pawl_event){.kind = PAWL_EVENT_JOB_SETTLED,
                              .level = state == PAWL_FAILED         ? PAWL_LEVEL_WARN
                                       : item->action == PAWL_RETRY ? PAWL_LEVEL_INFO
                                                                    : PAWL_LEVEL_DEBUG,
                              .reason = reason},
                 outcome);
}

/* One that may have been done before finds nothing left to release, which is as good: no lease was
 * lost, and nobody came too late. The keeper says that it is released. */
static bool is_done_before(const struct order *order, size_t i, pawl_code code)
{
    return order->kind == PAWLI_ACTION_RELEASE && order->items[i].is_repeat &&
           (code == PAWL_STALE || code == PAWL_GONE);
}

/* Under the lock, before the keeper learns of it: then the slot is free. */
static void tell_settles(struct caller *caller, const struct lane *lane)
{
    struct pawli_pump *pump = caller->pump;
    const struct order *order = &lane->out;
    bool is_settle = order->kind == PAWLI_ACTION_SETTLE;
    const pawl_settled *settled = caller->results;
    for (size_t i = 0; i < order->items_count && !lane->is_overdue; i++) {
        const struct held *held = pawli_pump_find(pump, order->items[i].slot);
        pawl_code code = caller->verdicts[i].code;
        if (held == NULL || is_done_before(order, i, code))
            continue;
        if (code != PAWL_OK)
            tell_verdict(pump, held,
                         (pawl_event){.kind = PAWL_EVENT_SETTLE_REFUSED,
                                      .level = PAWL_LEVEL_WARN,
                                      .code = code},
                         pawli_pump_verb(order->kind));
        else if (is_settle)
            tell_settled(pump, held, &order->items[i], settled[i].state);
    }
}

static void answer_settle(struct caller *caller, struct lane *lane)
{
    struct pawli_pump *pump = caller->pump;
    const struct order *order = &lane->out;
    const pawl_settled *settled = caller->results;
    const pawl_code *released = caller->results;
    bool is_settle = order->kind == PAWLI_ACTION_SETTLE;
    for (size_t i = 0; i < order->items_count; i++)
        caller->verdicts[i] = (struct pawli_verdict){
            .slot = order->items[i].slot, .code = is_settle ? settled[i].code : released[i]};
    tell_settles(caller, lane);
    if (is_settle)
        pawli_keeper_on_settled(pump->keeper, pawli_pump_now(pump), order->request,
                                caller->verdicts, order->items_count);
    else
        pawli_keeper_on_released(pump->keeper, pawli_pump_now(pump), order->request,
                                 caller->verdicts, order->items_count);
}

void pawli_answer_order(struct caller *caller, struct lane *lane, pawl_code code)
{
    struct pawli_pump *pump = caller->pump;
    if (code != PAWL_OK) {
        pawli_pump_tell_unrenewed(pump, &lane->out, code);
        pawli_keeper_on_call_failed(pump->keeper, pawli_pump_now(pump), lane->out.request, code);
        return;
    }
    switch (lane->out.kind) {
    case PAWLI_ACTION_CLAIM:
        answer_claim(caller, lane);
        break;
    case PAWLI_ACTION_MINE:
        pawli_answer_mine(caller, lane, true);
        break;
    case PAWLI_ACTION_RENEW:
        answer_renewal(caller, lane);
        break;
    default:
        answer_settle(caller, lane);
        break;
    }
}

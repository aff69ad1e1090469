/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * keeper_settle.c - what becomes of a job when its handler has ended, or when it is given back
 *                   unstarted.
 * Owns:  the outstanding settle and the outstanding release.
 * Never: settles what a lost lease or a failed beat has stopped (K2); takes a lost reply for an
 *        answer (K4).
 */
#include "core/keeper_table.h"

#include <assert.h>
#include <string.h>

#define COMPANY_PART 4 /* where such a part of all, or of a line, has ended, it is company enough */

/* ---------------------------------------------------------------- a handler has ended */

/* A delay that the store will take: one bad answer of a handler must not spoil a whole batch. */
static int64_t bounded_delay(int64_t delay_ms)
{
    if (delay_ms < 0)
        return 0;
    return delay_ms < PAWL_DURATION_MAX_MS ? delay_ms : PAWL_DURATION_MAX_MS;
}

/* Whether a good part of a line has ended since the last settle, with one more. */
static bool is_well_ended(const struct pawli_keeper *keeper, struct line *line)
{
    if (line->ended_round != keeper->settle_round)
        line->ended = 0;
    line->ended_round = keeper->settle_round;
    line->ended++;
    return line->ended * COMPANY_PART >= line->held;
}

/* What to settle, given why the handler may have been told to stop. */
static struct pawli_action_item outcome_of(const struct hold *hold, struct pawli_ended ended)
{
    struct pawli_action_item item = {.delay_ms = PAWL_DEFAULT};
    bool is_stopping = hold->abort_why == PAWLI_WHY_SHUTDOWN ||
                       hold->abort_why == PAWLI_WHY_ABORT_ALL;
    bool is_mutant_done = PAWLI_MUTANT(PAWLI_MUTANT_TIMEOUT_SUCCEEDS) &&
                          ended.result == PAWLI_RESULT_DONE;
    if (hold->abort_why == PAWLI_WHY_TIMEOUT && !is_mutant_done) {
        item.action = PAWL_RETRY; /* RES-6, whatever it answered after it was told to stop */
        item.reason = PAWL_REASON_TIMEOUT;
    } else if (ended.result == PAWLI_RESULT_DONE) {
        item.action = PAWL_SUCCEED;
    } else if (hold->abort_why == PAWLI_WHY_CANCELLED) {
        item.action = PAWL_FAIL;
        item.reason = PAWL_REASON_CANCELLED;
    } else if (ended.result == PAWLI_RESULT_FAIL) {
        item.action = PAWL_FAIL;
    } else if (ended.result == PAWLI_RESULT_SNOOZE) {
        item.action = PAWL_SNOOZE;
        item.delay_ms = bounded_delay(ended.delay_ms);
    } else if (is_stopping) {
        item.action = PAWL_SNOOZE; /* it failed because we stopped it: that uses no retry */
        item.reason = PAWL_REASON_SHUTDOWN;
        item.delay_ms = 0;
    } else {
        item.action = PAWL_RETRY;
        if (ended.delay_ms != PAWL_DEFAULT)
            item.delay_ms = bounded_delay(ended.delay_ms);
    }
    return item;
}

void pawli_keeper_on_ended(struct pawli_keeper *keeper, pawl_mono now, struct pawli_slot slot,
                           struct pawli_ended ended)
{
    pawli_keeper_look(keeper, now);
    struct hold *hold = pawli_hold_find(keeper, slot);
    if (hold == NULL || hold->state != HOLD_RUNNING)
        return;
    keeper->is_buffer_closed = false;
    if (ended.result == PAWLI_RESULT_SETTLED) {
        pawli_hold_over(keeper, hold, PAWLI_WHY_SETTLED_BY_HANDLER);
        return;
    }
    if (hold->is_lost && !PAWLI_MUTANT(PAWLI_MUTANT_ABORT_SETTLED)) {
        pawli_hold_over(keeper, hold, hold->abort_why);
        return;
    }
    hold->outcome = outcome_of(hold, ended);
    hold->outcome.slot = slot;
    hold->outcome.lease = hold->lease;
    if (is_well_ended(keeper, &keeper->lines[hold->line]))
        keeper->is_line_well_ended = true;
    pawli_hold_end(keeper, hold);
}

/* ---------------------------------------------------------------- sending */

/* Fill the action's items from `from`, at most `max`, and move them to `to`. */
static size_t take_items(struct pawli_keeper *keeper, struct hold_list *from, struct hold_list *to,
                         size_t max)
{
    size_t count = 0;
    struct hold *hold = NULL;
    if (max > keeper->action_items_max)
        max = keeper->action_items_max;
    if (TAILQ_FIRST(from) != NULL && TAILQ_FIRST(from)->is_alone)
        max = 1;
    while (count < max && (hold = TAILQ_FIRST(from)) != NULL) {
        if (count > 0 && hold->is_alone)
            break;
        pawli_hold_move(hold, to);
        struct pawli_action_item *item = &keeper->action_items[count++];
        if (hold->state == HOLD_ENDED)
            *item = hold->outcome;
        else
            *item = (struct pawli_action_item){.slot = {hold->index, hold->generation},
                                               .lease = hold->lease};
        item->is_repeat = hold->is_repeat;
    }
    return count;
}

/* When the settles that wait should go. */
static pawl_mono settles_due(const struct pawli_keeper *keeper)
{
    const struct hold *first = TAILQ_FIRST(&keeper->settles);
    if (first == NULL || keeper->settle.request != 0)
        return PAWLI_MONO_NEVER;
    pawl_mono due = first->ended_at;
    /* Of those that run, about as many end within the next moment as have ended in the last. Of a
     * line, others may wait for these, behind a key or its bound, whatever else runs. */
    bool is_company = keeper->settling >= (size_t)keeper->settings.settle_batch_max ||
                      keeper->settling * COMPANY_PART >= keeper->settling + keeper->running ||
                      keeper->is_line_well_ended;
    if (!is_company && !keeper->is_draining && first->is_beat_owed)
        due = pawli_mono_add_ms(due, keeper->settings.settle_linger_ms);
    return pawli_mono_is_before(due, keeper->settle.retry_at) ? keeper->settle.retry_at : due;
}

static pawl_mono releases_due(const struct pawli_keeper *keeper)
{
    if (TAILQ_EMPTY(&keeper->releases) || keeper->release.request != 0)
        return PAWLI_MONO_NEVER;
    return keeper->release.retry_at;
}

pawl_mono pawli_settle_deadline(const struct pawli_keeper *keeper)
{
    return pawli_mono_min(settles_due(keeper), releases_due(keeper));
}

bool pawli_settle_next(struct pawli_keeper *keeper, struct pawli_action *ret_action)
{
    pawl_mono due = settles_due(keeper);
    if (pawli_mono_is_before(keeper->now, due))
        return false;
    bool is_repeat = TAILQ_FIRST(&keeper->settles)->is_repeat;
    size_t max = (size_t)keeper->settings.settle_batch_max;
    size_t count = take_items(keeper, &keeper->settles, &keeper->settles_sent, max);
    keeper->settle_round++;
    keeper->is_line_well_ended = false;

    pawli_call_open(keeper, &keeper->settle, ret_action);
    ret_action->kind = PAWLI_ACTION_SETTLE;
    ret_action->why = is_repeat ? PAWLI_WHY_REPEAT : PAWLI_WHY_ENDED;
    ret_action->items = keeper->action_items;
    ret_action->items_count = count;
    return true;
}

bool pawli_release_next(struct pawli_keeper *keeper, struct pawli_action *ret_action)
{
    pawl_mono due = releases_due(keeper);
    if (pawli_mono_is_before(keeper->now, due))
        return false;
    const struct hold *first = TAILQ_FIRST(&keeper->releases);
    enum pawli_why why = first->is_repeat ? PAWLI_WHY_REPEAT : first->why;
    size_t max = (size_t)keeper->settings.settle_batch_max;
    size_t count = take_items(keeper, &keeper->releases, &keeper->releases_sent, max);

    pawli_call_open(keeper, &keeper->release, ret_action);
    ret_action->kind = PAWLI_ACTION_RELEASE;
    ret_action->why = why;
    ret_action->items = keeper->action_items;
    ret_action->items_count = count;
    return true;
}

/* ---------------------------------------------------------------- answers */

static enum pawli_why why_over(const struct hold *hold, pawl_code code)
{
    bool is_settle = hold->state == HOLD_ENDED;
    if (code == PAWL_OK)
        return is_settle ? PAWLI_WHY_SETTLED : PAWLI_WHY_RELEASED;
    if (code == PAWL_STALE || code == PAWL_GONE)
        /* A release that may have been done before finds nothing left to release. */
        return !is_settle && hold->is_repeat ? PAWLI_WHY_RELEASED : PAWLI_WHY_FENCED;
    return PAWLI_WHY_REFUSED;
}

/*
 * The call as a whole went wrong: what it carried is sent again. Where it was refused as invalid,
 * each goes by itself, so that only the one that spoils it is dropped.
 */
static void send_again(struct pawli_keeper *keeper, struct hold_list *sent, struct hold_list *to,
                       pawl_code code)
{
    struct hold *hold = TAILQ_FIRST(sent);
    bool is_single = hold != NULL && TAILQ_NEXT(hold, place) == NULL;
    while ((hold = TAILQ_FIRST(sent)) != NULL) {
        bool is_mutant_done = PAWLI_MUTANT(PAWLI_MUTANT_UNKNOWN_IS_DONE) && code == PAWL_UNKNOWN &&
                              hold->state == HOLD_ENDED;
        if (code == PAWL_INVALID && is_single) {
            pawli_hold_over(keeper, hold, PAWLI_WHY_REFUSED);
        } else if (is_mutant_done) {
            pawli_hold_over(keeper, hold, PAWLI_WHY_SETTLED);
        } else {
            hold->is_alone = hold->is_alone || code == PAWL_INVALID;
            hold->is_repeat = hold->is_repeat || code == PAWL_UNKNOWN;
            pawli_hold_move(hold, to);
        }
    }
}

static void answer(struct pawli_keeper *keeper, const struct pawli_verdict *verdicts, size_t count,
                   struct hold_list *sent, struct hold_list *again)
{
    for (size_t i = 0; i < count; i++) {
        struct hold *hold = pawli_hold_find(keeper, verdicts[i].slot);
        if (hold != NULL && hold->in == sent)
            pawli_hold_over(keeper, hold, why_over(hold, verdicts[i].code));
    }
    /* What got no verdict (it was held back before the call, or the answer was short) is sent
     * again. */
    send_again(keeper, sent, again, PAWL_UNKNOWN);
}

void pawli_keeper_on_settled(struct pawli_keeper *keeper, pawl_mono now, uint64_t request,
                             const struct pawli_verdict *verdicts, size_t verdicts_count)
{
    assert(verdicts_count == 0 || verdicts != NULL);
    pawli_keeper_look(keeper, now);
    if (!pawli_call_is_open(&keeper->settle, request))
        return;
    pawli_call_answered(&keeper->settle);
    answer(keeper, verdicts, verdicts_count, &keeper->settles_sent, &keeper->settles);
}

void pawli_keeper_on_released(struct pawli_keeper *keeper, pawl_mono now, uint64_t request,
                              const struct pawli_verdict *verdicts, size_t verdicts_count)
{
    assert(verdicts_count == 0 || verdicts != NULL);
    pawli_keeper_look(keeper, now);
    if (!pawli_call_is_open(&keeper->release, request))
        return;
    pawli_call_answered(&keeper->release);
    answer(keeper, verdicts, verdicts_count, &keeper->releases_sent, &keeper->releases);
}

/* The store is there where it calls something invalid: no need to wait. */
static void call_failed(struct pawli_keeper *keeper, struct call *call, pawl_code code)
{
    if (code == PAWL_INVALID)
        pawli_call_answered(call);
    else
        pawli_call_failed(keeper, call);
}

void pawli_settle_failed(struct pawli_keeper *keeper, pawl_code code)
{
    call_failed(keeper, &keeper->settle, code);
    send_again(keeper, &keeper->settles_sent, &keeper->settles, code);
}

void pawli_release_failed(struct pawli_keeper *keeper, pawl_code code)
{
    call_failed(keeper, &keeper->release, code);
    send_again(keeper, &keeper->releases_sent, &keeper->releases, code);
}

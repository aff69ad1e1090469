/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * keeper_beat.c - renewing leases.
 * Owns:  the outstanding renewal and what its answer means for each job.
 * Never: decides that a beat has failed by time (keeper_hold.c does, at every look at the clock).
 */
#include "core/keeper_table.h"

#include <assert.h>
#include <string.h>

#define BEAT_TRIES 8 /* a beat that failed is tried again after this part of its interval */

static bool is_unstarted(const struct hold *hold)
{
    return hold->state == HOLD_BUFFERED || hold->state == HOLD_RETURNING;
}

/*
 * Half the shortest interval of all that is held: a call that hangs leaves time for another try of
 * every beat (RES-10), also of those that wait for this call to end.
 */
static int64_t call_timeout_ms(const struct pawli_keeper *keeper)
{
    int64_t call_ms = keeper->settings.call_timeout_ms;
    for (size_t i = 0; i < keeper->holds_count; i++) {
        const struct hold *hold = &keeper->holds[i];
        bool is_held = hold->state != HOLD_FREE && hold->state != HOLD_OVER;
        if (is_held && hold->interval_ms / 2 < call_ms)
            call_ms = hold->interval_ms / 2;
    }
    return call_ms > 0 ? call_ms : 1;
}

bool pawli_beat_next(struct pawli_keeper *keeper, struct pawli_action *ret_action)
{
    struct hold *first = TAILQ_FIRST(&keeper->beats);
    if (keeper->renew.request != 0 || first == NULL)
        return false;

    size_t max = (size_t)keeper->settings.renew_batch_max;
    if (max > keeper->action_items_max)
        max = keeper->action_items_max;
    size_t count = 0;
    enum pawli_why why = first->must_confirm ? PAWLI_WHY_ADOPT : PAWLI_WHY_BEAT;
    struct hold *hold = NULL;
    while (count < max && (hold = TAILQ_FIRST(&keeper->beats)) != NULL) {
        pawli_hold_move_beat(hold, &keeper->beats_sent);
        hold->is_beat_unstarted = is_unstarted(hold);
        keeper->action_items[count++] = (struct pawli_action_item){
            .slot = {hold->index, hold->generation},
            .lease = hold->lease,
            .is_unstarted = hold->is_beat_unstarted,
        };
        hold->lease.place = 0; /* a store may put it elsewhere for that */
        hold->outcome.lease.place = 0;
    }

    pawli_call_open(keeper, &keeper->renew, ret_action);
    ret_action->kind = PAWLI_ACTION_RENEW;
    ret_action->why = why;
    ret_action->deadline = pawli_mono_add_ms(keeper->now, call_timeout_ms(keeper));
    ret_action->items = keeper->action_items;
    ret_action->items_count = count;
    return true;
}

/* The lease stands: counted from when we asked (K1). */
static void beat_ok(struct pawli_keeper *keeper, struct hold *hold, int64_t lease_ms)
{
    if (hold->is_lost)
        return; /* too late: its work has been told to stop (K2) */
    pawli_hold_confirm(keeper, hold, keeper->renew.sent_at,
                       lease_ms > 0 ? lease_ms : hold->lease_ms);
    if (hold->is_beat_unstarted) {
        hold->run_from = keeper->renew.sent_at;
        hold->refreshed_at = keeper->now;
    }
    hold->must_confirm = false;
    hold->is_adopted = false;
    if (hold->state == HOLD_BUFFERED && hold->confirm_why != PAWLI_WHY_NONE)
        pawli_hold_return(keeper, hold, hold->confirm_why);
    else if (hold->state == HOLD_BUFFERED)
        pawli_hold_place(keeper, hold);
    pawli_hold_rearm(keeper, hold);
}

/* The store will not extend it, but the lease still stands until its end: stop, and settle before
 * that. */
static void beat_over(struct pawli_keeper *keeper, struct hold *hold, enum pawli_why why)
{
    hold->is_beat_owed = false;
    if (hold->state == HOLD_BUFFERED)
        pawli_hold_return(keeper, hold, why);
    else if (hold->state == HOLD_RUNNING)
        pawli_hold_abort(keeper, hold, why);
    pawli_hold_rearm(keeper, hold);
}

static void lose_all(struct pawli_keeper *keeper)
{
    for (size_t i = 0; i < keeper->holds_count; i++) {
        enum hold_state state = keeper->holds[i].state;
        if (state != HOLD_FREE && state != HOLD_OVER)
            pawli_hold_lose(keeper, &keeper->holds[i], PAWLI_WHY_LEASE_LOST);
    }
}

/* The lease is not ours: this job ends, and no other (K8). */
static void beat_refused(struct pawli_keeper *keeper, struct hold *hold)
{
    if (PAWLI_MUTANT(PAWLI_MUTANT_REFUSAL_ABORTS_ALL)) {
        lose_all(keeper);
        return;
    }
    bool is_under_way = hold->in == &keeper->settles_sent || hold->in == &keeper->releases_sent;
    if (is_under_way || hold->is_repeat) {
        /* Our own settle or release may be what ended it: its answer will tell. No more beats until
         * then. */
        hold->beat_at = PAWLI_MONO_NEVER;
        pawli_hold_rearm(keeper, hold);
        return;
    }
    pawli_hold_lose(keeper, hold, PAWLI_WHY_LEASE_LOST);
}

static void beat_again(struct pawli_keeper *keeper, struct hold *hold)
{
    int64_t gap_us = hold->interval_ms * 1000 / BEAT_TRIES;
    if (PAWLI_MUTANT(PAWLI_MUTANT_BEAT_TRIED_ONCE))
        gap_us = hold->interval_ms * 1000;
    hold->beat_at = (pawl_mono){keeper->now.us + (gap_us > 0 ? gap_us : 1)};
    pawli_hold_move_beat(hold, NULL);
    pawli_hold_rearm(keeper, hold);
}

static void beat_verdict(struct pawli_keeper *keeper, const struct pawli_verdict *verdict)
{
    struct hold *hold = pawli_hold_find(keeper, verdict->slot);
    if (hold == NULL)
        return;
    pawli_hold_move_beat(hold, NULL);
    switch (verdict->code) {
    case PAWL_OK:
        beat_ok(keeper, hold, verdict->lease_ms);
        break;
    case PAWL_CANCELLED:
        beat_over(keeper, hold, PAWLI_WHY_CANCELLED);
        break;
    case PAWL_TIMEOUT:
        beat_over(keeper, hold, PAWLI_WHY_TIMEOUT);
        break;
    default:
        beat_refused(keeper, hold);
        break;
    }
}

void pawli_beat_failed(struct pawli_keeper *keeper)
{
    struct hold *hold = NULL;
    pawli_call_answered(&keeper->renew); /* beats keep their own pace: no growing delay */
    while ((hold = TAILQ_FIRST(&keeper->beats_sent)) != NULL)
        beat_again(keeper, hold);
}

void pawli_keeper_on_renewed(struct pawli_keeper *keeper, pawl_mono now, uint64_t request,
                             const struct pawli_verdict *verdicts, size_t verdicts_count)
{
    assert(verdicts_count == 0 || verdicts != NULL);
    pawli_keeper_look(keeper, now);
    if (!pawli_call_is_open(&keeper->renew, request))
        return; /* an answer to a call that was given up: it proves nothing that we still need */
    for (size_t i = 0; i < verdicts_count; i++)
        beat_verdict(keeper, &verdicts[i]);
    pawli_beat_failed(keeper); /* whatever got no verdict */
}

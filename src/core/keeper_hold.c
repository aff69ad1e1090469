/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * keeper_hold.c - the keeper's table of held jobs: where each is in its life, how long its lease
 *                 may be relied on, and when to look at it again.
 * Owns:  struct hold, the lists it stands in, the heap of alarms.
 * Never: talks to a store; decides what to claim or to send (keeper_claim.c, keeper_beat.c,
 *        keeper_settle.c do).
 */
#include "core/keeper_table.h"
#include "core/policy.h"

#include <assert.h>
#include <string.h>

#define BEATS_PER_INTERVAL \
    8 /* beats fall on a grid of this fineness, so that those of many jobs share a call */

/* ---------------------------------------------------------------- the heap of alarms */

static void heap_put(struct pawli_keeper *keeper, size_t at, struct hold *hold)
{
    keeper->heap[at] = hold;
    hold->heap_at = at;
}

static void heap_rise(struct pawli_keeper *keeper, struct hold *hold)
{
    size_t at = hold->heap_at;
    while (at > 0) {
        size_t parent = (at - 1) / 2;
        if (!pawli_mono_is_before(hold->alarm, keeper->heap[parent]->alarm))
            break;
        heap_put(keeper, at, keeper->heap[parent]);
        at = parent;
    }
    heap_put(keeper, at, hold);
}

static void heap_sink(struct pawli_keeper *keeper, struct hold *hold)
{
    size_t at = hold->heap_at;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= keeper->heap_count)
            break;
        if (child + 1 < keeper->heap_count &&
            pawli_mono_is_before(keeper->heap[child + 1]->alarm, keeper->heap[child]->alarm))
            child++;
        if (!pawli_mono_is_before(keeper->heap[child]->alarm, hold->alarm))
            break;
        heap_put(keeper, at, keeper->heap[child]);
        at = child;
    }
    heap_put(keeper, at, hold);
}

static void heap_remove(struct pawli_keeper *keeper, struct hold *hold)
{
    assert(keeper->heap_count > 0);
    assert(keeper->heap[hold->heap_at] == hold);
    struct hold *last = keeper->heap[--keeper->heap_count];
    if (last == hold)
        return;
    heap_put(keeper, hold->heap_at, last);
    heap_rise(keeper, last);
    heap_sink(keeper, last);
}

/* ---------------------------------------------------------------- limits */

/* The last moment before which the store cannot call the lease expired, one interval kept for
 * clocks that differ. */
static pawl_mono lease_end(const struct hold *hold)
{
    return pawli_mono_add_ms(hold->lease_from, hold->lease_ms - hold->interval_ms);
}

/* Where the beat that is due has failed: RES-10, K2. */
static pawl_mono beat_failed_at(const struct hold *hold)
{
    return pawli_mono_add_ms(hold->lease_from, 2 * hold->interval_ms);
}

pawl_mono pawli_hold_risk_at(const struct hold *hold)
{
    bool is_at_work = hold->state == HOLD_RUNNING || hold->state == HOLD_ENDED;
    if (PAWLI_MUTANT(PAWLI_MUTANT_SETTLE_AT_RISK) && hold->state == HOLD_ENDED)
        return PAWLI_MONO_NEVER;
    if (PAWLI_MUTANT(PAWLI_MUTANT_ABORT_SETTLED) && hold->state == HOLD_ENDED && hold->is_lost)
        return PAWLI_MONO_NEVER;
    /* What has not started has nothing to abort: its beats are tried on until the lease really
     * nears its end. */
    return is_at_work && hold->is_beat_owed ? beat_failed_at(hold) : lease_end(hold);
}

pawl_mono pawli_hold_run_until(const struct hold *hold)
{
    return pawli_mono_add_ms(hold->run_from, hold->timeout_ms);
}

static bool is_beat_wanted(const struct pawli_keeper *keeper, const struct hold *hold)
{
    if (PAWLI_MUTANT(PAWLI_MUTANT_NO_BEATS_AT_DRAIN) && keeper->is_draining)
        return false;
    if (PAWLI_MUTANT(PAWLI_MUTANT_BUFFER_NOT_RENEWED) && hold->state == HOLD_BUFFERED)
        return false;
    if (PAWLI_MUTANT(PAWLI_MUTANT_SETTLE_NOT_RENEWED) && hold->state == HOLD_ENDED)
        return false;
    (void)keeper; /* only the mutants ask it */
    return hold->is_beat_owed && hold->beat_in == NULL && !hold->is_lost;
}

/* Its handler has been told to stop, and has not been given up. */
static bool is_abort_told(const struct hold *hold)
{
    return hold->state == HOLD_RUNNING && hold->abort_why != PAWLI_WHY_NONE && !hold->is_given_up &&
           hold->signal != SIGNAL_ABORT;
}

static pawl_mono alarm_of(const struct pawli_keeper *keeper, const struct hold *hold)
{
    pawl_mono alarm = PAWLI_MONO_NEVER;
    if (!hold->is_lost)
        alarm = pawli_hold_risk_at(hold);
    if (is_beat_wanted(keeper, hold))
        alarm = pawli_mono_min(alarm, hold->beat_at);
    if (hold->state == HOLD_RUNNING && hold->abort_why == PAWLI_WHY_NONE)
        alarm = pawli_mono_min(alarm, pawli_hold_run_until(hold));
    if (is_abort_told(hold))
        alarm = pawli_mono_min(alarm, hold->kill_by);
    if (hold->state == HOLD_BUFFERED)
        alarm = pawli_mono_min(alarm, pawli_mono_add_ms(hold->held_since, hold->lease_ms));
    return alarm;
}

void pawli_hold_rearm(struct pawli_keeper *keeper, struct hold *hold)
{
    assert(hold->state != HOLD_FREE && hold->state != HOLD_OVER);
    hold->alarm = alarm_of(keeper, hold);
    heap_rise(keeper, hold);
    heap_sink(keeper, hold);
}

/* ---------------------------------------------------------------- life */

struct hold *pawli_hold_find(struct pawli_keeper *keeper, struct pawli_slot slot)
{
    if (slot.index >= keeper->holds_count)
        return NULL;
    struct hold *hold = &keeper->holds[slot.index];
    if (hold->generation != slot.generation || hold->state == HOLD_FREE || hold->state == HOLD_OVER)
        return NULL;
    return hold;
}

void pawli_hold_confirm(struct pawli_keeper *keeper, struct hold *hold, pawl_mono sent_at,
                        int64_t lease_ms)
{
    assert(lease_ms > 0);
    if (PAWLI_MUTANT(PAWLI_MUTANT_WATCHDOG_FROM_REPLY))
        sent_at = keeper->now;
    if (pawli_mono_is_before(sent_at, hold->lease_from))
        return;
    hold->lease_from = sent_at;
    hold->lease_ms = lease_ms;
    hold->interval_ms = pawli_heartbeat_ms(&keeper->settings, lease_ms);
    /* Never later than one interval after the request; at most a grid's width earlier. */
    int64_t grid_us = hold->interval_ms * 1000 / BEATS_PER_INTERVAL;
    pawl_mono due = pawli_mono_add_ms(sent_at, hold->interval_ms);
    hold->beat_at = grid_us > 0 ? (pawl_mono){due.us - due.us % grid_us} : due;
    if (lease_ms > keeper->lease_longest_ms)
        keeper->lease_longest_ms = lease_ms;
}

struct hold *pawli_hold_take(struct pawli_keeper *keeper, const struct pawli_grant *grant,
                             pawl_mono sent_at)
{
    struct hold *hold = TAILQ_FIRST(&keeper->free);
    assert(hold != NULL);
    assert(grant->line < keeper->lines_count);
    pawli_hold_move(hold, NULL);
    keeper->free_count--;

    uint32_t index = hold->index;
    uint32_t generation = hold->generation;
    *hold = (struct hold){.index = index, .generation = generation};
    hold->state = HOLD_BUFFERED;
    hold->line = grant->line;
    hold->lease = grant->lease;
    hold->is_beat_owed = true;
    hold->lease_from = sent_at;
    hold->timeout_ms = grant->timeout_ms;
    hold->run_from = sent_at;
    hold->held_since = keeper->now;
    pawli_hold_confirm(keeper, hold, sent_at, grant->lease_ms);

    keeper->buffered++;
    keeper->lines[hold->line].held++;
    pawli_hold_place(keeper, hold);
    heap_put(keeper, keeper->heap_count, hold);
    keeper->heap_count++;
    pawli_hold_rearm(keeper, hold);
    return hold;
}

void pawli_hold_move(struct hold *hold, struct hold_list *to)
{
    if (hold->in != NULL)
        TAILQ_REMOVE(hold->in, hold, place);
    hold->in = to;
    if (to != NULL)
        TAILQ_INSERT_TAIL(to, hold, place);
}

void pawli_hold_move_beat(struct hold *hold, struct hold_list *to)
{
    if (hold->beat_in != NULL)
        TAILQ_REMOVE(hold->beat_in, hold, beating);
    hold->beat_in = to;
    if (to != NULL)
        TAILQ_INSERT_TAIL(to, hold, beating);
}

void pawli_hold_place(struct pawli_keeper *keeper, struct hold *hold)
{
    assert(hold->state == HOLD_BUFFERED);
    bool is_startable = !hold->must_confirm && !keeper->is_all_paused &&
                        !keeper->lines[hold->line].is_paused;
    struct hold_list *list = is_startable ? &keeper->startable : &keeper->waiting;
    if (hold->in != list)
        pawli_hold_move(hold, list);
}

void pawli_hold_signal(struct pawli_keeper *keeper, struct hold *hold, enum hold_signal signal)
{
    if (hold->signal != SIGNAL_NONE)
        TAILQ_REMOVE(&keeper->signals, hold, signalling);
    hold->signal = signal;
    if (signal != SIGNAL_NONE)
        TAILQ_INSERT_TAIL(&keeper->signals, hold, signalling);
}

void pawli_hold_run(struct pawli_keeper *keeper, struct hold *hold)
{
    assert(hold->state == HOLD_BUFFERED);
    hold->state = HOLD_RUNNING;
    pawli_hold_move(hold, NULL);
    keeper->buffered--;
    keeper->running++;
    pawli_hold_rearm(keeper, hold);
}

void pawli_hold_end(struct pawli_keeper *keeper, struct hold *hold)
{
    assert(hold->state == HOLD_RUNNING);
    pawli_hold_signal(keeper, hold, SIGNAL_NONE);
    hold->state = HOLD_ENDED;
    hold->ended_at = keeper->now;
    pawli_hold_move(hold, &keeper->settles);
    if (!hold->is_beat_owed) { /* it cannot wait for company: its lease is not renewed any more */
        TAILQ_REMOVE(&keeper->settles, hold, place);
        TAILQ_INSERT_HEAD(&keeper->settles, hold, place);
    }
    keeper->running--;
    keeper->settling++;
    pawli_hold_rearm(keeper, hold);
}

void pawli_hold_return(struct pawli_keeper *keeper, struct hold *hold, enum pawli_why why)
{
    assert(hold->state == HOLD_BUFFERED);
    hold->state = HOLD_RETURNING;
    hold->why = why;
    pawli_hold_move(hold, &keeper->releases);
    keeper->buffered--;
    keeper->releasing++;
    pawli_hold_rearm(keeper, hold);
}

/* It was started, and the store did not accept its end: the lease may stand, or stand again. */
static bool is_burnt_by(const struct hold *hold, enum pawli_why why)
{
    bool is_started = hold->state == HOLD_RUNNING || hold->state == HOLD_ENDED;
    return is_started && why != PAWLI_WHY_SETTLED && why != PAWLI_WHY_SETTLED_BY_HANDLER;
}

void pawli_hold_over(struct pawli_keeper *keeper, struct hold *hold, enum pawli_why why)
{
    assert(hold->state != HOLD_FREE && hold->state != HOLD_OVER);
    if (is_burnt_by(hold, why))
        keeper->burnt[keeper->burnt_count++ % keeper->burnt_max] = (struct burnt){
            hold->lease.job, hold->lease.version};
    switch (hold->state) {
    case HOLD_BUFFERED:
        keeper->buffered--;
        break;
    case HOLD_RUNNING:
        keeper->running--;
        break;
    case HOLD_ENDED:
        keeper->settling--;
        break;
    default:
        keeper->releasing--;
        break;
    }
    heap_remove(keeper, hold);
    pawli_hold_move(hold, NULL);
    pawli_hold_move_beat(hold, NULL);
    hold->state = HOLD_OVER;
    hold->why = why;
    pawli_hold_signal(keeper, hold, SIGNAL_OVER);
}

void pawli_hold_free(struct pawli_keeper *keeper, struct hold *hold)
{
    assert(hold->state == HOLD_OVER);
    pawli_hold_signal(keeper, hold, SIGNAL_NONE);
    hold->state = HOLD_FREE;
    hold->generation++;
    memset(&hold->lease, 0, sizeof(hold->lease)); /* its token is of no use to anybody now */
    keeper->lines[hold->line].held--;
    keeper->free_count++;
    pawli_hold_move(hold, &keeper->free);
    pawli_claim_room(keeper, &keeper->lines[hold->line]);
}

/* ---------------------------------------------------------------- aborts */

void pawli_hold_abort(struct pawli_keeper *keeper, struct hold *hold, enum pawli_why why)
{
    assert(hold->state == HOLD_RUNNING);
    assert(why != PAWLI_WHY_NONE);
    if (hold->abort_why != PAWLI_WHY_NONE)
        return;
    hold->abort_why = why;
    hold->why = why;
    pawl_mono grace_end = pawli_mono_add_ms(keeper->now, keeper->settings.grace_ms);
    hold->kill_by = pawli_mono_min(grace_end, lease_end(hold));
    if (pawli_mono_is_before(hold->kill_by, keeper->now))
        hold->kill_by = keeper->now;
    pawli_hold_signal(keeper, hold, SIGNAL_ABORT);
    pawli_hold_rearm(keeper, hold);
}

void pawli_hold_lose(struct pawli_keeper *keeper, struct hold *hold, enum pawli_why why)
{
    assert(hold->state != HOLD_FREE && hold->state != HOLD_OVER);
    if (hold->state != HOLD_RUNNING) {
        pawli_hold_over(keeper, hold, why);
        return;
    }
    hold->is_lost = true;
    pawli_hold_move_beat(hold, NULL);
    pawli_hold_abort(keeper, hold, why);
    hold->kill_by = pawli_mono_min(hold->kill_by, lease_end(hold));
    pawli_hold_rearm(keeper, hold);
}

/* It did not stop when it was told to: its slot stays taken, and nothing of it will be settled. */
static void give_up(struct pawli_keeper *keeper, struct hold *hold)
{
    hold->is_given_up = true;
    hold->is_lost = true;
    hold->is_beat_owed = false;
    pawli_hold_move_beat(hold, NULL);
    hold->why = PAWLI_WHY_ABORT_IGNORED;
    pawli_hold_signal(keeper, hold, SIGNAL_GIVE_UP);
}

/* ---------------------------------------------------------------- looking at the clock */

static bool is_past(const struct pawli_keeper *keeper, pawl_mono limit)
{
    return !pawli_mono_is_before(keeper->now, limit);
}

/* One hold whose alarm has come: the most serious first. */
static void look_at(struct pawli_keeper *keeper, struct hold *hold)
{
    if (!hold->is_lost && is_past(keeper, pawli_hold_risk_at(hold))) {
        bool is_at_work = hold->state == HOLD_RUNNING && hold->is_beat_owed;
        pawli_hold_lose(keeper, hold, is_at_work ? PAWLI_WHY_BEAT_FAILED : PAWLI_WHY_AT_RISK);
        if (hold->state == HOLD_OVER)
            return;
    }
    if (hold->state == HOLD_RUNNING && hold->abort_why == PAWLI_WHY_NONE &&
        is_past(keeper, pawli_hold_run_until(hold))) {
        hold->is_beat_owed = false; /* the store refuses to renew past it: RES-6 */
        pawli_hold_move_beat(hold, NULL);
        pawli_hold_abort(keeper, hold, PAWLI_WHY_TIMEOUT);
    }
    if (is_abort_told(hold) && is_past(keeper, hold->kill_by))
        give_up(keeper, hold);
    if (hold->state == HOLD_BUFFERED &&
        is_past(keeper, pawli_mono_add_ms(hold->held_since, hold->lease_ms))) {
        keeper->is_buffer_closed = true;
        pawli_hold_return(keeper, hold, PAWLI_WHY_HELD_TOO_LONG);
    }
    if (is_beat_wanted(keeper, hold) && is_past(keeper, hold->beat_at))
        pawli_hold_move_beat(hold, &keeper->beats);
    pawli_hold_rearm(keeper, hold);
}

void pawli_keeper_look(struct pawli_keeper *keeper, pawl_mono now)
{
    if (pawli_mono_is_before(keeper->now, now))
        keeper->now = now;
    while (keeper->heap_count > 0 && is_past(keeper, keeper->heap[0]->alarm)) {
        struct hold *hold = keeper->heap[0];
        look_at(keeper, hold);
        assert(hold->state == HOLD_OVER || !is_past(keeper, hold->alarm));
    }
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * worker_calls.c - the calls that a simulated worker makes for its keeper, and their answers.
 * Owns:  turning the keeper's actions into calls, and answers into the keeper's events; what is
 *        kept per slot between the two.
 * Never: makes a call that the keeper did not ask for; sends what the keeper says may not be sent
 *        any more.
 */
#include "core/backoff.h"
#include "sim/world.h"

#include <assert.h>

/* ---------------------------------------------------------------- calls */

static void send(struct sim_world *world, struct sim_worker *worker, struct sim_call *call)
{
    enum pawli_trace_note_kind kind = call->verb == SIM_VERB_SETTLE ? PAWLI_NOTE_SEND_SETTLE
                                                                    : PAWLI_NOTE_SEND_RELEASE;
    if (call->verb == SIM_VERB_SETTLE || call->verb == SIM_VERB_RELEASE) {
        for (size_t i = 0; i < call->items_count; i++)
            sim_worker_note(world, worker, kind, &call->items[i].lease,
                            (int64_t)call->items[i].action);
    }
    sim_net_send(world, call);
}

/* Leave out what may not be sent any more. */
static void withhold(struct sim_world *world, struct sim_worker *worker, struct sim_call *call)
{
    size_t kept = 0;
    for (size_t i = 0; i < call->items_count; i++) {
        if (pawli_keeper_may_settle(worker->keeper, call->items[i].slot,
                                    sim_worker_now(world, worker)))
            call->items[kept++] = call->items[i];
        else
            sim_tally(&world->tallies, SIM_TALLY_SETTLE_WITHHELD);
    }
    call->items_count = kept;
}

/* A call that was decided on before a pause is made after it. */
static void on_held_call(struct sim_world *world, const struct sim_event *event)
{
    struct sim_call *call = world->net.calls[event->what];
    struct sim_worker *worker = &world->workers[event->who];
    if (worker->keeper == NULL || worker->incarnation != event->generation) {
        sim_net_drop(world, call);
        return;
    }
    if (sim_worker_misses(world, event))
        return;
    bool is_settling = call->verb == SIM_VERB_SETTLE || call->verb == SIM_VERB_RELEASE;
    if (is_settling)
        withhold(world, worker, call);
    if (world->now_us >= call->deadline_us || (is_settling && call->items_count == 0)) {
        /* Too late even to begin, or nothing left to say: the call is not made. */
        call->is_answered = true;
        sim_worker_answer(world, call, call->items_count == 0 && is_settling ? PAWL_OK : PAWL_DOWN);
        sim_net_drop(world, call);
        return;
    }
    send(world, worker, call);
}

static void send_or_hold(struct sim_world *world, struct sim_worker *worker, struct sim_call *call)
{
    if (!world->is_chaos || !sim_chance(&worker->dice, world->plan->held_ppm)) {
        send(world, worker, call);
        return;
    }
    sim_tally(&world->tallies, SIM_TALLY_HELD_CALL);
    int64_t lease_us = sim_ms(world->plan->lease_smallest_ms);
    sim_worker_pause(world, worker,
                     world->now_us + sim_between(&worker->dice, lease_us / 10, 2 * lease_us));
    sim_plan_event(world,
                   worker->paused_until_us - world->now_us + sim_between(&worker->dice, 0, 50),
                   (struct sim_event){.fn = on_held_call,
                                      .who = worker->index,
                                      .generation = worker->incarnation,
                                      .what = call->index});
}

/* ---------------------------------------------------------------- patience */

#define FAILURES_FREE 4 /* so many in a row may come as they like */

/* Beats have a pace of their own, and handlers' calls are not the keeper's: NULL. */
static struct sim_patience *patience_of(struct sim_worker *worker, enum sim_verb verb)
{
    switch (verb) {
    case SIM_VERB_CLAIM:
    case SIM_VERB_MINE:
        return &worker->patience[0];
    case SIM_VERB_SETTLE:
        return &worker->patience[1];
    case SIM_VERB_RELEASE:
        return &worker->patience[2];
    default:
        return NULL;
    }
}

/* A call was answered: each failure in a row is worth a longer wait, half its ceiling at least. */
static void count_failures(struct sim_world *world, struct sim_worker *worker, enum sim_verb verb,
                           pawl_code code)
{
    struct sim_patience *patience = patience_of(worker, verb);
    if (patience == NULL)
        return;
    if (code == PAWL_OK) {
        *patience = (struct sim_patience){0};
        return;
    }
    if (patience->failures == 0)
        patience->since = sim_worker_now(world, worker);
    int64_t most_ms = pawli_backoff_ceiling_ms(worker->settings.retry_base_ms,
                                               worker->settings.retry_max_ms, patience->failures);
    patience->owed_us += sim_ms(most_ms) / 2;
    patience->failures++;
}

/* Q-STORE-DOWN: calls that fail are repeated with growing delays. The history has no calls that the
 * store did not get, so they are counted here; half of what is owed is left to chance. */
static void check_patience(struct sim_world *world, struct sim_worker *worker, enum sim_verb verb)
{
    const struct sim_patience *patience = patience_of(worker, verb);
    if (patience == NULL || patience->failures < FAILURES_FREE)
        return;
    int64_t waited_us = sim_worker_now(world, worker).us - patience->since.us;
    if (waited_us < patience->owed_us / 2)
        sim_fail(
            world, "Q-STORE-DOWN",
            "%s repeats a call that failed %lld times in a row after %lld us; %lld are too few",
            worker->actor->name, (long long)patience->failures, (long long)waited_us,
            (long long)patience->owed_us / 2);
}

/* ---------------------------------------------------------------- the keeper's calls */

static struct sim_call *call_for(struct sim_world *world, struct sim_worker *worker,
                                 const struct pawli_action *action, enum sim_verb verb)
{
    check_patience(world, worker, verb);
    struct sim_call *call = sim_net_call(world, worker->actor, verb);
    call->who = worker->index;
    call->incarnation = worker->incarnation;
    call->request = action->request;
    call->deadline_us = sim_drift_when(&worker->clock, action->deadline.us);
    return call;
}

/* K7, and RULE-020-042: it asks for no more than it has room for, and not for a line that is
 * saturated. */
static void check_claim(struct sim_world *world, const struct sim_worker *worker,
                        const struct pawli_action *action)
{
    struct pawli_keeper_counts counts = pawli_keeper_count(worker->keeper);
    int64_t held = (int64_t)(counts.running + counts.buffered);
    if (held + action->jobs_max > worker->settings.parallel_max + worker->settings.buffer_max)
        sim_fail(world, "K7", "%s holds %lld and asks for %lld", worker->actor->name,
                 (long long)held, (long long)action->jobs_max);
    for (size_t i = 0; i < action->lines_count; i++) {
        const struct pawli_action_line *line = &action->lines[i];
        int64_t line_max = worker->plan->held_max[line->line];
        if (worker->is_line_paused[line->line])
            sim_fail(world, "RULE-020-042", "%s claims for a saturated line", worker->actor->name);
        if (line_max != PAWL_DEFAULT && line->jobs_max > line_max)
            sim_fail(world, "K7", "%s asks for too many of one line", worker->actor->name);
    }
}

static void do_claim(struct sim_world *world, struct sim_worker *worker,
                     const struct pawli_action *action)
{
    check_claim(world, worker, action);
    struct sim_call *call = call_for(world, worker, action, SIM_VERB_CLAIM);
    call->rows_max = action->jobs_max;
    call->lines_count = action->lines_count;
    for (size_t i = 0; i < action->lines_count; i++) {
        call->lines[i] = action->lines[i];
        call->lines[i].line = worker->plan->lines[action->lines[i].line];
    }
    send_or_hold(world, worker, call);
}

static void do_mine(struct sim_world *world, struct sim_worker *worker,
                    const struct pawli_action *action)
{
    struct sim_call *call = call_for(world, worker, action, SIM_VERB_MINE);
    call->rows_max = world->plan->mine_page;
    sim_tally(&world->tallies, SIM_TALLY_MINE);
    send_or_hold(world, worker, call);
}

static void do_items(struct sim_world *world, struct sim_worker *worker,
                     const struct pawli_action *action, enum sim_verb verb)
{
    struct sim_call *call = call_for(world, worker, action, verb);
    struct sim_item *items = sim_call_items(call, action->items_count);
    for (size_t i = 0; i < action->items_count; i++) {
        const struct pawli_action_item *item = &action->items[i];
        items[i] = (struct sim_item){
            .slot = item->slot,
            .lease = item->lease,
            .is_unstarted = item->is_unstarted,
            .action = item->action,
            .reason = item->reason,
            .delay_ms = item->delay_ms,
            .job = worker->held[item->slot.index].job,
        };
    }
    if (verb == SIM_VERB_RELEASE && action->why == PAWLI_WHY_NOT_STARTED)
        sim_tally(&world->tallies, SIM_TALLY_RELEASE_NOT_STARTED);
    if (verb == SIM_VERB_RELEASE && action->why == PAWLI_WHY_HELD_TOO_LONG)
        sim_tally(&world->tallies, SIM_TALLY_RELEASE_HELD_TOO_LONG);
    if (verb == SIM_VERB_RELEASE && action->why == PAWLI_WHY_NO_ROOM)
        sim_tally(&world->tallies, SIM_TALLY_RELEASE_NO_ROOM);
    send_or_hold(world, worker, call);
}

void sim_worker_call(struct sim_world *world, struct sim_worker *worker,
                     const struct pawli_action *action)
{
    switch (action->kind) {
    case PAWLI_ACTION_CLAIM:
        do_claim(world, worker, action);
        break;
    case PAWLI_ACTION_MINE:
        do_mine(world, worker, action);
        break;
    case PAWLI_ACTION_RENEW:
        do_items(world, worker, action, SIM_VERB_RENEW);
        break;
    case PAWLI_ACTION_SETTLE:
        do_items(world, worker, action, SIM_VERB_SETTLE);
        break;
    default:
        assert(action->kind == PAWLI_ACTION_RELEASE);
        do_items(world, worker, action, SIM_VERB_RELEASE);
        break;
    }
}

/* ---------------------------------------------------------------- answers */

static void note_confirmed(struct sim_world *world, const struct sim_worker *worker,
                           const struct sim_call *call, const struct sim_item *item)
{
    sim_note(world, (struct pawli_trace_note){
                        .kind = PAWLI_NOTE_CONFIRMED,
                        .actor = worker->actor->name,
                        .job = item->lease.job,
                        .version = item->lease.version,
                        .a = call->taken_us,
                        .b = item->lease_ms,
                    });
}

static uint32_t line_of(const struct sim_worker *worker, uint32_t queue)
{
    uint32_t line = 0;
    while (worker->plan->lines[line] != queue)
        line++;
    return line;
}

static void take_grants(const struct sim_call *call, struct sim_worker *worker)
{
    for (size_t i = 0; i < call->items_count; i++) {
        worker->grants[i] = (struct pawli_grant){
            .line = line_of(worker, call->items[i].queue),
            .lease = call->items[i].lease,
            .lease_ms = call->items[i].lease_ms,
            .timeout_ms = call->items[i].timeout_ms,
        };
    }
}

static struct sim_held *hold(struct sim_world *world, struct sim_worker *worker, size_t i,
                             const struct sim_item *item)
{
    struct pawli_slot slot = worker->slots[i];
    struct sim_held *held = &worker->held[slot.index];
    if (held->is_used)
        sim_fail(world, "SIM-SLOT", "%s puts a job into a slot that is taken", worker->actor->name);
    uint32_t run = held->run;
    *held = (struct sim_held){
        .is_used = true,
        .generation = slot.generation,
        .lease = item->lease,
        .job = item->job,
        .run = run,
    };
    return held;
}

static void on_claimed(struct sim_world *world, struct sim_worker *worker,
                       const struct sim_call *call)
{
    take_grants(call, worker);
    pawli_keeper_on_claimed(worker->keeper, sim_worker_now(world, worker), call->request,
                            worker->grants, call->items_count, worker->slots);
    for (size_t i = 0; i < call->items_count; i++) {
        if (worker->slots[i].index == PAWLI_SLOT_NONE) {
            sim_tally(&world->tallies, SIM_TALLY_CLAIM_LATE);
            continue;
        }
        hold(world, worker, i, &call->items[i]);
        note_confirmed(world, worker, call, &call->items[i]);
    }
}

static void ask_next_page(struct sim_world *world, const struct sim_call *call)
{
    struct sim_call *next = sim_net_call(world, call->actor, SIM_VERB_MINE);
    next->who = call->who;
    next->incarnation = call->incarnation;
    next->request = call->request;
    next->taken_us = call->taken_us;
    next->deadline_us = call->deadline_us;
    next->rows_max = call->rows_max;
    next->after = call->items[call->items_count - 1].lease.job;
    sim_tally(&world->tallies, SIM_TALLY_MINE_PAGES);
    sim_net_send(world, next);
}

static void on_mine(struct sim_world *world, struct sim_worker *worker, const struct sim_call *call)
{
    take_grants(call, worker);
    struct pawli_mine_page page = {
        .grants = worker->grants,
        .grants_count = call->items_count,
        .is_last = (int64_t)call->items_count < call->rows_max,
    };
    pawli_keeper_on_mine(worker->keeper, sim_worker_now(world, worker), call->request, &page,
                         worker->slots);
    for (size_t i = 0; i < call->items_count; i++) {
        if (worker->slots[i].index == PAWLI_SLOT_NONE)
            continue;
        hold(world, worker, i, &call->items[i])->is_adopted = true;
        sim_tally(&world->tallies, SIM_TALLY_ADOPTED);
    }
    if (!page.is_last)
        ask_next_page(world, call);
}

static void on_verdicts(struct sim_world *world, struct sim_worker *worker,
                        const struct sim_call *call, bool is_late)
{
    pawl_mono now = sim_worker_now(world, worker);
    for (size_t i = 0; i < call->items_count; i++) {
        const struct sim_item *item = &call->items[i];
        worker->verdicts[i] = (struct pawli_verdict){
            .slot = item->slot, .code = item->code, .lease_ms = item->lease_ms};
        const struct sim_held *held = &worker->held[item->slot.index];
        bool is_current = held->is_used && held->generation == item->slot.generation;
        if (call->verb == SIM_VERB_RENEW && item->code == PAWL_OK && is_current && !is_late)
            note_confirmed(world, worker, call, item);
    }
    if (call->verb == SIM_VERB_RENEW)
        pawli_keeper_on_renewed(worker->keeper, now, call->request, worker->verdicts,
                                call->items_count);
    else if (call->verb == SIM_VERB_SETTLE)
        pawli_keeper_on_settled(worker->keeper, now, call->request, worker->verdicts,
                                call->items_count);
    else
        pawli_keeper_on_released(worker->keeper, now, call->request, worker->verdicts,
                                 call->items_count);
}

void sim_worker_answer(struct sim_world *world, struct sim_call *call, pawl_code code)
{
    struct sim_worker *worker = &world->workers[call->who];
    if (worker->keeper == NULL || worker->incarnation != call->incarnation)
        return;
    if (call->verb == SIM_VERB_OWN_SETTLE) {
        sim_handler_answer(world, worker, call, code);
        return;
    }
    count_failures(world, worker, call->verb, code);
    if (code != PAWL_OK) {
        if (call->verb == SIM_VERB_CLAIM && code == PAWL_UNKNOWN)
            sim_tally(&world->tallies, SIM_TALLY_CLAIM_LOST);
        pawli_keeper_on_call_failed(worker->keeper, sim_worker_now(world, worker), call->request,
                                    code);
    } else if (call->verb == SIM_VERB_CLAIM) {
        on_claimed(world, worker, call);
    } else if (call->verb == SIM_VERB_MINE) {
        on_mine(world, worker, call);
    } else {
        on_verdicts(world, worker, call, false);
    }
    sim_worker_drive(world, worker);
}

/* The keeper has given the call up: it must not believe what it hears of it now. */
void sim_worker_late(struct sim_world *world, struct sim_call *call)
{
    struct sim_worker *worker = &world->workers[call->who];
    if (worker->keeper == NULL || worker->incarnation != call->incarnation || call->code != PAWL_OK)
        return;
    if (call->verb == SIM_VERB_CLAIM)
        on_claimed(world, worker, call);
    else if (call->verb != SIM_VERB_MINE && call->verb != SIM_VERB_OWN_SETTLE)
        on_verdicts(world, worker, call, true);
    sim_worker_drive(world, worker);
}

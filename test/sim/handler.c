/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * handler.c - simulated handlers: what the worker runs for a job.
 * Owns:  how a handler behaves: how long it runs, what it sends, how it ends, whether it hears an
 *        abort.
 * Never: settles anything unless that is its temper, and then asks the keeper first.
 */
#include "sim/world.h"

#include <assert.h>

#define SENDS_MAX         3
#define KILLS_PPM         800000 /* how often a killer kills */
#define FAILS_PPM         500000 /* how often a flaky one fails */
#define SNOOZES_PPM       700000
#define OWN_SETTLE_TRIES  3
#define LONG_LEASES_MAX   5 /* in halves of a lease */
#define DEAF_LEASES_MAX   5
#define OBEYS_WITH_RESULT 300000 /* told to stop, it has finished all the same */

/* ---------------------------------------------------------------- events of a handler */

static uint64_t key_of(uint32_t slot, uint32_t run)
{
    return (uint64_t)run << 32 | slot;
}

static void plan(struct sim_world *world, struct sim_worker *worker, uint32_t slot, sim_event_fn fn,
                 int64_t after_us)
{
    sim_plan_event(world, after_us,
                   (struct sim_event){
                       .fn = fn,
                       .who = worker->index,
                       .generation = worker->incarnation,
                       .what = key_of(slot, worker->held[slot].run),
                   });
}

/* The handler that an event is about, or NULL where it is gone, or its worker stands still. */
static struct sim_held *handler_of(struct sim_world *world, const struct sim_event *event)
{
    if (sim_worker_misses(world, event))
        return NULL;
    struct sim_held *held = &world->workers[event->who].held[event->what & UINT32_MAX];
    if (!held->is_running || held->run != event->what >> 32)
        return NULL;
    return held;
}

static bool may_send(struct sim_world *world, struct sim_worker *worker, uint32_t slot)
{
    struct pawli_slot place = {slot, worker->held[slot].generation};
    bool is_allowed = pawli_keeper_may_send(worker->keeper, place, sim_worker_now(world, worker));
    sim_tally(&world->tallies, is_allowed ? SIM_TALLY_SEND : SIM_TALLY_SEND_REFUSED);
    return is_allowed;
}

/* ---------------------------------------------------------------- ending */

static void count_end(struct sim_world *world, const struct sim_held *held)
{
    static const enum sim_tally tallies[] = {
        [PAWLI_RESULT_DONE] = SIM_TALLY_END_DONE,
        [PAWLI_RESULT_RETRY] = SIM_TALLY_END_RETRY,
        [PAWLI_RESULT_FAIL] = SIM_TALLY_END_FAIL,
        [PAWLI_RESULT_SNOOZE] = SIM_TALLY_END_SNOOZE,
        [PAWLI_RESULT_SETTLED] = SIM_TALLY_END_SETTLED,
    };
    sim_tally(&world->tallies, tallies[held->ended.result]);
    if (held->ended.result == PAWLI_RESULT_DONE &&
        world->now_us - held->started_us > sim_ms(world->plan->lease_largest_ms))
        sim_tally(&world->tallies, SIM_TALLY_END_PAST_LEASE);
}

static void end(struct sim_world *world, struct sim_worker *worker, uint32_t slot)
{
    struct sim_held *held = &worker->held[slot];
    assert(held->is_running);
    held->is_running = false;
    count_end(world, held);
    sim_worker_note(world, worker, PAWLI_NOTE_ENDED, &held->lease, (int64_t)held->ended.result);
    pawli_keeper_on_ended(worker->keeper, sim_worker_now(world, worker),
                          (struct pawli_slot){slot, held->generation}, held->ended);
    sim_worker_drive(world, worker);
}

/* It completes the job in its own transaction, if it may still. */
static void settle_itself(struct sim_world *world, struct sim_worker *worker, uint32_t slot)
{
    struct sim_held *held = &worker->held[slot];
    if (!may_send(world, worker, slot)) {
        held->ended = (struct pawli_ended){PAWLI_RESULT_RETRY, PAWL_DEFAULT};
        end(world, worker, slot);
        return;
    }
    held->is_settling = true;
    held->settle_tries++;
    sim_worker_note(world, worker, PAWLI_NOTE_SEND_SETTLE, &held->lease, PAWL_SUCCEED);
    struct sim_call *call = sim_net_call(world, worker->actor, SIM_VERB_OWN_SETTLE);
    call->who = worker->index;
    call->incarnation = worker->incarnation;
    call->deadline_us = world->now_us + sim_ms(worker->plan->settings.call_timeout_ms);
    call->slot_index = slot;
    call->run = held->run;
    struct sim_item *item = sim_call_items(call, 1);
    item->slot = (struct pawli_slot){slot, held->generation};
    item->lease = held->lease;
    item->action = PAWL_SUCCEED;
    item->delay_ms = PAWL_DEFAULT;
    item->job = held->job;
    sim_net_send(world, call);
}

void sim_handler_answer(struct sim_world *world, struct sim_worker *worker,
                        const struct sim_call *call, pawl_code code)
{
    struct sim_held *held = &worker->held[call->slot_index];
    if (!held->is_running || held->run != call->run)
        return;
    held->is_settling = false;
    if (code == PAWL_OK && call->items[0].code == PAWL_OK) {
        held->ended = (struct pawli_ended){PAWLI_RESULT_SETTLED, 0};
        end(world, worker, call->slot_index);
    } else if (code == PAWL_OK || held->settle_tries >= OWN_SETTLE_TRIES) {
        held->ended = (struct pawli_ended){PAWLI_RESULT_RETRY, PAWL_DEFAULT};
        end(world, worker, call->slot_index);
    } else {
        settle_itself(world, worker, call->slot_index);
    }
}

static void on_end(struct sim_world *world, const struct sim_event *event)
{
    struct sim_held *held = handler_of(world, event);
    if (held == NULL || held->is_settling)
        return;
    struct sim_worker *worker = &world->workers[event->who];
    uint32_t slot = (uint32_t)(event->what & UINT32_MAX);
    if (held->ended.result == PAWLI_RESULT_SETTLED)
        settle_itself(world, worker, slot);
    else
        end(world, worker, slot);
}

static void on_send(struct sim_world *world, const struct sim_event *event)
{
    struct sim_held *held = handler_of(world, event);
    if (held == NULL)
        return;
    struct sim_worker *worker = &world->workers[event->who];
    if (may_send(world, worker, (uint32_t)(event->what & UINT32_MAX)))
        sim_worker_note(world, worker, PAWLI_NOTE_SEND, &held->lease, 0);
}

/* It takes its worker with it. */
static void on_kill_worker(struct sim_world *world, const struct sim_event *event)
{
    struct sim_held *held = handler_of(world, event);
    if (held == NULL)
        return;
    struct sim_worker *worker = &world->workers[event->who];
    if (!world->is_chaos) {
        end(world, worker, (uint32_t)(event->what & UINT32_MAX));
        return;
    }
    sim_tally(&world->tallies, SIM_TALLY_CRASH_BY_HANDLER);
    sim_worker_crash(world, worker, sim_ms(sim_between(&worker->dice, 1, 2000)));
}

/* ---------------------------------------------------------------- starting */

static void plan_life(struct sim_world *world, struct sim_worker *worker, uint32_t slot,
                      int64_t run_us)
{
    int64_t sends = sim_between(&worker->dice, 0, SENDS_MAX);
    for (int64_t i = 0; i < sends; i++)
        plan(world, worker, slot, on_send, sim_between(&worker->dice, 0, run_us));
    plan(world, worker, slot, on_end, run_us);
}

/* What it will answer when it is left alone, and how long that takes; 0: it never ends. */
static int64_t draw_life(struct sim_world *world, struct sim_worker *worker, struct sim_held *held)
{
    struct sim_dice *dice = &worker->dice;
    const struct sim_job *job = &world->jobs[held->job];
    int64_t lease_us = sim_ms(world->plan->queue[job->queue].settings.lease_ms);
    int64_t run_us = sim_between(dice, 1000, sim_ms(world->plan->run_ms));
    held->ended = (struct pawli_ended){PAWLI_RESULT_DONE, PAWL_DEFAULT};
    switch (job->temper) {
    case SIM_TEMPER_FLAKY:
        if (sim_chance(dice, FAILS_PPM))
            held->ended.result = PAWLI_RESULT_RETRY;
        if (sim_flip(dice))
            held->ended.delay_ms = sim_between(dice, 0, 3000);
        break;
    case SIM_TEMPER_BROKEN:
        held->ended.result = PAWLI_RESULT_RETRY;
        break;
    case SIM_TEMPER_FATAL:
        held->ended.result = PAWLI_RESULT_FAIL;
        break;
    case SIM_TEMPER_LONG:
        run_us = sim_between(dice, 1, LONG_LEASES_MAX) * (lease_us / 2);
        break;
    case SIM_TEMPER_HANGING:
        sim_tally(&world->tallies, SIM_TALLY_HANG);
        return 0;
    case SIM_TEMPER_DEAF:
        sim_tally(&world->tallies, SIM_TALLY_DEAF);
        held->is_deaf = true;
        held->is_killable = sim_flip(dice);
        run_us = sim_between(dice, lease_us, DEAF_LEASES_MAX * lease_us);
        break;
    case SIM_TEMPER_SNOOZER:
        if (sim_chance(dice, SNOOZES_PPM)) {
            held->ended.result = PAWLI_RESULT_SNOOZE;
            held->ended.delay_ms = sim_between(dice, 0, world->plan->delay_max_ms);
        }
        break;
    case SIM_TEMPER_OWN_SETTLE:
        held->ended.result = PAWLI_RESULT_SETTLED;
        break;
    default:
        break;
    }
    return run_us;
}

void sim_handler_start(struct sim_world *world, struct sim_worker *worker, uint32_t slot)
{
    struct sim_held *held = &worker->held[slot];
    struct sim_dice *dice = &worker->dice;
    enum sim_temper temper = world->jobs[held->job].temper;
    held->is_running = true;
    held->run++;
    held->started_us = world->now_us;
    if (!world->is_chaos && temper != SIM_TEMPER_BROKEN && temper != SIM_TEMPER_FATAL) {
        held->ended = (struct pawli_ended){PAWLI_RESULT_DONE, PAWL_DEFAULT};
        plan_life(world, worker, slot, sim_between(dice, 1000, sim_ms(world->plan->run_ms)));
        return;
    }
    int64_t run_us = draw_life(world, worker, held);
    if (temper == SIM_TEMPER_KILLER && sim_chance(dice, KILLS_PPM))
        plan(world, worker, slot, on_kill_worker, sim_between(dice, 0, run_us));
    else if (run_us > 0)
        plan_life(world, worker, slot, run_us);
}

/* ---------------------------------------------------------------- aborts */

static void on_stop(struct sim_world *world, const struct sim_event *event)
{
    struct sim_held *held = handler_of(world, event);
    if (held == NULL || held->is_settling)
        return;
    struct sim_worker *worker = &world->workers[event->who];
    sim_tally(&world->tallies, held->is_deaf ? SIM_TALLY_END_KILLED : SIM_TALLY_END_OBEYED);
    bool has_finished = !held->is_deaf && held->ended.result != PAWLI_RESULT_SETTLED &&
                        sim_chance(&worker->dice, OBEYS_WITH_RESULT);
    if (!has_finished)
        held->ended = (struct pawli_ended){PAWLI_RESULT_RETRY, PAWL_DEFAULT};
    end(world, worker, (uint32_t)(event->what & UINT32_MAX));
}

void sim_handler_abort(struct sim_world *world, struct sim_worker *worker, uint32_t slot,
                       int64_t kill_us)
{
    struct sim_held *held = &worker->held[slot];
    if (!held->is_running)
        return;
    int64_t grace_us = kill_us > world->now_us ? kill_us - world->now_us : 0;
    if (!held->is_deaf)
        plan(world, worker, slot, on_stop, sim_between(&worker->dice, 0, grace_us / 2));
    else if (held->is_killable)
        plan(world, worker, slot, on_stop, grace_us);
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * worker.c - a simulated worker.
 * Owns:  its life, its pauses, the loop that takes actions from its keeper; the notes in the
 *        history of what it did.
 * Never: decides anything that the keeper decides; makes a call (worker_calls.c does).
 */
#include "sim/world.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define IDLE_STEPS_MAX   100   /* in a row, without time passing */
#define STEP_ACTIONS_MAX 10000 /* more than a keeper can mean in one step */

/* ---------------------------------------------------------------- helpers */

pawl_mono sim_worker_now(const struct sim_world *world, const struct sim_worker *worker)
{
    return (pawl_mono){sim_drift_read(&worker->clock, world->now_us)};
}

bool sim_worker_is_paused(const struct sim_world *world, const struct sim_worker *worker)
{
    return worker->paused_until_us > world->now_us;
}

bool sim_worker_misses(struct sim_world *world, const struct sim_event *event)
{
    struct sim_worker *worker = &world->workers[event->who];
    if (worker->keeper == NULL || worker->incarnation != event->generation)
        return true;
    if (!sim_worker_is_paused(world, worker))
        return false;
    int64_t wait_us = worker->paused_until_us - world->now_us;
    sim_plan_event(world, wait_us + sim_between(&worker->dice, 0, 50), *event);
    return true;
}

void sim_worker_note(struct sim_world *world, const struct sim_worker *worker,
                     enum pawli_trace_note_kind kind, const pawl_lease *lease, int64_t a)
{
    sim_note(world, (struct pawli_trace_note){
                        .kind = kind,
                        .actor = worker->actor->name,
                        .job = lease->job,
                        .version = lease->version,
                        .a = a,
                    });
}

static void note_self(struct sim_world *world, const struct sim_worker *worker,
                      enum pawli_trace_note_kind kind, int64_t a)
{
    sim_note(world, (struct pawli_trace_note){.kind = kind, .actor = worker->actor->name, .a = a});
}

static void note_up(struct sim_world *world, const struct sim_worker *worker,
                    const pawl_worker_settings *settings)
{
    bool is_derived = settings->heartbeat_ms == PAWL_DEFAULT;
    sim_note(world, (struct pawli_trace_note){
                        .kind = PAWLI_NOTE_WORKER_UP,
                        .actor = worker->actor->name,
                        .a = is_derived ? 0 : settings->heartbeat_ms,
                        .b = settings->poll_ms,
                        .c = settings->grace_ms,
                    });
}

/* ---------------------------------------------------------------- life */

static void *room_for(size_t count, size_t size)
{
    void *room = calloc(count, size);
    if (room == NULL) {
        fputs("sim: out of memory\n", stderr);
        abort();
    }
    return room;
}

void sim_worker_clear(struct sim_worker *worker)
{
    pawli_keeper_free(worker->keeper);
    worker->keeper = NULL;
    free(worker->held);
    worker->held = NULL;
    free(worker->grants);
    worker->grants = NULL;
    free(worker->slots);
    worker->slots = NULL;
    free(worker->verdicts);
    worker->verdicts = NULL;
}

static void on_step(struct sim_world *world, const struct sim_event *event)
{
    struct sim_worker *worker = &world->workers[event->who];
    if (worker->incarnation != event->generation || worker->step_us != event->at)
        return; /* another plan replaced it */
    worker->step_us = INT64_MAX;
    if (!sim_worker_misses(world, event))
        sim_worker_drive(world, worker);
}

static void plan_step(struct sim_world *world, struct sim_worker *worker, int64_t at_us)
{
    if (at_us < world->now_us)
        at_us = world->now_us;
    if (at_us >= worker->step_us)
        return; /* it looks at its clock before that anyhow */
    worker->step_us = at_us;
    sim_plan_event(
        world, at_us - world->now_us,
        (struct sim_event){.fn = on_step, .who = worker->index, .generation = worker->incarnation});
}

void sim_worker_up(struct sim_world *world, struct sim_worker *worker)
{
    const struct sim_worker_plan *plan = worker->plan;
    struct pawli_keeper_line lines[SIM_QUEUES_MAX];
    pawl_err err;
    assert(worker->keeper == NULL);

    worker->incarnation++;
    worker->actor = sim_world_actor(world, "worker", worker->index, worker->incarnation);
    worker->seeded.state = sim_draw(&worker->dice);
    worker->random = pawli_seeded_as_random(&worker->seeded);
    for (uint32_t i = 0; i < plan->lines_count; i++)
        lines[i].held_max = plan->held_max[i];
    struct pawli_keeper_config config = {
        .settings = &plan->settings,
        .lines = lines,
        .lines_count = plan->lines_count,
        .random = &worker->random,
    };
    sim_must(pawli_keeper_new(&config, &worker->keeper, &err), &err, "keeper");
    worker->held_count = pawli_keeper_slots(worker->keeper);
    worker->held = room_for(worker->held_count, sizeof(*worker->held));
    worker->grants = room_for(SIM_ROWS_MAX, sizeof(*worker->grants));
    worker->slots = room_for(SIM_ROWS_MAX, sizeof(*worker->slots));
    worker->verdicts = room_for(SIM_ROWS_MAX, sizeof(*worker->verdicts));
    worker->settings = plan->settings;
    memset(worker->is_line_paused, 0, sizeof(worker->is_line_paused));
    memset(worker->patience, 0, sizeof(worker->patience));
    worker->step_us = INT64_MAX;
    worker->paused_until_us = 0;
    worker->is_step_owed = false;
    note_up(world, worker, &plan->settings);
    sim_worker_drive(world, worker);
}

static void on_up(struct sim_world *world, const struct sim_event *event)
{
    struct sim_worker *worker = &world->workers[event->who];
    if (worker->keeper == NULL && worker->incarnation == event->generation && !world->is_closing)
        sim_worker_up(world, worker);
}

static void go_down(struct sim_world *world, struct sim_worker *worker, int64_t down_us)
{
    sim_worker_clear(worker);
    world->is_downstream_paused[worker->index] = false;
    sim_plan_event(
        world, down_us,
        (struct sim_event){.fn = on_up, .who = worker->index, .generation = worker->incarnation});
}

void sim_worker_crash(struct sim_world *world, struct sim_worker *worker, int64_t down_us)
{
    assert(worker->keeper != NULL);
    note_self(world, worker, PAWLI_NOTE_WORKER_CRASH, 0);
    go_down(world, worker, down_us);
}

void sim_worker_shut_down(struct sim_world *world, struct sim_worker *worker, int64_t timeout_ms)
{
    note_self(world, worker, PAWLI_NOTE_SHUTDOWN, timeout_ms);
    pawli_keeper_on_shutdown(worker->keeper, sim_worker_now(world, worker), timeout_ms);
    sim_worker_drive(world, worker);
}

void sim_worker_set(struct sim_world *world, struct sim_worker *worker,
                    const pawl_worker_settings *settings)
{
    note_up(world, worker, settings);
    worker->settings = *settings;
    pawli_keeper_on_settings(worker->keeper, sim_worker_now(world, worker), settings);
    sim_worker_drive(world, worker);
}

void sim_worker_set_line(struct sim_world *world, struct sim_worker *worker, size_t line,
                         bool is_paused)
{
    for (size_t i = 0; i < worker->plan->lines_count; i++) {
        if (line == PAWLI_LINE_ALL || line == i)
            worker->is_line_paused[i] = is_paused;
    }
    if (is_paused)
        pawli_keeper_on_pause(worker->keeper, sim_worker_now(world, worker), line);
    else
        pawli_keeper_on_resume(worker->keeper, sim_worker_now(world, worker), line);
    sim_worker_drive(world, worker);
}

void sim_worker_abort_all(struct sim_world *world, struct sim_worker *worker)
{
    note_self(world, worker, PAWLI_NOTE_SHUTDOWN, worker->plan->settings.grace_ms);
    pawli_keeper_on_abort_all(worker->keeper, sim_worker_now(world, worker));
    sim_worker_drive(world, worker);
}

/* ---------------------------------------------------------------- pauses */

static void on_pause_end(struct sim_world *world, const struct sim_event *event)
{
    struct sim_worker *worker = &world->workers[event->who];
    if (worker->keeper == NULL || worker->incarnation != event->generation ||
        worker->paused_until_us != event->at)
        return;
    note_self(world, worker, PAWLI_NOTE_PAUSE_END, 0);
    worker->is_step_owed = true;
    worker->step_us = INT64_MAX;
    plan_step(world, worker, world->now_us + sim_between(&worker->dice, 0, 50));
}

void sim_worker_pause(struct sim_world *world, struct sim_worker *worker, int64_t until_us)
{
    assert(worker->keeper != NULL && !sim_worker_is_paused(world, worker));
    assert(until_us > world->now_us);
    note_self(world, worker, PAWLI_NOTE_PAUSE_BEGIN, 0);
    worker->paused_until_us = until_us;
    sim_plan_event(world, until_us - world->now_us,
                   (struct sim_event){.fn = on_pause_end,
                                      .who = worker->index,
                                      .generation = worker->incarnation});
}

void sim_worker_nudge(struct sim_world *world, struct sim_worker *worker)
{
    plan_step(world, worker, world->now_us);
}

/* ---------------------------------------------------------------- actions about one job */

static struct sim_held *held_of(struct sim_world *world, struct sim_worker *worker,
                                struct pawli_slot slot)
{
    struct sim_held *held = &worker->held[slot.index];
    if (!held->is_used || held->generation != slot.generation)
        sim_fail(world, "SIM-SLOT", "%s speaks of slot %u, generation %u, which holds nothing",
                 worker->actor->name, slot.index, slot.generation);
    return held;
}

static void do_start(struct sim_world *world, struct sim_worker *worker,
                     const struct pawli_action *action)
{
    struct sim_held *held = held_of(world, worker, action->slot);
    if (held->is_running)
        sim_fail(world, "SIM-START-TWICE", "%s starts a handler that runs", worker->actor->name);
    if (worker->is_line_paused[action->line])
        sim_fail(world, "RULE-020-042", "%s starts a job of a saturated line", worker->actor->name);
    if (pawli_keeper_count(worker->keeper).running > (size_t)worker->settings.parallel_max)
        sim_fail(world, "RULE-020-041", "%s runs more handlers than it may", worker->actor->name);
    if (held->is_adopted)
        sim_tally(&world->tallies, SIM_TALLY_ADOPTED_STARTED);
    sim_worker_note(world, worker, PAWLI_NOTE_START, &held->lease, (int64_t)action->why);
    sim_handler_start(world, worker, action->slot.index);
}

static void do_abort(struct sim_world *world, struct sim_worker *worker,
                     const struct pawli_action *action)
{
    struct sim_held *held = held_of(world, worker, action->slot);
    sim_worker_note(world, worker, PAWLI_NOTE_ABORT, &held->lease, (int64_t)action->why);
    switch (action->why) {
    case PAWLI_WHY_LEASE_LOST:
        sim_tally(&world->tallies, SIM_TALLY_ABORT_LEASE_LOST);
        break;
    case PAWLI_WHY_BEAT_FAILED:
        sim_tally(&world->tallies, SIM_TALLY_ABORT_BEAT_FAILED);
        break;
    case PAWLI_WHY_CANCELLED:
        sim_tally(&world->tallies, SIM_TALLY_ABORT_CANCELLED);
        break;
    case PAWLI_WHY_TIMEOUT:
        sim_tally(&world->tallies, SIM_TALLY_ABORT_TIMEOUT);
        break;
    case PAWLI_WHY_SHUTDOWN:
        sim_tally(&world->tallies, SIM_TALLY_ABORT_SHUTDOWN);
        break;
    case PAWLI_WHY_ABORT_ALL:
        sim_tally(&world->tallies, SIM_TALLY_ABORT_ABORT_ALL);
        break;
    default:
        break;
    }
    sim_handler_abort(world, worker, action->slot.index,
                      sim_drift_when(&worker->clock, action->deadline.us));
}

static void do_over(struct sim_world *world, struct sim_worker *worker,
                    const struct pawli_action *action)
{
    struct sim_held *held = held_of(world, worker, action->slot);
    if (held->is_running)
        sim_fail(world, "SIM-OVER", "%s drops a job whose handler runs", worker->actor->name);
    sim_worker_note(world, worker, PAWLI_NOTE_OVER, &held->lease, (int64_t)action->why);
    held->is_used = false;
    switch (action->why) {
    case PAWLI_WHY_SETTLED:
        sim_tally(&world->tallies, SIM_TALLY_OVER_SETTLED);
        break;
    case PAWLI_WHY_SETTLED_BY_HANDLER:
        sim_tally(&world->tallies, SIM_TALLY_OVER_BY_HANDLER);
        break;
    case PAWLI_WHY_RELEASED:
        sim_tally(&world->tallies, SIM_TALLY_OVER_RELEASED);
        break;
    case PAWLI_WHY_FENCED:
        sim_tally(&world->tallies, SIM_TALLY_OVER_FENCED);
        break;
    case PAWLI_WHY_AT_RISK:
        sim_tally(&world->tallies, SIM_TALLY_OVER_AT_RISK);
        break;
    default:
        break;
    }
}

static void do_stopped(struct sim_world *world, struct sim_worker *worker,
                       const struct pawli_action *action)
{
    note_self(world, worker, PAWLI_NOTE_WORKER_STOPPED, (int64_t)action->left);
    sim_tally(&world->tallies,
              action->left == 0 ? SIM_TALLY_STOPPED_CLEAN : SIM_TALLY_STOPPED_LEFT);
    go_down(world, worker, sim_ms(sim_between(&worker->dice, 1, 10000)));
}

/* ---------------------------------------------------------------- driving */

static void perform(struct sim_world *world, struct sim_worker *worker,
                    const struct pawli_action *action)
{
    switch (action->kind) {
    case PAWLI_ACTION_CLAIM:
    case PAWLI_ACTION_MINE:
    case PAWLI_ACTION_RENEW:
    case PAWLI_ACTION_SETTLE:
    case PAWLI_ACTION_RELEASE:
        sim_worker_call(world, worker, action);
        break;
    case PAWLI_ACTION_START:
        do_start(world, worker, action);
        break;
    case PAWLI_ACTION_ABORT:
        do_abort(world, worker, action);
        break;
    case PAWLI_ACTION_GIVE_UP:
        sim_worker_note(world, worker, PAWLI_NOTE_GIVE_UP,
                        &held_of(world, worker, action->slot)->lease, (int64_t)action->why);
        sim_tally(&world->tallies, SIM_TALLY_GIVE_UP);
        break;
    case PAWLI_ACTION_OVER:
        do_over(world, worker, action);
        break;
    case PAWLI_ACTION_STOPPED:
        do_stopped(world, worker, action);
        break;
    }
}

static bool crashes_here(struct sim_world *world, struct sim_worker *worker)
{
    if (!world->is_chaos || !sim_chance(&worker->dice, world->plan->crash_step_ppm))
        return false;
    sim_tally(&world->tallies, SIM_TALLY_CRASH_IN_STEP);
    int64_t lease_us = sim_ms(world->plan->lease_largest_ms);
    sim_worker_crash(world, worker, sim_between(&worker->dice, 1000, lease_us));
    return true;
}

void sim_worker_drive(struct sim_world *world, struct sim_worker *worker)
{
    struct pawli_action action;
    pawl_mono now = sim_worker_now(world, worker);
    if (worker->is_step_owed) {
        worker->is_step_owed = false;
        note_self(world, worker, PAWLI_NOTE_STEP, 0);
    }
    for (int i = 0; pawli_keeper_next(worker->keeper, now, &action); i++) {
        if (i > STEP_ACTIONS_MAX) {
            sim_fail(world, "SIM-LOOP", "%s gives out actions without end", worker->actor->name);
            return;
        }
        perform(world, worker, &action);
        if (worker->keeper == NULL || crashes_here(world, worker))
            return;
        if (sim_worker_is_paused(world, worker))
            return;
    }
    pawl_mono deadline = pawli_keeper_deadline(worker->keeper);
    if (deadline.us <= now.us && ++worker->idle_steps > IDLE_STEPS_MAX)
        sim_fail(world, "SIM-SPIN", "%s wants to be called at once, and then does nothing",
                 worker->actor->name);
    if (deadline.us > now.us)
        worker->idle_steps = 0;
    if (deadline.us != PAWLI_MONO_NEVER.us)
        plan_step(world, worker, sim_drift_when(&worker->clock, deadline.us));
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * worker.c - a simulated worker.
 * Owns:  one keeper and what a driver keeps beside it; the notes in the history of what it did.
 * Never: decides anything that the keeper decides; talks to the store but through net.c.
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

static void note_job(struct sim_world *world, const struct sim_worker *worker,
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
    worker->rows_max = SIM_ROWS_MAX;
    worker->grants = room_for(worker->rows_max, sizeof(*worker->grants));
    worker->slots = room_for(worker->rows_max, sizeof(*worker->slots));
    worker->verdicts = room_for(worker->rows_max, sizeof(*worker->verdicts));
    worker->settings = plan->settings;
    memset(worker->is_line_paused, 0, sizeof(worker->is_line_paused));
    worker->step_us = INT64_MAX;
    worker->paused_until_us = 0;
    worker->is_step_owed = false;
    worker->is_stopping = false;
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
    worker->is_stopping = true;
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
    worker->is_stopping = true;
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

/* ---------------------------------------------------------------- calls */

static void send(struct sim_world *world, struct sim_worker *worker, struct sim_call *call)
{
    enum pawli_trace_note_kind kind = call->verb == SIM_VERB_SETTLE ? PAWLI_NOTE_SEND_SETTLE
                                                                    : PAWLI_NOTE_SEND_RELEASE;
    if (call->verb == SIM_VERB_SETTLE || call->verb == SIM_VERB_RELEASE) {
        for (size_t i = 0; i < call->items_count; i++)
            note_job(world, worker, kind, &call->items[i].lease, (int64_t)call->items[i].action);
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

static struct sim_call *call_for(struct sim_world *world, struct sim_worker *worker,
                                 const struct pawli_action *action, enum sim_verb verb)
{
    struct sim_call *call = sim_net_call(world, worker->actor, verb);
    call->who = worker->index;
    call->incarnation = worker->incarnation;
    call->request = action->request;
    call->why = action->why;
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
    note_job(world, worker, PAWLI_NOTE_START, &held->lease, (int64_t)action->why);
    sim_handler_start(world, worker, action->slot.index);
}

static void do_abort(struct sim_world *world, struct sim_worker *worker,
                     const struct pawli_action *action)
{
    struct sim_held *held = held_of(world, worker, action->slot);
    note_job(world, worker, PAWLI_NOTE_ABORT, &held->lease, (int64_t)action->why);
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
    note_job(world, worker, PAWLI_NOTE_OVER, &held->lease, (int64_t)action->why);
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
    case PAWLI_ACTION_RELEASE:
        do_items(world, worker, action, SIM_VERB_RELEASE);
        break;
    case PAWLI_ACTION_START:
        do_start(world, worker, action);
        break;
    case PAWLI_ACTION_ABORT:
        do_abort(world, worker, action);
        break;
    case PAWLI_ACTION_GIVE_UP:
        note_job(world, worker, PAWLI_NOTE_GIVE_UP, &held_of(world, worker, action->slot)->lease,
                 (int64_t)action->why);
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

/* ---------------------------------------------------------------- answers */

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
    next->why = call->why;
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

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * worker.h - a simulated worker: one keeper, driven as the runtime will drive it, and its
 * handlers.
 */
#ifndef SIM_WORKER_H
#define SIM_WORKER_H

#include "base/random.h"
#include "core/keeper.h"
#include "sim/draw.h"
#include "sim/drift.h"
#include "sim/events.h"
#include "sim/net.h"
#include "sim/swarm.h"
#include "store/trace.h"

/* What the driver keeps beside each of the keeper's slots. */
struct sim_held {
    bool is_used;
    uint32_t generation;
    pawl_lease lease;
    uint32_t job;
    bool is_adopted; /* learned of by asking */

    /* The handler, while it runs. */
    bool is_running;
    uint32_t run; /* rises with each handler: late events of an earlier one are ignored */
    bool is_deaf;
    bool is_killable;
    bool is_settling; /* it waits for the answer to its own settle */
    int64_t started_us;
    int64_t settle_tries;
    struct pawli_ended ended; /* what it will answer */
};

/* Calls of one kind that failed in a row, and how long they should have taken: Q-STORE-DOWN. */
struct sim_patience {
    int64_t failures;
    pawl_mono since; /* the first of them failed */
    int64_t owed_us; /* waited for since then, at the least */
};
#define SIM_PATIENCES 3

struct sim_worker {
    uint32_t index;
    uint32_t incarnation;
    const struct sim_worker_plan *plan;
    pawl_worker_settings settings;       /* as they are now */
    bool is_line_paused[SIM_QUEUES_MAX]; /* by its downstream */
    struct sim_actor *actor;
    struct pawli_keeper *keeper; /* NULL while it is down */
    struct sim_drift clock;      /* monotonic */
    struct pawli_seeded seeded;
    pawl_random random;
    struct sim_dice dice;
    struct sim_held *held;
    size_t held_count;
    struct pawli_grant *grants; /* room for the largest claim or page */
    struct pawli_slot *slots;
    struct pawli_verdict *verdicts;

    uint32_t idle_steps; /* in a row, although it wanted to be called at once */
    int64_t step_us;     /* when the planned step is; INT64_MAX: none is */
    int64_t paused_until_us;
    bool is_step_owed; /* it has not looked at its clock since a pause */
    int64_t cut_until_us;
    struct sim_patience patience[SIM_PATIENCES]; /* claim and mine, settle, release */
};

/* Start it, as a new incarnation. It must be down. */
void sim_worker_up(struct sim_world *world, struct sim_worker *worker);

/* It dies without a word, and comes back `down_us` later. */
void sim_worker_crash(struct sim_world *world, struct sim_worker *worker, int64_t down_us);

/* It stands still until `until_us`; its clock does not. */
void sim_worker_pause(struct sim_world *world, struct sim_worker *worker, int64_t until_us);

void sim_worker_shut_down(struct sim_world *world, struct sim_worker *worker, int64_t timeout_ms);
void sim_worker_abort_all(struct sim_world *world, struct sim_worker *worker);

/* It gets new settings while it runs. */
void sim_worker_set(struct sim_world *world, struct sim_worker *worker,
                    const pawl_worker_settings *settings);

/* Its downstream is saturated, or is no longer: one line, or PAWLI_LINE_ALL. */
void sim_worker_set_line(struct sim_world *world, struct sim_worker *worker, size_t line,
                         bool is_paused);

/* Its clock has changed its pace: it looks at it anew. */
void sim_worker_nudge(struct sim_world *world, struct sim_worker *worker);

/* Its monotonic clock, now. */
pawl_mono sim_worker_now(const struct sim_world *world, const struct sim_worker *worker);

bool sim_worker_is_paused(const struct sim_world *world, const struct sim_worker *worker);

/* Take actions from the keeper until there are none, and plan the next step. */
void sim_worker_drive(struct sim_world *world, struct sim_worker *worker);

/* A call of it was answered, or given up (PAWL_UNKNOWN). */
void sim_worker_answer(struct sim_world *world, struct sim_call *call, pawl_code code);

/* A reply came after it had given up the call. */
void sim_worker_late(struct sim_world *world, struct sim_call *call);

/* For an event that reaches a worker: true where it is dealt with, because the worker is another
 * one by now, or stands still (then the event comes again when it does not). */
bool sim_worker_misses(struct sim_world *world, const struct sim_event *event);

void sim_worker_clear(struct sim_worker *worker);

/* Put a note about one of its leases into the history. */
void sim_worker_note(struct sim_world *world, const struct sim_worker *worker,
                     enum pawli_trace_note_kind kind, const pawl_lease *lease, int64_t a);

/* worker_calls.c: make the call that the keeper asks for. */
void sim_worker_call(struct sim_world *world, struct sim_worker *worker,
                     const struct pawli_action *action);

/* handler.c */
void sim_handler_start(struct sim_world *world, struct sim_worker *worker, uint32_t slot);
void sim_handler_abort(struct sim_world *world, struct sim_worker *worker, uint32_t slot,
                       int64_t kill_us);
void sim_handler_answer(struct sim_world *world, struct sim_worker *worker,
                        const struct sim_call *call, pawl_code code);

#endif

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * world.h - one simulated run: true time, everybody in it, and its history.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "pawl/pawl.h"
#include "base/clock.h"
#include "base/random.h"
#include "core/id.h"
#include "sim/draw.h"
#include "sim/drift.h"
#include "sim/events.h"
#include "sim/net.h"
#include "sim/swarm.h"
#include "sim/tally.h"
#include "sim/worker.h"
#include "store/trace.h"

#define SIM_DEPTH_MAX   3  /* calls that wait for the store's lock within one another */
#define SIM_ROWS_MAX    64 /* rows of one call: everything here is small */
#define SIM_FAILURE_MAX 400
#define SIM_START_US    INT64_C(1000000) /* the first instant of a run */

/* A job as its producer made it. Its payload is its number. */
struct sim_job {
    pawl_id id;
    uint32_t queue;
    enum sim_temper temper;
    bool is_acked;
    int priority;
    int64_t delay_ms;
    int64_t start_within_ms;
    int64_t max_retries;
    int64_t timeout_ms;
    char dedupe_key[8];      /* empty: none */
    char ordering_key[8];    /* likewise */
    int64_t settled_version; /* of the last settle that the store accepted */
};

struct sim_producer {
    struct sim_actor *actor;
    struct sim_dice dice;
    struct sim_drift wall; /* its own idea of the time; only its ids show it */
    pawl_clock clock;
    struct pawli_seeded seeded;
    pawl_random random;
    struct pawli_minter *minter;
    uint32_t batch[SIM_ROWS_MAX]; /* jobs that wait for their OK */
    size_t batch_count;
    struct sim_world *world;
};

struct sim_reaper {
    struct sim_actor *actor;
    struct sim_dice dice;
};

struct sim_world {
    const struct sim_plan *plan;
    int64_t now_us;
    struct sim_events events;
    bool is_chaos;      /* faults are on */
    bool is_probing;    /* faults are off, and jobs come without a hint */
    bool is_closing;    /* workers that go down stay down */
    bool is_failed;     /* `failure` says why */
    bool is_broken_off; /* it failed before its end: nothing happens any more */
    uint32_t depth;     /* calls that are inside the store right now */
    struct sim_call *serving[SIM_DEPTH_MAX]; /* those */
    uint64_t served;                         /* calls that have left it */
    uint64_t steps;                          /* events so far */

    struct sim_dice dice;    /* of operators and faults */
    struct sim_dice wire;    /* of messages */
    struct sim_dice windows; /* of stretched windows */
    struct sim_drift store_wall;
    pawl_clock true_clock;
    pawl_clock store_clock;
    struct pawli_seeded store_seeded;
    pawl_random store_random;
    pawl_memory *memory;
    pawl_store *raw; /* a handle that leaves no trace */
    struct pawli_trace_writer *writer;
    bool is_store_down;

    struct sim_net net;
    struct sim_actor *actors;
    struct sim_worker workers[SIM_WORKERS_MAX];
    struct sim_reaper reapers[SIM_REAPERS_MAX];
    struct sim_producer producers[SIM_PRODUCERS_MAX];
    struct sim_actor *operator;
    bool is_queue_paused[SIM_QUEUES_MAX];
    int64_t max_in_flight[SIM_QUEUES_MAX]; /* in force */
    bool is_downstream_paused[SIM_WORKERS_MAX];
    int64_t store_jumped_us; /* sum of the store clock's jumps */

    struct sim_job *jobs;
    uint32_t jobs_count;
    uint32_t jobs_capacity;

    struct sim_tallies tallies;
    char rule[32]; /* what failed */
    char failure[SIM_FAILURE_MAX];
};

/* Build a world; everything in it is planned from the seed of `plan`, which is borrowed. */
void sim_world_init(struct sim_world *world, const struct sim_plan *plan);
void sim_world_clear(struct sim_world *world);

/* Let the whole run happen: chaos, faults off, drain, shutdown, the final lists. */
void sim_world_live(struct sim_world *world);

/* Let time go on until `until_us`. Called again from within stretched windows. */
void sim_world_run(struct sim_world *world, int64_t until_us);

/* Somebody new who will call the store. */
struct sim_actor *sim_world_actor(struct sim_world *world, const char *kind, uint32_t who,
                                  uint32_t incarnation);

/* The actor's handle for a channel, opened when first asked for. */
pawl_store *sim_actor_handle(struct sim_world *world, struct sim_actor *actor,
                             enum sim_channel channel);

/* Plan an event `after_us` from now. */
void sim_plan_event(struct sim_world *world, int64_t after_us, struct sim_event event);

/* Put a note into the history, now. */
void sim_note(struct sim_world *world, struct pawli_trace_note note);

/* Something is wrong that the checker could not see. The run is broken off; the first counts. */
void sim_fail(struct sim_world *world, const char *rule, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same where the run can go on: the checker's word about its whole history comes first. */
void sim_fail_whole(struct sim_world *world, const char *rule, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A call that must be in order, or the simulator itself is at fault. */
void sim_must(pawl_code code, const pawl_err *err, const char *what);

/* A call of anybody was answered: by PAWL_UNKNOWN where its caller has given up. */
void sim_party_answer(struct sim_world *world, struct sim_call *call, pawl_code code);

/* An answer reaches a caller that has given up before. */
void sim_party_late(struct sim_world *world, struct sim_call *call);

/* For how long the caller stands still; 0: it does not. */
int64_t sim_party_pause_us(const struct sim_world *world, const struct sim_call *call);

/* clients.c: producers, reapers and operators */
void sim_clients_start(struct sim_world *world);
void sim_clients_probe(struct sim_world *world);
void sim_producer_answer(struct sim_world *world, struct sim_call *call, pawl_code code);
void sim_reaper_answer(struct sim_world *world, struct sim_call *call, pawl_code code);
void sim_operator_strike(struct sim_world *world, enum sim_class class);

static inline int64_t sim_ms(int64_t ms)
{
    return ms * 1000;
}

#endif

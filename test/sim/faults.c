/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * faults.c - what goes wrong from time to time: crashes, pauses, cuts, outages, clocks, shutdowns.
 * Owns:  when such a thing strikes, whom, and for how long; windows that are stretched.
 * Never: loses or delays a single message (net.c does); strikes once the faults are off.
 */
#include "sim/faults.h"

#include "core/mutant.h"
#include "core/policy.h"
#include "sim/world.h"

#include <assert.h>

#define PAUSE_LEASES_MAX  5
#define OTHER_LEASES_MAX  3 /* cuts, outages, saturated downstreams */
#define JUMPED_LEASES_MAX 6 /* the store's clock is never further off than this by jumps */
#define ABORT_ALL_PPM     200000
#define PICKED_WINDOW_PPM 500000 /* windows that only a mutant opens */
#define WALL_JUMP_MS      (INT64_C(3600) * 1000)
#define DRIFT_MAX_PPM     10000

static int64_t lease_us(const struct sim_world *world)
{
    return sim_ms(world->plan->lease_largest_ms);
}

/* A time of any scale: as often below a tenth of a lease as above it. */
static int64_t some_time_us(struct sim_world *world, int64_t leases_max)
{
    int64_t longest = sim_flip(&world->dice) ? lease_us(world) / 10 : leases_max * lease_us(world);
    return sim_between(&world->dice, 1000, longest);
}

/* A worker that is up and not standing still, or NULL. */
static struct sim_worker *some_worker(struct sim_world *world)
{
    uint32_t first = (uint32_t)sim_between(&world->dice, 0, world->plan->workers - 1);
    for (uint32_t i = 0; i < world->plan->workers; i++) {
        struct sim_worker *worker = &world->workers[(first + i) % world->plan->workers];
        if (worker->keeper != NULL && !sim_worker_is_paused(world, worker))
            return worker;
    }
    return NULL;
}

/* ---------------------------------------------------------------- the store */

static void on_store_up(struct sim_world *world, const struct sim_event *event)
{
    (void)event; /* there is one store */
    world->is_store_down = false;
    sim_note(world, (struct pawli_trace_note){.kind = PAWLI_NOTE_STORE_UP, .actor = ""});
}

static void strike_store_down(struct sim_world *world)
{
    if (world->is_store_down)
        return;
    sim_tally(&world->tallies, SIM_TALLY_STORE_DOWN);
    world->is_store_down = true;
    sim_note(world, (struct pawli_trace_note){.kind = PAWLI_NOTE_STORE_DOWN, .actor = ""});
    sim_plan_event(world, some_time_us(world, OTHER_LEASES_MAX),
                   (struct sim_event){.fn = on_store_up});
}

static void strike_store_jump(struct sim_world *world)
{
    int64_t by_us = some_time_us(world, 2);
    if (sim_flip(&world->dice))
        by_us = -by_us;
    int64_t after_us = world->store_jumped_us + by_us;
    int64_t most_us = JUMPED_LEASES_MAX * lease_us(world);
    if (after_us > most_us || after_us < -most_us)
        by_us = -by_us;
    world->store_jumped_us += by_us;
    sim_drift_jump(&world->store_wall, by_us);
    sim_tally(&world->tallies, by_us > 0 ? SIM_TALLY_STORE_JUMP_AHEAD : SIM_TALLY_STORE_JUMP_BACK);
    sim_note(world,
             (struct pawli_trace_note){.kind = PAWLI_NOTE_STORE_JUMP, .actor = "", .a = by_us});
}

static void strike_store_drift(struct sim_world *world)
{
    sim_drift_set_rate(&world->store_wall, world->now_us,
                       sim_between(&world->dice, -DRIFT_MAX_PPM, DRIFT_MAX_PPM));
    sim_tally(&world->tallies, SIM_TALLY_STORE_DRIFT);
}

/* ---------------------------------------------------------------- workers */

static void strike_crash(struct sim_world *world)
{
    struct sim_worker
        *worker = &world->workers[sim_between(&world->dice, 0, world->plan->workers - 1)];
    if (worker->keeper == NULL)
        return; /* one that stands still may die too */
    sim_tally(&world->tallies, SIM_TALLY_CRASH);
    sim_worker_crash(world, worker, some_time_us(world, 2));
}

static void strike_pause(struct sim_world *world)
{
    struct sim_worker *worker = some_worker(world);
    if (worker == NULL)
        return;
    sim_tally(&world->tallies, SIM_TALLY_PAUSE);
    sim_worker_pause(world, worker, world->now_us + some_time_us(world, PAUSE_LEASES_MAX));
}

static void strike_cut(struct sim_world *world)
{
    struct sim_worker *worker = some_worker(world);
    if (worker == NULL)
        return;
    sim_tally(&world->tallies, SIM_TALLY_CUT);
    worker->cut_until_us = world->now_us + some_time_us(world, OTHER_LEASES_MAX);
}

static void strike_worker_drift(struct sim_world *world)
{
    struct sim_worker *worker = some_worker(world);
    if (worker == NULL)
        return;
    sim_drift_set_rate(&worker->clock, world->now_us,
                       sim_between(&world->dice, -DRIFT_MAX_PPM, DRIFT_MAX_PPM));
    sim_worker_nudge(world, worker);
    sim_tally(&world->tallies, SIM_TALLY_WORKER_DRIFT);
}

static void strike_wall_jump(struct sim_world *world)
{
    struct sim_producer
        *producer = &world->producers[sim_between(&world->dice, 0, world->plan->producers - 1)];
    sim_drift_jump(&producer->wall, sim_ms(sim_between(&world->dice, -WALL_JUMP_MS, WALL_JUMP_MS)));
    sim_tally(&world->tallies, SIM_TALLY_WALL_JUMP);
}

static void on_downstream_back(struct sim_world *world, const struct sim_event *event)
{
    if (sim_worker_misses(world, event))
        return;
    world->is_downstream_paused[event->who] = false;
    sim_worker_set_line(world, &world->workers[event->who], (size_t)event->what, false);
}

static void strike_downstream(struct sim_world *world)
{
    struct sim_worker *worker = some_worker(world);
    if (worker == NULL || world->is_downstream_paused[worker->index])
        return;
    sim_tally(&world->tallies, SIM_TALLY_DOWNSTREAM);
    world->is_downstream_paused[worker->index] = true;
    size_t line = sim_flip(&world->dice)
                      ? PAWLI_LINE_ALL
                      : (size_t)sim_between(&world->dice, 0, worker->plan->lines_count - 1);
    sim_plan_event(world, some_time_us(world, OTHER_LEASES_MAX),
                   (struct sim_event){.fn = on_downstream_back,
                                      .who = worker->index,
                                      .generation = worker->incarnation,
                                      .what = line});
    sim_worker_set_line(world, worker, line, true);
}

static void strike_shutdown(struct sim_world *world)
{
    struct sim_worker *worker = some_worker(world);
    if (worker == NULL)
        return;
    if (sim_chance(&world->dice, ABORT_ALL_PPM)) {
        sim_tally(&world->tallies, SIM_TALLY_ABORT_ALL);
        sim_worker_abort_all(world, worker);
        return;
    }
    int64_t longest = pawli_shutdown_timeout_ms(&worker->plan->settings,
                                                world->plan->lease_smallest_ms);
    sim_tally(&world->tallies, SIM_TALLY_SHUTDOWN);
    sim_worker_shut_down(world, worker,
                         sim_flip(&world->dice) ? longest : sim_between(&world->dice, 0, longest));
}

static void strike_settings(struct sim_world *world)
{
    struct sim_worker *worker = some_worker(world);
    if (worker == NULL)
        return;
    pawl_worker_settings settings = worker->plan->settings;
    settings.parallel_max = sim_between(&world->dice, 1, settings.parallel_max);
    settings.buffer_max = sim_between(&world->dice, 0, settings.buffer_max);
    settings.poll_ms = sim_between(&world->dice, settings.poll_ms / 2 + 1, settings.poll_ms);
    settings.settle_linger_ms = sim_between(&world->dice, 0, 50);
    settings.heartbeat_ms = PAWL_DEFAULT;
    sim_tally(&world->tallies, SIM_TALLY_SETTINGS);
    sim_worker_set(world, worker, &settings);
}

/* ---------------------------------------------------------------- striking */

static void strike(struct sim_world *world, enum sim_class class)
{
    switch (class) {
    case SIM_CLASS_CRASH:
        strike_crash(world);
        break;
    case SIM_CLASS_PAUSE:
        strike_pause(world);
        break;
    case SIM_CLASS_CUT:
        strike_cut(world);
        break;
    case SIM_CLASS_STORE_DOWN:
        strike_store_down(world);
        break;
    case SIM_CLASS_STORE_JUMP:
        strike_store_jump(world);
        break;
    case SIM_CLASS_STORE_DRIFT:
        strike_store_drift(world);
        break;
    case SIM_CLASS_WORKER_DRIFT:
        strike_worker_drift(world);
        break;
    case SIM_CLASS_WALL_JUMP:
        strike_wall_jump(world);
        break;
    case SIM_CLASS_DOWNSTREAM:
        strike_downstream(world);
        break;
    case SIM_CLASS_SHUTDOWN:
        strike_shutdown(world);
        break;
    case SIM_CLASS_SETTINGS:
        strike_settings(world);
        break;
    case SIM_CLASS_CANCEL:
    case SIM_CLASS_DEAD_LETTER:
    case SIM_CLASS_QUEUE_PAUSE:
    case SIM_CLASS_QUEUE_SET:
        sim_operator_strike(world, class);
        break;
    default:
        assert(false); /* a class that does not strike by time */
    }
}

static void on_strike(struct sim_world *world, const struct sim_event *event)
{
    if (!world->is_chaos)
        return;
    int64_t gap_us = sim_ms(world->plan->gap_ms[event->who]);
    sim_plan_event(world, sim_between(&world->dice, 1, 2 * gap_us),
                   (struct sim_event){.fn = on_strike, .who = event->who});
    strike(world, (enum sim_class)event->who);
}

void sim_faults_start(struct sim_world *world)
{
    for (uint32_t class = 0; class < SIM_CLASSES; class ++) {
        int64_t gap_us = sim_ms(world->plan->gap_ms[class]);
        if (world->plan->is_on[class] && gap_us > 0)
            sim_plan_event(world, sim_between(&world->dice, 1, 2 * gap_us),
                           (struct sim_event){.fn = on_strike, .who = class});
    }
}

void sim_faults_stop(struct sim_world *world)
{
    world->is_chaos = false;
    sim_drift_set_rate(&world->store_wall, world->now_us, 0);
    for (uint32_t i = 0; i < world->plan->workers; i++) {
        sim_drift_set_rate(&world->workers[i].clock, world->now_us, 0);
        if (world->workers[i].keeper != NULL)
            sim_worker_nudge(world, &world->workers[i]);
    }
}

long long sim_faults_tail_us(const struct sim_world *world)
{
    return PAUSE_LEASES_MAX * lease_us(world) + sim_ms(1000);
}

/* ---------------------------------------------------------------- stretched windows */

void sim_faults_stretch(int point, void *user)
{
    struct sim_world *world = user;
    if (!world->is_chaos || world->depth == 0 || world->depth >= SIM_DEPTH_MAX)
        return;
    bool is_lock = point == PAWLI_STRETCH_STORE_LOCK;
    if (!sim_chance(&world->windows, is_lock ? world->plan->stretch_ppm : PICKED_WINDOW_PPM))
        return;
    struct sim_call *call = world->serving[world->depth - 1];
    uint64_t served = world->served;
    int64_t longest = sim_flip(&world->windows) ? 20000 : lease_us(world) / 2;
    sim_tally(&world->tallies, SIM_TALLY_STRETCH);
    sim_net_note_fault(world, call);
    sim_net_time_out(world, call);
    sim_world_run(world, world->now_us + sim_between(&world->windows, 1, longest));
    sim_net_note_fault(world, call);
    if (world->served > served)
        sim_tally(&world->tallies, SIM_TALLY_STRETCH_OVERTAKEN);
}

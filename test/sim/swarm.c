/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * swarm.c - what one seed's run is made of.
 * Owns:  the drawing of a plan from a seed, and what each mutant needs to show itself.
 * Never: draws from anything but the seed.
 */
#include "sim/swarm.h"

#include "core/mutant.h"
#include "sim/draw.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POLLS_MAX    5000 /* idle polls are most of a run's cost: so many at most, all workers */
#define REAPS_MAX    2500
#define CROWDED_PPM  600000
#define CLASS_ON_PPM 450000
#define ALL_OFF_PPM  50000 /* calm seeds: then every bound must be met exactly */
#define RESTART_MS   20000 /* a worker that went down is back by then */
#define STRIKES_MAX  25    /* of each class in one run, on average */

#define MIXED_LEASES_PPM 300000 /* runs whose queues differ widely in their leases */
#define LEASE_FACTOR_MAX 100    /* by so much at most */
#define HASTY_PPM        150000 /* runs with execution timeouts near the way to the store */
#define HASTY_TIMEOUT_MS 50

#define ROW_OF_KEY_MAX 12     /* jobs of one key, on average */
#define BOUND_PPM      200000 /* queues with a bound on what is in flight */

const char *sim_class_name(enum sim_class class)
{
    static const char *const names[] = {
        [SIM_CLASS_CRASH] = "crash",
        [SIM_CLASS_PAUSE] = "pause",
        [SIM_CLASS_HELD_CALL] = "held-call",
        [SIM_CLASS_DROP] = "drop",
        [SIM_CLASS_FAR_DELAY] = "far-delay",
        [SIM_CLASS_DUPLICATE] = "duplicate",
        [SIM_CLASS_CUT] = "cut",
        [SIM_CLASS_STORE_DOWN] = "store-down",
        [SIM_CLASS_STORE_JUMP] = "store-jump",
        [SIM_CLASS_STORE_DRIFT] = "store-drift",
        [SIM_CLASS_WORKER_DRIFT] = "worker-drift",
        [SIM_CLASS_WALL_JUMP] = "wall-jump",
        [SIM_CLASS_WAKE_LOST] = "wake-lost",
        [SIM_CLASS_STRETCH] = "stretch",
        [SIM_CLASS_CANCEL] = "cancel",
        [SIM_CLASS_DEAD_LETTER] = "dead-letter",
        [SIM_CLASS_QUEUE_PAUSE] = "queue-pause",
        [SIM_CLASS_QUEUE_SET] = "queue-set",
        [SIM_CLASS_DOWNSTREAM] = "downstream",
        [SIM_CLASS_SHUTDOWN] = "shutdown",
        [SIM_CLASS_SETTINGS] = "settings",
    };
    return names[class];
}

/* ---------------------------------------------------------------- sizes */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* A number between low and high, each scale as likely as another. */
static int64_t scaled(struct sim_dice *dice, int64_t low, int64_t high)
{
    assert(low > 0);
    int64_t top = low;
    while (top < high && sim_chance(dice, 700000))
        top = least(top * 3, high);
    return sim_between(dice, low, top);
}

static void draw_sizes(struct sim_plan *plan, struct sim_dice *dice)
{
    /* Short and crowded, or long and quiet: an event that needs a crowd, and one that needs time,
     * are both met. */
    bool is_crowded = sim_chance(dice, CROWDED_PPM);
    plan->chaos_ms = is_crowded ? sim_between(dice, 3, 10) * 60000
                                : sim_between(dice, 40, 120) * 60000;
    plan->workers = (uint32_t)sim_between(dice, 3, SIM_WORKERS_MAX);
    plan->reapers = (uint32_t)sim_between(dice, 1, SIM_REAPERS_MAX);
    plan->producers = (uint32_t)sim_between(dice, 1, SIM_PRODUCERS_MAX);
    plan->queues = (uint32_t)sim_between(dice, 1, SIM_QUEUES_MAX);
    plan->jobs_max = is_crowded ? sim_between(dice, 40, 350) : sim_between(dice, 20, 120);
    plan->batch_max = scaled(dice, 1, 30);
    plan->enqueue_gap_ms = most(1, plan->chaos_ms * (plan->batch_max + 1) / 2 * plan->producers /
                                       plan->jobs_max * 8 / 10);
    plan->mine_page = scaled(dice, 1, 20);
}

/* ---------------------------------------------------------------- queues and leases */

static void draw_queues(struct sim_plan *plan, struct sim_dice *dice)
{
    static const int64_t leases_ms[] = {1000, 2000, 5000, 10000, 30000, 60000};
    /* Reapers and beats come several times per lease: long runs have long leases. */
    int64_t shortest = plan->chaos_ms * 2 * plan->reapers / REAPS_MAX;
    int64_t lease = most(leases_ms[sim_between(dice, 0, 5)], shortest);
    int64_t longest = most(lease, plan->chaos_ms / 4);
    bool is_mixed = sim_chance(dice, MIXED_LEASES_PPM);
    bool is_hasty = sim_chance(dice, HASTY_PPM);
    plan->lease_largest_ms = 0;
    plan->lease_smallest_ms = PAWL_DURATION_MAX_MS;
    for (uint32_t i = 0; i < plan->queues; i++) {
        pawl_queue_settings *settings = &plan->queue[i].settings;
        snprintf(plan->queue[i].name, sizeof(plan->queue[i].name), "queue%u", i);
        pawl_queue_settings_init(settings);
        settings->lease_ms = sim_flip(dice) ? lease : sim_between(dice, lease, 2 * lease);
        /* The first queue keeps the run's own lease: what is slow beside it must not cost it. */
        if (is_mixed && i > 0)
            settings->lease_ms = scaled(dice, lease, least(LEASE_FACTOR_MAX * lease, longest));
        if (sim_flip(dice))
            settings->execution_timeout_ms = is_hasty ? sim_between(dice, 1, HASTY_TIMEOUT_MS)
                                                      : sim_between(dice, lease / 2, 6 * lease);
        settings->max_retries = sim_between(dice, 0, 4);
        settings->max_lost_leases = sim_flip(dice) ? 10 : sim_between(dice, 1, 6);
        settings->backoff_base_ms = scaled(dice, 100, 2000);
        settings->backoff_max_ms = settings->backoff_base_ms * sim_between(dice, 1, 16);
        plan->lease_largest_ms = most(plan->lease_largest_ms, settings->lease_ms);
        plan->lease_smallest_ms = least(plan->lease_smallest_ms, settings->lease_ms);
    }
    if (plan->is_on[SIM_CLASS_QUEUE_SET])
        plan->lease_largest_ms *= 2;
    int64_t reap = least(10000, plan->lease_smallest_ms / 2);
    plan->reap_interval_ms = sim_flip(dice) ? reap : sim_between(dice, reap, reap * 3 / 2);
    plan->reap_batch_max = scaled(dice, 1, 50);
}

/* ---------------------------------------------------------------- workers */

static void draw_settings(struct sim_plan *plan, struct sim_dice *dice,
                          pawl_worker_settings *settings)
{
    int64_t lease = plan->lease_smallest_ms;
    int64_t poll = most(100, plan->chaos_ms * plan->workers / POLLS_MAX);
    pawl_err err;
    pawl_worker_settings_init(settings);
    settings->parallel_max = scaled(dice, 1, 8);
    settings->buffer_max = sim_flip(dice) ? 0 : scaled(dice, 1, 8);
    if (sim_flip(dice))
        settings->heartbeat_ms = sim_between(dice, lease / 8, (lease - 1) / 3);
    settings->poll_ms = sim_between(dice, poll, 2 * poll);
    settings->grace_ms = sim_between(dice, lease / 10, lease);
    settings->claim_batch_max = scaled(dice, 1, 20);
    settings->renew_batch_max = scaled(dice, 1, 50);
    settings->settle_batch_max = scaled(dice, 1, 20);
    settings->settle_linger_ms = sim_flip(dice) ? 0 : sim_between(dice, 0, least(50, lease / 40));
    settings->call_timeout_ms = sim_between(dice, most(100, lease / 8), most(200, lease));
    settings->retry_base_ms = sim_between(dice, 10, 200);
    settings->retry_max_ms = sim_between(dice, 200, 5000);
    if (pawl_worker_settings_check(settings, lease, &err) != PAWL_OK) {
        fprintf(stderr, "sim: worker settings: %s\n", err.text);
        abort();
    }
}

static void draw_worker(struct sim_plan *plan, struct sim_dice *dice, uint32_t which)
{
    struct sim_worker_plan *worker = &plan->worker[which];
    draw_settings(plan, dice, &worker->settings);
    uint32_t first = (uint32_t)sim_between(dice, 0, plan->queues - 1);
    /* The first worker serves every queue, so that each is served. */
    worker->lines_count = which == 0 ? plan->queues : (uint32_t)sim_between(dice, 1, plan->queues);
    for (uint32_t i = 0; i < worker->lines_count; i++) {
        worker->lines[i] = (first + i) % plan->queues;
        worker->held_max[i] = sim_flip(dice) ? PAWL_DEFAULT : sim_between(dice, 1, 6);
    }
    if (plan->is_on[SIM_CLASS_WORKER_DRIFT])
        worker->drift_ppm = sim_between(dice, -10000, 10000);
}

/* ---------------------------------------------------------------- work */

static void draw_work(struct sim_plan *plan, struct sim_dice *dice)
{
    int64_t lease = plan->lease_smallest_ms;
    plan->run_ms = scaled(dice, 10, lease);
    plan->delay_max_ms = scaled(dice, 1000, most(2000, least(20 * lease, plan->chaos_ms / 4)));
    plan->delayed_ppm = sim_flip(dice) ? 0 : sim_between(dice, 0, 500000);
    plan->start_by_ppm = sim_flip(dice) ? 0 : sim_between(dice, 0, 300000);
    plan->dedupe_ppm = sim_flip(dice) ? 0 : sim_between(dice, 0, 500000);
    plan->own_limits_ppm = sim_flip(dice) ? 0 : sim_between(dice, 0, 500000);
    plan->old_id_ppm = sim_flip(dice) ? 0 : sim_between(dice, 0, 100000);
    plan->temper_weights[SIM_TEMPER_STEADY] = 20;
    for (uint32_t i = 1; i < SIM_TEMPERS; i++)
        plan->temper_weights[i] = sim_flip(dice) ? 0 : (uint32_t)scaled(dice, 1, 20);
}

/* Ordering keys, and bounds on what is in flight: by dice of their own, so that what a seed was
 * before there were any, it still is. So many keys that none has to wait for too long a row. */
static void draw_order(struct sim_plan *plan, int favour)
{
    struct sim_dice dice = sim_dice_for(plan->seed, 2);
    bool is_about_keys = favour >= PAWLI_MUTANT_KEY_RETRY_OVERTAKEN &&
                         favour <= PAWLI_MUTANT_FENCE_REUSED;
    bool is_about_bounds = favour == PAWLI_MUTANT_IN_FLIGHT_UNCOUNTED;
    if (sim_flip(&dice) || is_about_keys)
        plan->keyed_ppm = is_about_keys ? 900000 : sim_between(&dice, 100000, 1000000);
    int64_t keyed = plan->jobs_max * plan->keyed_ppm / 1000000 / plan->queues;
    plan->keys_count = most(1, keyed / sim_between(&dice, 2, ROW_OF_KEY_MAX));
    for (uint32_t i = 0; i < plan->queues; i++) {
        if (sim_chance(&dice, BOUND_PPM) || is_about_bounds)
            plan->queue[i].settings.max_in_flight = sim_between(&dice, 1, SIM_BOUND_MAX);
    }
}

static void draw_trouble(struct sim_plan *plan, struct sim_dice *dice)
{
    const bool *is_on = plan->is_on;
    plan->latency_us = least(scaled(dice, 200, 20000), plan->lease_smallest_ms * 10);
    plan->drop_ppm = is_on[SIM_CLASS_DROP] ? scaled(dice, 1000, 100000) : 0;
    plan->far_ppm = is_on[SIM_CLASS_FAR_DELAY] ? scaled(dice, 1000, 100000) : 0;
    plan->duplicate_ppm = is_on[SIM_CLASS_DUPLICATE] ? scaled(dice, 1000, 100000) : 0;
    plan->wake_lost_ppm = is_on[SIM_CLASS_WAKE_LOST] ? sim_between(dice, 100000, 1000000) : 0;
    plan->held_ppm = is_on[SIM_CLASS_HELD_CALL] ? scaled(dice, 1000, 20000) : 0;
    plan->crash_step_ppm = is_on[SIM_CLASS_CRASH] ? scaled(dice, 100, 10000) : 0;
    plan->stretch_ppm = is_on[SIM_CLASS_STRETCH] ? scaled(dice, 1000, 30000) : 0;
    plan->store_drift_ppm = is_on[SIM_CLASS_STORE_DRIFT] ? sim_between(dice, -10000, 10000) : 0;
    for (uint32_t i = 0; i < SIM_CLASSES; i++)
        plan->gap_ms[i] = most(1, plan->chaos_ms / sim_between(dice, 1, STRIKES_MAX));
    /* These do not strike by time. */
    static const enum sim_class steady[] = {
        SIM_CLASS_HELD_CALL, SIM_CLASS_DROP,      SIM_CLASS_FAR_DELAY,
        SIM_CLASS_DUPLICATE, SIM_CLASS_WAKE_LOST, SIM_CLASS_STRETCH,
    };
    for (size_t i = 0; i < sizeof(steady) / sizeof(steady[0]); i++)
        plan->gap_ms[steady[i]] = 0;
}

/* Where a mutant needs a certain trouble to show, its seeds have that alone: whatever else goes
 * wrong may excuse what the mutant does. Bits 1u << class; 0: the swarm decides. */
static uint32_t helpful(int mutant)
{
    switch (mutant) {
    case PAWLI_MUTANT_TOKEN_UNCHECKED:
    case PAWLI_MUTANT_RELEASE_STALE:
        return 1u << SIM_CLASS_DUPLICATE | 1u << SIM_CLASS_FAR_DELAY | 1u << SIM_CLASS_SHUTDOWN;
    case PAWLI_MUTANT_WORKER_UNCHECKED_EXPIRY:
    case PAWLI_MUTANT_WATCHDOG_FROM_REPLY:
        return 1u << SIM_CLASS_FAR_DELAY | 1u << SIM_CLASS_STRETCH;
    case PAWLI_MUTANT_NO_BEATS_AT_DRAIN:
    case PAWLI_MUTANT_SHUTDOWN_KEEPS:
        return 1u << SIM_CLASS_SHUTDOWN;
    case PAWLI_MUTANT_NO_CALL_BACKOFF:
        return 1u << SIM_CLASS_STORE_DOWN;
    case PAWLI_MUTANT_KEY_RELEASE_FORGETS:
        return 1u << SIM_CLASS_SHUTDOWN | 1u << SIM_CLASS_PAUSE;
    case PAWLI_MUTANT_BEAT_TRIED_ONCE:
    case PAWLI_MUTANT_CLAIM_LOST_FORGOTTEN:
        return 1u << SIM_CLASS_DROP;
    default:
        return 0;
    }
}

/* Much is given back, and much of that is said twice. */
static void crowd_buffers(struct sim_plan *plan)
{
    for (uint32_t i = 0; i < plan->workers; i++) {
        plan->worker[i].settings.parallel_max = 1;
        plan->worker[i].settings.buffer_max = 4;
    }
    plan->run_ms = 2 * plan->lease_smallest_ms;
    plan->duplicate_ppm = 300000;
    plan->far_ppm = 100000;
}

/* Much is said late: behind its lease's deadline, and before a reaper has looked. */
static void crowd_late_calls(struct sim_plan *plan)
{
    plan->far_ppm = 300000;
    plan->stretch_ppm = 30000;
    plan->reapers = 1;
}

void sim_swarm_draw(struct sim_plan *plan, uint64_t seed, int favour)
{
    *plan = (struct sim_plan){.seed = seed};
    struct sim_dice dice = sim_dice_for(seed, 1);
    bool is_calm = sim_chance(&dice, ALL_OFF_PPM);
    for (uint32_t i = 0; i < SIM_CLASSES; i++)
        plan->is_on[i] = sim_chance(&dice, CLASS_ON_PPM) && !is_calm;
    uint32_t only = helpful(favour);
    for (uint32_t i = 0; i < SIM_CLASSES && only != 0; i++)
        plan->is_on[i] = (only >> i & 1) != 0;
    draw_sizes(plan, &dice);
    draw_queues(plan, &dice);
    for (uint32_t i = 0; i < plan->workers; i++)
        draw_worker(plan, &dice, i);
    draw_work(plan, &dice);
    draw_trouble(plan, &dice);
    draw_order(plan, favour);
    if (favour == PAWLI_MUTANT_RELEASE_STALE)
        crowd_buffers(plan);
    if (favour == PAWLI_MUTANT_WORKER_UNCHECKED_EXPIRY)
        crowd_late_calls(plan);
}

int64_t sim_swarm_call_ms(const struct sim_plan *plan)
{
    int64_t longest = 0;
    for (uint32_t i = 0; i < plan->workers; i++) {
        const pawl_worker_settings *settings = &plan->worker[i].settings;
        longest = most(longest, settings->call_timeout_ms + settings->retry_max_ms);
    }
    return longest;
}

int64_t sim_swarm_calm_ms(const struct sim_plan *plan)
{
    return sim_swarm_call_ms(plan) + 2 * plan->lease_largest_ms + RESTART_MS;
}

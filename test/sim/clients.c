/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * clients.c - everybody who calls the store and is no worker: producers, reapers, operators.
 * Owns:  what they ask for and when, and what a producer does when its answer is lost.
 * Never: touches a job but by a call.
 */
#include "sim/world.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALL_TIMEOUT_MS  5000
#define REPEAT_MS        500 /* a producer waits up to so long before it repeats */
#define PROBES           6
#define DEDUPE_KEYS      3
#define HASTY_PPM        100000 /* of the jobs with limits of their own */
#define OPERATOR_IDS_MAX 5
#define REDRIVE_PPM      700000 /* the rest is discarded */

/* ---------------------------------------------------------------- producers */

static pawl_mono producer_mono(void *user)
{
    const struct sim_producer *producer = user;
    return (pawl_mono){producer->world->now_us};
}

static pawl_wall producer_wall(void *user)
{
    const struct sim_producer *producer = user;
    return (pawl_wall){sim_drift_read(&producer->wall, producer->world->now_us)};
}

static uint32_t new_job(struct sim_world *world, struct sim_producer *producer)
{
    const struct sim_plan *plan = world->plan;
    struct sim_dice *dice = &producer->dice;
    if (world->jobs_count == world->jobs_capacity) {
        world->jobs_capacity = world->jobs_capacity == 0 ? 64 : 2 * world->jobs_capacity;
        world->jobs = realloc(world->jobs, world->jobs_capacity * sizeof(*world->jobs));
        if (world->jobs == NULL)
            abort();
    }
    struct sim_job *job = &world->jobs[world->jobs_count];
    *job = (struct sim_job){
        .queue = (uint32_t)sim_between(dice, 0, plan->queues - 1),
        .temper = (enum sim_temper)sim_weighted(dice, plan->temper_weights, SIM_TEMPERS),
        .priority = sim_flip(dice) ? PAWL_PRIORITY_NORMAL
                                   : (int)sim_between(dice, 0, PAWL_PRIORITY_LAST),
        .start_within_ms = PAWL_DEFAULT,
        .max_retries = PAWL_DEFAULT,
        .timeout_ms = PAWL_DEFAULT,
    };
    if (sim_chance(dice, plan->delayed_ppm)) {
        job->delay_ms = sim_between(dice, 1, plan->delay_max_ms);
        sim_tally(&world->tallies, SIM_TALLY_DELAYED);
    }
    if (sim_chance(dice, plan->start_by_ppm)) {
        job->start_within_ms = job->delay_ms + sim_between(dice, 100, plan->delay_max_ms);
        sim_tally(&world->tallies, SIM_TALLY_START_BY);
    }
    if (sim_chance(dice, plan->own_limits_ppm)) {
        job->max_retries = sim_between(dice, 0, 4);
        /* Down to less than a round trip: such a job must start all the same. */
        job->timeout_ms = sim_chance(dice, HASTY_PPM)
                              ? sim_between(dice, 1, 50)
                              : sim_between(dice, plan->lease_smallest_ms / 2,
                                            4 * plan->lease_largest_ms);
    }
    if (sim_chance(dice, plan->dedupe_ppm))
        snprintf(job->dedupe_key, sizeof(job->dedupe_key), "k%d",
                 (int)sim_between(dice, 0, DEDUPE_KEYS - 1));
    if (sim_chance(dice, plan->keyed_ppm)) {
        snprintf(job->ordering_key, sizeof(job->ordering_key), "o%d",
                 (int)sim_between(dice, 0, plan->keys_count - 1));
        sim_tally(&world->tallies, SIM_TALLY_KEYED);
    }
    /* There is one shard: the id does not depend on the keys. */
    struct pawli_shard_key key = {.queue = plan->queue[job->queue].name};
    job->id = pawli_minter_next(producer->minter, &key);
    return world->jobs_count++;
}

static void produce(struct sim_world *world, uint32_t who)
{
    struct sim_producer *producer = &world->producers[who];
    struct sim_call *call = sim_net_call(world, producer->actor, SIM_VERB_ENQUEUE);
    call->who = who;
    call->deadline_us = world->now_us + sim_ms(CALL_TIMEOUT_MS);
    struct sim_item *items = sim_call_items(call, producer->batch_count);
    for (size_t i = 0; i < producer->batch_count; i++)
        items[i].job = producer->batch[i];
    sim_net_send(world, call);
}

static void on_produce(struct sim_world *world, const struct sim_event *event);

static void produce_later(struct sim_world *world, uint32_t who, int64_t after_us)
{
    sim_plan_event(world, after_us, (struct sim_event){.fn = on_produce, .who = who});
}

/* Think of new jobs for the next call, and now and then of one that is there already. */
static void make_batch(struct sim_world *world, struct sim_producer *producer)
{
    const struct sim_plan *plan = world->plan;
    struct sim_dice *dice = &producer->dice;
    size_t count = (size_t)sim_between(dice, 1, plan->batch_max);
    for (size_t i = 0; i < count; i++) {
        bool is_old = world->jobs_count > 0 && sim_chance(dice, plan->old_id_ppm);
        uint32_t old = is_old ? (uint32_t)sim_between(dice, 0, world->jobs_count - 1) : 0;
        /* Only what has been acknowledged is old; twice in one batch is no question of age. */
        if (is_old && world->jobs[old].is_acked)
            producer->batch[i] = old;
        else
            producer->batch[i] = new_job(world, producer);
    }
    producer->batch_count = count;
}

static void on_produce(struct sim_world *world, const struct sim_event *event)
{
    struct sim_producer *producer = &world->producers[event->who];
    if (producer->batch_count == 0) {
        if (!world->is_chaos || world->jobs_count >= world->plan->jobs_max)
            return;
        make_batch(world, producer);
    }
    produce(world, event->who);
}

static void on_probe(struct sim_world *world, const struct sim_event *event)
{
    struct sim_producer *producer = &world->producers[event->who];
    if (producer->batch_count > 0)
        return;
    make_batch(world, producer);
    produce(world, event->who);
}

void sim_producer_answer(struct sim_world *world, struct sim_call *call, pawl_code code)
{
    struct sim_producer *producer = &world->producers[call->who];
    if (code != PAWL_OK) {
        if (code == PAWL_UNKNOWN)
            sim_tally(&world->tallies, SIM_TALLY_ENQUEUE_REPEATED);
        produce_later(world, call->who, sim_ms(sim_between(&producer->dice, 1, REPEAT_MS)));
        return;
    }
    for (size_t i = 0; i < call->items_count; i++) {
        struct sim_job *job = &world->jobs[call->items[i].job];
        if (call->items[i].code == PAWL_DUPLICATE)
            sim_tally(&world->tallies, SIM_TALLY_DEDUPE_HIT);
        if (call->items[i].code == PAWL_EXISTS && job->is_acked)
            sim_tally(&world->tallies, SIM_TALLY_OLD_ID);
        if (call->items[i].code == PAWL_DUPLICATE || job->is_acked)
            continue;
        job->is_acked = true;
        sim_note(world, (struct pawli_trace_note){.kind = PAWLI_NOTE_ACKED,
                                                  .actor = producer->actor->name,
                                                  .job = job->id});
    }
    producer->batch_count = 0;
    int64_t gap_us = sim_ms(world->plan->enqueue_gap_ms);
    produce_later(world, call->who, sim_between(&producer->dice, 1, 2 * gap_us));
}

static void producer_start(struct sim_world *world, uint32_t who)
{
    struct sim_producer *producer = &world->producers[who];
    producer->world = world;
    producer->dice = sim_dice_for(world->plan->seed, 300 + who);
    producer->wall = world->store_wall;
    producer->clock = (pawl_clock){producer_mono, producer_wall, producer};
    producer->seeded.state = sim_draw(&producer->dice);
    producer->random = pawli_seeded_as_random(&producer->seeded);
    producer->minter = pawli_minter_new(&producer->clock, &producer->random, 1);
    if (producer->minter == NULL)
        abort();
    producer->actor = sim_world_actor(world, "producer", who, 1);
    produce_later(world, who, sim_between(&producer->dice, 1, sim_ms(1000)));
}

/* Some more work when all is calm, without a hint: polling alone must find it in time. */
void sim_clients_probe(struct sim_world *world)
{
    int64_t poll_us = sim_ms(world->plan->worker[0].settings.poll_ms);
    int64_t end_us = world->now_us + 5 * poll_us;
    world->is_probing = true;
    for (uint32_t i = 0; i < PROBES; i++)
        sim_plan_event(world, sim_between(&world->dice, 1, 4 * poll_us),
                       (struct sim_event){.fn = on_probe, .who = i % world->plan->producers});
    sim_world_run(world, end_us);
}

/* ---------------------------------------------------------------- reapers */

static void reap(struct sim_world *world, uint32_t who)
{
    struct sim_call *call = sim_net_call(world, world->reapers[who].actor, SIM_VERB_REAP);
    call->who = who;
    call->deadline_us = world->now_us + sim_ms(CALL_TIMEOUT_MS);
    call->rows_max = world->plan->reap_batch_max;
    sim_net_send(world, call);
}

static void on_reap(struct sim_world *world, const struct sim_event *event)
{
    reap(world, event->who);
    sim_plan_event(world, sim_ms(world->plan->reap_interval_ms),
                   (struct sim_event){.fn = on_reap, .who = event->who});
}

void sim_reaper_answer(struct sim_world *world, struct sim_call *call, pawl_code code)
{
    /* A full batch means that there may be more. A failed one waits for the next turn. */
    if (code == PAWL_OK && (int64_t)call->items_count == call->rows_max)
        reap(world, call->who);
}

static void reaper_start(struct sim_world *world, uint32_t who)
{
    struct sim_reaper *reaper = &world->reapers[who];
    reaper->dice = sim_dice_for(world->plan->seed, 400 + who);
    reaper->actor = sim_world_actor(world, "reaper", who, 1);
    sim_plan_event(world, sim_between(&reaper->dice, 1, sim_ms(world->plan->reap_interval_ms)),
                   (struct sim_event){.fn = on_reap, .who = who});
}

/* ---------------------------------------------------------------- operators */

static struct sim_call *operator_call(struct sim_world *world, enum sim_verb verb)
{
    struct sim_call *call = sim_net_call(world, world->operator, verb);
    call->deadline_us = world->now_us + sim_ms(CALL_TIMEOUT_MS);
    return call;
}

static void change_some(struct sim_world *world, enum sim_verb verb)
{
    struct sim_call *call = operator_call(world, verb);
    size_t count = (size_t)sim_between(&world->dice, 1, OPERATOR_IDS_MAX);
    struct sim_item *items = sim_call_items(call, count);
    /* Late ones more often: they are more likely to be alive. */
    int64_t last = (int64_t)world->jobs_count - 1;
    for (size_t i = 0; i < count; i++) {
        int64_t first = sim_flip(&world->dice) ? 0 : (last > 20 ? last - 20 : 0);
        items[i].job = (uint32_t)sim_between(&world->dice, first, last);
    }
    sim_net_send(world, call);
}

static void change_queue(struct sim_world *world, enum sim_verb verb)
{
    struct sim_call *call = operator_call(world, verb);
    const struct sim_plan *plan = world->plan;
    call->queue = (uint32_t)sim_between(&world->dice, 0, plan->queues - 1);
    call->is_paused = !world->is_queue_paused[call->queue];
    call->lease_ms = sim_between(&world->dice, plan->lease_smallest_ms, plan->lease_largest_ms);
    call->max_in_flight = plan->queue[call->queue].settings.max_in_flight;
    if (call->max_in_flight > 0)
        call->max_in_flight = sim_between(&world->dice, 0, SIM_BOUND_MAX);
    sim_net_send(world, call);
}

void sim_operator_strike(struct sim_world *world, enum sim_class class)
{
    if (world->jobs_count == 0)
        return;
    switch (class) {
    case SIM_CLASS_CANCEL:
        change_some(world, SIM_VERB_CANCEL);
        break;
    case SIM_CLASS_DEAD_LETTER:
        change_some(world,
                    sim_chance(&world->dice, REDRIVE_PPM) ? SIM_VERB_REDRIVE : SIM_VERB_DISCARD);
        break;
    case SIM_CLASS_QUEUE_PAUSE:
        change_queue(world, SIM_VERB_QUEUE_PAUSE);
        break;
    default:
        assert(class == SIM_CLASS_QUEUE_SET);
        change_queue(world, SIM_VERB_QUEUE_SET);
        break;
    }
}

/* ---------------------------------------------------------------- */

void sim_clients_start(struct sim_world *world)
{
    for (uint32_t i = 0; i < world->plan->producers; i++)
        producer_start(world, i);
    for (uint32_t i = 0; i < world->plan->reapers; i++)
        reaper_start(world, i);
    world->operator= sim_world_actor(world, "operator", 0, 1);
}

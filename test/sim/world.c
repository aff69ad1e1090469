/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * world.c - one simulated run.
 * Owns:  true time, the loop of events, the store under its clock, the order of a run's phases.
 * Never: reads a real clock or a real random source; lets anything depend on an address.
 */
#include "sim/world.h"

#include "core/mutant.h"
#include "sim/faults.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WALL_BASE_US  INT64_C(1767225600000000) /* 2026-01-01: when all simulated walls begin */
#define OFFSET_MAX_US INT64_C(1000000000000)    /* monotonic clocks begin anywhere */
#define DRAIN_LOOK_US INT64_C(1000000)
#define LIST_PAGE     40
#define ATTEMPTS_PAGE 40

/* ---------------------------------------------------------------- failing */

static void fail(struct sim_world *world, const char *rule, const char *format, va_list args)
{
    if (world->is_failed)
        return;
    world->is_failed = true;
    snprintf(world->rule, sizeof(world->rule), "%s", rule);
    vsnprintf(world->failure, sizeof(world->failure), format, args);
}

void sim_fail(struct sim_world *world, const char *rule, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fail(world, rule, format, args);
    va_end(args);
    world->is_broken_off = true;
}

void sim_fail_whole(struct sim_world *world, const char *rule, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fail(world, rule, format, args);
    va_end(args);
}

void sim_must(pawl_code code, const pawl_err *err, const char *what)
{
    if (code == PAWL_OK)
        return;
    fprintf(stderr, "sim: %s: %s: %s\n", what, pawl_code_name(code), err->text);
    abort();
}

/* ---------------------------------------------------------------- clocks */

static pawl_mono true_mono(void *user)
{
    return (pawl_mono){((const struct sim_world *)user)->now_us};
}

static pawl_wall true_wall(void *user)
{
    return (pawl_wall){WALL_BASE_US + ((const struct sim_world *)user)->now_us};
}

static pawl_wall store_wall(void *user)
{
    const struct sim_world *world = user;
    return (pawl_wall){sim_drift_read(&world->store_wall, world->now_us)};
}

/* ---------------------------------------------------------------- events, notes, actors */

void sim_plan_event(struct sim_world *world, int64_t after_us, struct sim_event event)
{
    assert(after_us >= 0);
    event.at = world->now_us + after_us;
    sim_events_plan(&world->events, event);
}

void sim_world_run(struct sim_world *world, int64_t until_us)
{
    struct sim_event event;
    while (!world->is_broken_off && sim_events_take(&world->events, until_us, &event)) {
        if (event.at > world->now_us)
            world->now_us = event.at;
        world->steps++;
        event.fn(world, &event);
    }
    if (world->now_us < until_us)
        world->now_us = until_us;
}

void sim_note(struct sim_world *world, struct pawli_trace_note note)
{
    pawli_trace_note(world->writer, (pawl_mono){world->now_us}, &note);
}

struct sim_actor *sim_world_actor(struct sim_world *world, const char *kind, uint32_t who,
                                  uint32_t incarnation)
{
    struct sim_actor *actor = calloc(1, sizeof(*actor));
    if (actor == NULL)
        abort();
    snprintf(actor->name, sizeof(actor->name), "%s%" PRIu32 ".%" PRIu32, kind, who, incarnation);
    actor->next = world->actors;
    world->actors = actor;
    return actor;
}

pawl_store *sim_actor_handle(struct sim_world *world, struct sim_actor *actor,
                             enum sim_channel channel)
{
    pawl_err err;
    if (actor->handles[channel] != NULL)
        return actor->handles[channel];
    pawl_store *inner = NULL;
    sim_must(pawl_memory_open(world->memory, &inner, &err), &err, "open");
    struct pawli_trace_args args = {
        .inner = inner,
        .writer = world->writer,
        .actor = actor->name,
        .clock = &world->true_clock,
        .store_clock = &world->store_clock,
    };
    sim_must(pawli_trace_open(&args, &actor->handles[channel], &err), &err, "trace");
    return actor->handles[channel];
}

/* ---------------------------------------------------------------- who is told what */

static bool is_workers(const struct sim_call *call)
{
    return call->verb <= SIM_VERB_OWN_SETTLE;
}

void sim_party_answer(struct sim_world *world, struct sim_call *call, pawl_code code)
{
    if (is_workers(call))
        sim_worker_answer(world, call, code);
    else if (call->verb == SIM_VERB_ENQUEUE)
        sim_producer_answer(world, call, code);
    else if (call->verb == SIM_VERB_REAP)
        sim_reaper_answer(world, call, code);
}

void sim_party_late(struct sim_world *world, struct sim_call *call)
{
    if (is_workers(call))
        sim_worker_late(world, call);
}

int64_t sim_party_pause_us(const struct sim_world *world, const struct sim_call *call)
{
    if (!is_workers(call))
        return 0;
    const struct sim_worker *worker = &world->workers[call->who];
    if (worker->keeper == NULL || worker->incarnation != call->incarnation ||
        !sim_worker_is_paused(world, worker))
        return 0;
    return worker->paused_until_us - world->now_us;
}

/* ---------------------------------------------------------------- birth and death */

static void worker_init(struct sim_world *world, uint32_t i)
{
    struct sim_worker *worker = &world->workers[i];
    worker->index = i;
    worker->plan = &world->plan->worker[i];
    worker->dice = sim_dice_for(world->plan->seed, 200 + i);
    worker->clock = (struct sim_drift){
        .true_base_us = world->now_us,
        .base_us = sim_between(&worker->dice, 1, OFFSET_MAX_US),
        .rate_ppm = worker->plan->drift_ppm,
    };
}

static void store_init(struct sim_world *world)
{
    pawl_err err;
    pawl_memory_options options;
    world->store_wall = (struct sim_drift){
        .true_base_us = world->now_us,
        .base_us = WALL_BASE_US,
        .rate_ppm = world->plan->store_drift_ppm,
    };
    world->true_clock = (pawl_clock){true_mono, true_wall, world};
    world->store_clock = (pawl_clock){true_mono, store_wall, world};
    world->store_seeded.state = world->plan->seed ^ UINT64_C(0x5707e);
    world->store_random = pawli_seeded_as_random(&world->store_seeded);
    pawl_memory_options_init(&options);
    options.clock = &world->store_clock;
    options.random = &world->store_random;
    sim_must(pawl_memory_new(&options, &world->memory, &err), &err, "memory");
    sim_must(pawl_memory_open(world->memory, &world->raw, &err), &err, "open");
    sim_must(pawli_trace_writer_new(NULL, &world->writer, &err), &err, "history");
}

void sim_world_init(struct sim_world *world, const struct sim_plan *plan)
{
    *world = (struct sim_world){.plan = plan, .now_us = SIM_START_US};
    world->dice = sim_dice_for(plan->seed, 100);
    world->wire = sim_dice_for(plan->seed, 101);
    world->windows = sim_dice_for(plan->seed, 102);
    store_init(world);
    for (uint32_t i = 0; i < plan->workers; i++)
        worker_init(world, i);
    pawli_testpoints.stretch = sim_faults_stretch;
    pawli_testpoints.user = world;
}

void sim_world_clear(struct sim_world *world)
{
    pawli_testpoints.stretch = NULL;
    pawli_testpoints.user = NULL;
    for (uint32_t i = 0; i < SIM_WORKERS_MAX; i++)
        sim_worker_clear(&world->workers[i]);
    for (uint32_t i = 0; i < SIM_PRODUCERS_MAX; i++)
        pawli_minter_free(world->producers[i].minter);
    while (world->actors != NULL) {
        struct sim_actor *actor = world->actors;
        world->actors = actor->next;
        for (int i = 0; i < SIM_CHANNELS; i++)
            pawl_store_close(actor->handles[i]);
        free(actor);
    }
    pawl_store_close(world->raw);
    pawl_memory_free(world->memory);
    pawli_trace_writer_free(world->writer);
    sim_net_clear(&world->net);
    sim_events_clear(&world->events);
    free(world->jobs);
    *world = (struct sim_world){0};
}

/* ---------------------------------------------------------------- the phases of a run */

static void set_up_queues(struct sim_world *world, bool is_end)
{
    pawl_err err;
    pawl_store *store = sim_actor_handle(world, world->operator, SIM_CHANNEL_CLAIM);
    for (uint32_t i = 0; i < world->plan->queues; i++) {
        const struct sim_queue_plan *queue = &world->plan->queue[i];
        sim_must(pawl_queue_set(store, queue->name, &queue->settings, &err), &err, "queue_set");
        world->max_in_flight[i] = queue->settings.max_in_flight;
        if (is_end)
            sim_must(pawl_queue_pause(store, queue->name, false, &err), &err, "queue_pause");
    }
}

static bool is_drained(const struct sim_world *world)
{
    pawl_stats stats[SIM_QUEUES_MAX];
    size_t count = 0;
    pawl_err err;
    for (uint32_t i = 0; i < world->plan->producers; i++) {
        if (world->producers[i].batch_count > 0)
            return false;
    }
    for (uint32_t i = 0; i < world->plan->workers; i++) {
        if (world->workers[i].keeper == NULL)
            continue;
        struct pawli_keeper_counts counts = pawli_keeper_count(world->workers[i].keeper);
        if (counts.running + counts.buffered + counts.settling + counts.releasing > 0)
            return false;
    }
    sim_must(pawl_queue_stats(world->raw, NULL, stats, SIM_QUEUES_MAX, &count, &err), &err,
             "stats");
    for (size_t i = 0; i < count; i++) {
        if (stats[i].ready > 0 || stats[i].in_flight > 0)
            return false;
    }
    return true;
}

/* As long as it can take at worst when nothing is broken any more: what was delayed becomes due,
 * what hangs runs into its timeout, what fails uses up its retries. */
static int64_t drain_limit_us(const struct sim_plan *plan)
{
    int64_t backoff_ms = 0;
    bool is_bounded = false;
    for (uint32_t i = 0; i < plan->queues; i++) {
        if (plan->queue[i].settings.backoff_max_ms > backoff_ms)
            backoff_ms = plan->queue[i].settings.backoff_max_ms;
        is_bounded = is_bounded || plan->queue[i].settings.max_in_flight > 0;
    }
    /* One after the other, each of them may be one that hangs, again and again. */
    int64_t in_a_row = is_bounded || plan->keyed_ppm > 0 ? plan->jobs_max : 1;
    return sim_ms(in_a_row *
                      (2 * plan->delay_max_ms + 30 * plan->lease_largest_ms + 10 * backoff_ms) +
                  plan->jobs_max * plan->run_ms + 60000);
}

static void drain(struct sim_world *world)
{
    int64_t limit_us = world->now_us + drain_limit_us(world->plan);
    while (!world->is_broken_off && !is_drained(world)) {
        if (world->now_us > limit_us) {
            sim_fail_whole(world, "DRAIN",
                           "faults are off since %" PRId64 " s and there is still work",
                           drain_limit_us(world->plan) / 1000000);
            return;
        }
        sim_world_run(world, world->now_us + DRAIN_LOOK_US);
    }
}

/* Everybody shuts down in order; with nothing to do that takes no time. */
static void close_down(struct sim_world *world)
{
    world->is_closing = true;
    for (uint32_t i = 0; i < world->plan->workers; i++) {
        if (world->workers[i].keeper != NULL)
            sim_worker_shut_down(world, &world->workers[i], world->plan->lease_smallest_ms);
    }
    sim_world_run(world, world->now_us + sim_ms(2 * world->plan->lease_smallest_ms + 1000));
    for (uint32_t i = 0; i < world->plan->workers; i++) {
        if (world->workers[i].keeper != NULL)
            sim_fail_whole(world, "SHUTDOWN", "worker %" PRIu32 " does not stop", i);
    }
}

static void count_job(struct sim_world *world, const pawl_job *job)
{
    static const struct {
        pawl_reason reason;
        enum sim_tally tally;
    } failed[] = {
        {PAWL_REASON_EXHAUSTED, SIM_TALLY_JOB_EXHAUSTED},
        {PAWL_REASON_FATAL, SIM_TALLY_JOB_FATAL},
        {PAWL_REASON_POISON, SIM_TALLY_JOB_POISON},
        {PAWL_REASON_CANCELLED, SIM_TALLY_JOB_CANCELLED},
        {PAWL_REASON_START_BY, SIM_TALLY_JOB_START_BY},
    };
    if (job->state == PAWL_SUCCEEDED)
        sim_tally(&world->tallies, SIM_TALLY_JOB_SUCCEEDED);
    for (size_t i = 0; i < sizeof(failed) / sizeof(failed[0]); i++) {
        if (job->state == PAWL_FAILED && job->reason == failed[i].reason)
            sim_tally(&world->tallies, failed[i].tally);
    }
}

static void show_attempts(pawl_store *store, const pawl_id *id)
{
    pawl_attempt rows[ATTEMPTS_PAGE];
    int64_t after = 0;
    size_t count = ATTEMPTS_PAGE;
    pawl_err err;
    while (count == ATTEMPTS_PAGE) {
        sim_must(pawl_attempts(store, id, after, rows, ATTEMPTS_PAGE, &count, &err), &err,
                 "attempts");
        if (count > 0)
            after = rows[count - 1].attempt_no;
    }
}

/* The final state, into the history. */
static void show_all(struct sim_world *world)
{
    pawl_job jobs[LIST_PAGE];
    pawl_id after;
    bool is_first = true;
    size_t count = LIST_PAGE;
    pawl_err err;
    struct sim_actor *auditor = sim_world_actor(world, "auditor", 0, 1);
    pawl_store *store = sim_actor_handle(world, auditor, SIM_CHANNEL_CLAIM);
    while (count == LIST_PAGE) {
        sim_must(pawl_list(store, NULL, is_first ? NULL : &after, jobs, LIST_PAGE, &count, &err),
                 &err, "list");
        is_first = false;
        for (size_t i = 0; i < count; i++) {
            after = jobs[i].id;
            count_job(world, &jobs[i]);
            show_attempts(store, &jobs[i].id);
            pawl_job_clear(&jobs[i]);
        }
    }
}

void sim_world_live(struct sim_world *world)
{
    sim_clients_start(world);
    set_up_queues(world, false);
    world->is_chaos = true;
    sim_faults_start(world);
    for (uint32_t i = 0; i < world->plan->workers; i++)
        sim_worker_up(world, &world->workers[i]);
    sim_world_run(world, world->now_us + sim_ms(world->plan->chaos_ms));
    sim_faults_stop(world);
    sim_world_run(world, world->now_us + sim_faults_tail_us(world));
    set_up_queues(world, true);
    sim_note(world, (struct pawli_trace_note){.kind = PAWLI_NOTE_FAULTS_OFF, .actor = ""});
    sim_world_run(world, world->now_us + sim_ms(sim_swarm_calm_ms(world->plan)));
    sim_clients_probe(world);
    drain(world);
    if (!world->is_broken_off)
        close_down(world);
    show_all(world);
}

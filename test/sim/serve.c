/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * serve.c - runs calls on the store at the moment they arrive.
 * Owns:  turning a simulated call into a call of the store's verbs, and its answer back.
 * Never: delays or loses anything (net.c does); tells a caller (net.c does).
 */
#include "sim/world.h"

#include <assert.h>
#include <string.h>

/* ---------------------------------------------------------------- worker verbs */

static uint32_t queue_of(const struct sim_world *world, const char *name)
{
    for (uint32_t i = 0; i < world->plan->queues; i++) {
        if (strcmp(world->plan->queue[i].name, name) == 0)
            return i;
    }
    assert(false); /* a queue that nobody made */
    return 0;
}

/* What claim and mine gave out. The payload must be the one that the job was enqueued with. */
static void take_jobs(struct sim_world *world, struct sim_call *call, pawl_job *jobs, size_t count)
{
    struct sim_item *items = sim_call_items(call, count);
    for (size_t i = 0; i < count; i++) {
        uint32_t number = UINT32_MAX;
        if (jobs[i].payload_len == sizeof(number) && jobs[i].payload != NULL)
            memcpy(&number, jobs[i].payload, sizeof(number));
        if (number >= world->jobs_count ||
            pawl_id_compare(&world->jobs[number].id, &jobs[i].id) != 0) {
            sim_fail_whole(world, "SIM-PAYLOAD", "a job was given out with another one's payload");
            number = 0;
        }
        items[i] = (struct sim_item){
            .lease = {jobs[i].id, jobs[i].token, jobs[i].lease_version, jobs[i].place},
            .job = number,
            .lease_ms = jobs[i].lease_ms,
            .timeout_ms = jobs[i].timeout_ms,
            .queue = queue_of(world, jobs[i].queue),
        };
        pawl_job_clear(&jobs[i]);
    }
}

/* Why a claim that had room for more left jobs that are due. */
static void count_waiting(struct sim_world *world, const struct sim_call *call)
{
    const struct sim_plan *plan = world->plan;
    pawl_stats stats[SIM_QUEUES_MAX];
    size_t count = 0;
    pawl_err err;
    if ((int64_t)call->items_count == call->rows_max)
        return;
    sim_must(pawl_queue_stats(world->raw, NULL, stats, SIM_QUEUES_MAX, &count, &err), &err,
             "stats");
    for (size_t i = 0; i < count; i++) {
        uint32_t queue = queue_of(world, stats[i].queue);
        int64_t bound = world->max_in_flight[queue];
        if (stats[i].is_paused || stats[i].ready == stats[i].delayed)
            continue;
        if (bound > 0 && stats[i].in_flight >= bound)
            sim_tally(&world->tallies, SIM_TALLY_BOUND_REACHED);
        else if (bound == 0 && plan->keyed_ppm > 0)
            sim_tally(&world->tallies, SIM_TALLY_KEY_WAITING);
    }
}

static void serve_claim(struct sim_world *world, struct sim_call *call, pawl_store *store)
{
    pawl_claim_line lines[SIM_QUEUES_MAX];
    for (size_t i = 0; i < call->lines_count; i++) {
        lines[i] = (pawl_claim_line){
            .queue = world->plan->queue[call->lines[i].line].name,
            .jobs_max = call->lines[i].jobs_max,
            .lease_ms = PAWL_DEFAULT,
        };
    }
    pawl_claim_args args = {
        .worker = call->actor->name,
        .lines = lines,
        .lines_count = call->lines_count,
        .bytes_max = PAWL_DEFAULT,
    };
    pawl_job jobs[SIM_ROWS_MAX];
    size_t count = 0;
    pawl_err err;
    assert(call->rows_max <= SIM_ROWS_MAX);
    call->code = pawl_claim(store, &args, jobs, (size_t)call->rows_max, &count, &err);
    sim_must(call->code, &err, "claim");
    take_jobs(world, call, jobs, count);
    count_waiting(world, call);
}

static void serve_mine(struct sim_world *world, struct sim_call *call, pawl_store *store)
{
    pawl_job jobs[SIM_ROWS_MAX];
    size_t count = 0;
    pawl_err err;
    const pawl_id *after = pawl_id_is_nil(&call->after) ? NULL : &call->after;
    call->code = pawl_mine(store, call->actor->name, after, jobs, (size_t)call->rows_max, &count,
                           &err);
    sim_must(call->code, &err, "mine");
    take_jobs(world, call, jobs, count);
}

static void serve_renew(struct sim_world *world, struct sim_call *call, pawl_store *store)
{
    pawl_renew_row rows[SIM_ROWS_MAX];
    pawl_renewed results[SIM_ROWS_MAX];
    pawl_err err;
    assert(call->items_count <= SIM_ROWS_MAX);
    for (size_t i = 0; i < call->items_count; i++) {
        rows[i] = (pawl_renew_row){
            .lease = call->items[i].lease,
            .lease_ms = PAWL_DEFAULT,
            .is_unstarted = call->items[i].is_unstarted,
        };
    }
    call->code = pawl_renew(store, call->actor->name, rows, call->items_count, results, &err);
    sim_must(call->code, &err, "renew");
    for (size_t i = 0; i < call->items_count; i++) {
        call->items[i].code = results[i].code;
        call->items[i].lease_ms = results[i].lease_ms;
        if (results[i].code == PAWL_STALE)
            sim_tally(&world->tallies, SIM_TALLY_RENEW_STALE);
        else if (results[i].code == PAWL_CANCELLED)
            sim_tally(&world->tallies, SIM_TALLY_RENEW_CANCELLED);
        else if (results[i].code == PAWL_TIMEOUT)
            sim_tally(&world->tallies, SIM_TALLY_RENEW_TIMEOUT);
    }
}

static void count_settle(struct sim_world *world, const struct sim_item *item)
{
    struct sim_job *job = &world->jobs[item->job];
    if (item->code == PAWL_STALE)
        sim_tally(&world->tallies, SIM_TALLY_SETTLE_STALE);
    else if (item->code == PAWL_OK && job->settled_version == item->lease.version)
        sim_tally(&world->tallies, SIM_TALLY_SETTLE_REPLAY);
    else if (item->code == PAWL_OK)
        job->settled_version = item->lease.version;
}

static void serve_settle(struct sim_world *world, struct sim_call *call, pawl_store *store)
{
    pawl_settle_row rows[SIM_ROWS_MAX];
    pawl_settled results[SIM_ROWS_MAX];
    pawl_err err;
    assert(call->items_count <= SIM_ROWS_MAX);
    for (size_t i = 0; i < call->items_count; i++) {
        pawl_settle_init(&rows[i]);
        rows[i].lease = call->items[i].lease;
        rows[i].action = call->items[i].action;
        rows[i].reason = call->items[i].reason;
        rows[i].delay_ms = call->items[i].delay_ms;
    }
    call->code = pawl_settle(store, call->actor->name, rows, call->items_count, results, &err);
    sim_must(call->code, &err, "settle");
    for (size_t i = 0; i < call->items_count; i++) {
        call->items[i].code = results[i].code;
        count_settle(world, &call->items[i]);
    }
}

static void serve_release(struct sim_world *world, struct sim_call *call, pawl_store *store)
{
    pawl_lease leases[SIM_ROWS_MAX];
    pawl_code codes[SIM_ROWS_MAX];
    pawl_err err;
    assert(call->items_count <= SIM_ROWS_MAX);
    for (size_t i = 0; i < call->items_count; i++)
        leases[i] = call->items[i].lease;
    call->code = pawl_release(store, call->actor->name, leases, call->items_count, codes, &err);
    sim_must(call->code, &err, "release");
    for (size_t i = 0; i < call->items_count; i++) {
        call->items[i].code = codes[i];
        if (codes[i] == PAWL_STALE)
            sim_tally(&world->tallies, SIM_TALLY_RELEASE_STALE);
    }
}

/* ---------------------------------------------------------------- producers and reapers */

static void on_wake(struct sim_world *world, const struct sim_event *event)
{
    if (sim_worker_misses(world, event))
        return;
    struct sim_worker *worker = &world->workers[event->who];
    sim_tally(&world->tallies, SIM_TALLY_WAKE);
    pawli_keeper_on_wake(worker->keeper, sim_worker_now(world, worker));
    sim_worker_drive(world, worker);
}

/* There is work: a hint goes to every worker, and may get lost. */
static void wake_all(struct sim_world *world)
{
    for (uint32_t i = 0; i < world->plan->workers; i++) {
        if (world->workers[i].keeper == NULL)
            continue;
        if (world->is_chaos && sim_chance(&world->wire, world->plan->wake_lost_ppm)) {
            sim_tally(&world->tallies, SIM_TALLY_WAKE_LOST);
            continue;
        }
        sim_plan_event(world, sim_between(&world->wire, 1, world->plan->latency_us + 1),
                       (struct sim_event){
                           .fn = on_wake, .who = i, .generation = world->workers[i].incarnation});
    }
}

static void serve_enqueue(struct sim_world *world, struct sim_call *call, pawl_store *store)
{
    pawl_enqueue_row rows[SIM_ROWS_MAX];
    pawl_enqueued results[SIM_ROWS_MAX];
    struct sim_job jobs[SIM_ROWS_MAX]; /* the world's move while the store is held up */
    pawl_err err;
    bool is_any = false;
    for (size_t i = 0; i < call->items_count; i++) {
        const struct sim_job *job = &jobs[i];
        jobs[i] = world->jobs[call->items[i].job];
        pawl_enqueue_init(&rows[i]);
        rows[i].id = job->id;
        rows[i].queue = world->plan->queue[job->queue].name;
        rows[i].payload = &call->items[i].job;
        rows[i].payload_len = sizeof(call->items[i].job);
        rows[i].priority = job->priority;
        rows[i].delay_ms = job->delay_ms;
        rows[i].start_within_ms = job->start_within_ms;
        rows[i].max_retries = job->max_retries;
        rows[i].timeout_ms = job->timeout_ms;
        rows[i].dedupe_key = job->dedupe_key[0] != '\0' ? job->dedupe_key : NULL;
        rows[i].ordering_key = job->ordering_key;
    }
    call->code = pawl_enqueue(store, rows, call->items_count, results, &err);
    sim_must(call->code, &err, "enqueue");
    for (size_t i = 0; i < call->items_count; i++) {
        call->items[i].code = results[i].code;
        is_any = is_any || results[i].code == PAWL_OK;
    }
    if (is_any && !world->is_probing)
        wake_all(world);
}

static void serve_reap(struct sim_world *world, struct sim_call *call, pawl_store *store)
{
    pawl_reaped rows[SIM_ROWS_MAX];
    size_t count = 0;
    pawl_err err;
    call->code = pawl_reap(store, rows, (size_t)call->rows_max, &count, &err);
    sim_must(call->code, &err, "reap");
    sim_call_items(call, count);
    for (size_t i = 0; i < count; i++)
        sim_tally(&world->tallies,
                  rows[i].state == PAWL_READY ? SIM_TALLY_REAPED : SIM_TALLY_REAPED_FAILED);
}

/* ---------------------------------------------------------------- operators */

static void serve_change(struct sim_world *world, struct sim_call *call, pawl_store *store)
{
    pawl_id ids[SIM_ROWS_MAX];
    pawl_changed results[SIM_ROWS_MAX];
    pawl_err err;
    size_t count = call->items_count;
    for (size_t i = 0; i < count; i++)
        ids[i] = world->jobs[call->items[i].job].id;
    if (call->verb == SIM_VERB_CANCEL)
        call->code = pawl_cancel(store, ids, count, results, &err);
    else if (call->verb == SIM_VERB_REDRIVE)
        call->code = pawl_redrive(store, ids, count, results, &err);
    else
        call->code = pawl_discard(store, ids, count, results, &err);
    sim_must(call->code, &err, "cancel, redrive or discard");
    for (size_t i = 0; i < count; i++) {
        if (results[i].code != PAWL_OK)
            continue;
        if (call->verb == SIM_VERB_CANCEL)
            sim_tally(&world->tallies, results[i].state == PAWL_IN_FLIGHT
                                           ? SIM_TALLY_OP_CANCEL_RUNNING
                                           : SIM_TALLY_OP_CANCEL);
        else
            sim_tally(&world->tallies,
                      call->verb == SIM_VERB_REDRIVE ? SIM_TALLY_OP_REDRIVE : SIM_TALLY_OP_DISCARD);
    }
}

static void serve_queue(struct sim_world *world, struct sim_call *call, pawl_store *store)
{
    const struct sim_queue_plan *queue = &world->plan->queue[call->queue];
    pawl_err err;
    if (call->verb == SIM_VERB_QUEUE_PAUSE) {
        call->code = pawl_queue_pause(store, queue->name, call->is_paused, &err);
        world->is_queue_paused[call->queue] = call->is_paused;
        sim_tally(&world->tallies, SIM_TALLY_OP_QUEUE_PAUSE);
    } else {
        pawl_queue_settings settings = queue->settings;
        settings.lease_ms = call->lease_ms;
        if (call->max_in_flight != settings.max_in_flight)
            sim_tally(&world->tallies, SIM_TALLY_OP_BOUND_SET);
        settings.max_in_flight = call->max_in_flight;
        world->max_in_flight[call->queue] = call->max_in_flight;
        call->code = pawl_queue_set(store, queue->name, &settings, &err);
        sim_tally(&world->tallies, SIM_TALLY_OP_QUEUE_SET);
    }
    sim_must(call->code, &err, "queue settings");
}

/* ---------------------------------------------------------------- */

static enum sim_channel channel_of(enum sim_verb verb)
{
    switch (verb) {
    case SIM_VERB_RENEW:
        return SIM_CHANNEL_RENEW;
    case SIM_VERB_SETTLE:
    case SIM_VERB_RELEASE:
        return SIM_CHANNEL_SETTLE;
    case SIM_VERB_OWN_SETTLE:
        return SIM_CHANNEL_HANDLER;
    default:
        return SIM_CHANNEL_CLAIM;
    }
}

static void serve(struct sim_world *world, struct sim_call *call, pawl_store *store)
{
    switch (call->verb) {
    case SIM_VERB_CLAIM:
        serve_claim(world, call, store);
        break;
    case SIM_VERB_MINE:
        serve_mine(world, call, store);
        break;
    case SIM_VERB_RENEW:
        serve_renew(world, call, store);
        break;
    case SIM_VERB_SETTLE:
    case SIM_VERB_OWN_SETTLE:
        serve_settle(world, call, store);
        break;
    case SIM_VERB_RELEASE:
        serve_release(world, call, store);
        break;
    case SIM_VERB_ENQUEUE:
        serve_enqueue(world, call, store);
        break;
    case SIM_VERB_REAP:
        serve_reap(world, call, store);
        break;
    case SIM_VERB_CANCEL:
    case SIM_VERB_REDRIVE:
    case SIM_VERB_DISCARD:
        serve_change(world, call, store);
        break;
    case SIM_VERB_QUEUE_SET:
    case SIM_VERB_QUEUE_PAUSE:
        serve_queue(world, call, store);
        break;
    }
}

void sim_serve(struct sim_world *world, struct sim_call *call)
{
    assert(world->depth < SIM_DEPTH_MAX);
    world->serving[world->depth++] = call;
    serve(world, call, sim_actor_handle(world, call->actor, channel_of(call->verb)));
    world->depth--;
    world->served++;
}

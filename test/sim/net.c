/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * net.c - calls on their way to the store and back.
 * Owns:  how long a message takes, which one is lost, held up or doubled, and when a caller gives
 *        up.
 * Never: looks into what a call asks or was answered.
 */
#include "sim/world.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 64
#define FAR_LEASES     3      /* a message that is held up takes up to so many leases */
#define LATE_REPLY_PPM 500000 /* of replies to a caller that has given up, so many reach it */

/* ---------------------------------------------------------------- calls */

static void *grown(void *old, size_t count, size_t size)
{
    void *new = realloc(old, count * size);
    if (new == NULL) {
        fputs("sim: out of memory\n", stderr);
        abort();
    }
    return new;
}

void sim_net_clear(struct sim_net *net)
{
    for (size_t i = 0; i < net->calls_count; i++) {
        free(net->calls[i]->items);
        free(net->calls[i]);
    }
    free(net->calls);
    free(net->unused);
    *net = (struct sim_net){0};
}

static struct sim_call *call_new(struct sim_net *net)
{
    if (net->calls_count == net->calls_capacity) {
        net->calls_capacity = net->calls_capacity == 0 ? FIRST_CAPACITY : 2 * net->calls_capacity;
        net->calls = grown(net->calls, net->calls_capacity, sizeof(*net->calls));
        net->unused = grown(net->unused, net->calls_capacity, sizeof(*net->unused));
    }
    struct sim_call *call = grown(NULL, 1, sizeof(*call));
    *call = (struct sim_call){.index = (uint32_t)net->calls_count};
    net->calls[net->calls_count++] = call;
    return call;
}

struct sim_call *sim_net_call(struct sim_world *world, struct sim_actor *actor, enum sim_verb verb)
{
    struct sim_net *net = &world->net;
    struct sim_call *call = net->unused_count > 0 ? net->calls[net->unused[--net->unused_count]]
                                                  : call_new(net);
    assert(call->refs == 0);
    *call = (struct sim_call){
        .index = call->index,
        .items = call->items,
        .items_capacity = call->items_capacity,
        .refs = 1,
        .verb = verb,
        .actor = actor,
        .number = ++net->numbered,
        .taken_us = world->now_us,
    };
    return call;
}

struct sim_item *sim_call_items(struct sim_call *call, size_t count)
{
    if (count > call->items_capacity) {
        call->items = grown(call->items, count, sizeof(*call->items));
        call->items_capacity = count;
    }
    call->items_count = count;
    if (count > 0)
        memset(call->items, 0, count * sizeof(*call->items));
    return call->items;
}

static void call_unref(struct sim_net *net, struct sim_call *call)
{
    assert(call->refs > 0);
    if (--call->refs == 0)
        net->unused[net->unused_count++] = call->index;
}

void sim_net_drop(struct sim_world *world, struct sim_call *call)
{
    call_unref(&world->net, call);
}

static void plan(struct sim_world *world, struct sim_call *call, sim_event_fn fn, int64_t after_us)
{
    call->refs++;
    sim_plan_event(world, after_us, (struct sim_event){.fn = fn, .what = call->index});
}

/* ---------------------------------------------------------------- what goes wrong */

/* What the history calls the verb. */
static int64_t verb_in_history(enum sim_verb verb)
{
    static const enum pawli_trace_verb verbs[] = {
        [SIM_VERB_CLAIM] = PAWLI_VERB_CLAIM,
        [SIM_VERB_MINE] = PAWLI_VERB_MINE,
        [SIM_VERB_RENEW] = PAWLI_VERB_RENEW,
        [SIM_VERB_SETTLE] = PAWLI_VERB_SETTLE,
        [SIM_VERB_RELEASE] = PAWLI_VERB_RELEASE,
        [SIM_VERB_OWN_SETTLE] = PAWLI_VERB_SETTLE,
        [SIM_VERB_ENQUEUE] = PAWLI_VERB_ENQUEUE,
        [SIM_VERB_REAP] = PAWLI_VERB_REAP,
        [SIM_VERB_CANCEL] = PAWLI_VERB_CANCEL,
        [SIM_VERB_REDRIVE] = PAWLI_VERB_REDRIVE,
        [SIM_VERB_DISCARD] = PAWLI_VERB_DISCARD,
        [SIM_VERB_QUEUE_SET] = PAWLI_VERB_QUEUE_SET,
        [SIM_VERB_QUEUE_PAUSE] = PAWLI_VERB_QUEUE_PAUSE,
    };
    return (int64_t)verbs[verb];
}

void sim_net_note_fault(struct sim_world *world, const struct sim_call *call)
{
    sim_note(world, (struct pawli_trace_note){.kind = PAWLI_NOTE_LINK_FAULT,
                                              .actor = call->actor->name,
                                              .a = verb_in_history(call->verb)});
}

static void note_fault(struct sim_world *world, const struct sim_call *call, enum sim_tally tally)
{
    sim_tally(&world->tallies, tally);
    sim_net_note_fault(world, call);
}

/* Whether the caller is a worker that is cut off. */
static bool is_cut(const struct sim_world *world, const struct sim_call *call)
{
    if (call->verb > SIM_VERB_OWN_SETTLE)
        return false;
    return world->workers[call->who].cut_until_us > world->now_us;
}

/* How long a message takes, most of them a small part of the usual longest time. */
static int64_t travel_us(struct sim_world *world)
{
    int64_t longest = world->plan->latency_us;
    return sim_between(&world->wire, longest / 20 + 1,
                       sim_flip(&world->wire) ? longest / 4 + 2 : longest + 1);
}

/* The same for a message that may be held up: far beyond what anybody waits for, or just long
 * enough for a reply to be of little worth. */
static int64_t travel_or_far_us(struct sim_world *world, struct sim_call *call)
{
    if (!world->is_chaos || !sim_chance(&world->wire, world->plan->far_ppm))
        return travel_us(world);
    call->is_held_up = true;
    note_fault(world, call, SIM_TALLY_FAR_DELAY);
    int64_t lease_us = sim_ms(world->plan->lease_largest_ms);
    return sim_between(&world->wire, lease_us / 16,
                       sim_flip(&world->wire) ? lease_us / 2 : FAR_LEASES * lease_us);
}

/* ---------------------------------------------------------------- there and back */

/* An event that tells a caller something comes again later where the caller stands still. */
static bool is_put_off(struct sim_world *world, const struct sim_event *event)
{
    const struct sim_call *call = world->net.calls[event->what];
    int64_t wait_us = sim_party_pause_us(world, call);
    if (wait_us <= 0)
        return false;
    sim_plan_event(world, wait_us + sim_between(&world->wire, 0, 50), *event);
    return true;
}

static void on_deadline(struct sim_world *world, const struct sim_event *event)
{
    struct sim_call *call = world->net.calls[event->what];
    if (is_put_off(world, event))
        return;
    if (!call->is_answered) {
        call->is_answered = true;
        sim_party_answer(world, call, PAWL_UNKNOWN);
    }
    call_unref(&world->net, call);
}

void sim_net_time_out(struct sim_world *world, struct sim_call *call)
{
    if (call->is_timed || call->is_answered)
        return;
    call->is_timed = true;
    int64_t left = call->deadline_us - world->now_us;
    plan(world, call, on_deadline, left > 0 ? left : 0);
}

static void on_reply(struct sim_world *world, const struct sim_event *event)
{
    struct sim_call *call = world->net.calls[event->what];
    if (is_put_off(world, event))
        return;
    if (is_cut(world, call)) {
        note_fault(world, call, SIM_TALLY_DROP_REPLY);
        sim_net_time_out(world, call);
    } else if (!call->is_answered) {
        /* A caller that stood still may find the reply there, or first see that time is up. */
        bool is_late = world->now_us >= call->deadline_us && sim_flip(&world->wire);
        call->is_answered = true;
        sim_party_answer(world, call, is_late ? PAWL_UNKNOWN : call->code);
    } else if (sim_chance(&world->wire, LATE_REPLY_PPM)) {
        sim_party_late(world, call);
    }
    call_unref(&world->net, call);
}

static void reply(struct sim_world *world, struct sim_call *call)
{
    if (call->is_twin)
        return;
    bool is_lost = world->is_chaos && sim_chance(&world->wire, world->plan->drop_ppm);
    if (is_lost || is_cut(world, call)) {
        note_fault(world, call, SIM_TALLY_DROP_REPLY);
        sim_net_time_out(world, call);
        return;
    }
    int64_t travel = travel_or_far_us(world, call);
    if (world->now_us + travel >= call->deadline_us)
        sim_net_time_out(world, call);
    plan(world, call, on_reply, travel);
}

/* The request has arrived: it runs now, whatever its caller believes. */
static void on_arrival(struct sim_world *world, const struct sim_event *event)
{
    /* All of them say that nothing was done. */
    static const pawl_code refusals[] = {PAWL_DOWN, PAWL_DOWN, PAWL_NO_MEMORY, PAWL_BROKEN};
    struct sim_call *call = world->net.calls[event->what];
    bool is_lost = is_cut(world, call) || (call->is_held_up && !world->is_chaos);
    if (is_lost) {
        note_fault(world, call, SIM_TALLY_DROP_REQUEST);
        sim_net_time_out(world, call);
    } else if (world->is_store_down) {
        sim_tally(&world->tallies, SIM_TALLY_REFUSED_DOWN);
        call->code = refusals[sim_between(&world->wire, 0, 3)];
        reply(world, call);
    } else {
        if (call->is_answered)
            sim_tally(&world->tallies, SIM_TALLY_RAN_UNAWAITED);
        if (call->is_held_up)
            sim_net_note_fault(world, call);
        if (call->actor->ran > call->number)
            sim_tally(&world->tallies, SIM_TALLY_REORDER);
        else
            call->actor->ran = call->number;
        sim_serve(world, call);
        reply(world, call);
    }
    call_unref(&world->net, call);
}

/* The same request once more; nobody waits for its answer. */
static void send_twice(struct sim_world *world, const struct sim_call *call)
{
    struct sim_call *twin = sim_net_call(world, call->actor, call->verb);
    struct sim_call kept = *twin;
    *twin = *call;
    twin->index = kept.index;
    twin->refs = kept.refs;
    twin->items = kept.items;
    twin->items_capacity = kept.items_capacity;
    twin->is_answered = true;
    twin->is_twin = true;
    sim_call_items(twin, call->items_count);
    if (call->items_count > 0)
        memcpy(twin->items, call->items, call->items_count * sizeof(*call->items));
    note_fault(world, call, SIM_TALLY_DUPLICATE);
    plan(world, twin, on_arrival, travel_or_far_us(world, twin));
    call_unref(&world->net, twin);
}

void sim_net_send(struct sim_world *world, struct sim_call *call)
{
    const struct sim_plan *plan_of = world->plan;
    bool is_lost = world->is_chaos && sim_chance(&world->wire, plan_of->drop_ppm);
    if (is_lost || is_cut(world, call)) {
        note_fault(world, call, SIM_TALLY_DROP_REQUEST);
        sim_net_time_out(world, call);
    } else {
        if (world->is_chaos && sim_chance(&world->wire, plan_of->duplicate_ppm))
            send_twice(world, call);
        int64_t travel = travel_or_far_us(world, call);
        if (world->now_us + travel >= call->deadline_us)
            sim_net_time_out(world, call);
        plan(world, call, on_arrival, travel);
    }
    call_unref(&world->net, call);
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * net.h - calls on their way to the store and back, and what goes wrong with them.
 *
 * A call runs at the moment its request arrives; its caller learns the answer when the reply does,
 * or PAWL_UNKNOWN at its deadline. Whether the request ran is then known to the store alone.
 */
#ifndef SIM_NET_H
#define SIM_NET_H

#include "core/keeper.h"
#include "sim/swarm.h"

struct sim_world;

/* Each incarnation of somebody who calls the store: a worker that restarts is another one. Lives
 * until the world ends, since its requests may outlive it. */
enum sim_channel {
    SIM_CHANNEL_CLAIM = 0, /* claim, mine; and all of producers, reapers, operators */
    SIM_CHANNEL_RENEW,
    SIM_CHANNEL_SETTLE, /* settle, release */
    SIM_CHANNEL_HANDLER,
    SIM_CHANNELS
};

struct sim_actor {
    char name[32];
    pawl_store *handles[SIM_CHANNELS]; /* opened when first used */
    uint64_t ran;                      /* the latest of its calls that has run */
    struct sim_actor *next;
};

enum sim_verb {
    SIM_VERB_CLAIM = 0,
    SIM_VERB_MINE,
    SIM_VERB_RENEW,
    SIM_VERB_SETTLE,
    SIM_VERB_RELEASE,
    SIM_VERB_OWN_SETTLE, /* by a handler, in its own transaction */
    SIM_VERB_ENQUEUE,
    SIM_VERB_REAP,
    SIM_VERB_CANCEL,
    SIM_VERB_REDRIVE,
    SIM_VERB_DISCARD,
    SIM_VERB_QUEUE_SET,
    SIM_VERB_QUEUE_PAUSE
};

/* One row of a call: what is asked, and below it what was answered. */
struct sim_item {
    struct pawli_slot slot;
    pawl_lease lease;
    bool is_unstarted;
    pawl_settle_action action;
    pawl_reason reason;
    int64_t delay_ms;
    uint32_t job; /* its number; also in answers of claim and mine */

    pawl_code code;
    int64_t lease_ms;
    int64_t timeout_ms;
    uint32_t queue;
};

struct sim_call {
    uint32_t index;
    uint32_t refs; /* events that still speak of it */
    enum sim_verb verb;
    struct sim_actor *actor;
    uint32_t who;         /* which worker, producer, reaper */
    uint32_t incarnation; /* of the worker */
    uint64_t number;      /* rises with each call */

    uint64_t request;    /* the keeper's number of it */
    int64_t taken_us;    /* when it was decided on */
    int64_t deadline_us; /* when its caller gives up */
    bool is_answered;    /* its caller has an answer, or does not wait for one */
    bool is_timed;       /* an event will tell its caller at the deadline */
    bool is_twin;        /* the second of a doubled request */
    bool is_held_up;     /* somewhere on its way it takes far longer than usual */

    struct pawli_action_line lines[SIM_QUEUES_MAX]; /* CLAIM: by queue */
    size_t lines_count;
    int64_t rows_max;
    pawl_id after; /* MINE; nil: from the beginning */
    uint32_t queue;
    bool is_paused;
    int64_t lease_ms;
    int64_t max_in_flight;
    uint32_t slot_index; /* OWN_SETTLE */
    uint32_t run;

    struct sim_item *items;
    size_t items_count;
    size_t items_capacity;
    pawl_code code;
};

struct sim_net {
    struct sim_call **calls;
    size_t calls_count;
    size_t calls_capacity;
    uint32_t *unused; /* indexes of calls that can be used again */
    size_t unused_count;
    uint64_t numbered;
};

void sim_net_clear(struct sim_net *net);

/* A new call of `actor`, empty but for that. It ends by sim_net_send() or sim_net_drop(). */
struct sim_call *sim_net_call(struct sim_world *world, struct sim_actor *actor, enum sim_verb verb);

/* Make room for `count` items and count them as there. */
struct sim_item *sim_call_items(struct sim_call *call, size_t count);

/* Send it off. Its caller hears of it by sim_party_answer(), once. */
void sim_net_send(struct sim_world *world, struct sim_call *call);

/* It is not sent after all. */
void sim_net_drop(struct sim_world *world, struct sim_call *call);

/* The reply will not be there in time: an event will tell its caller at the deadline. */
void sim_net_time_out(struct sim_world *world, struct sim_call *call);

/* Tell the history that something is wrong with this call. */
void sim_net_note_fault(struct sim_world *world, const struct sim_call *call);

/* serve.c: run the call on the store, now, and fill in the answer. */
void sim_serve(struct sim_world *world, struct sim_call *call);

#endif

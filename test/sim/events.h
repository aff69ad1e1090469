/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * events.h - what will happen and when: the simulator's queue of events.
 */
#ifndef SIM_EVENTS_H
#define SIM_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_world;
struct sim_event;

typedef void (*sim_event_fn)(struct sim_world *world, const struct sim_event *event);

/* One thing that happens. What `who`, `generation` and `what` mean is between whoever planned it
 * and `fn`; an event that has lost its meaning is not taken back, its `fn` sees so and does
 * nothing. */
struct sim_event {
    int64_t at;     /* true time, us */
    uint64_t order; /* among events of one instant: those planned first come first */
    sim_event_fn fn;
    uint32_t who;
    uint32_t generation;
    uint64_t what;
};

struct sim_events {
    struct sim_event *heap;
    size_t count;
    size_t capacity;
    uint64_t planned; /* so far */
};

void sim_events_clear(struct sim_events *events);

/* Plan an event; `order` is given here. Memory that runs out ends the program: it is a test. */
void sim_events_plan(struct sim_events *events, struct sim_event event);

/* Take the earliest event that is not later than `until`. False where there is none. */
bool sim_events_take(struct sim_events *events, int64_t until, struct sim_event *ret_event);

#endif

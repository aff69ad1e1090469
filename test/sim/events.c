/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * events.c - what will happen and when.
 * Owns:  the queue of events: a heap with four children to a node, so that the path is short.
 * Never: runs an event; orders events by anything but their time and the order of planning.
 */
#include "sim/events.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define CHILDREN       4
#define FIRST_CAPACITY 256

static bool is_earlier(const struct sim_event *a, const struct sim_event *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

void sim_events_clear(struct sim_events *events)
{
    free(events->heap);
    *events = (struct sim_events){0};
}

static void grow(struct sim_events *events)
{
    size_t capacity = events->capacity == 0 ? FIRST_CAPACITY : events->capacity * 2;
    struct sim_event *heap = realloc(events->heap, capacity * sizeof(*heap));
    if (heap == NULL) {
        fputs("sim: out of memory\n", stderr);
        abort();
    }
    events->heap = heap;
    events->capacity = capacity;
}

void sim_events_plan(struct sim_events *events, struct sim_event event)
{
    assert(event.fn != NULL);
    if (events->count == events->capacity)
        grow(events);
    event.order = events->planned++;
    size_t i = events->count++;
    while (i > 0) {
        size_t parent = (i - 1) / CHILDREN;
        if (!is_earlier(&event, &events->heap[parent]))
            break;
        events->heap[i] = events->heap[parent];
        i = parent;
    }
    events->heap[i] = event;
}

static void sift_down(struct sim_events *events, struct sim_event event)
{
    size_t i = 0;
    for (;;) {
        size_t first = i * CHILDREN + 1;
        if (first >= events->count)
            break;
        size_t last = first + CHILDREN < events->count ? first + CHILDREN : events->count;
        size_t least = first;
        for (size_t child = first + 1; child < last; child++) {
            if (is_earlier(&events->heap[child], &events->heap[least]))
                least = child;
        }
        if (!is_earlier(&events->heap[least], &event))
            break;
        events->heap[i] = events->heap[least];
        i = least;
    }
    events->heap[i] = event;
}

bool sim_events_take(struct sim_events *events, int64_t until, struct sim_event *ret_event)
{
    if (events->count == 0 || events->heap[0].at > until)
        return false;
    *ret_event = events->heap[0];
    struct sim_event last = events->heap[--events->count];
    if (events->count > 0)
        sift_down(events, last);
    return true;
}

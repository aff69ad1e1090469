/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * host.c - what goes to one host and port.
 * Owns:  the order in which endpoints and deliveries of a host wait for room.
 * Never: sends, claims or ends anything; lets an endpoint wait for ever behind its siblings: who
 *        has waited longest is next.
 */
#include "deliver/host.h"

#include <assert.h>

int64_t pawli_host_room(const struct pawli_host *host)
{
    int64_t taken = host->in_flight + host->parked_count;
    return taken < host->most ? host->most - taken : 0;
}

/* What each of the endpoints may claim: all of them together no more than there is room for, but
 * that each has one. */
static int64_t share_of(const struct pawli_host *host)
{
    int64_t room = pawli_host_room(host);
    int64_t share = room / (host->endpoints > 0 ? host->endpoints : 1);
    return room > 0 && share == 0 ? 1 : share;
}

static void hold_back(struct pawli_outlet *outlet, bool is_held_back)
{
    struct pawli_outlet_list *list = &outlet->host->held_back;
    if (outlet->is_held_back == is_held_back)
        return; /* it keeps its place */
    if (is_held_back)
        TAILQ_INSERT_TAIL(list, outlet, waiting);
    else
        TAILQ_REMOVE(list, outlet, waiting);
    outlet->is_held_back = is_held_back;
}

int64_t pawli_host_bound(struct pawli_outlet *outlet, int64_t bound)
{
    if (outlet->host == NULL)
        return bound;
    int64_t share = share_of(outlet->host);
    bool is_cut = outlet->deliveries + share < bound;
    hold_back(outlet, is_cut && share == 0);
    if (!is_cut)
        return bound;
    /* What it was told will do while that is about its share: a change costs a lock. */
    int64_t left = outlet->bound - outlet->deliveries;
    if (left > 0 && outlet->bound <= bound && left >= share / 2 && left <= share + share / 2)
        return outlet->bound;
    return outlet->deliveries + share;
}

struct pawli_outlet *pawli_host_next(struct pawli_host *host)
{
    struct pawli_outlet *outlet = TAILQ_FIRST(&host->held_back);
    if (outlet == NULL || pawli_host_room(host) == 0)
        return NULL;
    hold_back(outlet, false);
    return outlet;
}

void pawli_host_park(struct pawli_parked *parked)
{
    struct pawli_outlet *outlet = parked->outlet;
    assert(outlet != NULL && outlet->host != NULL);
    TAILQ_INSERT_TAIL(&outlet->host->parked, parked, place);
    outlet->host->parked_count++;
    outlet->parked_count++;
}

void pawli_host_unpark(struct pawli_parked *parked)
{
    struct pawli_outlet *outlet = parked->outlet;
    assert(outlet != NULL && outlet->parked_count > 0);
    TAILQ_REMOVE(&outlet->host->parked, parked, place);
    outlet->host->parked_count--;
    outlet->parked_count--;
    parked->outlet = NULL;
}

struct pawli_parked *pawli_host_ready(const struct pawli_host *host)
{
    return host->in_flight < host->most ? TAILQ_FIRST(&host->parked) : NULL;
}

/* Those of one endpoint that wait go to the end of another host's. */
static void move_parked(struct pawli_outlet *outlet, struct pawli_host *from, struct pawli_host *to)
{
    struct pawli_parked *next;
    for (struct pawli_parked *parked = TAILQ_FIRST(&from->parked); parked != NULL; parked = next) {
        next = TAILQ_NEXT(parked, place);
        if (parked->outlet != outlet)
            continue;
        TAILQ_REMOVE(&from->parked, parked, place);
        TAILQ_INSERT_TAIL(&to->parked, parked, place);
        from->parked_count--;
        to->parked_count++;
    }
}

void pawli_host_move(struct pawli_outlet *outlet, struct pawli_host *to)
{
    struct pawli_host *from = outlet->host;
    int64_t under_way = outlet->deliveries - outlet->parked_count;
    assert(to != NULL || outlet->parked_count == 0);
    if (from != NULL) {
        hold_back(outlet, false);
        if (to != NULL)
            move_parked(outlet, from, to);
        from->in_flight -= under_way;
        from->endpoints--;
    }
    if (to != NULL) {
        to->in_flight += under_way; /* so that their ends are taken off again */
        to->endpoints++;
    }
    outlet->host = to;
}

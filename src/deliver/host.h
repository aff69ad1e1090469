/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * host.h - what goes to one host and port, whichever endpoints that is of: never more at once than
 * its bound. Used by one thread.
 *
 * The room that a host has left is divided among its endpoints before their jobs are claimed. How
 * much of that they have work for is not known then, so more may be claimed than can be sent: that
 * waits here, in the order in which it came, until others have ended.
 */
#ifndef PAWLI_DELIVER_HOST_H
#define PAWLI_DELIVER_HOST_H

#include "deliver/outlet.h"

/* A delivery that waits for room. */
struct pawli_parked {
    TAILQ_ENTRY(pawli_parked) place;
    struct pawli_outlet *outlet; /* NULL: it does not wait */
    pawl_mono until;             /* it may wait so long */
    void *tag;                   /* the owner's name for it */
};

TAILQ_HEAD(pawli_parked_list, pawli_parked);
TAILQ_HEAD(pawli_outlet_list, pawli_outlet);

struct pawli_host {
    RB_ENTRY(pawli_host) place;      /* roster.c's */
    TAILQ_ENTRY(pawli_host) stirred; /* likewise: there may be room in it again */
    bool is_stirred;
    char name[PAWLI_HOST_SIZE + 8]; /* HOST:PORT */
    int64_t most;                   /* under way at once */
    int64_t endpoints;              /* of it */
    int64_t in_flight;
    int64_t parked_count;
    struct pawli_parked_list parked;
    struct pawli_outlet_list held_back; /* endpoints that may claim nothing, for want of room */
};

/* How many more could be sent now, after those that wait. 0: none. */
int64_t pawli_host_room(const struct pawli_host *host);

/*
 * How many an endpoint may hold, of which it could have `bound` without its host; those that wait
 * are among them. Small changes are left out. Where there is no room at all it is held back.
 */
int64_t pawli_host_bound(struct pawli_outlet *outlet, int64_t bound);

/* The next that was held back, while there is room; it is no more. NULL: none. */
struct pawli_outlet *pawli_host_next(struct pawli_host *host);

/* A delivery of `parked->outlet`, which has a host, waits from now on; or waits no more. */
void pawli_host_park(struct pawli_parked *parked);
void pawli_host_unpark(struct pawli_parked *parked);

/* The next that waits, where it can be sent now. NULL: none. */
struct pawli_parked *pawli_host_ready(const struct pawli_host *host);

/* An endpoint is at home at another host from now on, with all that it has under way. `to` may be
 * NULL; the old one, if any, still stands. */
void pawli_host_move(struct pawli_outlet *outlet, struct pawli_host *to);

#endif

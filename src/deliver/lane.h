/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * lane.h - what goes to one scheme, host and port: how many connections there are, and who waits
 * for one of them. Private to the wire; used by one thread.
 *
 * A connection is dear, to us and to who answers: over TLS it costs both as much as tens of
 * requests. Up to PAWLI_LANE_EAGER requests at once get one each; after that a request waits for
 * one that is in use, up to PAWLI_LANE_PATIENCE_MS, before another is opened for it. Requests that
 * have been under way for longer than that do not count: who hangs holds nobody up.
 */
#ifndef PAWLI_DELIVER_LANE_H
#define PAWLI_DELIVER_LANE_H

#include "pawl/pawl.h"
#include "webhook/target.h"

#include <bsd/sys/tree.h>
#include <sys/queue.h>

#define PAWLI_LANE_EAGER       64
#define PAWLI_LANE_PATIENCE_MS 50

/* Part of a request: its place among those that wait. */
struct pawli_lane_wait {
    TAILQ_ENTRY(pawli_lane_wait) place;
    void *tag;
};

TAILQ_HEAD(pawli_lane_waits, pawli_lane_wait);

struct pawli_lane {
    RB_ENTRY(pawli_lane) place;
    char host[PAWLI_HOST_SIZE];
    uint16_t port;
    bool is_https;
    bool is_shared;     /* over HTTP/2: one connection takes many requests */
    size_t connections; /* that are open */
    size_t under_way;   /* requests that use one, or open one */
    size_t slow;        /* of these, such as do not count */
    size_t users;       /* of the lane: it goes with the last */
    struct pawli_lane_waits waiting;
};

RB_HEAD(pawli_lanes, pawli_lane);

/* The one to a target, with one user more. NULL: memory ran out. */
struct pawli_lane *pawli_lane_join(struct pawli_lanes *lanes, const struct pawli_target *target);
void pawli_lane_leave(struct pawli_lanes *lanes, struct pawli_lane *lane); /* one user less */

/* Whether a request can begin now without waiting. */
bool pawli_lane_has_room(const struct pawli_lane *lane);

#endif

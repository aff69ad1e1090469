/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * lane.c - what goes to one scheme, host and port.
 * Owns:  whether a request waits for a connection.
 * Never: opens or closes one.
 */
#include "deliver/lane.h"

#include "base/text.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static int order(const struct pawli_lane *a, const struct pawli_lane *b)
{
    int by_host = strcmp(a->host, b->host);
    if (by_host != 0)
        return by_host;
    if (a->port != b->port)
        return a->port < b->port ? -1 : 1;
    return (int)a->is_https - (int)b->is_https;
}

/* Not RB_GENERATE_STATIC: it needs an __unused that only the BSDs define. */
RB_GENERATE_INTERNAL(pawli_lanes, pawli_lane, place, order, static __attribute__((unused)))

struct pawli_lane *pawli_lane_join(struct pawli_lanes *lanes, const struct pawli_target *target)
{
    struct pawli_lane key;
    (void)pawli_text_copy(key.host, sizeof(key.host), target->host); /* of the same size */
    key.port = target->port;
    key.is_https = target->is_https;
    struct pawli_lane *lane = RB_FIND(pawli_lanes, lanes, &key);
    if (lane == NULL) {
        lane = calloc(1, sizeof(*lane));
        if (lane == NULL)
            return NULL;
        memcpy(lane->host, key.host, sizeof(lane->host));
        lane->port = key.port;
        lane->is_https = key.is_https;
        TAILQ_INIT(&lane->waiting);
        (void)RB_INSERT(pawli_lanes, lanes, lane);
    }
    lane->users++;
    return lane;
}

void pawli_lane_leave(struct pawli_lanes *lanes, struct pawli_lane *lane)
{
    assert(lane->users > 0);
    if (--lane->users > 0)
        return;
    (void)RB_REMOVE(pawli_lanes, lanes, lane);
    free(lane);
}

bool pawli_lane_has_room(const struct pawli_lane *lane)
{
    return lane->is_shared || lane->under_way - lane->slow < PAWLI_LANE_EAGER ||
           lane->under_way < lane->connections;
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * roster.c - all endpoints that are served, and the hosts that they are on.
 * Owns:  the outlets and the hosts.
 * Never: decides whether any of them may be called.
 */
#include "deliver/roster.h"

#include "base/text.h"
#include "core/event.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int outlet_order(const struct pawli_outlet *a, const struct pawli_outlet *b)
{
    return strcmp(a->name, b->name);
}

static int host_order(const struct pawli_host *a, const struct pawli_host *b)
{
    return strcmp(a->name, b->name);
}

/* Not RB_GENERATE_STATIC: it needs an __unused that only the BSDs define. */
RB_GENERATE_INTERNAL(pawli_outlets, pawli_outlet, place, outlet_order,
                     static __attribute__((unused)))
RB_GENERATE_INTERNAL(pawli_hosts, pawli_host, place, host_order, static __attribute__((unused)))

void pawli_roster_init(struct pawli_roster *roster, int64_t per_host_max)
{
    *roster = (struct pawli_roster){.per_host_max = per_host_max};
    TAILQ_INIT(&roster->stirred);
}

struct pawli_outlet *pawli_roster_find(struct pawli_roster *roster, const char *name)
{
    struct pawli_outlet key;
    if (!pawli_text_copy(key.name, sizeof(key.name), name))
        return NULL; /* longer than any */
    return RB_FIND(pawli_outlets, &roster->outlets, &key);
}

struct pawli_outlet *pawli_roster_of(struct pawli_roster *roster, const char *queue)
{
    size_t prefix = strlen(PAWLI_ENDPOINT_QUEUE_PREFIX);
    return strncmp(queue, PAWLI_ENDPOINT_QUEUE_PREFIX, prefix) == 0
               ? pawli_roster_find(roster, queue + prefix)
               : NULL;
}

struct pawli_outlet *pawli_roster_next(struct pawli_roster *roster, struct pawli_outlet *after)
{
    return after == NULL ? RB_MIN(pawli_outlets, &roster->outlets)
                         : RB_NEXT(pawli_outlets, &roster->outlets, after);
}

void pawli_roster_add(struct pawli_roster *roster, struct pawli_outlet *outlet)
{
    struct pawli_outlet *other = RB_INSERT(pawli_outlets, &roster->outlets, outlet);
    assert(other == NULL);
    (void)other; /* only asserted */
    roster->count++;
}

/* ---------------------------------------------------------------- hosts */

void pawli_roster_stir(struct pawli_roster *roster, struct pawli_outlet *outlet)
{
    struct pawli_host *host = outlet->host;
    if (host == NULL || host->is_stirred)
        return;
    host->is_stirred = true;
    TAILQ_INSERT_TAIL(&roster->stirred, host, stirred);
}

struct pawli_host *pawli_roster_stirred(struct pawli_roster *roster)
{
    struct pawli_host *host = TAILQ_FIRST(&roster->stirred);
    if (host != NULL) {
        host->is_stirred = false;
        TAILQ_REMOVE(&roster->stirred, host, stirred);
    }
    return host;
}

/* After an endpoint has left it. */
static void drop_if_empty(struct pawli_roster *roster, struct pawli_host *host)
{
    if (host == NULL || host->endpoints > 0)
        return;
    if (host->is_stirred)
        TAILQ_REMOVE(&roster->stirred, host, stirred);
    (void)RB_REMOVE(pawli_hosts, &roster->hosts, host);
    free(host);
}

static struct pawli_host *new_host(struct pawli_roster *roster, const struct pawli_host *key)
{
    struct pawli_host *host = calloc(1, sizeof(*host));
    if (host == NULL)
        return NULL;
    memcpy(host->name, key->name, sizeof(host->name));
    host->most = roster->per_host_max;
    TAILQ_INIT(&host->parked);
    TAILQ_INIT(&host->held_back);
    (void)RB_INSERT(pawli_hosts, &roster->hosts, host);
    return host;
}

bool pawli_roster_move(struct pawli_roster *roster, struct pawli_outlet *outlet)
{
    struct pawli_host key;
    (void)snprintf(key.name, sizeof(key.name), "%s:%u", outlet->target.host,
                   (unsigned)outlet->target.port); /* it fits */
    struct pawli_host *old = outlet->host;
    if (old != NULL && strcmp(old->name, key.name) == 0)
        return true;
    struct pawli_host *host = RB_FIND(pawli_hosts, &roster->hosts, &key);
    if (host == NULL)
        host = new_host(roster, &key);
    if (host == NULL)
        return false;
    pawli_roster_stir(roster, outlet); /* there is more room, where others are left */
    pawli_host_move(outlet, host);
    pawli_roster_stir(roster, outlet); /* some may wait here now, with room */
    drop_if_empty(roster, old);
    return true;
}

void pawli_roster_remove(struct pawli_roster *roster, struct pawli_outlet *outlet)
{
    (void)RB_REMOVE(pawli_outlets, &roster->outlets, outlet);
    roster->count--;
    struct pawli_host *host = outlet->host;
    pawli_roster_stir(roster, outlet);
    pawli_host_move(outlet, NULL);
    drop_if_empty(roster, host);
    pawli_outlet_free(outlet);
}

void pawli_roster_clear(struct pawli_roster *roster)
{
    struct pawli_outlet *outlet;
    while ((outlet = RB_ROOT(&roster->outlets)) != NULL)
        pawli_roster_remove(roster, outlet);
}

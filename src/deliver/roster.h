/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * roster.h - all endpoints that are served, by their names, and the hosts that they are on. Used by
 * one thread.
 */
#ifndef PAWLI_DELIVER_ROSTER_H
#define PAWLI_DELIVER_ROSTER_H

#include "deliver/host.h"

RB_HEAD(pawli_outlets, pawli_outlet);
RB_HEAD(pawli_hosts, pawli_host);
TAILQ_HEAD(pawli_host_list, pawli_host);

struct pawli_roster {
    struct pawli_outlets outlets;
    struct pawli_hosts hosts;
    struct pawli_host_list stirred;
    int64_t per_host_max;
    size_t count;
};

/* Empty; so much may be under way at once to one host. */
void pawli_roster_init(struct pawli_roster *roster, int64_t per_host_max);

void pawli_roster_clear(struct pawli_roster *roster);

/* By its name, or by its queue; NULL: there is none. */
struct pawli_outlet *pawli_roster_find(struct pawli_roster *roster, const char *name);
struct pawli_outlet *pawli_roster_of(struct pawli_roster *roster, const char *queue);

/* Takes it: its name must be a new one. */
void pawli_roster_add(struct pawli_roster *roster, struct pawli_outlet *outlet);

/* Take it out, and free it. */
void pawli_roster_remove(struct pawli_roster *roster, struct pawli_outlet *outlet);

/* Its target is another: it is at home at that host. False: no memory; it stays where it was. */
bool pawli_roster_move(struct pawli_roster *roster, struct pawli_outlet *outlet);

/* A delivery of it has ended: its host, if it has one, may have room again. */
void pawli_roster_stir(struct pawli_roster *roster, struct pawli_outlet *outlet);

/* A host that may have room again, each once. NULL: none. */
struct pawli_host *pawli_roster_stirred(struct pawli_roster *roster);

struct pawli_outlet *pawli_roster_next(struct pawli_roster *roster, struct pawli_outlet *after);

#endif

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * slots.h - who may have how many of the slots that all endpoints share. Used by one thread.
 *
 * An endpoint that has answered well may hang from now on, and many of them at once: what they have
 * taken by then is gone until their requests time out. So each endpoint that has work has an equal
 * part of all slots (half, where it is alone), and more than that only while nearly all are free.
 * Half of the parts of those who may have a few only goes to the others.
 * However many of them hang, the others have their parts.
 */
#ifndef PAWLI_DELIVER_SLOTS_H
#define PAWLI_DELIVER_SLOTS_H

#include "deliver/outlet.h"

struct pawli_slots {
    int64_t all;
    int64_t taken;  /* by deliveries that have begun, or wait for their host */
    int64_t active; /* endpoints that have, or had lately, any of them */
    int64_t small;  /* of these, such as may have a few only: they answer badly, or not yet */
};

/* How many one endpoint may have now; `least` in any case. */
int64_t pawli_slots_bound(const struct pawli_slots *slots, int64_t least);

/* A delivery of an endpoint begins; or is no more. */
void pawli_slots_take(struct pawli_slots *slots, struct pawli_outlet *outlet, pawl_mono now);
void pawli_slots_give(struct pawli_slots *slots, struct pawli_outlet *outlet);

/* Whether it had work lately is looked at. To be asked some times in a while. */
void pawli_slots_look(struct pawli_slots *slots, struct pawli_outlet *outlet, pawl_mono now);

/* It is to be freed, with nothing under way. */
void pawli_slots_leave(struct pawli_slots *slots, struct pawli_outlet *outlet);

#endif

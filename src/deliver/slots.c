/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * slots.c - who may have how many of the slots that all endpoints share.
 * Owns:  the parts of the slots; which endpoints have work.
 * Never: counts on an endpoint that was fast to be fast.
 */
#include "deliver/slots.h"

#include "base/clock.h"

#include <assert.h>

#define LATELY_MS  5000 /* so long after its last delivery began an endpoint keeps its part */
#define SMALL_PART 2    /* who can use no more than that of an equal part leaves others the rest */
#define SPARE_PART 8    /* while less than that of all slots is taken, one may have more */

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t equal_part(const struct pawli_slots *slots)
{
    return slots->all / larger(2, slots->active);
}

/* Look anew how much of its part it can use. */
static void weigh(struct pawli_slots *slots, struct pawli_outlet *outlet)
{
    const struct pawli_gate *gate = &outlet->gate;
    int64_t usable = gate->window < gate->most ? gate->window : gate->most;
    bool is_small = outlet->is_active && usable * SMALL_PART <= equal_part(slots);
    slots->small += (int64_t)is_small - (int64_t)outlet->is_small;
    outlet->is_small = is_small;
}

int64_t pawli_slots_bound(const struct pawli_slots *slots, int64_t least)
{
    int64_t part = equal_part(slots);
    if (slots->small > 0 && slots->small < slots->active) {
        /* More than they can use now: they may answer well from now on. */
        int64_t left = slots->all - slots->small * (part / SMALL_PART);
        part = larger(part, left / larger(2, slots->active - slots->small));
    }
    int64_t spare = slots->all / SPARE_PART - slots->taken;
    return larger(least, larger(part, spare));
}

void pawli_slots_take(struct pawli_slots *slots, struct pawli_outlet *outlet, pawl_mono now)
{
    slots->taken++;
    outlet->deliveries++;
    outlet->begun_at = now;
    slots->active += !outlet->is_active;
    outlet->is_active = true;
    weigh(slots, outlet);
}

void pawli_slots_give(struct pawli_slots *slots, struct pawli_outlet *outlet)
{
    assert(slots->taken > 0 && outlet->deliveries > 0);
    slots->taken--;
    outlet->deliveries--;
    weigh(slots, outlet);
}

void pawli_slots_leave(struct pawli_slots *slots, struct pawli_outlet *outlet)
{
    assert(outlet->deliveries == 0);
    slots->active -= outlet->is_active;
    outlet->is_active = false;
    weigh(slots, outlet);
}

void pawli_slots_look(struct pawli_slots *slots, struct pawli_outlet *outlet, pawl_mono now)
{
    if (outlet->deliveries == 0 && pawli_mono_diff_ms(outlet->begun_at, now) >= LATELY_MS)
        pawli_slots_leave(slots, outlet);
    else
        weigh(slots, outlet);
}

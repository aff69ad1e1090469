/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * probe.h - one delivery by hand: an event of no meaning, sent and signed as any other, past the
 * queue and the breaker.
 */
#ifndef PAWLI_DELIVER_PROBE_H
#define PAWLI_DELIVER_PROBE_H

#include "deliver/directory.h"
#include "deliver/wire.h"

#define PAWLI_PROBE_TYPE "pawl.test" /* of the event */

/* All borrowed for the call. */
struct pawli_probe_args {
    const struct pawli_news *news; /* the endpoint */
    struct pawli_target_rules target;
    struct pawli_wire_rules wire;
    const char *source; /* of CloudEvents */
    const pawl_clock *clock;
    const pawl_random *random;
};

struct pawli_probe_end {
    struct pawli_outcome outcome;
    char id[PAWL_EVENT_ID_MAX + 1];
    int64_t sends;
    int64_t took_us;
    char text[PAWL_ERR_TEXT_MAX]; /* what went wrong; empty: nothing */
};

/* Deliver it, and wait for the answer. PAWL_INVALID: the endpoint cannot be called as it is set;
 * PAWL_NO_MEMORY, PAWL_DOWN. */
PAWL_MUST_USE pawl_code pawli_probe(const struct pawli_probe_args *args,
                                    struct pawli_probe_end *ret_end, pawl_err *err);

#endif

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * gate.h - whether an endpoint may be called now, and how many of its deliveries may be held at
 * once: its breaker, the pause that it asked for, its rate, its own maximum, and a window that
 * grows with its successes. No I/O, no threads, no clock.
 *
 * The window is what keeps an endpoint that hangs from filling the slots of all: whoever has not
 * answered yet, or has failed, gets a few deliveries at a time.
 */
#ifndef PAWLI_DELIVER_GATE_H
#define PAWLI_DELIVER_GATE_H

#include "webhook/breaker.h"
#include "webhook/outcome.h"

struct pawli_gate_rules {
    struct pawli_breaker_rules breaker;
    int64_t window_start; /* deliveries at once before the first success, and after a failure */
};

struct pawli_gate {
    struct pawli_breaker breaker;
    pawl_mono paused_until;
    int64_t window;
    int64_t most;      /* at once; the endpoint's own */
    int64_t in_flight; /* let through, and not ended */

    int64_t rate_per_minute; /* 0: no bound */
    int64_t credit_us;       /* of a minute, times the rate: one delivery costs a minute of it */
    pawl_mono credit_at;     /* as of then */
};

/* Open; `failing_since` as for the breaker. */
void pawli_gate_init(struct pawli_gate *gate, const struct pawli_gate_rules *rules, pawl_mono now,
                     pawl_wall failing_since);

/* Other bounds from now on: `most` at least 1, rate_per_minute from 0. */
struct pawli_gate_bounds {
    int64_t most;
    int64_t rate_per_minute;
};
void pawli_gate_set(struct pawli_gate *gate, pawl_mono now, struct pawli_gate_bounds bounds);

/* How many may be held now, those in flight among them. 0: it may not be called. */
int64_t pawli_gate_bound(struct pawli_gate *gate, pawl_mono now);

/* When that may rise by itself: PAWLI_MONO_NEVER where something must happen first. */
pawl_mono pawli_gate_deadline(const struct pawli_gate *gate, pawl_mono now);

/* May one be sent now? True: tell how it ended, by pawli_gate_ended() with this pass. */
bool pawli_gate_ask(struct pawli_gate *gate, pawl_mono now, struct pawli_breaker_pass *ret_pass);

/* How one that was let through has ended. */
struct pawli_gate_ended {
    struct pawli_breaker_pass pass;
    enum pawli_transfer_end end;
    struct pawli_outcome outcome;
};
enum pawli_breaker_event pawli_gate_ended(struct pawli_gate *gate,
                                          const struct pawli_gate_rules *rules,
                                          struct pawli_breaker_now now,
                                          const struct pawli_gate_ended *ended);

/* Leave the endpoint alone for so long. Never shortens a pause. */
void pawli_gate_pause(struct pawli_gate *gate, pawl_mono now, int64_t pause_ms);

#endif

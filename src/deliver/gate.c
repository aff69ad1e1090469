/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * gate.c - whether an endpoint may be called now, and how often at once.
 * Owns:  the pause, the rate and the window of an endpoint; what its breaker is told.
 * Never: decides what an answer means (webhook/outcome.c does); reads a clock.
 */
#include "deliver/gate.h"

#include "base/clock.h"

#include <assert.h>
#include <string.h>

#define MINUTE_US INT64_C(60000000)
#define SECOND_US INT64_C(1000000)

/* ---------------------------------------------------------------- the rate */

/* What can be saved up: a second's deliveries, and one at the least. */
static int64_t credit_most(const struct pawli_gate *gate)
{
    int64_t second = gate->rate_per_minute * SECOND_US;
    return second > MINUTE_US ? second : MINUTE_US;
}

static void earn(struct pawli_gate *gate, pawl_mono now)
{
    if (gate->rate_per_minute == 0 || !pawli_mono_is_before(gate->credit_at, now))
        return;
    int64_t most = credit_most(gate);
    int64_t passed_us = now.us - gate->credit_at.us;
    gate->credit_at = now;
    if (passed_us >= (most - gate->credit_us) / gate->rate_per_minute + 1)
        gate->credit_us = most; /* said so that it cannot overflow */
    else
        gate->credit_us += passed_us * gate->rate_per_minute;
    if (gate->credit_us > most)
        gate->credit_us = most;
}

static int64_t credit_left(const struct pawli_gate *gate)
{
    return gate->rate_per_minute == 0 ? INT64_MAX : gate->credit_us / MINUTE_US;
}

/* ---------------------------------------------------------------- bounds */

void pawli_gate_init(struct pawli_gate *gate, const struct pawli_gate_rules *rules, pawl_mono now,
                     pawl_wall failing_since)
{
    assert(gate != NULL && rules != NULL && rules->window_start > 0);
    *gate = (struct pawli_gate){
        .window = rules->window_start, .most = 1, .paused_until = now, .credit_at = now};
    pawli_breaker_init(&gate->breaker, failing_since);
}

void pawli_gate_set(struct pawli_gate *gate, pawl_mono now, struct pawli_gate_bounds bounds)
{
    assert(bounds.most > 0 && bounds.rate_per_minute >= 0);
    gate->most = bounds.most;
    if (bounds.rate_per_minute == gate->rate_per_minute)
        return;
    bool had_none = gate->rate_per_minute == 0;
    earn(gate, now);
    gate->rate_per_minute = bounds.rate_per_minute;
    gate->credit_at = now;
    if (had_none || gate->credit_us > credit_most(gate))
        gate->credit_us = credit_most(gate);
}

static bool is_paused(const struct pawli_gate *gate, pawl_mono now)
{
    return pawli_mono_is_before(now, gate->paused_until);
}

int64_t pawli_gate_bound(struct pawli_gate *gate, pawl_mono now)
{
    int64_t bound = gate->window < gate->most ? gate->window : gate->most;
    earn(gate, now);
    switch (gate->breaker.state) {
    case PAWLI_BREAKER_CLOSED:
        break;
    case PAWLI_BREAKER_OPEN:
    case PAWLI_BREAKER_HALF_OPEN:
        bound = 1; /* the probe */
        break;
    default:
        return 0;
    }
    if (is_paused(gate, now) || pawli_mono_is_before(now, pawli_breaker_deadline(&gate->breaker)))
        return 0;
    int64_t left = credit_left(gate);
    return left < bound - gate->in_flight ? gate->in_flight + left : bound;
}

pawl_mono pawli_gate_deadline(const struct pawli_gate *gate, pawl_mono now)
{
    pawl_mono at = pawli_breaker_deadline(&gate->breaker);
    if (at.us == PAWLI_MONO_NEVER.us)
        return at;
    if (pawli_mono_is_before(at, gate->paused_until))
        at = gate->paused_until;
    if (gate->rate_per_minute > 0 && gate->credit_us < MINUTE_US) {
        int64_t us = (MINUTE_US - gate->credit_us) / gate->rate_per_minute + 1;
        if (at.us < gate->credit_at.us + us)
            at.us = gate->credit_at.us + us;
    }
    return pawli_mono_is_before(now, at) ? at : PAWLI_MONO_NEVER;
}

/* ---------------------------------------------------------------- deliveries */

bool pawli_gate_ask(struct pawli_gate *gate, pawl_mono now, struct pawli_breaker_pass *ret_pass)
{
    earn(gate, now);
    if (is_paused(gate, now) || credit_left(gate) == 0 ||
        !pawli_breaker_ask(&gate->breaker, now, ret_pass))
        return false;
    if (gate->rate_per_minute > 0)
        gate->credit_us -= MINUTE_US;
    gate->in_flight++;
    return true;
}

void pawli_gate_pause(struct pawli_gate *gate, pawl_mono now, int64_t pause_ms)
{
    pawl_mono until = pawli_mono_add_ms(now, pause_ms);
    if (pawli_mono_is_before(gate->paused_until, until))
        gate->paused_until = until;
}

/* Of these nothing is learned about the endpoint. */
static bool is_our_own(enum pawli_transfer_end end)
{
    return end == PAWLI_END_STOPPED || end == PAWLI_END_LOCAL;
}

enum pawli_breaker_event pawli_gate_ended(struct pawli_gate *gate,
                                          const struct pawli_gate_rules *rules,
                                          struct pawli_breaker_now now,
                                          const struct pawli_gate_ended *ended)
{
    assert(gate->in_flight > 0);
    const struct pawli_outcome *outcome = &ended->outcome;
    gate->in_flight--;
    if (outcome->pause_ms > 0)
        pawli_gate_pause(gate, now.mono, outcome->pause_ms);
    if (outcome->is_endpoint_gone)
        return pawli_breaker_gone(&gate->breaker, ended->pass, outcome->reason);
    switch (outcome->delivery) {
    case PAWLI_DELIVERED:
    case PAWLI_DELIVERY_FAILED: /* it answered, and did not like this one */
        if (gate->window < gate->most)
            gate->window++;
        return pawli_breaker_succeeded(&gate->breaker, ended->pass);
    case PAWLI_DELIVERY_RETRY:
        gate->window = rules->window_start;
        if (!is_our_own(ended->end) && strcmp(outcome->reason, "HTTP-429") != 0)
            return pawli_breaker_failed(&gate->breaker, ended->pass, &rules->breaker, now,
                                        outcome->reason);
        break; /* one that has too much to do is not broken */
    default:
        break;
    }
    pawli_breaker_untold(&gate->breaker, ended->pass);
    return PAWLI_BREAKER_SAME;
}

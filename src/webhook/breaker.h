/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * breaker.h - whether one endpoint is to be called: a state machine without I/O, threads or clock.
 *
 *   closed     everything is sent; failures in a row are counted
 *   open       after too many of them nothing is sent for a while, each time twice as long
 *   half-open  then one delivery is sent, the probe: by it the breaker closes, or opens again
 *   disabled   by hand, by 410, or after failing for too long; until somebody enables it
 *
 * One caller at a time. Whoever was told to send tells how it ended, once.
 */
#ifndef PAWLI_WEBHOOK_BREAKER_H
#define PAWLI_WEBHOOK_BREAKER_H

#include "pawl/pawl.h"

#define PAWLI_BREAKER_FAILURES_MAX 10000
#define PAWLI_BREAKER_REASON_SIZE  96

/* Fill by pawli_breaker_rules_init(). */
struct pawli_breaker_rules {
    int64_t failures_max;     /* in a row, until it opens: 5; to PAWLI_BREAKER_FAILURES_MAX */
    int64_t open_base_ms;     /* the first time: 10 s */
    int64_t open_max_ms;      /* the longest time: 10 min; not below open_base_ms */
    int64_t disable_after_ms; /* failing without a success for so long: 5 d, or PAWL_FOREVER */
};

void pawli_breaker_rules_init(struct pawli_breaker_rules *rules);

/* PAWL_INVALID names the field, the value and the bound. */
PAWL_MUST_USE pawl_code pawli_breaker_rules_check(const struct pawli_breaker_rules *rules,
                                                  pawl_err *err);

enum pawli_breaker_state {
    PAWLI_BREAKER_CLOSED = 0,
    PAWLI_BREAKER_OPEN,
    PAWLI_BREAKER_HALF_OPEN,
    PAWLI_BREAKER_DISABLED
};

/* "closed", "open", "half-open", "disabled"; "?" for a number that is none of them. */
const char *pawli_breaker_state_name(enum pawli_breaker_state state);

struct pawli_breaker {
    enum pawli_breaker_state state;
    int64_t failures;        /* in a row */
    int64_t openings;        /* in a row, without a success in between */
    pawl_mono open_until;    /* while open */
    uint64_t generation;     /* rises when it is enabled or disabled */
    uint64_t probes;         /* given out; while half-open, the last of them is under way */
    pawl_wall failing_since; /* the first failure since the last success; 0: none */
    char reason[PAWLI_BREAKER_REASON_SIZE]; /* why it is disabled; empty while it is not */
};

/* A delivery that was let through. */
struct pawli_breaker_pass {
    uint64_t probe;      /* the number of the probe; 0: it is none */
    uint64_t generation; /* of the breaker when it was given out */
};

struct pawli_breaker_now {
    pawl_mono mono; /* for how long it stays open */
    pawl_wall wall; /* for how long it fails: that outlives the process */
};

/* Closed. `failing_since` as it was stored when the process before ended; 0: none. */
void pawli_breaker_init(struct pawli_breaker *breaker, pawl_wall failing_since);

/*
 * May a delivery be sent now? True: send it, and tell how it ended by one of the next three with
 * this pass. False: not before pawli_breaker_deadline().
 */
bool pawli_breaker_ask(struct pawli_breaker *breaker, pawl_mono now,
                       struct pawli_breaker_pass *ret_pass);

/* When to ask again: the past where it may be asked at once, PAWLI_MONO_NEVER where something must
 * happen first (the end of the probe, or somebody who enables it). */
pawl_mono pawli_breaker_deadline(const struct pawli_breaker *breaker);

enum pawli_breaker_event {
    PAWLI_BREAKER_SAME = 0,
    PAWLI_BREAKER_OPENED,
    PAWLI_BREAKER_CLOSED_AGAIN,
    PAWLI_BREAKER_NOW_DISABLED /* `reason` says why */
};

/* It was delivered. Also of a delivery that was sent before the breaker opened: it closes it. */
enum pawli_breaker_event pawli_breaker_succeeded(struct pawli_breaker *breaker,
                                                 struct pawli_breaker_pass pass);

/* It failed, for `reason` (see outcome.h). Of one that was sent before the breaker opened, or of a
 * probe that another success has made useless, nothing is learned. */
enum pawli_breaker_event pawli_breaker_failed(struct pawli_breaker *breaker,
                                              struct pawli_breaker_pass pass,
                                              const struct pawli_breaker_rules *rules,
                                              struct pawli_breaker_now now, const char *reason);

/* It was given up by ourselves, or failed by a fault of our own: that says nothing of the endpoint.
 * A probe may be sent anew. */
void pawli_breaker_untold(struct pawli_breaker *breaker, struct pawli_breaker_pass pass);

/* What the store says of it, which all who deliver share: since when it has been failing; 0: it has
 * not. */
void pawli_breaker_told(struct pawli_breaker *breaker, pawl_wall failing_since);

/* It said that it is gone (410): it is disabled, once. Of one that was sent before somebody
 * disabled or enabled it nothing is learned. */
enum pawli_breaker_event pawli_breaker_gone(struct pawli_breaker *breaker,
                                            struct pawli_breaker_pass pass, const char *reason);

/* By hand. `reason` is cut to fit. */
void pawli_breaker_disable(struct pawli_breaker *breaker, const char *reason);

/* By hand, or because its address is another: closed, as if it had never failed. What was sent
 * before does not count any more. */
void pawli_breaker_enable(struct pawli_breaker *breaker);

#endif

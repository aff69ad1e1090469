/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * outlet.h - one endpoint as the dispatcher has it: where to, how, signed with what, and its gate.
 * Used by one thread.
 */
#ifndef PAWLI_DELIVER_OUTLET_H
#define PAWLI_DELIVER_OUTLET_H

#include "deliver/directory.h"
#include "deliver/gate.h"
#include "deliver/request.h"
#include "webhook/target.h"

#include <bsd/sys/tree.h>

struct pawli_host; /* see host.h */

struct pawli_outlet {
    RB_ENTRY(pawli_outlet) place; /* roster.c's */
    char name[PAWL_ENDPOINT_NAME_MAX + 1];
    char queue[PAWL_NAME_MAX + 1];
    size_t line;          /* of the pump */
    int64_t bound;        /* that the pump was told; -1: none yet */
    int64_t deliveries;   /* under way, and those that wait for their host */
    bool is_active;       /* it has work, or had it lately: slots.c's, as the next two */
    bool is_small;        /* it can use but a few of them */
    pawl_mono begun_at;   /* its last delivery */
    int64_t parked_count; /* of these, those that wait: host.c's, as the next two */
    bool is_held_back;    /* its host has no room for more of it */
    TAILQ_ENTRY(pawli_outlet) waiting;
    bool is_gone;     /* the store has it no more: to be freed when nothing is under way */
    bool is_enabled;  /* the store says so */
    bool is_marked;   /* as failing, in the store, or on its way there */
    int64_t marks;    /* orders that were given to the directory */
    int64_t revision; /* this and the next: of the endpoint, as it was told last */
    pawl_wall created_at;
    pawl_mono marked_at;
    pawl_wall delivered_at; /* the last one that was; 0: none yet */
    struct pawli_gate gate;
    struct pawli_host *host; /* NULL: none, while it cannot be called */

    pawl_code code; /* PAWL_OK: it can be called; else why not */
    char problem[PAWL_ERR_TEXT_MAX];
    struct pawli_target target;
    struct pawli_outcome_rules rules;
    struct pawli_signer *signer;
    pawl_wall signer_until; /* some of its secrets sign no more then; 0: never */
    pawl_endpoint_credentials credentials;
    pawl_endpoint_format format;
    int64_t timeout_ms;
    int64_t lease_ms;
    int64_t most;
};

/* What an outlet is made by. */
struct pawli_outlet_rules {
    struct pawli_target_rules target;
    struct pawli_gate_rules gate;
    struct pawli_outcome_rules outcome; /* but for the statuses, which are the endpoint's */
    int64_t most;                       /* at once, where the endpoint has no bound of its own */
};

/* A new one, of which nothing is known but its name; NULL: no memory. */
struct pawli_outlet *pawli_outlet_new(const char *name, const struct pawli_outlet_rules *rules,
                                      pawl_mono now);
void pawli_outlet_free(struct pawli_outlet *outlet); /* wipes its secrets; accepts NULL */

/* It is as the news say from now on. What is wrong with it stands in outlet->code and problem. */
void pawli_outlet_set(struct pawli_outlet *outlet, const struct pawli_news *news,
                      const struct pawli_outlet_rules *rules, struct pawli_breaker_now now);

/* How many may be held now; 0: none. */
int64_t pawli_outlet_bound(struct pawli_outlet *outlet, pawl_mono now);

/* The signer, with the secrets that sign now. PAWL_INVALID: none does; PAWL_NO_MEMORY, PAWL_DOWN.
 */
pawl_code pawli_outlet_signer(struct pawli_outlet *outlet, pawl_wall now,
                              struct pawli_signer **ret_signer, pawl_err *err);

#endif

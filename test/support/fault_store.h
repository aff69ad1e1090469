/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * fault_store.h - a store that fails on request: it passes every call on to another store, and lets
 * those that a test chose go wrong in the ways in which a network makes them go wrong.
 */
#ifndef PAWLT_SUPPORT_FAULT_STORE_H
#define PAWLT_SUPPORT_FAULT_STORE_H

#include "pawl/pawl.h"

/* The verbs, in the order of the port. */
enum fault_verb {
    FAULT_ENQUEUE = 0,
    FAULT_CLAIM,
    FAULT_MINE,
    FAULT_RENEW,
    FAULT_SETTLE,
    FAULT_RELEASE,
    FAULT_REAP,
    FAULT_PRUNE,
    FAULT_GET,
    FAULT_LIST,
    FAULT_ATTEMPTS,
    FAULT_LEASES,
    FAULT_WORKER_SEEN,
    FAULT_WORKER_ENDED,
    FAULT_WORKERS,
    FAULT_QUEUE_STATS,
    FAULT_QUEUE_GET,
    FAULT_QUEUE_SET,
    FAULT_QUEUE_PAUSE,
    FAULT_CANCEL,
    FAULT_REDRIVE,
    FAULT_DISCARD,
    FAULT_CANCEL_WHERE,
    FAULT_REDRIVE_WHERE,
    FAULT_DISCARD_WHERE,
    FAULT_NOW,
    FAULT_WAIT,
    FAULT_VERBS,
    FAULT_ANY_VERB = FAULT_VERBS
};

enum fault_kind {
    FAULT_NONE = 0,     /* goes through: for a call that only has its hooks */
    FAULT_DOWN,         /* PAWL_DOWN; not executed */
    FAULT_LOST_REQUEST, /* PAWL_UNKNOWN; not executed */
    FAULT_LOST_REPLY,   /* PAWL_UNKNOWN; executed */
    FAULT_TWICE_FIRST,  /* executed twice; the first answer comes back */
    FAULT_TWICE_SECOND  /* executed twice; the second answer comes back */
};

/* One entry of the script. */
struct fault {
    enum fault_verb verb; /* of this verb, or FAULT_ANY_VERB */
    int64_t nth;          /* the call of that verb it is for: 1 is the next one from now */
    enum fault_kind kind;
    /* The request, or the reply, is held up: called before it goes on. NULL: it is not. */
    void (*before_request)(void *user);
    void (*before_reply)(void *user);
    void *user;
};

/* Entries of a script that are still to come. */
#define FAULT_SCRIPT_MAX 32

/*
 * Give a store that passes every call on to `inner`. Takes `inner`: closing this store closes it.
 * PAWL_NO_MEMORY leaves `inner` with the caller.
 */
PAWL_MUST_USE pawl_code fault_store_open(pawl_store *inner, pawl_store **ret_store, pawl_err *err);

/*
 * Add an entry to the script. Each entry is used once, and at most one for a call: of several that
 * fit, the oldest. PAWL_FULL where FAULT_SCRIPT_MAX are still to come.
 */
PAWL_MUST_USE pawl_code fault_store_add(pawl_store *store, const struct fault *fault);

/* Entries that have not been used yet: 0 proves that the script was played to its end. */
size_t fault_store_left(const pawl_store *store);

/*
 * Ask this before every call what is to become of it: FAULT_NONE leaves it to the script. It may
 * block, as a store that hangs does. See fault_gate.h. Before the store is used.
 */
void fault_store_on_pass(pawl_store *store,
                         enum fault_kind (*pass)(void *user, enum fault_verb verb), void *user);

/* How many calls of a verb the caller made, and how many of them the inner store executed. */
int64_t fault_store_asked(const pawl_store *store, enum fault_verb verb);
int64_t fault_store_executed(const pawl_store *store, enum fault_verb verb);

#endif

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * dispatcher.h - delivers webhooks: a worker whose hands are requests over HTTP, all of them in the
 * worker's one conducting thread. It serves every endpoint that there is, each as a line of its
 * own, and follows them as they come, change and go.
 *
 * It is a pawl_runner: what worker.h says of stopping, waiting, tuning and freeing one holds.
 */
#ifndef PAWLI_DELIVER_DISPATCHER_H
#define PAWLI_DELIVER_DISPATCHER_H

#include "deliver/outlet.h"
#include "deliver/wire.h"
#include "pawl/worker.h"

struct pawli_dispatcher_options {
    /* As of a worker, but that queues, handler and user are not looked at. parallel_max is how many
     * deliveries may be under way at once: each takes a descriptor, and no thread. */
    pawl_worker_options worker;
    struct pawli_target_rules target; /* what it points to is borrowed, as all below */
    struct pawli_wire_rules wire;     /* `allow` as in the target's */
    struct pawli_breaker_rules breaker;
    struct pawli_outcome_rules outcome;
    int64_t refresh_ms;   /* how often it asks which endpoints there are: default 2 s */
    int64_t per_host_max; /* deliveries at once to one host and port: default 256 */
    const char *source;   /* of CloudEvents: default urn:pawl */
};

void pawli_dispatcher_options_init(struct pawli_dispatcher_options *options);

/* PAWL_INVALID, PAWL_NO_MEMORY, PAWL_DOWN, and what the opener says. */
PAWL_MUST_USE pawl_code pawli_dispatcher_start(const struct pawli_dispatcher_options *options,
                                               pawl_runner **ret_runner, pawl_err *err);

#endif

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * serve_webhooks.h - what `pawl serve` has of webhooks: endpoints over HTTP, and deliveries where
 * --deliver asks for them.
 */
#ifndef PAWLI_CLI_SERVE_WEBHOOKS_H
#define PAWLI_CLI_SERVE_WEBHOOKS_H

#include "cli/options.h"
#include "pawl/worker.h"
#include "serve/call.h"

struct pawli_serve_webhooks;

/* By the options of the line, which lives longer. EX_OK, with NULL where this program has no
 * webhooks; EX_USAGE: told. */
int pawli_serve_webhooks_new(const struct pawli_line *line,
                             struct pawli_serve_webhooks **ret_webhooks);
void pawli_serve_webhooks_free(struct pawli_serve_webhooks *webhooks); /* accepts NULL */

/* What requests need of it; NULL: there is none. */
const struct pawli_webhooks *pawli_serve_webhooks_calls(struct pawli_serve_webhooks *webhooks);

/* Start to deliver. Of `worker` the opener, the watch, the metrics and the name are looked at.
 * PAWL_INVALID: this program has no webhooks; and what pawli_dispatcher_start() says. */
PAWL_MUST_USE pawl_code pawli_serve_webhooks_deliver(struct pawli_serve_webhooks *webhooks,
                                                     const pawl_worker_options *worker,
                                                     pawl_runner **ret_runner, pawl_err *err);

#endif

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * endpoint_again.h - `pawl endpoint replay`, and what `pawl endpoint enable` sends again.
 */
#ifndef PAWLI_CLI_ENDPOINT_AGAIN_H
#define PAWLI_CLI_ENDPOINT_AGAIN_H

#include "cli/options.h"
#include "pawl/endpoint.h"

extern const struct pawli_command pawli_command_endpoint_replay;

/* What was sent again. */
struct pawli_sent_again {
    int64_t redriven;
    pawl_replayed replayed; /* of all calls: events and jobs */
};

/* Put the Failed jobs of an endpoint back to Ready, in batches. Repeating it is harmless. */
PAWL_MUST_USE pawl_code pawli_endpoint_redrive(pawl_store *store, const char *name,
                                               struct pawli_sent_again *again, pawl_err *err);

/* Replay, in batches, until there is no more. Repeating it is harmless. */
PAWL_MUST_USE pawl_code pawli_endpoint_replay(pawl_store *store, const pawl_replay_args *args,
                                              struct pawli_sent_again *again, pawl_err *err);

#endif

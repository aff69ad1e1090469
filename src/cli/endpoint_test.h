/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * endpoint_test.h - `pawl endpoint test`, and the same for `pawl serve`.
 */
#ifndef PAWLI_CLI_ENDPOINT_TEST_H
#define PAWLI_CLI_ENDPOINT_TEST_H

#include "cli/webhook_rules.h"
#include "deliver/probe.h"

extern const struct pawli_command pawli_command_endpoint_test;

/* Deliver one event to an endpoint, here and now. The line has the options of webhook_rules.h. */
PAWL_MUST_USE pawl_code pawli_endpoint_probe(const struct pawli_line *line,
                                             const struct pawli_webhook_rules *rules,
                                             pawl_store *store, const char *name,
                                             struct pawli_probe_end *ret_end, pawl_err *err);

#endif

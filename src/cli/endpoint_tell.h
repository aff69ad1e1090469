/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * endpoint_tell.h - how endpoints are listed and shown: never with a secret.
 */
#ifndef PAWLI_CLI_ENDPOINT_TELL_H
#define PAWLI_CLI_ENDPOINT_TELL_H

#include "cli/options.h"
#include "pawl/pawl.h"

extern const struct pawli_command pawli_endpoint_list_command;
extern const struct pawli_command pawli_endpoint_show_command;

/* Show the endpoint that the first argument names. */
pawl_code pawli_endpoint_show(const struct pawli_line *line, pawl_store *store, pawl_err *err);

#endif

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * token.h - comparing the tokens of leases, and what may be kept of them.
 */
#ifndef PAWLI_CORE_TOKEN_H
#define PAWLI_CORE_TOKEN_H

#include "pawl/pawl.h"

/* Takes as long for a token that is wrong in its first byte as for one wrong in its last. */
bool pawli_token_is_equal(const pawl_token *a, const pawl_token *b);

/* What stands for a token once its lease is over, or in a record that must not give it away; never
 * 0. */
uint64_t pawli_token_digest(const pawl_token *token);

#endif

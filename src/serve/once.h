/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * once.h - requests with an Idempotency-Key: carried out once, and answered the same way each time.
 */
#ifndef PAWLI_SERVE_ONCE_H
#define PAWLI_SERVE_ONCE_H

#include "serve/call.h"

#define PAWLI_ONCE_HEADER  "Idempotency-Key"
#define PAWLI_ONCE_KEEP_MS (INT64_C(24) * 3600 * 1000) /* how long a key is remembered */
#define PAWLI_ONCE_HOLD_MS 60000 /* how long a try that says nothing keeps others from trying */

/* What the tries of one request have in common: the ids that it makes come of it. */
struct pawli_once {
    uint64_t seed;
    pawl_wall at;  /* of the first try */
    bool is_again; /* there was a try before this one */
};

/* Whether the request has a key, and its route takes one. */
bool pawli_once_has_key(const struct pawli_call *call);

/* Carry it out, or give the answer that there is. As a handler. */
pawl_code pawli_once_run(struct pawli_call *call);

#endif

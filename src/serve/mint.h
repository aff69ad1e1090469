/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * mint.h - ids for what a request makes. Those of a request with an Idempotency-Key are the same in
 * each of its tries.
 */
#ifndef PAWLI_SERVE_MINT_H
#define PAWLI_SERVE_MINT_H

#include "serve/call.h"

#include "base/random.h"

struct pawli_minter;

/* It stays where it was begun: it points into itself. */
struct pawli_mint {
    pawl_store *store;
    struct pawli_minter *own; /* NULL: the store's */
    pawl_wall at;
    struct pawli_seeded seeded;
    pawl_clock clock;
    pawl_random random;
};

pawl_code pawli_mint_begin(struct pawli_call *call, struct pawli_mint *mint); /* PAWL_NO_MEMORY */
void pawli_mint_end(struct pawli_mint *mint);

/* An id for a row, by its queue and its keys. False: these are wrong, and there is none. */
bool pawli_mint_next(struct pawli_mint *mint, const pawl_enqueue_row *row, pawl_id *ret_id);

#endif

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * mint.c - ids for what a request makes.
 * Owns:  that the tries of a request with an Idempotency-Key make the same ids, so that the store
 *        itself keeps the second from making anything.
 * Never: judges a row.
 */
#include "serve/mint.h"

#include "serve/once.h"

#include "base/error.h"
#include "core/id.h"
#include "store/store.h"

/* A clock that stands still. */
static pawl_wall wall_of(void *user)
{
    const struct pawli_mint *mint = user;
    return mint->at;
}

static pawl_mono mono_of(void *user)
{
    (void)user;
    return (pawl_mono){0};
}

pawl_code pawli_mint_begin(struct pawli_call *call, struct pawli_mint *mint)
{
    *mint = (struct pawli_mint){.store = call->store};
    if (call->once == NULL)
        return PAWL_OK;
    mint->at = call->once->at;
    mint->seeded = (struct pawli_seeded){call->once->seed};
    mint->clock = (pawl_clock){mono_of, wall_of, mint};
    mint->random = pawli_seeded_as_random(&mint->seeded);
    mint->own = pawli_minter_new(&mint->clock, &mint->random, call->store->limits.shards);
    return mint->own != NULL ? PAWL_OK : pawli_fail_plain(&call->err, PAWL_NO_MEMORY);
}

void pawli_mint_end(struct pawli_mint *mint)
{
    pawli_minter_free(mint->own);
    mint->own = NULL;
}

bool pawli_mint_next(struct pawli_mint *mint, const pawl_enqueue_row *row, pawl_id *ret_id)
{
    if (pawl_id_new(mint->store, row, ret_id, NULL) != PAWL_OK)
        return false;
    const struct pawli_shard_key key = pawli_shard_key_of(row);
    if (mint->own != NULL)
        *ret_id = pawli_minter_next(mint->own, &key);
    return true;
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * id.h - minting job ids, and which shard a job belongs to.
 */
#ifndef PAWLI_CORE_ID_H
#define PAWLI_CORE_ID_H

#include "pawl/pawl.h"

/*
 * Mints UUIDv7 ids. One per process, shared by all its handles: ids of one minter and shard rise
 * strictly, also when the clock stands still or goes back. Safe from every thread where its clock
 * and random source are.
 */
struct pawli_minter;

/* Gives a minter for `shards` shards (1 .. PAWL_SHARDS_MAX) or NULL when memory ran out. Borrows
 * clock and random. */
struct pawli_minter *pawli_minter_new(const pawl_clock *clock, const pawl_random *random,
                                      int64_t shards);
void pawli_minter_free(struct pawli_minter *minter); /* accepts NULL */

/* What decides a job's shard: the queue, and the ordering key where there is one, so that a key is
 * in one shard; else the dedupe key, for the same reason; else (NULL) the id itself. */
struct pawli_shard_key {
    const char *queue;
    const char *key;
};
struct pawli_shard_key pawli_shard_key_of(const pawl_enqueue_row *row);

/* A new id whose shard bits are right for `key`. */
pawl_id pawli_minter_next(struct pawli_minter *minter, const struct pawli_shard_key *key);

/*
 * The hash that spreads jobs over shards: of the queue's bytes, a NUL, and then the key's bytes, or
 * where there is none the 16 bytes of the id with its twelve shard bits at 0. `id` may be NULL
 * where there is a key. It never changes: see id.c for the arithmetic, which SQL
 * repeats.
 */
uint32_t pawli_shard_hash(const struct pawli_shard_key *key, const pawl_id *id);

/* The shard that the id's bits name, of `shards`: the twelve bits of rand_a modulo `shards`. */
int64_t pawli_id_shard(const pawl_id *id, int64_t shards);

/* The shard that a job with this key and id must be in: the hash modulo `shards`. A caller's own id
 * is right where the two agree. */
int64_t pawli_shard_of(const struct pawli_shard_key *key, const pawl_id *id, int64_t shards);

#endif

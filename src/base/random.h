/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * random.h - draws from a random source that was handed in, and a source that a seed determines.
 */
#ifndef PAWLI_BASE_RANDOM_H
#define PAWLI_BASE_RANDOM_H

#include "pawl/pawl.h"

/* A whole number in [0, bound), each equally likely. A bound of 0 gives 0. */
uint64_t pawli_random_below(const pawl_random *random, uint64_t bound);

void pawli_random_fill(const pawl_random *random, uint8_t *bytes, size_t bytes_len);

#define PAWLI_STOCK_BYTES 256

/* Bytes for one call, which is about to draw `wanted` of them little by little: to ask the system
 * for a few costs as much as for many. Nothing of it outlives the call. */
struct pawli_stock {
    const pawl_random *random;
    size_t wanted;
    size_t left; /* in `bytes`, from their beginning */
    uint8_t bytes[PAWLI_STOCK_BYTES];
};

/* Up to PAWLI_STOCK_BYTES. A source that a seed determines is never asked ahead. */
void pawli_stock_take(struct pawli_stock *stock, uint8_t *bytes, size_t bytes_len);

/* The same seed gives the same numbers on every machine. Not for tokens in production; not safe to
 * share. */
struct pawli_seeded {
    uint64_t state;
};

pawl_random pawli_seeded_as_random(struct pawli_seeded *seeded);

#endif

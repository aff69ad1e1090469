/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * sha256.h - SHA-256 (FIPS 180-4) of a few short texts: for names that are derived, not for bulk.
 */
#ifndef PAWLI_BASE_SHA256_H
#define PAWLI_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define PAWLI_SHA256_LEN   32
#define PAWLI_SHA256_BLOCK 64

/* A hash under way. */
struct pawli_sha256 {
    uint32_t state[8];
    uint64_t total; /* bytes so far */
    uint8_t block[PAWLI_SHA256_BLOCK];
};

void pawli_sha256_init(struct pawli_sha256 *hash);
void pawli_sha256_add(struct pawli_sha256 *hash, const void *bytes, size_t bytes_len);

/* The hash is used up afterwards. */
void pawli_sha256_end(struct pawli_sha256 *hash, uint8_t ret_digest[PAWLI_SHA256_LEN]);

#endif

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * sha256.c - SHA-256 (FIPS 180-4).
 * Owns:  the arithmetic of the hash.
 * Never: allocates; sees a secret: it makes no effort to leave nothing of its input behind.
 *
 * Written out here because the library itself links no libcrypto, and SQL has this hash built in:
 * what both derive must be the same.
 */
#include "base/sha256.h"

#include <assert.h>
#include <string.h>

#define ROUNDS     64
#define LENGTH_AT  (PAWLI_SHA256_BLOCK - 8)
#define WORD_BYTES 4

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t round_words[ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t turn(uint32_t word, unsigned bits)
{
    return word >> bits | word << (32 - bits);
}

static uint32_t read_word(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static void write_word(uint8_t *bytes, uint32_t word)
{
    for (int i = 0; i < WORD_BYTES; i++)
        bytes[i] = (uint8_t)(word >> (24 - 8 * i));
}

/* The words of one block, and those that follow from them. */
static void spread(const uint8_t block[PAWLI_SHA256_BLOCK], uint32_t words[ROUNDS])
{
    for (size_t i = 0; i < 16; i++)
        words[i] = read_word(block + WORD_BYTES * i);
    for (size_t i = 16; i < ROUNDS; i++) {
        uint32_t a = words[i - 15];
        uint32_t b = words[i - 2];
        words[i] = words[i - 16] + (turn(a, 7) ^ turn(a, 18) ^ a >> 3) + words[i - 7] +
                   (turn(b, 17) ^ turn(b, 19) ^ b >> 10);
    }
}

static void mix(uint32_t state[8], const uint8_t block[PAWLI_SHA256_BLOCK])
{
    uint32_t words[ROUNDS];
    uint32_t at[8];
    spread(block, words);
    memcpy(at, state, sizeof(at));
    for (size_t i = 0; i < ROUNDS; i++) {
        uint32_t choice = (at[4] & at[5]) ^ (~at[4] & at[6]);
        uint32_t most = (at[0] & at[1]) ^ (at[0] & at[2]) ^ (at[1] & at[2]);
        uint32_t first = at[7] + (turn(at[4], 6) ^ turn(at[4], 11) ^ turn(at[4], 25)) + choice +
                         round_words[i] + words[i];
        uint32_t second = (turn(at[0], 2) ^ turn(at[0], 13) ^ turn(at[0], 22)) + most;
        memmove(at + 1, at, 7 * sizeof(at[0]));
        at[4] += first;
        at[0] = first + second;
    }
    for (size_t i = 0; i < 8; i++)
        state[i] += at[i];
}

void pawli_sha256_init(struct pawli_sha256 *hash)
{
    assert(hash != NULL);
    *hash = (struct pawli_sha256){
        .state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c,
                  0x1f83d9ab, 0x5be0cd19},
    };
}

void pawli_sha256_add(struct pawli_sha256 *hash, const void *bytes, size_t bytes_len)
{
    const uint8_t *at = bytes;
    assert(bytes != NULL || bytes_len == 0);
    while (bytes_len > 0) {
        size_t filled = hash->total % PAWLI_SHA256_BLOCK;
        size_t part = PAWLI_SHA256_BLOCK - filled;
        part = part < bytes_len ? part : bytes_len;
        memcpy(hash->block + filled, at, part);
        hash->total += part;
        at += part;
        bytes_len -= part;
        if (hash->total % PAWLI_SHA256_BLOCK == 0)
            mix(hash->state, hash->block);
    }
}

void pawli_sha256_end(struct pawli_sha256 *hash, uint8_t ret_digest[PAWLI_SHA256_LEN])
{
    static const uint8_t end[PAWLI_SHA256_BLOCK] = {0x80};
    uint64_t bits = hash->total * 8;
    size_t filled = hash->total % PAWLI_SHA256_BLOCK;
    pawli_sha256_add(hash, end,
                     1 + (LENGTH_AT + PAWLI_SHA256_BLOCK - 1 - filled) % PAWLI_SHA256_BLOCK);
    assert(hash->total % PAWLI_SHA256_BLOCK == LENGTH_AT);
    uint8_t length[8];
    write_word(length, (uint32_t)(bits >> 32));
    write_word(length + WORD_BYTES, (uint32_t)bits);
    pawli_sha256_add(hash, length, sizeof(length));
    for (size_t i = 0; i < 8; i++)
        write_word(ret_digest + WORD_BYTES * i, hash->state[i]);
}

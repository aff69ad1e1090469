/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * token.c - comparing the tokens of leases, and what may be kept of them.
 * Owns:  how tokens are compared; the digest of a token.
 * Never: makes a token; tells by its time how much of a token was right.
 */
#include "core/token.h"

#include <assert.h>

static uint64_t load(const uint8_t bytes[8])
{
    uint64_t value = 0;
    for (unsigned i = 0; i < 8; i++)
        value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

bool pawli_token_is_equal(const pawl_token *a, const pawl_token *b)
{
    assert(a != NULL && b != NULL);

    volatile uint64_t difference = (load(a->bytes) ^ load(b->bytes)) |
                                   (load(a->bytes + 8) ^ load(b->bytes + 8));
    return difference == 0;
}

uint64_t pawli_token_digest(const pawl_token *token)
{
    assert(token != NULL);

    uint64_t digest = load(token->bytes) * UINT64_C(0x9e3779b97f4a7c15);
    digest ^= digest >> 29;
    digest = (digest ^ load(token->bytes + 8)) * UINT64_C(0xbf58476d1ce4e5b9);
    digest ^= digest >> 32;
    digest *= UINT64_C(0x94d049bb133111eb);
    digest ^= digest >> 31;
    return digest == 0 ? 1 : digest;
}

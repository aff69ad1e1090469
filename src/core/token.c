/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * token.c - comparing the tokens of leases.
 * Owns:  how tokens are compared.
 * Never: makes a token; tells by its time how much of a token was right.
 */
#include "core/token.h"

#include <assert.h>

bool pawli_token_is_equal(const pawl_token *a, const pawl_token *b)
{
    assert(a != NULL && b != NULL);

    volatile uint8_t difference = 0;
    for (size_t i = 0; i < sizeof(a->bytes); i++)
        difference = (uint8_t)(difference | (a->bytes[i] ^ b->bytes[i]));
    return difference == 0;
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * core_token_test.c - proves core/token.c: every byte of a token counts.
 * Owns:  nothing.
 * Never: measures time; that a comparison takes equally long is seen by reading it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/token.h"

static pawl_token some_token(void)
{
    pawl_token token;
    for (size_t i = 0; i < sizeof(token.bytes); i++)
        token.bytes[i] = (uint8_t)(17 * i + 3);
    return token;
}

/* RES-8 */
static void every_bit_of_a_token_counts(void **state)
{
    (void)state;
    pawl_token token = some_token();
    pawl_token same = token;
    assert_true(pawli_token_is_equal(&token, &same));
    assert_true(pawli_token_digest(&token) == pawli_token_digest(&same));
    for (size_t i = 0; i < 8 * sizeof(token.bytes); i++) {
        pawl_token other = token;
        other.bytes[i / 8] ^= (uint8_t)(1u << i % 8);
        assert_false(pawli_token_is_equal(&token, &other));
        assert_false(pawli_token_is_equal(&other, &token));
        assert_true(pawli_token_digest(&token) != pawli_token_digest(&other));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_bit_of_a_token_counts),
    };
    return cmocka_run_group_tests_name("core_token", tests, NULL, NULL);
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * support_alloc_fail_test.c - proves that the failing allocator fails the one it was told to.
 * Owns:  nothing.
 * Never: tests anything of the library.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/alloc_fail.h"

/* The result goes through a volatile pointer, or the compiler may drop the allocation. */
static bool can_malloc(void)
{
    void *volatile block = malloc(16);
    bool is_given = block != NULL;
    free(block);
    return is_given;
}

static void fails_the_nth_and_no_other(void **state)
{
    (void)state;
    for (uint64_t nth = 1; nth <= 4; nth++) {
        alloc_fail_nth(nth);
        for (uint64_t i = 1; i <= 6; i++)
            assert_int_equal(can_malloc(), i != nth);
        assert_true(alloc_fail_end());
        assert_true(can_malloc());
    }
}

static void tells_that_the_nth_never_came(void **state)
{
    (void)state;
    alloc_fail_nth(3);
    assert_true(can_malloc());
    assert_true(can_malloc());
    assert_false(alloc_fail_end());
    assert_true(can_malloc());

    alloc_fail_nth(0);
    assert_true(can_malloc());
    assert_false(alloc_fail_end());
}

static void fails_every_kind_and_keeps_the_old_block(void **state)
{
    (void)state;
    alloc_fail_nth(1);
    void *volatile zeroed = calloc(4, 4);
    assert_true(alloc_fail_end());
    assert_null(zeroed);

    uint8_t *volatile block = malloc(1); /* volatile: realloc may or may not have freed it */
    assert_non_null(block);
    block[0] = 42;
    alloc_fail_nth(1);
    void *volatile grown = realloc(block, 1000);
    assert_true(alloc_fail_end());
    assert_null(grown);
    assert_int_equal(block[0], 42);
    free(block);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fails_the_nth_and_no_other),
        cmocka_unit_test(tells_that_the_nth_never_came),
        cmocka_unit_test(fails_every_kind_and_keeps_the_old_block),
    };
    return cmocka_run_group_tests_name("support_alloc_fail", tests, NULL, NULL);
}

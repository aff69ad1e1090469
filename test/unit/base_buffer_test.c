/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * base_buffer_test.c - growing bytes and packed numbers.
 * Owns:  nothing.
 * Never: looks into the buffer by other means than its fields.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/buffer.h"
#include "support/alloc_fail.h"

static void grows_and_keeps_what_it_holds(void **state)
{
    (void)state;
    struct pawli_buffer buffer = {0};
    for (unsigned i = 0; i < 5000; i++) {
        uint8_t byte = (uint8_t)(i * 7);
        assert_true(pawli_buffer_put(&buffer, &byte, 1));
    }
    assert_int_equal(buffer.len, 5000);
    for (unsigned i = 0; i < 5000; i++)
        assert_int_equal(buffer.bytes[i], (uint8_t)(i * 7));
    pawli_buffer_clear(&buffer);
    assert_null(buffer.bytes);
    pawli_buffer_clear(&buffer);
    pawli_buffer_clear(NULL);
}

static void stays_as_it_was_without_memory(void **state)
{
    (void)state;
    struct pawli_buffer buffer = {0};
    assert_true(pawli_buffer_put(&buffer, "abc", 3));
    alloc_fail_nth(1);
    assert_false(pawli_buffer_reserve(&buffer, 100000));
    assert_true(alloc_fail_end());
    assert_false(pawli_buffer_reserve(&buffer, SIZE_MAX));
    assert_int_equal(buffer.len, 3);
    assert_memory_equal(buffer.bytes, "abc", 3);
    pawli_buffer_clear(&buffer);
}

static void numbers_come_back(void **state)
{
    (void)state;
    struct pawli_buffer buffer = {0};
    static const uint64_t numbers[] = {
        0, 1, 127, 128, 16383, 16384, UINT32_MAX, UINT64_C(1) << 63, UINT64_MAX};
    size_t count = sizeof(numbers) / sizeof(numbers[0]);
    assert_true(pawli_buffer_reserve(&buffer, count * PAWLI_VARINT_MAX));
    for (size_t i = 0; i < count; i++)
        pawli_buffer_varint(&buffer, numbers[i]);
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t value = 0;
        assert_int_equal(pawli_varint_read(buffer.bytes, buffer.len, &at, &value), 0);
        assert_true(value == numbers[i]);
    }
    assert_int_equal(at, buffer.len);
    pawli_buffer_clear(&buffer);
}

static void signs_come_back(void **state)
{
    (void)state;
    static const int64_t numbers[] = {0, -1, 1, -64, 64, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        assert_true((int64_t)pawli_unzigzag(pawli_zigzag((uint64_t)numbers[i])) == numbers[i]);
    assert_int_equal(pawli_zigzag((uint64_t)-1), 1);
    assert_int_equal(pawli_zigzag(1), 2);
}

static void cut_and_oversized_numbers_are_told_apart(void **state)
{
    (void)state;
    const uint8_t cut[] = {0x80, 0x80};
    uint8_t wide[11];
    memset(wide, 0x80, sizeof(wide));
    uint8_t high[10];
    memset(high, 0xff, 9);
    high[9] = 2; /* the sixty-fifth bit */
    uint64_t value = 42;
    size_t at = 0;
    assert_int_equal(pawli_varint_read(cut, sizeof(cut), &at, &value), PAWLI_VARINT_CUT);
    assert_int_equal(pawli_varint_read(cut, 0, &at, &value), PAWLI_VARINT_CUT);
    assert_int_equal(pawli_varint_read(wide, sizeof(wide), &at, &value), PAWLI_VARINT_BAD);
    assert_int_equal(pawli_varint_read(high, sizeof(high), &at, &value), PAWLI_VARINT_BAD);
    assert_int_equal(at, 0);
    assert_int_equal(value, 42);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows_and_keeps_what_it_holds),
        cmocka_unit_test(stays_as_it_was_without_memory),
        cmocka_unit_test(numbers_come_back),
        cmocka_unit_test(signs_come_back),
        cmocka_unit_test(cut_and_oversized_numbers_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

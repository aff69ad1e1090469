/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * buffer.h - bytes that grow, and whole numbers in as few of them as they need (seven bits to a
 * byte, low ones first, the top bit set on all but the last).
 */
#ifndef PAWLI_BASE_BUFFER_H
#define PAWLI_BASE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed: an empty buffer. */
struct pawli_buffer {
    uint8_t *bytes;
    size_t len;
    size_t size;
};

/* Free what it holds and empty it. Accepts NULL and an empty buffer. */
void pawli_buffer_clear(struct pawli_buffer *buffer);

/* Make room for `more` bytes beyond `len`. False where memory ran out; the buffer is as it was. */
bool pawli_buffer_reserve(struct pawli_buffer *buffer, size_t more);

/* Put bytes at the end. False where memory ran out; the buffer is as it was. */
bool pawli_buffer_put(struct pawli_buffer *buffer, const void *bytes, size_t bytes_len);

#define PAWLI_VARINT_MAX 10 /* the most bytes that one number takes */

/* Put a number; room for PAWLI_VARINT_MAX bytes must have been reserved. */
static inline void pawli_buffer_varint(struct pawli_buffer *buffer, uint64_t value)
{
    uint8_t *to = buffer->bytes + buffer->len;
    while (value >= 0x80) {
        *to++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *to++ = (uint8_t)value;
    buffer->len = (size_t)(to - buffer->bytes);
}

/* Numbers on both sides of zero as small ones: 0, -1, 1, -2 ... become 0, 1, 2, 3 ... */
static inline uint64_t pawli_zigzag(uint64_t value)
{
    return (value << 1) ^ (UINT64_C(0) - (value >> 63));
}

static inline uint64_t pawli_unzigzag(uint64_t value)
{
    return (value >> 1) ^ (UINT64_C(0) - (value & 1));
}

enum pawli_varint_result {
    PAWLI_VARINT_OK = 0,
    PAWLI_VARINT_CUT, /* the bytes ended before the number did */
    PAWLI_VARINT_BAD  /* more bits than a number has */
};

/* Read a number from bytes[*at ..len) and move *at behind it; on failure *at stays. */
enum pawli_varint_result pawli_varint_read(const uint8_t *bytes, size_t len, size_t *at,
                                           uint64_t *ret_value);

#endif

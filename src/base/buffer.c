/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * buffer.c - bytes that grow, and numbers packed into them.
 * Owns:  the growth of a buffer, and the reading of packed numbers.
 * Never: gives memory back before it is cleared; reads beyond the length it was given.
 */
#include "base/buffer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    BUFFER_FIRST = 256
};

void pawli_buffer_clear(struct pawli_buffer *buffer)
{
    if (buffer == NULL)
        return;
    free(buffer->bytes);
    *buffer = (struct pawli_buffer){0};
}

bool pawli_buffer_reserve(struct pawli_buffer *buffer, size_t more)
{
    assert(buffer != NULL);
    assert(buffer->len <= buffer->size);

    if (more <= buffer->size - buffer->len)
        return true;
    if (more > SIZE_MAX / 2 - buffer->len)
        return false;
    size_t size = buffer->size == 0 ? BUFFER_FIRST : buffer->size;
    while (size < buffer->len + more)
        size *= 2;
    uint8_t *bytes = realloc(buffer->bytes, size);
    if (bytes == NULL)
        return false;
    buffer->bytes = bytes;
    buffer->size = size;
    return true;
}

bool pawli_buffer_put(struct pawli_buffer *buffer, const void *bytes, size_t bytes_len)
{
    assert(bytes != NULL || bytes_len == 0);

    if (!pawli_buffer_reserve(buffer, bytes_len))
        return false;
    if (bytes_len > 0)
        memcpy(buffer->bytes + buffer->len, bytes, bytes_len);
    buffer->len += bytes_len;
    return true;
}

enum pawli_varint_result pawli_varint_read(const uint8_t *bytes, size_t len, size_t *at,
                                           uint64_t *ret_value)
{
    assert(at != NULL && *at <= len);
    assert(ret_value != NULL);

    uint64_t value = 0;
    size_t i = *at;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (i == len)
            return PAWLI_VARINT_CUT;
        uint8_t byte = bytes[i++];
        /* The tenth byte has room for one bit only. */
        if (shift == 63 && byte > 1)
            return PAWLI_VARINT_BAD;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0) {
            *at = i;
            *ret_value = value;
            return PAWLI_VARINT_OK;
        }
    }
    return PAWLI_VARINT_BAD;
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * base64.c - bytes as text of 64 letters, with padding.
 * Owns:  the one reader and the one writer of base64.
 * Never: forgives: each text that it reads is the only one for its bytes; keeps what passes through
 *        it (the bytes may be a secret).
 */
#include "base/base64.h"

#include <assert.h>

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void pawli_base64_encode(const uint8_t *bytes, size_t bytes_len, char *text)
{
    assert(bytes != NULL || bytes_len == 0);
    assert(text != NULL);

    size_t i = 0;
    for (; bytes_len - i >= 3; i += 3) {
        uint32_t group = (uint32_t)bytes[i] << 16 | (uint32_t)bytes[i + 1] << 8 |
                         (uint32_t)bytes[i + 2];
        for (unsigned k = 0; k < 4; k++)
            *text++ = letters[group >> (18 - 6 * k) & 63];
    }
    if (i < bytes_len) {
        bool has_two = bytes_len - i == 2;
        uint32_t group = (uint32_t)bytes[i] << 16 | (has_two ? (uint32_t)bytes[i + 1] << 8 : 0);
        *text++ = letters[group >> 18 & 63];
        *text++ = letters[group >> 12 & 63];
        *text++ = '=';
        if (has_two)
            text[-1] = letters[group >> 6 & 63];
        *text++ = '=';
    }
    *text = '\0';
}

/* 0 .. 63, or -1 for what is no letter. */
static int value_of(char letter)
{
    if (letter >= 'A' && letter <= 'Z')
        return letter - 'A';
    if (letter >= 'a' && letter <= 'z')
        return letter - 'a' + 26;
    if (letter >= '0' && letter <= '9')
        return letter - '0' + 52;
    return letter == '+' ? 62 : letter == '/' ? 63 : -1;
}

bool pawli_base64_decode(const char *text, size_t text_len, uint8_t *bytes, size_t bytes_max,
                         size_t *ret_len)
{
    assert(text != NULL || text_len == 0);
    assert(bytes != NULL || bytes_max == 0);

    if (text_len % 4 != 0)
        return false;
    size_t padding = 0;
    if (text_len > 0 && text[text_len - 1] == '=')
        padding = text[text_len - 2] == '=' ? 2 : 1;
    size_t bytes_len = text_len / 4 * 3 - padding;
    if (bytes_len > bytes_max)
        return false;

    uint32_t group = 0; /* of the bits not yet written, the low ones */
    unsigned bits = 0;
    size_t written = 0;
    for (size_t i = 0; i < text_len - padding; i++) {
        int value = value_of(text[i]);
        if (value < 0)
            return false;
        group = (group << 6 | (uint32_t)value) & 0x3fff;
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            bytes[written++] = (uint8_t)(group >> bits);
        }
    }
    if ((group & ((1u << bits) - 1)) != 0)
        return false; /* another text means the same bytes */
    assert(written == bytes_len);
    *ret_len = bytes_len;
    return true;
}

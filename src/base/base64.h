/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * base64.h - bytes as text of 64 letters, with padding (RFC 4648, section 4).
 */
#ifndef PAWLI_BASE_BASE64_H
#define PAWLI_BASE_BASE64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Letters that so many bytes take, without a closing NUL. */
#define PAWLI_BASE64_LEN(bytes_len) (((size_t)(bytes_len) + 2) / 3 * 4)

/* Put all bytes into `text`, which has room for PAWLI_BASE64_LEN(bytes_len) letters and a NUL, and
 * close it. */
void pawli_base64_encode(const uint8_t *bytes, size_t bytes_len, char *text);

/*
 * Read `text[0 .. text_len)` into `bytes[bytes_max]`. False, and bytes of no meaning, for anything
 * that pawli_base64_encode() does not make: other letters, blanks, missing or misplaced padding,
 * bits set behind the last byte; and for more than `bytes_max` bytes.
 */
bool pawli_base64_decode(const char *text, size_t text_len, uint8_t *bytes, size_t bytes_max,
                         size_t *ret_len);

#endif

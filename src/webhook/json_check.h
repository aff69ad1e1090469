/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * json_check.h - whether bytes are JSON.
 */
#ifndef PAWLI_WEBHOOK_JSON_CHECK_H
#define PAWLI_WEBHOOK_JSON_CHECK_H

#include <stdbool.h>
#include <stddef.h>

#define PAWLI_JSON_DEPTH_MAX 512 /* arrays and objects within each other */

/*
 * True for one JSON value (RFC 8259) with nothing but blanks around it, in UTF-8 without a byte
 * order mark, \u... of surrogates in pairs only, and not nested deeper than PAWLI_JSON_DEPTH_MAX.
 * Numbers may be of any size, keys may be doubled. Allocates nothing and takes time in proportion
 * to the length: the answer for some bytes is always the same.
 */
bool pawli_json_is_good(const void *bytes, size_t bytes_len);

#endif

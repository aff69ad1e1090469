/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * text.h - bounded copies of text, and which text is good.
 */
#ifndef PAWLI_BASE_TEXT_H
#define PAWLI_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Copy `from` (NULL counts as empty) into `to[to_size]`, cut to fit, always terminated. True where
 * all of it fitted. */
bool pawli_text_copy(char *to, size_t to_size, const char *from);

/* The length of `text`, or `max + 1` where it has more than `max` bytes: never reads further than
 * that. */
size_t pawli_text_length(const char *text, size_t max);

/*
 * How many bytes of `text` are good, from its beginning: all of them where it is UTF-8 (in shortest
 * forms, without surrogates, up to U+10FFFF) and has no control characters (C0, DEL, C1) but those
 * in `controls`. Whole characters are counted.
 */
size_t pawli_text_good(const char *text, const char *controls);

#endif

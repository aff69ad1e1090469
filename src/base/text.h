/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * text.h - bounded copies of text.
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

#endif

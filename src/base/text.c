/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * text.c - bounded copies of text.
 * Owns:  cutting and terminating.
 * Never: allocates; reads or writes past the bound it was given.
 */
#include "base/text.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

bool pawli_text_copy(char *to, size_t to_size, const char *from)
{
    assert(to != NULL);
    assert(to_size > 0);

    size_t max = to_size - 1;
    size_t length = from != NULL ? pawli_text_length(from, max) : 0;
    size_t kept = length <= max ? length : max;
    if (kept > 0)
        memcpy(to, from, kept);
    to[kept] = '\0';
    return length <= max;
}

size_t pawli_text_length(const char *text, size_t max)
{
    assert(text != NULL);
    assert(max < SIZE_MAX);
    return strnlen(text, max + 1);
}

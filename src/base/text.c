/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * text.c - bounded copies of text, and which text is good.
 * Owns:  cutting and terminating; the rules of UTF-8.
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

/* One character: its length in bytes, 0 where it is none. Reads no further than the first NUL. */
static size_t take_character(const char *text, uint32_t *ret_character)
{
    static const struct {
        uint32_t mask, lead, least;
    } forms[] = {{0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
    uint32_t first = (uint8_t)text[0];
    size_t form = 0;
    while (form < 4 && (first & forms[form].mask) != forms[form].lead)
        form++;
    if (form == 4)
        return 0;
    uint32_t character = first & ~forms[form].mask;
    for (size_t i = 1; i <= form; i++) {
        uint32_t next = (uint8_t)text[i];
        if ((next & 0xc0) != 0x80)
            return 0; /* cut off; a NUL ends here as well */
        character = character << 6 | (next & 0x3f);
    }
    bool is_surrogate = character >= 0xd800 && character <= 0xdfff;
    *ret_character = character;
    return character >= forms[form].least && character <= 0x10ffff && !is_surrogate ? form + 1 : 0;
}

size_t pawli_text_good(const char *text, const char *controls)
{
    assert(text != NULL);
    assert(controls != NULL);

    size_t good = 0;
    while (text[good] != '\0') {
        uint32_t character;
        size_t length = take_character(text + good, &character);
        if (length == 0)
            break;
        bool is_control = character < 0x20 || (character >= 0x7f && character <= 0x9f);
        if (is_control && (length > 1 || strchr(controls, text[good]) == NULL))
            break;
        good += length;
    }
    return good;
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * json_check.c - whether bytes are JSON.
 * Owns:  the grammar.
 * Never: builds anything of what it reads; allocates; recurses. (A library's parser would need
 *        memory, and takes running out of it for bad JSON: one payload would go out in two forms.)
 */
#include "webhook/json_check.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

struct reader {
    const uint8_t *at;
    const uint8_t *end;
};

/* The next byte; 0 at the end: no rule below takes a NUL. */
static uint8_t look(const struct reader *reader)
{
    return reader->at < reader->end ? *reader->at : 0;
}

static bool take(struct reader *reader, char byte)
{
    if (look(reader) != (uint8_t)byte)
        return false;
    reader->at++;
    return true;
}

static void skip_blanks(struct reader *reader)
{
    while (look(reader) == ' ' || look(reader) == '\t' || look(reader) == '\n' ||
           look(reader) == '\r')
        reader->at++;
}

static bool take_word(struct reader *reader, const char *word)
{
    size_t len = strlen(word);
    if ((size_t)(reader->end - reader->at) < len || memcmp(reader->at, word, len) != 0)
        return false;
    reader->at += len;
    return true;
}

/* ---- numbers */

static bool take_digits(struct reader *reader)
{
    const uint8_t *from = reader->at;
    while (look(reader) >= '0' && look(reader) <= '9')
        reader->at++;
    return reader->at > from;
}

static bool take_number(struct reader *reader)
{
    (void)take(reader, '-'); /* or not */
    if (!take(reader, '0') && !take_digits(reader))
        return false;
    if (take(reader, '.') && !take_digits(reader))
        return false;
    if (take(reader, 'e') || take(reader, 'E')) {
        if (!take(reader, '+'))
            (void)take(reader, '-'); /* or neither */
        return take_digits(reader);
    }
    return true;
}

/* ---- strings */

static bool take_hex(struct reader *reader, unsigned *ret_value)
{
    unsigned value = 0;
    for (int i = 0; i < 4; i++) {
        uint8_t byte = look(reader);
        uint8_t small = byte | 0x20;
        if (byte >= '0' && byte <= '9')
            value = value << 4 | (unsigned)(byte - '0');
        else if (small >= 'a' && small <= 'f')
            value = value << 4 | (unsigned)(small - 'a' + 10);
        else
            return false;
        reader->at++;
    }
    *ret_value = value;
    return true;
}

/* What stands behind a backslash. */
static bool take_escape(struct reader *reader)
{
    uint8_t byte = look(reader);
    unsigned first;
    unsigned second;
    if (byte != 'u') {
        if (byte == 0 || strchr("\"\\/bfnrt", byte) == NULL)
            return false;
        reader->at++;
        return true;
    }
    reader->at++;
    if (!take_hex(reader, &first))
        return false;
    if (first < 0xd800 || first > 0xdfff)
        return true;
    return first <= 0xdbff && take(reader, '\\') && take(reader, 'u') &&
           take_hex(reader, &second) && second >= 0xdc00 && second <= 0xdfff;
}

/* One character of two to four bytes, in its shortest form, no surrogate, up to U+10FFFF. */
static bool take_utf8(struct reader *reader)
{
    uint8_t first = look(reader);
    size_t more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
    if (first < 0xc2 || first > 0xf4 || (size_t)(reader->end - reader->at) <= more)
        return false;
    uint8_t second = reader->at[1];
    if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
        (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f))
        return false;
    for (size_t i = 1; i <= more; i++)
        if (reader->at[i] >> 6 != 2)
            return false;
    reader->at += more + 1;
    return true;
}

static bool take_string(struct reader *reader)
{
    if (!take(reader, '"'))
        return false;
    while (!take(reader, '"')) {
        uint8_t byte = look(reader);
        if (byte < 0x20) /* the end among them */
            return false;
        if (byte >= 0x80) {
            if (!take_utf8(reader))
                return false;
            continue;
        }
        reader->at++;
        if (byte == '\\' && !take_escape(reader))
            return false;
    }
    return true;
}

/* ---- values */

/* Which arrays and objects are open: a bit for each, set for objects. */
struct nest {
    size_t depth;
    uint8_t bits[PAWLI_JSON_DEPTH_MAX / 8];
};

static bool is_in_object(const struct nest *nest)
{
    size_t at = nest->depth - 1;
    return (nest->bits[at / 8] >> at % 8 & 1) != 0;
}

static bool enter(struct nest *nest, bool is_object)
{
    size_t at = nest->depth;
    if (at == PAWLI_JSON_DEPTH_MAX)
        return false;
    uint8_t bit = (uint8_t)(1u << at % 8);
    nest->bits[at / 8] = (uint8_t)(is_object ? nest->bits[at / 8] | bit
                                             : nest->bits[at / 8] & ~bit);
    nest->depth++;
    return true;
}

static bool take_key(struct reader *reader)
{
    skip_blanks(reader);
    if (!take_string(reader))
        return false;
    skip_blanks(reader);
    return take(reader, ':');
}

/*
 * Behind a value: close what ends here, and go on to where the next value begins. False: bad, or
 * all is closed (then the depth is 0).
 */
static bool go_on(struct reader *reader, struct nest *nest)
{
    while (nest->depth > 0) {
        bool is_object = is_in_object(nest);
        skip_blanks(reader);
        if (take(reader, ','))
            return !is_object || take_key(reader);
        if (!take(reader, is_object ? '}' : ']'))
            return false;
        nest->depth--;
    }
    return false;
}

static bool take_plain(struct reader *reader)
{
    switch (look(reader)) {
    case '"':
        return take_string(reader);
    case 't':
        return take_word(reader, "true");
    case 'f':
        return take_word(reader, "false");
    case 'n':
        return take_word(reader, "null");
    default:
        return take_number(reader);
    }
}

/* One that holds no other, and on the way there whatever it is held by. */
static bool take_value(struct reader *reader, struct nest *nest)
{
    for (;;) {
        skip_blanks(reader);
        bool is_object = look(reader) == '{';
        if (!is_object && look(reader) != '[')
            return take_plain(reader);
        reader->at++;
        if (!enter(nest, is_object))
            return false;
        skip_blanks(reader);
        if (look(reader) == (is_object ? '}' : ']'))
            return true; /* empty: go_on() closes it */
        if (is_object && !take_key(reader))
            return false;
    }
}

bool pawli_json_is_good(const void *bytes, size_t bytes_len)
{
    assert(bytes != NULL || bytes_len == 0);

    if (bytes_len == 0)
        return false;
    struct reader reader = {.at = bytes, .end = (const uint8_t *)bytes + bytes_len};
    struct nest nest = {.depth = 0};
    do {
        if (!take_value(&reader, &nest))
            return false;
    } while (go_on(&reader, &nest));
    skip_blanks(&reader);
    return nest.depth == 0 && reader.at == reader.end;
}

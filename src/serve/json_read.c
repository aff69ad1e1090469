/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * json_read.c - reads a JSON document piece by piece.
 * Owns:  the grammar; the decoding of texts; the bound on depth.
 * Never: allocates; recurses; shows what it has read; reads a byte behind the end.
 */
#include "serve/json_read.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

void pawli_reader_init(struct pawli_reader *reader, char *bytes, size_t bytes_len)
{
    assert(reader != NULL);
    assert(bytes != NULL || bytes_len == 0);
    *reader = (struct pawli_reader){.begin = bytes, .at = bytes, .end = bytes + bytes_len};
}

static bool refuse(struct pawli_reader *reader, const char *why)
{
    (void)snprintf(reader->why, sizeof(reader->why), "byte %zu: %s",
                   (size_t)(reader->at - reader->begin) + 1, why);
    return false;
}

/* The next byte; 0 at the end: no rule takes a NUL. */
static unsigned char look(const struct pawli_reader *reader)
{
    return reader->at < reader->end ? (unsigned char)*reader->at : 0;
}

static bool take(struct pawli_reader *reader, char byte)
{
    if (look(reader) != (unsigned char)byte)
        return false;
    reader->at++;
    return true;
}

static void skip_blanks(struct pawli_reader *reader)
{
    while (look(reader) == ' ' || look(reader) == '\t' || look(reader) == '\n' ||
           look(reader) == '\r')
        reader->at++;
}

enum pawli_json_kind pawli_reader_look(struct pawli_reader *reader)
{
    skip_blanks(reader);
    unsigned char byte = look(reader);
    switch (byte) {
    case '"':
        return PAWLI_JSON_TEXT;
    case '{':
        return PAWLI_JSON_OBJECT;
    case '[':
        return PAWLI_JSON_ARRAY;
    case 't':
    case 'f':
        return PAWLI_JSON_FLAG;
    case 'n':
        return PAWLI_JSON_NULL;
    default:
        return byte == '-' || (byte >= '0' && byte <= '9') ? PAWLI_JSON_NUMBER : PAWLI_JSON_BAD;
    }
}

/* ---------------------------------------------------------------- texts */

static bool take_hex(struct pawli_reader *reader, unsigned *ret_value)
{
    unsigned value = 0;
    for (int i = 0; i < 4; i++) {
        unsigned char byte = look(reader);
        unsigned char small = byte | 0x20;
        if (byte >= '0' && byte <= '9')
            value = value << 4 | (unsigned)(byte - '0');
        else if (small >= 'a' && small <= 'f')
            value = value << 4 | (unsigned)(small - 'a' + 10);
        else
            return refuse(reader, "four hexadecimal digits must stand behind \\u");
        reader->at++;
    }
    *ret_value = value;
    return true;
}

/* A character as UTF-8. It takes fewer bytes than the escape that it came from. */
static char *put_character(char *to, unsigned value)
{
    if (value < 0x80) {
        *to++ = (char)value;
    } else if (value < 0x800) {
        *to++ = (char)(0xc0 | value >> 6);
        *to++ = (char)(0x80 | (value & 0x3f));
    } else if (value < 0x10000) {
        *to++ = (char)(0xe0 | value >> 12);
        *to++ = (char)(0x80 | (value >> 6 & 0x3f));
        *to++ = (char)(0x80 | (value & 0x3f));
    } else {
        *to++ = (char)(0xf0 | value >> 18);
        *to++ = (char)(0x80 | (value >> 12 & 0x3f));
        *to++ = (char)(0x80 | (value >> 6 & 0x3f));
        *to++ = (char)(0x80 | (value & 0x3f));
    }
    return to;
}

/* What stands behind \u, the other half of a surrogate included. */
static bool take_unicode(struct pawli_reader *reader, unsigned *ret_value)
{
    unsigned first;
    unsigned second = 0;
    if (!take_hex(reader, &first))
        return false;
    *ret_value = first;
    if (first < 0xd800 || first > 0xdfff)
        return true;
    if (first > 0xdbff || !take(reader, '\\') || !take(reader, 'u'))
        return refuse(reader, "half of a surrogate pair");
    if (!take_hex(reader, &second))
        return false;
    if (second < 0xdc00 || second > 0xdfff)
        return refuse(reader, "half of a surrogate pair");
    *ret_value = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
    return true;
}

/* What stands behind a backslash: the character is put at *to (NULL: nowhere). */
static bool take_escape(struct pawli_reader *reader, char **to)
{
    static const char marks[] = "\"\\/bfnrt";
    static const char meant[] = "\"\\/\b\f\n\r\t";
    unsigned char byte = look(reader);
    const char *mark = byte != 0 ? strchr(marks, byte) : NULL;
    unsigned value;
    if (mark != NULL) {
        reader->at++;
        value = (unsigned char)meant[mark - marks];
    } else if (byte != 'u') {
        return refuse(reader, "no escape of JSON");
    } else {
        reader->at++;
        if (!take_unicode(reader, &value))
            return false;
    }
    if (*to != NULL)
        *to = put_character(*to, value);
    return true;
}

/* One character of two to four bytes, in its shortest form, no surrogate, up to U+10FFFF. Its
 * length; 0: it is none. */
static size_t utf8_length(const struct pawli_reader *reader)
{
    unsigned char first = look(reader);
    size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || (size_t)(reader->end - reader->at) < length)
        return 0;
    unsigned char second = (unsigned char)reader->at[1];
    if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
        (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f))
        return 0;
    for (size_t i = 1; i < length; i++)
        if (((unsigned char)reader->at[i] & 0xc0) != 0x80)
            return 0;
    return length;
}

/* The inside of a text, up to and with its closing quote; decoded to *to, unless that is NULL. */
static bool take_inside(struct pawli_reader *reader, char **to)
{
    for (;;) {
        unsigned char byte = look(reader);
        size_t length = 1;
        if (byte < 0x20)
            return refuse(reader, reader->at < reader->end
                                      ? "a control character in a text must be escaped"
                                      : "the text does not end");
        if (byte == '"') {
            reader->at++;
            return true;
        }
        if (byte == '\\') {
            reader->at++;
            if (!take_escape(reader, to))
                return false;
            continue;
        }
        if (byte >= 0x80)
            length = utf8_length(reader);
        if (length == 0)
            return refuse(reader, "not UTF-8");
        if (*to != NULL) {
            memmove(*to, reader->at, length);
            *to += length;
        }
        reader->at += length;
    }
}

bool pawli_reader_text(struct pawli_reader *reader, const char **ret_text, size_t *ret_len)
{
    skip_blanks(reader);
    if (!take(reader, '"'))
        return refuse(reader, "a text in quotes must stand here");
    char *begin = reader->at;
    char *to = begin;
    if (!take_inside(reader, &to))
        return false;
    /* The closing quote has been read, so there is room for it. */
    assert(to < reader->at);
    *to = '\0';
    *ret_text = begin;
    *ret_len = (size_t)(to - begin);
    return true;
}

/* ---------------------------------------------------------------- numbers and words */

static bool take_digits(struct pawli_reader *reader)
{
    const char *from = reader->at;
    while (look(reader) >= '0' && look(reader) <= '9')
        reader->at++;
    return reader->at > from;
}

/* *ret_is_whole: it has neither fraction nor exponent. */
static bool take_number(struct pawli_reader *reader, bool *ret_is_whole)
{
    *ret_is_whole = true;
    (void)take(reader, '-'); /* or not */
    if (!take(reader, '0') && !take_digits(reader))
        return refuse(reader, "a value must stand here");
    if (take(reader, '.')) {
        *ret_is_whole = false;
        if (!take_digits(reader))
            return refuse(reader, "no number of JSON");
    }
    if (take(reader, 'e') || take(reader, 'E')) {
        *ret_is_whole = false;
        if (!take(reader, '+'))
            (void)take(reader, '-'); /* or neither */
        if (!take_digits(reader))
            return refuse(reader, "no number of JSON");
    }
    return true;
}

bool pawli_reader_number(struct pawli_reader *reader, int64_t *ret_number)
{
    skip_blanks(reader);
    const char *at = reader->at;
    bool is_whole;
    int64_t number = 0;
    if (!take_number(reader, &is_whole))
        return false;
    if (!is_whole)
        return refuse(reader, "a whole number must stand here");
    bool is_negative = *at == '-';
    for (at += is_negative; at < reader->at; at++) {
        int digit = *at - '0';
        /* Towards the negative side, which has room for one more. */
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_sub_overflow(number, digit, &number))
            return refuse(reader, "the number does not fit into 64 bits");
    }
    if (!is_negative && number == INT64_MIN)
        return refuse(reader, "the number does not fit into 64 bits");
    *ret_number = is_negative ? number : -number;
    return true;
}

static bool take_word(struct pawli_reader *reader, const char *word)
{
    size_t len = strlen(word);
    if ((size_t)(reader->end - reader->at) < len || memcmp(reader->at, word, len) != 0)
        return false;
    reader->at += len;
    return true;
}

bool pawli_reader_flag(struct pawli_reader *reader, bool *ret_flag)
{
    skip_blanks(reader);
    bool is_true = look(reader) == 't';
    if (!take_word(reader, is_true ? "true" : "false"))
        return refuse(reader, "true or false must stand here");
    *ret_flag = is_true;
    return true;
}

bool pawli_reader_null(struct pawli_reader *reader)
{
    skip_blanks(reader);
    return take_word(reader, "null") || refuse(reader, "null must stand here");
}

/* ---------------------------------------------------------------- what holds others */

static bool enter(struct pawli_reader *reader, char bracket)
{
    skip_blanks(reader);
    if (!take(reader, bracket))
        return refuse(reader,
                      bracket == '{' ? "an object must stand here" : "an array must stand here");
    if (reader->depth == PAWLI_READER_DEPTH_MAX)
        return refuse(reader, "nested too deep");
    reader->depth++;
    return true;
}

/* Whether another one follows, or the end does. */
static bool go_on(struct pawli_reader *reader, bool is_first, char closing, bool *ret_has)
{
    assert(reader->depth > 0);
    skip_blanks(reader);
    *ret_has = false;
    if (take(reader, closing)) {
        reader->depth--;
        return true;
    }
    if (!is_first && !take(reader, ','))
        return refuse(reader, "a comma or the closing bracket must stand here");
    *ret_has = true;
    return true;
}

bool pawli_reader_object(struct pawli_reader *reader)
{
    return enter(reader, '{');
}

bool pawli_reader_array(struct pawli_reader *reader)
{
    return enter(reader, '[');
}

bool pawli_reader_member(struct pawli_reader *reader, bool is_first, bool *ret_has,
                         const char **ret_name)
{
    size_t len;
    if (!go_on(reader, is_first, '}', ret_has))
        return false;
    if (!*ret_has)
        return true;
    if (!pawli_reader_text(reader, ret_name, &len))
        return false;
    if (strlen(*ret_name) != len)
        return refuse(reader, "a NUL in a name");
    skip_blanks(reader);
    return take(reader, ':') || refuse(reader, "a colon must stand here");
}

bool pawli_reader_element(struct pawli_reader *reader, bool is_first, bool *ret_has)
{
    return go_on(reader, is_first, ']', ret_has);
}

bool pawli_reader_end(struct pawli_reader *reader)
{
    skip_blanks(reader);
    return reader->at == reader->end || refuse(reader, "something stands behind the end");
}

/* ---------------------------------------------------------------- values that are left alone */

/* A text, a number or a word. */
static bool pass_plain(struct pawli_reader *reader)
{
    char *nowhere = NULL;
    bool is_whole;
    switch (pawli_reader_look(reader)) {
    case PAWLI_JSON_TEXT:
        reader->at++;
        return take_inside(reader, &nowhere);
    case PAWLI_JSON_FLAG:
        return pawli_reader_flag(reader, &is_whole);
    case PAWLI_JSON_NULL:
        return pawli_reader_null(reader);
    default:
        return take_number(reader, &is_whole);
    }
}

/* The name of a member and its colon. */
static bool pass_name(struct pawli_reader *reader)
{
    char *nowhere = NULL;
    skip_blanks(reader);
    if (!take(reader, '"'))
        return refuse(reader, "a name in quotes must stand here");
    if (!take_inside(reader, &nowhere))
        return false;
    skip_blanks(reader);
    return take(reader, ':') || refuse(reader, "a colon must stand here");
}

/* Which of the open ones are objects: a bit for each, the innermost lowest. */
_Static_assert(PAWLI_READER_DEPTH_MAX <= 64, "one word has a bit for each");

/* Behind a value: close what ends here. *ret_has: another value follows, of the innermost. */
static bool pass_on(struct pawli_reader *reader, unsigned outside, uint64_t *objects, bool is_first,
                    bool *ret_has)
{
    *ret_has = false;
    while (reader->depth > outside) {
        bool is_object = (*objects & 1) != 0;
        if (!go_on(reader, is_first, is_object ? '}' : ']', ret_has))
            return false;
        if (*ret_has)
            return !is_object || pass_name(reader);
        *objects >>= 1;
        is_first = false;
    }
    return true;
}

bool pawli_reader_value(struct pawli_reader *reader, const char **ret_bytes, size_t *ret_len)
{
    uint64_t objects = 0;
    unsigned outside = reader->depth;
    bool has_more = true;
    skip_blanks(reader);
    const char *begin = reader->at;
    while (has_more) {
        enum pawli_json_kind kind = pawli_reader_look(reader);
        bool is_holder = kind == PAWLI_JSON_OBJECT || kind == PAWLI_JSON_ARRAY;
        if (is_holder) {
            if (!enter(reader, kind == PAWLI_JSON_OBJECT ? '{' : '['))
                return false;
            objects = objects << 1 | (kind == PAWLI_JSON_OBJECT);
        } else if (!pass_plain(reader)) {
            return false;
        }
        if (!pass_on(reader, outside, &objects, is_holder, &has_more))
            return false;
    }
    *ret_bytes = begin;
    *ret_len = (size_t)(reader->at - begin);
    return true;
}

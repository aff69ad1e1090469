/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * json.c - writes one JSON document, member by member.
 * Owns:  commas, indentation, and the escaping of text.
 * Never: holds more than the path to where it stands; writes a byte that would not be JSON (what is
 *        not UTF-8 becomes U+FFFD).
 */
#include "cli/json.h"

#include <assert.h>
#include <inttypes.h>

#define INDENT 2

void pawli_json_init(struct pawli_json *json, FILE *out)
{
    assert(json != NULL);
    assert(out != NULL);
    *json = (struct pawli_json){.out = out};
}

/*
 * The length of the character at `text` in UTF-8: 1 to 4, or 0 where it is none. A NUL inside ends
 * every comparison below, so nothing beyond it is read.
 */
static int utf8_length(const unsigned char *text)
{
    /* The first byte gives the length; the second is narrowed where the form would be overlong, a
     * surrogate, or above U+10FFFF. */
    unsigned char first = text[0];
    if (first < 0x80)
        return 1;
    int length = first >= 0xc2 && first <= 0xdf   ? 2
                 : first >= 0xe0 && first <= 0xef ? 3
                 : first >= 0xf0 && first <= 0xf4 ? 4
                                                  : 0;
    unsigned char low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    unsigned char high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (length == 0 || text[1] < low || text[1] > high)
        return 0;
    for (int i = 2; i < length; i++)
        if (text[i] < 0x80 || text[i] > 0xbf)
            return 0;
    return length;
}

static void write_string(FILE *out, const char *text)
{
    (void)fputc('"', out); /* here and below: the stream keeps its errors, main asks for them */
    const unsigned char *at = (const unsigned char *)text;
    while (*at != '\0') {
        int length = utf8_length(at);
        if (length == 0)
            (void)fputs("\\ufffd", out);
        else if (*at == '"' || *at == '\\')
            (void)fprintf(out, "\\%c", *at);
        else if (*at < 0x20 || *at == 0x7f)
            (void)fprintf(out, "\\u%04x", *at);
        else
            (void)fwrite(at, 1, (size_t)length, out);
        at += length == 0 ? 1 : length;
    }
    (void)fputc('"', out);
}

/* What comes before each member: a comma, a new line, its key. */
static void begin_member(struct pawli_json *json, const char *key)
{
    if (json->depth > 0)
        (void)fprintf(json->out, "%s\n%*s", json->has_member[json->depth] ? "," : "",
                      json->depth * INDENT, "");
    json->has_member[json->depth] = true;
    if (key != NULL) {
        write_string(json->out, key);
        (void)fputs(": ", json->out);
    }
}

static void open_level(struct pawli_json *json, const char *key, const char brackets[2])
{
    assert(json->depth < PAWLI_JSON_DEPTH_MAX);
    begin_member(json, key);
    (void)fputc(brackets[0], json->out);
    json->closing[json->depth] = brackets[1];
    json->depth++;
    json->has_member[json->depth] = false;
}

void pawli_json_open_object(struct pawli_json *json, const char *key)
{
    open_level(json, key, "{}");
}

void pawli_json_open_array(struct pawli_json *json, const char *key)
{
    open_level(json, key, "[]");
}

void pawli_json_close(struct pawli_json *json)
{
    assert(json->depth > 0);
    json->depth--;
    if (json->has_member[json->depth + 1])
        (void)fprintf(json->out, "\n%*s", json->depth * INDENT, "");
    (void)fputc(json->closing[json->depth], json->out);
    if (json->depth == 0)
        (void)fputc('\n', json->out);
}

void pawli_json_text(struct pawli_json *json, const char *key, const char *text)
{
    assert(text != NULL);
    begin_member(json, key);
    write_string(json->out, text);
}

void pawli_json_number(struct pawli_json *json, const char *key, int64_t number)
{
    begin_member(json, key);
    (void)fprintf(json->out, "%" PRId64, number);
}

void pawli_json_bool(struct pawli_json *json, const char *key, bool is_true)
{
    begin_member(json, key);
    (void)fputs(is_true ? "true" : "false", json->out);
}

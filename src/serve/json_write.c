/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * json_write.c - writes one JSON document into a buffer.
 * Owns:  commas and the escaping of text; how instants, ids, tokens and bytes are written.
 * Never: writes a byte that would not be JSON (what is not UTF-8 becomes U+FFFD, or base64).
 */
#include "serve/json_write.h"

#include "base/base64.h"
#include "pawl/headers.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

void pawli_writer_init(struct pawli_writer *writer, struct pawli_buffer *to)
{
    assert(writer != NULL);
    assert(to != NULL);
    *writer = (struct pawli_writer){.to = to};
}

static void put(struct pawli_writer *writer, const void *bytes, size_t bytes_len)
{
    if (!writer->has_failed)
        writer->has_failed = !pawli_buffer_put(writer->to, bytes, bytes_len);
}

static void put_plain(struct pawli_writer *writer, const char *text)
{
    put(writer, text, strlen(text));
}

/* The length of the character at `at` in UTF-8: 1 to 4, or 0 where it is none. */
static size_t utf8_length(const unsigned char *at, size_t left)
{
    unsigned char first = at[0];
    size_t length = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (length == 1)
        return 1;
    if (first < 0xc2 || first > 0xf4 || left < length)
        return 0;
    if ((first == 0xe0 && at[1] < 0xa0) || (first == 0xed && at[1] > 0x9f) ||
        (first == 0xf0 && at[1] < 0x90) || (first == 0xf4 && at[1] > 0x8f))
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    return length;
}

static bool is_plain(unsigned char byte)
{
    return byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
}

static void put_escape(struct pawli_writer *writer, unsigned char byte)
{
    char text[8];
    const char *mark = byte != 0 ? strchr("\"\"\\\\\nn\tt\rr", byte) : NULL;
    if (mark != NULL)
        (void)snprintf(text, sizeof(text), "\\%c", mark[1]);
    else
        (void)snprintf(text, sizeof(text), "\\u%04x", byte);
    put_plain(writer, text);
}

static void put_quoted(struct pawli_writer *writer, const char *bytes, size_t bytes_len)
{
    const unsigned char *at = (const unsigned char *)bytes;
    const unsigned char *end = at + bytes_len;
    put(writer, "\"", 1);
    while (at < end) {
        const unsigned char *from = at;
        while (at < end && is_plain(*at))
            at++;
        put(writer, from, (size_t)(at - from));
        if (at == end)
            break;
        size_t length = utf8_length(at, (size_t)(end - at));
        if (length == 0)
            put_plain(writer, "\\ufffd");
        else if (length == 1)
            put_escape(writer, *at);
        else
            put(writer, at, length);
        at += length == 0 ? 1 : length;
    }
    put(writer, "\"", 1);
}

static void begin(struct pawli_writer *writer, const char *key)
{
    if (writer->is_behind)
        put(writer, ",", 1);
    if (key != NULL) {
        put_quoted(writer, key, strlen(key));
        put(writer, ":", 1);
    }
    writer->is_behind = true;
}

static void open_level(struct pawli_writer *writer, const char *key, const char *bracket)
{
    begin(writer, key);
    put(writer, bracket, 1);
    writer->is_behind = false;
}

static void close_level(struct pawli_writer *writer, const char *bracket)
{
    put(writer, bracket, 1);
    writer->is_behind = true;
}

void pawli_put_object(struct pawli_writer *writer, const char *key)
{
    open_level(writer, key, "{");
}

void pawli_put_object_end(struct pawli_writer *writer)
{
    close_level(writer, "}");
}

void pawli_put_array(struct pawli_writer *writer, const char *key)
{
    open_level(writer, key, "[");
}

void pawli_put_array_end(struct pawli_writer *writer)
{
    close_level(writer, "]");
}

void pawli_put_text(struct pawli_writer *writer, const char *key, const char *text)
{
    assert(text != NULL);
    begin(writer, key);
    put_quoted(writer, text, strlen(text));
}

void pawli_put_number(struct pawli_writer *writer, const char *key, int64_t number)
{
    char text[24];
    begin(writer, key);
    (void)snprintf(text, sizeof(text), "%" PRId64, number); /* fits */
    put_plain(writer, text);
}

void pawli_put_flag(struct pawli_writer *writer, const char *key, bool flag)
{
    begin(writer, key);
    put_plain(writer, flag ? "true" : "false");
}

void pawli_put_null(struct pawli_writer *writer, const char *key)
{
    begin(writer, key);
    put_plain(writer, "null");
}

void pawli_put_id(struct pawli_writer *writer, const char *key, const pawl_id *id)
{
    char text[PAWL_ID_TEXT_MAX];
    pawli_put_text(writer, key, pawl_id_format(id, text));
}

void pawli_put_token(struct pawli_writer *writer, const char *key, const pawl_token *token)
{
    char text[2 * sizeof(token->bytes) + 1];
    for (size_t i = 0; i < sizeof(token->bytes); i++)
        (void)snprintf(text + 2 * i, 3, "%02x", token->bytes[i]); /* fits */
    pawli_put_text(writer, key, text);
}

void pawli_put_time(struct pawli_writer *writer, const char *key, pawl_wall at)
{
    struct tm parts;
    char text[48];
    time_t seconds = (time_t)(at.us / 1000000);
    if (at.us <= 0 || gmtime_r(&seconds, &parts) == NULL) {
        pawli_put_null(writer, key);
        return;
    }
    size_t len = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
    (void)snprintf(text + len, sizeof(text) - len, ".%06dZ", (int)(at.us % 1000000)); /* fits */
    pawli_put_text(writer, key, text);
}

static bool is_utf8(const unsigned char *at, size_t left)
{
    while (left > 0) {
        size_t length = utf8_length(at, left);
        if (length == 0)
            return false;
        at += length;
        left -= length;
    }
    return true;
}

void pawli_put_bytes(struct pawli_writer *writer, const char *key, const char *key_base64,
                     const void *bytes, size_t bytes_len)
{
    if (is_utf8(bytes, bytes_len)) {
        begin(writer, key);
        put_quoted(writer, bytes, bytes_len);
        return;
    }
    size_t len = PAWLI_BASE64_LEN(bytes_len);
    begin(writer, key_base64);
    put(writer, "\"", 1);
    if (!writer->has_failed && !pawli_buffer_reserve(writer->to, len + 1))
        writer->has_failed = true;
    if (writer->has_failed)
        return;
    pawli_base64_encode(bytes, bytes_len, (char *)writer->to->bytes + writer->to->len);
    writer->to->len += len;
    put(writer, "\"", 1);
}

void pawli_put_headers(struct pawli_writer *writer, const char *key, const char *headers)
{
    pawl_header header;
    if (headers == NULL || headers[0] == '\0')
        return;
    pawli_put_object(writer, key);
    for (const char *at = headers; pawl_headers_next(&at, &header);) {
        begin(writer, NULL);
        put_quoted(writer, header.name, header.name_len);
        put(writer, ":", 1);
        put_quoted(writer, header.value, header.value_len);
    }
    pawli_put_object_end(writer);
}

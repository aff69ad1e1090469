/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * content.c - what a job or an event carries: its payload and its headers.
 * Owns:  how these are written in a request.
 * Never: looks into a payload.
 */
#include "serve/content.h"

#include "serve/fields.h"

#include "base/base64.h"
#include "base/error.h"
#include "pawl/headers.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define HEADER_PREFIX "Pawl-Header-"

/* ---------------------------------------------------------------- from JSON */

static bool take_once(struct pawli_content *content, pawl_err *err)
{
    if (content->has_payload)
        (void)pawli_fail(err, PAWL_INVALID, "payload and payload_base64 must not both be there");
    bool is_first = !content->has_payload;
    content->has_payload = true;
    return is_first;
}

/* A text is carried as what it says, any other value as the bytes that it is written with. */
bool pawli_content_payload(struct pawli_reader *reader, struct pawli_content *content,
                           pawl_err *err)
{
    const char *bytes;
    size_t len;
    bool is_text = pawli_reader_look(reader) == PAWLI_JSON_TEXT;
    if (!take_once(content, err))
        return false;
    if (is_text ? !pawli_reader_text(reader, &bytes, &len)
                : !pawli_reader_value(reader, &bytes, &len))
        return pawli_fields_bad(reader, "payload", err);
    content->payload = bytes;
    content->payload_len = len;
    return true;
}

bool pawli_content_base64(struct pawli_reader *reader, struct pawli_content *content, pawl_err *err)
{
    const char *text;
    size_t len;
    if (!take_once(content, err))
        return false;
    if (!pawli_reader_text(reader, &text, &len))
        return pawli_fields_bad(reader, "payload_base64", err);
    /* Decoded where it stands: four letters are read before three bytes are written. */
    uint8_t *bytes = (uint8_t *)(uintptr_t)text;
    if (!pawli_base64_decode(text, len, bytes, len, &content->payload_len)) {
        (void)pawli_fail(err, PAWL_INVALID, "payload_base64 must be base64 with padding");
        return false;
    }
    content->payload = bytes;
    return true;
}

static bool add_header(struct pawli_reader *reader, const char *name, char *headers, size_t size,
                       pawl_err *err)
{
    pawl_err inner;
    const char *value;
    size_t len;
    if (!pawli_reader_text(reader, &value, &len))
        return pawli_fields_bad(reader, "headers", err);
    if (strlen(value) == len && pawl_headers_add(headers, size, name, value, &inner) == PAWL_OK)
        return true;
    (void)pawli_fail(err, PAWL_INVALID, "headers: %.200s",
                     strlen(value) == len ? inner.text : "a value must have no NUL");
    return false;
}

bool pawli_content_headers(struct pawli_reader *reader, struct pawli_content *content,
                           pawl_err *err)
{
    struct pawli_reader inside;
    const char *bytes;
    size_t len;
    bool has_member = true;
    const char *name = NULL;
    if (pawli_reader_look(reader) != PAWLI_JSON_OBJECT ||
        !pawli_reader_value(reader, &bytes, &len)) {
        (void)pawli_fail(err, PAWL_INVALID, "headers must be an object of texts");
        return false;
    }
    /* As JSON a header takes more bytes than as `name: value`. */
    size_t size = (len < PAWL_HEADERS_LEN_MAX ? len : PAWL_HEADERS_LEN_MAX) + 1;
    content->headers = calloc(1, size);
    if (content->headers == NULL) {
        (void)pawli_fail_plain(err, PAWL_NO_MEMORY);
        return false;
    }
    pawli_reader_init(&inside, (char *)(uintptr_t)bytes, len);
    if (!pawli_reader_object(&inside))
        return pawli_fields_bad(&inside, "headers", err);
    for (bool is_first = true; has_member; is_first = false) {
        if (!pawli_reader_member(&inside, is_first, &has_member, &name))
            return pawli_fields_bad(&inside, "headers", err);
        if (has_member && !add_header(&inside, name, content->headers, size, err))
            return false;
    }
    return true;
}

/* ---------------------------------------------------------------- from the request itself */

/* The headers that go with it: its type, its trace, and those that are marked for it. */
pawl_code pawli_content_of_call(struct pawli_call *call, struct pawli_content *content)
{
    pawl_err inner;
    size_t prefix = strlen(HEADER_PREFIX);
    char *headers = calloc(1, PAWL_HEADERS_LEN_MAX + 1);
    if (headers == NULL)
        return pawli_fail_plain(&call->err, PAWL_NO_MEMORY);
    content->headers = headers;
    content->payload = call->body;
    content->payload_len = call->body_len;
    content->has_payload = true;
    for (size_t i = 0; i < call->headers_count; i++) {
        const struct pawli_pair *header = &call->headers[i];
        bool is_marked = strncasecmp(header->name, HEADER_PREFIX, prefix) == 0;
        const char *name = is_marked                                       ? header->name + prefix
                           : strcasecmp(header->name, "Content-Type") == 0 ? "content-type"
                           : strcasecmp(header->name, "traceparent") == 0  ? "traceparent"
                                                                           : NULL;
        if (name != NULL && pawl_headers_add(headers, PAWL_HEADERS_LEN_MAX + 1, name, header->value,
                                             &inner) != PAWL_OK)
            return pawli_fail(&call->err, PAWL_INVALID, "the header %.60s: %.160s", header->name,
                              inner.text);
    }
    return PAWL_OK;
}

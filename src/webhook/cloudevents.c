/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * cloudevents.c - a delivery as CloudEvents 1.0 has it.
 * Owns:  the headers of binary mode; the envelope of structured mode; what is a good traceparent.
 * Never: changes a byte of the payload: parsing and printing it again would lose digits and
 *        doubled keys; lets a byte into a header that could end it.
 */
#include "webhook/cloudevents.h"

#include "base/base64.h"
#include "base/error.h"
#include "base/text.h"
#include "core/event.h"
#include "core/topic.h"
#include "webhook/json_check.h"

#include <assert.h>
#include <jansson.h>
#include <string.h>
#include <time.h>

#define SECOND_US INT64_C(1000000)
#define TIME_SIZE 32
/* A wall clock beyond the year 9999 has no printed form. */
#define TIME_MAX_US PAWLI_EVENT_TIME_MAX_US

/* ---- attributes */

static bool is_visible(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (text[i] < '!' || text[i] > '~')
            return false;
    return true;
}

static pawl_code check_visible(const char *field, const char *text, size_t max, pawl_err *err)
{
    size_t len = text != NULL ? pawli_text_length(text, max) : 0;
    if (len >= 1 && len <= max && is_visible(text, len))
        return PAWL_OK;
    return pawli_fail(err, PAWL_INVALID,
                      "%s: missing, too long, or with other bytes; allowed: 1 to %zu bytes of "
                      "printable ASCII without blanks",
                      field, max);
}

/* A media type; parameters may have blanks before them. */
bool pawli_content_type_is_good(const char *text)
{
    size_t len = pawli_text_length(text, PAWLI_CONTENT_TYPE_MAX);
    size_t name_len = strcspn(text, "; ");
    const char *slash = memchr(text, '/', name_len);
    if (len > PAWLI_CONTENT_TYPE_MAX || slash == NULL || slash == text ||
        slash == text + name_len - 1)
        return false;
    for (size_t i = 0; i < len; i++)
        if (text[i] < ' ' || text[i] > '~')
            return false;
    return text[len - 1] != ' ';
}

pawl_code pawli_cloud_event_check(const struct pawli_cloud_event *event, pawl_err *err)
{
    assert(event != NULL);
    assert(event->payload != NULL || event->payload_len == 0);

    pawl_code rc = check_visible("id", event->id, PAWLI_CLOUD_ID_MAX, err);
    if (rc == PAWL_OK)
        rc = check_visible("source", event->source, PAWLI_CLOUD_SOURCE_MAX, err);
    if (rc == PAWL_OK)
        rc = pawli_topic_check(event->type, err);
    if (rc != PAWL_OK)
        return rc;
    const char *subject = event->subject != NULL ? event->subject : "";
    size_t subject_len = pawli_text_length(subject, PAWLI_CLOUD_SUBJECT_MAX);
    if (subject_len > PAWLI_CLOUD_SUBJECT_MAX || pawli_text_good(subject, "") != subject_len)
        return pawli_fail(err, PAWL_INVALID,
                          "subject: too long, or no good UTF-8; allowed: up to %d bytes of UTF-8 "
                          "without control characters",
                          PAWLI_CLOUD_SUBJECT_MAX);
    if (event->content_type != NULL && !pawli_content_type_is_good(event->content_type))
        return pawli_fail(err, PAWL_INVALID,
                          "content_type: not a media type; allowed: up to %d bytes of printable "
                          "ASCII, as in %s",
                          PAWLI_CONTENT_TYPE_MAX, PAWLI_CLOUD_JSON_TYPE);
    if (event->time.us < 0 || event->time.us > TIME_MAX_US)
        return pawli_fail(err, PAWL_INVALID, "time: %lld us; allowed: from 1970 to the year 9999",
                          (long long)event->time.us);
    return PAWL_OK;
}

static const char *content_type_of(const struct pawli_cloud_event *event)
{
    return event->content_type != NULL ? event->content_type : PAWLI_CLOUD_JSON_TYPE;
}

static bool has_subject(const struct pawli_cloud_event *event)
{
    return event->subject != NULL && event->subject[0] != '\0';
}

/* RFC 3339, with as many digits as the clock has. */
static void print_time(pawl_wall at, char text[TIME_SIZE])
{
    struct tm parts;
    time_t seconds = (time_t)(at.us / SECOND_US);
    size_t len = 0;
    if (gmtime_r(&seconds, &parts) != NULL)
        len = strftime(text, TIME_SIZE, "%Y-%m-%dT%H:%M:%S", &parts);
    (void)snprintf(text + len, TIME_SIZE - len, ".%06dZ", (int)(at.us % SECOND_US));
}

static bool is_hex(const char *text, size_t len, bool *ret_is_zero)
{
    *ret_is_zero = true;
    for (size_t i = 0; i < len; i++) {
        if (!((text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f')))
            return false;
        *ret_is_zero = *ret_is_zero && text[i] == '0';
    }
    return true;
}

bool pawli_traceparent_is_good(const char *text)
{
    if (text == NULL || pawli_text_length(text, PAWLI_TRACEPARENT_LEN) != PAWLI_TRACEPARENT_LEN)
        return false;
    /* 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 */
    bool is_zero;
    bool is_trace_zero;
    bool is_parent_zero;
    return is_hex(text, 2, &is_zero) && strncmp(text, "ff", 2) != 0 && text[2] == '-' &&
           is_hex(text + 3, 32, &is_trace_zero) && !is_trace_zero && text[35] == '-' &&
           is_hex(text + 36, 16, &is_parent_zero) && !is_parent_zero && text[52] == '-' &&
           is_hex(text + 53, 2, &is_zero);
}

/* ---- binary mode */

static bool put_text(struct pawli_buffer *buffer, const char *text)
{
    return pawli_buffer_put(buffer, text, strlen(text));
}

/* "name: value" and a NUL; in the value everything but visible ASCII, and quotes and percent signs,
 * becomes %XX. */
static bool put_header(struct pawli_buffer *lines, const char *name, const char *value)
{
    static const char digits[] = "0123456789ABCDEF";
    bool is_put = put_text(lines, name) && put_text(lines, ": ");
    for (; is_put && *value != '\0'; value++) {
        uint8_t byte = (uint8_t)*value;
        char code[3] = {'%', digits[byte >> 4], digits[byte & 15]};
        bool is_plain = byte >= '!' && byte <= '~' && byte != '"' && byte != '%';
        is_put = is_plain ? pawli_buffer_put(lines, value, 1)
                          : pawli_buffer_put(lines, code, sizeof(code));
    }
    return is_put && pawli_buffer_put(lines, "", 1);
}

static bool put_headers(const struct pawli_cloud_event *event, struct pawli_buffer *lines)
{
    /* Not an attribute that is encoded: a media type as it is. */
    bool is_put = put_text(lines, "content-type: ") && put_text(lines, content_type_of(event)) &&
                  pawli_buffer_put(lines, "", 1);
    is_put = is_put && put_header(lines, "ce-specversion", "1.0") &&
             put_header(lines, "ce-id", event->id) &&
             put_header(lines, "ce-source", event->source) &&
             put_header(lines, "ce-type", event->type);
    if (event->time.us != 0) {
        char time[TIME_SIZE];
        print_time(event->time, time);
        is_put = is_put && put_header(lines, "ce-time", time);
    }
    if (has_subject(event))
        is_put = is_put && put_header(lines, "ce-subject", event->subject);
    /* As the extension for tracing asks, and as everybody else looks for it. */
    if (pawli_traceparent_is_good(event->traceparent))
        is_put = is_put && put_header(lines, "ce-traceparent", event->traceparent) &&
                 put_header(lines, "traceparent", event->traceparent);
    return is_put;
}

pawl_code pawli_cloud_event_headers(const struct pawli_cloud_event *event,
                                    struct pawli_buffer *lines, pawl_err *err)
{
    assert(pawli_cloud_event_check(event, NULL) == PAWL_OK);
    assert(lines != NULL);

    size_t before = lines->len;
    if (put_headers(event, lines))
        return PAWL_OK;
    lines->len = before;
    return pawli_fail_plain(err, PAWL_NO_MEMORY);
}

/* ---- structured mode */

static char to_small(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

/* Of the form x/json or x/y+json, without its parameters. */
static bool says_json(const char *content_type)
{
    size_t len = strcspn(content_type, "; ");
    if (len < 5 || (content_type[len - 5] != '/' && content_type[len - 5] != '+'))
        return false;
    for (size_t i = 0; i < 4; i++)
        if (to_small(content_type[len - 4 + i]) != "json"[i])
            return false;
    return true;
}

/* False: no memory. (json_pack() would leave out an attribute that it has no memory for.) */
static bool set_attribute(json_t *object, const char *name, const char *value)
{
    return json_object_set_new(object, name, json_string(value)) == 0;
}

/* The attributes as a JSON object in text; NULL: no memory. Freed by free_printed(). */
static char *print_attributes(const struct pawli_cloud_event *event)
{
    json_t *object = json_object();
    bool is_set = object != NULL && set_attribute(object, "specversion", "1.0") &&
                  set_attribute(object, "id", event->id) &&
                  set_attribute(object, "source", event->source) &&
                  set_attribute(object, "type", event->type);
    if (event->time.us != 0) {
        char time[TIME_SIZE];
        print_time(event->time, time);
        is_set = is_set && set_attribute(object, "time", time);
    }
    if (has_subject(event))
        is_set = is_set && set_attribute(object, "subject", event->subject);
    if (pawli_traceparent_is_good(event->traceparent))
        is_set = is_set && set_attribute(object, "traceparent", event->traceparent);
    if (event->payload_len > 0)
        is_set = is_set && set_attribute(object, "datacontenttype", content_type_of(event));
    char *text = is_set ? json_dumps(object, JSON_COMPACT) : NULL;
    json_decref(object);
    return text;
}

static void free_printed(char *text)
{
    json_malloc_t json_malloc;
    json_free_t json_free;
    json_get_alloc_funcs(&json_malloc, &json_free);
    if (text != NULL)
        json_free(text);
}

static bool put_base64(struct pawli_buffer *body, const struct pawli_cloud_event *event)
{
    size_t len = PAWLI_BASE64_LEN(event->payload_len);
    if (!pawli_buffer_reserve(body, len + 1))
        return false;
    pawli_base64_encode(event->payload, event->payload_len, (char *)body->bytes + body->len);
    body->len += len;
    return true;
}

static bool put_envelope(const struct pawli_cloud_event *event, const char *attributes,
                         struct pawli_buffer *body)
{
    size_t len = strlen(attributes);
    assert(len > 2 && attributes[len - 1] == '}');
    if (event->payload_len == 0)
        return pawli_buffer_put(body, attributes, len);
    if (!pawli_buffer_put(body, attributes, len - 1)) /* open again */
        return false;
    if (says_json(content_type_of(event)) && pawli_json_is_good(event->payload, event->payload_len))
        return put_text(body, ",\"data\":") &&
               pawli_buffer_put(body, event->payload, event->payload_len) && put_text(body, "}");
    return put_text(body, ",\"data_base64\":\"") && put_base64(body, event) &&
           put_text(body, "\"}");
}

pawl_code pawli_cloud_event_envelope(const struct pawli_cloud_event *event,
                                     struct pawli_buffer *body, pawl_err *err)
{
    assert(pawli_cloud_event_check(event, NULL) == PAWL_OK);
    assert(body != NULL);

    size_t before = body->len;
    char *attributes = print_attributes(event);
    bool is_put = attributes != NULL && put_envelope(event, attributes, body);
    free_printed(attributes);
    if (is_put)
        return PAWL_OK;
    body->len = before;
    return pawli_fail_plain(err, PAWL_NO_MEMORY);
}

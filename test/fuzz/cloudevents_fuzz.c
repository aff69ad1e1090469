/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * cloudevents_fuzz.c - what must hold for every event that goes out as a CloudEvent. Run by
 * libFuzzer, and by the unit suite over a fixed corpus.
 * Owns:  the property: an accepted event is a JSON object from which every attribute and every byte
 *        of the payload can be read back, and headers that are visible ASCII; a refused one gives
 *        its reason.
 * Never: survives a violation: it aborts.
 */
#include "fuzz/cloudevents_fuzz.h"

#include "base/base64.h"
#include "webhook/json_check.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static void require(bool is_so)
{
    if (!is_so)
        abort();
}

static void check_attribute(const json_t *object, const char *name, const char *expected)
{
    const char *found = json_string_value(json_object_get(object, name));
    if (expected == NULL || expected[0] == '\0')
        require(json_object_get(object, name) == NULL);
    else
        require(found != NULL && strcmp(found, expected) == 0);
}

/* The payload as it stands in the text, or in base64. */
static void check_payload(const json_t *object, const struct pawli_cloud_event *event,
                          const struct pawli_buffer *body)
{
    const json_t *coded = json_object_get(object, "data_base64");
    const json_t *plain = json_object_get(object, "data");
    require((coded != NULL) + (plain != NULL) == (event->payload_len > 0));
    if (coded != NULL) {
        uint8_t *bytes = malloc(event->payload_len);
        size_t len;
        require(bytes != NULL);
        require(pawli_base64_decode(json_string_value(coded), json_string_length(coded), bytes,
                                    event->payload_len, &len));
        require(len == event->payload_len && memcmp(bytes, event->payload, len) == 0);
        free(bytes);
    }
    if (plain != NULL) {
        require(body->len > event->payload_len + 1);
        const uint8_t *from = body->bytes + body->len - 1 - event->payload_len;
        require(memcmp(from, event->payload, event->payload_len) == 0);
    }
}

static void check_envelope(const struct pawli_cloud_event *event)
{
    struct pawli_buffer body = {.len = 0};
    require(pawli_cloud_event_envelope(event, &body, NULL) == PAWL_OK);
    json_error_t error;
    json_t *object = json_loadb((const char *)body.bytes, body.len,
                                JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, &error);
    if (object == NULL) {
        /* It holds no number beyond every float; the envelope is good all the same. */
        require(json_error_code(&error) == json_error_numeric_overflow);
        require(pawli_json_is_good(body.bytes, body.len));
        pawli_buffer_clear(&body);
        return;
    }
    require(json_is_object(object));
    check_attribute(object, "specversion", "1.0");
    check_attribute(object, "id", event->id);
    check_attribute(object, "source", event->source);
    check_attribute(object, "type", event->type);
    check_attribute(object, "subject", event->subject);
    check_attribute(object, "traceparent",
                    pawli_traceparent_is_good(event->traceparent) ? event->traceparent : NULL);
    const char *content_type = event->content_type != NULL ? event->content_type
                                                           : PAWLI_CLOUD_JSON_TYPE;
    check_attribute(object, "datacontenttype", event->payload_len > 0 ? content_type : NULL);
    require((json_object_get(object, "time") != NULL) == (event->time.us != 0));
    check_payload(object, event, &body);
    json_decref(object);
    pawli_buffer_clear(&body);
}

static void check_headers(const struct pawli_cloud_event *event)
{
    struct pawli_buffer lines = {.len = 0};
    require(pawli_cloud_event_headers(event, &lines, NULL) == PAWL_OK);
    require(lines.len > 0 && lines.bytes[lines.len - 1] == '\0');
    size_t count = 0;
    for (size_t at = 0; at < lines.len; count++) {
        const char *line = (const char *)lines.bytes + at;
        require(strstr(line, ": ") != NULL);
        for (; lines.bytes[at] != '\0'; at++)
            require(lines.bytes[at] >= ' ' && lines.bytes[at] <= '~');
        at++;
    }
    require(count == 5u + (event->time.us != 0) +
                         (event->subject != NULL && event->subject[0] != '\0') +
                         2u * pawli_traceparent_is_good(event->traceparent));
    pawli_buffer_clear(&lines);
}

bool cloudevents_fuzz_one(const struct pawli_cloud_event *event)
{
    pawl_err err = {.code = PAWL_OK, .text = ""};
    pawl_code rc = pawli_cloud_event_check(event, &err);
    if (rc != PAWL_OK) {
        require(rc == PAWL_INVALID && err.code == rc && err.text[0] != '\0');
        return false;
    }
    check_envelope(event);
    check_headers(event);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 5);
    if (text == NULL)
        return 0;
    if (size > 0)
        memcpy(text, data, size);
    memset(text + size, '\0', 5);
    char *lines[4];
    char *at = text;
    for (size_t i = 0; i < 4; i++) {
        lines[i] = at;
        at += strcspn(at, "\n");
        if (*at == '\n')
            *at++ = '\0';
    }
    struct pawli_cloud_event event = {
        .id = "1",
        .type = "a.b",
        .subject = lines[0],
        .content_type = lines[1][0] != '\0' ? lines[1] : NULL,
        .source = lines[2][0] != '\0' ? lines[2] : "/",
        .traceparent = lines[3],
        .time = {1},
        .payload = at,
        .payload_len = at < text + size ? (size_t)(text + size - at) : 0,
    };
    (void)cloudevents_fuzz_one(&event); /* both answers are right for some event */
    free(text);
    return 0;
}

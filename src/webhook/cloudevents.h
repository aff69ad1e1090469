/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * cloudevents.h - a delivery as CloudEvents 1.0 has it, for endpoints that ask for it: in binary
 * mode the attributes are headers and the payload is the body; in structured mode both are in one
 * JSON object.
 */
#ifndef PAWLI_WEBHOOK_CLOUDEVENTS_H
#define PAWLI_WEBHOOK_CLOUDEVENTS_H

#include "base/buffer.h"
#include "pawl/pawl.h"

#define PAWLI_CLOUD_SOURCE_MAX    1024 /* bytes in a source */
#define PAWLI_CLOUD_SUBJECT_MAX   255  /* bytes in a subject: an ordering key fits */
#define PAWLI_CLOUD_ID_MAX        64   /* bytes in an id */
#define PAWLI_CONTENT_TYPE_MAX    127  /* bytes in a content type */
#define PAWLI_TRACEPARENT_LEN     55
#define PAWLI_CLOUD_JSON_TYPE     "application/json"
#define PAWLI_CLOUD_ENVELOPE_TYPE "application/cloudevents+json; charset=UTF-8"

/* All borrowed for the call. */
struct pawli_cloud_event {
    const char *id;           /* the same on every try: the webhook-id */
    const char *source;       /* a URI reference: printable ASCII without blanks */
    const char *type;         /* the type of the event: see core/topic.h */
    const char *subject;      /* UTF-8 without control characters; NULL or empty: none */
    const char *content_type; /* of the payload, printable ASCII; NULL: application/json */
    const char *traceparent;  /* passed on where it is good (W3C), left out otherwise; NULL: none */
    pawl_wall time;           /* when it happened; 0: left out */
    const void *payload;
    size_t payload_len;
};

/* PAWL_INVALID names the attribute and what is allowed. */
PAWL_MUST_USE pawl_code pawli_cloud_event_check(const struct pawli_cloud_event *event,
                                                pawl_err *err);

/*
 * Put the headers of binary mode, content-type among them, behind what `lines` holds: each
 * "name: value" and a NUL. The payload is the body as it is. The event must have passed its check.
 * PAWL_NO_MEMORY: as it was.
 */
PAWL_MUST_USE pawl_code pawli_cloud_event_headers(const struct pawli_cloud_event *event,
                                                  struct pawli_buffer *lines, pawl_err *err);

/*
 * Put the envelope of structured mode behind what `body` holds; its content type is
 * PAWLI_CLOUD_ENVELOPE_TYPE. The payload is its "data", byte for byte, where its content type says
 * JSON and it is; else its "data_base64"; neither where it is empty. The event must have passed its
 * check. PAWL_NO_MEMORY: as it was.
 */
PAWL_MUST_USE pawl_code pawli_cloud_event_envelope(const struct pawli_cloud_event *event,
                                                   struct pawli_buffer *body, pawl_err *err);

/* Whether this is a media type, with or without parameters, of PAWLI_CONTENT_TYPE_MAX bytes. */
bool pawli_content_type_is_good(const char *text);

/* Whether this is a `traceparent` as W3C's Trace Context has it: PAWLI_TRACEPARENT_LEN bytes of any
 * version but ff, neither id all zeros. NULL is not. */
bool pawli_traceparent_is_good(const char *text);

#endif

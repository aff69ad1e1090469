/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * request.c - what is sent for one try to deliver a job.
 * Owns:  which headers a delivery has. Those of the endpoint were checked when they were set: none
 *        is among them that a delivery sets itself.
 * Never: keeps a signature longer than the request lasts; changes a payload.
 */
#include "deliver/request.h"

#include "base/error.h"
#include "base/text.h"
#include "core/event.h"
#include "pawl/headers.h"
#include "webhook/cloudevents.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SIGNING_SIZE   (PAWL_EVENT_ID_MAX + 96) /* the lines of sign(), without the signatures */
#define NAME_VALUE_MAX (PAWL_HEADER_NAME_MAX + PAWL_HEADER_VALUE_MAX + 3)

static bool put(struct pawli_buffer *lines, const char *name, const char *value)
{
    char line[NAME_VALUE_MAX];
    /* All that comes here is shorter: names of ours, and values with bounds of their own. */
    int len = value[0] != '\0' ? snprintf(line, sizeof(line), "%s: %s", name, value)
                               : snprintf(line, sizeof(line), "%s;", name); /* empty: libcurl's */
    bool is_put = pawli_buffer_put(lines, line, (size_t)len + 1);
    explicit_bzero(line, (size_t)len);
    return is_put;
}

static bool put_endpoints_own(struct pawli_buffer *lines, const char *headers)
{
    char name[PAWL_HEADER_NAME_MAX + 1];
    char value[PAWL_HEADER_VALUE_MAX + 1];
    pawl_header header;
    bool is_put = true;
    for (const char *at = headers; is_put && pawl_headers_next(&at, &header);) {
        if (header.name_len >= sizeof(name) || header.value_len >= sizeof(value))
            continue; /* cannot be: they were checked */
        memcpy(name, header.name, header.name_len);
        name[header.name_len] = '\0';
        memcpy(value, header.value, header.value_len);
        value[header.value_len] = '\0';
        is_put = put(lines, name, value);
    }
    explicit_bzero(value, sizeof(value));
    return is_put;
}

/* ---------------------------------------------------------------- the forms */

static pawl_code make_plain(const struct pawli_event_info *info, struct pawli_request *request,
                            pawl_err *err)
{
    const char *type = info->content_type[0] != '\0' ? info->content_type : PAWLI_CLOUD_JSON_TYPE;
    bool is_put = put(&request->headers, "content-type", type) &&
                  (!pawli_traceparent_is_good(info->traceparent) ||
                   put(&request->headers, "traceparent", info->traceparent));
    return is_put ? PAWL_OK : pawli_fail_plain(err, PAWL_NO_MEMORY);
}

static pawl_code make_cloud(const struct pawli_request_args *args,
                            const struct pawli_event_info *info, struct pawli_request *request,
                            pawl_err *err)
{
    const struct pawli_cloud_event event = {
        .id = info->id,
        .source = args->source,
        .type = info->type,
        .subject = info->key,
        .content_type = info->content_type[0] != '\0' ? info->content_type : NULL,
        .traceparent = info->traceparent,
        .time = info->time,
        .payload = args->job->payload,
        .payload_len = args->job->payload_len};
    pawl_code code = pawli_cloud_event_check(&event, err);
    if (code != PAWL_OK || args->format == PAWL_FORMAT_CLOUD_BINARY)
        return code == PAWL_OK ? pawli_cloud_event_headers(&event, &request->headers, err) : code;
    code = pawli_cloud_event_envelope(&event, &request->own, err);
    if (code != PAWL_OK)
        return code;
    request->body = request->own.bytes;
    request->body_len = request->own.len;
    bool is_put = put(&request->headers, "content-type", PAWLI_CLOUD_ENVELOPE_TYPE) &&
                  (!pawli_traceparent_is_good(info->traceparent) ||
                   put(&request->headers, "traceparent", info->traceparent));
    return is_put ? PAWL_OK : pawli_fail_plain(err, PAWL_NO_MEMORY);
}

static pawl_code sign(const struct pawli_request_args *args, const struct pawli_event_info *info,
                      struct pawli_request *request, pawl_err *err)
{
    char signatures[PAWLI_SIGNATURES_SIZE];
    char timestamp[24];
    const struct pawli_sign_args what = {.id = info->id,
                                         .timestamp_s = args->now.us / 1000000,
                                         .body = request->body,
                                         .body_len = request->body_len};
    pawl_code code = pawli_sign(args->signer, &what, signatures, err);
    if (code != PAWL_OK)
        return code;
    (void)snprintf(timestamp, sizeof(timestamp), "%" PRId64, what.timestamp_s); /* it fits */
    /* From here on the buffer stays where it is: what grows leaves a copy behind. */
    size_t rest = SIGNING_SIZE + strlen(signatures) +
                  (args->headers != NULL ? strlen(args->headers) : 0);
    bool is_put = pawli_buffer_reserve(&request->headers, rest) &&
                  put(&request->headers, "webhook-id", info->id) &&
                  put(&request->headers, "webhook-timestamp", timestamp) &&
                  put(&request->headers, "webhook-signature", signatures);
    return is_put ? PAWL_OK : pawli_fail_plain(err, PAWL_NO_MEMORY);
}

pawl_code pawli_request_make(const struct pawli_request_args *args, struct pawli_request *request,
                             pawl_err *err)
{
    struct pawli_event_info info;
    pawl_code code = pawli_event_read(args->job, &info, err);
    if (code != PAWL_OK)
        return code;
    /* The event is not lost for it, nor is it called what it is not. */
    if (info.content_type[0] != '\0' && !pawli_content_type_is_good(info.content_type))
        (void)pawli_text_copy(info.content_type, sizeof(info.content_type),
                              PAWLI_EVENT_BYTES_TYPE); /* fits */
    request->body = args->job->payload;
    request->body_len = args->job->payload_len;
    bool is_cloud = args->format == PAWL_FORMAT_CLOUD_BINARY ||
                    args->format == PAWL_FORMAT_CLOUD_STRUCTURED;
    code = is_cloud ? make_cloud(args, &info, request, err) : make_plain(&info, request, err);
    if (code == PAWL_OK)
        code = sign(args, &info, request, err);
    if (code == PAWL_OK && !put_endpoints_own(&request->headers, args->headers))
        code = pawli_fail_plain(err, PAWL_NO_MEMORY);
    return code;
}

void pawli_request_clear(struct pawli_request *request)
{
    if (request->headers.bytes != NULL)
        explicit_bzero(request->headers.bytes, request->headers.len);
    pawli_buffer_clear(&request->headers);
    pawli_buffer_clear(&request->own);
    *request = (struct pawli_request){.body = NULL};
}

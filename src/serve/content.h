/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * content.h - what a job or an event carries: its payload and its headers, from JSON or from a
 * request as it is.
 */
#ifndef PAWLI_SERVE_CONTENT_H
#define PAWLI_SERVE_CONTENT_H

#include "serve/call.h"
#include "serve/json_read.h"

/* Zeroed: none yet. */
struct pawli_content {
    const void *payload; /* borrowed from the request */
    size_t payload_len;
    char *headers; /* owned */
    bool has_payload;
};

/* Members of an object. False: *err says what is wrong. */
bool pawli_content_payload(struct pawli_reader *reader, struct pawli_content *content,
                           pawl_err *err);
bool pawli_content_base64(struct pawli_reader *reader, struct pawli_content *content,
                          pawl_err *err);
bool pawli_content_headers(struct pawli_reader *reader, struct pawli_content *content,
                           pawl_err *err);

/* A request whose body is the payload: its type, its trace and the headers that are marked go with
 * it. What was made of it stays in *content in any case. */
pawl_code pawli_content_of_call(struct pawli_call *call, struct pawli_content *content);

#endif

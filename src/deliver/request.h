/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * request.h - what is sent for one try to deliver a job: headers, among them the signatures of this
 * try, and the body.
 */
#ifndef PAWLI_DELIVER_REQUEST_H
#define PAWLI_DELIVER_REQUEST_H

#include "base/buffer.h"
#include "pawl/endpoint.h"
#include "webhook/sign.h"

/* Zeroed: none yet. */
struct pawli_request {
    struct pawli_buffer headers; /* each "name: value" and a NUL */
    struct pawli_buffer own;     /* a body that is not the payload */
    const void *body;
    size_t body_len;
};

/* All borrowed; the job until the request is cleared. */
struct pawli_request_args {
    const pawl_job *job; /* as claim gave it */
    const char *headers; /* of the endpoint; NULL or empty: none */
    pawl_endpoint_format format;
    const char *source; /* of CloudEvents */
    struct pawli_signer *signer;
    pawl_wall now;
};

/*
 * Make it. PAWL_INVALID: the job is no event, or cannot be told in this format: no try will ever
 * do. PAWL_NO_MEMORY; PAWL_DOWN: libcrypto failed. Where it fails, clear it as well.
 */
PAWL_MUST_USE pawl_code pawli_request_make(const struct pawli_request_args *args,
                                           struct pawli_request *request, pawl_err *err);

/* Free what it holds, and overwrite it: signatures and headers may be secret. */
void pawli_request_clear(struct pawli_request *request);

#endif

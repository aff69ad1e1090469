/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * sign.h - signatures of deliveries, as Standard Webhooks has them: `v1` (HMAC-SHA256) and `v1a`
 * (Ed25519) over "id.timestamp.body", one for each secret of the endpoint, with blanks between
 * them.
 */
#ifndef PAWLI_WEBHOOK_SIGN_H
#define PAWLI_WEBHOOK_SIGN_H

#include "pawl/pawl.h"
#include "webhook/secret.h"

#define PAWLI_SECRETS_MAX     4   /* of one endpoint at once: while they are rotated */
#define PAWLI_WEBHOOK_ID_MAX  64  /* bytes in a webhook-id, without the closing NUL */
#define PAWLI_SIGNATURE_MAX   92  /* the longest one signature: v1a, a comma, 64 bytes in base64 */
#define PAWLI_SIGNATURES_SIZE 372 /* bytes of all of them with blanks and the closing NUL */

/* The secrets of one endpoint, made ready to sign with. One call at a time. */
struct pawli_signer;

/*
 * Make a signer of 1 to PAWLI_SECRETS_MAX secrets, in the order in which they are to sign; they are
 * not needed any more afterwards. PAWL_INVALID: none, or too many. PAWL_NO_MEMORY. PAWL_DOWN:
 * libcrypto has no such algorithm.
 */
PAWL_MUST_USE pawl_code pawli_signer_new(const struct pawli_secret *secrets, size_t secrets_count,
                                         struct pawli_signer **ret_signer, pawl_err *err);

/* Wipes its keys. Accepts NULL. */
void pawli_signer_free(struct pawli_signer *signer);

struct pawli_sign_args {
    const char *id;      /* webhook-id: the same on every try */
    int64_t timestamp_s; /* webhook-timestamp: of this try, in seconds since 1970 */
    const void *body;    /* exactly what is sent; NULL only where it is empty */
    size_t body_len;
};

/*
 * Write the value of the header webhook-signature. PAWL_INVALID: an id that is empty, too long, or
 * has anything but letters, digits, `_` and `-` (a full stop would let one message pass for
 * another); a timestamp before 1970. PAWL_NO_MEMORY; PAWL_DOWN: libcrypto failed.
 */
PAWL_MUST_USE pawl_code pawli_sign(struct pawli_signer *signer, const struct pawli_sign_args *args,
                                   char ret_header[PAWLI_SIGNATURES_SIZE], pawl_err *err);

#endif

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * secret.h - what an endpoint's deliveries are signed with, as Standard Webhooks writes it:
 *   whsec_...  a key of HMAC-SHA256: 24 to 64 bytes in base64
 *   whsk_...   a private key of Ed25519: its 32 bytes, or these and the public key's 32
 *   whpk_...   the public key that belongs to it: for those who verify, never read here
 */
#ifndef PAWLI_WEBHOOK_SECRET_H
#define PAWLI_WEBHOOK_SECRET_H

#include "pawl/pawl.h"

#define PAWLI_SECRET_BYTES_MIN  24
#define PAWLI_SECRET_BYTES_MAX  64
#define PAWLI_SECRET_TEXT_MAX   95 /* bytes of a printed secret, with the closing NUL */
#define PAWLI_ED25519_KEY_BYTES 32

enum pawli_secret_kind {
    PAWLI_SECRET_HMAC = 0,   /* signs as v1 */
    PAWLI_SECRET_ED25519 = 1 /* signs as v1a */
};

/* Whoever holds one wipes it. Nothing prints it but pawli_secret_reveal(). */
struct pawli_secret {
    enum pawli_secret_kind kind;
    size_t bytes_len;
    uint8_t bytes[PAWLI_SECRET_BYTES_MAX];
};

/* Make a secret: 32 bytes from `random`, which must be the system's wherever it matters. */
void pawli_secret_generate(enum pawli_secret_kind kind, const pawl_random *random,
                           struct pawli_secret *ret_secret);

/*
 * Read a secret. PAWL_INVALID for anything but the forms above, exactly as they are written;
 * err->text says what is wrong and what is allowed, and quotes nothing. Also for a public key, and
 * for a private one with a public half that is not its own. PAWL_DOWN: libcrypto failed.
 */
PAWL_MUST_USE pawl_code pawli_secret_parse(const char *text, struct pawli_secret *ret_secret,
                                           pawl_err *err);

/* The one function that prints a secret. Returns `text`, which the caller wipes. */
const char *pawli_secret_reveal(const struct pawli_secret *secret,
                                char text[PAWLI_SECRET_TEXT_MAX]);

/* Print the public key (whpk_...) that verifies what this secret signs. PAWL_INVALID: it has none,
 * being an HMAC's. PAWL_DOWN: libcrypto failed. */
PAWL_MUST_USE pawl_code pawli_secret_public(const struct pawli_secret *secret,
                                            char text[PAWLI_SECRET_TEXT_MAX], pawl_err *err);

/* Overwrite it. Accepts NULL. */
void pawli_secret_wipe(struct pawli_secret *secret);

#endif

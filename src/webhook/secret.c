/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * secret.c - the secrets that deliveries are signed with.
 * Owns:  their written form; making them; wiping them.
 * Never: puts any part of a secret into an error; leaves a copy behind; draws from anything but the
 *        source it was handed.
 */
#include "webhook/secret.h"

#include "base/base64.h"
#include "base/error.h"
#include "base/random.h"
#include "base/text.h"

#include <assert.h>
#include <openssl/evp.h>
#include <string.h>

#define HMAC_PREFIX     "whsec_"
#define PRIVATE_PREFIX  "whsk_"
#define PUBLIC_PREFIX   "whpk_"
#define GENERATED_BYTES 32
#define ALLOWED                                                                              \
    "whsec_ and the base64 of 24 to 64 bytes, or whsk_ and that of an Ed25519 private key (" \
    "32 bytes)"

_Static_assert(PAWLI_SECRET_TEXT_MAX == sizeof(HMAC_PREFIX) + (64 + 2) / 3 * 4,
               "the longest secret fits");

void pawli_secret_wipe(struct pawli_secret *secret)
{
    if (secret != NULL)
        explicit_bzero(secret, sizeof(*secret));
}

void pawli_secret_generate(enum pawli_secret_kind kind, const pawl_random *random,
                           struct pawli_secret *ret_secret)
{
    assert(kind == PAWLI_SECRET_HMAC || kind == PAWLI_SECRET_ED25519);
    assert(random != NULL && ret_secret != NULL);
    _Static_assert(GENERATED_BYTES == PAWLI_ED25519_KEY_BYTES, "one size for both kinds");

    *ret_secret = (struct pawli_secret){.kind = kind, .bytes_len = GENERATED_BYTES};
    pawli_random_fill(random, ret_secret->bytes, GENERATED_BYTES);
}

static bool has_prefix(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* The public key of a private one. False: libcrypto failed. */
static bool derive_public(const uint8_t private_key[PAWLI_ED25519_KEY_BYTES],
                          uint8_t public_key[PAWLI_ED25519_KEY_BYTES])
{
    size_t len = PAWLI_ED25519_KEY_BYTES;
    EVP_PKEY *key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, private_key,
                                                 PAWLI_ED25519_KEY_BYTES);
    bool is_done = key != NULL && EVP_PKEY_get_raw_public_key(key, public_key, &len) == 1 &&
                   len == PAWLI_ED25519_KEY_BYTES;
    EVP_PKEY_free(key);
    return is_done;
}

static pawl_code crypto_failed(pawl_err *err)
{
    return pawli_fail(err, PAWL_DOWN, "libcrypto has no Ed25519, or no memory");
}

/* A private key as it is: 32 bytes, or these and the public key, which must be its own and is
 * dropped. */
static pawl_code check_private(struct pawli_secret *secret, pawl_err *err)
{
    if (secret->bytes_len == PAWLI_ED25519_KEY_BYTES)
        return PAWL_OK;
    if (secret->bytes_len != 2 * (size_t)PAWLI_ED25519_KEY_BYTES)
        return pawli_fail(err, PAWL_INVALID,
                          "secret: a whsk_ secret has %zu bytes; allowed: 32, or 64 with the "
                          "public key behind them",
                          secret->bytes_len);
    uint8_t public_key[PAWLI_ED25519_KEY_BYTES];
    if (!derive_public(secret->bytes, public_key))
        return crypto_failed(err);
    if (memcmp(public_key, secret->bytes + PAWLI_ED25519_KEY_BYTES, sizeof(public_key)) != 0)
        return pawli_fail(err, PAWL_INVALID,
                          "secret: the second half of this whsk_ secret is not the public key of "
                          "the first; allowed: 32 bytes, or 64 that belong together");
    explicit_bzero(secret->bytes + PAWLI_ED25519_KEY_BYTES, PAWLI_ED25519_KEY_BYTES);
    secret->bytes_len = PAWLI_ED25519_KEY_BYTES;
    return PAWL_OK;
}

static pawl_code check_kind(struct pawli_secret *secret, pawl_err *err)
{
    if (secret->kind == PAWLI_SECRET_ED25519)
        return check_private(secret, err);
    if (secret->bytes_len < PAWLI_SECRET_BYTES_MIN)
        return pawli_fail(err, PAWL_INVALID,
                          "secret: a whsec_ secret has %zu bytes; allowed: 24 to 64",
                          secret->bytes_len);
    return PAWL_OK;
}

pawl_code pawli_secret_parse(const char *text, struct pawli_secret *ret_secret, pawl_err *err)
{
    if (text == NULL)
        return pawli_fail(err, PAWL_INVALID, "secret is missing (NULL)");
    if (ret_secret == NULL)
        return pawli_fail(err, PAWL_INVALID, "ret_secret is missing (NULL)");
    size_t text_len = pawli_text_length(text, PAWLI_SECRET_TEXT_MAX - 1);
    if (text_len >= PAWLI_SECRET_TEXT_MAX)
        return pawli_fail(err, PAWL_INVALID, "secret: too long; allowed: " ALLOWED);
    if (has_prefix(text, PUBLIC_PREFIX))
        return pawli_fail(err, PAWL_INVALID,
                          "secret: this is a public key, which signs nothing; allowed: " ALLOWED);
    struct pawli_secret secret = {.kind = PAWLI_SECRET_HMAC};
    size_t prefix_len = strlen(HMAC_PREFIX);
    if (has_prefix(text, PRIVATE_PREFIX)) {
        secret.kind = PAWLI_SECRET_ED25519;
        prefix_len = strlen(PRIVATE_PREFIX);
    } else if (!has_prefix(text, HMAC_PREFIX)) {
        return pawli_fail(err, PAWL_INVALID, "secret: no known prefix; allowed: " ALLOWED);
    }

    pawl_code rc;
    if (!pawli_base64_decode(text + prefix_len, text_len - prefix_len, secret.bytes,
                             sizeof(secret.bytes), &secret.bytes_len))
        rc = pawli_fail(err, PAWL_INVALID,
                        "secret: not base64 with padding, or too long; allowed: " ALLOWED);
    else
        rc = check_kind(&secret, err);
    if (rc == PAWL_OK)
        *ret_secret = secret;
    pawli_secret_wipe(&secret);
    return rc;
}

const char *pawli_secret_reveal(const struct pawli_secret *secret, char text[PAWLI_SECRET_TEXT_MAX])
{
    assert(secret != NULL && text != NULL);
    assert(secret->bytes_len <= PAWLI_SECRET_BYTES_MAX);

    const char *prefix = secret->kind == PAWLI_SECRET_HMAC ? HMAC_PREFIX : PRIVATE_PREFIX;
    (void)pawli_text_copy(text, PAWLI_SECRET_TEXT_MAX, prefix); /* fits */
    pawli_base64_encode(secret->bytes, secret->bytes_len, text + strlen(prefix));
    return text;
}

pawl_code pawli_secret_public(const struct pawli_secret *secret, char text[PAWLI_SECRET_TEXT_MAX],
                              pawl_err *err)
{
    assert(secret != NULL && text != NULL);

    if (secret->kind != PAWLI_SECRET_ED25519)
        return pawli_fail(err, PAWL_INVALID,
                          "secret: a whsec_ secret has no public key; allowed: whsk_ secrets");
    uint8_t public_key[PAWLI_ED25519_KEY_BYTES];
    if (!derive_public(secret->bytes, public_key))
        return crypto_failed(err);
    (void)pawli_text_copy(text, PAWLI_SECRET_TEXT_MAX, PUBLIC_PREFIX); /* fits */
    pawli_base64_encode(public_key, sizeof(public_key), text + strlen(PUBLIC_PREFIX));
    return PAWL_OK;
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * sign.c - signatures of deliveries: Standard Webhooks' v1 and v1a.
 * Owns:  what is signed, and how signatures are written; the keys in libcrypto's hands.
 * Never: keeps a secret of its own (libcrypto wipes what it holds when it is freed); tells a
 *        signature to anybody but its caller; reads a clock.
 */
#include "webhook/sign.h"

#include "base/base64.h"
#include "base/error.h"
#include "base/text.h"

#include <assert.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#define HMAC_BYTES    32
#define ED25519_BYTES 64
/* id, full stop, 19 digits, full stop, NUL */
#define HEAD_SIZE (PAWLI_WEBHOOK_ID_MAX + 22)

_Static_assert(PAWLI_SIGNATURE_MAX == 4 + PAWLI_BASE64_LEN(ED25519_BYTES), "v1a, and base64");
_Static_assert(PAWLI_SIGNATURES_SIZE == PAWLI_SECRETS_MAX * (PAWLI_SIGNATURE_MAX + 1),
               "each with a blank or the NUL behind it");

/* One of the two. */
struct key {
    EVP_MAC_CTX *mac;   /* keyed once; each message begins it anew */
    EVP_PKEY *pair;     /* Ed25519 */
    EVP_MD_CTX *digest; /* for `pair` */
};

struct pawli_signer {
    size_t keys_count;
    struct key keys[PAWLI_SECRETS_MAX];
};

static pawl_code crypto_failed(pawl_err *err, const char *what)
{
    return pawli_fail(err, PAWL_DOWN, "libcrypto failed, or has no memory: %s", what);
}

static pawl_code load_hmac(const struct pawli_secret *secret, struct key *key, pawl_err *err)
{
    char digest[] = "SHA256";
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_end(),
    };
    EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    key->mac = mac != NULL ? EVP_MAC_CTX_new(mac) : NULL;
    EVP_MAC_free(mac); /* the context holds it */
    if (key->mac == NULL || EVP_MAC_init(key->mac, secret->bytes, secret->bytes_len, params) != 1)
        return crypto_failed(err, "HMAC-SHA256");
    return PAWL_OK;
}

static pawl_code load_ed25519(const struct pawli_secret *secret, struct key *key, pawl_err *err)
{
    key->pair = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, secret->bytes,
                                             secret->bytes_len);
    key->digest = EVP_MD_CTX_new();
    return key->pair != NULL && key->digest != NULL ? PAWL_OK : crypto_failed(err, "Ed25519");
}

pawl_code pawli_signer_new(const struct pawli_secret *secrets, size_t secrets_count,
                           struct pawli_signer **ret_signer, pawl_err *err)
{
    assert(secrets != NULL || secrets_count == 0);
    assert(ret_signer != NULL);

    if (secrets_count < 1 || secrets_count > PAWLI_SECRETS_MAX)
        return pawli_fail(err, PAWL_INVALID, "secrets: %zu of them; allowed: 1 to %d",
                          secrets_count, PAWLI_SECRETS_MAX);
    struct pawli_signer *signer = calloc(1, sizeof(*signer));
    if (signer == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    for (size_t i = 0; i < secrets_count; i++) {
        struct key *key = &signer->keys[signer->keys_count++];
        pawl_code rc = secrets[i].kind == PAWLI_SECRET_HMAC ? load_hmac(&secrets[i], key, err)
                                                            : load_ed25519(&secrets[i], key, err);
        if (rc != PAWL_OK) {
            pawli_signer_free(signer);
            return rc;
        }
    }
    *ret_signer = signer;
    return PAWL_OK;
}

void pawli_signer_free(struct pawli_signer *signer)
{
    if (signer == NULL)
        return;
    for (size_t i = 0; i < signer->keys_count; i++) {
        EVP_MAC_CTX_free(signer->keys[i].mac);
        EVP_PKEY_free(signer->keys[i].pair);
        EVP_MD_CTX_free(signer->keys[i].digest);
    }
    free(signer);
}

static bool sign_hmac(struct key *key, const char *head, const struct pawli_sign_args *args,
                      uint8_t bytes[HMAC_BYTES])
{
    size_t len = 0;
    return EVP_MAC_init(key->mac, NULL, 0, NULL) == 1 && /* under the key that it has */
           EVP_MAC_update(key->mac, (const uint8_t *)head, strlen(head)) == 1 &&
           (args->body_len == 0 || EVP_MAC_update(key->mac, args->body, args->body_len) == 1) &&
           EVP_MAC_final(key->mac, bytes, &len, HMAC_BYTES) == 1 && len == HMAC_BYTES;
}

static bool sign_ed25519(struct key *key, const uint8_t *message, size_t message_len,
                         uint8_t bytes[ED25519_BYTES])
{
    size_t len = ED25519_BYTES;
    return EVP_MD_CTX_reset(key->digest) == 1 &&
           EVP_DigestSignInit(key->digest, NULL, NULL, NULL, key->pair) == 1 &&
           EVP_DigestSign(key->digest, bytes, &len, message, message_len) == 1 &&
           len == ED25519_BYTES;
}

static bool is_id_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
}

static pawl_code check_args(const struct pawli_sign_args *args, pawl_err *err)
{
    if (args->id == NULL)
        return pawli_fail(err, PAWL_INVALID, "webhook-id is missing (NULL)");
    size_t id_len = pawli_text_length(args->id, PAWLI_WEBHOOK_ID_MAX);
    if (id_len < 1 || id_len > PAWLI_WEBHOOK_ID_MAX)
        return pawli_fail(err, PAWL_INVALID, "webhook-id: %s; allowed: 1 to %d bytes",
                          id_len < 1 ? "empty" : "too long", PAWLI_WEBHOOK_ID_MAX);
    for (size_t i = 0; i < id_len; i++)
        if (!is_id_letter(args->id[i]))
            return pawli_fail(err, PAWL_INVALID,
                              "webhook-id: byte %zu is not allowed; allowed: letters, digits, _ "
                              "and -",
                              i + 1);
    if (args->timestamp_s < 0)
        return pawli_fail(err, PAWL_INVALID,
                          "webhook-timestamp: %lld; allowed: seconds since 1970, from 0",
                          (long long)args->timestamp_s);
    return PAWL_OK;
}

/* Ed25519 signs in one go: head and body in one block, where there is such a key. */
static pawl_code join(const struct pawli_signer *signer, const char *head,
                      const struct pawli_sign_args *args, uint8_t **ret_message, size_t *ret_len)
{
    bool is_needed = false;
    for (size_t i = 0; i < signer->keys_count; i++)
        is_needed = is_needed || signer->keys[i].pair != NULL;
    *ret_message = NULL;
    *ret_len = 0;
    if (!is_needed)
        return PAWL_OK;
    size_t head_len = strlen(head);
    uint8_t *message = malloc(head_len + args->body_len);
    if (message == NULL)
        return PAWL_NO_MEMORY;
    memcpy(message, head, head_len);
    if (args->body_len > 0)
        memcpy(message + head_len, args->body, args->body_len);
    *ret_message = message;
    *ret_len = head_len + args->body_len;
    return PAWL_OK;
}

pawl_code pawli_sign(struct pawli_signer *signer, const struct pawli_sign_args *args,
                     char ret_header[PAWLI_SIGNATURES_SIZE], pawl_err *err)
{
    assert(signer != NULL && args != NULL && ret_header != NULL);
    assert(args->body != NULL || args->body_len == 0);

    pawl_code rc = check_args(args, err);
    if (rc != PAWL_OK)
        return rc;
    char head[HEAD_SIZE];
    (void)snprintf(head, sizeof(head), "%s.%lld.", args->id, (long long)args->timestamp_s);
    uint8_t *message;
    size_t message_len;
    if (join(signer, head, args, &message, &message_len) != PAWL_OK)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);

    char header[PAWLI_SIGNATURES_SIZE];
    size_t at = 0;
    for (size_t i = 0; i < signer->keys_count && rc == PAWL_OK; i++) {
        struct key *key = &signer->keys[i];
        uint8_t bytes[ED25519_BYTES];
        bool is_hmac = key->mac != NULL;
        if (is_hmac ? !sign_hmac(key, head, args, bytes)
                    : !sign_ed25519(key, message, message_len, bytes)) {
            rc = crypto_failed(err, is_hmac ? "HMAC-SHA256" : "Ed25519");
            break;
        }
        const char *scheme = is_hmac ? "v1," : "v1a,";
        if (i > 0)
            header[at++] = ' ';
        (void)pawli_text_copy(header + at, sizeof(header) - at, scheme); /* fits */
        at += strlen(scheme);
        pawli_base64_encode(bytes, is_hmac ? HMAC_BYTES : ED25519_BYTES, header + at);
        at += strlen(header + at);
    }
    free(message);
    if (rc == PAWL_OK)
        memcpy(ret_header, header, at + 1);
    return rc;
}

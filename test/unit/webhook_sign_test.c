/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * webhook_sign_test.c - proves webhook/sign.c against the public vectors of Standard Webhooks, and
 * by verifying what it signs.
 * Owns:  nothing.
 * Never: trusts a signature because it was made twice.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/base64.h"
#include "base/random.h"
#include "support/alloc_fail.h"
#include "webhook/sign.h"

#include <openssl/evp.h>

/* The specification's public vector, and the one of its library for Ed25519. */
#define VECTOR_ID    "msg_p5jXN8AQM9LWM0D4loKWxJek"
#define VECTOR_TIME  1614265330
#define VECTOR_BODY  "{\"test\": 2432232314}"
#define HMAC_SECRET  "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
#define HMAC_VECTOR  "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
#define EDDSA_SECRET "whsk_VEVTVFNJR05JTkdLRVlET05PVFVTRVRISVNGT1JBTlk="
#define EDDSA_VECTOR                               \
    "v1a,tQ9V2XOqn7jL/DQenEFpqIugdBVtiMmER5mhSkXB" \
    "NwM0mkATuDe6KYYUuxqtaiHeYGb7KaaBRdM5WqyeFiL8Ag=="
#define OTHER_SECRET "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

static const struct pawli_sign_args vector = {
    .id = VECTOR_ID,
    .timestamp_s = VECTOR_TIME,
    .body = VECTOR_BODY,
    .body_len = sizeof(VECTOR_BODY) - 1,
};

static struct pawli_signer *signer_of(const char *const *texts, size_t count)
{
    struct pawli_secret secrets[PAWLI_SECRETS_MAX];
    struct pawli_signer *signer = NULL;
    for (size_t i = 0; i < count; i++)
        assert_int_equal(pawli_secret_parse(texts[i], &secrets[i], NULL), PAWL_OK);
    assert_int_equal(pawli_signer_new(secrets, count, &signer, NULL), PAWL_OK);
    /* They are not needed any more. */
    for (size_t i = 0; i < count; i++)
        pawli_secret_wipe(&secrets[i]);
    return signer;
}

static struct pawli_signer *signer_of_one(const char *text)
{
    return signer_of(&text, 1);
}

static void the_public_vectors_hold(void **state)
{
    (void)state;
    static const char *const rows[][2] = {{HMAC_SECRET, HMAC_VECTOR}, {EDDSA_SECRET, EDDSA_VECTOR}};
    for (size_t i = 0; i < 2; i++) {
        struct pawli_signer *signer = signer_of_one(rows[i][0]);
        char header[PAWLI_SIGNATURES_SIZE];
        /* Twice: the context is used again. */
        for (int k = 0; k < 2; k++) {
            memset(header, '?', sizeof(header));
            assert_int_equal(pawli_sign(signer, &vector, header, NULL), PAWL_OK);
            assert_string_equal(header, rows[i][1]);
        }
        pawli_signer_free(signer);
    }
}

static void each_secret_signs_while_they_are_rotated(void **state)
{
    (void)state;
    const char *const texts[] = {HMAC_SECRET, EDDSA_SECRET, OTHER_SECRET, HMAC_SECRET};
    struct pawli_signer *other = signer_of_one(OTHER_SECRET);
    char alone[PAWLI_SIGNATURES_SIZE];
    assert_int_equal(pawli_sign(other, &vector, alone, NULL), PAWL_OK);
    pawli_signer_free(other);

    struct pawli_signer *signer = signer_of(texts, 4);
    char header[PAWLI_SIGNATURES_SIZE];
    char expected[2 * PAWLI_SIGNATURES_SIZE];
    assert_int_equal(pawli_sign(signer, &vector, header, NULL), PAWL_OK);
    (void)snprintf(expected, sizeof(expected), "%s %s %s %s", HMAC_VECTOR, EDDSA_VECTOR, alone,
                   HMAC_VECTOR);
    assert_string_equal(header, expected);
    pawli_signer_free(signer);
    pawli_signer_free(NULL);
}

static void the_longest_header_fits(void **state)
{
    (void)state;
    const char *const texts[] = {EDDSA_SECRET, EDDSA_SECRET, EDDSA_SECRET, EDDSA_SECRET};
    struct pawli_signer *signer = signer_of(texts, PAWLI_SECRETS_MAX);
    char id[PAWLI_WEBHOOK_ID_MAX + 1];
    memset(id, 'x', sizeof(id) - 1);
    id[sizeof(id) - 1] = '\0';
    struct pawli_sign_args args = {.id = id, .timestamp_s = INT64_MAX};
    char header[PAWLI_SIGNATURES_SIZE];
    assert_int_equal(pawli_sign(signer, &args, header, NULL), PAWL_OK);
    assert_int_equal(strlen(header), PAWLI_SIGNATURES_SIZE - 1);
    pawli_signer_free(signer);
}

/* Ed25519 by somebody else's hand: what verifies is exactly id.timestamp.body. */
static bool verifies(const char *secret_text, const char *message, size_t message_len,
                     const char *signature)
{
    struct pawli_secret secret;
    char public_text[PAWLI_SECRET_TEXT_MAX];
    uint8_t public_key[PAWLI_ED25519_KEY_BYTES];
    uint8_t bytes[64];
    size_t len;
    assert_int_equal(pawli_secret_parse(secret_text, &secret, NULL), PAWL_OK);
    assert_int_equal(pawli_secret_public(&secret, public_text, NULL), PAWL_OK);
    assert_true(pawli_base64_decode(public_text + 5, strlen(public_text) - 5, public_key,
                                    sizeof(public_key), &len));
    assert_int_equal(strncmp(signature, "v1a,", 4), 0);
    assert_true(pawli_base64_decode(signature + 4, strlen(signature) - 4, bytes, 64, &len));
    EVP_PKEY *key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, public_key, 32);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    assert_int_equal(EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, key), 1);
    bool is_good = EVP_DigestVerify(ctx, bytes, len, (const uint8_t *)message, message_len) == 1;
    EVP_MD_CTX_free(ctx);
    EVP_PKEY_free(key);
    return is_good;
}

static void id_time_and_every_byte_of_the_body_are_signed(void **state)
{
    (void)state;
    static const char body[] = "a\0b\xff.";
    struct pawli_sign_args args = {.id = "id-1_", .timestamp_s = 0, .body = body, .body_len = 5};
    struct pawli_signer *signer = signer_of_one(EDDSA_SECRET);
    struct pawli_signer *hmac = signer_of_one(HMAC_SECRET);
    char header[PAWLI_SIGNATURES_SIZE];
    char first[PAWLI_SIGNATURES_SIZE];
    assert_int_equal(pawli_sign(signer, &args, header, NULL), PAWL_OK);
    assert_true(verifies(EDDSA_SECRET, "id-1_.0.a\0b\xff.", 13, header));
    assert_false(verifies(EDDSA_SECRET, "id-1_.0.a\0b\xff", 12, header));
    assert_int_equal(pawli_sign(hmac, &args, first, NULL), PAWL_OK);

    struct pawli_sign_args others[5];
    for (size_t i = 0; i < 5; i++)
        others[i] = args;
    others[0].id = "id-1-";
    others[1].timestamp_s = 1;
    others[2].body_len = 4;
    others[3].body = "a\0c\xff.";
    others[4].body_len = 0;
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(pawli_sign(hmac, &others[i], header, NULL), PAWL_OK);
        assert_string_not_equal(header, first);
    }
    pawli_signer_free(signer);
    pawli_signer_free(hmac);
}

static void what_cannot_be_signed_is_refused_by_name(void **state)
{
    (void)state;
    char too_long[PAWLI_WEBHOOK_ID_MAX + 2];
    memset(too_long, 'x', sizeof(too_long) - 1);
    too_long[sizeof(too_long) - 1] = '\0';
    const struct {
        const char *id;
        int64_t timestamp_s;
        const char *named;
    } rows[] = {
        {NULL, 1, "webhook-id is missing"},
        {"", 1, "webhook-id: empty; allowed: 1 to 64 bytes"},
        {too_long, 1, "webhook-id: too long; allowed: 1 to 64 bytes"},
        {"a.1", 1, "webhook-id: byte 2 is not allowed; allowed: letters"},
        {"a b", 1, "webhook-id: byte 2"},
        {"a\r\nx: y", 1, "webhook-id: byte 2"},
        {"\xc3\xa4", 1, "webhook-id: byte 1"},
        {"a", -1, "webhook-timestamp: -1; allowed: seconds since 1970"},
    };
    struct pawli_signer *signer = signer_of_one(HMAC_SECRET);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct pawli_sign_args args = {.id = rows[i].id, .timestamp_s = rows[i].timestamp_s};
        char header[PAWLI_SIGNATURES_SIZE] = "as it was";
        pawl_err err;
        assert_int_equal(pawli_sign(signer, &args, header, &err), PAWL_INVALID);
        if (strstr(err.text, rows[i].named) == NULL)
            fail_msg("\"%s\" must say \"%s\"", err.text, rows[i].named);
        assert_string_equal(header, "as it was");
    }
    pawli_signer_free(signer);

    struct pawli_secret secrets[PAWLI_SECRETS_MAX + 1] = {{.bytes_len = 24}};
    struct pawli_signer *none = NULL;
    pawl_err err;
    assert_int_equal(pawli_signer_new(secrets, 0, &none, &err), PAWL_INVALID);
    assert_string_equal(err.text, "secrets: 0 of them; allowed: 1 to 4");
    assert_int_equal(pawli_signer_new(secrets, PAWLI_SECRETS_MAX + 1, &none, &err), PAWL_INVALID);
    assert_null(none);
}

static void running_out_of_memory_is_told(void **state)
{
    (void)state;
    struct pawli_secret secret;
    struct pawli_seeded seeded = {5};
    pawl_random random = pawli_seeded_as_random(&seeded);
    pawli_secret_generate(PAWLI_SECRET_ED25519, &random, &secret);
    struct pawli_signer *signer = NULL;
    alloc_fail_nth(1);
    pawl_code rc = pawli_signer_new(&secret, 1, &signer, NULL);
    assert_true(alloc_fail_end());
    assert_int_equal(rc, PAWL_NO_MEMORY);
    assert_null(signer);

    assert_int_equal(pawli_signer_new(&secret, 1, &signer, NULL), PAWL_OK);
    char header[PAWLI_SIGNATURES_SIZE] = "as it was";
    alloc_fail_nth(1);
    rc = pawli_sign(signer, &vector, header, NULL);
    assert_true(alloc_fail_end());
    assert_int_equal(rc, PAWL_NO_MEMORY);
    assert_string_equal(header, "as it was");
    pawli_signer_free(signer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_public_vectors_hold),
        cmocka_unit_test(each_secret_signs_while_they_are_rotated),
        cmocka_unit_test(the_longest_header_fits),
        cmocka_unit_test(id_time_and_every_byte_of_the_body_are_signed),
        cmocka_unit_test(what_cannot_be_signed_is_refused_by_name),
        cmocka_unit_test(running_out_of_memory_is_told),
    };
    return cmocka_run_group_tests_name("webhook_sign", tests, NULL, NULL);
}

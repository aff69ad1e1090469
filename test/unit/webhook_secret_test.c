/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * webhook_secret_test.c - proves webhook/secret.c: secrets are made from the source handed in, read
 * strictly, told by one function only, and wiped (NFR-003).
 * Owns:  the fixed corpus on which every compiler runs the fuzz target; a look at what is wiped.
 * Never: holds a secret that anybody uses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/base64.h"
#include "base/random.h"
#include "fuzz/secret_fuzz.h"
#include "webhook/secret.h"

/* ---- what was wiped: the linker sends each call of explicit_bzero() here */

static size_t wiped_bytes;

void __wrap_explicit_bzero(void *bytes, size_t bytes_len);

void __wrap_explicit_bzero(void *bytes, size_t bytes_len)
{
    memset(bytes, 0, bytes_len);
    __asm__ volatile("" : : "r"(bytes) : "memory"); /* not left out */
    wiped_bytes += bytes_len;
}

/* ---- texts */

#define A32 "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

#define SPEC_SECRET "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
/* RFC 8032, 7.1, test 1. */
#define RFC_PRIVATE "whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A="
#define RFC_PUBLIC  "whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
#define RFC_BOTH                                       \
    "whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2D" \
    "XWpgBgrEKt9VL/tPJZAc6DuFy89qmIyWvAhpo9wdRGg=="

static const struct {
    const char *text;
    const char *named; /* what the error must say; NULL: it is good */
} texts[] = {
    {SPEC_SECRET, NULL},
    {"whsec_" A32 "AAA=", NULL},                         /* 26 bytes */
    {"whsec_" A32 "AA==", NULL},                         /* 25 */
    {"whsec_" A32 A32 "AAAAAAAAAAAAAAAAAAAAAA==", NULL}, /* 64 */
    {RFC_PRIVATE, NULL},
    {RFC_BOTH, NULL},
    {"", "no known prefix"},
    {"whsec_", "0 bytes; allowed: 24 to 64"},
    {"whsec", "no known prefix"},
    {"WHSEC_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "no known prefix"},
    {" whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "no known prefix"},
    {"MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "no known prefix"},
    {"whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "23 bytes; allowed: 24 to 64"},
    {"whsec_" A32 A32 "AAAAAAAAAAAAAAAAAAAAAAA=", "too long"}, /* 65 */
    {"whsec_" A32 A32 "AAAAAAAAAAAAAAAAAAAAAAAAAAAA", "too long"},
    {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS", "not base64"},
    {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS-", "not base64"},
    {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n", "not base64"},
    {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZI o2LaLaSw", "not base64"},
    {"whsec_" A32 "AAB=", "not base64"}, /* bits behind the last byte */
    {RFC_PUBLIC, "public key"},
    {"whsk_", "0 bytes; allowed: 32"},
    {"whsk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "24 bytes; allowed: 32"},
    {"whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2AA", "33 bytes; allowed: 32"},
    {"whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2D"
     "XWpgBgrEKt9VL/tPJZAc6DuFy89qmIyWvAhpo9wdRGw==",
     "not the public key"},
};

static void only_the_forms_of_the_specification_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        pawl_err err = {.code = PAWL_OK, .text = ""};
        assert_int_equal(secret_fuzz_one(texts[i].text), texts[i].named == NULL);
        struct pawli_secret secret;
        pawl_code rc = pawli_secret_parse(texts[i].text, &secret, &err);
        assert_int_equal(rc, texts[i].named == NULL ? PAWL_OK : PAWL_INVALID);
        if (texts[i].named != NULL && strstr(err.text, texts[i].named) == NULL)
            fail_msg("\"%s\" must say \"%s\"", err.text, texts[i].named);
        if (texts[i].named != NULL)
            assert_non_null(strstr(err.text, "allowed: "));
    }
    struct pawli_secret secret;
    pawl_err err;
    assert_int_equal(pawli_secret_parse(NULL, &secret, &err), PAWL_INVALID);
    assert_string_equal(err.text, "secret is missing (NULL)");
    assert_int_equal(pawli_secret_parse(SPEC_SECRET, NULL, &err), PAWL_INVALID);
    assert_string_equal(err.text, "ret_secret is missing (NULL)");
}

static void public_keys_are_told(void **state)
{
    (void)state;
    const char *const both[] = {RFC_PRIVATE, RFC_BOTH};
    for (size_t i = 0; i < 2; i++) {
        struct pawli_secret secret;
        char text[PAWLI_SECRET_TEXT_MAX];
        assert_int_equal(pawli_secret_parse(both[i], &secret, NULL), PAWL_OK);
        assert_int_equal(pawli_secret_public(&secret, text, NULL), PAWL_OK);
        assert_string_equal(text, RFC_PUBLIC);
        assert_string_equal(pawli_secret_reveal(&secret, text), RFC_PRIVATE);
    }
    struct pawli_secret hmac;
    char text[PAWLI_SECRET_TEXT_MAX] = "as it was";
    pawl_err err;
    assert_int_equal(pawli_secret_parse(SPEC_SECRET, &hmac, NULL), PAWL_OK);
    assert_int_equal(pawli_secret_public(&hmac, text, &err), PAWL_INVALID);
    assert_string_equal(text, "as it was");
    assert_non_null(strstr(err.text, "no public key"));
}

static void secrets_are_made_from_the_source_handed_in(void **state)
{
    (void)state;
    for (int kind = PAWLI_SECRET_HMAC; kind <= PAWLI_SECRET_ED25519; kind++) {
        struct pawli_seeded seeded = {7};
        struct pawli_seeded same = {7};
        pawl_random random = pawli_seeded_as_random(&seeded);
        pawl_random again = pawli_seeded_as_random(&same);
        uint8_t expected[32];
        pawli_random_fill(&again, expected, sizeof(expected));
        struct pawli_secret secret;
        struct pawli_secret other;
        pawli_secret_generate((enum pawli_secret_kind)kind, &random, &secret);
        assert_int_equal(secret.kind, kind);
        assert_int_equal(secret.bytes_len, 32);
        assert_memory_equal(secret.bytes, expected, sizeof(expected));
        pawli_secret_generate((enum pawli_secret_kind)kind, &random, &other);
        assert_memory_not_equal(secret.bytes, other.bytes, 32);
        char text[PAWLI_SECRET_TEXT_MAX];
        assert_true(secret_fuzz_one(pawli_secret_reveal(&secret, text)));
        assert_int_equal(strncmp(text, kind == PAWLI_SECRET_HMAC ? "whsec_" : "whsk_", 5), 0);
    }
}

/* NFR-003: what was read is wiped where it is not handed out, and on the way. */
static void secrets_are_wiped(void **state)
{
    (void)state;
    struct pawli_secret secret;
    static const struct pawli_secret empty;
    static const char *const read[] = {SPEC_SECRET,
                                       RFC_PRIVATE,
                                       RFC_BOTH,
                                       "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
                                       "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS-",
                                       "whsk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"};
    for (size_t i = 0; i < sizeof(read) / sizeof(read[0]); i++) {
        wiped_bytes = 0;
        pawl_code rc = pawli_secret_parse(read[i], &secret, NULL);
        assert_int_equal(rc, i < 3 ? PAWL_OK : PAWL_INVALID);
        assert_true(wiped_bytes >= sizeof(secret));
    }
    assert_int_equal(pawli_secret_parse(RFC_BOTH, &secret, NULL), PAWL_OK);
    assert_memory_equal(secret.bytes + 32, empty.bytes, 32); /* the public half is gone */
    wiped_bytes = 0;
    pawli_secret_wipe(&secret);
    assert_memory_equal(&secret, &empty, sizeof(secret));
    assert_int_equal(wiped_bytes, sizeof(secret));
    pawli_secret_wipe(NULL);
}

static void the_property_holds_on_the_corpus(void **state)
{
    (void)state;
    struct pawli_seeded seeded = {20260303};
    pawl_random random = pawli_seeded_as_random(&seeded);
    size_t accepted = 0;
    for (int i = 0; i < 5000; i++) {
        uint8_t bytes[70];
        char text[6 + PAWLI_BASE64_LEN(sizeof(bytes)) + 1] = "whsec_";
        size_t len = (size_t)pawli_random_below(&random, sizeof(bytes) + 1);
        pawli_random_fill(&random, bytes, len);
        pawli_base64_encode(bytes, len, text + 6);
        if (pawli_random_below(&random, 8) == 0)
            text[pawli_random_below(&random, strlen(text))] = (char)pawli_random_below(&random,
                                                                                       256);
        assert_int_equal(LLVMFuzzerTestOneInput((const uint8_t *)text, strlen(text)), 0);
        accepted += secret_fuzz_one(text);
    }
    assert_in_range(accepted, 500, 4500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_forms_of_the_specification_are_read),
        cmocka_unit_test(public_keys_are_told),
        cmocka_unit_test(secrets_are_made_from_the_source_handed_in),
        cmocka_unit_test(secrets_are_wiped),
        cmocka_unit_test(the_property_holds_on_the_corpus),
    };
    return cmocka_run_group_tests_name("webhook_secret", tests, NULL, NULL);
}

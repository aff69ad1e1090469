/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * base_base64_test.c - proves base/base64.c: one text for all bytes, and no other is read.
 * Owns:  the fixed corpus on which every compiler runs the fuzz target.
 * Never: accepts a text because another program would.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/base64.h"
#include "base/random.h"
#include "fuzz/base64_fuzz.h"

/* The vectors of RFC 4648, and the letters that they leave out. */
static const struct {
    const char *bytes;
    const char *text;
} vectors[] = {
    {"", ""},
    {"f", "Zg=="},
    {"fo", "Zm8="},
    {"foo", "Zm9v"},
    {"foob", "Zm9vYg=="},
    {"fooba", "Zm9vYmE="},
    {"foobar", "Zm9vYmFy"},
    {"\xfb\xff\xbf", "+/+/"},
};

static void the_vectors_hold(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
        char text[16];
        uint8_t bytes[16];
        size_t len = 99;
        size_t expected = strlen(vectors[i].bytes);
        pawli_base64_encode((const uint8_t *)vectors[i].bytes, expected, text);
        assert_string_equal(text, vectors[i].text);
        assert_true(pawli_base64_decode(text, strlen(text), bytes, sizeof(bytes), &len));
        assert_int_equal(len, expected);
        assert_memory_equal(bytes, vectors[i].bytes, len);
    }
}

static void everything_else_is_refused(void **state)
{
    (void)state;
    static const char *const refused[] = {
        "Z",    "Zg",    "Zg=",   "Zm9v=", "Zg==Zg==", "=",      "==",       "====",    "Z===",
        "Zh==", "Zm9=",  "Zg= =", "Zm 8=", "Zm8=\n",   "Zm8-",   "Zm8_",     "Zm8.",    "Z=m8",
        "Zg==", "Zm9vY", "Zm=v",  "Zo==",  "Zn8\x80",  "Zm9,Zg", "Zm8=Zm9v", "\xefm9v",
    };
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        uint8_t bytes[16];
        size_t len = 99;
        size_t bytes_max = strcmp(refused[i], "Zg==") == 0 ? 0 : sizeof(bytes); /* no room */
        if (pawli_base64_decode(refused[i], strlen(refused[i]), bytes, bytes_max, &len))
            fail_msg("\"%s\" must be refused", refused[i]);
        assert_int_equal(len, 99);
    }
}

static void the_property_holds_on_the_corpus(void **state)
{
    (void)state;
    struct pawli_seeded seeded = {20260302};
    pawl_random random = pawli_seeded_as_random(&seeded);
    size_t accepted = 0;
    for (int i = 0; i < 20000; i++) {
        uint8_t bytes[48];
        char text[PAWLI_BASE64_LEN(sizeof(bytes)) + 1];
        size_t len = (size_t)pawli_random_below(&random, sizeof(bytes) + 1);
        pawli_random_fill(&random, bytes, len);
        assert_int_equal(LLVMFuzzerTestOneInput(bytes, len), 0);
        pawli_base64_encode(bytes, len, text);
        size_t at = (size_t)pawli_random_below(&random, strlen(text) + 1);
        static const char likely[] = "AQgwZz09+/=";
        text[at] = likely[pawli_random_below(&random, sizeof(likely))];
        accepted += base64_fuzz_one((const uint8_t *)text, PAWLI_BASE64_LEN(len));
    }
    assert_in_range(accepted, 2000, 18000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_vectors_hold),
        cmocka_unit_test(everything_else_is_refused),
        cmocka_unit_test(the_property_holds_on_the_corpus),
    };
    return cmocka_run_group_tests_name("webhook_base64", tests, NULL, NULL);
}

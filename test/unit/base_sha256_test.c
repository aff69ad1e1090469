/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * base_sha256_test.c - the hash against the vectors of its standard, and around its block's edges.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/sha256.h"

#include <stdio.h>
#include <string.h>

static void check(const void *bytes, size_t bytes_len, size_t part, const char *wanted)
{
    struct pawli_sha256 hash;
    uint8_t digest[PAWLI_SHA256_LEN];
    char text[2 * PAWLI_SHA256_LEN + 1];
    pawli_sha256_init(&hash);
    for (size_t at = 0; at < bytes_len; at += part) {
        size_t len = bytes_len - at < part ? bytes_len - at : part;
        pawli_sha256_add(&hash, (const uint8_t *)bytes + at, len);
    }
    pawli_sha256_end(&hash, digest);
    for (size_t i = 0; i < sizeof(digest); i++)
        (void)snprintf(text + 2 * i, 3, "%02x", digest[i]);
    assert_string_equal(text, wanted);
}

static void vectors(void **state)
{
    (void)state;
    static const char long_text[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    check("", 0, 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    check("abc", 3, 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    check(long_text, strlen(long_text), 7,
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

/* Lengths around the end of a block, as sha256sum(1) has them. */
static void edges(void **state)
{
    (void)state;
    static const struct {
        size_t len;
        const char *wanted;
    } rows[] = {
        {55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"},
        {56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"},
        {63, "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34"},
        {64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"},
        {65, "635361c48bb9eab14198e76ea8ab7f1a41685d6ad62aa9146d301d4f17eb0ae0"},
        {200, "c2a908d98f5df987ade41b5fce213067efbcc21ef2240212a41e54b5e7c28ae5"},
    };
    char bytes[200];
    memset(bytes, 'a', sizeof(bytes));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (size_t part = 1; part <= rows[i].len; part += 9)
            check(bytes, rows[i].len, part, rows[i].wanted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(vectors), cmocka_unit_test(edges)};
    return cmocka_run_group_tests_name("base_sha256", tests, NULL, NULL);
}

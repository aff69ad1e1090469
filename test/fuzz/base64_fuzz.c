/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * base64_fuzz.c - what must hold for every text that is read as base64, and for all bytes that are
 * written so. Run by libFuzzer, and by the unit suite over a fixed corpus.
 * Owns:  the property: whatever is written is read back; whatever is read is written back, letter
 *        for letter; nothing is touched outside of either.
 * Never: survives a violation: it aborts.
 */
#include "fuzz/base64_fuzz.h"

#include "base/base64.h"

#include <stdlib.h>
#include <string.h>

static void require(bool is_so)
{
    if (!is_so)
        abort();
}

/* Blocks of exactly their size: a sanitizer sees any touch outside. */
static void check_round(const uint8_t *bytes, size_t bytes_len)
{
    size_t text_len = PAWLI_BASE64_LEN(bytes_len);
    char *text = malloc(text_len + 1);
    uint8_t *again = malloc(bytes_len + (bytes_len == 0));
    require(text != NULL && again != NULL);
    pawli_base64_encode(bytes, bytes_len, text);
    require(strlen(text) == text_len);
    size_t again_len = bytes_len + 1;
    require(pawli_base64_decode(text, text_len, again, bytes_len, &again_len));
    require(again_len == bytes_len && memcmp(again, bytes, bytes_len) == 0);
    if (bytes_len > 0)
        require(!pawli_base64_decode(text, text_len, again, bytes_len - 1, &again_len));
    free(text);
    free(again);
}

bool base64_fuzz_one(const uint8_t *data, size_t size)
{
    size_t bytes_max = size / 4 * 3;
    uint8_t *bytes = malloc(bytes_max + (bytes_max == 0));
    char *text = malloc(PAWLI_BASE64_LEN(bytes_max) + 1);
    require(bytes != NULL && text != NULL);
    size_t len = 0;
    bool is_good = pawli_base64_decode((const char *)data, size, bytes, bytes_max, &len);
    if (is_good) {
        require(len <= bytes_max && PAWLI_BASE64_LEN(len) == size);
        pawli_base64_encode(bytes, len, text);
        require(memcmp(text, data, size) == 0);
    }
    free(bytes);
    free(text);
    return is_good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t nothing = 0;
    if (size == 0)
        data = &nothing;
    check_round(data, size);
    (void)base64_fuzz_one(data, size); /* both answers are right for some text */
    return 0;
}

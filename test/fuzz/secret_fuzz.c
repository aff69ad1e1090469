/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * secret_fuzz.c - what must hold for every text that is read as a secret. Run by libFuzzer, and by
 * the unit suite over a fixed corpus.
 * Owns:  the property: an accepted secret is revealed as it was written (but for the public half of
 *        a private key); a refused one leaves the result alone, gives its reason, and none of its
 *        own letters.
 * Never: survives a violation: it aborts.
 */
#include "fuzz/secret_fuzz.h"

#include "webhook/secret.h"

#include <stdlib.h>
#include <string.h>

#define TOLD_MAX 8 /* letters in a row that an error may share with a text by chance */

static void require(bool is_so)
{
    if (!is_so)
        abort();
}

static void check_accepted(const char *text, const struct pawli_secret *secret)
{
    char shown[PAWLI_SECRET_TEXT_MAX];
    require(pawli_secret_reveal(secret, shown) == shown);
    if (secret->kind == PAWLI_SECRET_HMAC) {
        require(secret->bytes_len >= PAWLI_SECRET_BYTES_MIN);
        require(secret->bytes_len <= PAWLI_SECRET_BYTES_MAX);
        require(strcmp(shown, text) == 0);
    } else {
        require(secret->bytes_len == PAWLI_ED25519_KEY_BYTES);
        require(strlen(text) != strlen(shown) || strcmp(shown, text) == 0);
    }
    struct pawli_secret again;
    require(pawli_secret_parse(shown, &again, NULL) == PAWL_OK);
    require(again.kind == secret->kind && again.bytes_len == secret->bytes_len);
    require(memcmp(again.bytes, secret->bytes, again.bytes_len) == 0);
}

/* No run of letters behind the prefix stands in the error. */
static void check_told(const char *text, const char *told)
{
    const char *rest = strchr(text, '_');
    if (rest == NULL)
        return;
    for (rest++; strlen(rest) >= TOLD_MAX; rest++) {
        char run[TOLD_MAX + 1] = {0};
        memcpy(run, rest, TOLD_MAX);
        require(strpbrk(run, " _:,;.()") != NULL || strstr(told, run) == NULL);
    }
}

bool secret_fuzz_one(const char *text)
{
    struct pawli_secret secret = {.bytes_len = 4242};
    pawl_err err = {.code = PAWL_OK, .text = ""};
    pawl_code rc = pawli_secret_parse(text, &secret, &err);
    if (rc == PAWL_OK) {
        require(err.code == PAWL_OK);
        check_accepted(text, &secret);
        return true;
    }
    require(rc == PAWL_INVALID && err.code == PAWL_INVALID);
    require(strncmp(err.text, "secret", 6) == 0);
    require(secret.bytes_len == 4242);
    check_told(text, err.text);
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A block of exactly its size: a sanitizer sees any read behind the NUL. */
    char *text = malloc(size + 1);
    if (text == NULL)
        return 0;
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    (void)secret_fuzz_one(text); /* both answers are right for some text */
    free(text);
    return 0;
}

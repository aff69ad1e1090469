/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * duration_fuzz.c - what must hold for every text that is parsed as a duration. Run by libFuzzer,
 * and by the unit suite over a fixed corpus.
 * Owns:  the property: an accepted text comes back through the printer as the same value; a refused
 *        one leaves the result alone and gives its reason; nothing is read beyond the NUL.
 * Never: survives a violation: it aborts.
 */
#include "fuzz/duration_fuzz.h"

#include "pawl/pawl.h"

#include <stdlib.h>
#include <string.h>

#define UNTOUCHED INT64_C(-4242)

static void require(bool is_so)
{
    if (!is_so)
        abort();
}

static void check_accepted(int64_t ms)
{
    require(ms > 0 && ms <= PAWL_DURATION_MAX_MS);
    char printed[PAWL_DURATION_TEXT_MAX];
    int64_t again_ms = UNTOUCHED;
    require(pawl_duration_format(ms, printed) == printed);
    require(pawl_duration_parse(printed, &again_ms, NULL) == PAWL_OK);
    require(again_ms == ms);
}

bool duration_fuzz_one(const char *text)
{
    int64_t ms = UNTOUCHED;
    pawl_err err = {.code = PAWL_OK, .text = ""};
    pawl_code rc = pawl_duration_parse(text, &ms, &err);
    if (rc == PAWL_OK) {
        require(err.code == PAWL_OK);
        check_accepted(ms);
        return true;
    }
    require(rc == PAWL_INVALID);
    require(err.code == PAWL_INVALID);
    require(memchr(err.text, '\0', sizeof(err.text)) != NULL);
    for (size_t i = 0; err.text[i] != '\0'; i++)
        require(err.text[i] >= ' ' && err.text[i] <= '~');
    require(err.text[0] != '\0');
    require(ms == UNTOUCHED);
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
    (void)duration_fuzz_one(text); /* both answers are right for some text */
    free(text);
    return 0;
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * retry_after_fuzz.c - what must hold for every value of Retry-After. Run by libFuzzer, and by the
 * unit suite over a fixed corpus.
 * Owns:  the property: the result is never below 0 nor above the bound; a smaller bound only cuts
 *        it; seconds do not depend on the clock, and of a date less is left the later it is; a
 *        refused value leaves the result alone.
 * Never: survives a violation: it aborts.
 */
#include "fuzz/retry_after_fuzz.h"

#include "webhook/retry_after.h"

#include <stdlib.h>
#include <string.h>

#define UNTOUCHED INT64_C(-4242)
#define NOW       ((pawl_wall){INT64_C(1772323200000000)}) /* 2026-03-01 */
#define LATER     ((pawl_wall){INT64_C(1772323260000000)}) /* a minute more */

static void require(bool is_so)
{
    if (!is_so)
        abort();
}

bool retry_after_fuzz_one(const char *value)
{
    int64_t whole_ms = UNTOUCHED;
    int64_t cut_ms = UNTOUCHED;
    int64_t later_ms = UNTOUCHED;
    bool is_good = pawli_retry_after_read(value, NOW, PAWL_DURATION_MAX_MS, &whole_ms);
    require(pawli_retry_after_read(value, NOW, 60000, &cut_ms) == is_good);
    require(pawli_retry_after_read(value, LATER, PAWL_DURATION_MAX_MS, &later_ms) == is_good);
    if (!is_good) {
        require(whole_ms == UNTOUCHED && cut_ms == UNTOUCHED && later_ms == UNTOUCHED);
        return false;
    }
    require(whole_ms >= 0 && whole_ms <= PAWL_DURATION_MAX_MS);
    require(cut_ms == (whole_ms < 60000 ? whole_ms : 60000));
    if (strchr(value, ':') == NULL || whole_ms == PAWL_DURATION_MAX_MS)
        require(later_ms <= whole_ms);
    else
        require(later_ms == (whole_ms > 60000 ? whole_ms - 60000 : 0));
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A block of exactly its size: a sanitizer sees any read behind the NUL. */
    char *value = malloc(size + 1);
    if (value == NULL)
        return 0;
    if (size > 0)
        memcpy(value, data, size);
    value[size] = '\0';
    (void)retry_after_fuzz_one(value); /* both answers are right for some value */
    free(value);
    return 0;
}

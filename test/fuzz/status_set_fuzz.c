/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * status_set_fuzz.c - what must hold for every text that is read as a set of statuses. Run by
 * libFuzzer, and by the unit suite over a fixed corpus.
 * Owns:  the property: an accepted set is printed in a form that is read as the same set; a refused
 *        one leaves the result alone and gives its reason.
 * Never: survives a violation: it aborts.
 */
#include "fuzz/status_set_fuzz.h"

#include "webhook/status_set.h"

#include <stdlib.h>
#include <string.h>

static void require(bool is_so)
{
    if (!is_so)
        abort();
}

bool status_set_fuzz_one(const char *text)
{
    struct pawli_status_set set = {{42, 42}};
    struct pawli_status_set again;
    pawl_err err = {.code = PAWL_OK, .text = ""};
    pawl_code rc = pawli_status_set_parse(text, &set, &err);
    if (rc != PAWL_OK) {
        require(rc == PAWL_INVALID && err.code == rc);
        require(strncmp(err.text, "fail_at_once", 12) == 0);
        require(set.bits[0] == 42 && set.bits[1] == 42);
        return false;
    }
    char shown[PAWLI_STATUS_SET_SIZE];
    char twice[PAWLI_STATUS_SET_SIZE];
    require(pawli_status_set_format(&set, shown) == shown);
    require(strlen(shown) < sizeof(shown));
    require(pawli_status_set_parse(shown, &again, NULL) == PAWL_OK);
    require(again.bits[0] == set.bits[0] && again.bits[1] == set.bits[1]);
    require(strcmp(pawli_status_set_format(&again, twice), shown) == 0);
    require(!pawli_status_set_has(&set, 399) && !pawli_status_set_has(&set, 500));
    return true;
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
    (void)status_set_fuzz_one(text); /* both answers are right for some text */
    free(text);
    return 0;
}

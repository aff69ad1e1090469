/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * check_fuzz.c - any bytes at all as a history, judged by the checker: it may find whatever it
 * likes, but it comes to an end.
 * Owns:  the entry point of the fuzzer.
 * Never: expects anything of the bytes.
 */
#include "sim/check.h"

#include <assert.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t bytes_len);

/* The first byte chooses how it is read; the header is given. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t bytes_len)
{
    static const char magic[16] = "pawl-history-1\n";
    if (bytes_len == 0)
        return 0;
    struct check_options options = {
        .is_exact = (bytes[0] & 1) != 0,
        .is_complete = (bytes[0] & 2) != 0,
        .must_drain = (bytes[0] & 4) != 0,
        .drift_ppm = 10000,
        .round_trip_ms = 10,
        .reaper_ms = 1000,
        .recover_ms = 1000,
        .calm_ms = 10,
    };
    size_t len = sizeof(magic) + bytes_len - 1;
    uint8_t *history = malloc(len);
    struct check_report *report = malloc(sizeof(*report));
    if (history == NULL || report == NULL)
        abort();
    memcpy(history, magic, sizeof(magic));
    memcpy(history + sizeof(magic), bytes + 1, bytes_len - 1);
    pawl_code code = check_history(history, len, &options, report, NULL);
    assert(code == PAWL_OK || code == PAWL_INVALID);
    (void)code; /* used by the assert only */
    free(history);
    free(report);
    return 0;
}

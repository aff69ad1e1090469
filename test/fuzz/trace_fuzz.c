/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * trace_fuzz.c - any bytes at all as a history: read to the end or to an error, and printed.
 * Owns:  the entry point of the fuzzer.
 * Never: expects anything of the bytes.
 */
#include "store/trace.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t bytes_len);

/* The header is given, so that no time is spent on finding it. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t bytes_len)
{
    static const char magic[16] = "pawl-history-1\n";
    FILE *out = fopen("/dev/null", "w");
    uint8_t *history = malloc(sizeof(magic) + bytes_len);
    if (out == NULL || history == NULL)
        abort();
    memcpy(history, magic, sizeof(magic));
    if (bytes_len > 0)
        memcpy(history + sizeof(magic), bytes, bytes_len);
    struct pawli_trace_reader *reader = NULL;
    pawl_code code = pawli_trace_reader_new(history, sizeof(magic) + bytes_len, &reader, NULL);
    assert(code == PAWL_OK);
    struct pawli_trace_record record;
    bool is_more = true;
    for (size_t reads = 0; code == PAWL_OK && is_more; reads++) {
        assert(reads <= bytes_len);
        code = pawli_trace_read(reader, &record, &is_more, NULL);
        if (code == PAWL_OK && is_more)
            pawli_trace_print(&record, out);
    }
    assert(code == PAWL_OK || code == PAWL_INVALID);
    pawli_trace_reader_free(reader);
    free(history);
    fclose(out);
    return 0;
}

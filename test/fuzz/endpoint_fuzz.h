/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * endpoint_fuzz.h - the fuzz target of endpoints and events, for the unit suite and for libFuzzer.
 */
#ifndef PAWLI_TEST_ENDPOINT_FUZZ_H
#define PAWLI_TEST_ENDPOINT_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* How far an input came. */
enum endpoint_fuzz_end {
    ENDPOINT_FUZZ_REFUSED, /* no endpoint was added */
    ENDPOINT_FUZZ_ADDED,   /* the event was refused, or is not for it */
    ENDPOINT_FUZZ_PUBLISHED,
};

/* The texts of one input. */
struct endpoint_fuzz_input {
    const char *name;
    const char *secret;
    const char *url;
    const char *topics;
    const char *headers; /* of the endpoint */
    const char *statuses;
    const char *type;
    const char *id; /* empty: none */
    const char *key;
    const char *event_headers;
};

/* Add, look and publish; abort where a property does not hold. */
enum endpoint_fuzz_end endpoint_fuzz_one(const struct endpoint_fuzz_input *input);

/* libFuzzer's entry: the texts in that order, with a NUL behind each but the last. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif

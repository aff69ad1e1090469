/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * headers_fuzz.h - the fuzz target of headers, for the unit suite and for libFuzzer.
 */
#ifndef PAWLI_TEST_HEADERS_FUZZ_H
#define PAWLI_TEST_HEADERS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Check a text as headers and abort where the property does not hold. True where it was accepted.
 */
bool headers_fuzz_one(const char *text);

/* libFuzzer's entry. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif

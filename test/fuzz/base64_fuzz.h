/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * base64_fuzz.h - the fuzz target of base64, for the unit suite and for libFuzzer.
 */
#ifndef PAWLI_TEST_BASE64_FUZZ_H
#define PAWLI_TEST_BASE64_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Read a text, and write its bytes, and abort where the property does not hold. True where the text
 * was accepted. */
bool base64_fuzz_one(const uint8_t *data, size_t size);

/* libFuzzer's entry. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * retry_after_fuzz.h - the fuzz target of Retry-After, for the unit suite and for libFuzzer.
 */
#ifndef PAWLI_TEST_RETRY_AFTER_FUZZ_H
#define PAWLI_TEST_RETRY_AFTER_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Read a value and abort where the property does not hold. True where it was accepted. */
bool retry_after_fuzz_one(const char *value);

/* libFuzzer's entry. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif

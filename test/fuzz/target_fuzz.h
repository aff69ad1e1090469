/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * target_fuzz.h - the fuzz target of URLs, for the unit suite and for libFuzzer.
 */
#ifndef PAWLI_TEST_TARGET_FUZZ_H
#define PAWLI_TEST_TARGET_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Check a URL and abort where the property does not hold. True where it was accepted. */
bool target_fuzz_one(const char *url);

/* libFuzzer's entry. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif

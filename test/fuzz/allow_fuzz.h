/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * allow_fuzz.h - the fuzz target of allow-lists, for the unit suite and for libFuzzer.
 */
#ifndef PAWLI_TEST_ALLOW_FUZZ_H
#define PAWLI_TEST_ALLOW_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Read an entry and abort where the property does not hold. True where it was accepted. */
bool allow_fuzz_one(const char *text);

/* libFuzzer's entry. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * duration_fuzz.h - the fuzz target of durations, for the unit suite and for libFuzzer.
 */
#ifndef PAWLI_TEST_DURATION_FUZZ_H
#define PAWLI_TEST_DURATION_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Parse a text and abort where the property does not hold. True where the text was accepted. */
bool duration_fuzz_one(const char *text);

/* libFuzzer's entry. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif

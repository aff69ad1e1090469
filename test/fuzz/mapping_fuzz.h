/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * mapping_fuzz.h - the fuzz target of mapping files, for the unit suite and for libFuzzer.
 */
#ifndef PAWLI_TEST_MAPPING_FUZZ_H
#define PAWLI_TEST_MAPPING_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Read a mapping and abort where the property does not hold. True where it was accepted. */
bool mapping_fuzz_one(const char *bytes, size_t bytes_len);

/* libFuzzer's entry. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif

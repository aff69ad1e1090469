/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * json_check_fuzz.h - the fuzz target of the JSON check, for the unit suite and for libFuzzer.
 */
#ifndef PAWLI_TEST_JSON_CHECK_FUZZ_H
#define PAWLI_TEST_JSON_CHECK_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Check bytes and abort where the property does not hold. True where they are JSON. */
bool json_check_fuzz_one(const uint8_t *data, size_t size);

/* libFuzzer's entry. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif

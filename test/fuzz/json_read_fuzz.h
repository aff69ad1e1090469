/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * json_read_fuzz.h - the fuzz target of the reader of JSON, for the unit suite and for libFuzzer.
 */
#ifndef PAWLI_TEST_JSON_READ_FUZZ_H
#define PAWLI_TEST_JSON_READ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Read bytes as a value and member by member, and abort where the two, or jansson, disagree. True:
 * it is JSON. */
bool json_read_fuzz_one(const void *bytes, size_t bytes_len);

/* libFuzzer's entry. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif

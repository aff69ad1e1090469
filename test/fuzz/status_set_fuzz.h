/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * status_set_fuzz.h - the fuzz target of sets of statuses, for the unit suite and for libFuzzer.
 */
#ifndef PAWLI_TEST_STATUS_SET_FUZZ_H
#define PAWLI_TEST_STATUS_SET_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Read a set and abort where the property does not hold. True where it was accepted. */
bool status_set_fuzz_one(const char *text);

/* libFuzzer's entry. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif

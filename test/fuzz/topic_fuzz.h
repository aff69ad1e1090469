/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * topic_fuzz.h - the fuzz target of event types, for the unit suite and for libFuzzer.
 */
#ifndef PAWLI_TEST_TOPIC_FUZZ_H
#define PAWLI_TEST_TOPIC_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Check a list of patterns and abort where the property does not hold. True where it was
 * accepted. */
bool topic_fuzz_one(const char *list);

/* libFuzzer's entry. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif

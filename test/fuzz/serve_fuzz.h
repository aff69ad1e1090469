/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * serve_fuzz.h - the fuzz target of requests, for the unit suite and for libFuzzer.
 */
#ifndef PAWLI_TEST_SERVE_FUZZ_H
#define PAWLI_TEST_SERVE_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Carry requests out, on a store of their own, and abort where an answer is not one. Each is a
 * line: a method, a blank, a target; then, up to the next NUL, a body. */
void serve_fuzz_one(const uint8_t *data, size_t size);

/* libFuzzer's entry. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif

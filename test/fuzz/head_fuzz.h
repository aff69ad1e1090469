/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * head_fuzz.h - what must hold for the head of every request.
 */
#ifndef PAWLI_TEST_HEAD_FUZZ_H
#define PAWLI_TEST_HEAD_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Look at a head, METHOD TARGET and a NAME:VALUE in each line, as the server does, and abort where
 * one goes on that must not. True: it goes on to its route. */
bool head_fuzz_one(const void *bytes, size_t bytes_len);

/* libFuzzer's entry. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * alloc_fail.h - makes one allocation fail, to prove that running out of memory leaks nothing and
 * leaves nothing half done. A program that depends on alloc_fail in test/meson.build (every unit
 * test does) has malloc, calloc and realloc replaced in its own objects and in the static library;
 * shared libraries, cmocka among them, keep the real ones. Usual form:
 *
 *     for (uint64_t nth = 1;; nth++) {
 *         ... bring the thing under test to a known state ...
 *         alloc_fail_nth(nth);
 *         pawl_code code = ...; // the call under test, and nothing else
 *         if (!alloc_fail_end())
 *             break; // it allocates less often than that: every one of them has failed once
 *         ... code is PAWL_NO_MEMORY, and the state is what it was ...
 *     }
 *
 * The count belongs to the calling thread: what other threads allocate is neither counted nor
 * failed.
 */
#ifndef PAWLI_TEST_ALLOC_FAIL_H
#define PAWLI_TEST_ALLOC_FAIL_H

#include <stdbool.h>
#include <stdint.h>

/* Let the nth allocation of this thread from now on return NULL (1: the next one), and no other. 0
 * lets all succeed. */
void alloc_fail_nth(uint64_t nth);

/* Let all allocations succeed again. True where the one that was to fail has come and failed. */
bool alloc_fail_end(void);

#endif

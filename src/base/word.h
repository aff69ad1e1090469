/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * word.h - words that threads wait on. Cheaper than a condition where no mutex is needed: whoever
 * is woken has none to get, and many are woken by one call of the system.
 */
#ifndef PAWLI_BASE_WORD_H
#define PAWLI_BASE_WORD_H

#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

/*
 * Wait while the word is `value`, at most until an instant of CLOCK_MONOTONIC (NULL: however long).
 * It may end for no reason: look at the word again.
 */
void pawli_word_wait(const _Atomic uint32_t *word, uint32_t value, const struct timespec *until);

/*
 * Wake threads that wait on a word, which was changed before: so many at most. They may have seen
 * the change already and be gone with the word: nothing is read or written there.
 */
void pawli_word_wake(const _Atomic uint32_t *word, int threads_max);

#endif

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * word.c - words that threads wait on.
 * Owns:  the two calls of the system for that.
 * Never: changes a word; says why a wait has ended.
 */
#include "base/word.h"

#include <assert.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

static_assert(sizeof(_Atomic uint32_t) == sizeof(uint32_t), "the kernel takes it for 32 bits");

void pawli_word_wait(const _Atomic uint32_t *word, uint32_t value, const struct timespec *until)
{
    assert(word != NULL);
    /* Of the two ways to wait this one takes an instant. It has ended when it was woken, when the
     * word is another, by a signal or by its time: in each case the caller looks again. */
    (void)syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value, until, NULL,
                  FUTEX_BITSET_MATCH_ANY);
}

void pawli_word_wake(const _Atomic uint32_t *word, int threads_max)
{
    assert(word != NULL);
    assert(threads_max > 0);
    /* Where the word is gone there is nobody to wake, and the kernel says so. */
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, threads_max, NULL, NULL, 0);
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * base_word_test.c - proves base/word.c: a wait ends when the word is another, when it is woken and
 * when its time is up.
 * Owns:  the threads that wait.
 * Never: sleeps: a thread that should wait on is one that has not counted itself.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/word.h"

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>

#define THREADS 4

static void a_word_that_is_another_is_not_waited_on(void **state)
{
    (void)state; /* none */
    _Atomic uint32_t word = 7;
    pawli_word_wait(&word, 6, NULL);
    assert_int_equal(atomic_load(&word), 7);
}

static void a_wait_ends_at_its_time(void **state)
{
    (void)state; /* none */
    const pawl_clock *clock = pawl_clock_system();
    _Atomic uint32_t word = 7;
    pawl_mono began = clock->mono(clock->user);
    struct timespec until = pawli_wait_until(20);
    /* It may end early; the whole time is over when it has not been asked for in vain. */
    while (pawli_mono_diff_ms(began, clock->mono(clock->user)) < 20)
        pawli_word_wait(&word, 7, &until);
    pawli_word_wait(&word, 7, &until); /* an instant that has passed */
    assert_int_equal(atomic_load(&word), 7);
}

struct waiter {
    _Atomic uint32_t *word;
    pthread_t thread;
};

static void *wait_for_change(void *user)
{
    const struct waiter *waiter = user;
    while (atomic_load(waiter->word) == 0)
        pawli_word_wait(waiter->word, 0, NULL);
    return NULL;
}

/* Without a wake none of them would come back: there is no time at which they look. */
static void all_who_wait_are_woken(void **state)
{
    (void)state; /* none */
    _Atomic uint32_t word = 0;
    struct waiter waiters[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        waiters[i] = (struct waiter){.word = &word};
        assert_int_equal(pthread_create(&waiters[i].thread, NULL, wait_for_change, &waiters[i]), 0);
    }
    pawli_word_wake(&word, INT_MAX); /* for no reason: they wait on */
    atomic_store(&word, 1);
    pawli_word_wake(&word, INT_MAX);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(waiters[i].thread, NULL), 0);
}

/* Whoever was told may be gone, and its word with it. */
static void a_word_that_is_gone_can_be_woken(void **state)
{
    (void)state; /* none */
    _Atomic uint32_t word = 0;
    struct waiter waiter = {.word = &word};
    assert_int_equal(pthread_create(&waiter.thread, NULL, wait_for_change, &waiter), 0);
    atomic_store(&word, 1);
    pawli_word_wake(&word, 1);
    assert_int_equal(pthread_join(waiter.thread, NULL), 0);
    pawli_word_wake(&word, 1);
    pawli_word_wake((const _Atomic uint32_t *)(uintptr_t)64, 1); /* never a place of ours */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_word_that_is_another_is_not_waited_on),
        cmocka_unit_test(a_wait_ends_at_its_time),
        cmocka_unit_test(all_who_wait_are_woken),
        cmocka_unit_test(a_word_that_is_gone_can_be_woken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

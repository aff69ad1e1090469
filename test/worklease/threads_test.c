/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * threads_test.c - many threads on the work leases of one memory store, each with a handle of its
 * own: they race to make the same domains, and drain them (WL-LOCK, WL-SINGLE, WL-FIFO). And a
 * million domains.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pawl/worklease.h"
#include "store/memory/memory.h"
#include "support/heap.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define THREADS 8
#define DOMAINS 50
#define OFFSETS 40

struct crew {
    pawl_memory *memory;
    pthread_barrier_t start;
    atomic_int acquired[DOMAINS][OFFSETS];
    atomic_int in_flight[DOMAINS];
    atomic_int next; /* numbers the threads */
    atomic_int trouble;
};

static void expect(struct crew *crew, bool is_true)
{
    if (!is_true)
        (void)atomic_fetch_add(&crew->trouble, 1);
}

/* Work on one offset that was acquired, and on whatever the hint names, until there is no more. */
static void drain(struct crew *crew, pawl_store *store, int domain,
                  const pawl_worklease_acquire *args, pawl_worklease_acquired got)
{
    pawl_worklease_acquire next = *args;
    for (;;) {
        expect(crew, atomic_fetch_add(&crew->in_flight[domain], 1) == 0); /* WL-SINGLE */
        (void)atomic_fetch_add(&crew->acquired[domain][next.offset], 1);
        (void)atomic_fetch_sub(&crew->in_flight[domain], 1);
        pawl_worklease_hold hold = {
            .domain = args->domain, .owner = args->owner, .token = got.token};
        pawl_worklease_ended ended;
        expect(crew, pawl_worklease_succeed(store, &hold, &ended, NULL) == PAWL_OK);
        if (ended.end == PAWL_END_NO_BACKLOG)
            return;
        next.offset = ended.next_offset;
        pawl_code rc = pawl_worklease_try_acquire(store, &next, &got, NULL);
        /* Another thread may have been quicker to follow the hint. */
        if (rc != PAWL_OK || got.got != PAWL_GOT_ACQUIRED) {
            expect(crew, rc == PAWL_OK || rc == PAWL_WL_ORDER);
            return;
        }
    }
}

static void *work(void *user)
{
    struct crew *crew = user;
    pawl_store *store = NULL;
    char owner[16];
    (void)snprintf(owner, sizeof(owner), "t%d", atomic_fetch_add(&crew->next, 1));
    expect(crew, pawl_memory_open(crew->memory, &store, NULL) == PAWL_OK);
    (void)pthread_barrier_wait(&crew->start); /* so that all of them race */
    for (int i = 0; i < DOMAINS * OFFSETS; i++) {
        char domain[16];
        (void)snprintf(domain, sizeof(domain), "d%d", i % DOMAINS);
        pawl_worklease_acquire args;
        pawl_worklease_acquired got;
        pawl_worklease_acquire_init(&args);
        args.domain = domain;
        args.offset = i / DOMAINS;
        args.owner = owner;
        pawl_code rc = pawl_worklease_try_acquire(store, &args, &got, NULL);
        expect(crew, rc == PAWL_OK || rc == PAWL_WL_ORDER);
        if (rc == PAWL_OK && got.got == PAWL_GOT_ACQUIRED)
            drain(crew, store, i % DOMAINS, &args, got);
    }
    pawl_store_close(store);
    return NULL;
}

static void threads_race_for_domains(void **state)
{
    (void)state;
    struct crew *crew = calloc(1, sizeof(*crew));
    pthread_t threads[THREADS];
    assert_non_null(crew);
    assert_int_equal(pawl_memory_new(NULL, &crew->memory, NULL), PAWL_OK);
    assert_int_equal(pthread_barrier_init(&crew->start, NULL, THREADS), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, crew), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(atomic_load(&crew->trouble), 0);

    /* What waits is the only thing that nobody has done; nothing was done twice. */
    pawl_store *store;
    assert_int_equal(pawl_memory_open(crew->memory, &store, NULL), PAWL_OK);
    pawl_worklease_info rows[DOMAINS + 1];
    size_t count;
    assert_int_equal(pawl_worklease_domains(store, NULL, rows, DOMAINS + 1, &count, NULL), PAWL_OK);
    assert_int_equal(count, DOMAINS);
    int64_t left = 0;
    for (size_t i = 0; i < count; i++) {
        assert_false(rows[i].is_leased);
        left += rows[i].backlog_count;
    }
    int64_t done = 0;
    for (int d = 0; d < DOMAINS; d++)
        for (int o = 0; o < OFFSETS; o++) {
            assert_true(atomic_load(&crew->acquired[d][o]) <= 1);
            done += atomic_load(&crew->acquired[d][o]);
        }
    assert_true(done + left <= DOMAINS * OFFSETS && done > DOMAINS);
    pawl_store_close(store);
    pawl_memory_free(crew->memory);
    (void)pthread_barrier_destroy(&crew->start); /* nobody waits */
    free(crew);
}

/* Nor do they wait for whatever else is done in the store: domains are many, and one lock for all
 * would make them one (WL-LOCK). */
static void calls_do_not_wait_for_the_store(void **state)
{
    (void)state;
    pawl_memory *memory;
    pawl_store *store;
    assert_int_equal(pawl_memory_new(NULL, &memory, NULL), PAWL_OK);
    assert_int_equal(pawl_memory_open(memory, &store, NULL), PAWL_OK);
    assert_int_equal(pthread_mutex_lock(&memory->mutex), 0); /* somebody claims jobs */
    (void)alarm(60);                                         /* a call that waits waits for ever */
    for (int64_t offset = 0; offset < 100; offset++) {
        pawl_worklease_acquire args;
        pawl_worklease_acquired got;
        pawl_worklease_ended ended;
        pawl_worklease_acquire_init(&args);
        args.domain = "d";
        args.offset = offset;
        assert_int_equal(pawl_worklease_try_acquire(store, &args, &got, NULL), PAWL_OK);
        pawl_worklease_hold hold = {.domain = "d", .token = got.token};
        assert_int_equal(pawl_worklease_succeed(store, &hold, &ended, NULL), PAWL_OK);
    }
    (void)alarm(0);
    assert_int_equal(pthread_mutex_unlock(&memory->mutex), 0);
    pawl_store_close(store);
    pawl_memory_free(memory);
}

/* ---------------------------------------------------------------- a million domains */

struct share {
    pawl_memory *memory;
    int first;
    int count;
    bool is_good;
};

static void *make_domains(void *user)
{
    struct share *share = user;
    pawl_store *store = NULL;
    share->is_good = pawl_memory_open(share->memory, &store, NULL) == PAWL_OK;
    for (int i = 0; share->is_good && i < share->count; i++) {
        char domain[24];
        pawl_worklease_acquire args;
        pawl_worklease_acquired got;
        pawl_worklease_ended ended;
        (void)snprintf(domain, sizeof(domain), "device/%d", share->first + i);
        pawl_worklease_acquire_init(&args);
        args.domain = domain;
        args.offset = i;
        share->is_good = pawl_worklease_try_acquire(store, &args, &got, NULL) == PAWL_OK &&
                         got.got == PAWL_GOT_ACQUIRED;
        pawl_worklease_hold hold = {.domain = domain, .token = got.token};
        share->is_good = share->is_good &&
                         pawl_worklease_succeed(store, &hold, &ended, NULL) == PAWL_OK;
    }
    pawl_store_close(store);
    return NULL;
}

static void million_domains_stay_below_400_mib(void **state) /* WL-LOCK, WL-MEMORY */
{
    (void)state;
    enum {
        MAKERS = 4
    };
    const int count = HEAP_IS_COUNTED ? 1000000 : 20000; /* sanitizers are slow */
    struct share shares[MAKERS];
    pthread_t threads[MAKERS];
    pawl_memory *memory;
    size_t heap_before = heap_bytes();
    assert_int_equal(pawl_memory_new(NULL, &memory, NULL), PAWL_OK);
    for (int i = 0; i < MAKERS; i++) {
        shares[i] = (struct share){memory, i * (count / MAKERS), count / MAKERS, false};
        assert_int_equal(pthread_create(&threads[i], NULL, make_domains, &shares[i]), 0);
    }
    for (int i = 0; i < MAKERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(shares[i].is_good);
    }
    assert_true(heap_bytes() - heap_before < (size_t)400 * 1024 * 1024);
    pawl_store *store;
    pawl_worklease_info info;
    assert_int_equal(pawl_memory_open(memory, &store, NULL), PAWL_OK);
    char last[24];
    (void)snprintf(last, sizeof(last), "device/%d", count - 1);
    assert_int_equal(pawl_worklease_get(store, last, &info, NULL), PAWL_OK);
    pawl_store_close(store);
    pawl_memory_free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_race_for_domains),
        cmocka_unit_test(calls_do_not_wait_for_the_store),
        cmocka_unit_test(million_domains_stay_below_400_mib),
    };
    return cmocka_run_group_tests_name("worklease_threads", tests, NULL, NULL);
}

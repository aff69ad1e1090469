/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * worklease_bench.c - what work leases cost in memory, and how they scale with domains: threads
 * that acquire and succeed one offset after the other, all in one domain, or each in domains of its
 * own. Told as ratios, measured in turns in one process, of which the best
 * counts. Usage: worklease-bench [OFFSETS]
 */
#include "pawl/worklease.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define OFFSETS_DEFAULT 200000
#define OFFSETS_MAX     100000000
#define THREADS_MAX     8
#define TURNS           3
#define NAME_MAX_BYTES  48

/* What a run does. */
struct plan {
    size_t threads;
    size_t domains;   /* of each thread; 0: one that all share */
    size_t offsets;   /* of each thread */
    size_t intervals; /* how many intervals of history each domain has before */
};

struct hand {
    const struct plan *plan;
    pawl_memory *memory;
    size_t number;
    bool is_good;
};

/* Acquire an offset and end it. */
static bool process(pawl_store *store, const char *domain, int64_t offset)
{
    pawl_worklease_acquire args;
    pawl_worklease_acquired got;
    pawl_worklease_ended ended;
    pawl_worklease_acquire_init(&args);
    args.domain = domain;
    args.offset = offset;
    if (pawl_worklease_try_acquire(store, &args, &got, NULL) != PAWL_OK ||
        got.got != PAWL_GOT_ACQUIRED)
        return false;
    pawl_worklease_hold hold = {.domain = domain, .token = got.token};
    return pawl_worklease_succeed(store, &hold, &ended, NULL) == PAWL_OK;
}

/* The same where others are at it: whoever has the lease follows the hints of all. */
static bool process_shared(pawl_store *store, const char *domain, size_t offset)
{
    pawl_worklease_acquire args;
    pawl_worklease_acquired got;
    pawl_worklease_ended ended;
    pawl_worklease_acquire_init(&args);
    args.domain = domain;
    args.offset = (int64_t)offset;
    for (;;) {
        pawl_worklease_info info;
        pawl_code rc = pawl_worklease_try_acquire(store, &args, &got, NULL);
        if (rc == PAWL_WL_ORDER) { /* another thread's waits before it */
            if (pawl_worklease_get(store, domain, &info, NULL) != PAWL_OK)
                return false;
            args.offset = info.backlog_count > 0 ? info.backlog_head : (int64_t)offset;
            continue;
        }
        if (rc != PAWL_OK || got.got != PAWL_GOT_ACQUIRED)
            return rc == PAWL_OK;
        pawl_worklease_hold hold = {.domain = domain, .token = got.token};
        if (pawl_worklease_succeed(store, &hold, &ended, NULL) != PAWL_OK)
            return false;
        if (ended.end == PAWL_END_NO_BACKLOG)
            return true;
        args.offset = ended.next_offset;
    }
}

static void name_domain(char name[NAME_MAX_BYTES], const struct hand *hand, size_t i)
{
    if (hand->plan->domains == 0)
        (void)snprintf(name, NAME_MAX_BYTES, "shared");
    else
        (void)snprintf(name, NAME_MAX_BYTES, "%zu/%zu", hand->number, i % hand->plan->domains);
}

static void *work(void *user)
{
    struct hand *hand = user;
    const struct plan *plan = hand->plan;
    pawl_store *store = NULL;
    char domain[NAME_MAX_BYTES];
    hand->is_good = pawl_memory_open(hand->memory, &store, NULL) == PAWL_OK;
    for (size_t i = 0; hand->is_good && i < plan->offsets; i++) {
        name_domain(domain, hand, i);
        hand->is_good = plan->domains == 0
                            ? process_shared(store, domain, hand->number + i * plan->threads)
                            : process(store, domain,
                                      (int64_t)(2 * plan->intervals + i / plan->domains));
    }
    pawl_store_close(store);
    return NULL;
}

/* Give each domain a history with gaps. */
static bool furnish(pawl_memory *memory, const struct plan *plan)
{
    pawl_store *store = NULL;
    bool is_good = pawl_memory_open(memory, &store, NULL) == PAWL_OK;
    for (size_t thread = 0; thread < plan->threads; thread++) {
        struct hand hand = {.plan = plan, .number = thread};
        for (size_t d = 0; d < plan->domains; d++) {
            char domain[NAME_MAX_BYTES];
            name_domain(domain, &hand, d);
            for (size_t i = 0; is_good && i < plan->intervals; i++)
                is_good = process(store, domain, (int64_t)(2 * i));
        }
    }
    pawl_store_close(store);
    return is_good;
}

/* Offsets in a millisecond, over all threads; 0 where something went wrong. */
static double run_once(const struct plan *plan)
{
    const pawl_clock *clock = pawl_clock_system();
    struct hand hands[THREADS_MAX];
    pthread_t threads[THREADS_MAX];
    pawl_memory *memory = NULL;
    if (pawl_memory_new(NULL, &memory, NULL) != PAWL_OK || !furnish(memory, plan))
        return 0;
    pawl_mono began = clock->mono(clock->user);
    size_t started = 0;
    for (; started < plan->threads; started++) {
        hands[started] = (struct hand){.plan = plan, .memory = memory, .number = started};
        if (pthread_create(&threads[started], NULL, work, &hands[started]) != 0)
            break;
    }
    bool is_good = started == plan->threads;
    for (size_t i = 0; i < started; i++) {
        (void)pthread_join(threads[i], NULL); /* it was started */
        is_good = is_good && hands[i].is_good;
    }
    double ms = (double)(clock->mono(clock->user).us - began.us) / 1000;
    pawl_memory_free(memory);
    return is_good && ms > 0 ? (double)(plan->threads * plan->offsets) / ms : 0;
}

static double run(const struct plan *plan)
{
    double best = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        double rate = run_once(plan);
        best = rate > best ? rate : best;
    }
    return best;
}

int main(int argc, char **argv)
{
    char *end = NULL;
    errno = 0;
    unsigned long long offsets = argc > 1 ? strtoull(argv[1], &end, 10) : OFFSETS_DEFAULT;
    if ((argc > 1 && (*end != '\0' || errno != 0)) || offsets < 1 || offsets > OFFSETS_MAX) {
        (void)fprintf(stderr, "usage: worklease-bench [OFFSETS from 1 to %d]\n", OFFSETS_MAX);
        return 64;
    }
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t threads = cores > THREADS_MAX ? THREADS_MAX : cores > 1 ? (size_t)cores : 1;
    size_t each = (size_t)offsets;
    struct plan alone = {.threads = 1, .domains = 1, .offsets = each};
    struct plan many = {.threads = 1, .domains = 10000, .offsets = each};
    struct plan history = {.threads = 1, .domains = 1, .offsets = each, .intervals = 100000};
    struct plan shared = {.threads = threads, .domains = 0, .offsets = each};
    struct plan own_alone = {.threads = 1, .domains = 100, .offsets = each};
    struct plan own = {.threads = threads, .domains = 100, .offsets = each};
    double base = run(&alone);
    double rates[] = {run(&many), run(&history), run(&own_alone), run(&shared), run(&own)};
    static const char *const names[] = {
        "10,000 domains", "one domain with 100,000 intervals of history", "100 domains",
        "all threads in one domain", "each thread in 100 domains of its own"};
    bool is_good = base > 0;
    (void)printf("work leases in memory: one thread, one domain: %.0f offsets/ms\n", base);
    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
        is_good = is_good && rates[i] > 0;
        (void)printf("  %-46s %.2f of that%s\n", names[i], base > 0 ? rates[i] / base : 0,
                     i >= 3 ? " (all threads together)" : "");
    }
    (void)printf(
        "%zu threads in domains of their own are %.2f times as fast as one thread, and %.2f "
        "times as fast as in one domain that all share\n",
        threads, rates[2] > 0 ? rates[4] / rates[2] : 0, rates[3] > 0 ? rates[4] / rates[3] : 0);
    return is_good ? 0 : 1;
}

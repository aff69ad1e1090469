/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * store_memory_threads_test.c - several threads on one memory store, each with a handle of
 * its own. Owns:  the threads. The thread sanitizer's build tells whether they ever touch the same
 * record at once; the random source is one that must not be shared, so that draws are proved too.
 * Never: sleeps, or depends on who comes first.
 */
#include "support/memory_check.h"
#include "support/memory_world.h"

#include "base/random.h"
#include "store/memory/memory.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define PRODUCERS  2
#define WORKERS    3
#define JOBS_EACH  300 /* of one producer */
#define JOBS_ALL   (PRODUCERS * JOBS_EACH)
#define ROUNDS_MAX 200000
#define BATCH      8

/* What the threads share. */
struct crowd {
    pawl_memory *memory;
    _Atomic int64_t done;     /* settles that were OK as SUCCEED or FAIL: each ends a job */
    _Atomic int64_t troubles; /* calls that did not go as they must */
};

struct member {
    struct crowd *crowd;
    int number;
    pthread_t thread;
};

static void expect(struct crowd *crowd, bool is_right)
{
    if (!is_right)
        atomic_fetch_add(&crowd->troubles, 1);
}

static pawl_store *open_own(struct crowd *crowd)
{
    pawl_store *store = NULL;
    expect(crowd, pawl_memory_open(crowd->memory, &store, NULL) == PAWL_OK);
    return store;
}

static void *produce(void *user)
{
    struct member *member = user;
    pawl_store *store = open_own(member->crowd);
    for (int i = 0; i < JOBS_EACH; i += 4) {
        pawl_enqueue_row rows[4];
        pawl_enqueued results[4];
        for (int k = 0; k < 4; k++) {
            pawl_enqueue_init(&rows[k]);
            rows[k].queue = k % 2 == 0 ? "even" : "odd";
            rows[k].payload = "payload";
            rows[k].payload_len = 7;
        }
        expect(member->crowd, pawl_enqueue(store, rows, 4, results, NULL) == PAWL_OK);
        for (int k = 0; k < 4; k++)
            expect(member->crowd, results[k].code == PAWL_OK);
    }
    pawl_store_close(store);
    return NULL;
}

/* Renew, then release some and settle the others. Gives how many jobs were ended. */
static int64_t work_on(struct member *member, pawl_store *store, const char *worker,
                       const pawl_job *jobs, size_t count)
{
    int64_t ended = 0;
    for (size_t i = 0; i < count; i++) {
        pawl_lease lease = {jobs[i].id, jobs[i].token, jobs[i].lease_version, jobs[i].place};
        pawl_renew_row renewal = {.lease = lease, .lease_ms = PAWL_DEFAULT};
        pawl_renewed renewed;
        expect(member->crowd, pawl_renew(store, worker, &renewal, 1, &renewed, NULL) == PAWL_OK);
        expect(member->crowd, renewed.code == PAWL_OK); /* nobody else can have it: Q-ONE-LEASE */
        if (i % 3 == 2) {
            pawl_code code;
            expect(member->crowd, pawl_release(store, worker, &lease, 1, &code, NULL) == PAWL_OK);
            expect(member->crowd, code == PAWL_OK);
            continue;
        }
        pawl_settle_row row;
        pawl_settled settled;
        pawl_settle_init(&row);
        row.lease = lease;
        row.action = i % 2 == 0 ? PAWL_SUCCEED : PAWL_FAIL;
        row.error_text = "said by a thread";
        expect(member->crowd, pawl_settle(store, worker, &row, 1, &settled, NULL) == PAWL_OK);
        expect(member->crowd, settled.code == PAWL_OK);
        ended++;
    }
    return ended;
}

static void *work(void *user)
{
    struct member *member = user;
    pawl_store *store = open_own(member->crowd);
    char worker[16];
    (void)snprintf(worker, sizeof(worker), "worker-%d", member->number);
    pawl_claim_line lines[2] = {
        {.queue = "even", .jobs_max = BATCH, .lease_ms = PAWL_DEFAULT},
        {.queue = "odd", .jobs_max = BATCH, .lease_ms = PAWL_DEFAULT},
    };
    pawl_claim_args args = {
        .worker = worker, .lines = lines, .lines_count = 2, .bytes_max = PAWL_DEFAULT};
    for (int i = 0; i < ROUNDS_MAX && atomic_load(&member->crowd->done) < JOBS_ALL; i++) {
        pawl_job jobs[BATCH];
        size_t count = 0;
        bool is_hint;
        pawl_code code = pawl_claim(store, &args, jobs, BATCH, &count, NULL);
        expect(member->crowd, code == PAWL_OK);
        atomic_fetch_add(&member->crowd->done, work_on(member, store, worker, jobs, count));
        for (size_t k = 0; k < count; k++)
            pawl_job_clear(&jobs[k]);
        if (count == 0)
            expect(member->crowd, pawl_wait(store, 1, &is_hint, NULL) == PAWL_OK);
    }
    pawl_store_close(store);
    return NULL;
}

/* Looks and sweeps all the while. No lease expires: the clock is the system's. */
static void *oversee(void *user)
{
    struct member *member = user;
    struct crowd *crowd = member->crowd;
    pawl_store *store = open_own(crowd);
    for (int i = 0; i < ROUNDS_MAX && atomic_load(&crowd->done) < JOBS_ALL; i++) {
        pawl_job jobs[BATCH];
        pawl_stats stats[BATCH];
        pawl_lease_info leases[BATCH];
        pawl_reaped reaped[BATCH];
        pawl_worker workers[BATCH];
        size_t count;
        pawl_worker_seen seen = {.name = "overseer", .host = "here", .version = "1"};
        expect(crowd, pawl_worker_seen_now(store, &seen, NULL) == PAWL_OK);
        expect(crowd, pawl_workers(store, NULL, workers, BATCH, &count, NULL) == PAWL_OK);
        expect(crowd, pawl_list(store, NULL, NULL, jobs, BATCH, &count, NULL) == PAWL_OK);
        expect(crowd, pawl_leases(store, NULL, NULL, leases, BATCH, &count, NULL) == PAWL_OK);
        expect(crowd, pawl_queue_stats(store, NULL, stats, BATCH, &count, NULL) == PAWL_OK);
        expect(crowd, pawl_prune(store, BATCH, &count, NULL) == PAWL_OK);
        expect(crowd, pawl_reap(store, reaped, BATCH, &count, NULL) == PAWL_OK);
        expect(crowd, count == 0);
    }
    pawl_store_close(store);
    return NULL;
}

static void assert_all_ended_once(struct crowd *crowd)
{
    pawl_store *store;
    pawl_stats stats[4];
    size_t count;
    assert_int_equal(pawl_memory_open(crowd->memory, &store, NULL), PAWL_OK);
    assert_int_equal(pawl_queue_stats(store, NULL, stats, 4, &count, NULL), PAWL_OK);
    assert_int_equal(count, 2);
    int64_t ended = 0;
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(stats[i].ready, 0);
        assert_int_equal(stats[i].in_flight, 0);
        ended += stats[i].succeeded + stats[i].failed;
    }
    assert_int_equal(ended, JOBS_ALL);
    pawl_store_close(store);
}

/* RULE-020-040, Q-ONE-LEASE, Q-AT-LEAST-ONCE */
static void test_threads_share_one_store(void **state)
{
    (void)state;
    struct pawli_seeded seeded = {.state = 5};
    pawl_random random = pawli_seeded_as_random(
        &seeded); /* not safe to share: the lock guards it */
    struct crowd crowd = {0};
    pawl_memory_options options;
    pawl_memory_options_init(&options);
    options.random = &random;
    options.shards = 4;
    assert_int_equal(pawl_memory_new(&options, &crowd.memory, NULL), PAWL_OK);

    struct member members[PRODUCERS + WORKERS + 1];
    for (int i = 0; i < PRODUCERS + WORKERS + 1; i++) {
        void *(*run)(void *) = i < PRODUCERS ? produce : i < PRODUCERS + WORKERS ? work : oversee;
        members[i] = (struct member){.crowd = &crowd, .number = i};
        assert_int_equal(pthread_create(&members[i].thread, NULL, run, &members[i]), 0);
    }
    for (int i = 0; i < PRODUCERS + WORKERS + 1; i++)
        assert_int_equal(pthread_join(members[i].thread, NULL), 0);

    assert_int_equal(atomic_load(&crowd.troubles), 0);
    assert_int_equal(atomic_load(&crowd.done), JOBS_ALL);
    assert_null(pawli_memory_check(crowd.memory));
    assert_all_ended_once(&crowd);
    pawl_memory_free(crowd.memory);
}

/* ---- ordering keys */

#define KEYS          6  /* of each producer: so few that enqueues and settles of one key meet */
#define ROUNDS_OF_KEY 60 /* jobs of each key */
#define KEYED_ALL     (PRODUCERS * KEYS * ROUNDS_OF_KEY)

/* What the jobs of one key found. Only one of them may run at a time, so nothing here is locked:
 * the thread sanitizer's build would tell. */
struct turnstile {
    _Atomic int inside;
    int64_t last_round; /* from 1 */
    int64_t last_fence;
};

struct turn {
    int producer;
    int key;
    int64_t round;
};

struct keyed_crowd {
    struct crowd crowd; /* first */
    struct turnstile turnstiles[PRODUCERS][KEYS];
};

static void *produce_keyed(void *user)
{
    struct member *member = user;
    pawl_store *store = open_own(member->crowd);
    for (int64_t round = 1; round <= ROUNDS_OF_KEY; round++) {
        pawl_enqueue_row rows[KEYS];
        pawl_enqueued results[KEYS];
        struct turn turns[KEYS];
        char keys[KEYS][16];
        for (int k = 0; k < KEYS; k++) {
            turns[k] = (struct turn){member->number, k, round};
            (void)snprintf(keys[k], sizeof(keys[k]), "%d/%d", member->number, k);
            pawl_enqueue_init(&rows[k]);
            rows[k].queue = "keyed";
            rows[k].ordering_key = keys[k];
            rows[k].priority = (int)(round % 10);
            rows[k].payload = &turns[k];
            rows[k].payload_len = sizeof(turns[k]);
        }
        expect(member->crowd, pawl_enqueue(store, rows, KEYS, results, NULL) == PAWL_OK);
    }
    pawl_store_close(store);
    return NULL;
}

/* Through the turnstile of its key: alone, in order, with a higher fence. */
static void pass(struct crowd *crowd, const pawl_job *job)
{
    struct turn turn;
    memcpy(&turn, job->payload, sizeof(turn));
    struct keyed_crowd *keyed = (struct keyed_crowd *)crowd;
    struct turnstile *turnstile = &keyed->turnstiles[turn.producer][turn.key];
    expect(crowd, atomic_fetch_add(&turnstile->inside, 1) == 0);
    expect(crowd, turn.round == turnstile->last_round + 1 || job->lease_version > 1);
    expect(crowd, job->fence > turnstile->last_fence);
    turnstile->last_round = turn.round;
    turnstile->last_fence = job->fence;
    (void)atomic_fetch_sub(&turnstile->inside, 1);
}

static void *work_keyed(void *user)
{
    struct member *member = user;
    struct crowd *crowd = member->crowd;
    pawl_store *store = open_own(crowd);
    char worker[16];
    (void)snprintf(worker, sizeof(worker), "worker-%d", member->number);
    pawl_claim_line line = {.queue = "keyed", .jobs_max = BATCH, .lease_ms = PAWL_DEFAULT};
    pawl_claim_args args = {
        .worker = worker, .lines = &line, .lines_count = 1, .bytes_max = PAWL_DEFAULT};
    for (int i = 0; i < ROUNDS_MAX && atomic_load(&crowd->done) < KEYED_ALL; i++) {
        pawl_job jobs[BATCH];
        pawl_settle_row rows[BATCH];
        pawl_settled settled[BATCH];
        size_t count = 0;
        bool is_hint;
        expect(crowd, pawl_claim(store, &args, jobs, BATCH, &count, NULL) == PAWL_OK);
        for (size_t k = 0; k < count; k++) {
            pass(crowd, &jobs[k]);
            pawl_settle_init(&rows[k]);
            rows[k].lease = (pawl_lease){jobs[k].id, jobs[k].token, jobs[k].lease_version,
                                         jobs[k].place};
            rows[k].action = (i + (int)k) % 5 == 0 ? PAWL_SNOOZE : PAWL_SUCCEED;
            rows[k].delay_ms = 0;
            pawl_job_clear(&jobs[k]);
        }
        if (count == 0) {
            expect(crowd, pawl_wait(store, 1, &is_hint, NULL) == PAWL_OK);
            continue;
        }
        expect(crowd, pawl_settle(store, worker, rows, count, settled, NULL) == PAWL_OK);
        for (size_t k = 0; k < count; k++) {
            expect(crowd, settled[k].code == PAWL_OK);
            if (rows[k].action == PAWL_SUCCEED)
                atomic_fetch_add(&crowd->done, 1);
        }
    }
    pawl_store_close(store);
    return NULL;
}

/* RES-7: exclusive and in order per key, and none is left waiting by an enqueue that met a settle.
 */
static void test_threads_share_ordering_keys(void **state)
{
    (void)state;
    struct pawli_seeded seeded = {.state = 6};
    pawl_random random = pawli_seeded_as_random(&seeded);
    static struct keyed_crowd keyed;
    pawl_memory_options options;
    pawl_memory_options_init(&options);
    options.random = &random;
    options.shards = 2;
    assert_int_equal(pawl_memory_new(&options, &keyed.crowd.memory, NULL), PAWL_OK);
    struct member members[PRODUCERS + WORKERS];
    for (int i = 0; i < PRODUCERS + WORKERS; i++) {
        members[i] = (struct member){.crowd = &keyed.crowd, .number = i};
        assert_int_equal(pthread_create(&members[i].thread, NULL,
                                        i < PRODUCERS ? produce_keyed : work_keyed, &members[i]),
                         0);
    }
    for (int i = 0; i < PRODUCERS + WORKERS; i++)
        assert_int_equal(pthread_join(members[i].thread, NULL), 0);
    assert_int_equal(atomic_load(&keyed.crowd.troubles), 0);
    assert_int_equal(atomic_load(&keyed.crowd.done), KEYED_ALL);
    assert_null(pawli_memory_check(keyed.crowd.memory));
    pawl_memory_free(keyed.crowd.memory);
}

/* ---- the lost wake-up */

#define WAKE_ROUNDS 500

/* RES-7: another thread enqueues behind a job while that one ends. Whoever comes first, the new one
 * can be claimed afterwards. */
static void *enqueue_behind(void *user)
{
    struct member *member = user;
    pawl_store *store = open_own(member->crowd);
    pawl_enqueue_row row;
    pawl_enqueued result;
    pawl_enqueue_init(&row);
    row.queue = "keyed";
    row.ordering_key = "k";
    expect(member->crowd, pawl_enqueue(store, &row, 1, &result, NULL) == PAWL_OK);
    pawl_store_close(store);
    return NULL;
}

static pawl_job claim_the_only_one(struct world *world)
{
    pawl_job jobs[2];
    assert_int_equal(world_claim(world, "w", "keyed", jobs, 2), 1);
    return jobs[0];
}

static void test_wake_an_enqueue_and_the_end_of_the_first(void **state)
{
    (void)state;
    struct world world;
    world_make(&world, 1);
    struct crowd crowd = {.memory = world.memory};
    struct member member = {.crowd = &crowd};
    (void)enqueue_behind(&member);
    for (int i = 0; i < WAKE_ROUNDS; i++) {
        pawl_job first = claim_the_only_one(&world);
        assert_int_equal(pthread_create(&member.thread, NULL, enqueue_behind, &member), 0);
        world_settle(&world, "w", &first, i % 2 == 0 ? PAWL_SUCCEED : PAWL_FAIL);
        assert_int_equal(pthread_join(member.thread, NULL), 0);
        pawl_job_clear(&first);
    }
    pawl_job last = claim_the_only_one(&world);
    pawl_job_clear(&last);
    assert_int_equal(atomic_load(&crowd.troubles), 0);
    world_end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_share_one_store),
        cmocka_unit_test(test_threads_share_ordering_keys),
        cmocka_unit_test(test_wake_an_enqueue_and_the_end_of_the_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

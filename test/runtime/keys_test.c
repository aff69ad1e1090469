/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * keys_test.c - workers on jobs with ordering keys, and on a queue with a bound: with buffers,
 * batch claims and batch settles, while workers come and go, each key's jobs run alone and in
 * order.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/kinds.h"
#include "runtime/stage.h"

#include <stdio.h>
#include <string.h>

#define KEYS   12
#define ROUNDS 25 /* jobs of each key */

/* What the jobs of one key found. Only one of them runs at a time: nothing else is locked here, and
 * the thread sanitizer's build would tell. */
struct turnstile {
    atomic_int inside;
    int round; /* of the last one, from 1 */
    int64_t fence;
};

struct turn {
    int key; /* KEYS: none */
    int round;
};

struct hall {
    struct turnstile turnstiles[KEYS];
    atomic_int troubles;
    atomic_int plain;
};

/* Through the turnstile of its key; some come back, by a retry or a snooze. */
static int pass(pawl_job_ctx *ctx, void *user)
{
    struct hall *hall = user;
    const pawl_job *job = pawl_job_of(ctx);
    struct turn turn;
    memcpy(&turn, job->payload, sizeof(turn));
    if (turn.key == KEYS) {
        bool is_plain = pawl_job_fence(ctx) == 0 && job->ordering_key[0] == '\0';
        atomic_fetch_add(is_plain ? &hall->plain : &hall->troubles, 1);
        return PAWL_SUCCEED;
    }
    struct turnstile *turnstile = &hall->turnstiles[turn.key];
    bool is_alone = atomic_fetch_add(&turnstile->inside, 1) == 0;
    bool is_next = turn.round == turnstile->round + 1 ||
                   (turn.round == turnstile->round && job->lease_version > 1);
    bool is_fenced = pawl_job_fence(ctx) > turnstile->fence;
    turnstile->round = turn.round;
    turnstile->fence = pawl_job_fence(ctx);
    stage_breathe();
    if (!is_alone || !is_next || !is_fenced)
        atomic_fetch_add(&hall->troubles, 1);
    (void)atomic_fetch_sub(&turnstile->inside, 1);
    int what = (turn.key + turn.round) % 6;
    pawl_job_delay(ctx, 1);
    if (pawl_job_attempt(ctx) > 1 || what > 1)
        return PAWL_SUCCEED;
    return what == 0 ? PAWL_RETRY : PAWL_SNOOZE;
}

static void put_turns(struct stage *stage)
{
    pawl_err err;
    for (int round = 1; round <= ROUNDS; round++) {
        pawl_enqueue_row rows[KEYS + 1];
        pawl_enqueued results[KEYS + 1];
        struct turn turns[KEYS + 1];
        char keys[KEYS][16];
        for (int i = 0; i <= KEYS; i++) {
            turns[i] = (struct turn){i, round};
            pawl_enqueue_init(&rows[i]);
            rows[i].queue = STAGE_QUEUE;
            rows[i].payload = &turns[i];
            rows[i].payload_len = sizeof(turns[i]);
            rows[i].priority = round % 10; /* it must not matter */
            if (i == KEYS)
                continue;
            (void)snprintf(keys[i], sizeof(keys[i]), "key-%d", i); /* fits */
            rows[i].ordering_key = keys[i];
        }
        if (pawl_enqueue(stage->store, rows, KEYS + 1, results, &err) != PAWL_OK)
            fail_msg("enqueue: %s", err.text);
    }
}

static void crowded(struct stage *stage, struct hall *hall, pawl_worker_options *ret_options)
{
    stage_options(stage, ret_options);
    ret_options->handler = pass;
    ret_options->user = hall;
    ret_options->settings.parallel_max = 4;
    ret_options->settings.buffer_max = 8;
    ret_options->settings.settle_linger_ms = 3;
}

/* RES-7: while workers start, shut down (giving back what they hold) and are aborted. */
static void jobs_of_a_key_run_alone_and_in_order(void **state)
{
    struct stage *stage = *state;
    static struct hall hall;
    memset(&hall, 0, sizeof(hall));
    pawl_worker_options options;
    crowded(stage, &hall, &options);
    pawl_runner *first = stage_start(&options);
    pawl_runner *second = stage_start(&options);
    put_turns(stage);
    AWAIT(stage_stats(stage).succeeded >= 60);
    stage_stop(stage, first);
    pawl_runner *third = stage_start(&options);
    AWAIT(stage_stats(stage).succeeded >= 140);
    assert_int_equal(stage_drop(stage, second), 0); /* what it held comes back by its expiry */
    AWAIT(stage_stats(stage).succeeded == (KEYS + 1) * ROUNDS);
    assert_int_equal(atomic_load(&hall.troubles), 0);
    assert_int_equal(atomic_load(&hall.plain), ROUNDS);
    for (int i = 0; i < KEYS; i++)
        assert_int_equal(hall.turnstiles[i].round, ROUNDS);
    stage_stop(stage, third);
}

/* ---------------------------------------------------------------- the bound */

struct crowd {
    atomic_int running;
    atomic_int most;
};

static int stay_a_while(pawl_job_ctx *ctx, void *user)
{
    struct crowd *crowd = user;
    (void)ctx; /* it ends soon */
    int running = atomic_fetch_add(&crowd->running, 1) + 1;
    int most = atomic_load(&crowd->most);
    while (running > most && !atomic_compare_exchange_weak(&crowd->most, &most, running))
        ;
    stage_breathe();
    atomic_fetch_sub(&crowd->running, 1);
    return PAWL_SUCCEED;
}

/* However many workers there are, and however much each of them has room for. */
static void a_bound_holds_over_all_workers(void **state)
{
    struct stage *stage = *state;
    struct crowd crowd = {.most = 0};
    pawl_worker_options options;
    pawl_queue_settings settings;
    pawl_err err;
    assert_int_equal(pawl_queue_get(stage->store, STAGE_QUEUE, &settings, &err), PAWL_OK);
    settings.max_in_flight = 3;
    assert_int_equal(pawl_queue_set(stage->store, STAGE_QUEUE, &settings, &err), PAWL_OK);
    stage_enqueue_many(stage, 120);
    stage_options(stage, &options);
    options.handler = stay_a_while;
    options.user = &crowd;
    pawl_runner *runners[2] = {stage_start(&options), stage_start(&options)};
    while (stage_stats(stage).succeeded < 120) {
        assert_in_range(stage_stats(stage).in_flight, 0, 3);
        stage_breathe();
    }
    assert_in_range(atomic_load(&crowd.most), 1, 3);
    for (int i = 0; i < 2; i++)
        stage_stop(stage, runners[i]);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CASE(jobs_of_a_key_run_alone_and_in_order),
        CASE(a_bound_holds_over_all_workers),
    };
    return kinds_run(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}

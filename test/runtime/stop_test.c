/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * stop_test.c - how workers end: in order, in a hurry, and not at all.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/kinds.h"
#include "runtime/stage.h"

#include <string.h>

struct hands {
    atomic_int running;
    atomic_int stopped;
    atomic_bool may_end;
    atomic_bool is_deaf;
    const char *_Atomic reason;
};

static int work(pawl_job_ctx *ctx, void *user)
{
    struct hands *hands = user;
    bool is_stopped = false;
    atomic_fetch_add(&hands->running, 1);
    while (!atomic_load(&hands->may_end) && !is_stopped) {
        stage_breathe();
        is_stopped = !atomic_load(&hands->is_deaf) && pawl_job_is_cancelled(ctx);
    }
    if (is_stopped) {
        atomic_store(&hands->reason, pawl_job_cancel_reason(ctx));
        atomic_fetch_add(&hands->stopped, 1);
    }
    atomic_fetch_sub(&hands->running, 1);
    return is_stopped ? PAWL_RETRY : PAWL_SUCCEED;
}

/* Two run, two are held. A part of a shutdown's time is all that handlers and settles have: with a
 * lease that is this long, that is enough on a busy machine, too. */
#define LONG_LEASE_MS 30000
static pawl_runner *start_full(struct stage *stage, struct hands *hands, int64_t lease_ms)
{
    pawl_worker_options options;
    const pawl_worker_queue queue = {STAGE_QUEUE, PAWL_DEFAULT, lease_ms};
    stage_options(stage, &options);
    options.queues = &queue;
    options.settings.grace_ms = 3000;
    options.handler = work;
    options.user = hands;
    options.settings.parallel_max = 2;
    options.settings.buffer_max = 2;
    stage_enqueue_many(stage, 6);
    pawl_runner *runner = stage_start(&options);
    AWAIT(atomic_load(&hands->running) == 2 && stage_stats(stage).in_flight == 4);
    return runner;
}

/* RULE-020-030: no new batches, what has not started is given back, what runs finishes. */
static void what_runs_finishes_and_the_rest_is_given_back(void **state)
{
    struct stage *stage = *state;
    struct hands hands = {.may_end = false};
    pawl_worker_end end;
    pawl_runner *runner = start_full(stage, &hands, LONG_LEASE_MS);
    pawl_worker_stop(runner, PAWL_DEFAULT);
    AWAIT(stage_stats(stage).ready == 4 && stage_stats(stage).in_flight == 2);
    int64_t claims = fault_gate_passed(&stage->gate, FAULT_CLAIM);
    assert_int_equal(atomic_load(&hands.running), 2);
    atomic_store(&hands.may_end, true);
    assert_int_equal(pawl_worker_wait(runner, STAGE_WAIT_MS, &end), PAWL_OK);
    assert_int_equal(end.jobs_left, 0);
    assert_int_equal(end.threads_left, 0);
    assert_int_equal(stage_stats(stage).succeeded, 2);
    assert_int_equal(stage_stats(stage).ready, 4);
    assert_int_equal(fault_gate_passed(&stage->gate, FAULT_CLAIM), claims);
    assert_int_equal(stage_drop(stage, runner), 0);
    assert_int_equal(stage_told(stage, PAWL_EVENT_WORKER_STOPPED, NULL), 1);
    assert_int_equal(stage_told(stage, PAWL_EVENT_JOB_OVER, "released"), 2);
}

/* RULE-020-031: towards the end of its time what still runs is stopped; that uses no retry. */
static void what_does_not_finish_is_stopped_in_time(void **state)
{
    struct stage *stage = *state;
    struct hands hands = {.may_end = false};
    pawl_worker_end end;
    pawl_runner *runner = start_full(stage, &hands, LONG_LEASE_MS);
    int64_t from_ms = stage_now_ms();
    pawl_worker_stop(runner, 8000);
    assert_int_equal(pawl_worker_wait(runner, STAGE_WAIT_MS, &end), PAWL_OK);
    assert_true(stage_now_ms() - from_ms >= 5900); /* a quarter of it is grace */
    assert_int_equal(end.jobs_left, 0);
    assert_int_equal(atomic_load(&hands.stopped), 2);
    assert_string_equal(hands.reason, "shutdown");
    assert_int_equal(stage_stats(stage).ready, 6);
    pawl_filter stopped = {.queue = STAGE_QUEUE, .reason = PAWL_REASON_SHUTDOWN};
    pawl_job jobs[8];
    size_t count = 0;
    assert_int_equal(pawl_list(stage->store, &stopped, NULL, jobs, 8, &count, NULL), PAWL_OK);
    assert_int_equal(count, 2);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(jobs[i].retries, 0);
        pawl_job_clear(&jobs[i]);
    }
    assert_int_equal(stage_drop(stage, runner), 0);
}

/* No longer than the smallest lease, whatever is asked for: RULE-020-031. */
static void no_shutdown_takes_longer_than_a_lease(void **state)
{
    struct stage *stage = *state;
    struct hands hands = {.may_end = false};
    pawl_runner *runner = start_full(stage, &hands, stage_lease_ms());
    pawl_worker_stop(runner, 1000 * stage_lease_ms());
    assert_int_equal(pawl_worker_wait(runner, STAGE_WAIT_MS, NULL), PAWL_OK);
    assert_int_equal(stage_drop(stage, runner), 0);
    for (size_t i = 0; i < stage->events_count; i++)
        if (stage->events[i].kind == PAWL_EVENT_WORKER_STOPPING)
            assert_int_equal(stage->events[i].took_us, stage_lease_ms() * 1000);
    assert_int_equal(stage_told(stage, PAWL_EVENT_WORKER_STOPPING, "shutdown"), 1);
}

/* The second signal. */
static void an_abort_stops_all_at_once(void **state)
{
    struct stage *stage = *state;
    struct hands hands = {.may_end = false};
    pawl_runner *runner = start_full(stage, &hands, LONG_LEASE_MS);
    pawl_worker_stop(runner, PAWL_DEFAULT);
    pawl_worker_abort(runner);
    assert_int_equal(pawl_worker_wait(runner, STAGE_WAIT_MS, NULL), PAWL_OK);
    assert_int_equal(atomic_load(&hands.stopped), 2);
    assert_string_equal(hands.reason, "abort_all");
    assert_int_equal(stage_stats(stage).ready, 6);
    assert_int_equal(stage_drop(stage, runner), 0);
}

/* What ignores even that is left to the reaper, and its threads are left behind. */
static void what_ignores_its_abort_is_left(void **state)
{
    struct stage *stage = *state;
    struct hands hands = {.may_end = false, .is_deaf = true};
    pawl_worker_end end;
    pawl_runner *runner = start_full(stage, &hands, stage_lease_ms());
    pawl_worker_stop(runner, 500);
    AWAIT(pawl_worker_wait(runner, 10, &end) == PAWL_TIMEOUT && end.threads_left == 2);
    pawl_worker_counts counts;
    pawl_worker_count(runner, &counts);
    assert_true(counts.is_stopped);
    assert_int_equal(stage_stats(stage).in_flight, 2); /* never settled */
    assert_int_equal(stage_drop(stage, runner), 2);
    /* Nobody owns them any more; they free what they used when they end. */
    atomic_store(&hands.may_end, true);
    AWAIT(atomic_load(&hands.running) == 0);
    AWAIT(stage_stats(stage).expired == 2);
}

/* A store that hangs does not keep a worker from ending: the thread is left behind. */
static void a_call_that_hangs_is_left_behind(void **state)
{
    struct stage *stage = *state;
    struct hands hands = {.may_end = true};
    pawl_worker_options options;
    pawl_worker_end end;
    stage_options(stage, &options);
    options.handler = work;
    options.user = &hands;
    options.settings.call_timeout_ms = 200;
    pawl_runner *runner = stage_start(&options);
    fault_gate_close(&stage->gate, FAULT_CLAIM);
    AWAIT(fault_gate_waiting(&stage->gate, FAULT_CLAIM) == 1);
    pawl_worker_stop(runner, 300);
    AWAIT(pawl_worker_wait(runner, 10, &end) == PAWL_TIMEOUT && end.threads_left == 1);
    fault_gate_open(&stage->gate, FAULT_CLAIM);
    assert_int_equal(pawl_worker_wait(runner, STAGE_WAIT_MS, &end), PAWL_OK);
    assert_int_equal(stage_drop(stage, runner), 0);
}

/* Freed while it runs: as an abort. */
static void a_worker_may_be_freed_at_any_time(void **state)
{
    struct stage *stage = *state;
    struct hands hands = {.may_end = false};
    pawl_runner *runner = start_full(stage, &hands, LONG_LEASE_MS);
    assert_int_equal(stage_drop(stage, runner), 0);
    assert_int_equal(stage_stats(stage).ready, 6);
    assert_int_equal(pawl_worker_free(NULL), 0);
}

/* Threads and handles come and go together. */
static void nothing_is_left_of_many_workers(void **state)
{
    struct stage *stage = *state;
    struct hands hands = {.may_end = true};
    pawl_worker_options options;
    stage_options(stage, &options);
    options.handler = work;
    options.user = &hands;
    for (int i = 0; i < 10; i++) {
        pawl_runner *runner = stage_start(&options);
        if (i % 2 == 0)
            stage_enqueue_many(stage, 3);
        stage_stop(stage, runner);
    }
    pawl_runner *runner = stage_start(&options);
    AWAIT(stage_stats(stage).succeeded == 15);
    stage_stop(stage, runner);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CASE(what_runs_finishes_and_the_rest_is_given_back),
        CASE(what_does_not_finish_is_stopped_in_time),
        CASE(no_shutdown_takes_longer_than_a_lease),
        CASE(an_abort_stops_all_at_once),
        CASE(what_ignores_its_abort_is_left),
        CASE(a_call_that_hangs_is_left_behind),
        CASE(a_worker_may_be_freed_at_any_time),
        CASE(nothing_is_left_of_many_workers),
    };
    return kinds_run(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}

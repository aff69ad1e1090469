/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * fault_test.c - a worker whose store hangs, is slow, is away, or loses replies; and handlers that
 * do not stop.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/kinds.h"
#include "runtime/stage.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

/* A beat fails twice this after the one before; so far from the end that no machine is too slow. */
#define SAFE_LEASE_MS 10000
#define SAFE_BEAT_MS  1000

/* What a handler of these tests is told, and what it tells. */
struct hands {
    atomic_int started;
    atomic_int running;
    atomic_int stopped;    /* ended because they were told to */
    atomic_bool may_end;   /* all of them may */
    atomic_bool is_deaf;   /* they do not ask whether they must stop */
    atomic_int deaf_first; /* the first so many are deaf */
    char reason[32];       /* why the last one was stopped */
};

static int work(pawl_job_ctx *ctx, void *user)
{
    struct hands *hands = user;
    int nth = atomic_fetch_add(&hands->started, 1);
    bool is_deaf = atomic_load(&hands->is_deaf) || nth < atomic_load(&hands->deaf_first);
    bool is_stopped = false;
    atomic_fetch_add(&hands->running, 1);
    while (!atomic_load(&hands->may_end) && !is_stopped) {
        stage_breathe();
        is_stopped = !is_deaf && pawl_job_is_cancelled(ctx);
    }
    if (is_stopped) {
        snprintf(hands->reason, sizeof(hands->reason), "%s", pawl_job_cancel_reason(ctx));
        atomic_fetch_add(&hands->stopped, 1);
    }
    atomic_fetch_sub(&hands->running, 1);
    return PAWL_SUCCEED; /* even where it was stopped: the keeper must know better */
}

static pawl_runner *start(struct stage *stage, struct hands *hands, pawl_worker_options *options)
{
    pawl_worker_options own;
    if (options == NULL) {
        stage_options(stage, &own);
        options = &own;
    }
    options->handler = work;
    options->user = hands;
    return stage_start(options);
}

static void set_timeout(struct stage *stage, int64_t timeout_ms)
{
    pawl_queue_settings settings;
    assert_int_equal(pawl_queue_get(stage->store, STAGE_QUEUE, &settings, NULL), PAWL_OK);
    settings.execution_timeout_ms = timeout_ms;
    assert_int_equal(pawl_queue_set(stage->store, STAGE_QUEUE, &settings, NULL), PAWL_OK);
}

/* Wait until the job's lease was renewed well past what it was granted first. */
static void await_renewals(struct stage *stage, const pawl_id *id)
{
    pawl_wall first = stage_job(stage, id).expires_at;
    AWAIT(stage_job(stage, id).expires_at.us > first.us + stage_lease_ms() * 1000);
}

/* ---------------------------------------------------------------- renewals wait for nobody */

/* NFR-002, RULE-020-010: longer than its lease, and run once. */
static void a_long_job_keeps_its_lease(void **state)
{
    struct stage *stage = *state;
    struct hands hands = {.may_end = false};
    pawl_runner *runner = start(stage, &hands, NULL);
    pawl_id id = stage_enqueue(stage, "");
    AWAIT(atomic_load(&hands.running) == 1);
    await_renewals(stage, &id);
    atomic_store(&hands.may_end, true);
    AWAIT(stage_job(stage, &id).state == PAWL_SUCCEEDED);
    assert_int_equal(stage_job(stage, &id).lease_version, 1);
    stage_stop(stage, runner);
}

/* A claim that hangs for ever delays no renewal. */
static void a_claim_that_hangs_costs_no_lease(void **state)
{
    struct stage *stage = *state;
    struct hands hands = {.may_end = false};
    pawl_worker_options options;
    stage_options(stage, &options);
    options.settings.call_timeout_ms = 300;
    pawl_runner *runner = start(stage, &hands, &options);
    pawl_id id = stage_enqueue(stage, "");
    AWAIT(atomic_load(&hands.running) == 1);
    fault_gate_close(&stage->gate, FAULT_CLAIM);
    AWAIT(fault_gate_waiting(&stage->gate, FAULT_CLAIM) == 1);
    await_renewals(stage, &id);
    atomic_store(&hands.may_end, true);
    AWAIT(stage_job(stage, &id).state == PAWL_SUCCEEDED); /* it is settled, too */
    AWAIT(stage_told(stage, PAWL_EVENT_CALL_OVERDUE, NULL) > 0);
    pawl_id next = stage_enqueue(stage, "");
    fault_gate_open(&stage->gate, FAULT_CLAIM);
    AWAIT(stage_job(stage, &next).state == PAWL_SUCCEEDED);
    assert_int_equal(stage_job(stage, &id).lease_version, 1);
    stage_stop(stage, runner);
}

/* Nor does a settle, or all the settles that wait behind it. */
static void settles_that_hang_cost_no_lease(void **state)
{
    struct stage *stage = *state;
    struct hands hands = {.may_end = true};
    pawl_runner *runner = start(stage, &hands, NULL);
    fault_gate_close(&stage->gate, FAULT_SETTLE);
    stage_enqueue_many(stage, 5);
    AWAIT(fault_gate_waiting(&stage->gate, FAULT_SETTLE) == 1 &&
          stage_told(stage, PAWL_EVENT_JOB_ENDED, NULL) == 5);
    atomic_store(&hands.may_end, false);
    pawl_id id = stage_enqueue(stage, "");
    AWAIT(atomic_load(&hands.running) == 1);
    await_renewals(stage, &id);
    assert_int_equal(stage_stats(stage).in_flight, 6);
    assert_int_equal(stage_stats(stage).expired, 0); /* RULE-020-010: until it is answered */
    fault_gate_open(&stage->gate, FAULT_SETTLE);
    atomic_store(&hands.may_end, true);
    AWAIT(stage_stats(stage).succeeded == 6);
    assert_int_equal(stage_job(stage, &id).lease_version, 1);
    stage_stop(stage, runner);
}

/* ---------------------------------------------------------------- renewals that fail */

/* RULE-020-012: it stops at once, is not settled whatever it answers, and the reaper recovers it.
 */
static void beats_fail(struct stage *stage, bool is_hanging)
{
    struct hands hands = {.may_end = false};
    const pawl_worker_queue queue = {STAGE_QUEUE, PAWL_DEFAULT, SAFE_LEASE_MS};
    pawl_worker_options options;
    stage_options(stage, &options);
    options.queues = &queue;
    options.settings.heartbeat_ms = SAFE_BEAT_MS;
    pawl_runner *runner = start(stage, &hands, &options);
    pawl_id id = stage_enqueue(stage, "");
    AWAIT(atomic_load(&hands.running) == 1);
    if (is_hanging)
        fault_gate_close(&stage->gate, FAULT_RENEW);
    else
        fault_gate_set(&stage->gate, FAULT_RENEW, FAULT_DOWN);
    AWAIT(atomic_load(&hands.stopped) == 1);
    assert_string_equal(hands.reason, "beat_failed");
    assert_int_equal(stage_job(stage, &id).state, PAWL_IN_FLIGHT);
    assert_int_equal(stage_stats(stage).expired, 0); /* long before the store could call it so */
    fault_gate_open(&stage->gate, FAULT_RENEW);
    atomic_store(&hands.may_end, true);
    AWAIT(stage_job(stage, &id).state == PAWL_SUCCEEDED);
    assert_true(stage_job(stage, &id).lease_version >= 2);
    assert_int_equal(stage_job(stage, &id).retries, 0);
    pawl_attempt row = stage_attempt(stage, &id, 1);
    assert_int_equal(row.outcome, PAWL_ZOMBIE_REQUEUE);
    assert_int_equal(row.ended_by, PAWL_ENDED_BY_EXPIRY);
    stage_stop(stage, runner);
    assert_true(stage_told(stage, PAWL_EVENT_JOB_OVER, "beat_failed") >= 1); /* FR-005 */
    assert_true(stage_told(stage, PAWL_EVENT_RENEW_FAILED, NULL) > 0);
}

static void beats_that_are_refused_by_an_absent_store_fail(void **state)
{
    beats_fail(*state, false);
}

static void beats_that_hang_fail(void **state)
{
    beats_fail(*state, true);
}

/* FR-002: the lease is gone, because somebody took the job. That job stops, and no other (K8). */
static void a_lease_that_is_gone_stops_its_job_alone(void **state)
{
    struct stage *stage = *state;
    struct hands hands = {.may_end = false};
    pawl_runner *runner = start(stage, &hands, NULL);
    pawl_id gone = stage_enqueue(stage, "");
    pawl_id kept = stage_enqueue(stage, "");
    pawl_changed changed;
    AWAIT(atomic_load(&hands.running) == 2);
    /* Cancelled: the next renewal says so. RES-13. */
    assert_int_equal(pawl_cancel(stage->store, &gone, 1, &changed, NULL), PAWL_OK);
    AWAIT(atomic_load(&hands.stopped) == 1);
    assert_string_equal(hands.reason, "cancelled");
    AWAIT(stage_told(stage, PAWL_EVENT_RENEW_REFUSED, NULL) == 1);
    AWAIT(stage_job(stage, &gone).state == PAWL_SUCCEEDED); /* it said that it was done */
    assert_int_equal(atomic_load(&hands.running), 1);
    atomic_store(&hands.may_end, true);
    AWAIT(stage_job(stage, &kept).state == PAWL_SUCCEEDED);
    stage_stop(stage, runner);
}

/* ---------------------------------------------------------------- replies that are lost */

/* K4: it asks what is its own, and nothing looks like a lost lease. */
static void a_lost_reply_to_a_claim_costs_nothing(void **state)
{
    struct stage *stage = *state;
    struct hands hands = {.may_end = true};
    fault_gate_set(&stage->gate, FAULT_CLAIM, FAULT_LOST_REPLY);
    pawl_runner *runner = start(stage, &hands, NULL);
    stage_enqueue_many(stage, 30); /* more than a page of it */
    AWAIT(fault_gate_passed(&stage->gate, FAULT_MINE) > 0);
    fault_gate_open(&stage->gate, FAULT_CLAIM);
    AWAIT(stage_stats(stage).succeeded == 30);
    assert_int_equal(atomic_load(&hands.started), 30);
    stage_stop(stage, runner);
    assert_int_equal(stage_told(stage, PAWL_EVENT_REAPED, NULL), 0);
}

static void a_lost_reply_to_a_settle_is_repeated(void **state)
{
    struct stage *stage = *state;
    struct hands hands = {.may_end = true};
    fault_gate_set(&stage->gate, FAULT_SETTLE, FAULT_LOST_REPLY);
    pawl_runner *runner = start(stage, &hands, NULL);
    pawl_id id = stage_enqueue(stage, "");
    AWAIT(fault_gate_passed(&stage->gate, FAULT_SETTLE) > 2);
    fault_gate_open(&stage->gate, FAULT_SETTLE);
    AWAIT(stage_told(stage, PAWL_EVENT_JOB_OVER, "settled") == 1);
    assert_int_equal(stage_job(stage, &id).attempts, 1);
    stage_stop(stage, runner);
}

/* ---------------------------------------------------------------- away, and back */

/* Q-STORE-DOWN: it tries again with growing delays, keeps what it has done, and goes on. */
static void a_store_that_was_away_is_used_again(void **state)
{
    struct stage *stage = *state;
    struct hands hands = {.may_end = true};
    pawl_worker_options options;
    stage_options(stage, &options);
    options.settings.retry_base_ms = 50;
    options.settings.retry_max_ms = 400;
    pawl_runner *runner = start(stage, &hands, &options);
    stage_enqueue_many(stage, 10);
    AWAIT(stage_stats(stage).succeeded == 10);
    fault_gate_set(&stage->gate, FAULT_ANY_VERB, FAULT_DOWN);
    int64_t before = fault_gate_passed(&stage->gate, FAULT_CLAIM);
    int64_t from_ms = stage_now_ms();
    stage_enqueue_many(stage, 10);
    AWAIT(fault_gate_passed(&stage->gate, FAULT_CLAIM) >= before + 6);
    /* Six failures: half of 50, 100, 200, 400, 400 at the least lie between them. */
    assert_true(stage_now_ms() - from_ms >= (50 + 100 + 200 + 400 + 400) / 2);
    fault_gate_open(&stage->gate, FAULT_ANY_VERB);
    AWAIT(stage_stats(stage).succeeded == 20);
    stage_stop(stage, runner);
    assert_true(stage_told(stage, PAWL_EVENT_CALL_FAILED, NULL) >= 6);
}

/* ---------------------------------------------------------------- time that is up */

/* RULE-020-051, RES-6: told to stop, and it does: a retry is used. */
static void a_handler_past_its_time_is_stopped(void **state)
{
    struct stage *stage = *state;
    struct hands hands = {.may_end = false};
    set_timeout(stage, 1000);
    pawl_runner *runner = start(stage, &hands, NULL);
    pawl_id id = stage_enqueue(stage, "");
    AWAIT(atomic_load(&hands.stopped) >= 1);
    assert_string_equal(hands.reason, "timeout");
    AWAIT(stage_job(stage, &id).attempts >= 1);
    atomic_store(&hands.may_end, true);
    pawl_attempt row = stage_attempt(stage, &id, 1);
    assert_int_equal(row.outcome, PAWL_RETRYABLE);
    assert_int_equal(row.reason, PAWL_REASON_TIMEOUT);
    AWAIT(stage_job(stage, &id).state == PAWL_SUCCEEDED);
    stage_stop(stage, runner);
}

static int poll_for_the_end(pawl_job_ctx *ctx, void *user)
{
    struct hands *hands = user;
    struct pollfd end = {.fd = pawl_job_cancel_fd(ctx), .events = POLLIN};
    atomic_fetch_add(&hands->started, 1);
    (void)poll(&end, 1, pawl_job_attempt(ctx) == 1 ? STAGE_WAIT_MS : 0);
    atomic_fetch_add(&hands->stopped, end.revents != 0);
    return PAWL_SUCCEED;
}

/* A handler that waits for something else as well learns it from a descriptor, at once; and the
 * next job in the same thread does not find it readable. */
static void a_descriptor_tells_when_to_stop(void **state)
{
    struct stage *stage = *state;
    struct hands hands = {.may_end = false};
    pawl_worker_options options;
    stage_options(stage, &options);
    options.handler = poll_for_the_end;
    options.user = &hands;
    options.settings.parallel_max = 1;
    set_timeout(stage, 1000);
    pawl_runner *runner = stage_start(&options);
    pawl_id id = stage_enqueue(stage, "");
    AWAIT(stage_job(stage, &id).state == PAWL_SUCCEEDED);
    assert_int_equal(stage_attempt(stage, &id, 1).reason, PAWL_REASON_TIMEOUT);
    assert_int_equal(stage_attempt(stage, &id, 1).ended_by, PAWL_ENDED_BY_HOLDER);
    assert_int_equal(atomic_load(&hands.started), 2);
    assert_int_equal(atomic_load(&hands.stopped), 1);
    stage_stop(stage, runner);
}

/* One that ignores it is given up: its thread is reported and replaced, and its job is never
 * settled. With one handler at a time, only a replaced thread lets the next job run. */
static void a_handler_that_ignores_its_abort_is_given_up(void **state)
{
    struct stage *stage = *state;
    struct hands hands = {.may_end = false, .deaf_first = 1};
    pawl_worker_options options;
    pawl_worker_counts counts;
    stage_options(stage, &options);
    options.settings.parallel_max = 1;
    options.settings.buffer_max = 0;
    set_timeout(stage, 1000);
    pawl_runner *runner = start(stage, &hands, &options);
    pawl_id deaf = stage_enqueue(stage, "");
    AWAIT(stage_told(stage, PAWL_EVENT_JOB_GIVEN_UP, "abort_ignored") == 1);
    pawl_worker_count(runner, &counts);
    assert_int_equal(counts.stuck, 1);
    set_timeout(stage, PAWL_DEFAULT);
    pawl_id next = stage_enqueue(stage, "");
    AWAIT(atomic_load(&hands.started) == 2);
    assert_int_equal(atomic_load(&hands.running), 2); /* beside the one that is stuck */
    atomic_store(&hands.may_end, true);
    AWAIT(stage_job(stage, &next).state == PAWL_SUCCEEDED);
    AWAIT(stage_told(stage, PAWL_EVENT_THREAD_BACK, NULL) == 1);
    AWAIT(stage_job(stage, &deaf).state == PAWL_SUCCEEDED);
    assert_int_equal(stage_attempt(stage, &deaf, 1).outcome, PAWL_ZOMBIE_REQUEUE);
    stage_stop(stage, runner);
}

/* As many are replaced as run at once; then slots are lost to them, and no more threads made. */
static void stuck_threads_are_bounded(void **state)
{
    struct stage *stage = *state;
    struct hands hands = {.may_end = false, .is_deaf = true};
    pawl_worker_options options;
    pawl_worker_counts counts;
    pawl_worker_end end;
    stage_options(stage, &options);
    options.settings.parallel_max = 2;
    options.settings.buffer_max = 0;
    set_timeout(stage, 1000);
    pawl_runner *runner = start(stage, &hands, &options);
    stage_enqueue_many(stage, 20);
    AWAIT((pawl_worker_count(runner, &counts), counts.stuck == 4));
    assert_int_equal(counts.running, 2); /* the two that were not replaced */
    assert_int_equal(atomic_load(&hands.started), 4);
    pawl_worker_stop(runner, 200);
    AWAIT(pawl_worker_wait(runner, 10, &end) == PAWL_TIMEOUT && end.threads_left == 4);
    atomic_store(&hands.may_end, true);
    assert_int_equal(pawl_worker_wait(runner, STAGE_WAIT_MS, &end), PAWL_OK);
    assert_int_equal(stage_drop(stage, runner), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CASE(a_long_job_keeps_its_lease),
        CASE(a_claim_that_hangs_costs_no_lease),
        CASE(settles_that_hang_cost_no_lease),
        CASE(beats_that_are_refused_by_an_absent_store_fail),
        CASE(beats_that_hang_fail),
        CASE(a_lease_that_is_gone_stops_its_job_alone),
        CASE(a_lost_reply_to_a_claim_costs_nothing),
        CASE(a_lost_reply_to_a_settle_is_repeated),
        CASE(a_store_that_was_away_is_used_again),
        CASE(a_handler_past_its_time_is_stopped),
        CASE(a_descriptor_tells_when_to_stop),
        CASE(a_handler_that_ignores_its_abort_is_given_up),
        CASE(stuck_threads_are_bounded),
    };
    return kinds_run(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * worker_test.c - a worker with real threads: what becomes of jobs by what handlers answer, how
 * many run at once, and what can be changed while it runs.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/kinds.h"
#include "runtime/stage.h"
#include "support/alloc_fail.h"

#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- results */

/* Does what the payload says. */
static int obey(pawl_job_ctx *ctx, void *user)
{
    struct stage *stage = user;
    const pawl_job *job = pawl_job_of(ctx);
    char word[32] = "";
    memcpy(word, job->payload, job->payload_len < 31 ? job->payload_len : 31);
    pawl_job_error(ctx, "BAD\x01", "first\nsecond \xff\x1b[31m");
    if (strcmp(word, "retry once") == 0)
        return pawl_job_attempt(ctx) == 1 ? PAWL_RETRY : PAWL_SUCCEED;
    if (strcmp(word, "retry later") == 0) {
        pawl_job_delay(ctx, 3600000);
        return PAWL_RETRY;
    }
    if (strcmp(word, "fail") == 0)
        return PAWL_FAIL;
    if (strcmp(word, "snooze") == 0) {
        pawl_job_delay(ctx, 3600000);
        return PAWL_SNOOZE;
    }
    if (strcmp(word, "odd") == 0)
        return pawl_job_attempt(ctx) == 1 ? 77 : PAWL_SUCCEED;
    if (strcmp(word, "mine") == 0) {
        pawl_store *own = NULL;
        pawl_settle_row row;
        pawl_settled settled;
        pawl_settle_init(&row);
        row.lease = (pawl_lease){
            .job = job->id, .token = job->token, .version = job->lease_version};
        if (stage_open(stage, &own, NULL) != PAWL_OK)
            return PAWL_FAIL;
        pawl_code code = pawl_settle(own, pawl_job_worker(ctx), &row, 1, &settled, NULL);
        pawl_store_close(own);
        return code == PAWL_OK && settled.code == PAWL_OK ? PAWL_SETTLED_BY_ME : PAWL_FAIL;
    }
    pawl_job_progress(ctx, "half\nway");
    /* It has most of the time that it has, and its lease has a number. */
    int64_t left_ms = pawl_job_left_ms(ctx);
    bool is_right = left_ms > 0 && left_ms <= job->timeout_ms && job->lease_version == 1 &&
                    pawl_job_grace_ms(ctx) == -1 &&
                    strcmp(pawl_job_cancel_reason(ctx), "none") == 0;
    return is_right ? PAWL_SUCCEED : PAWL_FAIL;
}

/* The presence row names the queues, as many as fit. */
static void a_worker_says_which_queues_it_serves(void **state)
{
    struct stage *stage = *state;
    char names[20][101];
    pawl_worker_queue queues[20];
    pawl_worker_options options;
    stage_options(stage, &options);
    for (size_t i = 0; i < 20; i++) {
        memset(names[i], (int)('a' + i), 100);
        names[i][100] = '\0';
        queues[i] = stage_queue;
        queues[i].queue = names[i];
    }
    options.queues = queues;
    options.queues_count = 20;
    options.handler = obey;
    options.user = stage;
    pawl_worker rows[4];
    size_t count = 0;
    pawl_runner *runner = stage_start(&options);
    AWAIT(pawl_workers(stage->store, NULL, rows, 4, &count, NULL) == PAWL_OK && count == 2);
    const pawl_worker *worker = &rows[rows[0].kind == PAWL_KIND_WORKER ? 0 : 1];
    const pawl_worker *reaper = &rows[rows[0].kind == PAWL_KIND_WORKER ? 1 : 0];
    size_t len = strlen(worker->queues);
    assert_int_equal(len, 10 * 101 - 1 + 4); /* ten of them, and that there are more */
    assert_memory_equal(worker->queues, names[0], 100);
    assert_int_equal(worker->queues[100], ' ');
    assert_memory_equal(worker->queues + 909, names[9], 100);
    assert_string_equal(worker->queues + len - 4, " ...");
    assert_string_equal(reaper->queues, "");
    stage_stop(stage, runner);
}

static void each_answer_is_settled_as_it_says(void **state)
{
    struct stage *stage = *state;
    pawl_worker_options options;
    stage_options(stage, &options);
    options.handler = obey;
    options.user = stage;
    pawl_id done = stage_enqueue(stage, "done");
    pawl_id retry = stage_enqueue(stage, "retry once");
    pawl_id later = stage_enqueue(stage, "retry later");
    pawl_id fail = stage_enqueue(stage, "fail");
    pawl_id snooze = stage_enqueue(stage, "snooze");
    pawl_id odd = stage_enqueue(stage, "odd");
    pawl_id mine = stage_enqueue(stage, "mine");
    pawl_runner *runner = stage_start(&options);
    AWAIT(stage_stats(stage).succeeded == 4 && stage_stats(stage).failed == 1 &&
          stage_stats(stage).delayed == 2);
    assert_int_equal(stage_job(stage, &done).state, PAWL_SUCCEEDED);
    assert_int_equal(stage_job(stage, &retry).retries, 1);
    assert_int_equal(stage_job(stage, &odd).retries, 1);
    assert_int_equal(stage_job(stage, &later).retries, 1);
    assert_int_equal(stage_job(stage, &fail).reason, PAWL_REASON_FATAL);
    assert_int_equal(stage_job(stage, &snooze).retries, 0);
    assert_int_equal(stage_job(stage, &snooze).reason, PAWL_REASON_SNOOZE);
    assert_int_equal(stage_job(stage, &mine).attempts, 1);
    pawl_attempt row = stage_attempt(stage, &retry, 1);
    assert_string_equal(row.error_code, "BAD?");
    assert_string_equal(row.error_text, "first\nsecond ??[31m");
    assert_string_equal(stage_attempt(stage, &done, 1).error_text, "");
    AWAIT(stage_told(stage, PAWL_EVENT_JOB_PROGRESS, NULL) == 1);
    pthread_mutex_lock(&stage->mutex);
    for (size_t i = 0; i < stage->events_count; i++) {
        const pawl_event *event = &stage->events[i];
        if (event->kind == PAWL_EVENT_JOB_PROGRESS) {
            assert_string_equal(event->text, "half?way");
            assert_memory_equal(&event->job, &done, sizeof(done));
        }
    }
    pthread_mutex_unlock(&stage->mutex);
    stage_stop(stage, runner);
    assert_int_equal(stage_told(stage, PAWL_EVENT_JOB_OVER, "settled_by_handler"), 1);
}

/* ---------------------------------------------------------------- bounds */

struct crowd {
    atomic_int running;
    atomic_int most;
    atomic_int done;
    atomic_bool may_end;
};

static int join_crowd(pawl_job_ctx *ctx, void *user)
{
    struct crowd *crowd = user;
    int running = atomic_fetch_add(&crowd->running, 1) + 1;
    int most = atomic_load(&crowd->most);
    while (running > most && !atomic_compare_exchange_weak(&crowd->most, &most, running))
        ;
    while (!atomic_load(&crowd->may_end) && !pawl_job_is_cancelled(ctx))
        stage_breathe();
    atomic_fetch_sub(&crowd->running, 1);
    atomic_fetch_add(&crowd->done, 1);
    return pawl_job_is_cancelled(ctx) ? PAWL_RETRY : PAWL_SUCCEED;
}

/* RULE-020-041 */
static void no_more_run_at_once_than_it_is_set_to(void **state)
{
    struct stage *stage = *state;
    struct crowd crowd = {.may_end = false};
    pawl_worker_options options;
    stage_options(stage, &options);
    options.handler = join_crowd;
    options.user = &crowd;
    stage_enqueue_many(stage, 40);
    pawl_runner *runner = stage_start(&options);
    pawl_worker_counts counts;
    AWAIT((pawl_worker_count(runner, &counts), counts.running == 10 && counts.buffered == 10));
    AWAIT(atomic_load(&crowd.running) == 10);
    assert_int_equal(stage_stats(stage).in_flight, 20); /* memory is bounded: RULE-020-042 */
    atomic_store(&crowd.may_end, true);
    AWAIT(stage_stats(stage).succeeded == 40);
    assert_int_equal(atomic_load(&crowd.most), 10);
    stage_stop(stage, runner);
}

static void settings_change_while_it_runs(void **state)
{
    struct stage *stage = *state;
    struct crowd crowd = {.may_end = true};
    pawl_worker_options options;
    pawl_err err;
    stage_options(stage, &options);
    options.handler = join_crowd;
    options.user = &crowd;
    pawl_runner *runner = stage_start(&options);
    pawl_worker_settings settings = options.settings;
    settings.parallel_max = 2;
    settings.buffer_max = 0;
    assert_int_equal(pawl_worker_set(runner, &settings, &err), PAWL_OK);
    /* A claim that was under way asked for more; the one after the next does not. */
    int64_t claims = fault_gate_passed(&stage->gate, FAULT_CLAIM);
    AWAIT(fault_gate_passed(&stage->gate, FAULT_CLAIM) >= claims + 2);
    atomic_store(&crowd.may_end, false);
    stage_enqueue_many(stage, 12);
    AWAIT(atomic_load(&crowd.running) == 2);
    assert_int_equal(stage_stats(stage).in_flight, 2);
    settings.parallel_max = 12; /* grows back: 20 were there at the start */
    assert_int_equal(pawl_worker_set(runner, &settings, &err), PAWL_OK);
    AWAIT(atomic_load(&crowd.running) == 12);
    settings.parallel_max = 21;
    assert_int_equal(pawl_worker_set(runner, &settings, &err), PAWL_FULL);
    settings.parallel_max = 0;
    assert_int_equal(pawl_worker_set(runner, &settings, &err), PAWL_INVALID);
    atomic_store(&crowd.may_end, true);
    AWAIT(stage_stats(stage).succeeded == 12);
    stage_stop(stage, runner);
}

/* RULE-020-002: another lease, for what is claimed and renewed from now on. */
static void the_lease_changes_while_it_runs(void **state)
{
    struct stage *stage = *state;
    struct crowd crowd = {.may_end = false};
    pawl_worker_options options;
    pawl_err err = {.text = ""};
    stage_options(stage, &options);
    options.handler = join_crowd;
    options.user = &crowd;
    pawl_runner *runner = stage_start(&options);
    pawl_id first = stage_enqueue(stage, "");
    AWAIT(atomic_load(&crowd.running) == 1);
    pawl_worker_tuning tuning = {.settings = options.settings,
                                 .lease_ms = 60000,
                                 .reaper_interval_ms = PAWL_DEFAULT,
                                 .level = PAWL_LEVEL_DEBUG};
    assert_int_equal(pawl_worker_tune(runner, &tuning, &err), PAWL_OK);
    AWAIT(stage_told(stage, PAWL_EVENT_SETTINGS, NULL) == 1);
    /* A claim that was under way asked for the old one. */
    int64_t claims = fault_gate_passed(&stage->gate, FAULT_CLAIM);
    AWAIT(fault_gate_passed(&stage->gate, FAULT_CLAIM) >= claims + 2);
    pawl_id second = stage_enqueue(stage, "");
    AWAIT(atomic_load(&crowd.running) == 2);
    assert_int_equal(stage_job(stage, &second).lease_ms, 60000);
    pawl_job job = stage_job(stage, &first);
    AWAIT((job = stage_job(stage, &first), job.expires_at.us - job.claimed_at.us > 50000000));
    atomic_store(&crowd.may_end, true);
    AWAIT(stage_stats(stage).succeeded == 2);
    stage_stop(stage, runner);
}

/* What is refused changes nothing, not even what would have been right. */
static void a_tuning_is_taken_whole_or_not_at_all(void **state)
{
    struct stage *stage = *state;
    pawl_worker_options options;
    pawl_err err;
    stage_options(stage, &options);
    options.handler = obey;
    pawl_runner *runner = stage_start(&options);
    const pawl_worker_tuning good = {.settings = options.settings,
                                     .lease_ms = PAWL_DEFAULT,
                                     .reaper_interval_ms = PAWL_DEFAULT,
                                     .level = PAWL_LEVEL_ERROR};
    pawl_worker_tuning bad[6] = {good, good, good, good, good, good};
    static const char *const names[] = {"lease_ms",     "interval_ms",  "level",
                                        "parallel_max", "parallel_max", "heartbeat_ms"};
    bad[0].lease_ms = PAWL_LEASE_MIN_MS - 1;
    bad[1].reaper_interval_ms = stage_lease_ms();
    bad[2].level = (pawl_level)7;
    bad[3].settings.parallel_max = 0;
    bad[4].settings.parallel_max = 1000;
    bad[5].settings.heartbeat_ms = 1000;
    bad[5].lease_ms = 3000; /* 3 x heartbeat must be below it */
    for (size_t i = 0; i < 6; i++) {
        pawl_code code = pawl_worker_tune(runner, &bad[i], &err);
        assert_int_equal(code, i == 4 ? PAWL_FULL : PAWL_INVALID);
        assert_non_null(strstr(err.text, names[i]));
    }
    assert_int_equal(pawl_worker_tune(NULL, &good, &err), PAWL_INVALID);
    assert_int_equal(pawl_worker_tune(runner, NULL, &err), PAWL_INVALID);
    size_t calls = stage_told(stage, PAWL_EVENT_CALL, NULL);
    AWAIT(stage_told(stage, PAWL_EVENT_CALL, NULL) > calls); /* it still tells all */
    assert_int_equal(stage_told(stage, PAWL_EVENT_SETTINGS, NULL), 0);
    assert_int_equal(pawl_worker_tune(runner, &good, &err), PAWL_OK);
    AWAIT(stage_told(stage, PAWL_EVENT_SETTINGS, NULL) == 1);
    stage_stop(stage, runner);
    assert_int_equal(stage_told(stage, PAWL_EVENT_WORKER_STOPPED, NULL), 0); /* below the level */
}

/* RULE-020-042: it claims and starts nothing while its downstream is saturated, and goes on after.
 */
static void a_paused_worker_takes_nothing(void **state)
{
    struct stage *stage = *state;
    struct crowd crowd = {.may_end = false};
    pawl_worker_options options;
    pawl_err err;
    stage_options(stage, &options);
    options.handler = join_crowd;
    options.user = &crowd;
    options.settings.parallel_max = 2;
    options.settings.buffer_max = 2;
    pawl_runner *runner = stage_start(&options);
    stage_enqueue_many(stage, 6);
    AWAIT(stage_stats(stage).in_flight == 4 && atomic_load(&crowd.running) == 2);
    assert_int_equal(pawl_worker_pause(runner, NULL, &err), PAWL_OK);
    atomic_store(&crowd.may_end, true);
    AWAIT(stage_stats(stage).succeeded == 2);
    int64_t claims = fault_gate_passed(&stage->gate, FAULT_CLAIM);
    /* What it holds is not started, and given back once it was held for a whole lease. */
    AWAIT(stage_stats(stage).ready == 4);
    assert_int_equal(atomic_load(&crowd.done), 2);
    assert_int_equal(fault_gate_passed(&stage->gate, FAULT_CLAIM), claims);
    assert_int_equal(pawl_worker_resume(runner, NULL, &err), PAWL_OK);
    AWAIT(stage_stats(stage).succeeded == 6);

    assert_int_equal(pawl_worker_pause(runner, STAGE_QUEUE, &err), PAWL_OK);
    assert_int_equal(pawl_worker_pause(runner, "other", &err), PAWL_INVALID);
    stage_enqueue_many(stage, 1);
    assert_int_equal(pawl_worker_resume(runner, STAGE_QUEUE, &err), PAWL_OK);
    AWAIT(stage_stats(stage).succeeded == 7);
    stage_stop(stage, runner);
    assert_int_equal(stage_told(stage, PAWL_EVENT_PAUSED, NULL), 2);
}

/* ---------------------------------------------------------------- names and rows */

/* RULE-020-032; and who is there is shown, and is gone after an orderly end. */
static void each_worker_has_a_name_and_a_row(void **state)
{
    struct stage *stage = *state;
    struct crowd crowd = {.may_end = true};
    pawl_worker_options options;
    pawl_worker rows[8];
    size_t count = 0;
    stage_options(stage, &options);
    options.handler = join_crowd;
    options.user = &crowd;
    pawl_runner *one = stage_start(&options);
    pawl_runner *two = stage_start(&options);
    assert_string_not_equal(pawl_worker_name(one), pawl_worker_name(two));
    assert_int_equal(strncmp(pawl_worker_name(one), "tested/", 7), 0);
    AWAIT(pawl_workers(stage->store, NULL, rows, 8, &count, NULL) == PAWL_OK && count == 4);
    size_t reapers = 0;
    for (size_t i = 0; i < count; i++)
        reapers += rows[i].kind == PAWL_KIND_REAPER;
    assert_int_equal(reapers, 2);
    stage_stop(stage, one);
    stage_stop(stage, two);
    assert_int_equal(pawl_workers(stage->store, NULL, rows, 8, &count, NULL), PAWL_OK);
    assert_int_equal(count, 0);
}

/* ---------------------------------------------------------------- refusals */

static void bad_options_are_named(void **state)
{
    struct stage *stage = *state;
    pawl_worker_options good, bad;
    pawl_runner *runner = NULL;
    pawl_err err;
    stage_options(stage, &good);
    good.handler = join_crowd;
    static const pawl_worker_queue twice[] = {{"a", PAWL_DEFAULT, PAWL_DEFAULT},
                                              {"a", PAWL_DEFAULT, PAWL_DEFAULT}};
    static const pawl_worker_queue blank[] = {{"a b", PAWL_DEFAULT, PAWL_DEFAULT}};
#define REFUSED(change, words)                                                  \
    do {                                                                        \
        bad = good;                                                             \
        change;                                                                 \
        assert_int_equal(pawl_worker_start(&bad, &runner, &err), PAWL_INVALID); \
        if (strstr(err.text, words) == NULL)                                    \
            fail_msg("\"%s\" does not say \"%s\"", err.text, words);            \
    } while (0)
    REFUSED(bad.opener.open = NULL, "opener.open");
    REFUSED(bad.handler = NULL, "handler");
    REFUSED(bad.queues = NULL, "queues");
    REFUSED(bad.queues_count = 0, "queues_count");
    REFUSED((bad.queues = twice, bad.queues_count = 2), "\"a\" is given twice");
    REFUSED(bad.queues = blank, "queues[0].queue");
    REFUSED(bad.name = "a b", "name");
    REFUSED(bad.presence_ms = 0, "presence_ms");
    REFUSED(bad.settings.parallel_max = 0, "parallel_max");
    /* RULE-020-011, RULE-020-031, RULE-020-022: against the smallest lease, as the store has it */
    REFUSED(bad.settings.heartbeat_ms = stage_lease_ms() / 3 + 1, "heartbeat_ms");
    REFUSED(bad.settings.shutdown_timeout_ms = stage_lease_ms() + 1, "shutdown_timeout_ms");
    REFUSED(bad.reaper.interval_ms = stage_lease_ms(), "interval_ms");
    assert_int_equal(pawl_worker_start(NULL, &runner, &err), PAWL_INVALID);
    assert_int_equal(pawl_worker_start(&good, NULL, &err), PAWL_INVALID);
    assert_null(runner);
}

/* ---------------------------------------------------------------- watching */

struct slow {
    struct fault_gate gate;
    atomic_llong dropped;
    atomic_int told;
};

static void tell_slowly(void *user, const pawl_event *event)
{
    struct slow *slow = user;
    (void)fault_gate_pass(&slow->gate, FAULT_ENQUEUE);
    if (event->kind == PAWL_EVENT_DROPPED)
        atomic_fetch_add(&slow->dropped, event->count);
    atomic_fetch_add(&slow->told, 1);
}

/* A log that hangs holds up nothing; what was lost is counted. */
static void a_slow_watcher_holds_up_nobody(void **state)
{
    struct stage *stage = *state;
    struct crowd crowd = {.may_end = true};
    struct slow slow = {.dropped = 0};
    pawl_worker_options options;
    stage_options(stage, &options);
    options.handler = join_crowd;
    options.user = &crowd;
    options.watch.tell = tell_slowly;
    options.watch.user = &slow;
    fault_gate_init(&slow.gate);
    fault_gate_close(&slow.gate, FAULT_ENQUEUE);
    pawl_runner *runner = NULL;
    assert_int_equal(pawl_worker_start(&options, &runner, NULL), PAWL_OK);
    stage_enqueue_many(stage, 500);
    AWAIT(stage_stats(stage).succeeded == 500);
    assert_int_equal(atomic_load(&slow.told), 0);
    fault_gate_open(&slow.gate, FAULT_ENQUEUE);
    AWAIT(atomic_load(&slow.told) > 1000);
    stage_enqueue_many(stage, 1); /* the next event tells of those that were lost */
    AWAIT(atomic_load(&slow.dropped) > 0);
    pawl_worker_stop(runner, 0);
    assert_int_equal(pawl_worker_free(runner), 0);
    fault_gate_clear(&slow.gate);
}

/* Every allocation of a start fails once: it says so, leaks nothing, and the next one works. */
static void memory_may_run_out_at_the_start(void **state)
{
    struct stage *stage = *state;
    struct crowd crowd = {.may_end = true};
    pawl_worker_options options;
    pawl_err err;
    uint64_t nth = 1;
    stage_options(stage, &options);
    options.handler = join_crowd;
    options.user = &crowd;
    for (bool is_over = stage->memory == NULL; !is_over; nth++) {
        pawl_runner *runner = NULL;
        alloc_fail_nth(nth);
        pawl_code code = pawl_worker_start(&options, &runner, &err);
        is_over = !alloc_fail_end();
        if (code != PAWL_OK) {
            assert_int_equal(code, PAWL_NO_MEMORY);
            assert_null(runner);
            continue;
        }
        pawl_worker_stop(runner, 0);
        assert_int_equal(pawl_worker_free(runner), 0);
    }
    assert_true(nth > 30 || stage->memory == NULL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CASE(a_worker_says_which_queues_it_serves),
        CASE(each_answer_is_settled_as_it_says),
        CASE(no_more_run_at_once_than_it_is_set_to),
        CASE(settings_change_while_it_runs),
        CASE(the_lease_changes_while_it_runs),
        CASE(a_tuning_is_taken_whole_or_not_at_all),
        CASE(a_paused_worker_takes_nothing),
        CASE(each_worker_has_a_name_and_a_row),
        CASE(bad_options_are_named),
        CASE(a_slow_watcher_holds_up_nobody),
        CASE(memory_may_run_out_at_the_start),
    };
    return kinds_run(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}

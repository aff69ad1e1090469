/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * metrics_test.c - each event and each figure, made to happen by real workers and reapers on a
 * store whose calls are let go wrong; and a callback that blocks. RULE-020-023, RULE-020-032,
 * RULE-020-052, FR-005.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/event_table.h"
#include "runtime/kinds.h"
#include "runtime/stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_MS 100

/* What the handlers of these tests know. */
struct hands {
    struct stage *stage;
    atomic_int running;
    atomic_bool may_end;
};

struct scene {
    struct stage *stage;
    struct hands hands;
    pawl_metrics *metrics;
    pawl_worker_options options;
    pawl_runner *runner;
};

/* ---------------------------------------------------------------- handlers */

/* Settle the job in its own name, past the worker. */
static void settle_past_worker(struct hands *hands, pawl_job_ctx *ctx, pawl_settle_action action)
{
    pawl_store *store = NULL;
    pawl_settle_row row;
    pawl_settled result;
    const pawl_job *job = pawl_job_of(ctx);
    pawl_settle_init(&row);
    row.action = action;
    row.lease = (pawl_lease){.job = job->id, .token = job->token, .version = job->lease_version};
    assert_int_equal(stage_open(hands->stage, &store, NULL), PAWL_OK);
    assert_int_equal(pawl_settle(store, pawl_job_worker(ctx), &row, 1, &result, NULL), PAWL_OK);
    assert_int_equal(result.code, PAWL_OK);
    pawl_store_close(store);
}

/* The payload says what to do. */
static int work(pawl_job_ctx *ctx, void *user)
{
    struct hands *hands = user;
    const pawl_job *job = pawl_job_of(ctx);
    const char *word = job->payload_len > 0 ? job->payload : "";
    size_t len = job->payload_len;
    if (len >= 4 && (memcmp(word, "wait", 4) == 0 || memcmp(word, "deaf", 4) == 0)) {
        atomic_fetch_add(&hands->running, 1);
        pawl_job_progress(ctx, "waiting");
        while (!atomic_load(&hands->may_end) && (word[0] == 'd' || !pawl_job_is_cancelled(ctx)))
            stage_breathe();
        atomic_fetch_sub(&hands->running, 1);
        return atomic_load(&hands->may_end) ? PAWL_SUCCEED : PAWL_RETRY;
    }
    if (len == 4 && memcmp(word, "mine", 4) == 0) {
        settle_past_worker(hands, ctx, PAWL_SUCCEED);
        return PAWL_SETTLED_BY_ME;
    }
    if (len == 5 && memcmp(word, "steal", 5) == 0) {
        settle_past_worker(hands, ctx, PAWL_FAIL);
        return PAWL_SUCCEED;
    }
    pawl_job_delay(ctx, 3600 * 1000);
    return len == 5 && memcmp(word, "retry", 5) == 0  ? PAWL_RETRY
           : len == 4 && memcmp(word, "fail", 4) == 0 ? PAWL_FAIL
           : len == 6                                 ? PAWL_SNOOZE
                                                      : PAWL_SUCCEED;
}

/* ---------------------------------------------------------------- helpers */

static void begin(struct scene *scene, struct stage *stage)
{
    pawl_metrics_options options;
    *scene = (struct scene){.stage = stage, .hands = {.stage = stage}};
    pawl_metrics_options_init(&options);
    options.look_ms = LOOK_MS;
    assert_int_equal(pawl_metrics_new(&options, &scene->metrics, NULL), PAWL_OK);
    stage_options(stage, &scene->options);
    scene->options.handler = work;
    scene->options.user = &scene->hands;
    scene->options.metrics = scene->metrics;
    scene->options.reaper.interval_ms = 200;
}

static void start(struct scene *scene)
{
    scene->runner = stage_start(&scene->options);
}

static void end(struct scene *scene)
{
    atomic_store(&scene->hands.may_end, true);
    if (scene->runner != NULL)
        stage_stop(scene->stage, scene->runner);
    pawl_metrics_free(scene->metrics);
}

/* The figure of that name and labels; -1 where there is none. */
static double figure(struct scene *scene, const char *name)
{
    char *text = NULL;
    double value = -1;
    size_t len = strlen(name);
    assert_int_equal(pawl_metrics_text(scene->metrics, &text, NULL, NULL), PAWL_OK);
    for (const char *at = text; at != NULL; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (strncmp(at, name, len) == 0 && at[len] == ' ')
            value = strtod(at + len, NULL);
    }
    free(text);
    return value;
}

#define IS(name, value)    (figure(&scene, name) == (double)(value))
#define ABOVE(name, value) (figure(&scene, name) > (double)(value))
#define JOBS(outcome)      "pawl_jobs_total{queue=\"work\",outcome=\"" outcome "\"}"

static pawl_event find_event(struct stage *stage, pawl_event_kind kind)
{
    pawl_event event = {.kind = PAWL_EVENT_KINDS};
    pthread_mutex_lock(&stage->mutex);
    for (size_t i = 0; i < stage->events_count && event.kind != kind; i++)
        if (stage->events[i].kind == kind)
            event = stage->events[i];
    pthread_mutex_unlock(&stage->mutex);
    if (event.kind != kind)
        fail_msg("%s was not told", pawl_event_id(kind));
    return event;
}

/* What a worker holds: as the store tells it. */
static pawl_job held_by(struct scene *scene, const pawl_id *id)
{
    pawl_job jobs[16];
    size_t count = 0;
    pawl_job found = {.state = PAWL_READY};
    assert_int_equal(pawl_mine(scene->stage->store, pawl_worker_name(scene->runner), NULL, jobs, 16,
                               &count, NULL),
                     PAWL_OK);
    for (size_t i = 0; i < count; i++) {
        if (pawl_id_compare(&jobs[i].id, id) == 0)
            found = jobs[i];
        pawl_job_clear(&jobs[i]);
    }
    assert_int_equal(found.state, PAWL_IN_FLIGHT);
    return found;
}

/* ---------------------------------------------------------------- what becomes of jobs */

static void outcomes_are_counted(void **state)
{
    struct scene scene;
    begin(&scene, *state);
    start(&scene);
    stage_enqueue(scene.stage, "done");
    stage_enqueue(scene.stage, "done");
    stage_enqueue(scene.stage, "retry");
    stage_enqueue(scene.stage, "fail");
    stage_enqueue(scene.stage, "snooze");
    stage_enqueue(scene.stage, "mine");
    AWAIT(IS(JOBS("succeeded"), 2) && IS(JOBS("retried"), 1) && IS(JOBS("failed"), 1) &&
          IS(JOBS("snoozed"), 1) && IS(JOBS("settled_by_handler"), 1));
    assert_true(IS(JOBS("lost"), 0) && IS(JOBS("released"), 0) && IS(JOBS("cancelled"), 0));
    assert_true(IS("pawl_job_wait_seconds_count{queue=\"work\"}", 6));
    assert_true(IS("pawl_job_run_seconds_count{queue=\"work\"}", 6));
    assert_true(IS("pawl_job_run_seconds_bucket{queue=\"work\",le=\"+Inf\"}", 6));
    assert_true(ABOVE("pawl_store_call_seconds_count{verb=\"claim\"}", 0));
    assert_true(ABOVE("pawl_store_call_seconds_count{verb=\"settle\"}", 0));
    AWAIT(IS("pawl_slots_in_use", 0));
    assert_true(IS("pawl_slots_max", 10));
    char name[256];
    snprintf(name, sizeof(name), "pawl_worker_info{worker=\"%s\",kind=\"worker\"}",
             pawl_worker_name(scene.runner)); /* RULE-020-032 */
    assert_true(IS(name, 1));
    AWAIT(stage_told(scene.stage, PAWL_EVENT_JOB_SETTLED, NULL) == 5);
    assert_int_equal(stage_told(scene.stage, PAWL_EVENT_JOB_SETTLED, "error"), 1);
    assert_int_equal(stage_told(scene.stage, PAWL_EVENT_JOB_SETTLED, "fatal"), 1);
    assert_int_equal(stage_told(scene.stage, PAWL_EVENT_JOB_SETTLED, "snooze"), 1);
    stage_stop(scene.stage, scene.runner);
    scene.runner = NULL;
    assert_true(IS("pawl_slots_max", 0)); /* it is no more */
    assert_true(IS(name, -1));
    end(&scene);
}

/* What nobody wants to be told is counted all the same. */
static void levels_are_for_telling_only(void **state)
{
    struct scene scene;
    begin(&scene, *state);
    scene.options.watch.level = PAWL_LEVEL_WARN;
    start(&scene);
    stage_enqueue(scene.stage, "done");
    stage_enqueue(scene.stage, "fail");
    AWAIT(IS(JOBS("succeeded"), 1) && IS(JOBS("failed"), 1));
    AWAIT(stage_told(scene.stage, PAWL_EVENT_JOB_SETTLED, NULL) == 1);
    stage_stop(scene.stage, scene.runner);
    scene.runner = NULL;
    for (size_t i = 0; i < scene.stage->events_count; i++)
        assert_true(scene.stage->events[i].level >= PAWL_LEVEL_WARN);
    end(&scene);
}

/* A lease that the worker has not lost, and what it says of it all the same refused: three ways. */
static void fenced_writes_are_counted(void **state)
{
    struct scene scene;
    begin(&scene, *state);
    scene.options.settings.parallel_max = 1;
    start(&scene);
    /* A settle: the handler has settled it otherwise. */
    stage_enqueue(scene.stage, "steal");
    AWAIT(IS("pawl_fenced_writes_total{verb=\"settle\"}", 1));
    AWAIT(IS(JOBS("lost"), 1));
    /* A renewal: somebody has settled it under the same lease. */
    pawl_id running = stage_enqueue(scene.stage, "wait");
    AWAIT(atomic_load(&scene.hands.running) == 1);
    pawl_job job = held_by(&scene, &running);
    pawl_settle_row row;
    pawl_settled result;
    pawl_settle_init(&row);
    row.lease = (pawl_lease){.job = job.id, .token = job.token, .version = job.lease_version};
    assert_int_equal(
        pawl_settle(scene.stage->store, pawl_worker_name(scene.runner), &row, 1, &result, NULL),
        PAWL_OK);
    AWAIT(IS("pawl_fenced_writes_total{verb=\"renew\"}", 1));
    AWAIT(IS("pawl_job_aborts_total{reason=\"lease_lost\"}", 1));
    AWAIT(IS(JOBS("lost"), 2));
    /* A release: somebody has given it back. Held while the only slot is taken. */
    stage_enqueue(scene.stage, "wait");
    AWAIT(atomic_load(&scene.hands.running) == 1);
    pawl_id buffered = stage_enqueue(scene.stage, "done");
    AWAIT(IS("pawl_jobs_held{state=\"buffered\"}", 1));
    AWAIT(IS("pawl_slots_in_use", 1));
    job = held_by(&scene, &buffered);
    pawl_lease lease = {.job = job.id, .token = job.token, .version = job.lease_version};
    pawl_code verdict = PAWL_INVALID;
    fault_gate_close(&scene.stage->gate, FAULT_CLAIM); /* nobody takes it again */
    assert_int_equal(
        pawl_release(scene.stage->store, pawl_worker_name(scene.runner), &lease, 1, &verdict, NULL),
        PAWL_OK);
    assert_int_equal(verdict, PAWL_OK);
    pawl_worker_stop(scene.runner, PAWL_DEFAULT);
    fault_gate_open(&scene.stage->gate, FAULT_CLAIM);
    AWAIT(IS("pawl_fenced_writes_total{verb=\"release\"}", 1) ||
          IS("pawl_fenced_writes_total{verb=\"renew\"}", 2));
    AWAIT(stage_told(scene.stage, PAWL_EVENT_SETTLE_REFUSED, NULL) >= 1);
    assert_string_equal(find_event(scene.stage, PAWL_EVENT_SETTLE_REFUSED).subject, "settle");
    end(&scene);
}

/* With a lease that needs no renewal, and does not end while a slow machine looks at it. */
static const pawl_worker_queue long_queue = {STAGE_QUEUE, PAWL_DEFAULT, 60000};

/* One job runs until it may end, and one is held behind it, in a worker that runs one at a time. */
static void begin_with_one_held(struct scene *scene, struct stage *stage)
{
    begin(scene, stage);
    scene->options.queues = &long_queue;
    scene->options.settings.parallel_max = 1;
    start(scene);
    stage_enqueue(stage, "wait");
    AWAIT(atomic_load(&scene->hands.running) == 1);
    stage_enqueue(stage, "done");
    AWAIT(figure(scene, "pawl_jobs_held{state=\"buffered\"}") == 1);
}

static void released_jobs_are_counted(void **state)
{
    struct scene scene;
    begin_with_one_held(&scene, *state);
    pawl_worker_stop(scene.runner, PAWL_DEFAULT);
    AWAIT(IS(JOBS("released"), 1));
    AWAIT(stage_told(scene.stage, PAWL_EVENT_WORKER_STOPPING, "shutdown") == 1);
    pawl_worker_abort(scene.runner);
    AWAIT(IS("pawl_job_aborts_total{reason=\"abort_all\"}", 1) ||
          IS("pawl_job_aborts_total{reason=\"shutdown\"}", 1));
    end(&scene);
}

/* A release whose answer was lost is sent again, and finds that it was done: nothing was fenced. */
static void a_release_that_is_repeated_is_not_fenced(void **state)
{
    struct scene scene;
    begin_with_one_held(&scene, *state);
    fault_gate_set(&scene.stage->gate, FAULT_RELEASE, FAULT_LOST_REPLY);
    int64_t before = fault_gate_passed(&scene.stage->gate, FAULT_RELEASE);
    pawl_worker_stop(scene.runner, PAWL_DEFAULT);
    AWAIT(fault_gate_passed(&scene.stage->gate, FAULT_RELEASE) > before);
    AWAIT(stage_told_about(scene.stage, PAWL_EVENT_CALL_FAILED, "release") > 0);
    fault_gate_open(&scene.stage->gate, FAULT_RELEASE);
    AWAIT(IS(JOBS("released"), 1));
    assert_true(IS("pawl_fenced_writes_total{verb=\"release\"}", 0));
    assert_int_equal(stage_told(scene.stage, PAWL_EVENT_SETTLE_REFUSED, NULL), 0);
    pawl_worker_abort(scene.runner);
    end(&scene);
}

/* ---------------------------------------------------------------- renewals */

static void set_timeout(struct stage *stage, int64_t timeout_ms)
{
    pawl_queue_settings settings;
    assert_int_equal(pawl_queue_get(stage->store, STAGE_QUEUE, &settings, NULL), PAWL_OK);
    settings.execution_timeout_ms = timeout_ms;
    settings.backoff_base_ms = settings.backoff_max_ms = 3600 * 1000;
    assert_int_equal(pawl_queue_set(stage->store, STAGE_QUEUE, &settings, NULL), PAWL_OK);
}

/* Rows of renewals that were answered in time, and well, by the events of a worker that ended. */
static int64_t renewed_in_time(const struct stage *stage)
{
    int64_t rows = 0;
    for (size_t i = 0; i < stage->events_count; i++) {
        const pawl_event *event = &stage->events[i];
        if (event->kind == PAWL_EVENT_CALL && strcmp(event->subject, "renew") == 0 &&
            strcmp(event->reason, "late") != 0)
            rows += event->count - event->refused;
    }
    return rows;
}

/* Each that was answered in time is counted once; one that was late has been counted as failed. */
static void expect_renewed(struct scene *scene)
{
    assert_int_equal((int64_t)figure(scene, "pawl_renewals_total{result=\"ok\"}"),
                     renewed_in_time(scene->stage));
}

static void renewals_are_counted_by_what_the_store_says(void **state)
{
    struct scene scene;
    pawl_changed changed;
    begin(&scene, *state);
    start(&scene);
    pawl_id id = stage_enqueue(scene.stage, "wait");
    AWAIT(ABOVE("pawl_renewals_total{result=\"ok\"}", 1));
    assert_true(ABOVE("pawl_store_call_seconds_count{verb=\"renew\"}", 1));
    assert_int_equal(pawl_cancel(scene.stage->store, &id, 1, &changed, NULL), PAWL_OK);
    AWAIT(IS("pawl_renewals_total{result=\"cancelled\"}", 1));
    AWAIT(IS("pawl_job_aborts_total{reason=\"cancelled\"}", 1));
    AWAIT(IS(JOBS("cancelled"), 1));
    assert_true(IS("pawl_fenced_writes_total{verb=\"renew\"}", 0)); /* its lease was good */
    AWAIT(stage_told(scene.stage, PAWL_EVENT_RENEW_REFUSED, NULL) == 1);
    pawl_event event = find_event(scene.stage, PAWL_EVENT_RENEW_REFUSED);
    assert_int_equal(event.code, PAWL_CANCELLED);
    assert_int_equal(pawl_id_compare(&event.job, &id), 0);
    set_timeout(scene.stage, 1500);
    stage_enqueue(scene.stage, "wait");
    AWAIT(IS("pawl_job_aborts_total{reason=\"timeout\"}", 1) && ABOVE(JOBS("retried"), 0));
    AWAIT(stage_told(scene.stage, PAWL_EVENT_JOB_SETTLED, "timeout") == 1);
    atomic_store(&scene.hands.may_end, true);
    stage_stop(scene.stage, scene.runner);
    scene.runner = NULL;
    expect_renewed(&scene);
    end(&scene);
}

/* FR-005, NFR-005: a renewal that fails is told with job, worker and code, once for each job, and
 * the end of renewals with its reason. */
static void renewals_that_fail_are_told_with_their_job(void **state)
{
    struct scene scene;
    begin(&scene, *state);
    start(&scene);
    pawl_id first = stage_enqueue(scene.stage, "wait");
    pawl_id second = stage_enqueue(scene.stage, "wait");
    AWAIT(atomic_load(&scene.hands.running) == 2);
    /* Neither is taken again where their leases end while this looks. */
    assert_int_equal(pawl_queue_pause(scene.stage->store, STAGE_QUEUE, true, NULL), PAWL_OK);
    fault_gate_set(&scene.stage->gate, FAULT_RENEW, FAULT_DOWN);
    AWAIT(IS("pawl_job_aborts_total{reason=\"beat_failed\"}", 2));
    AWAIT(IS(JOBS("lost"), 2));
    AWAIT(stage_told(scene.stage, PAWL_EVENT_JOB_OVER, "beat_failed") == 2);
    assert_int_equal(stage_told(scene.stage, PAWL_EVENT_RENEW_FAILED, NULL), 2);
    int firsts = 0;
    int seconds = 0;
    pthread_mutex_lock(&scene.stage->mutex);
    for (size_t i = 0; i < scene.stage->events_count; i++) {
        const pawl_event *event = &scene.stage->events[i];
        if (event->kind != PAWL_EVENT_RENEW_FAILED)
            continue;
        assert_int_equal(event->code, PAWL_DOWN);
        assert_int_equal(event->attempt, 1);
        assert_string_equal(event->queue, STAGE_QUEUE);
        firsts += pawl_id_compare(&event->job, &first) == 0;
        seconds += pawl_id_compare(&event->job, &second) == 0;
    }
    pthread_mutex_unlock(&scene.stage->mutex);
    assert_true(firsts == 1 && seconds == 1);
    assert_true(ABOVE("pawl_renewals_total{result=\"failed\"}", 1));
    assert_true(ABOVE("pawl_store_call_failures_total{verb=\"renew\",code=\"DOWN\"}", 0));
    assert_true(stage_told_about(scene.stage, PAWL_EVENT_CALL_FAILED, "renew") > 0);
    fault_gate_open(&scene.stage->gate, FAULT_RENEW);
    assert_int_equal(pawl_queue_pause(scene.stage->store, STAGE_QUEUE, false, NULL), PAWL_OK);
    end(&scene);
}

static void calls_that_hang_are_counted(void **state)
{
    struct scene scene;
    begin(&scene, *state);
    start(&scene);
    stage_enqueue(scene.stage, "wait");
    AWAIT(atomic_load(&scene.hands.running) == 1);
    /* Nothing else is to be renewed. */
    assert_int_equal(pawl_queue_pause(scene.stage->store, STAGE_QUEUE, true, NULL), PAWL_OK);
    fault_gate_close(&scene.stage->gate, FAULT_RENEW);
    AWAIT(ABOVE("pawl_store_calls_overdue_total{verb=\"renew\"}", 0));
    AWAIT(IS("pawl_job_aborts_total{reason=\"beat_failed\"}", 1));
    double failed = figure(&scene, "pawl_renewals_total{result=\"failed\"}");
    assert_true(failed >= 1);
    AWAIT(stage_told_about(scene.stage, PAWL_EVENT_CALL_OVERDUE, "renew") > 0);
    fault_gate_open(&scene.stage->gate, FAULT_RENEW);
    AWAIT(stage_told(scene.stage, PAWL_EVENT_CALL, "late") == 1);
    assert_int_equal(pawl_queue_pause(scene.stage->store, STAGE_QUEUE, false, NULL), PAWL_OK);
    atomic_store(&scene.hands.may_end, true);
    stage_stop(scene.stage, scene.runner);
    scene.runner = NULL;
    expect_renewed(&scene);
    end(&scene);
}

/* A renewal that is under way when the worker has stopped is told as it is counted. */
static void what_is_answered_after_the_stop_is_told(void **state)
{
    struct scene scene;
    pawl_worker_counts counts;
    begin(&scene, *state);
    start(&scene);
    stage_enqueue(scene.stage, "wait");
    AWAIT(atomic_load(&scene.hands.running) == 1);
    fault_gate_close(&scene.stage->gate, FAULT_RENEW);
    AWAIT(fault_gate_waiting(&scene.stage->gate, FAULT_RENEW) == 1);
    atomic_store(&scene.hands.may_end, true);
    pawl_worker_stop(scene.runner, PAWL_DEFAULT);
    AWAIT((pawl_worker_count(scene.runner, &counts), counts.is_stopped));
    fault_gate_open(&scene.stage->gate, FAULT_RENEW);
    stage_stop(scene.stage, scene.runner);
    scene.runner = NULL;
    expect_renewed(&scene);
    if (stage_told_about(scene.stage, PAWL_EVENT_CALL_OVERDUE, "renew") == 0) /* it came in time */
        assert_true(stage_told_about(scene.stage, PAWL_EVENT_CALL, "renew") > 0);
    end(&scene);
}

static void stuck_handlers_are_counted(void **state)
{
    struct scene scene;
    begin(&scene, *state);
    set_timeout(scene.stage, 1500);
    start(&scene);
    stage_enqueue(scene.stage, "deaf");
    AWAIT(IS("pawl_handlers_stuck", 1));
    AWAIT(stage_told(scene.stage, PAWL_EVENT_JOB_GIVEN_UP, "abort_ignored") == 1);
    atomic_store(&scene.hands.may_end, true);
    AWAIT(IS("pawl_handlers_stuck", 0));
    AWAIT(stage_told(scene.stage, PAWL_EVENT_THREAD_BACK, NULL) == 1);
    set_timeout(scene.stage, PAWL_DEFAULT);
    end(&scene);
}

/* ---------------------------------------------------------------- queues */

static void depths_are_told(void **state)
{
    struct scene scene;
    begin(&scene, *state);
    scene.options.queues = &long_queue;
    scene.options.is_reaper_off = true; /* it looks all the same */
    scene.options.settings.parallel_max = 1;
    scene.options.settings.buffer_max = 0;
    start(&scene);
    stage_enqueue(scene.stage, "wait");
    AWAIT(atomic_load(&scene.hands.running) == 1);
    stage_enqueue_many(scene.stage, 3);
    AWAIT(IS("pawl_queue_ready_jobs{queue=\"work\"}", 3) &&
          IS("pawl_queue_in_flight_jobs{queue=\"work\"}", 1));
    AWAIT(ABOVE("pawl_queue_oldest_ready_age_seconds{queue=\"work\"}", 0.1));
    assert_true(IS("pawl_queue_delayed_jobs{queue=\"work\"}", 0));
    assert_true(IS("pawl_queue_expired_leases{queue=\"work\"}", 0));
    assert_true(IS("pawl_queue_paused{queue=\"work\"}", 0));
    assert_int_equal(pawl_queue_pause(scene.stage->store, STAGE_QUEUE, true, NULL), PAWL_OK);
    AWAIT(IS("pawl_queue_paused{queue=\"work\"}", 1));
    double looked = figure(&scene, "pawl_queue_look_timestamp_seconds");
    assert_true(looked > 1.6e9);
    /* While the store does not say, the time of the last look stands still. */
    fault_gate_set(&scene.stage->gate, FAULT_QUEUE_STATS, FAULT_DOWN);
    AWAIT(ABOVE("pawl_store_call_failures_total{verb=\"queue_depths\",code=\"DOWN\"}", 1));
    looked = figure(&scene, "pawl_queue_look_timestamp_seconds");
    AWAIT(ABOVE("pawl_store_call_failures_total{verb=\"queue_depths\",code=\"DOWN\"}", 3));
    assert_true(IS("pawl_queue_look_timestamp_seconds", looked));
    fault_gate_open(&scene.stage->gate, FAULT_QUEUE_STATS);
    AWAIT(ABOVE("pawl_queue_look_timestamp_seconds", looked));
    assert_true(IS("pawl_reaper_runs_total", 0));
    assert_int_equal(pawl_queue_pause(scene.stage->store, STAGE_QUEUE, false, NULL), PAWL_OK);
    end(&scene);
}

static void pauses_are_told(void **state)
{
    struct scene scene;
    begin(&scene, *state);
    start(&scene);
    assert_int_equal(pawl_worker_pause(scene.runner, STAGE_QUEUE, NULL), PAWL_OK);
    assert_int_equal(pawl_worker_resume(scene.runner, NULL, NULL), PAWL_OK);
    AWAIT(stage_told_about(scene.stage, PAWL_EVENT_PAUSED, STAGE_QUEUE) == 1);
    AWAIT(stage_told_about(scene.stage, PAWL_EVENT_RESUMED, "") == 1);
    end(&scene);
}

static void changes_of_settings_are_told(void **state)
{
    struct scene scene;
    begin(&scene, *state);
    start(&scene);
    pawl_worker_tuning tuning = {.settings = scene.options.settings,
                                 .lease_ms = PAWL_DEFAULT,
                                 .reaper_interval_ms = PAWL_DEFAULT,
                                 .level = PAWL_LEVEL_DEBUG};
    assert_int_equal(pawl_worker_tune(scene.runner, &tuning, NULL), PAWL_OK);
    AWAIT(stage_told(scene.stage, PAWL_EVENT_SETTINGS, NULL) == 1);
    end(&scene);
}

/* ---------------------------------------------------------------- the reaper */

static void claim_and_die(struct stage *stage, const char *name, size_t jobs)
{
    pawl_worker_seen seen = {
        .name = name, .kind = PAWL_KIND_WORKER, .host = "grave", .version = "0"};
    pawl_claim_line line = {.queue = STAGE_QUEUE, .jobs_max = 16, .lease_ms = 100};
    pawl_claim_args args = {
        .worker = name, .lines = &line, .lines_count = 1, .bytes_max = PAWL_DEFAULT};
    pawl_job claimed[16];
    size_t count = 0;
    stage_enqueue_many(stage, jobs);
    assert_int_equal(pawl_worker_seen_now(stage->store, &seen, NULL), PAWL_OK);
    assert_int_equal(pawl_claim(stage->store, &args, claimed, jobs, &count, NULL), PAWL_OK);
    assert_int_equal(count, jobs);
    for (size_t i = 0; i < count; i++)
        pawl_job_clear(&claimed[i]);
}

/* RULE-020-023, RULE-020-052: the reaper's figures, and those of all queues. */
static void the_reaper_is_counted(void **state)
{
    struct scene scene;
    pawl_reaper_options options;
    pawl_reaper *reaper = NULL;
    begin(&scene, *state);
    pawl_queue_settings settings;
    pawl_queue_settings_init(&settings);
    settings.keep_failed_ms = 1;
    assert_int_equal(pawl_queue_set(scene.stage->store, STAGE_QUEUE, &settings, NULL), PAWL_OK);
    pawl_id old = stage_enqueue(scene.stage, "");
    pawl_changed changed;
    assert_int_equal(pawl_cancel(scene.stage->store, &old, 1, &changed, NULL), PAWL_OK);
    claim_and_die(scene.stage, "dead/3/3", 5);
    pawl_reaper_options_init(&options);
    options.opener = scene.options.opener;
    options.watch = scene.options.watch;
    options.metrics = scene.metrics;
    options.smallest_lease_ms = 300;
    options.presence_ms = 100;
    assert_int_equal(pawl_reaper_start(&options, &reaper, NULL), PAWL_OK);
    AWAIT(IS("pawl_reaper_recovered_total", 5) && IS("pawl_worker_deaths_total", 1) &&
          IS("pawl_pruned_histories_total", 1));
    assert_true(IS("pawl_reaper_stale_seconds_count", 5));
    assert_true(ABOVE("pawl_reaper_stale_seconds_sum", 0));
    assert_true(IS("pawl_leases_expired_total{queue=\"work\",reason=\"expired\"}", 5));
    AWAIT(ABOVE("pawl_reaper_runs_total", 3) && IS("pawl_reaper_recovered_last_run", 0));
    assert_true(ABOVE("pawl_reaper_last_run_timestamp_seconds", 1.6e9));
    AWAIT(IS("pawl_queue_ready_jobs{queue=\"work\"}", 5));
    char name[256];
    snprintf(name, sizeof(name), "pawl_worker_info{worker=\"%s\",kind=\"reaper\"}",
             pawl_reaper_name(reaper));
    assert_true(IS(name, 1));
    assert_true(IS(JOBS("succeeded"), -1)); /* it works on no queue */
    const char *verbs[] = {"reap", "prune", "worker_seen", "workers", "queue_depths", "open"};
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        snprintf(name, sizeof(name), "pawl_store_call_seconds_count{verb=\"%s\"}", verbs[i]);
        assert_true(ABOVE(name, 0));
    }
    fault_gate_set(&scene.stage->gate, FAULT_REAP, FAULT_DOWN);
    AWAIT(ABOVE("pawl_store_call_failures_total{verb=\"reap\",code=\"DOWN\"}", 0));
    double runs = figure(&scene, "pawl_reaper_runs_total");
    AWAIT(ABOVE("pawl_store_call_failures_total{verb=\"reap\",code=\"DOWN\"}", 2));
    assert_true(IS("pawl_reaper_runs_total", runs)); /* RULE-020-020: only those finished */
    fault_gate_open(&scene.stage->gate, FAULT_REAP);
    pawl_reaper_stop(reaper);
    assert_int_equal(stage_told(scene.stage, PAWL_EVENT_REAPER_UP, NULL), 1);
    assert_int_equal(stage_told(scene.stage, PAWL_EVENT_REAPER_STOPPED, NULL), 1);
    end(&scene);
}

/* ---------------------------------------------------------------- a log that blocks */

struct blocked {
    atomic_bool is_closed;
    pawl_watch to;
};

static void tell_slowly(void *user, const pawl_event *event)
{
    struct blocked *blocked = user;
    while (atomic_load(&blocked->is_closed))
        stage_breathe();
    blocked->to.tell(blocked->to.user, event);
}

/* A callback that does not come back costs events, which are counted, and no lease. */
static void a_callback_that_blocks_costs_no_lease(void **state)
{
    struct scene scene;
    begin(&scene, *state);
    static struct blocked blocked;
    blocked = (struct blocked){.is_closed = true, .to = scene.options.watch};
    scene.options.watch = (pawl_watch){
        .tell = tell_slowly, .user = &blocked, .level = PAWL_LEVEL_DEBUG};
    pawl_runner *runner = NULL;
    assert_int_equal(pawl_worker_start(&scene.options, &runner, NULL), PAWL_OK);
    pawl_id id = stage_enqueue(scene.stage, "wait");
    AWAIT(atomic_load(&scene.hands.running) == 1);
    stage_enqueue_many(scene.stage, 400); /* a few events each, and there is room for 1,024 */
    AWAIT(ABOVE("pawl_log_dropped_total", 0));
    pawl_wall expires = stage_job(scene.stage, &id).expires_at;
    AWAIT(stage_job(scene.stage, &id).expires_at.us > expires.us + stage_lease_ms() * 1000);
    assert_int_equal(stage_job(scene.stage, &id).lease_version, 1);
    atomic_store(&scene.hands.may_end, true);
    AWAIT(stage_stats(scene.stage).succeeded == 401);
    AWAIT(IS(JOBS("succeeded"), 401)); /* counted, though not told */
    atomic_store(&blocked.is_closed, false);
    AWAIT(stage_told(scene.stage, PAWL_EVENT_DROPPED, "callback_slow") >= 1);
    pawl_worker_stop(runner, PAWL_DEFAULT);
    assert_int_equal(pawl_worker_wait(runner, STAGE_WAIT_MS, NULL), PAWL_OK);
    assert_int_equal(pawl_worker_free(runner), 0);
    end(&scene);
}

/* ---------------------------------------------------------------- all of them */

static bool has_seen[PAWL_EVENT_KINDS];

static int look_at_events(void **state)
{
    struct stage *stage = *state;
    bool is_right = true;
    pthread_mutex_lock(&stage->mutex); /* a worker of a case that failed goes on telling */
    for (size_t i = 0; i < stage->events_count; i++) {
        const pawl_event *event = &stage->events[i];
        const struct pawli_event_row *row = pawli_event_row(event->kind);
        has_seen[event->kind] = true;
        if (event->level < row->level || event->level > row->level_worst) {
            fprintf(stderr, "%s was told at level %d\n", row->id, (int)event->level);
            is_right = false;
        }
    }
    pthread_mutex_unlock(&stage->mutex);
    return is_right ? kinds_teardown(state) : -1;
}
#undef CASE
#define CASE(test) cmocka_unit_test_setup_teardown(test, kinds_setup, look_at_events)

/* Those that others tell: the program (config_test.py, metrics_test.py, serve_test.py), and
 * commands (command_test.c). */
static bool is_of_others(int kind)
{
    if (kind >= PAWL_EVENT_DELIVERY && kind <= PAWL_EVENT_TOKENS_REFUSED)
        return true; /* of those who deliver, and of those who serve */
    return kind == PAWL_EVENT_METRICS_UP || kind == PAWL_EVENT_SETTINGS_REFUSED ||
           kind == PAWL_EVENT_SETTINGS_FIXED || kind == PAWL_EVENT_JOB_NOT_STARTED;
}

/* Every event was made to happen, at a level that the table allows. */
static void every_event_has_happened(void **state)
{
    (void)state;
    if (getenv("PAWLT_TEST") != NULL)
        skip(); /* only some of the cases ran */
    for (int i = 0; i < PAWL_EVENT_KINDS; i++)
        if (!has_seen[i] && !is_of_others(i))
            fail_msg("%s never happened", pawl_event_id((pawl_event_kind)i));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CASE(outcomes_are_counted),
        CASE(levels_are_for_telling_only),
        CASE(fenced_writes_are_counted),
        CASE(released_jobs_are_counted),
        CASE(a_release_that_is_repeated_is_not_fenced),
        CASE(renewals_are_counted_by_what_the_store_says),
        CASE(renewals_that_fail_are_told_with_their_job),
        CASE(calls_that_hang_are_counted),
        CASE(what_is_answered_after_the_stop_is_told),
        CASE(stuck_handlers_are_counted),
        CASE(depths_are_told),
        CASE(pauses_are_told),
        CASE(changes_of_settings_are_told),
        CASE(the_reaper_is_counted),
        CASE(a_callback_that_blocks_costs_no_lease),
        cmocka_unit_test(every_event_has_happened),
    };
    return kinds_run(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * stage.c - a store and what a test of the runtime needs around it.
 * Owns:  the store, the gate, the book of events.
 * Never: waits for time to pass: only for what must come.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/stage.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

const pawl_worker_queue stage_queue = {
    .queue = STAGE_QUEUE, .jobs_max = PAWL_DEFAULT, .lease_ms = PAWL_DEFAULT};

static const char *database; /* of PostgreSQL; NULL: none */
static bool is_sqlite;

void stage_use(const char *conninfo)
{
    database = conninfo;
}

void stage_use_sqlite(void)
{
    is_sqlite = true;
}

int64_t stage_lease_ms(void)
{
    return is_sqlite || database != NULL ? 4000 : 2000;
}

int64_t stage_now_ms(void)
{
    const pawl_clock *clock = pawl_clock_system();
    return clock->mono(clock->user).us / 1000;
}

void stage_breathe(void)
{
    (void)poll(NULL, 0, 2);
}

pawl_code stage_open(struct stage *stage, pawl_store **ret_store, pawl_err *err)
{
    if (stage->memory != NULL)
        return pawl_memory_open(stage->memory, ret_store, err);
    if (stage->sqlite != NULL)
        return pawl_sqlite_open(stage->sqlite, ret_store, err);
    pawl_postgres_options options;
    pawl_postgres_options_init(&options);
    options.conninfo = database;
    return pawl_postgres_open(&options, ret_store, err);
}

static pawl_code open_gated(void *user, pawl_role role, pawl_store **ret_store, pawl_err *err)
{
    struct stage *stage = user;
    (void)role;
    pawl_store *inner = NULL;
    pawl_code code = stage_open(stage, &inner, err);
    if (code == PAWL_OK)
        code = fault_store_open(inner, ret_store, err);
    if (code != PAWL_OK) {
        pawl_store_close(inner);
        return code;
    }
    fault_store_on_pass(*ret_store, fault_gate_pass, &stage->gate);
    atomic_fetch_add(&stage->opened, 1);
    return PAWL_OK;
}

static void on_event(void *user, const pawl_event *event)
{
    struct stage *stage = user;
    char id[PAWL_ID_TEXT_MAX];
    if (getenv("PAWLT_EVENTS") != NULL) /* for those who look for the cause of a failure */
        fprintf(stderr, "# %lld %s %s v%lld %s %s %lld\n",
                (long long)(event->at.us / 1000 % 100000), pawl_event_id(event->kind),
                pawl_id_format(&event->job, id) + 24, (long long)event->lease_version,
                event->subject, event->reason, (long long)event->count);
    pthread_mutex_lock(&stage->mutex);
    if (stage->events_count < STAGE_EVENTS_MAX)
        stage->events[stage->events_count++] = *event;
    pthread_mutex_unlock(&stage->mutex);
}

static void make_sqlite(struct stage *stage)
{
    pawl_sqlite_options options;
    pawl_err err;
    assert_true(scratch_make(&stage->scratch));
    pawl_sqlite_options_init(&options);
    options.path = stage->scratch.path;
    if (pawl_sqlite_new(&options, &stage->sqlite, &err) != PAWL_OK)
        fail_msg("sqlite: %s", err.text);
}

struct stage *stage_new(void)
{
    struct stage *stage = calloc(1, sizeof(*stage));
    pawl_err err;
    assert_non_null(stage);
    stage->events = calloc(STAGE_EVENTS_MAX, sizeof(*stage->events));
    assert_non_null(stage->events);
    assert_int_equal(pthread_mutex_init(&stage->mutex, NULL), 0);
    fault_gate_init(&stage->gate);
    if (is_sqlite)
        make_sqlite(stage);
    else if (database == NULL)
        assert_int_equal(pawl_memory_new(NULL, &stage->memory, &err), PAWL_OK);
    if (stage_open(stage, &stage->store, &err) != PAWL_OK)
        fail_msg("open: %s", err.text);
    pawl_queue_settings settings;
    pawl_queue_settings_init(&settings);
    settings.lease_ms = stage_lease_ms();
    settings.backoff_base_ms = 1;
    settings.backoff_max_ms = 1;
    assert_int_equal(pawl_queue_set(stage->store, STAGE_QUEUE, &settings, &err), PAWL_OK);
    stage->before = stage_stats(stage);
    return stage;
}

/* What a test left in a database must not be found by the next one. */
static void empty(struct stage *stage)
{
    pawl_filter all = {0};
    size_t count = 0;
    pawl_err err;
    pawl_reaped reaped[16];
    do {
        assert_int_equal(pawl_cancel_where(stage->store, &all, 1000, &count, &err), PAWL_OK);
    } while (count > 0 && count == 1000);
    AWAIT(pawl_reap(stage->store, reaped, 16, &count, &err) == PAWL_OK &&
          stage_stats(stage).in_flight == 0 && stage_stats(stage).ready == 0);
    pawl_queue_settings settings;
    pawl_queue_settings_init(&settings);
    settings.keep_succeeded_ms = settings.keep_failed_ms = 1;
    assert_int_equal(pawl_queue_set(stage->store, STAGE_QUEUE, &settings, &err), PAWL_OK);
    pawl_job job;
    AWAIT(pawl_prune(stage->store, PAWL_BATCH_MAX, &count, &err) == PAWL_OK && count == 0 &&
          pawl_list(stage->store, NULL, NULL, &job, 1, &count, &err) == PAWL_OK && count == 0);
    pawl_worker rows[64];
    assert_int_equal(pawl_workers(stage->store, NULL, rows, 64, &count, &err), PAWL_OK);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(pawl_worker_ended(stage->store, rows[i].name, &err), PAWL_OK);
}

void stage_free(struct stage *stage)
{
    size_t left = 0;
    fault_gate_open(&stage->gate, FAULT_ANY_VERB);
    for (size_t i = 0; i < STAGE_RUNNERS_MAX; i++)
        left += stage_drop(stage, stage->runners[i]);
    if (left > 0)
        return; /* a test has failed, and its threads still use all of it */
    if (database != NULL)
        empty(stage);
    pawl_store_close(stage->store);
    pawl_memory_free(stage->memory);
    pawl_sqlite_free(stage->sqlite);
    if (is_sqlite)
        scratch_remove(&stage->scratch);
    fault_gate_clear(&stage->gate);
    pthread_mutex_destroy(&stage->mutex);
    free(stage->events);
    free(stage);
}

void stage_options(struct stage *stage, pawl_worker_options *options)
{
    pawl_worker_options_init(options);
    options->opener = (pawl_opener){.open = open_gated, .user = stage};
    options->queues = &stage_queue;
    options->queues_count = 1;
    options->settings.poll_ms = 50;
    options->settings.retry_base_ms = 20;
    options->settings.retry_max_ms = 100;
    options->settings.grace_ms = 2000;
    options->name = "tested";
    options->watch = (pawl_watch){.tell = on_event, .user = stage, .level = PAWL_LEVEL_DEBUG};
}

pawl_runner *stage_start(const pawl_worker_options *options)
{
    pawl_runner *runner = NULL;
    pawl_err err;
    if (pawl_worker_start(options, &runner, &err) != PAWL_OK)
        fail_msg("start: %s", err.text);
    struct stage *stage = options->watch.user;
    size_t i = 0;
    while (i < STAGE_RUNNERS_MAX && stage->runners[i] != NULL)
        i++;
    assert_true(i < STAGE_RUNNERS_MAX);
    stage->runners[i] = runner;
    return runner;
}

size_t stage_drop(struct stage *stage, pawl_runner *runner)
{
    for (size_t i = 0; i < STAGE_RUNNERS_MAX && runner != NULL; i++)
        if (stage->runners[i] == runner)
            stage->runners[i] = NULL;
    return pawl_worker_free(runner);
}

void stage_stop(struct stage *stage, pawl_runner *runner)
{
    pawl_worker_end end = {0};
    pawl_worker_stop(runner, PAWL_DEFAULT);
    assert_int_equal(pawl_worker_wait(runner, STAGE_WAIT_MS, &end), PAWL_OK);
    assert_int_equal(end.jobs_left, 0);
    assert_int_equal(stage_drop(stage, runner), 0);
}

pawl_id stage_enqueue(struct stage *stage, const char *text)
{
    pawl_enqueue_row row;
    pawl_enqueued result;
    pawl_err err;
    pawl_enqueue_init(&row);
    row.queue = STAGE_QUEUE;
    row.payload = text;
    row.payload_len = strlen(text);
    assert_int_equal(pawl_enqueue(stage->store, &row, 1, &result, &err), PAWL_OK);
    assert_int_equal(result.code, PAWL_OK);
    return result.id;
}

void stage_enqueue_many(struct stage *stage, size_t count)
{
    for (size_t i = 0; i < count; i++)
        stage_enqueue(stage, "one of many");
}

pawl_job stage_job(struct stage *stage, const pawl_id *id)
{
    pawl_job job;
    pawl_err err;
    if (pawl_get(stage->store, id, &job, &err) != PAWL_OK)
        fail_msg("get: %s", err.text);
    pawl_job copy = job;
    copy.payload = NULL;
    copy.headers = NULL;
    pawl_job_clear(&job);
    return copy;
}

pawl_attempt stage_attempt(struct stage *stage, const pawl_id *id, int64_t attempt_no)
{
    pawl_attempt row;
    size_t count = 0;
    pawl_err err;
    assert_int_equal(pawl_attempts(stage->store, id, attempt_no - 1, &row, 1, &count, &err),
                     PAWL_OK);
    assert_int_equal(count, 1);
    assert_int_equal(row.attempt_no, attempt_no);
    return row;
}

pawl_stats stage_stats(struct stage *stage)
{
    pawl_stats rows[16];
    size_t count = 0;
    pawl_err err;
    assert_int_equal(pawl_queue_stats(stage->store, NULL, rows, 16, &count, &err), PAWL_OK);
    for (size_t i = 0; i < count; i++)
        if (strcmp(rows[i].queue, STAGE_QUEUE) == 0) {
            rows[i].succeeded -= stage->before.succeeded;
            rows[i].failed -= stage->before.failed;
            return rows[i];
        }
    return (pawl_stats){.ready = 0};
}

size_t stage_told(struct stage *stage, pawl_event_kind kind, const char *reason)
{
    size_t told = 0;
    pthread_mutex_lock(&stage->mutex);
    for (size_t i = 0; i < stage->events_count; i++)
        told += stage->events[i].kind == kind &&
                (reason == NULL || strcmp(stage->events[i].reason, reason) == 0);
    pthread_mutex_unlock(&stage->mutex);
    return told;
}

size_t stage_told_about(struct stage *stage, pawl_event_kind kind, const char *subject)
{
    size_t told = 0;
    pthread_mutex_lock(&stage->mutex);
    for (size_t i = 0; i < stage->events_count; i++)
        told += stage->events[i].kind == kind && strcmp(stage->events[i].subject, subject) == 0;
    pthread_mutex_unlock(&stage->mutex);
    return told;
}

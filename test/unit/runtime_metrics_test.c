/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * runtime_metrics_test.c - the figures: what is counted where, bounds on names, counting from many
 * threads at once, and the text. test/runtime/metrics_test.c has them with real workers.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/text.h"
#include "runtime/depths.h"
#include "runtime/metrics_inside.h"
#include "support/alloc_fail.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pawl_metrics *make(void)
{
    pawl_metrics *metrics = NULL;
    assert_int_equal(pawl_metrics_new(NULL, &metrics, NULL), PAWL_OK);
    return metrics;
}

static char *text_of(pawl_metrics *metrics)
{
    char *text = NULL;
    size_t len = 0;
    assert_int_equal(pawl_metrics_text(metrics, &text, &len, NULL), PAWL_OK);
    assert_int_equal(strlen(text), len);
    assert_int_equal(text[len - 1], '\n');
    return text;
}

static bool says(pawl_metrics *metrics, const char *line)
{
    char *text = text_of(metrics);
    char wanted[512];
    snprintf(wanted, sizeof(wanted), "\n%s\n", line);
    bool is_said = strstr(text, wanted) != NULL;
    free(text);
    return is_said;
}

static size_t count_lines(pawl_metrics *metrics, const char *begin)
{
    char *text = text_of(metrics);
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, begin)) != NULL; at++)
        count += at == text || at[-1] == '\n';
    free(text);
    return count;
}

static void tell(pawl_metrics *metrics, pawl_event event, const char *queue, const char *subject)
{
    event.reason = event.reason != NULL ? event.reason : "";
    (void)pawli_text_copy(event.queue, sizeof(event.queue), queue);
    (void)pawli_text_copy(event.subject, sizeof(event.subject), subject);
    pawli_metrics_count(metrics, &event, (pawl_wall){INT64_C(1767323045678901)});
}

/* A value on a bound belongs to its bucket; buckets add up; the sum is in seconds. */
static void histograms_add_up(void **state)
{
    (void)state;
    pawl_metrics *metrics = make();
    pawli_metrics_serve(metrics, "q");
    const int64_t times_us[] = {0, 10000, 10001, INT64_C(3600000001), -5};
    for (size_t i = 0; i < sizeof(times_us) / sizeof(times_us[0]); i++)
        tell(metrics, (pawl_event){.kind = PAWL_EVENT_JOB_START, .took_us = times_us[i]}, "q", "");
    assert_true(says(metrics, "pawl_job_wait_seconds_bucket{queue=\"q\",le=\"0.01\"} 3"));
    assert_true(says(metrics, "pawl_job_wait_seconds_bucket{queue=\"q\",le=\"0.05\"} 4"));
    assert_true(says(metrics, "pawl_job_wait_seconds_bucket{queue=\"q\",le=\"3600\"} 4"));
    assert_true(says(metrics, "pawl_job_wait_seconds_bucket{queue=\"q\",le=\"+Inf\"} 5"));
    assert_true(says(metrics, "pawl_job_wait_seconds_sum{queue=\"q\"} 3600.020002"));
    assert_true(says(metrics, "pawl_job_wait_seconds_count{queue=\"q\"} 5"));
    assert_true(says(metrics, "pawl_job_run_seconds_count{queue=\"q\"} 0"));
    pawl_metrics_free(metrics);
}

/* So many names and no more, whatever queues there are; a queue that is called as the rest is. */
static void names_of_queues_are_bounded(void **state)
{
    (void)state;
    pawl_metrics *metrics = make();
    char name[16];
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof(name), "q%03d", i);
        pawli_metrics_serve(metrics, name);
        tell(metrics, (pawl_event){.kind = PAWL_EVENT_JOB_SETTLED}, name, "succeeded");
    }
    pawli_metrics_serve(metrics, "other");
    tell(metrics, (pawl_event){.kind = PAWL_EVENT_JOB_SETTLED}, "other", "succeeded");
    assert_true(says(metrics, "pawl_jobs_total{queue=\"q000\",outcome=\"succeeded\"} 1"));
    assert_true(says(metrics, "pawl_jobs_total{queue=\"q049\",outcome=\"succeeded\"} 1"));
    assert_false(says(metrics, "pawl_jobs_total{queue=\"q050\",outcome=\"succeeded\"} 1"));
    assert_true(says(metrics, "pawl_jobs_total{queue=\"other\",outcome=\"succeeded\"} 151"));
    assert_int_equal(count_lines(metrics, "pawl_jobs_total{"), 51 * OUTCOMES);
    assert_int_equal(count_lines(metrics, "pawl_jobs_total{queue=\"other\""), OUTCOMES);
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "w%03d", i);
        pawli_metrics_join(metrics, name, PAWL_KIND_WORKER);
    }
    assert_int_equal(count_lines(metrics, "pawl_worker_info{"), PAWLI_METRICS_MEMBERS_MAX);
    pawli_metrics_leave(metrics, "w003");
    assert_int_equal(count_lines(metrics, "pawl_worker_info{"), PAWLI_METRICS_MEMBERS_MAX - 1);
    pawl_metrics_free(metrics);
}

static void labels_are_escaped(void **state)
{
    (void)state;
    pawl_metrics *metrics = make();
    pawli_metrics_serve(metrics, "a\"b\\c");
    pawli_metrics_join(metrics, "line\nline", PAWL_KIND_REAPER);
    assert_true(says(metrics, "pawl_jobs_total{queue=\"a\\\"b\\\\c\",outcome=\"lost\"} 0"));
    assert_true(says(metrics, "pawl_worker_info{worker=\"line\\nline\",kind=\"reaper\"} 1"));
    pawl_metrics_free(metrics);
}

/* What is not of a list does not become a label. */
static void unknown_words_are_not_told(void **state)
{
    (void)state;
    pawl_metrics *metrics = make();
    char *before = text_of(metrics);
    tell(metrics, (pawl_event){.kind = PAWL_EVENT_CALL}, "", "s3cret");
    tell(metrics, (pawl_event){.kind = PAWL_EVENT_CALL_FAILED, .code = PAWL_DOWN}, "", "s3cret");
    tell(metrics, (pawl_event){.kind = PAWL_EVENT_CALL_OVERDUE}, "", "s3cret");
    tell(metrics, (pawl_event){.kind = PAWL_EVENT_JOB_ABORT, .reason = "s3cret"}, "", "");
    tell(metrics, (pawl_event){.kind = PAWL_EVENT_SETTLE_REFUSED, .code = PAWL_STALE}, "", "s3");
    char *after = text_of(metrics);
    *strstr(before, "process_cpu_seconds_total") = *strstr(after,
                                                           "process_cpu_seconds_total") = '\0';
    assert_string_equal(before, after);
    free(before);
    free(after);
    pawl_metrics_free(metrics);
}

static pawl_stats depth(const char *queue, int64_t ready, int64_t oldest_ms)
{
    pawl_stats row = {.ready = ready, .delayed = 1, .oldest_due_ms = oldest_ms, .in_flight = 2};
    (void)pawli_text_copy(row.queue, sizeof(row.queue), queue);
    return row;
}

#define THREADS 8
#define ROUNDS  5000

static void *count_much(void *argument)
{
    pawl_metrics *metrics = argument;
    struct pawli_gauges told = {.slots = 0};
    for (int i = 0; i < ROUNDS; i++) {
        char name[16];
        snprintf(name, sizeof(name), "q%d", i % 70);
        tell(metrics, (pawl_event){.kind = PAWL_EVENT_JOB_SETTLED}, name, "succeeded");
        tell(metrics, (pawl_event){.kind = PAWL_EVENT_JOB_ENDED, .took_us = i}, name, "done");
        pawli_metrics_gauge(metrics, &told, &(struct pawli_gauges){.running = i % 5, .slots = 5});
        if (i % 50 == 0) {
            pawli_metrics_join(metrics, name, PAWL_KIND_WORKER);
            /* However many come meanwhile, no series stands there twice. */
            if (count_lines(metrics, "pawl_queue_paused{queue=\"other\"}") > 1)
                abort();
            pawli_metrics_leave(metrics, name);
        }
    }
    pawli_metrics_gauge(metrics, &told, &(struct pawli_gauges){.slots = 2});
    return NULL;
}

/* Nothing is lost, and no queue stands there twice. */
static void many_threads_count_at_once(void **state)
{
    (void)state;
    pawl_metrics *metrics = make();
    pthread_t threads[THREADS];
    pawl_stats others = depth("other", 1, 1);
    pawli_metrics_depths(metrics, &others, 1, false);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_much, metrics), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    int64_t sum = 0;
    for (size_t i = 0; i <= PAWLI_METRICS_QUEUES_MAX; i++) {
        sum += pawli_read(&metrics->queues[i].outcomes[0]);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(metrics->queues[i].name, metrics->queues[j].name);
    }
    assert_int_equal(sum, THREADS * ROUNDS);
    assert_true(says(metrics, "pawl_slots_max 16"));
    assert_true(says(metrics, "pawl_slots_in_use 0"));
    pawl_metrics_free(metrics);
}

struct race {
    pawl_metrics *metrics;
    atomic_int coming;
};

static void *serve_new(void *argument)
{
    struct race *race = argument;
    atomic_fetch_add(&race->coming, 1);
    pawli_metrics_serve(race->metrics, "new");
    return NULL;
}

/* A queue that several threads meet for the first time at once gets one place: all of them have
 * missed it before the first of them can add it. */
static void a_new_queue_gets_one_place(void **state)
{
    (void)state;
    struct race race = {.metrics = make()};
    pthread_t threads[THREADS];
    pthread_mutex_lock(&race.metrics->mutex);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, serve_new, &race), 0);
    while (atomic_load(&race.coming) < THREADS)
        (void)poll(NULL, 0, 1);
    (void)poll(NULL, 0, 20); /* they wait for the lock by now, or else this proves less */
    pthread_mutex_unlock(&race.metrics->mutex);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(atomic_load(&race.metrics->queues_count), 1);
    pawl_metrics_free(race.metrics);
}

/* Of all queues: what is beyond the names is summed, the oldest counts, and what is gone is 0. */
static void depths_of_many_queues_are_summed(void **state)
{
    (void)state;
    pawl_metrics *metrics = make();
    pawl_stats rows[60];
    for (int i = 0; i < 60; i++) {
        char name[16];
        snprintf(name, sizeof(name), "q%03d", i);
        rows[i] = depth(name, 11, i * 1000);
    }
    pawli_metrics_depths(metrics, rows, 60, true);
    assert_int_equal(count_lines(metrics, "pawl_queue_ready_jobs{"), 51);
    assert_true(says(metrics, "pawl_queue_ready_jobs{queue=\"q049\"} 10"));
    assert_true(says(metrics, "pawl_queue_delayed_jobs{queue=\"q049\"} 1"));
    assert_true(says(metrics, "pawl_queue_ready_jobs{queue=\"other\"} 100"));
    assert_true(says(metrics, "pawl_queue_in_flight_jobs{queue=\"other\"} 20"));
    assert_true(says(metrics, "pawl_queue_oldest_ready_age_seconds{queue=\"other\"} 59"));
    pawli_metrics_depths(metrics, rows, 1, true);
    assert_true(says(metrics, "pawl_queue_ready_jobs{queue=\"q000\"} 10"));
    assert_true(says(metrics, "pawl_queue_ready_jobs{queue=\"q049\"} 0"));
    assert_true(says(metrics, "pawl_queue_ready_jobs{queue=\"other\"} 0"));
    pawli_metrics_depths(metrics, &rows[1], 1, false); /* one of many: the others stay */
    assert_true(says(metrics, "pawl_queue_ready_jobs{queue=\"q000\"} 10"));
    assert_true(says(metrics, "pawl_queue_ready_jobs{queue=\"q001\"} 10"));
    pawl_metrics_free(metrics);
}

/* A look that takes long is repeated less often: two parts in a hundred of the time at most. */
static void looks_take_little_of_the_time(void **state)
{
    (void)state;
    pawl_metrics *metrics = make();
    assert_int_equal(pawli_depths_pause_ms(metrics, 0), 15000);
    assert_int_equal(pawli_depths_pause_ms(metrics, 300 * 1000), 15000);
    assert_int_equal(pawli_depths_pause_ms(metrics, 2000 * 1000), 100000);
    pawl_metrics_free(metrics);
}

static void the_process_can_be_left_out(void **state)
{
    (void)state;
    pawl_metrics *metrics = NULL;
    pawl_metrics_options options;
    pawl_metrics_options_init(&options);
    options.is_process_off = true;
    assert_int_equal(pawl_metrics_new(&options, &metrics, NULL), PAWL_OK);
    assert_int_equal(count_lines(metrics, "process_"), 0);
    pawl_metrics_free(metrics);
    metrics = make();
    assert_int_equal(count_lines(metrics, "process_"), 7);
    struct process_figures figures;
    assert_true(pawli_process_figures(&figures));
    const pawl_clock *clock = pawl_clock_system();
    int64_t age_us = clock->wall(clock->user).us - figures.started_us;
    assert_true(age_us > -INT64_C(2000000) && age_us < INT64_C(3600000000));
    assert_true(figures.resident_bytes > 100000 && figures.virtual_bytes > figures.resident_bytes);
    assert_true(figures.open_fds >= 1 && figures.open_fds < figures.max_fds);
    assert_true(figures.threads >= 1); /* a sanitizer may have one of its own */
    pawl_metrics_free(metrics);
}

static void bad_arguments_are_refused(void **state)
{
    (void)state;
    pawl_metrics *metrics = make();
    pawl_metrics_options options;
    pawl_err err;
    char *text = NULL;
    pawl_metrics_options_init(&options);
    pawl_metrics_options_init(NULL);
    options.look_ms = 99;
    assert_int_equal(pawl_metrics_new(&options, &metrics, &err), PAWL_INVALID);
    assert_non_null(strstr(err.text, "look_ms"));
    assert_int_equal(pawl_metrics_new(NULL, NULL, &err), PAWL_INVALID);
    assert_int_equal(pawl_metrics_text(NULL, &text, NULL, &err), PAWL_INVALID);
    assert_int_equal(pawl_metrics_text(metrics, NULL, NULL, &err), PAWL_INVALID);
    pawl_metrics_log_dropped(NULL, 1);
    pawl_metrics_free(NULL);
    pawl_metrics_free(metrics);
}

/* Each allocation fails once. */
static void memory_may_run_out(void **state)
{
    (void)state;
    pawl_metrics *metrics = NULL;
    uint64_t nth = 1;
    for (bool has_failed = true; has_failed; nth++) {
        alloc_fail_nth(nth);
        pawl_code code = pawl_metrics_new(NULL, &metrics, NULL);
        has_failed = alloc_fail_end();
        assert_int_equal(code, has_failed ? PAWL_NO_MEMORY : PAWL_OK);
    }
    assert_true(nth > 2);
    size_t refused = 0;
    bool has_failed = true;
    for (nth = 1; has_failed; nth++) {
        char *text = NULL;
        alloc_fail_nth(nth);
        pawl_code code = pawl_metrics_text(metrics, &text, NULL, NULL);
        has_failed = alloc_fail_end();
        refused += code == PAWL_NO_MEMORY;
        assert_true(code == PAWL_OK || has_failed);
        assert_true((code == PAWL_OK) == (text != NULL));
        free(text);
    }
    assert_true(refused > 3);
    pawl_metrics_free(metrics);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_process_can_be_left_out),
        cmocka_unit_test(histograms_add_up),
        cmocka_unit_test(names_of_queues_are_bounded),
        cmocka_unit_test(labels_are_escaped),
        cmocka_unit_test(unknown_words_are_not_told),
        cmocka_unit_test(many_threads_count_at_once),
        cmocka_unit_test(a_new_queue_gets_one_place),
        cmocka_unit_test(depths_of_many_queues_are_summed),
        cmocka_unit_test(looks_take_little_of_the_time),
        cmocka_unit_test(bad_arguments_are_refused),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

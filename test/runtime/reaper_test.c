/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * reaper_test.c - reapers: in every worker, alone, several at once; what they recover, prune and
 * report.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/kinds.h"
#include "runtime/stage.h"

#include <string.h>

#define LEASE_MS 300

/* Claim as a worker that then dies without a word. */
static void claim_and_die(struct stage *stage, const char *name, size_t jobs)
{
    pawl_worker_seen seen = {
        .name = name, .kind = PAWL_KIND_WORKER, .host = "grave", .version = "0"};
    pawl_claim_line line = {.queue = STAGE_QUEUE, .jobs_max = 16, .lease_ms = LEASE_MS};
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

static pawl_reaper *start(struct stage *stage, int64_t presence_ms)
{
    pawl_worker_options from;
    pawl_reaper_options options;
    pawl_reaper *reaper = NULL;
    pawl_err err;
    stage_options(stage, &from);
    pawl_reaper_options_init(&options);
    options.opener = from.opener;
    options.watch = from.watch;
    options.smallest_lease_ms = LEASE_MS;
    options.presence_ms = presence_ms;
    options.name = "reaper";
    if (pawl_reaper_start(&options, &reaper, &err) != PAWL_OK)
        fail_msg("start: %s", err.text);
    return reaper;
}

/* RULE-020-021, RULE-020-052: the leases come back, each once, and the death is reported. */
static void a_dead_worker_is_recovered_and_reported(void **state)
{
    struct stage *stage = *state;
    claim_and_die(stage, "dead/1/1", 5);
    pawl_reaper *reaper = start(stage, 100);
    AWAIT(stage_stats(stage).ready == 5);
    AWAIT(stage_told_about(stage, PAWL_EVENT_WORKER_DIED, "dead/1/1") == 1);
    AWAIT(stage_told(stage, PAWL_EVENT_REAPED, "expired") == 5);
    int64_t runs = pawl_reaper_runs(reaper);
    AWAIT(pawl_reaper_runs(reaper) > runs + 2);
    assert_int_equal(stage_told(stage, PAWL_EVENT_WORKER_DIED, NULL), 1); /* once */
    pawl_worker rows[4];
    size_t count = 0;
    assert_int_equal(pawl_workers(stage->store, NULL, rows, 4, &count, NULL), PAWL_OK);
    assert_int_equal(count, 1); /* the reaper itself */
    assert_int_equal(rows[0].kind, PAWL_KIND_REAPER);
    assert_string_equal(rows[0].name, pawl_reaper_name(reaper));
    pawl_reaper_stop(reaper);
    assert_int_equal(pawl_workers(stage->store, NULL, rows, 4, &count, NULL), PAWL_OK);
    assert_int_equal(count, 0);
    for (size_t i = 0; i < stage->events_count; i++) {
        if (stage->events[i].kind != PAWL_EVENT_WORKER_DIED)
            continue;
        assert_string_equal(stage->events[i].subject, "dead/1/1");
        assert_int_equal(stage->events[i].count, 5);
        assert_int_equal(stage->events[i].level, PAWL_LEVEL_ERROR);
    }
}

/* Each expiry is recovered once, however many reapers there are. */
static void reapers_work_side_by_side(void **state)
{
    struct stage *stage = *state;
    pawl_reaper *reapers[4];
    for (size_t i = 0; i < 4; i++)
        reapers[i] = start(stage, 5000);
    for (int round = 0; round < 3; round++) {
        claim_and_die(stage, "dead/2/2", 16);
        AWAIT(stage_stats(stage).in_flight == 0);
    }
    for (size_t i = 0; i < 4; i++)
        pawl_reaper_stop(reapers[i]);
    assert_int_equal(stage_told(stage, PAWL_EVENT_REAPED, NULL), 48);
    assert_int_equal(stage_told(stage, PAWL_EVENT_WORKER_DIED, NULL), 0);
}

/* Q-DEAD-LETTER's other side: histories go when their queue says so. */
static void old_histories_are_pruned(void **state)
{
    struct stage *stage = *state;
    pawl_queue_settings settings;
    pawl_job job;
    pawl_changed changed;
    pawl_queue_settings_init(&settings);
    settings.keep_failed_ms = 1;
    assert_int_equal(pawl_queue_set(stage->store, STAGE_QUEUE, &settings, NULL), PAWL_OK);
    pawl_id id = stage_enqueue(stage, "");
    assert_int_equal(pawl_cancel(stage->store, &id, 1, &changed, NULL), PAWL_OK);
    pawl_reaper *reaper = start(stage, 5000);
    AWAIT(pawl_get(stage->store, &id, &job, NULL) == PAWL_GONE);
    pawl_reaper_stop(reaper);
    assert_int_equal(stage_told(stage, PAWL_EVENT_PRUNED, NULL), 1);
}

/* A store that is away is asked again at the next interval, and the row tells of no run. */
static void a_reaper_outlives_its_store(void **state)
{
    struct stage *stage = *state;
    fault_gate_set(&stage->gate, FAULT_REAP, FAULT_DOWN);
    pawl_reaper *reaper = start(stage, 50);
    AWAIT(fault_gate_passed(&stage->gate, FAULT_REAP) >= 3);
    pawl_worker rows[4];
    size_t count = 0;
    assert_int_equal(pawl_workers(stage->store, NULL, rows, 4, &count, NULL), PAWL_OK);
    assert_int_equal(count, 0); /* RULE-020-020: it has not finished a run */
    assert_int_equal(pawl_reaper_runs(reaper), 0);
    claim_and_die(stage, "dead/3/3", 1);
    fault_gate_open(&stage->gate, FAULT_REAP);
    AWAIT(stage_stats(stage).in_flight == 0);
    AWAIT(pawl_reaper_runs(reaper) > 0);
    pawl_reaper_stop(reaper);
}

/* RULE-020-002, RULE-020-022: another interval, at once; and another level. */
static void a_reaper_is_tuned(void **state)
{
    struct stage *stage = *state;
    pawl_worker_options from;
    pawl_reaper_options options;
    pawl_reaper *reaper = NULL;
    pawl_err err;
    stage_options(stage, &from);
    pawl_reaper_options_init(&options); /* for leases of 30 s: every 10 s */
    options.opener = from.opener;
    options.watch = from.watch;
    assert_int_equal(pawl_reaper_start(&options, &reaper, &err), PAWL_OK);
    AWAIT(pawl_reaper_runs(reaper) == 1);
    assert_int_equal(pawl_reaper_tune(reaper, 30000, PAWL_LEVEL_DEBUG, &err), PAWL_INVALID);
    assert_non_null(strstr(err.text, "interval_ms"));
    assert_int_equal(pawl_reaper_tune(reaper, 50, (pawl_level)-1, &err), PAWL_INVALID);
    assert_non_null(strstr(err.text, "level"));
    assert_int_equal(pawl_reaper_tune(NULL, 50, PAWL_LEVEL_DEBUG, &err), PAWL_INVALID);
    assert_int_equal(pawl_reaper_tune(reaper, 50, PAWL_LEVEL_ERROR, &err), PAWL_OK);
    AWAIT(pawl_reaper_runs(reaper) >= 3); /* long before the interval that it began with is over */
    assert_int_equal(stage_told(stage, PAWL_EVENT_SETTINGS, NULL), 1);
    assert_int_equal(pawl_reaper_tune(reaper, PAWL_DEFAULT, PAWL_LEVEL_DEBUG, &err), PAWL_OK);
    pawl_reaper_stop(reaper);
    assert_int_equal(stage_told(stage, PAWL_EVENT_REAPER_STOPPED, NULL), 1);
}

static int nothing(pawl_job_ctx *ctx, void *user)
{
    (void)ctx;
    (void)user;
    return PAWL_SUCCEED;
}

/* RULE-020-020: every worker brings one along; it can be left out. */
static void every_worker_reaps_unless_told_not_to(void **state)
{
    struct stage *stage = *state;
    pawl_worker_options options;
    /* It serves another queue: claims recover, too, and must not be what is seen here. */
    const pawl_worker_queue other = {"other", PAWL_DEFAULT, stage_lease_ms()};
    stage_options(stage, &options);
    options.queues = &other;
    options.handler = nothing;
    options.presence_ms = 100;
    options.reaper.interval_ms = 50;
    pawl_runner *runner = stage_start(&options);
    claim_and_die(stage, "dead/4/4", 2);
    AWAIT(stage_told(stage, PAWL_EVENT_REAPED, NULL) == 2);
    AWAIT(stage_told_about(stage, PAWL_EVENT_WORKER_DIED, "dead/4/4") == 1);
    stage_stop(stage, runner);

    options.is_reaper_off = true;
    runner = stage_start(&options);
    int64_t reaps = fault_gate_passed(&stage->gate, FAULT_REAP);
    int64_t seen = fault_gate_passed(&stage->gate, FAULT_WORKER_SEEN);
    AWAIT(fault_gate_passed(&stage->gate, FAULT_WORKER_SEEN) > seen + 2); /* it is still there */
    assert_int_equal(fault_gate_passed(&stage->gate, FAULT_REAP), reaps);
    stage_stop(stage, runner);
}

static void bad_options_are_named(void **state)
{
    struct stage *stage = *state;
    pawl_worker_options from;
    pawl_reaper_options options;
    pawl_reaper *reaper = NULL;
    pawl_err err;
    stage_options(stage, &from);
    pawl_reaper_options_init(&options);
    assert_int_equal(pawl_reaper_start(&options, &reaper, &err), PAWL_INVALID);
    assert_non_null(strstr(err.text, "opener.open"));
    options.opener = from.opener;
    options.settings.interval_ms = options.smallest_lease_ms; /* RULE-020-022 */
    assert_int_equal(pawl_reaper_start(&options, &reaper, &err), PAWL_INVALID);
    assert_non_null(strstr(err.text, "interval_ms"));
    options.settings.interval_ms = PAWL_DEFAULT;
    options.presence_ms = 0;
    assert_int_equal(pawl_reaper_start(&options, &reaper, &err), PAWL_INVALID);
    assert_int_equal(pawl_reaper_start(NULL, &reaper, &err), PAWL_INVALID);
    pawl_reaper_stop(NULL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CASE(a_dead_worker_is_recovered_and_reported),
        CASE(a_reaper_is_tuned),
        CASE(reapers_work_side_by_side),
        CASE(old_histories_are_pruned),
        CASE(a_reaper_outlives_its_store),
        CASE(every_worker_reaps_unless_told_not_to),
        CASE(bad_options_are_named),
    };
    return kinds_run(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}

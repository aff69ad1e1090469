/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * trace_test.c - several workers in threads, every handle traced, and the checker of histories over
 * all that they did: in peace, and with calls that are lost, refused and held up.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/random.h"
#include "runtime/kinds.h"
#include "runtime/stage.h"
#include "runtime/worker.h"
#include "sim/check.h"
#include "store/trace.h"

#include <stdlib.h>
#include <string.h>

#define WORKERS     3
#define JOBS        400
#define HANDLES_MAX 64
#define FAULTS_MAX  4096
#define LEASE_MS    12000 /* a beat every three seconds: no machine stands still for so long */
#define LONG_MS     3500  /* so that some jobs are renewed */
#define LIST_MAX    1000
#define LEDGER_MAX  64
#define FAULT_PARTS 8 /* one call in so many goes wrong */
#define SEED        20261115

/* One handle's history. */
struct part {
    struct pawli_trace_writer *writer;
    struct traced *worker;
};

struct mishap {
    pawl_mono at;
    enum fault_verb verb;
};

/* One worker: its notes, and what went wrong with its calls. */
struct traced {
    struct play *play;
    pawl_runner *runner;
    struct pawli_trace_writer *notes;
    char name[PAWL_NAME_MAX + 1];
    struct mishap mishaps[FAULTS_MAX]; /* play.mutex */
    size_t mishaps_count;              /* play.mutex */
};

struct play {
    struct stage *stage;
    pthread_mutex_t mutex;
    struct part parts[HANDLES_MAX]; /* mutex */
    size_t parts_count;             /* mutex */
    struct traced workers[2 * WORKERS];
    size_t workers_count;
    struct pawli_seeded seeded; /* mutex */
    pawl_random random;
    bool is_broken; /* calls go wrong: mutex */
    atomic_int handled;
};

static uint64_t draw(struct play *play, uint64_t below)
{
    pthread_mutex_lock(&play->mutex);
    uint64_t drawn = pawli_random_below(&play->random, below);
    pthread_mutex_unlock(&play->mutex);
    return drawn;
}

/* ---------------------------------------------------------------- traced handles */

/* Of the verbs that a worker's promises rest on, some calls go wrong. */
static enum fault_kind go_wrong(void *user, enum fault_verb verb)
{
    static const enum fault_kind kinds[] = {FAULT_DOWN, FAULT_LOST_REQUEST, FAULT_LOST_REPLY};
    struct traced *traced = user;
    struct play *play = traced->play;
    if (verb < FAULT_CLAIM || verb > FAULT_RELEASE || verb == FAULT_RENEW)
        return FAULT_NONE;
    pthread_mutex_lock(&play->mutex);
    enum fault_kind kind = FAULT_NONE;
    if (play->is_broken && pawli_random_below(&play->random, FAULT_PARTS) == 0 &&
        traced->mishaps_count < FAULTS_MAX) {
        kind = kinds[pawli_random_below(&play->random, 3)];
        const pawl_clock *clock = pawl_clock_system();
        traced->mishaps[traced->mishaps_count++] = (struct mishap){clock->mono(clock->user), verb};
    }
    pthread_mutex_unlock(&play->mutex);
    return kind;
}

static struct pawli_trace_writer *new_part(struct play *play, struct traced *traced)
{
    pawl_err err;
    pthread_mutex_lock(&play->mutex);
    assert_true(play->parts_count < HANDLES_MAX);
    struct part *part = &play->parts[play->parts_count++];
    part->worker = traced;
    assert_int_equal(pawli_trace_writer_new(NULL, &part->writer, &err), PAWL_OK);
    pthread_mutex_unlock(&play->mutex);
    return part->writer;
}

/* The trace stands nearer to the store than the faults: it records what the store did. */
static pawl_code open_traced(void *user, pawl_role role, pawl_store **ret_store, pawl_err *err)
{
    static const char *const roles[] = {"claimer", "settler", "renewer", "reaper"};
    struct traced *traced = user;
    pawl_store *inner = NULL;
    pawl_store *store = NULL;
    pawl_code code = stage_open(traced->play->stage, &inner, err);
    if (code != PAWL_OK)
        return code;
    bool is_memory = traced->play->stage->memory != NULL;
    struct pawli_trace_args args = {.inner = inner,
                                    .writer = new_part(traced->play, traced),
                                    .actor = roles[role],
                                    .clock = pawl_clock_system(),
                                    .store_clock = is_memory ? pawl_clock_system() : NULL};
    assert_int_equal(pawli_trace_open(&args, &store, err), PAWL_OK);
    assert_int_equal(fault_store_open(store, ret_store, err), PAWL_OK);
    fault_store_on_pass(*ret_store, go_wrong, traced);
    return PAWL_OK;
}

/* ---------------------------------------------------------------- workers */

static int handle(pawl_job_ctx *ctx, void *user)
{
    struct play *play = user;
    atomic_fetch_add(&play->handled, 1);
    uint64_t fate = draw(play, 100);
    int64_t run_ms = fate < 3 ? LONG_MS : (int64_t)draw(play, 10);
    int64_t until_ms = stage_now_ms() + run_ms;
    while (stage_now_ms() < until_ms && !pawl_job_is_cancelled(ctx))
        stage_breathe();
    if (pawl_job_is_cancelled(ctx))
        return PAWL_RETRY;
    if (fate < 80)
        return PAWL_SUCCEED;
    pawl_job_delay(ctx, (int64_t)draw(play, 20));
    return fate < 90 ? PAWL_RETRY : fate < 97 ? PAWL_SNOOZE : PAWL_FAIL;
}

static void start_worker(struct play *play)
{
    pawl_worker_options options;
    pawl_err err;
    struct traced *traced = &play->workers[play->workers_count++];
    traced->play = play;
    stage_options(play->stage, &options);
    options.opener = (pawl_opener){.open = open_traced, .user = traced};
    options.handler = handle;
    options.user = play;
    options.settings.parallel_max = 4;
    options.settings.buffer_max = 4;
    options.settings.grace_ms = 1000;
    options.watch.level = PAWL_LEVEL_INFO;
    assert_int_equal(pawli_trace_writer_new(NULL, &traced->notes, &err), PAWL_OK);
    assert_int_equal(pawli_worker_start(&options, traced->notes, &traced->runner, &err), PAWL_OK);
    snprintf(traced->name, sizeof(traced->name), "%s", pawl_worker_name(traced->runner));
}

static void stop_worker(struct traced *traced)
{
    pawl_worker_stop(traced->runner, PAWL_DEFAULT);
    assert_int_equal(pawl_worker_wait(traced->runner, STAGE_WAIT_MS, NULL), PAWL_OK);
    assert_int_equal(pawl_worker_free(traced->runner), 0);
    traced->runner = NULL;
}

/* ---------------------------------------------------------------- the producer */

static void produce(pawl_store *store, struct pawli_trace_writer *notes, size_t from, size_t to)
{
    const pawl_clock *clock = pawl_clock_system();
    for (size_t i = from; i < to; i++) {
        pawl_enqueue_row row;
        pawl_enqueued result;
        pawl_enqueue_init(&row);
        row.queue = STAGE_QUEUE;
        assert_int_equal(pawl_enqueue(store, &row, 1, &result, NULL), PAWL_OK);
        assert_int_equal(result.code, PAWL_OK);
        pawli_trace_note(notes, clock->mono(clock->user),
                         &(struct pawli_trace_note){
                             .kind = PAWLI_NOTE_ACKED, .actor = "producer", .job = result.id});
    }
}

/* The final state: every job, and every ledger. */
static void look_at_all(pawl_store *store)
{
    static pawl_job jobs[LIST_MAX];
    pawl_attempt rows[LEDGER_MAX];
    size_t count = 0;
    size_t rows_count = 0;
    assert_int_equal(pawl_list(store, NULL, NULL, jobs, LIST_MAX, &count, NULL), PAWL_OK);
    assert_true(count >= JOBS && count < LIST_MAX);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(pawl_attempts(store, &jobs[i].id, 0, rows, LEDGER_MAX, &rows_count, NULL),
                         PAWL_OK);
        pawl_job_clear(&jobs[i]);
    }
}

/* ---------------------------------------------------------------- the check */

static void note_mishaps(const struct traced *traced, struct pawli_trace_writer *writer)
{
    static const enum pawli_trace_verb verbs[] = {
        [FAULT_CLAIM] = PAWLI_VERB_CLAIM,     [FAULT_MINE] = PAWLI_VERB_MINE,
        [FAULT_RENEW] = PAWLI_VERB_RENEW,     [FAULT_SETTLE] = PAWLI_VERB_SETTLE,
        [FAULT_RELEASE] = PAWLI_VERB_RELEASE,
    };
    for (size_t i = 0; i < traced->mishaps_count; i++)
        pawli_trace_note(writer, traced->mishaps[i].at,
                         &(struct pawli_trace_note){.kind = PAWLI_NOTE_LINK_FAULT,
                                                    .actor = traced->name,
                                                    .a = verbs[traced->mishaps[i].verb]});
}

static void add(struct check_part *parts, size_t *count, const struct pawli_trace_writer *writer)
{
    parts[*count].bytes = pawli_trace_bytes(writer, &parts[*count].len);
    (*count)++;
}

static void check(struct play *play, struct pawli_trace_writer *producer)
{
    struct check_part parts[HANDLES_MAX + 4 * WORKERS + 2];
    struct pawli_trace_writer *mishaps[2 * WORKERS];
    size_t count = 0;
    pawl_err err;
    struct check_report *report = calloc(1, sizeof(*report));
    assert_non_null(report);
    for (size_t i = 0; i < play->parts_count; i++)
        add(parts, &count, play->parts[i].writer);
    for (size_t i = 0; i < play->workers_count; i++) {
        add(parts, &count, play->workers[i].notes);
        assert_int_equal(pawli_trace_writer_new(NULL, &mishaps[i], &err), PAWL_OK);
        note_mishaps(&play->workers[i], mishaps[i]);
        add(parts, &count, mishaps[i]);
    }
    add(parts, &count, producer);
    struct check_options options = {.is_complete = true,
                                    .must_drain = true,
                                    .drift_ppm = 500,
                                    .round_trip_ms = 5000,
                                    .recover_ms = 0,
                                    /* How soon is up to a busy machine. */
                                    .unchecked = UINT64_C(1) << CHECK_C14 | UINT64_C(1)
                                                                                << CHECK_C28};
    assert_int_equal(check_histories(parts, count, &options, report, &err), PAWL_OK);
    check_report_print(report, stderr);
    assert_int_equal(report->violations_count, 0);
    assert_int_equal(report->jobs, JOBS);
    assert_int_equal(report->starts, atomic_load(&play->handled));
    free(report);
    for (size_t i = 0; i < play->workers_count; i++)
        pawli_trace_writer_free(mishaps[i]);
}

/* ---------------------------------------------------------------- the runs */

static void run(struct stage *stage, bool is_broken)
{
    struct play *play = calloc(1, sizeof(*play));
    pawl_store *inner = NULL;
    pawl_store *store = NULL;
    struct pawli_trace_writer *notes = NULL;
    pawl_err err;
    assert_non_null(play);
    play->stage = stage;
    play->is_broken = is_broken;
    play->seeded.state = SEED;
    play->random = pawli_seeded_as_random(&play->seeded);
    assert_int_equal(pthread_mutex_init(&play->mutex, NULL), 0);
    assert_int_equal(stage_open(stage, &inner, &err), PAWL_OK);
    assert_int_equal(pawli_trace_writer_new(NULL, &notes, &err), PAWL_OK);
    struct pawli_trace_args args = {.inner = inner,
                                    .writer = notes,
                                    .actor = "producer",
                                    .clock = pawl_clock_system(),
                                    .store_clock = stage->memory != NULL ? pawl_clock_system()
                                                                         : NULL};
    assert_int_equal(pawli_trace_open(&args, &store, &err), PAWL_OK);
    pawl_queue_settings settings;
    assert_int_equal(pawl_queue_get(store, STAGE_QUEUE, &settings, &err), PAWL_OK);
    settings.lease_ms = LEASE_MS;
    assert_int_equal(pawl_queue_set(store, STAGE_QUEUE, &settings, &err), PAWL_OK);

    for (size_t i = 0; i < WORKERS; i++)
        start_worker(play);
    produce(store, notes, 0, JOBS / 2);
    stop_worker(&play->workers[0]); /* in the middle of it; another takes its place */
    start_worker(play);
    produce(store, notes, JOBS / 2, JOBS);
    AWAIT(stage_stats(stage).ready == 0 && stage_stats(stage).in_flight == 0);
    for (size_t i = 1; i < play->workers_count; i++)
        stop_worker(&play->workers[i]);
    look_at_all(store);
    check(play, notes);

    pawl_store_close(store);
    pawli_trace_writer_free(notes);
    for (size_t i = 0; i < play->parts_count; i++)
        pawli_trace_writer_free(play->parts[i].writer);
    for (size_t i = 0; i < play->workers_count; i++)
        pawli_trace_writer_free(play->workers[i].notes);
    pthread_mutex_destroy(&play->mutex);
    free(play);
}

static void promises_are_kept_in_peace(void **state)
{
    run(*state, false);
}

static void promises_are_kept_among_faults(void **state)
{
    run(*state, true);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CASE(promises_are_kept_in_peace),
        CASE(promises_are_kept_among_faults),
    };
    return kinds_run(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * bench_turn.c - one turn of `pawl bench`.
 * Owns:  the queue of the turn, its worker, and the clock beside them.
 * Never: compares; repeats; goes on after a signal to stop.
 */
#include "cli/bench_turn.h"

#include "cli/stop_signals.h"

#include "base/error.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SINGLES_MAX     500
#define SINGLES_SHARE   20 /* one of so many jobs is enqueued by itself */
#define STARTS          100
#define START_EVERY_MS  10
#define LOOK_MS         2
#define DRAIN_MOST_MS   3600000
#define CALL_TIMEOUT_MS 300000
#define HELD_JOBS       4 /* batches that a worker holds */

struct turn {
    const struct pawli_bench *bench;
    pawl_source *source;
    pawl_store *store;
    const char *queue;
    pawl_enqueue_row *rows; /* as many as a batch has */
    pawl_enqueued *results;
    char *payload;
    bool is_stopped;
    atomic_llong done;
    atomic_llong started_us[STARTS]; /* 0: not yet */
};

static int64_t now_us(void)
{
    const pawl_clock *clock = pawl_clock_system();
    return clock->mono(clock->user).us;
}

static double since(int64_t began_us)
{
    int64_t took_us = now_us() - began_us;
    return took_us > 0 ? (double)took_us / 1e6 : 1e-6;
}

/* Pass some time; true: it is to stop. */
static bool pass(struct turn *turn, int64_t ms)
{
    turn->is_stopped = turn->is_stopped || pawli_cli_stop_signals_wait(ms) != 0;
    return turn->is_stopped;
}

/* ---- enqueue */

/* In calls of `batch` rows; *ret_rate: jobs per second. */
static pawl_code enqueue(struct turn *turn, int64_t jobs, int64_t batch, double *ret_rate,
                         pawl_err *err)
{
    int64_t began_us = now_us();
    for (int64_t done = 0; done < jobs && !pass(turn, 0); done += batch) {
        size_t count = (size_t)(jobs - done < batch ? jobs - done : batch);
        pawl_code code = pawl_enqueue(turn->store, turn->rows, count, turn->results, err);
        if (code != PAWL_OK)
            return code;
    }
    *ret_rate = (double)jobs / since(began_us);
    return PAWL_OK;
}

/* ---- a worker */

static pawl_code open_store(void *user, pawl_role role, pawl_store **ret_store, pawl_err *err)
{
    const struct turn *turn = user;
    (void)role; /* all handles are alike */
    return pawl_source_open(turn->source, ret_store, err);
}

/* A payload of the size of a number says which of the starts it is. */
static int handle(pawl_job_ctx *ctx, void *user)
{
    struct turn *turn = user;
    const pawl_job *job = pawl_job_of(ctx);
    uint32_t number = STARTS;
    if (job->payload_len == sizeof(number))
        memcpy(&number, job->payload, sizeof(number));
    if (number < STARTS)
        atomic_store(&turn->started_us[number], now_us());
    atomic_fetch_add(&turn->done, 1);
    return PAWL_SUCCEED;
}

static pawl_code start(struct turn *turn, pawl_runner **ret_runner, pawl_err *err)
{
    pawl_worker_queue queue = {
        .queue = turn->queue, .jobs_max = PAWL_DEFAULT, .lease_ms = PAWL_DEFAULT};
    pawl_worker_options options;
    int64_t held = HELD_JOBS * turn->bench->batch;
    pawl_worker_options_init(&options);
    options.opener = (pawl_opener){.open = open_store, .user = turn};
    options.queues = &queue;
    options.queues_count = 1;
    options.handler = handle;
    options.user = turn;
    options.settings.parallel_max = turn->bench->parallel;
    options.settings.buffer_max = held < PAWL_BATCH_MAX ? held : PAWL_BATCH_MAX;
    options.settings.claim_batch_max = turn->bench->batch;
    options.settings.settle_batch_max = turn->bench->batch;
    options.settings.call_timeout_ms = CALL_TIMEOUT_MS;
    return pawl_worker_start(&options, ret_runner, err);
}

/* Until so many have been handled and settled. */
static pawl_code await(struct turn *turn, pawl_runner *runner, int64_t jobs, pawl_err *err)
{
    pawl_worker_counts counts = {.settling = 1};
    int64_t began_us = now_us();
    while (atomic_load(&turn->done) < jobs || counts.settling + counts.running > 0) {
        if (pass(turn, LOOK_MS))
            return PAWL_OK;
        if (since(began_us) * 1000 > DRAIN_MOST_MS)
            return pawli_fail(err, PAWL_DOWN, "the worker does not come to an end");
        pawl_worker_count(runner, &counts);
    }
    return PAWL_OK;
}

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return left < right ? -1 : left > right;
}

/* Some jobs, one every few milliseconds, while the worker has nothing else to do. */
static pawl_code time_starts(struct turn *turn, pawl_runner *runner, int64_t before,
                             double figures[PAWLI_BENCH_FIGURES], pawl_err *err)
{
    int64_t sent_us[STARTS];
    double took_us[STARTS];
    pawl_enqueue_row row = turn->rows[0];
    for (uint32_t i = 0; i < STARTS; i++) {
        if (pass(turn, START_EVERY_MS))
            return PAWL_OK;
        row.payload = &i;
        row.payload_len = sizeof(i);
        sent_us[i] = now_us();
        pawl_code code = pawl_enqueue(turn->store, &row, 1, turn->results, err);
        if (code != PAWL_OK)
            return code;
    }
    pawl_code code = await(turn, runner, before + STARTS, err);
    for (size_t i = 0; i < STARTS; i++)
        took_us[i] = (double)(atomic_load(&turn->started_us[i]) - sent_us[i]);
    qsort(took_us, STARTS, sizeof(took_us[0]), compare);
    figures[PAWLI_BENCH_START] = took_us[STARTS / 2];
    figures[PAWLI_BENCH_START_SLOW] = took_us[STARTS * 99 / 100];
    return code;
}

static pawl_code work(struct turn *turn, int64_t jobs, double figures[PAWLI_BENCH_FIGURES],
                      pawl_err *err)
{
    pawl_runner *runner = NULL;
    int64_t began_us = now_us();
    pawl_code code = start(turn, &runner, err);
    if (code != PAWL_OK)
        return code;
    code = await(turn, runner, jobs, err);
    figures[PAWLI_BENCH_DRAIN] = (double)jobs / since(began_us);
    if (code == PAWL_OK && !turn->is_stopped)
        code = time_starts(turn, runner, jobs, figures, err);
    pawl_worker_stop(runner, PAWL_DEFAULT);
    if (pawl_worker_free(runner) != 0 && code == PAWL_OK)
        code = pawli_fail(err, PAWL_DOWN, "threads of the worker are stuck");
    return code;
}

/* ---- all of it */

static pawl_code prepare(struct turn *turn, pawl_err *err)
{
    size_t batch = (size_t)turn->bench->batch, payload = (size_t)turn->bench->payload;
    pawl_source_options options;
    pawl_source_options_init(&options);
    options.url = turn->bench->url;
    options.call_timeout_ms = CALL_TIMEOUT_MS;
    turn->rows = calloc(batch, sizeof(*turn->rows));
    turn->results = calloc(batch, sizeof(*turn->results));
    turn->payload = calloc(1, payload > 0 ? payload : 1);
    if (turn->rows == NULL || turn->results == NULL || turn->payload == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    for (size_t i = 0; i < batch; i++) {
        pawl_enqueue_init(&turn->rows[i]);
        turn->rows[i].queue = turn->queue;
        turn->rows[i].payload = turn->payload;
        turn->rows[i].payload_len = payload;
    }
    pawl_code code = pawl_source_new(&options, &turn->source, err);
    return code == PAWL_OK ? pawl_source_open(turn->source, &turn->store, err) : code;
}

static pawl_code measure(struct turn *turn, double figures[PAWLI_BENCH_FIGURES], pawl_err *err)
{
    const struct pawli_bench *bench = turn->bench;
    int64_t singles = bench->jobs / SINGLES_SHARE + 1;
    singles = singles < SINGLES_MAX ? singles : SINGLES_MAX;
    pawl_code code = enqueue(turn, bench->jobs, bench->batch, &figures[PAWLI_BENCH_ENQUEUE], err);
    if (code == PAWL_OK && !turn->is_stopped)
        code = enqueue(turn, singles, 1, &figures[PAWLI_BENCH_SINGLES], err);
    if (code == PAWL_OK && !turn->is_stopped)
        code = work(turn, bench->jobs + singles, figures, err);
    return code;
}

pawl_code pawli_bench_turn(const struct pawli_bench *bench, double figures[PAWLI_BENCH_FIGURES],
                           bool *ret_is_stopped, pawl_err *err)
{
    struct turn *turn = calloc(1, sizeof(*turn));
    if (turn == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    turn->bench = bench;
    turn->queue = "bench";
    pawl_code code = prepare(turn, err);
    if (code == PAWL_OK)
        code = measure(turn, figures, err);
    *ret_is_stopped = turn->is_stopped;
    pawl_store_close(turn->store);
    pawl_source_free(turn->source);
    free(turn->rows);
    free(turn->results);
    free(turn->payload);
    free(turn);
    return code;
}

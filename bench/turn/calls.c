/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * calls.c - turns of the store's own verbs, without a worker: claim and settle, enqueue.
 * Owns:  the loops around these calls.
 * Never: does two calls at once on a handle.
 */
#include "turn.h"

#include "pawl/joiner.h"

#include <pthread.h>
#include <stdlib.h>

/* ---- claim and settle */

struct batch {
    pawl_job *jobs;
    pawl_settle_row *rows;
    pawl_settled *results;
};

static bool make_batch(struct batch *batch, size_t count)
{
    batch->jobs = calloc(count, sizeof(*batch->jobs));
    batch->rows = calloc(count, sizeof(*batch->rows));
    batch->results = calloc(count, sizeof(*batch->results));
    return batch->jobs != NULL && batch->rows != NULL && batch->results != NULL;
}

static void free_batch(struct batch *batch)
{
    free(batch->jobs);
    free(batch->rows);
    free(batch->results);
}

static pawl_code settle_all(pawl_store *store, struct batch *batch, size_t count, pawl_err *err)
{
    for (size_t i = 0; i < count; i++) {
        const pawl_job *job = &batch->jobs[i];
        pawl_settle_init(&batch->rows[i]);
        batch->rows[i].action = PAWL_SUCCEED;
        batch->rows[i].lease = (pawl_lease){job->id, job->token, job->lease_version, job->place};
        pawl_job_clear(&batch->jobs[i]);
    }
    return pawl_settle(store, WORKER, batch->rows, count, batch->results, err);
}

/* Claim and settle until nothing is due. */
static bool drain(const struct turn *turn, pawl_store *store, struct batch *batch)
{
    pawl_claim_line line = {.queue = QUEUE, .jobs_max = turn->batch, .lease_ms = PAWL_DEFAULT};
    pawl_claim_args args = {
        .worker = WORKER, .lines = &line, .lines_count = 1, .bytes_max = PAWL_DEFAULT};
    pawl_err err;
    for (;;) {
        size_t count = 0;
        pawl_code code = pawl_claim(store, &args, batch->jobs, (size_t)turn->batch, &count, &err);
        if (code == PAWL_OK && count == 0)
            return true;
        if (code == PAWL_OK)
            code = settle_all(store, batch, count, &err);
        if (code != PAWL_OK)
            return turn_fail("claim or settle", err.text);
    }
}

bool turn_batches(const struct turn *turn, struct turn_result *result)
{
    struct batch batch = {0};
    pawl_source *source = NULL;
    pawl_store *store = NULL;
    double wal = turn_wal(turn);
    /* A store in memory ends with its source: so all is done with one. */
    bool is_done = make_batch(&batch, (size_t)turn->batch) && turn_open(turn, &source, &store);
    int64_t began_us = turn_now_us();
    is_done = is_done && turn_fill(turn, store, 0, turn->jobs);
    result->fill_seconds = (double)(turn_now_us() - began_us) / 1e6;
    began_us = turn_now_us();
    is_done = is_done && drain(turn, store, &batch);
    result->seconds = (double)(turn_now_us() - began_us) / 1e6;
    if (wal >= 0)
        result->wal_bytes_per_job = (turn_wal(turn) - wal) / (double)turn->jobs;
    is_done = is_done && turn_check(turn, store, turn->jobs);
    turn_close(source, store);
    free_batch(&batch);
    return is_done;
}

/* ---- enqueue */

bool turn_enqueue(const struct turn *turn, struct turn_result *result)
{
    struct turn filling = *turn;
    filling.fill_batch = turn->batch;
    if (!turn_fill_all(&filling, result))
        return false;
    result->seconds = result->fill_seconds;
    return true;
}

/* One of those who enqueue at the same time, job by job. */
struct single {
    const struct turn *turn;
    pawl_store *store;
    pawl_joiner *joiner; /* NULL: by its own handle */
    atomic_llong *left;
    bool is_good;
    pthread_t thread;
};

static void *enqueue_singles(void *user)
{
    struct single *single = user;
    pawl_enqueue_row *row = turn_rows(single->turn, 1);
    pawl_enqueued enqueued;
    pawl_err err;
    single->is_good = row != NULL;
    while (single->is_good && atomic_fetch_sub(single->left, 1) > 0) {
        pawl_code code = single->joiner != NULL
                             ? pawl_joiner_enqueue(single->joiner, row, &enqueued, &err)
                             : pawl_enqueue(single->store, row, 1, &enqueued, &err);
        if (code != PAWL_OK)
            single->is_good = turn_fail("enqueue", err.text);
    }
    turn_rows_free(row);
    return NULL;
}

static bool open_singles(const struct turn *turn, pawl_source *source, struct single *singles,
                         atomic_llong *left)
{
    pawl_err err;
    for (int64_t i = 0; i < turn->connections; i++) {
        singles[i] = (struct single){.turn = turn, .left = left};
        if (pawl_source_open(source, &singles[i].store, &err) != PAWL_OK)
            return turn_fail("the store", err.text);
    }
    /* The queue and its settings are there when the time begins. */
    return turn_fill(turn, singles[0].store, 0, 1);
}

/* Start a thread for each, and wait until they have done all. */
static bool run_singles(const struct turn *turn, struct single *singles, struct turn_result *result)
{
    bool is_good = true;
    int64_t began_us = turn_now_us(), started = 0;
    for (; is_good && started < turn->connections; started++)
        is_good = pthread_create(&singles[started].thread, NULL, enqueue_singles,
                                 &singles[started]) == 0;
    for (int64_t i = 0; i < started; i++)
        is_good = pthread_join(singles[i].thread, NULL) == 0 && singles[i].is_good && is_good;
    result->seconds = (double)(turn_now_us() - began_us) / 1e6;
    return is_good;
}

/* So many threads, one handle. */
bool turn_joined(const struct turn *turn, struct turn_result *result)
{
    struct single *singles = calloc((size_t)turn->connections, sizeof(*singles));
    pawl_source *source = NULL;
    pawl_store *store = NULL;
    pawl_joiner *joiner = NULL;
    atomic_llong left = turn->jobs;
    pawl_err err = {.text = "no memory"};
    bool is_good = singles != NULL && turn_open(turn, &source, &store) &&
                   turn_fill(turn, store, 0, 1);
    if (is_good && pawl_joiner_new(store, &joiner, &err) != PAWL_OK)
        is_good = turn_fail("the joiner", err.text);
    for (int64_t i = 0; is_good && i < turn->connections; i++)
        singles[i] = (struct single){.turn = turn, .left = &left, .joiner = joiner};
    is_good = is_good && run_singles(turn, singles, result);
    pawl_joiner_free(joiner);
    turn_close(source, store);
    free(singles);
    return is_good;
}

bool turn_singles(const struct turn *turn, struct turn_result *result)
{
    struct single *singles = calloc((size_t)turn->connections, sizeof(*singles));
    pawl_source *source = turn_open_source(turn);
    atomic_llong left = turn->jobs;
    bool is_good = singles != NULL && source != NULL && open_singles(turn, source, singles, &left);
    is_good = is_good && run_singles(turn, singles, result);
    for (int64_t i = 0; singles != NULL && i < turn->connections; i++)
        pawl_store_close(singles[i].store);
    pawl_source_free(source);
    free(singles);
    return is_good;
}

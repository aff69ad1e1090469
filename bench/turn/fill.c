/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * fill.c - puts into a queue what a turn needs there, and checks what came of it.
 * Owns:  the jobs of all candidates: their payload, their keys; what stands beside them.
 * Never: measures.
 */
#include "turn.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY_MAX      32
#define STUCK_KEY    "stuck"
#define STALE_FEW    50
#define OTHER_WORKER "elsewhere"

pawl_source *turn_open_source(const struct turn *turn)
{
    pawl_source_options options;
    pawl_source *source = NULL;
    pawl_err err;
    pawl_source_options_init(&options);
    options.url = turn->store;
    options.call_timeout_ms = CALL_TIMEOUT_MS;
    if (turn->store == NULL)
        (void)turn_fail("store", "it must be given");
    else if (pawl_source_new(&options, &source, &err) != PAWL_OK)
        (void)turn_fail("the store", err.text);
    return source;
}

bool turn_open(const struct turn *turn, pawl_source **ret_source, pawl_store **ret_store)
{
    pawl_err err;
    *ret_store = NULL;
    *ret_source = turn_open_source(turn);
    if (*ret_source == NULL)
        return false;
    if (pawl_source_open(*ret_source, ret_store, &err) == PAWL_OK)
        return true;
    pawl_source_free(*ret_source);
    return turn_fail("the store", err.text);
}

void turn_close(pawl_source *source, pawl_store *store)
{
    pawl_store_close(store);
    pawl_source_free(source);
}

/* ---- rows */

/* Rows, with room for their keys behind them and then for the payload. */
pawl_enqueue_row *turn_rows(const struct turn *turn, size_t count)
{
    size_t rows_size = count * sizeof(pawl_enqueue_row);
    char *block = calloc(1, rows_size + count * KEY_MAX + PAYLOAD_BYTES_MAX);
    if (block == NULL) {
        (void)turn_fail("rows", "no memory");
        return NULL;
    }
    pawl_enqueue_row *rows = (void *)block;
    char *payload = block + rows_size + count * KEY_MAX;
    memset(payload, 'x', (size_t)turn->payload);
    for (size_t i = 0; i < count; i++) {
        pawl_enqueue_init(&rows[i]);
        rows[i].queue = QUEUE;
        rows[i].payload = payload;
        rows[i].payload_len = (size_t)turn->payload;
    }
    return rows;
}

void turn_rows_free(pawl_enqueue_row *rows)
{
    free(rows);
}

void turn_rows_key(const struct turn *turn, pawl_enqueue_row *rows, size_t count, int64_t first)
{
    char *keys = (char *)(rows + count);
    for (size_t i = 0; turn->keys > 0 && i < count; i++) {
        (void)snprintf(keys + i * KEY_MAX, KEY_MAX, "key-%" PRId64,
                       (first + (int64_t)i) % turn->keys); /* fits */
        rows[i].ordering_key = keys + i * KEY_MAX;
    }
}

/* Enqueue `count` jobs in calls of the filling's size; `rows` are as many. */
static bool put(const struct turn *turn, pawl_store *store, pawl_enqueue_row *rows, int64_t from,
                int64_t to)
{
    pawl_err err;
    size_t most = (size_t)turn->fill_batch;
    pawl_enqueued *results = calloc(most, sizeof(*results));
    pawl_code code = results != NULL ? PAWL_OK : PAWL_NO_MEMORY;
    for (int64_t at = from; code == PAWL_OK && at < to; at += turn->fill_batch) {
        size_t count = to - at < turn->fill_batch ? (size_t)(to - at) : most;
        turn_rows_key(turn, rows, most, at);
        code = pawl_enqueue(store, rows, count, results, &err);
    }
    free(results);
    return code == PAWL_OK || turn_fail("enqueue", err.text);
}

bool turn_fill(const struct turn *turn, pawl_store *store, int64_t from, int64_t to)
{
    pawl_enqueue_row *rows = turn_rows(turn, (size_t)turn->fill_batch);
    bool is_done = rows != NULL && put(turn, store, rows, from, to);
    turn_rows_free(rows);
    return is_done;
}

static bool is_statistics(const struct turn *turn, const char *kind)
{
    return turn_is_postgres(turn) && strcmp(turn->statistics, kind) == 0;
}

bool turn_fill_all(const struct turn *turn, struct turn_result *result)
{
    pawl_source *source;
    pawl_store *store;
    int64_t few = turn->jobs < STALE_FEW ? turn->jobs : STALE_FEW;
    if (turn_is_postgres(turn) && strcmp(turn->statistics, "auto") != 0 &&
        !turn_sql(turn, "alter table pawl.job set (autovacuum_enabled = off);"
                        "alter table pawl.attempt set (autovacuum_enabled = off)"))
        return false;
    if (!turn_open(turn, &source, &store))
        return false;
    int64_t began_us = turn_now_us();
    bool is_done = turn_fill(turn, store, 0, few);
    if (is_done && is_statistics(turn, "stale"))
        is_done = turn_sql(turn, "analyze pawl.job");
    is_done = is_done && turn_fill(turn, store, few, turn->jobs);
    result->fill_seconds = (double)(turn_now_us() - began_us) / 1e6;
    turn_close(source, store);
    if (is_done && is_statistics(turn, "full"))
        is_done = turn_sql(turn, "vacuum analyze pawl.job");
    return is_done;
}

/* ---- beside them */

/* Claim `wanted` jobs in another worker's name, for good. */
static bool take(pawl_store *store, int64_t wanted)
{
    pawl_claim_line line = {
        .queue = QUEUE, .jobs_max = PAWL_BATCH_MAX, .lease_ms = PAWL_DURATION_MAX_MS};
    pawl_claim_args args = {
        .worker = OTHER_WORKER, .lines = &line, .lines_count = 1, .bytes_max = PAWL_DEFAULT};
    pawl_err err = {.text = "fewer than were wanted"};
    pawl_job *jobs = calloc(PAWL_BATCH_MAX, sizeof(*jobs));
    size_t count = 1;
    while (jobs != NULL && wanted > 0 && count > 0) {
        size_t most = wanted < PAWL_BATCH_MAX ? (size_t)wanted : PAWL_BATCH_MAX;
        count = 0;
        if (pawl_claim(store, &args, jobs, most, &count, &err) != PAWL_OK)
            break;
        for (size_t i = 0; i < count; i++)
            pawl_job_clear(&jobs[i]);
        wanted -= (int64_t)count;
    }
    free(jobs);
    return wanted == 0 || turn_fail("claim", err.text);
}

static bool put_stuck(const struct turn *turn, pawl_store *store, pawl_enqueue_row *rows)
{
    for (size_t i = 0; i < (size_t)turn->fill_batch; i++)
        rows[i].ordering_key = STUCK_KEY;
    struct turn keyless = *turn; /* they have one key, which is set */
    keyless.keys = 0;
    return put(&keyless, store, rows, 0, 1) && take(store, 1) &&
           put(&keyless, store, rows, 0, turn->stuck);
}

bool turn_prepare(const struct turn *turn, struct turn_result *result)
{
    pawl_source *source;
    pawl_store *store;
    struct turn keyless = *turn;
    keyless.keys = 0;
    (void)result;
    if (!turn_open(turn, &source, &store))
        return false;
    pawl_enqueue_row *rows = turn_rows(turn, (size_t)turn->fill_batch);
    bool is_done = rows != NULL;
    if (is_done && turn->elsewhere > 0)
        is_done = put(&keyless, store, rows, 0, turn->elsewhere) && take(store, turn->elsewhere);
    if (is_done && turn->stuck > 0)
        is_done = put_stuck(turn, store, rows);
    if (is_done && turn->delayed > 0) {
        for (size_t i = 0; i < (size_t)turn->fill_batch; i++) {
            rows[i].ordering_key = NULL;
            rows[i].delay_ms = PAWL_DURATION_MAX_MS;
        }
        is_done = put(&keyless, store, rows, 0, turn->delayed);
    }
    turn_rows_free(rows);
    turn_close(source, store);
    return is_done;
}

/* ---- afterwards */

bool turn_check(const struct turn *turn, pawl_store *store, int64_t wanted)
{
    pawl_stats stats = {.succeeded = 0};
    pawl_err err;
    size_t count = 0;
    char text[PAWL_ERR_TEXT_MAX];
    (void)turn;
    if (pawl_queue_stats(store, NULL, &stats, 1, &count, &err) != PAWL_OK)
        return turn_fail("queue_stats", err.text);
    if (count == 1 && stats.succeeded == wanted)
        return true;
    (void)snprintf(text, sizeof(text), "%" PRId64 " of %" PRId64 " have", stats.succeeded, wanted);
    return turn_fail("not all jobs have succeeded", text);
}

bool turn_check_all(const struct turn *turn)
{
    pawl_source *source;
    pawl_store *store;
    if (!turn_open(turn, &source, &store))
        return false;
    bool is_right = turn_check(turn, store, turn->jobs);
    turn_close(source, store);
    return is_right;
}

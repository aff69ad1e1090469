/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * memory_bench.c - what claim and settle cost on the memory store, as a ratio to a raw baseline:
 * the same number of records, each allocated, put into an ordered tree, taken out of it and freed.
 * Both run in turns in one process, and the best turn of each counts, so that the ratio says more
 * than the machine it was measured on. Usage: memory-bench [JOBS]
 */
#include "pawl/pawl.h"

#include <bsd/sys/tree.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define JOBS_DEFAULT 200000
#define JOBS_MAX     10000000
#define BATCH        100
#define TURNS        3

/* ---- the baseline */

struct record {
    RB_ENTRY(record) link;
    uint64_t key;
    char body[64];
};

RB_HEAD(record_tree, record);

static int compare_records(struct record *a, struct record *b)
{
    return a->key < b->key ? -1 : a->key > b->key;
}

/* Not RB_GENERATE_STATIC, which needs a macro that glibc does not have. */
RB_GENERATE_INTERNAL(record_tree, record, link, compare_records, __attribute__((unused)) static)

/* Milliseconds, or -1 where memory ran out. */
static double run_baseline(size_t jobs)
{
    const pawl_clock *clock = pawl_clock_system();
    pawl_mono began = clock->mono(clock->user);
    struct record_tree tree = RB_INITIALIZER(&tree);
    bool is_full = false;
    for (size_t i = 0; i < jobs && !is_full; i++) {
        struct record *record = malloc(sizeof(*record));
        is_full = record == NULL;
        if (is_full)
            continue;
        record->key = i;
        RB_INSERT(record_tree, &tree, record);
    }
    struct record *first;
    while ((first = RB_MIN(record_tree, &tree)) != NULL) {
        RB_REMOVE(record_tree, &tree, first);
        free(first);
    }
    return is_full ? -1 : (double)(clock->mono(clock->user).us - began.us) / 1000;
}

/* ---- the store */

static pawl_code fill(pawl_store *store, size_t jobs, pawl_err *err)
{
    pawl_enqueue_row rows[BATCH];
    pawl_enqueued results[BATCH];
    for (size_t i = 0; i < BATCH; i++) {
        pawl_enqueue_init(&rows[i]);
        rows[i].queue = "bench";
    }
    pawl_code rc = PAWL_OK;
    for (size_t done = 0; rc == PAWL_OK && done < jobs; done += BATCH)
        rc = pawl_enqueue(store, rows, jobs - done < BATCH ? jobs - done : BATCH, results, err);
    return rc;
}

/* Claim and settle until nothing is due; *ret_settled counts what was accepted. */
static pawl_code drain(pawl_store *store, size_t *ret_settled, pawl_err *err)
{
    pawl_claim_line line = {.queue = "bench", .jobs_max = BATCH, .lease_ms = PAWL_DEFAULT};
    pawl_claim_args args = {
        .worker = "bench", .lines = &line, .lines_count = 1, .bytes_max = PAWL_DEFAULT};
    pawl_job jobs[BATCH];
    pawl_settle_row rows[BATCH];
    pawl_settled results[BATCH];
    for (*ret_settled = 0;;) {
        size_t count = 0;
        pawl_code rc = pawl_claim(store, &args, jobs, BATCH, &count, err);
        if (rc != PAWL_OK || count == 0)
            return rc;
        for (size_t i = 0; i < count; i++) {
            pawl_settle_init(&rows[i]);
            rows[i].action = PAWL_SUCCEED;
            rows[i].lease = (pawl_lease){jobs[i].id, jobs[i].token, jobs[i].lease_version,
                                         jobs[i].place};
            pawl_job_clear(&jobs[i]);
        }
        rc = pawl_settle(store, "bench", rows, count, results, err);
        if (rc != PAWL_OK)
            return rc;
        for (size_t i = 0; i < count; i++)
            *ret_settled += results[i].code == PAWL_OK;
    }
}

/* Milliseconds for claim and settle of `jobs` jobs, or -1 where something went wrong, which it has
 * said. */
static double run_store(size_t jobs)
{
    const pawl_clock *clock = pawl_clock_system();
    pawl_err err = {.code = PAWL_OK};
    pawl_memory *memory = NULL;
    pawl_store *store = NULL;
    double ms = -1;
    size_t settled = 0;
    pawl_code rc = pawl_memory_new(NULL, &memory, &err);
    if (rc == PAWL_OK)
        rc = pawl_memory_open(memory, &store, &err);
    if (rc == PAWL_OK)
        rc = fill(store, jobs, &err);
    if (rc == PAWL_OK) {
        pawl_mono began = clock->mono(clock->user);
        rc = drain(store, &settled, &err);
        ms = (double)(clock->mono(clock->user).us - began.us) / 1000;
    }
    if (rc != PAWL_OK)
        (void)fprintf(stderr, "memory-bench: %s\n", err.text);
    else if (settled != jobs)
        (void)fprintf(stderr, "memory-bench: settled %zu of %zu jobs\n", settled, jobs);
    pawl_store_close(store);
    pawl_memory_free(memory);
    return rc == PAWL_OK && settled == jobs ? ms : -1;
}

/* ---- both */

static double best(double so_far, double ms)
{
    return so_far < 0 || ms < so_far ? ms : so_far;
}

int main(int argc, char **argv)
{
    size_t jobs = JOBS_DEFAULT;
    if (argc > 1) {
        char *end = NULL;
        errno = 0;
        unsigned long long number = strtoull(argv[1], &end, 10);
        if (argc > 2 || argv[1][0] < '0' || argv[1][0] > '9' || *end != '\0' || errno != 0 ||
            number == 0 || number > JOBS_MAX) {
            (void)fprintf(stderr, "usage: memory-bench [JOBS], 1 to %d\n", JOBS_MAX);
            return 64;
        }
        jobs = (size_t)number;
    }
    double store_ms = -1, baseline_ms = -1;
    for (int i = 0; i < TURNS; i++) {
        double baseline = run_baseline(jobs), store = run_store(jobs);
        if (baseline < 0 || store < 0)
            return 70;
        baseline_ms = best(baseline_ms, baseline);
        store_ms = best(store_ms, store);
    }
    double count = (double)jobs;
    (void)printf("claim and settle, memory store: %zu jobs, %.0f jobs/ms\n", jobs,
                 count / store_ms);
    (void)printf("baseline, malloc and tree:      %zu records, %.0f records/ms\n", jobs,
                 count / baseline_ms);
    (void)printf("ratio: a job costs as much as %.1f records\n", store_ms / baseline_ms);
    return fflush(stdout) == 0 ? 0 : 74;
}

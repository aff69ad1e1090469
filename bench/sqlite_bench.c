/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * sqlite_bench.c - what ordering keys cost on the SQLite store: claim and settle, in batches of
 * 100, of jobs with as many keys as a half of them, against jobs without; and the same beside a
 * key that is stuck, with 100,000 jobs behind its first one. A file with so many jobs has deeper
 * trees than an empty one, whatever they wait for: so it also runs beside as many that are delayed
 * and have no key, to tell the one from the other. All run in turns, each in a file of
 * its own, and the best turn of each counts. The file is in memory (or below TMPDIR) and the
 * processor's time is what is measured: this is about what the store does, not about the disk, nor
 * about what else the machine has to do.
 * Usage: sqlite-bench [KEYS]
 */
#include "pawl/pawl.h"
#include "support/scratch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define KEYS_DEFAULT 20000
#define KEYS_MAX     1000000
#define BATCH        100
#define TURNS        5
#define KEY_MAX      32
#define STUCK        100000 /* jobs behind a first one that runs */
#define QUEUE        "bench"
#define WORKER       "bench"
#define PAYLOAD      "a payload of about sixty-four bytes, which is what many jobs have"
#define KEYED_WANTED 0.5
#define STUCK_WANTED 0.9

/* What else is in the file. */
enum beside {
    BESIDE_NOTHING,
    BESIDE_STUCK,  /* a job that runs, and many of its key behind it */
    BESIDE_DELAYED /* as many without a key, whose time has not come */
};

struct load {
    const char *name;
    size_t jobs;
    size_t keys; /* 0: none; otherwise one after the other */
    enum beside beside;
};

/* Of the processor's time, in milliseconds. */
static double used_ms(void)
{
    struct timespec used = {0};
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used); /* cannot fail here */
    return (double)used.tv_sec * 1000 + (double)used.tv_nsec / 1000000;
}

/* ---- one turn */

/* Enqueue so many jobs, all of the key that is given, or each of the next one of the load's. */
static pawl_code fill(pawl_store *store, const struct load *load, size_t jobs, const char *key,
                      pawl_err *err)
{
    pawl_enqueue_row rows[BATCH];
    pawl_enqueued results[BATCH];
    char keys[BATCH][KEY_MAX];
    pawl_code rc = PAWL_OK;
    for (size_t i = 0; i < BATCH; i++) {
        pawl_enqueue_init(&rows[i]);
        rows[i].queue = QUEUE;
        rows[i].payload = PAYLOAD;
        rows[i].payload_len = strlen(PAYLOAD);
        rows[i].ordering_key = key != NULL || load->keys == 0 ? key : keys[i];
    }
    for (size_t done = 0; rc == PAWL_OK && done < jobs; done += BATCH) {
        for (size_t i = 0; load->keys > 0 && i < BATCH; i++)
            (void)snprintf(keys[i], KEY_MAX, "key-%zu", (done + i) % load->keys); /* fits */
        rc = pawl_enqueue(store, rows, jobs - done < BATCH ? jobs - done : BATCH, results, err);
    }
    return rc;
}

static pawl_code claim(pawl_store *store, int64_t lease_ms, pawl_job *ret_jobs, size_t *ret_count,
                       pawl_err *err)
{
    pawl_claim_line line = {.queue = QUEUE, .jobs_max = BATCH, .lease_ms = lease_ms};
    pawl_claim_args args = {
        .worker = WORKER, .lines = &line, .lines_count = 1, .bytes_max = PAWL_DEFAULT};
    return pawl_claim(store, &args, ret_jobs, BATCH, ret_count, err);
}

static pawl_code fill_delayed(pawl_store *store, pawl_err *err)
{
    pawl_enqueue_row rows[BATCH];
    pawl_enqueued results[BATCH];
    pawl_code rc = PAWL_OK;
    for (size_t i = 0; i < BATCH; i++) {
        pawl_enqueue_init(&rows[i]);
        rows[i].queue = QUEUE;
        rows[i].payload = PAYLOAD;
        rows[i].payload_len = strlen(PAYLOAD);
        rows[i].delay_ms = PAWL_DURATION_MAX_MS;
    }
    for (size_t done = 0; rc == PAWL_OK && done < STUCK; done += BATCH)
        rc = pawl_enqueue(store, rows, BATCH, results, err);
    return rc;
}

static pawl_code fill_stuck(pawl_store *store, const struct load *load, pawl_err *err)
{
    pawl_job jobs[BATCH];
    size_t count = 0;
    pawl_code rc = fill(store, load, 1, "stuck", err);
    if (rc == PAWL_OK)
        rc = claim(store, PAWL_DURATION_MAX_MS, jobs, &count, err);
    for (size_t i = 0; i < count; i++)
        pawl_job_clear(&jobs[i]);
    return rc == PAWL_OK ? fill(store, load, STUCK, "stuck", err) : rc;
}

/* Claim and settle until nothing is due; *ret_settled counts what was accepted. */
static pawl_code drain(pawl_store *store, size_t *ret_settled, pawl_err *err)
{
    pawl_job jobs[BATCH];
    pawl_settle_row rows[BATCH];
    pawl_settled results[BATCH];
    for (*ret_settled = 0;;) {
        size_t count = 0;
        pawl_code rc = claim(store, PAWL_DEFAULT, jobs, &count, err);
        if (rc != PAWL_OK || count == 0)
            return rc;
        for (size_t i = 0; i < count; i++) {
            pawl_settle_init(&rows[i]);
            rows[i].action = PAWL_SUCCEED;
            rows[i].lease = (pawl_lease){jobs[i].id, jobs[i].token, jobs[i].lease_version,
                                         jobs[i].place};
            pawl_job_clear(&jobs[i]);
        }
        rc = pawl_settle(store, WORKER, rows, count, results, err);
        if (rc != PAWL_OK)
            return rc;
        for (size_t i = 0; i < count; i++)
            *ret_settled += results[i].code == PAWL_OK;
    }
}

/* Milliseconds to claim and settle, or -1 where something went wrong, which it has said.
 * *ret_fill_ms: what it took to enqueue them. */
static double run_store(pawl_store *store, const struct load *load, double *ret_fill_ms)
{
    pawl_err err = {.code = PAWL_OK};
    size_t settled = 0;
    pawl_code rc = PAWL_OK;
    if (load->beside == BESIDE_STUCK)
        rc = fill_stuck(store, load, &err);
    else if (load->beside == BESIDE_DELAYED)
        rc = fill_delayed(store, &err);
    double began = used_ms();
    if (rc == PAWL_OK)
        rc = fill(store, load, load->jobs, NULL, &err);
    *ret_fill_ms = used_ms() - began;
    began = used_ms();
    if (rc == PAWL_OK)
        rc = drain(store, &settled, &err);
    double ms = used_ms() - began;
    if (rc == PAWL_OK && settled == load->jobs)
        return ms;
    (void)fprintf(stderr, "sqlite-bench: settled %zu of %zu jobs: %s\n", settled, load->jobs,
                  err.text);
    return -1;
}

static double run(const struct load *load, double *ret_fill_ms)
{
    struct scratch scratch;
    pawl_sqlite_options options;
    pawl_sqlite *sqlite = NULL;
    pawl_store *store = NULL;
    pawl_err err;
    double ms = -1;
    if (!scratch_make(&scratch))
        return -1;
    pawl_sqlite_options_init(&options);
    options.path = scratch.path;
    if (pawl_sqlite_new(&options, &sqlite, &err) == PAWL_OK &&
        pawl_sqlite_open(sqlite, &store, &err) == PAWL_OK)
        ms = run_store(store, load, ret_fill_ms);
    else
        (void)fprintf(stderr, "sqlite-bench: %s\n", err.text);
    pawl_store_close(store);
    pawl_sqlite_free(sqlite);
    scratch_remove(&scratch);
    return ms;
}

/* ---- all of them */

static double best(double so_far, double ms)
{
    return so_far < 0 || ms < so_far ? ms : so_far;
}

static bool measure(size_t keys)
{
    const struct load loads[] = {
        {"without keys", 2 * keys, 0, BESIDE_NOTHING},
        {"with keys, two jobs each", 2 * keys, keys, BESIDE_NOTHING},
        {"with keys, beside a stuck one", 2 * keys, keys, BESIDE_STUCK},
        {"with keys, beside delayed jobs", 2 * keys, keys, BESIDE_DELAYED},
    };
    double ms[] = {-1, -1, -1, -1}, fill_ms[] = {-1, -1, -1, -1};
    for (int turn = 0; turn < TURNS; turn++) {
        for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++) {
            double fill_took = -1, took = run(&loads[i], &fill_took);
            if (took < 0)
                return false;
            ms[i] = best(ms[i], took);
            fill_ms[i] = best(fill_ms[i], fill_took);
        }
    }
    double count = 2000 * (double)keys;
    for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++)
        (void)printf("%s: %zu jobs, %.0f jobs/s (enqueue: %.0f jobs/s)\n", loads[i].name,
                     loads[i].jobs, count / ms[i], count / fill_ms[i]);
    (void)printf("ratio of jobs with %zu keys to those without: %.2f (%.1f is wanted)\n", keys,
                 ms[0] / ms[1], KEYED_WANTED);
    (void)printf("ratio beside %d jobs of a stuck key to without it: %.2f (%.1f is wanted), and to "
                 "beside as many delayed ones: %.2f\n",
                 STUCK, ms[1] / ms[2], STUCK_WANTED, ms[3] / ms[2]);
    return fflush(stdout) == 0;
}

int main(int argc, char **argv)
{
    size_t keys = KEYS_DEFAULT;
    if (argc > 1) {
        char *end = NULL;
        errno = 0;
        unsigned long long number = strtoull(argv[1], &end, 10);
        if (argc > 2 || argv[1][0] < '0' || argv[1][0] > '9' || *end != '\0' || errno != 0 ||
            number == 0 || number > KEYS_MAX) {
            (void)fprintf(stderr, "usage: sqlite-bench [KEYS], 1 to %d\n", KEYS_MAX);
            return 64;
        }
        keys = (size_t)number;
    }
    return measure(keys) ? 0 : 70;
}

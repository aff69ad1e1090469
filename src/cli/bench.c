/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * bench.c - `pawl bench`: how fast Pawl is on somebody's own server or disk.
 * Owns:  the words of the command, the repeats, and the form of its output.
 * Never: touches the store that it was told; leaves anything behind, but where it is killed.
 */
#include "cli/bench_place.h"
#include "cli/bench_turn.h"
#include "cli/command.h"
#include "cli/json.h"
#include "cli/stop_signals.h"
#include "cli/store_url.h"

#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>

#define NAME            "bench"
#define JOBS_DEFAULT    20000
#define JOBS_MAX        10000000
#define PAYLOAD_DEFAULT 100
#define BATCH_DEFAULT   1000
#define PARALLEL_USUAL  4
#define REPEATS_DEFAULT 5
#define REPEATS_MAX     100
#define SPREAD_MOST_PCT 25 /* of the median: beyond it, the figure says nothing */

static const struct {
    const char *name; /* in JSON */
    const char *about;
    const char *unit;
} figures_table[PAWLI_BENCH_FIGURES] = {
    [PAWLI_BENCH_ENQUEUE] = {"enqueue", "enqueue, in batches", "jobs/s"},
    [PAWLI_BENCH_SINGLES] = {"enqueue_one_by_one", "enqueue, one by one", "jobs/s"},
    [PAWLI_BENCH_DRAIN] = {"drain", "claim, run and settle, one worker", "jobs/s"},
    [PAWLI_BENCH_START] = {"start_p50", "enqueue to start, half of them within", "us"},
    [PAWLI_BENCH_START_SLOW] = {"start_p99", "enqueue to start, 99 % of them within", "us"},
};

/* The turns of one figure. */
struct series {
    double values[REPEATS_MAX];
    int64_t count;
};

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return left < right ? -1 : left > right;
}

/* Of sorted values, the one that a share of them is below, between two of them where it must. */
static double quantile(const struct series *series, double share)
{
    double at = share * (double)(series->count - 1);
    int64_t low = (int64_t)at;
    int64_t high = low + 1 < series->count ? low + 1 : low;
    return series->values[low] + (at - (double)low) * (series->values[high] - series->values[low]);
}

struct summary {
    double median;
    int64_t spread_pct; /* how far the middle half lies apart */
    bool is_shown;
};

static struct summary summarize(struct series *series)
{
    qsort(series->values, (size_t)series->count, sizeof(series->values[0]), compare);
    struct summary summary = {.median = quantile(series, 0.5)};
    double wide = quantile(series, 0.75) - quantile(series, 0.25);
    summary.spread_pct = summary.median > 0 ? (int64_t)(100 * wide / summary.median + 0.5) : 0;
    summary.is_shown = summary.spread_pct <= SPREAD_MOST_PCT;
    return summary;
}

static void tell_text(const struct pawli_bench_place *place, const struct pawli_bench *bench,
                      struct series *all)
{
    (void)printf("%s, %lld jobs of %lld bytes in batches of %lld, %lld turns\n",
                 place->kind, /* here and below: main asks for errors */
                 (long long)bench->jobs, (long long)bench->payload, (long long)bench->batch,
                 (long long)all[0].count);
    for (size_t i = 0; i < PAWLI_BENCH_FIGURES; i++) {
        struct summary summary = summarize(&all[i]);
        if (summary.is_shown)
            (void)printf("  %-40s %12.0f %-7s +- %lld %%\n", figures_table[i].about, summary.median,
                         figures_table[i].unit, (long long)summary.spread_pct / 2);
        else
            (void)printf("  %-40s %12s %-7s spread too wide (%lld %%): repeat on a quiet machine\n",
                         figures_table[i].about, "-", figures_table[i].unit,
                         (long long)summary.spread_pct);
    }
}

static void tell_json(const struct pawli_bench_place *place, const struct pawli_bench *bench,
                      struct series *all)
{
    struct pawli_json json;
    pawli_json_init(&json, stdout);
    pawli_json_open_object(&json, NULL);
    pawli_json_text(&json, "version", pawl_version());
    pawli_json_text(&json, "store", place->kind);
    pawli_json_number(&json, "jobs", bench->jobs);
    pawli_json_number(&json, "payload", bench->payload);
    pawli_json_number(&json, "batch", bench->batch);
    pawli_json_number(&json, "parallel", bench->parallel);
    pawli_json_number(&json, "repeats", all[0].count);
    pawli_json_open_array(&json, "figures");
    for (size_t i = 0; i < PAWLI_BENCH_FIGURES; i++) {
        struct summary summary = summarize(&all[i]);
        pawli_json_open_object(&json, NULL);
        pawli_json_text(&json, "name", figures_table[i].name);
        pawli_json_text(&json, "unit", figures_table[i].unit);
        if (summary.is_shown)
            pawli_json_number(&json, "median", (int64_t)(summary.median + 0.5));
        pawli_json_number(&json, "spread_percent", summary.spread_pct);
        pawli_json_close(&json);
    }
    pawli_json_close(&json);
    pawli_json_close(&json);
}

/* One turn in a place of its own, removed whatever came of it. */
static pawl_code take_turn(const struct pawli_line *line, struct pawli_bench *bench,
                           struct pawli_bench_place *place, struct series *all,
                           bool *ret_is_stopped, pawl_err *err)
{
    const char *url = pawli_line_text(line, "--store");
    double figures[PAWLI_BENCH_FIGURES] = {0};
    pawl_err later = {.text = ""};
    pawl_code code = pawli_bench_place_make(url, pawli_line_text(line, "--folder"), place, err);
    if (code != PAWL_OK)
        return code;
    bench->url = pawli_bench_place_url(place);
    code = pawli_bench_turn(bench, figures, ret_is_stopped, err);
    if (pawli_bench_place_remove(url, place, &later) != PAWL_OK) {
        (void)fprintf(stderr, "pawl " NAME ": %s\n", later.text);
        if (code == PAWL_OK)
            *err = later;
        code = code == PAWL_OK ? later.code : code;
    }
    for (size_t i = 0; code == PAWL_OK && i < PAWLI_BENCH_FIGURES; i++)
        all[i].values[all[i].count++] = figures[i];
    return code;
}

static int run_bench(const struct pawli_line *line)
{
    struct series all[PAWLI_BENCH_FIGURES] = {0};
    struct pawli_bench_place place = {.kind = NULL};
    struct pawli_bench bench = {
        .jobs = pawli_line_number(line, "--jobs", JOBS_DEFAULT),
        .payload = pawli_line_number(line, "--payload", PAYLOAD_DEFAULT),
        .batch = pawli_line_number(line, "--batch", BATCH_DEFAULT),
        .parallel = pawli_line_number(line, "--parallel", PARALLEL_USUAL),
    };
    pawl_err err = {.text = ""};
    pawl_code code = PAWL_OK;
    bool is_stopped = false;
    pawli_cli_stop_signals_hold();
    int64_t repeats = pawli_line_number(line, "--repeats", REPEATS_DEFAULT);
    for (int64_t i = 0; i < repeats && code == PAWL_OK && !is_stopped; i++)
        code = take_turn(line, &bench, &place, all, &is_stopped, &err);
    if (code != PAWL_OK)
        return pawli_cli_fail(NAME, code, &err);
    if (is_stopped) {
        (void)fputs("pawl " NAME ": stopped; what it had made is removed\n", stderr);
        return EX_TEMPFAIL;
    }
    if (pawli_line_has(line, "--json"))
        tell_json(&place, &bench, all);
    else
        tell_text(&place, &bench, all);
    return EX_OK;
}

static const struct pawli_option options[] = {
    {"--batch", PAWLI_NUMBER, "N", "jobs in a call (default 1000)", 1, PAWL_BATCH_MAX, NULL},
    PAWLI_OPTION_CONFIG,
    {"--folder", PAWLI_FILE, "FOLDER", "where the file of SQLite goes; default: beside the store's",
     0, 0, NULL},
    {"--jobs", PAWLI_NUMBER, "N", "in each turn (default 20000)", 1, JOBS_MAX, NULL},
    PAWLI_OPTION_JSON,
    {"--parallel", PAWLI_NUMBER, "N", "handlers at once, which do nothing (default 4)", 1,
     PAWL_BATCH_MAX, NULL},
    {"--payload", PAWLI_NUMBER, "BYTES", "of each job (default 100)", 8, PAWL_PAYLOAD_MAX, NULL},
    {"--repeats", PAWLI_NUMBER, "N", "turns (default 5)", 1, REPEATS_MAX, NULL},
    PAWLI_OPTION_STORE,
    {0},
};

const struct pawli_command pawli_command_bench = {
    .name = NAME,
    .about = "measure how fast Pawl is on your server or disk",
    .options = options,
    .details =
        "It never touches the jobs that are there. On PostgreSQL each turn is taken in a database "
        "of its own, named pawl_bench_ and a random number, which is made on the server that the "
        "store's URL names and dropped after the turn, also on SIGINT and SIGTERM: the role must "
        "be allowed to create databases. A database and no schema, since the name of Pawl's schema "
        "is fixed. On SQLite it is a file in a folder of its own, beside the store's file or "
        "in --folder.\n"
        "\n"
        "Shows the median of the turns and how far they lie apart; where that is too far, no "
        "number. bench/README.md tells of the comparisons that the project itself makes.\n",
    .examples = "pawl bench --store postgresql://localhost/app\n"
                "pawl bench --store sqlite:/var/lib/app/jobs.db --jobs 100000\n"
                "pawl bench --store memory: --repeats 3 --json\n",
    .run = run_bench,
};

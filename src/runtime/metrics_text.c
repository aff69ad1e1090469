/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * metrics_text.c - the figures in the text format of Prometheus, version 0.0.4.
 * Owns:  the names, types and texts of the metrics: one table, which docs/metrics.md repeats.
 * Never: tells a label that is not of a list, but for names of queues, members and the version;
 *        tells more queues than there is room for; changes a figure.
 */
#include "runtime/metrics_inside.h"

#include "base/error.h"
#include "base/text.h"
#include "store/check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_MAX 32
#define LABELS_MAX 3

/* ---------------------------------------------------------------- writing */

struct out {
    pawl_metrics *metrics;
    const struct family *family; /* whose samples are being written */
    size_t queues_count;         /* with a name, when it began: more may come meanwhile */
    struct process_figures process;
    struct pawli_buffer buffer;
    bool is_out_of_memory;
};

struct family {
    const char *name;
    const char *type;
    const char *help;
    void (*put)(struct out *out);
};

struct label {
    const char *name; /* NULL: there are no more */
    const char *value;
};

static void put(struct out *out, const char *text)
{
    out->is_out_of_memory = out->is_out_of_memory ||
                            !pawli_buffer_put(&out->buffer, text, strlen(text));
}

static void put_escaped(struct out *out, const char *value)
{
    for (; *value != '\0'; value++) {
        char plain[2] = {*value, '\0'};
        put(out, *value == '\\' ? "\\\\" : *value == '"' ? "\\\"" : *value == '\n' ? "\\n" : plain);
    }
}

/* One sample: the family's name, what is added to it, labels, and a number as text. */
static void put_sample(struct out *out, const char *suffix, const struct label *labels,
                       const char *number)
{
    put(out, out->family->name);
    put(out, suffix);
    for (size_t i = 0; labels != NULL && labels[i].name != NULL; i++) {
        put(out, i == 0 ? "{" : ",");
        put(out, labels[i].name);
        put(out, "=\"");
        put_escaped(out, labels[i].value);
        put(out, labels[i + 1].name == NULL ? "\"}" : "\"");
    }
    put(out, " ");
    put(out, number);
    put(out, "\n");
}

static void put_number(struct out *out, const char *suffix, const struct label *labels,
                       int64_t number)
{
    char text[NUMBER_MAX];
    (void)snprintf(text, sizeof(text), "%" PRId64, number); /* always fits */
    put_sample(out, suffix, labels, text);
}

/* Microseconds as seconds, without zeros that say nothing. */
static const char *seconds(int64_t us, char text[NUMBER_MAX])
{
    us = us > 0 ? us : 0;
    (void)snprintf(text, NUMBER_MAX, "%" PRId64 ".%06" PRId64, us / 1000000, us % 1000000);
    size_t len = strlen(text);
    while (text[len - 1] == '0')
        text[--len] = '\0';
    if (text[len - 1] == '.')
        text[--len] = '\0';
    return text;
}

static void put_seconds(struct out *out, const char *suffix, const struct label *labels, int64_t us)
{
    char text[NUMBER_MAX];
    put_sample(out, suffix, labels, seconds(us, text));
}

static void put_histogram(struct out *out, const struct label *label,
                          const struct histogram *histogram, const struct bounds *bounds)
{
    char bound[NUMBER_MAX];
    int64_t count = 0;
    struct label labels[LABELS_MAX] = {{NULL, NULL}};
    size_t le = 0;
    if (label != NULL)
        labels[le++] = *label;
    for (size_t i = 0; i <= bounds->count; i++) {
        bool is_last = i == bounds->count;
        count += pawli_read(&histogram->buckets[i]);
        labels[le] = (struct label){"le", is_last ? "+Inf" : seconds(bounds->us[i], bound)};
        put_number(out, "_bucket", labels, count);
    }
    labels[le] = (struct label){NULL, NULL};
    put_seconds(out, "_sum", labels, pawli_read(&histogram->sum_us));
    put_number(out, "_count", labels, count);
}

static void put_words(struct out *out, const char *label, const char *const *words, size_t count,
                      const figure *figures)
{
    for (size_t i = 0; i < count; i++) {
        struct label labels[] = {{label, words[i]}, {NULL, NULL}};
        put_number(out, "", labels, pawli_read(&figures[i]));
    }
}

/* ---------------------------------------------------------------- queues */

/* Those with a name, and behind them the others. */
static const struct queue_figures *queue_at(const struct out *out, size_t i)
{
    return &out->metrics->queues[i < out->queues_count ? i : PAWLI_METRICS_QUEUES_MAX];
}

static void put_outcomes(struct out *out)
{
    for (size_t i = 0; i <= out->queues_count; i++) {
        const struct queue_figures *queue = queue_at(out, i);
        for (size_t j = 0; pawli_read(&queue->is_served) != 0 && j < OUTCOMES; j++) {
            struct label labels[] = {
                {"queue", queue->name}, {"outcome", pawli_outcomes[j]}, {NULL, NULL}};
            put_number(out, "", labels, pawli_read(&queue->outcomes[j]));
        }
    }
}

static void put_waits(struct out *out)
{
    for (size_t i = 0; i <= out->queues_count; i++) {
        const struct queue_figures *queue = queue_at(out, i);
        struct label label = {"queue", queue->name};
        if (pawli_read(&queue->is_served) != 0)
            put_histogram(out, &label, &queue->wait, &pawli_bounds_jobs);
    }
}

static void put_runs(struct out *out)
{
    for (size_t i = 0; i <= out->queues_count; i++) {
        const struct queue_figures *queue = queue_at(out, i);
        struct label label = {"queue", queue->name};
        if (pawli_read(&queue->is_served) != 0)
            put_histogram(out, &label, &queue->run, &pawli_bounds_jobs);
    }
}

static void put_expired(struct out *out)
{
    for (size_t i = 0; i <= out->queues_count; i++) {
        const struct queue_figures *queue = queue_at(out, i);
        for (size_t j = 0; j < EXPIRIES; j++) {
            struct label labels[] = {
                {"queue", queue->name}, {"reason", pawli_expiries[j]}, {NULL, NULL}};
            int64_t count = pawli_read(&queue->expired[j]);
            if (count > 0 || pawli_read(&queue->is_served) != 0)
                put_number(out, "", labels, count);
        }
    }
}

/* A figure of each queue whose depth is known; `offset` is where it stands. */
static void put_depths(struct out *out, size_t offset, bool is_time)
{
    for (size_t i = 0; i <= out->queues_count; i++) {
        const struct queue_figures *queue = queue_at(out, i);
        struct label labels[] = {{"queue", queue->name}, {NULL, NULL}};
        if (pawli_read(&queue->is_looked) == 0)
            continue;
        int64_t value = pawli_read((const figure *)(const void *)((const char *)queue + offset));
        if (is_time)
            put_seconds(out, "", labels, value);
        else
            put_number(out, "", labels, value);
    }
}

#define DEPTH(field, is_time)                                              \
    static void put_depth_##field(struct out *out)                         \
    {                                                                      \
        put_depths(out, offsetof(struct queue_figures, field), (is_time)); \
    }
DEPTH(ready, false)
DEPTH(delayed, false)
DEPTH(in_flight, false)
DEPTH(leases_expired, false)
DEPTH(oldest_us, true)
DEPTH(is_paused, false)

/* ---------------------------------------------------------------- the rest */

#define NUMBER(field)                                                \
    static void put_##field(struct out *out)                         \
    {                                                                \
        put_number(out, "", NULL, pawli_read(&out->metrics->field)); \
    }
NUMBER(slots)
NUMBER(running)
NUMBER(stuck)
NUMBER(reaper_runs)
NUMBER(reaper_recovered)
NUMBER(reaper_recovered_last)
NUMBER(pruned)
NUMBER(deaths)
NUMBER(sends)
NUMBER(openings)
NUMBER(disabled)
NUMBER(dropped)

/* An instant: none where it has not happened. */
#define INSTANT(field)                                                    \
    static void put_##field(struct out *out)                              \
    {                                                                     \
        if (pawli_read(&out->metrics->field) != 0)                        \
            put_seconds(out, "", NULL, pawli_read(&out->metrics->field)); \
    }
INSTANT(reaper_last_run_us)
INSTANT(looked_us)

static void put_build(struct out *out)
{
    struct label labels[] = {{"version", pawl_version()}, {NULL, NULL}};
    put_number(out, "", labels, 1);
}

static void put_members(struct out *out)
{
    struct member members[PAWLI_METRICS_MEMBERS_MAX];
    pthread_mutex_lock(&out->metrics->mutex);
    memcpy(members, out->metrics->members, sizeof(members));
    pthread_mutex_unlock(&out->metrics->mutex);
    for (size_t i = 0; i < PAWLI_METRICS_MEMBERS_MAX; i++) {
        struct label labels[] = {
            {"worker", members[i].name},
            {"kind", members[i].kind == PAWL_KIND_REAPER ? "reaper" : "worker"},
            {NULL, NULL}};
        if (members[i].name[0] != '\0')
            put_number(out, "", labels, 1);
    }
}

static void put_held(struct out *out)
{
    const pawl_metrics *metrics = out->metrics;
    const struct {
        const char *state;
        const figure *figure;
    } rows[] = {{"running", &metrics->running},
                {"buffered", &metrics->buffered},
                {"settling", &metrics->settling},
                {"releasing", &metrics->releasing}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct label labels[] = {{"state", rows[i].state}, {NULL, NULL}};
        put_number(out, "", labels, pawli_read(rows[i].figure));
    }
}

static void put_aborts(struct out *out)
{
    put_words(out, "reason", pawli_aborts, ABORTS, out->metrics->aborts);
}

static void put_renewals(struct out *out)
{
    put_words(out, "result", pawli_results, RESULTS, out->metrics->renewals);
}

static void put_fenced(struct out *out)
{
    put_words(out, "verb", pawli_fenced, FENCED, out->metrics->fenced);
}

static void put_overdue(struct out *out)
{
    put_words(out, "verb", pawli_verbs, VERBS, out->metrics->calls_overdue);
}

static void put_calls(struct out *out)
{
    for (size_t i = 0; i < VERBS; i++) {
        struct label label = {"verb", pawli_verbs[i]};
        put_histogram(out, &label, &out->metrics->calls[i], &pawli_bounds_calls);
    }
}

static void put_failures(struct out *out)
{
    for (size_t i = 0; i < VERBS; i++)
        for (size_t j = 0; j < FAILURES; j++) {
            int64_t count = pawli_read(&out->metrics->call_failures[i][j]);
            struct label labels[] = {{"verb", pawli_verbs[i]},
                                     {"code", pawl_code_name(pawli_failures[j])},
                                     {NULL, NULL}};
            if (count > 0) /* most of them never happen */
                put_number(out, "", labels, count);
        }
}

static void put_answers(struct out *out)
{
    put_words(out, "answer", pawli_answers, ANSWERS, out->metrics->answers);
}

static void put_delivery(struct out *out)
{
    put_histogram(out, NULL, &out->metrics->delivery, &pawli_bounds_jobs);
}

static void put_stale(struct out *out)
{
    put_histogram(out, NULL, &out->metrics->reaper_stale, &pawli_bounds_stale);
}

/* ---------------------------------------------------------------- the process */

static void put_cpu(struct out *out)
{
    put_seconds(out, "", NULL, out->process.cpu_us);
}

static void put_started(struct out *out)
{
    put_seconds(out, "", NULL, out->process.started_us);
}

static void put_resident(struct out *out)
{
    put_number(out, "", NULL, out->process.resident_bytes);
}

static void put_virtual(struct out *out)
{
    put_number(out, "", NULL, out->process.virtual_bytes);
}

static void put_threads(struct out *out)
{
    put_number(out, "", NULL, out->process.threads);
}

static void put_open_fds(struct out *out)
{
    put_number(out, "", NULL, out->process.open_fds);
}

static void put_max_fds(struct out *out)
{
    if (out->process.max_fds == INT64_MAX)
        put_sample(out, "", NULL, "+Inf");
    else
        put_number(out, "", NULL, out->process.max_fds);
}

/* ---------------------------------------------------------------- the table */

static const struct family families[] = {
    {"pawl_build_info", "gauge", "The version that runs; always 1.", put_build},
    {"pawl_worker_info", "gauge",
     "Workers and reapers of this process, by the names that the store knows; always 1.",
     put_members},
    {"pawl_slots_max", "gauge", "Handlers that may run at once.", put_slots},
    {"pawl_slots_in_use", "gauge", "Handlers that run.", put_running},
    {"pawl_jobs_held", "gauge", "Jobs under a lease of this process, by what is done with them.",
     put_held},
    {"pawl_handlers_stuck", "gauge", "Handlers that were given up and have not ended.", put_stuck},
    {"pawl_jobs_total", "counter",
     "Jobs that this process is done with, by what became of the attempt.", put_outcomes},
    {"pawl_job_wait_seconds", "histogram", "How long jobs had been due when they were started.",
     put_waits},
    {"pawl_job_run_seconds", "histogram", "How long handlers ran.", put_runs},
    {"pawl_job_aborts_total", "counter", "Handlers that were told to stop, by the reason.",
     put_aborts},
    {"pawl_renewals_total", "counter", "Renewals of leases, by what the store said.", put_renewals},
    {"pawl_fenced_writes_total", "counter",
     "Writes of this process that the store refused because the lease was no longer its own.",
     put_fenced},
    {"pawl_leases_expired_total", "counter",
     "Leases that the reaper of this process found expired, by what became of the job.",
     put_expired},
    {"pawl_store_call_seconds", "histogram", "How long store calls took, failed ones too.",
     put_calls},
    {"pawl_store_call_failures_total", "counter", "Store calls that failed, by their code.",
     put_failures},
    {"pawl_store_calls_overdue_total", "counter",
     "Store calls that were not answered in their time.", put_overdue},
    {"pawl_reaper_runs_total", "counter", "Runs of the reaper that were finished.",
     put_reaper_runs},
    {"pawl_reaper_recovered_total", "counter", "Jobs that the reaper recovered.",
     put_reaper_recovered},
    {"pawl_reaper_recovered_last_run", "gauge", "Jobs that the last run of the reaper recovered.",
     put_reaper_recovered_last},
    {"pawl_reaper_stale_seconds", "histogram",
     "How long leases had been overdue when the reaper recovered them.", put_stale},
    {"pawl_reaper_last_run_timestamp_seconds", "gauge", "When the reaper last finished a run.",
     put_reaper_last_run_us},
    {"pawl_pruned_histories_total", "counter",
     "Histories that were deleted because their time was up.", put_pruned},
    {"pawl_worker_deaths_total", "counter",
     "Workers and reapers found dead by the reaper of this process.", put_deaths},
    {"pawl_deliveries_total", "counter",
     "Tries to deliver an event, by what the endpoint answered.", put_answers},
    {"pawl_delivery_sends_total", "counter",
     "Requests of deliveries that were sent, wholly or in part.", put_sends},
    {"pawl_delivery_seconds", "histogram", "How long tries to deliver took.", put_delivery},
    {"pawl_endpoint_openings_total", "counter",
     "How often endpoints that failed were left alone for a while.", put_openings},
    {"pawl_endpoints_disabled_total", "counter", "Endpoints that this process disabled.",
     put_disabled},
    {"pawl_queue_ready_jobs", "gauge", "Jobs that are due and wait.", put_depth_ready},
    {"pawl_queue_delayed_jobs", "gauge", "Jobs that wait for their time.", put_depth_delayed},
    {"pawl_queue_in_flight_jobs", "gauge", "Jobs under a lease, expired ones too.",
     put_depth_in_flight},
    {"pawl_queue_expired_leases", "gauge",
     "Leases that have expired and that nobody has recovered.", put_depth_leases_expired},
    {"pawl_queue_oldest_ready_age_seconds", "gauge",
     "How long the job that has waited longest has been due.", put_depth_oldest_us},
    {"pawl_queue_paused", "gauge",
     "Whether claims from the queue are stopped at the store: 1 or 0.", put_depth_is_paused},
    {"pawl_queue_look_timestamp_seconds", "gauge",
     "When the store was last asked for the depth of queues, and answered.", put_looked_us},
    {"pawl_log_dropped_total", "counter", "Events and lines of the log that were lost.",
     put_dropped},
};

static const struct family process_families[] = {
    {"process_cpu_seconds_total", "counter", "Total user and system CPU time spent in seconds.",
     put_cpu},
    {"process_resident_memory_bytes", "gauge", "Resident memory size in bytes.", put_resident},
    {"process_virtual_memory_bytes", "gauge", "Virtual memory size in bytes.", put_virtual},
    {"process_start_time_seconds", "gauge",
     "Start time of the process since unix epoch in seconds.", put_started},
    {"process_open_fds", "gauge", "Number of open file descriptors.", put_open_fds},
    {"process_max_fds", "gauge", "Maximum number of open file descriptors.", put_max_fds},
    {"process_threads", "gauge", "Number of OS threads in the process.", put_threads},
};

static void put_families(struct out *out, const struct family *from, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        out->family = &from[i];
        put(out, "# HELP ");
        put(out, from[i].name);
        put(out, " ");
        put(out, from[i].help);
        put(out, "\n# TYPE ");
        put(out, from[i].name);
        put(out, " ");
        put(out, from[i].type);
        put(out, "\n");
        from[i].put(out);
    }
}

pawl_code pawl_metrics_text(pawl_metrics *metrics, char **ret_text, size_t *ret_len, pawl_err *err)
{
    pawl_code code = pawli_check_given("metrics", metrics, err);
    if (code == PAWL_OK)
        code = pawli_check_given("ret_text", ret_text, err);
    if (code != PAWL_OK)
        return code;
    struct out out = {
        .metrics = metrics,
        .queues_count = atomic_load_explicit(&metrics->queues_count, memory_order_acquire)};
    put_families(&out, families, sizeof(families) / sizeof(families[0]));
    if (!metrics->options.is_process_off && pawli_process_figures(&out.process))
        put_families(&out, process_families,
                     sizeof(process_families) / sizeof(process_families[0]));
    size_t len = out.buffer.len;
    out.is_out_of_memory = out.is_out_of_memory || !pawli_buffer_put(&out.buffer, "", 1);
    if (out.is_out_of_memory) {
        pawli_buffer_clear(&out.buffer);
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    }
    *ret_text = (char *)out.buffer.bytes;
    if (ret_len != NULL)
        *ret_len = len;
    return PAWL_OK;
}

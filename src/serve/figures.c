/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * figures.c - what the server has done, for monitoring.
 * Owns:  the names and the text of its figures.
 * Never: takes a lock; has a label that a client can choose.
 */
#include "serve/figures.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const int64_t bounds_us[PAWLI_FIGURE_BUCKETS] = {1000,   2500,   5000,    10000,   25000,
                                                        100000, 250000, 1000000, 2500000, 10000000};

void pawli_figures_count(struct pawli_figures *figures, const struct pawli_route *route,
                         unsigned status, int64_t took_us)
{
    size_t at = route != NULL ? (size_t)(route - pawli_routes) : PAWLI_FIGURE_ROUTES_MAX;
    size_t class = status / 100 >= 1 && status / 100 <= PAWLI_FIGURE_CLASSES ? status / 100 - 1 : 4;
    assert(at <= PAWLI_FIGURE_ROUTES_MAX);
    (void)atomic_fetch_add(&figures->requests[at][class], 1);
    (void)atomic_fetch_add(&figures->count, 1);
    (void)atomic_fetch_add(&figures->sum_us, took_us);
    for (size_t i = 0; i < PAWLI_FIGURE_BUCKETS; i++)
        if (took_us <= bounds_us[i])
            (void)atomic_fetch_add(&figures->buckets[i], 1);
}

struct text {
    struct pawli_buffer *to;
    bool has_failed;
};

static void put(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(struct text *text, const char *format, ...)
{
    char line[256];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    assert(len >= 0 && (size_t)len < sizeof(line));
    if (!text->has_failed)
        text->has_failed = !pawli_buffer_put(text->to, line, (size_t)len);
}

static void put_one(struct text *text, const char *name, const char *kind, const char *help,
                    long long value)
{
    put(text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind);
    put(text, "%s %lld\n", name, value);
}

static void put_requests(struct text *text, struct pawli_figures *figures)
{
    put(text, "# HELP pawl_http_requests_total Requests answered, by route and class of status.\n"
              "# TYPE pawl_http_requests_total counter\n");
    for (size_t i = 0; i <= PAWLI_FIGURE_ROUTES_MAX; i++)
        for (size_t class = 0; class < PAWLI_FIGURE_CLASSES; class ++) {
            long long value = atomic_load(&figures->requests[i][class]);
            if (value > 0)
                put(text, "pawl_http_requests_total{route=\"%s\",status=\"%zuxx\"} %lld\n",
                    i < pawli_routes_count ? pawli_routes[i].name : "none", class + 1, value);
        }
}

static void put_seconds(struct text *text, struct pawli_figures *figures)
{
    long long sum_us = atomic_load(&figures->sum_us);
    long long count = atomic_load(&figures->count);
    put(text,
        "# HELP pawl_http_request_seconds From the head of a request to its answer, without the "
        "time that a claim waited.\n");
    put(text, "# TYPE pawl_http_request_seconds histogram\n");
    for (size_t i = 0; i < PAWLI_FIGURE_BUCKETS; i++)
        put(text, "pawl_http_request_seconds_bucket{le=\"%g\"} %lld\n", (double)bounds_us[i] / 1e6,
            (long long)atomic_load(&figures->buckets[i]));
    put(text, "pawl_http_request_seconds_bucket{le=\"+Inf\"} %lld\n", count);
    put(text, "pawl_http_request_seconds_sum %lld.%06lld\n", sum_us / 1000000, sum_us % 1000000);
    put(text, "pawl_http_request_seconds_count %lld\n", count);
}

bool pawli_figures_text(struct pawli_figures *figures, const struct pawli_figures_more *more,
                        struct pawli_buffer *to)
{
    struct text text = {to, false};
    put_requests(&text, figures);
    put_seconds(&text, figures);
    put_one(&text, "pawl_http_connections", "gauge", "Connections that are open.",
            (long long)more->connections);
    put_one(&text, "pawl_http_connections_cut_total", "counter",
            "Connections cut off because they were too slow.", more->cut);
    put_one(&text, "pawl_http_requests_in_flight", "gauge", "Requests not answered yet.",
            (long long)atomic_load(&figures->in_flight));
    put_one(&text, "pawl_http_requests_in_line", "gauge",
            "Requests that wait for a thread that asks the store.",
            (long long)atomic_load(&figures->in_line));
    put_one(&text, "pawl_http_claims_waiting", "gauge", "Claims that wait for work.",
            (long long)atomic_load(&figures->waiting));
    put_one(&text, "pawl_http_listeners", "gauge", "Those who listen to changes.",
            (long long)atomic_load(&figures->listeners));
    put_one(&text, "pawl_http_claims_given_back_total", "counter",
            "Jobs given back because the answer with them could not be sent.",
            atomic_load(&figures->given_back));
    put_one(&text, "pawl_http_enqueues_total", "counter",
            "Requests to enqueue one job, without those that have an Idempotency-Key.",
            atomic_load(&figures->joined));
    put_one(&text, "pawl_http_enqueue_transactions_total", "counter",
            "Transactions that these took: those that come at the same time share one.",
            atomic_load(&figures->transactions));
    put_one(&text, "pawl_http_memory_bytes", "gauge", "Bodies and answers held in memory.",
            (long long)atomic_load(&figures->held));
    return !text.has_failed;
}

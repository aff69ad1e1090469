/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * frame.c - figures as a picture, line by line.
 * Owns:  what stands where, and what is left out where there is no room.
 * Never: writes to a terminal; reads a store.
 */
#include "cli/frame.h"

#include "cli/tell.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_SIZE    1024
#define HEAD_LINES   3
#define TABLE_LINES  2 /* a blank line and a heading */
#define WORKERS_PART 3 /* a third of the lines is theirs, where the queues need the rest */
#define RATE_SIZE    32

struct drawing {
    const struct pawli_frame_args *args;
    struct pawli_buffer *buffer;
    int row;        /* lines drawn */
    bool is_failed; /* memory ran out */
};

static void put(struct drawing *drawing, const char *text, size_t length)
{
    if (!pawli_buffer_put(drawing->buffer, text, length))
        drawing->is_failed = true;
}

/* A line, cut to the terminal's width. What stands in it is ASCII but for the store's name, of
 * which no character is cut in two. */
__attribute__((format(printf, 3, 4))) static void line(struct drawing *drawing, bool is_heading,
                                                       const char *format, ...)
{
    char text[LINE_SIZE];
    char place[32];
    va_list args;
    bool is_live = drawing->args->columns > 0;
    if (is_live && drawing->row >= drawing->args->rows)
        return;
    va_start(args, format);
    int wanted = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    size_t length = wanted > 0 ? strlen(text) : 0;
    drawing->row++;
    if (!is_live) {
        put(drawing, text, length);
        put(drawing, "\n", 1);
        return;
    }
    if (length > (size_t)drawing->args->columns)
        length = (size_t)drawing->args->columns;
    while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80)
        length--;
    int place_len = snprintf(place, sizeof(place), "\033[%d;1H", drawing->row); /* it fits */
    put(drawing, place, (size_t)place_len);
    if (is_heading && drawing->args->is_styled)
        put(drawing, "\033[7m", strlen("\033[7m"));
    put(drawing, text, length);
    put(drawing, "\033[0m\033[K", strlen("\033[0m\033[K"));
}

/* ---- figures as text */

static const char *rate_text(double rate, char text[RATE_SIZE])
{
    if (rate < 0)
        (void)snprintf(text, RATE_SIZE, "-"); /* here and below: it fits, or is cut */
    else
        (void)snprintf(text, RATE_SIZE, rate < 100 ? "%.1f" : "%.0f", rate);
    return text;
}

/* In two units at most: "3m20s". */
static const char *age_text(int64_t ms, char text[RATE_SIZE])
{
    int64_t s = ms / 1000;
    if (ms <= 0)
        (void)snprintf(text, RATE_SIZE, "-");
    else if (s < 60)
        (void)snprintf(text, RATE_SIZE, "%" PRId64 ".%ds", s, (int)(ms % 1000 / 100));
    else if (s < 3600)
        (void)snprintf(text, RATE_SIZE, "%" PRId64 "m%02ds", s / 60, (int)(s % 60));
    else if (s < 86400)
        (void)snprintf(text, RATE_SIZE, "%" PRId64 "h%02dm", s / 3600, (int)(s / 60 % 60));
    else
        (void)snprintf(text, RATE_SIZE, "%" PRId64 "d%02dh", s / 86400, (int)(s / 3600 % 24));
    return text;
}

/* ---- parts */

static void draw_head(struct drawing *drawing)
{
    const struct pawli_figures *figures = drawing->args->figures;
    const pawl_stats *sums = &figures->sums;
    char at[PAWLI_TIME_TEXT_MAX];
    char texts[4][RATE_SIZE];
    line(drawing, false,
         "pawl top  %s  queues %" PRId64 "  workers %" PRId64 "  reapers %" PRId64 "  %s",
         pawli_time_text(figures->at, at), figures->queues_all,
         figures->workers_all - figures->reapers_all, figures->reapers_all, drawing->args->store);
    line(drawing, false,
         "ready %" PRId64 " (%" PRId64 " delayed)  in flight %" PRId64 " (%" PRId64
         " expired)  succeeded %" PRId64 "  failed %" PRId64,
         sums->ready, sums->delayed, sums->in_flight, sums->expired, sums->succeeded, sums->failed);
    if (drawing->args->notice != NULL)
        line(drawing, true, "%s", drawing->args->notice); /* the figures are old */
    else
        line(drawing, false, "per second: in %s  done %s  failed %s   oldest due %s",
             rate_text(figures->rates.in, texts[0]), rate_text(figures->rates.done, texts[1]),
             rate_text(figures->rates.failed, texts[2]), age_text(sums->oldest_due_ms, texts[3]));
}

/* What matters most stands in the first 80 columns. */
static void draw_queue(struct drawing *drawing, const struct pawli_queue_figures *queue)
{
    const pawl_stats *stats = &queue->stats;
    char texts[4][RATE_SIZE];
    line(drawing, false,
         "%-16s %-6s %7" PRId64 " %9" PRId64 " %7s %6s %6s %6s %7" PRId64 " %8" PRId64 " %8" PRId64
         " %10" PRId64,
         stats->queue, stats->is_paused ? "paused" : "open", stats->ready, stats->in_flight,
         age_text(stats->oldest_due_ms, texts[0]), rate_text(queue->rates.in, texts[1]),
         rate_text(queue->rates.done, texts[2]), rate_text(queue->rates.failed, texts[3]),
         stats->failed, stats->delayed, stats->expired, stats->succeeded);
}

static void draw_worker(struct drawing *drawing, const pawl_worker *worker)
{
    char seen[RATE_SIZE];
    char since[RATE_SIZE];
    int64_t now_us = drawing->args->figures->at.us;
    int64_t seen_ms = (now_us - worker->last_seen.us) / 1000;
    line(drawing, false, "%-16s %-6s %7" PRId64 " %9s %7s  %s", worker->host,
         worker->kind == PAWL_KIND_REAPER ? "reaper" : "worker", worker->leases,
         age_text(seen_ms > 0 ? seen_ms : 1, seen),
         age_text((now_us - worker->since.us) / 1000, since), worker->name);
}

/* ---- tables, those with the most to do first */

static int64_t busy(const pawl_stats *stats)
{
    return stats->ready - stats->delayed + stats->in_flight;
}

static int compare_queues(const void *a, const void *b)
{
    const struct pawli_queue_figures *one = *(const struct pawli_queue_figures *const *)a;
    const struct pawli_queue_figures *other = *(const struct pawli_queue_figures *const *)b;
    if (busy(&one->stats) != busy(&other->stats))
        return busy(&one->stats) > busy(&other->stats) ? -1 : 1;
    return strcmp(one->stats.queue, other->stats.queue);
}

static int compare_workers(const void *a, const void *b)
{
    const pawl_worker *one = *(const pawl_worker *const *)a;
    const pawl_worker *other = *(const pawl_worker *const *)b;
    if (one->leases != other->leases)
        return one->leases > other->leases ? -1 : 1;
    return strcmp(one->name, other->name);
}

/* How many rows of a table fit, where one of them may be needed to say that there are more. */
static size_t fit(size_t rows, size_t room)
{
    return rows <= room ? rows : room > 0 ? room - 1 : 0;
}

static void draw_queues(struct drawing *drawing, size_t room)
{
    const struct pawli_figures *figures = drawing->args->figures;
    const struct pawli_queue_figures **order = calloc(figures->queues_count + 1,
                                                      sizeof(const struct pawli_queue_figures *));
    if (order == NULL) {
        drawing->is_failed = true;
        return;
    }
    for (size_t i = 0; i < figures->queues_count; i++)
        order[i] = &figures->queues[i];
    qsort(order, figures->queues_count, sizeof(const struct pawli_queue_figures *), compare_queues);
    size_t shown = fit(figures->queues_count, room);
    line(drawing, false, "%s", "");
    line(drawing, true, "%-16s %-6s %7s %9s %7s %6s %6s %6s %7s %8s %8s %10s", "QUEUE", "STATE",
         "READY", "IN FLIGHT", "OLDEST", "IN/S", "DONE/S", "FAIL/S", "FAILED", "DELAYED", "EXPIRED",
         "SUCCEEDED");
    for (size_t i = 0; i < shown; i++)
        draw_queue(drawing, order[i]);
    if ((int64_t)shown < figures->queues_all)
        line(drawing, false, "... and %" PRId64 " queues more",
             figures->queues_all - (int64_t)shown);
    free(order);
}

static void draw_workers(struct drawing *drawing, size_t room)
{
    const struct pawli_figures *figures = drawing->args->figures;
    const pawl_worker **order = calloc(figures->workers_count + 1, sizeof(const pawl_worker *));
    if (order == NULL) {
        drawing->is_failed = true;
        return;
    }
    for (size_t i = 0; i < figures->workers_count; i++)
        order[i] = &figures->workers[i];
    qsort(order, figures->workers_count, sizeof(const pawl_worker *), compare_workers);
    size_t shown = fit(figures->workers_count, room);
    line(drawing, false, "%s", "");
    line(drawing, true, "%-16s %-6s %7s %9s %7s  %s", "HOST", "KIND", "LEASES", "SEEN", "UP",
         "NAME");
    for (size_t i = 0; i < shown; i++)
        draw_worker(drawing, order[i]);
    if ((int64_t)shown < figures->workers_all)
        line(drawing, false, "... and %" PRId64 " more", figures->workers_all - (int64_t)shown);
    free(order);
}

bool pawli_frame_draw(const struct pawli_frame_args *args, struct pawli_buffer *buffer)
{
    assert(args->columns == 0 || args->rows > 0);
    struct drawing drawing = {.args = args, .buffer = buffer};
    size_t queues = args->figures->queues_count;
    size_t workers = args->figures->workers_count;
    if (args->columns > 0) {
        int left = args->rows - HEAD_LINES - 2 * TABLE_LINES;
        size_t room = left > 0 ? (size_t)left : 0;
        if (queues + workers > room) {
            size_t most = room / WORKERS_PART;
            workers = queues > room - most && workers > most ? most
                      : workers > room - queues              ? room - queues
                                                             : workers;
            queues = room - workers;
        }
    }
    draw_head(&drawing);
    draw_queues(&drawing, queues);
    draw_workers(&drawing, workers);
    if (args->columns > 0)
        put(&drawing, "\033[J", strlen("\033[J")); /* whatever stood below */
    return !drawing.is_failed;
}

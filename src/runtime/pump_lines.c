/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * pump_lines.c - the queues that a pump serves: those it was made with, and those that come and go
 *                while it runs.
 * Owns:  which queue is which of the keeper's lines.
 * Never: gives a line to another queue while anything of the one before is held, or asked for.
 * Locks: all of it under pump.mutex, but what happens before the threads start.
 */
#include "runtime/pump_inside.h"

#include "base/error.h"
#include "base/text.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- names */

/* Where a name stands in the order, or would. */
static size_t place_of(const struct pawli_pump *pump, const char *queue)
{
    size_t from = 0;
    size_t to = pump->lines_count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (strcmp(pump->lines[pump->lines_sort[middle]].queue, queue) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

size_t pawli_pump_find_line(const struct pawli_pump *pump, const char *queue)
{
    size_t place = place_of(pump, queue);
    if (place == pump->lines_count)
        return PAWLI_LINE_ALL;
    size_t line = pump->lines_sort[place];
    return strcmp(pump->lines[line].queue, queue) == 0 ? line : PAWLI_LINE_ALL;
}

/* Give a line that has no name one that no line has. `named`: lines with a name. */
static void give_name(struct pawli_pump *pump, size_t line, const char *queue, size_t named)
{
    size_t place = place_of(pump, queue);
    memmove(&pump->lines_sort[place + 1], &pump->lines_sort[place],
            (named - place) * sizeof(*pump->lines_sort));
    pump->lines_sort[place] = line;
    (void)pawli_text_copy(pump->line_names[line], sizeof(pump->line_names[line]),
                          queue); /* checked: it fits */
    pump->lines[line].queue = pump->line_names[line];
    pump->lines_count = named + 1;
}

static void take_name(struct pawli_pump *pump, size_t line)
{
    size_t place = place_of(pump, pump->lines[line].queue);
    assert(pump->lines_sort[place] == line);
    pump->lines_count--;
    memmove(&pump->lines_sort[place], &pump->lines_sort[place + 1],
            (pump->lines_count - place) * sizeof(*pump->lines_sort));
}

const pawl_worker_queue *pawli_pump_line_at(const struct pawli_pump *pump, size_t line)
{
    assert(line < pump->lines_count);
    return &pump->lines[line];
}

/* ---------------------------------------------------------------- life */

static pawl_code new_keeper(struct pawli_pump *pump, const struct pawli_pump_config *config,
                            pawl_err *err)
{
    struct pawli_keeper_line *lines = calloc(pump->lines_max, sizeof(*lines));
    if (lines == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    for (size_t i = 0; i < pump->lines_count; i++)
        lines[i].held_max = pump->lines[i].jobs_max;
    pawl_code code = pawli_keeper_new(
        &(struct pawli_keeper_config){.settings = config->settings,
                                      .lines = lines,
                                      .lines_count = pump->lines_count,
                                      .lines_max = pump->lines_max,
                                      .random = config->random},
        &pump->keeper, err);
    free(lines);
    return code;
}

pawl_code pawli_pump_lines_new(struct pawli_pump *pump, const struct pawli_pump_config *config,
                               pawl_err *err)
{
    pump->lines_max = config->lines_max > 0 ? config->lines_max : config->lines_count;
    pump->lines = calloc(pump->lines_max, sizeof(*pump->lines));
    pump->line_names = calloc(pump->lines_max, sizeof(*pump->line_names));
    pump->are_dropped = calloc(pump->lines_max, sizeof(*pump->are_dropped));
    pump->lines_sort = calloc(pump->lines_max, sizeof(*pump->lines_sort));
    if (pump->lines == NULL || pump->line_names == NULL || pump->are_dropped == NULL ||
        pump->lines_sort == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    for (size_t i = 0; i < config->lines_count; i++) {
        pump->lines[i] = config->lines[i];
        give_name(pump, i, config->lines[i].queue, i);
    }
    return new_keeper(pump, config, err);
}

void pawli_pump_lines_free(struct pawli_pump *pump)
{
    free(pump->lines);
    free(pump->line_names);
    free(pump->are_dropped);
    free(pump->lines_sort);
}

/* ---------------------------------------------------------------- while it runs */

size_t pawli_pump_line(struct pawli_pump *pump, const char *queue)
{
    pthread_mutex_lock(&pump->mutex);
    size_t line = pawli_pump_find_line(pump, queue);
    pthread_mutex_unlock(&pump->mutex);
    return line;
}

/* A line for a queue that has none: a new one, or that of a queue that was dropped, with nothing
 * left of it. Under the lock. */
static size_t free_line(struct pawli_pump *pump)
{
    if (pump->lines_count < pump->lines_max)
        return pump->lines_count;
    for (size_t i = 0; i < pump->lines_count; i++)
        if (pump->are_dropped[i] && pawli_keeper_line_held(pump->keeper, i) == 0) {
            take_name(pump, i);
            return i;
        }
    return PAWLI_LINE_ALL;
}

static void bound(struct pawli_pump *pump, size_t line, int64_t jobs_max)
{
    pump->lines[line].jobs_max = jobs_max;
    pawli_keeper_on_line(pump->keeper, pawli_pump_now(pump),
                         (struct pawli_keeper_bound){.line = line, .held_max = jobs_max});
    pawli_pump_drive(pump);
}

size_t pawli_pump_line_put(struct pawli_pump *pump, const pawl_worker_queue *queue)
{
    assert(queue != NULL && strlen(queue->queue) <= PAWL_NAME_MAX);
    pthread_mutex_lock(&pump->mutex);
    size_t line = pawli_pump_find_line(pump, queue->queue);
    if (line == PAWLI_LINE_ALL) {
        line = free_line(pump);
        if (line != PAWLI_LINE_ALL)
            give_name(pump, line, queue->queue, pump->lines_count);
    }
    if (line != PAWLI_LINE_ALL) {
        pump->are_dropped[line] = false;
        pump->lines[line].lease_ms = queue->lease_ms;
        bound(pump, line, queue->jobs_max);
    }
    pthread_mutex_unlock(&pump->mutex);
    return line;
}

void pawli_pump_line_bound(struct pawli_pump *pump, size_t line, int64_t jobs_max)
{
    pthread_mutex_lock(&pump->mutex);
    assert(line < pump->lines_count);
    bound(pump, line, jobs_max);
    pthread_mutex_unlock(&pump->mutex);
}

void pawli_pump_line_drop(struct pawli_pump *pump, size_t line)
{
    pthread_mutex_lock(&pump->mutex);
    assert(line < pump->lines_count);
    pump->are_dropped[line] = true;
    bound(pump, line, 0);
    pthread_mutex_unlock(&pump->mutex);
}

void pawli_pump_set_lease(struct pawli_pump *pump, int64_t lease_ms)
{
    pthread_mutex_lock(&pump->mutex);
    for (size_t i = 0; i < pump->lines_count; i++)
        pump->lines[i].lease_ms = lease_ms;
    pthread_mutex_unlock(&pump->mutex);
}

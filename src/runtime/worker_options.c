/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * worker_options.c - what a worker is to be started with: defaults and checks.
 * Owns:  the texts of the refusals.
 * Never: starts anything; keeps the handle it asks through.
 */
#include "runtime/worker_options.h"

#include "base/error.h"
#include "core/policy.h"
#include "runtime/name.h"

#include <stdlib.h>
#include <string.h>

#define PRESENCE_MS     5000
#define LEASE_UNSEEN_MS 120000 /* until it serves a queue: PAWL_LEASE_EXTERNAL */

void pawl_worker_options_init(pawl_worker_options *options)
{
    if (options == NULL)
        return;
    *options = (pawl_worker_options){
        .presence_ms = PRESENCE_MS,
        .watch = {.level = PAWL_LEVEL_INFO},
        .clock = pawl_clock_system(),
        .random = pawl_random_system(),
    };
    pawl_worker_settings_init(&options->settings);
    pawl_reaper_settings_init(&options->reaper);
}

static pawl_code check_queue(const pawl_worker_queue *queue, size_t i, pawl_err *err)
{
    pawl_err inner;
    pawl_code code = pawli_check_name("queue", queue->queue, &inner);
    if (code == PAWL_OK && queue->lease_ms != PAWL_DEFAULT)
        code = pawli_check_duration("lease_ms", queue->lease_ms, PAWL_LEASE_MIN_MS, &inner);
    if (code == PAWL_OK && queue->jobs_max != PAWL_DEFAULT)
        code = pawli_check_range("jobs_max", queue->jobs_max,
                                 (struct pawli_range){1, PAWL_BATCH_MAX}, &inner);
    return code == PAWL_OK ? PAWL_OK : pawli_fail(err, code, "queues[%zu].%s", i, inner.text);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static pawl_code check_no_twice(const pawl_worker_options *options, pawl_err *err)
{
    const char **names = calloc(options->queues_count, sizeof(const char *));
    if (names == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    for (size_t i = 0; i < options->queues_count; i++)
        names[i] = options->queues[i].queue;
    qsort(names, options->queues_count, sizeof(const char *), compare_names);
    pawl_code code = PAWL_OK;
    for (size_t i = 1; i < options->queues_count && code == PAWL_OK; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            code = pawli_fail(err, PAWL_INVALID, "queue \"%s\" is given twice", names[i]);
    free(names);
    return code;
}

static pawl_code check_given(const pawl_worker_options *options, bool has_hands, pawl_err *err)
{
    if (options == NULL)
        return pawli_fail(err, PAWL_INVALID, "options is missing (NULL)");
    if (options->opener.open == NULL)
        return pawli_fail(err, PAWL_INVALID, "opener.open is missing (NULL)");
    if (options->handler == NULL && !has_hands)
        return pawli_fail(err, PAWL_INVALID, "handler is missing (NULL)");
    bool has_queues = options->queues_count > 0 || !has_hands;
    pawl_code code = has_queues ? pawli_check_given("queues", options->queues, err) : PAWL_OK;
    if (code == PAWL_OK)
        code = pawli_check_given("clock", options->clock, err);
    if (code == PAWL_OK)
        code = pawli_check_given("random", options->random, err);
    return code;
}

static pawl_code check_plain(const pawl_worker_options *options, bool has_hands, pawl_err *err)
{
    pawl_code code = check_given(options, has_hands, err);
    if (code == PAWL_OK)
        code = pawli_check_range("queues_count", (int64_t)options->queues_count,
                                 (struct pawli_range){has_hands ? 0 : 1, PAWL_LINES_MAX}, err);
    for (size_t i = 0; code == PAWL_OK && i < options->queues_count; i++)
        code = check_queue(&options->queues[i], i, err);
    if (code == PAWL_OK && options->queues_count > 0)
        code = check_no_twice(options, err);
    if (code == PAWL_OK && options->name != NULL)
        code = pawli_check_name("name", options->name, err);
    if (code == PAWL_OK && options->name != NULL && strlen(options->name) > PAWLI_NAME_BEGIN_MAX)
        code = pawli_fail(err, PAWL_INVALID, "name has %zu bytes; %d at most are allowed",
                          strlen(options->name), PAWLI_NAME_BEGIN_MAX);
    if (code == PAWL_OK)
        code = pawli_check_duration("presence_ms", options->presence_ms, 1, err);
    /* With any lease: the fields by themselves. What depends on the lease comes later. */
    if (code == PAWL_OK)
        code = pawl_worker_settings_check(&options->settings, PAWL_DURATION_MAX_MS, err);
    return code;
}

/* The smallest lease of all queues: as the worker asks for it, or as the queue is set. */
static pawl_code find_lease(const pawl_worker_options *options, pawl_store *store, int64_t *ret_ms,
                            pawl_err *err)
{
    int64_t smallest_ms = options->queues_count > 0 ? INT64_MAX : LEASE_UNSEEN_MS;
    for (size_t i = 0; i < options->queues_count; i++) {
        int64_t lease_ms = options->queues[i].lease_ms;
        if (lease_ms == PAWL_DEFAULT) {
            pawl_queue_settings settings;
            pawl_code code = pawl_queue_get(store, options->queues[i].queue, &settings, err);
            if (code != PAWL_OK)
                return code;
            lease_ms = settings.lease_ms;
        }
        if (lease_ms < smallest_ms)
            smallest_ms = lease_ms;
    }
    *ret_ms = smallest_ms;
    return PAWL_OK;
}

pawl_code pawli_worker_options_check(const pawl_worker_options *options, bool has_hands,
                                     int64_t *ret_smallest_lease_ms, pawl_err *err)
{
    pawl_store *store = NULL;
    pawl_code code = check_plain(options, has_hands, err);
    if (code == PAWL_OK)
        code = options->opener.open(options->opener.user, PAWL_ROLE_CLAIMER, &store, err);
    if (code != PAWL_OK)
        return code;
    int64_t lease_ms = 0;
    code = find_lease(options, store, &lease_ms, err);
    pawl_store_close(store);
    if (code == PAWL_OK)
        code = pawl_worker_settings_check(&options->settings, lease_ms, err);
    if (code == PAWL_OK)
        code = pawl_reaper_settings_check(&options->reaper, lease_ms, err);
    if (code == PAWL_OK)
        *ret_smallest_lease_ms = lease_ms;
    return code;
}

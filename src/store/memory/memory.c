/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * memory.c - the memory store: its life, its handles, its lock, and its hints.
 * Owns:  the memory and its mutex; the table of the port's verbs; waiting and waking.
 * Never: looks at a job; holds the mutex over anything but work on its own records.
 * Locks: memory.mutex, which guards everything below `jobs` in struct pawl_memory and all that
 *        hangs from there. Work leases have locks of their own: see worklease.c. The clock is read
 *        once per call, under it.
 */
#include "store/memory/memory.h"

#include "base/clock.h"
#include "base/error.h"
#include "core/id.h"
#include "core/mutant.h"
#include "core/policy.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- lock and clock */

static void lock(pawl_memory *memory)
{
    int rc = pthread_mutex_lock(&memory->mutex);
    assert(rc == 0);
    (void)rc; /* used by the assert only */
}

static pawl_memory *memory_of(pawl_store *store)
{
    return ((struct handle *)store)->memory;
}

pawl_memory *pawli_memory_enter(pawl_store *store, pawl_wall *ret_now, pawl_err *err)
{
    /* What waits here must find the clock of the moment when it got the lock: RES-3. */
    PAWLI_STRETCH(PAWLI_STRETCH_STORE_LOCK);
    return pawli_memory_look(store, ret_now, err);
}

pawl_memory *pawli_memory_look(pawl_store *store, pawl_wall *ret_now, pawl_err *err)
{
    pawl_memory *memory = memory_of(store);
    lock(memory);
    *ret_now = memory->clock->wall(memory->clock->user);
    if (ret_now->us > 0)
        return memory;
    pawli_memory_leave(memory);
    /* In every record an instant of 0 means none, so such a clock would be believed to say that. */
    (void)pawli_fail(err, PAWL_DOWN, "the store's clock gives %lld us; it must be after 1970",
                     (long long)ret_now->us);
    return NULL;
}

void pawli_memory_leave(pawl_memory *memory)
{
    int rc = pthread_mutex_unlock(&memory->mutex);
    assert(rc == 0);
    (void)rc; /* used by the assert only */
}

/* ---- hints */

void pawli_memory_hint(pawl_memory *memory)
{
    memory->hints++;
    if (memory->waiters > 0)
        (void)pthread_cond_broadcast(&memory->hinted); /* cannot fail on a valid condition */
}

static pawl_code now(pawl_store *store, pawl_wall *ret_now, pawl_err *err)
{
    pawl_memory *memory = pawli_memory_look(store, ret_now, err);
    if (memory == NULL)
        return PAWL_DOWN;
    pawli_memory_leave(memory);
    return PAWL_OK;
}

static pawl_code wait(pawl_store *store, int64_t timeout_ms, bool *ret_hint, pawl_err *err)
{
    (void)err; /* cannot fail */
    struct handle *handle = (struct handle *)store;
    struct timespec until = pawli_wait_until(timeout_ms);
    pawl_memory *memory = memory_of(store);
    lock(memory);
    memory->waiters++;
    int rc = 0;
    while (rc == 0 && !handle->is_woken && handle->hints_seen == memory->hints)
        rc = pthread_cond_timedwait(&memory->hinted, &memory->mutex, &until);
    memory->waiters--;
    *ret_hint = handle->is_woken || handle->hints_seen != memory->hints;
    handle->is_woken = false;
    handle->hints_seen = memory->hints;
    pawli_memory_leave(memory);
    return PAWL_OK;
}

static void wake(pawl_store *store)
{
    struct handle *handle = (struct handle *)store;
    pawl_memory *memory = memory_of(store);
    lock(memory);
    handle->is_woken = true;
    (void)pthread_cond_broadcast(&memory->hinted); /* cannot fail on a valid condition */
    pawli_memory_leave(memory);
}

/* ---- handles */

static void close_handle(pawl_store *store)
{
    pawl_memory *memory = memory_of(store);
    lock(memory);
    assert(memory->handles > 0);
    memory->handles--;
    pawli_memory_leave(memory);
    free(store);
}

static const struct pawli_store_ops memory_ops = {
    .name = "memory",
    .close = close_handle,
    .enqueue = pawli_memory_enqueue,
    .claim = pawli_memory_claim,
    .mine = pawli_memory_mine,
    .renew = pawli_memory_renew,
    .settle = pawli_memory_settle,
    .release = pawli_memory_release,
    .reap = pawli_memory_reap,
    .prune = pawli_memory_prune,
    .get = pawli_memory_get,
    .list = pawli_memory_list,
    .attempts = pawli_memory_attempts,
    .leases = pawli_memory_leases,
    .worker_seen = pawli_memory_worker_seen,
    .worker_ended = pawli_memory_worker_ended,
    .workers = pawli_memory_workers,
    .queue_stats = pawli_memory_queue_stats,
    .queue_get = pawli_memory_queue_get,
    .queue_set = pawli_memory_queue_set,
    .queue_pause = pawli_memory_queue_pause,
    .cancel = pawli_memory_cancel,
    .redrive = pawli_memory_redrive,
    .discard = pawli_memory_discard,
    .cancel_where = pawli_memory_cancel_where,
    .redrive_where = pawli_memory_redrive_where,
    .discard_where = pawli_memory_discard_where,
    .now = now,
    .wait = wait,
    .wake = wake,
    .worklease = &pawli_memory_worklease_ops,
    .endpoint = &pawli_memory_endpoint_ops,
    .once = &pawli_memory_once_ops,
};

pawl_code pawl_memory_open(pawl_memory *memory, pawl_store **ret_store, pawl_err *err)
{
    if (memory == NULL)
        return pawli_fail(err, PAWL_INVALID, "memory is missing (NULL)");
    if (ret_store == NULL)
        return pawli_fail(err, PAWL_INVALID, "ret_store is missing (NULL)");
    struct handle *handle = calloc(1, sizeof(*handle));
    if (handle == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    handle->store.ops = &memory_ops;
    handle->store.limits = (struct pawli_store_limits){
        .payload_max = memory->payload_max,
        .shards = memory->shards,
        .minter = memory->minter,
    };
    handle->memory = memory;
    lock(memory);
    memory->handles++;
    handle->hints_seen = memory->hints;
    pawli_memory_leave(memory);
    *ret_store = &handle->store;
    return PAWL_OK;
}

/* ---- life */

#define JOBS_MAX_DEFAULT INT64_C(10000000)

void pawl_memory_options_init(pawl_memory_options *options)
{
    if (options == NULL)
        return;
    *options = (pawl_memory_options){
        .clock = pawl_clock_system(),
        .random = pawl_random_system(),
        .shards = 1,
        .payload_max = PAWL_PAYLOAD_MAX,
        .jobs_max = JOBS_MAX_DEFAULT,
    };
}

static pawl_code check_options(const pawl_memory_options *options, pawl_err *err)
{
    const pawl_clock *clock = options->clock;
    if (clock == NULL || clock->mono == NULL || clock->wall == NULL)
        return pawli_fail(err, PAWL_INVALID, "clock is missing (NULL), or a function of it is");
    if (options->random == NULL || options->random->next == NULL)
        return pawli_fail(err, PAWL_INVALID, "random is missing (NULL), or its function is");
    pawl_code rc = pawli_check_range("shards", options->shards,
                                     (struct pawli_range){1, PAWL_SHARDS_MAX}, err);
    if (rc == PAWL_OK)
        rc = pawli_check_range("payload_max", options->payload_max,
                               (struct pawli_range){1, INT64_MAX}, err);
    if (rc == PAWL_OK)
        rc = pawli_check_range("jobs_max", options->jobs_max, (struct pawli_range){1, INT64_MAX},
                               err);
    return rc;
}

/* The minter draws in the front, before the lock is taken; the source need not be safe to share. */
static uint64_t draw_for_minter(void *user)
{
    pawl_memory *memory = user;
    lock(memory);
    uint64_t drawn = memory->random->next(memory->random->user);
    pawli_memory_leave(memory);
    return drawn;
}

static bool init_locks(pawl_memory *memory)
{
    pthread_condattr_t attributes;
    if (pthread_mutex_init(&memory->mutex, NULL) != 0)
        return false;
    if (pthread_condattr_init(&attributes) != 0)
        goto destroy_mutex;
    bool is_made = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 &&
                   pthread_cond_init(&memory->hinted, &attributes) == 0;
    (void)pthread_condattr_destroy(&attributes); /* cannot fail on a valid attribute */
    if (is_made)
        return true;

destroy_mutex:
    (void)pthread_mutex_destroy(&memory->mutex); /* cannot fail: nobody has it */
    return false;
}

pawl_code pawl_memory_new(const pawl_memory_options *options, pawl_memory **ret_memory,
                          pawl_err *err)
{
    pawl_memory_options defaults;
    if (ret_memory == NULL)
        return pawli_fail(err, PAWL_INVALID, "ret_memory is missing (NULL)");
    if (options == NULL) {
        pawl_memory_options_init(&defaults);
        options = &defaults;
    }
    pawl_code rc = check_options(options, err);
    if (rc != PAWL_OK)
        return rc;

    pawl_memory *memory = calloc(1, sizeof(*memory));
    if (memory != NULL)
        TAILQ_INIT(&memory->onces);
    if (memory == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    memory->clock = options->clock;
    memory->random = options->random;
    memory->minter_random = (pawl_random){.next = draw_for_minter, .user = memory};
    memory->shards = options->shards;
    memory->payload_max = options->payload_max;
    memory->jobs_max = options->jobs_max;
    memory->expired_until.us = INT64_MIN;
    memory->minter = pawli_minter_new(memory->clock, &memory->minter_random, memory->shards);
    if (memory->minter == NULL)
        goto free_memory;
    memory->domains = pawli_memory_domains_new();
    if (memory->domains == NULL)
        goto free_minter;
    if (!init_locks(memory))
        goto free_domains;
    *ret_memory = memory;
    return PAWL_OK;

free_domains:
    pawli_memory_domains_free(memory->domains);
free_minter:
    pawli_minter_free(memory->minter);
free_memory:
    free(memory);
    return pawli_fail_plain(err, PAWL_NO_MEMORY);
}

static void free_records(pawl_memory *memory)
{
    struct entry *entry;
    struct queue *queue;
    struct presence *presence;
    while ((entry = RB_MIN(pawli_job_tree, &memory->jobs)) != NULL) {
        pawli_memory_unlink(memory, entry);
        TAILED_TAKE(pawli_job_tree, &memory->jobs, entry);
        pawli_memory_free_entry(memory, entry);
    }
    while ((queue = RB_MIN(pawli_queue_tree, &memory->queues)) != NULL) {
        queue->is_set = false;
        pawli_memory_queue_drop(memory, queue);
    }
    while ((presence = RB_MIN(pawli_presence_tree, &memory->presences)) != NULL) {
        RB_REMOVE(pawli_presence_tree, &memory->presences, presence);
        free(presence);
    }
}

void pawl_memory_free(pawl_memory *memory)
{
    if (memory == NULL)
        return;
    assert(memory->handles == 0);
    pawli_memory_endpoints_free(memory);
    pawli_memory_events_free(memory);
    pawli_memory_once_free(memory);
    free_records(memory);
    assert(RB_EMPTY(&memory->holders));          /* M8 */
    (void)pthread_cond_destroy(&memory->hinted); /* cannot fail: nobody waits */
    (void)pthread_mutex_destroy(&memory->mutex); /* cannot fail: nobody has it */
    pawli_memory_domains_free(memory->domains);
    pawli_minter_free(memory->minter);
    free(memory);
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * pool.h - the threads that run handlers, as many as the keeper lets run at once. A handler that
 * does not stop when it is told to keeps its thread; the thread is reported and replaced, up to a
 * bound, so that the worker goes on.
 */
#ifndef PAWLI_RUNTIME_POOL_H
#define PAWLI_RUNTIME_POOL_H

#include "runtime/hands.h"

struct pawli_pool;

struct pawli_pool_config {
    struct pawli_pump *pump; /* borrowed, as all here */
    struct pawli_crew *crew;
    pawl_handler handler;
    void *user;
    const char *worker;
    const pawl_clock *clock;
    size_t threads_max; /* handlers at once, at least 1 */
    size_t stuck_max;   /* so many threads that are stuck are replaced; more cost a slot each */
};

struct pawli_pool *pawli_pool_new(const struct pawli_pool_config *config); /* NULL: no memory */
void pawli_pool_free(struct pawli_pool *pool); /* accepts NULL; no thread may use it */

/* The pump's signals. From the owner's thread; none of them blocks. */
void pawli_pool_start(struct pawli_pool *pool, struct pawli_slot slot);
void pawli_pool_abort(struct pawli_pool *pool, struct pawli_slot slot);
void pawli_pool_give_up(struct pawli_pool *pool, struct pawli_slot slot);

/* From now on so many handlers run at once. Threads beyond that stay, and wait. */
void pawli_pool_set(struct pawli_pool *pool, size_t threads_max);

/* Let its threads end as they become idle. */
void pawli_pool_end(struct pawli_pool *pool);

/* Handlers that were given up and have not ended. */
size_t pawli_pool_stuck(struct pawli_pool *pool);

/* All of it as hands; their user is a pool. */
extern const struct pawli_hands_ops pawli_pool_hands;

#endif

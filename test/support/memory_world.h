/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * memory_world.h - a memory store with a clock turned by hand and a seeded random source, and one
 * with jobs in every state that a job can be in.
 */
#ifndef PAWLT_MEMORY_WORLD_H
#define PAWLT_MEMORY_WORLD_H

#include "base/clock.h"
#include "base/random.h"
#include "pawl/pawl.h"

struct world {
    struct pawli_manual_clock manual;
    pawl_clock clock;
    struct pawli_seeded seeded;
    pawl_random random;
    pawl_memory *memory;
    pawl_store *store;
};

/* Fill `world` in place (the store borrows its clock), and end it. All fail the test on trouble. */
void world_make(struct world *world, int64_t shards);
void world_make_with(struct world *world, const pawl_memory_options *options);
void world_end(struct world *world);

/* Fail the test where the store's records do not agree. */
void world_check(struct world *world);

void world_turn_ms(struct world *world, int64_t ms);

/* Enqueue one job; the row's defaults are pawl_enqueue_init()'s. */
pawl_id world_enqueue(struct world *world, const char *queue);
pawl_id world_enqueue_row(struct world *world, const pawl_enqueue_row *row);

/* Claim up to `jobs_max` of a queue. Gives how many; payloads are dropped. */
size_t world_claim(struct world *world, const char *worker, const char *queue, pawl_job *ret_jobs,
                   size_t jobs_max);

/* Claim exactly one. */
pawl_job world_claim_one(struct world *world, const char *worker, const char *queue);

pawl_lease world_lease(const pawl_job *job);

/* Settle one job; must be OK. */
void world_settle(struct world *world, const char *worker, const pawl_job *job,
                  pawl_settle_action action);

pawl_job world_get(struct world *world, const pawl_id *id);

/* What world_fill() made, for tests that name them. */
struct filled {
    pawl_id ready, delayed, keyed, timed_out, succeeded, failed, discarded, cancelled;
    pawl_job held;     /* by "w1", lease valid */
    pawl_job marked;   /* by "w1", lease valid, cancellation asked */
    pawl_id expired;   /* lease expired for the first time */
    pawl_id expired_2; /* likewise for the second time in a row */
    pawl_id poisoned;  /* its next recovery is its last */
    pawl_id doomed;    /* lease expired, cancellation asked */
    pawl_job first;    /* of the ordering key "k" in the queue "k": by "w2", lease valid */
    pawl_id second;    /* likewise, Ready behind it */
    pawl_id dead;      /* likewise, Failed */
};

/* Jobs in every state, in the queues "a" and "b", some with two rows in the ledger already; and in
 * the queue "k" some of an ordering key, under a bound of 2. */
void world_fill(struct world *world, struct filled *ret_filled);

#endif

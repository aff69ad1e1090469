/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * served_kind.c - a memory store that looks like one on a server.
 * Owns:  a clock that moves on with every look at it, and a wrapper that tells every instant
 *        shifted back by what the store was aged.
 * Never: changes anything but instants.
 *
 * It proves the suite, not a store: a case that keeps a raw instant across an age, expects time to
 * stand still between two calls, or stands on a deadline without saying so, fails here, and not
 * only on the day when a durable store is plugged in. A fault store without a script stands in
 * front, which proves on the way that it passes every verb on as it came.
 */
#include "store/served_kind.h"

#include "base/clock.h"
#include "base/random.h"
#include "store/store.h"
#include "support/fault_store.h"

#include <stdlib.h>

#define STORY_BEGINS_US INT64_C(1700000000000000)

/* How much time passes from one look at the clock to the next: a slow round trip. */
#define TICK_US 20000

struct place {
    int64_t now_us;
    int64_t aged_us;
    struct pawli_seeded seeded;
    pawl_clock clock;
    pawl_random random;
    pawl_memory *memory;
};

struct served_store {
    struct pawl_store head;
    pawl_store *inner;
    struct place *place;
};

/* ---------------------------------------------------------------- time */

static pawl_wall tick_wall(void *user)
{
    struct place *place = user;
    place->now_us += TICK_US;
    return (pawl_wall){place->now_us};
}

static pawl_mono tick_mono(void *user)
{
    return (pawl_mono){tick_wall(user).us};
}

static struct served_store *served(pawl_store *store)
{
    return (struct served_store *)store; /* the head stands first */
}

static void shift(const pawl_store *store, pawl_wall *at)
{
    if (at->us != 0)
        at->us -= ((const struct served_store *)store)->place->aged_us;
}

static void shift_jobs(const pawl_store *store, pawl_job *jobs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        shift(store, &jobs[i].created_at);
        shift(store, &jobs[i].due_at);
        shift(store, &jobs[i].start_by);
        shift(store, &jobs[i].finished_at);
        shift(store, &jobs[i].claimed_at);
        shift(store, &jobs[i].expires_at);
        shift(store, &jobs[i].run_until);
    }
}

/* ---------------------------------------------------------------- verbs that tell instants */

#define INNER      served(store)->inner
#define PASS(call) INNER->ops->call

static pawl_code served_claim(pawl_store *store, const pawl_claim_args *args, pawl_job *ret_jobs,
                              size_t jobs_max, size_t *ret_count, pawl_err *err)
{
    pawl_code rc = PASS(claim)(INNER, args, ret_jobs, jobs_max, ret_count, err);
    if (rc == PAWL_OK)
        shift_jobs(store, ret_jobs, *ret_count);
    return rc;
}

static pawl_code served_mine(pawl_store *store, const char *worker, const pawl_id *after,
                             pawl_job *ret_jobs, size_t jobs_max, size_t *ret_count, pawl_err *err)
{
    pawl_code rc = PASS(mine)(INNER, worker, after, ret_jobs, jobs_max, ret_count, err);
    if (rc == PAWL_OK)
        shift_jobs(store, ret_jobs, *ret_count);
    return rc;
}

static pawl_code served_get(pawl_store *store, const pawl_id *id, pawl_job *ret_job, pawl_err *err)
{
    pawl_code rc = PASS(get)(INNER, id, ret_job, err);
    if (rc == PAWL_OK)
        shift_jobs(store, ret_job, 1);
    return rc;
}

static pawl_code served_list(pawl_store *store, const pawl_filter *filter, const pawl_id *after,
                             pawl_job *ret_jobs, size_t jobs_max, size_t *ret_count, pawl_err *err)
{
    pawl_code rc = PASS(list)(INNER, filter, after, ret_jobs, jobs_max, ret_count, err);
    if (rc == PAWL_OK)
        shift_jobs(store, ret_jobs, *ret_count);
    return rc;
}

static pawl_code served_renew(pawl_store *store, const char *worker, const pawl_renew_row *rows,
                              size_t rows_count, pawl_renewed *ret_results, pawl_err *err)
{
    pawl_code rc = PASS(renew)(INNER, worker, rows, rows_count, ret_results, err);
    for (size_t i = 0; rc == PAWL_OK && i < rows_count; i++)
        shift(store, &ret_results[i].expires_at);
    return rc;
}

static pawl_code served_settle(pawl_store *store, const char *worker, const pawl_settle_row *rows,
                               size_t rows_count, pawl_settled *ret_results, pawl_err *err)
{
    pawl_code rc = PASS(settle)(INNER, worker, rows, rows_count, ret_results, err);
    for (size_t i = 0; rc == PAWL_OK && i < rows_count; i++)
        shift(store, &ret_results[i].due_at);
    return rc;
}

static pawl_code served_reap(pawl_store *store, pawl_reaped *ret_rows, size_t rows_max,
                             size_t *ret_count, pawl_err *err)
{
    pawl_code rc = PASS(reap)(INNER, ret_rows, rows_max, ret_count, err);
    for (size_t i = 0; rc == PAWL_OK && i < *ret_count; i++)
        shift(store, &ret_rows[i].due_at);
    return rc;
}

static pawl_code served_attempts(pawl_store *store, const pawl_id *id, int64_t after_no,
                                 pawl_attempt *ret_rows, size_t rows_max, size_t *ret_count,
                                 pawl_err *err)
{
    pawl_code rc = PASS(attempts)(INNER, id, after_no, ret_rows, rows_max, ret_count, err);
    for (size_t i = 0; rc == PAWL_OK && i < *ret_count; i++) {
        shift(store, &ret_rows[i].started_at);
        shift(store, &ret_rows[i].finished_at);
    }
    return rc;
}

static pawl_code served_leases(pawl_store *store, const pawl_filter *filter, const pawl_id *after,
                               pawl_lease_info *ret_rows, size_t rows_max, size_t *ret_count,
                               pawl_err *err)
{
    pawl_code rc = PASS(leases)(INNER, filter, after, ret_rows, rows_max, ret_count, err);
    for (size_t i = 0; rc == PAWL_OK && i < *ret_count; i++) {
        shift(store, &ret_rows[i].claimed_at);
        shift(store, &ret_rows[i].expires_at);
    }
    return rc;
}

static pawl_code served_workers(pawl_store *store, const char *after, pawl_worker *ret_rows,
                                size_t rows_max, size_t *ret_count, pawl_err *err)
{
    pawl_code rc = PASS(workers)(INNER, after, ret_rows, rows_max, ret_count, err);
    for (size_t i = 0; rc == PAWL_OK && i < *ret_count; i++) {
        shift(store, &ret_rows[i].since);
        shift(store, &ret_rows[i].last_seen);
    }
    return rc;
}

static pawl_code served_now(pawl_store *store, pawl_wall *ret_now, pawl_err *err)
{
    pawl_code rc = PASS(now)(INNER, ret_now, err);
    if (rc == PAWL_OK)
        shift(store, ret_now); /* so that ageing does not move it */
    return rc;
}

/* ---------------------------------------------------------------- verbs that tell none */

static pawl_code served_enqueue(pawl_store *store, const pawl_enqueue_row *rows, size_t rows_count,
                                pawl_enqueued *ret_results, pawl_err *err)
{
    return PASS(enqueue)(INNER, rows, rows_count, ret_results, err);
}

static pawl_code served_release(pawl_store *store, const char *worker, const pawl_lease *leases,
                                size_t leases_count, pawl_code *ret_codes, pawl_err *err)
{
    return PASS(release)(INNER, worker, leases, leases_count, ret_codes, err);
}

static pawl_code served_prune(pawl_store *store, size_t jobs_max, size_t *ret_count, pawl_err *err)
{
    return PASS(prune)(INNER, jobs_max, ret_count, err);
}

static pawl_code served_worker_seen(pawl_store *store, const pawl_worker_seen *args, pawl_err *err)
{
    return PASS(worker_seen)(INNER, args, err);
}

static pawl_code served_worker_ended(pawl_store *store, const char *name, pawl_err *err)
{
    return PASS(worker_ended)(INNER, name, err);
}

static pawl_code served_queue_stats(pawl_store *store, const char *after, pawl_stats *ret_rows,
                                    size_t rows_max, size_t *ret_count, pawl_err *err)
{
    return PASS(queue_stats)(INNER, after, ret_rows, rows_max, ret_count, err);
}

static pawl_code served_queue_get(pawl_store *store, const char *queue,
                                  pawl_queue_settings *ret_settings, pawl_err *err)
{
    return PASS(queue_get)(INNER, queue, ret_settings, err);
}

static pawl_code served_queue_set(pawl_store *store, const char *queue,
                                  const pawl_queue_settings *settings, pawl_err *err)
{
    return PASS(queue_set)(INNER, queue, settings, err);
}

static pawl_code served_queue_pause(pawl_store *store, const char *queue, bool is_paused,
                                    pawl_err *err)
{
    return PASS(queue_pause)(INNER, queue, is_paused, err);
}

static pawl_code served_cancel(pawl_store *store, const pawl_id *ids, size_t ids_count,
                               pawl_changed *ret_results, pawl_err *err)
{
    return PASS(cancel)(INNER, ids, ids_count, ret_results, err);
}

static pawl_code served_redrive(pawl_store *store, const pawl_id *ids, size_t ids_count,
                                pawl_changed *ret_results, pawl_err *err)
{
    return PASS(redrive)(INNER, ids, ids_count, ret_results, err);
}

static pawl_code served_discard(pawl_store *store, const pawl_id *ids, size_t ids_count,
                                pawl_changed *ret_results, pawl_err *err)
{
    return PASS(discard)(INNER, ids, ids_count, ret_results, err);
}

static pawl_code served_cancel_where(pawl_store *store, const pawl_filter *filter, size_t jobs_max,
                                     size_t *ret_count, pawl_err *err)
{
    return PASS(cancel_where)(INNER, filter, jobs_max, ret_count, err);
}

static pawl_code served_redrive_where(pawl_store *store, const pawl_filter *filter, size_t jobs_max,
                                      size_t *ret_count, pawl_err *err)
{
    return PASS(redrive_where)(INNER, filter, jobs_max, ret_count, err);
}

static pawl_code served_discard_where(pawl_store *store, const pawl_filter *filter, size_t jobs_max,
                                      size_t *ret_count, pawl_err *err)
{
    return PASS(discard_where)(INNER, filter, jobs_max, ret_count, err);
}

static pawl_code served_wait(pawl_store *store, int64_t timeout_ms, bool *ret_hint, pawl_err *err)
{
    return PASS(wait)(INNER, timeout_ms, ret_hint, err);
}

static void served_wake(pawl_store *store)
{
    PASS(wake)(INNER);
}

static void served_close(pawl_store *store)
{
    pawl_store_close(INNER);
    free(store);
}

static const struct pawli_store_ops served_ops = {
    .name = "served",
    .close = served_close,
    .enqueue = served_enqueue,
    .claim = served_claim,
    .mine = served_mine,
    .renew = served_renew,
    .settle = served_settle,
    .release = served_release,
    .reap = served_reap,
    .prune = served_prune,
    .get = served_get,
    .list = served_list,
    .attempts = served_attempts,
    .leases = served_leases,
    .worker_seen = served_worker_seen,
    .worker_ended = served_worker_ended,
    .workers = served_workers,
    .queue_stats = served_queue_stats,
    .queue_get = served_queue_get,
    .queue_set = served_queue_set,
    .queue_pause = served_queue_pause,
    .cancel = served_cancel,
    .redrive = served_redrive,
    .discard = served_discard,
    .cancel_where = served_cancel_where,
    .redrive_where = served_redrive_where,
    .discard_where = served_discard_where,
    .now = served_now,
    .wait = served_wait,
    .wake = served_wake,
};

/* ---------------------------------------------------------------- the kind */

static struct place *make(int64_t shards)
{
    struct place *place = calloc(1, sizeof(*place));
    if (place == NULL)
        return NULL;
    place->now_us = STORY_BEGINS_US;
    place->seeded.state = 11;
    place->clock = (pawl_clock){.mono = tick_mono, .wall = tick_wall, .user = place};
    place->random = pawli_seeded_as_random(&place->seeded);
    pawl_memory_options options;
    pawl_memory_options_init(&options);
    options.clock = &place->clock;
    options.random = &place->random;
    options.shards = shards;
    if (pawl_memory_new(&options, &place->memory, NULL) != PAWL_OK) {
        free(place);
        return NULL;
    }
    return place;
}

static pawl_store *open_served(struct place *place)
{
    struct served_store *store = calloc(1, sizeof(*store));
    if (store == NULL)
        return NULL;
    if (pawl_memory_open(place->memory, &store->inner, NULL) != PAWL_OK) {
        free(store);
        return NULL;
    }
    store->place = place;
    store->head.ops = &served_ops;
    store->head.limits = store->inner->limits;
    pawl_store *front = NULL;
    if (fault_store_open(&store->head, &front, NULL) != PAWL_OK) {
        served_close(&store->head);
        return NULL;
    }
    return front;
}

static void shift_back(struct place *place, int64_t ms)
{
    place->now_us += ms * 1000;
    place->aged_us += ms * 1000;
}

static void drop(struct place *place)
{
    pawl_memory_free(place->memory);
    free(place);
}

const struct store_kind served_kind = {
    .name = "served",
    .has_no_endpoints = true,
    .has_exact_clock = false,
    .is_clock_turned = false,
    .is_durable = true, /* the jobs outlive every handle, as they would on a server */
    .slack_ms = 500,
    .walk_steps = 6000,
    .make = make,
    .open = open_served,
    .age = shift_back,
    .restart = NULL,
    .drop = drop,
};

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * store.c - the front of every store: the verbs of pawl.h.
 * Owns:  the order check, then call; the minting of ids that callers leave out.
 * Never: lets a store see an argument that pawl.h forbids; writes a ret_ parameter itself; keeps
 *        anything between two calls.
 */
#include "store/store.h"

#include "base/error.h"
#include "base/text.h"
#include "core/id.h"
#include "core/policy.h"
#include "store/check.h"

#include <stdlib.h>
#include <string.h>

static pawl_code check_store(const pawl_store *store, pawl_err *err)
{
    return pawli_check_given("store", store, err);
}

/* What verbs on many rows have in common: the store, the rows, their number, room for verdicts. */
struct batch {
    const pawl_store *store;
    const struct batch_names *names;
    const void *rows;
    size_t rows_count;
    const void *ret_results;
};

/* What pawl.h calls these. */
struct batch_names {
    const char *rows;
    const char *rows_count;
    const char *ret_results;
};
static const struct batch_names of_rows = {"rows", "rows_count", "ret_results"};
static const struct batch_names of_leases = {"leases", "leases_count", "ret_codes"};
static const struct batch_names of_ids = {"ids", "ids_count", "ret_results"};

static pawl_code check_batch(const struct batch *batch, pawl_err *err)
{
    pawl_code rc = check_store(batch->store, err);
    if (rc == PAWL_OK)
        rc = pawli_check_given(batch->names->rows, batch->rows, err);
    if (rc == PAWL_OK)
        rc = pawli_check_batch(batch->names->rows_count, batch->rows_count, err);
    if (rc == PAWL_OK)
        rc = pawli_check_given(batch->names->ret_results, batch->ret_results, err);
    return rc;
}

static pawl_code check_page(const pawl_store *store, const struct pawli_page *page, pawl_err *err)
{
    pawl_code rc = check_store(store, err);
    return rc == PAWL_OK ? pawli_check_page(page, err) : rc;
}

void pawl_store_close(pawl_store *store)
{
    if (store != NULL)
        store->ops->close(store);
}

void pawl_job_clear(pawl_job *job)
{
    if (job == NULL)
        return;
    free(job->payload);
    free(job->headers);
    memset(job, 0, sizeof(*job));
}

/* ---- producing */

void pawl_enqueue_init(pawl_enqueue_row *row)
{
    if (row == NULL)
        return;
    *row = (pawl_enqueue_row){
        .priority = PAWL_PRIORITY_NORMAL,
        .start_within_ms = PAWL_DEFAULT,
        .max_retries = PAWL_DEFAULT,
        .timeout_ms = PAWL_DEFAULT,
        .backoff_base_ms = PAWL_DEFAULT,
        .backoff_max_ms = PAWL_DEFAULT,
    };
}

static pawl_id mint(const pawl_store *store, const pawl_enqueue_row *row)
{
    struct pawli_shard_key key = pawli_shard_key_of(row);
    return pawli_minter_next(store->limits.minter, &key);
}

pawl_code pawl_id_new(pawl_store *store, const pawl_enqueue_row *row, pawl_id *ret_id,
                      pawl_err *err)
{
    pawl_code rc = check_store(store, err);
    if (rc == PAWL_OK)
        rc = pawli_check_given("row", row, err);
    if (rc == PAWL_OK)
        rc = pawli_check_given("ret_id", ret_id, err);
    if (rc == PAWL_OK)
        rc = pawli_check_enqueue_key(row, err);
    if (rc == PAWL_OK)
        *ret_id = mint(store, row);
    return rc;
}

static size_t count_nil(const pawl_enqueue_row *rows, size_t rows_count)
{
    size_t count = 0;
    for (size_t i = 0; i < rows_count; i++)
        count += pawl_id_is_nil(&rows[i].id);
    return count;
}

pawl_code pawli_enqueue_own(pawl_store *store, pawl_enqueue_row *rows, size_t rows_count,
                            pawl_enqueued *ret_results, pawl_err *err)
{
    size_t nil_count = count_nil(rows, rows_count);
    for (size_t i = 0; i < rows_count; i++)
        if (pawl_id_is_nil(&rows[i].id))
            rows[i].id = mint(store, &rows[i]);
    store->are_ids_minted = nil_count == rows_count;
    pawl_code rc = store->ops->enqueue(store, rows, rows_count, ret_results, err);
    store->are_ids_minted = false;
    return rc;
}

pawl_code pawl_enqueue(pawl_store *store, const pawl_enqueue_row *rows, size_t rows_count,
                       pawl_enqueued *ret_results, pawl_err *err)
{
    pawl_code rc = check_batch(&(struct batch){store, &of_rows, rows, rows_count, ret_results},
                               err);
    if (rc == PAWL_OK)
        rc = pawli_check_enqueue(&store->limits, rows, rows_count, err);
    if (rc != PAWL_OK)
        return rc;
    if (count_nil(rows, rows_count) == 0)
        return store->ops->enqueue(store, rows, rows_count, ret_results, err);

    /* The rows are the caller's: ids go into a copy. */
    pawl_enqueue_row *copy = malloc(rows_count * sizeof(*copy));
    if (copy == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    memcpy(copy, rows, rows_count * sizeof(*copy));
    rc = pawli_enqueue_own(store, copy, rows_count, ret_results, err);
    free(copy);
    return rc;
}

/* ---- working */

pawl_code pawl_claim(pawl_store *store, const pawl_claim_args *args, pawl_job *ret_jobs,
                     size_t jobs_max, size_t *ret_count, pawl_err *err)
{
    pawl_code rc = check_page(
        store, &(struct pawli_page){PAWLI_PAGE_OF_JOBS, ret_jobs, jobs_max, ret_count}, err);
    if (rc == PAWL_OK)
        rc = pawli_check_claim(args, err);
    if (rc != PAWL_OK)
        return rc;
    return store->ops->claim(store, args, ret_jobs, jobs_max, ret_count, err);
}

pawl_code pawl_mine(pawl_store *store, const char *worker, const pawl_id *after, pawl_job *ret_jobs,
                    size_t jobs_max, size_t *ret_count, pawl_err *err)
{
    pawl_code rc = check_page(
        store, &(struct pawli_page){PAWLI_PAGE_OF_JOBS, ret_jobs, jobs_max, ret_count}, err);
    if (rc == PAWL_OK)
        rc = pawli_check_name("worker", worker, err);
    if (rc != PAWL_OK)
        return rc;
    return store->ops->mine(store, worker, after, ret_jobs, jobs_max, ret_count, err);
}

pawl_code pawl_renew(pawl_store *store, const char *worker, const pawl_renew_row *rows,
                     size_t rows_count, pawl_renewed *ret_results, pawl_err *err)
{
    pawl_code rc = check_batch(&(struct batch){store, &of_rows, rows, rows_count, ret_results},
                               err);
    if (rc == PAWL_OK)
        rc = pawli_check_name("worker", worker, err);
    if (rc == PAWL_OK)
        rc = pawli_check_renew(rows, rows_count, err);
    if (rc != PAWL_OK)
        return rc;
    return store->ops->renew(store, worker, rows, rows_count, ret_results, err);
}

void pawl_settle_init(pawl_settle_row *row)
{
    if (row != NULL)
        *row = (pawl_settle_row){
            .action = PAWL_SUCCEED, .delay_ms = PAWL_DEFAULT, .wire_sends = PAWL_SENDS_UNKNOWN};
}

pawl_code pawl_settle(pawl_store *store, const char *worker, const pawl_settle_row *rows,
                      size_t rows_count, pawl_settled *ret_results, pawl_err *err)
{
    pawl_code rc = check_batch(&(struct batch){store, &of_rows, rows, rows_count, ret_results},
                               err);
    if (rc == PAWL_OK)
        rc = pawli_check_name("worker", worker, err);
    if (rc == PAWL_OK)
        rc = pawli_check_settle(rows, rows_count, err);
    if (rc != PAWL_OK)
        return rc;
    return store->ops->settle(store, worker, rows, rows_count, ret_results, err);
}

pawl_code pawl_release(pawl_store *store, const char *worker, const pawl_lease *leases,
                       size_t leases_count, pawl_code *ret_codes, pawl_err *err)
{
    pawl_code rc = check_batch(&(struct batch){store, &of_leases, leases, leases_count, ret_codes},
                               err);
    if (rc == PAWL_OK)
        rc = pawli_check_name("worker", worker, err);
    if (rc == PAWL_OK)
        rc = pawli_check_release(leases, leases_count, err);
    if (rc != PAWL_OK)
        return rc;
    return store->ops->release(store, worker, leases, leases_count, ret_codes, err);
}

/* ---- recovering */

pawl_code pawl_reap(pawl_store *store, pawl_reaped *ret_rows, size_t rows_max, size_t *ret_count,
                    pawl_err *err)
{
    pawl_code rc = check_page(
        store, &(struct pawli_page){PAWLI_PAGE_OF_ROWS, ret_rows, rows_max, ret_count}, err);
    return rc == PAWL_OK ? store->ops->reap(store, ret_rows, rows_max, ret_count, err) : rc;
}

/* A verb that only counts what it did. */
static pawl_code check_counting(const pawl_store *store, size_t jobs_max, const size_t *ret_count,
                                pawl_err *err)
{
    pawl_code rc = check_store(store, err);
    if (rc == PAWL_OK)
        rc = pawli_check_batch("jobs_max", jobs_max, err);
    if (rc == PAWL_OK)
        rc = pawli_check_given("ret_count", ret_count, err);
    return rc;
}

pawl_code pawl_prune(pawl_store *store, size_t jobs_max, size_t *ret_count, pawl_err *err)
{
    pawl_code rc = check_counting(store, jobs_max, ret_count, err);
    return rc == PAWL_OK ? store->ops->prune(store, jobs_max, ret_count, err) : rc;
}

/* ---- looking */

pawl_code pawl_get(pawl_store *store, const pawl_id *id, pawl_job *ret_job, pawl_err *err)
{
    pawl_code rc = check_store(store, err);
    if (rc == PAWL_OK)
        rc = pawli_check_id("id", id, err);
    if (rc == PAWL_OK)
        rc = pawli_check_given("ret_job", ret_job, err);
    return rc == PAWL_OK ? store->ops->get(store, id, ret_job, err) : rc;
}

pawl_code pawl_list(pawl_store *store, const pawl_filter *filter, const pawl_id *after,
                    pawl_job *ret_jobs, size_t jobs_max, size_t *ret_count, pawl_err *err)
{
    pawl_code rc = check_page(
        store, &(struct pawli_page){PAWLI_PAGE_OF_JOBS, ret_jobs, jobs_max, ret_count}, err);
    if (rc == PAWL_OK)
        rc = pawli_check_filter(filter, err);
    if (rc != PAWL_OK)
        return rc;
    return store->ops->list(store, filter, after, ret_jobs, jobs_max, ret_count, err);
}

pawl_code pawl_attempts(pawl_store *store, const pawl_id *id, int64_t after_no,
                        pawl_attempt *ret_rows, size_t rows_max, size_t *ret_count, pawl_err *err)
{
    pawl_code rc = check_page(
        store, &(struct pawli_page){PAWLI_PAGE_OF_ROWS, ret_rows, rows_max, ret_count}, err);
    if (rc == PAWL_OK)
        rc = pawli_check_id("id", id, err);
    if (rc == PAWL_OK)
        rc = pawli_check_range("after_no", after_no, (struct pawli_range){0, INT64_MAX}, err);
    if (rc != PAWL_OK)
        return rc;
    return store->ops->attempts(store, id, after_no, ret_rows, rows_max, ret_count, err);
}

pawl_code pawl_leases(pawl_store *store, const pawl_filter *filter, const pawl_id *after,
                      pawl_lease_info *ret_rows, size_t rows_max, size_t *ret_count, pawl_err *err)
{
    pawl_code rc = check_page(
        store, &(struct pawli_page){PAWLI_PAGE_OF_ROWS, ret_rows, rows_max, ret_count}, err);
    if (rc == PAWL_OK)
        rc = pawli_check_filter(filter, err);
    if (rc != PAWL_OK)
        return rc;
    return store->ops->leases(store, filter, after, ret_rows, rows_max, ret_count, err);
}

/* ---- workers and queues */

pawl_code pawl_worker_seen_now(pawl_store *store, const pawl_worker_seen *args, pawl_err *err)
{
    pawl_code rc = check_store(store, err);
    if (rc == PAWL_OK)
        rc = pawli_check_worker_seen(args, err);
    return rc == PAWL_OK ? store->ops->worker_seen(store, args, err) : rc;
}

pawl_code pawl_worker_ended(pawl_store *store, const char *name, pawl_err *err)
{
    pawl_code rc = check_store(store, err);
    if (rc == PAWL_OK)
        rc = pawli_check_name("name", name, err);
    return rc == PAWL_OK ? store->ops->worker_ended(store, name, err) : rc;
}

pawl_code pawl_workers(pawl_store *store, const char *after, pawl_worker *ret_rows, size_t rows_max,
                       size_t *ret_count, pawl_err *err)
{
    pawl_code rc = check_page(
        store, &(struct pawli_page){PAWLI_PAGE_OF_ROWS, ret_rows, rows_max, ret_count}, err);
    if (rc == PAWL_OK && after != NULL)
        rc = pawli_check_name("after", after, err);
    if (rc != PAWL_OK)
        return rc;
    return store->ops->workers(store, after, ret_rows, rows_max, ret_count, err);
}

pawl_code pawli_presences(pawl_store *store, const char *after, pawl_worker *ret_rows,
                          size_t rows_max, size_t *ret_count, pawl_err *err)
{
    return store->ops->presences != NULL
               ? store->ops->presences(store, after, ret_rows, rows_max, ret_count, err)
               : store->ops->workers(store, after, ret_rows, rows_max, ret_count, err);
}

pawl_code pawl_queue_stats(pawl_store *store, const char *after, pawl_stats *ret_rows,
                           size_t rows_max, size_t *ret_count, pawl_err *err)
{
    pawl_code rc = check_page(
        store, &(struct pawli_page){PAWLI_PAGE_OF_ROWS, ret_rows, rows_max, ret_count}, err);
    if (rc == PAWL_OK && after != NULL)
        rc = pawli_check_name("after", after, err);
    if (rc != PAWL_OK)
        return rc;
    return store->ops->queue_stats(store, after, ret_rows, rows_max, ret_count, err);
}

/* By counting all of it: of a store that cannot do better, or need not. */
static pawl_code depths_by_stats(pawl_store *store, const pawl_depth_args *args,
                                 pawl_stats *ret_rows, size_t rows_max, size_t *ret_count,
                                 pawl_err *err)
{
    const struct pawli_store_ops *ops = store->ops;
    size_t count = 0;
    if (args->queue == NULL) {
        pawl_code rc = ops->queue_stats(store, args->after, ret_rows, rows_max, &count, err);
        for (size_t i = 0; rc == PAWL_OK && i < count; i++)
            ret_rows[i].succeeded = ret_rows[i].failed = 0;
        if (rc == PAWL_OK)
            *ret_count = count;
        return rc;
    }
    pawl_stats row;
    char after[PAWL_NAME_MAX + 1] = "";
    do {
        pawl_code rc = ops->queue_stats(store, after[0] != '\0' ? after : NULL, &row, 1, &count,
                                        err);
        if (rc != PAWL_OK)
            return rc;
        (void)pawli_text_copy(after, sizeof(after), count > 0 ? row.queue : ""); /* it fits */
    } while (count > 0 && strcmp(after, args->queue) < 0);
    *ret_count = count > 0 && strcmp(after, args->queue) == 0;
    if (*ret_count > 0) {
        ret_rows[0] = row;
        ret_rows[0].succeeded = ret_rows[0].failed = 0;
    }
    return PAWL_OK;
}

pawl_code pawl_queue_depths(pawl_store *store, const pawl_depth_args *args, pawl_stats *ret_rows,
                            size_t rows_max, size_t *ret_count, pawl_err *err)
{
    static const pawl_depth_args all = {.queue = NULL};
    args = args != NULL ? args : &all;
    pawl_code rc = check_page(
        store, &(struct pawli_page){PAWLI_PAGE_OF_ROWS, ret_rows, rows_max, ret_count}, err);
    if (rc == PAWL_OK && args->queue != NULL)
        rc = pawli_check_name("queue", args->queue, err);
    if (rc == PAWL_OK && args->after != NULL)
        rc = pawli_check_name("after", args->after, err);
    if (rc == PAWL_OK && args->queue != NULL && args->after != NULL)
        rc = pawli_fail(err, PAWL_INVALID, "after is \"%s\"; with a queue there is none",
                        args->after);
    if (rc != PAWL_OK)
        return rc;
    size_t count = 0;
    rc = store->ops->queue_depths != NULL
             ? store->ops->queue_depths(store, args, ret_rows, rows_max, &count, err)
             : depths_by_stats(store, args, ret_rows, rows_max, &count, err);
    if (rc != PAWL_OK)
        return rc;
    if (args->queue != NULL && count == 0) {
        ret_rows[count] = (pawl_stats){.is_paused = false};
        (void)pawli_text_copy(ret_rows[count++].queue, sizeof(ret_rows->queue),
                              args->queue); /* it fits */
    }
    *ret_count = count;
    return PAWL_OK;
}

static pawl_code check_queue(const pawl_store *store, const char *queue, pawl_err *err)
{
    pawl_code rc = check_store(store, err);
    return rc == PAWL_OK ? pawli_check_name("queue", queue, err) : rc;
}

pawl_code pawl_queue_get(pawl_store *store, const char *queue, pawl_queue_settings *ret_settings,
                         pawl_err *err)
{
    pawl_code rc = check_queue(store, queue, err);
    if (rc == PAWL_OK)
        rc = pawli_check_given("ret_settings", ret_settings, err);
    return rc == PAWL_OK ? store->ops->queue_get(store, queue, ret_settings, err) : rc;
}

pawl_code pawl_queue_set(pawl_store *store, const char *queue, const pawl_queue_settings *settings,
                         pawl_err *err)
{
    pawl_code rc = check_queue(store, queue, err);
    if (rc == PAWL_OK)
        rc = pawli_check_queue_set(&store->limits, settings, err);
    return rc == PAWL_OK ? store->ops->queue_set(store, queue, settings, err) : rc;
}

pawl_code pawl_queue_pause(pawl_store *store, const char *queue, bool is_paused, pawl_err *err)
{
    pawl_code rc = check_queue(store, queue, err);
    return rc == PAWL_OK ? store->ops->queue_pause(store, queue, is_paused, err) : rc;
}

/* ---- operating */

static pawl_code check_ids(const struct batch *batch, pawl_err *err)
{
    pawl_code rc = check_batch(batch, err);
    return rc == PAWL_OK ? pawli_check_ids(batch->rows, batch->rows_count, err) : rc;
}

pawl_code pawl_cancel(pawl_store *store, const pawl_id *ids, size_t ids_count,
                      pawl_changed *ret_results, pawl_err *err)
{
    pawl_code rc = check_ids(&(struct batch){store, &of_ids, ids, ids_count, ret_results}, err);
    return rc == PAWL_OK ? store->ops->cancel(store, ids, ids_count, ret_results, err) : rc;
}

pawl_code pawl_redrive(pawl_store *store, const pawl_id *ids, size_t ids_count,
                       pawl_changed *ret_results, pawl_err *err)
{
    pawl_code rc = check_ids(&(struct batch){store, &of_ids, ids, ids_count, ret_results}, err);
    return rc == PAWL_OK ? store->ops->redrive(store, ids, ids_count, ret_results, err) : rc;
}

pawl_code pawl_discard(pawl_store *store, const pawl_id *ids, size_t ids_count,
                       pawl_changed *ret_results, pawl_err *err)
{
    pawl_code rc = check_ids(&(struct batch){store, &of_ids, ids, ids_count, ret_results}, err);
    return rc == PAWL_OK ? store->ops->discard(store, ids, ids_count, ret_results, err) : rc;
}

pawl_code pawl_cancel_where(pawl_store *store, const pawl_filter *filter, size_t jobs_max,
                            size_t *ret_count, pawl_err *err)
{
    pawl_code rc = check_counting(store, jobs_max, ret_count, err);
    if (rc == PAWL_OK)
        rc = pawli_check_where(filter, 1u << PAWL_READY | 1u << PAWL_IN_FLIGHT, err);
    return rc == PAWL_OK ? store->ops->cancel_where(store, filter, jobs_max, ret_count, err) : rc;
}

pawl_code pawl_redrive_where(pawl_store *store, const pawl_filter *filter, size_t jobs_max,
                             size_t *ret_count, pawl_err *err)
{
    pawl_code rc = check_counting(store, jobs_max, ret_count, err);
    if (rc == PAWL_OK)
        rc = pawli_check_where(filter, 1u << PAWL_FAILED, err);
    return rc == PAWL_OK ? store->ops->redrive_where(store, filter, jobs_max, ret_count, err) : rc;
}

pawl_code pawl_discard_where(pawl_store *store, const pawl_filter *filter, size_t jobs_max,
                             size_t *ret_count, pawl_err *err)
{
    pawl_code rc = check_counting(store, jobs_max, ret_count, err);
    if (rc == PAWL_OK)
        rc = pawli_check_where(filter, 1u << PAWL_FAILED, err);
    return rc == PAWL_OK ? store->ops->discard_where(store, filter, jobs_max, ret_count, err) : rc;
}

/* ---- waiting */

pawl_code pawl_now(pawl_store *store, pawl_wall *ret_now, pawl_err *err)
{
    pawl_code rc = check_store(store, err);
    if (rc == PAWL_OK)
        rc = pawli_check_given("ret_now", ret_now, err);
    return rc == PAWL_OK ? store->ops->now(store, ret_now, err) : rc;
}

pawl_code pawl_wait(pawl_store *store, int64_t timeout_ms, bool *ret_hint, pawl_err *err)
{
    pawl_code rc = check_store(store, err);
    if (rc == PAWL_OK)
        rc = pawli_check_duration("timeout_ms", timeout_ms, 1, err);
    if (rc == PAWL_OK)
        rc = pawli_check_given("ret_hint", ret_hint, err);
    return rc == PAWL_OK ? store->ops->wait(store, timeout_ms, ret_hint, err) : rc;
}

void pawl_wake(pawl_store *store)
{
    if (store != NULL)
        store->ops->wake(store);
}

void pawl_store_limit(pawl_store *store, int64_t call_timeout_ms)
{
    if (store != NULL && store->ops->limit != NULL)
        store->ops->limit(store, call_timeout_ms);
}

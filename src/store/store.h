/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * store.h - the port: what every store implements. The contracts of the verbs are those of pawl.h;
 * store.c checks the arguments once, for all stores, and then calls these. A store may therefore
 * rely on what pawl.h demands of arguments.
 *
 * What wraps another store (trace.c, the fault store of the tests) implements the same table.
 */
#ifndef PAWLI_STORE_STORE_H
#define PAWLI_STORE_STORE_H

#include "pawl/metrics.h"
#include "pawl/pawl.h"

/* What store.c must know of a store to check arguments and mint ids. Filled by whoever opens the
 * store. */
struct pawli_minter;
struct pawli_health;
struct pawli_worklease_ops;
struct pawli_endpoint_ops;
struct pawli_once_ops;
struct pawli_recent_args;
struct pawli_recent;

struct pawli_store_limits {
    int64_t payload_max;
    int64_t shards;
    struct pawli_minter *minter; /* borrowed */
};

/* Ids of rows are never nil here: store.c has minted those that were. */
struct pawli_store_ops {
    const char *name; /* "memory", "sqlite", "postgres", "trace" */

    void (*close)(pawl_store *store); /* frees the handle */

    pawl_code (*enqueue)(pawl_store *store, const pawl_enqueue_row *rows, size_t rows_count,
                         pawl_enqueued *ret_results, pawl_err *err);

    pawl_code (*claim)(pawl_store *store, const pawl_claim_args *args, pawl_job *ret_jobs,
                       size_t jobs_max, size_t *ret_count, pawl_err *err);
    pawl_code (*mine)(pawl_store *store, const char *worker, const pawl_id *after,
                      pawl_job *ret_jobs, size_t jobs_max, size_t *ret_count, pawl_err *err);
    pawl_code (*renew)(pawl_store *store, const char *worker, const pawl_renew_row *rows,
                       size_t rows_count, pawl_renewed *ret_results, pawl_err *err);
    pawl_code (*settle)(pawl_store *store, const char *worker, const pawl_settle_row *rows,
                        size_t rows_count, pawl_settled *ret_results, pawl_err *err);
    pawl_code (*release)(pawl_store *store, const char *worker, const pawl_lease *leases,
                         size_t leases_count, pawl_code *ret_codes, pawl_err *err);

    pawl_code (*reap)(pawl_store *store, pawl_reaped *ret_rows, size_t rows_max, size_t *ret_count,
                      pawl_err *err);
    pawl_code (*prune)(pawl_store *store, size_t jobs_max, size_t *ret_count, pawl_err *err);

    pawl_code (*get)(pawl_store *store, const pawl_id *id, pawl_job *ret_job, pawl_err *err);
    pawl_code (*list)(pawl_store *store, const pawl_filter *filter, const pawl_id *after,
                      pawl_job *ret_jobs, size_t jobs_max, size_t *ret_count, pawl_err *err);
    pawl_code (*attempts)(pawl_store *store, const pawl_id *id, int64_t after_no,
                          pawl_attempt *ret_rows, size_t rows_max, size_t *ret_count,
                          pawl_err *err);
    pawl_code (*leases)(pawl_store *store, const pawl_filter *filter, const pawl_id *after,
                        pawl_lease_info *ret_rows, size_t rows_max, size_t *ret_count,
                        pawl_err *err);

    pawl_code (*worker_seen)(pawl_store *store, const pawl_worker_seen *args, pawl_err *err);
    pawl_code (*worker_ended)(pawl_store *store, const char *name, pawl_err *err);
    pawl_code (*workers)(pawl_store *store, const char *after, pawl_worker *ret_rows,
                         size_t rows_max, size_t *ret_count, pawl_err *err);
    /* The same without the leases, where counting those costs more. NULL: it does not. */
    pawl_code (*presences)(pawl_store *store, const char *after, pawl_worker *ret_rows,
                           size_t rows_max, size_t *ret_count, pawl_err *err);

    pawl_code (*queue_stats)(pawl_store *store, const char *after, pawl_stats *ret_rows,
                             size_t rows_max, size_t *ret_count, pawl_err *err);
    pawl_code (*queue_get)(pawl_store *store, const char *queue, pawl_queue_settings *ret_settings,
                           pawl_err *err);
    pawl_code (*queue_set)(pawl_store *store, const char *queue,
                           const pawl_queue_settings *settings, pawl_err *err);
    pawl_code (*queue_pause)(pawl_store *store, const char *queue, bool is_paused, pawl_err *err);

    pawl_code (*cancel)(pawl_store *store, const pawl_id *ids, size_t ids_count,
                        pawl_changed *ret_results, pawl_err *err);
    pawl_code (*redrive)(pawl_store *store, const pawl_id *ids, size_t ids_count,
                         pawl_changed *ret_results, pawl_err *err);
    pawl_code (*discard)(pawl_store *store, const pawl_id *ids, size_t ids_count,
                         pawl_changed *ret_results, pawl_err *err);
    pawl_code (*cancel_where)(pawl_store *store, const pawl_filter *filter, size_t jobs_max,
                              size_t *ret_count, pawl_err *err);
    pawl_code (*redrive_where)(pawl_store *store, const pawl_filter *filter, size_t jobs_max,
                               size_t *ret_count, pawl_err *err);
    pawl_code (*discard_where)(pawl_store *store, const pawl_filter *filter, size_t jobs_max,
                               size_t *ret_count, pawl_err *err);

    pawl_code (*now)(pawl_store *store, pawl_wall *ret_now, pawl_err *err);
    pawl_code (*wait)(pawl_store *store, int64_t timeout_ms, bool *ret_hint, pawl_err *err);
    void (*wake)(pawl_store *store);

    /* Bound the calls of this handle from now on, or (below 1) as it was opened. NULL: no call of
     * this store can hang. */
    void (*limit)(pawl_store *store, int64_t call_timeout_ms);

    /* Tell whether what it is kept in is fit for it: see health.h. NULL: there is nothing to tell.
     */
    pawl_code (*health)(pawl_store *store, const struct pawli_health *health, pawl_err *err);

    /* Of one queue that is not there it gives no row: store.c does. NULL: by queue_stats. */
    pawl_code (*queue_depths)(pawl_store *store, const pawl_depth_args *args, pawl_stats *ret_rows,
                              size_t rows_max, size_t *ret_count, pawl_err *err);
    const struct pawli_worklease_ops *worklease; /* see store/worklease.h. NULL: it has none */
    const struct pawli_endpoint_ops *endpoint;   /* see store/endpoint.h. NULL: it has none */
    const struct pawli_once_ops *once;           /* see store/once.h. NULL: it has none */

    /* See store/recent.h. NULL: it is asked for each job. */
    pawl_code (*recent)(pawl_store *store, const struct pawli_recent_args *args,
                        struct pawli_recent *ret_rows, size_t rows_max, size_t *ret_count,
                        pawl_err *err);
};

struct pawli_stream;

/* The head of every handle: an implementation puts it first in its own struct. */
struct pawl_store {
    const struct pawli_store_ops *ops;
    struct pawli_store_limits limits;
    bool are_ids_minted; /* during enqueue: each id was minted for this call, so none has existed */
    struct pawli_stream
        *stream; /* of the hints that it sends (see stream.h); NULL: it sends none */
};

/* store.c: enqueue rows that were checked, and are the caller's to change: those without an id are
 * given one. */
PAWL_MUST_USE pawl_code pawli_enqueue_own(pawl_store *store, pawl_enqueue_row *rows,
                                          size_t rows_count, pawl_enqueued *ret_results,
                                          pawl_err *err);

/* The same as pawl_workers(), without a word on what they hold. */
PAWL_MUST_USE pawl_code pawli_presences(pawl_store *store, const char *after, pawl_worker *ret_rows,
                                        size_t rows_max, size_t *ret_count, pawl_err *err);

#endif

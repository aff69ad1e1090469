/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * check.h - what the verbs of pawl.h demand of their arguments. Each check gives PAWL_OK, or
 * PAWL_INVALID with the field, its value and what is allowed in `err` (which may be NULL); of a
 * batch, also the row, counted from 0.
 */
#ifndef PAWLI_STORE_CHECK_H
#define PAWLI_STORE_CHECK_H

#include "store/store.h"

/* A pointer that is needed. */
pawl_code pawli_check_given(const char *field, const void *pointer, pawl_err *err);

/* An id that is needed. */
pawl_code pawli_check_id(const char *field, const pawl_id *id, pawl_err *err);

/* A number of rows, or room for them: from 1 to PAWL_BATCH_MAX. */
pawl_code pawli_check_batch(const char *field, size_t count, pawl_err *err);

/* A page: what its rows are called, where they go, the room for them, where their number goes. */
enum pawli_page_of {
    PAWLI_PAGE_OF_JOBS, /* ret_jobs, jobs_max */
    PAWLI_PAGE_OF_ROWS  /* ret_rows, rows_max */
};
struct pawli_page {
    enum pawli_page_of of;
    const void *ret_rows;
    size_t rows_max;
    const size_t *ret_count;
};
pawl_code pawli_check_page(const struct pawli_page *page, pawl_err *err);

pawl_code pawli_check_enqueue(const struct pawli_store_limits *limits, const pawl_enqueue_row *rows,
                              size_t rows_count, pawl_err *err);

/* Queue and keys only: what an id depends on. */
pawl_code pawli_check_enqueue_key(const pawl_enqueue_row *row, pawl_err *err);

pawl_code pawli_check_claim(const pawl_claim_args *args, pawl_err *err);
pawl_code pawli_check_renew(const pawl_renew_row *rows, size_t rows_count, pawl_err *err);
pawl_code pawli_check_settle(const pawl_settle_row *rows, size_t rows_count, pawl_err *err);
pawl_code pawli_check_release(const pawl_lease *leases, size_t leases_count, pawl_err *err);
pawl_code pawli_check_ids(const pawl_id *ids, size_t ids_count, pawl_err *err);

/* `filter` may be NULL. */
pawl_code pawli_check_filter(const pawl_filter *filter, pawl_err *err);

/* A filter for a verb that can change jobs of `states`: it must be given, and name one of them. */
pawl_code pawli_check_where(const pawl_filter *filter, unsigned states, pawl_err *err);

/* Settings that this store can keep: each shard has a share of max_in_flight. */
pawl_code pawli_check_queue_set(const struct pawli_store_limits *limits,
                                const pawl_queue_settings *settings, pawl_err *err);

pawl_code pawli_check_worker_seen(const pawl_worker_seen *args, pawl_err *err);

#endif

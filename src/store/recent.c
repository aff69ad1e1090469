/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * recent.c - jobs that have changed lately: what is the same for all stores.
 * Owns:  what stands in for it in a store that does not tell them apart: a look at each job.
 * Never: changes a job.
 */
#include "store/recent.h"

#include <assert.h>
#include <string.h>

static pawl_code each(pawl_store *store, const struct pawli_recent_args *args,
                      struct pawli_recent *ret_rows, size_t *ret_count, pawl_err *err)
{
    pawl_job job;
    size_t count = 0;
    for (size_t i = 0; i < args->ids_count; i++) {
        pawl_code code = pawl_get(store, &args->ids[i], &job, err);
        if (code == PAWL_GONE)
            continue;
        if (code != PAWL_OK)
            return code;
        struct pawli_recent *row = &ret_rows[count++];
        *row = (struct pawli_recent){.job = job.id, .state = job.state};
        row->is_discarded = job.state == PAWL_FAILED && job.payload == NULL && job.payload_len > 0;
        memcpy(row->queue, job.queue, sizeof(row->queue));
        pawl_job_clear(&job);
    }
    *ret_count = count;
    return PAWL_OK;
}

pawl_code pawli_recent(pawl_store *store, const struct pawli_recent_args *args,
                       struct pawli_recent *ret_rows, size_t rows_max, size_t *ret_count,
                       pawl_err *err)
{
    assert(store != NULL);
    assert(args->ids_count <= rows_max);
    assert(args->span_ms > 0);
    return store->ops->recent != NULL
               ? store->ops->recent(store, args, ret_rows, rows_max, ret_count, err)
               : each(store, args, ret_rows, ret_count, err);
}

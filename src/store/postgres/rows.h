/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * rows.h - jobs as the SQL functions tell them, but for a claim's.
 */
#ifndef PAWLI_STORE_POSTGRES_ROWS_H
#define PAWLI_STORE_POSTGRES_ROWS_H

#include "store/postgres/postgres.h"

/* The columns of pawl.get_job(), pawl.list_jobs() and pawl.mine(), and their shape. */
#define PAWLI_PG_JOB_COLUMNS                                                                    \
    "id, queue, state, priority, retries, lost_leases, attempts, lease_version, max_retries, "  \
    "created_at, due_at, start_by, finished_at, reason, worker, claimed_at, lease_expires_at, " \
    "run_until, lease_ms, timeout_ms, is_cancel_asked, payload_len, lease_token, payload, "     \
    "ordering_key, fence, headers"
#define PAWLI_PG_JOB_SHAPE "usiiiiiiittttistttiibiuysis"

/* Copy payload or headers into a job: NULL where the cell is NULL or empty. False: no memory. */
bool pawli_pg_payload(struct pawli_pg_cell cell, pawl_job *job);
bool pawli_pg_headers(struct pawli_pg_cell cell, pawl_job *job);

/* Clear the first `count` jobs. */
void pawli_pg_clear_jobs(pawl_job *jobs, size_t count);

/* Give out the jobs of a call's one answer, which only reads. */
pawl_code pawli_pg_give_jobs(const struct pawli_pg_call *call, pawl_job *ret_jobs, size_t jobs_max,
                             size_t *ret_count, pawl_err *err);

#endif

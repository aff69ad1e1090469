/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * recent.c - jobs on PostgreSQL that have changed lately.
 * Owns:  the form of this call and of its answer.
 * Never: decides what is found (the SQL function does, by the server's clock).
 */
#include "store/recent.h"

#include "store/postgres/postgres.h"

static void read_row(const PGresult *answer, int at, struct pawli_recent *ret_row)
{
    *ret_row = (struct pawli_recent){.state = PAWL_READY};
    pawli_pg_uuid((struct pawli_pg_cell){answer, at, 0}, ret_row->job.bytes);
    pawli_pg_text((struct pawli_pg_cell){answer, at, 1}, ret_row->queue, sizeof(ret_row->queue));
    ret_row->state = (pawl_state)pawli_pg_int((struct pawli_pg_cell){answer, at, 2});
    ret_row->is_discarded = pawli_pg_bool((struct pawli_pg_cell){answer, at, 3});
}

pawl_code pawli_pg_recent(pawl_store *store, const struct pawli_recent_args *args,
                          struct pawli_recent *ret_rows, size_t rows_max, size_t *ret_count,
                          pawl_err *err)
{
    struct pawli_pg_call call = {.handle = pawli_pg_handle_of(store), .is_read = true};
    struct pawli_pg_args *put = pawli_pg_call_add(
        &call, "select id, queue, state, is_discarded from pawl.list_recent($1, $2, $3)");
    pawli_pg_arg_int8(put, args->span_ms);
    if (args->ids_count == 0) {
        pawli_pg_arg_array_null(put, PAWLI_PG_UUID);
    } else {
        pawli_pg_array_begin(put, PAWLI_PG_UUID, args->ids_count);
        for (size_t i = 0; i < args->ids_count; i++)
            pawli_pg_item_uuid(put, args->ids[i].bytes);
        pawli_pg_array_end(put);
    }
    pawli_pg_arg_int4(put, (int64_t)rows_max);
    pawl_code rc = pawli_pg_call_run(&call, "usib", err);
    size_t count = rc == PAWL_OK ? (size_t)PQntuples(call.answers[0]) : 0;
    if (count > rows_max)
        rc = pawli_pg_call_spoilt(&call, err);
    for (size_t i = 0; rc == PAWL_OK && i < count; i++)
        read_row(call.answers[0], (int)i, &ret_rows[i]);
    if (rc == PAWL_OK)
        *ret_count = count;
    pawli_pg_call_clear(&call);
    return rc;
}

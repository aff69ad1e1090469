/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * once.c - keys of requests on PostgreSQL.
 * Owns:  the form of these calls and of their answers.
 * Never: judges a key (the SQL functions do, by the server's clock).
 */
#include "store/once.h"

#include "base/error.h"
#include "store/postgres/postgres.h"

#include <stdlib.h>
#include <string.h>

static pawl_code read_found(struct pawli_pg_call *call, struct pawli_once_found *ret_found,
                            pawl_err *err)
{
    const PGresult *result = call->answers[0];
    const struct pawli_pg_cell kept = {result, 0, 3};
    if (PQntuples(result) != 1)
        return pawli_pg_call_spoilt(call, err);
    int64_t state = pawli_pg_int((struct pawli_pg_cell){result, 0, 0});
    if (state < PAWLI_ONCE_NEW || state > PAWLI_ONCE_OTHER)
        return pawli_pg_call_spoilt(call, err);
    struct pawli_once_found found = {
        .state = (enum pawli_once_state)state,
        .seed = pawli_pg_int((struct pawli_pg_cell){result, 0, 1}),
        .at = pawli_pg_wall((struct pawli_pg_cell){result, 0, 2}),
    };
    if (found.state == PAWLI_ONCE_DONE) {
        found.answer_len = pawli_pg_len(kept);
        found.answer = malloc(found.answer_len + 1);
        if (found.answer == NULL)
            return pawli_fail_plain(err, PAWL_NO_MEMORY);
        if (found.answer_len > 0)
            memcpy(found.answer, pawli_pg_bytes(kept), found.answer_len);
    }
    *ret_found = found;
    return PAWL_OK;
}

static pawl_code begin(pawl_store *store, const struct pawli_once_args *args,
                       struct pawli_once_found *ret_found, pawl_err *err)
{
    struct pawli_pg_call call = {.handle = pawli_pg_handle_of(store)};
    struct pawli_pg_args *put = pawli_pg_call_add(
        &call, "select state, first_seed, first_at, kept from pawl.once_begin($1, $2, $3, $4, $5)");
    pawli_pg_arg_bytes(put, args->key, sizeof(args->key));
    pawli_pg_arg_bytes(put, args->digest, sizeof(args->digest));
    pawli_pg_arg_int8(put, args->seed);
    pawli_pg_arg_int8(put, args->keep_ms);
    pawli_pg_arg_int8(put, args->hold_ms);
    pawl_code rc = pawli_pg_call_run(&call, "iity", err);
    if (rc == PAWL_OK)
        rc = read_found(&call, ret_found, err);
    pawli_pg_call_clear(&call);
    return rc;
}

static pawl_code end_key(pawl_store *store, const struct pawli_once_end *end, pawl_err *err)
{
    struct pawli_pg_call call = {.handle = pawli_pg_handle_of(store)};
    struct pawli_pg_args *put = pawli_pg_call_add(&call, "select 0 from pawl.once_end($1, $2, $3)");
    pawli_pg_arg_bytes(put, end->key, sizeof(end->key));
    pawli_pg_arg_int4(put, end->how);
    pawli_pg_arg_bytes(put, end->answer_len > 0 ? end->answer : "", end->answer_len);
    pawl_code rc = pawli_pg_call_run(&call, "i", err);
    pawli_pg_call_clear(&call);
    return rc;
}

const struct pawli_once_ops pawli_pg_once_ops = {.begin = begin, .end = end_key};

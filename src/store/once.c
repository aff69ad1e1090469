/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * once.c - keys of requests that are to be carried out once: what is the same for all stores.
 * Owns:  what is said of a store without them.
 * Never: looks into an answer.
 */
#include "store/once.h"

#include "base/error.h"

#include <assert.h>

static pawl_code check(const pawl_store *store, pawl_err *err)
{
    if (store->ops->once != NULL)
        return PAWL_OK;
    return pawli_fail(err, PAWL_INVALID, "store: it has no memory of keys of requests");
}

pawl_code pawli_once_begin(pawl_store *store, const struct pawli_once_args *args,
                           struct pawli_once_found *ret_found, pawl_err *err)
{
    assert(store != NULL);
    assert(args->keep_ms > 0 && args->hold_ms > 0);
    pawl_code code = check(store, err);
    return code == PAWL_OK ? store->ops->once->begin(store, args, ret_found, err) : code;
}

pawl_code pawli_once_end(pawl_store *store, const struct pawli_once_end *end, pawl_err *err)
{
    assert(store != NULL);
    assert(end->answer_len <= PAWLI_ONCE_ANSWER_MAX);
    pawl_code code = check(store, err);
    return code == PAWL_OK ? store->ops->once->end(store, end, err) : code;
}

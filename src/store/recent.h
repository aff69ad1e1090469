/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * recent.h - the part of the port for those who watch what others do: which jobs have changed
 * lately, by what the store finds without a look at all of them.
 */
#ifndef PAWLI_STORE_RECENT_H
#define PAWLI_STORE_RECENT_H

#include "store/store.h"

struct pawli_recent_args {
    int64_t span_ms;    /* how far back */
    const pawl_id *ids; /* jobs to be told of in any case */
    size_t ids_count;
};

/* A job as it is now. */
struct pawli_recent {
    pawl_id job;
    char queue[PAWL_NAME_MAX + 1];
    pawl_state state;
    bool is_discarded; /* Failed, and its payload is gone */
};

/*
 * Jobs of `ids` that are known; then those that have ended, and live ones that were added, within
 * the last span by the store's clock. (Where the store finds new jobs by their ids: by the time in
 * these, so that one whose id does not begin with its time is not found.) A job may come twice.
 * Where *ret_count equals rows_max there may be more. A store that does not keep them so gives
 * those of `ids` alone. Changes nothing.
 */
PAWL_MUST_USE pawl_code pawli_recent(pawl_store *store, const struct pawli_recent_args *args,
                                     struct pawli_recent *ret_rows, size_t rows_max,
                                     size_t *ret_count, pawl_err *err);

#endif

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * worklease.h - the part of the port for work leases. The contracts are those of pawl/worklease.h;
 * worklease.c checks the arguments and fills in the defaults, for all stores.
 */
#ifndef PAWLI_STORE_WORKLEASE_H
#define PAWLI_STORE_WORKLEASE_H

#include "pawl/worklease.h"
#include "store/store.h"

struct pawli_worklease_ops {
    pawl_code (*try_acquire)(pawl_store *store, const pawl_worklease_acquire *args,
                             pawl_worklease_acquired *ret_acquired, pawl_err *err);
    pawl_code (*succeed)(pawl_store *store, const pawl_worklease_hold *hold,
                         pawl_worklease_ended *ret_ended, pawl_err *err);
    pawl_code (*fail)(pawl_store *store, const pawl_worklease_hold *hold, int64_t max_retries,
                      pawl_worklease_ended *ret_ended, pawl_err *err);
    pawl_code (*renew)(pawl_store *store, const pawl_worklease_hold *hold, int64_t lease_ms,
                       pawl_wall *ret_expires_at, pawl_err *err);

    pawl_code (*get)(pawl_store *store, const char *domain, pawl_worklease_info *ret_info,
                     pawl_err *err);
    pawl_code (*domains)(pawl_store *store, const char *after, pawl_worklease_info *ret_rows,
                         size_t rows_max, size_t *ret_count, pawl_err *err);
    pawl_code (*backlog)(pawl_store *store, const pawl_worklease_page *page, int64_t *ret_rows,
                         size_t rows_max, size_t *ret_count, pawl_err *err);
    pawl_code (*terminal)(pawl_store *store, const pawl_worklease_page *page,
                          pawl_worklease_interval *ret_rows, size_t rows_max, size_t *ret_count,
                          pawl_err *err);
};

/* What to say of a domain that nobody has asked for. */
pawl_code pawli_worklease_gone(const char *domain, pawl_err *err);

#endif

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * link.h - one thread's way to the store: a handle that is opened when it is first needed, and
 * again after it broke.
 */
#ifndef PAWLI_RUNTIME_LINK_H
#define PAWLI_RUNTIME_LINK_H

#include "pawl/worker.h"

/* One thread uses it. Zeroed but for opener and role: no handle yet. */
struct pawli_link {
    const pawl_opener *opener; /* borrowed */
    pawl_role role;
    pawl_store *store; /* NULL: none now */
};

/*
 * Have a handle whose calls take `limit_ms` at most (PAWL_DEFAULT: as long as it was opened for).
 * PAWL_OK: link->store is it. Anything else: there is none now, and nothing was done.
 */
pawl_code pawli_link_ready(struct pawli_link *link, int64_t limit_ms, pawl_err *err);

/* A call on the handle ended with `code`: one that broke is closed. Gives `code`. */
pawl_code pawli_link_after(struct pawli_link *link, pawl_code code);

void pawli_link_close(struct pawli_link *link);

#endif

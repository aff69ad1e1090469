/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * link.c - one thread's way to the store.
 * Owns:  a handle: when it is opened, and when it is closed.
 * Never: tries twice (whoever calls has his own pace); is used by two threads.
 */
#include "runtime/link.h"

#include <assert.h>

pawl_code pawli_link_ready(struct pawli_link *link, int64_t limit_ms, pawl_err *err)
{
    if (link->store == NULL) {
        pawl_code code = link->opener->open(link->opener->user, link->role, &link->store, err);
        if (code != PAWL_OK) {
            link->store = NULL;
            /* Nothing was asked of the store, whatever the opener calls it. */
            return code == PAWL_NO_MEMORY ? code : PAWL_DOWN;
        }
        assert(link->store != NULL);
    }
    pawl_store_limit(link->store, limit_ms);
    return PAWL_OK;
}

pawl_code pawli_link_after(struct pawli_link *link, pawl_code code)
{
    if (code == PAWL_BROKEN)
        pawli_link_close(link);
    return code;
}

void pawli_link_close(struct pawli_link *link)
{
    pawl_store_close(link->store);
    link->store = NULL;
}

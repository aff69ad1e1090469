/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * deaths.h - which workers have ended without a word (RULE-020-052): those whose presence row was
 * not refreshed for three times as long as it should have been.
 */
#ifndef PAWLI_RUNTIME_DEATHS_H
#define PAWLI_RUNTIME_DEATHS_H

#include "runtime/watch.h"

#define PAWLI_LOSERS_MAX 256 /* workers whose lost leases are counted */

/* How many leases of a worker were recovered here. */
struct pawli_loser {
    char name[PAWL_NAME_MAX + 1];
    int64_t leases;
};

/* Zeroed: nobody lost anything. */
struct pawli_deaths {
    struct pawli_loser losers[PAWLI_LOSERS_MAX]; /* a ring: the oldest gives way */
    size_t count;                                /* ever */
};

/* A lease of a worker was recovered. */
void pawli_deaths_lost(struct pawli_deaths *deaths, const char *worker);

struct pawli_deaths_args {
    int64_t stale_ms;       /* a row that is older than this is of a dead one */
    const char *own_name;   /* whoever asks is alive, however late its own row is */
    const char *own_worker; /* likewise; may be empty */
    struct pawli_watch *watch;
};

/*
 * Look through the presence rows: each worker that is dead is reported to the watcher, and its row
 * taken away, so that it is reported once (twice, where two look at the same time). Blocks for a
 * few round trips. Codes of pawl_workers().
 */
pawl_code pawli_deaths_report(struct pawli_deaths *deaths, pawl_store *store,
                              const struct pawli_deaths_args *args, pawl_err *err);

#endif

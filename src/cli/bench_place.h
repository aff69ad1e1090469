/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * bench_place.h - where `pawl bench` measures: a place on the same server, or on the same disk, as
 * the store that it was told, and nothing of that store itself.
 */
#ifndef PAWLI_CLI_BENCH_PLACE_H
#define PAWLI_CLI_BENCH_PLACE_H

#include "store/throwaway.h"

#include <limits.h>

#define PAWLI_BENCH_URL_MAX (PATH_MAX + 16)

/* Zeroed: none. */
struct pawli_bench_place {
    const char *kind;              /* "PostgreSQL", "SQLite", "memory"; constant */
    char url[PAWLI_BENCH_URL_MAX]; /* of what is no server */
    char folder[PATH_MAX];         /* of a file, made for it; empty: none */
    struct pawli_throwaway database;
};

/*
 * Make it. `url` is the store's; NULL: none is named. `folder` is where a file goes, NULL: beside
 * the one that the URL names. PAWL_INVALID, PAWL_DOWN: nothing is left behind.
 */
pawl_code pawli_bench_place_make(const char *url, const char *folder,
                                 struct pawli_bench_place *ret_place, pawl_err *err);

/* What opens it. */
const char *pawli_bench_place_url(const struct pawli_bench_place *place);

/* Remove all of it; every handle must be closed. `url` as above. Otherwise err->text says what is
 * left. */
pawl_code pawli_bench_place_remove(const char *url, struct pawli_bench_place *place, pawl_err *err);

#endif

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * postgres_kind.h - the PostgreSQL store as the suite sees it: straight, through PgBouncer, and
 * with a clock that stands still.
 */
#ifndef PAWLT_STORE_POSTGRES_KIND_H
#define PAWLT_STORE_POSTGRES_KIND_H

#include "store/store_under_test.h"
#include "support/pg_server.h"

extern const struct store_kind postgres_kind;
extern const struct store_kind pooled_kind; /* PgBouncer in transaction mode stands between */

/* The same functions, but what they call for the time is a clock of the test's: so that a case can
 * stand exactly on a deadline, and two stores can be compared to the microsecond. */
extern const struct store_kind exact_postgres_kind;

/* Start the server, and for pooled_kind the pooler. False: standard error says why. */
bool postgres_kind_begin(bool is_pooled);
void postgres_kind_end(void);

/* A connection string for the store's database, as its superuser. Gives `text`. */
const char *postgres_kind_conninfo(const struct place *place, char text[PG_PATH_MAX]);

/* Before an exact store is made: every delay that it would draw is the longest one. */
void postgres_kind_leave_out_chance(void);

#endif

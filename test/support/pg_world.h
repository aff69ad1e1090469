/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * pg_world.h - a server with one migrated database, and what tests of the PostgreSQL store ask of
 * it behind the store's back. Each of these functions fails the test where it cannot be done.
 */
#ifndef PAWLT_PG_WORLD_H
#define PAWLT_PG_WORLD_H

#include "pawl/pawl.h"
#include "support/pg_server.h"

#define PG_WORLD_DATABASE "pawl"

/* Start a server and set up its database. False: standard error says why. */
bool pg_world_begin(struct pg_server *server, bool is_durable, int64_t shards);

/* A handle by a connection string; NULL: as the worker, straight to the database. */
pawl_store *pg_world_open(const struct pg_server *server, const char *conninfo,
                          int64_t call_timeout_ms);

/* One number that a query of the superuser gives. */
int64_t pg_world_number(const struct pg_server *server, const char *sql);

/* Ask until the query gives something else than 0, for up to 20 s. Gives the last answer. */
int64_t pg_world_await(const struct pg_server *server, const char *sql);

/* A session of the superuser's that holds an open transaction, after `sql`. */
void *pg_world_hold(const struct pg_server *server, const char *sql);
void pg_world_let_go(void *session); /* rolls it back */

#endif

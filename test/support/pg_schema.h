/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * pg_schema.h - a database of a test's server with the schema of Pawl, set up as docs/operating.md
 * says: by an owner who is no superuser, for a worker who has the runtime role and nothing else.
 */
#ifndef PAWLT_PG_SCHEMA_H
#define PAWLT_PG_SCHEMA_H

#include "pawl/pawl.h"
#include "support/pg_server.h"

#define PG_OWNER   "pawl_owner"
#define PG_RUNTIME "pawl_runtime" /* cannot log in */
#define PG_READER  "pawl_reader"  /* likewise */
#define PG_WORKER  "pawl_worker"  /* logs in, and is a member of PG_RUNTIME */

/* Make the roles where they are missing. */
bool pg_schema_roles(const struct pg_server *server);

/* Make a database and set it up. False: standard error says why. */
bool pg_schema_make(const struct pg_server *server, const char *database, int64_t shards);

/* A connection string for the worker. Gives `text`. */
const char *pg_schema_conninfo(const struct pg_server *server, const char *database,
                               char text[PG_PATH_MAX]);

#endif

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * throwaway.h - a database of its own on somebody's PostgreSQL server, for measurements: made, and
 * dropped again. A database, since the schema of Pawl has a fixed name: a second one beside a
 * schema that is in use must be in another database.
 */
#ifndef PAWLI_STORE_THROWAWAY_H
#define PAWLI_STORE_THROWAWAY_H

#include "pawl/pawl.h"

#define PAWLI_THROWAWAY_NAME_MAX 64

/* Zeroed: none. */
struct pawli_throwaway {
    char name[PAWLI_THROWAWAY_NAME_MAX]; /* of the database; empty: there is none */
    char *conninfo;                      /* of it; owned. Never told: it may hold a password */
};

/*
 * Make an empty database on the server that `conninfo` (as of pawl_postgres_options) names. Blocks.
 * PAWL_INVALID: the role may not, or the connection string cannot be read. PAWL_DOWN: the server
 * cannot be reached. PAWL_NO_MEMORY.
 */
pawl_code pawli_throwaway_make(const char *conninfo, struct pawli_throwaway *ret_throwaway,
                               pawl_err *err);

/* Drop it, whoever is connected to it, and free what it holds. `conninfo` as above. PAWL_OK where
 * there is none; otherwise err->text names the database, which is still there. */
pawl_code pawli_throwaway_drop(const char *conninfo, struct pawli_throwaway *throwaway,
                               pawl_err *err);

#endif

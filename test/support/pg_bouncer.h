/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * pg_bouncer.h - PgBouncer in transaction mode in front of a server of the test's own, on a Unix
 * socket in the server's folder.
 */
#ifndef PAWLT_PG_BOUNCER_H
#define PAWLT_PG_BOUNCER_H

#include "support/pg_server.h"

#define PG_BOUNCER_PORT 6432 /* part of the socket's name */

struct pg_bouncer {
    char folder[PG_FOLDER_MAX]; /* the server's */
    pid_t pid;                  /* 0: not running */
};

/* Start it. False where it cannot be; standard error then says why. */
bool pg_bouncer_start(struct pg_bouncer *bouncer, const struct pg_server *server);

/* End it. Accepts one that was never started (zeroed). */
void pg_bouncer_stop(struct pg_bouncer *bouncer);

/* A connection string for a database behind it. Gives `text`. */
const char *pg_bouncer_conninfo(const struct pg_bouncer *bouncer, const char *database,
                                char text[PG_PATH_MAX]);

#endif

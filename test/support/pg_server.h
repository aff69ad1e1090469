/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * pg_server.h - a real PostgreSQL server of a test's own, on a Unix socket in a temporary folder.
 *
 * The programs of the server are found in PAWLT_PG_BIN, else where Debian has them. A cluster is
 * made once per build folder (PAWLT_PG_TEMPLATE, set by Meson) and copied. Root starts the server
 * as the user postgres. Where there is no server, the test fails: it is never skipped.
 */
#ifndef PAWLT_PG_SERVER_H
#define PAWLT_PG_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define PG_PATH_MAX   256
#define PG_FOLDER_MAX 100
#define PG_PORT       5432 /* only part of the socket's name: nothing listens on the network */

struct pg_server {
    char folder[PG_FOLDER_MAX]; /* holds the socket, the data and the logs */
    char bin[PG_PATH_MAX];
    bool is_durable; /* fsync is on: for tests that kill the server */
    pid_t pid;       /* of the postmaster; 0: not running */
};

/* Start a server. False where it cannot be; standard error then says why. */
bool pg_server_start(struct pg_server *server, bool is_durable);

/* End it: in order, at once without a word to the data files, or as a power failure would. It can
 * be started again on the same data. */
void pg_server_stop(struct pg_server *server);
void pg_server_stop_at_once(struct pg_server *server);
void pg_server_kill(struct pg_server *server);
bool pg_server_restart(struct pg_server *server);

/* End it and remove all of it. Accepts a server that was never started (zeroed). */
void pg_server_remove(struct pg_server *server);

/* A connection string for a database of the server, as its superuser. Gives `text`. */
const char *pg_server_conninfo(const struct pg_server *server, const char *database,
                               char text[PG_PATH_MAX]);

/* The same as another role. */
const char *pg_server_conninfo_as(const struct pg_server *server, const char *user,
                                  const char *database, char text[PG_PATH_MAX]);

/* Run SQL as the superuser; complain to standard error and give false where it fails. */
bool pg_server_run(const struct pg_server *server, const char *database, const char *sql);

/* Start a program as the server's user, its output going to `log`. Gives its process, or -1. It is
 * ended with the test program. */
pid_t pg_spawn(const char *const *argv, const char *log);

/* Wait until a program that was spawned has ended. True where it ended well. */
bool pg_wait_for(pid_t pid);

/* Give a path to the server's user. */
bool pg_hand_over(const char *path);

#endif

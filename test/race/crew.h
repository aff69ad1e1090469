/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * crew.h - many sessions at once on a PostgreSQL server of their own: what the stress programs
 * share.
 */
#ifndef PAWLT_RACE_CREW_H
#define PAWLT_RACE_CREW_H

#include "support/pg_server.h"

#include <libpq-fe.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#define CREW_SQL_MAX (1 << 14)

struct crew {
    struct pg_server server;
    atomic_int faults;
    struct timespec end;
};

/* One session, for one thread. */
struct actor {
    struct crew *crew;
    void *play; /* the program's own */
    PGconn *conn;
    unsigned random;
    int number;
    char *sql; /* CREW_SQL_MAX, for the program to write into */
    pthread_t thread;
};

/* Start the server and install Pawl with one shard; then run the SQL of a file (NULL: none): that
 * is how a function is broken to see a program fail. */
bool crew_install(struct crew *crew, const char *more_file);

/* False: no connection, or no memory. To be closed in either case. */
bool crew_open(struct crew *crew, struct actor *actor, int number);
void crew_close(struct actor *actor);

/* Something is wrong: say it, and count it. */
void crew_complain(struct crew *crew, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

unsigned crew_below(struct actor *actor, unsigned limit);

/* Part of the load: transactions that stay open. */
void crew_pause_ms(unsigned ms);

void crew_set_end(struct crew *crew, long seconds);
bool crew_is_time_up(const struct crew *crew);

/* Run a statement. NULL where it was refused for now (class 40: it is to be run again). */
PGresult *crew_ask(struct actor *actor, const char *sql);
bool crew_run(struct actor *actor, const char *sql);

/* Add ", '{...}'::TYPE[]" to actor->sql: a column of jobs. */
void crew_add_column(struct actor *actor, const PGresult *jobs, int column, const char *type);

/* Complain where a statement gives another number than 0. */
void crew_expect_none(struct actor *actor, const char *what, const char *sql);

#endif

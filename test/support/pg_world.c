/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * pg_world.c - a server with one migrated database.
 * Owns:  the superuser's sessions that a test asks through.
 * Never: changes a job but where the test says so in SQL.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/pg_world.h"

#include "support/pg_schema.h"

#include <libpq-fe.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#define AWAIT_TRIES    1000
#define AWAIT_PAUSE_MS 20

bool pg_world_begin(struct pg_server *server, bool is_durable, int64_t shards)
{
    return pg_server_start(server, is_durable) && pg_schema_make(server, PG_WORLD_DATABASE, shards);
}

pawl_store *pg_world_open(const struct pg_server *server, const char *conninfo,
                          int64_t call_timeout_ms)
{
    char own[PG_PATH_MAX];
    pawl_postgres_options options;
    pawl_store *store = NULL;
    pawl_err err;
    pawl_postgres_options_init(&options);
    options.conninfo = conninfo != NULL ? conninfo
                                        : pg_schema_conninfo(server, PG_WORLD_DATABASE, own);
    options.call_timeout_ms = call_timeout_ms;
    if (pawl_postgres_open(&options, &store, &err) != PAWL_OK)
        fail_msg("open: %s", err.text);
    return store;
}

static PGconn *connect_world(const struct pg_server *server)
{
    char conninfo[PG_PATH_MAX];
    PGconn *conn = PQconnectdb(pg_server_conninfo(server, PG_WORLD_DATABASE, conninfo));
    if (PQstatus(conn) != CONNECTION_OK)
        fail_msg("%s", PQerrorMessage(conn));
    return conn;
}

int64_t pg_world_number(const struct pg_server *server, const char *sql)
{
    PGconn *conn = connect_world(server);
    PGresult *result = PQexec(conn, sql);
    if (PQresultStatus(result) != PGRES_TUPLES_OK || PQntuples(result) != 1)
        fail_msg("%s: %s", sql, PQerrorMessage(conn));
    int64_t number = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    PQfinish(conn);
    return number;
}

int64_t pg_world_await(const struct pg_server *server, const char *sql)
{
    int64_t number = 0;
    for (int i = 0; i < AWAIT_TRIES && number == 0; i++) {
        number = pg_world_number(server, sql);
        if (number == 0)
            (void)poll(NULL, 0, AWAIT_PAUSE_MS); /* another process: nothing tells us */
    }
    return number;
}

void *pg_world_hold(const struct pg_server *server, const char *sql)
{
    PGconn *conn = connect_world(server);
    PQclear(PQexec(conn, "begin"));
    PGresult *result = PQexec(conn, sql);
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(conn));
    PQclear(result);
    return conn;
}

void pg_world_let_go(void *session)
{
    PQfinish(session);
}

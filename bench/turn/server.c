/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * server.c - what only a PostgreSQL server knows: its log's position, statistics, old transactions.
 * Owns:  a connection for each of these.
 * Never: is used while a turn is measured.
 */
#include "bare.h"
#include "turn.h"

#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>

bool turn_is_postgres(const struct turn *turn)
{
    return turn->store != NULL && strncmp(turn->store, "postgres", strlen("postgres")) == 0;
}

bool turn_sql(const struct turn *turn, const char *sql)
{
    PGconn *conn = PQconnectdb(turn->store);
    bool is_done = bare_run(conn, sql);
    PQfinish(conn);
    return is_done;
}

/* A number that the server knows; below 0: it does not. */
static double ask(const struct turn *turn, const char *sql)
{
    double number = -1;
    if (!turn_is_postgres(turn))
        return number;
    PGconn *conn = PQconnectdb(turn->store);
    PGresult *result = PQexec(conn, sql);
    if (PQresultStatus(result) == PGRES_TUPLES_OK)
        number = strtod(PQgetvalue(result, 0, 0), NULL);
    PQclear(result);
    PQfinish(conn);
    return number;
}

double turn_wal(const struct turn *turn)
{
    return ask(turn, "select pg_current_wal_insert_lsn() - '0/0'::pg_lsn");
}

double turn_statements(const struct turn *turn)
{
    return ask(turn, "select sum(calls) from pg_stat_statements s, pg_database d "
                     "where s.dbid = d.oid and d.datname = current_database()");
}

void *turn_old_transaction(const struct turn *turn, bool *ret_ok)
{
    *ret_ok = true;
    if (turn->old_transaction == 0)
        return NULL;
    PGconn *conn = PQconnectdb(turn->store);
    *ret_ok = bare_run(conn, "begin isolation level repeatable read") &&
              bare_run(conn, "select pg_current_xact_id()");
    return conn;
}

void turn_end_transaction(void *transaction)
{
    if (transaction != NULL)
        PQfinish(transaction);
}

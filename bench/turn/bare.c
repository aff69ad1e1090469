/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * bare.c - what all bare candidates on PostgreSQL need: connections, statements, arguments.
 * Owns:  the settings of their connections.
 * Never: checks more than that the server was content.
 */
#include "bare.h"

#include <stdlib.h>
#include <string.h>

#define ARGS_MAX 8

/* As those on the store's functions: bare SQL has the same good plans. */
#define SETTINGS                                                                               \
    "set jit = off; set enable_sort = off; set enable_seqscan = off; set enable_bitmapscan = " \
    "off; set plan_cache_mode = force_generic_plan"

void bare_put_int4(char *bytes, int32_t number)
{
    for (int i = 0; i < 4; i++)
        bytes[i] = (char)((uint32_t)number >> (24 - 8 * i));
}

void bare_put_int8(char *bytes, int64_t number)
{
    for (int i = 0; i < 8; i++)
        bytes[i] = (char)((uint64_t)number >> (56 - 8 * i));
}

int64_t bare_get_int8(const char *bytes)
{
    uint64_t number = 0;
    for (int i = 0; i < 8; i++)
        number = number << 8 | (uint8_t)bytes[i];
    return (int64_t)number;
}

void bare_id(int64_t number, char id[ID_LEN])
{
    const pawl_random *random = pawl_random_system();
    bare_put_int8(id, INT64_C(0x0190000000007000) + (number << 16));
    bare_put_int8(id + 8, (int64_t)random->next(random->user));
}

bool bare_run(PGconn *conn, const char *sql)
{
    PGresult *result = PQexec(conn, sql);
    ExecStatusType status = PQresultStatus(result);
    bool is_done = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
    if (!is_done)
        (void)turn_fail(sql, PQerrorMessage(conn));
    PQclear(result);
    return is_done;
}

PGconn *bare_connect(const struct turn *turn)
{
    PGconn *conn = PQconnectdb(turn->store);
    if (bare_run(conn, SETTINGS))
        return conn;
    PQfinish(conn);
    return NULL;
}

bool bare_prepare(PGconn *conn, const char *name, const char *sql)
{
    PGresult *result = PQprepare(conn, name, sql, 0, NULL);
    bool is_done = PQresultStatus(result) == PGRES_COMMAND_OK;
    if (!is_done)
        (void)turn_fail(sql, PQerrorMessage(conn));
    PQclear(result);
    return is_done;
}

PGresult *bare_call(PGconn *conn, const char *name, const struct bare_arg *args, int args_count)
{
    const char *values[ARGS_MAX];
    int lengths[ARGS_MAX], formats[ARGS_MAX];
    for (int i = 0; i < args_count; i++) {
        values[i] = args[i].bytes;
        lengths[i] = args[i].length;
        formats[i] = 1;
    }
    PGresult *result = PQexecPrepared(conn, name, args_count, values, lengths, formats, 1);
    ExecStatusType status = PQresultStatus(result);
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK)
        return result;
    (void)turn_fail(name, PQerrorMessage(conn));
    PQclear(result);
    return NULL;
}

int64_t bare_line(const struct turn *turn, PGconn *conn)
{
    (void)turn;
    PGresult *result = PQexec(conn, "select pawl.queue_id('" QUEUE "') * 4096");
    int64_t line = -1;
    if (PQresultStatus(result) == PGRES_TUPLES_OK)
        line = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
    else
        (void)turn_fail("the line", PQerrorMessage(conn));
    PQclear(result);
    return line;
}

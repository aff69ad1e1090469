/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * crew.c - many sessions at once on a PostgreSQL server of their own.
 * Owns:  the server, the sessions, the count of what went wrong.
 * Never: knows what the sessions are there to prove.
 */
#include "race/crew.h"

#include "store/postgres/steps.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DATABASE "stress"

bool crew_install(struct crew *crew, const char *more_file)
{
    if (!pg_server_start(&crew->server, false) ||
        !pg_server_run(&crew->server, "postgres", "create database " DATABASE))
        return false;
    for (size_t i = 0; i < pawli_pg_steps_count; i++)
        if (!pg_server_run(&crew->server, DATABASE, pawli_pg_steps[i].sql))
            return false;
    if (!pg_server_run(&crew->server, DATABASE, "select pawl.install(1)"))
        return false;
    char more[CREW_SQL_MAX] = "";
    FILE *file = more_file != NULL ? fopen(more_file, "r") : NULL;
    if (more_file != NULL && file == NULL)
        return false;
    if (file == NULL)
        return true;
    size_t length = fread(more, 1, sizeof(more) - 1, file);
    (void)fclose(file);
    return length > 0 && pg_server_run(&crew->server, DATABASE, more);
}

bool crew_open(struct crew *crew, struct actor *actor, int number)
{
    char text[PG_PATH_MAX];
    *actor = (struct actor){.crew = crew, .number = number};
    actor->random = (unsigned)getpid() * 7919u + (unsigned)number * 104729u;
    actor->conn = PQconnectdb(pg_server_conninfo(&crew->server, DATABASE, text));
    actor->sql = malloc(CREW_SQL_MAX);
    return actor->sql != NULL && PQstatus(actor->conn) == CONNECTION_OK;
}

void crew_close(struct actor *actor)
{
    PQfinish(actor->conn);
    free(actor->sql);
}

void crew_complain(struct crew *crew, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    va_end(args);
    (void)fputc('\n', stderr);
    atomic_fetch_add(&crew->faults, 1);
}

unsigned crew_below(struct actor *actor, unsigned limit)
{
    actor->random = actor->random * 1664525u + 1013904223u;
    return (actor->random >> 8) % limit;
}

void crew_pause_ms(unsigned ms)
{
    (void)poll(NULL, 0, (int)ms);
}

void crew_set_end(struct crew *crew, long seconds)
{
    (void)clock_gettime(CLOCK_MONOTONIC, &crew->end);
    crew->end.tv_sec += seconds;
}

bool crew_is_time_up(const struct crew *crew)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec > crew->end.tv_sec;
}

PGresult *crew_ask(struct actor *actor, const char *sql)
{
    PGresult *answer = PQexec(actor->conn, sql);
    ExecStatusType status = PQresultStatus(answer);
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK)
        return answer;
    const char *sqlstate = PQresultErrorField(answer, PG_DIAG_SQLSTATE);
    if (sqlstate == NULL || strncmp(sqlstate, "40", 2) != 0)
        crew_complain(actor->crew, "%.80s: %s", sql, PQerrorMessage(actor->conn));
    PQclear(answer);
    return NULL;
}

bool crew_run(struct actor *actor, const char *sql)
{
    PGresult *answer = crew_ask(actor, sql);
    PQclear(answer);
    return answer != NULL;
}

void crew_add_column(struct actor *actor, const PGresult *jobs, int column, const char *type)
{
    char *sql = actor->sql;
    size_t at = strlen(sql);
    at += (size_t)snprintf(sql + at, CREW_SQL_MAX - at, ", '{");
    for (int i = 0; i < PQntuples(jobs); i++)
        at += (size_t)snprintf(sql + at, CREW_SQL_MAX - at, "%s\"%s\"", i > 0 ? "," : "",
                               PQgetvalue(jobs, i, column));
    (void)snprintf(sql + at, CREW_SQL_MAX - at, "}'::%s[]", type);
}

void crew_expect_none(struct actor *actor, const char *what, const char *sql)
{
    PGresult *answer = crew_ask(actor, sql);
    if (answer == NULL || strtol(PQgetvalue(answer, 0, 0), NULL, 10) != 0)
        crew_complain(actor->crew, "%s: %s", what, answer != NULL ? PQgetvalue(answer, 0, 0) : "?");
    PQclear(answer);
}

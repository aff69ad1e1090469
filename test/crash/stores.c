/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * stores.c - the durable stores that are crashed.
 * Owns:  a PostgreSQL server with fsync on, and ways to break it; a file for SQLite.
 * Never: touches a job.
 */
#include "crash/crash.h"

#include "support/pg_schema.h"

#include <libpq-fe.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define DATABASE        "pawl"
#define CALL_TIMEOUT_MS 4000
#define BACK_TRIES      1200
#define BACK_PAUSE_MS   50
#define NOTICE_TRIES    100 /* of the same pause */

/* ---------------------------------------------------------------- PostgreSQL */

/* The program's own server. Changed only by its one thread. */
static struct pg_server server;

/* Clients get the runtime role and nothing else. */
static bool postgres_begin(const char *folder, char where[PEN_PATH_MAX])
{
    char conninfo[PG_PATH_MAX];
    (void)folder; /* the server has one of its own */
    if (!pg_server_start(&server, true) || !pg_schema_make(&server, DATABASE, 1))
        return false;
    (void)snprintf(where, PEN_PATH_MAX, "%s", pg_schema_conninfo(&server, DATABASE, conninfo));
    return true;
}

static pawl_store *postgres_open(const char *where)
{
    pawl_postgres_options options;
    pawl_store *store = NULL;
    pawl_postgres_options_init(&options);
    options.conninfo = where;
    options.call_timeout_ms = CALL_TIMEOUT_MS;
    return pawl_postgres_open(&options, &store, NULL) == PAWL_OK ? store : NULL;
}

static PGconn *connect_own(void)
{
    char conninfo[PG_PATH_MAX];
    return PQconnectdb(pg_server_conninfo(&server, DATABASE, conninfo));
}

/* The process of some client's connection; 0: there is none. */
static pid_t some_backend(PGconn *conn)
{
    PGresult *result = PQexec(conn, "select pid from pg_stat_activity where datname = '" DATABASE
                                    "' and pid <> pg_backend_pid() order by random() limit 1");
    pid_t pid = PQntuples(result) == 1 ? (pid_t)strtol(PQgetvalue(result, 0, 0), NULL, 10) : 0;
    PQclear(result);
    return pid;
}

/* Until the server has ended this connection too. It may not: the victim was on its way out. */
static void await_end_of(PGconn *conn)
{
    struct pollfd fd = {.fd = PQsocket(conn), .events = POLLIN};
    for (int i = 0; i < NOTICE_TRIES && PQstatus(conn) == CONNECTION_OK; i++)
        if (poll(&fd, 1, BACK_PAUSE_MS) > 0)
            (void)PQconsumeInput(conn); /* at the end it says so */
}

static bool is_back(void)
{
    /* After the death of a backend the postmaster ends all others and recovers by itself. */
    for (int i = 0; i < BACK_TRIES; i++) {
        PGconn *conn = connect_own();
        bool is_answering = PQstatus(conn) == CONNECTION_OK;
        PQfinish(conn);
        if (is_answering)
            return true;
        (void)poll(NULL, 0, BACK_PAUSE_MS); /* nothing tells us */
    }
    return false;
}

static bool kill_backend(void)
{
    PGconn *conn = connect_own();
    pid_t pid = some_backend(conn);
    if (pid > 0 && kill(pid, SIGKILL) == 0)
        await_end_of(conn); /* the postmaster has to notice */
    PQfinish(conn);
    return is_back();
}

static bool terminate_backends(void)
{
    return is_back() &&
           pg_server_run(&server, DATABASE,
                         "select pg_terminate_backend(pid) from pg_stat_activity where datname = "
                         "'" DATABASE "' and pid <> pg_backend_pid() order by random() limit 3");
}

static bool kill_postmaster(void)
{
    pg_server_kill(&server);
    return pg_server_restart(&server);
}

static bool stop_at_once(void)
{
    pg_server_stop_at_once(&server);
    return pg_server_restart(&server);
}

static bool postgres_trouble(enum crash_trouble trouble)
{
    static bool (*const troubles[CRASH_TROUBLES])(void) = {terminate_backends, kill_backend,
                                                           kill_postmaster, stop_at_once};
    return troubles[trouble]();
}

static const struct pg_server *postgres_server(void)
{
    return &server;
}

static bool postgres_spoil(const char *sql)
{
    /* Settings of the whole server are read again by those who connect afterwards. */
    return pg_server_run(&server, DATABASE, sql);
}

static void postgres_end(void)
{
    pg_server_remove(&server);
}

/* ---------------------------------------------------------------- SQLite */

static bool sqlite_begin(const char *folder, char where[PEN_PATH_MAX])
{
    (void)snprintf(where, PEN_PATH_MAX, "%.100s/jobs.db", folder);
    return true;
}

/* The file, which each process opens once. Changed only by its one thread. */
static pawl_sqlite *opened;

static pawl_store *sqlite_open(const char *where)
{
    pawl_sqlite_options options;
    pawl_store *store = NULL;
    pawl_sqlite_options_init(&options);
    options.path = where;
    options.call_timeout_ms = CALL_TIMEOUT_MS;
    if (opened == NULL && pawl_sqlite_new(&options, &opened, NULL) != PAWL_OK)
        return NULL;
    return pawl_sqlite_open(opened, &store, NULL) == PAWL_OK ? store : NULL;
}

static void sqlite_shut(void)
{
    pawl_sqlite_free(opened);
    opened = NULL;
}

static void nothing(void)
{
    /* A connection ends with its handle; the file goes with its folder. */
}

/* ---------------------------------------------------------------- both */

static const struct crash_kind kinds[] = {
    {.name = "postgres",
     .begin = postgres_begin,
     .open = postgres_open,
     .shut = nothing,
     .trouble = postgres_trouble,
     .server = postgres_server,
     .spoil = postgres_spoil,
     .end = postgres_end},
    {.name = "sqlite",
     .begin = sqlite_begin,
     .open = sqlite_open,
     .shut = sqlite_shut,
     .end = nothing},
};

const struct crash_kind *crash_kind_named(const char *name)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    }
    return NULL;
}

void crash_remove_folder(const char *folder)
{
    pid_t pid = fork();
    if (pid == 0) {
        (void)execl("/bin/rm", "rm", "-rf", folder, (char *)NULL);
        _exit(71);
    }
    if (pid > 0)
        (void)waitpid(pid, NULL, 0); /* what is left lies in a folder for temporary things */
}

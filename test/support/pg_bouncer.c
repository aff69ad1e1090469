/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * pg_bouncer.c - PgBouncer in transaction mode in front of a server of the test's own.
 * Owns:  the pooler's process and its settings.
 * Never: outlives the test program.
 */
#include "support/pg_bouncer.h"

#include "support/pg_schema.h"

#include <libpq-fe.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define START_TRIES    200 /* of 50 ms each */
#define START_PAUSE_MS 50

static const char settings[] = "[databases]\n"
                               "* = host=%s port=%d\n"
                               "[pgbouncer]\n"
                               "listen_addr =\n"
                               "listen_port = %d\n"
                               "unix_socket_dir = %s\n"
                               "auth_type = trust\n"
                               "auth_file = %s/pgbouncer.users\n"
                               "admin_users = postgres\n"
                               "pool_mode = transaction\n"
                               "default_pool_size = 3\n"
                               "max_client_conn = 100\n"
                               "server_reset_query_always = 0\n";

/* Whom it lets in: who is let in by the server, too. */
static bool write_users(const char *folder)
{
    char path[PG_PATH_MAX + 16];
    (void)snprintf(path, sizeof(path), "%s/pgbouncer.users", folder);
    FILE *file = fopen(path, "w");
    if (file == NULL)
        return false;
    bool is_written = fprintf(file, "\"postgres\" \"\"\n\"" PG_WORKER "\" \"\"\n") > 0;
    return fclose(file) == 0 && is_written && pg_hand_over(path);
}

static bool write_settings(const char *path, const char *folder)
{
    FILE *file = fopen(path, "w");
    if (file == NULL)
        return false;
    bool is_written = fprintf(file, settings, folder, PG_PORT, PG_BOUNCER_PORT, folder, folder) > 0;
    return fclose(file) == 0 && is_written && pg_hand_over(path) && write_users(folder);
}

const char *pg_bouncer_conninfo(const struct pg_bouncer *bouncer, const char *database,
                                char text[PG_PATH_MAX])
{
    (void)snprintf(text, PG_PATH_MAX, "host=%s port=%d user=" PG_WORKER " dbname=%.60s",
                   bouncer->folder, PG_BOUNCER_PORT, database);
    return text;
}

bool pg_bouncer_start(struct pg_bouncer *bouncer, const struct pg_server *server)
{
    static const char *const programs[] = {"/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"};
    const char *program = access(programs[0], X_OK) == 0 ? programs[0] : programs[1];
    char path[PG_PATH_MAX + 16];
    char log[PG_PATH_MAX + 16];
    char conninfo[PG_PATH_MAX];
    *bouncer = (struct pg_bouncer){0};
    memcpy(bouncer->folder, server->folder, sizeof(bouncer->folder));
    (void)snprintf(path, sizeof(path), "%s/pgbouncer.ini", bouncer->folder);
    (void)snprintf(log, sizeof(log), "%s/pgbouncer.log", bouncer->folder);
    if (access(program, X_OK) != 0 || !write_settings(path, bouncer->folder)) {
        (void)fprintf(stderr, "pg_bouncer: there is no pgbouncer on this machine; install it "
                              "(tools/install-deps test)\n");
        return false;
    }
    const char *const argv[] = {program, path, NULL};
    bouncer->pid = pg_spawn(argv, log);
    (void)pg_bouncer_conninfo(bouncer, "postgres", conninfo);
    for (int i = 0; i < START_TRIES && bouncer->pid > 0; i++) {
        if (PQping(conninfo) == PQPING_OK)
            return true;
        (void)poll(NULL, 0, START_PAUSE_MS); /* it tells nobody when it is ready */
    }
    (void)fprintf(stderr, "pg_bouncer: it does not start; see %s\n", log);
    return false;
}

void pg_bouncer_stop(struct pg_bouncer *bouncer)
{
    if (bouncer->pid > 0 && kill(bouncer->pid, SIGTERM) == 0)
        (void)pg_wait_for(bouncer->pid); /* however it ended, it has */
    bouncer->pid = 0;
}

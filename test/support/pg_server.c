/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * pg_server.c - a real PostgreSQL server of a test's own.
 * Owns:  the server's processes and its temporary folder.
 * Never: leaves a server behind when the test program dies; touches another server.
 */
#include "support/pg_server.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libpq-fe.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SERVER_USER    "postgres"
#define START_TRIES    600 /* of 50 ms each */
#define START_PAUSE_MS 50
#define COMMAND_MAX    1024

static bool complain(const char *what, const char *about)
{
    (void)fprintf(stderr, "pg_server: %s: %s\n", what, about);
    return false;
}

/* ---- processes */

static void pause_ms(int ms)
{
    (void)poll(NULL, 0, ms); /* for a process that tells nobody when it is ready */
}

bool pg_hand_over(const char *path)
{
    const struct passwd *user = geteuid() == 0 ? getpwnam(SERVER_USER) : NULL;
    if (geteuid() != 0)
        return true;
    if (user == NULL)
        return complain("root cannot start a server, and there is no user", SERVER_USER);
    return chown(path, user->pw_uid, user->pw_gid) == 0 ? true : complain(path, strerror(errno));
}

/* In the child: become the server's user. */
static bool become_user(void)
{
    const struct passwd *user = getpwnam(SERVER_USER);
    if (geteuid() != 0)
        return true;
    return user != NULL && initgroups(SERVER_USER, user->pw_gid) == 0 &&
           setgid(user->pw_gid) == 0 && setuid(user->pw_uid) == 0;
}

pid_t pg_spawn(const char *const *argv, const char *log)
{
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    int out = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    bool is_set = out >= 0 && in >= 0 && dup2(in, 0) == 0 && dup2(out, 1) == 1 &&
                  dup2(out, 2) == 2 && become_user() && chdir("/") == 0 &&
                  prctl(PR_SET_PDEATHSIG, SIGINT) == 0 && getppid() == parent;
    if (is_set)
        (void)execv(argv[0], (char *const *)argv); /* comes back only to fail */
    (void)fprintf(stderr, "cannot start %s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

bool pg_wait_for(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return false;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool run(const char *const *argv, const char *log)
{
    pid_t pid = pg_spawn(argv, log);
    return (pid > 0 && pg_wait_for(pid)) || complain(argv[0], "failed; see its log");
}

/* ---- the programs, the data */

static bool find_bin(char bin[PG_PATH_MAX])
{
    const char *named = getenv("PAWLT_PG_BIN");
    static const char *const usual[] = {"/usr/lib/postgresql/15/bin", "/usr/local/pgsql/bin",
                                        "/usr/local/bin", "/usr/bin"};
    char path[PG_PATH_MAX + 16];
    if (named != NULL) {
        (void)snprintf(bin, PG_PATH_MAX, "%s", named);
        return true;
    }
    for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++) {
        (void)snprintf(path, sizeof(path), "%s/postgres", usual[i]);
        if (access(path, X_OK) == 0) {
            (void)snprintf(bin, PG_PATH_MAX, "%s", usual[i]);
            return true;
        }
    }
    return complain("there is no PostgreSQL server on this machine",
                    "install postgresql-15 (tools/install-deps test), or set PAWLT_PG_BIN");
}

static bool make_cluster(const struct pg_server *server, const char *data, const char *log)
{
    char initdb[PG_PATH_MAX + 16];
    (void)snprintf(initdb, sizeof(initdb), "%s/initdb", server->bin);
    const char *const argv[] = {initdb,  "-D", data,   "-U",         "postgres",  "-A",
                                "trust", "-E", "UTF8", "--locale=C", "--no-sync", NULL};
    return run(argv, log);
}

static bool copy_folder(const char *from, const char *to, const char *log)
{
    const char *const argv[] = {"/bin/cp", "-a", from, to, NULL};
    return run(argv, log);
}

/* The cluster of the build folder, made by whoever comes first; others wait for him. */
static bool copy_template(const struct pg_server *server, const char *template, const char *data,
                          const char *log)
{
    char lock_path[PG_PATH_MAX + 16];
    char made[PG_PATH_MAX + 16];
    struct stat found;
    (void)snprintf(lock_path, sizeof(lock_path), "%s.lock", template);
    (void)snprintf(made, sizeof(made), "%s/made", template);
    int lock = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (lock < 0 || flock(lock, LOCK_EX) != 0)
        return complain(lock_path, strerror(errno));
    bool is_made = stat(made, &found) == 0;
    if (!is_made && (mkdir(template, 0755) == 0 || errno == EEXIST) && pg_hand_over(template)) {
        char fresh[PG_PATH_MAX + 16];
        (void)snprintf(fresh, sizeof(fresh), "%s/%d", template, (int)getpid());
        is_made = make_cluster(server, fresh, log) && rename(fresh, made) == 0;
    }
    (void)close(lock);
    return is_made && copy_folder(made, data, log);
}

static bool make_data(const struct pg_server *server)
{
    char data[2 * PG_PATH_MAX];
    char log[2 * PG_PATH_MAX];
    const char *template = getenv("PAWLT_PG_TEMPLATE");
    (void)snprintf(data, sizeof(data), "%s/data", server->folder);
    (void)snprintf(log, sizeof(log), "%s/initdb.log", server->folder);
    return template != NULL ? copy_template(server, template, data, log)
                            : make_cluster(server, data, log);
}

/* ---- life */

const char *pg_server_conninfo_as(const struct pg_server *server, const char *user,
                                  const char *database, char text[PG_PATH_MAX])
{
    (void)snprintf(text, PG_PATH_MAX, "host=%s port=%d user=%.30s dbname=%.60s", server->folder,
                   PG_PORT, user, database);
    return text;
}

const char *pg_server_conninfo(const struct pg_server *server, const char *database,
                               char text[PG_PATH_MAX])
{
    return pg_server_conninfo_as(server, "postgres", database, text);
}

static bool is_answering(const struct pg_server *server)
{
    char conninfo[PG_PATH_MAX];
    return PQping(pg_server_conninfo(server, "postgres", conninfo)) == PQPING_OK;
}

static void show_log(const char *path)
{
    char line[COMMAND_MAX];
    FILE *log = fopen(path, "r");
    while (log != NULL && fgets(line, sizeof(line), log) != NULL)
        (void)fprintf(stderr, "# %s", line);
    if (log != NULL)
        (void)fclose(log);
}

bool pg_server_restart(struct pg_server *server)
{
    char postgres[2 * PG_PATH_MAX];
    char data[2 * PG_PATH_MAX];
    char sockets[2 * PG_PATH_MAX];
    char log[2 * PG_PATH_MAX];
    (void)snprintf(postgres, sizeof(postgres), "%s/postgres", server->bin);
    (void)snprintf(data, sizeof(data), "%s/data", server->folder);
    (void)snprintf(sockets, sizeof(sockets), "unix_socket_directories=%s", server->folder);
    (void)snprintf(log, sizeof(log), "%s/server.log", server->folder);
    const char *const argv[] = {postgres,
                                "-D",
                                data,
                                "-c",
                                sockets,
                                "-c",
                                "listen_addresses=",
                                "-c",
                                "port=5432",
                                "-c",
                                server->is_durable ? "fsync=on" : "fsync=off",
                                "-c",
                                server->is_durable ? "full_page_writes=on" : "full_page_writes=off",
                                "-c",
                                "shared_buffers=32MB",
                                "-c",
                                "max_connections=60",
                                "-c",
                                "max_wal_size=256MB",
                                "-c",
                                "wal_writer_delay=10s", /* what no commit asks for is on no disk */
                                NULL};
    for (int i = 0; i < START_TRIES; i++) {
        int status;
        /* After a kill, the backends that still live hold the memory: then it ends at once. */
        if (server->pid == 0)
            server->pid = pg_spawn(argv, log);
        if (server->pid < 0)
            break;
        if (is_answering(server))
            return true;
        pause_ms(START_PAUSE_MS);
        if (waitpid(server->pid, &status, WNOHANG) == server->pid)
            server->pid = 0;
    }
    server->pid = server->pid < 0 ? 0 : server->pid;
    show_log(log);
    return complain("the server does not start", server->folder);
}

bool pg_server_start(struct pg_server *server, bool is_durable)
{
    *server = (struct pg_server){.is_durable = is_durable};
    const char *base = getenv("TMPDIR");
    (void)snprintf(server->folder, sizeof(server->folder), "%.64s/pawl-pg-XXXXXX",
                   base != NULL ? base : "/tmp");
    if (!find_bin(server->bin))
        return false;
    if (mkdtemp(server->folder) == NULL)
        return complain(server->folder, strerror(errno));
    if (pg_hand_over(server->folder) && chmod(server->folder, 0755) == 0 && make_data(server) &&
        pg_server_restart(server))
        return true;
    pg_server_remove(server);
    return false;
}

static void end_with(struct pg_server *server, int signal_number)
{
    if (server->pid > 0 && kill(server->pid, signal_number) == 0)
        (void)pg_wait_for(server->pid); /* however it ended, it has */
    server->pid = 0;
}

void pg_server_stop(struct pg_server *server)
{
    end_with(server, SIGINT);
}

void pg_server_kill(struct pg_server *server)
{
    end_with(server, SIGKILL);
}

void pg_server_stop_at_once(struct pg_server *server)
{
    end_with(server, SIGQUIT);
}

void pg_server_remove(struct pg_server *server)
{
    end_with(server, SIGQUIT); /* at once: nothing of it is kept */
    if (server->folder[0] == '\0')
        return;
    const char *const argv[] = {"/bin/rm", "-rf", server->folder, NULL};
    pid_t pid = pg_spawn(argv, "/dev/null");
    if (pid > 0)
        (void)pg_wait_for(pid);  /* what it left lies in a folder for temporary things */
    (void)rmdir(server->folder); /* only its owner's parent may: likewise */
    server->folder[0] = '\0';
}

bool pg_server_run(const struct pg_server *server, const char *database, const char *sql)
{
    char conninfo[PG_PATH_MAX];
    PGconn *conn = PQconnectdb(pg_server_conninfo(server, database, conninfo));
    PGresult *result = PQexec(conn, sql);
    ExecStatusType status = PQresultStatus(result);
    bool is_done = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
    if (!is_done)
        complain(sql, PQerrorMessage(conn));
    PQclear(result);
    PQfinish(conn);
    return is_done;
}

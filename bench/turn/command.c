/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * command.c - turns of programs: `pawl work QUEUE -- true`, and a loop that only spawns.
 * Owns:  the processes that it starts.
 * Never: looks into what they print.
 */
#include "bare.h"

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>

#define LOOK_MS 20

extern char **environ; /* of the C library: what spawned programs get */

static bool spawn(char *const *argv, pid_t *ret_pid)
{
    return posix_spawnp(ret_pid, argv[0], NULL, NULL, argv, environ) == 0 ||
           turn_fail(argv[0], "cannot be started");
}

bool turn_spawn(const struct turn *turn, struct turn_result *result)
{
    char *argv[] = {(char *)turn->program, NULL};
    int64_t began_us = turn_now_us(), started = 0, running = 0;
    bool is_good = true;
    while (is_good && (started < turn->jobs || running > 0)) {
        pid_t pid;
        int status = 1;
        if (started < turn->jobs && running < turn->parallel) {
            is_good = spawn(argv, &pid);
            started++;
            running++;
            continue;
        }
        is_good = wait(&status) > 0 && status == 0;
        running--;
    }
    result->seconds = (double)(turn_now_us() - began_us) / 1e6;
    return is_good;
}

/* Look until no job is left. Statistics would say how many have succeeded, and count them each
 * time: that would cost the worker what it is measured for. */
static bool await(const struct turn *turn)
{
    int64_t until_us = turn_now_us() + WAIT_MOST_MS * INT64_C(1000);
    PGconn *conn = bare_connect(turn);
    bool is_good = conn != NULL && bare_prepare(conn, "left", "select from pawl.job limit 1");
    bool is_over = false;
    while (is_good && !is_over && turn_now_us() < until_us) {
        (void)poll(NULL, 0, LOOK_MS);
        PGresult *left = bare_call(conn, "left", NULL, 0);
        is_good = left != NULL;
        is_over = is_good && PQntuples(left) == 0;
        PQclear(left);
    }
    PQfinish(conn);
    return is_good && (is_over || turn_fail("pawl work", "it takes too long"));
}

static bool have_all_succeeded(const struct turn *turn, pawl_store *store)
{
    pawl_stats stats = {.succeeded = 0};
    size_t count = 0;
    pawl_err err;
    if (pawl_queue_stats(store, NULL, &stats, 1, &count, &err) != PAWL_OK)
        return turn_fail("queue_stats", err.text);
    return stats.succeeded == turn->jobs || turn_fail("pawl work", "not all have succeeded");
}

bool turn_command(const struct turn *turn, struct turn_result *result)
{
    char parallel[32];
    char *argv[] = {(char *)turn->program,
                    "work",
                    QUEUE,
                    "--store",
                    (char *)turn->store,
                    "--parallel",
                    parallel,
                    "--buffer",
                    parallel,
                    "--log-level",
                    "error",
                    "--",
                    "true",
                    NULL};
    pawl_source *source;
    pawl_store *store;
    pid_t pid = -1;
    int status = 1;
    (void)snprintf(parallel, sizeof(parallel), "%lld", (long long)turn->parallel); /* fits */
    if (!turn_fill_all(turn, result) || !turn_open(turn, &source, &store))
        return false;
    int64_t began_us = turn_now_us();
    bool is_good = spawn(argv, &pid) && await(turn);
    result->seconds = (double)(turn_now_us() - began_us) / 1e6;
    is_good = is_good && have_all_succeeded(turn, store);
    turn_close(source, store);
    if (pid > 0)
        is_good = kill(pid, SIGTERM) == 0 && waitpid(pid, &status, 0) == pid && status == 0 &&
                  is_good;
    return is_good;
}

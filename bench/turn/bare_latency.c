/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * bare_latency.c - how long a NOTIFY takes, there and back, and the way of a job by bare SQL: an
 *                  INSERT with a NOTIFY, and a claim by whoever hears it.
 * Owns:  the pace, and the one who listens.
 * Never: makes one job wait for another.
 */
#include "bare.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- NOTIFY */

struct listener {
    const struct turn *turn;
    PGconn *conn;
    int64_t line;     /* where it claims */
    int64_t *samples; /* NULL: it answers instead */
    bool is_good;
};

/* Read one that has come, waiting for it. */
static PGnotify *hear(PGconn *conn)
{
    PGnotify *notice;
    while ((notice = PQnotifies(conn)) == NULL) {
        struct pollfd ready = {.fd = PQsocket(conn), .events = POLLIN};
        if (poll(&ready, 1, CALL_TIMEOUT_MS) <= 0 || PQconsumeInput(conn) != 1)
            return NULL;
    }
    return notice;
}

static void *listen_all(void *user)
{
    struct listener *listener = user;
    for (int64_t i = 0; listener->is_good && i < listener->turn->jobs; i++) {
        PGnotify *notice = hear(listener->conn);
        listener->is_good = notice != NULL;
        if (notice != NULL && listener->samples != NULL)
            listener->samples[i] = turn_now_us() - strtoll(notice->extra, NULL, 10);
        else if (notice != NULL)
            listener->is_good = bare_run(listener->conn, "notify back");
        PQfreemem(notice);
    }
    return NULL;
}

/* `back`: for each the time until one has come back; NULL: nobody sends one. */
static bool notify_all(const struct turn *turn, PGconn *conn, int64_t *back)
{
    int64_t began_us = turn_now_us();
    char sql[64];
    bool is_good = back == NULL || bare_run(conn, "listen back");
    for (int64_t i = 0; is_good && i < turn->jobs; i++) {
        turn_wait_until(began_us + i * 1000000 / turn->rate);
        int64_t sent_us = turn_now_us();
        (void)snprintf(sql, sizeof(sql), "notify bench, '%lld'", (long long)sent_us);
        is_good = bare_run(conn, sql);
        PGnotify *notice = is_good && back != NULL ? hear(conn) : NULL;
        if (back != NULL) {
            back[i] = turn_now_us() - sent_us;
            is_good = notice != NULL;
        }
        PQfreemem(notice);
    }
    return is_good;
}

static bool notify(const struct turn *turn, struct turn_result *result, bool is_answered)
{
    PGconn *conn = bare_connect(turn);
    int64_t *samples = calloc((size_t)turn->jobs, sizeof(int64_t));
    struct listener listener = {
        .turn = turn, .conn = bare_connect(turn), .samples = is_answered ? NULL : samples};
    pthread_t thread;
    listener.is_good = samples != NULL && listener.conn != NULL &&
                       bare_run(listener.conn, "listen bench");
    bool is_started = conn != NULL && listener.is_good &&
                      pthread_create(&thread, NULL, listen_all, &listener) == 0;
    bool is_good = is_started && notify_all(turn, conn, is_answered ? samples : NULL);
    if (is_started && !is_good)
        (void)turn_fail("notify", "given up");
    is_good = is_started && pthread_join(thread, NULL) == 0 && listener.is_good && is_good;
    if (is_good)
        turn_percentiles(samples, (size_t)turn->jobs, result);
    PQfinish(conn);
    PQfinish(listener.conn);
    free(samples);
    return is_good;
}

bool turn_bare_notify(const struct turn *turn, struct turn_result *result)
{
    return notify(turn, result, false);
}

bool turn_bare_notify_trip(const struct turn *turn, struct turn_result *result)
{
    return notify(turn, result, true);
}

/* ---- a job */

#define INSERT_AND_NOTIFY \
    "with put as (" BARE_INSERT " returning 1) select pg_notify('bench', '') from put"
#define COLUMN_PAYLOAD 1
#define CLAIM_MOST     10

/* Claim what is there, from the job with that number on; how many, or below 0: it has said why. */
static int64_t claim_from(const struct listener *listener, int64_t number)
{
    char line[4], most[8], pos[8], seq[8];
    const struct bare_arg args[BARE_CLAIM_ARGS] = {
        {line, sizeof(line)}, {most, sizeof(most)}, {WORKER, (int)strlen(WORKER)},
        {pos, sizeof(pos)},   {seq, sizeof(seq)},
    };
    bare_put_int4(line, (int32_t)listener->line);
    bare_put_int8(most, CLAIM_MOST);
    bare_put_int8(pos, number);
    bare_put_int8(seq, 0);
    PGresult *rows = bare_call(listener->conn, "claim", args, BARE_CLAIM_ARGS);
    int64_t now_us = turn_now_us(), count = rows != NULL ? PQntuples(rows) : -1;
    for (int64_t i = 0; i < count && number + i < listener->turn->jobs; i++) {
        int64_t sent_us;
        memcpy(&sent_us, PQgetvalue(rows, (int)i, COLUMN_PAYLOAD), sizeof(sent_us));
        listener->samples[number + i] = now_us - sent_us;
    }
    PQclear(rows);
    return count;
}

static void *claim_all(void *user)
{
    struct listener *listener = user;
    int64_t number = 0;
    while (listener->is_good && number < listener->turn->jobs) {
        PGnotify *notice = hear(listener->conn);
        int64_t count = notice != NULL ? claim_from(listener, number) : -1;
        PQfreemem(notice);
        listener->is_good = count >= 0;
        number += count;
    }
    return NULL;
}

static bool insert_all(const struct turn *turn, PGconn *conn, int64_t line_id)
{
    int64_t stamp_us[PAYLOAD_BYTES_MAX / sizeof(int64_t)] = {0};
    char line[4], pos[8], id[ID_LEN];
    const struct bare_arg args[] = {
        {line, sizeof(line)}, {pos, sizeof(pos)}, {id, sizeof(id)}, {stamp_us, (int)turn->payload}};
    int64_t began_us = turn_now_us();
    bool is_good = true;
    bare_put_int4(line, (int32_t)line_id);
    for (int64_t i = 0; is_good && i < turn->jobs; i++) {
        turn_wait_until(began_us + i * 1000000 / turn->rate);
        bare_put_int8(pos, i);
        bare_id(i, id);
        stamp_us[0] = turn_now_us();
        PGresult *done = bare_call(conn, "insert", args, 4);
        is_good = done != NULL;
        PQclear(done);
    }
    return is_good;
}

bool turn_bare_latency(const struct turn *turn, struct turn_result *result)
{
    if (turn->payload < (int64_t)sizeof(int64_t))
        return turn_fail("a job by bare SQL", "too small to say when it was sent");
    PGconn *conn = bare_connect(turn);
    int64_t *samples = calloc((size_t)turn->jobs, sizeof(int64_t));
    struct listener listener = {.turn = turn, .conn = bare_connect(turn), .samples = samples};
    listener.line = conn != NULL ? bare_line(turn, conn) : -1;
    pthread_t thread;
    listener.is_good = samples != NULL && listener.conn != NULL && listener.line >= 0 &&
                       bare_prepare(conn, "insert", INSERT_AND_NOTIFY) &&
                       bare_prepare(listener.conn, "claim", BARE_CLAIM) &&
                       bare_run(listener.conn, "listen bench");
    bool is_started = listener.is_good && pthread_create(&thread, NULL, claim_all, &listener) == 0;
    bool is_good = is_started && insert_all(turn, conn, listener.line);
    is_good = is_started && pthread_join(thread, NULL) == 0 && listener.is_good && is_good;
    if (is_good)
        turn_percentiles(samples, (size_t)turn->jobs, result);
    PQfinish(conn);
    PQfinish(listener.conn);
    free(samples);
    return is_good || turn_fail("a job by bare SQL", "given up");
}

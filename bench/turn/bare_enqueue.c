/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * bare_enqueue.c - puts rows into the table of jobs as bare SQL can: by COPY, by INSERT from many
 * connections; and how long a bare NOTIFY takes to somebody who listens, and back.
 * Owns:  the columns that they write, which are those that an enqueue writes.
 * Never: makes a queue, checks a value, sends a hint.
 */
#include "bare.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS                                 \
    "shard, line_id, pos, id, priority, lane, " \
    "created_at, next_attempt_at, payload"
#define COLUMNS_COUNT 9
#define COPY          "copy pawl.job (" COLUMNS ") from stdin (format binary)"
#define INSERT                                                                     \
    "insert into pawl.job (" COLUMNS ") values (0, $1, $2, $3, 5::int2, 0::int2, " \
    "now(), now(), $4)"
#define COPY_HEAD     "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0"
#define COPY_HEAD_LEN 19
#define EPOCH_2000_US INT64_C(946684800000000)
#define PRIORITY      5

/* ---- COPY */

struct bytes {
    char *bytes;
    size_t length;
};

static void put(struct bytes *out, const void *bytes, size_t length)
{
    bare_put_int4(out->bytes + out->length, (int32_t)length);
    memcpy(out->bytes + out->length + 4, bytes, length);
    out->length += 4 + length;
}

static void put_number(struct bytes *out, int64_t number, size_t length)
{
    char wide[8];
    bare_put_int8(wide, number);
    put(out, wide + sizeof(wide) - length, length);
}

static void put_row(const struct turn *turn, struct bytes *out, int64_t line, int64_t number)
{
    static const char payload[PAYLOAD_BYTES_MAX] = {0};
    const pawl_clock *clock = pawl_clock_system();
    int64_t now_us = clock->wall(clock->user).us - EPOCH_2000_US;
    char id[ID_LEN];
    bare_id(number, id);
    out->bytes[out->length++] = 0;
    out->bytes[out->length++] = COLUMNS_COUNT;
    put_number(out, 0, 4);
    put_number(out, line, 4);
    put_number(out, number / turn->batch, 8);
    put(out, id, ID_LEN);
    put_number(out, PRIORITY, 2);
    put_number(out, 0, 2);
    put_number(out, now_us, 8);
    put_number(out, now_us, 8);
    put(out, payload, (size_t)turn->payload);
}

static bool copy(const struct turn *turn, PGconn *conn, int64_t line, int64_t first)
{
    int64_t count = turn->jobs - first < turn->batch ? turn->jobs - first : turn->batch;
    struct bytes out = {.bytes = malloc((size_t)count * ((size_t)turn->payload + 256) + 64)};
    PGresult *result = PQexec(conn, COPY);
    bool is_good = out.bytes != NULL && PQresultStatus(result) == PGRES_COPY_IN;
    PQclear(result);
    if (is_good) {
        memcpy(out.bytes, COPY_HEAD, COPY_HEAD_LEN);
        out.length = COPY_HEAD_LEN;
        for (int64_t i = 0; i < count; i++)
            put_row(turn, &out, line, first + i);
        memset(out.bytes + out.length, -1, 2);
        is_good = PQputCopyData(conn, out.bytes, (int)out.length + 2) == 1 &&
                  PQputCopyEnd(conn, NULL) == 1;
    }
    free(out.bytes);
    while ((result = PQgetResult(conn)) != NULL) {
        is_good = PQresultStatus(result) == PGRES_COMMAND_OK && is_good;
        PQclear(result);
    }
    return is_good || turn_fail("copy", PQerrorMessage(conn));
}

static bool check(const struct turn *turn)
{
    char sql[128];
    (void)snprintf(sql, sizeof(sql), "select 1 / (count(*) = %lld)::int from pawl.job",
                   (long long)turn->jobs); /* fits; an error where it is another number */
    return turn_sql(turn, sql);
}

bool turn_bare_copy(const struct turn *turn, struct turn_result *result)
{
    PGconn *conn = bare_connect(turn);
    int64_t line = conn != NULL ? bare_line(turn, conn) : -1;
    bool is_good = line >= 0;
    double wal = turn_wal(turn);
    int64_t began_us = turn_now_us();
    for (int64_t at = 0; is_good && at < turn->jobs; at += turn->batch)
        is_good = copy(turn, conn, line, at);
    result->seconds = (double)(turn_now_us() - began_us) / 1e6;
    result->wal_bytes_per_job = (turn_wal(turn) - wal) / (double)turn->jobs;
    PQfinish(conn);
    return is_good && check(turn);
}

/* ---- INSERT */

struct single {
    const struct turn *turn;
    PGconn *conn;
    int64_t line;
    atomic_llong *left;
    bool is_good;
    pthread_t thread;
};

static void *insert_singles(void *user)
{
    static const char payload[PAYLOAD_BYTES_MAX] = {0};
    struct single *single = user;
    char line[4], pos[8], id[ID_LEN];
    const struct bare_arg args[] = {{line, sizeof(line)},
                                    {pos, sizeof(pos)},
                                    {id, sizeof(id)},
                                    {payload, (int)single->turn->payload}};
    long long number;
    bare_put_int4(line, (int32_t)single->line);
    single->is_good = true;
    while (single->is_good && (number = atomic_fetch_sub(single->left, 1)) > 0) {
        bare_put_int8(pos, single->turn->jobs - number);
        bare_id(single->turn->jobs - number, id);
        PGresult *done = bare_call(single->conn, "insert", args, 4);
        single->is_good = done != NULL;
        PQclear(done);
    }
    return NULL;
}

bool turn_bare_singles(const struct turn *turn, struct turn_result *result)
{
    struct single *singles = calloc((size_t)turn->connections, sizeof(*singles));
    atomic_llong left = turn->jobs;
    bool is_good = singles != NULL;
    int64_t started = 0;
    for (int64_t i = 0; is_good && i < turn->connections; i++) {
        singles[i] = (struct single){.turn = turn, .left = &left, .conn = bare_connect(turn)};
        is_good = singles[i].conn != NULL && bare_prepare(singles[i].conn, "insert", INSERT);
        singles[i].line = is_good ? bare_line(turn, singles[i].conn) : -1;
        is_good = singles[i].line >= 0;
    }
    int64_t began_us = turn_now_us();
    for (; is_good && started < turn->connections; started++)
        is_good = pthread_create(&singles[started].thread, NULL, insert_singles,
                                 &singles[started]) == 0;
    for (int64_t i = 0; i < started; i++)
        is_good = pthread_join(singles[i].thread, NULL) == 0 && singles[i].is_good && is_good;
    result->seconds = (double)(turn_now_us() - began_us) / 1e6;
    for (int64_t i = 0; singles != NULL && i < turn->connections; i++)
        PQfinish(singles[i].conn);
    free(singles);
    return is_good && check(turn);
}

/* ---- NOTIFY */

struct listener {
    const struct turn *turn;
    PGconn *conn;
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

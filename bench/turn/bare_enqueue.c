/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * bare_enqueue.c - puts rows into the table of jobs as bare SQL can: by COPY, by INSERT from many
 * connections.
 * Owns:  the loops around these.
 * Never: makes a queue, checks a value, sends a hint.
 */
#include "bare.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS_COUNT 9
#define COPY          "copy pawl.job (" BARE_COLUMNS ") from stdin (format binary)"
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
        is_good = singles[i].conn != NULL && bare_prepare(singles[i].conn, "insert", BARE_INSERT);
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

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * bare_drain.c - claims and settles jobs by bare SQL on the store's own tables: the same changes of
 * rows, in the same batches, from as many connections, and nothing that keeps anybody from harm.
 * Owns:  the two statements; the pipe between the one who claims and the one who settles.
 * Never: checks a token, a worker, a deadline; looks for expired leases, late commits, keys,
 *        limits, other priorities or lanes.
 * Locks: pipe.mutex, never held over a statement.
 */
#include "bare.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS_MAX   1024
#define ARRAY_HEAD  20   /* bytes of an array before its first item */
#define INT8_OID    20   /* of PostgreSQL */
#define UUID_OID    2950 /* of PostgreSQL */
#define UUID_ITEM   (4 + ID_LEN)
#define COLUMN_POS  2
#define COLUMN_SEQ  3
#define SQL_MAX     256
#define PGMQ_AROUND 12 /* bytes of a message around its data */
/* One of a batch stands for all. */
#define SETTLE                                                                                \
    "with gone as (delete from pawl.job j where j.id = any ($1) returning j.line_id, j.id, "  \
    "j.attempts, j.lease_version, j.claimed_at, j.created_at, octet_length(j.payload) size, " \
    "j.priority, j.retries, j.lost_leases, j.max_retries, j.lease_token) "                    \
    "insert into pawl.attempt (shard, line_id, job_id, attempt_no, lease_version, outcome, "  \
    "reason, ended_by, token_digest, started_at, finished_at, created_at, payload_len, "      \
    "priority, retries, lost_leases, max_retries, worker, batch, others) "                    \
    "select 0, g.line_id, g.id, g.attempts + 1, g.lease_version, 0, 0, 0, "                   \
    "uuid_hash(g.lease_token), g.claimed_at, now(), g.created_at, g.size, g.priority, "       \
    "g.retries, g.lost_leases, g.max_retries, $2, "                                           \
    "case when g.id = ($1::uuid[])[1] then cardinality($1::uuid[]) end, "                     \
    "case when g.id = ($1::uuid[])[1] then nullif(($1::uuid[])[2:], '{}') end from gone g"

/* pgmq's own functions, to be measured in the same way. */
#define PGMQ_READ   "select msg_id, message from pgmq.read('" QUEUE "', 30, $1)"
#define PGMQ_DELETE "select pgmq.delete('" QUEUE "', $1::int8[])"

/* Whose statements they are. */
struct dialect {
    const char *claim;
    const char *settle;
    size_t id_len;
    int32_t id_type; /* of PostgreSQL */
    int settle_args;
};

static const struct dialect bare_dialect = {BARE_CLAIM, SETTLE, ID_LEN, UUID_OID, 2};
static const struct dialect pgmq_dialect = {PGMQ_READ, PGMQ_DELETE, 8, INT8_OID, 1};

static const struct dialect *dialect_of(const struct turn *turn)
{
    return strncmp(turn->verb, "pgmq", strlen("pgmq")) == 0 ? &pgmq_dialect : &bare_dialect;
}

/* One who claims: where it is. */
struct claimer {
    PGconn *conn;
    int64_t line;
    int64_t pos; /* it goes on from here, where it remembers */
    int64_t seq;
};

static bool open_claimer(const struct turn *turn, struct claimer *claimer)
{
    const struct dialect *dialect = dialect_of(turn);
    claimer->conn = bare_connect(turn);
    if (claimer->conn == NULL)
        return false;
    claimer->line = dialect == &bare_dialect ? bare_line(turn, claimer->conn) : 0;
    return claimer->line >= 0 && bare_prepare(claimer->conn, "claim", dialect->claim);
}

static PGconn *open_settler(const struct turn *turn)
{
    PGconn *conn = bare_connect(turn);
    if (conn != NULL && bare_prepare(conn, "settle", dialect_of(turn)->settle))
        return conn;
    PQfinish(conn);
    return NULL;
}

static void collect(const struct dialect *dialect, struct bare_ids *ids, const PGresult *rows)
{
    ids->count = (size_t)PQntuples(rows);
    bare_put_int4(ids->bytes, 1);
    bare_put_int4(ids->bytes + 4, 0);
    bare_put_int4(ids->bytes + 8, dialect->id_type);
    bare_put_int4(ids->bytes + 12, (int32_t)ids->count);
    bare_put_int4(ids->bytes + 16, 1);
    char *at = ids->bytes + ARRAY_HEAD;
    for (size_t i = 0; i < ids->count; i++, at += 4 + dialect->id_len) {
        bare_put_int4(at, (int32_t)dialect->id_len);
        memcpy(at + 4, PQgetvalue(rows, (int)i, 0), dialect->id_len);
    }
    ids->length = (size_t)(at - ids->bytes);
}

/* Where the last of them stands, of which it takes the next ones. */
static void remember(struct claimer *claimer, const PGresult *rows)
{
    for (int i = 0; i < PQntuples(rows); i++) {
        int64_t pos = bare_get_int8(PQgetvalue(rows, i, COLUMN_POS));
        int64_t seq = bare_get_int8(PQgetvalue(rows, i, COLUMN_SEQ));
        if (pos > claimer->pos || (pos == claimer->pos && seq > claimer->seq)) {
            claimer->pos = pos;
            claimer->seq = seq;
        }
    }
}

static PGresult *claim_bare(const struct turn *turn, const struct claimer *claimer)
{
    char line[4], most[8], pos[8], seq[8];
    bare_put_int4(line, (int32_t)claimer->line);
    bare_put_int8(most, turn->batch);
    bare_put_int8(pos, claimer->pos);
    bare_put_int8(seq, claimer->seq);
    const struct bare_arg args[BARE_CLAIM_ARGS] = {
        {line, sizeof(line)}, {most, sizeof(most)}, {WORKER, (int)strlen(WORKER)},
        {pos, sizeof(pos)},   {seq, sizeof(seq)},
    };
    return bare_call(claimer->conn, "claim", args, BARE_CLAIM_ARGS);
}

static PGresult *claim_pgmq(const struct turn *turn, const struct claimer *claimer)
{
    char most[4];
    bare_put_int4(most, (int32_t)turn->batch);
    const struct bare_arg args[] = {{most, sizeof(most)}};
    return bare_call(claimer->conn, "claim", args, 1);
}

/* ids->count is 0 where nothing is left. */
static bool claim(const struct turn *turn, struct claimer *claimer, struct bare_ids *ids)
{
    const struct dialect *dialect = dialect_of(turn);
    PGresult *rows = dialect == &pgmq_dialect ? claim_pgmq(turn, claimer)
                                              : claim_bare(turn, claimer);
    if (rows == NULL)
        return false;
    collect(dialect, ids, rows);
    if (turn->cursor > 0 && dialect == &bare_dialect)
        remember(claimer, rows);
    PQclear(rows);
    return true;
}

static bool settle(const struct turn *turn, PGconn *conn, const struct bare_ids *ids)
{
    const struct bare_arg args[] = {{ids->bytes, (int)ids->length}, {WORKER, (int)strlen(WORKER)}};
    PGresult *done = bare_call(conn, "settle", args, dialect_of(turn)->settle_args);
    PQclear(done);
    return done != NULL;
}

static bool make_ids(const struct turn *turn, struct bare_ids *ids)
{
    ids->count = 0;
    ids->bytes = malloc(ARRAY_HEAD + (size_t)turn->batch * UUID_ITEM);
    return ids->bytes != NULL || turn_fail("ids", "no memory");
}

static double wal_of(const struct turn *turn, double wal)
{
    return wal >= 0 ? (turn_wal(turn) - wal) / (double)turn->jobs : -1;
}

/* Messages of pgmq are put by itself, all in one statement; an error where it is another number. */
static bool fill(const struct turn *turn, struct turn_result *result)
{
    char sql[SQL_MAX];
    if (dialect_of(turn) != &pgmq_dialect)
        return turn_fill_all(turn, result);
    (void)snprintf(
        sql, sizeof(sql),
        "select 1 / (count(distinct m) = %lld)::int from generate_series(1, %lld) g, lateral "
        "pgmq.send('" QUEUE "', jsonb_build_object('data', repeat('x', %lld + 0 * g))) m",
        (long long)turn->jobs, (long long)turn->jobs,
        (long long)(turn->payload > PGMQ_AROUND ? turn->payload - PGMQ_AROUND : 1)); /* fits */
    return turn_sql(turn, sql);
}

static bool check(const struct turn *turn)
{
    if (dialect_of(turn) != &pgmq_dialect)
        return turn_check_all(turn);
    /* Fails where some are left. */
    return turn_sql(turn, "select 1 / (count(*) = 0)::int from pgmq.q_" QUEUE);
}

/* ---- one after the other, on one connection */

bool turn_bare_batches(const struct turn *turn, struct turn_result *result)
{
    struct claimer claimer = {.conn = NULL};
    struct bare_ids ids = {.bytes = NULL};
    double wal = turn_wal(turn);
    bool is_good = fill(turn, result) && make_ids(turn, &ids) && open_claimer(turn, &claimer) &&
                   bare_prepare(claimer.conn, "settle", dialect_of(turn)->settle);
    int64_t began_us = turn_now_us();
    while (is_good) {
        is_good = claim(turn, &claimer, &ids);
        if (!is_good || ids.count == 0)
            break;
        is_good = settle(turn, claimer.conn, &ids);
    }
    result->seconds = (double)(turn_now_us() - began_us) / 1e6;
    result->wal_bytes_per_job = wal_of(turn, wal);
    PQfinish(claimer.conn);
    free(ids.bytes);
    return is_good && check(turn);
}

/* ---- at the same time, on two */

struct pipe_line {
    const struct turn *turn;
    struct claimer claimer;
    PGconn *settler;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct bare_ids slots[SLOTS_MAX]; /* mutex: which of them are full */
    size_t slots_count;
    size_t put;      /* mutex: how many were filled */
    size_t taken;    /* mutex: how many were emptied */
    bool is_ended;   /* mutex: nothing more comes */
    bool is_claimed; /* well, by the one who claims */
};

/* The slot that is to be filled next; NULL: the other one has given up. */
static struct bare_ids *free_slot(struct pipe_line *pipe)
{
    (void)pthread_mutex_lock(&pipe->mutex); /* here and below: cannot fail, it is plain */
    while (pipe->put - pipe->taken == pipe->slots_count && !pipe->is_ended)
        (void)pthread_cond_wait(&pipe->changed, &pipe->mutex);
    struct bare_ids *slot = pipe->is_ended ? NULL : &pipe->slots[pipe->put % pipe->slots_count];
    (void)pthread_mutex_unlock(&pipe->mutex);
    return slot;
}

static void pass(struct pipe_line *pipe, bool is_put, bool is_ended)
{
    (void)pthread_mutex_lock(&pipe->mutex);
    pipe->put += is_put;
    pipe->is_ended = pipe->is_ended || is_ended;
    (void)pthread_cond_broadcast(&pipe->changed);
    (void)pthread_mutex_unlock(&pipe->mutex);
}

static void *claim_all(void *user)
{
    struct pipe_line *pipe = user;
    pipe->is_claimed = true;
    while (pipe->is_claimed) {
        struct bare_ids *slot = free_slot(pipe);
        if (slot == NULL)
            break;
        pipe->is_claimed = claim(pipe->turn, &pipe->claimer, slot);
        if (slot->count == 0)
            break;
        pass(pipe, true, false);
    }
    pass(pipe, false, true);
    return NULL;
}

/* The slot that is to be emptied next; NULL: there are no more. */
static struct bare_ids *full_slot(struct pipe_line *pipe, bool has_emptied)
{
    (void)pthread_mutex_lock(&pipe->mutex);
    pipe->taken += has_emptied;
    (void)pthread_cond_broadcast(&pipe->changed);
    while (pipe->put == pipe->taken && !pipe->is_ended)
        (void)pthread_cond_wait(&pipe->changed, &pipe->mutex);
    struct bare_ids *slot = pipe->put == pipe->taken
                                ? NULL
                                : &pipe->slots[pipe->taken % pipe->slots_count];
    (void)pthread_mutex_unlock(&pipe->mutex);
    return slot;
}

static bool settle_all(struct pipe_line *pipe)
{
    bool is_good = true;
    struct bare_ids *slot = full_slot(pipe, false);
    while (slot != NULL) {
        is_good = settle(pipe->turn, pipe->settler, slot);
        slot = is_good ? full_slot(pipe, true) : NULL;
    }
    if (!is_good)
        pass(pipe, false, true);
    return is_good;
}

static bool drain(struct pipe_line *pipe)
{
    pthread_t claimer;
    if (pthread_create(&claimer, NULL, claim_all, pipe) != 0)
        return turn_fail("thread", "cannot be had");
    bool is_good = settle_all(pipe);
    return pthread_join(claimer, NULL) == 0 && is_good && pipe->is_claimed;
}

bool turn_bare_drain(const struct turn *turn, struct turn_result *result)
{
    struct pipe_line pipe = {
        .turn = turn, .mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    /* As many jobs between the two as a worker holds. */
    int64_t slots = (turn->buffer + turn->parallel) / turn->batch;
    pipe.slots_count = slots < 1 ? 1 : slots > SLOTS_MAX ? SLOTS_MAX : (size_t)slots;
    bool is_good = true;
    for (size_t i = 0; is_good && i < pipe.slots_count; i++)
        is_good = make_ids(turn, &pipe.slots[i]);
    void *transaction = is_good ? turn_old_transaction(turn, &is_good) : NULL;
    double wal = turn_wal(turn);
    is_good = is_good && fill(turn, result) && open_claimer(turn, &pipe.claimer);
    pipe.settler = is_good ? open_settler(turn) : NULL;
    int64_t began_us = turn_now_us();
    is_good = pipe.settler != NULL && drain(&pipe);
    result->seconds = (double)(turn_now_us() - began_us) / 1e6;
    result->wal_bytes_per_job = wal_of(turn, wal);
    turn_end_transaction(transaction);
    PQfinish(pipe.claimer.conn);
    PQfinish(pipe.settler);
    for (size_t i = 0; i < pipe.slots_count; i++)
        free(pipe.slots[i].bytes);
    return is_good && check(turn);
}

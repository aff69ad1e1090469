/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * bare.h - bare SQL on a PostgreSQL server, as somebody writes it who needs no checks.
 */
#ifndef PAWLB_BARE_H
#define PAWLB_BARE_H

#include "turn.h"

#include <libpq-fe.h>

#define ID_LEN 16

/* The columns that an enqueue writes, and one: line, position, id, payload. */
#define BARE_COLUMNS                            \
    "shard, line_id, pos, id, priority, lane, " \
    "created_at, next_attempt_at, payload"
#define BARE_INSERT                                                                     \
    "insert into pawl.job (" BARE_COLUMNS ") values (0, $1, $2, $3, 5::int2, 0::int2, " \
    "now(), now(), $4)"

/* A claim: line, how many at most, worker, from which position and number there. */
#define BARE_CLAIM_ARGS 5
#define BARE_CLAIM_SETS                                                                     \
    "set state = 1, lease_version = j.lease_version + 1, lease_token = gen_random_uuid(), " \
    "claimed_by = $3, claimed_at = now(), lease_expires_at = now() + interval '30 s', "     \
    "lease_ms = 30000, run_ms = 90000, run_until = now() + interval '90 s', "               \
    "unstarted_until = now() + interval '150 s' "
#define BARE_CLAIM                                                                              \
    "update pawl.job j " BARE_CLAIM_SETS "where j.id = any (array(select d.id from pawl.job d " \
    "where d.line_id = $1 and d.priority = 5 and d.lane = 0 and d.state = 0 "                   \
    "and (d.pos, d.seq) >= ($4, $5) "                                                           \
    "order by d.pos, d.seq limit $2 for update skip locked)) "                                  \
    "returning j.id, j.payload, j.pos, j.seq, j.lease_version, j.attempts, j.lease_token"

/* The ids of some jobs, as an argument uuid[] in the binary format. */
struct bare_ids {
    char *bytes;
    size_t length; /* in bytes, of the argument */
    size_t count;
};

/* One argument of a statement; all are binary. */
struct bare_arg {
    const void *bytes;
    int length;
};

void bare_put_int4(char *bytes, int32_t number);
void bare_put_int8(char *bytes, int64_t number);
int64_t bare_get_int8(const char *bytes);

/* A connection with the settings that the store's functions have. NULL: it has said why. */
PGconn *bare_connect(const struct turn *turn);
bool bare_run(PGconn *conn, const char *sql);
bool bare_prepare(PGconn *conn, const char *name, const char *sql);
/* NULL: it has said why. */
PGresult *bare_call(PGconn *conn, const char *name, const struct bare_arg *args, int args_count);
/* The line of the queue, which is made where it is not there; below 0: it has said why. */
int64_t bare_line(const struct turn *turn, PGconn *conn);
/* An id that rises, as those of the store do. */
void bare_id(int64_t number, char id[ID_LEN]);

#endif

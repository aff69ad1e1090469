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

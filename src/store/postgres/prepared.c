/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * prepared.c - statements that the server reads and plans once for a session, and not in each call.
 * Owns:  which of them it knows, and their names.
 * Never: names one behind a pooler, where the next transaction may be in another session; counts on
 *        one that the server has not answered to.
 *
 * A name outlives the transaction that it was told in, whatever becomes of that.
 */
#include "store/postgres/postgres.h"

#include <assert.h>
#include <stdio.h>

/* What the protocol wants to have of the arguments. */
struct wire_args {
    Oid types[PAWLI_PG_ARGS_MAX];
    const char *values[PAWLI_PG_ARGS_MAX];
    int lengths[PAWLI_PG_ARGS_MAX];
    int formats[PAWLI_PG_ARGS_MAX];
};

static void spread(const struct pawli_pg_args *args, struct wire_args *ret_wire)
{
    assert(!args->is_failed);
    for (int i = 0; i < args->count; i++) {
        assert(args->list[i].len <= INT32_MAX);
        ret_wire->types[i] = args->list[i].type;
        /* An empty value is not NULL, even where there is no byte to point at. */
        const char *bytes = args->bytes.bytes != NULL ? (const char *)args->bytes.bytes : "";
        ret_wire->values[i] = args->list[i].is_null ? NULL : bytes + args->list[i].at;
        ret_wire->lengths[i] = (int)args->list[i].len;
        ret_wire->formats[i] = 1;
    }
}

/* Where it stands in the list; its end: it does not. */
static size_t place_of(const struct pawli_pg_link *link, const char *sql)
{
    size_t at = 0;
    while (at < link->prepared.count && link->prepared.list[at] != sql)
        at++;
    return at;
}

bool pawli_pg_prepare(struct pawli_pg_link *link, const struct pawli_pg_statement *statement,
                      size_t *told)
{
    struct pawli_pg_prepared *prepared = &link->prepared;
    size_t at = place_of(link, statement->sql);
    if (!link->is_direct || at < prepared->count || at == PAWLI_PG_PREPARED_MAX)
        return true;
    struct wire_args wire;
    char *name = prepared->names[at];
    spread(&statement->args, &wire);
    (void)snprintf(name, PAWLI_PG_NAME_SIZE, "pawl_%zu", at); /* it fits */
    if (PQsendPrepare(link->conn, name, statement->sql, statement->args.count, wire.types) != 1)
        return false;
    prepared->list[prepared->count++] = statement->sql;
    ++*told;
    return true;
}

void pawli_pg_prepared_one(struct pawli_pg_link *link)
{
    assert(link->prepared.known < link->prepared.count);
    link->prepared.known++;
}

void pawli_pg_prepared_end(struct pawli_pg_link *link)
{
    link->prepared.count = link->prepared.known;
}

bool pawli_pg_send(struct pawli_pg_link *link, const struct pawli_pg_statement *statement)
{
    struct wire_args wire;
    int count = statement->args.count;
    size_t at = place_of(link, statement->sql);
    spread(&statement->args, &wire);
    if (at == link->prepared.count)
        return PQsendQueryParams(link->conn, statement->sql, count, wire.types, wire.values,
                                 wire.lengths, wire.formats, 1) == 1;
    return PQsendQueryPrepared(link->conn, link->prepared.names[at], count, wire.values,
                               wire.lengths, wire.formats, 1) == 1;
}

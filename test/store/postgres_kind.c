/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * postgres_kind.c - how the suite gets a PostgreSQL store, and lets its time pass.
 * Owns:  one server for the program, with databases that are emptied for each case.
 * Never: reaches behind the SQL functions, but to shift what is stored back in time, or (the exact
 *        kind) to give them another clock to read; gives the store more rights than the runtime
 *        role has.
 */
#include "store/postgres_kind.h"

#include "support/pg_bouncer.h"
#include "support/pg_schema.h"
#include "support/pg_server.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SQL_MAX         2048
#define AGES_PER_VACUUM 32

/* Where the exact clock begins: the same day as the memory store's. */
#define STORY_BEGINS_US "1700000000000000"

/* Databases are made once, by the number of shards and by their clock. */
enum variant {
    VARIANT_ONE = 0,
    VARIANT_MANY = 1,
    VARIANT_EXACT = 2, /* added to the others */
    VARIANTS = 4
};

struct place {
    char database[24];
    bool is_pooled;
    bool is_exact;
    PGconn *conn; /* of the superuser, straight to the database */
    int ages;
};

/* The program's own server. Changed only by its one thread. */
static struct {
    struct pg_server server;
    struct pg_bouncer bouncer;
    bool has_database[VARIANTS];
    bool is_even;
} world;

/* ---------------------------------------------------------------- the server */

static bool run(PGconn *conn, const char *sql)
{
    PGresult *result = PQexec(conn, sql);
    ExecStatusType status = PQresultStatus(result);
    bool is_done = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
    if (!is_done)
        (void)fprintf(stderr, "%s: %s\n", sql, PQerrorMessage(conn));
    PQclear(result);
    return is_done;
}

static PGconn *connect_to(const char *database)
{
    char conninfo[PG_PATH_MAX];
    PGconn *conn = PQconnectdb(pg_server_conninfo(&world.server, database, conninfo));
    if (PQstatus(conn) == CONNECTION_OK && run(conn, "set client_min_messages = error"))
        return conn;
    (void)fprintf(stderr, "%s: %s\n", database, PQerrorMessage(conn));
    PQfinish(conn);
    return NULL;
}

bool postgres_kind_begin(bool is_pooled)
{
    if (!pg_server_start(&world.server, false))
        return false;
    return !is_pooled || pg_bouncer_start(&world.bouncer, &world.server);
}

void postgres_kind_leave_out_chance(void)
{
    world.is_even = true;
}

void postgres_kind_end(void)
{
    pg_bouncer_stop(&world.bouncer);
    pg_server_remove(&world.server);
}

/* ---------------------------------------------------------------- a store for a case */

/*
 * A clock that stands still until it is turned: the functions read it instead of the server's. It
 * lives in a sequence, which is the same for every session and every snapshot.
 */
static const char exact_sql[] =
    "create schema pawl_test;\n"
    "create sequence pawl_test.clock_us;\n"
    "grant usage on schema pawl_test to public;\n" /* whoever owns the functions */
    "grant select on sequence pawl_test.clock_us to public;\n"
    "create function pawl_test.clock() returns timestamptz language sql volatile as $$\n"
    "    select timestamptz 'epoch' + c.last_value * interval '1 microsecond'\n"
    "    from pawl_test.clock_us c $$;\n"
    "do $$\n"
    "declare\n"
    "    v_text text;\n"
    "begin\n"
    "    for v_text in select pg_get_functiondef(p.oid) from pg_proc p\n"
    "        where p.pronamespace = 'pawl'::regnamespace and p.prosrc like '%clock_timestamp()%'\n"
    "    loop\n"
    "        execute replace(v_text, 'clock_timestamp()', 'pawl_test.clock()');\n"
    "    end loop;\n"
    "end $$;\n"
    "alter view pawl.arrival alter column created_at set default pawl_test.clock();\n"
    "alter view pawl.arrival alter column next_attempt_at set default pawl_test.clock()";

/* Every delay that would be drawn is the longest there is. */
static const char even_sql[] =
    "create or replace function pawl.draw(p_seed bytea, p_id uuid, p_max int8) returns int8\n"
    "language sql immutable parallel safe as 'select p_max'";

/* A database with the schema, made once for each variant: to make one is slow. */
static bool need_database(int64_t shards, const struct place *place)
{
    unsigned variant = (shards > 1 ? VARIANT_MANY : VARIANT_ONE) +
                       (place->is_exact ? VARIANT_EXACT : 0U);
    if (world.has_database[variant])
        return true;
    if (!pg_schema_make(&world.server, place->database, shards))
        return false;
    if (place->is_exact &&
        (!pg_server_run(&world.server, place->database, exact_sql) ||
         (world.is_even && !pg_server_run(&world.server, place->database, even_sql))))
        return false;
    world.has_database[variant] = true;
    return true;
}

/*
 * Empty every table but those that say how the schema was set up. To truncate makes new files,
 * which is slow where many are made and removed: what has never held a row is left alone, and of
 * what is small the rows are deleted.
 */
static const char empty_sql[] =
    "do $$\n"
    "declare\n"
    "    v_name text;\n"
    "begin\n"
    "    set local session_replication_role = replica;\n" /* past the ledger's trigger */
    "    for v_name in select c.oid::regclass::text from pg_class c\n"
    "        where c.relnamespace = 'pawl'::regnamespace and c.relkind = 'r'\n"
    "          and c.relname not in ('config', 'migration') and pg_relation_size(c.oid) > 0\n"
    "    loop\n"
    "        execute case when pg_relation_size(v_name::regclass) <= 65536 then 'delete from '\n"
    "                     else 'truncate ' end || v_name;\n"
    "    end loop;\n"
    "    perform setval(s.seqrelid, s.seqstart, false) from pg_sequence s\n"
    "        join pg_class c on c.oid = s.seqrelid\n"
    "        where c.relnamespace = 'pawl'::regnamespace;\n"
    "end $$";

static void drop(struct place *place)
{
    PQfinish(place->conn);
    free(place);
}

static bool set_clock(struct place *place)
{
    return !place->is_exact ||
           run(place->conn, "select setval('pawl_test.clock_us', " STORY_BEGINS_US ")");
}

static struct place *make_place(int64_t shards, const struct place *like)
{
    struct place *place = calloc(1, sizeof(*place));
    if (place == NULL)
        return NULL;
    *place = *like;
    (void)snprintf(place->database, sizeof(place->database), "pawl_%d%s", (int)shards,
                   place->is_exact ? "_exact" : "");
    if (need_database(shards, place) && (place->conn = connect_to(place->database)) != NULL &&
        run(place->conn, empty_sql) && set_clock(place))
        return place;
    drop(place);
    return NULL;
}

static struct place *make(int64_t shards)
{
    return make_place(shards, &(struct place){0});
}

static struct place *make_pooled(int64_t shards)
{
    return make_place(shards, &(struct place){.is_pooled = true});
}

static struct place *make_exact(int64_t shards)
{
    return make_place(shards, &(struct place){.is_exact = true});
}

static pawl_store *open_postgres(struct place *place)
{
    char conninfo[PG_PATH_MAX];
    pawl_postgres_options options;
    pawl_store *store = NULL;
    pawl_err err;
    pawl_postgres_options_init(&options);
    options.call_timeout_ms = 30000; /* a slow machine is no fault of the store's */
    options.conninfo = place->is_pooled
                           ? pg_bouncer_conninfo(&world.bouncer, place->database, conninfo)
                           : pg_schema_conninfo(&world.server, place->database, conninfo);
    if (pawl_postgres_open(&options, &store, &err) == PAWL_OK)
        return store;
    (void)fprintf(stderr, "open: %s\n", err.text);
    return NULL;
}

const char *postgres_kind_conninfo(const struct place *place, char text[PG_PATH_MAX])
{
    return pg_server_conninfo(&world.server, place->database, text);
}

/* ---------------------------------------------------------------- time */

/*
 * Shift every instant that is stored back, whatever tables and columns there are: hints too, and
 * the due time that is part of a position. Not what tells of the server itself.
 */
static const char age_sql[] =
    "do $$\n"
    "declare\n"
    "    v_by constant interval := interval '1 microsecond' * %lld;\n"
    "    v_table record;\n"
    "begin\n"
    "    set local session_replication_role = replica;\n" /* past the ledger's trigger */
    "    for v_table in\n"
    "        select c.oid::regclass as name,\n"
    "               string_agg(format('%%1$I = %%1$I - $1', a.attname), ', ') as changes\n"
    "        from pg_class c join pg_attribute a on a.attrelid = c.oid\n"
    "        where c.relnamespace = 'pawl'::regnamespace and c.relkind = 'r'\n"
    "          and c.relname <> 'migration' and a.attname <> 'boot' and a.attnum > 0\n"
    "          and a.atttypid = 'timestamptz'::regtype and not a.attisdropped\n"
    "        group by 1\n"
    "    loop\n"
    "        execute format('update %%s set %%s', v_table.name, v_table.changes) using v_by;\n"
    "    end loop;\n"
    "    update pawl.job set pos = pos - %lld where lane = 3;\n"
    "    update pawl.sweep set timed_from = timed_from - %lld;\n"
    "end $$";

static const char turn_sql[] =
    "select setval('pawl_test.clock_us', (select last_value + %lld from pawl_test.clock_us))";

static void age(struct place *place, int64_t ms)
{
    char sql[SQL_MAX];
    long long us = (long long)ms * 1000;
    if (place->is_exact)
        (void)snprintf(sql, sizeof(sql), turn_sql, us);
    else
        (void)snprintf(sql, sizeof(sql), age_sql, us, us, us);
    if (!run(place->conn, sql))
        abort(); /* a case that goes on now proves nothing */
    /* Each age leaves a dead copy of every row: more than the server's own vacuum comes after. */
    if (++place->ages % AGES_PER_VACUUM == 0)
        (void)run(place->conn, "vacuum"); /* only for speed */
}

static void restart(struct place *place)
{
    PQfinish(place->conn);
    pg_server_stop(&world.server);
    if (!pg_server_restart(&world.server))
        abort(); /* likewise */
    place->conn = connect_to(place->database);
}

const struct store_kind postgres_kind = {
    .name = "postgres",
    .has_exact_clock = false,
    .is_clock_turned = false,
    .is_durable = true,
    .slack_ms = 3000,
    .walk_steps = 1000, /* each is slow: the server plans, and looks at every priority */
    .make = make,
    .open = open_postgres,
    .age = age,
    .restart = restart,
    .drop = drop,
};

const struct store_kind pooled_kind = {
    .name = "postgres through PgBouncer",
    .has_exact_clock = false,
    .is_clock_turned = false,
    .is_durable = true,
    .slack_ms = 3000,
    .walk_steps = 300,
    .make = make_pooled,
    .open = open_postgres,
    .age = age,
    .restart = restart,
    .drop = drop,
};

const struct store_kind exact_postgres_kind = {
    .name = "postgres with an exact clock",
    .has_exact_clock = true,
    .is_clock_turned = true,
    .is_durable = true,
    .slack_ms = 0,
    .walk_steps = 1000,
    .make = make_exact,
    .open = open_postgres,
    .age = age,
    .restart = restart,
    .drop = drop,
};

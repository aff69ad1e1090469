/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * pg_schema.c - a database with the schema of Pawl, and the roles around it.
 * Owns:  the names of the roles and who gets what.
 * Never: gives the worker a right that docs/operating.md does not give.
 */
#include "support/pg_schema.h"

#include <stdio.h>

#define SQL_MAX 1024

static const char roles_sql[] = "do $$\n"
                                "declare\n"
                                "    v_role text;\n"
                                "begin\n"
                                "    foreach v_role in array '{" PG_OWNER " login, " PG_RUNTIME
                                ", " PG_READER ",\n"
                                "                              " PG_WORKER
                                " login in role " PG_RUNTIME "}'::text[] loop\n"
                                "        if to_regrole(split_part(v_role, ' ', 1)) is null then\n"
                                "            execute 'create role ' || v_role;\n"
                                "        end if;\n"
                                "    end loop;\n"
                                "end $$";

bool pg_schema_roles(const struct pg_server *server)
{
    return pg_server_run(server, "postgres", roles_sql);
}

bool pg_schema_make(const struct pg_server *server, const char *database, int64_t shards)
{
    char sql[SQL_MAX];
    char conninfo[PG_PATH_MAX];
    pawl_migrate_options options;
    pawl_err err;
    size_t steps = 0;
    (void)snprintf(sql, sizeof(sql), "create database %.60s", database);
    if (!pg_schema_roles(server) || !pg_server_run(server, "postgres", sql))
        return false;
    (void)snprintf(sql, sizeof(sql), "grant create on database %.60s to " PG_OWNER, database);
    if (!pg_server_run(server, "postgres", sql))
        return false;
    pawl_migrate_options_init(&options);
    options.conninfo = pg_server_conninfo_as(server, PG_OWNER, database, conninfo);
    options.shards = shards;
    if (pawl_migrate_up(&options, &steps, &err) != PAWL_OK) {
        (void)fprintf(stderr, "migrate: %s\n", err.text);
        return false;
    }
    return pg_server_run(server, database,
                         "set role " PG_OWNER "; select pawl.grant_runtime('" PG_RUNTIME
                         "'), pawl.grant_reader('" PG_READER "')");
}

const char *pg_schema_conninfo(const struct pg_server *server, const char *database,
                               char text[PG_PATH_MAX])
{
    return pg_server_conninfo_as(server, PG_WORKER, database, text);
}

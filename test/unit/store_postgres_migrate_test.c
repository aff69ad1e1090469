/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * store_postgres_migrate_test.c - setting up the schema: whole steps, safe to repeat and from two
 * places at once, and the refusal of a schema that is newer, older or missing.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/pg_server.h"
#include "support/pg_world.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 3

static struct pg_server server;
static char conninfo[PG_PATH_MAX];

static int begin(void **state)
{
    (void)state;
    return pg_server_start(&server, false) ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    pg_server_remove(&server);
    return 0;
}

/* A fresh and empty database for each case. */
static int make_database(void **state)
{
    (void)state;
    (void)pg_server_conninfo(&server, PG_WORLD_DATABASE, conninfo);
    return pg_server_run(&server, "postgres",
                         "drop database if exists " PG_WORLD_DATABASE " with (force)") &&
                   pg_server_run(&server, "postgres", "create database " PG_WORLD_DATABASE)
               ? 0
               : -1;
}

static pawl_migrate_options usual_options(void)
{
    pawl_migrate_options options;
    pawl_migrate_options_init(&options);
    options.conninfo = conninfo;
    return options;
}

static size_t up(const pawl_migrate_options *options)
{
    size_t count = 0;
    pawl_err err;
    if (pawl_migrate_up(options, &count, &err) != PAWL_OK)
        fail_msg("up: %s", err.text);
    return count;
}

static pawl_code try_open(pawl_err *err)
{
    pawl_postgres_options options;
    pawl_store *store = NULL;
    pawl_postgres_options_init(&options);
    options.conninfo = conninfo;
    pawl_code code = pawl_postgres_open(&options, &store, err);
    if (code == PAWL_OK)
        pawl_store_close(store);
    return code;
}

/* How many steps there are, and how many of them are applied. */
struct told {
    size_t all;
    size_t applied;
};

static struct told status(void)
{
    pawl_migrate_options options = usual_options();
    pawl_migrate_step *steps = NULL;
    struct told told = {0};
    assert_int_equal(pawl_migrate_status(&options, &steps, &told.all, NULL), PAWL_OK);
    for (size_t i = 0; i < told.all; i++)
        told.applied += steps[i].applied_at.us != 0;
    free(steps);
    return told;
}

static void a_second_run_finds_nothing_to_do(void **state)
{
    (void)state;
    pawl_migrate_options options = usual_options();
    pawl_err err;
    assert_int_equal(try_open(&err), PAWL_INVALID);
    assert_non_null(strstr(err.text, "pawl migrate up"));
    struct told before = status();
    assert_int_equal(before.applied, 0);
    assert_int_equal(up(&options), before.all);
    assert_int_equal(status().applied, before.all);
    assert_int_equal(try_open(&err), PAWL_OK);
    assert_int_equal(up(&options), 0);
}

static void *up_in_a_thread(void *user)
{
    size_t *applied = user;
    pawl_migrate_options options = usual_options();
    if (pawl_migrate_up(&options, applied, NULL) != PAWL_OK)
        *applied = SIZE_MAX / THREADS;
    return NULL;
}

/* Each step is applied once, whoever gets there first. */
static void several_at_once_take_turns(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    size_t applied[THREADS] = {0};
    size_t total = 0;
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, up_in_a_thread, &applied[i]), 0);
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        total += applied[i];
    }
    struct told after = status();
    assert_int_equal(after.applied, after.all);
    assert_int_equal(total, after.all);
}

static void a_newer_schema_is_refused(void **state)
{
    (void)state;
    pawl_migrate_options options = usual_options();
    pawl_err err;
    size_t count;
    char *sql = NULL;
    (void)up(&options);
    assert_true(pg_server_run(&server, PG_WORLD_DATABASE,
                              "insert into pawl.migration (name) values ('899_later')"));
    assert_int_equal(pawl_migrate_up(&options, &count, &err), PAWL_INVALID);
    assert_non_null(strstr(err.text, "newer"));
    assert_int_equal(pawl_migrate_plan(&options, &sql, &err), PAWL_INVALID);
    assert_int_equal(try_open(&err), PAWL_INVALID);
    assert_non_null(strstr(err.text, "newer"));
}

static void an_older_schema_says_what_to_do(void **state)
{
    (void)state;
    pawl_migrate_options options = usual_options();
    pawl_err err;
    (void)up(&options);
    assert_true(pg_server_run(&server, PG_WORLD_DATABASE,
                              "delete from pawl.migration where name = (select max(name) from "
                              "pawl.migration where name < '900')"));
    assert_int_equal(try_open(&err), PAWL_INVALID);
    assert_non_null(strstr(err.text, "older"));
    assert_non_null(strstr(err.text, "pawl migrate up"));
}

/* A step that cannot be applied leaves nothing of itself behind. */
static void a_step_is_whole_or_nothing(void **state)
{
    (void)state;
    pawl_migrate_options options = usual_options();
    pawl_err err;
    size_t count = 0;
    assert_true(pg_server_run(&server, PG_WORLD_DATABASE,
                              "create schema pawl; create table pawl.worker (in_the_way int)"));
    assert_int_equal(pawl_migrate_up(&options, &count, &err), PAWL_DOWN);
    assert_non_null(strstr(err.text, "001_tables"));
    assert_non_null(strstr(err.text, "42P07"));
    struct told before = status();
    assert_int_equal(before.applied, 0);
    assert_true(pg_server_run(&server, PG_WORLD_DATABASE, "drop table pawl.worker"));
    assert_int_equal(up(&options), before.all);
}

static void shards_are_fixed_by_the_first_run(void **state)
{
    (void)state;
    pawl_migrate_options options = usual_options();
    pawl_err err;
    size_t count;
    options.shards = 8;
    (void)up(&options);
    options.shards = PAWL_DEFAULT;
    assert_int_equal(up(&options), 0);
    options.shards = 4;
    assert_int_equal(pawl_migrate_up(&options, &count, &err), PAWL_INVALID);
    assert_non_null(strstr(err.text, "shards is 4"));
    options.shards = 0;
    assert_int_equal(pawl_migrate_up(&options, &count, &err), PAWL_INVALID);
    options.shards = PAWL_SHARDS_MAX + 1;
    assert_int_equal(pawl_migrate_up(&options, &count, &err), PAWL_INVALID);
}

/* What plain PostgreSQL adds can be left out, and be applied later. */
static void the_plain_step_is_not_needed(void **state)
{
    (void)state;
    pawl_migrate_options options = usual_options();
    pawl_err err;
    options.is_plain = false;
    size_t needed = up(&options);
    struct told after = status();
    assert_int_equal(after.applied, needed);
    assert_true(needed < after.all);
    assert_int_equal(try_open(&err), PAWL_OK);
    options.is_plain = true;
    assert_int_equal(up(&options), after.all - needed);
}

/* The plan is what `up` runs: applied by hand it leaves nothing to do. */
static void the_plan_can_be_run_by_hand(void **state)
{
    (void)state;
    pawl_migrate_options options = usual_options();
    pawl_err err;
    char *sql = NULL;
    assert_int_equal(pawl_migrate_plan(&options, &sql, &err), PAWL_OK);
    assert_true(pg_server_run(&server, PG_WORLD_DATABASE, sql));
    free(sql);
    assert_int_equal(up(&options), 0);
    assert_int_equal(try_open(&err), PAWL_OK);
    assert_int_equal(pawl_migrate_plan(&options, &sql, &err), PAWL_OK);
    assert_string_equal(sql, "");
    free(sql);
}

/* What somebody else has put into a schema that all may write to is never made part of ours. */
static void a_trap_in_another_schema_is_not_stepped_on(void **state)
{
    (void)state;
    static const char trap[] =
        "create table public.caught (what text); grant all on public.caught to public;"
        "create function public.num_nulls(uuid, timestamptz, text, timestamptz, timestamptz, int8, "
        "int8, timestamptz) returns int4 language plpgsql as $$ begin "
        "insert into public.caught values ('num_nulls'); return 0; end $$;"
        "create function public.times(numeric, int4) returns numeric language plpgsql as $$ begin "
        "insert into public.caught values ('times'); return 0; end $$;"
        "create function public.times(float8, int4) returns float8 language plpgsql as $$ begin "
        "insert into public.caught values ('times'); return 0; end $$;"
        "create operator public.* (function = public.times, leftarg = numeric, rightarg = int4);"
        "create operator public.* (function = public.times, leftarg = float8, rightarg = int4);"
        "create function public.format(text, name) returns text language plpgsql as $$ begin "
        "insert into public.caught values ('format'); return 'select 1'; end $$";
    pawl_migrate_options options = usual_options();
    assert_true(pg_server_run(&server, PG_WORLD_DATABASE, trap));
    assert_true(up(&options) > 0);
    assert_true(status().applied > 0);
    assert_true(pg_server_run(&server, PG_WORLD_DATABASE,
                              "create role somebody; select pawl.grant_runtime('somebody'), "
                              "pawl.grant_reader('somebody'); select pawl.enqueue('q', 'x');"
                              "select pawl.claim_outbox_batch(1, 'w', 30, 'q')"));
    assert_int_equal(pg_world_number(&server, "select count(*) from public.caught"), 0);
    assert_int_equal(pg_world_number(&server, "select has_schema_privilege('somebody', 'pawl', "
                                              "'usage')::int4"),
                     1);
    assert_true(
        pg_server_run(&server, PG_WORLD_DATABASE, "drop owned by somebody; drop role somebody"));
}

#define CASE(function) cmocka_unit_test_setup(function, make_database)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_second_run_finds_nothing_to_do),
        CASE(several_at_once_take_turns),
        CASE(a_newer_schema_is_refused),
        CASE(an_older_schema_says_what_to_do),
        CASE(a_step_is_whole_or_nothing),
        CASE(shards_are_fixed_by_the_first_run),
        CASE(the_plain_step_is_not_needed),
        CASE(the_plan_can_be_run_by_hand),
        CASE(a_trap_in_another_schema_is_not_stepped_on),
    };
    return cmocka_run_group_tests(tests, begin, end);
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * migrate.c - sets up the schema of the PostgreSQL store, step by step.
 * Owns:  the order of the steps; the lock under which processes take turns; the refusal of a schema
 *        that is newer than this library.
 * Never: applies a part of a step; applies a step twice; undoes one.
 */
#include "store/postgres/postgres.h"
#include "store/postgres/steps.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "core/policy.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONNECT_TIMEOUT_MS 10000
#define STEP_TIMEOUT_MS    600000
#define MESSAGE_MAX        160
#define SCRIPT_MAX         256
#define LOCK_SQL           "select pg_catalog.pg_advisory_xact_lock(7020, 1)"
/* For one transaction: what anybody may have put into other schemas must not be taken for what our
 * SQL means, since it would run with the owner's rights from then on. */
#define PATH_SQL "set local search_path = pg_catalog, pg_temp"

/* ---- the steps */

int64_t pawli_pg_step_number(const char *name)
{
    return strtoll(name, NULL, 10);
}

static bool is_plain(const struct pawli_pg_step *step)
{
    return pawli_pg_step_number(step->name) >= PAWLI_PG_STEP_OPTIONAL;
}

int64_t pawli_pg_schema_version(void)
{
    int64_t version = 0;
    for (size_t i = 0; i < pawli_pg_steps_count; i++)
        if (!is_plain(&pawli_pg_steps[i]))
            version = pawli_pg_step_number(pawli_pg_steps[i].name);
    return version;
}

/* Steps of our list; pawli_pg_steps_count where there is none of that name. */
static size_t find_step(const char *name)
{
    size_t i = 0;
    while (i < pawli_pg_steps_count && strcmp(pawli_pg_steps[i].name, name) != 0)
        i++;
    return i;
}

/* ---- a connection that runs scripts */

/* A migration under way. */
struct migration {
    const pawl_migrate_options *options;
    struct pawli_pg_link link;
    int64_t shards;            /* 0: the schema says nothing yet */
    pawl_migrate_step *steps;  /* as the schema has them; owned */
    char message[MESSAGE_MAX]; /* the server's words on the last fault: of our own SQL */
};

static void end_migration(struct migration *migration)
{
    pawli_pg_disconnect(&migration->link);
    free(migration->steps);
}

/*
 * Run a script: statements without arguments, their answers as text. Gives how it ended; *ret_last
 * is the last answer with rows, the caller's, or NULL. A fault leaves no open transaction behind.
 */
static struct pawli_pg_fault run_script(struct migration *migration, const char *sql,
                                        PGresult **ret_last)
{
    struct pawli_pg_link *link = &migration->link;
    struct timespec until = pawli_wait_until(migration->options->timeout_ms);
    struct pawli_pg_fault fault = {.fate = PAWLI_PG_DONE};
    *ret_last = NULL;
    migration->message[0] = '\0';
    bool is_sent = PQsendQuery(link->conn, sql) == 1;
    int left = is_sent ? 1 : 0;
    while (is_sent && (left = PQflush(link->conn)) == 1)
        if (pawli_pg_await(link, true, until) != PAWLI_PG_READY || PQconsumeInput(link->conn) != 1)
            break;
    while (is_sent && left == 0) {
        bool is_late = false;
        while (PQisBusy(link->conn) == 1 && !is_late) {
            is_late = pawli_pg_await(link, false, until) != PAWLI_PG_READY;
            if (!is_late && PQconsumeInput(link->conn) != 1)
                break;
        }
        PGresult *answer = is_late ? NULL : PQgetResult(link->conn);
        if (answer == NULL) {
            if (!is_late && PQstatus(link->conn) == CONNECTION_OK)
                return fault;
            break;
        }
        if (PQresultStatus(answer) == PGRES_FATAL_ERROR && fault.fate == PAWLI_PG_DONE) {
            const char *sqlstate = PQresultErrorField(answer, PG_DIAG_SQLSTATE);
            const char *message = PQresultErrorField(answer, PG_DIAG_MESSAGE_PRIMARY);
            fault.fate = PAWLI_PG_NOT_DONE;
            (void)pawli_text_copy(fault.sqlstate, sizeof(fault.sqlstate), sqlstate);
            (void)pawli_text_copy(migration->message, sizeof(migration->message), message);
        }
        if (PQresultStatus(answer) == PGRES_TUPLES_OK) {
            PQclear(*ret_last);
            *ret_last = answer;
        } else {
            PQclear(answer);
        }
    }
    if (fault.sqlstate[0] == '\0')
        fault = (struct pawli_pg_fault){.fate = left == 0 ? PAWLI_PG_MAYBE : PAWLI_PG_NOT_DONE,
                                        .text = "the connection to the server was lost, or it did "
                                                "not answer in time"};
    pawli_pg_disconnect(link);
    return fault;
}

static pawl_code fail_script(const struct migration *migration, const struct pawli_pg_fault *fault,
                             const char *what, pawl_err *err)
{
    pawl_err inner;
    pawl_code rc = pawli_pg_fail(fault, false, &inner);
    return pawli_fail(err, rc, "%s: %s%s%s", what, inner.text,
                      migration->message[0] != '\0' ? ": " : "", migration->message);
}

/* Run a script of ours that changes nothing by itself. */
static pawl_code ask(struct migration *migration, const char *sql, PGresult **ret_last,
                     pawl_err *err)
{
    struct pawli_pg_fault fault = run_script(migration, sql, ret_last);
    if (fault.fate == PAWLI_PG_DONE && *ret_last != NULL)
        return PAWL_OK;
    if (fault.fate == PAWLI_PG_DONE)
        return pawli_fail(err, PAWL_DOWN, "the server gave no rows where it must");
    fault.fate = PAWLI_PG_NOT_DONE;
    PQclear(*ret_last);
    *ret_last = NULL;
    return fail_script(migration, &fault, "the schema could not be looked at", err);
}

/* ---- what the schema has */

static pawl_code read_steps(struct migration *migration, pawl_err *err)
{
    PGresult *rows;
    pawl_code rc = ask(migration,
                       PATH_SQL "; select name, (extract(epoch from applied_at) * 1000000)::int8 "
                                "from pawl.migration order by name",
                       &rows, err);
    if (rc != PAWL_OK)
        return rc;
    for (int i = 0; rc == PAWL_OK && i < PQntuples(rows); i++) {
        const char *name = PQgetvalue(rows, i, 0);
        size_t step = find_step(name);
        if (step < pawli_pg_steps_count)
            migration->steps[step].applied_at.us = strtoll(PQgetvalue(rows, i, 1), NULL, 10);
        else if (pawli_pg_step_number(name) < PAWLI_PG_STEP_OPTIONAL)
            rc = pawli_fail(err, PAWL_INVALID,
                            "the schema pawl has the step %.40s, which this library does not "
                            "know: the schema is newer; use a newer library",
                            name);
    }
    PQclear(rows);
    return rc;
}

static pawl_code read_shards(struct migration *migration, pawl_err *err)
{
    PGresult *rows;
    pawl_code rc = ask(migration, PATH_SQL "; select shards from pawl.config", &rows, err);
    if (rc != PAWL_OK)
        return rc;
    if (PQntuples(rows) == 1)
        migration->shards = strtoll(PQgetvalue(rows, 0, 0), NULL, 10);
    PQclear(rows);
    int64_t wanted = migration->options->shards;
    if (migration->shards != 0 && wanted != PAWL_DEFAULT && wanted != migration->shards)
        return pawli_fail(err, PAWL_INVALID,
                          "shards is %lld; the schema was set up with %lld, and that is fixed",
                          (long long)wanted, (long long)migration->shards);
    return PAWL_OK;
}

static pawl_code read_schema(struct migration *migration, pawl_err *err)
{
    PGresult *found;
    migration->steps = calloc(pawli_pg_steps_count, sizeof(*migration->steps));
    if (migration->steps == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    for (size_t i = 0; i < pawli_pg_steps_count; i++)
        migration->steps[i] = (pawl_migrate_step){
            .name = pawli_pg_steps[i].name,
            .sql = pawli_pg_steps[i].sql,
            .is_plain = is_plain(&pawli_pg_steps[i]),
        };
    pawl_code rc = ask(migration,
                       PATH_SQL "; select to_regclass('pawl.migration') is not null, "
                                "coalesce(has_table_privilege(to_regclass('pawl.config'), "
                                "'select'), false)",
                       &found, err);
    if (rc != PAWL_OK)
        return rc;
    bool has_steps = strcmp(PQgetvalue(found, 0, 0), "t") == 0;
    /* The runtime role may look at the steps, not at this table; who may not, changes nothing. */
    bool has_config = strcmp(PQgetvalue(found, 0, 1), "t") == 0;
    PQclear(found);
    if (has_steps)
        rc = read_steps(migration, err);
    if (rc == PAWL_OK && has_config)
        rc = read_shards(migration, err);
    return rc;
}

/* ---- beginning */

void pawl_migrate_options_init(pawl_migrate_options *options)
{
    if (options == NULL)
        return;
    *options = (pawl_migrate_options){
        .shards = PAWL_DEFAULT,
        .is_plain = true,
        .timeout_ms = STEP_TIMEOUT_MS,
    };
}

static pawl_code begin_migration(struct migration *migration, const pawl_migrate_options *options,
                                 pawl_err *err)
{
    *migration = (struct migration){.options = options, .link = {.wake_fd = -1}};
    if (options == NULL)
        return pawli_fail(err, PAWL_INVALID, "options is missing (NULL)");
    pawl_code rc = PAWL_OK;
    if (options->shards != PAWL_DEFAULT)
        rc = pawli_check_range("shards", options->shards, (struct pawli_range){1, PAWL_SHARDS_MAX},
                               err);
    if (rc == PAWL_OK)
        rc = pawli_check_duration("timeout_ms", options->timeout_ms, 1, err);
    if (rc == PAWL_OK)
        rc = pawli_pg_check_conninfo(options->conninfo, err);
    if (rc != PAWL_OK)
        return rc;
    struct pawli_pg_fault fault;
    if (!pawli_pg_connect(&migration->link, options->conninfo != NULL ? options->conninfo : "",
                          CONNECT_TIMEOUT_MS, pawli_wait_until(CONNECT_TIMEOUT_MS), &fault))
        return pawli_pg_fail(&fault, true, err);
    int is_left = PQexitPipelineMode(migration->link.conn); /* scripts have many statements */
    assert(is_left == 1);
    (void)is_left; /* used by the assert only */
    return read_schema(migration, err);
}

/* ---- the script of a step */

/* What follows a step's own SQL: its record, and with the last one needed the number of shards. */
static void print_record(const struct migration *migration, const struct pawli_pg_step *step,
                         char script[SCRIPT_MAX])
{
    int64_t shards = migration->options->shards != PAWL_DEFAULT ? migration->options->shards : 1;
    char config[SCRIPT_MAX / 2] = "";
    bool is_last = pawli_pg_step_number(step->name) == pawli_pg_schema_version();
    if (is_last && migration->shards == 0)
        (void)snprintf(config, sizeof(config), /* here and below: fits; names are ours */
                       "select pawl.install(%lld);\n", (long long)shards);
    (void)snprintf(script, SCRIPT_MAX, "%sinsert into pawl.migration (name) values ('%s');\n",
                   config, step->name);
}

static bool is_wanted(const struct migration *migration, size_t step)
{
    return step > 0 && migration->steps[step].applied_at.us == 0 &&
           (!migration->steps[step].is_plain || migration->options->is_plain);
}

static bool put_text(struct pawli_buffer *buffer, const char *text)
{
    return pawli_buffer_put(buffer, text, strlen(text));
}

static bool print_step(const struct migration *migration, size_t step, struct pawli_buffer *buffer)
{
    char record[SCRIPT_MAX];
    print_record(migration, &pawli_pg_steps[step], record);
    /* Step 0 is harmless where it was run before, but noisy. */
    const char *zero = buffer->len == 0 ? pawli_pg_steps[0].sql : "";
    return put_text(buffer, "begin;\n" PATH_SQL ";\n" LOCK_SQL ";\n") && put_text(buffer, zero) &&
           put_text(buffer, pawli_pg_steps[step].sql) && put_text(buffer, record) &&
           put_text(buffer, "commit;\n");
}

pawl_code pawl_migrate_plan(const pawl_migrate_options *options, char **ret_sql, pawl_err *err)
{
    struct migration migration;
    struct pawli_buffer buffer = {0};
    if (ret_sql == NULL)
        return pawli_fail(err, PAWL_INVALID, "ret_sql is missing (NULL)");
    pawl_code rc = begin_migration(&migration, options, err);
    bool is_room = true;
    for (size_t i = 0; rc == PAWL_OK && is_room && i < pawli_pg_steps_count; i++)
        if (is_wanted(&migration, i))
            is_room = print_step(&migration, i, &buffer);
    if (rc == PAWL_OK && (!is_room || !pawli_buffer_put(&buffer, "", 1)))
        rc = pawli_fail_plain(err, PAWL_NO_MEMORY);
    end_migration(&migration);
    if (rc == PAWL_OK)
        *ret_sql = (char *)buffer.bytes;
    else
        pawli_buffer_clear(&buffer);
    return rc;
}

pawl_code pawl_migrate_status(const pawl_migrate_options *options, pawl_migrate_step **ret_steps,
                              size_t *ret_count, pawl_err *err)
{
    struct migration migration;
    if (ret_steps == NULL || ret_count == NULL)
        return pawli_fail(err, PAWL_INVALID, "ret_steps or ret_count is missing (NULL)");
    pawl_code rc = begin_migration(&migration, options, err);
    if (rc == PAWL_OK) {
        /* Step 0 is run with each of the others, and never recorded: it is no step to its users. */
        *ret_count = pawli_pg_steps_count - 1;
        memmove(migration.steps, migration.steps + 1, *ret_count * sizeof(*migration.steps));
        *ret_steps = migration.steps;
        migration.steps = NULL;
    }
    end_migration(&migration);
    return rc;
}

/* ---- applying */

/* Apply one step, unless another process has done so meanwhile. */
static pawl_code apply(struct migration *migration, size_t step, bool *ret_is_applied,
                       pawl_err *err)
{
    char script[SCRIPT_MAX];
    PGresult *rows;
    const char *name = pawli_pg_steps[step].name;
    (void)snprintf(script, sizeof(script), "select from pawl.migration where name = '%s'", name);
    const char *const before[] = {"begin", PATH_SQL, LOCK_SQL, pawli_pg_steps[0].sql, script};
    struct pawli_pg_fault fault = {.fate = PAWLI_PG_DONE};
    rows = NULL;
    for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
        PQclear(rows);
        fault = run_script(migration, before[i], &rows);
        if (fault.fate != PAWLI_PG_DONE)
            break;
    }
    *ret_is_applied = fault.fate == PAWLI_PG_DONE && PQntuples(rows) == 0;
    PQclear(rows);
    char record[SCRIPT_MAX];
    print_record(migration, &pawli_pg_steps[step], record);
    const char *const during[] = {pawli_pg_steps[step].sql, record};
    for (size_t i = 0; *ret_is_applied && fault.fate == PAWLI_PG_DONE && i < 2; i++) {
        fault = run_script(migration, during[i], &rows);
        PQclear(rows);
    }
    if (fault.fate != PAWLI_PG_DONE) {
        fault.fate = PAWLI_PG_NOT_DONE; /* nothing is committed yet */
        return fail_script(migration, &fault, name, err);
    }
    fault = run_script(migration, "commit", &rows);
    PQclear(rows);
    return fault.fate == PAWLI_PG_DONE ? PAWL_OK : fail_script(migration, &fault, name, err);
}

pawl_code pawl_migrate_up(const pawl_migrate_options *options, size_t *ret_count, pawl_err *err)
{
    struct migration migration;
    size_t count = 0;
    if (ret_count == NULL)
        return pawli_fail(err, PAWL_INVALID, "ret_count is missing (NULL)");
    pawl_code rc = begin_migration(&migration, options, err);
    for (size_t i = 0; rc == PAWL_OK && i < pawli_pg_steps_count; i++) {
        bool is_applied = false;
        if (is_wanted(&migration, i))
            rc = apply(&migration, i, &is_applied, err);
        count += is_applied;
    }
    end_migration(&migration);
    if (rc == PAWL_OK)
        *ret_count = count;
    return rc;
}

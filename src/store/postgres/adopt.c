/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * adopt.c - takes over an outbox of the older kind: calls the SQL function that does, once.
 * Owns:  the transaction around it, its locks' and its own time limit, and the form of the report.
 * Never: decides what becomes of a row; puts a name from the mapping into SQL (the function quotes
 *        them); tells anything of a row but its id.
 */
#include "store/adopt.h"
#include "store/postgres/postgres.h"

#include "base/clock.h"
#include "base/error.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONNECT_TIMEOUT_MS 10000
#define STEP_SQLSTATE      "P7100" /* of the notices that tell a step */
#define STATEMENTS_COUNT   4
#define ANSWER             2 /* the statement whose answer is the report */
#define ANSWER_SHAPE       "isssis"

static const char limits_sql[] = "select pg_catalog.set_config('lock_timeout', $1, true),"
                                 " pg_catalog.set_config('statement_timeout', $2, true),"
                                 " pg_catalog.set_config('client_min_messages', 'notice', true)";
/* A row for each id, and one for each class that shows none. */
static const char adopt_sql[] =
    "select r.o, r.kind, r.name, r.becomes, r.count, u.id"
    " from pawl.adopt(pg_catalog.jsonb_object($1, $2), $3, $4)"
    " with ordinality r(kind, name, becomes, count, ids, o)"
    " left join lateral pg_catalog.unnest(r.ids) with ordinality u(id, n) on true"
    " order by r.o, u.n";

/* An adoption under way. */
struct adoption {
    const pawl_adopt_options *options;
    int64_t stale_after_ms;
    struct pawli_pg_link link;
    struct pawli_pg_statement statements[STATEMENTS_COUNT];
    PGresult *answers[STATEMENTS_COUNT];
};

static void on_notice(void *user, const PGresult *notice)
{
    const struct adoption *adoption = user;
    const char *sqlstate = PQresultErrorField(notice, PG_DIAG_SQLSTATE);
    const char *step = PQresultErrorField(notice, PG_DIAG_MESSAGE_PRIMARY);
    if (sqlstate != NULL && step != NULL && strcmp(sqlstate, STEP_SQLSTATE) == 0)
        adoption->options->progress(adoption->options->user, step);
}

/* ---- asking */

static void put_limit(struct pawli_pg_args *args, int64_t ms)
{
    char text[24];
    (void)snprintf(text, sizeof(text), "%lld", (long long)ms); /* always fits */
    pawli_pg_arg_text(args, text);
}

static void put_mapping(struct pawli_pg_args *args, const struct adoption *adoption)
{
    const pawl_adopt_options *options = adoption->options;
    char stale_after[24];
    (void)snprintf(stale_after, sizeof(stale_after), "%lld", (long long)adoption->stale_after_ms);
    pawli_pg_array_begin(args, PAWLI_PG_TEXT, options->mapping_count);
    for (size_t i = 0; i < options->mapping_count; i++) {
        bool is_duration = strcmp(options->mapping[i].key, PAWLI_ADOPT_STALE_AFTER) == 0;
        pawli_pg_item_text(args, is_duration ? "stale_after_ms" : options->mapping[i].key);
    }
    pawli_pg_array_end(args);
    pawli_pg_array_begin(args, PAWLI_PG_TEXT, options->mapping_count);
    for (size_t i = 0; i < options->mapping_count; i++) {
        bool is_duration = strcmp(options->mapping[i].key, PAWLI_ADOPT_STALE_AFTER) == 0;
        pawli_pg_item_text(args, is_duration ? stale_after : options->mapping[i].value);
    }
    pawli_pg_array_end(args);
}

/* False: no memory. */
static bool prepare(struct adoption *adoption)
{
    const pawl_adopt_options *options = adoption->options;
    /* A dry run sees both tables as they were at one moment; a real one sees what was committed
     * before it had the locks. */
    adoption->statements[0].sql = options->is_dry_run
                                      ? "begin transaction isolation level repeatable read"
                                      : "begin transaction isolation level read committed";
    adoption->statements[1].sql = limits_sql;
    put_limit(&adoption->statements[1].args, options->lock_timeout_ms);
    put_limit(&adoption->statements[1].args, options->timeout_ms);
    struct pawli_pg_args *args = &adoption->statements[ANSWER].args;
    adoption->statements[ANSWER].sql = adopt_sql;
    put_mapping(args, adoption);
    pawli_pg_arg_bool(args, options->is_dry_run);
    pawli_pg_arg_bool(args, options->is_retiring);
    adoption->statements[3].sql = options->is_dry_run ? "rollback" : "commit";
    return !args->is_failed && !adoption->statements[1].args.is_failed;
}

/* Our own words for what can go wrong here, or the ones of our SQL functions. */
static pawl_code fail(const struct adoption *adoption, const struct pawli_pg_fault *fault,
                      pawl_err *err)
{
    if (strcmp(fault->sqlstate, "P7001") == 0 || strcmp(fault->sqlstate, "P7008") == 0)
        return pawli_fail(err, PAWL_INVALID, "%s", fault->own);
    if (strcmp(fault->sqlstate, "42501") == 0)
        return pawli_fail(err, PAWL_INVALID,
                          "the role lacks a privilege: call as the owner of the schema pawl, who "
                          "may read, lock and (to retire them) rename the old tables");
    if (strcmp(fault->sqlstate, "55P03") == 0 || strcmp(fault->sqlstate, "40P01") == 0)
        return pawli_fail(err, PAWL_DOWN,
                          "the old tables could not be locked within the lock timeout of %lld ms, "
                          "others write to them; nothing was done: stop these, or try again",
                          (long long)adoption->options->lock_timeout_ms);
    if (strcmp(fault->sqlstate, "P7003") == 0 || strcmp(fault->sqlstate, "23505") == 0)
        return pawli_fail(err, PAWL_DOWN,
                          "a job with an id of the old tables was enqueued meanwhile; nothing was "
                          "done: run it again to see which");
    return pawli_pg_fail(fault, adoption->options->is_dry_run, err);
}

/* ---- the report */

static struct pawli_pg_cell cell(const struct adoption *adoption, int row, int column)
{
    return (struct pawli_pg_cell){adoption->answers[ANSWER], row, column};
}

/* True where the row is one of the report's, not a remark on the run itself. */
static bool read_kind(struct pawli_pg_cell at, pawl_adopt_report *report, pawl_adopt_kind *ret_kind)
{
    static const struct {
        const char *name;
        pawl_adopt_kind kind;
    } kinds[] = {
        {"jobs", PAWL_ADOPT_JOBS}, {"rows", PAWL_ADOPT_ROWS}, {"problems", PAWL_ADOPT_PROBLEM}};
    char name[16];
    pawli_pg_text(at, name, sizeof(name));
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strcmp(name, kinds[i].name) == 0) {
            *ret_kind = kinds[i].kind;
            return true;
        }
    assert(strcmp(name, "done") == 0);
    at.column++;
    pawli_pg_text(at, name, sizeof(name));
    report->is_done = true;
    report->is_retired = strcmp(name, "retired") == 0;
    return false;
}

static void read_rows(const struct adoption *adoption, pawl_adopt_report *report)
{
    int64_t last = 0;
    size_t ids_count = 0;
    for (int row = 0; row < PQntuples(adoption->answers[ANSWER]); row++) {
        pawl_adopt_kind kind = PAWL_ADOPT_JOBS;
        int64_t ordinal = pawli_pg_int(cell(adoption, row, 0));
        if (!read_kind(cell(adoption, row, 1), report, &kind))
            continue;
        if (ordinal != last) {
            pawl_adopt_class *next = &report->classes[report->classes_count++];
            next->kind = kind;
            pawli_pg_text(cell(adoption, row, 2), next->name, sizeof(next->name));
            pawli_pg_text(cell(adoption, row, 3), next->becomes, sizeof(next->becomes));
            next->count = pawli_pg_int(cell(adoption, row, 4));
            next->ids = &report->ids[ids_count];
            report->problems_count += kind == PAWL_ADOPT_PROBLEM ? next->count : 0;
            last = ordinal;
        }
        if (pawli_pg_is_null(cell(adoption, row, 5)))
            continue;
        pawli_pg_text(cell(adoption, row, 5), report->ids[ids_count].text,
                      sizeof(report->ids[ids_count].text));
        ids_count++;
        report->classes[report->classes_count - 1].ids_count++;
    }
}

static pawl_code read_report(const struct adoption *adoption, pawl_adopt_report *ret_report,
                             pawl_err *err)
{
    const PGresult *answer = adoption->answers[ANSWER];
    if (!pawli_pg_is_shaped(answer, ANSWER_SHAPE))
        return pawli_fail(err, PAWL_UNKNOWN, "the server gave an answer of another form");
    size_t rows_count = (size_t)PQntuples(answer);
    pawl_adopt_report report = {
        .classes = calloc(rows_count + 1, sizeof(*report.classes)),
        .ids = calloc(rows_count + 1, sizeof(*report.ids)),
    };
    if (report.classes == NULL || report.ids == NULL) {
        pawl_adopt_report_clear(&report);
        return pawli_fail(err, PAWL_UNKNOWN, "memory ran out after it was done: repeat");
    }
    read_rows(adoption, &report);
    *ret_report = report;
    return PAWL_OK;
}

/* ---- all of it */

static pawl_code run(struct adoption *adoption, pawl_adopt_report *ret_report, pawl_err *err)
{
    const pawl_adopt_options *options = adoption->options;
    struct pawli_pg_fault fault;
    if (!prepare(adoption))
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    if (!pawli_pg_connect(&adoption->link, options->conninfo != NULL ? options->conninfo : "",
                          CONNECT_TIMEOUT_MS, pawli_wait_until(CONNECT_TIMEOUT_MS), &fault))
        return pawli_pg_fail(&fault, true, err);
    if (options->progress != NULL)
        (void)PQsetNoticeReceiver(adoption->link.conn, on_notice, adoption); /* gives the former */
    const struct pawli_pg_exchange exchange = {
        .statements = adoption->statements,
        .statements_count = STATEMENTS_COUNT,
        .ret_answers = adoption->answers,
    };
    /* The server's own limit comes first: then it says so itself. */
    int64_t wait_ms = options->timeout_ms + CONNECT_TIMEOUT_MS;
    fault = pawli_pg_exchange(&adoption->link, &exchange, pawli_wait_until(wait_ms));
    if (fault.fate != PAWLI_PG_DONE)
        return fail(adoption, &fault, err);
    pawl_code rc = read_report(adoption, ret_report, err);
    for (size_t i = 0; i < STATEMENTS_COUNT; i++)
        PQclear(adoption->answers[i]);
    return rc;
}

pawl_code pawl_adopt(const pawl_adopt_options *options, pawl_adopt_report *ret_report,
                     pawl_err *err)
{
    struct adoption adoption = {.options = options, .link = {.wake_fd = -1}};
    pawl_code rc = pawli_adopt_check(options, &adoption.stale_after_ms, err);
    if (rc == PAWL_OK && ret_report == NULL)
        rc = pawli_fail(err, PAWL_INVALID, "ret_report is missing (NULL)");
    if (rc == PAWL_OK)
        rc = pawli_pg_check_conninfo(options->conninfo, err);
    if (rc == PAWL_OK)
        rc = run(&adoption, ret_report, err);
    for (size_t i = 0; i < STATEMENTS_COUNT; i++)
        pawli_pg_args_clear(&adoption.statements[i].args);
    pawli_pg_disconnect(&adoption.link);
    return rc;
}

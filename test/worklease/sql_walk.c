/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * sql_walk.c - random operations on the SQL functions of work leases, beside the naive model. One
 * call makes a whole episode (see sql_walk.sql), so that a hundred thousand operations, each with a
 * look at all that is kept, take seconds.
 * Owns:  the words for what the model says.
 * Never: calls the C store.
 */
#include "worklease/sql_walk.h"

#include "store/postgres_kind.h"
#include "worklease/draw.h"
#include "worklease/invariants.h"

#include <inttypes.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EPISODES 335
#define STEPS    300
#define TEXT_MAX 2048
#define SQL_MAX  (512 * STEPS)

/* ---------------------------------------------------------------- the server */

static PGresult *run(PGconn *conn, const char *sql)
{
    PGresult *result = PQexec(conn, sql);
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        fail_msg("%.200s: %s", sql, PQerrorMessage(conn));
    return result;
}

static void run_file(PGconn *conn, const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = calloc(1, SQL_MAX);
    assert_true(file != NULL && text != NULL);
    size_t len = fread(text, 1, SQL_MAX - 1, file);
    assert_true(len > 0 && len < SQL_MAX - 1);
    (void)fclose(file); /* it was read */
    PQclear(run(conn, text));
    free(text);
}

/* ---------------------------------------------------------------- what the model says, in words */

/* A text that grows; cut where it would not fit, which the comparison then shows. */
struct words {
    char text[TEXT_MAX];
};

static void say(struct words *words, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(struct words *words, const char *format, ...)
{
    size_t len = strlen(words->text);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(words->text + len, sizeof(words->text) - len, format, args);
    va_end(args);
}

static void say_number(struct words *words, bool is_there, int64_t number)
{
    if (is_there)
        say(words, " %" PRId64, number);
    else
        say(words, " -");
}

/* Tokens of the model are the numbers of the operations that they were given to. */
static pawl_token token_of(int32_t no)
{
    pawl_token token = {{0}};
    memcpy(token.bytes, &no, sizeof(no));
    return token;
}

static int32_t number_of(const pawl_token *token)
{
    int32_t no;
    memcpy(&no, token->bytes, sizeof(no));
    return no;
}

static struct words tell_outcome(const struct operation *op, const struct outcome *outcome,
                                 const pawl_token *token)
{
    static const char *const states[] = {"P7010", "P7011", "P7012", "P7013", "P7014"};
    struct words words = {""};
    if (outcome->code != PAWL_OK) {
        say(&words, "%s", states[outcome->code - PAWL_WL_ORDER]);
    } else if (op->kind == ACQUIRE) {
        const pawl_worklease_acquired *got = &outcome->acquired;
        bool has_lease = got->got != PAWL_GOT_ALREADY_PROCESSED &&
                         got->got != PAWL_GOT_ALREADY_FAILED;
        say(&words, "%s", pawl_worklease_got_name(got->got));
        say_number(&words, got->got == PAWL_GOT_ACQUIRED || got->got == PAWL_GOT_ALREADY_ACQUIRED,
                   number_of(token));
        say(&words, " %c", got->is_taken_over ? 't' : 'f');
        say_number(&words, has_lease, got->offset);
        say_number(&words, has_lease, got->acquired_at.us);
        say_number(&words, has_lease, got->retry_count);
        say_number(&words, got->expires_at.us != 0, got->expires_at.us);
    } else if (op->kind == RENEW) {
        say(&words, "RENEWED");
        say_number(&words, outcome->renewed.us != 0, outcome->renewed.us);
    } else {
        pawl_worklease_end end = outcome->ended.end;
        say(&words, "%s", pawl_worklease_end_name(end));
        say_number(&words, end == PAWL_END_NEXT_HINT || end == PAWL_END_GIVE_UP_NEXT_HINT,
                   outcome->ended.next_offset);
        say_number(&words, end == PAWL_END_RETRY_SCHEDULED, outcome->ended.retry_count);
    }
    return words;
}

/* The offsets that have ended, as the intervals that they must have grown into. */
static void say_terminal(struct words *words, const struct model *model)
{
    bool is_first = true;
    for (size_t i = 0; i < UNIVERSE; i++) {
        int64_t first = worklease_universe[i];
        bool is_failed = model_set_has(&model->failed, first);
        const struct model_set *set = is_failed ? &model->failed : &model->processed;
        if (!model_set_has(set, first) || (first > INT64_MIN && model_set_has(set, first - 1)))
            continue;
        int64_t last = first;
        while (last < INT64_MAX && model_set_has(set, last + 1))
            last++;
        say(words, "%s%" PRId64 "..%" PRId64 "%c", is_first ? "" : ",", first, last,
            is_failed ? 'f' : 'p');
        is_first = false;
    }
}

static struct words tell_model(const struct model *model)
{
    struct words words = {""};
    bool is_leased = model->is_leased;
    if (is_leased)
        say(&words, "%" PRId64, model->offset);
    else
        say(&words, "-");
    say(&words, " %s", is_leased && model->owner != NULL ? model->owner : "-");
    say_number(&words, is_leased, model->acquired_at_us);
    say_number(&words, is_leased, model->retry_count);
    say_number(&words, is_leased && model->expires_at_us != 0, model->expires_at_us);
    say(&words, " [");
    for (size_t i = 0; i < model->backlog.count; i++)
        say(&words, "%s%" PRId64, i > 0 ? "," : "", model->backlog.offsets[i]);
    say(&words, "] [");
    say_terminal(&words, model);
    say(&words, "]");
    return words;
}

/* ---------------------------------------------------------------- the walk */

struct step {
    char text[256]; /* for people */
    size_t which;   /* of the domains */
    struct operation op;
    struct outcome outcome;
    struct words told;
    struct words kept;
};

/* An operation as a row of pawl_test.op. */
static void put_row(char *sql, int32_t no, int64_t turn_ms, const struct model *model,
                    const struct operation *op, struct step *ret_step)
{
    char lease[24] = "null";
    if (op->lease_ms != PAWL_DEFAULT)
        (void)snprintf(lease, sizeof(lease), "%" PRId64, op->lease_ms);
    (void)snprintf(
        ret_step->text, sizeof(ret_step->text),
        "(%d, %" PRId64 ", %d, '%s', '%" PRId64 "', %s%s%s, %s, %" PRId64 ", %d)", no,
        turn_ms * 1000, (int)op->kind, model->name, op->offset, op->owner != NULL ? "'" : "",
        op->owner != NULL ? op->owner : "null", op->owner != NULL ? "'" : "", lease,
        op->kind == FAIL ? model->max_retries : model->backlog_max, number_of(&op->token));
    size_t len = strlen(sql);
    (void)snprintf(sql + len, SQL_MAX - len, "%s%s", len > 0 && sql[len - 1] == ')' ? ", " : "",
                   ret_step->text);
}

static void draw_episode(int episode, int64_t *now_us, const pawl_random *random, char *sql,
                         struct step *steps)
{
    struct model models[DOMAINS];
    draw_domains(models, episode);
    (void)snprintf(sql, SQL_MAX,
                   "delete from pawl_test.op; delete from pawl_test.told; delete from "
                   "pawl_test.grants; insert "
                   "into pawl_test.op values ");
    for (int32_t i = 0; i < STEPS; i++) {
        int32_t no = i + 1;
        int64_t turn_ms = draw_turn_ms(random);
        *now_us += turn_ms * 1000;
        steps[i].which = (size_t)pawli_random_below(random, DOMAINS);
        struct model *model = &models[steps[i].which];
        struct operation op = draw_operation(model, *now_us, random);
        if (number_of(&op.token) > STEPS || number_of(&op.token) < 0)
            op.token = token_of(0); /* nobody's */
        put_row(sql, no, turn_ms, model, &op, &steps[i]);
        struct outcome outcome = model_apply(model, &op);
        if (outcome.code == PAWL_OK && op.kind == ACQUIRE &&
            outcome.acquired.got == PAWL_GOT_ACQUIRED) {
            pawl_token token = token_of(no);
            model_token(model, &token);
        }
        steps[i].op = op;
        steps[i].outcome = outcome;
        steps[i].told = tell_outcome(&op, &outcome, &model->token);
        steps[i].kept = tell_model(model);
    }
}

/* The next number of what is kept; false where "-" stands for none, or the list ends. */
static bool read_number(const char **at, int64_t *ret_number)
{
    char *end = NULL;
    *at += strspn(*at, " ,[");
    long long number = strtoll(*at, &end, 10);
    if (end == *at)
        return false;
    *ret_number = number;
    *at = end;
    return true;
}

/* What is kept of a domain, as pawl_test.kept() tells it: "OFFSET OWNER ACQUIRED RETRIES EXPIRES
 * [BACKLOG] [INTERVALS]". */
static struct seen read_kept(const char *kept)
{
    struct seen seen = {.backlog_count = 0};
    const char *at = kept;
    if (kept[0] == '\0')
        return seen;
    seen.info.is_leased = read_number(&at, &seen.info.offset);
    if (seen.info.is_leased) {
        at += 1 + strcspn(at + 1, " "); /* the owner */
        assert_true(read_number(&at, &seen.info.acquired_at.us));
    }
    at = strchr(at, '[');
    assert_non_null(at);
    while (seen.backlog_count < UNIVERSE && read_number(&at, &seen.backlog[seen.backlog_count]))
        seen.backlog_count++;
    assert_true(*at == ']');
    for (at++; seen.terminal_count < UNIVERSE; seen.terminal_count++) {
        pawl_worklease_interval *interval = &seen.terminal[seen.terminal_count];
        if (!read_number(&at, &interval->first))
            break;
        at += strlen("..");
        assert_true(read_number(&at, &interval->last));
        interval->is_failed = *at++ == 'f';
    }
    assert_string_equal(at, "]");
    return seen;
}

static void check_episode(PGconn *conn, int episode, const struct step *steps)
{
    PGresult *rows = run(conn, "select told, kept from pawl_test.told order by no");
    struct seen seen[DOMAINS];
    memset(seen, 0, sizeof(seen));
    assert_int_equal(PQntuples(rows), STEPS);
    for (int i = 0; i < STEPS; i++) {
        const char *told = PQgetvalue(rows, i, 0);
        const char *kept = PQgetisnull(rows, i, 1) ? "" : PQgetvalue(rows, i, 1);
        /* Of a domain that nobody has asked for nothing is kept. */
        bool is_same = strcmp(kept, steps[i].kept.text) == 0 ||
                       (kept[0] == '\0' && strcmp(steps[i].kept.text, "- - - - - [] []") == 0);
        if (strcmp(told, steps[i].told.text) != 0 || !is_same)
            fail_msg("episode %d, %s:\n told %s, not %s\n kept %s, not %s", episode, steps[i].text,
                     told, steps[i].told.text, kept, steps[i].kept.text);
        struct seen before = seen[steps[i].which];
        struct seen *now = &seen[steps[i].which];
        *now = read_kept(kept); /* the invariants, by the server's own word */
        seen_check_disjoint(now);
        seen_check_step(&before, now, &steps[i].op, &steps[i].outcome);
    }
    PQclear(rows);
}

void sql_equals_the_naive_model(void **state)
{
    struct stage *s = *state;
    char conninfo[PG_PATH_MAX];
    struct pawli_seeded seeded = {.state = 11};
    pawl_random random = pawli_seeded_as_random(&seeded);
    struct step *steps = calloc(STEPS, sizeof(*steps));
    char *sql = malloc(SQL_MAX);
    PGconn *conn = PQconnectdb(postgres_kind_conninfo(s->place, conninfo));
    assert_true(steps != NULL && sql != NULL && PQstatus(conn) == CONNECTION_OK);
    run_file(conn, WORKLEASE_SQL);
    PQclear(run(conn, "set synchronous_commit = off"));
    pawl_wall now;
    assert_int_equal(pawl_now(s->store, &now, NULL), PAWL_OK);
    for (int episode = 0; episode < EPISODES; episode++) {
        draw_episode(episode, &now.us, &random, sql, steps);
        PQclear(run(conn, sql));
        PQclear(run(conn, "call pawl_test.walk()"));
        check_episode(conn, episode, steps);
    }
    PQfinish(conn);
    free(sql);
    free(steps);
}

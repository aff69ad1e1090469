/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * call.c - a call as a verb makes it: statements put together, sent as one transaction, tried again
 *          where that is safe.
 * Owns:  the bound on tries and their backoff; the backoff of connections; the check of the schema
 *        when a connection is made; how often a shortcut is tried; the grouping of rows by shard.
 * Never: repeats what may have been done; decides what an answer means for a job.
 */
#include "store/postgres/postgres.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "core/id.h"
#include "store/postgres/steps.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define TRIES_MAX             12
#define TRY_PAUSE_FIRST_MS    2
#define TRY_PAUSE_MOST_MS     100
#define RECONNECT_FIRST_MS    100
#define RECONNECT_MOST_MS     5000
#define RECONNECT_DOUBLES_MAX 6
#define SEED_LEN              16
#define ROOM_MORE             4 /* times as many statements */
#define SHORTCUT_DOUBLES_MAX  6

/* ---- putting a call together */

static bool make_room(struct pawli_pg_call *call)
{
    if (call->room == 0) {
        call->statements = &call->first;
        call->room = 1;
        return true;
    }
    size_t room = ROOM_MORE * call->room;
    struct pawli_pg_statement *more = malloc(room * sizeof(*more));
    if (more == NULL)
        return false;
    memcpy(more, call->statements, call->count * sizeof(*more));
    if (call->statements != &call->first)
        free(call->statements);
    call->statements = more;
    call->room = room;
    return true;
}

struct pawli_pg_args *pawli_pg_call_add(struct pawli_pg_call *call, const char *sql)
{
    assert(call->answers == NULL);
    if (call->count == call->room && !make_room(call)) {
        call->is_failed = true;
        return &call->spare;
    }
    struct pawli_pg_statement *statement = &call->statements[call->count++];
    *statement = (struct pawli_pg_statement){.sql = sql};
    return &statement->args;
}

void pawli_pg_arg_seed(struct pawli_pg_call *call, struct pawli_pg_args *args)
{
    uint8_t seed[SEED_LEN];
    pawli_random_fill(call->handle->random, seed, sizeof(seed));
    pawli_pg_arg_bytes(args, seed, sizeof(seed));
}

static void drop_answers(struct pawli_pg_call *call)
{
    if (call->answers != &call->first_answer)
        free(call->answers);
    call->answers = NULL;
}

void pawli_pg_call_clear(struct pawli_pg_call *call)
{
    for (size_t i = 0; i < call->count; i++) {
        pawli_pg_args_clear(&call->statements[i].args);
        if (call->answers != NULL)
            PQclear(call->answers[i]);
    }
    pawli_pg_args_clear(&call->spare);
    pawli_pg_args_clear(&call->after.args);
    if (call->statements != &call->first)
        free(call->statements);
    drop_answers(call);
    *call = (struct pawli_pg_call){.handle = call->handle};
}

/* ---- connecting */

/* Whether the schema is the one that this library was built for. */
static bool is_schema_right(const struct pawli_pg_handle *handle, const PGresult *hello,
                            struct pawli_pg_fault *ret_fault)
{
    *ret_fault = (struct pawli_pg_fault){.fate = PAWLI_PG_NOT_DONE, .is_setup = true};
    if (!pawli_pg_is_shaped(hello, "iiibi") || PQntuples(hello) != 1) {
        ret_fault->text = "the schema pawl does not answer as expected; run `pawl migrate up`";
        return false;
    }
    int64_t version = pawli_pg_int((struct pawli_pg_cell){hello, 0, 0});
    int64_t shards = pawli_pg_int((struct pawli_pg_cell){hello, 0, 1});
    int64_t needed = pawli_pg_schema_version();
    if (version > needed)
        ret_fault->text = "the schema pawl is newer than this library knows; use a newer library";
    else if (version < needed)
        ret_fault->text = "the schema pawl is older than this library needs; run `pawl migrate up`";
    else if (shards < 1 || shards > PAWL_SHARDS_MAX)
        ret_fault->text = "the schema pawl says no valid number of shards; run `pawl migrate up`";
    else if (handle->shards != 0 && handle->shards != shards)
        ret_fault->text = "the number of shards is not what it was; open the store again";
    return ret_fault->text == NULL;
}

static bool greet(struct pawli_pg_handle *handle, struct timespec until,
                  struct pawli_pg_fault *ret_fault)
{
    struct pawli_pg_statement hello = {
        .sql =
            "select version, shards, pg_catalog.pg_backend_pid(), is_notifying, "
            "'pawl.job'::pg_catalog.regclass::pg_catalog.oid::pg_catalog.int8 from pawl.hello()"};
    PGresult *answer = NULL;
    struct pawli_pg_exchange exchange = {
        .statements = &hello, .statements_count = 1, .ret_answers = &answer};
    *ret_fault = pawli_pg_exchange(&handle->link, &exchange, until);
    if (ret_fault->fate != PAWLI_PG_DONE) {
        ret_fault->fate = PAWLI_PG_NOT_DONE; /* it only looked */
        pawli_pg_disconnect(&handle->link);
        return false;
    }
    bool is_right = is_schema_right(handle, answer, ret_fault);
    if (is_right) {
        handle->shards = pawli_pg_int((struct pawli_pg_cell){answer, 0, 1});
        handle->link.is_direct = PQbackendPID(handle->link.conn) ==
                                 pawli_pg_int((struct pawli_pg_cell){answer, 0, 2});
        handle->is_notifying = pawli_pg_bool((struct pawli_pg_cell){answer, 0, 3});
        handle->home = pawli_pg_int((struct pawli_pg_cell){answer, 0, 4});
        memset(handle->known, 0, sizeof(handle->known));
    } else {
        pawli_pg_disconnect(&handle->link);
    }
    PQclear(answer);
    return is_right;
}

/* After a failed connection the next one waits, so that a server that comes up is not overrun. */
static void back_off(struct pawli_pg_handle *handle)
{
    int64_t doubles = handle->reconnects < RECONNECT_DOUBLES_MAX ? handle->reconnects
                                                                 : RECONNECT_DOUBLES_MAX;
    int64_t most_ms = (int64_t)RECONNECT_FIRST_MS << doubles;
    if (most_ms > RECONNECT_MOST_MS)
        most_ms = RECONNECT_MOST_MS;
    uint64_t ms = pawli_random_below(handle->random, (uint64_t)most_ms + 1);
    handle->reconnects++;
    handle->reconnect_at = pawli_wait_until((int64_t)ms);
}

bool pawli_pg_call_connect(struct pawli_pg_handle *handle, struct timespec until,
                           struct pawli_pg_fault *ret_fault)
{
    if (handle->reconnects > 0) {
        int64_t wait_ms = pawli_pg_left_ms(handle->reconnect_at);
        if (wait_ms >= pawli_pg_left_ms(until)) {
            *ret_fault = (struct pawli_pg_fault){
                .fate = PAWLI_PG_NOT_DONE,
                .text = "the server was away a moment ago; the next try is due later"};
            return false;
        }
        struct timespec at = handle->reconnect_at;
        while (pawli_pg_left_ms(at) > 0)
            pawli_pg_pause(handle->random, pawli_pg_left_ms(at), at);
    }
    if (!pawli_pg_connect(&handle->link, handle->conninfo, handle->call_timeout_ms, until,
                          ret_fault) ||
        !greet(handle, until, ret_fault)) {
        back_off(handle);
        return false;
    }
    handle->reconnects = 0;
    return true;
}

/* ---- making a call */

/* The time of a call. One that lacks a moment of the usual has the usual: it takes a while until a
 * thread makes the call that was decided on, and each other limit has to be told to the server. */
static int64_t limit_of(const struct pawli_pg_handle *handle)
{
    int64_t usual_ms = handle->call_timeout_ms;
    return handle->limit_ms >= usual_ms * 99 / 100 ? usual_ms : handle->limit_ms;
}

static struct pawli_pg_fault try_once(struct pawli_pg_call *call, struct timespec until)
{
    struct pawli_pg_link *link = &call->handle->link;
    struct pawli_pg_fault fault;
    if (!pawli_pg_is_alive(link) || !pawli_pg_clear_link(link, until)) {
        pawli_pg_disconnect(link);
        if (!pawli_pg_call_connect(call->handle, until, &fault))
            return fault;
    }
    struct pawli_pg_exchange exchange = {.statements = call->statements,
                                         .statements_count = call->count,
                                         .ret_answers = call->answers,
                                         .limit_ms = limit_of(call->handle),
                                         .after = call->after.sql != NULL ? &call->after : NULL};
    return pawli_pg_exchange(link, &exchange, until);
}

static struct pawli_pg_fault try_all(struct pawli_pg_call *call)
{
    struct timespec until = pawli_wait_until(call->handle->limit_ms);
    int64_t pause_ms = TRY_PAUSE_FIRST_MS;
    for (int tries = 1;; tries++) {
        struct pawli_pg_fault fault = try_once(call, until);
        if (fault.fate != PAWLI_PG_NOT_DONE || !pawli_pg_is_again(fault.sqlstate) ||
            tries == TRIES_MAX || pawli_pg_left_ms(until) == 0)
            return fault;
        pawli_pg_pause(call->handle->random, pause_ms, until);
        pause_ms = 2 * pause_ms < TRY_PAUSE_MOST_MS ? 2 * pause_ms : TRY_PAUSE_MOST_MS;
    }
}

pawl_code pawli_pg_call_run(struct pawli_pg_call *call, const char *shape, pawl_err *err)
{
    assert(call->answers == NULL);
    bool is_failed = call->is_failed || call->after.args.is_failed;
    for (size_t i = 0; i < call->count; i++)
        is_failed = is_failed || call->statements[i].args.is_failed;
    if (is_failed)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    assert(call->count > 0);
    call->answers = call->count == 1 ? &call->first_answer
                                     : calloc(call->count, sizeof(PGresult *));
    if (call->answers == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);

    struct pawli_pg_fault fault = try_all(call);
    if (fault.fate != PAWLI_PG_DONE) {
        drop_answers(call);
        return pawli_pg_fail(&fault, call->is_read, err);
    }
    for (size_t i = 0; i < call->count; i++)
        if (!pawli_pg_is_shaped(call->answers[i], shape))
            return pawli_pg_call_spoilt(call, err);
    return PAWL_OK;
}

pawl_code pawli_pg_call_spoilt(const struct pawli_pg_call *call, pawl_err *err)
{
    return pawli_fail(err, call->is_read ? PAWL_DOWN : PAWL_UNKNOWN,
                      "the schema pawl answered in a way that this library cannot read");
}

/* ---- shortcuts */

bool pawli_pg_shortcut_try(struct pawli_pg_shortcut *shortcut)
{
    if (shortcut->pause == 0)
        return true;
    shortcut->pause--;
    return false;
}

void pawli_pg_shortcut_note(struct pawli_pg_shortcut *shortcut, bool is_done)
{
    assert(shortcut->pause == 0);
    if (is_done) {
        shortcut->refusals = 0;
        return;
    }
    shortcut->pause = 1u << shortcut->refusals;
    shortcut->refusals += shortcut->refusals < SHORTCUT_DOUBLES_MAX;
}

int64_t pawli_pg_left_of(struct timespec until)
{
    int64_t left_ms = pawli_pg_left_ms(until);
    return left_ms > 0 ? left_ms : 1;
}

/* ---- rows by shard */

static const pawl_id *id_at(const pawl_id *first, size_t stride, size_t i)
{
    return (const pawl_id *)(const void *)((const char *)first + i * stride);
}

static int64_t shard_of(const struct pawli_pg_handle *handle, const pawl_id *id)
{
    return handle->shards == 1 ? 0 : pawli_id_shard(id, handle->shards);
}

void pawli_pg_groups_clear(struct pawli_pg_groups *groups)
{
    free(groups->rows);
    free(groups->starts);
    *groups = (struct pawli_pg_groups){0};
}

bool pawli_pg_group(const struct pawli_pg_handle *handle, const pawl_id *first, size_t stride,
                    size_t rows_count, struct pawli_pg_groups *ret_groups)
{
    size_t shards = (size_t)handle->shards;
    struct pawli_pg_groups groups = {
        .rows = calloc(rows_count, sizeof(size_t)),
        .starts = calloc(shards + 1, sizeof(size_t)),
        .count = shards,
    };
    size_t *at = calloc(shards, sizeof(size_t));
    if (groups.rows == NULL || groups.starts == NULL || at == NULL) {
        pawli_pg_groups_clear(&groups);
        free(at);
        return false;
    }
    for (size_t i = 0; i < rows_count; i++)
        groups.starts[shard_of(handle, id_at(first, stride, i)) + 1]++;
    for (size_t i = 0; i < shards; i++) {
        groups.starts[i + 1] += groups.starts[i];
        at[i] = groups.starts[i];
    }
    for (size_t i = 0; i < rows_count; i++)
        groups.rows[at[shard_of(handle, id_at(first, stride, i))]++] = i;
    free(at);
    assert(groups.starts[shards] == rows_count);
    *ret_groups = groups;
    return true;
}

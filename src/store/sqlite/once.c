/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * once.c - keys of requests in a file of SQLite.
 * Owns:  how they are read, written and, when they have expired, cleared away.
 * Never: looks into an answer.
 */
#include "store/once.h"

#include "base/error.h"
#include "store/sqlite/sqlite.h"

#include <stdlib.h>
#include <string.h>

/* A call on its way. A pass may run twice: each run fills `found` anew. */
struct calling {
    const struct pawli_once_args *args;
    const struct pawli_once_end *end;
    struct pawli_once_found found;
    bool is_out_of_memory;
};

static void forget(struct calling *calling)
{
    free(calling->found.answer);
    calling->found = (struct pawli_once_found){.answer = NULL};
}

bool pawli_sqlite_once_prune(struct pass *pass, size_t keys_max)
{
    struct query query = pawli_sqlite_query(pass, S_ONCE_PRUNE);
    pawli_sqlite_put_int(&query, pass->now.us);
    pawli_sqlite_put_int(&query, (int64_t)keys_max);
    (void)pawli_sqlite_row(&query); /* it has none; told by end */
    return pawli_sqlite_end(&query);
}

static bool add_key(struct pass *pass, const struct pawli_once_args *args)
{
    struct query query = pawli_sqlite_query(pass, S_ONCE_ADD);
    pawli_sqlite_put_bytes(&query, args->key, sizeof(args->key));
    pawli_sqlite_put_bytes(&query, args->digest, sizeof(args->digest));
    pawli_sqlite_put_int(&query, args->seed);
    pawli_sqlite_put_int(&query, pass->now.us);
    pawli_sqlite_put_int(&query, pass->now.us + args->hold_ms * 1000);
    pawli_sqlite_put_int(&query, pass->now.us + args->keep_ms * 1000);
    return pawli_sqlite_change_rows(&query, 1);
}

static bool hold_key(struct pass *pass, const uint8_t *key, int64_t until_us)
{
    struct query query = pawli_sqlite_query(pass, S_ONCE_HOLD);
    pawli_sqlite_put_bytes(&query, key, PAWLI_ONCE_KEY_LEN);
    pawli_sqlite_put_int(&query, until_us);
    (void)pawli_sqlite_row(&query); /* it has none; told by end */
    return pawli_sqlite_end(&query);
}

/* Read the row that stands there: digest, seed, at, held_until, answer. */
static void read_key(struct query *query, struct calling *calling)
{
    struct pawli_once_found *found = &calling->found;
    uint8_t digest[PAWLI_ONCE_KEY_LEN];
    bool is_good = pawli_sqlite_bytes(query, digest, sizeof(digest));
    found->seed = pawli_sqlite_int(query);
    found->at.us = pawli_sqlite_int(query);
    int64_t held_until_us = pawli_sqlite_int(query);
    bool has_answer = !pawli_sqlite_is_null(query);
    bool is_other = !is_good || memcmp(digest, calling->args->digest, sizeof(digest)) != 0;
    found->state = is_other                              ? PAWLI_ONCE_OTHER
                   : has_answer                          ? PAWLI_ONCE_DONE
                   : held_until_us > query->pass->now.us ? PAWLI_ONCE_UNDER_WAY
                                                         : PAWLI_ONCE_AGAIN;
    if (found->state != PAWLI_ONCE_DONE)
        return;
    const void *answer = pawli_sqlite_blob(query, &found->answer_len);
    found->answer = malloc(found->answer_len + 1);
    calling->is_out_of_memory = found->answer == NULL;
    if (found->answer != NULL && found->answer_len > 0)
        memcpy(found->answer, answer, found->answer_len);
}

static bool begin_pass(struct pass *pass, void *user)
{
    struct calling *calling = user;
    const struct pawli_once_args *args = calling->args;
    forget(calling);
    if (!pawli_sqlite_once_prune(pass, PAWLI_ONCE_PRUNE_MAX))
        return false;
    struct query query = pawli_sqlite_query(pass, S_ONCE_GET);
    pawli_sqlite_put_bytes(&query, args->key, sizeof(args->key));
    pawli_sqlite_put_int(&query, pass->now.us);
    bool is_found = pawli_sqlite_row(&query);
    if (is_found)
        read_key(&query, calling);
    if (!pawli_sqlite_end(&query))
        return false;
    if (is_found)
        return calling->found.state != PAWLI_ONCE_AGAIN ||
               hold_key(pass, args->key, pass->now.us + args->hold_ms * 1000);
    calling->found = (struct pawli_once_found){.seed = args->seed, .at = pass->now};
    return add_key(pass, args);
}

static pawl_code begin(pawl_store *store, const struct pawli_once_args *args,
                       struct pawli_once_found *ret_found, pawl_err *err)
{
    struct calling calling = {.args = args};
    const struct write write = {.run = begin_pass, .args = &calling, .rows_count = 1};
    pawl_code code = pawli_sqlite_write(store, &write, err);
    if (code == PAWL_OK && calling.is_out_of_memory)
        code = pawli_fail_plain(err, PAWL_NO_MEMORY);
    if (code == PAWL_OK)
        *ret_found = calling.found;
    else
        forget(&calling);
    return code;
}

static bool end_pass(struct pass *pass, void *user)
{
    const struct calling *calling = user;
    const struct pawli_once_end *end = calling->end;
    if (end->how == PAWLI_ONCE_LET_GO)
        return hold_key(pass, end->key, pass->now.us);
    struct query query = pawli_sqlite_query(pass, end->how == PAWLI_ONCE_KEEP ? S_ONCE_KEEP
                                                                              : S_ONCE_DROP);
    pawli_sqlite_put_bytes(&query, end->key, sizeof(end->key));
    if (end->how == PAWLI_ONCE_KEEP)
        pawli_sqlite_put_bytes(&query, end->answer, end->answer_len);
    (void)pawli_sqlite_row(&query); /* it has none; told by end */
    return pawli_sqlite_end(&query);
}

static pawl_code end_key(pawl_store *store, const struct pawli_once_end *end, pawl_err *err)
{
    struct calling calling = {.end = end};
    const struct write write = {
        .run = end_pass, .args = &calling, .rows_count = 1, .payload_bytes = end->answer_len};
    return pawli_sqlite_write(store, &write, err);
}

const struct pawli_once_ops pawli_sqlite_once_ops = {.begin = begin, .end = end_key};

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * hold.c - what the holder of a lease says to the PostgreSQL store: renew, settle, release.
 * Owns:  the form of these calls and of their verdicts.
 * Never: judges a lease (the SQL functions do, by the server's clock); cuts a batch into several
 *        transactions.
 */
#include "store/postgres/postgres.h"

#include "base/clock.h"
#include "base/error.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define ALIKE_MAX 1000 /* jobs that succeed as a whole: all in the 50 ms that it may take, by far */

/* ---- what the three have in common */

/* Where the leases of the rows lie: each verb has rows of its own. */
struct held {
    const pawl_lease *first;
    size_t stride;
    size_t count;
    const char *worker;
    bool is_any_order; /* it does not matter which row comes first */
};

static const pawl_lease *lease_at(const struct held *held, size_t i)
{
    return (const pawl_lease *)(const void *)((const char *)held->first + i * held->stride);
}

/* The rows of one shard. */
struct part {
    int64_t shard;
    const size_t *picks;
    size_t count;
};

static void put_ids_and_tokens(struct pawli_pg_args *args, const struct held *held,
                               const struct part *part)
{
    pawli_pg_array_begin(args, PAWLI_PG_UUID, part->count);
    for (size_t i = 0; i < part->count; i++)
        pawli_pg_item_uuid(args, lease_at(held, part->picks[i])->job.bytes);
    pawli_pg_array_end(args);
    pawli_pg_array_begin(args, PAWLI_PG_UUID, part->count);
    for (size_t i = 0; i < part->count; i++)
        pawli_pg_item_uuid(args, lease_at(held, part->picks[i])->token.bytes);
    pawli_pg_array_end(args);
}

/* Where the rows are, if that is known of all of them. */
static void put_places(struct pawli_pg_args *args, const struct held *held, const struct part *part)
{
    for (size_t i = 0; i < part->count; i++) {
        if (lease_at(held, part->picks[i])->place == 0) {
            pawli_pg_arg_array_null(args, PAWLI_PG_PLACE);
            return;
        }
    }
    pawli_pg_array_begin(args, PAWLI_PG_PLACE, part->count);
    for (size_t i = 0; i < part->count; i++)
        pawli_pg_item_place(args, lease_at(held, part->picks[i])->place);
    pawli_pg_array_end(args);
}

/* Shard, worker, ids, tokens, versions: how most of these statements begin. */
static void put_leases(struct pawli_pg_args *args, const struct held *held, const struct part *part)
{
    pawli_pg_arg_int4(args, part->shard);
    pawli_pg_arg_text(args, held->worker);
    put_ids_and_tokens(args, held, part);
    pawli_pg_array_begin(args, PAWLI_PG_INT4, part->count);
    for (size_t i = 0; i < part->count; i++) {
        /* A version beyond what the table can hold is nobody's: no claim has drawn it. */
        int64_t version = lease_at(held, part->picks[i])->version;
        pawli_pg_item_int4(args, version >= 0 && version <= INT32_MAX ? version : -1);
    }
    pawli_pg_array_end(args);
}

/* What one verb adds: its statement, its further arguments, and how a row of the answer is read.
 * `user` is the verb's own rows and results. */
struct verb {
    const char *sql;
    const char *shape; /* begins with the ordinal and the verdict */
    void (*put)(struct pawli_pg_call *call, struct pawli_pg_args *args, const struct part *part,
                void *user);
    void (*read)(const PGresult *answer, int row, pawl_code code, size_t to, void *user);
    /* Reads an answer that speaks for all rows at once; false: this is none. NULL: none is. */
    bool (*read_all)(const PGresult *answer, const struct part *part, void *user);
    void *user;
};

static bool read_part(const PGresult *answer, const struct part *part, const struct verb *verb)
{
    if (verb->read_all != NULL && verb->read_all(answer, part, verb->user))
        return true;
    if ((size_t)PQntuples(answer) != part->count)
        return false;
    for (int row = 0; row < (int)part->count; row++) {
        int64_t ordinal = pawli_pg_int((struct pawli_pg_cell){answer, row, 0});
        pawl_code code;
        if (ordinal < 1 || (size_t)ordinal > part->count ||
            !pawli_pg_verdict((struct pawli_pg_cell){answer, row, 1}, &code))
            return false;
        verb->read(answer, row, code, part->picks[ordinal - 1], verb->user);
    }
    return true;
}

static struct part part_of(const struct pawli_pg_groups *groups, size_t shard)
{
    size_t at = groups->starts[shard];
    return (struct part){(int64_t)shard, groups->rows + at, groups->starts[shard + 1] - at};
}

/* A row with what decides its place. */
struct place {
    const uint8_t *id;
    size_t row;
};

static int place_order(const void *left, const void *right)
{
    const struct place *a = left;
    const struct place *b = right;
    int order = memcmp(a->id, b->id, sizeof(pawl_id));
    return order != 0 ? order : (a->row > b->row) - (a->row < b->row);
}

static bool are_sorted(const struct held *held, const struct pawli_pg_groups *groups)
{
    for (size_t i = 1; i < held->count; i++)
        if (memcmp(lease_at(held, groups->rows[i - 1])->job.bytes,
                   lease_at(held, groups->rows[i])->job.bytes, sizeof(pawl_id)) > 0)
            return false;
    return true;
}

/* Puts the rows of each shard into the order in which the server meets the jobs in its index: it
 * then need not look which answer belongs to which row. */
static bool sort_groups(const struct held *held, struct pawli_pg_groups *groups)
{
    if (groups->count == 1 && are_sorted(held, groups))
        return true; /* mostly they are as they were claimed */
    struct place *places = calloc(held->count, sizeof(*places));
    if (places == NULL)
        return false;
    for (size_t i = 0; i < held->count; i++)
        places[i] = (struct place){lease_at(held, groups->rows[i])->job.bytes, groups->rows[i]};
    for (size_t shard = 0; shard < groups->count; shard++)
        qsort(places + groups->starts[shard], groups->starts[shard + 1] - groups->starts[shard],
              sizeof(*places), place_order);
    for (size_t i = 0; i < held->count; i++)
        groups->rows[i] = places[i].row;
    free(places);
    return true;
}

/* The rows by shard. False: no memory. */
static bool group(const struct pawli_pg_handle *handle, const struct held *held,
                  struct pawli_pg_groups *ret_groups)
{
    if (!pawli_pg_group(handle, &held->first->job, held->stride, held->count, ret_groups))
        return false;
    if (!held->is_any_order || sort_groups(held, ret_groups))
        return true;
    pawli_pg_groups_clear(ret_groups);
    return false;
}

static pawl_code run(pawl_store *store, const struct held *held, const struct verb *verb,
                     pawl_err *err)
{
    struct pawli_pg_call call = {.handle = pawli_pg_handle_of(store)};
    struct pawli_pg_groups groups;
    if (!group(call.handle, held, &groups))
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    for (size_t shard = 0; shard < groups.count; shard++) {
        struct part part = part_of(&groups, shard);
        if (part.count == 0)
            continue;
        struct pawli_pg_args *args = pawli_pg_call_add(&call, verb->sql);
        put_leases(args, held, &part);
        verb->put(&call, args, &part, verb->user);
    }
    pawl_code rc = pawli_pg_call_run(&call, verb->shape, err);
    size_t answered = 0;
    for (size_t shard = 0; rc == PAWL_OK && shard < groups.count; shard++) {
        struct part part = part_of(&groups, shard);
        if (part.count > 0 && !read_part(call.answers[answered++], &part, verb))
            rc = pawli_pg_call_spoilt(&call, err);
    }
    pawli_pg_call_clear(&call);
    pawli_pg_groups_clear(&groups);
    return rc;
}

/* ---- renew */

struct renewal {
    const pawl_renew_row *rows;
    pawl_renewed *results;
};

static void put_renewal(struct pawli_pg_call *call, struct pawli_pg_args *args,
                        const struct part *part, void *user)
{
    (void)call; /* needs no seed */
    const struct renewal *renewal = user;
    pawli_pg_array_begin(args, PAWLI_PG_INT8, part->count);
    for (size_t i = 0; i < part->count; i++)
        pawli_pg_item_optional(args, renewal->rows[part->picks[i]].lease_ms);
    pawli_pg_array_end(args);
    pawli_pg_array_begin(args, PAWLI_PG_BOOL, part->count);
    for (size_t i = 0; i < part->count; i++)
        pawli_pg_item_bool(args, renewal->rows[part->picks[i]].is_unstarted);
    pawli_pg_array_end(args);
}

static void read_renewal(const PGresult *answer, int row, pawl_code code, size_t to, void *user)
{
    struct renewal *renewal = user;
    pawl_renewed *result = &renewal->results[to];
    *result = (pawl_renewed){.code = code};
    if (code == PAWL_OK) {
        result->expires_at = pawli_pg_wall((struct pawli_pg_cell){answer, row, 2});
        result->lease_ms = pawli_pg_int((struct pawli_pg_cell){answer, row, 3});
    }
}

pawl_code pawli_pg_renew(pawl_store *store, const char *worker, const pawl_renew_row *rows,
                         size_t rows_count, pawl_renewed *ret_results, pawl_err *err)
{
    struct renewal renewal = {rows, ret_results};
    struct held held = {&rows[0].lease, sizeof(rows[0]), rows_count, worker, false};
    struct verb verb = {
        .sql = "select ordinal, verdict, lease_expires_at, lease_ms from pawl.renew_batch($1, $2, "
               "$3, $4, $5, $6, $7)",
        .shape = "isti",
        .put = put_renewal,
        .read = read_renewal,
        .user = &renewal,
    };
    return run(store, &held, &verb, err);
}

/* ---- settle */

/* Columns of an answer, after its ordinal and its verdict. */
enum {
    SETTLED_STATE = 2,
    SETTLED_DUE_AT,
    SETTLED_NUMBER
};

struct settling {
    const pawl_settle_row *rows;
    pawl_settled *results;
    bool are_plain;
};

/* Mostly nobody says: then a NULL in place of an array of them. */
static void put_sends(struct pawli_pg_args *args, const pawl_settle_row *rows,
                      const struct part *part)
{
    bool is_any = false;
    for (size_t i = 0; i < part->count; i++)
        is_any = is_any || rows[part->picks[i]].wire_sends != PAWL_SENDS_UNKNOWN;
    if (!is_any) {
        pawli_pg_arg_array_null(args, PAWLI_PG_INT4);
        return;
    }
    pawli_pg_array_begin(args, PAWLI_PG_INT4, part->count);
    for (size_t i = 0; i < part->count; i++) {
        int64_t sends = rows[part->picks[i]].wire_sends;
        pawli_pg_item_optional_int4(args, sends == PAWL_SENDS_UNKNOWN ? PAWL_DEFAULT : sends);
    }
    pawli_pg_array_end(args);
}

/* Mostly all have succeeded, and there is nothing more to say. */
static bool are_plain(const pawl_settle_row *rows, size_t rows_count)
{
    bool are = true;
    for (size_t i = 0; i < rows_count && are; i++) {
        const pawl_settle_row *row = &rows[i];
        are = row->action == PAWL_SUCCEED && row->reason == PAWL_REASON_NONE &&
              row->error_code == NULL && row->error_text == NULL;
    }
    return are;
}

static void put_endings(struct pawli_pg_args *args, const pawl_settle_row *rows,
                        const struct part *part)
{
    pawli_pg_array_begin(args, PAWLI_PG_INT2, part->count);
    for (size_t i = 0; i < part->count; i++)
        pawli_pg_item_int2(args, (int64_t)rows[part->picks[i]].action);
    pawli_pg_array_end(args);
    pawli_pg_array_begin(args, PAWLI_PG_INT2, part->count);
    for (size_t i = 0; i < part->count; i++)
        pawli_pg_item_int2(args, (int64_t)rows[part->picks[i]].reason);
    pawli_pg_array_end(args);
    pawli_pg_array_begin(args, PAWLI_PG_INT8, part->count);
    for (size_t i = 0; i < part->count; i++) {
        const pawl_settle_row *row = &rows[part->picks[i]];
        bool is_delaying = row->action == PAWL_RETRY || row->action == PAWL_SNOOZE;
        pawli_pg_item_optional(args, is_delaying ? row->delay_ms : PAWL_DEFAULT);
    }
    pawli_pg_array_end(args);
    pawli_pg_array_begin(args, PAWLI_PG_TEXT, part->count);
    for (size_t i = 0; i < part->count; i++)
        pawli_pg_item_text(args, rows[part->picks[i]].error_code);
    pawli_pg_array_end(args);
    pawli_pg_array_begin(args, PAWLI_PG_TEXT, part->count);
    for (size_t i = 0; i < part->count; i++)
        pawli_pg_item_text(args, rows[part->picks[i]].error_text);
    pawli_pg_array_end(args);
}

static void put_settling(struct pawli_pg_call *call, struct pawli_pg_args *args,
                         const struct part *part, void *user)
{
    const struct settling *settling = user;
    const pawl_settle_row *rows = settling->rows;
    if (settling->are_plain) {
        pawli_pg_arg_array_null(args, PAWLI_PG_INT2);
        pawli_pg_arg_array_null(args, PAWLI_PG_INT2);
        pawli_pg_arg_array_null(args, PAWLI_PG_INT8);
        pawli_pg_arg_array_null(args, PAWLI_PG_TEXT);
        pawli_pg_arg_array_null(args, PAWLI_PG_TEXT);
    } else {
        put_endings(args, rows, part);
    }
    pawli_pg_arg_seed(call, args);
    put_sends(args, rows, part);
    pawli_pg_arg_bool(args, settling->are_plain); /* then they are sorted */
}

/* All have succeeded, at their first attempt. */
static void tell_success(const struct settling *settling, const struct part *part)
{
    for (size_t i = 0; i < part->count; i++)
        settling->results[part->picks[i]] = (pawl_settled){
            .code = PAWL_OK, .state = PAWL_SUCCEEDED, .attempt_no = 1};
}

/* One row without an ordinal says so, and how many. */
static bool read_success(const PGresult *answer, const struct part *part, void *user)
{
    const struct settling *settling = user;
    pawl_code code;
    if (PQntuples(answer) != 1 || pawli_pg_int((struct pawli_pg_cell){answer, 0, 0}) != 0 ||
        !pawli_pg_verdict((struct pawli_pg_cell){answer, 0, 1}, &code) || code != PAWL_OK ||
        pawli_pg_int((struct pawli_pg_cell){answer, 0, SETTLED_NUMBER}) != (int64_t)part->count)
        return false;
    tell_success(settling, part);
    return true;
}

static void read_settling(const PGresult *answer, int row, pawl_code code, size_t to, void *user)
{
    struct settling *settling = user;
    pawl_settled *result = &settling->results[to];
    *result = (pawl_settled){.code = code};
    if (code == PAWL_OK) {
        result->state = (pawl_state)pawli_pg_int(
            (struct pawli_pg_cell){answer, row, SETTLED_STATE});
        result->due_at = pawli_pg_wall((struct pawli_pg_cell){answer, row, SETTLED_DUE_AT});
        result->attempt_no = pawli_pg_int((struct pawli_pg_cell){answer, row, SETTLED_NUMBER});
    }
}

static pawl_code settle_each(pawl_store *store, const struct held *held, struct settling *settling,
                             pawl_err *err)
{
    struct verb verb = {
        .sql = "select ordinal, verdict, state, due_at, attempt_no from pawl.settle_batch($1, $2, "
               "$3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
        .shape = "isiti",
        .put = put_settling,
        .read = read_settling,
        .read_all = read_success,
        .user = settling,
    };
    return run(store, held, &verb, err);
}

/* Whether pawl.succeed_all() may do: what differs from row to row is the job and its token. A claim
 * tells no place of jobs for which it never does, so a single one without is not tried. */
static bool are_alike(const struct pawli_pg_handle *handle, const struct held *held,
                      const struct settling *settling)
{
    const pawl_settle_row *rows = settling->rows;
    bool are = handle->shards == 1 && settling->are_plain && held->count <= ALIKE_MAX &&
               (held->count > 1 || rows[0].lease.place != 0) && rows[0].lease.version >= 0 &&
               rows[0].lease.version <= INT32_MAX;
    for (size_t i = 1; i < held->count && are; i++)
        are = rows[i].lease.version == rows[0].lease.version &&
              rows[i].wire_sends == rows[0].wire_sends;
    return are;
}

/* The number of all rows, or NULL where nothing was done. False: it is neither. */
static bool read_whole(const PGresult *answer, size_t count, bool *ret_is_done)
{
    struct pawli_pg_cell told = {answer, 0, 0};
    if (PQntuples(answer) != 1)
        return false;
    *ret_is_done = !pawli_pg_is_null(told);
    return !*ret_is_done || pawli_pg_int(told) == (int64_t)count;
}

/* All of them or none. *ret_is_done: that was the settle; else nothing was done, and it goes as
 * others do. */
static pawl_code succeed_all(struct pawli_pg_handle *handle, const struct held *held,
                             const struct settling *settling, bool *ret_is_done, pawl_err *err)
{
    struct pawli_pg_call call = {.handle = handle};
    struct pawli_pg_groups groups;
    const pawl_settle_row *first = &settling->rows[0];
    if (!group(handle, held, &groups))
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    struct part part = part_of(&groups, 0);
    struct pawli_pg_args *args = pawli_pg_call_add(
        &call, "select pawl.succeed_all($1, $2, $3, $4, $5, $6)");
    pawli_pg_arg_text(args, held->worker);
    put_ids_and_tokens(args, held, &part);
    pawli_pg_arg_int4(args, first->lease.version);
    pawli_pg_arg_optional_int4(args, first->wire_sends == PAWL_SENDS_UNKNOWN ? PAWL_DEFAULT
                                                                             : first->wire_sends);
    put_places(args, held, &part);
    pawl_code rc = pawli_pg_call_run(&call, "i", err);
    if (rc == PAWL_OK && !read_whole(call.answers[0], part.count, ret_is_done))
        rc = pawli_pg_call_spoilt(&call, err);
    if (rc != PAWL_OK)
        *ret_is_done = true; /* nothing else is tried */
    pawli_pg_shortcut_note(&handle->succeed_all, *ret_is_done);
    if (rc == PAWL_OK && *ret_is_done)
        tell_success(settling, &part);
    pawli_pg_call_clear(&call);
    pawli_pg_groups_clear(&groups);
    return rc;
}

pawl_code pawli_pg_settle(pawl_store *store, const char *worker, const pawl_settle_row *rows,
                          size_t rows_count, pawl_settled *ret_results, pawl_err *err)
{
    struct pawli_pg_handle *handle = pawli_pg_handle_of(store);
    struct settling settling = {rows, ret_results, are_plain(rows, rows_count)};
    struct held held = {&rows[0].lease, sizeof(rows[0]), rows_count, worker, settling.are_plain};
    int64_t limit_ms = handle->limit_ms;
    struct timespec until = pawli_wait_until(limit_ms);
    bool is_done = false;
    pawl_code rc = PAWL_OK;
    if (are_alike(handle, &held, &settling) && pawli_pg_shortcut_try(&handle->succeed_all)) {
        rc = succeed_all(handle, &held, &settling, &is_done, err);
        handle->limit_ms = pawli_pg_left_of(until); /* both together have the time of one */
    }
    if (!is_done && rc == PAWL_OK)
        rc = settle_each(store, &held, &settling, err);
    handle->limit_ms = limit_ms;
    return rc;
}

/* ---- release */

static void put_nothing(struct pawli_pg_call *call, struct pawli_pg_args *args,
                        const struct part *part, void *user)
{
    (void)call, (void)args, (void)part, (void)user; /* a release says no more than its leases */
}

static void read_release(const PGresult *answer, int row, pawl_code code, size_t to, void *user)
{
    (void)answer, (void)row; /* the verdict is all of it */
    pawl_code *codes = user;
    codes[to] = code;
}

pawl_code pawli_pg_release(pawl_store *store, const char *worker, const pawl_lease *leases,
                           size_t leases_count, pawl_code *ret_codes, pawl_err *err)
{
    struct held held = {leases, sizeof(leases[0]), leases_count, worker, false};
    struct verb verb = {
        .sql = "select ordinal, verdict from pawl.release_batch($1, $2, $3, $4, $5)",
        .shape = "is",
        .put = put_nothing,
        .read = read_release,
        .user = ret_codes,
    };
    return run(store, &held, &verb, err);
}

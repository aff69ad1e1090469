/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * recent.c - jobs of a file of SQLite that have changed lately.
 * Owns:  where they are found: new ones by their numbers, which rise; ended ones queue by queue, by
 *        the time of their end.
 * Never: goes on behind the first that is too old.
 */
#include "store/recent.h"

#include "base/error.h"
#include "store/sqlite/sqlite.h"

#include <string.h>

/* A call on its way. A pass may run twice: each run fills the rows anew. */
struct looking {
    const struct pawli_recent_args *args;
    struct pawli_recent *rows;
    size_t rows_max;
    size_t count;
};

/* The next row, of a job of the queue in pass->queue. */
static struct pawli_recent *add(const struct pass *pass, struct looking *looking)
{
    struct pawli_recent *row = &looking->rows[looking->count++];
    *row = (struct pawli_recent){.state = PAWL_READY};
    memcpy(row->queue, pass->queue.name, sizeof(row->queue));
    return row;
}

static bool look_at_ids(struct pass *pass, struct looking *looking)
{
    struct record record;
    bool is_found;
    for (size_t i = 0; i < looking->args->ids_count; i++) {
        if (!pawli_sqlite_load(pass, &looking->args->ids[i], &record, &is_found))
            return false;
        if (!is_found)
            continue;
        if (!pawli_sqlite_queue_of(pass, record.queue_id))
            return false;
        struct pawli_recent *row = add(pass, looking);
        row->job = record.id;
        row->state = record.job.state;
        row->is_discarded = record.job.is_discarded;
    }
    return true;
}

static bool look_at_ended(struct pass *pass, struct looking *looking, pawl_state state,
                          int64_t since_us)
{
    struct query query = pawli_sqlite_query(pass, S_RECENT_ENDED);
    pawli_sqlite_put_int(&query, pass->queue.queue_id);
    pawli_sqlite_put_int(&query, state);
    pawli_sqlite_put_int(&query, since_us);
    while (looking->count < looking->rows_max && pawli_sqlite_row(&query)) {
        struct pawli_recent *row = add(pass, looking);
        row->state = state;
        if (!pawli_sqlite_bytes(&query, row->job.bytes, sizeof(row->job.bytes)))
            (void)pawli_sqlite_spoil(pass, SQLITE_CORRUPT); /* told by end */
        row->is_discarded = pawli_sqlite_int(&query) != 0;
    }
    return pawli_sqlite_end(&query);
}

static bool look_at_queues(struct pass *pass, struct looking *looking, int64_t since_us)
{
    char name[PAWL_NAME_MAX + 1] = "";
    bool is_found = true;
    while (looking->count < looking->rows_max) {
        if (!pawli_sqlite_queue_after(pass, name, &is_found))
            return false;
        if (!is_found)
            break;
        memcpy(name, pass->queue.name, sizeof(name));
        if (!look_at_ended(pass, looking, PAWL_SUCCEEDED, since_us) ||
            !look_at_ended(pass, looking, PAWL_FAILED, since_us))
            return false;
    }
    return true;
}

static bool look_at_new(struct pass *pass, struct looking *looking, int64_t since_us)
{
    struct query query = pawli_sqlite_query(pass, S_RECENT_ADDED);
    while (looking->count < looking->rows_max && pawli_sqlite_row(&query)) {
        pawl_id id;
        bool is_good = pawli_sqlite_bytes(&query, id.bytes, sizeof(id.bytes));
        int64_t queue_id = pawli_sqlite_int(&query);
        pawl_state state = (pawl_state)pawli_sqlite_int(&query);
        if (pawli_sqlite_int(&query) < since_us)
            break;
        if (!is_good || !pawli_sqlite_queue_of(pass, queue_id)) {
            (void)pawli_sqlite_spoil(pass, SQLITE_CORRUPT); /* told by end */
            break;
        }
        struct pawli_recent *row = add(pass, looking);
        row->job = id;
        row->state = state;
    }
    return pawli_sqlite_end(&query);
}

static bool look(struct pass *pass, void *user)
{
    struct looking *looking = user;
    int64_t since_us = pass->now.us - looking->args->span_ms * 1000;
    looking->count = 0;
    return look_at_ids(pass, looking) && look_at_queues(pass, looking, since_us) &&
           look_at_new(pass, looking, since_us);
}

pawl_code pawli_sqlite_recent(pawl_store *store, const struct pawli_recent_args *args,
                              struct pawli_recent *ret_rows, size_t rows_max, size_t *ret_count,
                              pawl_err *err)
{
    struct looking looking = {.args = args, .rows = ret_rows, .rows_max = rows_max};
    pawl_code code = pawli_sqlite_read(store, look, &looking, err);
    if (code == PAWL_OK)
        *ret_count = looking.count;
    return code;
}

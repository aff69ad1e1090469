/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * endpoint.c - endpoints and publishing on PostgreSQL.
 * Owns:  the form of these calls and of their answers.
 * Never: decides who wants an event, or when a secret ends (the SQL functions do); writes a secret
 *        into a statement: it goes as an argument. libpq's buffers are not overwritten.
 */
#include "store/endpoint.h"

#include "base/error.h"
#include "store/postgres/postgres.h"

#include <assert.h>
#include <string.h>

static struct pawli_pg_cell cell(const struct pawli_pg_call *call, int row, int column)
{
    return (struct pawli_pg_cell){call->answers[0], row, column};
}

static int rows_of(const struct pawli_pg_call *call)
{
    return PQntuples(call->answers[0]);
}

/* Run a call that gives nothing, and clear it. */
static pawl_code run_bare(struct pawli_pg_call *call, pawl_err *err)
{
    pawl_code rc = pawli_pg_call_run(call, "i", err);
    pawli_pg_call_clear(call);
    return rc;
}

/* ---- adding and changing */

/* Numbers of a queue that may be left out. */
static void put_optional_int4(struct pawli_pg_args *put, int64_t value)
{
    if (value == PAWL_DEFAULT)
        pawli_pg_arg_optional(put, value); /* NULL, whatever its width */
    else
        pawli_pg_arg_int8(put, value);
}

/* What is said of settings, in the order in which both statements take it. */
static void put_settings(struct pawli_pg_args *put, const pawl_endpoint_settings *settings)
{
    pawli_pg_arg_text(put, settings->headers);
    pawli_pg_arg_text(put, settings->fail_statuses);
    pawli_pg_arg_optional(put, settings->timeout_ms);
    pawli_pg_arg_optional(put, settings->rate_per_minute);
    pawli_pg_arg_text(put, settings->ordering == PAWL_ORDERING_DEFAULT
                               ? NULL
                               : pawl_endpoint_ordering_name(settings->ordering));
    pawli_pg_arg_text(put, settings->format == PAWL_FORMAT_DEFAULT
                               ? NULL
                               : pawl_endpoint_format_name(settings->format));
    pawli_pg_arg_optional(put, settings->lease_ms);
    put_optional_int4(put, settings->max_in_flight);
    put_optional_int4(put, settings->max_retries);
    pawli_pg_arg_optional(put, settings->backoff_base_ms);
    pawli_pg_arg_optional(put, settings->backoff_max_ms);
}

static pawl_code add(pawl_store *store, const pawl_endpoint_add_args *args, pawl_err *err)
{
    struct pawli_pg_call call = {.handle = pawli_pg_handle_of(store)};
    struct pawli_pg_args *put = pawli_pg_call_add(
        &call, "select 0 from pawl.endpoint_add($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, "
               "$12::int4, $13::int4, $14, $15)");
    pawli_pg_arg_text(put, args->name);
    pawli_pg_arg_text(put, args->settings->url);
    pawli_pg_arg_text(put, args->settings->topics);
    pawli_pg_arg_text(put, args->secret);
    put_settings(put, args->settings);
    return run_bare(&call, err);
}

static pawl_code set(pawl_store *store, const char *name, const pawl_endpoint_settings *settings,
                     pawl_err *err)
{
    struct pawli_pg_call call = {.handle = pawli_pg_handle_of(store)};
    struct pawli_pg_args *put = pawli_pg_call_add(
        &call, "select 0 from pawl.endpoint_set($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, "
               "$11::int4, $12::int4, $13, $14)");
    pawli_pg_arg_text(put, name);
    pawli_pg_arg_text(put, settings->url);
    pawli_pg_arg_text(put, settings->topics);
    put_settings(put, settings);
    return run_bare(&call, err);
}

static pawl_code rotate(pawl_store *store, const pawl_endpoint_rotate_args *args, pawl_err *err)
{
    struct pawli_pg_call call = {.handle = pawli_pg_handle_of(store)};
    struct pawli_pg_args *put = pawli_pg_call_add(&call,
                                                  "select 0 from pawl.endpoint_rotate($1, $2, $3)");
    pawli_pg_arg_text(put, args->name);
    pawli_pg_arg_text(put, args->secret);
    pawli_pg_arg_int8(put, args->overlap_ms);
    return run_bare(&call, err);
}

static pawl_code turn(pawl_store *store, const struct pawli_endpoint_turn *turned, pawl_err *err)
{
    struct pawli_pg_call call = {.handle = pawli_pg_handle_of(store)};
    struct pawli_pg_args *put = pawli_pg_call_add(
        &call, "select 0 from pawl.endpoint_turn($1, $2, $3, $4)");
    pawli_pg_arg_text(put, turned->args->name);
    pawli_pg_arg_bool(put, turned->is_enabled);
    pawli_pg_arg_text(put, turned->args->by);
    pawli_pg_arg_text(put, turned->args->reason);
    return run_bare(&call, err);
}

static pawl_code mark(pawl_store *store, const pawl_endpoint_mark_args *args,
                      pawl_endpoint_marked *ret_marked, pawl_err *err)
{
    struct pawli_pg_call call = {.handle = pawli_pg_handle_of(store)};
    struct pawli_pg_args *put = pawli_pg_call_add(
        &call, "select failing_since, is_enabled from pawl.endpoint_mark($1, $2, $3, $4, $5)");
    pawli_pg_arg_text(put, args->name);
    pawli_pg_arg_bool(put, args->is_failing);
    pawli_pg_arg_text(put, args->by);
    pawli_pg_arg_optional(put, args->disable_after_ms);
    pawli_pg_arg_text(put, args->reason);
    pawl_code rc = pawli_pg_call_run(&call, "tb", err);
    if (rc == PAWL_OK && rows_of(&call) != 1)
        rc = pawli_pg_call_spoilt(&call, err);
    if (rc == PAWL_OK)
        *ret_marked = (pawl_endpoint_marked){pawli_pg_wall(cell(&call, 0, 0)),
                                             pawli_pg_bool(cell(&call, 0, 1))};
    pawli_pg_call_clear(&call);
    return rc;
}

static pawl_code remove_endpoint(pawl_store *store, const char *name, pawl_err *err)
{
    struct pawli_pg_call call = {.handle = pawli_pg_handle_of(store)};
    struct pawli_pg_args *put = pawli_pg_call_add(&call, "select 0 from pawl.endpoint_remove($1)");
    pawli_pg_arg_text(put, name);
    return run_bare(&call, err);
}

/* ---- looking */

#define LIST                                                                                      \
    "select name, queue, url, topics, header_names, fail_statuses, timeout_ms, rate_per_minute, " \
    "ordering, format, secrets_count, is_enabled, switched_at, switched_by, reason, revision, "   \
    "created_at, changed_at, lease_ms, execution_timeout_ms, max_retries, max_lost_leases, "      \
    "backoff_base_ms, backoff_max_ms, keep_succeeded_ms, keep_failed_ms, max_in_flight, "         \
    "is_paused, failing_since from pawl.list_endpoints($1, $2, $3)"
#define LIST_SHAPE "ssssssiiiiibtssittiiiiiiiiibt"

static int64_t number_or(const struct pawli_pg_call *call, int row, int column, int64_t none)
{
    struct pawli_pg_cell at = cell(call, row, column);
    return pawli_pg_is_null(at) ? none : pawli_pg_int(at);
}

static void read_queue(const struct pawli_pg_call *call, int row, pawl_queue_settings *ret_queue)
{
    *ret_queue = (pawl_queue_settings){
        .lease_ms = pawli_pg_int(cell(call, row, 18)),
        .execution_timeout_ms = number_or(call, row, 19, PAWL_DEFAULT),
        .max_retries = pawli_pg_int(cell(call, row, 20)),
        .max_lost_leases = pawli_pg_int(cell(call, row, 21)),
        .backoff_base_ms = pawli_pg_int(cell(call, row, 22)),
        .backoff_max_ms = pawli_pg_int(cell(call, row, 23)),
        .keep_succeeded_ms = number_or(call, row, 24, PAWL_FOREVER),
        .keep_failed_ms = number_or(call, row, 25, PAWL_FOREVER),
        .max_in_flight = pawli_pg_int(cell(call, row, 26)),
        .is_paused = pawli_pg_bool(cell(call, row, 27)),
    };
}

#define READ_TEXT(column, field) \
    pawli_pg_text(cell(call, row, (column)), ret_row->field, sizeof(ret_row->field))

static void read_row(const struct pawli_pg_call *call, int row, pawl_endpoint *ret_row)
{
    memset(ret_row, 0, sizeof(*ret_row));
    READ_TEXT(0, name);
    READ_TEXT(1, queue);
    READ_TEXT(2, url);
    READ_TEXT(3, topics);
    READ_TEXT(4, header_names);
    READ_TEXT(5, fail_statuses);
    ret_row->timeout_ms = pawli_pg_int(cell(call, row, 6));
    ret_row->rate_per_minute = pawli_pg_int(cell(call, row, 7));
    ret_row->ordering = (pawl_endpoint_ordering)pawli_pg_int(cell(call, row, 8));
    ret_row->format = (pawl_endpoint_format)pawli_pg_int(cell(call, row, 9));
    ret_row->secrets_count = pawli_pg_int(cell(call, row, 10));
    ret_row->is_enabled = pawli_pg_bool(cell(call, row, 11));
    ret_row->switched_at = pawli_pg_wall(cell(call, row, 12));
    READ_TEXT(13, switched_by);
    READ_TEXT(14, reason);
    ret_row->revision = pawli_pg_int(cell(call, row, 15));
    ret_row->created_at = pawli_pg_wall(cell(call, row, 16));
    ret_row->changed_at = pawli_pg_wall(cell(call, row, 17));
    read_queue(call, row, &ret_row->queue_settings);
    ret_row->failing_since = pawli_pg_wall(cell(call, row, 28));
}

/* One endpoint, or those after a name. */
static pawl_code run_list(struct pawli_pg_call *call, const char *name, const char *after,
                          size_t rows_max, pawl_err *err)
{
    struct pawli_pg_args *put = pawli_pg_call_add(call, LIST);
    pawli_pg_arg_text(put, name);
    pawli_pg_arg_text(put, after);
    pawli_pg_arg_int4(put, (int64_t)rows_max);
    pawl_code rc = pawli_pg_call_run(call, LIST_SHAPE, err);
    if (rc == PAWL_OK && (size_t)rows_of(call) > rows_max)
        rc = pawli_pg_call_spoilt(call, err);
    return rc;
}

static pawl_code get(pawl_store *store, const char *name, pawl_endpoint *ret_endpoint,
                     pawl_err *err)
{
    struct pawli_pg_call call = {.handle = pawli_pg_handle_of(store), .is_read = true};
    pawl_code rc = run_list(&call, name, NULL, 1, err);
    if (rc == PAWL_OK && rows_of(&call) == 0)
        rc = pawli_endpoint_gone(name, err);
    if (rc == PAWL_OK)
        read_row(&call, 0, ret_endpoint);
    pawli_pg_call_clear(&call);
    return rc;
}

static pawl_code list(pawl_store *store, const char *after, pawl_endpoint *ret_rows,
                      size_t rows_max, size_t *ret_count, pawl_err *err)
{
    struct pawli_pg_call call = {.handle = pawli_pg_handle_of(store), .is_read = true};
    pawl_code rc = run_list(&call, NULL, after, rows_max, err);
    if (rc == PAWL_OK) {
        size_t count = (size_t)rows_of(&call);
        for (size_t i = 0; i < count; i++)
            read_row(&call, (int)i, &ret_rows[i]);
        *ret_count = count;
    }
    pawli_pg_call_clear(&call);
    return rc;
}

static pawl_code credentials(pawl_store *store, const char *name,
                             pawl_endpoint_credentials *ret_credentials, pawl_err *err)
{
    struct pawli_pg_call call = {.handle = pawli_pg_handle_of(store), .is_read = true};
    struct pawli_pg_args *put = pawli_pg_call_add(
        &call,
        "select revision, headers, secret, until, created_at from pawl.endpoint_credentials($1)");
    pawli_pg_arg_text(put, name);
    pawl_code rc = pawli_pg_call_run(&call, "isstt", err);
    if (rc == PAWL_OK && rows_of(&call) == 0)
        rc = pawli_endpoint_gone(name, err);
    if (rc == PAWL_OK && rows_of(&call) > PAWL_ENDPOINT_SECRETS_MAX)
        rc = pawli_pg_call_spoilt(&call, err);
    if (rc == PAWL_OK) {
        memset(ret_credentials, 0, sizeof(*ret_credentials));
        ret_credentials->revision = pawli_pg_int(cell(&call, 0, 0));
        ret_credentials->created_at = pawli_pg_wall(cell(&call, 0, 4));
        pawli_pg_text(cell(&call, 0, 1), ret_credentials->headers,
                      sizeof(ret_credentials->headers));
        for (int i = 0; i < rows_of(&call) && !pawli_pg_is_null(cell(&call, i, 2)); i++) {
            pawl_endpoint_secret *secret = &ret_credentials
                                                ->secrets[ret_credentials->secrets_count++];
            pawli_pg_text(cell(&call, i, 2), secret->text, sizeof(secret->text));
            secret->until = pawli_pg_wall(cell(&call, i, 3));
        }
    }
    pawli_pg_call_clear(&call);
    return rc;
}

/* ---- publishing */

/* An array argument of one field of each event. */
#define PUT_ALL(put, events, count, item, put_item, field) \
    do {                                                   \
        pawli_pg_array_begin((put), (item), (count));      \
        for (size_t i_ = 0; i_ < (count); i_++)            \
            put_item((put), (events)[i_].field);           \
        pawli_pg_array_end(put);                           \
    } while (0)

static void put_events(struct pawli_pg_args *put, const struct pawli_publish_event *events,
                       size_t count)
{
    PUT_ALL(put, events, count, PAWLI_PG_TEXT, pawli_pg_item_text, type);
    PUT_ALL(put, events, count, PAWLI_PG_TEXT, pawli_pg_item_text, id);
    PUT_ALL(put, events, count, PAWLI_PG_BOOL, pawli_pg_item_bool, is_minted);
    pawli_pg_array_begin(put, PAWLI_PG_BYTES, count);
    for (size_t i = 0; i < count; i++)
        pawli_pg_item_bytes(put, events[i].payload, events[i].payload_len);
    pawli_pg_array_end(put);
    PUT_ALL(put, events, count, PAWLI_PG_TEXT, pawli_pg_item_text, ordering_key);
    PUT_ALL(put, events, count, PAWLI_PG_TEXT, pawli_pg_item_text, headers);
    PUT_ALL(put, events, count, PAWLI_PG_INT8, pawli_pg_item_optional, keep_ms);
}

static bool read_results(const struct pawli_pg_call *call, const struct pawli_publish_event *events,
                         size_t events_count, pawl_published *ret_results)
{
    if ((size_t)rows_of(call) != events_count)
        return false;
    for (int row = 0; row < rows_of(call); row++) {
        int64_t endpoints = pawli_pg_int(cell(call, row, 1));
        int64_t jobs = pawli_pg_int(cell(call, row, 2));
        if (pawli_pg_int(cell(call, row, 0)) != row + 1 || jobs < 0 || jobs > endpoints)
            return false;
        pawli_published(&events[row], endpoints, jobs, &ret_results[row]);
    }
    return true;
}

/* One statement: the front bounds the bytes of a call. */
static pawl_code publish(pawl_store *store, const struct pawli_publish_event *events,
                         size_t events_count, pawl_published *ret_results, pawl_err *err)
{
    struct pawli_pg_call call = {.handle = pawli_pg_handle_of(store)};
    struct pawli_pg_args *put = pawli_pg_call_add(
        &call,
        "select ordinal, endpoints, jobs from pawl.publish_batch($1, $2, $3, $4, $5, $6, $7) "
        "order by ordinal");
    put_events(put, events, events_count);
    pawl_code rc = pawli_pg_call_run(&call, "iii", err);
    if (rc == PAWL_OK && !read_results(&call, events, events_count, ret_results))
        rc = pawli_pg_call_spoilt(&call, err);
    pawli_pg_call_clear(&call);
    return rc;
}

/* ---- replaying */

static pawl_code replay(pawl_store *store, const pawl_replay_args *args,
                        pawl_replayed *ret_replayed, pawl_err *err)
{
    struct pawli_pg_call call = {.handle = pawli_pg_handle_of(store)};
    pawl_replay_place begin = pawli_replay_begin(args);
    struct pawli_pg_args *put = pawli_pg_call_add(
        &call, "select events, jobs, is_more, next_at, next_seq from pawl.endpoint_replay($1, $2, "
               "null, $3, $4, $5, $6, $7)");
    pawli_pg_arg_text(put, args->name);
    pawli_pg_arg_text(put, args->event);
    pawli_pg_arg_wall(put, args->until);
    pawli_pg_arg_text(put, args->as);
    pawli_pg_arg_int4(put, args->events_max);
    pawli_pg_arg_wall(put, begin.at.us > 0 ? begin.at : (pawl_wall){0});
    pawli_pg_arg_int8(put, begin.seq);
    pawl_code rc = pawli_pg_call_run(&call, "iibti", err);
    if (rc == PAWL_OK && rows_of(&call) != 1)
        rc = pawli_pg_call_spoilt(&call, err);
    if (rc == PAWL_OK) {
        *ret_replayed = (pawl_replayed){
            .events = pawli_pg_int(cell(&call, 0, 0)),
            .jobs = pawli_pg_int(cell(&call, 0, 1)),
            .is_more = pawli_pg_bool(cell(&call, 0, 2)),
            .next = {.at = pawli_pg_wall(cell(&call, 0, 3)), .seq = number_or(&call, 0, 4, 0)}};
    }
    pawli_pg_call_clear(&call);
    return rc;
}

const struct pawli_endpoint_ops pawli_pg_endpoint_ops = {
    .add = add,
    .set = set,
    .rotate = rotate,
    .turn = turn,
    .remove = remove_endpoint,
    .get = get,
    .list = list,
    .credentials = credentials,
    .publish = publish,
    .mark = mark,
    .replay = replay,
};

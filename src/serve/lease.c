/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * lease.c - what a worker says of the leases it holds: renew, settle, release; many at once with a
 * verdict for each, or one, whose verdict is the status of the answer.
 * Owns:  how these are written in a request.
 * Never: decides whether a lease is valid: the store does.
 */
#include "serve/api.h"
#include "serve/fields.h"
#include "serve/json_write.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

/* One row, of any of the three: what a verb does not have is not in its table. */
struct row {
    pawl_lease lease;
    int64_t lease_ms;
    bool is_unstarted;
    const char *action;
    const char *reason;
    int64_t delay_ms;
    const char *error_code;
    const char *error_text;
    int64_t wire_sends;
};

struct request {
    const char *worker;
    struct pawli_rows rows;
    struct row one;
};

static void init_row(void *to)
{
    *(struct row *)to = (struct row){
        .lease_ms = PAWL_DEFAULT, .delay_ms = PAWL_DEFAULT, .wire_sends = PAWL_SENDS_UNKNOWN};
}

/* clang-format off */
#define PROOF(at)                                                                                \
    {"token", PAWLI_FIELD_TOKEN, (at) + offsetof(struct row, lease.token), 0, 0, true, NULL},    \
    {"version", PAWLI_FIELD_NUMBER, (at) + offsetof(struct row, lease.version), 1, INT64_MAX,    \
     true, NULL}
#define RENEW(at)                                                                                \
    {"lease", PAWLI_FIELD_DURATION, (at) + offsetof(struct row, lease_ms), 1, 0, false, NULL},   \
    {"is_unstarted", PAWLI_FIELD_FLAG, (at) + offsetof(struct row, is_unstarted), 0, 0, false, NULL}
#define SETTLE(at)                                                                               \
    {"action", PAWLI_FIELD_TEXT, (at) + offsetof(struct row, action), 0, 0, true, NULL},         \
    {"delay", PAWLI_FIELD_DURATION, (at) + offsetof(struct row, delay_ms), 0, 0, false, NULL},   \
    {"error_code", PAWLI_FIELD_TEXT, (at) + offsetof(struct row, error_code), 0, 0, false, NULL},\
    {"error_text", PAWLI_FIELD_TEXT, (at) + offsetof(struct row, error_text), 0, 0, false, NULL},\
    {"reason", PAWLI_FIELD_TEXT, (at) + offsetof(struct row, reason), 0, 0, false, NULL},        \
    {"wire_sends", PAWLI_FIELD_NUMBER, (at) + offsetof(struct row, wire_sends), 0,               \
     PAWL_SENDS_MAX, false, NULL}
#define JOB    {"job", PAWLI_FIELD_ID, offsetof(struct row, lease.job), 0, 0, true, NULL}
#define WORKER {"worker", PAWLI_FIELD_TEXT, offsetof(struct request, worker), 0, 0, true, NULL}
#define ONE    offsetof(struct request, one)

static const struct pawli_field renew_rows[] = {JOB, PROOF(0), RENEW(0)};
static const struct pawli_field settle_rows[] = {JOB, PROOF(0), SETTLE(0)};
static const struct pawli_field release_rows[] = {JOB, PROOF(0)};
static const struct pawli_field renew_one_rows[] = {WORKER, PROOF(ONE), RENEW(ONE)};
static const struct pawli_field settle_one_rows[] = {WORKER, PROOF(ONE), SETTLE(ONE)};
static const struct pawli_field release_one_rows[] = {WORKER, PROOF(ONE)};
/* clang-format on */

static const struct pawli_fields renew_fields = PAWLI_FIELDS(renew_rows);
static const struct pawli_fields settle_fields = PAWLI_FIELDS(settle_rows);
static const struct pawli_fields release_fields = PAWLI_FIELDS(release_rows);
static const struct pawli_fields renew_one_fields = PAWLI_FIELDS(renew_one_rows);
static const struct pawli_fields settle_one_fields = PAWLI_FIELDS(settle_one_rows);
static const struct pawli_fields release_one_fields = PAWLI_FIELDS(release_one_rows);

#define KIND(fields_)                                                      \
    {                                                                      \
        "leases", &(fields_), sizeof(struct row), PAWL_BATCH_MAX, init_row \
    }
static const struct pawli_rows_kind renew_kind = KIND(renew_fields);
static const struct pawli_rows_kind settle_kind = KIND(settle_fields);
static const struct pawli_rows_kind release_kind = KIND(release_fields);

static bool read_renews(struct pawli_reader *reader, void *to, pawl_err *err)
{
    return pawli_fields_rows(&renew_kind, reader, &((struct request *)to)->rows, err);
}

static bool read_settles(struct pawli_reader *reader, void *to, pawl_err *err)
{
    return pawli_fields_rows(&settle_kind, reader, &((struct request *)to)->rows, err);
}

static bool read_releases(struct pawli_reader *reader, void *to, pawl_err *err)
{
    return pawli_fields_rows(&release_kind, reader, &((struct request *)to)->rows, err);
}

static const struct pawli_field renew_many_rows[] = {
    {"leases", PAWLI_FIELD_OWN, 0, 0, 0, true, read_renews}, WORKER};
static const struct pawli_field settle_many_rows[] = {
    {"leases", PAWLI_FIELD_OWN, 0, 0, 0, true, read_settles}, WORKER};
static const struct pawli_field release_many_rows[] = {
    {"leases", PAWLI_FIELD_OWN, 0, 0, 0, true, read_releases}, WORKER};
static const struct pawli_fields renew_many_fields = PAWLI_FIELDS(renew_many_rows);
static const struct pawli_fields settle_many_fields = PAWLI_FIELDS(settle_many_rows);
static const struct pawli_fields release_many_fields = PAWLI_FIELDS(release_many_rows);

/* ---------------------------------------------------------------- reading */

static pawl_code read_many(struct pawli_call *call, const struct pawli_fields *fields,
                           struct request *ret_request)
{
    *ret_request = (struct request){0};
    return pawli_fields_body(fields, call->body, call->body_len, ret_request, &call->err);
}

/* One, whose job stands in the path: as a batch of one. */
static pawl_code read_one(struct pawli_call *call, const struct pawli_fields *fields,
                          struct request *ret_request)
{
    *ret_request = (struct request){0};
    init_row(&ret_request->one);
    pawl_code code = pawl_id_parse(call->captures[0], &ret_request->one.lease.job, &call->err);
    if (code == PAWL_OK)
        code = pawli_fields_body(fields, call->body, call->body_len, ret_request, &call->err);
    if (code != PAWL_OK)
        return code;
    struct row *row = pawli_rows_add(&ret_request->rows, sizeof(*row), 1);
    if (row == NULL)
        return pawli_fail_plain(&call->err, PAWL_NO_MEMORY);
    *row = ret_request->one;
    return PAWL_OK;
}

/* ---------------------------------------------------------------- answering */

/* Results of `count` rows: each is written by `put`. Of one alone, a verdict that is not OK is the
 * answer as a whole. */
struct results {
    size_t count;
    bool is_one;
    pawl_code (*code_of)(const void *results, size_t at);
    void (*put)(struct pawli_writer *writer, const void *results, size_t at);
    const void *rows;
};

static pawl_code answer(struct pawli_call *call, const struct results *results)
{
    struct pawli_writer writer;
    if (results->is_one && results->code_of(results->rows, 0) != PAWL_OK) {
        pawli_answer_code(call->answer, results->code_of(results->rows, 0), NULL);
        return PAWL_OK;
    }
    pawli_call_json(call, 200, &writer);
    if (!results->is_one) {
        pawli_put_object(&writer, NULL);
        pawli_put_array(&writer, "results");
    }
    for (size_t i = 0; i < results->count; i++) {
        pawli_put_object(&writer, NULL);
        pawli_put_text(&writer, "verdict", pawl_code_name(results->code_of(results->rows, i)));
        if (results->put != NULL && results->code_of(results->rows, i) == PAWL_OK)
            results->put(&writer, results->rows, i);
        pawli_put_object_end(&writer);
    }
    if (!results->is_one) {
        pawli_put_array_end(&writer);
        pawli_put_object_end(&writer);
    }
    return pawli_call_done(call, &writer);
}

/* Room for the rows of a call and its results; false: there is none. */
static bool make_room(size_t count, size_t row_size, size_t result_size, void **ret_rows,
                      void **ret_results)
{
    *ret_rows = calloc(count, row_size);
    *ret_results = calloc(count, result_size);
    return *ret_rows != NULL && *ret_results != NULL;
}

/* ---------------------------------------------------------------- renew */

static pawl_code renewed_code(const void *results, size_t at)
{
    return ((const pawl_renewed *)results)[at].code;
}

static void put_renewed(struct pawli_writer *writer, const void *results, size_t at)
{
    const pawl_renewed *row = &((const pawl_renewed *)results)[at];
    pawli_put_time(writer, "expires_at", row->expires_at);
    pawli_put_number(writer, "lease_ms", row->lease_ms);
}

static pawl_code renew(struct pawli_call *call, const struct request *request, bool is_one)
{
    const struct row *from = request->rows.rows;
    size_t count = request->rows.count;
    void *rows;
    void *results;
    pawl_code code = PAWL_NO_MEMORY;
    if (make_room(count, sizeof(pawl_renew_row), sizeof(pawl_renewed), &rows, &results)) {
        for (size_t i = 0; i < count; i++)
            ((pawl_renew_row *)rows)[i] = (pawl_renew_row){from[i].lease, from[i].lease_ms,
                                                           from[i].is_unstarted};
        code = pawl_renew(call->store, request->worker, rows, count, results, &call->err);
    }
    if (code == PAWL_OK)
        code = answer(call, &(struct results){count, is_one, renewed_code, put_renewed, results});
    free(rows);
    free(results);
    return code;
}

pawl_code pawli_api_renew(struct pawli_call *call)
{
    struct request request;
    pawl_code code = read_many(call, &renew_many_fields, &request);
    if (code == PAWL_OK)
        code = renew(call, &request, false);
    pawli_rows_clear(&request.rows);
    return code;
}

pawl_code pawli_api_renew_one(struct pawli_call *call)
{
    struct request request;
    pawl_code code = read_one(call, &renew_one_fields, &request);
    if (code == PAWL_OK)
        code = renew(call, &request, true);
    pawli_rows_clear(&request.rows);
    return code;
}

/* ---------------------------------------------------------------- settle */

static pawl_code settled_code(const void *results, size_t at)
{
    return ((const pawl_settled *)results)[at].code;
}

static void put_settled(struct pawli_writer *writer, const void *results, size_t at)
{
    const pawl_settled *row = &((const pawl_settled *)results)[at];
    pawli_put_text(writer, "state", pawl_state_name(row->state));
    pawli_put_time(writer, "due_at", row->due_at);
    pawli_put_number(writer, "attempt_no", row->attempt_no);
}

static pawl_code fill_settle(const struct row *from, pawl_settle_row *to, pawl_err *err)
{
    static const char *const actions[] = {"succeed", "retry", "fail", "snooze"};
    static const pawl_reason reasons[] = {PAWL_REASON_TIMEOUT, PAWL_REASON_SHUTDOWN,
                                          PAWL_REASON_CANCELLED};
    size_t action = 0;
    size_t reason = 0;
    pawl_settle_init(to);
    while (action < 4 && strcmp(from->action, actions[action]) != 0)
        action++;
    if (action == 4)
        return pawli_fail(err, PAWL_INVALID,
                          "action is \"%.20s\"; it must be succeed, retry, fail or snooze",
                          from->action);
    while (from->reason != NULL && reason < 3 &&
           strcmp(from->reason, pawl_reason_name(reasons[reason])) != 0)
        reason++;
    if (reason == 3)
        return pawli_fail(err, PAWL_INVALID,
                          "reason must be timeout (of retry), shutdown (of snooze) or cancelled "
                          "(of fail)");
    to->lease = from->lease;
    to->action = (pawl_settle_action)action;
    to->reason = from->reason != NULL ? reasons[reason] : PAWL_REASON_NONE;
    to->delay_ms = from->delay_ms;
    to->error_code = from->error_code;
    to->error_text = from->error_text;
    to->wire_sends = from->wire_sends;
    return PAWL_OK;
}

static pawl_code settle(struct pawli_call *call, const struct request *request, bool is_one)
{
    const struct row *from = request->rows.rows;
    size_t count = request->rows.count;
    void *rows;
    void *results;
    pawl_code code = PAWL_NO_MEMORY;
    if (make_room(count, sizeof(pawl_settle_row), sizeof(pawl_settled), &rows, &results)) {
        code = PAWL_OK;
        for (size_t i = 0; code == PAWL_OK && i < count; i++)
            code = fill_settle(&from[i], &((pawl_settle_row *)rows)[i], &call->err);
    }
    if (code == PAWL_OK)
        code = pawl_settle(call->store, request->worker, rows, count, results, &call->err);
    const pawl_settled *settled = results;
    for (size_t i = 0; code == PAWL_OK && i < count; i++)
        if (settled[i].code == PAWL_OK)
            pawli_call_changed(call, &from[i].lease.job, "", pawl_state_name(settled[i].state));
    if (code == PAWL_OK)
        code = answer(call, &(struct results){count, is_one, settled_code, put_settled, results});
    free(rows);
    free(results);
    return code;
}

pawl_code pawli_api_settle(struct pawli_call *call)
{
    struct request request;
    pawl_code code = read_many(call, &settle_many_fields, &request);
    if (code == PAWL_OK)
        code = settle(call, &request, false);
    pawli_rows_clear(&request.rows);
    return code;
}

pawl_code pawli_api_settle_one(struct pawli_call *call)
{
    struct request request;
    pawl_code code = read_one(call, &settle_one_fields, &request);
    if (code == PAWL_OK)
        code = settle(call, &request, true);
    pawli_rows_clear(&request.rows);
    return code;
}

/* ---------------------------------------------------------------- release */

static pawl_code released_code(const void *results, size_t at)
{
    return ((const pawl_code *)results)[at];
}

static pawl_code release(struct pawli_call *call, const struct request *request, bool is_one)
{
    const struct row *from = request->rows.rows;
    size_t count = request->rows.count;
    void *rows;
    void *results;
    pawl_code code = PAWL_NO_MEMORY;
    if (make_room(count, sizeof(pawl_lease), sizeof(pawl_code), &rows, &results)) {
        for (size_t i = 0; i < count; i++)
            ((pawl_lease *)rows)[i] = from[i].lease;
        code = pawl_release(call->store, request->worker, rows, count, results, &call->err);
        for (size_t i = 0; code == PAWL_OK && i < count; i++)
            if (released_code(results, i) == PAWL_OK)
                pawli_call_changed(call, &from[i].lease.job, "", NULL); /* or it was cancelled */
    }
    if (code == PAWL_OK)
        code = answer(call, &(struct results){count, is_one, released_code, NULL, results});
    free(rows);
    free(results);
    return code;
}

pawl_code pawli_api_release(struct pawli_call *call)
{
    struct request request;
    pawl_code code = read_many(call, &release_many_fields, &request);
    if (code == PAWL_OK)
        code = release(call, &request, false);
    pawli_rows_clear(&request.rows);
    return code;
}

pawl_code pawli_api_release_one(struct pawli_call *call)
{
    struct request request;
    pawl_code code = read_one(call, &release_one_fields, &request);
    if (code == PAWL_OK)
        code = release(call, &request, true);
    pawli_rows_clear(&request.rows);
    return code;
}

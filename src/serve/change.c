/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * change.c - what operators do to jobs: cancel, redrive, discard; one, some by their ids, or all
 * that match a filter.
 * Owns:  how these are written in a request.
 * Never: touches a job of a queue that the token is not for.
 */
#include "serve/api.h"
#include "serve/job_json.h"
#include "serve/stream.h"

#include "base/error.h"

#include <stdlib.h>

#define WHERE_MAX 1000 /* jobs that one call changes by a filter */

/* The verb in its two forms. */
struct verb {
    pawl_code (*by_id)(pawl_store *store, const pawl_id *ids, size_t ids_count,
                       pawl_changed *ret_results, pawl_err *err);
    pawl_code (*where)(pawl_store *store, const pawl_filter *filter, size_t jobs_max,
                       size_t *ret_count, pawl_err *err);
    bool is_end; /* of the job: it is gone then */
};
static const struct verb cancel = {pawl_cancel, pawl_cancel_where, false};
static const struct verb redrive = {pawl_redrive, pawl_redrive_where, false};
static const struct verb discard = {pawl_discard, pawl_discard_where, true};

static void tell(const struct pawli_call *call, const struct verb *verb, const pawl_id *id,
                 const pawl_changed *result)
{
    if (result->code == PAWL_OK)
        pawli_call_changed(call, id, "",
                           verb->is_end ? PAWLI_STATE_DISCARDED : pawl_state_name(result->state));
}

struct request {
    struct pawli_rows ids;
    struct pawli_wanted wanted;
    bool has_filter;
    int64_t jobs_max;
};

static bool read_ids(struct pawli_reader *reader, void *to, pawl_err *err)
{
    struct request *request = to;
    bool has_id = true;
    const char *text;
    size_t len;
    if (!pawli_reader_array(reader))
        return pawli_fields_bad(reader, "ids", err);
    for (bool is_first = true; has_id; is_first = false) {
        if (!pawli_reader_element(reader, is_first, &has_id))
            return pawli_fields_bad(reader, "ids", err);
        if (!has_id)
            break;
        if (!pawli_reader_text(reader, &text, &len))
            return pawli_fields_bad(reader, "ids", err);
        pawl_id *id = pawli_rows_add(&request->ids, sizeof(*id), PAWL_BATCH_MAX);
        if (id == NULL) {
            bool is_full = request->ids.count == PAWL_BATCH_MAX;
            (void)pawli_fail(err, is_full ? PAWL_INVALID : PAWL_NO_MEMORY,
                             is_full ? "ids has more than %d" : "memory ran out", PAWL_BATCH_MAX);
            return false;
        }
        if (pawl_id_parse(text, id, NULL) != PAWL_OK) {
            (void)pawli_fail(err, PAWL_INVALID, "ids[%zu] must be an id", request->ids.count - 1);
            return false;
        }
    }
    return true;
}

static const struct pawli_field filter_rows[] = {PAWLI_WANTED_FIELDS};
static const struct pawli_fields filter_fields = PAWLI_FIELDS(filter_rows);

static bool read_filter(struct pawli_reader *reader, void *to, pawl_err *err)
{
    struct request *request = to;
    pawl_err inner;
    request->has_filter = true;
    if (pawli_fields_object(&filter_fields, reader, &request->wanted, &inner) == PAWL_OK)
        return true;
    (void)pawli_fail(err, inner.code, "filter: %.200s", inner.text);
    return false;
}

static const struct pawli_field request_rows[] = {
    {"filter", PAWLI_FIELD_OWN, 0, 0, 0, false, read_filter},
    {"ids", PAWLI_FIELD_OWN, 0, 0, 0, false, read_ids},
    {"max", PAWLI_FIELD_NUMBER, offsetof(struct request, jobs_max), 1, WHERE_MAX, false, NULL},
};
static const struct pawli_fields request_fields = PAWLI_FIELDS(request_rows);

static pawl_code change_ids(struct pawli_call *call, const struct verb *verb,
                            const struct pawli_rows *ids)
{
    struct pawli_writer writer;
    const pawl_id *rows = ids->rows;
    /* Whose they are, only the store knows, one by one. */
    if (!pawli_grant_has_all_queues(call->grant)) {
        pawli_answer_problem(call->answer, PAWLI_PROBLEM_FORBIDDEN,
                             "the token is for some queues only: name jobs one by one, or a queue "
                             "in a filter");
        return PAWL_OK;
    }
    pawl_changed *results = calloc(ids->count, sizeof(*results));
    if (results == NULL)
        return pawli_fail_plain(&call->err, PAWL_NO_MEMORY);
    pawl_code code = verb->by_id(call->store, rows, ids->count, results, &call->err);
    if (code == PAWL_OK) {
        pawli_call_json(call, 200, &writer);
        pawli_put_object(&writer, NULL);
        pawli_put_array(&writer, "results");
        for (size_t i = 0; i < ids->count; i++) {
            tell(call, verb, &rows[i], &results[i]);
            pawli_put_object(&writer, NULL);
            pawli_put_id(&writer, "id", &rows[i]);
            pawli_put_text(&writer, "verdict", pawl_code_name(results[i].code));
            if (results[i].code == PAWL_OK)
                pawli_put_text(&writer, "state", pawl_state_name(results[i].state));
            pawli_put_object_end(&writer);
        }
        pawli_put_array_end(&writer);
        pawli_put_object_end(&writer);
        code = pawli_call_done(call, &writer);
    }
    free(results);
    return code;
}

static pawl_code change_where(struct pawli_call *call, const struct verb *verb,
                              const struct request *request)
{
    struct pawli_writer writer;
    pawl_filter filter;
    size_t count = 0;
    pawl_code code = pawli_wanted_filter(&request->wanted, &filter, &call->err);
    if (code != PAWL_OK || !pawli_call_may(call, filter.queue))
        return code;
    code = verb->where(call->store, &filter, (size_t)request->jobs_max, &count, &call->err);
    if (code != PAWL_OK)
        return code;
    if (count > 0)
        pawli_call_changed_some(call, filter.queue);
    pawli_call_json(call, 200, &writer);
    pawli_put_object(&writer, NULL);
    pawli_put_number(&writer, "changed", (int64_t)count);
    pawli_put_flag(&writer, "is_more", count == (size_t)request->jobs_max);
    pawli_put_object_end(&writer);
    return pawli_call_done(call, &writer);
}

static pawl_code change(struct pawli_call *call, const struct verb *verb)
{
    struct request request = {.jobs_max = WHERE_MAX};
    pawl_code code = pawli_fields_body(&request_fields, call->body, call->body_len, &request,
                                       &call->err);
    if (code == PAWL_OK && request.has_filter == (request.ids.count > 0))
        code = pawli_fail(&call->err, PAWL_INVALID,
                          "ids (at least one) or filter must be there, "
                          "and not both");
    if (code == PAWL_OK)
        code = request.has_filter ? change_where(call, verb, &request)
                                  : change_ids(call, verb, &request.ids);
    pawli_rows_clear(&request.ids);
    return code;
}

/* One, of the path. What is wrong with it is the status of the answer. */
static pawl_code change_one(struct pawli_call *call, const struct verb *verb)
{
    struct pawli_writer writer;
    pawl_changed result;
    pawl_job job = {.payload = NULL};
    pawl_id id;
    pawl_code code = pawl_id_parse(call->captures[0], &id, &call->err);
    if (code == PAWL_OK && !pawli_grant_has_all_queues(call->grant)) {
        code = pawl_get(call->store, &id, &job, &call->err);
        bool is_allowed = code == PAWL_OK && pawli_call_may_job(call, &job);
        pawl_job_clear(&job);
        if (!is_allowed)
            return code;
    }
    if (code == PAWL_OK)
        code = verb->by_id(call->store, &id, 1, &result, &call->err);
    if (code == PAWL_OK && result.code != PAWL_OK) {
        pawli_answer_code(call->answer, result.code, NULL);
        return PAWL_OK;
    }
    if (code != PAWL_OK)
        return code;
    tell(call, verb, &id, &result);
    pawli_call_json(call, 200, &writer);
    pawli_put_object(&writer, NULL);
    pawli_put_id(&writer, "id", &id);
    pawli_put_text(&writer, "verdict", pawl_code_name(result.code));
    pawli_put_text(&writer, "state", pawl_state_name(result.state));
    pawli_put_object_end(&writer);
    return pawli_call_done(call, &writer);
}

pawl_code pawli_api_cancel(struct pawli_call *call)
{
    return change(call, &cancel);
}

pawl_code pawli_api_cancel_one(struct pawli_call *call)
{
    return change_one(call, &cancel);
}

pawl_code pawli_api_redrive(struct pawli_call *call)
{
    return change(call, &redrive);
}

pawl_code pawli_api_redrive_one(struct pawli_call *call)
{
    return change_one(call, &redrive);
}

pawl_code pawli_api_discard(struct pawli_call *call)
{
    return change(call, &discard);
}

pawl_code pawli_api_discard_one(struct pawli_call *call)
{
    return change_one(call, &discard);
}

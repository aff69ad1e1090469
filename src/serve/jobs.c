/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * jobs.c - looks at jobs: pages of them, one, its payload, its ledger.
 * Owns:  how a page is asked for.
 * Never: changes anything; tells a lease's token.
 */
#include "serve/api.h"
#include "serve/job_json.h"

#include "base/error.h"
#include "base/text.h"
#include "pawl/headers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct pawli_field page_rows[] = {
    PAWLI_WANTED_FIELDS,
    {"after", PAWLI_FIELD_TEXT, offsetof(struct pawli_wanted, after), 0, 0, false, NULL},
    {"limit", PAWLI_FIELD_NUMBER, offsetof(struct pawli_wanted, limit), 1, PAWLI_PAGE_LIMIT_MAX,
     false, NULL},
};
static const struct pawli_fields page_fields = PAWLI_FIELDS(page_rows);

static pawl_code put_page(struct pawli_call *call, const pawl_job *jobs, size_t count, size_t limit)
{
    struct pawli_writer writer;
    pawli_call_json(call, 200, &writer);
    pawli_put_object(&writer, NULL);
    pawli_put_array(&writer, "jobs");
    for (size_t i = 0; i < count; i++)
        pawli_put_job(&writer, &jobs[i], PAWLI_VIEW_PLAIN);
    pawli_put_array_end(&writer);
    pawli_put_next_id(&writer, count > 0 ? &jobs[count - 1].id : NULL, count == limit);
    pawli_put_object_end(&writer);
    return pawli_call_done(call, &writer);
}

pawl_code pawli_api_jobs(struct pawli_call *call)
{
    struct pawli_wanted wanted = {.limit = PAWLI_PAGE_LIMIT};
    pawl_filter filter;
    pawl_id room;
    const pawl_id *after = NULL;
    size_t count = 0;
    pawl_code code = pawli_fields_query(&page_fields, call->uri, &wanted, &call->err);
    if (code == PAWL_OK)
        code = pawli_wanted_filter(&wanted, &filter, &call->err);
    if (code == PAWL_OK)
        code = pawli_after_id(wanted.after, &room, &after, &call->err);
    if (code != PAWL_OK || !pawli_call_may(call, wanted.queue))
        return code;
    size_t limit = (size_t)wanted.limit;
    pawl_job *jobs = calloc(limit, sizeof(*jobs));
    if (jobs == NULL)
        return pawli_fail_plain(&call->err, PAWL_NO_MEMORY);
    code = pawl_list(call->store, &filter, after, jobs, limit, &count, &call->err);
    if (code == PAWL_OK)
        code = put_page(call, jobs, count, limit);
    for (size_t i = 0; i < count; i++)
        pawl_job_clear(&jobs[i]);
    free(jobs);
    return code;
}

/* ---------------------------------------------------------------- one */

/* The job of the path. *ret_has: the answer is not there yet, and the caller clears the job. */
static pawl_code get_job(struct pawli_call *call, pawl_job *ret_job, bool *ret_has)
{
    pawl_id id;
    *ret_has = false;
    pawl_code code = pawl_id_parse(call->captures[0], &id, &call->err);
    if (code == PAWL_OK)
        code = pawl_get(call->store, &id, ret_job, &call->err);
    if (code != PAWL_OK)
        return code;
    *ret_has = pawli_call_may_job(call, ret_job);
    if (!*ret_has)
        pawl_job_clear(ret_job);
    return PAWL_OK;
}

static pawl_code no_params(struct pawli_call *call)
{
    static const struct pawli_fields none = {NULL, 0};
    return pawli_fields_query(&none, call->uri, NULL, &call->err);
}

pawl_code pawli_api_job(struct pawli_call *call)
{
    struct pawli_writer writer;
    pawl_job job = {.payload = NULL};
    bool has_job;
    pawl_code code = no_params(call);
    if (code == PAWL_OK)
        code = get_job(call, &job, &has_job);
    if (code != PAWL_OK || !has_job)
        return code;
    pawli_call_json(call, 200, &writer);
    pawli_put_job(&writer, &job, PAWLI_VIEW_PLAIN);
    pawl_job_clear(&job);
    return pawli_call_done(call, &writer);
}

pawl_code pawli_api_payload(struct pawli_call *call)
{
    pawl_job job = {.payload = NULL};
    bool has_job;
    size_t len = 0;
    pawl_code code = no_params(call);
    if (code == PAWL_OK)
        code = get_job(call, &job, &has_job);
    if (code != PAWL_OK || !has_job)
        return code;
    if (job.payload == NULL && job.payload_len > 0) {
        pawl_job_clear(&job);
        return pawli_fail(&call->err, PAWL_GONE, "the payload is no longer kept");
    }
    const char *type = pawl_headers_find(job.headers, "content-type", &len);
    call->answer->status = 200;
    call->answer->type = "application/octet-stream";
    if (type != NULL && len < sizeof(call->answer->payload_type))
        (void)snprintf(call->answer->payload_type, sizeof(call->answer->payload_type), "%.*s",
                       (int)len, type); /* fits */
    bool is_kept = pawli_buffer_put(&call->answer->body, job.payload, job.payload_len);
    pawl_job_clear(&job);
    return is_kept ? PAWL_OK : pawli_fail_plain(&call->err, PAWL_NO_MEMORY);
}

/* ---------------------------------------------------------------- the ledger */

struct ledger {
    int64_t after_no;
    int64_t limit;
};

static const struct pawli_field ledger_rows[] = {
    {"after", PAWLI_FIELD_NUMBER, offsetof(struct ledger, after_no), 0, INT64_MAX, false, NULL},
    {"limit", PAWLI_FIELD_NUMBER, offsetof(struct ledger, limit), 1, PAWLI_PAGE_LIMIT_MAX, false,
     NULL},
};
static const struct pawli_fields ledger_fields = PAWLI_FIELDS(ledger_rows);

static void put_attempt(struct pawli_writer *writer, const pawl_attempt *row)
{
    pawli_put_object(writer, NULL);
    pawli_put_number(writer, "attempt_no", row->attempt_no);
    pawli_put_text(writer, "outcome", pawl_outcome_name(row->outcome));
    pawli_put_text(writer, "reason", pawl_reason_name(row->reason));
    pawli_put_text(writer, "ended_by", pawl_ended_by_name(row->ended_by));
    pawli_put_number(writer, "lease_version", row->lease_version);
    pawli_put_text(writer, "worker", row->worker);
    pawli_put_time(writer, "started_at", row->started_at);
    pawli_put_time(writer, "finished_at", row->finished_at);
    pawli_put_text(writer, "error_code", row->error_code);
    pawli_put_text(writer, "error_text", row->error_text);
    if (row->wire_sends != PAWL_SENDS_UNKNOWN)
        pawli_put_number(writer, "wire_sends", row->wire_sends);
    else
        pawli_put_null(writer, "wire_sends");
    pawli_put_object_end(writer);
}

static pawl_code put_ledger(struct pawli_call *call, const pawl_attempt *rows, size_t count,
                            size_t limit)
{
    struct pawli_writer writer;
    pawli_call_json(call, 200, &writer);
    pawli_put_object(&writer, NULL);
    pawli_put_array(&writer, "attempts");
    for (size_t i = 0; i < count; i++)
        put_attempt(&writer, &rows[i]);
    pawli_put_array_end(&writer);
    if (count == limit)
        pawli_put_number(&writer, "next", rows[count - 1].attempt_no);
    else
        pawli_put_null(&writer, "next");
    pawli_put_object_end(&writer);
    return pawli_call_done(call, &writer);
}

pawl_code pawli_api_attempts(struct pawli_call *call)
{
    struct ledger ledger = {.limit = PAWLI_PAGE_LIMIT};
    pawl_job job = {.payload = NULL};
    bool has_job;
    size_t count = 0;
    pawl_code code = pawli_fields_query(&ledger_fields, call->uri, &ledger, &call->err);
    if (code == PAWL_OK)
        code = get_job(call, &job, &has_job);
    if (code != PAWL_OK || !has_job)
        return code;
    size_t limit = (size_t)ledger.limit;
    pawl_attempt *rows = calloc(limit, sizeof(*rows));
    if (rows == NULL)
        code = pawli_fail_plain(&call->err, PAWL_NO_MEMORY);
    else
        code = pawl_attempts(call->store, &job.id, ledger.after_no, rows, limit, &count,
                             &call->err);
    if (code == PAWL_OK)
        code = put_ledger(call, rows, count, limit);
    free(rows);
    pawl_job_clear(&job);
    return code;
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * claim.c - claims: read, tried, answered, and given back where the answer did not arrive.
 * Owns:  how a claim is written in a request; the bounds on what one answer holds.
 * Never: waits: see waiting.c.
 */
#include "serve/claim.h"

#include "serve/fields.h"
#include "serve/job_json.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- reading */

static void init_line(void *to)
{
    *(pawl_claim_line *)to = (pawl_claim_line){.jobs_max = PAWL_DEFAULT, .lease_ms = PAWL_DEFAULT};
}

static const struct pawli_field line_rows[] = {
    {"lease", PAWLI_FIELD_DURATION, offsetof(pawl_claim_line, lease_ms), 1, 0, false, NULL},
    {"max", PAWLI_FIELD_NUMBER, offsetof(pawl_claim_line, jobs_max), 1, PAWLI_CLAIM_JOBS_MAX, false,
     NULL},
    {"queue", PAWLI_FIELD_TEXT, offsetof(pawl_claim_line, queue), 0, 0, true, NULL},
};
static const struct pawli_fields line_fields = PAWLI_FIELDS(line_rows);
static const struct pawli_rows_kind line_kind = {"queues", &line_fields, sizeof(pawl_claim_line),
                                                 PAWLI_CLAIM_LINES_MAX, init_line};

struct request {
    const char *worker;
    struct pawli_rows lines;
    int64_t jobs_max;
    int64_t bytes_max;
    int64_t wait_ms;
};

static bool read_lines(struct pawli_reader *reader, void *to, pawl_err *err)
{
    struct request *request = to;
    return pawli_fields_rows(&line_kind, reader, &request->lines, err);
}

static const struct pawli_field claim_rows[] = {
    {"max", PAWLI_FIELD_NUMBER, offsetof(struct request, jobs_max), 1, PAWLI_CLAIM_JOBS_MAX, false,
     NULL},
    {"max_bytes", PAWLI_FIELD_NUMBER, offsetof(struct request, bytes_max), 1, PAWLI_CLAIM_BYTES_MAX,
     false, NULL},
    {"queues", PAWLI_FIELD_OWN, 0, 0, 0, true, read_lines},
    {"wait", PAWLI_FIELD_DURATION, offsetof(struct request, wait_ms), 0, PAWLI_CLAIM_WAIT_MAX_MS,
     false, NULL},
    {"worker", PAWLI_FIELD_TEXT, offsetof(struct request, worker), 0, 0, true, NULL},
};
static const struct pawli_fields claim_fields = PAWLI_FIELDS(claim_rows);

void pawli_claiming_free(struct pawli_claiming *claiming)
{
    if (claiming == NULL)
        return;
    free(claiming->lines);
    free(claiming->granted);
    free(claiming);
}

static pawl_code read_claim(struct pawli_call *call, struct pawli_claiming **ret_claiming)
{
    struct request request = {.jobs_max = 1, .bytes_max = PAWLI_CLAIM_BYTES_MAX};
    pawl_code code = pawli_fields_body(&claim_fields, call->body, call->body_len, &request,
                                       &call->err);
    struct pawli_claiming *claiming = code == PAWL_OK ? calloc(1, sizeof(*claiming)) : NULL;
    if (claiming == NULL) {
        pawli_rows_clear(&request.lines);
        return code != PAWL_OK ? code : pawli_fail_plain(&call->err, PAWL_NO_MEMORY);
    }
    *claiming = (struct pawli_claiming){
        .worker = request.worker,
        .lines = request.lines.rows, /* which is its own from here on */
        .lines_count = request.lines.count,
        .jobs_max = request.jobs_max,
        .bytes_max = request.bytes_max,
        .wait_ms = request.wait_ms,
    };
    for (size_t i = 0; i < claiming->lines_count; i++)
        if (claiming->lines[i].jobs_max == PAWL_DEFAULT)
            claiming->lines[i].jobs_max = claiming->jobs_max;
    *ret_claiming = claiming;
    return PAWL_OK;
}

/* ---------------------------------------------------------------- trying */

static pawl_code put_jobs(struct pawli_call *call, const pawl_job *jobs, size_t count)
{
    struct pawli_writer writer;
    pawli_call_json(call, 200, &writer);
    pawli_put_object(&writer, NULL);
    pawli_put_array(&writer, "jobs");
    for (size_t i = 0; i < count; i++)
        pawli_put_job(&writer, &jobs[i], PAWLI_VIEW_GRANT);
    pawli_put_array_end(&writer);
    pawli_put_object_end(&writer);
    return pawli_call_done(call, &writer);
}

/* Remember what is given out, so that it can be given back. */
static void keep_leases(struct pawli_claiming *claiming, const pawl_job *jobs, size_t count)
{
    claiming->granted_count = count;
    for (size_t i = 0; i < count; i++)
        claiming->granted[i] = (pawl_lease){jobs[i].id, jobs[i].token, jobs[i].lease_version,
                                            jobs[i].place};
}

pawl_code pawli_claim_try(struct pawli_call *call, struct pawli_claiming *claiming,
                          size_t *ret_count)
{
    size_t jobs_max = (size_t)claiming->jobs_max;
    const pawl_claim_args args = {.worker = claiming->worker,
                                  .lines = claiming->lines,
                                  .lines_count = claiming->lines_count,
                                  .bytes_max = claiming->bytes_max};
    size_t count = 0;
    pawl_job *jobs = calloc(jobs_max, sizeof(*jobs));
    if (claiming->granted == NULL)
        claiming->granted = calloc(jobs_max, sizeof(*claiming->granted));
    if (jobs == NULL || claiming->granted == NULL) {
        free(jobs);
        return pawli_fail_plain(&call->err, PAWL_NO_MEMORY);
    }
    pawl_code code = pawl_claim(call->store, &args, jobs, jobs_max, &count, &call->err);
    if (code == PAWL_OK) {
        keep_leases(claiming, jobs, count);
        for (size_t i = 0; i < count; i++)
            pawli_call_changed(call, &jobs[i].id, jobs[i].queue, "InFlight");
        code = put_jobs(call, jobs, count);
        if (code != PAWL_OK)
            (void)!pawli_claim_give_back(call->store, claiming, NULL); /* else they expire */
        for (size_t i = 0; i < count; i++)
            pawl_job_clear(&jobs[i]);
        *ret_count = count;
    }
    free(jobs);
    return code;
}

pawl_code pawli_claim_give_back(pawl_store *store, struct pawli_claiming *claiming, pawl_err *err)
{
    pawl_code code = PAWL_OK;
    if (claiming->granted_count > 0) {
        pawl_code *verdicts = calloc(claiming->granted_count, sizeof(*verdicts));
        if (verdicts == NULL)
            return pawli_fail_plain(err, PAWL_NO_MEMORY);
        code = pawl_release(store, claiming->worker, claiming->granted, claiming->granted_count,
                            verdicts, err);
        free(verdicts); /* whatever was not the worker's any more is well */
    }
    claiming->granted_count = 0;
    return code;
}

pawl_code pawli_api_claim(struct pawli_call *call)
{
    size_t count = 0;
    pawl_code code = read_claim(call, &call->claiming);
    if (code != PAWL_OK)
        return code;
    for (size_t i = 0; i < call->claiming->lines_count; i++)
        if (!pawli_call_may(call, call->claiming->lines[i].queue))
            return PAWL_OK;
    code = pawli_claim_try(call, call->claiming, &count);
    call->is_waiting = code == PAWL_OK && count == 0 && call->claiming->wait_ms > 0;
    return code;
}

/* ---------------------------------------------------------------- what is held already */

#define MINE_STEP 16 /* jobs that are asked for at once: each may have a payload of a megabyte */

struct mine {
    const char *worker;
    const char *after;
    int64_t limit;
};

static const struct pawli_field mine_rows[] = {
    {"after", PAWLI_FIELD_TEXT, offsetof(struct mine, after), 0, 0, false, NULL},
    {"limit", PAWLI_FIELD_NUMBER, offsetof(struct mine, limit), 1, PAWLI_PAGE_LIMIT_MAX, false,
     NULL},
    {"worker", PAWLI_FIELD_TEXT, offsetof(struct mine, worker), 0, 0, true, NULL},
};
static const struct pawli_fields mine_fields = PAWLI_FIELDS(mine_rows);

/* A page of them. It ends early where their payloads are many: `next` says that there are more. */
static pawl_code put_mine(struct pawli_call *call, const struct mine *mine, const pawl_id *after,
                          struct pawli_writer *writer)
{
    pawl_job jobs[MINE_STEP];
    pawl_id last;
    size_t left = (size_t)mine->limit;
    size_t bytes = 0;
    bool has_more = true;
    pawl_code code = PAWL_OK;
    while (code == PAWL_OK && has_more && left > 0 && bytes < (size_t)PAWLI_CLAIM_BYTES_MAX) {
        size_t wanted = left < MINE_STEP ? left : MINE_STEP;
        size_t count = 0;
        code = pawl_mine(call->store, mine->worker, after, jobs, wanted, &count, &call->err);
        for (size_t i = 0; i < count; i++) {
            pawli_put_job(writer, &jobs[i], PAWLI_VIEW_GRANT);
            bytes += jobs[i].payload_len;
            last = jobs[i].id;
            after = &last;
            pawl_job_clear(&jobs[i]);
        }
        has_more = count == wanted;
        left -= count;
    }
    pawli_put_array_end(writer);
    pawli_put_next_id(writer, after, has_more);
    return code;
}

pawl_code pawli_api_mine(struct pawli_call *call)
{
    struct mine mine = {.limit = PAWLI_PAGE_LIMIT};
    pawl_id room;
    const pawl_id *after = NULL;
    struct pawli_writer writer;
    pawl_code code = pawli_fields_body(&mine_fields, call->body, call->body_len, &mine, &call->err);
    if (code == PAWL_OK)
        code = pawli_after_id(mine.after, &room, &after, &call->err);
    if (code != PAWL_OK)
        return code;
    pawli_call_json(call, 200, &writer);
    pawli_put_object(&writer, NULL);
    pawli_put_array(&writer, "jobs");
    code = put_mine(call, &mine, after, &writer);
    pawli_put_object_end(&writer);
    return code == PAWL_OK ? pawli_call_done(call, &writer) : code;
}

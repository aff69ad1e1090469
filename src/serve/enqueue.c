/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * enqueue.c - puts jobs into queues: many as JSON, and lines.
 * Owns:  how a job is written in a request.
 * Never: looks into a payload; makes a job twice where a reply of the store was lost.
 */
#include "serve/enqueue.h"

#include "serve/api.h"
#include "serve/mint.h"
#include "serve/once.h"

#include "base/error.h"
#include "store/check.h"
#include "store/store.h"

#include <stdlib.h>
#include <string.h>

#define LINES_BATCH 1000   /* lines in one transaction */
#define LINES_MAX   100000 /* lines in one request: each has a line in the answer */
#define TRIES       2

void pawli_job_row_init(void *row)
{
    struct pawli_job_row *job = row;
    *job = (struct pawli_job_row){.content = {.payload = NULL}};
    pawl_enqueue_init(&job->row);
}

void pawli_job_row_clear(struct pawli_job_row *row)
{
    free(row->content.headers);
    row->content.headers = NULL;
}

pawl_enqueue_row pawli_job_row_whole(const struct pawli_job_row *row)
{
    pawl_enqueue_row whole = row->row;
    whole.payload = row->content.payload;
    whole.payload_len = row->content.payload_len;
    whole.headers = row->content.headers;
    return whole;
}

/* ---------------------------------------------------------------- rows from JSON */

static bool read_payload(struct pawli_reader *reader, void *to, pawl_err *err)
{
    struct pawli_job_row *job = to;
    return pawli_content_payload(reader, &job->content, err);
}

static bool read_base64(struct pawli_reader *reader, void *to, pawl_err *err)
{
    struct pawli_job_row *job = to;
    return pawli_content_base64(reader, &job->content, err);
}

static bool read_headers(struct pawli_reader *reader, void *to, pawl_err *err)
{
    struct pawli_job_row *job = to;
    return pawli_content_headers(reader, &job->content, err);
}

#define ROW(field) offsetof(struct pawli_job_row, row.field)
#define OPTIONS                                                                                  \
    {"backoff_base", PAWLI_FIELD_DURATION, ROW(backoff_base_ms), 1, 0, false, NULL},             \
        {"backoff_max", PAWLI_FIELD_DURATION, ROW(backoff_max_ms), 1, 0, false, NULL},           \
        {"dedupe_key", PAWLI_FIELD_TEXT, ROW(dedupe_key), 0, 0, false, NULL},                    \
        {"delay", PAWLI_FIELD_DURATION, ROW(delay_ms), 0, 0, false, NULL},                       \
        {"id", PAWLI_FIELD_ID, ROW(id), 0, 0, false, NULL},                                      \
        {"max_retries", PAWLI_FIELD_NUMBER, ROW(max_retries), 0, PAWL_RETRIES_MAX, false, NULL}, \
        {"ordering_key", PAWLI_FIELD_TEXT, ROW(ordering_key), 0, 0, false, NULL},                \
        {"priority",                                                                             \
         PAWLI_FIELD_SMALL,                                                                      \
         ROW(priority),                                                                          \
         PAWL_PRIORITY_URGENT,                                                                   \
         PAWL_PRIORITY_LAST,                                                                     \
         false,                                                                                  \
         NULL},                                                                                  \
        {"start_within", PAWLI_FIELD_DURATION, ROW(start_within_ms), 1, 0, false, NULL},         \
    {                                                                                            \
        "timeout", PAWLI_FIELD_DURATION, ROW(timeout_ms), 1, 0, false, NULL                      \
    }

static const struct pawli_field option_rows[] = {OPTIONS};
const struct pawli_fields pawli_job_options = PAWLI_FIELDS(option_rows);

static const struct pawli_field job_rows[] = {
    OPTIONS,
    {"headers", PAWLI_FIELD_OWN, 0, 0, 0, false, read_headers},
    {"payload", PAWLI_FIELD_OWN, 0, 0, 0, false, read_payload},
    {"payload_base64", PAWLI_FIELD_OWN, 0, 0, 0, false, read_base64},
    {"queue", PAWLI_FIELD_TEXT, ROW(queue), 0, 0, true, NULL},
};
static const struct pawli_fields job_fields = PAWLI_FIELDS(job_rows);

/* ---------------------------------------------------------------- sending */

/* Ids for the rows that have none; is_minted[i]: the i-th was made here. */
static pawl_code mint(struct pawli_call *call, pawl_enqueue_row *rows, size_t count,
                      bool *is_minted)
{
    struct pawli_mint mint;
    pawl_code code = pawli_mint_begin(call, &mint);
    for (size_t i = 0; code == PAWL_OK && i < count; i++) {
        is_minted[i] = pawl_id_is_nil(&rows[i].id);
        if (is_minted[i] && !pawli_mint_next(&mint, &rows[i], &rows[i].id))
            rows[i].id = (pawl_id){{0}}; /* a row that is wrong: the call says what is */
    }
    pawli_mint_end(&mint);
    return code;
}

pawl_code pawli_enqueue_send(struct pawli_call *call, pawl_enqueue_row *rows, size_t count,
                             pawl_enqueued *ret_results)
{
    bool is_again = call->once != NULL && call->once->is_again;
    bool *is_minted = calloc(count, sizeof(*is_minted));
    if (is_minted == NULL)
        return pawli_fail_plain(&call->err, PAWL_NO_MEMORY);
    pawl_code code = mint(call, rows, count, is_minted);
    int tries = 0;
    bool is_due = code == PAWL_OK;
    while (is_due && tries < TRIES) {
        tries++;
        code = pawl_enqueue(call->store, rows, count, ret_results, &call->err);
        is_due = code == PAWL_UNKNOWN;
    }
    for (size_t i = 0; code == PAWL_OK && (tries > 1 || is_again) && i < count; i++)
        if (is_minted[i] && ret_results[i].code == PAWL_EXISTS)
            ret_results[i].code = PAWL_OK;
    free(is_minted);
    return tries > 1 && code == PAWL_DOWN ? PAWL_UNKNOWN : code;
}

void pawli_enqueue_put(struct pawli_writer *writer, const pawl_enqueued *result)
{
    pawli_put_id(writer, "id", &result->id);
    pawli_put_text(writer, "verdict", pawl_code_name(result->code));
}

/* ---------------------------------------------------------------- many */

struct many {
    struct pawli_rows jobs; /* of struct pawli_job_row */
};

static const struct pawli_rows_kind many_kind = {"jobs", &job_fields, sizeof(struct pawli_job_row),
                                                 PAWL_BATCH_MAX, pawli_job_row_init};

static bool read_many(struct pawli_reader *reader, void *to, pawl_err *err)
{
    struct many *many = to;
    return pawli_fields_rows(&many_kind, reader, &many->jobs, err);
}

static const struct pawli_field many_rows[] = {
    {"jobs", PAWLI_FIELD_OWN, 0, 0, 0, true, read_many},
};
static const struct pawli_fields many_fields = PAWLI_FIELDS(many_rows);

static void clear_jobs(struct pawli_rows *jobs)
{
    struct pawli_job_row *rows = jobs->rows;
    for (size_t i = 0; i < jobs->count; i++)
        pawli_job_row_clear(&rows[i]);
    pawli_rows_clear(jobs);
}

/* The rows alone, as the library takes them, and room for the results. */
struct sending {
    pawl_enqueue_row *rows;
    pawl_enqueued *results;
};

static pawl_code send_jobs(struct pawli_call *call, const struct pawli_rows *jobs,
                           struct sending *sending)
{
    const struct pawli_job_row *from = jobs->rows;
    sending->rows = calloc(jobs->count, sizeof(*sending->rows));
    sending->results = calloc(jobs->count, sizeof(*sending->results));
    if (sending->rows == NULL || sending->results == NULL)
        return pawli_fail_plain(&call->err, PAWL_NO_MEMORY);
    for (size_t i = 0; i < jobs->count; i++)
        sending->rows[i] = pawli_job_row_whole(&from[i]);
    pawl_code code = pawli_enqueue_send(call, sending->rows, jobs->count, sending->results);
    for (size_t i = 0; code == PAWL_OK && i < jobs->count; i++)
        if (sending->results[i].code == PAWL_OK)
            pawli_call_changed(call, &sending->results[i].id, sending->rows[i].queue, "Ready");
    return code;
}

static void clear_sending(struct sending *sending)
{
    free(sending->rows);
    free(sending->results);
}

pawl_code pawli_api_enqueue_many(struct pawli_call *call)
{
    struct many many = {{0}};
    struct sending sending = {0};
    struct pawli_writer writer;
    pawl_code code = pawli_fields_body(&many_fields, call->body, call->body_len, &many, &call->err);
    const struct pawli_job_row *rows = many.jobs.rows;
    bool is_allowed = true;
    for (size_t i = 0; code == PAWL_OK && is_allowed && i < many.jobs.count; i++)
        is_allowed = pawli_call_may(call, rows[i].row.queue);
    if (code == PAWL_OK && is_allowed)
        code = send_jobs(call, &many.jobs, &sending);
    if (code == PAWL_OK && is_allowed) {
        pawli_call_json(call, 200, &writer);
        pawli_put_object(&writer, NULL);
        pawli_put_array(&writer, "results");
        for (size_t i = 0; i < many.jobs.count; i++) {
            pawli_put_object(&writer, NULL);
            pawli_enqueue_put(&writer, &sending.results[i]);
            pawli_put_object_end(&writer);
        }
        pawli_put_array_end(&writer);
        pawli_put_object_end(&writer);
        code = pawli_call_done(call, &writer);
    }
    clear_sending(&sending);
    clear_jobs(&many.jobs);
    return code;
}

/* ---------------------------------------------------------------- lines */

/* A line of the answer: of one job, or of what went wrong with a line. */
static void put_line(struct pawli_call *call, struct pawli_writer *writer, int64_t line,
                     const pawl_enqueued *result, const pawl_err *err)
{
    writer->is_behind = false; /* each line is a document of its own */
    pawli_put_object(writer, NULL);
    pawli_put_number(writer, "line", line);
    if (result != NULL)
        pawli_enqueue_put(writer, result);
    if (err != NULL) {
        pawli_put_text(writer, "verdict", pawl_code_name(err->code));
        pawli_put_text(writer, "detail", err->text);
    }
    pawli_put_object_end(writer);
    if (!writer->has_failed)
        writer->has_failed = !pawli_buffer_put(&call->answer->body, "\n", 1);
}

void pawli_enqueue_lines_end(struct pawli_call *call)
{
    struct pawli_writer writer;
    pawli_writer_init(&writer, &call->answer->body);
    put_line(call, &writer, call->lines + 1, NULL, &call->err);
    if (writer.has_failed) /* nobody is told then which lines were taken */
        pawli_answer_code(call->answer, PAWL_UNKNOWN, NULL);
}

/* The lines of one transaction. Where the store refuses the whole of it, each of them is told so,
 * and nothing more is taken. */
static pawl_code send_lines(struct pawli_call *call, struct pawli_rows *jobs,
                            const int64_t *numbers, struct pawli_writer *writer)
{
    struct sending sending = {0};
    if (jobs->count == 0)
        return PAWL_OK;
    pawl_code code = send_jobs(call, jobs, &sending);
    call->err.code = code;
    for (size_t i = 0; i < jobs->count; i++)
        put_line(call, writer, numbers[i], code == PAWL_OK ? &sending.results[i] : NULL,
                 code == PAWL_OK ? NULL : &call->err);
    clear_sending(&sending);
    clear_jobs(jobs);
    /* A row that the library refuses is no reason to end: the next ones may be good. */
    call->has_ended = code != PAWL_OK && code != PAWL_INVALID;
    return code;
}

/* Read one line into a row. False: it is refused, which *err tells. */
static bool read_line(struct pawli_call *call, struct pawli_rows *jobs, char *line, size_t len,
                      pawl_err *err)
{
    struct pawli_job_row *job = pawli_rows_add(jobs, sizeof(*job), LINES_BATCH);
    if (job == NULL) {
        (void)pawli_fail_plain(err, PAWL_NO_MEMORY);
        return false;
    }
    pawli_job_row_init(job);
    pawl_code code = pawli_fields_body(&job_fields, line, len, job, err);
    if (code == PAWL_OK && !pawli_grant_has_queue(call->grant, job->row.queue))
        code = pawli_fail(err, PAWL_INVALID, "the token is not for the queue %.128s",
                          job->row.queue);
    /* By itself, so that one that is wrong does not take the others of its batch with it. */
    const pawl_enqueue_row whole = pawli_job_row_whole(job);
    if (code == PAWL_OK)
        code = pawli_check_enqueue(&call->store->limits, &whole, 1, err);
    if (code == PAWL_OK)
        return true;
    err->code = code;
    pawli_job_row_clear(job);
    jobs->count--;
    return false;
}

pawl_code pawli_api_enqueue_lines(struct pawli_call *call)
{
    struct pawli_rows jobs = {0};
    struct pawli_writer writer;
    int64_t numbers[LINES_BATCH];
    char *at = call->body;
    char *end = call->body + call->body_len;
    pawl_code code = PAWL_OK;
    call->answer->status = 200;
    call->answer->type = "application/x-ndjson";
    pawli_writer_init(&writer, &call->answer->body);
    while (at < end && !call->has_ended && !writer.has_failed) {
        char *newline = memchr(at, '\n', (size_t)(end - at));
        char *stop = newline != NULL ? newline : end;
        size_t len = (size_t)(stop - at);
        call->lines++;
        bool is_blank = len == 0 || (len == 1 && at[0] == '\r');
        pawl_err err;
        if (call->lines > LINES_MAX) {
            (void)send_lines(call, &jobs, numbers, &writer); /* told line by line */
            (void)pawli_fail(&err, PAWL_FULL, "a request has %d lines at most", LINES_MAX);
            put_line(call, &writer, call->lines, NULL, &err);
            call->has_ended = true;
        } else if (!is_blank && !read_line(call, &jobs, at, len, &err)) {
            /* What came before it is told before it. */
            (void)send_lines(call, &jobs, numbers, &writer); /* told line by line */
            put_line(call, &writer, call->lines, NULL, &err);
        } else if (!is_blank) {
            numbers[jobs.count - 1] = call->lines;
        }
        if (jobs.count == LINES_BATCH)
            (void)send_lines(call, &jobs, numbers, &writer); /* likewise */
        at = newline != NULL ? newline + 1 : end;
    }
    if (!call->has_ended)
        code = send_lines(call, &jobs, numbers, &writer);
    clear_jobs(&jobs);
    if (writer.has_failed)
        return pawli_fail(&call->err, PAWL_UNKNOWN,
                          "memory ran out for the answer; lines may have been taken");
    (void)code; /* told line by line */
    return PAWL_OK;
}

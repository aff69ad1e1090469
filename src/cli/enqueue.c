/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * enqueue.c - `pawl enqueue`: puts a job, or many, into queues.
 * Owns:  that a lost answer is asked for again with the same ids.
 * Never: looks into a payload; shows one, or the value of a header.
 */
#include "cli/command.h"
#include "cli/ndjson.h"
#include "cli/payload.h"
#include "cli/store_url.h"
#include "cli/tell.h"

#include "base/buffer.h"
#include "base/error.h"
#include "pawl/headers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#define NAME         "enqueue"
#define BATCH        500
#define BATCH_BYTES  (4 << 20)
#define LINE_MAX_LEN (8 << 20)
#define TRIES_MAX    5 /* where the answer is lost again and again */

/* Jobs on their way to the store. */
struct batch {
    pawl_store *store;
    bool is_json;
    struct pawli_json json;
    char headers[PAWL_HEADERS_LEN_MAX +
                 1]; /* of the options: for each row that has none of its own */
    pawl_enqueue_row rows[BATCH];
    pawl_enqueued results[BATCH];
    struct pawli_ndjson sources[BATCH];
    bool is_minted[BATCH]; /* the id was made here */
    size_t count;
    size_t bytes;
    int64_t first_line; /* of the file; 0: there is none */
    int64_t done;
};

/* ---- the store */

static pawl_code mint(struct batch *batch, pawl_err *err)
{
    pawl_code code = PAWL_OK;
    for (size_t i = 0; i < batch->count && code == PAWL_OK; i++) {
        batch->is_minted[i] = pawl_id_is_nil(&batch->rows[i].id);
        if (batch->is_minted[i])
            code = pawl_id_new(batch->store, &batch->rows[i], &batch->rows[i].id, err);
    }
    return code;
}

static pawl_code send_rows(struct batch *batch, pawl_err *err)
{
    int tries = 0;
    pawl_code code = mint(batch, err); /* so that it can be repeated where the answer is lost */
    if (code != PAWL_OK)
        return code;
    do
        code = pawl_enqueue(batch->store, batch->rows, batch->count, batch->results, err);
    while (++tries < TRIES_MAX && (code == PAWL_UNKNOWN || (tries > 1 && code == PAWL_DOWN)));
    /* Nobody else can have used an id that was made here: it was the try before. */
    for (size_t i = 0; code == PAWL_OK && tries > 1 && i < batch->count; i++)
        if (batch->is_minted[i] && batch->results[i].code == PAWL_EXISTS)
            batch->results[i].code = PAWL_OK;
    return tries > 1 && code == PAWL_DOWN ? PAWL_UNKNOWN : code;
}

static void tell_row(struct batch *batch, size_t at)
{
    const pawl_enqueued *result = &batch->results[at];
    char id[PAWL_ID_TEXT_MAX];
    if (batch->is_json) {
        pawli_json_open_object(&batch->json, NULL);
        pawli_json_id(&batch->json, "id", &result->id);
        pawli_json_text(&batch->json, "verdict", pawl_code_name(result->code));
        pawli_json_close(&batch->json);
        return;
    }
    (void)printf("%s\n", pawl_id_format(&result->id, id)); /* main asks for errors */
    if (result->code != PAWL_OK)
        (void)fprintf(stderr, "pawl enqueue: %s: %s: %s\n", id, pawl_code_name(result->code),
                      pawl_code_text(result->code));
}

static pawl_code send(struct batch *batch, pawl_err *err)
{
    pawl_err inner = {.text = ""};
    pawl_code code = batch->count > 0 ? send_rows(batch, &inner) : PAWL_OK;
    if (code == PAWL_OK) {
        for (size_t i = 0; i < batch->count; i++)
            tell_row(batch, i);
        batch->done += (int64_t)batch->count;
    } else if (batch->first_line > 0) {
        (void)pawli_fail(err, code, "lines %" PRId64 " to %" PRId64 ": %s", batch->first_line,
                         batch->first_line + (int64_t)batch->count - 1, inner.text);
    } else {
        *err = inner;
    }
    for (size_t i = 0; i < batch->count; i++)
        pawli_ndjson_clear(&batch->sources[i]);
    batch->first_line += (int64_t)batch->count;
    batch->count = 0;
    batch->bytes = 0;
    return code;
}

/* ---- what the words say */

static bool fill_row(const struct pawli_line *line, const char *headers, pawl_enqueue_row *row)
{
    pawl_enqueue_init(row);
    row->queue = line->arguments[0];
    row->headers = headers;
    row->priority = (int)pawli_line_number(line, "--priority", row->priority);
    row->delay_ms = pawli_line_number(line, "--delay", row->delay_ms);
    row->start_within_ms = pawli_line_number(line, "--start-within", row->start_within_ms);
    row->max_retries = pawli_line_number(line, "--max-retries", row->max_retries);
    row->timeout_ms = pawli_line_number(line, "--timeout", row->timeout_ms);
    row->backoff_base_ms = pawli_line_number(line, "--backoff-base", row->backoff_base_ms);
    row->backoff_max_ms = pawli_line_number(line, "--backoff-max", row->backoff_max_ms);
    row->dedupe_key = pawli_line_text(line, "--dedupe");
    row->ordering_key = pawli_line_text(line, "--key");
    const char *id = pawli_line_text(line, "--id");
    return id == NULL || pawli_line_id(line, id, &row->id);
}

/* ---- one job */

static pawl_code enqueue_one(const struct pawli_line *line, struct batch *batch, int *ret_exit,
                             pawl_err *err)
{
    struct pawli_buffer buffer = {0};
    pawl_enqueue_row *row = &batch->rows[0];
    *ret_exit = pawli_payload_read(line, &buffer, &row->payload, &row->payload_len);
    batch->count = 1;
    pawl_code code = *ret_exit == EX_OK ? send(batch, err) : PAWL_OK;
    pawli_buffer_clear(&buffer);
    return code;
}

/* ---- many */

/* Add a line, and send what there is where it is enough. */
static pawl_code add_line(const struct pawli_line *line, struct batch *batch, const char *text,
                          size_t text_len, pawl_err *err)
{
    pawl_err inner = {.text = ""};
    pawl_enqueue_row *row = &batch->rows[batch->count];
    if (!fill_row(line, batch->headers, row))
        return PAWL_INVALID;
    if (!pawli_ndjson_read(text, text_len, row, &batch->sources[batch->count], &inner)) {
        pawli_ndjson_clear(&batch->sources[batch->count]);
        int64_t number = batch->first_line + (int64_t)batch->count;
        pawl_code code = send(batch, err); /* those before it are right */
        return code != PAWL_OK
                   ? code
                   : pawli_fail(err, inner.code, "line %" PRId64 ": %s", number, inner.text);
    }
    batch->bytes += row->payload_len + strlen(row->headers);
    batch->count++;
    return batch->count == BATCH || batch->bytes >= BATCH_BYTES ? send(batch, err) : PAWL_OK;
}

static pawl_code enqueue_lines(const struct pawli_line *line, struct batch *batch, FILE *file,
                               pawl_err *err)
{
    char *text = NULL;
    size_t size = 0;
    ssize_t length;
    pawl_code code = PAWL_OK;
    struct pawli_progress progress;
    pawli_progress_begin(&progress, "enqueued", true);
    batch->first_line = 1;
    while (code == PAWL_OK && (length = getline(&text, &size, file)) > 0) {
        if (length > LINE_MAX_LEN)
            code = pawli_fail(err, PAWL_INVALID, "line %" PRId64 " has more than %d bytes",
                              batch->first_line + (int64_t)batch->count, LINE_MAX_LEN);
        else
            code = add_line(line, batch, text, (size_t)length, err);
        pawli_progress_show(&progress, batch->done);
    }
    if (code == PAWL_OK && ferror(file) != 0)
        code = pawli_fail(err, PAWL_INVALID, "the lines cannot be read any further");
    if (code == PAWL_OK)
        code = send(batch, err);
    for (size_t i = 0; i < batch->count; i++)
        pawli_ndjson_clear(&batch->sources[i]);
    pawli_progress_end(&progress);
    free(text);
    return code;
}

/* ---- all of it */

static pawl_code fill_queues(const struct pawli_line *line, struct batch *batch, int *ret_exit,
                             pawl_err *err)
{
    if (!pawli_line_has(line, "--ndjson")) {
        if (fill_row(line, batch->headers, &batch->rows[0]))
            return enqueue_one(line, batch, ret_exit, err);
        *ret_exit = EX_USAGE;
        return PAWL_OK;
    }
    FILE *file = pawli_input_open(line);
    if (file == NULL) {
        *ret_exit = EX_NOINPUT;
        return PAWL_OK;
    }
    pawl_code code = enqueue_lines(line, batch, file, err);
    pawli_input_close(file);
    if (code != PAWL_OK && batch->done > 0)
        (void)fprintf(stderr, "pawl enqueue: %" PRId64 " jobs were enqueued before it failed\n",
                      batch->done);
    if (code == PAWL_INVALID) {
        (void)fprintf(stderr, "pawl enqueue: %s\n", err->text);
        *ret_exit = EX_DATAERR;
        code = PAWL_OK;
    }
    return code;
}

static pawl_code enqueue(const struct pawli_line *line, pawl_store *store, int *ret_exit,
                         pawl_err *err)
{
    struct batch *batch = calloc(1, sizeof(*batch));
    if (batch == NULL)
        return PAWL_NO_MEMORY;
    batch->store = store;
    batch->is_json = pawli_line_has(line, "--json");
    pawli_json_init(&batch->json, stdout);
    if (batch->is_json) {
        pawli_json_open_object(&batch->json, NULL);
        pawli_json_open_array(&batch->json, "jobs");
    }
    pawl_code code = PAWL_OK;
    if (pawli_line_headers(line, batch->headers))
        code = fill_queues(line, batch, ret_exit, err);
    else
        *ret_exit = EX_USAGE;
    if (batch->is_json) {
        pawli_json_close(&batch->json);
        pawli_json_close(&batch->json);
    }
    free(batch);
    return code;
}

static int run_enqueue(const struct pawli_line *line)
{
    bool is_many = pawli_line_has(line, "--ndjson");
    if (line->arguments_count > 1 && (is_many || pawli_line_has(line, "--file")))
        return pawli_line_refuse(line, "the payload is said twice: as an argument, and by %s",
                                 is_many ? "--ndjson" : "--file");
    if (is_many && pawli_line_has(line, "--id"))
        return pawli_line_refuse(line,
                                 "--id cannot be that of many jobs: each line may have its own");
    return pawli_cli_with_store(line, enqueue);
}

static const struct pawli_option options[] = {
    {"--backoff-base", PAWLI_DURATION, "D", "the first delay after a failed attempt", 0, 0, NULL},
    {"--backoff-max", PAWLI_DURATION, "D", "the longest such delay", 0, 0, NULL},
    PAWLI_OPTION_CONFIG,
    {"--dedupe", PAWLI_TEXT, "KEY", "at most one live job of the queue, and of --key, has it", 0, 0,
     NULL},
    {"--delay", PAWLI_DURATION, "D", "not claimable before this has passed", 0, 0, NULL},
    {"--file", PAWLI_FILE, "FILE", "the payload, or the lines, from a file; - is standard input", 0,
     0, NULL},
    {"--header", PAWLI_SECRET | PAWLI_REPEATED, "HEADER",
     "a header, 'name: value'; can be said again for more", 0, 0, NULL},
    {"--id", PAWLI_TEXT, "ID", "the job's id; enqueuing it again is harmless", 0, 0, NULL},
    PAWLI_OPTION_JSON,
    {"--key", PAWLI_TEXT, "KEY", "jobs of one key start one at a time, in order", 0, 0, NULL},
    {"--max-retries", PAWLI_NUMBER, "N", "default: the queue's", 0, PAWL_RETRIES_MAX, NULL},
    {"--ndjson", PAWLI_FLAG, NULL, "many jobs: a JSON object in each line", 0, 0, NULL},
    {"--priority", PAWLI_NUMBER, "N", "0, the most urgent, to 9 (default 5)", PAWL_PRIORITY_URGENT,
     PAWL_PRIORITY_LAST, NULL},
    {"--start-within", PAWLI_DURATION, "D", "Failed unless it starts within this time", 0, 0, NULL},
    PAWLI_OPTION_STORE,
    {"--timeout", PAWLI_DURATION, "D", "how long it may run; default: the queue's", 0, 0, NULL},
    {0},
};

const struct pawli_command pawli_command_enqueue = {
    .name = NAME,
    .about = "put a job, or many, into a queue",
    .arguments = "QUEUE [PAYLOAD]",
    .arguments_min = 1,
    .arguments_max = 2,
    .names_max = 1,
    .is_store_made = true,
    .options = options,
    .details =
        "Prints the id of each job. Without PAYLOAD, or where it is -, the payload is standard "
        "input, byte by byte.\n"
        "With --ndjson each line is an object: payload (a text is carried as it is, anything else "
        "as compact JSON) and, where they differ from the options, queue, id, priority, delay, "
        "start_within, max_retries, timeout, backoff_base, backoff_max, dedupe_key, ordering_key "
        "and headers (an object of texts; takes the place of all --header).\n"
        "Headers travel beside the payload: pawl work hands them to its program as "
        "PAWL_HEADER_NAME. At most 64 of 16 KiB in all; a name has up to 128 letters, digits or "
        "any of !#$%&'*+-.^_`|~, and a value up to 4 KiB of UTF-8.\n"
        "A job whose id exists, or whose dedupe key a live job holds, is not enqueued again; that "
        "is told, with the id of the job that is there, and is no failure.",
    .examples = "pawl enqueue mail '{\"to\": 17}'\n"
                "pawl enqueue mail --file letter.json --delay 5m --dedupe order-17\n"
                "pawl enqueue mail --header 'tenant: acme' --header \"traceparent: $TRACEPARENT\" "
                "'{\"to\": 18}'\n"
                "pawl enqueue mail --ndjson < letters.ndjson\n",
    .run = run_enqueue,
};

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * publish.c - `pawl publish`: publishes an event to the endpoints that want it.
 * Owns:  that a lost answer is asked for again with the same id; the form of its output.
 * Never: looks into a payload; shows one, or the value of a header; sends anything.
 */
#include "pawl/endpoint.h"

#include "cli/command.h"
#include "cli/payload.h"
#include "cli/store_url.h"
#include "cli/tell.h"
#include "pawl/headers.h"

#include <inttypes.h>
#include <stdio.h>
#include <sysexits.h>

#define TRIES_MAX 5 /* where the answer is lost again and again */

/* An id that nobody has, so that the call can be repeated. */
static pawl_code make_id(pawl_store *store, char text[PAWL_ID_TEXT_MAX], pawl_err *err)
{
    pawl_enqueue_row row;
    pawl_id id;
    pawl_enqueue_init(&row);
    row.queue = "webhook";
    pawl_code code = pawl_id_new(store, &row, &id, err);
    if (code == PAWL_OK)
        (void)pawl_id_format(&id, text);
    return code;
}

static pawl_code send(pawl_store *store, const pawl_publish_row *row, pawl_published *ret_result,
                      pawl_err *err)
{
    int tries = 0;
    pawl_code code;
    do
        code = pawl_publish(store, row, 1, ret_result, err);
    while (++tries < TRIES_MAX && (code == PAWL_UNKNOWN || (tries > 1 && code == PAWL_DOWN)));
    return tries > 1 && code == PAWL_DOWN ? PAWL_UNKNOWN : code;
}

static void tell(const struct pawli_line *line, const pawl_published *result)
{
    if (pawli_line_has(line, "--json")) {
        struct pawli_json json;
        pawli_json_init(&json, stdout);
        pawli_json_open_object(&json, NULL);
        pawli_json_text(&json, "id", result->id);
        pawli_json_text(&json, "verdict", pawl_code_name(result->code));
        pawli_json_number(&json, "endpoints", result->endpoints);
        pawli_json_number(&json, "jobs", result->jobs);
        pawli_json_close(&json);
        return;
    }
    (void)printf("%s\n", result->id); /* main asks for errors */
    if (result->endpoints == 0)
        (void)fputs("pawl publish: no enabled endpoint wants this type\n", stderr);
    else if (result->jobs < result->endpoints)
        (void)fprintf(stderr,
                      "pawl publish: %s was published before: %" PRId64 " of %" PRId64
                      " jobs are new\n",
                      result->id, result->jobs, result->endpoints);
}

static pawl_code publish(const struct pawli_line *line, pawl_store *store, int *ret_exit,
                         pawl_err *err)
{
    char headers[PAWL_HEADERS_LEN_MAX + 1] = "";
    char id[PAWL_ID_TEXT_MAX];
    struct pawli_buffer buffer = {0};
    pawl_publish_row row;
    pawl_published result;
    pawl_publish_init(&row);
    row.type = line->arguments[0];
    row.id = pawli_line_text(line, "--id");
    row.ordering_key = pawli_line_text(line, "--key");
    row.headers = headers;
    row.keep_ms = pawli_line_number(line, "--keep", PAWL_DEFAULT);
    *ret_exit = pawli_line_headers(line, headers)
                    ? pawli_payload_read(line, &buffer, &row.payload, &row.payload_len)
                    : EX_USAGE;
    pawl_code code = PAWL_OK;
    if (*ret_exit == EX_OK && row.id == NULL) {
        code = make_id(store, id, err);
        row.id = id;
    }
    if (*ret_exit == EX_OK && code == PAWL_OK)
        code = send(store, &row, &result, err);
    if (*ret_exit == EX_OK && code == PAWL_OK)
        tell(line, &result);
    pawli_buffer_clear(&buffer);
    return code;
}

static int run_publish(const struct pawli_line *line)
{
    if (line->arguments_count > 1 && pawli_line_has(line, "--file"))
        return pawli_line_refuse(line, "the payload is said twice: as an argument, and by --file");
    return pawli_cli_with_store(line, publish);
}

static const struct pawli_option options[] = {
    PAWLI_OPTION_CONFIG,
    {"--file", PAWLI_FILE, "FILE", "the payload from a file; - is standard input", 0, 0, NULL},
    {"--header", PAWLI_SECRET | PAWLI_REPEATED, "HEADER",
     "a header, 'name: value'; can be said again for more", 0, 0, NULL},
    {"--id", PAWLI_TEXT, "ID", "the event's id; publishing it again makes nothing twice", 0, 0,
     NULL},
    PAWLI_OPTION_JSON,
    {"--keep", PAWLI_DURATION, "D", "how long it can be replayed; 0s: not at all (7d)", 0, 0, NULL},
    {"--key", PAWLI_TEXT, "KEY", "its ordering key, for endpoints that keep an order", 0, 0, NULL},
    PAWLI_OPTION_STORE,
    {0},
};

const struct pawli_command pawli_command_publish = {
    .name = "publish",
    .is_store_made = true,
    .about = "publish an event to the endpoints that want it",
    .arguments = "TYPE [PAYLOAD]",
    .arguments_min = 1,
    .arguments_max = 2,
    .options = options,
    .details =
        "Makes one job for each enabled endpoint that wants events of this type, all of them or "
        "none, and prints the event's id. Without PAYLOAD, or where it is -, the payload is "
        "standard input, byte by byte.\n"
        "TYPE has words of letters, digits, _ and - with full stops between them. The headers "
        "content-type and traceparent are passed on to the endpoints.",
    .examples = "pawl publish order.created '{\"order\": 17}'\n"
                "pawl publish order.paid --id evt_17 --key customer-4 --file event.json\n",
    .run = run_publish,
};

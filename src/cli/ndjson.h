/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * ndjson.h - a line of JSON as a job to be enqueued.
 */
#ifndef PAWLI_CLI_NDJSON_H
#define PAWLI_CLI_NDJSON_H

#include "pawl/pawl.h"

/* What a row borrows from. Zeroed: nothing. */
struct pawli_ndjson {
    void *object;  /* of the JSON library */
    char *payload; /* where it is no text in the line; owned */
    char *headers; /* owned; NULL: none */
};

/*
 * Read one line: {"payload": ..., "queue": ..., "id": ..., "priority": ..., "delay": "5s",
 * "start_within": ..., "max_retries": ..., "timeout": ..., "backoff_base": ..., "backoff_max": ...,
 * "dedupe_key": ..., "ordering_key": ..., "headers": {"name": "value"}}. A payload that is a text
 * is carried as that text; any other as compact JSON. What the line does not say stays as it is in
 * *row. The row borrows from `ret_source`, which the caller clears. False: err->text names the key
 * and what is allowed.
 */
bool pawli_ndjson_read(const char *line, size_t line_len, pawl_enqueue_row *row,
                       struct pawli_ndjson *ret_source, pawl_err *err);
void pawli_ndjson_clear(struct pawli_ndjson *source);

#endif

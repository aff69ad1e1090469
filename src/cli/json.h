/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * json.h - writes one JSON document, member by member, indented. Whatever bytes it is given, what
 * it writes is valid JSON. Write errors stay with the stream: see ferror().
 */
#ifndef PAWLI_CLI_JSON_H
#define PAWLI_CLI_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define PAWLI_JSON_DEPTH_MAX 16

struct pawli_json {
    FILE *out; /* borrowed */
    int depth;
    char closing[PAWLI_JSON_DEPTH_MAX]; /* the bracket that ends each open level */
    bool has_member[PAWLI_JSON_DEPTH_MAX + 1];
};

void pawli_json_init(struct pawli_json *json, FILE *out);

/* Members. `key` is NULL for the document itself and for what stands in an array. */
void pawli_json_open_object(struct pawli_json *json, const char *key);
void pawli_json_open_array(struct pawli_json *json, const char *key);
void pawli_json_close(struct pawli_json *json); /* the innermost; the last one ends the line */
void pawli_json_text(struct pawli_json *json, const char *key, const char *text);
void pawli_json_number(struct pawli_json *json, const char *key, int64_t number);
void pawli_json_bool(struct pawli_json *json, const char *key, bool is_true);

#endif

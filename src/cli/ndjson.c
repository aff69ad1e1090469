/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * ndjson.c - a line of JSON as a job to be enqueued.
 * Owns:  the keys of such a line.
 * Never: shows a value in an error but where it is a number, a duration or a kind of value: the
 *        rest may be a payload.
 */
#include "cli/ndjson.h"

#include "base/error.h"
#include "cli/words.h"
#include "pawl/headers.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum kind {
    KIND_TEXT,
    KIND_NUMBER,
    KIND_DURATION,
    KIND_ID,
    KIND_PRIORITY,
    KIND_HEADERS,
    KIND_PAYLOAD
};

static const struct key {
    const char *name;
    enum kind kind;
    size_t offset; /* in pawl_enqueue_row */
} keys[] = {
    {"backoff_base", KIND_DURATION, offsetof(pawl_enqueue_row, backoff_base_ms)},
    {"backoff_max", KIND_DURATION, offsetof(pawl_enqueue_row, backoff_max_ms)},
    {"dedupe_key", KIND_TEXT, offsetof(pawl_enqueue_row, dedupe_key)},
    {"delay", KIND_DURATION, offsetof(pawl_enqueue_row, delay_ms)},
    {"headers", KIND_HEADERS, 0},
    {"id", KIND_ID, 0},
    {"max_retries", KIND_NUMBER, offsetof(pawl_enqueue_row, max_retries)},
    {"ordering_key", KIND_TEXT, offsetof(pawl_enqueue_row, ordering_key)},
    {"payload", KIND_PAYLOAD, 0},
    {"priority", KIND_PRIORITY, 0},
    {"queue", KIND_TEXT, offsetof(pawl_enqueue_row, queue)},
    {"start_within", KIND_DURATION, offsetof(pawl_enqueue_row, start_within_ms)},
    {"timeout", KIND_DURATION, offsetof(pawl_enqueue_row, timeout_ms)},
};
#define KEYS_COUNT (sizeof(keys) / sizeof(keys[0]))

static bool refuse(pawl_err *err, const char *name, const char *allowed)
{
    (void)pawli_fail(err, PAWL_INVALID, "%s must be %s", name, allowed);
    return false;
}

static bool refuse_key(pawl_err *err, const char *name)
{
    const char *names[KEYS_COUNT];
    for (size_t i = 0; i < KEYS_COUNT; i++)
        names[i] = keys[i].name;
    const char *nearest = pawli_cli_nearest(name, names, KEYS_COUNT);
    (void)pawli_fail(err, PAWL_INVALID, "%.60s is not a key of a job%s%s%s", name,
                     nearest != NULL ? "; did you mean " : "", nearest != NULL ? nearest : "",
                     nearest != NULL ? "?" : "");
    return false;
}

static bool take_payload(const json_t *value, pawl_enqueue_row *row, struct pawli_ndjson *source,
                         pawl_err *err)
{
    if (json_is_string(value)) {
        row->payload = json_string_value(value);
        row->payload_len = json_string_length(value);
        return true;
    }
    source->payload = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    if (source->payload == NULL) {
        (void)pawli_fail_plain(err, PAWL_NO_MEMORY);
        return false;
    }
    row->payload = source->payload;
    row->payload_len = strlen(source->payload);
    return true;
}

/* How many bytes they need at most, and at most as many as they may have: what is more is refused
 * when they are added. */
static size_t headers_size(json_t *value)
{
    const char *name;
    json_t *text;
    size_t size = 0;
    json_object_foreach(value, name, text)
    {
        size += strlen(name) + json_string_length(text) + sizeof(": \n") - 1;
    }
    return (size < PAWL_HEADERS_LEN_MAX ? size : PAWL_HEADERS_LEN_MAX) + 1;
}

static bool take_headers(json_t *value, pawl_enqueue_row *row, struct pawli_ndjson *source,
                         pawl_err *err)
{
    static const char wanted[] = "an object of texts: {\"name\": \"value\"}";
    pawl_err inner;
    const char *name;
    json_t *text;
    if (!json_is_object(value))
        return refuse(err, "headers", wanted);
    size_t size = headers_size(value);
    source->headers = calloc(1, size);
    if (source->headers == NULL) {
        (void)pawli_fail_plain(err, PAWL_NO_MEMORY);
        return false;
    }
    json_object_foreach(value, name, text)
    {
        const char *bytes = json_string_value(text); /* NULL where it is no text */
        if (bytes == NULL || strlen(bytes) != json_string_length(text))
            return refuse(err, "headers", wanted);
        if (pawl_headers_add(source->headers, size, name, bytes, &inner) != PAWL_OK) {
            (void)pawli_fail(err, PAWL_INVALID, "headers: %s", inner.text);
            return false;
        }
    }
    row->headers = source->headers;
    return true;
}

static bool take_duration(const char *name, const char *text, int64_t *ret_ms, pawl_err *err)
{
    pawl_err inner;
    if (text == NULL)
        return refuse(err, name, "a duration in quotes: \"30s\"");
    if (pawl_duration_parse(text, ret_ms, &inner) == PAWL_OK)
        return true;
    (void)pawli_fail(err, PAWL_INVALID, "%s: %s", name, inner.text);
    return false;
}

static bool take(const struct key *key, json_t *value, pawl_enqueue_row *row,
                 struct pawli_ndjson *source, pawl_err *err)
{
    const char *text = json_string_value(value); /* NULL where it is no text */
    char *field = (char *)row + key->offset;
    switch (key->kind) {
    case KIND_PAYLOAD:
        return take_payload(value, row, source, err);
    case KIND_HEADERS:
        return take_headers(value, row, source, err);
    case KIND_TEXT:
        if (text == NULL || strlen(text) != json_string_length(value))
            return refuse(err, key->name, "a text in quotes");
        *(const char **)(void *)field = text;
        return true;
    case KIND_ID:
        if (text == NULL || pawl_id_parse(text, &row->id, NULL) != PAWL_OK)
            return refuse(err, key->name, "a UUID in quotes");
        return true;
    case KIND_DURATION:
        return take_duration(key->name, text, (int64_t *)(void *)field, err);
    default:
        break;
    }
    if (!json_is_integer(value))
        return refuse(err, key->name, "a whole number");
    if (key->kind == KIND_NUMBER)
        *(int64_t *)(void *)field = json_integer_value(value);
    else if (json_integer_value(value) < PAWL_PRIORITY_URGENT ||
             json_integer_value(value) > PAWL_PRIORITY_LAST)
        return refuse(err, key->name, "from 0 to 9");
    else
        row->priority = (int)json_integer_value(value);
    return true;
}

bool pawli_ndjson_read(const char *line, size_t line_len, pawl_enqueue_row *row,
                       struct pawli_ndjson *ret_source, pawl_err *err)
{
    json_error_t error;
    const char *name;
    json_t *value;
    *ret_source = (struct pawli_ndjson){0};
    /* A NUL may stand in a payload, and is refused in names. */
    json_t *object = json_loadb(line, line_len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    ret_source->object = object;
    if (!json_is_object(object)) {
        (void)pawli_fail(err, PAWL_INVALID, "not a JSON object, column %d", error.column);
        return false;
    }
    json_object_foreach(object, name, value)
    {
        size_t key = 0;
        while (key < KEYS_COUNT && strcmp(keys[key].name, name) != 0)
            key++;
        if (key == KEYS_COUNT)
            return refuse_key(err, name);
        if (!take(&keys[key], value, row, ret_source, err))
            return false;
    }
    if (json_object_get(object, "payload") == NULL)
        return refuse(err, "payload", "there");
    return true;
}

void pawli_ndjson_clear(struct pawli_ndjson *source)
{
    json_decref(source->object);
    free(source->payload);
    free(source->headers);
    *source = (struct pawli_ndjson){0};
}

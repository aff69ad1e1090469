/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * mapping.c - reads the mapping file of `pawl adopt`: JSON, strictly.
 * Owns:  the form of the file; where in it something is wrong.
 * Never: knows the keys (the library does); opens a file.
 */
#include "cli/mapping.h"

#include "base/error.h"
#include "cli/words.h"

#include <assert.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define KEY_MAX   80 /* bytes of "part.key": longer ones are like nothing we know */
#define DEPTH_MAX 2  /* the file, and the objects in it */
#define NAMES_MAX 64

/* A mapping that is being read. */
struct reading {
    const char *json;
    size_t json_len;
    struct pawli_mapping *mapping;
    char *next; /* where the next text goes; there is room for all of the file */
    pawl_err *err;
};

/* ---- where something stands, in a text that is known to be JSON */

/* Behind the closing quote of the string that begins at `at`. */
static size_t skip_string(const struct reading *reading, size_t at)
{
    for (at++; at < reading->json_len && reading->json[at] != '"'; at++)
        if (reading->json[at] == '\\')
            at++;
    return at + 1;
}

static bool is_word(const struct reading *reading, size_t from, size_t to, const char *word)
{
    return to - from == strlen(word) + 2 &&
           memcmp(reading->json + from + 1, word, strlen(word)) == 0;
}

static bool is_before_colon(const struct reading *reading, size_t at)
{
    while (at < reading->json_len && strchr(" \t\r\n", reading->json[at]) != NULL)
        at++;
    return at < reading->json_len && reading->json[at] == ':';
}

/* The line on which member `name` of the object `part` (NULL: of the file) stands; 0: not found,
 * as where the file has escapes in it. */
static int find_line(const struct reading *reading, const char *part, const char *name)
{
    int line = 1;
    int depth = 0;
    bool is_in_part = part == NULL;
    for (size_t at = 0; at < reading->json_len; at++) {
        char letter = reading->json[at];
        line += letter == '\n';
        depth += (letter == '{' || letter == '[') - (letter == '}' || letter == ']');
        if (letter != '"')
            continue;
        size_t end = skip_string(reading, at);
        bool is_key = is_before_colon(reading, end);
        if (is_key && depth == 1 && part != NULL)
            is_in_part = is_word(reading, at, end, part);
        if (is_key && is_in_part && depth == (part == NULL ? 1 : DEPTH_MAX) &&
            is_word(reading, at, end, name))
            return line;
        at = end - 1;
    }
    return 0;
}

static bool refuse(const struct reading *reading, const char *part, const char *name,
                   const char *what)
{
    int line = find_line(reading, part, name);
    char place[32] = "";
    if (line > 0)
        (void)snprintf(place, sizeof(place), "line %d: ", line); /* fits */
    (void)pawli_fail(reading->err, PAWL_INVALID, "%s%.60s%s%.60s %s", place,
                     part != NULL ? part : "", part != NULL ? "." : "", name, what);
    return false;
}

/* ---- members */

/* Whether some key begins with "name.": an object of that name may stand in the file. */
static bool is_part(const char *name)
{
    size_t keys_count;
    const pawl_adopt_key *keys = pawl_adopt_keys(&keys_count);
    size_t length = strlen(name);
    for (size_t i = 0; i < keys_count; i++)
        if (strncmp(keys[i].name, name, length) == 0 && keys[i].name[length] == '.')
            return true;
    return false;
}

static bool refuse_unknown(const struct reading *reading, const char *part, const char *name,
                           const char *full)
{
    size_t keys_count;
    const pawl_adopt_key *keys = pawl_adopt_keys(&keys_count);
    const char *names[NAMES_MAX];
    char what[2 * KEY_MAX];
    assert(keys_count <= NAMES_MAX);
    for (size_t i = 0; i < keys_count; i++)
        names[i] = keys[i].name;
    const char *nearest = pawli_cli_nearest(full, names, keys_count);
    (void)snprintf(what, sizeof(what), "is not a key of the mapping%s%s%s", /* fits */
                   nearest != NULL ? "; did you mean " : "", nearest != NULL ? nearest : "",
                   nearest != NULL ? "?" : "");
    return refuse(reading, part, name, what);
}

static bool add(struct reading *reading, const char *part, const char *name, const json_t *value)
{
    char full[KEY_MAX + 1];
    size_t keys_count;
    const pawl_adopt_key *keys = pawl_adopt_keys(&keys_count);
    int length = snprintf(full, sizeof(full), "%s%s%s", part != NULL ? part : "",
                          part != NULL ? "." : "", name);
    size_t key = 0;
    while (key < keys_count && strcmp(keys[key].name, full) != 0)
        key++;
    if (length < 0 || (size_t)length >= sizeof(full) || key == keys_count ||
        (part == NULL && strchr(name, '.') != NULL))
        return refuse_unknown(reading, part, name, full);
    if (!json_is_string(value))
        return refuse(reading, part, name, "must be a text in quotes");
    /* The library wants texts: a NUL inside one is refused by the reader of JSON. */
    size_t size = json_string_length(value) + 1;
    memcpy(reading->next, json_string_value(value), size);
    reading->mapping->entries[reading->mapping->count++] = (pawl_adopt_entry){
        .key = keys[key].name,
        .value = reading->next,
    };
    reading->next += size;
    return true;
}

static bool add_part(struct reading *reading, const char *part, json_t *object)
{
    const char *name;
    json_t *value;
    if (!json_is_object(object))
        return refuse(reading, NULL, part, "must be an object: { ... }");
    json_object_foreach(object, name, value)
    {
        if (!add(reading, part, name, value))
            return false;
    }
    return true;
}

static bool add_all(struct reading *reading, json_t *file)
{
    const char *name;
    json_t *value;
    json_object_foreach(file, name, value)
    {
        if (is_part(name) ? !add_part(reading, name, value) : !add(reading, NULL, name, value))
            return false;
    }
    return true;
}

static bool check_needed(const struct reading *reading)
{
    size_t keys_count;
    const pawl_adopt_key *keys = pawl_adopt_keys(&keys_count);
    for (size_t i = 0; i < keys_count; i++) {
        size_t at = 0;
        while (at < reading->mapping->count &&
               strcmp(reading->mapping->entries[at].key, keys[i].name) != 0)
            at++;
        if (!keys[i].is_needed || at < reading->mapping->count)
            continue;
        (void)pawli_fail(reading->err, PAWL_INVALID, "%s is missing", keys[i].name);
        return false;
    }
    return true;
}

/* ---- the file */

static json_t *load(const struct reading *reading)
{
    json_error_t error;
    json_t *file = json_loadb(reading->json, reading->json_len, JSON_REJECT_DUPLICATES, &error);
    if (file == NULL)
        (void)pawli_fail(reading->err, PAWL_INVALID, "line %d, column %d: not JSON: %.120s",
                         error.line, error.column, error.text);
    else if (!json_is_object(file))
        (void)pawli_fail(reading->err, PAWL_INVALID, "the file must be a JSON object: { ... }");
    if (json_is_object(file))
        return file;
    json_decref(file);
    return NULL;
}

bool pawli_mapping_read(const char *json, size_t json_len, struct pawli_mapping *ret_mapping,
                        pawl_err *err)
{
    assert(json_len <= PAWLI_MAPPING_BYTES_MAX);
    size_t keys_count;
    (void)pawl_adopt_keys(&keys_count); /* only how many: each stands there once at most */
    *ret_mapping = (struct pawli_mapping){
        .entries = calloc(keys_count, sizeof(*ret_mapping->entries)),
        /* A text takes as many bytes in the file, and two quotes: room for its closing NUL. */
        .texts = malloc(json_len + 1),
    };
    struct reading reading = {json, json_len, ret_mapping, ret_mapping->texts, err};
    json_t *file = NULL;
    bool is_good = false;
    if (ret_mapping->entries == NULL || ret_mapping->texts == NULL)
        (void)pawli_fail_plain(err, PAWL_NO_MEMORY);
    else
        file = load(&reading);
    if (file != NULL)
        is_good = add_all(&reading, file) && check_needed(&reading);
    json_decref(file);
    if (!is_good)
        pawli_mapping_clear(ret_mapping);
    return is_good;
}

void pawli_mapping_clear(struct pawli_mapping *mapping)
{
    if (mapping == NULL)
        return;
    free(mapping->entries);
    free(mapping->texts);
    *mapping = (struct pawli_mapping){0};
}

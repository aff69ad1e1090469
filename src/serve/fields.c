/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * fields.c - the named values that a request carries.
 * Owns:  how each kind of value is written; what is said of one that is wrong.
 * Never: shows a text that a client sent, but for names of fields and what should be a duration.
 */
#include "serve/fields.h"

#include "base/error.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_FIRST 16

static bool refuse(pawl_err *err, const char *name, const char *allowed)
{
    (void)pawli_fail(err, PAWL_INVALID, "%s must be %s", name, allowed);
    return false;
}

bool pawli_fields_bad(const struct pawli_reader *reader, const char *name, pawl_err *err)
{
    (void)pawli_fail(err, PAWL_INVALID, "%s%s%s", name != NULL ? name : "",
                     name != NULL ? ": " : "", reader->why);
    return false;
}

/* ---------------------------------------------------------------- values */

static bool take_number(const struct pawli_field *field, int64_t number, char *to, pawl_err *err)
{
    if (number < field->min || number > field->max) {
        (void)pawli_fail(err, PAWL_INVALID,
                         "%s is %" PRId64 "; it must be from %" PRId64 " to %" PRId64, field->name,
                         number, field->min, field->max);
        return false;
    }
    if (field->kind == PAWLI_FIELD_SMALL)
        *(int *)(void *)to = (int)number;
    else
        *(int64_t *)(void *)to = number;
    return true;
}

static bool take_duration(const struct pawli_field *field, const char *text, char *to,
                          pawl_err *err)
{
    pawl_err inner;
    bool is_zero = field->min == 0 && (strcmp(text, "0s") == 0 || strcmp(text, "0ms") == 0);
    if (is_zero)
        *(int64_t *)(void *)to = 0;
    else if (pawl_duration_parse(text, (int64_t *)(void *)to, &inner) != PAWL_OK) {
        (void)pawli_fail(err, PAWL_INVALID, "%s: %.200s", field->name, inner.text);
        return false;
    }
    int64_t ms = *(int64_t *)(void *)to;
    if (field->max > 0 && ms > field->max) {
        char most[PAWL_DURATION_TEXT_MAX];
        (void)pawli_fail(err, PAWL_INVALID, "%s is %.40s; it must be at most %s", field->name, text,
                         pawl_duration_format(field->max, most));
        return false;
    }
    return true;
}

static int hex_digit(char byte)
{
    char small = (char)(byte | 0x20);
    return byte >= '0' && byte <= '9'     ? byte - '0'
           : small >= 'a' && small <= 'f' ? small - 'a' + 10
                                          : -1;
}

static bool take_token(const struct pawli_field *field, const char *text, char *to, pawl_err *err)
{
    pawl_token token;
    bool is_good = strlen(text) == 2 * sizeof(token.bytes);
    for (size_t i = 0; is_good && i < sizeof(token.bytes); i++) {
        int high = hex_digit(text[2 * i]);
        int low = hex_digit(text[2 * i + 1]);
        is_good = high >= 0 && low >= 0;
        token.bytes[i] = (uint8_t)(is_good ? high * 16 + low : 0);
    }
    if (!is_good)
        return refuse(err, field->name, "a token: 32 hexadecimal digits");
    memcpy(to, &token, sizeof(token));
    return true;
}

/* A word that stands for what is no number. */
static bool take_word(const struct pawli_field *field, const char *text, char *to, pawl_err *err)
{
    if (field->max == PAWL_FOREVER && strcmp(text, "forever") == 0)
        *(int64_t *)(void *)to = PAWL_FOREVER;
    else if (field->min == PAWL_DEFAULT && strcmp(text, "default") == 0)
        *(int64_t *)(void *)to = PAWL_DEFAULT;
    else
        return refuse(err, field->name,
                      field->max == PAWL_FOREVER   ? "a number of milliseconds, or \"forever\""
                      : field->min == PAWL_DEFAULT ? "a number of milliseconds, or \"default\""
                                                   : "a whole number");
    return true;
}

/* A value that is a text. */
static bool take_text(const struct pawli_field *field, const char *text, char *to, pawl_err *err)
{
    pawl_id id;
    switch (field->kind) {
    case PAWLI_FIELD_TEXT:
        *(const char **)(void *)to = text;
        return true;
    case PAWLI_FIELD_DURATION:
        return take_duration(field, text, to, err);
    case PAWLI_FIELD_SETTING:
        return take_word(field, text, to, err);
    case PAWLI_FIELD_TOKEN:
        return take_token(field, text, to, err);
    default:
        assert(field->kind == PAWLI_FIELD_ID);
        if (pawl_id_parse(text, &id, NULL) != PAWL_OK)
            return refuse(err, field->name, "an id: a UUID of 36 characters");
        memcpy(to, &id, sizeof(id));
        return true;
    }
}

static bool is_number_kind(enum pawli_field_kind kind)
{
    return kind == PAWLI_FIELD_NUMBER || kind == PAWLI_FIELD_SMALL || kind == PAWLI_FIELD_SETTING;
}

/* ---------------------------------------------------------------- queries */

static bool take_digits(const struct pawli_field *field, const char *text, char *to, pawl_err *err)
{
    char *end = NULL;
    size_t digits = strspn(text + (text[0] == '-'), "0123456789");
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (digits == 0 || *end != '\0' || errno != 0)
        return refuse(err, field->name, "a whole number");
    return take_number(field, number, to, err);
}

static bool take_param(const struct pawli_field *field, const char *text, void *to, pawl_err *err)
{
    char *place = (char *)to + field->offset;
    if (field->kind == PAWLI_FIELD_NUMBER || field->kind == PAWLI_FIELD_SMALL)
        return take_digits(field, text, place, err);
    if (field->kind != PAWLI_FIELD_FLAG)
        return take_text(field, text, place, err);
    if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
        return refuse(err, field->name, "true or false");
    *(bool *)(void *)place = text[0] == 't';
    return true;
}

static size_t find(const struct pawli_fields *fields, const char *name)
{
    size_t i = 0;
    while (i < fields->count && strcmp(fields->rows[i].name, name) != 0)
        i++;
    return i;
}

static bool refuse_name(const struct pawli_fields *fields, const char *what, const char *name,
                        pawl_err *err)
{
    char names[PAWL_ERR_TEXT_MAX] = "";
    size_t len = 0;
    for (size_t i = 0; i < fields->count && len < sizeof(names); i++)
        len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s", i > 0 ? ", " : "",
                                fields->rows[i].name);
    if (fields->count == 0)
        (void)pawli_fail(err, PAWL_INVALID, "%s %.60s is not known here; there is none", what,
                         name);
    else
        (void)pawli_fail(err, PAWL_INVALID, "%s %.60s is not known here; there are: %s", what, name,
                         names);
    return false;
}

static bool check_needed(const struct pawli_fields *fields, uint32_t seen, pawl_err *err)
{
    for (size_t i = 0; i < fields->count; i++)
        if (fields->rows[i].is_needed && (seen >> i & 1) == 0) {
            (void)pawli_fail(err, PAWL_INVALID, "%s must be there", fields->rows[i].name);
            return false;
        }
    return true;
}

pawl_code pawli_fields_query(const struct pawli_fields *fields, const struct pawli_uri *uri,
                             void *to, pawl_err *err)
{
    uint32_t seen = 0;
    assert(fields->count <= PAWLI_FIELDS_MAX);
    for (size_t i = 0; i < uri->params_count; i++) {
        size_t at = find(fields, uri->params[i].name);
        if (at == fields->count) {
            (void)refuse_name(fields, "the parameter", uri->params[i].name, err);
            return PAWL_INVALID;
        }
        seen |= UINT32_C(1) << at;
        if (!take_param(&fields->rows[at], uri->params[i].value, to, err))
            return PAWL_INVALID;
    }
    return check_needed(fields, seen, err) ? PAWL_OK : PAWL_INVALID;
}

/* ---------------------------------------------------------------- JSON */

static const char *wanted(enum pawli_field_kind kind)
{
    switch (kind) {
    case PAWLI_FIELD_NUMBER:
    case PAWLI_FIELD_SMALL:
    case PAWLI_FIELD_SETTING:
        return "a whole number";
    case PAWLI_FIELD_DURATION:
        return "a duration in quotes: \"30s\"";
    case PAWLI_FIELD_ID:
        return "an id in quotes";
    case PAWLI_FIELD_TOKEN:
        return "a token in quotes";
    default:
        return "a text in quotes";
    }
}

static bool take_member(const struct pawli_field *field, struct pawli_reader *reader, void *to,
                        pawl_err *err)
{
    char *place = (char *)to + field->offset;
    const char *text;
    size_t len;
    int64_t number;
    if (field->kind == PAWLI_FIELD_OWN)
        return field->read(reader, to, err);
    if (field->kind == PAWLI_FIELD_FLAG)
        return pawli_reader_flag(reader, (bool *)(void *)place) ||
               pawli_fields_bad(reader, field->name, err);
    enum pawli_json_kind kind = pawli_reader_look(reader);
    if (kind == PAWLI_JSON_NUMBER && is_number_kind(field->kind))
        return pawli_reader_number(reader, &number) ? take_number(field, number, place, err)
                                                    : pawli_fields_bad(reader, field->name, err);
    if (kind != PAWLI_JSON_TEXT ||
        (is_number_kind(field->kind) && field->kind != PAWLI_FIELD_SETTING))
        return refuse(err, field->name, wanted(field->kind));
    if (!pawli_reader_text(reader, &text, &len))
        return pawli_fields_bad(reader, field->name, err);
    if (strlen(text) != len)
        return refuse(err, field->name, "a text without a NUL");
    return take_text(field, text, place, err);
}

pawl_code pawli_fields_object(const struct pawli_fields *fields, struct pawli_reader *reader,
                              void *to, pawl_err *err)
{
    uint32_t seen = 0;
    bool has_member = true;
    const char *name = NULL;
    assert(fields->count <= PAWLI_FIELDS_MAX);
    *err = (pawl_err){.code = PAWL_INVALID};
    if (!pawli_reader_object(reader)) {
        (void)pawli_fields_bad(reader, NULL, err);
        return PAWL_INVALID;
    }
    for (bool is_first = true; has_member; is_first = false) {
        if (!pawli_reader_member(reader, is_first, &has_member, &name)) {
            (void)pawli_fields_bad(reader, NULL, err);
            return PAWL_INVALID;
        }
        if (!has_member)
            break;
        size_t at = find(fields, name);
        if (at == fields->count) {
            (void)refuse_name(fields, "the field", name, err);
            return PAWL_INVALID;
        }
        if ((seen >> at & 1) != 0)
            return pawli_fail(err, PAWL_INVALID, "%s is there twice", name);
        seen |= UINT32_C(1) << at;
        if (!take_member(&fields->rows[at], reader, to, err))
            return err->code;
    }
    return check_needed(fields, seen, err) ? PAWL_OK : PAWL_INVALID;
}

pawl_code pawli_fields_body(const struct pawli_fields *fields, char *body, size_t body_len,
                            void *to, pawl_err *err)
{
    struct pawli_reader reader;
    pawli_reader_init(&reader, body, body_len);
    pawl_code code = pawli_fields_object(fields, &reader, to, err);
    if (code == PAWL_OK && !pawli_reader_end(&reader)) {
        (void)pawli_fields_bad(&reader, NULL, err);
        return PAWL_INVALID;
    }
    return code;
}

/* ---------------------------------------------------------------- rows */

void pawli_rows_clear(struct pawli_rows *rows)
{
    free(rows->rows);
    *rows = (struct pawli_rows){0};
}

void *pawli_rows_add(struct pawli_rows *rows, size_t row_size, size_t rows_max)
{
    if (rows->count >= rows_max)
        return NULL;
    if (rows->count == rows->size) {
        size_t size = rows->size == 0 ? ROWS_FIRST : rows->size * 2;
        if (size > rows_max)
            size = rows_max;
        void *more = realloc(rows->rows, size * row_size);
        if (more == NULL)
            return NULL;
        rows->rows = more;
        rows->size = size;
    }
    void *row = (char *)rows->rows + rows->count * row_size;
    memset(row, 0, row_size);
    rows->count++;
    return row;
}

bool pawli_fields_rows(const struct pawli_rows_kind *kind, struct pawli_reader *reader,
                       struct pawli_rows *rows, pawl_err *err)
{
    bool has_row = true;
    pawl_err inner;
    if (!pawli_reader_array(reader))
        return pawli_fields_bad(reader, kind->name, err);
    for (bool is_first = true; has_row; is_first = false) {
        if (!pawli_reader_element(reader, is_first, &has_row))
            return pawli_fields_bad(reader, kind->name, err);
        if (!has_row)
            break;
        if (rows->count == kind->rows_max) {
            (void)pawli_fail(err, PAWL_INVALID, "%s has more than %zu rows", kind->name,
                             kind->rows_max);
            return false;
        }
        void *row = pawli_rows_add(rows, kind->row_size, kind->rows_max);
        if (row == NULL) {
            (void)pawli_fail_plain(err, PAWL_NO_MEMORY);
            return false;
        }
        if (kind->init != NULL)
            kind->init(row);
        pawl_code code = pawli_fields_object(kind->fields, reader, row, &inner);
        if (code != PAWL_OK) {
            (void)pawli_fail(err, code, "%s[%zu]: %.200s", kind->name, rows->count - 1, inner.text);
            return false;
        }
    }
    if (rows->count == 0)
        return refuse(err, kind->name, "an array of at least one");
    return true;
}

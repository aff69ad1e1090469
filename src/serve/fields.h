/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * fields.h - the named values that a request carries, as one table: read from the parameters of a
 * query or from the members of a JSON object, into a structure. A name that is not in the table,
 * one that is there twice and a value that is not of its kind are PAWL_INVALID; the text names it.
 */
#ifndef PAWLI_SERVE_FIELDS_H
#define PAWLI_SERVE_FIELDS_H

#include "serve/json_read.h"
#include "serve/uri.h"

#define PAWLI_FIELDS_MAX 32 /* of one table */

enum pawli_field_kind {
    PAWLI_FIELD_TEXT = 0, /* const char *; without a NUL inside */
    PAWLI_FIELD_NUMBER,   /* int64_t from `min` to `max` */
    PAWLI_FIELD_SMALL,    /* int, likewise */
    PAWLI_FIELD_DURATION, /* int64_t: "30s"; with a `min` of 0 also "0s" */
    PAWLI_FIELD_SETTING,  /* int64_t: a number as above, or "forever" or "default" by its bounds */
    PAWLI_FIELD_ID,       /* pawl_id */
    PAWLI_FIELD_TOKEN,    /* pawl_token: 32 hexadecimal digits */
    PAWLI_FIELD_FLAG,     /* bool */
    PAWLI_FIELD_OWN       /* read by `read`, from JSON only */
};

struct pawli_field {
    const char *name;
    enum pawli_field_kind kind;
    size_t offset; /* in the structure */
    int64_t min;
    int64_t max;
    bool is_needed;
    /* Of PAWLI_FIELD_OWN: read a value into the whole structure. False: *err says why. */
    bool (*read)(struct pawli_reader *reader, void *to, pawl_err *err);
};

/* A table and its length. */
struct pawli_fields {
    const struct pawli_field *rows;
    size_t count;
};
#define PAWLI_FIELDS(rows_)                       \
    {                                             \
        rows_, sizeof(rows_) / sizeof((rows_)[0]) \
    }

/* The parameters of a query. What is not there stays as it is in *to. */
pawl_code pawli_fields_query(const struct pawli_fields *fields, const struct pawli_uri *uri,
                             void *to, pawl_err *err);

/* An object. Texts are borrowed from the reader's bytes. */
pawl_code pawli_fields_object(const struct pawli_fields *fields, struct pawli_reader *reader,
                              void *to, pawl_err *err);

/* The same of a whole body. */
pawl_code pawli_fields_body(const struct pawli_fields *fields, char *body, size_t body_len,
                            void *to, pawl_err *err);

/* Rows of an array, which grow: each is filled by `init` and then read from an object. */
struct pawli_rows {
    void *rows; /* owned */
    size_t count;
    size_t size;
};
struct pawli_rows_kind {
    const char *name; /* of the array */
    const struct pawli_fields *fields;
    size_t row_size;
    size_t rows_max;
    void (*init)(void *row);
};
/* At least one, at most rows_max of them. What was read stays in *rows in any case. */
bool pawli_fields_rows(const struct pawli_rows_kind *kind, struct pawli_reader *reader,
                       struct pawli_rows *rows, pawl_err *err);
void pawli_rows_clear(struct pawli_rows *rows);

/* Another row, zeroed. NULL: memory ran out, or there are rows_max of them. */
void *pawli_rows_add(struct pawli_rows *rows, size_t row_size, size_t rows_max);

/* What is wrong with the JSON, as a reader tells it. */
bool pawli_fields_bad(const struct pawli_reader *reader, const char *name, pawl_err *err);

#endif

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * json_read.h - reads a JSON document piece by piece, without building anything of it: what it
 * costs beyond the bytes does not depend on them. Strict: RFC 8259 in UTF-8, and nothing else.
 *
 * Whoever reads says what should come next. Each function gives false where something else comes;
 * then reader->why says what is wrong and where, and the reader is of no further use.
 */
#ifndef PAWLI_SERVE_JSON_READ_H
#define PAWLI_SERVE_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAWLI_READER_DEPTH_MAX 64 /* arrays and objects within each other */

struct pawli_reader {
    char *begin;
    char *at;
    char *end;
    unsigned depth;
    char why[96]; /* "byte 17: ..."; never shows what stands there */
};

/* What comes next; PAWLI_JSON_BAD: nothing that could begin a value. */
enum pawli_json_kind {
    PAWLI_JSON_BAD = 0,
    PAWLI_JSON_TEXT,
    PAWLI_JSON_NUMBER,
    PAWLI_JSON_FLAG,
    PAWLI_JSON_NULL,
    PAWLI_JSON_OBJECT,
    PAWLI_JSON_ARRAY
};

/* The bytes are borrowed, and written over: texts are decoded where they stand. */
void pawli_reader_init(struct pawli_reader *reader, char *bytes, size_t bytes_len);

enum pawli_json_kind pawli_reader_look(struct pawli_reader *reader);

/* A text: decoded, with a NUL behind it. It may hold NULs of its own: see its length. */
bool pawli_reader_text(struct pawli_reader *reader, const char **ret_text, size_t *ret_len);

/* A whole number of 64 bits: neither fraction nor exponent. */
bool pawli_reader_number(struct pawli_reader *reader, int64_t *ret_number);

bool pawli_reader_flag(struct pawli_reader *reader, bool *ret_flag);
bool pawli_reader_null(struct pawli_reader *reader);

/* Any value, checked and left as it is: its bytes, without the blanks around it. Numbers may be of
 * any size, and names in an object may be doubled: what it holds is not ours to judge. */
bool pawli_reader_value(struct pawli_reader *reader, const char **ret_bytes, size_t *ret_len);

/*
 * Go into an object or an array, and from one member to the next: *ret_has is whether there is one.
 * The name of a member is decoded as texts are; one with a NUL in it is refused.
 */
bool pawli_reader_object(struct pawli_reader *reader);
bool pawli_reader_member(struct pawli_reader *reader, bool is_first, bool *ret_has,
                         const char **ret_name);
bool pawli_reader_array(struct pawli_reader *reader);
bool pawli_reader_element(struct pawli_reader *reader, bool is_first, bool *ret_has);

/* Nothing but blanks follow. */
bool pawli_reader_end(struct pawli_reader *reader);

#endif

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * json_write.h - writes one JSON document into a buffer, member by member, as short as it can be.
 * Whatever bytes it is given, what it writes is valid JSON. Running out of memory is remembered:
 * ask once, at the end.
 */
#ifndef PAWLI_SERVE_JSON_WRITE_H
#define PAWLI_SERVE_JSON_WRITE_H

#include "base/buffer.h"
#include "pawl/pawl.h"

struct pawli_writer {
    struct pawli_buffer *to; /* borrowed */
    bool has_failed;         /* memory ran out: what was written is of no use */
    bool is_behind;          /* a value stands before what comes next: a comma is due */
};

void pawli_writer_init(struct pawli_writer *writer, struct pawli_buffer *to);

/* A `key` of NULL: in an array, or the document itself. */
void pawli_put_object(struct pawli_writer *writer, const char *key);
void pawli_put_object_end(struct pawli_writer *writer);
void pawli_put_array(struct pawli_writer *writer, const char *key);
void pawli_put_array_end(struct pawli_writer *writer);

void pawli_put_text(struct pawli_writer *writer, const char *key, const char *text);
void pawli_put_number(struct pawli_writer *writer, const char *key, int64_t number);
void pawli_put_flag(struct pawli_writer *writer, const char *key, bool flag);
void pawli_put_null(struct pawli_writer *writer, const char *key);
void pawli_put_id(struct pawli_writer *writer, const char *key, const pawl_id *id);
void pawli_put_token(struct pawli_writer *writer, const char *key, const pawl_token *token);

/* 2026-02-03T04:05:06.123456Z; null for an instant of 0. */
void pawli_put_time(struct pawli_writer *writer, const char *key, pawl_wall at);

/*
 * Bytes: as the text that they are under `key`, where they are UTF-8, else in base64 under
 * `key_base64`. So each way gives the same bytes back.
 */
void pawli_put_bytes(struct pawli_writer *writer, const char *key, const char *key_base64,
                     const void *bytes, size_t bytes_len);

/* A job's headers as an object of texts; nothing where there are none. */
void pawli_put_headers(struct pawli_writer *writer, const char *key, const char *headers);

#endif

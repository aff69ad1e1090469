/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * values.c - arguments and answers in PostgreSQL's binary format.
 * Owns:  the encoding of numbers, instants, ids, bytes, texts and arrays of them.
 * Never: sends or receives; reads a cell whose type was not checked first.
 */
#include "store/postgres/postgres.h"

#include "base/text.h"

#include <assert.h>
#include <string.h>

#define EPOCH_2000_US INT64_C(946684800000000) /* PostgreSQL counts instants from 2000 */
#define TYPE_INSTANT  1184
#define TYPE_VARCHAR  1043
#define TYPE_NAME     19
#define LENGTH_NULL   (-1)
#define PLACE_SIZE    6 /* bytes: page, and number on the page */

/* ---- arguments */

void pawli_pg_args_clear(struct pawli_pg_args *args)
{
    pawli_buffer_clear(&args->bytes);
    *args = (struct pawli_pg_args){0};
}

static void put(struct pawli_pg_args *args, const void *bytes, size_t bytes_len)
{
    if (!args->is_failed && !pawli_buffer_put(&args->bytes, bytes, bytes_len))
        args->is_failed = true;
}

/* The lowest bytes of a number, highest first. */
static void put_number(struct pawli_pg_args *args, int64_t value, size_t size)
{
    uint8_t bytes[sizeof(value)];
    uint64_t rest = (uint64_t)value;
    assert(size <= sizeof(bytes));
    for (size_t i = size; i-- > 0; rest >>= 8)
        bytes[i] = (uint8_t)(rest & 0xff);
    put(args, bytes, size);
}

static void arg_begin(struct pawli_pg_args *args, Oid type)
{
    assert(args->count < PAWLI_PG_ARGS_MAX);
    args->list[args->count].type = type;
    args->list[args->count].at = args->bytes.len;
    args->list[args->count].is_null = false;
}

static void arg_end(struct pawli_pg_args *args)
{
    args->list[args->count].len = args->bytes.len - args->list[args->count].at;
    args->count++;
}

static void arg_null(struct pawli_pg_args *args, Oid type)
{
    arg_begin(args, type);
    args->list[args->count].is_null = true;
    arg_end(args);
}

static void arg_number(struct pawli_pg_args *args, Oid type, int64_t value, size_t size)
{
    arg_begin(args, type);
    put_number(args, value, size);
    arg_end(args);
}

void pawli_pg_arg_int4(struct pawli_pg_args *args, int64_t value)
{
    assert(value >= INT32_MIN && value <= INT32_MAX);
    arg_number(args, PAWLI_PG_INT4, value, sizeof(int32_t));
}

void pawli_pg_arg_int8(struct pawli_pg_args *args, int64_t value)
{
    arg_number(args, PAWLI_PG_INT8, value, sizeof(int64_t));
}

static bool is_left_out(int64_t value)
{
    return value == PAWL_DEFAULT || value == PAWL_FOREVER;
}

void pawli_pg_arg_optional(struct pawli_pg_args *args, int64_t value)
{
    if (is_left_out(value))
        arg_null(args, PAWLI_PG_INT8);
    else
        pawli_pg_arg_int8(args, value);
}

void pawli_pg_arg_optional_int4(struct pawli_pg_args *args, int64_t value)
{
    if (is_left_out(value))
        arg_null(args, PAWLI_PG_INT4);
    else
        pawli_pg_arg_int4(args, value);
}

void pawli_pg_arg_wall(struct pawli_pg_args *args, pawl_wall wall)
{
    if (wall.us == 0)
        arg_null(args, TYPE_INSTANT);
    else
        arg_number(args, TYPE_INSTANT, wall.us - EPOCH_2000_US, sizeof(int64_t));
}

void pawli_pg_arg_bool(struct pawli_pg_args *args, bool value)
{
    arg_number(args, PAWLI_PG_BOOL, value, sizeof(uint8_t));
}

static void arg_of(struct pawli_pg_args *args, Oid type, const void *bytes, size_t bytes_len)
{
    arg_begin(args, type);
    put(args, bytes, bytes_len);
    arg_end(args);
}

void pawli_pg_arg_text(struct pawli_pg_args *args, const char *text)
{
    if (text == NULL)
        arg_null(args, PAWLI_PG_TEXT);
    else
        arg_of(args, PAWLI_PG_TEXT, text, strlen(text));
}

void pawli_pg_arg_id(struct pawli_pg_args *args, const pawl_id *id)
{
    if (id == NULL)
        arg_null(args, PAWLI_PG_UUID);
    else
        arg_of(args, PAWLI_PG_UUID, id->bytes, sizeof(id->bytes));
}

void pawli_pg_arg_bytes(struct pawli_pg_args *args, const void *bytes, size_t bytes_len)
{
    arg_of(args, PAWLI_PG_BYTES, bytes, bytes_len);
}

/* ---- arrays */

static Oid array_type(enum pawli_pg_item item)
{
    switch (item) {
    case PAWLI_PG_BOOL:
        return 1000;
    case PAWLI_PG_BYTES:
        return 1001;
    case PAWLI_PG_INT2:
        return 1005;
    case PAWLI_PG_INT4:
        return 1007;
    case PAWLI_PG_TEXT:
        return 1009;
    case PAWLI_PG_PLACE:
        return 1010;
    case PAWLI_PG_INT8:
        return 1016;
    case PAWLI_PG_UUID:
        return 2951;
    }
    assert(false);
    return 0;
}

void pawli_pg_arg_array_null(struct pawli_pg_args *args, enum pawli_pg_item item)
{
    arg_null(args, array_type(item));
}

void pawli_pg_array_begin(struct pawli_pg_args *args, enum pawli_pg_item item, size_t items_count)
{
    assert(items_count >= 1);
    arg_begin(args, array_type(item));
    put_number(args, 1, 4); /* dimensions */
    put_number(args, 1, 4); /* there may be NULLs */
    put_number(args, (int64_t)item, 4);
    put_number(args, (int64_t)items_count, 4);
    put_number(args, 1, 4); /* the first index */
}

void pawli_pg_array_end(struct pawli_pg_args *args)
{
    arg_end(args);
}

static void item_number(struct pawli_pg_args *args, int64_t value, size_t size)
{
    put_number(args, (int64_t)size, 4);
    put_number(args, value, size);
}

static void item_of(struct pawli_pg_args *args, const void *bytes, size_t bytes_len)
{
    assert(bytes_len <= INT32_MAX);
    put_number(args, (int64_t)bytes_len, 4);
    if (bytes_len > 0)
        put(args, bytes, bytes_len);
}

void pawli_pg_item_bool(struct pawli_pg_args *args, bool value)
{
    item_number(args, value, sizeof(uint8_t));
}

void pawli_pg_item_int2(struct pawli_pg_args *args, int64_t value)
{
    assert(value >= INT16_MIN && value <= INT16_MAX);
    item_number(args, value, sizeof(int16_t));
}

void pawli_pg_item_int4(struct pawli_pg_args *args, int64_t value)
{
    assert(value >= INT32_MIN && value <= INT32_MAX);
    item_number(args, value, sizeof(int32_t));
}

void pawli_pg_item_optional(struct pawli_pg_args *args, int64_t value)
{
    if (is_left_out(value))
        put_number(args, LENGTH_NULL, 4);
    else
        item_number(args, value, sizeof(int64_t));
}

void pawli_pg_item_optional_int4(struct pawli_pg_args *args, int64_t value)
{
    if (is_left_out(value))
        put_number(args, LENGTH_NULL, 4);
    else
        pawli_pg_item_int4(args, value);
}

void pawli_pg_item_uuid(struct pawli_pg_args *args, const uint8_t bytes[16])
{
    item_of(args, bytes, 16);
}

void pawli_pg_item_place(struct pawli_pg_args *args, int64_t place)
{
    item_number(args, place, PLACE_SIZE);
}

void pawli_pg_item_bytes(struct pawli_pg_args *args, const void *bytes, size_t bytes_len)
{
    item_of(args, bytes, bytes_len);
}

void pawli_pg_item_text(struct pawli_pg_args *args, const char *text)
{
    if (text == NULL)
        put_number(args, LENGTH_NULL, 4);
    else
        item_of(args, text, strlen(text));
}

/* ---- answers */

static bool is_of_kind(Oid type, char kind)
{
    switch (kind) {
    case 'i':
        return type == PAWLI_PG_INT2 || type == PAWLI_PG_INT4 || type == PAWLI_PG_INT8;
    case 't':
        return type == TYPE_INSTANT;
    case 's':
        return type == PAWLI_PG_TEXT || type == TYPE_VARCHAR || type == TYPE_NAME;
    case 'u':
        return type == PAWLI_PG_UUID;
    case 'b':
        return type == PAWLI_PG_BOOL;
    case 'y':
        return type == PAWLI_PG_BYTES;
    case 'p':
        return type == PAWLI_PG_PLACE;
    default:
        assert(false);
        return false;
    }
}

bool pawli_pg_is_shaped(const PGresult *result, const char *shape)
{
    assert(result != NULL && shape != NULL);
    ExecStatusType wanted = shape[0] != '\0' ? PGRES_TUPLES_OK : PGRES_COMMAND_OK;
    if (PQresultStatus(result) != wanted || (size_t)PQnfields(result) != strlen(shape))
        return false;
    for (int i = 0; shape[i] != '\0'; i++)
        if (PQfformat(result, i) != 1 || !is_of_kind(PQftype(result, i), shape[i]))
            return false;
    return true;
}

bool pawli_pg_is_null(struct pawli_pg_cell cell)
{
    return PQgetisnull(cell.result, cell.row, cell.column) == 1;
}

size_t pawli_pg_len(struct pawli_pg_cell cell)
{
    return (size_t)PQgetlength(cell.result, cell.row, cell.column);
}

const void *pawli_pg_bytes(struct pawli_pg_cell cell)
{
    return PQgetvalue(cell.result, cell.row, cell.column);
}

int64_t pawli_pg_int(struct pawli_pg_cell cell)
{
    const uint8_t *bytes = pawli_pg_bytes(cell);
    size_t len = pawli_pg_len(cell); /* 0 for NULL */
    assert(len <= sizeof(uint64_t));
    uint64_t value = len > 0 && (bytes[0] & 0x80) != 0 ? UINT64_MAX : 0;
    for (size_t i = 0; i < len; i++)
        value = value << 8 | bytes[i];
    return (int64_t)value;
}

bool pawli_pg_bool(struct pawli_pg_cell cell)
{
    return !pawli_pg_is_null(cell) && *(const uint8_t *)pawli_pg_bytes(cell) != 0;
}

pawl_wall pawli_pg_wall(struct pawli_pg_cell cell)
{
    int64_t us;
    if (pawli_pg_is_null(cell))
        return (pawl_wall){0};
    if (__builtin_add_overflow(pawli_pg_int(cell), EPOCH_2000_US, &us))
        us = INT64_MAX; /* infinity */
    return (pawl_wall){us};
}

void pawli_pg_text(struct pawli_pg_cell cell, char *to, size_t to_size)
{
    (void)pawli_text_copy(to, to_size, pawli_pg_bytes(cell)); /* libpq ends each cell with a NUL;
                                                                 what is too long is cut */
}

void pawli_pg_uuid(struct pawli_pg_cell cell, uint8_t to[16])
{
    memset(to, 0, 16);
    if (pawli_pg_len(cell) == 16)
        memcpy(to, pawli_pg_bytes(cell), 16);
}

bool pawli_pg_verdict(struct pawli_pg_cell cell, pawl_code *ret_code)
{
    static const pawl_code codes[] = {
        PAWL_OK,
        PAWL_STALE,
        PAWL_GONE,
        PAWL_EXISTS,
        PAWL_DUPLICATE,
        PAWL_CANCELLED,
        PAWL_TIMEOUT,
        PAWL_NOT_FAILED,
        PAWL_ALREADY_SUCCEEDED,
        PAWL_ALREADY_FAILED,
    };
    const char *name = pawli_pg_bytes(cell);
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        if (strcmp(name, pawl_code_name(codes[i])) == 0) {
            *ret_code = codes[i];
            return true;
        }
    }
    return false;
}

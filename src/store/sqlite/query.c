/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * query.c - statements with values: put them in, go through the rows, take values out, in order.
 * Owns:  the use of a prepared statement between its first value and its reset; the first failure
 *        of a call, which ends everything after it.
 * Never: copies what it binds: it must stay until the statement has run.
 */
#include "store/sqlite/sqlite.h"

#include "base/text.h"

#include <assert.h>
#include <string.h>

bool pawli_sqlite_spoil(struct pass *pass, int rc)
{
    assert(rc != SQLITE_OK);
    if (pass->rc == SQLITE_OK)
        pass->rc = rc;
    return false;
}

struct query pawli_sqlite_query(struct pass *pass, enum statement statement)
{
    struct query query = {.pass = pass};
    if (pass->rc != SQLITE_OK)
        return query;
    int rc = SQLITE_OK;
    query.stmt = pawli_sqlite_statement(pass->connection, statement, &rc);
    if (query.stmt == NULL)
        (void)pawli_sqlite_spoil(pass, rc); /* the query does nothing from here on */
    return query;
}

/* ---- values in */

static void check_bound(struct query *query, int rc)
{
    if (rc == SQLITE_OK)
        return;
    (void)pawli_sqlite_spoil(query->pass, rc); /* pawli_sqlite_row() looks at it */
}

void pawli_sqlite_put_int(struct query *query, int64_t value)
{
    if (query->stmt != NULL)
        check_bound(query, sqlite3_bind_int64(query->stmt, ++query->bound, value));
}

void pawli_sqlite_put_optional(struct query *query, int64_t value, int64_t none)
{
    if (value != none)
        pawli_sqlite_put_int(query, value);
    else if (query->stmt != NULL)
        check_bound(query, sqlite3_bind_null(query->stmt, ++query->bound));
}

void pawli_sqlite_put_text(struct query *query, const char *text)
{
    if (query->stmt != NULL)
        check_bound(query, sqlite3_bind_text(query->stmt, ++query->bound, text, -1, SQLITE_STATIC));
}

void pawli_sqlite_put_bytes(struct query *query, const void *bytes, size_t bytes_len)
{
    if (query->stmt != NULL)
        check_bound(query, sqlite3_bind_blob64(query->stmt, ++query->bound, bytes, bytes_len,
                                               SQLITE_STATIC));
}

void pawli_sqlite_put_id(struct query *query, const pawl_id *id)
{
    static const uint8_t before_all[1]; /* shorter than an id, and no byte above 0 */
    if (id != NULL)
        pawli_sqlite_put_bytes(query, id->bytes, sizeof(id->bytes));
    else
        pawli_sqlite_put_bytes(query, before_all, 0);
}

/* ---- rows and values out */

bool pawli_sqlite_row(struct query *query)
{
    if (query->stmt == NULL || query->pass->rc != SQLITE_OK)
        return false;
    query->column = 0;
    int rc = sqlite3_step(query->stmt);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        (void)pawli_sqlite_spoil(query->pass, rc); /* told by pawli_sqlite_end() */
    return rc == SQLITE_ROW;
}

bool pawli_sqlite_is_null(const struct query *query)
{
    return sqlite3_column_type(query->stmt, query->column) == SQLITE_NULL;
}

int64_t pawli_sqlite_int(struct query *query)
{
    return sqlite3_column_int64(query->stmt, query->column++);
}

int64_t pawli_sqlite_optional(struct query *query, int64_t none)
{
    if (!pawli_sqlite_is_null(query))
        return pawli_sqlite_int(query);
    query->column++;
    return none;
}

bool pawli_sqlite_text(struct query *query, char *to, size_t to_size)
{
    const unsigned char *text = sqlite3_column_text(query->stmt, query->column++);
    return pawli_text_copy(to, to_size, (const char *)text); /* NULL: empty */
}

const void *pawli_sqlite_blob(struct query *query, size_t *ret_len)
{
    const void *bytes = sqlite3_column_blob(query->stmt, query->column);
    *ret_len = (size_t)sqlite3_column_bytes(query->stmt, query->column++);
    return bytes;
}

bool pawli_sqlite_bytes(struct query *query, void *to, size_t size)
{
    size_t len;
    const void *bytes = pawli_sqlite_blob(query, &len);
    if (bytes == NULL || len != size)
        return false;
    memcpy(to, bytes, size);
    return true;
}

bool pawli_sqlite_end(struct query *query)
{
    if (query->stmt != NULL) {
        (void)sqlite3_reset(query->stmt);          /* tells once more what step told */
        (void)sqlite3_clear_bindings(query->stmt); /* cannot fail; what was bound may go now */
        query->stmt = NULL;
    }
    return query->pass->rc == SQLITE_OK;
}

bool pawli_sqlite_change_rows(struct query *query, int changes)
{
    bool has_row = pawli_sqlite_row(query);
    assert(!has_row);
    (void)has_row; /* used by the assert only */
    bool is_done = pawli_sqlite_end(query);
    /* A row that was read under the same lock and cannot be written is not what it was. */
    if (is_done && changes >= 0 && sqlite3_changes(query->pass->connection->db) != changes)
        return pawli_sqlite_spoil(query->pass, SQLITE_CORRUPT);
    return is_done;
}

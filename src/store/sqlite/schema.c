/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * schema.c - whether a file is one of Pawl's, and making it one.
 * Owns:  the version of the schema; the file's journal mode.
 * Never: changes a file that is another's or newer; touches what does not begin with pawl_, nor the
 *        file's application_id and user_version, which are the application's.
 */
#include "store/sqlite/sqlite.h"

#include "base/clock.h"
#include "base/error.h"
#include "store/sqlite/steps.h"

#include <assert.h>
#include <poll.h>
#include <string.h>

#define SCHEMA_VERSION 2
#define BUSY_WAIT_MS   5

/* The first value of the first row of a text; *ret_found false: there is none. */
static int ask(sqlite3 *db, const char *sql, int64_t *ret_value, bool *ret_found)
{
    sqlite3_stmt *stmt = NULL;
    *ret_found = false;
    int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
    if (rc != SQLITE_OK)
        return sqlite3_extended_errcode(db);
    rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW) {
        *ret_found = true;
        *ret_value = sqlite3_column_int64(stmt, 0);
        rc = SQLITE_DONE;
    }
    (void)sqlite3_finalize(stmt); /* tells once more what step told */
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* What a file is to us. */
enum kind {
    KIND_NEW,   /* it has nothing of ours yet */
    KIND_OURS,  /* of this version */
    KIND_OLDER, /* of this version or an earlier one, without a step that came later */
    KIND_NEWER, /* of a later one */
    KIND_OTHER  /* it has tables of our names that are not ours */
};

/* Steps from here on are run on files that were made before there were any. Each leaves its name in
 * pawl_meta. One that a library must know to work on the file raises the version. */
#define STEP_ADDED_FIRST "004"

static bool is_added(const struct pawli_sqlite_step *step)
{
    return strcmp(step->name, STEP_ADDED_FIRST) >= 0;
}

/* Whether a file has all the steps that were added; of one that is ours. */
static int look_for_steps(sqlite3 *db, bool *ret_has_all)
{
    int rc = SQLITE_OK;
    *ret_has_all = true;
    for (size_t i = 0; i < pawli_sqlite_steps_count && rc == SQLITE_OK && *ret_has_all; i++) {
        if (!is_added(&pawli_sqlite_steps[i]))
            continue;
        sqlite3_stmt *stmt = NULL;
        rc = sqlite3_prepare_v2(db, "SELECT 1 FROM pawl_meta WHERE name = ?1", -1, &stmt, NULL);
        if (rc == SQLITE_OK)
            rc = sqlite3_bind_text(stmt, 1, pawli_sqlite_steps[i].name, -1, SQLITE_STATIC);
        if (rc == SQLITE_OK)
            rc = sqlite3_step(stmt);
        *ret_has_all = rc == SQLITE_ROW;
        if (rc == SQLITE_ROW || rc == SQLITE_DONE)
            rc = SQLITE_OK;
        (void)sqlite3_finalize(stmt); /* tells once more what step told */
    }
    return rc;
}

static int kind_of(sqlite3 *db, enum kind *ret_kind, int64_t *ret_version)
{
    int64_t count = 0;
    bool is_found;
    /* A table of this name without these columns is somebody else's. */
    int rc = ask(db,
                 "SELECT count(*) FROM sqlite_schema AS s, pragma_table_info(s.name) AS c "
                 "WHERE s.name = 'pawl_meta' AND s.type = 'table' AND c.name IN ('name', 'value')",
                 &count, &is_found);
    if (rc == SQLITE_OK && count == 2) {
        rc = ask(db,
                 "SELECT value FROM pawl_meta WHERE name = 'version' "
                 "AND typeof(value) = 'integer' AND value >= 1",
                 ret_version, &is_found);
        if (!is_found)
            *ret_kind = KIND_OTHER;
        else
            *ret_kind = *ret_version > SCHEMA_VERSION ? KIND_NEWER : KIND_OURS;
        bool has_all = true;
        if (rc == SQLITE_OK && *ret_kind == KIND_OURS)
            rc = look_for_steps(db, &has_all);
        if (!has_all)
            *ret_kind = KIND_OLDER;
        return rc;
    }
    if (rc == SQLITE_OK)
        rc = ask(db, "SELECT count(*) FROM sqlite_schema WHERE name LIKE 'pawl\\_%' ESCAPE '\\'",
                 &count, &is_found);
    *ret_kind = count == 0 ? KIND_NEW : KIND_OTHER;
    return rc;
}

static pawl_code refuse(const pawl_sqlite *sqlite, enum kind kind, int64_t version, pawl_err *err)
{
    if (kind == KIND_NEWER)
        return pawli_fail(err, PAWL_INVALID,
                          "%.120s: was made by a newer Pawl (schema %lld, this library knows %d); "
                          "use that one",
                          sqlite->path, (long long)version, SCHEMA_VERSION);
    if (kind == KIND_NEW)
        return pawli_fail(err, PAWL_INVALID,
                          "%.120s: has none of Pawl's tables; `pawl enqueue` and `pawl work` make "
                          "them, if this is the file",
                          sqlite->path);
    return pawli_fail(err, PAWL_INVALID,
                      "%.120s: has tables named pawl_... that are not Pawl's; name another file",
                      sqlite->path);
}

/* Whether the text encoding is the one that payloads and names are written in. */
static int check_encoding(sqlite3 *db, bool *ret_right)
{
    int64_t value;
    return ask(db, "SELECT 1 FROM pragma_encoding WHERE encoding = 'UTF-8'", &value, ret_right);
}

/* Ask for the log beside the file; *ret_set: it is in use. */
static int ask_log_mode(sqlite3 *db, bool *ret_set)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(db, "PRAGMA journal_mode = WAL", -1, &stmt, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(stmt);
    const unsigned char *mode = rc == SQLITE_ROW ? sqlite3_column_text(stmt, 0) : NULL;
    *ret_set = mode != NULL && strcmp((const char *)mode, "wal") == 0;
    (void)sqlite3_finalize(stmt); /* tells once more what step told */
    return rc == SQLITE_ROW ? SQLITE_OK : rc;
}

/* Another process may be doing the same just now. */
static int set_log_mode(struct connection *connection)
{
    for (;;) {
        bool is_set = false;
        int rc = ask_log_mode(connection->db, &is_set);
        if (is_set)
            return SQLITE_OK;
        if (rc != SQLITE_OK && (rc & 0xff) != SQLITE_BUSY && (rc & 0xff) != SQLITE_LOCKED)
            return rc;
        if (!pawli_mono_is_before(pawli_sqlite_mono(), connection->busy_until))
            return SQLITE_BUSY;
        (void)poll(NULL, 0, BUSY_WAIT_MS); /* there is nothing to wait on but time */
    }
}

/* Run one of the steps that were added, unless the file has it, and leave its name. */
static int add_step(sqlite3 *db, const struct pawli_sqlite_step *step)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(
        db, "INSERT INTO pawl_meta (name, value) VALUES (?1, 1) ON CONFLICT DO NOTHING", -1, &stmt,
        NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_text(stmt, 1, step->name, -1, SQLITE_STATIC);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(stmt);
    (void)sqlite3_finalize(stmt); /* tells once more what step told */
    if (rc != SQLITE_DONE)
        return rc;
    return sqlite3_changes(db) == 1 ? sqlite3_exec(db, step->sql, NULL, NULL, NULL) : SQLITE_OK;
}

static int add_steps(sqlite3 *db)
{
    int rc = SQLITE_OK;
    for (size_t i = 0; i < pawli_sqlite_steps_count && rc == SQLITE_OK; i++)
        if (is_added(&pawli_sqlite_steps[i]))
            rc = add_step(db, &pawli_sqlite_steps[i]);
    return rc;
}

static int create(pawl_sqlite *sqlite, sqlite3 *db)
{
    int rc = SQLITE_OK;
    for (size_t i = 0; i < pawli_sqlite_steps_count && rc == SQLITE_OK; i++)
        if (!is_added(&pawli_sqlite_steps[i]))
            rc = sqlite3_exec(db, pawli_sqlite_steps[i].sql, NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = add_steps(db);
    if (rc != SQLITE_OK)
        return rc;
    sqlite3_stmt *stmt = NULL;
    rc = sqlite3_prepare_v2(db, "UPDATE pawl_meta SET value = ?1 WHERE name = 'payload_max'", -1,
                            &stmt, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_int64(stmt, 1, sqlite->payload_max);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(stmt);
    (void)sqlite3_finalize(stmt); /* tells once more what step told */
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Make the tables unless another process has done it meanwhile: all or none. */
static pawl_code need_tables(pawl_sqlite *sqlite, pawl_err *err)
{
    struct connection *writer = &sqlite->writer;
    enum kind kind = KIND_NEW;
    int64_t version = 0;
    int rc = pawli_sqlite_simple(writer, S_BEGIN_WRITE);
    if (rc == SQLITE_OK)
        rc = kind_of(writer->db, &kind, &version);
    if (rc == SQLITE_OK && kind == KIND_NEW)
        rc = create(sqlite, writer->db);
    else if (rc == SQLITE_OK && kind == KIND_OLDER)
        rc = add_steps(writer->db);
    bool is_good = kind == KIND_NEW || kind == KIND_OURS || kind == KIND_OLDER;
    if (rc == SQLITE_OK && is_good)
        rc = pawli_sqlite_simple(writer, S_COMMIT);
    if (sqlite3_get_autocommit(writer->db) == 0)
        (void)pawli_sqlite_simple(writer, S_ROLLBACK); /* if it fails, closing the file does it */
    if (rc != SQLITE_OK)
        return pawli_sqlite_fail(sqlite, rc, err);
    return is_good ? PAWL_OK : refuse(sqlite, kind, version, err);
}

pawl_code pawli_sqlite_prepare(pawl_sqlite *sqlite, pawl_err *err)
{
    struct connection *writer = &sqlite->writer;
    enum kind kind = KIND_NEW;
    int64_t version = 0;
    bool is_right = false;
    assert(writer->db != NULL);
    /* Looked at before anything is changed: the file may be anybody's. */
    int rc = kind_of(writer->db, &kind, &version);
    if (rc == SQLITE_OK)
        rc = check_encoding(writer->db, &is_right);
    bool is_refused = kind == KIND_NEWER || kind == KIND_OTHER ||
                      (kind == KIND_NEW && sqlite->is_only_opened);
    if (rc == SQLITE_OK && is_refused)
        return refuse(sqlite, kind, version, err);
    if (rc == SQLITE_OK && !is_right)
        return pawli_fail(err, PAWL_INVALID,
                          "%.120s: its text encoding is not UTF-8; name another file",
                          sqlite->path);
    if (rc == SQLITE_OK && sqlite3_db_readonly(writer->db, "main") == 1)
        rc = SQLITE_READONLY;
    if (rc == SQLITE_OK)
        rc = set_log_mode(writer);
    if (rc != SQLITE_OK)
        return pawli_sqlite_fail_new(sqlite, rc, err);
    return kind == KIND_OURS ? PAWL_OK : need_tables(sqlite, err);
}

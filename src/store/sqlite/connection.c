/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * connection.c - connections to the file.
 * Owns:  how the file is opened and what every connection is set to; prepared statements; how long
 *        others' locks are waited for.
 * Never: lets SQLite checkpoint by itself (S4); waits longer than it was told to.
 */
#include "store/sqlite/sqlite.h"

#include "base/clock.h"

#include <assert.h>
#include <poll.h>
#include <string.h>

/* A lock of another process is asked for again after so long; at first sooner. */
#define BUSY_WAIT_MAX_MS 8

/* How much of the log stays on the disk when it begins anew. */
#define LOG_KEPT_BYTES "8388608"

pawl_mono pawli_sqlite_mono(void)
{
    const pawl_clock *clock = pawl_clock_system();
    return clock->mono(clock->user);
}

/* Another process has a lock that is needed. There is nothing to wait on but time. */
static int on_busy(void *user, int tries)
{
    const struct connection *connection = user;
    if (!pawli_mono_is_before(pawli_sqlite_mono(), connection->busy_until))
        return 0;
    int wait_ms = tries < BUSY_WAIT_MAX_MS ? 1 + tries : BUSY_WAIT_MAX_MS;
    (void)poll(NULL, 0, wait_ms); /* a signal may end it early: then it is asked sooner */
    return 1;
}

/* After each commit of the writer: how long the log is now. */
static int on_commit(void *user, sqlite3 *db, const char *name, int pages)
{
    (void)db, (void)name; /* the writer has one file */
    pawl_sqlite *sqlite = user;
    sqlite->wal_pages = pages;
    return SQLITE_OK;
}

/* Settings of a connection, none of which the file remembers. */
static int set_up(struct connection *connection)
{
    static const char settings[] = "PRAGMA wal_autocheckpoint = 0;" /* S4 */
                                   "PRAGMA synchronous = FULL;"
                                   "PRAGMA temp_store = MEMORY;"
                                   "PRAGMA journal_size_limit = " LOG_KEPT_BYTES ";";
    sqlite3 *db = connection->db;
    int rc = sqlite3_extended_result_codes(db, 1);
    if (rc == SQLITE_OK)
        rc = sqlite3_busy_handler(db, on_busy, connection);
    if (rc == SQLITE_OK)
        rc = sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *)NULL); /* S4 */
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(db, settings, NULL, NULL, NULL);
    return rc;
}

int pawli_sqlite_connect(pawl_sqlite *sqlite, struct connection *connection, int flags)
{
    assert(connection->db == NULL);
    connection->is_spoiled = false;
    connection->busy_until = pawli_mono_add_ms(pawli_sqlite_mono(), sqlite->call_timeout_ms);
    int rc = sqlite3_open_v2(sqlite->path, &connection->db,
                             flags | SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc == SQLITE_OK)
        rc = set_up(connection);
    else if (connection->db != NULL)
        rc = sqlite3_extended_errcode(connection->db);
    if (rc != SQLITE_OK)
        pawli_sqlite_disconnect(connection);
    else if (connection == &sqlite->writer)
        (void)sqlite3_wal_hook(connection->db, on_commit, sqlite); /* gives the one before: none */
    return rc;
}

void pawli_sqlite_disconnect(struct connection *connection)
{
    for (int i = 0; i < STATEMENTS_COUNT; i++)
        (void)sqlite3_finalize(connection->statements[i]); /* tells once more what was told */
    (void)sqlite3_close(connection->db); /* cannot be busy: it has no statements left */
    memset(connection, 0, sizeof(*connection));
}

int pawli_sqlite_reconnect(pawl_sqlite *sqlite, struct connection *connection)
{
    if (connection->db != NULL && !connection->is_spoiled)
        return SQLITE_OK;
    pawli_sqlite_disconnect(connection);
    return pawli_sqlite_connect(sqlite, connection, 0);
}

sqlite3_stmt *pawli_sqlite_statement(struct connection *connection, enum statement statement,
                                     int *ret_rc)
{
    assert(connection->db != NULL);
    sqlite3_stmt **kept = &connection->statements[statement];
    if (*kept != NULL)
        return *kept;
    *ret_rc = sqlite3_prepare_v3(connection->db, pawli_sqlite_texts[statement], -1,
                                 SQLITE_PREPARE_PERSISTENT, kept, NULL);
    if (*ret_rc != SQLITE_OK)
        *ret_rc = sqlite3_extended_errcode(connection->db);
    return *kept;
}

int pawli_sqlite_simple(struct connection *connection, enum statement statement)
{
    int rc = SQLITE_OK;
    sqlite3_stmt *stmt = pawli_sqlite_statement(connection, statement, &rc);
    if (stmt == NULL)
        return rc;
    rc = sqlite3_step(stmt);
    (void)sqlite3_reset(stmt); /* tells once more what step told */
    return rc == SQLITE_DONE || rc == SQLITE_ROW ? SQLITE_OK : rc;
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * fault.c - what a failure of SQLite means to a caller.
 * Owns:  the code and the text of each.
 * Never: tells anything of a job: no payload, no token. Of SQLite's own words only those that are
 *        the same for every failure of a kind.
 */
#include "store/sqlite/sqlite.h"

#include "base/error.h"

#include <string.h>

/* A path may be longer than an error's text: its end tells most. */
#define PATH_SHOWN_MAX 100

static const char *shown(const pawl_sqlite *sqlite)
{
    size_t len = strlen(sqlite->path);
    return len > PATH_SHOWN_MAX ? sqlite->path + len - PATH_SHOWN_MAX : sqlite->path;
}

pawl_code pawli_sqlite_fail(const pawl_sqlite *sqlite, int rc, pawl_err *err)
{
    const char *path = shown(sqlite);
    switch (rc & 0xff) {
    case SQLITE_NOMEM:
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return pawli_fail(err, PAWL_DOWN,
                          "%s: another process has held its lock for longer than the call may "
                          "take (call_timeout_ms is %lld)",
                          path, (long long)sqlite->call_timeout_ms);
    case SQLITE_FULL:
        return pawli_fail(err, PAWL_DOWN,
                          "%s: the disk is full, or the file at its limit; make room (nothing was "
                          "lost)",
                          path);
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return pawli_fail(err, PAWL_DOWN,
                          "%s: must not be written; give this user the right to write the file and "
                          "its folder (code %d)",
                          path, rc);
    case SQLITE_CANTOPEN:
        return pawli_fail(err, PAWL_DOWN,
                          "%s: cannot be opened; its folder must exist, and this user must be "
                          "allowed to write the folder and the files in it (code %d)",
                          path, rc);
    case SQLITE_NOTADB:
        return pawli_fail(err, PAWL_DOWN, "%s: is not a SQLite database; name another file", path);
    case SQLITE_CORRUPT:
    case SQLITE_CONSTRAINT: /* no statement of ours breaks one, on rows that we have written */
        return pawli_fail(err, PAWL_DOWN,
                          "%s: is damaged (code %d); stop all that use it, keep a copy, and put a "
                          "backup in its place or try the sqlite3 shell's .recover",
                          path, rc);
    case SQLITE_IOERR:
        return pawli_fail(err, PAWL_DOWN,
                          "%s: could not be read or written (code %d); look at the disk and at the "
                          "system's log",
                          path, rc);
    default:
        return pawli_fail(err, PAWL_DOWN, "%s: %s (code %d)", path, sqlite3_errstr(rc), rc);
    }
}

pawl_code pawli_sqlite_fail_new(const pawl_sqlite *sqlite, int rc, pawl_err *err)
{
    pawl_err inner;
    pawl_code code = pawli_sqlite_fail(sqlite, rc, &inner);
    return pawli_fail(err, rc == SQLITE_NOTADB ? PAWL_INVALID : code, "%s", inner.text);
}

pawl_code pawli_sqlite_fail_unknown(const pawl_sqlite *sqlite, int rc, pawl_err *err)
{
    return pawli_fail(err, PAWL_UNKNOWN,
                      "%s: writing it ended with %s (code %d), and it may or may not be there once "
                      "the file can be written again",
                      shown(sqlite), sqlite3_errstr(rc), rc);
}

bool pawli_sqlite_is_spoiling(int rc)
{
    switch (rc & 0xff) {
    case SQLITE_OK:
    case SQLITE_NOMEM:
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_FULL:
        return false;
    default:
        return true;
    }
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * checkpoint.c - brings the write-ahead log into the file, so that it does not grow for ever.
 * Owns:  when that is due; the file beside the file whose lock says who does it.
 * Never: checkpoints while anybody writes, or beside another: versions of SQLite before 3.51.3 may
 *        then lose pages (docs/adr/0008-checkpoint-under-the-write-lock.md). Never fails a call:
 *        what was committed is safe in the log.
 */
#include "store/sqlite/sqlite.h"

#include "base/clock.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* How long to wait for a writer of another process, and how much the log must have grown since a
 * checkpoint was last tried in vain. */
#define WRITERS_WAIT_MS 100
#define AGAIN_PAGES     100

#define LOCK_SUFFIX "-checkpoint"

/* Open the file whose lock it is. It is never removed: somebody may be about to lock it. To lock
 * it, it is enough to be allowed to read it. */
static bool open_lock(pawl_sqlite *sqlite)
{
    if (sqlite->checkpoint_fd >= 0)
        return true;
    struct stat status;
    size_t path_len = strlen(sqlite->path);
    char *path = malloc(path_len + sizeof(LOCK_SUFFIX));
    if (path == NULL)
        return false;
    memcpy(path, sqlite->path, path_len);
    memcpy(path + path_len, LOCK_SUFFIX, sizeof(LOCK_SUFFIX));
    if (stat(sqlite->path, &status) == 0)
        sqlite->checkpoint_fd = open(path, O_RDONLY | O_CREAT | O_CLOEXEC, status.st_mode & 0666);
    free(path);
    return sqlite->checkpoint_fd >= 0;
}

/* With both locks: nobody writes, so nobody can begin the log anew, and nobody else checkpoints. */
static void copy_pages(pawl_sqlite *sqlite)
{
    int pages = 0;
    int pages_done = 0;
    int rc = sqlite3_wal_checkpoint_v2(sqlite->checkpointer.db, "main", SQLITE_CHECKPOINT_PASSIVE,
                                       &pages, &pages_done);
    if (rc == SQLITE_OK && pages >= 0)
        sqlite->wal_pages_done = pages_done;
    else if (pawli_sqlite_is_spoiling(rc))
        sqlite->checkpointer.is_spoiled = true;
}

void pawli_sqlite_checkpoint(pawl_sqlite *sqlite)
{
    struct connection *writer = &sqlite->writer;
    sqlite->wal_pages_tried = sqlite->wal_pages;
    if (writer->db == NULL || writer->is_spoiled || !open_lock(sqlite) ||
        flock(sqlite->checkpoint_fd, LOCK_EX | LOCK_NB) != 0)
        return;
    /* A connection cannot checkpoint inside its own transaction: hence the second one. */
    if (pawli_sqlite_reconnect(sqlite, &sqlite->checkpointer) == SQLITE_OK) {
        writer->busy_until = pawli_mono_add_ms(pawli_sqlite_mono(), WRITERS_WAIT_MS);
        if (pawli_sqlite_simple(writer, S_BEGIN_WRITE) == SQLITE_OK) {
            copy_pages(sqlite);
            if (pawli_sqlite_simple(writer, S_ROLLBACK) != SQLITE_OK)
                writer->is_spoiled = true;
        }
    }
    (void)flock(sqlite->checkpoint_fd, LOCK_UN); /* cannot fail: it is held */
}

void pawli_sqlite_checkpoint_if_due(pawl_sqlite *sqlite)
{
    if (sqlite->wal_pages < sqlite->wal_pages_done || sqlite->wal_pages < sqlite->wal_pages_tried) {
        sqlite->wal_pages_done = 0; /* the log has begun anew */
        sqlite->wal_pages_tried = 0;
    }
    if (sqlite->wal_pages - sqlite->wal_pages_done < CHECKPOINT_PAGES)
        return;
    if (sqlite->wal_pages_tried > 0 && sqlite->wal_pages - sqlite->wal_pages_tried < AGAIN_PAGES)
        return;
    pawli_sqlite_checkpoint(sqlite);
}

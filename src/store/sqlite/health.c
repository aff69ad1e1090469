/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * health.c - whether a file, and the disk that it is on, are fit to keep jobs.
 * Owns:  which file systems will do, and how much room there must be.
 * Never: changes the file.
 */
#include "store/sqlite/sqlite.h"

#include "base/error.h"
#include "base/text.h"
#include "store/health.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#define ROOM_ERROR   (INT64_C(32) << 20)
#define ROOM_WARNING (INT64_C(256) << 20)
#define ANSWER_MAX   160
#define SYNC_FULL    2

/* ---- the disk */

/* File systems by the number that the kernel tells. What is not here is taken for a disk. */
struct file_system {
    unsigned long type;
    const char *name;
    enum pawli_health_level level;
};
static const struct file_system file_systems[] = {
    {0x6969, "nfs", PAWLI_HEALTH_ERROR},         {0xff534d42, "cifs", PAWLI_HEALTH_ERROR},
    {0xfe534d42, "smb2", PAWLI_HEALTH_ERROR},    {0x517b, "smb", PAWLI_HEALTH_ERROR},
    {0x00c36400, "ceph", PAWLI_HEALTH_ERROR},    {0x5346414f, "afs", PAWLI_HEALTH_ERROR},
    {0x01021997, "9p", PAWLI_HEALTH_ERROR},      {0x65735546, "fuse", PAWLI_HEALTH_WARNING},
    {0x01021994, "tmpfs", PAWLI_HEALTH_WARNING}, {0x858458f6, "ramfs", PAWLI_HEALTH_WARNING},
};

static pawl_code cannot_ask(const char *path, pawl_err *err)
{
    return pawli_fail(err, PAWL_DOWN, "%.120s: the file system does not tell about itself: %s",
                      path, strerror(errno));
}

static pawl_code tell_file_system(const char *path, const struct pawli_health *health,
                                  pawl_err *err)
{
    struct statfs found;
    struct pawli_health_about about = {.name = "file_system"};
    const char *name = "a disk";
    if (statfs(path, &found) != 0)
        return cannot_ask(path, err);
    for (size_t i = 0; i < sizeof(file_systems) / sizeof(file_systems[0]); i++)
        if ((unsigned long)found.f_type == file_systems[i].type) {
            about.level = file_systems[i].level;
            name = file_systems[i].name;
        }
    about.advice = about.level == PAWLI_HEALTH_ERROR
                       ? "move the file to a disk of this machine: its log does not work over a "
                         "network"
                       : "move the file to a disk: what is here may not outlive the machine";
    pawli_health_tell(health, &about, "%.160s is on %s", path, name);
    return PAWL_OK;
}

static pawl_code tell_room(const char *path, const struct pawli_health *health, pawl_err *err)
{
    struct statvfs found;
    struct pawli_health_about about = {
        .name = "disk",
        .advice = "make room: once it is full nothing can be enqueued, claimed or settled",
    };
    if (statvfs(path, &found) != 0)
        return cannot_ask(path, err);
    uint64_t bytes = (uint64_t)found.f_bavail * found.f_frsize;
    about.level = bytes < ROOM_ERROR     ? PAWLI_HEALTH_ERROR
                  : bytes < ROOM_WARNING ? PAWLI_HEALTH_WARNING
                                         : PAWLI_HEALTH_OK;
    pawli_health_tell(health, &about, "%" PRIu64 " MiB are free", bytes >> 20);
    return PAWL_OK;
}

/* ---- the file */

/* The first value of a pragma as text; a code of SQLite. */
static int ask(struct pass *pass, const char *sql, char ret_text[ANSWER_MAX])
{
    sqlite3_stmt *stmt = NULL;
    sqlite3 *db = pass->connection->db;
    int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW)
        (void)pawli_text_copy(ret_text, ANSWER_MAX, (const char *)sqlite3_column_text(stmt, 0));
    int failed = sqlite3_extended_errcode(db);
    (void)sqlite3_finalize(stmt); /* tells once more what step told */
    return rc == SQLITE_ROW ? SQLITE_OK : failed;
}

struct answers {
    char journal_mode[ANSWER_MAX];
    char synchronous[ANSWER_MAX];
    char check[ANSWER_MAX];
    char stuck_keys[ANSWER_MAX];
};

static bool ask_settings(struct pass *pass, void *args)
{
    struct answers *answers = args;
    int rc = ask(pass, "PRAGMA journal_mode", answers->journal_mode);
    if (rc == SQLITE_OK)
        rc = ask(pass, "PRAGMA synchronous", answers->synchronous);
    return rc == SQLITE_OK || pawli_sqlite_spoil(pass, rc);
}

static bool ask_check(struct pass *pass, void *args)
{
    struct answers *answers = args;
    int rc = ask(pass, "PRAGMA quick_check(1)", answers->check);
    if ((rc & 0xff) == SQLITE_CORRUPT) { /* that is an answer, too */
        (void)pawli_text_copy(answers->check, ANSWER_MAX, sqlite3_errstr(rc)); /* it fits */
        rc = SQLITE_OK;
    }
    return rc == SQLITE_OK || pawli_sqlite_spoil(pass, rc);
}

/* Keys of which all live jobs wait. As the check above, it goes through all of them. */
static bool ask_keys(struct pass *pass, void *args)
{
    struct answers *answers = args;
    int rc = ask(pass,
                 "SELECT count(*) FROM (SELECT DISTINCT queue_id, ordering_key FROM pawl_job "
                 "INDEXED BY pawl_job_waiting WHERE is_waiting = 1) AS w "
                 "WHERE NOT EXISTS (SELECT 1 FROM pawl_job AS f INDEXED BY pawl_job_first "
                 "WHERE f.queue_id = w.queue_id AND f.ordering_key = w.ordering_key "
                 "AND f.is_waiting = 0)",
                 answers->stuck_keys);
    return rc == SQLITE_OK || pawli_sqlite_spoil(pass, rc);
}

static void tell_settings(const struct pawli_health *health, const struct answers *answers)
{
    struct pawli_health_about about = {
        .name = "journal_mode",
        .level = strcmp(answers->journal_mode, "wal") == 0 ? PAWLI_HEALTH_OK : PAWLI_HEALTH_ERROR,
        .advice = "let every program leave journal_mode at WAL, and open the file again",
    };
    pawli_health_tell(health, &about, "journal_mode is %s", answers->journal_mode);
    bool is_full = answers->synchronous[0] >= '0' + SYNC_FULL;
    about = (struct pawli_health_about){
        .name = "synchronous",
        .level = is_full ? PAWLI_HEALTH_OK : PAWLI_HEALTH_ERROR,
        .advice = "PRAGMA synchronous must be FULL: without it a job that was acknowledged may be "
                  "gone when the power fails",
    };
    pawli_health_tell(health, &about, "synchronous is %s", answers->synchronous);
}

static pawl_code tell_check(pawl_store *store, const struct pawli_health *health,
                            struct answers *answers, pawl_err *err)
{
    struct pawli_health_about about = {
        .name = "integrity",
        .level = PAWLI_HEALTH_ERROR,
        .advice = "stop all that use the file, keep a copy, restore a backup, or try .recover of "
                  "the shell of SQLite",
    };
    pawl_code rc = pawli_sqlite_read(store, ask_check, answers, err);
    if (rc != PAWL_OK)
        return rc;
    bool is_whole = strcmp(answers->check, "ok") == 0;
    if (is_whole)
        about.level = PAWLI_HEALTH_OK;
    pawli_health_tell(
        health, &about, "%s%s",
        is_whole ? "quick_check finds nothing" : "quick_check: ", is_whole ? "" : answers->check);
    return PAWL_OK;
}

static pawl_code tell_keys(pawl_store *store, const struct pawli_health *health,
                           struct answers *answers, pawl_err *err)
{
    struct pawli_health_about about = {
        .name = "ordering_keys",
        .advice = "somebody has changed pawl_job by hand; see \"Keys that stand still\" in "
                  "docs/sqlite.md",
    };
    pawl_code rc = pawli_sqlite_read(store, ask_keys, answers, err);
    if (rc != PAWL_OK)
        return rc;
    if (strcmp(answers->stuck_keys, "0") != 0)
        about.level = PAWLI_HEALTH_ERROR;
    pawli_health_tell(health, &about, "keys whose jobs all wait, with nobody before them: %s",
                      answers->stuck_keys);
    return PAWL_OK;
}

pawl_code pawli_sqlite_health(pawl_store *store, const struct pawli_health *health, pawl_err *err)
{
    const char *path = pawli_sqlite_handle(store)->sqlite->path;
    struct answers answers = {.check = ""};
    pawl_code rc = tell_file_system(path, health, err);
    if (rc == PAWL_OK)
        rc = tell_room(path, health, err);
    if (rc == PAWL_OK)
        rc = pawli_sqlite_read(store, ask_settings, &answers, err);
    if (rc != PAWL_OK)
        return rc;
    tell_settings(health, &answers);
    rc = tell_check(store, health, &answers, err);
    if (rc != PAWL_OK || strcmp(answers.check, "ok") != 0)
        return rc; /* what is damaged is not asked any more */
    return tell_keys(store, health, &answers, err);
}

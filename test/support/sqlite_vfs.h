/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * sqlite_vfs.h - a layer between SQLite and the system's files that counts what SQLite asks for and
 * lets it fail on request. It becomes the default of the program once it is installed. Safe from
 * every thread, but for vfs_watch().
 */
#ifndef PAWLT_SQLITE_VFS_H
#define PAWLT_SQLITE_VFS_H

#include <stdbool.h>

/* What SQLite asks of files. */
enum vfs_kind {
    VFS_OPEN,
    VFS_READ,
    VFS_WRITE,
    VFS_SYNC,
    VFS_TRUNCATE,
    VFS_SIZE,
    VFS_LOCK,
    VFS_SHM_MAP,
    VFS_SHM_LOCK,
    VFS_DELETE,
    VFS_KINDS
};

/* How it fails. */
enum vfs_way {
    VFS_REFUSED, /* nothing is done */
    VFS_DONE,    /* it is done, and said to have failed */
    VFS_TORN,    /* of a write the first half is done; otherwise as REFUSED */
    VFS_FULL,    /* a write or truncate: the disk is full; otherwise as REFUSED */
    VFS_WAYS
};

struct vfs_fault {
    enum vfs_kind kind;
    enum vfs_way way;
    long nth;        /* of its kind from now on, from 1; 0: none fails */
    bool is_lasting; /* all after it fail, too */
};

const char *vfs_kind_name(enum vfs_kind kind);

void vfs_install(void);

/* Begin to count anew, and let this fail. */
void vfs_fail(const struct vfs_fault *fault);

/* Whether the one that was to fail has come. */
bool vfs_has_failed(void);

/* Neither count nor fail for a while; and go on. */
void vfs_rest(void);
void vfs_go_on(void);

/* Call `see` before each write to a database itself, not its log; NULL: no more. */
void vfs_watch(void (*see)(void *user), void *user);

#endif

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * sqlite_vfs.c - files that fail on request, for SQLite.
 * Owns:  the countdown; the layer that every file of the program goes through once it is installed.
 * Never: fails what nobody asked it to fail.
 */
#include "support/sqlite_vfs.h"

#include <pthread.h>
#include <sqlite3.h>

/* A file of ours, and the system's own behind it in the same memory. */
struct file {
    sqlite3_file base;
    bool is_database;
    sqlite3_file *real;
};

/* The functions that SQLite calls get no context of ours, so that this has to stand here. */
static struct {
    sqlite3_vfs vfs;
    sqlite3_vfs *real;
    struct vfs_fault fault;
    pthread_mutex_t mutex; /* for the next three, and `fault` */
    bool has_failed;
    bool is_resting;
    long count;
    void (*see)(void *user);
    void *user;
} layer = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void lock(void)
{
    (void)pthread_mutex_lock(&layer.mutex); /* cannot fail: it is valid and not ours */
}

static void unlock(void)
{
    (void)pthread_mutex_unlock(&layer.mutex); /* cannot fail: it is ours */
}

const char *vfs_kind_name(enum vfs_kind kind)
{
    static const char *const names[VFS_KINDS] = {
        "open", "read", "write",   "sync",     "truncate",
        "size", "lock", "shm map", "shm lock", "delete",
    };
    return names[kind];
}

static int error_of(enum vfs_kind kind)
{
    static const int errors[VFS_KINDS] = {
        [VFS_OPEN] = SQLITE_CANTOPEN,           [VFS_READ] = SQLITE_IOERR_READ,
        [VFS_WRITE] = SQLITE_IOERR_WRITE,       [VFS_SYNC] = SQLITE_IOERR_FSYNC,
        [VFS_TRUNCATE] = SQLITE_IOERR_TRUNCATE, [VFS_SIZE] = SQLITE_IOERR_FSTAT,
        [VFS_LOCK] = SQLITE_IOERR_LOCK,         [VFS_SHM_MAP] = SQLITE_IOERR_SHMMAP,
        [VFS_SHM_LOCK] = SQLITE_IOERR_SHMLOCK,  [VFS_DELETE] = SQLITE_IOERR_DELETE,
    };
    bool is_full = layer.fault.way == VFS_FULL && (kind == VFS_WRITE || kind == VFS_TRUNCATE);
    return is_full ? SQLITE_FULL : errors[kind];
}

static bool fails_now(enum vfs_kind kind)
{
    const struct vfs_fault *fault = &layer.fault;
    bool is_now = false;
    lock();
    if (!layer.is_resting && fault->nth != 0 && fault->kind == kind) {
        layer.count++;
        is_now = layer.count == fault->nth || (layer.count > fault->nth && fault->is_lasting);
        layer.has_failed = layer.has_failed || is_now;
    }
    unlock();
    return is_now;
}

/* Whether it is done although it fails. */
static bool is_done_all_the_same(void)
{
    return layer.fault.way == VFS_DONE;
}

#define REAL(file) (((struct file *)(file))->real)

/* ---- what files do */

static int file_close(sqlite3_file *file)
{
    return REAL(file)->pMethods->xClose(REAL(file));
}

static int file_read(sqlite3_file *file, void *to, int amount, sqlite3_int64 at)
{
    if (fails_now(VFS_READ))
        return error_of(VFS_READ);
    return REAL(file)->pMethods->xRead(REAL(file), to, amount, at);
}

static int file_write(sqlite3_file *file, const void *from, int amount, sqlite3_int64 at)
{
    if (((struct file *)file)->is_database && layer.see != NULL)
        layer.see(layer.user);
    if (!fails_now(VFS_WRITE))
        return REAL(file)->pMethods->xWrite(REAL(file), from, amount, at);
    if (layer.fault.way == VFS_TORN)
        (void)REAL(file)->pMethods->xWrite(REAL(file), from, amount / 2, at);
    if (is_done_all_the_same())
        (void)REAL(file)->pMethods->xWrite(REAL(file), from, amount, at);
    return error_of(VFS_WRITE);
}

static int file_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    if (!fails_now(VFS_TRUNCATE))
        return REAL(file)->pMethods->xTruncate(REAL(file), size);
    if (is_done_all_the_same())
        (void)REAL(file)->pMethods->xTruncate(REAL(file), size);
    return error_of(VFS_TRUNCATE);
}

static int file_sync(sqlite3_file *file, int flags)
{
    if (fails_now(VFS_SYNC))
        return error_of(VFS_SYNC);
    return REAL(file)->pMethods->xSync(REAL(file), flags);
}

static int file_size(sqlite3_file *file, sqlite3_int64 *ret_size)
{
    if (fails_now(VFS_SIZE))
        return error_of(VFS_SIZE);
    return REAL(file)->pMethods->xFileSize(REAL(file), ret_size);
}

static int file_lock(sqlite3_file *file, int level)
{
    if (fails_now(VFS_LOCK))
        return error_of(VFS_LOCK);
    return REAL(file)->pMethods->xLock(REAL(file), level);
}

static int file_unlock(sqlite3_file *file, int level)
{
    return REAL(file)->pMethods->xUnlock(REAL(file), level);
}

static int file_check_lock(sqlite3_file *file, int *ret_locked)
{
    return REAL(file)->pMethods->xCheckReservedLock(REAL(file), ret_locked);
}

static int file_control(sqlite3_file *file, int op, void *arg)
{
    return REAL(file)->pMethods->xFileControl(REAL(file), op, arg);
}

static int file_sector_size(sqlite3_file *file)
{
    return REAL(file)->pMethods->xSectorSize(REAL(file));
}

static int file_characteristics(sqlite3_file *file)
{
    return REAL(file)->pMethods->xDeviceCharacteristics(REAL(file));
}

static int file_shm_map(sqlite3_file *file, int page, int size, int is_extended,
                        void volatile **ret_page)
{
    if (fails_now(VFS_SHM_MAP))
        return error_of(VFS_SHM_MAP);
    return REAL(file)->pMethods->xShmMap(REAL(file), page, size, is_extended, ret_page);
}

static int file_shm_lock(sqlite3_file *file, int offset, int count, int flags)
{
    /* Giving a lock back does not fail. */
    if ((flags & SQLITE_SHM_LOCK) != 0 && fails_now(VFS_SHM_LOCK))
        return error_of(VFS_SHM_LOCK);
    return REAL(file)->pMethods->xShmLock(REAL(file), offset, count, flags);
}

static void file_shm_barrier(sqlite3_file *file)
{
    REAL(file)->pMethods->xShmBarrier(REAL(file));
}

static int file_shm_unmap(sqlite3_file *file, int is_deleted)
{
    return REAL(file)->pMethods->xShmUnmap(REAL(file), is_deleted);
}

static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = file_close,
    .xRead = file_read,
    .xWrite = file_write,
    .xTruncate = file_truncate,
    .xSync = file_sync,
    .xFileSize = file_size,
    .xLock = file_lock,
    .xUnlock = file_unlock,
    .xCheckReservedLock = file_check_lock,
    .xFileControl = file_control,
    .xSectorSize = file_sector_size,
    .xDeviceCharacteristics = file_characteristics,
    .xShmMap = file_shm_map,
    .xShmLock = file_shm_lock,
    .xShmBarrier = file_shm_barrier,
    .xShmUnmap = file_shm_unmap,
};

/* ---- files by name */

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                    int *ret_flags)
{
    (void)vfs; /* there is one */
    struct file *own = (struct file *)file;
    own->base.pMethods = NULL;
    if (fails_now(VFS_OPEN))
        return error_of(VFS_OPEN);
    own->real = (sqlite3_file *)(own + 1);
    own->is_database = (flags & SQLITE_OPEN_MAIN_DB) != 0;
    int rc = layer.real->xOpen(layer.real, name, own->real, flags, ret_flags);
    if (rc == SQLITE_OK)
        own->base.pMethods = &methods;
    return rc;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *name, int is_synced)
{
    (void)vfs; /* as above */
    if (fails_now(VFS_DELETE))
        return error_of(VFS_DELETE);
    return layer.real->xDelete(layer.real, name, is_synced);
}

void vfs_install(void)
{
    layer.real = sqlite3_vfs_find(NULL);
    layer.vfs = *layer.real;
    layer.vfs.zName = "pawl-test";
    layer.vfs.pNext = NULL;
    layer.vfs.szOsFile = (int)sizeof(struct file) + layer.real->szOsFile;
    layer.vfs.xOpen = vfs_open;
    layer.vfs.xDelete = vfs_delete;
    (void)sqlite3_vfs_register(&layer.vfs, 1); /* cannot fail: it is a valid one */
}

void vfs_fail(const struct vfs_fault *fault)
{
    lock();
    layer.fault = *fault;
    layer.has_failed = false;
    layer.is_resting = false;
    layer.count = 0;
    unlock();
}

bool vfs_has_failed(void)
{
    lock();
    bool has_failed = layer.has_failed;
    unlock();
    return has_failed;
}

static void set_resting(bool is_resting)
{
    lock();
    layer.is_resting = is_resting;
    unlock();
}

void vfs_rest(void)
{
    set_resting(true);
}

void vfs_go_on(void)
{
    set_resting(false);
}

void vfs_watch(void (*see)(void *user), void *user)
{
    layer.see = see;
    layer.user = user;
}

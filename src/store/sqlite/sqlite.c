/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * sqlite.c - the SQLite store: its life, its handles, and the table of the port's verbs.
 * Owns:  the check of its options; the locks; the random source that threads share.
 * Never: looks at a job.
 * Locks: sqlite.mutex (see sqlite.h) and sqlite.random_mutex, which is taken last and held over a
 *        draw only.
 */
#include "store/sqlite/sqlite.h"

#include "base/clock.h"
#include "base/error.h"
#include "core/id.h"
#include "core/policy.h"

#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CALL_TIMEOUT_DEFAULT_MS 5000
#define CALL_TIMEOUT_MAX_MS     (INT64_C(24) * 3600 * 1000)
/* A value of a row stays well below the 1 GB that SQLite takes. */
#define PAYLOAD_MAX_MOST (INT64_C(256) << 20)

/* ---- locks */

void pawli_sqlite_lock(pawl_sqlite *sqlite)
{
    int rc = pthread_mutex_lock(&sqlite->mutex);
    assert(rc == 0);
    (void)rc; /* used by the assert only */
}

void pawli_sqlite_unlock(pawl_sqlite *sqlite)
{
    int rc = pthread_mutex_unlock(&sqlite->mutex);
    assert(rc == 0);
    (void)rc; /* used by the assert only */
}

/* The minter draws in the front, the leader while it writes; the source need not be safe to share.
 */
static uint64_t draw(void *user)
{
    pawl_sqlite *sqlite = user;
    (void)pthread_mutex_lock(&sqlite->random_mutex); /* cannot fail: it is valid and not ours */
    uint64_t drawn = sqlite->source->next(sqlite->source->user);
    (void)pthread_mutex_unlock(&sqlite->random_mutex); /* cannot fail: it is ours */
    return drawn;
}

static bool init_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes) != 0)
        return false;
    bool is_made = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 &&
                   pthread_cond_init(condition, &attributes) == 0;
    (void)pthread_condattr_destroy(&attributes); /* cannot fail on a valid attribute */
    return is_made;
}

static bool init_locks(pawl_sqlite *sqlite)
{
    if (pthread_mutex_init(&sqlite->mutex, NULL) != 0)
        return false;
    if (pthread_mutex_init(&sqlite->random_mutex, NULL) != 0)
        goto destroy_mutex;
    if (init_condition(&sqlite->hinted))
        return true;

    (void)pthread_mutex_destroy(&sqlite->random_mutex); /* cannot fail: nobody has it */
destroy_mutex:
    (void)pthread_mutex_destroy(&sqlite->mutex); /* likewise */
    return false;
}

static void destroy_locks(pawl_sqlite *sqlite)
{
    (void)pthread_cond_destroy(&sqlite->hinted);        /* cannot fail: nobody waits */
    (void)pthread_mutex_destroy(&sqlite->random_mutex); /* cannot fail: nobody has it */
    (void)pthread_mutex_destroy(&sqlite->mutex);        /* likewise */
}

/* ---- handles */

static void close_handle(pawl_store *store)
{
    struct handle *handle = pawli_sqlite_handle(store);
    pawl_sqlite *sqlite = handle->sqlite;
    pawli_sqlite_disconnect(&handle->reader);
    pawli_sqlite_lock(sqlite);
    assert(sqlite->handles > 0);
    sqlite->handles--;
    pawli_sqlite_unlock(sqlite);
    free(handle);
}

static void limit(pawl_store *store, int64_t call_timeout_ms)
{
    struct handle *handle = pawli_sqlite_handle(store);
    int64_t most_ms = handle->sqlite->call_timeout_ms;
    bool is_shorter = call_timeout_ms >= 1 && call_timeout_ms < most_ms;
    handle->limit_ms = is_shorter ? call_timeout_ms : most_ms;
}

static const struct pawli_store_ops sqlite_ops = {
    .name = "sqlite",
    .close = close_handle,
    .enqueue = pawli_sqlite_enqueue,
    .claim = pawli_sqlite_claim,
    .mine = pawli_sqlite_mine,
    .renew = pawli_sqlite_renew,
    .settle = pawli_sqlite_settle,
    .release = pawli_sqlite_release,
    .reap = pawli_sqlite_reap,
    .prune = pawli_sqlite_prune,
    .get = pawli_sqlite_get,
    .list = pawli_sqlite_list,
    .attempts = pawli_sqlite_attempts,
    .leases = pawli_sqlite_leases,
    .worker_seen = pawli_sqlite_worker_seen,
    .worker_ended = pawli_sqlite_worker_ended,
    .workers = pawli_sqlite_workers,
    .queue_stats = pawli_sqlite_queue_stats,
    .queue_depths = pawli_sqlite_queue_depths,
    .queue_get = pawli_sqlite_queue_get,
    .queue_set = pawli_sqlite_queue_set,
    .queue_pause = pawli_sqlite_queue_pause,
    .cancel = pawli_sqlite_cancel,
    .redrive = pawli_sqlite_redrive,
    .discard = pawli_sqlite_discard,
    .cancel_where = pawli_sqlite_cancel_where,
    .redrive_where = pawli_sqlite_redrive_where,
    .discard_where = pawli_sqlite_discard_where,
    .now = pawli_sqlite_now,
    .wait = pawli_sqlite_wait,
    .wake = pawli_sqlite_wake,
    .limit = limit,
    .health = pawli_sqlite_health,
    .worklease = &pawli_sqlite_worklease_ops,
    .endpoint = &pawli_sqlite_endpoint_ops,
    .once = &pawli_sqlite_once_ops,
    .recent = pawli_sqlite_recent,
};

pawl_code pawl_sqlite_open(pawl_sqlite *sqlite, pawl_store **ret_store, pawl_err *err)
{
    if (sqlite == NULL)
        return pawli_fail(err, PAWL_INVALID, "sqlite is missing (NULL)");
    if (ret_store == NULL)
        return pawli_fail(err, PAWL_INVALID, "ret_store is missing (NULL)");
    struct handle *handle = calloc(1, sizeof(*handle));
    if (handle == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    handle->store.ops = &sqlite_ops;
    handle->store.limits = (struct pawli_store_limits){
        .payload_max = sqlite->payload_max,
        .shards = 1,
        .minter = sqlite->minter,
    };
    handle->sqlite = sqlite;
    handle->limit_ms = sqlite->call_timeout_ms;
    int rc = pawli_sqlite_connect(sqlite, &handle->reader, 0);
    if (rc != SQLITE_OK) {
        free(handle);
        return pawli_sqlite_fail(sqlite, rc, err);
    }
    pawli_sqlite_lock(sqlite);
    sqlite->handles++;
    handle->hints_seen = sqlite->hints;
    pawli_sqlite_unlock(sqlite);
    *ret_store = &handle->store;
    return PAWL_OK;
}

/* ---- life */

void pawl_sqlite_options_init(pawl_sqlite_options *options)
{
    if (options == NULL)
        return;
    *options = (pawl_sqlite_options){
        .clock = pawl_clock_system(),
        .random = pawl_random_system(),
        .payload_max = PAWL_PAYLOAD_MAX,
        .call_timeout_ms = CALL_TIMEOUT_DEFAULT_MS,
    };
}

static pawl_code check_options(const pawl_sqlite_options *options, pawl_err *err)
{
    const pawl_clock *clock = options->clock;
    if (clock == NULL || clock->mono == NULL || clock->wall == NULL)
        return pawli_fail(err, PAWL_INVALID, "clock is missing (NULL), or a function of it is");
    if (options->random == NULL || options->random->next == NULL)
        return pawli_fail(err, PAWL_INVALID, "random is missing (NULL), or its function is");
    pawl_code rc = pawli_check_range("payload_max", options->payload_max,
                                     (struct pawli_range){1, PAYLOAD_MAX_MOST}, err);
    if (rc == PAWL_OK)
        rc = pawli_check_range("call_timeout_ms", options->call_timeout_ms,
                               (struct pawli_range){1, CALL_TIMEOUT_MAX_MS}, err);
    return rc;
}

/* Without a connection; NULL: no memory. Takes `path` where it succeeds. */
static pawl_sqlite *sqlite_new(const pawl_sqlite_options *options, char *path)
{
    pawl_sqlite *sqlite = calloc(1, sizeof(*sqlite));
    if (sqlite == NULL)
        return NULL;
    sqlite->clock = options->clock;
    sqlite->source = options->random;
    sqlite->random = options->random == pawl_random_system()
                         ? *options->random /* safe to share by itself */
                         : (pawl_random){.next = draw, .user = sqlite};
    sqlite->payload_max = options->payload_max;
    sqlite->call_timeout_ms = options->call_timeout_ms;
    sqlite->is_only_opened = options->is_only_opened;
    sqlite->checkpoint_fd = -1;
    sqlite->minter = pawli_minter_new(sqlite->clock, &sqlite->random, 1);
    if (sqlite->minter == NULL)
        goto free_sqlite;
    if (!init_locks(sqlite))
        goto free_minter;
    sqlite->path = path;
    return sqlite;

free_minter:
    pawli_minter_free(sqlite->minter);
free_sqlite:
    free(sqlite);
    return NULL;
}

/* Payloads and tokens are for this user alone, until somebody gives others the right. SQLite makes
 * the files beside it alike. */
static void make_private(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (fd >= 0)
        (void)close(fd); /* it is empty; where it could not be made SQLite tells why */
}

pawl_code pawl_sqlite_new(const pawl_sqlite_options *options, pawl_sqlite **ret_sqlite,
                          pawl_err *err)
{
    pawl_sqlite_options defaults;
    char *path = NULL;
    if (ret_sqlite == NULL)
        return pawli_fail(err, PAWL_INVALID, "ret_sqlite is missing (NULL)");
    if (options == NULL) {
        pawl_sqlite_options_init(&defaults);
        options = &defaults;
    }
    pawl_code rc = check_options(options, err);
    if (rc == PAWL_OK)
        rc = pawli_sqlite_path(options->path, !options->is_only_opened, &path, err);
    if (rc != PAWL_OK)
        return rc;
    pawl_sqlite *sqlite = sqlite_new(options, path);
    if (sqlite == NULL) {
        free(path);
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    }
    if (!options->is_only_opened)
        make_private(sqlite->path);
    int opened = pawli_sqlite_connect(sqlite, &sqlite->writer,
                                      options->is_only_opened ? 0 : SQLITE_OPEN_CREATE);
    if (opened != SQLITE_OK)
        rc = pawli_sqlite_fail_new(sqlite, opened, err);
    else
        rc = pawli_sqlite_prepare(sqlite, err);
    if (rc == PAWL_OK)
        *ret_sqlite = sqlite;
    else
        pawl_sqlite_free(sqlite);
    return rc;
}

void pawl_sqlite_free(pawl_sqlite *sqlite)
{
    if (sqlite == NULL)
        return;
    assert(sqlite->handles == 0);
    if (sqlite->wal_pages > sqlite->wal_pages_done)
        pawli_sqlite_checkpoint(sqlite); /* so that the file alone holds all of it */
    pawli_sqlite_disconnect(&sqlite->writer);
    pawli_sqlite_disconnect(&sqlite->checkpointer);
    if (sqlite->checkpoint_fd >= 0)
        (void)close(sqlite->checkpoint_fd); /* nothing of worth is in it */
    destroy_locks(sqlite);
    pawli_minter_free(sqlite->minter);
    free(sqlite->path);
    free(sqlite);
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * postgres.c - the PostgreSQL store: its handles and the table of the port's verbs.
 * Owns:  the life of a handle; the check of its options.
 * Never: tells the connection string, which may hold a password; shares anything between handles
 *        but the hints that one of them may send for the others.
 */
#include "store/postgres/postgres.h"

#include "base/error.h"
#include "core/id.h"
#include "core/policy.h"

#include "base/clock.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define CALL_TIMEOUT_DEFAULT_MS 5000
#define HINT_WAIT_MS            1000
#define CALL_TIMEOUT_MAX_MS     (INT64_C(24) * 3600 * 1000)
/* A value of a row stays well below the 1 GiB that PostgreSQL takes. */
#define PAYLOAD_MAX_MOST (INT64_C(256) << 20)

static void free_handle(struct pawli_pg_handle *handle)
{
    /* A connection that is closed before its last answer was read may take the last hint along. */
    if (handle->link.is_owing)
        (void)pawli_pg_clear_link(&handle->link,
                                  pawli_wait_until(HINT_WAIT_MS)); /* closed anyway */
    pawli_pg_disconnect(&handle->link);
    pawli_pg_disconnect(&handle->listener);
    if (handle->wake_fd >= 0)
        (void)close(handle->wake_fd); /* nothing of worth is in it */
    pawli_stream_clear(&handle->stream);
    pawli_minter_free(handle->store.limits.minter);
    free(handle->conninfo);
    free(handle);
}

static void close_handle(pawl_store *store)
{
    free_handle(pawli_pg_handle_of(store));
}

static void limit(pawl_store *store, int64_t call_timeout_ms)
{
    struct pawli_pg_handle *handle = pawli_pg_handle_of(store);
    bool is_shorter = call_timeout_ms >= 1 && call_timeout_ms < handle->call_timeout_ms;
    handle->limit_ms = is_shorter ? call_timeout_ms : handle->call_timeout_ms;
}

static const struct pawli_store_ops postgres_ops = {
    .name = "postgres",
    .close = close_handle,
    .enqueue = pawli_pg_enqueue,
    .claim = pawli_pg_claim,
    .mine = pawli_pg_mine,
    .renew = pawli_pg_renew,
    .settle = pawli_pg_settle,
    .release = pawli_pg_release,
    .reap = pawli_pg_reap,
    .prune = pawli_pg_prune,
    .get = pawli_pg_get,
    .list = pawli_pg_list,
    .attempts = pawli_pg_attempts,
    .leases = pawli_pg_leases,
    .worker_seen = pawli_pg_worker_seen,
    .worker_ended = pawli_pg_worker_ended,
    .workers = pawli_pg_workers,
    .presences = pawli_pg_presences,
    .queue_stats = pawli_pg_queue_stats,
    .queue_depths = pawli_pg_queue_depths,
    .queue_get = pawli_pg_queue_get,
    .queue_set = pawli_pg_queue_set,
    .queue_pause = pawli_pg_queue_pause,
    .cancel = pawli_pg_cancel,
    .redrive = pawli_pg_redrive,
    .discard = pawli_pg_discard,
    .cancel_where = pawli_pg_cancel_where,
    .redrive_where = pawli_pg_redrive_where,
    .discard_where = pawli_pg_discard_where,
    .now = pawli_pg_now,
    .wait = pawli_pg_wait,
    .wake = pawli_pg_wake,
    .health = pawli_pg_health,
    .worklease = &pawli_pg_worklease_ops,
    .endpoint = &pawli_pg_endpoint_ops,
    .once = &pawli_pg_once_ops,
    .recent = pawli_pg_recent,
    .limit = limit,
};

/* ---- opening */

void pawl_postgres_options_init(pawl_postgres_options *options)
{
    if (options == NULL)
        return;
    *options = (pawl_postgres_options){
        .clock = pawl_clock_system(),
        .random = pawl_random_system(),
        .call_timeout_ms = CALL_TIMEOUT_DEFAULT_MS,
        .payload_max = PAWL_PAYLOAD_MAX,
    };
}

pawl_code pawli_pg_check_conninfo(const char *conninfo, pawl_err *err)
{
    if (conninfo == NULL)
        return PAWL_OK;
    char *message = NULL;
    PQconninfoOption *parsed = PQconninfoParse(conninfo, &message);
    bool is_valid = parsed != NULL;
    PQconninfoFree(parsed);
    PQfreemem(message); /* not told: it quotes the string */
    if (is_valid)
        return PAWL_OK;
    return pawli_fail(err, PAWL_INVALID,
                      "conninfo is no connection string (it is not shown, as it may hold a "
                      "password); it must be postgresql://... or keyword=value ...");
}

static pawl_code check_options(const pawl_postgres_options *options, pawl_err *err)
{
    const pawl_clock *clock = options->clock;
    if (clock == NULL || clock->mono == NULL || clock->wall == NULL)
        return pawli_fail(err, PAWL_INVALID, "clock is missing (NULL), or a function of it is");
    if (options->random == NULL || options->random->next == NULL)
        return pawli_fail(err, PAWL_INVALID, "random is missing (NULL), or its function is");
    pawl_code rc = pawli_check_range("call_timeout_ms", options->call_timeout_ms,
                                     (struct pawli_range){1, CALL_TIMEOUT_MAX_MS}, err);
    if (rc == PAWL_OK)
        rc = pawli_check_range("payload_max", options->payload_max,
                               (struct pawli_range){1, PAYLOAD_MAX_MOST}, err);
    if (rc == PAWL_OK)
        rc = pawli_pg_check_conninfo(options->conninfo, err);
    return rc;
}

/* A handle without a connection; NULL: no memory, or no file left for its wake. */
static struct pawli_pg_handle *handle_new(const pawl_postgres_options *options)
{
    const char *conninfo = options->conninfo != NULL ? options->conninfo : "";
    size_t conninfo_size = strlen(conninfo) + 1;
    struct pawli_pg_handle *handle = calloc(1, sizeof(*handle));
    if (handle == NULL)
        return NULL;
    handle->store.ops = &postgres_ops;
    handle->store.stream = &handle->stream;
    pawli_stream_init(&handle->stream);
    handle->store.limits.payload_max = options->payload_max;
    handle->random = options->random;
    handle->call_timeout_ms = options->call_timeout_ms;
    handle->limit_ms = options->call_timeout_ms;
    handle->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    handle->link.wake_fd = -1;
    handle->listener.wake_fd = handle->wake_fd;
    handle->conninfo = malloc(conninfo_size);
    if (handle->conninfo == NULL || handle->wake_fd < 0) {
        free_handle(handle);
        return NULL;
    }
    memcpy(handle->conninfo, conninfo, conninfo_size);
    return handle;
}

/* A database that is not set up is the caller's to correct; one that is away is not. */
static pawl_code fail_open(const struct pawli_pg_fault *fault, pawl_err *err)
{
    bool is_setup = fault->sqlstate[0] == '\0' ? fault->is_setup
                                               : strncmp(fault->sqlstate, "42", 2) == 0 ||
                                                     strcmp(fault->sqlstate, "3F000") == 0;
    pawl_err inner;
    pawl_code rc = pawli_pg_fail(fault, true, &inner);
    return pawli_fail(err, is_setup ? PAWL_INVALID : rc, "%s", inner.text);
}

pawl_code pawl_postgres_open(const pawl_postgres_options *options, pawl_store **ret_store,
                             pawl_err *err)
{
    if (options == NULL)
        return pawli_fail(err, PAWL_INVALID, "options is missing (NULL)");
    if (ret_store == NULL)
        return pawli_fail(err, PAWL_INVALID, "ret_store is missing (NULL)");
    pawl_code rc = check_options(options, err);
    if (rc != PAWL_OK)
        return rc;
    struct pawli_pg_handle *handle = handle_new(options);
    if (handle == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    struct pawli_pg_fault fault;
    if (!pawli_pg_call_connect(handle, pawli_wait_until(handle->call_timeout_ms), &fault)) {
        free_handle(handle);
        return fail_open(&fault, err);
    }
    handle->store.limits.shards = handle->shards;
    handle->store.limits.minter = pawli_minter_new(options->clock, options->random, handle->shards);
    if (handle->store.limits.minter == NULL) {
        free_handle(handle);
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    }
    /* Handles of many processes begin their walks of the shards at different ones. */
    handle->next_shard = (size_t)(options->random->next(options->random->user) %
                                  (uint64_t)handle->shards);
    *ret_store = &handle->store;
    return PAWL_OK;
}

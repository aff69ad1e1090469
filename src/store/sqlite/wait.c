/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * wait.c - hints that there may be work: from this process at once, from others by looking.
 * Owns:  waiting and waking; what is known of other processes' writes; the verb `now`.
 * Never: waits with a lock of the file; says that there is work (a claim does).
 */
#include "store/sqlite/sqlite.h"

#include "base/clock.h"
#include "base/error.h"

/* How often to look for what other processes have written, while somebody waits. */
#define LOOK_EVERY_MS 25

void pawli_sqlite_hint(pawl_sqlite *sqlite)
{
    sqlite->hints++;
    (void)pthread_cond_broadcast(&sqlite->hinted); /* cannot fail on a valid condition */
}

/* A failure here only means that no hint comes from others: polling never stops. */
bool pawli_sqlite_look_abroad(pawl_sqlite *sqlite)
{
    struct pass pass = {.sqlite = sqlite, .connection = &sqlite->writer};
    int64_t position = sqlite->position_seen;
    struct query query = pawli_sqlite_query(&pass, S_DATA_VERSION);
    int64_t version = pawli_sqlite_row(&query) ? pawli_sqlite_int(&query)
                                               : sqlite->data_version_seen;
    if (!pawli_sqlite_end(&query) || version == sqlite->data_version_seen)
        return false;
    /* Others have written. Whatever makes a job claimable draws a position. */
    sqlite->data_version_seen = version;
    (void)pawli_sqlite_last_position(&pass, &position); /* as above */
    bool is_new = position != sqlite->position_seen;
    sqlite->position_seen = position;
    return is_new;
}

/* Look abroad unless somebody did just now, or writes. Under the mutex, which it gives up. */
static void look_abroad(pawl_sqlite *sqlite)
{
    pawl_mono now = pawli_sqlite_mono();
    if (sqlite->is_led || pawli_mono_diff_ms(sqlite->looked_at, now) < LOOK_EVERY_MS)
        return;
    sqlite->looked_at = now;
    sqlite->is_led = true; /* S1 */
    pawli_sqlite_unlock(sqlite);
    sqlite->writer.busy_until = now;
    bool is_new = pawli_sqlite_reconnect(sqlite, &sqlite->writer) == SQLITE_OK &&
                  pawli_sqlite_look_abroad(sqlite);
    pawli_sqlite_hand_over(sqlite);
    pawli_sqlite_lock(sqlite);
    if (is_new)
        pawli_sqlite_hint(sqlite);
}

pawl_code pawli_sqlite_wait(pawl_store *store, int64_t timeout_ms, bool *ret_hint, pawl_err *err)
{
    (void)err; /* cannot fail */
    struct handle *handle = pawli_sqlite_handle(store);
    pawl_sqlite *sqlite = handle->sqlite;
    pawl_mono until = pawli_mono_add_ms(pawli_sqlite_mono(), timeout_ms);
    pawli_sqlite_lock(sqlite);
    while (!handle->is_woken && handle->hints_seen == sqlite->hints) {
        int64_t left_ms = pawli_mono_diff_ms(pawli_sqlite_mono(), until);
        if (left_ms <= 0)
            break;
        struct timespec next = pawli_wait_until(left_ms < LOOK_EVERY_MS ? left_ms : LOOK_EVERY_MS);
        if (pthread_cond_timedwait(&sqlite->hinted, &sqlite->mutex, &next) != 0)
            look_abroad(sqlite);
    }
    *ret_hint = handle->is_woken || handle->hints_seen != sqlite->hints;
    handle->is_woken = false;
    handle->hints_seen = sqlite->hints;
    pawli_sqlite_unlock(sqlite);
    return PAWL_OK;
}

void pawli_sqlite_wake(pawl_store *store)
{
    struct handle *handle = pawli_sqlite_handle(store);
    pawli_sqlite_lock(handle->sqlite);
    handle->is_woken = true;
    (void)pthread_cond_broadcast(&handle->sqlite->hinted); /* cannot fail on a valid condition */
    pawli_sqlite_unlock(handle->sqlite);
}

pawl_code pawli_sqlite_now(pawl_store *store, pawl_wall *ret_now, pawl_err *err)
{
    const pawl_clock *clock = pawli_sqlite_handle(store)->sqlite->clock;
    pawl_wall now = clock->wall(clock->user);
    if (now.us <= 0)
        return pawli_fail(err, PAWL_DOWN, "the store's clock gives %lld us; it must be after 1970",
                          (long long)now.us);
    *ret_now = now;
    return PAWL_OK;
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * guard.c - settings that are changed by If-Match are changed by one request at a time.
 * Owns:  the key at the store that stands for the settings of one queue or endpoint while they are
 *        compared and changed.
 * Never: keeps others out for longer than a change takes, or, where a server dies, for longer than
 *        HOLD_MS.
 * Locks: host->settings_lock, over the reading and the writing of settings.
 */
#include "serve/guard.h"

#include "serve/route.h"

#include "base/sha256.h"
#include "store/once.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define HOLD_MS 60000 /* more than a change can take */
#define MARK    "settings"

/* No key of a client is the same: those are hashed with a mark of their own before them. */
static void digest(const struct pawli_call *call, uint8_t *ret_key)
{
    struct pawli_sha256 hash;
    pawli_sha256_init(&hash);
    pawli_sha256_add(&hash, MARK, sizeof(MARK));
    pawli_sha256_add(&hash, call->route->name, strlen(call->route->name) + 1);
    pawli_sha256_add(&hash, call->captures[0], strlen(call->captures[0]) + 1);
    pawli_sha256_end(&hash, ret_key);
}

/* With the lock held. */
static pawl_code set_alone(struct pawli_call *call,
                           pawl_code (*set)(struct pawli_call *call, const void *wanted),
                           const void *wanted)
{
    struct pawli_once_args args = {.keep_ms = HOLD_MS, .hold_ms = HOLD_MS};
    struct pawli_once_end end = {.how = PAWLI_ONCE_DROP};
    struct pawli_once_found found = {.answer = NULL};
    digest(call, args.key);
    memcpy(args.digest, args.key, sizeof(args.digest));
    memcpy(end.key, args.key, sizeof(end.key));
    pawl_code code = pawli_once_begin(call->store, &args, &found, &call->err);
    free(found.answer);
    if (code != PAWL_OK)
        return code == PAWL_UNKNOWN ? PAWL_DOWN : code; /* nothing was changed */
    if (found.state == PAWLI_ONCE_UNDER_WAY) {
        pawli_answer_problem(call->answer, PAWLI_PROBLEM_CHANGED,
                             "another server is changing the settings: get them again");
        return PAWL_OK;
    }
    code = set(call, wanted);
    (void)!pawli_once_end(call->store, &end, NULL); /* else others are kept out for a while */
    return code;
}

pawl_code pawli_guarded(struct pawli_call *call,
                        pawl_code (*set)(struct pawli_call *call, const void *wanted),
                        const void *wanted)
{
    pthread_mutex_t *lock = call->host->settings_lock;
    bool is_compared = pawli_call_header(call, "If-Match") != NULL;
    (void)pthread_mutex_lock(lock); /* cannot fail: it is plain */
    pawl_code code = is_compared ? set_alone(call, set, wanted) : set(call, wanted);
    (void)pthread_mutex_unlock(lock);
    return code;
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * once.h - the part of the port for requests that are to be carried out once: a key, a digest of
 * what was asked under it, and the answer, kept for a while.
 *
 * Whoever carries a request out begins its key first, and ends it with the answer. A try that died
 * in between is taken over by the next one, after a while, with the same seed: ids that come of it
 * are those of the first try, so that the store's own memory of ids keeps it from doing anything
 * twice.
 */
#ifndef PAWLI_STORE_ONCE_H
#define PAWLI_STORE_ONCE_H

#include "store/store.h"

#define PAWLI_ONCE_KEY_LEN    32        /* bytes in a key, and in a digest */
#define PAWLI_ONCE_ANSWER_MAX (4 << 20) /* bytes in an answer */
#define PAWLI_ONCE_PRUNE_MAX  20        /* keys that have expired which one call clears away */

enum pawli_once_state {
    PAWLI_ONCE_NEW = 0,   /* nobody has asked before: carry it out */
    PAWLI_ONCE_AGAIN,     /* a try before this one has not ended: carry it out, with its seed */
    PAWLI_ONCE_UNDER_WAY, /* another one is carrying it out just now */
    PAWLI_ONCE_DONE,      /* the answer is there */
    PAWLI_ONCE_OTHER      /* the key was used for something else */
};

struct pawli_once_args {
    uint8_t key[PAWLI_ONCE_KEY_LEN];
    uint8_t digest[PAWLI_ONCE_KEY_LEN];
    int64_t seed;    /* of a first try */
    int64_t keep_ms; /* how long the key is remembered from now on, where it is new */
    int64_t hold_ms; /* how long nobody else may carry it out */
};

struct pawli_once_found {
    enum pawli_once_state state;
    int64_t seed; /* of the first try */
    pawl_wall at; /* of the first try, by the store's clock */
    void *answer; /* PAWLI_ONCE_DONE: owned by the caller, who frees it */
    size_t answer_len;
};

/* How a try ends. */
enum pawli_once_how {
    PAWLI_ONCE_KEEP = 0, /* with an answer, which is kept */
    PAWLI_ONCE_DROP,     /* nothing was done: the key is as if it had never been used */
    PAWLI_ONCE_LET_GO    /* nobody knows: the next try may begin at once */
};

struct pawli_once_end {
    uint8_t key[PAWLI_ONCE_KEY_LEN];
    enum pawli_once_how how;
    const void *answer;
    size_t answer_len;
};

struct pawli_once_ops {
    pawl_code (*begin)(pawl_store *store, const struct pawli_once_args *args,
                       struct pawli_once_found *ret_found, pawl_err *err);
    pawl_code (*end)(pawl_store *store, const struct pawli_once_end *end, pawl_err *err);
};

/* PAWL_INVALID: this store has no memory of keys. And what every verb says. */
PAWL_MUST_USE pawl_code pawli_once_begin(pawl_store *store, const struct pawli_once_args *args,
                                         struct pawli_once_found *ret_found, pawl_err *err);
PAWL_MUST_USE pawl_code pawli_once_end(pawl_store *store, const struct pawli_once_end *end,
                                       pawl_err *err);

#endif

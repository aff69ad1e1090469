/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * once.c - keys of requests in memory.
 * Owns:  the keys, their answers, and when they are forgotten.
 * Never: looks into an answer.
 */
#include "store/once.h"

#include "base/error.h"
#include "store/memory/memory.h"

#include <stdlib.h>
#include <string.h>

/* In the order in which they came, which is the one in which they expire. */
struct once {
    TAILQ_ENTRY(once) next;
    LIST_ENTRY(once) in_bucket;
    struct pawli_once_args args;
    pawl_wall at;
    int64_t held_until_us;
    int64_t expires_at_us;
    void *answer; /* NULL: none yet */
    size_t answer_len;
};

static void forget(pawl_memory *memory, struct once *once)
{
    TAILQ_REMOVE(&memory->onces, once, next);
    LIST_REMOVE(once, in_bucket);
    free(once->answer);
    free(once);
}

void pawli_memory_once_free(pawl_memory *memory)
{
    struct once *once;
    while ((once = TAILQ_FIRST(&memory->onces)) != NULL)
        forget(memory, once);
}

void pawli_memory_once_prune(pawl_memory *memory, size_t keys_max, pawl_wall now)
{
    struct once *once;
    for (size_t i = 0; i < keys_max; i++) {
        once = TAILQ_FIRST(&memory->onces);
        if (once == NULL || once->expires_at_us > now.us)
            return;
        forget(memory, once);
    }
}

/* A key is a hash: any two bytes of it are as good as others. */
static struct pawli_once_bucket *bucket_of(pawl_memory *memory, const uint8_t *key)
{
    return &memory->once_buckets[(key[0] << 8 | key[1]) % PAWLI_MEMORY_ONCE_BUCKETS];
}

static struct once *find(pawl_memory *memory, const uint8_t *key)
{
    struct once *once;
    for (once = LIST_FIRST(bucket_of(memory, key)); once != NULL; once = LIST_NEXT(once, in_bucket))
        if (memcmp(once->args.key, key, PAWLI_ONCE_KEY_LEN) == 0)
            return once;
    return NULL;
}

static pawl_code find_again(struct once *once, const struct pawli_once_args *args, int64_t now_us,
                            struct pawli_once_found *ret_found, pawl_err *err)
{
    bool is_same = memcmp(once->args.digest, args->digest, sizeof(args->digest)) == 0;
    struct pawli_once_found found = {.seed = once->args.seed, .at = once->at};
    found.state = !is_same                       ? PAWLI_ONCE_OTHER
                  : once->answer != NULL         ? PAWLI_ONCE_DONE
                  : once->held_until_us > now_us ? PAWLI_ONCE_UNDER_WAY
                                                 : PAWLI_ONCE_AGAIN;
    if (found.state == PAWLI_ONCE_AGAIN)
        once->held_until_us = now_us + args->hold_ms * 1000;
    if (found.state == PAWLI_ONCE_DONE) {
        found.answer = malloc(once->answer_len + 1);
        if (found.answer == NULL)
            return pawli_fail_plain(err, PAWL_NO_MEMORY);
        memcpy(found.answer, once->answer, once->answer_len);
        found.answer_len = once->answer_len;
    }
    *ret_found = found;
    return PAWL_OK;
}

static pawl_code begin(pawl_store *store, const struct pawli_once_args *args,
                       struct pawli_once_found *ret_found, pawl_err *err)
{
    pawl_wall now;
    pawl_code code = PAWL_OK;
    pawl_memory *memory = pawli_memory_enter(store, &now, err);
    if (memory == NULL)
        return PAWL_DOWN;
    pawli_memory_once_prune(memory, PAWLI_ONCE_PRUNE_MAX, now);
    struct once *once = find(memory, args->key);
    if (once != NULL && once->expires_at_us <= now.us) {
        forget(memory, once);
        once = NULL;
    }
    if (once != NULL) {
        code = find_again(once, args, now.us, ret_found, err);
    } else if ((once = calloc(1, sizeof(*once))) == NULL) {
        code = pawli_fail_plain(err, PAWL_NO_MEMORY);
    } else {
        once->args = *args;
        once->at = now;
        once->held_until_us = now.us + args->hold_ms * 1000;
        once->expires_at_us = now.us + args->keep_ms * 1000;
        TAILQ_INSERT_TAIL(&memory->onces, once, next);
        LIST_INSERT_HEAD(bucket_of(memory, args->key), once, in_bucket);
        *ret_found = (struct pawli_once_found){.seed = args->seed, .at = now};
    }
    pawli_memory_leave(memory);
    return code;
}

static pawl_code end_key(pawl_store *store, const struct pawli_once_end *end, pawl_err *err)
{
    pawl_wall now;
    void *copy = NULL;
    if (end->how == PAWLI_ONCE_KEEP) {
        copy = malloc(end->answer_len + 1);
        if (copy == NULL)
            return pawli_fail_plain(err, PAWL_NO_MEMORY);
        memcpy(copy, end->answer, end->answer_len);
    }
    pawl_memory *memory = pawli_memory_enter(store, &now, err);
    if (memory == NULL) {
        free(copy);
        return PAWL_DOWN;
    }
    struct once *once = find(memory, end->key);
    if (once != NULL && end->how == PAWLI_ONCE_KEEP) {
        free(once->answer);
        once->answer = copy;
        once->answer_len = end->answer_len;
        copy = NULL;
    } else if (once != NULL && once->answer != NULL) {
        /* Somebody else has ended it: what is kept stays. */
    } else if (once != NULL && end->how == PAWLI_ONCE_DROP) {
        forget(memory, once);
    } else if (once != NULL) {
        once->held_until_us = 0;
    }
    pawli_memory_leave(memory);
    free(copy);
    return PAWL_OK;
}

const struct pawli_once_ops pawli_memory_once_ops = {.begin = begin, .end = end_key};

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * joiner.c - one handle for many threads that enqueue single jobs: those that come while a call is
 *            under way go together in the next one.
 * Owns:  the line of those that wait, and who of them makes the call for all.
 * Never: answers before the call has ended that its row was in; lets a row that is wrong by itself
 *        come to the others; makes two calls at once; holds the lock over a call.
 * Locks: joiner.mutex.
 */
#include "pawl/joiner.h"

#include "base/error.h"
#include "store/check.h"
#include "store/store.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#define JOINED_MAX       1000
#define JOINED_BYTES_MAX (16u << 20) /* of payloads and headers in one call, about */

/* A thread and its row, on that thread's stack. */
struct waiter {
    const pawl_enqueue_row *row;
    pawl_enqueued result;
    pawl_code code; /* of the call */
    pawl_err err;
    bool is_done;
    pthread_cond_t cond; /* it is done, or it is its turn to make the call */
    STAILQ_ENTRY(waiter) next;
};

struct pawl_joiner {
    pawl_store *store;
    pthread_mutex_t mutex;
    STAILQ_HEAD(, waiter) line; /* mutex; in the order in which they came */
    size_t waiting;             /* mutex; in the line */
    bool is_calling;            /* mutex; one of the threads makes a call */
    /* Of the call under way: */
    struct waiter *joined[JOINED_MAX];
    pawl_enqueue_row rows[JOINED_MAX];
    pawl_enqueued results[JOINED_MAX];
    size_t count;
};

pawl_code pawl_joiner_new(pawl_store *store, pawl_joiner **ret_joiner, pawl_err *err)
{
    pawl_code rc = pawli_check_given("store", store, err);
    if (rc == PAWL_OK)
        rc = pawli_check_given("ret_joiner", ret_joiner, err);
    if (rc != PAWL_OK)
        return rc;
    pawl_joiner *joiner = calloc(1, sizeof(*joiner));
    if (joiner == NULL || pthread_mutex_init(&joiner->mutex, NULL) != 0) {
        free(joiner);
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    }
    joiner->store = store;
    STAILQ_INIT(&joiner->line);
    *ret_joiner = joiner;
    return PAWL_OK;
}

void pawl_joiner_free(pawl_joiner *joiner)
{
    if (joiner == NULL)
        return;
    assert(STAILQ_EMPTY(&joiner->line) && !joiner->is_calling);
    (void)pthread_mutex_destroy(&joiner->mutex); /* nobody has it */
    free(joiner);
}

static size_t bytes_of(const pawl_enqueue_row *row)
{
    return row->payload_len + (row->headers != NULL ? strlen(row->headers) : 0);
}

/* With the lock: the first of the line, as many as go together. */
static void gather(pawl_joiner *joiner)
{
    size_t bytes = 0;
    struct waiter *waiter;
    joiner->count = 0;
    while ((waiter = STAILQ_FIRST(&joiner->line)) != NULL && joiner->count < JOINED_MAX &&
           bytes < JOINED_BYTES_MAX) {
        STAILQ_REMOVE_HEAD(&joiner->line, next);
        joiner->waiting--;
        joiner->joined[joiner->count] = waiter;
        joiner->rows[joiner->count++] = *waiter->row;
        bytes += bytes_of(waiter->row);
    }
}

/* With the lock: what became of the call, to each. */
static void hand_out(pawl_joiner *joiner, pawl_code code, const pawl_err *err)
{
    for (size_t i = 0; i < joiner->count; i++) {
        struct waiter *waiter = joiner->joined[i];
        waiter->code = code;
        waiter->err = *err;
        waiter->result = joiner->results[i];
        if (code != PAWL_OK) /* by this id it can be asked for, or enqueued again */
            waiter->result = (pawl_enqueued){.code = code, .id = joiner->rows[i].id};
        waiter->is_done = true;
        (void)pthread_cond_signal(&waiter->cond);
    }
}

/* With the lock: make a call for all that wait. */
static void call(pawl_joiner *joiner)
{
    pawl_err err = {.code = PAWL_OK};
    joiner->is_calling = true;
    gather(joiner);
    (void)pthread_mutex_unlock(&joiner->mutex); /* here and below: cannot fail, it is plain */
    pawl_code code = pawli_enqueue_own(joiner->store, joiner->rows, joiner->count, joiner->results,
                                       &err);
    (void)pthread_mutex_lock(&joiner->mutex);
    joiner->is_calling = false;
    hand_out(joiner, code, &err);
    struct waiter *next = STAILQ_FIRST(&joiner->line);
    if (next != NULL)
        (void)pthread_cond_signal(&next->cond);
}

pawl_code pawl_joiner_enqueue(pawl_joiner *joiner, const pawl_enqueue_row *row,
                              pawl_enqueued *ret_result, pawl_err *err)
{
    pawl_code rc = pawli_check_given("joiner", joiner, err);
    if (rc == PAWL_OK)
        rc = pawli_check_given("row", row, err);
    if (rc == PAWL_OK)
        rc = pawli_check_given("ret_result", ret_result, err);
    if (rc == PAWL_OK) /* the limits of a handle never change */
        rc = pawli_check_enqueue(&joiner->store->limits, row, 1, err);
    if (rc != PAWL_OK)
        return rc;
    struct waiter waiter = {.row = row};
    if (pthread_cond_init(&waiter.cond, NULL) != 0)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    (void)pthread_mutex_lock(&joiner->mutex);
    STAILQ_INSERT_TAIL(&joiner->line, &waiter, next);
    joiner->waiting++;
    while (!waiter.is_done) {
        if (!joiner->is_calling && STAILQ_FIRST(&joiner->line) == &waiter)
            call(joiner);
        else
            (void)pthread_cond_wait(&waiter.cond, &joiner->mutex);
    }
    (void)pthread_mutex_unlock(&joiner->mutex);
    (void)pthread_cond_destroy(&waiter.cond); /* nobody waits for it */
    *ret_result = waiter.result;
    if (waiter.code != PAWL_OK && err != NULL)
        *err = waiter.err;
    return waiter.code;
}

size_t pawl_joiner_waiting(pawl_joiner *joiner)
{
    if (joiner == NULL)
        return 0;
    (void)pthread_mutex_lock(&joiner->mutex);
    size_t waiting = joiner->waiting;
    (void)pthread_mutex_unlock(&joiner->mutex);
    return waiting;
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * hint.c - waiting for a hint that there may be work, and waking who waits.
 * Owns:  the listening connection, made on the first wait and on its own; the test whether
 *        notifications arrive at all.
 * Never: makes a wait fail because the server is away, or a hint needed: polling never stops.
 * Locks: none. Only the file behind wake_fd is shared with other threads.
 */
#include "store/postgres/postgres.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define READY_CHANNEL  "pawl"      /* the SQL functions notify it */
#define MORE_CHANNEL   "pawl_more" /* a hint that says so is sent to both: S1 of stream.h */
#define TEST_CHANNEL   "pawl_test"
#define RETRY_MS       5000  /* after the listener was lost or could not be made */
#define DEAF_RETRY_MS  60000 /* after notifications did not arrive */
#define TEST_WAIT_MS   1000  /* how long the test's notification may take */
#define TEST_WORD_SIZE 17
#define ECHO_MS        (PAWLI_STREAM_GAP_MS + 1)

void pawli_pg_wake(pawl_store *store)
{
    struct pawli_pg_handle *handle = pawli_pg_handle_of(store);
    uint64_t one = 1;
    ssize_t written;
    do
        written = write(handle->wake_fd, &one, sizeof(one));
    while (written < 0 && errno == EINTR);
    /* A counter that is full is as good as woken. */
}

/* Whether somebody has called for a wake since this was last asked. */
static bool take_wake(struct pawli_pg_handle *handle)
{
    uint64_t count;
    return read(handle->wake_fd, &count, sizeof(count)) == (ssize_t)sizeof(count);
}

/* ---- the listener */

static void stop_listening(struct pawli_pg_handle *handle, int64_t retry_ms)
{
    pawli_pg_disconnect(&handle->listener);
    handle->listen_at = pawli_wait_until(retry_ms);
}

/* One statement without arguments on the listener, or on the link of the verbs. */
static bool say(struct pawli_pg_link *link, struct pawli_pg_statement *statement,
                struct timespec until)
{
    PGresult *answer = NULL;
    struct pawli_pg_exchange exchange = {
        .statements = statement, .statements_count = 1, .ret_answers = &answer};
    struct pawli_pg_fault fault = pawli_pg_exchange(link, &exchange, until);
    if (fault.fate == PAWLI_PG_DONE)
        PQclear(answer);
    return fault.fate == PAWLI_PG_DONE;
}

static bool listen_to(struct pawli_pg_handle *handle, struct timespec until)
{
    struct pawli_pg_fault fault;
    struct pawli_pg_statement ready = {.sql = "listen " READY_CHANNEL};
    struct pawli_pg_statement more = {.sql = "listen " MORE_CHANNEL};
    struct pawli_pg_statement test = {.sql = "listen " TEST_CHANNEL};
    return pawli_pg_connect(&handle->listener, handle->conninfo, handle->call_timeout_ms, until,
                            &fault) &&
           say(&handle->listener, &ready, until) && say(&handle->listener, &more, until) &&
           say(&handle->listener, &test, until);
}

/* What has come: hints, and the word of the test where one is under way (NULL: none). */
struct heard {
    const char *word;
    bool is_word;
    bool is_hint;
    bool is_more;
};

/* Read what the listener has. False: it is gone. */
static bool hear(struct pawli_pg_link *listener, struct heard *heard)
{
    PGnotify *notify;
    if (PQconsumeInput(listener->conn) != 1)
        return false;
    while ((notify = PQnotifies(listener->conn)) != NULL) {
        if (strcmp(notify->relname, READY_CHANNEL) == 0)
            heard->is_hint = true;
        else if (strcmp(notify->relname, MORE_CHANNEL) == 0)
            heard->is_more = true;
        else if (heard->word != NULL && strcmp(notify->extra, heard->word) == 0)
            heard->is_word = true;
        PQfreemem(notify);
    }
    return !listener->is_ending && PQstatus(listener->conn) == CONNECTION_OK;
}

/*
 * Whether a notification that is sent over the verbs' connection arrives at the listener. It must
 * be another connection: behind a pooler that gives each transaction another session, one's own
 * notification may come back with the answer, and no other ever arrives.
 */
static bool does_word_arrive(struct pawli_pg_handle *handle, struct timespec until)
{
    char word[TEST_WORD_SIZE];
    (void)snprintf(word, sizeof(word), "%016" PRIx64, /* always fits */
                   handle->random->next(handle->random->user));
    struct pawli_pg_statement notify = {.sql = "select pg_notify('" TEST_CHANNEL "', $1)"};
    pawli_pg_arg_text(&notify.args, word);
    bool is_said = !notify.args.is_failed && say(&handle->link, &notify, until);
    pawli_pg_args_clear(&notify.args);
    struct heard heard = {.word = word};
    while (is_said && !heard.is_word) {
        if (pawli_pg_await(&handle->listener, false, until) != PAWLI_PG_READY ||
            !hear(&handle->listener, &heard))
            return false;
    }
    return heard.is_word;
}

enum listening {
    IS_LISTENING,
    IS_DEAF,    /* everything answers, but notifications do not arrive */
    IS_AWAY,    /* the server cannot be reached */
    IS_TOO_SOON /* the time of the wait was not enough to find out, or somebody woke it */
};

static enum listening start_listening(struct pawli_pg_handle *handle, struct timespec until)
{
    struct pawli_pg_fault fault;
    struct timespec call_until = pawli_pg_sooner(until, pawli_wait_until(handle->call_timeout_ms));
    pawli_pg_disconnect(&handle->listener);
    if (!pawli_pg_is_alive(&handle->link) || !pawli_pg_clear_link(&handle->link, call_until)) {
        pawli_pg_disconnect(&handle->link);
        if (!pawli_pg_call_connect(handle, call_until, &fault))
            return IS_AWAY;
    }
    if (!listen_to(handle, call_until)) {
        pawli_pg_disconnect(&handle->listener);
        return pawli_pg_left_ms(until) == 0 ? IS_TOO_SOON : IS_AWAY;
    }
    struct timespec test_until = pawli_pg_sooner(until, pawli_wait_until(TEST_WAIT_MS));
    if (does_word_arrive(handle, test_until))
        return IS_LISTENING;
    bool is_late = pawli_pg_left_ms(test_until) == 0 && pawli_pg_left_ms(until) > 0;
    pawli_pg_disconnect(&handle->listener);
    return is_late && handle->link.conn != NULL ? IS_DEAF : IS_TOO_SOON;
}

/* Look again in a while: S1 of stream.h. */
static void echo(struct pawli_pg_handle *handle)
{
    handle->has_echo = true;
    handle->echo_at = pawli_wait_until(ECHO_MS);
}

/* Have a listener where one can be had now. True: it is new, and what came before it is not known.
 */
static bool renew_listener(struct pawli_pg_handle *handle, struct timespec until)
{
    if (handle->listener.conn != NULL || pawli_pg_left_ms(handle->listen_at) > 0)
        return false;
    switch (start_listening(handle, until)) {
    case IS_LISTENING:
        handle->is_deaf = false;
        echo(handle); /* a hint that it did not hear may stand for what comes */
        return true;
    case IS_DEAF:
        handle->is_deaf = true;
        handle->listen_at = pawli_wait_until(DEAF_RETRY_MS);
        return false;
    case IS_AWAY:
        handle->listen_at = pawli_wait_until(RETRY_MS);
        return false;
    case IS_TOO_SOON:
        return false;
    }
    assert(false);
    return false;
}

/* ---- waiting */

/* Whether it is time for the second look that a hint has asked for. */
static bool take_echo(struct pawli_pg_handle *handle)
{
    bool is_due = handle->has_echo && pawli_pg_left_ms(handle->echo_at) == 0;
    handle->has_echo = handle->has_echo && !is_due;
    return is_due;
}

/* Wait for a hint, a wake, the time of a second look or the end of the time. */
static bool wait_on(struct pawli_pg_handle *handle, struct timespec end)
{
    while (pawli_pg_left_ms(end) > 0) {
        if (take_echo(handle))
            return true;
        struct timespec until = handle->has_echo ? pawli_pg_sooner(end, handle->echo_at) : end;
        if (handle->listener.conn == NULL) {
            struct pollfd wake = {.fd = handle->wake_fd, .events = POLLIN};
            int64_t left_ms = pawli_pg_left_ms(until);
            (void)poll(&wake, 1, left_ms < INT32_MAX ? (int)left_ms : INT32_MAX); /* or a signal */
            if (take_wake(handle))
                return true;
            continue;
        }
        struct heard heard = {0};
        enum pawli_pg_waited waited = pawli_pg_await(&handle->listener, false, until);
        if (waited == PAWLI_PG_READY && !hear(&handle->listener, &heard))
            stop_listening(handle, RETRY_MS);
        if (heard.is_more)
            echo(handle);
        if (heard.is_hint || (waited == PAWLI_PG_WOKEN && take_wake(handle)))
            return true;
    }
    return false;
}

pawl_code pawli_pg_wait(pawl_store *store, int64_t timeout_ms, bool *ret_hint, pawl_err *err)
{
    (void)err; /* cannot fail */
    struct pawli_pg_handle *handle = pawli_pg_handle_of(store);
    struct timespec until = pawli_wait_until(timeout_ms);
    *ret_hint = take_wake(handle) || renew_listener(handle, until) || wait_on(handle, until);
    return PAWL_OK;
}

pawl_code pawl_postgres_hears(pawl_store *store, bool *ret_hears, pawl_err *err)
{
    if (store == NULL || store->ops->wait != pawli_pg_wait)
        return pawli_fail(err, PAWL_INVALID, "store is not a handle on a PostgreSQL store");
    if (ret_hears == NULL)
        return pawli_fail(err, PAWL_INVALID, "ret_hears is missing (NULL)");
    struct pawli_pg_handle *handle = pawli_pg_handle_of(store);
    enum listening found = start_listening(handle, pawli_wait_until(handle->call_timeout_ms));
    if (found == IS_AWAY || found == IS_TOO_SOON)
        return pawli_fail(err, PAWL_DOWN,
                          "the server could not be asked whether notifications "
                          "arrive");
    handle->is_deaf = found == IS_DEAF;
    if (handle->is_deaf)
        handle->listen_at = pawli_wait_until(DEAF_RETRY_MS);
    *ret_hears = found == IS_LISTENING;
    return PAWL_OK;
}

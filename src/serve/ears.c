/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * ears.c - those who listen to changes: suspended requests that go on when there is something to
 *          tell, not a thread each.
 * Owns:  who listens, and when they are to hear that the server is still there.
 * Never: waits for a listener: who reads too slowly is cut off, or told that changes were lost.
 * Locks: serve.ears_lock; the stream's and serve.grants_lock within it.
 */
#include "serve/ears.h"

#include "serve/loop.h"
#include "serve/stream.h"

#include "base/clock.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

#define PIECE 16384 /* bytes that are written at once, about */
#define BEAT  ":\n\n"

/* One of them. */
struct pawli_ear {
    LIST_ENTRY(pawli_ear) in_ears;
    struct pawli_exchange *exchange;
    bool is_suspended;
    bool is_over; /* its token is good no more */
    size_t told;  /* of the answer's bytes */
    pawl_mono beat_at;
};

static void wake(struct pawli_ear *ear)
{
    if (!ear->is_suspended)
        return;
    ear->is_suspended = false;
    MHD_resume_connection(ear->exchange->connection);
    pawli_loop_wake(ear->exchange->loop); /* the ear cannot end meanwhile: ears_lock */
}

void pawli_ears_wake(void *user)
{
    struct pawli_serve *serve = user;
    struct pawli_ear *ear;
    (void)pthread_mutex_lock(&serve->ears_lock); /* here and below: cannot fail, it is plain */
    for (ear = LIST_FIRST(&serve->ears); ear != NULL; ear = LIST_NEXT(ear, in_ears))
        wake(ear);
    (void)pthread_mutex_unlock(&serve->ears_lock);
}

/* With the lock held: whether its token is good, as the file has it now. A request ends before that
 * changes; who listens does not. */
static bool is_let_in(struct pawli_ear *ear)
{
    struct pawli_serve *serve = ear->exchange->serve;
    struct pawli_grant *grant = &ear->exchange->call.listening->grant;
    const struct pawli_grant *found = NULL;
    pawl_wall now = serve->clock->wall(serve->clock->user);
    (void)pthread_mutex_lock(&serve->grants_lock);
    for (size_t i = 0; i < serve->grants.count; i++)
        if (pawli_hash_is_same(serve->grants.rows[i].hash, grant->hash))
            found = &serve->grants.rows[i];
    bool is_good = found != NULL && (found->scopes & PAWLI_SCOPE_READ) != 0 &&
                   (found->expires_at.us == 0 || now.us < found->expires_at.us);
    if (is_good)
        *grant = *found; /* it may be for other queues now */
    bool is_needed = serve->has_tokens;
    (void)pthread_mutex_unlock(&serve->grants_lock);
    return is_good || !is_needed;
}

void pawli_ears_look(struct pawli_serve *serve)
{
    struct pawli_ear *ear;
    pawl_mono now = pawli_serve_now(serve);
    bool is_draining = atomic_load(&serve->is_draining);
    (void)pthread_mutex_lock(&serve->ears_lock);
    for (ear = LIST_FIRST(&serve->ears); ear != NULL; ear = LIST_NEXT(ear, in_ears)) {
        ear->is_over = ear->is_over || !is_let_in(ear);
        if (is_draining || ear->is_over || !pawli_mono_is_before(now, ear->beat_at))
            wake(ear);
    }
    (void)pthread_mutex_unlock(&serve->ears_lock);
}

/* With the lock held: what is to be told next. False: there is nothing. */
static bool fill(struct pawli_ear *ear, bool *ret_has_failed)
{
    struct pawli_exchange *exchange = ear->exchange;
    struct pawli_serve *serve = exchange->serve;
    struct pawli_buffer *body = &exchange->answer.body;
    pawl_mono now = pawli_serve_now(serve);
    if (ear->told < body->len)
        return true;
    body->len = 0;
    ear->told = 0;
    *ret_has_failed = !pawli_stream_read(serve->stream, exchange->call.listening, PIECE, body);
    if (!*ret_has_failed && body->len == 0 && !pawli_mono_is_before(now, ear->beat_at))
        *ret_has_failed = !pawli_buffer_put(body, BEAT, strlen(BEAT));
    if (body->len > 0)
        ear->beat_at = pawli_mono_add_ms(now, serve->limits.beat_ms);
    return body->len > 0;
}

/* Called by the library when the client has taken what it was given. */
static ssize_t read_ear(void *user, uint64_t at, char *to, size_t size)
{
    struct pawli_ear *ear = user;
    struct pawli_exchange *exchange = ear->exchange;
    struct pawli_serve *serve = exchange->serve;
    bool has_failed = false;
    ssize_t result = 0;
    (void)at; /* ours is told by `told` */
    (void)pthread_mutex_lock(&serve->ears_lock);
    if (!ear->is_over && fill(ear, &has_failed)) {
        const struct pawli_buffer *body = &exchange->answer.body;
        size_t len = body->len - ear->told < size ? body->len - ear->told : size;
        memcpy(to, body->bytes + ear->told, len);
        ear->told += len;
        result = (ssize_t)len;
        pawli_peers_until(&serve->peers, exchange->peer,
                          pawli_mono_add_ms(pawli_serve_now(serve), serve->limits.slack_ms));
    } else if (has_failed || ear->is_over || atomic_load(&serve->is_draining)) {
        result = has_failed ? MHD_CONTENT_READER_END_WITH_ERROR : MHD_CONTENT_READER_END_OF_STREAM;
    } else {
        ear->is_suspended = true;
        pawli_peers_until(&serve->peers, exchange->peer, PAWLI_MONO_NEVER);
        MHD_suspend_connection(exchange->connection);
    }
    (void)pthread_mutex_unlock(&serve->ears_lock);
    return result;
}

struct MHD_Response *pawli_ear_begin(struct pawli_exchange *exchange)
{
    struct pawli_serve *serve = exchange->serve;
    size_t before = atomic_fetch_add(&serve->figures.listeners, 1);
    struct pawli_ear *ear = before < serve->limits.listeners ? calloc(1, sizeof(*ear)) : NULL;
    struct MHD_Response *response = NULL;
    if (ear != NULL)
        response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, PIECE, read_ear, ear, NULL);
    if (response == NULL) {
        free(ear);
        (void)atomic_fetch_sub(&serve->figures.listeners, 1);
        pawli_answer_problem(&exchange->answer, PAWLI_PROBLEM_BUSY,
                             "%zu listen already; try again later", before);
        return NULL;
    }
    ear->exchange = exchange;
    ear->beat_at = pawli_mono_add_ms(pawli_serve_now(serve), serve->limits.beat_ms);
    exchange->ear = ear;
    (void)pthread_mutex_lock(&serve->ears_lock);
    LIST_INSERT_HEAD(&serve->ears, ear, in_ears);
    (void)pthread_mutex_unlock(&serve->ears_lock);
    pawli_lookout_wake(serve);
    return response;
}

void pawli_ear_end(struct pawli_exchange *exchange)
{
    struct pawli_serve *serve = exchange->serve;
    if (exchange->ear == NULL)
        return;
    (void)pthread_mutex_lock(&serve->ears_lock);
    LIST_REMOVE(exchange->ear, in_ears);
    (void)pthread_mutex_unlock(&serve->ears_lock);
    free(exchange->ear);
    exchange->ear = NULL;
    exchange->waited_us = pawli_serve_now(serve).us - exchange->began.us; /* it took no time */
    (void)atomic_fetch_sub(&serve->figures.listeners, 1);
}

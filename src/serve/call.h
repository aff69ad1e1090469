/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * call.h - one request as those who carry it out see it: nothing of sockets, nothing of HTTP beyond
 * names and values. What they answer goes into call->answer.
 */
#ifndef PAWLI_SERVE_CALL_H
#define PAWLI_SERVE_CALL_H

#include "serve/access.h"
#include "serve/problem.h"
#include "serve/uri.h"

#define PAWLI_CAPTURES_MAX 2
#define PAWLI_PAIRS_MAX    100 /* headers of a request */

struct pawl_endpoint_settings;
struct pawli_stream;
struct pawli_endpoint_room;
struct pawli_made_secret;
struct pawli_tested;

/* A header of the request. */
struct pawli_pair {
    const char *name;
    const char *value;
};

/*
 * What only a program with webhooks can do: who links the server need not link what they need.
 * `user` is the same for all of them.
 */
struct pawli_webhooks {
    /* Check an endpoint's URL and its list of statuses, where they are there, and make them normal:
     * they point into `room` then. PAWL_INVALID names what is wrong. */
    pawl_code (*check)(void *user, struct pawl_endpoint_settings *settings,
                       struct pawli_endpoint_room *room, pawl_err *err);
    /* Make a secret, or look whether made->secret is one. */
    pawl_code (*secret)(void *user, struct pawli_made_secret *made, pawl_err *err);
    /* Send one event to an endpoint, here and now. Blocks as long as that takes. */
    pawl_code (*test)(void *user, pawl_store *store, const char *name,
                      struct pawli_tested *ret_tested, pawl_err *err);
    void *user;
};

/* What the server knows of itself. */
struct pawli_host {
    const struct pawli_webhooks *webhooks; /* NULL: it was built without */
    struct pawli_stream *stream;           /* where changes are told; NULL: nowhere */
    pawl_code (*metrics)(void *user, struct pawli_buffer *to, pawl_err *err);
    bool (*is_draining)(void *user);
    int64_t reaper_interval_ms; /* PAWL_DEFAULT: the derived one */
    const pawl_clock *clock;
    void *user;
    void *settings_lock; /* pthread_mutex_t: who changes settings by If-Match holds it */
    void *test_lock;     /* pthread_mutex_t: who tests an endpoint holds it */
};

struct pawli_route;
struct pawli_claiming;
struct pawli_cursor;
struct pawli_once;

struct pawli_call {
    const struct pawli_route *route;
    const char *captures[PAWLI_CAPTURES_MAX];
    const struct pawli_uri *uri;
    const struct pawli_pair *headers;
    size_t headers_count;
    char *body; /* written over */
    size_t body_len;
    const struct pawli_grant *grant;
    const struct pawli_host *host;
    pawl_store *store; /* NULL: the route needs none */
    struct pawli_answer *answer;
    pawl_err err;

    const struct pawli_once *once; /* see once.h; NULL: there is no Idempotency-Key */

    /* Of bodies that come in pieces: how many lines there were before this one. */
    int64_t lines;
    bool is_last;
    bool has_ended; /* nothing more of the body is wanted */

    /* Of a claim: see claim.h. Freed by pawli_call_clear(). */
    struct pawli_claiming *claiming;
    bool is_waiting; /* it found nothing, and may wait: there is no answer yet */

    /* Of one who listens: see stream.h. Freed by pawli_call_clear(). */
    struct pawli_cursor *listening;
};

/*
 * Carry it out. PAWL_OK: the answer is there (or, where call->is_waiting is set, is not yet). Any
 * other code is told as a problem by whoever calls, with call->err.
 */
typedef pawl_code (*pawli_handler)(struct pawli_call *call);

/* Run the route's handler, and tell what goes wrong. Gives the handler's code. */
pawl_code pawli_call_run(struct pawli_call *call);

/*
 * Tell why it is not carried out, or not to its end: as a problem; or, of a stream some of whose
 * lines were taken, behind what was said of these, as the verdict on the next line. Nothing more of
 * the body is wanted then.
 */
void pawli_call_refuse(struct pawli_call *call, enum pawli_problem problem, const char *why);
void pawli_call_fail(struct pawli_call *call, pawl_code code); /* the same, by call->err */

/* Free what it holds beyond what it borrows. */
void pawli_call_clear(struct pawli_call *call);

/* The value of a header, by its name in any case; NULL: there is none. */
const char *pawli_call_header(const struct pawli_call *call, const char *name);

/* Whether its token is for this queue; false: the answer says that it is not. */
bool pawli_call_may(struct pawli_call *call, const char *queue);

/* Tell those who listen that a job is in that state now. `queue` may be empty: it is not known.
 * `state` may be NULL: somebody is to find out. */
void pawli_call_changed(const struct pawli_call *call, const pawl_id *job, const char *queue,
                        const char *state);
/* The same of some jobs of a queue, or (NULL) of any: which ones is not known. */
void pawli_call_changed_some(const struct pawli_call *call, const char *queue);

/* The same of a job's queue, which the answer does not name: who asks may not know of it. */
bool pawli_call_may_job(struct pawli_call *call, const pawl_job *job);

/* The answer will be JSON. */
struct pawli_writer;
void pawli_call_json(struct pawli_call *call, unsigned status, struct pawli_writer *ret_writer);
/* What the handler returns when all of it was written. Where memory ran out, and the request was
 * one that changes something, that has been done: PAWL_UNKNOWN, since the client cannot know. */
pawl_code pawli_call_done(struct pawli_call *call, const struct pawli_writer *writer);

#endif

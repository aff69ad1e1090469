/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * serve.h - the HTTP server: starts, drains, ends.
 */
#ifndef PAWLI_SERVE_SERVE_H
#define PAWLI_SERVE_SERVE_H

#include "pawl/worker.h"
#include "serve/access.h"
#include "serve/call.h"
#include "server/listen.h"

#define PAWLI_LISTENERS_MAX 8

/* The bounds on those who ask. */
struct pawli_serve_limits {
    unsigned connections;             /* at once, on each listener */
    unsigned connections_per_address; /* 0: no bound of its own */
    int64_t head_ms;                  /* to send the head of a request */
    int64_t idle_ms;                  /* a connection between two requests, or that does nothing */
    int64_t slack_ms;                 /* of a body and of an answer, beyond PAWLI_PEER_RATE */
    size_t head_bytes;                /* of the head of a request */
    size_t memory_bytes;              /* of all bodies and answers at once, about */
    size_t waiting;                   /* claims that wait */
    size_t threads;                   /* that ask the store */
    size_t listeners;                 /* to changes */
    int64_t beat_ms;                  /* after so long without a change they hear that it lives */
};
void pawli_serve_limits_init(struct pawli_serve_limits *limits);

struct pawli_serve_options {
    const struct pawli_listener *listeners; /* open; taken over, also where it fails */
    size_t listeners_count;
    pawl_opener opener;         /* of handles; copied */
    struct pawli_grants grants; /* taken over, also where it fails */
    bool has_tokens;            /* every request needs one of `grants` */
    struct pawli_serve_limits limits;
    const struct pawli_webhooks *webhooks; /* borrowed; NULL: there are none */
    pawl_metrics *metrics;                 /* shown with the server's own; NULL: none */
    pawl_watch watch;
    int64_t reaper_interval_ms; /* by which readiness is judged; PAWL_DEFAULT: the derived one */
};

struct pawli_serve;

/* Start it: it answers from here on. PAWL_INVALID: a listener can be reached from other machines,
 * and no tokens are needed. PAWL_NO_MEMORY, PAWL_DOWN. */
pawl_code pawli_serve_start(struct pawli_serve_options *options, struct pawli_serve **ret_serve,
                            pawl_err *err);

/* Other tokens from now on, which it takes over. */
void pawli_serve_set_grants(struct pawli_serve *serve, struct pawli_grants *grants);

/* Put an event in line behind the server's own; `at` and `worker` are filled in here. */
void pawli_serve_tell(struct pawli_serve *serve, const pawl_event *event);

/* What workers, deliveries and the reaper of this process tell: where it is a change of a job,
 * those who listen hear of it. From every thread. */
void pawli_serve_saw(struct pawli_serve *serve, const pawl_event *event);

/* Cut off who is too slow. To be called every second or so. */
void pawli_serve_look(struct pawli_serve *serve);

/* Answer what is under way, end claims that wait, and answer 503 to everything new. */
void pawli_serve_drain(struct pawli_serve *serve);
/* Requests that are not answered yet. */
size_t pawli_serve_in_flight(struct pawli_serve *serve);

/* End it. Waits up to `timeout_ms` for store calls under way. The number of threads that have not
 * come back: then nothing may be freed, and the process must end. Accepts NULL. */
size_t pawli_serve_stop(struct pawli_serve *serve, int64_t timeout_ms);

#endif

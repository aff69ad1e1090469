/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * exchange.h - the inside of the server: one request on its way, and the threads that it meets.
 *
 * The thread of the HTTP library reads a request. What needs the store is then suspended and put
 * into the line of the carriers: threads with a handle each, which carry it out and let the library
 * go on with the answer. A claim that found nothing goes on to the waiting thread instead. An
 * exchange belongs to one of these threads at a time.
 */
#ifndef PAWLI_SERVE_EXCHANGE_H
#define PAWLI_SERVE_EXCHANGE_H

#include "runtime/crew.h"
#include "runtime/link.h"
#include "runtime/watch.h"
#include "serve/claim.h"
#include "serve/figures.h"
#include "serve/peers.h"
#include "serve/route.h"
#include "serve/serve.h"

#include <sys/queue.h>

struct MHD_Connection;
struct pawli_ear;
struct pawli_loop;
struct pawli_stream;

enum pawli_phase {
    PAWLI_PHASE_NEW = 0,    /* its head is being read */
    PAWLI_PHASE_READING,    /* its body is */
    PAWLI_PHASE_SWALLOWING, /* the same, but nothing of it counts: the answer is there */
    PAWLI_PHASE_CARRIED,    /* suspended: a carrier or the waiting thread has it */
    PAWLI_PHASE_ANSWERED,   /* the answer is there */
    PAWLI_PHASE_BACK        /* the client is gone: what it was given is given back */
};

struct pawli_exchange {
    struct pawli_serve *serve;
    struct MHD_Connection *connection; /* NULL in PAWLI_PHASE_BACK */
    struct pawli_loop *loop;           /* that goes on with it */
    struct pawli_peer *peer;
    enum pawli_phase phase;
    char *target; /* owned; `uri` is made of it */
    struct pawli_uri uri;
    struct pawli_pair headers[PAWLI_PAIRS_MAX]; /* of the library's memory */
    struct pawli_grant grant;
    struct pawli_answer answer;
    struct pawli_call call;
    struct pawli_buffer body;
    char nothing[1];  /* the body where there is none */
    size_t body_seen; /* bytes, also of what was not kept */
    size_t swallowed; /* of these, what came when the answer was there */
    size_t whole;     /* bytes of the body up to the end of its last whole line */
    size_t held;      /* bytes that are counted for it */
    unsigned status;  /* that was sent */
    bool is_unix;
    pawl_mono began;
    pawl_mono lined_up;
    pawl_mono wait_until; /* of a claim that waits */
    pawl_mono wait_from;
    int64_t waited_us;
    struct pawli_ear *ear;       /* of one that listens; NULL: it does not */
    struct pawli_exchange *next; /* in a line */
};

/* A line of exchanges, first in, first out. */
struct pawli_line_up {
    struct pawli_exchange *first;
    struct pawli_exchange *last;
};
void pawli_line_put(struct pawli_line_up *line, struct pawli_exchange *exchange);
struct pawli_exchange *pawli_line_take(struct pawli_line_up *line); /* NULL: it is empty */

/* One listener, as its daemon sees it. */
struct pawli_gate {
    struct pawli_serve *serve;
    struct pawli_loop *loop; /* that its daemon works in */
    bool is_unix;
};

struct pawli_serve {
    struct pawli_serve_limits limits;
    pawl_opener opener;
    const pawl_clock *clock;
    struct pawli_host host;
    struct pawli_peers peers;
    struct pawli_figures figures;
    pawl_metrics *metrics;
    struct pawli_watch *watch;
    struct pawli_crew *crew; /* carriers, the waiting thread, the lookout, the watcher */
    atomic_bool is_draining;
    pthread_mutex_t settings_lock;
    pthread_mutex_t test_lock;

    pthread_mutex_t grants_lock; /* over the next two */
    struct pawli_grants grants;
    bool has_tokens;

    struct pawli_listener listeners[PAWLI_LISTENERS_MAX];
    struct pawli_gate gates[PAWLI_LISTENERS_MAX];
    size_t listeners_count;

    pthread_mutex_t line_lock; /* over the next six */
    pthread_cond_t line_cond;
    struct pawli_line_up line;
    struct pawli_line_up singles; /* that enqueue one job: they share a transaction */
    bool is_joining;              /* a carrier has some of them */
    size_t carriers;              /* that have not ended */
    bool is_ended;

    struct pawli_stream *stream;
    pthread_mutex_t ears_lock; /* over the next, and all of them */
    LIST_HEAD(pawli_ears, pawli_ear) ears;

    pthread_mutex_t lookout_lock; /* over the next two */
    pthread_cond_t lookout_cond;
    bool is_lookout_over;

    pthread_mutex_t wait_lock; /* over the next three */
    pthread_cond_t wait_cond;
    struct pawli_line_up arrivals;
    pawl_store *sleeper; /* the handle that the waiting thread sleeps on; NULL: it does not */
};

pawl_mono pawli_serve_now(const struct pawli_serve *serve);

/* http.c: start and end the daemons; let the library go on with a suspended exchange. */
pawl_code pawli_http_start(struct pawli_serve *serve, pawl_err *err);
size_t pawli_http_stop(struct pawli_serve *serve); /* how many threads have not ended */
void pawli_http_resume(struct pawli_exchange *exchange);

/* exchange.c: a new one, and its end. */
struct pawli_exchange *pawli_exchange_new(struct pawli_serve *serve, const char *target);
void pawli_exchange_free(struct pawli_exchange *exchange);

/* Whether bodies and answers take as much memory as they may. */
bool pawli_serve_is_full(struct pawli_serve *serve);

/* Keep a part of its body. False: it is more than its route takes, or than there is room for: the
 * answer says so. */
bool pawli_exchange_keep(struct pawli_exchange *exchange, const char *bytes, size_t bytes_len);

/* carriers.c */
bool pawli_carry(struct pawli_exchange *exchange); /* put it into the line; false: it is closed */
void pawli_carrier_run(void *serve);               /* a thread: until the end */
void pawli_carriers_end(struct pawli_serve *serve);

/* waiting.c */
void pawli_wait_for_work(struct pawli_exchange *exchange); /* a claim that found nothing */
void pawli_waiting_run(void *serve);                       /* the thread: until the end */
void pawli_waiting_wake(struct pawli_serve *serve);        /* to look what has changed */

/* lookout.c */
void pawli_lookout_run(void *serve);                /* a thread: until the end */
void pawli_lookout_wake(struct pawli_serve *serve); /* somebody listens */
void pawli_lookout_end(struct pawli_serve *serve);

/* Tell what happened to a request that did not end well. */
void pawli_serve_tell_failed(struct pawli_exchange *exchange);

#endif

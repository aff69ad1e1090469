/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * serve_desk.h - asks what `pawl serve` answers, without a server: a request goes through the
 * parser of targets, the router and its handler, on a store in memory.
 */
#ifndef PAWLI_TEST_SERVE_DESK_H
#define PAWLI_TEST_SERVE_DESK_H

#include "base/clock.h"
#include "base/random.h"
#include "serve/route.h"

#include <pthread.h>

struct serve_desk {
    struct pawli_manual_clock manual;
    pawl_clock clock;
    struct pawli_seeded seeded;
    pawl_random random;
    pawl_memory *memory;
    pawl_store *store;
    pthread_mutex_t settings_lock;
    pthread_mutex_t test_lock;
    struct pawli_host host;
    struct pawli_grant grant;        /* whose requests are: of everything, at first */
    struct pawli_answer answer;      /* of the last request; its text is terminated */
    struct pawli_claiming *claiming; /* likewise, of a claim */
    bool is_waiting;
};

bool serve_desk_init(struct serve_desk *desk);
void serve_desk_clear(struct serve_desk *desk);

/* One request. `headers` may be NULL: ended by a pair of NULLs. Gives the status. */
unsigned serve_desk_ask(struct serve_desk *desk, const char *method, const char *target,
                        const struct pawli_pair *headers, const void *body, size_t body_len);

/* A request that was read, but is not carried out yet, with an answer of its own. */
struct serve_desk_asked {
    struct pawli_call call;
    struct pawli_uri uri;
    struct pawli_answer answer;
    char *target;
    char *body;
};
void serve_desk_prepare(struct serve_desk *desk, struct serve_desk_asked *asked, const char *method,
                        const char *target, const void *body, size_t body_len);
void serve_desk_asked_clear(struct serve_desk_asked *asked);

/* The text of the last answer. */
const char *serve_desk_text(const struct serve_desk *desk);

#endif

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * figures.h - what the server has done, for monitoring: docs/serve.md has every figure.
 */
#ifndef PAWLI_SERVE_FIGURES_H
#define PAWLI_SERVE_FIGURES_H

#include "serve/route.h"

#include <stdatomic.h>

#define PAWLI_FIGURE_ROUTES_MAX 64 /* and one for what fits none */
#define PAWLI_FIGURE_CLASSES    5  /* 1xx to 5xx */
#define PAWLI_FIGURE_BUCKETS    10

/* From every thread. Zeroed: nothing has happened. */
struct pawli_figures {
    atomic_llong requests[PAWLI_FIGURE_ROUTES_MAX + 1][PAWLI_FIGURE_CLASSES];
    atomic_llong buckets[PAWLI_FIGURE_BUCKETS];
    atomic_llong count;
    atomic_llong sum_us;
    atomic_llong given_back;
    atomic_llong joined;       /* requests that enqueue one job each */
    atomic_llong transactions; /* that these took */
    atomic_size_t held;        /* bytes of bodies and answers in memory */
    atomic_size_t in_flight;
    atomic_size_t in_line; /* requests that wait for a thread with a handle */
    atomic_size_t waiting;
    atomic_size_t listeners;
};

/* A request was answered: after so long, but for the time that a claim waited. `route` may be NULL:
 * it fitted none. */
void pawli_figures_count(struct pawli_figures *figures, const struct pawli_route *route,
                         unsigned status, int64_t took_us);

/* What is not counted here. */
struct pawli_figures_more {
    size_t connections;
    int64_t cut;
};

/* Add them in the text format 0.0.4. False: memory ran out. */
bool pawli_figures_text(struct pawli_figures *figures, const struct pawli_figures_more *more,
                        struct pawli_buffer *to);

#endif

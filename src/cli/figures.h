/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * figures.h - the figures of a deployment at a moment: its queues, its workers, and how fast they
 * move.
 */
#ifndef PAWLI_CLI_FIGURES_H
#define PAWLI_CLI_FIGURES_H

#include "pawl/pawl.h"

#define PAWLI_FIGURES_QUEUES_MAX  1000 /* shown; the sums count all */
#define PAWLI_FIGURES_WORKERS_MAX 1000

/* Jobs in a second, since the figures before. Below 0: not known yet. */
struct pawli_rates {
    double in;     /* enqueued, or redriven */
    double done;   /* succeeded */
    double failed; /* for good */
};

struct pawli_queue_figures {
    pawl_stats stats;
    struct pawli_rates rates;
};

/* Zeroed: none. */
struct pawli_figures {
    pawl_wall at;   /* by the store's clock */
    pawl_mono read; /* by this machine's */
    struct pawli_queue_figures *queues;
    size_t queues_count;
    pawl_worker *workers;
    size_t workers_count;
    int64_t queues_all;  /* also those that are not kept */
    int64_t workers_all; /* likewise, of both kinds */
    int64_t reapers_all; /* of these */
    pawl_stats sums;     /* of all queues; the longest of their ages */
    struct pawli_rates rates;
};

/*
 * Read them. `before` gives the rates; zeroed: there are none. The caller clears *ret_figures.
 * Queues and workers stand in the order of their names.
 */
pawl_code pawli_figures_read(pawl_store *store, const pawl_clock *clock,
                             const struct pawli_figures *before, struct pawli_figures *ret_figures,
                             pawl_err *err);
void pawli_figures_clear(struct pawli_figures *figures);

#endif

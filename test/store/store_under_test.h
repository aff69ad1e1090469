/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * store_under_test.h - what the suite needs to know of a kind of store: how to get a fresh one, how
 * to let its time pass, and what it can and cannot do. One implementation per store; the cases see
 * the differences only through this table.
 *
 * Time passes by `age`, and cases never ask how: a store with a clock that was handed in turns that
 * clock; a store that lives by a server's clock shifts every instant it has stored back by as much.
 * A case therefore compares instants with pawl_now() only, or as story time (see helpers.h), and
 * never keeps a raw instant across an age.
 */
#ifndef PAWLT_STORE_UNDER_TEST_H
#define PAWLT_STORE_UNDER_TEST_H

#include "pawl/pawl.h"

/* One store, made for one case: whatever its kind needs to remember of it. */
struct place;

struct store_kind {
    const char *name;

    /* Time stands still between two ages, so that a case can stand exactly on a deadline. */
    bool has_exact_clock;
    /* age() moves what pawl_now() says; otherwise it moves what is stored. */
    bool is_clock_turned;
    /* Jobs outlive the process that wrote them: Q-DURABLE. */
    bool is_durable;
    /* It is a wrapper that has no endpoints. */
    bool has_no_endpoints;
    /* How much real time may pass between two calls of a case; 0 where the clock is exact. */
    int64_t slack_ms;
    /* How far a random walk goes; with many shards half as far. */
    int walk_steps;

    /* A fresh and empty store; NULL where it could not be made. */
    struct place *(*make)(int64_t shards);
    /* A further handle on it; NULL where it could not be opened. The caller closes it. */
    pawl_store *(*open)(struct place *place);
    /* Let `ms` milliseconds pass for everything in the store. */
    void (*age)(struct place *place, int64_t ms);
    /* Durable stores: end and start again whatever holds the jobs. All handles are closed. */
    void (*restart)(struct place *place);
    /* Remove the store. All handles are closed. */
    void (*drop)(struct place *place);
};

#endif

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * suite.h - the groups of the store suite, and how a program runs them on a kind of store. Each
 * case is run on a fresh store with one shard and again with eight, unless it says that only one of
 * the two makes sense.
 */
#ifndef PAWLT_STORE_SUITE_H
#define PAWLT_STORE_SUITE_H

#include "store/store_under_test.h"

struct stage;

/* What a case needs; 0: nothing in particular. */
enum suite_need {
    ONE_SHARD = 1,   /* it asserts an order, which holds within a shard only */
    MANY_SHARDS = 2, /* it is about shards */
    EXACT_CLOCK = 4, /* it stands exactly on a deadline; left out where the store cannot */
    DURABLE = 8,   /* it ends the store and starts it again; left out where nothing would remain */
    ENDPOINTS = 16 /* it is about endpoints; left out where a wrapper does not pass them on */
};

struct suite_case {
    const char *name;
    void (*run)(struct stage *s);
    unsigned needs;
};

struct suite_group {
    const char *name;
    const struct suite_case *cases;
    size_t cases_count;
};

/* A line of a file's list of cases, and the end of the file: its group, named after its subject. */
#define CASE(function)         \
    {                          \
#function, function, 0 \
    }
#define CASE_ON(needs, function)     \
    {                                \
#function, function, (needs) \
    }
#define SUITE_GROUP(subject) \
    const struct suite_group suite_##subject = {#subject, cases, sizeof(cases) / sizeof(cases[0])}

extern const struct suite_group suite_batch;
extern const struct suite_group suite_cancel;
extern const struct suite_group suite_claim;
extern const struct suite_group suite_dead;
extern const struct suite_group suite_dedupe;
extern const struct suite_group suite_delay;
extern const struct suite_group suite_endpoint;
extern const struct suite_group suite_once;
extern const struct suite_group suite_enqueue;
extern const struct suite_group suite_event;
extern const struct suite_group suite_fault;
extern const struct suite_group suite_fence;
extern const struct suite_group suite_handles;
extern const struct suite_group suite_headers;
extern const struct suite_group suite_in_flight;
extern const struct suite_group suite_key_view;
extern const struct suite_group suite_keys;
extern const struct suite_group suite_ledger;
extern const struct suite_group suite_list;
extern const struct suite_group suite_lost;
extern const struct suite_group suite_order;
extern const struct suite_group suite_prune;
extern const struct suite_group suite_publish;
extern const struct suite_group suite_queue;
extern const struct suite_group suite_reap;
extern const struct suite_group suite_recent;
extern const struct suite_group suite_refuse;
extern const struct suite_group suite_release;
extern const struct suite_group suite_renew;
extern const struct suite_group suite_replay;
extern const struct suite_group suite_settle;
extern const struct suite_group suite_view;
extern const struct suite_group suite_walk;

struct suite_choice {
    const char *filter; /* a cmocka pattern on "group: case (n shards)"; NULL: all */
    bool is_one_shard_only;
    bool is_exact_only; /* those that stand on a deadline */
};

/* Run the groups on a kind of store, as one TAP stream. Gives the number of failed cases. */
int suite_run(const struct store_kind *kind, const struct suite_choice *choice);

#endif

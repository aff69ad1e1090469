/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * suite.h - the tests of work leases that run on every store: cases told step by step, and a walk
 * of random operations beside a naive model. A store under test must have an exact clock.
 */
#ifndef PAWLT_WORKLEASE_SUITE_H
#define PAWLT_WORKLEASE_SUITE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pawl/worklease.h"
#include "store/store_under_test.h"

/* How a walk is made on a store. */
struct walk_plan {
    int episodes;
    int steps;                  /* of one episode, on domains of its own */
    void (*more)(void **state); /* a further test; NULL: none */
};

struct stage {
    const struct store_kind *kind;
    struct walk_plan plan;
    struct place *place;
    pawl_store *store;
};

/* Run all of it, as TAP. Gives the number of tests that failed. */
int worklease_suite(const struct store_kind *kind, const struct walk_plan *plan);

/* cases.c and walk.c; `state` is a struct stage on a fresh store. */
extern const struct CMUnitTest worklease_cases[];
extern const size_t worklease_cases_count;
void equals_the_naive_model(void **state);

#endif

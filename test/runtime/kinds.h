/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * kinds.h - runs the tests of the runtime on a store in memory; with --sqlite on files of their
 * own, with --postgres on a server of the test's own.
 */
#ifndef PAWLT_RUNTIME_KINDS_H
#define PAWLT_RUNTIME_KINDS_H

#include "runtime/stage.h"

struct CMUnitTest;

int kinds_run(int argc, char **argv, const struct CMUnitTest *tests, size_t tests_count);

/* The server, for tests that run on one only. */
struct pg_server;
struct pg_server *kinds_server(void);

int kinds_setup(void **state);
int kinds_teardown(void **state);
#define CASE(test) cmocka_unit_test_setup_teardown(test, kinds_setup, kinds_teardown)

#endif

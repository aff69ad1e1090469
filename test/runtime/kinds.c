/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * kinds.c - the stores that the tests of the runtime run on.
 * Owns:  the server, where there is one.
 * Never: skips a test because there is no server.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/kinds.h"

#ifdef PAWLT_POSTGRES
#include "support/pg_world.h"
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int kinds_setup(void **state)
{
    *state = stage_new();
    return 0;
}

int kinds_teardown(void **state)
{
    stage_free(*state);
    return 0;
}

#ifdef PAWLT_POSTGRES
/* The tests' own server. Changed only by their one thread. */
static struct pg_server server;

struct pg_server *kinds_server(void)
{
    return &server;
}

static int run_on_postgres(const struct CMUnitTest *tests, size_t tests_count)
{
    static char conninfo[PG_PATH_MAX];
    if (!pg_world_begin(&server, false, 1)) {
        pg_server_remove(&server);
        return 1;
    }
    stage_use(pg_server_conninfo(&server, PG_WORLD_DATABASE, conninfo));
    (void)setenv("DATABASE_URL", conninfo, 1); /* for programs that tests start */
    int failed = _cmocka_run_group_tests("postgres", tests, tests_count, NULL, NULL);
    pg_server_remove(&server);
    return failed;
}
#endif

int kinds_run(int argc, char **argv, const struct CMUnitTest *tests, size_t tests_count)
{
    const char *filter = getenv("PAWLT_TEST"); /* some of them, by a pattern: for those at work */
    if (filter != NULL)
        cmocka_set_test_filter(filter);
    if (argc > 1 && strcmp(argv[1], "--sqlite") == 0) {
        stage_use_sqlite();
        return _cmocka_run_group_tests("sqlite", tests, tests_count, NULL, NULL);
    }
    if (argc > 1 && strcmp(argv[1], "--postgres") == 0) {
#ifdef PAWLT_POSTGRES
        return run_on_postgres(tests, tests_count);
#else
        fprintf(stderr, "built without PostgreSQL\n");
        return 1;
#endif
    }
    return _cmocka_run_group_tests("memory", tests, tests_count, NULL, NULL);
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * postgres_main.c - runs the tests of work leases on PostgreSQL, whose functions read a clock that
 * stands still: some operations through the C store, a hundred thousand by SQL.
 * Owns:  the program.
 * Never: holds a test.
 */
#include "store/postgres_kind.h"
#include "worklease/sql_walk.h"
#include "worklease/suite.h"

int main(void)
{
    struct walk_plan plan = {.episodes = 12, .steps = 300, .more = sql_equals_the_naive_model};
    int failed = 1;
    if (postgres_kind_begin(false))
        failed = worklease_suite(&exact_postgres_kind, &plan);
    postgres_kind_end();
    return failed > 0 ? 1 : 0;
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * sqlite_main.c - runs the tests of work leases on the SQLite store.
 * Owns:  the program.
 * Never: holds a test.
 */
#include "store/sqlite_kind.h"
#include "worklease/suite.h"

int main(void)
{
    struct walk_plan plan = {.episodes = 350, .steps = 300};
    return worklease_suite(&sqlite_kind, &plan) > 0 ? 1 : 0;
}

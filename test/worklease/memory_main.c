/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * memory_main.c - runs the tests of work leases on the memory store.
 * Owns:  the program.
 * Never: holds a test.
 */
#include "store/memory_kind.h"
#include "worklease/suite.h"

int main(void)
{
    struct walk_plan plan = {.episodes = 500, .steps = 300};
    return worklease_suite(&memory_kind, &plan) > 0 ? 1 : 0;
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * served_main.c - runs the store suite on a store that looks like one on a server, to prove that
 * the cases can do without a clock that they turn. An argument is a pattern, as in memory_main.c.
 * Owns:  the program.
 * Never: holds a case.
 */
#include "store/served_kind.h"
#include "store/suite.h"

int main(int argc, char **argv)
{
    struct suite_choice choice = {.filter = argc > 1 ? argv[1] : NULL};
    return suite_run(&served_kind, &choice) > 0 ? 1 : 0;
}

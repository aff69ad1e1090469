/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * memory_main.c - runs the store suite on the memory store. An argument is a pattern: only the
 * cases whose name it fits, such as "fence:*".
 * Owns:  the program.
 * Never: holds a case.
 */
#include "store/memory_kind.h"
#include "store/suite.h"

int main(int argc, char **argv)
{
    struct suite_choice choice = {.filter = argc > 1 ? argv[1] : NULL};
    return suite_run(&memory_kind, &choice) > 0 ? 1 : 0;
}

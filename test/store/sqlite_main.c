/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * sqlite_main.c - runs the store suite on SQLite, which has one shard. An argument is a pattern:
 * only the cases whose name it fits, such as "fence:*".
 * Owns:  the program.
 * Never: holds a case.
 */
#include "store/sqlite_kind.h"
#include "store/suite.h"

int main(int argc, char **argv)
{
    struct suite_choice choice = {.filter = argc > 1 ? argv[1] : NULL, .is_one_shard_only = true};
    return suite_run(&sqlite_kind, &choice) > 0 ? 1 : 0;
}

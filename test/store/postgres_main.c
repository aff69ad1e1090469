/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * postgres_main.c - runs the store suite on PostgreSQL. Arguments: "--pooled" puts PgBouncer in
 * transaction mode between, "--exact" has the functions read a clock that stands still, for the
 * cases that need one; a pattern chooses cases, such as "fence:*".
 * Owns:  the program.
 * Never: holds a case.
 */
#include "store/postgres_kind.h"
#include "store/suite.h"

#include <string.h>

int main(int argc, char **argv)
{
    bool is_pooled = argc > 1 && strcmp(argv[1], "--pooled") == 0;
    bool is_exact = argc > 1 && strcmp(argv[1], "--exact") == 0;
    int first = is_pooled || is_exact ? 2 : 1;
    struct suite_choice choice = {.filter = argc > first ? argv[first] : NULL,
                                  .is_exact_only = is_exact};
    int failed = 1;
    if (postgres_kind_begin(is_pooled))
        failed = suite_run(is_pooled  ? &pooled_kind
                           : is_exact ? &exact_postgres_kind
                                      : &postgres_kind,
                           &choice);
    postgres_kind_end();
    return failed > 0 ? 1 : 0;
}

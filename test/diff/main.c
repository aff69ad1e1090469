/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * main.c - the differential test: the same random calls on every kind of store.
 * Owns:  the program: diff [--seed N] [--calls N] [--shards N] [--partial 1]. A partial run stops
 *        after its calls, and need not have met every answer.
 * Never: compares.
 */
#include "diff/walk.h"

#include "store/memory_kind.h"
#include "store/postgres_kind.h"
#include "store/sqlite_kind.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define CALLS_USUAL 20000

static bool parse(int argc, char **argv, struct walk_plan *plan)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        char *end = NULL;
        uint64_t number = strtoull(argv[i + 1], &end, 10);
        if (*end != '\0')
            return false;
        if (strcmp(argv[i], "--seed") == 0)
            plan->seed = number;
        else if (strcmp(argv[i], "--calls") == 0)
            plan->calls = (size_t)number;
        else if (strcmp(argv[i], "--shards") == 0)
            plan->shards = (int64_t)number;
        else if (strcmp(argv[i], "--partial") == 0)
            plan->is_partial = number != 0;
        else
            return false;
    }
    return argc % 2 == 1;
}

/* A difference that showed in a picture came about in one of the calls before it: which? */
static struct walk_result walk_to_the_call(const struct walk_plan *plan)
{
    struct walk_result result = walk_stores(plan, stdout);
    if (result.is_same || result.is_in_answer || result.is_broken)
        return result;
    struct walk_plan closer = *plan;
    closer.check_from = result.same_at + 1;
    (void)printf("# all was the same after call %zu; again from there, with a look after each\n",
                 result.same_at);
    return walk_stores(&closer, stdout);
}

int main(int argc, char **argv)
{
    const pawl_random *random = pawl_random_system();
    struct walk_plan plan = {
        .kinds = {&memory_kind, &exact_postgres_kind, &sqlite_kind},
        .sides_count = 3,
        .shards = 1,
        .seed = random->next(random->user) % 1000000,
        .calls = CALLS_USUAL,
    };
    if (!parse(argc, argv, &plan)) {
        (void)fputs("usage: diff [--seed N] [--calls N] [--shards N] [--partial 1]\n", stderr);
        return 64;
    }
    if (plan.shards > 1)
        plan.sides_count = 2; /* a file has one shard */
    (void)printf("1..2\n# seed %" PRIu64 "\n", plan.seed);
    (void)fflush(stdout); /* it takes a while */
    postgres_kind_leave_out_chance();
    struct walk_result result = {.is_broken = true};
    if (postgres_kind_begin(false))
        result = walk_to_the_call(&plan);
    postgres_kind_end();
    bool is_same = result.is_same && !result.is_broken && result.pictures > 0;
    (void)printf("%s 1 - %zu stores agree over %zu calls, and %zu times on everything\n",
                 is_same ? "ok" : "not ok", plan.sides_count, result.calls, result.pictures);
    bool is_covered = result.is_covered || plan.is_partial;
    (void)printf("%s 2 - every verb succeeded and was refused, in every way%s\n",
                 is_covered ? "ok" : "not ok", plan.is_partial ? " # skip partial" : "");
    return is_same && is_covered ? 0 : 1;
}

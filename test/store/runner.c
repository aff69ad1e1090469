/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * runner.c - plays every case on a kind of store.
 * Owns:  the list of groups, and which case runs with how many shards.
 * Never: knows a store by name.
 */
#include "store/helpers.h"

#include <stdio.h>
#include <stdlib.h>

/* The number of shards of the second round: more than one, and not so many that each holds one job.
 */
#define MANY 8

#define NAME_MAX_BYTES 160

static const struct suite_group *const groups[] = {
    &suite_enqueue,   &suite_claim,   &suite_order,    &suite_delay,   &suite_dedupe,
    &suite_fence,     &suite_renew,   &suite_settle,   &suite_replay,  &suite_release,
    &suite_reap,      &suite_lost,    &suite_cancel,   &suite_dead,    &suite_ledger,
    &suite_list,      &suite_view,    &suite_queue,    &suite_prune,   &suite_refuse,
    &suite_handles,   &suite_batch,   &suite_fault,    &suite_keys,    &suite_key_view,
    &suite_in_flight, &suite_headers, &suite_endpoint, &suite_publish, &suite_event,
    &suite_once,      &suite_recent,  &suite_walk,
};

/* One run of one case. */
struct performance {
    const struct store_kind *kind;
    const struct suite_case *subject;
    int64_t shards;
    struct stage *stage;
    char name[NAME_MAX_BYTES];
};

static int raise_stage(void **state)
{
    struct performance *performance = *state;
    performance->stage = stage_raise(performance->kind, performance->shards);
    return 0;
}

static int strike_stage(void **state)
{
    struct performance *performance = *state;
    stage_strike(performance->stage);
    performance->stage = NULL;
    return 0;
}

static void play(void **state)
{
    struct performance *performance = *state;
    performance->subject->run(performance->stage);
}

/* What the store lacks for a case; NULL: nothing. */
static const char *lacks(const struct store_kind *kind, const struct suite_case *subject)
{
    if ((subject->needs & EXACT_CLOCK) != 0 && !kind->has_exact_clock)
        return "an exact clock";
    if ((subject->needs & DURABLE) != 0 && !kind->is_durable)
        return "durability";
    if ((subject->needs & ENDPOINTS) != 0 && kind->has_no_endpoints)
        return "endpoints";
    return NULL;
}

static size_t cases_total(void)
{
    size_t total = 0;
    for (size_t i = 0; i < COUNT_OF(groups); i++)
        total += groups[i]->cases_count;
    return total;
}

/* Plan one round; gives the number of performances planned so far. */
static size_t plan_round(struct performance *plan, size_t planned, const struct store_kind *kind,
                         int64_t shards, unsigned wanted)
{
    unsigned unwanted = shards == 1 ? MANY_SHARDS : ONE_SHARD;
    for (size_t i = 0; i < COUNT_OF(groups); i++) {
        for (size_t j = 0; j < groups[i]->cases_count; j++) {
            const struct suite_case *subject = &groups[i]->cases[j];
            if ((subject->needs & unwanted) != 0 || (subject->needs & wanted) != wanted)
                continue;
            /* Not cmocka's skip(): it prints "not ok", which readers of TAP count as a failure. */
            const char *lacking = lacks(kind, subject);
            if (lacking != NULL) {
                (void)printf("# left out: %s: %s needs %s\n", groups[i]->name, subject->name,
                             lacking);
                continue;
            }
            struct performance *performance = &plan[planned++];
            performance->kind = kind;
            performance->subject = subject;
            performance->shards = shards;
            (void)snprintf(performance->name, sizeof(performance->name), "%s: %s (%lld shard%s)",
                           groups[i]->name, subject->name, (long long)shards,
                           shards == 1 ? "" : "s"); /* names are ours, and short */
        }
    }
    return planned;
}

int suite_run(const struct store_kind *kind, const struct suite_choice *choice)
{
    size_t room = 2 * cases_total();
    struct performance *plan = calloc(room, sizeof(plan[0]));
    struct CMUnitTest *tests = calloc(room, sizeof(tests[0]));
    if (plan == NULL || tests == NULL) {
        (void)fprintf(stderr, "out of memory\n"); /* nothing else is left to do about it */
        free(plan);
        free(tests);
        return 1;
    }
    unsigned wanted = choice->is_exact_only ? EXACT_CLOCK : 0;
    size_t planned = plan_round(plan, 0, kind, 1, wanted);
    if (!choice->is_one_shard_only)
        planned = plan_round(plan, planned, kind, MANY, wanted);
    for (size_t i = 0; i < planned; i++) {
        tests[i] = (struct CMUnitTest){.name = plan[i].name,
                                       .test_func = play,
                                       .setup_func = raise_stage,
                                       .teardown_func = strike_stage,
                                       .initial_state = &plan[i]};
    }
    if (choice->filter != NULL)
        cmocka_set_test_filter(choice->filter);
    int failed = _cmocka_run_group_tests(kind->name, tests, planned, NULL, NULL);
    free(tests);
    free(plan);
    return failed;
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * main.c - the chaos test: chaos STORE --pawl PROGRAM [--preload LIBRARY] [--minutes N] [--seed N]
 *          [--spoil FILE] [--mutant NAME] [--expect RULE].
 * Owns:  the command line, what is planned for how long, and which of its processes this is.
 * Never: breaks anything; works.
 */
#include "chaos/chaos.h"

#include "core/mutant.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS_MAX    4 /* in which what is broken on purpose must show once */
#define MINUTES_USUAL 1.6
#define MINUTES_MOST  600

/* What happens in the usual time. */
static const size_t usual[CHAOS_TROUBLES] = {
    [CHAOS_KILL] = 105,   [CHAOS_KILL_PRODUCER] = 10, [CHAOS_PAUSE] = 56, [CHAOS_PARTITION] = 30,
    [CHAOS_BACKEND] = 20, [CHAOS_POSTMASTER] = 3,     [CHAOS_JUMP] = 12,  [CHAOS_FULL] = 1,
};
#define JOBS_USUAL 50000
#define SLOW_PART  50 /* of them, where all are slow */

/* What the director gives a process: the order of become_ourselves(). */
enum role_argument {
    ARG_PART = 2,
    ARG_ACTOR,
    ARG_SEED,
    ARG_STORE,
    ARG_WHERE,
    ARG_FOLDER,
    ARG_RATE,
    ARG_MUTANT,
    ARGS_COUNT
};

static int run_role(char **argv)
{
    struct chaos_role role = {
        .kind = crash_kind_named(argv[ARG_STORE]),
        .actor = argv[ARG_ACTOR],
        .where = argv[ARG_WHERE],
        .folder = argv[ARG_FOLDER],
        .seed = strtoull(argv[ARG_SEED], NULL, 10),
        .rate = strtoll(argv[ARG_RATE], NULL, 10),
        .mutant = (int)strtol(argv[ARG_MUTANT], NULL, 10),
    };
    if (role.kind == NULL)
        return 64;
    if (strcmp(argv[ARG_PART], chaos_part_name(CHAOS_WORKER)) == 0)
        return worker_run(&role);
    if (strcmp(argv[ARG_PART], chaos_part_name(CHAOS_REAPER)) == 0)
        return reaper_run(&role);
    return producer_run(&role);
}

/* Workers can be broken where the library has its test points: then they do not look at the clock
 * before they settle, or settle what a failed beat has stopped. */
static bool find_mutant(const char *name, int *ret_mutant)
{
#ifdef PAWL_TEST_POINTS
    static const struct {
        const char *name;
        int mutant;
    } mutants[] = {
        {"settle-at-risk", PAWLI_MUTANT_SETTLE_AT_RISK},
        {"abort-settled", PAWLI_MUTANT_ABORT_SETTLED},
        {"start-at-risk", PAWLI_MUTANT_START_AT_RISK},
    };
    for (size_t i = 0; i < sizeof(mutants) / sizeof(mutants[0]); i++) {
        *ret_mutant = mutants[i].mutant;
        if (strcmp(mutants[i].name, name) == 0)
            return true;
    }
#endif
    (void)name;
    *ret_mutant = 0;
    return false;
}

static bool parse_value(struct chaos_plan *plan, const char *name, const char *value)
{
    if (strcmp(name, "--pawl") == 0)
        plan->pawl = value;
    else if (strcmp(name, "--preload") == 0)
        plan->preload = value;
    else if (strcmp(name, "--minutes") == 0)
        plan->minutes = strtod(value, NULL);
    else if (strcmp(name, "--seed") == 0)
        plan->seed = strtoull(value, NULL, 10);
    else if (strcmp(name, "--spoil") == 0)
        plan->spoil = value;
    else if (strcmp(name, "--mutant") == 0)
        return find_mutant(value, &plan->mutant);
    else if (strcmp(name, "--expect") == 0)
        plan->expected = value;
    else
        return false;
    return true;
}

static bool parse(int argc, char **argv, struct chaos_plan *plan)
{
    plan->kind = argc > 1 ? crash_kind_named(argv[1]) : NULL;
    for (int i = 2; i < argc; i += 2) {
        if (i + 1 >= argc || !parse_value(plan, argv[i], argv[i + 1]))
            return false;
    }
    bool is_broken = plan->spoil != NULL || plan->mutant != 0;
    return plan->kind != NULL && is_broken == (plan->expected != NULL) && plan->pawl != NULL &&
           plan->minutes > 0 && plan->minutes <= MINUTES_MOST;
}

/* As much as there is time for; of each kind once at least. */
static void fill_plan(struct chaos_plan *plan)
{
    double part = plan->minutes / MINUTES_USUAL;
    bool has_server = plan->kind->server != NULL;
    plan->jobs = (size_t)(JOBS_USUAL * part);
    if (plan->mutant == PAWLI_MUTANT_ABORT_SETTLED)
        plan->jobs /= SLOW_PART; /* each takes long */
    for (int i = 0; i < CHAOS_TROUBLES; i++) {
        plan->troubles[i] = (size_t)((double)usual[i] * part + 0.999);
        bool is_servers = i == CHAOS_PARTITION || i == CHAOS_BACKEND || i == CHAOS_POSTMASTER;
        bool is_inside = i == CHAOS_JUMP || i == CHAOS_FULL;
        if ((is_servers && !has_server) || (i == CHAOS_FULL && has_server) ||
            (is_inside && plan->preload == NULL))
            plan->troubles[i] = 0;
    }
}

int main(int argc, char **argv)
{
    if (argc == ARGS_COUNT && strcmp(argv[1], "--role") == 0)
        return run_role(argv);
    const pawl_random *random = pawl_random_system();
    struct chaos_plan plan = {.seed = random->next(random->user) % 1000000,
                              .minutes = MINUTES_USUAL};
    if (!parse(argc, argv, &plan)) {
        (void)fputs("usage: chaos postgres|sqlite --pawl PROGRAM [--preload LIBRARY] [--minutes N] "
                    "[--seed N] [--spoil FILE] [--mutant NAME] [--expect RULE]\n",
                    stderr);
        return 64;
    }
    (void)signal(SIGPIPE, SIG_IGN); /* of a process that has just been killed */
    fill_plan(&plan);
    plan.rounds_left = plan.expected != NULL ? ROUNDS_MAX - 1 : 0;
    int failed = chaos_direct(&plan);
    for (; failed == CHAOS_AGAIN; failed = chaos_direct(&plan)) {
        plan.rounds_left--;
        plan.seed++;
    }
    return failed == 0 ? 0 : 1;
}

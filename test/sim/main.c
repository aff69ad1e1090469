/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * main.c - the simulator's command line.
 * Owns:  flags, the loop over seeds, the report at the end.
 * Never: decides what a run is made of (swarm.c) or whether it was right (check.c).
 */
#include "sim/mutants.h"
#include "sim/run.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define FAILURES_MAX 5 /* then it has been shown */
#define SEEDS_USUAL  200
#define SEEDS_ENOUGH 2000 /* to meet every kind of trouble; fewer are not asked for all of them */

struct options {
    uint64_t first;
    uint64_t count;
    bool is_seed; /* --seed was given: one seed, unless --seeds says how many */
    bool is_seeds;
    double hours_min; /* go on until so many virtual hours have passed */
    const char *mutant;
    const char *save;
    bool is_print;
    bool is_partial; /* too few seeds to meet everything: do not ask for it */
    bool is_all_mutants;
    bool is_help;
};

static const char usage[] =
    "usage: pawl-sim [--seed N] [--seeds COUNT | --seeds A..B] [--hours H] [--partial]\n"
    "                [--print] [--save FILE] [--mutant NAME] | --all-mutants\n"
    "  --seed N        this seed; with --print its history as text, with --save as it is\n"
    "  --seeds COUNT   so many seeds, from N or 1 on (default 200)\n"
    "  --seeds A..B    these seeds, both ends included\n"
    "  --hours H       go on until at least so many virtual hours have passed\n"
    "  --partial       do not fail where some fault never happened; so below 2000 seeds\n"
    "  --mutant NAME   with a deliberate bug; --mutant list names them\n"
    "  --all-mutants   every deliberate bug must be caught\n";

/* ---------------------------------------------------------------- flags */

static bool parse_number(const char *text, uint64_t *ret_number, const char **ret_rest)
{
    char *rest = NULL;
    if (text == NULL || *text < '0' || *text > '9')
        return false;
    unsigned long long number = strtoull(text, &rest, 10);
    *ret_number = number;
    *ret_rest = rest;
    return true;
}

static bool parse_seeds(const char *text, struct options *options)
{
    const char *rest = NULL;
    uint64_t last = 0;
    options->is_seeds = true;
    if (!parse_number(text, &options->count, &rest))
        return false;
    if (*rest == '\0')
        return options->count > 0;
    options->first = options->count;
    if (strncmp(rest, "..", 2) != 0 || !parse_number(rest + 2, &last, &rest) || *rest != '\0' ||
        last < options->first)
        return false;
    options->count = last - options->first + 1;
    return true;
}

static bool parse_flag(int *at, int argc, char **argv, struct options *options)
{
    const char *flag = argv[*at];
    if (strcmp(flag, "--print") == 0)
        return options->is_print = true;
    if (strcmp(flag, "--partial") == 0)
        return options->is_partial = true;
    if (strcmp(flag, "--all-mutants") == 0)
        return options->is_all_mutants = true;
    if (strcmp(flag, "--help") == 0)
        return options->is_help = true;
    if (*at + 1 >= argc)
        return false;
    const char *value = argv[++*at];
    if (strcmp(flag, "--seed") == 0) {
        const char *rest = NULL;
        options->is_seed = true;
        return parse_number(value, &options->first, &rest) && *rest == '\0';
    }
    if (strcmp(flag, "--seeds") == 0)
        return parse_seeds(value, options);
    if (strcmp(flag, "--hours") == 0)
        return (options->hours_min = strtod(value, NULL)) > 0;
    if (strcmp(flag, "--save") == 0)
        return (options->save = value) != NULL;
    if (strcmp(flag, "--mutant") == 0)
        return (options->mutant = value) != NULL;
    return false;
}

/* ---------------------------------------------------------------- seeds */

struct total {
    uint64_t seeds;
    uint64_t failed;
    uint64_t records;
    uint64_t jobs;
    uint64_t events;
    int64_t virtual_us;
    struct sim_tallies tallies;
};

static double hours_of(int64_t us)
{
    return (double)us / 3600e6;
}

static void add(struct total *total, const struct sim_outcome *outcome)
{
    total->seeds++;
    total->records += outcome->records;
    total->jobs += outcome->jobs;
    total->events += outcome->events;
    total->virtual_us += outcome->virtual_us;
    sim_tallies_add(&total->tallies, &outcome->tallies);
}

static bool run_seed(const struct options *options, uint64_t seed, int mutant, struct total *total)
{
    struct sim_outcome outcome;
    struct sim_run_args args = {.seed = seed, .mutant = mutant, .favour = mutant};
    if (options->is_print)
        args.print = stdout;
    if (options->save != NULL)
        args.save = fopen(options->save, "wb");
    if (options->is_print)
        sim_run_describe(seed, mutant, stdout);
    sim_run(&args, &outcome);
    if (args.save != NULL)
        fclose(args.save);
    add(total, &outcome);
    if (!outcome.is_ok) {
        total->failed++;
        printf("FAILED seed %" PRIu64 ": %s: %s\n", seed, outcome.rule, outcome.text);
        sim_run_describe(seed, mutant, stdout);
        printf("  replay: pawl-sim --seed %" PRIu64 " --print\n", seed);
    }
    return outcome.is_ok;
}

static int run_seeds(const struct options *options, int mutant)
{
    struct total total = {0};
    for (uint64_t seed = options->first; total.failed < FAILURES_MAX; seed++) {
        if (total.seeds >= options->count && hours_of(total.virtual_us) >= options->hours_min)
            break;
        run_seed(options, seed, mutant, &total);
    }
    int missing = sim_tallies_print(&total.tallies, stdout);
    bool is_missing = missing > 0 && !options->is_partial && mutant == 0;
    if (is_missing)
        printf("FAILED: %d kinds of trouble never happened: nothing is proved about them\n",
               missing);
    printf("sim: %" PRIu64 " seeds, %.1f virtual hours, %" PRIu64 " jobs, %" PRIu64
           " events, %" PRIu64 " records; %" PRIu64 " failed\n",
           total.seeds, hours_of(total.virtual_us), total.jobs, total.events, total.records,
           total.failed);
    return total.failed > 0 || is_missing ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    struct options options = {.first = 1, .count = SEEDS_USUAL};
    for (int i = 1; i < argc; i++) {
        if (!parse_flag(&i, argc, argv, &options)) {
            fputs(usage, stderr);
            return 64;
        }
    }
    if (options.is_help) {
        fputs(usage, stdout);
        return EXIT_SUCCESS;
    }
    if (options.is_seed && !options.is_seeds) {
        options.count = 1;
        options.is_partial = true;
    }
    if (options.count < SEEDS_ENOUGH)
        options.is_partial = true;
    if (options.is_all_mutants)
        return sim_mutants_all();
    int mutant = 0;
    if (options.mutant != NULL && !sim_mutant_find(options.mutant, &mutant)) {
        sim_mutants_list(strcmp(options.mutant, "list") == 0 ? stdout : stderr);
        return strcmp(options.mutant, "list") == 0 ? EXIT_SUCCESS : 64;
    }
    return run_seeds(&options, mutant);
}

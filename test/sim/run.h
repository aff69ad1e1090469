/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * run.h - a seed from its plan to its verdict.
 */
#ifndef SIM_RUN_H
#define SIM_RUN_H

#include "sim/swarm.h"
#include "sim/tally.h"

#include <stdio.h>

#define SIM_RULE_MAX 32
#define SIM_TEXT_MAX 500

/* What came of a seed. */
struct sim_outcome {
    bool is_ok;
    char rule[SIM_RULE_MAX]; /* what was violated: a rule of the checker, or of the simulator */
    char text[SIM_TEXT_MAX];
    uint64_t broken; /* bits 1 << enum check_rule: all that the checker found */
    uint64_t hash;   /* of the whole history */
    int64_t virtual_us;
    uint64_t records;
    uint64_t jobs;
    uint64_t events;
    struct sim_tallies tallies;
};

struct sim_run_args {
    uint64_t seed;
    int mutant;   /* 0: none */
    int favour;   /* draw a plan in which this mutant has a chance to show; 0: none */
    FILE *print;  /* NULL: do not print the history */
    FILE *save;   /* NULL: do not keep it */
    bool is_once; /* do not run it a second time */
};

/* Run a seed, check its history, run it again and compare. */
void sim_run(const struct sim_run_args *args, struct sim_outcome *ret_outcome);

/* Whether the run broke this rule ("C3", or one of the simulator's own). Where a run was broken
 * off, only the rule that broke it off counts: the rest of its history is missing. */
bool sim_outcome_has_broken(const struct sim_outcome *outcome, const char *rule);

/* Print what the swarm has drawn for a seed. */
void sim_run_describe(uint64_t seed, int favour, FILE *out);

#endif

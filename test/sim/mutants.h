/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * mutants.h - the deliberate bugs, and the proof that each is caught.
 */
#ifndef SIM_MUTANTS_H
#define SIM_MUTANTS_H

#include <stdbool.h>
#include <stdio.h>

/* The number of a mutant by its name ("token-unchecked"). */
bool sim_mutant_find(const char *name, int *ret_mutant);

void sim_mutants_list(FILE *out);

/* Run seeds with each mutant until it is caught, and none where it is never. Gives the exit code.
 */
int sim_mutants_all(void);

#endif

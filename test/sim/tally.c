/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * tally.c - how often each fault and each interesting situation came about.
 * Owns:  the names of the counters and their printing.
 * Never: counts by itself; decides what happens.
 */
#include "sim/tally.h"

#include <inttypes.h>

void sim_tallies_add(struct sim_tallies *to, const struct sim_tallies *from)
{
    for (int i = 0; i < SIM_TALLY_COUNT; i++)
        to->count[i] += from->count[i];
}

int sim_tallies_print(const struct sim_tallies *tallies, FILE *out)
{
    static const char *const texts[] = {
#define X(name, text) text,
        SIM_TALLIES(X)
#undef X
    };
    int missing = 0;
    for (int i = 0; i < SIM_TALLY_COUNT; i++) {
        bool is_missing = tallies->count[i] == 0;
        missing += is_missing;
        fprintf(out, "%12" PRIu64 "  %s%s\n", tallies->count[i], texts[i],
                is_missing ? "   <-- never happened" : "");
    }
    return missing;
}

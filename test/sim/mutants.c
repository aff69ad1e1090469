/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * mutants.c - proves that the simulator and its checker would notice.
 * Owns:  the names of the mutants, how many seeds each may take, the report.
 * Never: accepts a mutant that no rule catches.
 */
#include "sim/mutants.h"

#include "core/mutant.h"
#include "sim/run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SEEDS_MAX 60 /* a bug that needs more is hidden too well: help it in swarm.c */

static const char *const names[] = {
    [PAWLI_MUTANT_NONE] = "none",
    [PAWLI_MUTANT_TOKEN_UNCHECKED] = "token-unchecked",
    [PAWLI_MUTANT_TOKEN_PER_WORKER] = "token-per-worker",
    [PAWLI_MUTANT_WORKER_UNCHECKED_EXPIRY] = "expiry-unchecked",
    [PAWLI_MUTANT_REAP_BY_ID_ONLY] = "reap-by-id-only",
    [PAWLI_MUTANT_REAP_UNEXPIRED] = "reap-unexpired",
    [PAWLI_MUTANT_CLAIM_TWO_STEPS] = "claim-two-steps",
    [PAWLI_MUTANT_LOST_NOT_COUNTED] = "lost-not-counted",
    [PAWLI_MUTANT_RELEASE_STALE] = "release-stale",
    [PAWLI_MUTANT_RETRY_NO_DELAY] = "retry-no-delay",
    [PAWLI_MUTANT_RETRY_UNBOUNDED] = "retry-unbounded",
    [PAWLI_MUTANT_VERSION_STANDS] = "version-stands",
    [PAWLI_MUTANT_EXPIRY_NO_ROW] = "expiry-no-row",
    [PAWLI_MUTANT_RENEW_SHORTENS] = "renew-shortens",
    [PAWLI_MUTANT_RELEASE_COUNTS_LOST] = "release-counts-lost",
    [PAWLI_MUTANT_SETTLE_REPLAY_AGAIN] = "settle-replay-again",
    [PAWLI_MUTANT_TERMINAL_CLAIMABLE] = "terminal-claimable",
    [PAWLI_MUTANT_WATCHDOG_FROM_REPLY] = "watchdog-from-reply",
    [PAWLI_MUTANT_NO_BEATS_AT_DRAIN] = "no-beats-at-drain",
    [PAWLI_MUTANT_WAKE_WITHOUT_POLL] = "wake-without-poll",
    [PAWLI_MUTANT_CLAIM_LOST_FORGOTTEN] = "claim-lost-forgotten",
    [PAWLI_MUTANT_ADOPT_UNCONFIRMED] = "adopt-unconfirmed",
    [PAWLI_MUTANT_SETTLE_AT_RISK] = "settle-at-risk",
    [PAWLI_MUTANT_ABORT_SETTLED] = "abort-settled",
    [PAWLI_MUTANT_START_AT_RISK] = "start-at-risk",
    [PAWLI_MUTANT_BUFFER_NOT_RENEWED] = "buffer-not-renewed",
    [PAWLI_MUTANT_SETTLE_NOT_RENEWED] = "settle-not-renewed",
    [PAWLI_MUTANT_UNKNOWN_IS_DONE] = "unknown-is-done",
    [PAWLI_MUTANT_REFUSAL_ABORTS_ALL] = "refusal-aborts-all",
};
_Static_assert(sizeof(names) / sizeof(names[0]) == PAWLI_MUTANTS, "every mutant has a name");

bool sim_mutant_find(const char *name, int *ret_mutant)
{
    for (int i = 0; i < PAWLI_MUTANTS; i++) {
        if (strcmp(names[i], name) == 0) {
            *ret_mutant = i;
            return true;
        }
    }
    return false;
}

void sim_mutants_list(FILE *out)
{
    for (int i = 1; i < PAWLI_MUTANTS; i++)
        fprintf(out, "%s\n", names[i]);
}

static bool is_violated(int mutant, int favour, uint64_t seed, struct sim_outcome *ret_outcome)
{
    struct sim_run_args args = {.seed = seed, .mutant = mutant, .favour = favour, .is_once = true};
    sim_run(&args, ret_outcome);
    return !ret_outcome->is_ok;
}

/* Whether the mutant is caught within its seeds. A seed that is violated without it proves nothing
 * about it. */
static bool is_caught(int mutant)
{
    struct sim_outcome outcome;
    struct sim_outcome without;
    for (uint64_t seed = 1; seed <= SEEDS_MAX; seed++) {
        if (!is_violated(mutant, mutant, seed, &outcome) ||
            is_violated(PAWLI_MUTANT_NONE, mutant, seed, &without))
            continue;
        printf("ok %d - %s # caught by %s in seed %" PRIu64 ": %s\n", mutant, names[mutant],
               outcome.rule, seed, outcome.text);
        return true;
    }
    printf("not ok %d - %s # survived %d seeds\n", mutant, names[mutant], SEEDS_MAX);
    return false;
}

int sim_mutants_all(void)
{
    int survived = 0;
    printf("1..%d\n", PAWLI_MUTANTS - 1);
    for (int i = 1; i < PAWLI_MUTANTS; i++) {
        survived += is_caught(i) ? 0 : 1;
        fflush(stdout);
    }
    printf("# mutants: %d of %d caught\n", PAWLI_MUTANTS - 1 - survived, PAWLI_MUTANTS - 1);
    return survived > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

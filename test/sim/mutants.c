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

#define RULES_MAX 2
#define SEEDS_MAX 60 /* a bug that needs more is hidden too well: help it in swarm.c */

/* A mutant's name, and the rules that speak of what it does: one of them must catch it. */
struct mutant {
    const char *name;
    const char *rules[RULES_MAX];
};

static const struct mutant mutants[] = {
    [PAWLI_MUTANT_NONE] = {"none", {NULL}},
    [PAWLI_MUTANT_TOKEN_UNCHECKED] = {"token-unchecked", {"C3"}},
    [PAWLI_MUTANT_TOKEN_PER_WORKER] = {"token-per-worker", {"C25"}},
    [PAWLI_MUTANT_WORKER_UNCHECKED_EXPIRY] = {"expiry-unchecked", {"C3"}},
    [PAWLI_MUTANT_REAP_BY_ID_ONLY] = {"reap-by-id-only", {"C9"}},
    [PAWLI_MUTANT_REAP_UNEXPIRED] = {"reap-unexpired", {"C9"}},
    [PAWLI_MUTANT_CLAIM_TWO_STEPS] = {"claim-two-steps", {"C2"}},
    [PAWLI_MUTANT_LOST_NOT_COUNTED] = {"lost-not-counted", {"C6"}},
    [PAWLI_MUTANT_RELEASE_STALE] = {"release-stale", {"C3"}},
    [PAWLI_MUTANT_RETRY_NO_DELAY] = {"retry-no-delay", {"C18"}},
    [PAWLI_MUTANT_RETRY_UNBOUNDED] = {"retry-unbounded", {"C6"}},
    [PAWLI_MUTANT_VERSION_STANDS] = {"version-stands", {"C8"}},
    [PAWLI_MUTANT_EXPIRY_NO_ROW] = {"expiry-no-row", {"C7"}},
    [PAWLI_MUTANT_RENEW_SHORTENS] = {"renew-shortens", {"C23"}},
    [PAWLI_MUTANT_RELEASE_COUNTS_LOST] = {"release-counts-lost", {"C6"}},
    [PAWLI_MUTANT_SETTLE_REPLAY_AGAIN] = {"settle-replay-again", {"C7", "C4"}},
    [PAWLI_MUTANT_TERMINAL_CLAIMABLE] = {"terminal-claimable", {"C5", "C9"}},
    [PAWLI_MUTANT_WATCHDOG_FROM_REPLY] = {"watchdog-from-reply", {"C11"}},
    [PAWLI_MUTANT_NO_BEATS_AT_DRAIN] = {"no-beats-at-drain", {"C10"}},
    [PAWLI_MUTANT_WAKE_WITHOUT_POLL] = {"wake-without-poll", {"C14"}},
    [PAWLI_MUTANT_CLAIM_LOST_FORGOTTEN] = {"claim-lost-forgotten", {"C13"}},
    [PAWLI_MUTANT_ADOPT_UNCONFIRMED] = {"adopt-unconfirmed", {"C11"}},
    [PAWLI_MUTANT_SETTLE_AT_RISK] = {"settle-at-risk", {"C11"}},
    [PAWLI_MUTANT_ABORT_SETTLED] = {"abort-settled", {"C17"}},
    [PAWLI_MUTANT_START_AT_RISK] = {"start-at-risk", {"C11", "C12"}},
    [PAWLI_MUTANT_BUFFER_NOT_RENEWED] = {"buffer-not-renewed", {"C10"}},
    [PAWLI_MUTANT_SETTLE_NOT_RENEWED] = {"settle-not-renewed", {"C10"}},
    [PAWLI_MUTANT_UNKNOWN_IS_DONE] = {"unknown-is-done", {"C21"}},
    [PAWLI_MUTANT_REFUSAL_ABORTS_ALL] = {"refusal-aborts-all", {"C20"}},
    [PAWLI_MUTANT_LOSS_NO_DELAY] = {"loss-no-delay", {"C18"}},
    [PAWLI_MUTANT_TIMEOUT_SUCCEEDS] = {"timeout-succeeds", {"C17"}},
    [PAWLI_MUTANT_NO_CALL_BACKOFF] = {"no-call-backoff", {"Q-STORE-DOWN"}},
    [PAWLI_MUTANT_BEAT_TRIED_ONCE] = {"beat-tried-once", {"C10"}},
    [PAWLI_MUTANT_SHUTDOWN_KEEPS] = {"shutdown-keeps", {"C28"}},
    [PAWLI_MUTANT_KEY_RETRY_OVERTAKEN] = {"key-retry-overtaken", {"C30"}},
    [PAWLI_MUTANT_KEY_RELEASE_FORGETS] = {"key-release-forgets", {"C29", "C30"}},
    [PAWLI_MUTANT_KEY_CLAIM_TWO] = {"key-claim-two", {"C29"}},
    [PAWLI_MUTANT_FENCE_REUSED] = {"fence-reused", {"C31"}},
    [PAWLI_MUTANT_IN_FLIGHT_UNCOUNTED] = {"in-flight-uncounted", {"C32"}},
};
_Static_assert(sizeof(mutants) / sizeof(mutants[0]) == PAWLI_MUTANTS, "every mutant has a name");

bool sim_mutant_find(const char *name, int *ret_mutant)
{
    for (int i = 0; i < PAWLI_MUTANTS; i++) {
        if (strcmp(mutants[i].name, name) == 0) {
            *ret_mutant = i;
            return true;
        }
    }
    return false;
}

void sim_mutants_list(FILE *out)
{
    for (int i = 1; i < PAWLI_MUTANTS; i++)
        fprintf(out, "%s\n", mutants[i].name);
}

static bool is_violated(int mutant, int favour, uint64_t seed, struct sim_outcome *ret_outcome)
{
    struct sim_run_args args = {.seed = seed, .mutant = mutant, .favour = favour, .is_once = true};
    sim_run(&args, ret_outcome);
    return !ret_outcome->is_ok;
}

/* The rule of this mutant that the run has broken, or NULL: what else goes wrong proves nothing. */
static const char *rule_broken(int mutant, const struct sim_outcome *outcome)
{
    for (int i = 0; i < RULES_MAX && mutants[mutant].rules[i] != NULL; i++) {
        if (sim_outcome_has_broken(outcome, mutants[mutant].rules[i]))
            return mutants[mutant].rules[i];
    }
    return NULL;
}

/* Whether the mutant is caught within its seeds. A seed that is violated without it proves nothing
 * about it. */
static bool is_caught(int mutant)
{
    struct sim_outcome outcome;
    struct sim_outcome without;
    for (uint64_t seed = 1; seed <= SEEDS_MAX; seed++) {
        if (!is_violated(mutant, mutant, seed, &outcome) || rule_broken(mutant, &outcome) == NULL ||
            is_violated(PAWLI_MUTANT_NONE, mutant, seed, &without))
            continue;
        printf("ok %d - %s # caught by %s in seed %" PRIu64 ": %s: %s\n", mutant,
               mutants[mutant].name, rule_broken(mutant, &outcome), seed, outcome.rule,
               outcome.text);
        return true;
    }
    printf("not ok %d - %s # survived %d seeds\n", mutant, mutants[mutant].name, SEEDS_MAX);
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

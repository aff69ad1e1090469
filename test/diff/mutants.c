/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * mutants.c - proves the differential test: of two stores in memory one has a deliberate bug, and
 * the walk must find each of them.
 * Owns:  the list of bugs.
 * Never: counts a bug as found that both stores have.
 */
#include "diff/walk.h"

#include "core/mutant.h"
#include "store/memory_kind.h"

#define CALLS 20000
#define SEED  1

static const struct {
    enum pawli_mutant number;
    const char *name;
} mutants[] = {
    {PAWLI_MUTANT_NONE, "none: the two agree"},
    {PAWLI_MUTANT_TOKEN_UNCHECKED, "token unchecked"},
    {PAWLI_MUTANT_TOKEN_PER_WORKER, "token per worker"},
    {PAWLI_MUTANT_WORKER_UNCHECKED_EXPIRY, "expiry unchecked"},
    {PAWLI_MUTANT_REAP_UNEXPIRED, "reap unexpired"},
    {PAWLI_MUTANT_LOST_NOT_COUNTED, "lost lease not counted"},
    {PAWLI_MUTANT_RELEASE_STALE, "stale release accepted"},
    {PAWLI_MUTANT_RETRY_NO_DELAY, "retry without delay"},
    {PAWLI_MUTANT_RETRY_UNBOUNDED, "retry unbounded"},
    {PAWLI_MUTANT_VERSION_STANDS, "version stands still"},
    {PAWLI_MUTANT_EXPIRY_NO_ROW, "expiry leaves no row"},
    {PAWLI_MUTANT_RENEW_SHORTENS, "renewal shortens"},
    {PAWLI_MUTANT_RELEASE_COUNTS_LOST, "release counts as lost"},
    {PAWLI_MUTANT_SETTLE_REPLAY_AGAIN, "repeated settle writes again"},
    {PAWLI_MUTANT_TERMINAL_CLAIMABLE, "a succeeded job comes back"},
    {PAWLI_MUTANT_LOSS_NO_DELAY, "no backoff after losses in a row"},
    {PAWLI_MUTANT_KEY_RETRY_OVERTAKEN, "a retry is overtaken within its key"},
    {PAWLI_MUTANT_KEY_RELEASE_FORGETS, "a release lets go of the key"},
    {PAWLI_MUTANT_KEY_CLAIM_TWO, "a claim takes two of one key"},
    {PAWLI_MUTANT_FENCE_REUSED, "a fence is used twice"},
    {PAWLI_MUTANT_IN_FLIGHT_UNCOUNTED, "what is in flight is not counted"},
};

#define MUTANTS_COUNT (sizeof(mutants) / sizeof(mutants[0]))

int main(void)
{
    int failed = 0;
    (void)printf("1..%zu\n", MUTANTS_COUNT);
    for (size_t i = 0; i < MUTANTS_COUNT; i++) {
        bool is_sound = mutants[i].number == PAWLI_MUTANT_NONE;
        struct walk_plan plan = {
            .kinds = {&memory_kind, &memory_kind},
            .mutants = {PAWLI_MUTANT_NONE, (int)mutants[i].number},
            .sides_count = 2,
            .shards = 1,
            .seed = SEED,
            .calls = CALLS,
        };
        struct walk_result result = walk_stores(&plan, NULL);
        bool is_right = !result.is_broken && result.is_same == is_sound &&
                        result.is_covered == is_sound;
        failed += !is_right;
        (void)printf("%s %zu - %s (%zu calls)\n", is_right ? "ok" : "not ok", i + 1,
                     mutants[i].name, result.calls);
    }
    return failed > 0 ? 1 : 0;
}

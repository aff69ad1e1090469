/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * mutants_main.c - proves the suite: with each deliberate bug of the memory store switched on, some
 * case must fail. Bugs that need two callers at once are left to the simulator.
 * Owns:  one process per bug, and the TAP stream about them.
 * Never: runs the suite in its own process: a bug may end it in any way.
 */
#include "store/memory_kind.h"
#include "store/suite.h"

#include "core/mutant.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* A run that takes longer than this hangs, which counts as caught. */
#define SECONDS_MAX 100

static const struct {
    enum pawli_mutant number;
    const char *name;
} mutants[] = {
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
    {PAWLI_MUTANT_KEY_RETRY_OVERTAKEN, "a retry is overtaken within its key"},
    {PAWLI_MUTANT_KEY_RELEASE_FORGETS, "a release lets go of the key"},
    {PAWLI_MUTANT_KEY_CLAIM_TWO, "a claim takes two of one key"},
    {PAWLI_MUTANT_FENCE_REUSED, "a fence is used twice"},
    {PAWLI_MUTANT_IN_FLIGHT_UNCOUNTED, "what is in flight is not counted"},
};

#define MUTANTS_COUNT (sizeof(mutants) / sizeof(mutants[0]))

/* Run the suite in a process of its own; true where every case passed. */
static bool has_passed(enum pawli_mutant mutant, const char *filter)
{
    (void)fflush(stdout); /* or the child prints it again */
    pid_t child = fork();
    if (child < 0)
        return false;
    if (child == 0) {
        if (freopen("/dev/null", "w", stdout) == NULL || freopen("/dev/null", "w", stderr) == NULL)
            _exit(1);
        (void)alarm(SECONDS_MAX); /* there was none before */
        pawli_testpoints.mutant = (int)mutant;
        struct suite_choice choice = {.filter = filter, .is_one_shard_only = true};
        _exit(suite_run(&memory_kind, &choice) > 0 ? 1 : 0);
    }
    int status = 0;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int main(int argc, char **argv)
{
    const char *filter = argc > 1 ? argv[1] : NULL;
    size_t failed = 0;
    (void)printf("1..%zu\n", MUTANTS_COUNT + 1);
    bool is_sound = has_passed(PAWLI_MUTANT_NONE, filter);
    failed += !is_sound;
    (void)printf("%s 1 - the suite passes where nothing is broken\n", is_sound ? "ok" : "not ok");
    for (size_t i = 0; i < MUTANTS_COUNT; i++) {
        bool is_caught = !has_passed(mutants[i].number, filter);
        failed += !is_caught;
        (void)printf("%s %zu - caught: %s\n", is_caught ? "ok" : "not ok", i + 2, mutants[i].name);
    }
    return failed > 0 ? 1 : 0;
}

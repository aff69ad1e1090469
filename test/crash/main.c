/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * main.c - the crash test: crash STORE [--seed N] [--kills N] [--spoil FILE] [--early].
 * Owns:  the command line, and which of its processes this is.
 * Never: kills; works.
 */
#include "crash/crash.h"

#include <stdlib.h>
#include <string.h>

#define KILLS_USUAL 200

/* What the director gives a client: the order of become_client(). */
enum client_argument {
    ARG_ROLE = 2,
    ARG_ACTOR,
    ARG_SEED,
    ARG_STORE,
    ARG_WHERE,
    ARG_FOLDER,
    ARG_MANNER,
    ARGS_COUNT
};

static int run_client(char **argv)
{
    struct client client = {
        .kind = crash_kind_named(argv[ARG_STORE]),
        .where = argv[ARG_WHERE],
        .is_early = strcmp(argv[ARG_MANNER], "early") == 0,
        .is_slow = strcmp(argv[ARG_MANNER], "slow") == 0,
        .seeded = {strtoull(argv[ARG_SEED], NULL, 10)},
    };
    while (client.role < CRASH_ROLES && strcmp(crash_role_name(client.role), argv[ARG_ROLE]) != 0)
        client.role++;
    if (client.kind == NULL || client.role == CRASH_ROLES)
        return 64;
    client_run(&client, argv[ARG_FOLDER], argv[ARG_ACTOR]);
    return 0;
}

static bool parse(int argc, char **argv, struct crash_plan *plan)
{
    plan->kind = argc > 1 ? crash_kind_named(argv[1]) : NULL;
    for (int i = 2; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--early") == 0) {
            plan->is_early = true;
            continue;
        }
        if (value == NULL)
            return false;
        if (strcmp(argv[i], "--seed") == 0)
            plan->seed = strtoull(value, NULL, 10);
        else if (strcmp(argv[i], "--kills") == 0)
            plan->kills = strtoull(value, NULL, 10);
        else if (strcmp(argv[i], "--spoil") == 0)
            plan->spoil = value;
        else
            return false;
        i++;
    }
    return plan->kind != NULL;
}

int main(int argc, char **argv)
{
    if (argc == ARGS_COUNT && strcmp(argv[1], "--client") == 0)
        return run_client(argv);
    const pawl_random *random = pawl_random_system();
    struct crash_plan plan = {.seed = random->next(random->user) % 1000000, .kills = KILLS_USUAL};
    if (!parse(argc, argv, &plan)) {
        (void)fputs(
            "usage: crash postgres|sqlite [--seed N] [--kills N] [--spoil FILE] [--early]\n",
            stderr);
        return 64;
    }
    return crash_direct(&plan) == 0 ? 0 : 1;
}

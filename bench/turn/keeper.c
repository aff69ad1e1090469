/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * keeper.c - the keeper alone: jobs go through it from the claim to the end, at once, without a
 * store, threads or a clock. For what it costs by itself.
 * Owns:  the answers that it is given.
 * Never: makes it wait: every call is answered as soon as it is asked for.
 */
#include "turn.h"

#include "core/keeper.h"

#include <stdlib.h>
#include <string.h>

#define STEP_US 1000 /* what passes between two rounds */

struct desk {
    const struct turn *turn;
    struct pawli_keeper *keeper;
    pawl_mono now;
    int64_t given; /* jobs, so far */
    int64_t over;
    struct pawli_grant *grants; /* as many as it has slots; so are the next two */
    struct pawli_slot *slots;
    struct pawli_verdict *verdicts;
};

static void answer_claim(struct desk *desk, const struct pawli_action *action)
{
    int64_t left = desk->turn->jobs - desk->given;
    size_t count = (size_t)(action->jobs_max < left ? action->jobs_max : left);
    for (size_t i = 0; i < count; i++) {
        struct pawli_grant *grant = &desk->grants[i];
        int64_t number = ++desk->given;
        *grant = (struct pawli_grant){.lease_ms = LEASE_LONG_MS, .timeout_ms = LEASE_LONG_MS};
        grant->lease.version = 1;
        memcpy(grant->lease.job.bytes, &number, sizeof(number));
        memcpy(grant->lease.token.bytes, &number, sizeof(number));
    }
    pawli_keeper_on_claimed(desk->keeper, desk->now, action->request, desk->grants, count,
                            desk->slots);
}

static void answer_settle(struct desk *desk, const struct pawli_action *action)
{
    uint64_t request = action->request;
    size_t count = action->items_count;
    for (size_t i = 0; i < count; i++)
        desk->verdicts[i] = (struct pawli_verdict){.slot = action->items[i].slot, .code = PAWL_OK};
    pawli_keeper_on_settled(desk->keeper, desk->now, request, desk->verdicts, count);
}

/* False: it asked for what nobody expects here. */
static bool answer(struct desk *desk, const struct pawli_action *action)
{
    switch (action->kind) {
    case PAWLI_ACTION_CLAIM:
        answer_claim(desk, action);
        return true;
    case PAWLI_ACTION_START:
        pawli_keeper_on_ended(desk->keeper, desk->now, action->slot,
                              (struct pawli_ended){.result = PAWLI_RESULT_DONE});
        return true;
    case PAWLI_ACTION_SETTLE:
        answer_settle(desk, action);
        return true;
    case PAWLI_ACTION_OVER:
        desk->over++;
        return true;
    case PAWLI_ACTION_MINE:
    case PAWLI_ACTION_RENEW:
    case PAWLI_ACTION_RELEASE:
    case PAWLI_ACTION_ABORT:
    case PAWLI_ACTION_GIVE_UP:
    case PAWLI_ACTION_STOPPED:
        break;
    }
    return turn_fail("the keeper", "it asks for something else");
}

static bool open_desk(struct desk *desk)
{
    pawl_worker_settings settings;
    struct pawli_keeper_line line = {.held_max = PAWL_DEFAULT};
    struct pawli_keeper_config config = {
        .settings = &settings, .lines = &line, .lines_count = 1, .random = pawl_random_system()};
    pawl_err err;
    pawl_worker_settings_init(&settings);
    settings.parallel_max = desk->turn->parallel;
    settings.buffer_max = desk->turn->buffer;
    settings.claim_batch_max = desk->turn->batch;
    settings.settle_batch_max = desk->turn->batch;
    if (pawli_keeper_new(&config, &desk->keeper, &err) != PAWL_OK)
        return turn_fail("the keeper", err.text);
    size_t slots = pawli_keeper_slots(desk->keeper);
    desk->grants = calloc(slots, sizeof(*desk->grants));
    desk->slots = calloc(slots, sizeof(*desk->slots));
    desk->verdicts = calloc(slots, sizeof(*desk->verdicts));
    return desk->grants != NULL && desk->slots != NULL && desk->verdicts != NULL;
}

bool turn_keeper(const struct turn *turn, struct turn_result *result)
{
    struct desk desk = {.turn = turn, .now = {.us = turn_now_us()}};
    struct pawli_action action;
    bool is_good = open_desk(&desk);
    int64_t began_us = turn_now_us();
    while (is_good && desk.over < turn->jobs) {
        while (is_good && pawli_keeper_next(desk.keeper, desk.now, &action))
            is_good = answer(&desk, &action);
        desk.now.us += STEP_US;
    }
    result->seconds = (double)(turn_now_us() - began_us) / 1e6;
    pawli_keeper_free(desk.keeper);
    free(desk.grants);
    free(desk.slots);
    free(desk.verdicts);
    return is_good;
}

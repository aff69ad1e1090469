/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * draw.c - the draw of random operations.
 * Owns:  how likely each of them is.
 * Never: asks a store.
 */
#include "worklease/draw.h"

#include <stdio.h>

const int64_t worklease_universe[UNIVERSE] = {INT64_MIN,
                                              INT64_MIN + 1,
                                              INT64_MIN + 2,
                                              -7,
                                              -2,
                                              -1,
                                              0,
                                              1,
                                              2,
                                              3,
                                              4,
                                              5,
                                              6,
                                              8,
                                              10,
                                              11,
                                              12,
                                              1000,
                                              1001,
                                              INT64_MAX - 3,
                                              INT64_MAX - 2,
                                              INT64_MAX - 1,
                                              INT64_MAX};

void draw_domains(struct model models[DOMAINS], int episode)
{
    for (int i = 0; i < DOMAINS; i++) {
        models[i] = (struct model){.max_retries = i == 2 ? 3 : i, .backlog_max = 2 + 3 * i};
        (void)snprintf(models[i].name, sizeof(models[i].name), "%c/%d", 'A' + i, episode);
    }
}

int64_t draw_turn_ms(const pawl_random *random)
{
    if (pawli_random_below(random, 100) >= TURN_CHANCE)
        return 0;
    return 1 + (int64_t)pawli_random_below(random, LEASE_MS + 200);
}

struct operation draw_operation(const struct model *model, int64_t now_us,
                                const pawl_random *random)
{
    static const char *const owners[] = {NULL, "a", "b"};
    struct operation op = {.kind = ACQUIRE, .lease_ms = PAWL_DEFAULT, .now_us = now_us};
    uint64_t dice = pawli_random_below(random, 100);
    op.owner = owners[pawli_random_below(random, 3)];
    if (dice < 60) {
        op.offset = worklease_universe[pawli_random_below(random, UNIVERSE)];
        bool is_head_wanted = !model->is_leased && model->backlog.count > 0;
        if (is_head_wanted && pawli_random_below(random, 100) < 60)
            op.offset = model->backlog.offsets[0];
        if (model->is_leased && pawli_random_below(random, 100) < 25)
            op.offset = model->offset;
        if (pawli_random_below(random, 2) == 0)
            op.lease_ms = LEASE_MS;
        return op;
    }
    op.kind = dice < 78 ? SUCCEED : dice < 92 ? FAIL : RENEW;
    if (op.kind == RENEW)
        op.lease_ms = 500 + (int64_t)pawli_random_below(random, 1000);
    uint64_t whose = pawli_random_below(random, 100);
    if (whose < 85)
        op.token = model->token; /* of the lease, or of the last one */
    else if (whose < 95)
        op.token = model->token_before;
    else
        pawli_random_fill(random, op.token.bytes, sizeof(op.token.bytes));
    if (pawli_random_below(random, 100) < 90)
        op.owner = model->owner;
    return op;
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * draw.h - the simulator's dice. Every decision of a run is drawn from a stream that its seed
 * determines; nothing else is random.
 */
#ifndef SIM_DRAW_H
#define SIM_DRAW_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

struct sim_dice {
    uint64_t state;
};

/* The next 64 bits (splitmix64: one addition and three mixing rounds). */
static inline uint64_t sim_draw(struct sim_dice *dice)
{
    uint64_t mixed = (dice->state += UINT64_C(0x9e3779b97f4a7c15));
    mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ (mixed >> 31);
}

/* A stream of its own for one part of a run, so that one more draw in one part does not turn the
 * whole run into another one. */
static inline struct sim_dice sim_dice_for(uint64_t seed, uint64_t part)
{
    struct sim_dice dice = {seed * UINT64_C(0xd1342543de82ef95) + part};
    dice.state = sim_draw(&dice) ^ part;
    return dice;
}

/* A whole number in [low, high]. The slight bias of the multiplication does not matter here. */
static inline int64_t sim_between(struct sim_dice *dice, int64_t low, int64_t high)
{
    assert(low <= high);
    uint64_t span = (uint64_t)(high - low) + 1;
    uint64_t drawn = sim_draw(dice) >> 32;
    if (span > UINT32_MAX)
        return low + (int64_t)(sim_draw(dice) % span);
    return low + (int64_t)((drawn * span) >> 32);
}

/* True `parts` times out of a million. */
static inline bool sim_chance(struct sim_dice *dice, int64_t parts_per_million)
{
    return parts_per_million > 0 && sim_between(dice, 0, 999999) < parts_per_million;
}

static inline bool sim_flip(struct sim_dice *dice)
{
    return (sim_draw(dice) >> 63) != 0;
}

/* An index below `count`, drawn so that weights[i] says how likely i is. */
static inline uint32_t sim_weighted(struct sim_dice *dice, const uint32_t *weights, uint32_t count)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += weights[i];
    assert(sum > 0);
    uint64_t at = (uint64_t)sim_between(dice, 0, (int64_t)sum - 1);
    uint32_t i = 0;
    while (at >= weights[i])
        at -= weights[i++];
    return i;
}

#endif

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * memory_kind.c - how the suite gets a memory store, and lets its time pass.
 * Owns:  the clock turned by hand and the seeded random source of each such store.
 * Never: reaches behind the public interface of the store.
 */
#include "store/memory_kind.h"

#include "base/clock.h"
#include "base/random.h"

#include <stdlib.h>

/* Some day that is not near 0, so that an instant of 0 always means "none". */
#define STORY_BEGINS_US INT64_C(1700000000000000)

struct place {
    struct pawli_manual_clock manual;
    struct pawli_seeded seeded;
    pawl_clock clock;
    pawl_random random;
    pawl_memory *memory;
};

static struct place *make(int64_t shards)
{
    struct place *place = calloc(1, sizeof(*place));
    if (place == NULL)
        return NULL;
    place->manual.wall = (pawl_wall){STORY_BEGINS_US};
    place->manual.mono = (pawl_mono){1};
    place->seeded.state = 7;
    place->clock = pawli_manual_clock_as_clock(&place->manual);
    place->random = pawli_seeded_as_random(&place->seeded);

    pawl_memory_options options;
    pawl_memory_options_init(&options);
    options.clock = &place->clock;
    options.random = &place->random;
    options.shards = shards;
    if (pawl_memory_new(&options, &place->memory, NULL) != PAWL_OK) {
        free(place);
        return NULL;
    }
    return place;
}

static pawl_store *open_memory(struct place *place)
{
    pawl_store *store = NULL;
    return pawl_memory_open(place->memory, &store, NULL) == PAWL_OK ? store : NULL;
}

static void turn(struct place *place, int64_t ms)
{
    pawli_manual_clock_turn_ms(&place->manual, ms);
}

static void drop(struct place *place)
{
    pawl_memory_free(place->memory);
    free(place);
}

const struct store_kind memory_kind = {
    .name = "memory",
    .has_exact_clock = true,
    .is_clock_turned = true,
    .is_durable = false,
    .slack_ms = 0,
    .walk_steps = 6000,
    .make = make,
    .open = open_memory,
    .age = turn,
    .restart = NULL,
    .drop = drop,
};

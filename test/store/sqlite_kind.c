/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * sqlite_kind.c - how the suite gets a SQLite store, and lets its time pass.
 * Owns:  the file, the clock turned by hand and the seeded random source of each such store.
 * Never: reaches behind the public interface of the store.
 */
#include "store/sqlite_kind.h"

#include "base/clock.h"
#include "base/random.h"
#include "support/scratch.h"

#include <stdio.h>
#include <stdlib.h>

/* Some day that is not near 0, so that an instant of 0 always means "none". */
#define STORY_BEGINS_US INT64_C(1700000000000000)

struct place {
    struct scratch scratch;
    struct pawli_manual_clock manual;
    struct pawli_seeded seeded;
    pawl_clock clock;
    pawl_random random;
    pawl_sqlite *sqlite;
};

static bool begin(struct place *place)
{
    pawl_sqlite_options options;
    pawl_err err;
    pawl_sqlite_options_init(&options);
    options.path = place->scratch.path;
    options.clock = &place->clock;
    options.random = &place->random;
    options.call_timeout_ms = 30000; /* a slow machine is no fault of the store's */
    if (pawl_sqlite_new(&options, &place->sqlite, &err) == PAWL_OK)
        return true;
    (void)fprintf(stderr, "new: %s\n", err.text);
    return false;
}

static void drop(struct place *place)
{
    pawl_sqlite_free(place->sqlite);
    scratch_remove(&place->scratch);
    free(place);
}

static struct place *make(int64_t shards)
{
    if (shards != 1)
        return NULL; /* a file has one */
    struct place *place = calloc(1, sizeof(*place));
    if (place == NULL)
        return NULL;
    place->manual.wall = (pawl_wall){STORY_BEGINS_US};
    place->manual.mono = (pawl_mono){1};
    place->seeded.state = 7;
    place->clock = pawli_manual_clock_as_clock(&place->manual);
    place->random = pawli_seeded_as_random(&place->seeded);
    if (scratch_make(&place->scratch) && begin(place))
        return place;
    drop(place);
    return NULL;
}

static pawl_store *open_sqlite(struct place *place)
{
    pawl_store *store = NULL;
    pawl_err err;
    if (pawl_sqlite_open(place->sqlite, &store, &err) == PAWL_OK)
        return store;
    (void)fprintf(stderr, "open: %s\n", err.text);
    return NULL;
}

static void turn(struct place *place, int64_t ms)
{
    pawli_manual_clock_turn_ms(&place->manual, ms);
}

static void restart(struct place *place)
{
    pawl_sqlite_free(place->sqlite);
    place->sqlite = NULL;
    if (!begin(place))
        abort(); /* a case that goes on now proves nothing */
}

const struct store_kind sqlite_kind = {
    .name = "sqlite",
    .has_exact_clock = true,
    .is_clock_turned = true,
    .is_durable = true,
    .slack_ms = 0,
    .walk_steps = 6000,
    .make = make,
    .open = open_sqlite,
    .age = turn,
    .restart = restart,
    .drop = drop,
};

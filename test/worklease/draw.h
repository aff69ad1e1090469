/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * draw.h - what walks over work leases draw from.
 */
#ifndef PAWLT_WORKLEASE_DRAW_H
#define PAWLT_WORKLEASE_DRAW_H

#include "base/random.h"
#include "worklease/model.h"

#define DOMAINS     3    /* of one episode */
#define LEASE_MS    1000 /* where a lease has a deadline */
#define TURN_CHANCE 4    /* percent of the steps before which time passes */
#define UNIVERSE    23

/* Neighbours, gaps, and both ends of the range. */
extern const int64_t worklease_universe[UNIVERSE];

/* The models of an episode: one allows no retry, one has little room. */
void draw_domains(struct model models[DOMAINS], int episode);

/* How much time passes before a step, in milliseconds; mostly none. */
int64_t draw_turn_ms(const pawl_random *random);

/* An operation that has a chance to come to something. */
struct operation draw_operation(const struct model *model, int64_t now_us,
                                const pawl_random *random);

#endif

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * sql_walk.h - the walk beside the naive model for a client that knows SQL only: many operations in
 * one call, each a transaction of its own, and after each all that is kept of its domain.
 */
#ifndef PAWLT_WORKLEASE_SQL_WALK_H
#define PAWLT_WORKLEASE_SQL_WALK_H

#include "worklease/suite.h"

/* `state` is a struct stage on an exact PostgreSQL store. */
void sql_equals_the_naive_model(void **state);

#endif

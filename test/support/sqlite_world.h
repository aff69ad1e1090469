/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * sqlite_world.h - a SQLite store in a file of its own, with a clock turned by hand and a seeded
 * random source, for tests that look behind the verbs.
 */
#ifndef PAWLT_SQLITE_WORLD_H
#define PAWLT_SQLITE_WORLD_H

#include "base/clock.h"
#include "base/random.h"
#include "pawl/pawl.h"
#include "support/scratch.h"

#include <sqlite3.h>

struct lite_world {
    struct scratch scratch;
    struct pawli_manual_clock manual;
    pawl_clock clock;
    struct pawli_seeded seeded;
    pawl_random random;
    pawl_sqlite_options options; /* may be changed between making and opening */
    pawl_sqlite *sqlite;         /* NULL while it is not open */
    pawl_store *store;
};

/* All fail the test on trouble, unless they say otherwise. */

/* The folder, the clock and the options; nothing is opened. */
void lite_world_make(struct lite_world *world);

/* Before it is opened: make the file one of version 1, with jobs (see sqlite_v1.sql). Not for the
 * fault-injecting file system: it writes. */
void lite_world_make_old(const struct lite_world *world);

/* Open the file and a handle. Gives the code, and fails nothing. */
pawl_code lite_world_try_open(struct lite_world *world, pawl_err *err);
void lite_world_open(struct lite_world *world);

/* Close what is open. */
void lite_world_close(struct lite_world *world);
void lite_world_end(struct lite_world *world);

/* A further handle; the caller closes it. */
pawl_store *lite_world_handle(struct lite_world *world);

/* A connection to the file like that of any program. The caller closes it. */
sqlite3 *lite_connect(const struct lite_world *world);

/* Run SQL, and give the number in the first column of its last row; 0 where there is none. */
int64_t lite_run(sqlite3 *db, const char *sql);

/* The same on a connection of its own. */
int64_t lite_ask(const struct lite_world *world, const char *sql);

/* The file is well, and the tables agree with each other: see the .c. */
void lite_check(const struct lite_world *world);

/* Short verbs on world->store. */
pawl_id lite_put(struct lite_world *world, const char *queue);
size_t lite_take(struct lite_world *world, const char *queue, pawl_job *ret_jobs, size_t jobs_max);
pawl_job lite_take_one(struct lite_world *world, const char *queue);
pawl_settled lite_settle(struct lite_world *world, const pawl_job *job, pawl_settle_action action);

#define LITE_WORKER "w1"

#endif

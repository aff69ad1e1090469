/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * steps.h - the SQL that makes a file of Pawl, built into the library from sql/ by tools/embed-sql.
 */
#ifndef PAWLI_STORE_SQLITE_STEPS_H
#define PAWLI_STORE_SQLITE_STEPS_H

#include <stddef.h>

struct pawli_sqlite_step {
    const char *name; /* of its file, without .sql */
    const char *sql;
};

/* In the order in which they run, all in one transaction. */
extern const struct pawli_sqlite_step pawli_sqlite_steps[];
extern const size_t pawli_sqlite_steps_count;

#endif

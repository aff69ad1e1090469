/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * steps.h - the migrations, built into the library from sql/ (see tools/embed-sql).
 */
#ifndef PAWLI_STORE_POSTGRES_STEPS_H
#define PAWLI_STORE_POSTGRES_STEPS_H

#include <stddef.h>
#include <stdint.h>

struct pawli_pg_step {
    const char *name; /* of the file, without its ending: three digits, a line, words */
    const char *sql;
};

/* In the order of their names. */
extern const struct pawli_pg_step pawli_pg_steps[];
extern const size_t pawli_pg_steps_count;

/* From this number on, steps are what plain PostgreSQL can add, and not needed. */
#define PAWLI_PG_STEP_OPTIONAL 900

/* The number that a step's name begins with. */
int64_t pawli_pg_step_number(const char *name);

/* The number of the last step that is needed: the version of the schema. */
int64_t pawli_pg_schema_version(void);

#endif

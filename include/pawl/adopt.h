/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * adopt.h - taking over an outbox of the older kind, in a PostgreSQL database that `pawl migrate
 * up` has set up: a table of pending rows from which a claim deletes, and a table of attempts in
 * which it leaves a DISPATCHING row. docs/adopting.md is the manual. The words, the codes and the
 * rules are those of pawl.h.
 */
#ifndef PAWL_ADOPT_H
#define PAWL_ADOPT_H

#include "pawl/pawl.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PAWL_ADOPT_ID_MAX 128 /* bytes shown of an old id */

/* What a mapping may say. */
typedef struct pawl_adopt_key {
    const char *name; /* "queue", "pending.table" ...: constant */
    bool is_needed;
} pawl_adopt_key;

/* All keys; as many as *ret_count says. Constant. */
PAWL_API const pawl_adopt_key *pawl_adopt_keys(size_t *ret_count);

/* What a mapping says. Names of schemas, tables and columns stand as the database has them. */
typedef struct pawl_adopt_entry {
    const char *key;
    const char *value;
} pawl_adopt_entry;

typedef struct pawl_adopt_options {
    const char *conninfo; /* as above; its role must be the owner of the schema pawl */
    const pawl_adopt_entry *mapping;
    size_t mapping_count;
    bool is_dry_run;         /* say what would be done, and change nothing: default false */
    bool is_retiring;        /* rename the old tables, adding _adopted: default false */
    int64_t lock_timeout_ms; /* how long to wait for others who write to the old tables: 5 s */
    int64_t timeout_ms;      /* the longest that all of it may take: default 1 h */
    void (*progress)(void *user, const char *step); /* told what it does now; may be NULL */
    void *user;
} pawl_adopt_options;

typedef enum pawl_adopt_kind {
    PAWL_ADOPT_JOBS = 0,   /* a class of jobs */
    PAWL_ADOPT_ROWS = 1,   /* a class of rows of the old attempts */
    PAWL_ADOPT_PROBLEM = 2 /* jobs that cannot be adopted, and why: they stop the run */
} pawl_adopt_kind;

typedef struct pawl_adopt_old_id {
    char text[PAWL_ADOPT_ID_MAX + 1];
} pawl_adopt_old_id;

typedef struct pawl_adopt_class {
    pawl_adopt_kind kind;
    char name[PAWL_ERR_TEXT_MAX];    /* "pending_due" ...; of a problem: why */
    char becomes[PAWL_ERR_TEXT_MAX]; /* "Ready now" ... */
    int64_t count;
    const pawl_adopt_old_id *ids; /* a few of them; of a problem, the first 1,000 */
    size_t ids_count;
} pawl_adopt_class;

typedef struct pawl_adopt_report {
    bool is_done;    /* false: a dry run, or there are problems; nothing was changed */
    bool is_retired; /* the old tables have their new names */
    int64_t problems_count;
    pawl_adopt_class *classes;
    size_t classes_count;
    pawl_adopt_old_id *ids; /* of all classes */
} pawl_adopt_report;

/* Everything as by default: call it first, then set what should differ. */
PAWL_API void pawl_adopt_options_init(pawl_adopt_options *options);

/* Free what the report owns and empty it. Accepts NULL and an empty report. */
PAWL_API void pawl_adopt_report_clear(pawl_adopt_report *report);

/*
 * Adopt an outbox in one transaction, whole or not at all. Safe to repeat: what was adopted before
 * is left alone. The old tables are locked against changes meanwhile, but not by a dry run. The
 * caller clears *ret_report. PAWL_OK where it was looked through; the report says whether it was
 * adopted. PAWL_INVALID: the mapping is wrong (err->text names the key), or the role is not the
 * owner, or may not read, lock or rename the old tables. PAWL_DOWN: nothing was done; also where
 * the locks were not to be had in time. PAWL_UNKNOWN: the reply was lost; repeat.
 */
PAWL_API PAWL_MUST_USE pawl_code pawl_adopt(const pawl_adopt_options *options,
                                            pawl_adopt_report *ret_report, pawl_err *err);

#ifdef __cplusplus
}
#endif

#endif

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * event_table.h - every event that there is: its id, how bad it is, what its fields are called in
 * lines. docs/logs.md says the same, and a test compares the two.
 */
#ifndef PAWLI_RUNTIME_EVENT_TABLE_H
#define PAWLI_RUNTIME_EVENT_TABLE_H

#include "pawl/worker.h"

struct pawli_event_row {
    const char *id;
    pawl_level level;       /* at the least */
    pawl_level level_worst; /* at the most */
    const char *subject_as; /* its name in lines; NULL: it has none, as below */
    const char *count_as;   /* likewise */
    const char *took_as;    /* likewise; in seconds */
    const char *text;       /* what it means: a constant, for people */
};

/* NULL for a number that is none. */
const struct pawli_event_row *pawli_event_row(pawl_event_kind kind);

/* "debug", "info", "warn", "error"; "?" for a number that is none. */
const char *pawli_level_name(pawl_level level);

/* PAWL_INVALID where it is none. */
pawl_code pawli_check_level(pawl_level level, pawl_err *err);

#endif

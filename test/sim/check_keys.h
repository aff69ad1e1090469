/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * check_keys.h - what check_keys.c and check_keys_loose.c share: the leases of a key, or of a
 * queue, one after the other.
 */
#ifndef SIM_CHECK_KEYS_H
#define SIM_CHECK_KEYS_H

#include "sim/check_model.h"

struct check_leases {
    struct check_lease **items; /* that a claim granted, in the order of their claims */
    size_t count;
    struct check_lease **open; /* room for as many: those that a walk holds for open */
    size_t open_count;
};

/* Of jobs by next_of_key, or by next_of_queue. False: no memory. */
bool check_leases_of(struct check_book *book, struct check_job *jobs, bool is_key,
                     struct check_leases *ret_leases);

/* ---- check_keys_loose.c */
bool check_keys_loose(struct check_book *book);

#endif

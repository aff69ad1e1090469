/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * status_set.h - a set of HTTP's statuses from 400 to 499: which of them end a delivery at once.
 * Written as numbers and ranges: "400,404-406"; empty: none.
 */
#ifndef PAWLI_WEBHOOK_STATUS_SET_H
#define PAWLI_WEBHOOK_STATUS_SET_H

#include "pawl/pawl.h"

#define PAWLI_STATUS_SET_SIZE 272 /* bytes of a printed set, with the closing NUL */

/* Zeroed: empty. */
struct pawli_status_set {
    uint64_t bits[2]; /* of 400 + n, bit n */
};

bool pawli_status_set_has(const struct pawli_status_set *set, int status);

/*
 * Read a set. PAWL_INVALID for anything but numbers and rising ranges from 400 to 499 with commas
 * between them; and for 408, 410, 425 and 429 on their own, whose meaning is fixed (see outcome.h):
 * within a range they are taken, and mean nothing.
 */
PAWL_MUST_USE pawl_code pawli_status_set_parse(const char *text, struct pawli_status_set *ret_set,
                                               pawl_err *err);

/* Print it in its shortest form. Returns `text`. */
const char *pawli_status_set_format(const struct pawli_status_set *set,
                                    char text[PAWLI_STATUS_SET_SIZE]);

/* 408, 410, 425, 429: what they mean is not a setting. */
bool pawli_status_is_fixed(int status);

#endif

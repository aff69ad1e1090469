/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * error.h - making errors. The codes, their names and their texts stand in one table in error.c.
 */
#ifndef PAWLI_BASE_ERROR_H
#define PAWLI_BASE_ERROR_H

#include "pawl/pawl.h"

/*
 * Fill `err` (which may be NULL) with `code` and a text, cut to its size, and return `code`, so
 * that a function can end with `return pawli_fail(...)`. The text must carry no payload and no
 * token.
 */
pawl_code pawli_fail(pawl_err *err, pawl_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same with the code's own text from the table. */
pawl_code pawli_fail_plain(pawl_err *err, pawl_code code);

#endif

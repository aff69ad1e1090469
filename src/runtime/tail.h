/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * tail.h - the last lines of what a program writes.
 */
#ifndef PAWLI_RUNTIME_TAIL_H
#define PAWLI_RUNTIME_TAIL_H

#include "pawl/pawl.h"

#define PAWLI_TAIL_BYTES 4096

/* Zeroed: nothing yet. */
struct pawli_tail {
    char bytes[PAWLI_TAIL_BYTES];
    size_t len;
};

/* More of it; what is too old is forgotten. */
void pawli_tail_put(struct pawli_tail *tail, const char *bytes, size_t bytes_len);

/* The last lines that fit, clean as a store takes them: whole ones where there are any. */
void pawli_tail_text(const struct pawli_tail *tail, char to[PAWL_ERROR_TEXT_MAX + 1]);

#endif

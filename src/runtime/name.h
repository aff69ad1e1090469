/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * name.h - the names of workers and reapers: never used before, and never again (RULE-020-032).
 */
#ifndef PAWLI_RUNTIME_NAME_H
#define PAWLI_RUNTIME_NAME_H

#include "pawl/pawl.h"

#define PAWLI_NAME_BEGIN_MAX 80 /* bytes of a name's beginning: the rest is ours */

/* This machine's name as a name may be; "host" where it has none. */
void pawli_host_name(char to[PAWL_NAME_MAX + 1]);

/* BEGIN/PID/NONCE, where `begin` is NULL for the host's name and has PAWLI_NAME_BEGIN_MAX bytes at
 * most. */
void pawli_fresh_name(char to[PAWL_NAME_MAX + 1], const char *begin, const pawl_random *random);

#endif

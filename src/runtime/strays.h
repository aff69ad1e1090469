/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * strays.h - what programs have started and a warden that was killed could not clear away. In a
 * process that is a subreaper it becomes its child.
 */
#ifndef PAWLI_RUNTIME_STRAYS_H
#define PAWLI_RUNTIME_STRAYS_H

#include <stdbool.h>

/* Become the parent of orphans among our descendants. False: the system cannot do that. */
bool pawli_strays_adopt(void);

/* Kill and reap all children that left our session and are no wardens, until there are none, or for
 * a short while. */
void pawli_strays_kill(void);

#endif

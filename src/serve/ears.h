/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * ears.h - those who listen to changes.
 */
#ifndef PAWLI_SERVE_EARS_H
#define PAWLI_SERVE_EARS_H

#include "serve/exchange.h"

struct MHD_Response;

/* The exchange listens from now on. NULL: too many do already, or memory ran out; its answer says
 * so. */
struct MHD_Response *pawli_ear_begin(struct pawli_exchange *exchange);
void pawli_ear_end(struct pawli_exchange *exchange); /* also of one that does not listen */

/* There may be something to tell. `serve` is a struct pawli_serve. */
void pawli_ears_wake(void *serve);

/* Those who have heard nothing for a while hear something; while the server ends, all of them end.
 * To be called every second or so. */
void pawli_ears_look(struct pawli_serve *serve);

#endif

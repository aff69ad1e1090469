/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * door.h - who is let in: by a token, or, where none is needed, because the request was meant for
 * this machine.
 */
#ifndef PAWLI_SERVE_DOOR_H
#define PAWLI_SERVE_DOOR_H

#include "serve/route.h"

struct pawli_door {
    const struct pawli_grants *grants; /* NULL: no token is needed */
    bool is_unix;                      /* the socket is a file: no browser gets there */
    pawl_wall now;
};

/*
 * Whether this request may go on to its route. True: *ret_grant is what it may do. False: the
 * answer says why not: 401 without a token that is good now, 403 for one that is not for this
 * route, and for a Host or an Origin that is not this machine.
 */
bool pawli_door_open(const struct pawli_door *door, const struct pawli_call *call,
                     struct pawli_grant *ret_grant, struct pawli_answer *answer);

#endif

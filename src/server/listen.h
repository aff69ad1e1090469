/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * listen.h - sockets that others connect to, by the address that a user gave.
 */
#ifndef PAWLI_SERVER_LISTEN_H
#define PAWLI_SERVER_LISTEN_H

#include "pawl/pawl.h"

#define PAWLI_ADDRESS_MAX 200 /* bytes of an address as it is told, with the closing NUL */

struct pawli_listener {
    int fd;
    char address[PAWLI_ADDRESS_MAX]; /* as it is: with the port that the system chose */
    char path[PAWLI_ADDRESS_MAX];    /* of a Unix socket that we made; empty: it is none */
    bool is_unix;
    bool is_abstract; /* a Unix socket without a file: whoever is on this machine may open it */
    bool is_loopback; /* only this machine reaches it */
};

/*
 * Listen at `address`: PORT alone (on 127.0.0.1), HOST:PORT, [IPV6]:PORT, or the path of a Unix
 * socket (with a slash in it, or behind "unix:"). Port 0: one that the system chooses. The socket
 * file that a dead process left behind is replaced.
 * PAWL_INVALID: the address is none. PAWL_DOWN: it cannot be had: in use, not ours, no rights. The
 * text names the address in both cases.
 */
pawl_code pawli_listen(const char *address, struct pawli_listener *ret_listener, pawl_err *err);

/* Take the file of a Unix socket away; the descriptor is closed by whoever has it. */
void pawli_listener_forget(const struct pawli_listener *listener);

/* The same, and close the descriptor. */
void pawli_listener_close(const struct pawli_listener *listener);

/*
 * The sockets that whoever started us has opened for us (LISTEN_PID, LISTEN_FDS: socket activation
 * of systemd), from descriptor 3 on. *ret_count is 0 where there are none. The variables are taken
 * out of the environment. PAWL_INVALID: there are more than `listeners_max`, or one is no socket
 * that listens.
 */
pawl_code pawli_listen_inherited(struct pawli_listener *ret_listeners, size_t listeners_max,
                                 size_t *ret_count, pawl_err *err);

#endif

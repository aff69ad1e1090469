/* SPDX-License-Identifier: Apache-2.0
 *
 * loop.h - the thread that an HTTP daemon works in.
 */
#ifndef PAWLI_SERVE_LOOP_H
#define PAWLI_SERVE_LOOP_H

#include "pawl/pawl.h"

struct MHD_Daemon;
struct pawli_loop;

struct pawli_loop *pawli_loop_new(void); /* NULL: memory ran out */

/* Let a daemon that was made for it work, in a thread of its own. The daemon is the loop's now. */
pawl_code pawli_loop_start(struct pawli_loop *loop, struct MHD_Daemon *daemon);

/* A connection goes on that was suspended: the library must look. From any thread. */
void pawli_loop_wake(struct pawli_loop *loop);

/* End the thread, then the daemon, which closes its socket, and free the loop. Nothing of it may be
 * suspended. NULL is fine. Gives how many threads have not ended in a minute: then all stays. */
size_t pawli_loop_stop(struct pawli_loop *loop);

#endif

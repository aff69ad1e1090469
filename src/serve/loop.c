/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * loop.c - the thread that an HTTP daemon works in.
 * Owns:  when the library is called: where it has something to do, and never to wait in it.
 * Never: looks at a request.
 *
 * The library has threads of its own, which we cannot use: it takes 128 events at a time, and where
 * there were just that many it waits for more before it looks at them. A hundred and twenty-eight
 * clients who ask all at once and wait for their answers would then wait for the first to give up.
 *
 * At its bound of connections it takes its socket out of what it watches, and puts it back when it
 * is called the next time with room for one more. So where one has ended it is called again: else
 * those who wait for their turn would wait until something else happens, or for ever.
 */
#include "serve/loop.h"

#include "runtime/crew.h"

#include <assert.h>
#include <limits.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define NAME   "serve-http"
#define FOR_MS 60000 /* until a thread that never waits has ended */

struct pawli_loop {
    struct MHD_Daemon *daemon; /* NULL: not started */
    struct pawli_crew *crew;   /* of one */
    int wake_fd;
    atomic_bool is_woken; /* it will look once more: to wake it again needs no call */
    atomic_bool is_over;
};

static int timeout_ms(struct MHD_Daemon *daemon)
{
    MHD_UNSIGNED_LONG_LONG ms;
    if (MHD_get_timeout(daemon, &ms) != MHD_YES)
        return -1;
    return ms < INT_MAX ? (int)ms : INT_MAX;
}

static unsigned connections_of(struct MHD_Daemon *daemon)
{
    return MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS)->num_connections;
}

/* Whatever there is to do, without waiting. */
static void work(struct MHD_Daemon *daemon)
{
    unsigned before;
    do {
        before = connections_of(daemon);
        (void)MHD_run(daemon); /* a failure is one connection's */
    } while (connections_of(daemon) < before);
}

static void run(void *user)
{
    struct pawli_loop *loop = user;
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(loop->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    struct pollfd fds[] = {{info->epoll_fd, POLLIN, 0}, {loop->wake_fd, POLLIN, 0}};
    while (!atomic_load(&loop->is_over)) {
        eventfd_t count;
        (void)poll(fds, 2, timeout_ms(loop->daemon)); /* whatever it says, the library looks */
        if (fds[1].revents != 0)
            (void)eventfd_read(loop->wake_fd, &count); /* cannot fail: it was written */
        atomic_store(&loop->is_woken, false);          /* before the look */
        work(loop->daemon);
    }
}

struct pawli_loop *pawli_loop_new(void)
{
    struct pawli_loop *loop = calloc(1, sizeof(*loop));
    if (loop == NULL)
        return NULL;
    loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (loop->wake_fd < 0)
        goto no_fd;
    loop->crew = pawli_crew_new(1, NULL, NULL);
    if (loop->crew == NULL)
        goto no_crew;
    return loop;

no_crew:
    (void)close(loop->wake_fd); /* nobody has it */
no_fd:
    free(loop);
    return NULL;
}

pawl_code pawli_loop_start(struct pawli_loop *loop, struct MHD_Daemon *daemon)
{
    assert(loop->daemon == NULL);
    loop->daemon = daemon;
    return pawli_crew_start(loop->crew, NAME, run, loop);
}

void pawli_loop_wake(struct pawli_loop *loop)
{
    if (!atomic_exchange(&loop->is_woken, true))
        (void)eventfd_write(loop->wake_fd, 1); /* cannot fail: it is read before the next */
}

size_t pawli_loop_stop(struct pawli_loop *loop)
{
    if (loop == NULL)
        return 0;
    atomic_store(&loop->is_over, true);
    (void)eventfd_write(loop->wake_fd, 1); /* cannot fail: it is far from full */
    size_t left = pawli_crew_wait(loop->crew, FOR_MS);
    if (left > 0)
        return left; /* it is stuck in the library: what it uses stays */
    (void)pawli_crew_leave(loop->crew);
    if (loop->daemon != NULL)
        MHD_stop_daemon(loop->daemon);
    (void)close(loop->wake_fd); /* nobody waits for it */
    free(loop);
    return 0;
}

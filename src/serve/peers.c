/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * peers.c - the connections there are.
 * Owns:  their list and their deadlines.
 * Never: closes a descriptor: it shuts the connection down, and the HTTP library then ends it.
 * Locks: peers.mutex, held over shutdown(), which does not block; so no descriptor is shut down
 *        that was closed and given to somebody else.
 */
#include "serve/peers.h"

#include "base/clock.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

bool pawli_peers_init(struct pawli_peers *peers)
{
    *peers = (struct pawli_peers){.first = NULL};
    return pthread_mutex_init(&peers->mutex, NULL) == 0;
}

void pawli_peers_clear(struct pawli_peers *peers)
{
    assert(peers->first == NULL);
    (void)pthread_mutex_destroy(&peers->mutex); /* nobody holds it */
}

struct pawli_peer *pawli_peers_add(struct pawli_peers *peers, int fd, pawl_mono until)
{
    struct pawli_peer *peer = calloc(1, sizeof(*peer));
    if (peer == NULL)
        return NULL;
    peer->fd = fd;
    peer->until = until;
    (void)pthread_mutex_lock(&peers->mutex); /* here and below: cannot fail, it is a plain one */
    peer->next = peers->first;
    if (peer->next != NULL)
        peer->next->previous = peer;
    peers->first = peer;
    peers->count++;
    (void)pthread_mutex_unlock(&peers->mutex);
    return peer;
}

void pawli_peers_remove(struct pawli_peers *peers, struct pawli_peer *peer)
{
    (void)pthread_mutex_lock(&peers->mutex);
    if (peer->previous != NULL)
        peer->previous->next = peer->next;
    else
        peers->first = peer->next;
    if (peer->next != NULL)
        peer->next->previous = peer->previous;
    peers->count--;
    (void)pthread_mutex_unlock(&peers->mutex);
    free(peer);
}

void pawli_peers_until(struct pawli_peers *peers, struct pawli_peer *peer, pawl_mono until)
{
    if (peer == NULL)
        return;
    (void)pthread_mutex_lock(&peers->mutex);
    peer->until = until;
    (void)pthread_mutex_unlock(&peers->mutex);
}

bool pawli_peer_is_gone(const struct pawli_peer *peer)
{
    char byte;
    ssize_t got = peer != NULL ? recv(peer->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) : 1;
    return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

void pawli_peers_sweep(struct pawli_peers *peers, pawl_mono now)
{
    (void)pthread_mutex_lock(&peers->mutex);
    for (struct pawli_peer *peer = peers->first; peer != NULL; peer = peer->next)
        if (pawli_mono_is_before(peer->until, now)) {
            (void)shutdown(peer->fd, SHUT_RDWR); /* one that has ended already is well */
            peer->until = PAWLI_MONO_NEVER;
            peers->cut++;
        }
    (void)pthread_mutex_unlock(&peers->mutex);
}

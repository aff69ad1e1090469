/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * peers.h - the connections there are, and until when each may take for what it does: who sends or
 * takes bytes too slowly is cut off. (Whether one does nothing at all, the HTTP library sees.)
 */
#ifndef PAWLI_SERVE_PEERS_H
#define PAWLI_SERVE_PEERS_H

#include "pawl/pawl.h"

#include <pthread.h>

#define PAWLI_PEER_RATE 4096 /* bytes a second, at least, of a body or an answer */

struct pawli_peers {
    pthread_mutex_t mutex; /* over all of it, and over each shutdown() */
    struct pawli_peer *first;
    size_t count;
    int64_t cut; /* how many were cut off */
};

struct pawli_peer {
    int fd; /* open as long as the peer is in the list */
    pawl_mono until;
    struct pawli_peer *next;
    struct pawli_peer *previous;
};

bool pawli_peers_init(struct pawli_peers *peers);
void pawli_peers_clear(struct pawli_peers *peers); /* there must be none left */

/* A connection is there, and has until then to send the head of a request. NULL: no memory. */
struct pawli_peer *pawli_peers_add(struct pawli_peers *peers, int fd, pawl_mono until);

/* It ends. Before its descriptor is closed. */
void pawli_peers_remove(struct pawli_peers *peers, struct pawli_peer *peer);

/* It has until then for what it does now. NULL is ignored. PAWLI_MONO_NEVER: as long as we take. */
void pawli_peers_until(struct pawli_peers *peers, struct pawli_peer *peer, pawl_mono until);

/* Whether the client has closed its end: what it were sent now would be lost. NULL is there. */
bool pawli_peer_is_gone(const struct pawli_peer *peer);

/* Cut off whose time is up. */
void pawli_peers_sweep(struct pawli_peers *peers, pawl_mono now);

#endif

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * pg_proxy.h - stands between stores and their server, and cuts their connections where it is told:
 * after so many bytes of the request, so that the rest of it is lost, or of the reply; or breaks
 * the network between them in one of the ways in which networks break.
 */
#ifndef PAWLT_PG_PROXY_H
#define PAWLT_PG_PROXY_H

#include "support/pg_server.h"

#define PG_PROXY_PORT 7432 /* part of the socket's name */

enum pg_way {
    PG_REQUEST, /* from the store to the server */
    PG_REPLY,   /* back */
    PG_WAYS
};

enum pg_break {
    PG_DROP,          /* all connections end, and new ones end at once */
    PG_BLACK_HOLE,    /* nothing goes either way: neither a byte nor the end of a connection */
    PG_LOSE_REQUESTS, /* the same one way */
    PG_LOSE_REPLIES,  /* and the other */
    PG_RESET,         /* all connections are reset, once; new ones are let through */
    PG_TRICKLE,       /* one byte per second and connection, each way */
    PG_BREAKS
};

struct pg_proxy; /* a thread of its own */

/* Start one in the server's folder; NULL where it cannot be. */
struct pg_proxy *pg_proxy_start(const struct pg_server *server);

/* The same on a port of the loopback network: so that a reset is a true one. */
struct pg_proxy *pg_proxy_start_tcp(const struct pg_server *server);

void pg_proxy_stop(struct pg_proxy *proxy); /* accepts NULL */

const char *pg_proxy_conninfo(const struct pg_proxy *proxy, const char *database,
                              char text[PG_PATH_MAX]);
/* The same as another role. */
const char *pg_proxy_conninfo_as(const struct pg_proxy *proxy, const char *user,
                                 const char *database, char text[PG_PATH_MAX]);

/* Count bytes from now on, and let everything through. */
void pg_proxy_heal(struct pg_proxy *proxy);

/* The same, but let only `bytes` more go this way: then cut every connection, once. */
void pg_proxy_cut(struct pg_proxy *proxy, enum pg_way way, size_t bytes);

/* The same, but nothing goes this way any more: neither a byte nor the end of the connection. */
void pg_proxy_swallow(struct pg_proxy *proxy, enum pg_way way);

/* The same, but broken in one of the ways above, until it is healed. */
void pg_proxy_break(struct pg_proxy *proxy, enum pg_break how);

/* The bytes that went this way since the counting began. */
size_t pg_proxy_count(struct pg_proxy *proxy, enum pg_way way);

#endif

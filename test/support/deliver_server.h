/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * deliver_server.h - what the deliveries of deliver_bench.c go to: a plain HTTP server, as a
 * process of its own. A path that begins with /hang is never answered, one with /held not while it
 * is told so; all others at once.
 */
#ifndef PAWLT_DELIVER_SERVER_H
#define PAWLT_DELIVER_SERVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define SERVER_EVENTS_MAX 1000000
#define SERVER_BODY       "{\"number\": %zu}" /* so that it is known which event it is */

/* In memory that both processes have. */
struct server_shared {
    atomic_size_t answered; /* requests */
    atomic_size_t held;     /* requests that wait, without those that are never answered */
    atomic_bool is_holding;
    _Atomic int64_t came_us[SERVER_EVENTS_MAX]; /* when the first byte of an event came */
};

struct server {
    struct server_shared *shared;
    uint16_t port;
    pid_t pid;
};

bool server_start(struct server *server); /* false: it cannot be started */
void server_stop(struct server *server);  /* accepts one that was not started */
int64_t server_now_us(void);              /* the same clock in all processes */

#endif

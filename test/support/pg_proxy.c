/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * pg_proxy.c - a proxy that cuts connections at a byte, and breaks the network.
 * Owns:  its thread, its listening socket and the pairs of connections.
 * Never: changes, adds or reorders a byte; lets one connection that is not read hold up another.
 * Locks: proxy.mutex guards the orders and the counts; never held over a wait.
 */
#include "support/pg_proxy.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define PAIRS_MAX   96
#define CHUNK_MAX   16384
#define NO_LIMIT    SIZE_MAX
#define TURN_MS     10   /* how often a thread that has nothing to do looks at its orders */
#define LAST_MS     1000 /* for the bytes before a cut to go */
#define TRICKLE_MS  1000 /* from one byte to the next */
#define SOCKET_NAME ".s.PGSQL."

/* Bytes on their way. */
struct hop {
    char bytes[CHUNK_MAX];
    size_t from, len;
    int64_t slow_until_ms; /* the next byte may not be read before */
};

struct pair {
    int ends[PG_WAYS]; /* ends[PG_REQUEST]: the store's; ends[PG_REPLY]: the server's; -1: none */
    struct hop hops[PG_WAYS];
};

/* What is to become of what comes. */
struct orders {
    bool is_stopped;
    bool is_swallowed[PG_WAYS];
    bool is_refusing;
    bool is_reset; /* once */
    bool is_slow;
};

struct pg_proxy {
    pthread_t thread;
    pthread_mutex_t mutex;
    char folder[PG_FOLDER_MAX];
    int listener;
    int port;                     /* of the loopback network; 0: a socket in the folder */
    struct pair pairs[PAIRS_MAX]; /* of the thread */

    /* Under the mutex from here on. */
    struct orders orders;
    size_t count[PG_WAYS];
    size_t limit[PG_WAYS];
};

/* ---- sockets */

static bool address_of(const char *folder, int port, struct sockaddr_un *ret_address)
{
    *ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
    int len = snprintf(ret_address->sun_path, sizeof(ret_address->sun_path), "%s/%s%d", folder,
                       SOCKET_NAME, port);
    return len > 0 && (size_t)len < sizeof(ret_address->sun_path);
}

static int connect_server(const struct pg_proxy *proxy)
{
    struct sockaddr_un address;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && address_of(proxy->folder, PG_PORT, &address) &&
        connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    if (fd >= 0)
        (void)close(fd);
    return -1;
}

static void close_pair(struct pair *pair)
{
    for (int way = 0; way < PG_WAYS; way++) {
        if (pair->ends[way] >= 0)
            (void)close(pair->ends[way]);
        pair->ends[way] = -1;
        pair->hops[way].len = 0;
    }
}

/* With what comes from the network where a machine was switched off and on. */
static void reset_pair(struct pair *pair)
{
    struct linger at_once = {.l_onoff = 1};
    for (int way = 0; way < PG_WAYS; way++) {
        if (pair->ends[way] >= 0) /* of no effect on a socket in a folder */
            (void)setsockopt(pair->ends[way], SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    }
    close_pair(pair);
}

static struct pair *free_pair(struct pg_proxy *proxy)
{
    for (size_t i = 0; i < PAIRS_MAX; i++) {
        if (proxy->pairs[i].ends[PG_REQUEST] < 0)
            return &proxy->pairs[i];
    }
    return NULL;
}

static void accept_pair(struct pg_proxy *proxy, bool is_refused)
{
    int client = accept(proxy->listener, NULL, NULL);
    struct pair *pair = free_pair(proxy);
    int server = client >= 0 && pair != NULL && !is_refused ? connect_server(proxy) : -1;
    if (server < 0) {
        if (client >= 0)
            (void)close(client);
        return;
    }
    (void)fcntl(client, F_SETFD, FD_CLOEXEC); /* the server of a test is started by fork() */
    pair->ends[PG_REQUEST] = client;
    pair->ends[PG_REPLY] = server;
    for (int way = 0; way < PG_WAYS; way++) {
        pair->hops[way].from = pair->hops[way].len = 0;
        pair->hops[way].slow_until_ms = 0;
    }
}

static int64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* always there */
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- passing bytes on */

/* Write what the other end takes now. False: it is gone. */
static bool push(struct pair *pair, enum pg_way way)
{
    struct hop *hop = &pair->hops[way];
    while (hop->len > 0) {
        ssize_t written = send(pair->ends[PG_WAYS - 1 - (int)way], hop->bytes + hop->from, hop->len,
                               MSG_NOSIGNAL | MSG_DONTWAIT);
        if (written < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return true;
        if (written <= 0)
            return false;
        hop->from += (size_t)written;
        hop->len -= (size_t)written;
    }
    return true;
}

/* The last bytes before a cut: wait for them to go. */
static void push_all(struct pair *pair, enum pg_way way)
{
    struct pollfd fd = {.fd = pair->ends[PG_WAYS - 1 - (int)way], .events = POLLOUT};
    while (push(pair, way) && pair->hops[way].len > 0 && poll(&fd, 1, LAST_MS) > 0)
        ;
}

/* How many bytes may go this way now. */
static size_t allowance(struct pg_proxy *proxy, enum pg_way way)
{
    (void)pthread_mutex_lock(&proxy->mutex);
    size_t left = proxy->limit[way] == NO_LIMIT ? CHUNK_MAX : proxy->limit[way] - proxy->count[way];
    (void)pthread_mutex_unlock(&proxy->mutex);
    return left < CHUNK_MAX ? left : CHUNK_MAX;
}

/* Note what went, and tell whether this was all that may. */
static bool is_cut_now(struct pg_proxy *proxy, enum pg_way way, size_t bytes)
{
    (void)pthread_mutex_lock(&proxy->mutex);
    proxy->count[way] += bytes;
    bool is_cut = proxy->count[way] >= proxy->limit[way];
    if (is_cut)
        proxy->limit[way] = NO_LIMIT; /* once */
    (void)pthread_mutex_unlock(&proxy->mutex);
    return is_cut;
}

static void cut_all(struct pg_proxy *proxy)
{
    for (size_t i = 0; i < PAIRS_MAX; i++)
        close_pair(&proxy->pairs[i]);
}

static void pass_on(struct pg_proxy *proxy, struct pair *pair, enum pg_way way, bool is_slow)
{
    struct hop *hop = &pair->hops[way];
    size_t most = allowance(proxy, way);
    if (most == 0) { /* a cut before the first byte */
        (void)is_cut_now(proxy, way, 0);
        cut_all(proxy);
        return;
    }
    ssize_t got = recv(pair->ends[way], hop->bytes, is_slow ? 1 : most, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return;
    if (got <= 0) {
        close_pair(pair);
        return;
    }
    hop->from = 0;
    hop->len = (size_t)got;
    hop->slow_until_ms = is_slow ? now_ms() + TRICKLE_MS : 0;
    /* Counted before they go on: whoever gets them may begin the next count at once. */
    bool is_cut = is_cut_now(proxy, way, (size_t)got);
    if (is_cut) {
        push_all(pair, way);
        cut_all(proxy);
    } else if (!push(pair, way)) {
        close_pair(pair);
    }
}

/* ---- the thread */

/* The orders; those for once are carried out by whoever gets them. */
static struct orders take_orders(struct pg_proxy *proxy)
{
    (void)pthread_mutex_lock(&proxy->mutex);
    struct orders orders = proxy->orders;
    proxy->orders.is_reset = false;
    (void)pthread_mutex_unlock(&proxy->mutex);
    return orders;
}

/* What to wait for at one end of a pair: bytes from it, and room for bytes to it. */
static struct pollfd watch(const struct pair *pair, enum pg_way way, const struct orders *orders)
{
    enum pg_way back = (enum pg_way)(PG_WAYS - 1 - (int)way);
    struct pollfd fd = {.fd = pair->ends[way]};
    bool is_slow = orders->is_slow && now_ms() < pair->hops[way].slow_until_ms;
    if (!orders->is_swallowed[way] && !is_slow && pair->hops[way].len == 0)
        fd.events |= POLLIN;
    if (!orders->is_swallowed[back] && pair->hops[back].len > 0)
        fd.events |= POLLOUT;
    if (fd.events == 0)
        fd.fd = -1; /* not even its end */
    return fd;
}

static void serve(struct pg_proxy *proxy, const struct pollfd *fds, const struct orders *orders)
{
    for (size_t i = 0; i < PAIRS_MAX * PG_WAYS; i++) {
        struct pair *pair = &proxy->pairs[i / PG_WAYS];
        enum pg_way way = (enum pg_way)(i % PG_WAYS);
        enum pg_way back = (enum pg_way)(PG_WAYS - 1 - (int)way);
        bool is_there = fds[i].fd >= 0 && fds[i].fd == pair->ends[way];
        if (!is_there || fds[i].revents == 0)
            continue;
        if ((fds[i].revents & POLLOUT) != 0 && !push(pair, back))
            close_pair(pair);
        else if ((fds[i].events & POLLIN) != 0)
            pass_on(proxy, pair, way, orders->is_slow);
        else if ((fds[i].revents & (POLLERR | POLLHUP)) != 0)
            close_pair(pair);
    }
}

static void *run(void *user)
{
    struct pg_proxy *proxy = user;
    for (struct orders orders = take_orders(proxy); !orders.is_stopped;
         orders = take_orders(proxy)) {
        struct pollfd fds[PAIRS_MAX * PG_WAYS + 1];
        for (size_t i = 0; i < PAIRS_MAX && (orders.is_reset || orders.is_refusing); i++)
            orders.is_reset ? reset_pair(&proxy->pairs[i]) : close_pair(&proxy->pairs[i]);
        for (size_t i = 0; i < PAIRS_MAX * PG_WAYS; i++)
            fds[i] = watch(&proxy->pairs[i / PG_WAYS], (enum pg_way)(i % PG_WAYS), &orders);
        /* What is lost one way would never be answered: it stays where it is. */
        bool is_deaf = orders.is_swallowed[PG_REQUEST] || orders.is_swallowed[PG_REPLY];
        struct pollfd *listener = &fds[PAIRS_MAX * PG_WAYS];
        *listener = (struct pollfd){.fd = is_deaf ? -1 : proxy->listener, .events = POLLIN};
        if (poll(fds, PAIRS_MAX * PG_WAYS + 1, TURN_MS) <= 0)
            continue;
        serve(proxy, fds, &orders);
        if (listener->revents != 0)
            accept_pair(proxy, orders.is_refusing);
    }
    cut_all(proxy);
    return NULL;
}

/* ---- life and orders */

static bool listen_in_folder(struct pg_proxy *proxy)
{
    struct sockaddr_un address;
    proxy->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return proxy->listener >= 0 && address_of(proxy->folder, PG_PROXY_PORT, &address) &&
           bind(proxy->listener, (struct sockaddr *)&address, sizeof(address)) == 0 &&
           listen(proxy->listener, PAIRS_MAX) == 0;
}

static bool listen_on_loopback(struct pg_proxy *proxy)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(address);
    proxy->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (proxy->listener < 0 ||
        bind(proxy->listener, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(proxy->listener, PAIRS_MAX) != 0 ||
        getsockname(proxy->listener, (struct sockaddr *)&address, &size) != 0)
        return false;
    proxy->port = ntohs(address.sin_port);
    return true;
}

static struct pg_proxy *start(const struct pg_server *server, bool (*listen)(struct pg_proxy *))
{
    struct pg_proxy *proxy = calloc(1, sizeof(*proxy));
    if (proxy == NULL)
        return NULL;
    memcpy(proxy->folder, server->folder, sizeof(proxy->folder));
    for (size_t i = 0; i < PAIRS_MAX; i++)
        proxy->pairs[i].ends[PG_REQUEST] = proxy->pairs[i].ends[PG_REPLY] = -1;
    proxy->limit[PG_REQUEST] = proxy->limit[PG_REPLY] = NO_LIMIT;
    if (listen(proxy) && pthread_mutex_init(&proxy->mutex, NULL) == 0 &&
        pthread_create(&proxy->thread, NULL, run, proxy) == 0)
        return proxy;
    (void)fprintf(stderr, "pg_proxy: %s\n", strerror(errno));
    free(proxy);
    return NULL;
}

struct pg_proxy *pg_proxy_start(const struct pg_server *server)
{
    return start(server, listen_in_folder);
}

struct pg_proxy *pg_proxy_start_tcp(const struct pg_server *server)
{
    return start(server, listen_on_loopback);
}

static void give_orders(struct pg_proxy *proxy, const struct orders *orders,
                        const size_t limit[PG_WAYS])
{
    (void)pthread_mutex_lock(&proxy->mutex);
    proxy->orders = *orders;
    for (int way = 0; way < PG_WAYS; way++) {
        proxy->count[way] = 0;
        proxy->limit[way] = limit[way];
    }
    (void)pthread_mutex_unlock(&proxy->mutex);
}

void pg_proxy_stop(struct pg_proxy *proxy)
{
    if (proxy == NULL)
        return;
    give_orders(proxy, &(struct orders){.is_stopped = true}, (size_t[]){NO_LIMIT, NO_LIMIT});
    (void)pthread_join(proxy->thread, NULL);
    (void)pthread_mutex_destroy(&proxy->mutex);
    (void)close(proxy->listener);
    free(proxy);
}

const char *pg_proxy_conninfo_as(const struct pg_proxy *proxy, const char *user,
                                 const char *database, char text[PG_PATH_MAX])
{
    (void)snprintf(text, PG_PATH_MAX, "host=%s port=%d user=%.30s dbname=%.60s",
                   proxy->port != 0 ? "127.0.0.1" : proxy->folder,
                   proxy->port != 0 ? proxy->port : PG_PROXY_PORT, user, database);
    return text;
}

const char *pg_proxy_conninfo(const struct pg_proxy *proxy, const char *database,
                              char text[PG_PATH_MAX])
{
    return pg_proxy_conninfo_as(proxy, "postgres", database, text);
}

void pg_proxy_heal(struct pg_proxy *proxy)
{
    give_orders(proxy, &(struct orders){0}, (size_t[]){NO_LIMIT, NO_LIMIT});
}

void pg_proxy_cut(struct pg_proxy *proxy, enum pg_way way, size_t bytes)
{
    size_t limit[PG_WAYS] = {NO_LIMIT, NO_LIMIT};
    limit[way] = bytes;
    give_orders(proxy, &(struct orders){0}, limit);
}

void pg_proxy_swallow(struct pg_proxy *proxy, enum pg_way way)
{
    struct orders orders = {0};
    orders.is_swallowed[way] = true;
    give_orders(proxy, &orders, (size_t[]){NO_LIMIT, NO_LIMIT});
}

void pg_proxy_break(struct pg_proxy *proxy, enum pg_break how)
{
    bool is_hole = how == PG_BLACK_HOLE;
    struct orders orders = {
        .is_swallowed = {[PG_REQUEST] = is_hole || how == PG_LOSE_REQUESTS,
                         [PG_REPLY] = is_hole || how == PG_LOSE_REPLIES},
        .is_refusing = how == PG_DROP,
        .is_reset = how == PG_RESET,
        .is_slow = how == PG_TRICKLE,
    };
    give_orders(proxy, &orders, (size_t[]){NO_LIMIT, NO_LIMIT});
}

size_t pg_proxy_count(struct pg_proxy *proxy, enum pg_way way)
{
    (void)pthread_mutex_lock(&proxy->mutex);
    size_t count = proxy->count[way];
    (void)pthread_mutex_unlock(&proxy->mutex);
    return count;
}

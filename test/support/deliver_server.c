/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * deliver_server.c - a plain HTTP server for deliver_bench.c.
 * Life:  a process that is killed when all is measured.
 * Owns:  its connections.
 * Never: looks further into a request than it must.
 */
#include "support/deliver_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define REQUEST_MAX 4096
#define FDS_MAX     16384
#define EVENTS_MAX  256
#define TURN_MS     5
#define ANSWER      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

struct connection {
    char bytes[REQUEST_MAX];
    size_t len;
    int64_t began_us; /* the first byte of the request that is being read; 0: none yet */
    bool is_held;
};

int64_t server_now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* always there */
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void answer(struct server_shared *shared, int fd)
{
    (void)!send(fd, ANSWER, sizeof(ANSWER) - 1, MSG_NOSIGNAL); /* it is short: all, or it is gone */
    (void)atomic_fetch_add(&shared->answered, 1);
}

/* Bytes of the request at the beginning; 0: it is not whole. */
static size_t whole(struct connection *connection)
{
    connection->bytes[connection->len] = '\0';
    const char *end = strstr(connection->bytes, "\r\n\r\n");
    const char *field = strstr(connection->bytes, "\r\nContent-Length:");
    if (end == NULL || field == NULL || field > end)
        return 0;
    size_t len = (size_t)(end - connection->bytes) + 4 + strtoul(field + 17, NULL, 10);
    return len <= connection->len ? len : 0;
}

static void take(struct server_shared *shared, struct connection *connection, int fd, size_t len)
{
    const char *number = strstr(connection->bytes, "\"number\": ");
    size_t event = number != NULL ? strtoul(number + 10, NULL, 10) : SERVER_EVENTS_MAX;
    int64_t none = 0;
    if (event < SERVER_EVENTS_MAX)
        (void)atomic_compare_exchange_strong(&shared->came_us[event], &none, connection->began_us);
    if (strncmp(connection->bytes, "POST /hang", 10) == 0) {
        connection->len = 0;
        return;
    }
    bool is_held = strncmp(connection->bytes, "POST /held", 10) == 0 &&
                   atomic_load(&shared->is_holding);
    memmove(connection->bytes, connection->bytes + len, connection->len - len);
    connection->len -= len;
    connection->began_us = 0;
    connection->is_held = is_held;
    if (is_held)
        (void)atomic_fetch_add(&shared->held, 1);
    else
        answer(shared, fd);
}

static void serve(struct server_shared *shared, struct connection **connections, int fd)
{
    struct connection *connection = connections[fd];
    ssize_t count = recv(fd, connection->bytes + connection->len, REQUEST_MAX - 1 - connection->len,
                         MSG_DONTWAIT);
    if (count <= 0) {
        (void)close(fd);
        if (connection->is_held)
            (void)atomic_fetch_sub(&shared->held, 1);
        free(connection);
        connections[fd] = NULL;
        return;
    }
    if (connection->began_us == 0)
        connection->began_us = server_now_us();
    connection->len += (size_t)count;
    size_t len = whole(connection);
    if (len > 0)
        take(shared, connection, fd, len);
}

static void let_in(int listener, int epoll_fd, struct connection **connections)
{
    static const int one = 1;
    int fd = accept(listener, NULL, NULL);
    if (fd < 0 || fd >= FDS_MAX || (connections[fd] = calloc(1, sizeof(struct connection))) == NULL)
        _exit(71);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)); /* only faster */
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0)
        _exit(71);
}

static void release(struct server_shared *shared, struct connection **connections)
{
    for (int fd = 0; fd < FDS_MAX; fd++) {
        if (connections[fd] == NULL || !connections[fd]->is_held)
            continue;
        connections[fd]->is_held = false;
        (void)atomic_fetch_sub(&shared->held, 1);
        answer(shared, fd);
    }
}

static _Noreturn void run(struct server_shared *shared, int listener)
{
    static struct connection *connections[FDS_MAX];
    struct epoll_event events[EVENTS_MAX];
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (epoll_fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listener, &event) != 0)
        _exit(71);
    for (;;) {
        int count = epoll_wait(epoll_fd, events, EVENTS_MAX, TURN_MS);
        for (int i = 0; i < count; i++) {
            if (events[i].data.fd == listener)
                let_in(listener, epoll_fd, connections);
            else
                serve(shared, connections, events[i].data.fd);
        }
        if (!atomic_load(&shared->is_holding) && atomic_load(&shared->held) > 0)
            release(shared, connections);
    }
}

bool server_start(struct server *server)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    *server = (struct server){.pid = -1};
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    server->shared = mmap(NULL, sizeof(*server->shared), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (listener < 0 || server->shared == MAP_FAILED ||
        bind(listener, (struct sockaddr *)&address, len) != 0 || listen(listener, SOMAXCONN) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &len) != 0)
        return false;
    server->port = ntohs(address.sin_port);
    server->pid = fork();
    if (server->pid == 0)
        run(server->shared, listener);
    (void)close(listener);
    return server->pid > 0;
}

void server_stop(struct server *server)
{
    if (server->pid <= 0)
        return;
    (void)kill(server->pid, SIGKILL);
    (void)waitpid(server->pid, NULL, 0);
}

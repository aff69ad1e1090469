/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * listen.c - sockets that others connect to.
 * Owns:  the forms of an address; what is said where one cannot be had.
 * Never: listens beyond this machine unless the address says so; takes a socket file away that
 *        somebody still listens on.
 */
#include "server/listen.h"

#include "base/error.h"
#include "base/text.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG   1024 /* the system has a bound of its own */
#define UNIX_MARK "unix:"
#define LOOPBACK  "127.0.0.1"
#define PORT_MAX  65535

static pawl_code refuse(const char *address, pawl_err *err)
{
    return pawli_fail(err, PAWL_INVALID,
                      "\"%.80s\" is no address to listen at; it must be PORT, HOST:PORT, "
                      "[IPV6]:PORT, or the path of a Unix socket",
                      address);
}

static pawl_code cannot(const char *address, int error, pawl_err *err)
{
    return pawli_fail(err, PAWL_DOWN, "cannot listen at %.120s: %s", address, strerror(error));
}

static int new_socket(int family)
{
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0)
        (void)fcntl(fd, F_SETFL, O_NONBLOCK); /* it is new: cannot fail */
    return fd;
}

/* ---------------------------------------------------------------- Unix sockets */

/* Whether the file is a socket that nobody listens on. */
static bool is_left_behind(const struct sockaddr_un *name)
{
    struct stat status;
    if (lstat(name->sun_path, &status) != 0 || !S_ISSOCK(status.st_mode))
        return false;
    int fd = new_socket(AF_UNIX);
    if (fd < 0)
        return false;
    bool is_refused = connect(fd, (const struct sockaddr *)name, sizeof(*name)) != 0 &&
                      errno == ECONNREFUSED;
    (void)close(fd); /* nothing was sent */
    return is_refused;
}

static pawl_code listen_unix(const char *path, struct pawli_listener *listener, pawl_err *err)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    if (path[0] == '\0' || !pawli_text_copy(name.sun_path, sizeof(name.sun_path), path))
        return pawli_fail(err, PAWL_INVALID,
                          "the path of a Unix socket has %zu bytes; it must have 1 to %zu",
                          strlen(path), sizeof(name.sun_path) - 1);
    int fd = new_socket(AF_UNIX);
    if (fd < 0)
        return cannot(path, errno, err);
    const struct sockaddr *at = (const struct sockaddr *)&name;
    bool is_bound = bind(fd, at, sizeof(name)) == 0;
    if (!is_bound && errno == EADDRINUSE) {
        if (is_left_behind(&name) && unlink(path) == 0)
            is_bound = bind(fd, at, sizeof(name)) == 0;
        else
            errno = EADDRINUSE;
    }
    if (!is_bound || listen(fd, BACKLOG) != 0) {
        int error = errno;
        (void)close(fd); /* nobody has connected */
        return cannot(path, error, err);
    }
    listener->fd = fd;
    listener->is_unix = true;
    (void)pawli_text_copy(listener->path, sizeof(listener->path), path); /* fits */
    (void)snprintf(listener->address, sizeof(listener->address), "%s%s", UNIX_MARK, path);
    return PAWL_OK;
}

/* ---------------------------------------------------------------- hosts and ports */

/* HOST and PORT of an address, which is copied into `text`. False: it has not this form. */
static bool split(const char *address, char text[PAWLI_ADDRESS_MAX], const char **ret_host,
                  const char **ret_port)
{
    *ret_host = LOOPBACK;
    *ret_port = text;
    if (!pawli_text_copy(text, PAWLI_ADDRESS_MAX, address))
        return false;
    char *colon = strrchr(text, ':');
    if (colon != NULL) {
        bool is_bracketed = text[0] == '[' && colon > text && colon[-1] == ']';
        *colon = '\0';
        *ret_port = colon + 1;
        if (is_bracketed)
            colon[-1] = '\0';
        *ret_host = is_bracketed ? text + 1 : text;
        if ((*ret_host)[0] == '\0' || (!is_bracketed && strpbrk(text, ":[]") != NULL))
            return false;
    }
    size_t len = strlen(*ret_port);
    return len > 0 && len <= 5 && strspn(*ret_port, "0123456789") == len &&
           strtol(*ret_port, NULL, 10) <= PORT_MAX;
}

/* What is known of the socket itself. */
static void look_at(struct pawli_listener *listener, struct sockaddr_storage *ret_name,
                    socklen_t *ret_len)
{
    *ret_len = sizeof(*ret_name);
    *ret_name = (struct sockaddr_storage){.ss_family = AF_UNSPEC};
    if (getsockname(listener->fd, (struct sockaddr *)ret_name, ret_len) != 0)
        return;
    const struct sockaddr_in *four = (const struct sockaddr_in *)(const void *)ret_name;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)ret_name;
    listener->is_unix = ret_name->ss_family == AF_UNIX;
    listener->is_loopback = (ret_name->ss_family == AF_INET &&
                             ntohl(four->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET) ||
                            (ret_name->ss_family == AF_INET6 &&
                             IN6_IS_ADDR_LOOPBACK(&six->sin6_addr));
}

/* The address as it is: the port may have been the system's choice. */
static void tell_address(struct pawli_listener *listener)
{
    struct sockaddr_storage name;
    socklen_t len;
    char host[NI_MAXHOST];
    char port[NI_MAXSERV];
    look_at(listener, &name, &len);
    if ((name.ss_family != AF_INET && name.ss_family != AF_INET6) ||
        getnameinfo((const struct sockaddr *)&name, len, host, sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return;
    bool is_six = name.ss_family == AF_INET6;
    (void)snprintf(listener->address, sizeof(listener->address), "%s%.100s%s:%.20s",
                   is_six ? "[" : "", host, is_six ? "]" : "", port);
}

static int listen_at(const struct addrinfo *at)
{
    int fd = new_socket(at->ai_family);
    int one = 1;
    if (fd < 0)
        return -1;
    /* What an earlier process left in TIME_WAIT is no reason to wait. */
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)); /* else it may be refused */
    if (at->ai_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)); /* what was asked for */
    if (bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    int error = errno;
    (void)close(fd); /* nobody has connected */
    errno = error;
    return -1;
}

static pawl_code listen_host(const char *address, struct pawli_listener *listener, pawl_err *err)
{
    char text[PAWLI_ADDRESS_MAX];
    const char *host;
    const char *port;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    if (!split(address, text, &host, &port))
        return refuse(address, err);
    int rc = getaddrinfo(host, port, &hints, &found);
    if (rc == EAI_SERVICE)
        return refuse(address, err);
    if (rc != 0)
        return pawli_fail(err, PAWL_DOWN, "cannot listen at %.120s: %s", address, gai_strerror(rc));
    listener->fd = -1;
    errno = EADDRNOTAVAIL;
    for (const struct addrinfo *at = found; at != NULL && listener->fd < 0; at = at->ai_next)
        listener->fd = listen_at(at);
    int error = errno;
    freeaddrinfo(found);
    if (listener->fd < 0)
        return cannot(address, error, err);
    (void)pawli_text_copy(listener->address, sizeof(listener->address), address); /* it fits */
    tell_address(listener);
    return PAWL_OK;
}

pawl_code pawli_listen(const char *address, struct pawli_listener *ret_listener, pawl_err *err)
{
    struct pawli_listener listener = {.fd = -1};
    bool is_marked = strncmp(address, UNIX_MARK, strlen(UNIX_MARK)) == 0;
    bool is_path = is_marked || strchr(address, '/') != NULL;
    pawl_code code = is_path ? listen_unix(address + (is_marked ? strlen(UNIX_MARK) : 0), &listener,
                                           err)
                             : listen_host(address, &listener, err);
    if (code == PAWL_OK)
        *ret_listener = listener;
    return code;
}

void pawli_listener_forget(const struct pawli_listener *listener)
{
    if (listener->path[0] != '\0')
        (void)unlink(listener->path); /* one that stays is replaced by whoever comes next */
}

void pawli_listener_close(const struct pawli_listener *listener)
{
    pawli_listener_forget(listener);
    (void)close(listener->fd); /* nobody has connected */
}

/* ---------------------------------------------------------------- inherited sockets */

#define INHERITED_FIRST 3
#define INHERITED_MAX   1000

static int number_in(const char *variable)
{
    const char *text = getenv(variable);
    char *end = NULL;
    long number = text != NULL ? strtol(text, &end, 10) : 0;
    return text != NULL && *text != '\0' && *end == '\0' && number > 0 && number <= INT_MAX
               ? (int)number
               : 0;
}

static pawl_code inherit(int fd, struct pawli_listener *listener, pawl_err *err)
{
    struct sockaddr_storage name;
    socklen_t len;
    int is_listening = 0;
    socklen_t size = sizeof(is_listening);
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &size) != 0 || is_listening == 0)
        return pawli_fail(err, PAWL_INVALID, "descriptor %d, which was handed on, does not listen",
                          fd);
    *listener = (struct pawli_listener){.fd = fd};
    /* Cannot fail: it is a socket. */
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    look_at(listener, &name, &len);
    (void)snprintf(listener->address, sizeof(listener->address), "descriptor %d", fd);
    if (listener->is_unix && len > offsetof(struct sockaddr_un, sun_path) + 1) {
        const struct sockaddr_un *file = (const struct sockaddr_un *)(const void *)&name;
        (void)snprintf(listener->address, sizeof(listener->address), "%s%.107s", UNIX_MARK,
                       file->sun_path[0] != '\0' ? file->sun_path : file->sun_path + 1);
        listener->is_abstract = file->sun_path[0] == '\0';
    }
    tell_address(listener);
    return PAWL_OK;
}

pawl_code pawli_listen_inherited(struct pawli_listener *ret_listeners, size_t listeners_max,
                                 size_t *ret_count, pawl_err *err)
{
    int pid = number_in("LISTEN_PID");
    int count = number_in("LISTEN_FDS");
    pawl_code code = PAWL_OK;
    *ret_count = 0;
    (void)unsetenv("LISTEN_PID"); /* cannot fail: the names are good */
    (void)unsetenv("LISTEN_FDS");
    (void)unsetenv("LISTEN_FDNAMES");
    if (pid != (int)getpid() || count == 0)
        return PAWL_OK;
    if (count > INHERITED_MAX || (size_t)count > listeners_max)
        return pawli_fail(err, PAWL_INVALID, "%d sockets were handed on; there may be %zu", count,
                          listeners_max);
    for (int i = 0; code == PAWL_OK && i < count; i++)
        code = inherit(INHERITED_FIRST + i, &ret_listeners[i], err);
    if (code == PAWL_OK)
        *ret_count = (size_t)count;
    return code;
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * warden.c - the worker's side of a warden.
 * Owns:  the warden's process number, and our end of the socket.
 * Never: sends a signal to a program itself: only its parent knows whose number it is by now.
 */
#include "runtime/warden.h"

#include "runtime/warden_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define SEND_SECONDS 5 /* the longest that a warden may take to listen */
#define END_ROUNDS   400
#define PAUSE_MS     5

/* ---------------------------------------------------------------- life */

/* All signals are blocked in the child from its beginning. */
static pid_t fork_deaf(void)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all); /* none of these can fail */
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    if (pid != 0)
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return pid;
}

struct pawli_warden *pawli_warden_new(const char *path, char *const *argv)
{
    int fds[2];
    struct timeval time = {.tv_sec = SEND_SECONDS};
    struct pawli_warden *warden = calloc(1, sizeof(*warden));
    if (warden == NULL)
        return NULL;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
        goto no_sockets;
    (void)setsockopt(fds[0], SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time)); /* cannot fail */
    warden->fd = fds[0];
    warden->pid = fork_deaf();
    if (warden->pid == 0)
        pawli_warden_live(path, argv, fds[1]);
    int error = errno;
    (void)close(fds[1]); /* the warden's */
    if (warden->pid > 0)
        return warden;
    (void)close(fds[0]); /* nothing is in it */
    errno = error;
no_sockets:;
    error = errno;
    free(warden);
    errno = error;
    return NULL;
}

void pawli_warden_dismiss(struct pawli_warden *warden)
{
    if (warden->fd >= 0)
        (void)close(warden->fd); /* that tells it */
    warden->fd = -1;
}

bool pawli_warden_has_ended(struct pawli_warden *warden)
{
    pid_t pid;
    do {
        pid = warden->pid > 0 ? waitpid(warden->pid, NULL, WNOHANG) : -1;
    } while (pid < 0 && warden->pid > 0 && errno == EINTR);
    if (pid != 0)
        warden->pid = -1; /* its number may be another's from here on */
    return pid != 0;
}

void pawli_warden_free(struct pawli_warden *warden)
{
    if (warden == NULL)
        return;
    pawli_warden_dismiss(warden);
    for (int round = 0; !pawli_warden_has_ended(warden) && round < END_ROUNDS; round++)
        (void)poll(NULL, 0, PAUSE_MS);
    free(warden); /* one that has not ended does so when it has done what it can */
}

/* ---------------------------------------------------------------- orders */

/* What is said to a warden: `bytes` of text behind the order, and descriptors with it. */
struct saying {
    struct pawli_order order;
    char *text; /* NULL: none */
    const int *fds;
    size_t fds_count;
};

/* The order with its descriptors, and as much of its text as goes with it: so the warden is woken
 * once. Gives how much of the text has gone; -1: it cannot be sent. */
static ssize_t send_order(int fd, struct saying *saying)
{
    struct pawli_order *order = &saying->order;
    const int *fds = saying->fds;
    size_t fds_count = saying->fds_count;
    union {
        char bytes[CMSG_SPACE(PAWLI_ORDER_FDS * sizeof(int))];
        struct cmsghdr align;
    } control = {.bytes = {0}};
    struct iovec parts[] = {{order, sizeof(*order)}, {saying->text, order->bytes}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = saying->text != NULL ? 2 : 1};
    if (fds_count > 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(fds_count * sizeof(int));
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(fds_count * sizeof(int));
        memcpy(CMSG_DATA(header), fds, fds_count * sizeof(int));
    }
    ssize_t sent;
    do {
        sent = sendmsg(fd, &message, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    /* What is so short as an order goes whole, or not at all. */
    return sent >= (ssize_t)sizeof(*order) ? sent - (ssize_t)sizeof(*order) : -1;
}

static bool send_text(int fd, const char *text, size_t size)
{
    while (size > 0) {
        ssize_t sent = send(fd, text, size, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR)
            return false;
        text += sent > 0 ? sent : 0;
        size -= sent > 0 ? (size_t)sent : 0;
    }
    return true;
}

bool pawli_warden_start(struct pawli_warden *warden, const struct pawli_warden_run *run)
{
    const int fds[PAWLI_ORDER_FDS] = {run->stdin_fd, run->stderr_fd, STDOUT_FILENO};
    bool has_output = fcntl(STDOUT_FILENO, F_GETFD) >= 0;
    struct saying saying = {.fds = fds, .fds_count = has_output ? 3 : 2};
    struct pawli_order *order = &saying.order;
    for (; run->envp[order->count] != NULL; order->count++)
        order->bytes += strlen(run->envp[order->count]) + 1;
    saying.text = malloc(order->bytes + 1);
    if (saying.text == NULL)
        return false;
    size_t at = 0;
    for (size_t i = 0; i < order->count; i++) {
        size_t size = strlen(run->envp[i]) + 1;
        memcpy(saying.text + at, run->envp[i], size);
        at += size;
    }
    ssize_t sent = send_order(warden->fd, &saying);
    bool is_sent = sent >= 0 &&
                   send_text(warden->fd, saying.text + sent, order->bytes - (size_t)sent);
    int error = errno;
    free(saying.text);
    errno = error;
    return is_sent;
}

void pawli_warden_signal(struct pawli_warden *warden, int number)
{
    struct saying saying = {.order = {.signal = number}};
    (void)send_order(warden->fd, &saying); /* one that is gone is heard of soon */
}

enum pawli_heard pawli_warden_hear(struct pawli_warden *warden, struct pawli_program_end *ret_end)
{
    struct pawli_program_end end;
    ssize_t got = recv(warden->fd, &end, sizeof(end), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return PAWLI_HEARD_NOTHING;
    if (got != (ssize_t)sizeof(end)) /* so short a message comes whole */
        return PAWLI_HEARD_LOST;
    *ret_end = end;
    return PAWLI_HEARD_END;
}

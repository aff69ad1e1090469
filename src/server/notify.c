/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * notify.c - tells the service manager how we are: one datagram, so that no library is needed.
 * Owns:  the variables NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID.
 * Never: waits, or minds where nobody listens.
 */
#include "server/notify.h"

#include "base/text.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

bool pawli_notify(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    if (path == NULL || (path[0] != '/' && path[0] != '@') ||
        !pawli_text_copy(name.sun_path, sizeof(name.sun_path), path))
        return false;
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    if (path[0] == '@')
        name.sun_path[0] = '\0'; /* a name that is no file */
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    ssize_t sent = sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT,
                          (const struct sockaddr *)&name, len);
    (void)close(fd); /* it was sent, or not */
    return sent == (ssize_t)strlen(state);
}

int64_t pawli_notify_watchdog_ms(void)
{
    const char *text = getenv("WATCHDOG_USEC");
    const char *pid = getenv("WATCHDOG_PID");
    char *end = NULL;
    long long usec = text != NULL ? strtoll(text, &end, 10) : 0;
    if (text == NULL || *text == '\0' || *end != '\0' || usec <= 0)
        return 0;
    if (pid != NULL && strtoll(pid, NULL, 10) != (long long)getpid())
        return 0;
    int64_t half_ms = usec / 2000;
    return half_ms > 0 ? half_ms : 1;
}

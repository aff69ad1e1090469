/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * beanstalkd.c - reserves and deletes jobs of a beanstalkd over its socket, as fast as its protocol
 * can: requests are sent in batches, and their answers read together.
 * Owns:  the socket.
 * Never: waits for a job: all were put before.
 * Usage: store=unix:PATH
 */
#include "turn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PREFIX      "unix:"
#define IN_MAX      65536
#define REQUEST_MAX 64
#define RESERVE     "reserve-with-timeout 0\r\n"
#define RELEASED_S  "3600" /* how long a job may be held */

struct wire {
    int fd;
    size_t at; /* the next byte to be looked at */
    size_t length;
    char in[IN_MAX];
};

static bool dial(const struct turn *turn, struct wire *wire)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (turn->store == NULL || strncmp(turn->store, PREFIX, strlen(PREFIX)) != 0 ||
        strlen(turn->store) - strlen(PREFIX) >= sizeof(address.sun_path))
        return turn_fail("store", "it must be unix: and a path");
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s",
                   turn->store + strlen(PREFIX)); /* fits */
    wire->fd = socket(AF_UNIX, SOCK_STREAM, 0);
    return (wire->fd >= 0 &&
            connect(wire->fd, (struct sockaddr *)&address, sizeof(address)) == 0) ||
           turn_fail("beanstalkd", "does not answer");
}

static bool send_all(struct wire *wire, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t sent = write(wire->fd, bytes, length);
        if (sent <= 0)
            return turn_fail("beanstalkd", "does not listen");
        bytes += sent;
        length -= (size_t)sent;
    }
    return true;
}

/* Read more behind what is there. */
static bool more(struct wire *wire)
{
    memmove(wire->in, wire->in + wire->at, wire->length - wire->at);
    wire->length -= wire->at;
    wire->at = 0;
    ssize_t got = read(wire->fd, wire->in + wire->length, IN_MAX - wire->length);
    if (got <= 0)
        return turn_fail("beanstalkd", "has ended");
    wire->length += (size_t)got;
    return true;
}

/* The next line, without its end; NULL: there is none. Holds until the next call. */
static const char *next_line(struct wire *wire)
{
    for (;;) {
        char *line = wire->in + wire->at;
        char *end = memchr(line, '\n', wire->length - wire->at);
        if (end != NULL) {
            *end = '\0';
            wire->at = (size_t)(end + 1 - wire->in);
            return line;
        }
        if (!more(wire))
            return NULL;
    }
}

static bool skip(struct wire *wire, size_t bytes)
{
    while (wire->length - wire->at < bytes) {
        if (!more(wire))
            return false;
    }
    wire->at += bytes;
    return true;
}

static bool expect(struct wire *wire, const char *word)
{
    const char *line = next_line(wire);
    return line != NULL &&
           (strncmp(line, word, strlen(word)) == 0 || turn_fail("beanstalkd", line));
}

static bool put_all(const struct turn *turn, struct wire *wire)
{
    size_t size = REQUEST_MAX + (size_t)turn->payload + 2;
    char *request = calloc(1, size);
    if (request == NULL)
        return false;
    int head = snprintf(request, size, "put 0 0 " RELEASED_S " %lld\r\n",
                        (long long)turn->payload); /* fits */
    memset(request + head, 'x', (size_t)turn->payload);
    memcpy(request + head + turn->payload, "\r\n", 2);
    size_t length = (size_t)head + (size_t)turn->payload + 2;
    bool is_good = true;
    for (int64_t at = 0; is_good && at < turn->jobs; at += turn->batch) {
        int64_t count = turn->jobs - at < turn->batch ? turn->jobs - at : turn->batch;
        for (int64_t i = 0; is_good && i < count; i++)
            is_good = send_all(wire, request, length);
        for (int64_t i = 0; is_good && i < count; i++)
            is_good = expect(wire, "INSERTED");
    }
    free(request);
    return is_good;
}

/* Reserve and delete `count` jobs; `out` has room for as many requests. */
static bool take(const struct turn *turn, struct wire *wire, char *out, int64_t count)
{
    size_t length = 0;
    for (int64_t i = 0; i < count; i++) {
        memcpy(out + length, RESERVE, strlen(RESERVE));
        length += strlen(RESERVE);
    }
    if (!send_all(wire, out, length))
        return false;
    length = 0;
    for (int64_t i = 0; i < count; i++) {
        const char *line = next_line(wire);
        if (line == NULL || strncmp(line, "RESERVED ", strlen("RESERVED ")) != 0)
            return turn_fail("reserve", line != NULL ? line : "no answer");
        long long id = strtoll(line + strlen("RESERVED "), NULL, 10);
        length += (size_t)snprintf(out + length, REQUEST_MAX, "delete %lld\r\n", id); /* fits */
        if (!skip(wire, (size_t)turn->payload + 2))
            return false;
    }
    bool is_good = send_all(wire, out, length);
    for (int64_t i = 0; is_good && i < count; i++)
        is_good = expect(wire, "DELETED");
    return is_good;
}

bool turn_beanstalkd(const struct turn *turn, struct turn_result *result)
{
    struct wire *wire = calloc(1, sizeof(*wire));
    char *out = calloc((size_t)turn->batch, REQUEST_MAX);
    bool is_good = wire != NULL && out != NULL && dial(turn, wire) && put_all(turn, wire);
    int64_t began_us = turn_now_us();
    for (int64_t at = 0; is_good && at < turn->jobs; at += turn->batch)
        is_good = take(turn, wire, out,
                       turn->jobs - at < turn->batch ? turn->jobs - at : turn->batch);
    result->seconds = (double)(turn_now_us() - began_us) / 1e6;
    if (wire != NULL && wire->fd > 0)
        (void)close(wire->fd); /* nothing is left to be said */
    free(wire);
    free(out);
    return is_good;
}

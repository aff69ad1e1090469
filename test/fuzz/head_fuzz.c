/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * head_fuzz.c - what must hold for the head of every request. Run by libFuzzer, and by the unit
 * suite over a fixed corpus.
 * Owns:  the property: what goes on to its route has a body with one end and headers that are some,
 *        and was meant for this machine; what does not has a problem of its own for an answer.
 * Never: survives a violation: it aborts.
 */
#include "fuzz/head_fuzz.h"

#include "base/buffer.h"
#include "serve/access.h"
#include "serve/door.h"
#include "serve/problem.h"
#include "serve/route.h"
#include "serve/uri.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define HEADERS_MAX 20
#define MORE        "\nHost: localhost\nContent-Length: 2\n"

static void require(bool is_so)
{
    if (!is_so)
        abort();
}

/* The text up to the next `end`, which is cut off; what follows begins at *at. */
static char *cut(char **at, char end)
{
    char *text = *at;
    char *stop = strchr(text, end);
    *at = stop != NULL ? stop + 1 : text + strlen(text);
    if (stop != NULL)
        *stop = '\0';
    return text;
}

static void check_framing(const struct pawli_call *call)
{
    size_t ends = 0;
    for (size_t i = 0; i < call->headers_count; i++) {
        const char *name = call->headers[i].name;
        bool is_length = strcasecmp(name, "Content-Length") == 0;
        bool is_chunked = strcasecmp(name, "Transfer-Encoding") == 0;
        ends += is_length || is_chunked;
        require(is_length || strncasecmp(name, "Content-Length", 14) != 0);
        require(is_chunked || strncasecmp(name, "Transfer-Encoding", 17) != 0);
        require(!is_chunked || strcasecmp(call->headers[i].value, "chunked") == 0);
        require(name[0] != '\0' && strpbrk(name, " \t\r\n\"(),/:;<=>?@[]{}") == NULL);
        require(strpbrk(call->headers[i].value, "\r\n\x7f\x1b") == NULL);
    }
    require(ends <= 1);
}

static void check_host(const struct pawli_call *call)
{
    size_t hosts = 0;
    for (size_t i = 0; i < call->headers_count; i++)
        if (strcasecmp(call->headers[i].name, "Host") == 0) {
            const char *host = call->headers[i].value;
            hosts++;
            require(strncasecmp(host, "localhost", 9) == 0 || strncmp(host, "127.", 4) == 0 ||
                    strncmp(host, "[::1]", 5) == 0);
        }
    require(hosts == 1);
}

static bool goes_on(struct pawli_call *call, const char *method, char *target,
                    struct pawli_uri *uri)
{
    const struct pawli_door door = {.grants = NULL};
    struct pawli_grant grant;
    pawl_err err;
    if (pawli_uri_parse(target, uri, &err) != PAWL_OK) {
        require(err.text[0] != '\0');
        return false;
    }
    call->route = pawli_route_find(method, uri, call->captures, call->answer);
    bool is_taken = call->route != NULL && pawli_door_open(&door, call, &grant, call->answer) &&
                    pawli_route_takes(call->route, call, call->answer);
    require(is_taken == (call->answer->status == 0));
    require(is_taken || (call->answer->status >= 400 && call->answer->status < 500));
    return is_taken;
}

bool head_fuzz_one(const void *bytes, size_t bytes_len)
{
    struct pawli_pair headers[HEADERS_MAX];
    struct pawli_uri uri = {.segments_count = 0};
    struct pawli_answer answer = {0};
    struct pawli_call call = {.uri = &uri, .headers = headers, .answer = &answer};
    char *text = malloc(bytes_len + 1);
    require(text != NULL);
    memcpy(text, bytes, bytes_len);
    text[bytes_len] = '\0';
    char *at = text;
    char *line = cut(&at, '\n');
    const char *method = cut(&line, ' ');
    while (*at != '\0' && call.headers_count < HEADERS_MAX) {
        char *header = cut(&at, '\n');
        char *name = cut(&header, ':');
        headers[call.headers_count++] = (struct pawli_pair){name, header + strspn(header, " ")};
    }
    bool is_taken = goes_on(&call, method, line, &uri);
    if (is_taken) {
        check_framing(&call);
        check_host(&call);
    }
    pawli_answer_clear(&answer);
    free(text);
    return is_taken;
}

/* As it is; and behind the beginning of a good one, which the first byte chooses. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    (void)head_fuzz_one(data, size); /* either will do, here and below */
    if (size == 0)
        return 0;
    const struct pawli_route *route = &pawli_routes[data[0] % pawli_routes_count];
    struct pawli_buffer head = {0};
    require(pawli_buffer_put(&head, route->method, strlen(route->method)) &&
            pawli_buffer_put(&head, " ", 1) &&
            pawli_buffer_put(&head, route->path, strlen(route->path)) &&
            pawli_buffer_put(&head, MORE, strlen(MORE)) &&
            pawli_buffer_put(&head, data + 1, size - 1));
    (void)head_fuzz_one(head.bytes, head.len);
    pawli_buffer_clear(&head);
    return 0;
}

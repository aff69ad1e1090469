/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * wire_request.c - one request: what libcurl is told, the gate before each send, what is taken of
 *                  the answer.
 * Owns:  the gate; the guard of addresses; the bounds of an answer.
 * Never: follows a redirect, unpacks a body, keeps what comes beyond a bound, calls an address that
 *        is not allowed, sends what the owner does not let through.
 */
#include "deliver/wire_inside.h"

#include "base/error.h"
#include "base/text.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---------------------------------------------------------------- the gate */

static bool is_allowed(struct pawli_sending *sending, const struct pawli_address *address)
{
    const struct pawli_wire_rules *rules = &sending->wire->rules;
    if (pawli_allow_address(rules->allow, sending->has_name ? sending->host : NULL, address,
                            &sending->refused_kind))
        return true;
    sending->is_address_refused = true;
    return false;
}

/* Each address that is connected to, whatever spelling or name it came from. */
static curl_socket_t open_socket(void *user, curlsocktype purpose, struct curl_sockaddr *to)
{
    struct pawli_sending *sending = user;
    struct pawli_address address;
    if (purpose != CURLSOCKTYPE_IPCXN)
        return CURL_SOCKET_BAD;
    if (sending->wire->rules.proxy == NULL) {
        if (!pawli_address_from(&to->addr, to->addrlen, &address)) {
            sending->is_address_refused = true;
            sending->refused_kind = PAWLI_ADDRESS_RESERVED;
            return CURL_SOCKET_BAD;
        }
        if (!is_allowed(sending, &address))
            return CURL_SOCKET_BAD;
    }
    int fd = socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
    if (fd >= 0)
        pawli_wire_opened(sending->wire, sending->lane, fd);
    return fd;
}

/* Directly before each send, also over a connection that was opened for another request. */
static int before_send(void *user, char *to_ip, char *from_ip, int to_port, int from_port)
{
    struct pawli_sending *sending = user;
    const struct pawli_wire_owner *owner = &sending->wire->owner;
    struct pawli_address address;
    (void)from_ip; /* where it comes from, and the ports, were decided before */
    (void)to_port;
    (void)from_port;
    if (sending->wire->rules.proxy == NULL &&
        (!pawli_address_parse(to_ip, &address) || !is_allowed(sending, &address))) {
        sending->is_address_refused = true;
        return CURL_PREREQFUNC_ABORT;
    }
    if (!owner->may_send(owner->user, sending->tag)) {
        sending->is_stopped = true;
        return CURL_PREREQFUNC_ABORT;
    }
    sending->sends++;
    /* What an earlier send may have brought is of that one. */
    sending->has_whole_headers = false;
    sending->status = 0;
    sending->retry_after[0] = '\0';
    return CURL_PREREQFUNC_OK;
}

/* ---------------------------------------------------------------- the answer */

static void read_status(struct pawli_sending *sending, const char *line, size_t len)
{
    const char *blank = memchr(line, ' ', len);
    size_t at = blank != NULL ? (size_t)(blank - line) + 1 : len;
    long status = 0;
    for (size_t i = at; i < at + 3; i++) {
        if (i >= len || line[i] < '0' || line[i] > '9')
            return;
        status = status * 10 + (line[i] - '0');
    }
    sending->status = status;
    sending->retry_after[0] = '\0';
}

static void read_retry_after(struct pawli_sending *sending, const char *line, size_t len)
{
    static const char name[] = "retry-after:";
    size_t at = sizeof(name) - 1;
    if (len <= at || strncasecmp(line, name, at) != 0)
        return;
    while (at < len && (line[at] == ' ' || line[at] == '\t'))
        at++;
    while (len > at && strchr(" \t\r\n", line[len - 1]) != NULL)
        len--;
    if (len - at >= sizeof(sending->retry_after))
        return;
    memcpy(sending->retry_after, line + at, len - at);
    sending->retry_after[len - at] = '\0';
}

/* A line of headers, each whole. Trailers come here as well: they mean nothing. */
static size_t on_header(char *line, size_t size, size_t count, void *user)
{
    struct pawli_sending *sending = user;
    size_t len = size * count;
    sending->came += len;
    if (sending->came > sending->wire->rules.headers_max)
        return 0;
    if (sending->has_whole_headers)
        return len;
    if (len >= 5 && memcmp(line, "HTTP/", 5) == 0)
        read_status(sending, line, len);
    else if ((len == 2 && memcmp(line, "\r\n", 2) == 0) || (len == 1 && line[0] == '\n'))
        sending->has_whole_headers = sending->status >= 200;
    else
        read_retry_after(sending, line, len);
    return len;
}

/* Nothing of a body is kept; it is read so that the connection can be used again. */
static size_t on_body(char *bytes, size_t size, size_t count, void *user)
{
    struct pawli_sending *sending = user;
    (void)bytes;
    sending->body += size * count;
    return sending->body <= sending->wire->rules.body_max ? size * count : 0;
}

struct pawli_wire_end pawli_sending_end(struct pawli_sending *sending, CURLcode code)
{
    const pawl_clock *clock = sending->wire->clock;
    struct pawli_wire_end end = {
        .transfer = {.end = pawli_transfer_end((int)code),
                     /* Nobody has answered what was not sent. */
                     .has_whole_headers = sending->has_whole_headers && sending->sends > 0,
                     .status = sending->status,
                     .retry_after = sending->retry_after[0] != '\0' ? sending->retry_after : NULL},
        .sends = sending->sends,
        .took_us = clock->mono(clock->user).us - sending->began.us,
        .text = code != CURLE_OK ? curl_easy_strerror(code) : "",
    };
    if (code == CURLE_OUT_OF_MEMORY && sending->sends > 0 && !sending->has_whole_headers) {
        /* So libcurl calls a line of headers that is longer than it takes, before we see it. */
        end.transfer.end = PAWLI_END_TOO_LARGE;
        end.text = "a line of its headers is too long";
    }
    if (sending->is_stopped) {
        end.transfer.end = PAWLI_END_STOPPED;
    } else if (sending->is_address_refused && !sending->has_whole_headers) {
        /* Of several addresses one may have been good, and have failed by itself; but what was sent
         * was sent to one that is allowed. */
        if (sending->sends == 0)
            end.transfer.end = PAWLI_END_ADDRESS;
        (void)snprintf(sending->text, sizeof(sending->text), /* it fits */
                       "an address of it is %s, which is not allowed",
                       pawli_address_kind_name(sending->refused_kind));
        end.text = sending->text;
    }
    return end;
}

/* ---------------------------------------------------------------- what libcurl is told */

/* As libcurl takes them: a list of texts, which stay where they are. */
static bool link_headers(struct pawli_sending *sending, const struct pawli_wire_request *request)
{
    /* libcurl would wait for a word of the other side before it sends a body that is large. */
    static const char no_expect[] = "Expect:";
    size_t count = 1;
    for (size_t at = 0; at < request->headers_len; at += strlen(request->headers + at) + 1)
        count++;
    if (count > sending->lines_max) {
        struct curl_slist *lines = realloc(sending->lines, count * sizeof(lines[0]));
        if (lines == NULL)
            return false;
        sending->lines = lines;
        sending->lines_max = count;
    }
    struct curl_slist *line = sending->lines;
    /* libcurl only reads what its list has, but has no const for it. */
    *line = (struct curl_slist){.data = (char *)(uintptr_t)no_expect, .next = NULL};
    for (size_t at = 0; at < request->headers_len; at += strlen(request->headers + at) + 1) {
        line->next = line + 1;
        line++;
        *line = (struct curl_slist){.data = (char *)(uintptr_t)(request->headers + at),
                                    .next = NULL};
    }
    return true;
}

/* Keeps the first that failed. */
#define SET(option, value)                                    \
    do {                                                      \
        if (code == CURLE_OK)                                 \
            code = curl_easy_setopt(easy, (option), (value)); \
    } while (0)

static CURLcode set_rules(const struct pawli_sending *sending)
{
    const struct pawli_wire_rules *rules = &sending->wire->rules;
    CURL *easy = sending->easy;
    CURLcode code = CURLE_OK;
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_PROXY, rules->proxy != NULL ? rules->proxy : "");
    SET(CURLOPT_NOPROXY, "");
    /* What a proxy says of a tunnel is not the endpoint's answer. */
    SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    SET(CURLOPT_NOSIGNAL, 1L);
    /* Else a name that is not resolved in time would hold up everything until it is. */
    SET(CURLOPT_QUICK_EXIT, 1L);
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    SET(CURLOPT_USERAGENT, "pawl/" PAWL_VERSION);
    SET(CURLOPT_POST, 1L);
    if (rules->ca_file != NULL)
        SET(CURLOPT_CAINFO, rules->ca_file);
    return code;
}

static CURLcode set_calls(struct pawli_sending *sending)
{
    CURL *easy = sending->easy;
    CURLcode code = CURLE_OK;
    SET(CURLOPT_PRIVATE, sending);
    SET(CURLOPT_OPENSOCKETFUNCTION, open_socket);
    SET(CURLOPT_OPENSOCKETDATA, sending);
    SET(CURLOPT_CLOSESOCKETFUNCTION, pawli_wire_close);
    SET(CURLOPT_CLOSESOCKETDATA, sending->wire); /* which outlives the request */
    SET(CURLOPT_PREREQFUNCTION, before_send);
    SET(CURLOPT_PREREQDATA, sending);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, sending);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, sending);
    return code;
}

static pawl_code code_of(CURLcode code, pawl_err *err)
{
    if (code == CURLE_OK)
        return PAWL_OK;
    return code == CURLE_OUT_OF_MEMORY
               ? pawli_fail_plain(err, PAWL_NO_MEMORY)
               : pawli_fail(err, PAWL_DOWN, "libcurl: %s", curl_easy_strerror(code));
}

pawl_code pawli_sending_prepare(struct pawli_sending *sending, pawl_err *err)
{
    CURLcode code = set_rules(sending);
    return code_of(code == CURLE_OK ? set_calls(sending) : code, err);
}

pawl_code pawli_sending_set_up(struct pawli_sending *sending,
                               const struct pawli_wire_request *request, pawl_err *err)
{
    CURL *easy = sending->easy;
    CURLcode code = CURLE_OK;
    int64_t connect_ms = sending->wire->rules.connect_ms;
    connect_ms = connect_ms < request->timeout_ms ? connect_ms : request->timeout_ms;
    sending->tag = request->tag;
    sending->has_name = !request->target->has_address;
    (void)pawli_text_copy(sending->host, sizeof(sending->host), request->target->host); /* fits */
    if (!link_headers(sending, request))
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    SET(CURLOPT_URL, request->target->url);
    SET(CURLOPT_HTTPHEADER, sending->lines);
    SET(CURLOPT_POSTFIELDS, request->body_len > 0 ? (const char *)request->body : "");
    SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_len);
    SET(CURLOPT_TIMEOUT_MS, (long)request->timeout_ms);
    sending->timeout_ms = request->timeout_ms;
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)connect_ms);
    return code_of(code, err);
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * http.c - between the HTTP library and the rest of the server: reads requests, sends answers.
 * Owns:  the daemons and what they call back; the bounds that the library keeps.
 * Never: asks the store: what needs it is suspended; waits for a client.
 */
#include "serve/exchange.h"

#include "base/clock.h"
#include "serve/door.h"
#include "serve/ears.h"
#include "serve/head.h"
#include "serve/loop.h"

#include <assert.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIECE        (1u << 20) /* of lines: so much is carried out at once */
#define SWALLOW_MAX  (8u << 20) /* bytes read and dropped, to be able to answer */
#define EPOLL_DAEMON (MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME) /* works in our thread: loop.h */

static pawl_mono in_ms(struct pawli_serve *serve, int64_t ms)
{
    return pawli_mono_add_ms(pawli_serve_now(serve), ms);
}

/* How long so many bytes may take, of a client who is just fast enough. */
static int64_t time_for(const struct pawli_serve *serve, size_t bytes)
{
    return serve->limits.slack_ms + (int64_t)(bytes / (PAWLI_PEER_RATE / 1000 + 1));
}

/* ---------------------------------------------------------------- connections */

static void on_connection(void *user, struct MHD_Connection *connection, void **peer,
                          enum MHD_ConnectionNotificationCode what)
{
    struct pawli_gate *gate = user;
    struct pawli_serve *serve = gate->serve;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(
            connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        /* Without memory for it nobody watches its pace: the library's own bounds remain. */
        *peer = pawli_peers_add(&serve->peers, info->connect_fd,
                                in_ms(serve, serve->limits.head_ms));
    } else if (*peer != NULL) {
        pawli_peers_remove(&serve->peers, *peer);
        *peer = NULL;
    }
}

/* ---------------------------------------------------------------- answers */

static bool add_header(struct MHD_Response *response, const char *name, const char *value)
{
    return value[0] == '\0' || MHD_add_response_header(response, name, value) == MHD_YES;
}

static bool add_headers(const struct pawli_exchange *exchange, struct MHD_Response *response)
{
    const struct pawli_answer *answer = &exchange->answer;
    char retry[16] = "";
    const char *type = answer->payload_type[0] != '\0' ? answer->payload_type : answer->type;
    if (answer->retry_after_s > 0)
        (void)snprintf(retry, sizeof(retry), "%d", answer->retry_after_s); /* fits */
    /* A payload's type is its producer's word: a browser must not act on it. */
    return add_header(response, "Content-Type", type != NULL ? type : "") &&
           add_header(response, "ETag", answer->etag) &&
           add_header(response, "Allow", answer->allow) &&
           add_header(response, "Retry-After", retry) &&
           add_header(response, "WWW-Authenticate", answer->status == 401 ? "Bearer" : "") &&
           add_header(response, "Connection", answer->is_closing ? "close" : "") &&
           add_header(response, "Idempotency-Replayed", answer->is_replayed ? "true" : "") &&
           add_header(response, "Cache-Control", "no-store") &&
           add_header(response, "X-Content-Type-Options", "nosniff") &&
           add_header(response, "Content-Security-Policy", "sandbox");
}

/* What it was given to whom would not read it: it is given back when the request ends. */
static bool is_in_vain(const struct pawli_exchange *exchange)
{
    const struct pawli_claiming *claiming = exchange->call.claiming;
    return claiming != NULL && claiming->granted_count > 0 && pawli_peer_is_gone(exchange->peer);
}

static enum MHD_Result send_answer(struct pawli_exchange *exchange)
{
    struct pawli_serve *serve = exchange->serve;
    struct pawli_buffer *body = &exchange->answer.body;
    enum MHD_Result result = MHD_NO;
    size_t len = body->len;
    exchange->phase = PAWLI_PHASE_ANSWERED;
    if (is_in_vain(exchange))
        return MHD_NO;
    exchange->status = exchange->answer.status;
    exchange->held += body->size;
    (void)atomic_fetch_add(&serve->figures.held, body->size);
    if (atomic_load(&serve->is_draining))
        exchange->answer.is_closing = true;
    if (exchange->status >= 500)
        pawli_serve_tell_failed(exchange);
    struct MHD_Response *response = MHD_create_response_from_buffer(
        len, len > 0 ? body->bytes : NULL,
        len > 0 ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);
    if (response == NULL)
        return MHD_NO;
    if (len > 0)
        *body = (struct pawli_buffer){0}; /* it is the library's now */
    if (add_headers(exchange, response))
        result = MHD_queue_response(exchange->connection, exchange->status, response);
    MHD_destroy_response(response);
    pawli_peers_until(&serve->peers, exchange->peer, in_ms(serve, time_for(serve, len)));
    return result;
}

/* The answer of one who listens: it goes on until either has enough. */
static enum MHD_Result send_changes(struct pawli_exchange *exchange)
{
    enum MHD_Result result = MHD_NO;
    struct MHD_Response *response = pawli_ear_begin(exchange);
    if (response == NULL)
        return send_answer(exchange);
    exchange->phase = PAWLI_PHASE_ANSWERED;
    exchange->status = exchange->answer.status;
    if (add_headers(exchange, response))
        result = MHD_queue_response(exchange->connection, exchange->status, response);
    MHD_destroy_response(response);
    return result;
}

/* The answer is there before the request has been read to its end: the connection ends with it. */
static enum MHD_Result send_early(struct pawli_exchange *exchange)
{
    exchange->answer.is_closing = true;
    return send_answer(exchange);
}

/* ---------------------------------------------------------------- heads */

static enum MHD_Result add_pair(void *user, enum MHD_ValueKind kind, const char *name,
                                const char *value)
{
    struct pawli_exchange *exchange = user;
    (void)kind;
    if (exchange->call.headers_count == PAWLI_PAIRS_MAX)
        return MHD_NO;
    exchange->headers[exchange->call.headers_count++] = (struct pawli_pair){
        name, value != NULL ? value : ""};
    return MHD_YES;
}

static bool is_let_in(struct pawli_exchange *exchange)
{
    struct pawli_serve *serve = exchange->serve;
    (void)pthread_mutex_lock(&serve->grants_lock); /* cannot fail: it is plain */
    const struct pawli_door door = {.grants = serve->has_tokens ? &serve->grants : NULL,
                                    .is_unix = exchange->is_unix,
                                    .now = serve->clock->wall(serve->clock->user)};
    bool is_in = pawli_door_open(&door, &exchange->call, &exchange->grant, &exchange->answer);
    (void)pthread_mutex_unlock(&serve->grants_lock);
    return is_in;
}

/* The parts of the first line, as the library gives them. */
struct first_line {
    const char *method;
    const char *url;
    const char *version;
};

static bool is_whole(struct pawli_exchange *exchange, const struct first_line *line)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(
        exchange->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    const struct pawli_head head = {.method = line->method,
                                    .target = line->url,
                                    .target_len = strlen(exchange->target),
                                    .version = line->version,
                                    .headers = exchange->headers,
                                    .headers_count = exchange->call.headers_count,
                                    .size = info != NULL ? info->header_size : 0};
    if (pawli_head_is_whole(&head))
        return true;
    pawli_answer_problem(&exchange->answer, PAWLI_PROBLEM_BAD_REQUEST,
                         "the head has a NUL, or a line that does not end with CR LF or goes on "
                         "in the next");
    return false;
}

/* Whether the request goes on; false: its answer is there. */
static bool begin(struct pawli_exchange *exchange, const struct first_line *line)
{
    struct pawli_serve *serve = exchange->serve;
    struct pawli_call *call = &exchange->call;
    pawl_err err;
    int pairs = MHD_get_connection_values(exchange->connection, MHD_HEADER_KIND, NULL, NULL);
    if (pairs > PAWLI_PAIRS_MAX) {
        pawli_answer_problem(&exchange->answer, PAWLI_PROBLEM_BAD_REQUEST,
                             "there may be %d headers", PAWLI_PAIRS_MAX);
        return false;
    }
    (void)MHD_get_connection_values(exchange->connection, MHD_HEADER_KIND, add_pair, exchange);
    if (!is_whole(exchange, line))
        return false;
    if (pawli_uri_parse(exchange->target, &exchange->uri, &err) != PAWL_OK) {
        pawli_answer_problem(&exchange->answer, PAWLI_PROBLEM_BAD_REQUEST, "%s", err.text);
        return false;
    }
    call->route = pawli_route_find(line->method, &exchange->uri, call->captures, &exchange->answer);
    if (call->route == NULL || !is_let_in(exchange))
        return false;
    if (atomic_load(&serve->is_draining) && call->route->place != PAWLI_PLACE_AT_ONCE) {
        pawli_answer_problem(&exchange->answer, PAWLI_PROBLEM_DRAINING, "ask another one");
        return false;
    }
    return pawli_route_takes(call->route, call, &exchange->answer);
}

/* ---------------------------------------------------------------- bodies */

void pawli_http_resume(struct pawli_exchange *exchange)
{
    struct pawli_loop *loop = exchange->loop; /* the exchange may end as soon as it goes on */
    pawli_peers_until(&exchange->serve->peers, exchange->peer,
                      in_ms(exchange->serve, time_for(exchange->serve, 0)));
    MHD_resume_connection(exchange->connection);
    pawli_loop_wake(loop);
}

/* Give it to the carriers. */
static void hand_over(struct pawli_exchange *exchange)
{
    exchange->phase = PAWLI_PHASE_CARRIED;
    pawli_peers_until(&exchange->serve->peers, exchange->peer, PAWLI_MONO_NEVER);
    MHD_suspend_connection(exchange->connection); /* first: a carrier may be quick */
    if (pawli_carry(exchange))
        return;
    pawli_call_refuse(&exchange->call, PAWLI_PROBLEM_DRAINING, "ask another one");
    exchange->phase = exchange->call.is_last ? PAWLI_PHASE_ANSWERED : PAWLI_PHASE_SWALLOWING;
    pawli_http_resume(exchange);
}

/* Of lines that come in pieces: whether there is enough of them to be carried out. Only what was
 * added is looked at: a client chooses how many bytes that are, and one by one would cost all. */
static bool has_piece(struct pawli_exchange *exchange, size_t added)
{
    struct pawli_call *call = &exchange->call;
    size_t len = exchange->body.len;
    size_t before = len - added;
    if (call->route->body != PAWLI_BODY_LINES)
        return false;
    while (len > before && exchange->body.bytes[len - 1] != '\n')
        len--;
    if (len > before)
        exchange->whole = len;
    if (exchange->whole == 0 || exchange->body.len < PIECE)
        return false;
    call->body = (char *)exchange->body.bytes;
    call->body_len = exchange->whole;
    call->is_last = false;
    exchange->whole = 0; /* what is left has no end of a line */
    return true;
}

static enum MHD_Result take_body(struct pawli_exchange *exchange, const char *bytes, size_t len)
{
    struct pawli_serve *serve = exchange->serve;
    exchange->body_seen += len;
    pawl_mono until = pawli_mono_add_ms(exchange->began, time_for(serve, exchange->body_seen));
    pawli_peers_until(&serve->peers, exchange->peer, until);
    if (exchange->phase == PAWLI_PHASE_SWALLOWING) {
        exchange->swallowed += len;
        /* Of a stream whose lines were taken the answer must arrive: only it tells of them. */
        bool is_enough = exchange->call.lines == 0 &&
                         exchange->swallowed > exchange->call.route->body_max + SWALLOW_MAX;
        return is_enough ? MHD_NO : MHD_YES;
    }
    if (!pawli_exchange_keep(exchange, bytes, len)) {
        pawli_buffer_clear(&exchange->body);
        exchange->phase = PAWLI_PHASE_SWALLOWING;
        exchange->answer.is_closing = true;
    } else if (has_piece(exchange, len)) {
        hand_over(exchange);
    }
    return MHD_YES;
}

/* The request has been read to its end. */
static enum MHD_Result carry_out(struct pawli_exchange *exchange)
{
    struct pawli_call *call = &exchange->call;
    call->is_last = true;
    call->body = exchange->body.len > 0 ? (char *)exchange->body.bytes : exchange->nothing;
    call->body_len = exchange->body.len;
    if (call->route->place == PAWLI_PLACE_AT_ONCE) {
        (void)pawli_call_run(call); /* told in the answer */
        bool is_listening = call->listening != NULL && exchange->answer.problem == NULL;
        return is_listening ? send_changes(exchange) : send_answer(exchange);
    }
    hand_over(exchange);
    return MHD_YES;
}

/* ---------------------------------------------------------------- what the library calls */

static void *on_target(void *user, const char *target, struct MHD_Connection *connection)
{
    struct pawli_gate *gate = user;
    struct pawli_serve *serve = gate->serve;
    struct pawli_exchange *exchange = pawli_exchange_new(serve, target);
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(
        connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    if (exchange == NULL)
        return NULL;
    exchange->connection = connection;
    exchange->loop = gate->loop;
    exchange->is_unix = gate->is_unix;
    exchange->peer = info != NULL ? info->socket_context : NULL;
    (void)atomic_fetch_add(&serve->figures.in_flight, 1);
    pawli_peers_until(&serve->peers, exchange->peer, in_ms(serve, serve->limits.head_ms));
    return exchange;
}

/*
 * Of a body in chunks the library offers the next one also where the last one was answered by being
 * suspended. Then a carrier has the exchange: it must not even be looked at. What is not taken is
 * offered again when the connection goes on, which only the library's own thread brings about.
 */
static bool is_suspended(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(
        connection, MHD_CONNECTION_INFO_CONNECTION_SUSPENDED);
    return info != NULL && info->suspended == MHD_YES;
}

static enum MHD_Result on_request(void *user, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_len, void **state)
{
    struct pawli_exchange *exchange = *state;
    size_t len = *upload_len;
    (void)user;
    if (exchange == NULL)
        return MHD_NO; /* there was no memory for it */
    if (is_suspended(connection))
        return MHD_YES;
    switch (exchange->phase) {
    case PAWLI_PHASE_NEW:
        exchange->phase = PAWLI_PHASE_READING;
        exchange->began = pawli_serve_now(exchange->serve);
        /* `url` is decoded in a way of its own: `target` is what was sent. */
        return begin(exchange, &(struct first_line){method, url, version}) ? MHD_YES
                                                                           : send_early(exchange);
    case PAWLI_PHASE_READING:
    case PAWLI_PHASE_SWALLOWING:
        if (len > 0) {
            *upload_len = 0;
            return take_body(exchange, upload, len);
        }
        return exchange->phase == PAWLI_PHASE_READING ? carry_out(exchange) : send_answer(exchange);
    case PAWLI_PHASE_ANSWERED:
        return send_answer(exchange);
    default:
        return MHD_YES; /* suspended: nothing to do yet */
    }
}

static void on_end(void *user, struct MHD_Connection *connection, void **state,
                   enum MHD_RequestTerminationCode how)
{
    struct pawli_gate *gate = user;
    struct pawli_serve *serve = gate->serve;
    struct pawli_exchange *exchange = *state;
    (void)connection;
    if (exchange == NULL)
        return;
    *state = NULL;
    pawli_ear_end(exchange);
    int64_t took_us = pawli_serve_now(serve).us - exchange->began.us - exchange->waited_us;
    if (exchange->status != 0)
        pawli_figures_count(&serve->figures, exchange->call.route, exchange->status, took_us);
    pawli_peers_until(&serve->peers, exchange->peer, in_ms(serve, serve->limits.idle_ms));
    const struct pawli_claiming *claiming = exchange->call.claiming;
    bool is_lost = how != MHD_REQUEST_TERMINATED_COMPLETED_OK && claiming != NULL &&
                   claiming->granted_count > 0;
    (void)atomic_fetch_sub(&serve->figures.in_flight, 1);
    if (!is_lost) {
        pawli_exchange_free(exchange);
        return;
    }
    exchange->connection = NULL;
    exchange->peer = NULL;
    exchange->phase = PAWLI_PHASE_BACK;
    if (!pawli_carry(exchange))
        pawli_exchange_free(exchange); /* their leases expire */
}

/* Targets are decoded in uri.c, and nowhere else. */
static size_t leave_alone(void *user, struct MHD_Connection *connection, char *text)
{
    (void)user;
    (void)connection;
    return strlen(text);
}

/* ---------------------------------------------------------------- daemons */

static struct MHD_Daemon *start_daemon(struct pawli_serve *serve, struct pawli_gate *gate, int fd)
{
    const struct pawli_serve_limits *limits = &serve->limits;
    unsigned per_address = limits->connections_per_address;
    struct MHD_OptionItem options[] = {
        {MHD_OPTION_LISTEN_SOCKET, fd, NULL},
        {MHD_OPTION_CONNECTION_LIMIT, (intptr_t)limits->connections, NULL},
        {MHD_OPTION_CONNECTION_TIMEOUT, (intptr_t)((limits->idle_ms + 999) / 1000), NULL},
        {MHD_OPTION_CONNECTION_MEMORY_LIMIT, (intptr_t)limits->head_bytes, NULL},
        {MHD_OPTION_STRICT_FOR_CLIENT, 1, NULL},
        {per_address > 0 ? MHD_OPTION_PER_IP_CONNECTION_LIMIT : MHD_OPTION_END,
         (intptr_t)per_address, NULL},
        {MHD_OPTION_END, 0, NULL},
    };
    return MHD_start_daemon(EPOLL_DAEMON, 0, NULL, NULL, on_request, gate, MHD_OPTION_ARRAY,
                            options, MHD_OPTION_NOTIFY_COMPLETED, on_end, gate,
                            MHD_OPTION_NOTIFY_CONNECTION, on_connection, gate,
                            MHD_OPTION_URI_LOG_CALLBACK, on_target, gate,
                            MHD_OPTION_UNESCAPE_CALLBACK, leave_alone, NULL, MHD_OPTION_END);
}

static pawl_code start(struct pawli_serve *serve, struct pawli_gate *gate,
                       struct pawli_listener *listener)
{
    gate->loop = pawli_loop_new();
    if (gate->loop == NULL)
        return PAWL_NO_MEMORY;
    struct MHD_Daemon *daemon = start_daemon(serve, gate, listener->fd);
    if (daemon == NULL)
        return PAWL_NO_MEMORY;
    listener->fd = -1; /* it is the daemon's now */
    return pawli_loop_start(gate->loop, daemon);
}

pawl_code pawli_http_start(struct pawli_serve *serve, pawl_err *err)
{
    pawl_code code = PAWL_OK;
    for (size_t i = 0; code == PAWL_OK && i < serve->listeners_count; i++) {
        serve->gates[i] = (struct pawli_gate){.serve = serve,
                                              .is_unix = serve->listeners[i].is_unix};
        code = start(serve, &serve->gates[i], &serve->listeners[i]);
    }
    if (code != PAWL_OK && err != NULL)
        *err = (pawl_err){code, "the HTTP library could not be started"};
    return code;
}

size_t pawli_http_stop(struct pawli_serve *serve)
{
    size_t left = 0;
    for (size_t i = 0; i < serve->listeners_count; i++) {
        pawli_listener_forget(&serve->listeners[i]);
        left += pawli_loop_stop(serve->gates[i].loop);
        serve->gates[i].loop = NULL;
        if (serve->listeners[i].fd >= 0)
            (void)close(serve->listeners[i].fd); /* nobody has connected */
    }
    return left;
}

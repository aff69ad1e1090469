/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * exchange.c - one request on its way.
 * Owns:  its memory, and how much of it there may be.
 * Never: meets a socket.
 */
#include "serve/exchange.h"

#include "base/error.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

pawl_mono pawli_serve_now(const struct pawli_serve *serve)
{
    return serve->clock->mono(serve->clock->user);
}

bool pawli_serve_is_full(struct pawli_serve *serve)
{
    return atomic_load(&serve->figures.held) > serve->limits.memory_bytes;
}

struct pawli_exchange *pawli_exchange_new(struct pawli_serve *serve, const char *target)
{
    struct pawli_exchange *exchange = calloc(1, sizeof(*exchange));
    size_t size = strlen(target) + 1;
    char *copy = malloc(size);
    if (exchange == NULL || copy == NULL) {
        free(exchange);
        free(copy);
        return NULL;
    }
    memcpy(copy, target, size);
    exchange->serve = serve;
    exchange->target = copy;
    exchange->began = pawli_serve_now(serve);
    exchange->call = (struct pawli_call){.uri = &exchange->uri,
                                         .headers = exchange->headers,
                                         .grant = &exchange->grant,
                                         .host = &serve->host,
                                         .answer = &exchange->answer,
                                         .is_last = true};
    return exchange;
}

void pawli_exchange_free(struct pawli_exchange *exchange)
{
    (void)atomic_fetch_sub(&exchange->serve->figures.held, exchange->held);
    pawli_call_clear(&exchange->call);
    pawli_answer_clear(&exchange->answer);
    pawli_buffer_clear(&exchange->body);
    free(exchange->target);
    free(exchange);
}

bool pawli_exchange_keep(struct pawli_exchange *exchange, const char *bytes, size_t bytes_len)
{
    struct pawli_figures *figures = &exchange->serve->figures;
    const struct pawli_route *route = exchange->call.route;
    if (bytes_len > route->body_max - exchange->body.len) {
        char why[64];
        (void)snprintf(why, sizeof(why),
                       route->body == PAWLI_BODY_LINES ? "a line has %zu bytes at most"
                                                       : "there may be %zu bytes",
                       route->body_max); /* fits */
        pawli_call_refuse(&exchange->call, PAWLI_PROBLEM_TOO_LARGE, why);
        return false;
    }
    size_t before = exchange->body.size;
    if (pawli_serve_is_full(exchange->serve) ||
        !pawli_buffer_put(&exchange->body, bytes, bytes_len)) {
        pawli_call_refuse(&exchange->call, PAWLI_PROBLEM_BUSY,
                          "too many bytes are under way; try again");
        return false;
    }
    exchange->held += exchange->body.size - before;
    (void)atomic_fetch_add(&figures->held, exchange->body.size - before);
    return true;
}

void pawli_line_put(struct pawli_line_up *line, struct pawli_exchange *exchange)
{
    exchange->next = NULL;
    if (line->last != NULL)
        line->last->next = exchange;
    else
        line->first = exchange;
    line->last = exchange;
}

struct pawli_exchange *pawli_line_take(struct pawli_line_up *line)
{
    struct pawli_exchange *exchange = line->first;
    if (exchange == NULL)
        return NULL;
    line->first = exchange->next;
    if (line->first == NULL)
        line->last = NULL;
    exchange->next = NULL;
    return exchange;
}

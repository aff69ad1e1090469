/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * serve_desk.c - asks what `pawl serve` answers, without a server.
 * Owns:  the store, the clock and the last answer.
 * Never: judges an answer.
 */
#include "support/serve_desk.h"

#include "serve/claim.h"

#include <stdlib.h>
#include <string.h>

static pawl_code metrics(void *user, struct pawli_buffer *to, pawl_err *err)
{
    (void)user;
    (void)err;
    return pawli_buffer_put(to, "# none\n", 7) ? PAWL_OK : PAWL_NO_MEMORY;
}

static bool is_draining(void *user)
{
    (void)user;
    return false;
}

bool serve_desk_init(struct serve_desk *desk)
{
    *desk = (struct serve_desk){.manual = {{1000000}, {INT64_C(1700000000000000)}}, .seeded = {7}};
    desk->clock = pawli_manual_clock_as_clock(&desk->manual);
    desk->random = pawli_seeded_as_random(&desk->seeded);
    pawl_memory_options options;
    pawl_memory_options_init(&options);
    options.clock = &desk->clock;
    options.random = &desk->random;
    if (pawl_memory_new(&options, &desk->memory, NULL) != PAWL_OK)
        return false;
    if (pawl_memory_open(desk->memory, &desk->store, NULL) != PAWL_OK)
        return false;
    (void)pthread_mutex_init(&desk->settings_lock, NULL);
    (void)pthread_mutex_init(&desk->test_lock, NULL);
    desk->host = (struct pawli_host){.metrics = metrics,
                                     .is_draining = is_draining,
                                     .reaper_interval_ms = PAWL_DEFAULT,
                                     .clock = &desk->clock,
                                     .settings_lock = &desk->settings_lock,
                                     .test_lock = &desk->test_lock};
    pawli_grant_all(&desk->grant);
    return true;
}

void serve_desk_clear(struct serve_desk *desk)
{
    pawli_answer_clear(&desk->answer);
    pawli_claiming_free(desk->claiming);
    pawl_store_close(desk->store);
    pawl_memory_free(desk->memory);
}

/* A copy of exactly its size: a sanitizer sees any read behind it. */
static char *copy_of(const void *bytes, size_t len)
{
    char *copy = malloc(len > 0 ? len : 1);
    if (copy != NULL && len > 0)
        memcpy(copy, bytes, len);
    return copy;
}

static void carry_out(struct serve_desk *desk, struct pawli_call *call, const char *method)
{
    call->route = pawli_route_find(method, call->uri, call->captures, &desk->answer);
    if (call->route == NULL || !pawli_route_takes(call->route, call, &desk->answer))
        return;
    if (call->body_len > call->route->body_max) {
        pawli_answer_problem(&desk->answer, PAWLI_PROBLEM_TOO_LARGE, "too large");
        return;
    }
    call->is_last = true;
    (void)pawli_call_run(call); /* told in the answer */
    desk->is_waiting = call->is_waiting;
}

unsigned serve_desk_ask(struct serve_desk *desk, const char *method, const char *target,
                        const struct pawli_pair *headers, const void *body, size_t body_len)
{
    struct pawli_uri uri;
    pawl_err err;
    size_t headers_count = 0;
    while (headers != NULL && headers[headers_count].name != NULL)
        headers_count++;
    char *text = copy_of(target, strlen(target) + 1);
    char *bytes = copy_of(body, body_len);
    pawli_answer_clear(&desk->answer);
    pawli_claiming_free(desk->claiming);
    desk->claiming = NULL;
    desk->is_waiting = false;
    struct pawli_call call = {.uri = &uri,
                              .headers = headers,
                              .headers_count = headers_count,
                              .body = bytes,
                              .body_len = body_len,
                              .grant = &desk->grant,
                              .host = &desk->host,
                              .store = desk->store,
                              .answer = &desk->answer};
    if (text == NULL || bytes == NULL)
        pawli_answer_code(&desk->answer, PAWL_NO_MEMORY, NULL);
    else if (pawli_uri_parse(text, &uri, &err) != PAWL_OK)
        pawli_answer_problem(&desk->answer, PAWLI_PROBLEM_BAD_REQUEST, "%s", err.text);
    else
        carry_out(desk, &call, method);
    if (pawli_buffer_reserve(&desk->answer.body, 1))
        desk->answer.body.bytes[desk->answer.body.len] = '\0';
    desk->claiming = call.claiming;
    free(call.listening);
    if (desk->claiming != NULL)
        desk->claiming->worker = ""; /* it was a part of the body */
    free(text);
    free(bytes);
    return desk->answer.status;
}

void serve_desk_prepare(struct serve_desk *desk, struct serve_desk_asked *asked, const char *method,
                        const char *target, const void *body, size_t body_len)
{
    *asked = (struct serve_desk_asked){.target = copy_of(target, strlen(target) + 1),
                                       .body = copy_of(body, body_len)};
    if (asked->target == NULL || asked->body == NULL ||
        pawli_uri_parse(asked->target, &asked->uri, NULL) != PAWL_OK)
        abort();
    asked->call = (struct pawli_call){.uri = &asked->uri,
                                      .body = asked->body,
                                      .body_len = body_len,
                                      .grant = &desk->grant,
                                      .host = &desk->host,
                                      .store = desk->store,
                                      .answer = &asked->answer,
                                      .is_last = true};
    asked->call.route = pawli_route_find(method, &asked->uri, asked->call.captures, &asked->answer);
    if (asked->call.route == NULL)
        abort();
}

void serve_desk_asked_clear(struct serve_desk_asked *asked)
{
    pawli_answer_clear(&asked->answer);
    free(asked->target);
    free(asked->body);
}

const char *serve_desk_text(const struct serve_desk *desk)
{
    return desk->answer.body.bytes != NULL ? (const char *)desk->answer.body.bytes : "";
}

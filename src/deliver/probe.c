/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * probe.c - one delivery by hand.
 * Owns:  the event that is sent.
 * Never: changes anything at the store.
 */
#include "deliver/probe.h"

#include "base/error.h"
#include "base/text.h"
#include "core/event.h"
#include "deliver/outlet.h"
#include "deliver/request.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TURN_MS 1000

/* What the wire is told to tell. */
struct trial {
    const struct pawli_outlet *outlet;
    const pawl_clock *clock;
    struct pawli_probe_end *end;
    bool is_ended;
};

static bool may_send(void *user, void *tag)
{
    (void)user; /* no lease stands behind it */
    (void)tag;
    return true;
}

static void on_ended(void *user, void *tag, const struct pawli_wire_end *end)
{
    struct trial *trial = tag;
    (void)user;
    trial->is_ended = true;
    trial->end->outcome = pawli_outcome_of(&end->transfer, &trial->outlet->rules,
                                           trial->clock->wall(trial->clock->user));
    trial->end->sends = end->sends;
    trial->end->took_us = end->took_us;
    (void)pawli_text_copy(trial->end->text, sizeof(trial->end->text), end->text); /* cut */
}

static pawl_code carry_out(const struct pawli_probe_args *args, struct trial *trial,
                           const struct pawli_request *made, pawl_err *err)
{
    const struct pawli_wire_owner owner = {.may_send = may_send, .ended = on_ended};
    const struct pawli_wire_request request = {.target = &trial->outlet->target,
                                               .headers = (const char *)made->headers.bytes,
                                               .headers_len = made->headers.len,
                                               .body = made->body,
                                               .body_len = made->body_len,
                                               .timeout_ms = trial->outlet->timeout_ms,
                                               .tag = trial};
    struct pawli_wire *wire = NULL;
    struct pawli_sending *sending = NULL;
    pawl_code code = pawli_wire_new(&args->wire, &owner, args->clock, &wire, err);
    if (code == PAWL_OK)
        code = pawli_wire_send(wire, &request, &sending, err);
    while (code == PAWL_OK && !trial->is_ended)
        pawli_wire_turn(wire, TURN_MS);
    pawli_wire_free(wire);
    return code;
}

/* The event as a job of the endpoint's queue would have it. */
static void fill_job(const struct pawli_probe_args *args, struct pawli_probe_end *end,
                     char headers[256], pawl_job *job)
{
    uint64_t number = args->random->next(args->random->user);
    (void)snprintf(end->id, sizeof(end->id), "test_%016" PRIx64, number); /* it fits */
    (void)snprintf(headers, 256, "pawl-event-id: %s\npawl-event-type: %s\n", end->id,
                   PAWLI_PROBE_TYPE); /* it fits */
    *job = (pawl_job){.created_at = args->clock->wall(args->clock->user), .headers = headers};
}

pawl_code pawli_probe(const struct pawli_probe_args *args, struct pawli_probe_end *ret_end,
                      pawl_err *err)
{
    char payload[] = "{\"test\": true}";
    char headers[256];
    struct pawli_outlet_rules rules = {
        .target = args->target, .gate = {.window_start = 1}, .most = 1};
    struct pawli_breaker_now now = {.mono = args->clock->mono(args->clock->user),
                                    .wall = args->clock->wall(args->clock->user)};
    struct pawli_request request = {.body = NULL};
    pawl_job job;
    pawli_breaker_rules_init(&rules.gate.breaker);
    pawli_outcome_rules_init(&rules.outcome);
    struct pawli_outlet *outlet = pawli_outlet_new(args->news->endpoint.name, &rules, now.mono);
    if (outlet == NULL)
        return pawli_fail_plain(err, PAWL_NO_MEMORY);
    pawli_outlet_set(outlet, args->news, &rules, now);
    *ret_end = (struct pawli_probe_end){.sends = 0};
    fill_job(args, ret_end, headers, &job);
    job.payload = payload;
    job.payload_len = sizeof(payload) - 1;
    struct pawli_request_args make = {.job = &job,
                                      .headers = outlet->credentials.headers,
                                      .format = outlet->format,
                                      .source = args->source,
                                      .now = now.wall};
    pawl_code code = outlet->code == PAWL_OK
                         ? pawli_outlet_signer(outlet, now.wall, &make.signer, err)
                         : pawli_fail(err, outlet->code, "%s", outlet->problem);
    if (code == PAWL_OK)
        code = pawli_request_make(&make, &request, err);
    if (code == PAWL_OK) {
        struct trial trial = {.outlet = outlet, .clock = args->clock, .end = ret_end};
        code = carry_out(args, &trial, &request, err);
    }
    pawli_request_clear(&request);
    pawli_outlet_free(outlet);
    return code;
}

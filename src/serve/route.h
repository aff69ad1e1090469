/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * route.h - what can be asked of the server, as one table: from it requests are routed, tokens are
 * checked, bodies are bounded, and docs/openapi.yaml is proved.
 */
#ifndef PAWLI_SERVE_ROUTE_H
#define PAWLI_SERVE_ROUTE_H

#include "serve/call.h"

/* What a token must be for, of queues. */
enum pawli_reach {
    PAWLI_REACH_NONE = 0, /* it is not about queues, or a lease's token proves enough */
    PAWLI_REACH_NAMED,    /* those that the request names: the handler asks pawli_call_may() */
    PAWLI_REACH_ALL       /* all of them */
};

enum pawli_body {
    PAWLI_BODY_NONE = 0,
    PAWLI_BODY_BYTES, /* a payload, of any type */
    PAWLI_BODY_JSON,
    PAWLI_BODY_LINES /* NDJSON, taken piece by piece */
};

/* Who carries it out. */
enum pawli_place {
    PAWLI_PLACE_STORE = 0, /* a thread with a handle of the store */
    PAWLI_PLACE_AT_ONCE    /* whoever has read the request: it must not block */
};

struct pawli_route {
    const char *name; /* fixed: "enqueue" */
    const char *method;
    const char *path; /* "/v1/jobs/{id}" */
    enum pawli_scope scope;
    enum pawli_reach reach;
    enum pawli_body body;
    size_t body_max;
    enum pawli_place place;
    pawli_handler run;
};

extern const struct pawli_route pawli_routes[];
extern const size_t pawli_routes_count;

/*
 * The route of a request; its captures are parts of `uri`. NULL: there is none, and the answer says
 * whether the path is wrong or the method. HEAD is GET.
 */
const struct pawli_route *pawli_route_find(const char *method, const struct pawli_uri *uri,
                                           const char *ret_captures[PAWLI_CAPTURES_MAX],
                                           struct pawli_answer *answer);

/* Whether the headers of the request suit its route: type and length of the body. False: the answer
 * says what does not. */
bool pawli_route_takes(const struct pawli_route *route, const struct pawli_call *call,
                       struct pawli_answer *answer);

#endif

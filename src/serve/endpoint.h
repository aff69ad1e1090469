/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * endpoint.h - what endpoints need of a program with webhooks: see struct pawli_webhooks.
 */
#ifndef PAWLI_SERVE_ENDPOINT_H
#define PAWLI_SERVE_ENDPOINT_H

#include "pawl/endpoint.h"

/* Room for what was made normal. */
struct pawli_endpoint_room {
    char url[PAWL_ENDPOINT_URL_MAX + 1];
    char statuses[PAWL_ENDPOINT_STATUSES_MAX + 1];
};

struct pawli_made_secret {
    bool is_given; /* `secret` is there already, and only looked at */
    bool is_pair;  /* make a pair of keys instead of a shared secret */
    char secret[PAWL_ENDPOINT_SECRET_MAX + 1];
    char public_key[PAWL_ENDPOINT_SECRET_MAX + 1]; /* empty: it has none */
};

/* How one event fared. */
struct pawli_tested {
    bool is_delivered;
    char answer[64]; /* what it was: "http-200" and the like */
    char text[PAWL_ERR_TEXT_MAX];
    char id[PAWL_EVENT_ID_MAX + 1];
    int64_t sends;
    int64_t took_ms;
};

#endif

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * absent.c - stands in for the HTTP server where this build has no HTTP library.
 * Owns:  what is said then.
 * Never: listens.
 */
#include "serve/serve.h"

#include "base/error.h"

void pawli_serve_limits_init(struct pawli_serve_limits *limits)
{
    *limits = (struct pawli_serve_limits){0};
}

pawl_code pawli_serve_start(struct pawli_serve_options *options, struct pawli_serve **ret_serve,
                            pawl_err *err)
{
    (void)options;
    (void)ret_serve;
    return pawli_fail(err, PAWL_DOWN,
                      "this build serves no HTTP: it was made without libmicrohttpd");
}

void pawli_serve_set_grants(struct pawli_serve *serve, struct pawli_grants *grants)
{
    (void)serve;
    (void)grants;
}

void pawli_serve_tell(struct pawli_serve *serve, const pawl_event *event)
{
    (void)serve;
    (void)event;
}

void pawli_serve_saw(struct pawli_serve *serve, const pawl_event *event)
{
    (void)serve;
    (void)event;
}

void pawli_serve_look(struct pawli_serve *serve)
{
    (void)serve;
}

void pawli_serve_drain(struct pawli_serve *serve)
{
    (void)serve;
}

size_t pawli_serve_in_flight(struct pawli_serve *serve)
{
    (void)serve;
    return 0;
}

size_t pawli_serve_stop(struct pawli_serve *serve, int64_t timeout_ms)
{
    (void)serve;
    (void)timeout_ms;
    return 0;
}

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * metrics_http.h - serves the figures of a process over HTTP, at /metrics.
 */
#ifndef PAWLI_SERVER_METRICS_HTTP_H
#define PAWLI_SERVER_METRICS_HTTP_H

#include "pawl/metrics.h"

struct pawli_metrics_http;

/*
 * Serve `metrics` at an address, as in listen.h, in a thread of its own, which takes no signals of
 * the process. `metrics` must stay until it was stopped.
 * PAWL_INVALID, PAWL_DOWN: as pawli_listen(); PAWL_DOWN also where this build cannot serve HTTP.
 * PAWL_NO_MEMORY.
 */
pawl_code pawli_metrics_http_start(pawl_metrics *metrics, const char *address,
                                   struct pawli_metrics_http **ret_http, pawl_err *err);

/* Where it listens: with the port that the system chose. */
const char *pawli_metrics_http_address(const struct pawli_metrics_http *http);

/* Stop: ends what is being sent. Accepts NULL. */
void pawli_metrics_http_stop(struct pawli_metrics_http *http);

#endif
